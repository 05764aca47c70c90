/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user back end in a thread: the peer of virtio-user. It answers
 * requests as a test wants, and uses rings when a test says so.
 */
#ifndef MODEL_BACK_END_H
#define MODEL_BACK_END_H

#include <stdbool.h>
#include <stdint.h>

/* Requests, by their numbers in the specification. */
enum {
	BACK_END_GET_FEATURES = 1,
	BACK_END_SET_FEATURES = 2,
	BACK_END_SET_MEM_TABLE = 5,
	BACK_END_SET_VRING_NUM = 8,
	BACK_END_SET_VRING_ADDR = 9,
	BACK_END_GET_VRING_BASE = 11,
	BACK_END_SET_VRING_KICK = 12,
	BACK_END_SET_VRING_CALL = 13,
	BACK_END_GET_PROTOCOL = 15,
	BACK_END_GET_QUEUE_NUM = 17,
	BACK_END_SET_VRING_ENABLE = 18,
	BACK_END_SET_MTU = 20,
	BACK_END_GET_MAX_SLOTS = 36,
	BACK_END_ADD_MEM_REG = 37,
	BACK_END_N_REQUESTS = 64,
};

/* How it answers a request. */
enum back_end_trick {
	BACK_END_HONEST,
	BACK_END_REFUSES, /* acknowledges with 1 */
	BACK_END_CLOSES,
	BACK_END_LIES, /* the value is all ones */
	BACK_END_WRONG_REQUEST,
	BACK_END_WRONG_FLAGS,
	BACK_END_WRONG_SIZE,
	BACK_END_HALF_HEADER,
	BACK_END_TWICE,
	BACK_END_UNASKED, /* also where none is due */
	BACK_END_LATE,    /* by late_ms */
	BACK_END_SILENT,
	BACK_END_N_TRICKS,
};

typedef enum back_end_trick back_end_fn(void *arg, uint32_t request);

struct back_end_config {
	const char *path;
	bool connects;     /* to a port with server=on; else it listens */
	uint64_t features; /* besides those of every back end */
	uint32_t late_ms;
	back_end_fn *choose; /* called in its thread; NULL: honest */
	void *arg;
};

struct back_end;

struct back_end *back_end_start(const struct back_end_config *config);
/* It disconnects. */
void back_end_stop(struct back_end *b);
/* How often a request came since the start, and its last value. */
uint32_t back_end_count(struct back_end *b, uint32_t request);
uint64_t back_end_last(struct back_end *b, uint32_t request);
/* Use up to n buffers of a split ring; a buffer received n_bytes. */
uint32_t back_end_use(struct back_end *b, uint32_t queue, uint32_t n,
		      uint32_t n_bytes);
/* Overwrite 16 bits of a ring: of its descriptors, avail or used (0 to 2). */
void back_end_scribble(struct back_end *b, uint32_t queue, uint32_t part,
		       uint32_t at, uint16_t value);

#endif
