/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a running program does with frames, for mrctl capture and trace.
 *
 *     worker --> recorder_*() --> its ring --> main thread --> control socket
 *
 * A worker has a slot for its recorder, which is NULL unless a capture runs. It
 * checks the slot once per round, and runs different rounds during a capture.
 * So without a capture, the cost is a load and a branch per round and per drop.
 * The rings are bounded: records that do not fit are counted as missed, and no
 * worker ever waits. One capture or trace runs at a time.
 *
 * A trace marks the frames that it follows with a flag in their first entry,
 * which stays with them through queues and rings, also to other workers.
 */
#ifndef SUPPORT_CAPTURE_H
#define SUPPORT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "dataplane.h"
#include "probe.h"

enum {
	/* Of mr_frame.flags; drivers ignore it, pair: passes it on. */
	CAPTURE_TRACED = 1u << 30,
	CAPTURE_MAX_TEXT = 160,    /* of an explanation, with its NUL */
	CAPTURE_MAX_BYTES = 65535, /* of a frame */
};

enum capture_event {
	CAPTURE_RX,
	CAPTURE_TX,   /* accepted by the queue, or by a ring to its owner */
	CAPTURE_DROP, /* by the program, with its reason */
	CAPTURE_NOTE, /* what was decided about a traced frame */
};

struct capture;
struct recorder;

/*
 * Describe a frame that was received on a port or, if is_tx, is about to be
 * sent: up to CAPTURE_MAX_TEXT bytes; "": nothing. Called on the worker's
 * thread; worker is the argument of capture_attach().
 */
typedef void capture_explain_fn(void *worker, uint32_t port_idx, bool is_tx,
				const uint8_t *bytes, uint32_t n, char *ret);

struct capture_config {
	struct dataplane *plane;
	capture_explain_fn *explain; /* NULL: none */
	/* Frames that the ports' drivers have forwarded themselves, which
	 * recorders do not see; NULL: none. */
	uint64_t (*offloaded)(void *app);
	void *app;
};

/* NULL with errno: no memory or no free fd. */
struct capture *capture_create(const struct capture_config *config);
/* After the workers have ended; NULL is allowed. */
void capture_destroy(struct capture *capture);
/* Call before the worker starts. */
void capture_attach(struct capture *capture, uint32_t worker_idx,
		    struct recorder **slot, void *worker);

/* The worker's side. */

/* An empty slot, for use without a worker. */
extern struct recorder *const capture_none;

/* NULL unless somebody captures. Load it once: it may be NULL the next time. */
static inline struct recorder *capture_recorder(struct recorder *const *slot)
{
	/* Its content is older than the worker's thread. */
	return __atomic_load_n(slot, __ATOMIC_RELAXED);
}

static inline bool capture_is_on(struct recorder *const *slot)
{
	return __builtin_expect(capture_recorder(slot) != NULL, 0);
}

/* Whole frames that were received. metas: NULL, or theirs. */
void recorder_rx(struct recorder *recorder, uint32_t port_idx,
		 uint32_t queue_idx, struct mr_frame *frames,
		 const struct mr_meta *metas, uint32_t n);
/* mr_worker_send_meta(), recorded. */
uint32_t recorder_send(struct recorder *recorder, struct mr_worker *worker,
		       uint32_t port_idx, const struct mr_frame *frames,
		       const struct mr_meta *metas, uint32_t n);
/* Whole frames that are about to be freed. port_idx: where they came from, or
 * CAPTURE_LAST_PORT: the port of the last burst. why: a constant. */
enum { CAPTURE_LAST_PORT = UINT32_MAX };
void recorder_drop(struct recorder *recorder, uint32_t port_idx,
		   const struct mr_frame *frames, uint32_t n, const char *why);
/* What was decided about a frame. Does nothing unless the frame is traced. */
void recorder_note(struct recorder *recorder, const struct mr_frame *frame,
		   const char *text);

/* A worker gives these up. */
static inline void capture_drop(struct recorder *const *slot, uint32_t port_idx,
				const struct mr_frame *frames, uint32_t n,
				const char *why)
{
	struct recorder *recorder = capture_recorder(slot);

	probe_drop(why, n);
	if (__builtin_expect(recorder != NULL, 0))
		recorder_drop(recorder, port_idx, frames, n, why);
}

/* The main thread's side. */

/* What a client requests. */
struct capture_request {
	enum { CAPTURE_PORT, CAPTURE_DROPS, CAPTURE_TRACE } what;
	const char *port;   /* CAPTURE_PORT; CAPTURE_TRACE: NULL is all */
	const char *filter; /* of pcap-filter(7); NULL: all */
	uint64_t n_frames;  /* CAPTURE_TRACE: how many; 0: unlimited */
	uint32_t n_bytes;   /* of each, at most CAPTURE_MAX_BYTES */
};

/*
 * 0, or -EAGAIN: call again, a worker still uses the previous one, or (then the
 * fd becomes readable) the filter is being compiled; -EBUSY: one is running;
 * -EINVAL, -ENOMEM; with a message.
 */
int capture_start(struct capture *capture,
		  const struct capture_request *request,
		  struct mr_reason *ret_why);
void capture_stop(struct capture *capture);

/* An event of a frame. */
struct capture_record {
	enum capture_event event;
	uint32_t worker_idx, port_idx, queue_idx;
	uint64_t burst;   /* the worker's, from 1: that it is part of */
	uint64_t id;      /* of its buffer */
	uint64_t ns;      /* of CLOCK_REALTIME */
	uint32_t n_frame; /* its length */
	uint32_t n_data;
	const char *why;  /* CAPTURE_DROP; else NULL */
	const char *text; /* "": none */
	const uint8_t *data;
};

/* The next one, in order of time. Valid until the next call. */
bool capture_next(struct capture *capture, struct capture_record *ret_record);

/* Frames since the start that match, or may match, but have no record. */
struct capture_missed {
	uint64_t ring_full; /* the client reads too slowly */
	uint64_t offloaded; /* drivers have forwarded them */
};
struct capture_missed capture_missed(const struct capture *capture);

/* Readable when there are records, or to call capture_start() again;
 * capture_heard() before either. */
int capture_fd(const struct capture *capture);
void capture_heard(struct capture *capture);

#endif
