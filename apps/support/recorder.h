/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by recorder.c, which writes rings, and capture.c, which reads them. */
#ifndef SUPPORT_RECORDER_H
#define SUPPORT_RECORDER_H

#include "capture.h"
#include "capture_filter.h"

enum { RECORDER_RING_BYTES = 1 << 22 }; /* a power of two */

/* In a ring, at a multiple of its alignment: text, then data, follow. */
struct entry {
	uint32_t n_bytes; /* including all that follows */
	uint8_t is_hole;  /* to the end of the ring */
	uint8_t event;
	uint16_t port_idx, queue_idx;
	uint16_t n_text; /* including its NUL */
	uint32_t n_frame, n_data;
	uint64_t ns, id, burst;
	const char *why;
};

/* What the workers look for. Constant, except n_left. */
struct wanted {
	struct capture_request request;
	uint32_t port_idx; /* UINT32_MAX: any */
	struct capture_filter filter;
	int64_t n_left; /* atomic; of request.n_frames */
};

struct recorder {
	/* The worker's. */
	_Alignas(64) uint64_t head; /* what it has written; free-running */
	uint64_t n_bursts;
	uint32_t last_port_idx, last_queue_idx;
	uint64_t missed;  /* read by any thread */
	uint32_t is_busy; /* atomic: it may be using wanted */
	/* Written by the worker, read by the main thread. */
	_Alignas(64) uint64_t published;
	/* Written by the main thread. */
	_Alignas(64) uint64_t tail;
	struct wanted *wanted; /* atomic; NULL: nothing */
	uint8_t *ring;
	/* Constant. */
	struct recorder **slot;
	void *worker;
	uint8_t *base;
	uint32_t worker_idx, page_bytes;
	capture_explain_fn *explain;
	int fd;
	uint32_t *is_told; /* atomic, of all recorders: fd is readable */
	uint8_t linear[CAPTURE_MAX_BYTES];
};

#endif
