/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c         the commands that make, open and close things
 * probe_control.c those that set something on a device
 * probe_frames.c  those that move frames or count them
 */
#ifndef NETNS_PROBE_H
#define NETNS_PROBE_H

#include <jansson.h>
#include <millrace/millrace.h>

enum { MAX_POOLS = 4, MAX_PORTS = 8, MAX_WORDS = 16, MAX_HELD = 65536 };

struct arguments {
	uint32_t n;
	const char *words[MAX_WORDS];
};

struct probe {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pools[MAX_POOLS];
	struct mr_cache *caches[MAX_POOLS];
	struct mr_port *ports[MAX_PORTS];
	uint32_t pool_of[MAX_PORTS];
	uint32_t n_pools;
	uint32_t n_held; /* entries received and kept */
	uint32_t n_numbered; /* frames made so far */
	struct mr_frame held[MAX_HELD];
};

json_t *answer_error(int err, const struct mr_reason *reason);
/* The same, or that it went well. */
json_t *answer(int err, const struct mr_reason *reason);
struct mr_port *port_of(struct probe *probe, const struct arguments *a);
uint64_t now_ms(void);
uint64_t number(const struct arguments *a, uint32_t i, uint64_t otherwise);

/* A command, by a line whose words are its arguments. */
typedef json_t *command_fn(struct probe *probe, const struct arguments *a);
command_fn probe_info, probe_link, probe_wake, probe_stats, probe_hold,
	probe_hashes, probe_release, probe_forward, probe_send, probe_flush,
	probe_promisc, probe_allmulti, probe_mtu, probe_mac, probe_filter,
	probe_device_stats, probe_drop_capabilities;

#endif
