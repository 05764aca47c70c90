/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "nat_flood.h"

enum { N_WORKERS = 2, N_ENTRIES = 2 * MR_BURST_MAX, FRAME_BYTES = 60 };

struct flood {
	struct nat_path *path;
	struct mr_cache *cache;
	uint8_t *base;
	uint32_t dst; /* in network order */
	uint16_t next_id;
	struct mr_workers *workers;
	struct nat_steering *steering;
};

struct flood *flood_open(struct mr_ctx *ctx, struct mr_pool *pool,
			 struct mr_port *const *ports,
			 const struct nat_config *config, struct nat_path *path,
			 struct mr_cache *cache)
{
	const struct mr_workers_config workers = { .size = sizeof(workers),
						   .n_workers = N_WORKERS,
						   .pool = pool,
						   .ports = ports,
						   .n_ports = NAT_SIDES,
						   .handoff_entries = N_ENTRIES,
						   .idle = MR_IDLE_POLL };
	struct flood *f = calloc(1, sizeof(*f));
	struct mr_reason why = { "no memory" };

	if (f == NULL ||
	    mr_workers_create(ctx, &workers, &f->workers, &why) < 0)
		errx(1, "%s", why.text);
	f->path = path;
	f->cache = cache;
	f->base = mr_region_base(mr_pool_region(pool));
	f->dst = htonl(config->pool[0].first);
	if (nat_steering_create(ctx, f->workers, N_WORKERS, N_ENTRIES,
				&f->steering, &why) < 0)
		errx(1, "%s", why.text);
	for (uint32_t w = 0; w < N_WORKERS; w++)
		nat_steer_follow(nat_steer_of(f->steering, w), NULL, config);
	return f;
}

void flood_close(struct flood *f)
{
	if (f == NULL)
		return;
	for (uint32_t w = 0; w < N_WORKERS; w++)
		nat_steer_give_up(nat_steer_of(f->steering, w),
				  nat_path_stats(f->path));
	nat_steering_destroy(f->steering);
	mr_workers_destroy(f->workers);
	free(f);
}

static struct mr_frame fragment_of(struct flood *f)
{
	const struct mr_frame frame = {
		.addr = mr_frag_alloc(f->cache, 4096) + 128, .len = FRAME_BYTES
	};
	uint8_t *bytes = mr_frame_data(f->base, &frame);
	struct mr_eth *eth = (void *)bytes;
	struct mr_ipv4 *ip = (void *)(bytes + MR_ETH_BYTES);

	memset(bytes, 0, FRAME_BYTES);
	eth->type = htons(MR_ETHER_IPV4);
	ip->version_ihl = 0x45;
	ip->total_bytes = htons(FRAME_BYTES - MR_ETH_BYTES);
	ip->id = htons(f->next_id++);
	ip->fragment = htons(100);
	ip->ttl = 64;
	ip->proto = IPPROTO_UDP;
	ip->src = htonl(0xc6120000u + (f->next_id * 0x9e3779b1u >> 16));
	ip->dst = f->dst;
	return frame;
}

void flood_burst(struct flood *f, enum nat_side from,
		 const struct mr_frame *frames, uint32_t n,
		 uint32_t n_fragments, bool is_freed, uint64_t now_ns)
{
	struct nat_stats *stats = nat_path_stats(f->path);
	struct mr_frame all[2 * MR_BURST_MAX];

	memcpy(all, frames, n * sizeof(frames[0]));
	n_fragments = from == NAT_OUTSIDE ? n_fragments : 0;
	for (uint32_t i = 0; i < n_fragments; i++)
		all[n + i] = fragment_of(f);
	if (is_freed)
		mr_frame_free_bulk(f->cache, all + n, n_fragments);
	else
		n += n_fragments;
	n = nat_steer_split(nat_steer_of(f->steering, 0), from, all, n, now_ns,
			    stats);
	nat_burst(f->path, from, all, n);
	for (uint32_t w = 0; w < N_WORKERS; w++)
		while ((n = nat_steer_receive(nat_steer_of(f->steering, w),
					      &from, all, MR_BURST_MAX, now_ns,
					      stats)) > 0)
			nat_burst(f->path, from, all, n);
}
