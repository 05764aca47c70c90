/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bed.c gives to bed.py, and to programs in C: bed_new(),
 * bed_start(), frames, bed_free(). Addresses and ports are in host order.
 */
#ifndef NAT_BED_H
#define NAT_BED_H

#include <stdbool.h>
#include <stdint.h>

struct bed;

enum { BED_SHARED = 1 << 0 }; /* of bed_send(): the frame has another owner */
/* What bed_recv() knows besides the sides: frames for other workers. */
enum { BED_LOOP = 2, BED_OUTS };
enum { BED_SESSION_NUMBERS = 13, BED_EVENT_NUMBERS = 8 };

/* One of n_shards workers. */
struct bed *bed_new(uint32_t shard, uint32_t n_shards);
/* Pages that were not given back: 0. */
int64_t bed_free(struct bed *bed);

/* The i-th key of a configuration file, as "timeouts: udp"; false behind the
 * last one. */
bool bed_key(uint32_t i, char *ret_name, uint32_t n_max);

/* Take a configuration file, which need not make sense together unless it is
 * checked. 0, or -1 and why. */
int bed_start(struct bed *bed, const char *text, bool is_checked, char *why,
	      uint32_t n_why);

/* Once: another configuration file. 0, or -1 and why: if it is the name of a
 * setting, that cannot change. */
int bed_reload(struct bed *bed, const char *text, char *why, uint32_t n_why);

/* flags: BED_SHARED, MR_FRAME_CSUM_*. Entries have n_first, n_rest, ... bytes.
 */
int bed_send(struct bed *bed, uint32_t side, const uint8_t *bytes,
	     uint32_t n_bytes, uint32_t flags, uint32_t n_first,
	     uint32_t n_rest);
int bed_shared_is(struct bed *bed, const uint8_t *bytes, uint32_t n_bytes);
/* The next frame that came out; its length, or 0. */
int bed_recv(struct bed *bed, uint32_t side, uint8_t *bytes, uint32_t n_max,
	     uint32_t *ret_flags);
void bed_advance_ms(struct bed *bed, uint32_t ms);

/* By the names of nat_reason_name(), and those in bed.c. -1: no such. */
int64_t bed_counter(const struct bed *bed, const char *name);
const char *bed_reason_name(uint32_t i);
/* 0: every frame has ended, once. */
int64_t bed_law(const struct bed *bed);
int64_t bed_pages_in_use(const struct bed *bed);
/* Rows of BED_SESSION_NUMBERS, of the live ones; how many. */
uint32_t bed_sessions(struct bed *bed, uint32_t *numbers, uint32_t n_max);
/* BED_EVENT_NUMBERS of what was logged; see bed.py. -1: no more. */
int bed_event(const struct bed *bed, uint32_t i, uint32_t *numbers);

#endif
