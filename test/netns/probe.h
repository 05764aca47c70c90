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
uint64_t now_ms(void);
uint64_t number(const struct arguments *a, uint32_t i, uint64_t otherwise);

json_t *probe_info(struct probe *probe, const struct arguments *a);
json_t *probe_link(struct probe *probe, const struct arguments *a);
json_t *probe_wake(struct probe *probe, const struct arguments *a);
json_t *probe_stats(struct probe *probe, const struct arguments *a);
json_t *probe_hold(struct probe *probe, const struct arguments *a);
json_t *probe_hashes(struct probe *probe, const struct arguments *a);
json_t *probe_release(struct probe *probe, const struct arguments *a);
json_t *probe_forward(struct probe *probe, const struct arguments *a);
json_t *probe_send(struct probe *probe, const struct arguments *a);
json_t *probe_flush(struct probe *probe, const struct arguments *a);
json_t *probe_promisc(struct probe *probe, const struct arguments *a);
json_t *probe_allmulti(struct probe *probe, const struct arguments *a);
json_t *probe_mtu(struct probe *probe, const struct arguments *a);
json_t *probe_mac(struct probe *probe, const struct arguments *a);
json_t *probe_filter(struct probe *probe, const struct arguments *a);
json_t *probe_device_stats(struct probe *probe, const struct arguments *a);
json_t *probe_drop_capabilities(struct probe *probe, const struct arguments *a);

#endif
