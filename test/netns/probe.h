/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c         the commands that open, close and set things
 * probe_frames.c  those that move frames or count them
 */
#ifndef NETNS_PROBE_H
#define NETNS_PROBE_H

#include <jansson.h>
#include <millrace/millrace.h>

enum { MAX_POOLS = 4, MAX_PORTS = 8, MAX_WORDS = 16, MAX_HELD = 65536 };

struct probe {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pools[MAX_POOLS];
	struct mr_cache *caches[MAX_POOLS];
	struct mr_port *ports[MAX_PORTS];
	struct mr_rules *rules;
	uint32_t pool_of[MAX_PORTS];
	uint32_t n_pools;
	uint32_t n_words; /* of the command: its name, then arguments */
	const char *words[MAX_WORDS];
	struct mr_reason reason;
	uint32_t n_held;     /* entries received and kept */
	uint32_t n_numbered; /* frames made so far */
	uint32_t events[MAX_PORTS]; /* since the last "link" */
	struct mr_frame held[MAX_HELD];
};

/* That it went well or, with err, the reason. */
json_t *answer(struct probe *probe, int err);
/* That it went well, and a number. */
json_t *answer_number(const char *name, uint64_t n);
/* The port that the first argument means. */
struct mr_port *port_of(const struct probe *probe);
uint64_t now_ms(void);
/* Argument i as a number; otherwise if it is not there. */
uint32_t number(const struct probe *probe, uint32_t i, uint32_t otherwise);

typedef json_t *command_fn(struct probe *probe);
command_fn probe_info, probe_link, probe_wake, probe_stats, probe_hold,
	probe_hashes, probe_metas, probe_release, probe_forward,
	probe_send, probe_flush;

#endif
