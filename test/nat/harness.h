/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What harness.c gives to harness.py, and to programs in C: harness_new(),
 * harness_start(), frames, harness_free(). Addresses and ports are in host
 * order.
 */
#ifndef NAT_HARNESS_H
#define NAT_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/request.h"

struct harness;

enum {
	HARNESS_SHARED = 1 << 0
}; /* of harness_send(): the frame has another owner */
/* What harness_recv() knows besides the sides: frames for other workers. */
enum { HARNESS_LOOP = 2, HARNESS_OUTS };
enum { HARNESS_WINDOW_NUMBERS = 16 };

/* One of n_shards workers, at a time in seconds. */
struct harness *harness_new(uint32_t shard, uint32_t n_shards,
			    uint32_t start_s);
/* Pages that were not given back: 0. */
int64_t harness_free(struct harness *harness);

/*
 * Call it before harness_start(): run the XDP program on packets first, with at
 * most n_rules rules. With lag > 1, user space defers its own work at random,
 * lag - 1 times out of lag.
 */
void harness_offload(struct harness *harness, uint32_t lag, uint32_t n_rules);

/* The i-th key of a configuration file, as "timeouts: udp"; false behind the
 * last one. */
bool harness_key(uint32_t i, char *ret_name, uint32_t n_max);

/* Take a configuration file, which need not make sense together unless it is
 * checked. 0, or -1 and why. */
int harness_start(struct harness *harness, const char *text, bool is_checked,
		  char *why, uint32_t n_why);

/* Another configuration file. 0, or -1 and why: if it is the name of a setting,
 * that cannot change. */
int harness_reload(struct harness *harness, const char *text, bool is_checked,
		   char *why, uint32_t n_why);

/* flags: HARNESS_SHARED, MR_FRAME_CSUM_*. Entries have n_first, n_rest, ...
 * bytes.
 */
int harness_send(struct harness *harness, uint32_t side, const uint8_t *bytes,
		 uint32_t n_bytes, uint32_t flags, uint32_t n_first,
		 uint32_t n_rest);
int harness_shared_is(struct harness *harness, const uint8_t *bytes,
		      uint32_t n_bytes);
/* The next frame that came out; its length, or 0. */
int harness_recv(struct harness *harness, uint32_t side, uint8_t *bytes,
		 uint32_t n_max, uint32_t *ret_flags);
void harness_advance_ms(struct harness *harness, uint32_t ms);

/* Frames that the XDP program forwarded; the others are in the statistics. */
uint64_t harness_offloaded(const struct harness *harness, uint32_t from);
const struct nat_stats *harness_stats(const struct harness *harness,
				      struct nat_maps_stats *ret_maps);
/* 0: every frame has ended, once. */
int64_t harness_invariant(const struct harness *harness);
int64_t harness_pages_in_use(const struct harness *harness);
/* As nat_maps_list() and nat_maps_restore(). */
uint32_t harness_list(const struct harness *harness, uint64_t *cursor,
		      struct nat_session *sessions, uint32_t n);
/* The link of a side went down or came up. */
void harness_link_event(struct harness *harness, uint32_t side);
/* What a snapshot has. */
uint32_t harness_save(const struct harness *harness, uint64_t *cursor,
		      struct nat_session *sessions, uint32_t n);
int harness_restore(struct harness *harness, const struct nat_session *session);
/* What the main thread asks: how many sessions, and in how many rounds. -1: the
 * filter is wrong, and why. */
int64_t harness_ask(struct harness *harness, enum nat_question question,
		    const char *filter, bool is_now, uint32_t *ret_rounds,
		    char *why, uint32_t n_why);
/* Rows of HARNESS_WINDOW_NUMBERS: connections and the windows of both ends, as
 * from offload_windows(). */
uint32_t harness_windows(struct harness *harness, uint32_t *numbers,
			 uint32_t n_max);
/* The worker that a frame belongs to. *lane: enum nat_lane, as it was handed
 * over, and as it is to be. */
uint32_t harness_owner(const struct harness *harness, uint32_t side,
		       const uint8_t *bytes, uint32_t n_bytes, uint32_t *lane);
/* The i-th of what was logged; NULL: no more. */
const struct nat_log_event *harness_event(const struct harness *harness,
					  uint32_t i);

#endif
