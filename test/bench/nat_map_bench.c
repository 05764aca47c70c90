/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the state of a translator costs, without a frame: ns per operation and
 * bytes per session.
 *
 *     nat-map-bench [SESSIONS]    (default 1000000; UDP, 16 addresses or more)
 *
 * Packets are of sessions drawn uniformly at random, in bursts of 64, and
 * touch what the packet path touches: look up, then nat_maps_out() or _in().
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mapping/session.h"

enum { BURST = 64, PER_HOST = 63, ROUNDS = 5, N_PACKETS = 4000000 };

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "nat-map-bench: %s\n", why);
	exit(1);
}

struct bench {
	struct nat_range pool;
	struct nat_prefix subscribers;
	struct nat_config config;
	struct mr_ctx *ctx;
	struct nat_maps *maps;
	uint32_t n;
	struct nat_tuple *inside, *outside; /* by session */
	uint32_t *order;                    /* sessions, at random */
	uint32_t now_s;
};

static void set_up(struct bench *b)
{
	struct nat_maps_config config = {
		.config = &b->config, .n_shards = 1, .seed = 1, .now_s = 1
	};
	struct mr_reason why;

	b->pool =
		(struct nat_range){ 0xcb007100, 0xcb007100 + b->n / 64000 + 1 };
	b->subscribers = (struct nat_prefix){ 0x0a000000, 0xff000000 };
	b->config = (struct nat_config){
		.pool = &b->pool,
		.n_pool = 1,
		.subscribers = &b->subscribers,
		.n_subscribers = 1,
		.timeouts = { 300, 240, 7440, 240, 240, 6, 60, 300, 2, 120 },
		.ports = { .first = 1024, .last = 65535 },
		.max_mappings = b->n,
		.max_sessions = 1000,
		.is_paired = true,
	};
	if (mr_ctx_create(NULL, &b->ctx, NULL) != 0)
		die("no context");
	config.ctx = b->ctx;
	if (nat_maps_create(&config, &b->maps, &why) != 0)
		die(why.text);
	b->inside = calloc(b->n, sizeof(*b->inside));
	b->outside = calloc(b->n, sizeof(*b->outside));
	b->order = calloc(N_PACKETS, sizeof(*b->order));
	if (b->inside == NULL || b->outside == NULL || b->order == NULL)
		die("no memory");
	for (uint32_t i = 0; i < b->n; i++)
		b->inside[i] = (struct nat_tuple){
			htonl(0x0a000000 + i / PER_HOST),
			htons((uint16_t)(1024 + i % PER_HOST)), 17, 0
		};
}

static double open_all(struct bench *b)
{
	double begin = now_ns();
	uint32_t id;

	for (uint32_t i = 0; i < b->n; i++)
		if (nat_maps_open(b->maps, &b->inside[i], b->now_s, &id) !=
		    NAT_OK)
			die("a mapping could not be opened");
	return (now_ns() - begin) / b->n;
}

static void note_outside(struct bench *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const struct nat_map *map;
		uint32_t id;

		nat_maps_find_out(b->maps, &b->inside[i], 1, &id);
		map = nat_maps_at(b->maps, id);
		b->outside[i] = (struct nat_tuple){ map->outside_addr,
						    map->outside_port, 17, 0 };
	}
}

static double exchange(struct bench *b, bool is_in, bool is_used)
{
	const struct nat_tuple *from = is_in ? b->outside : b->inside;
	const struct nat_remote remote = { htonl(0xc6336401), htons(53) };
	uint64_t n_wrong = 0;
	double begin, ns = 0;

	for (uint32_t i = 0; i < N_PACKETS; i += BURST) {
		struct nat_tuple tuples[BURST];
		uint32_t ids[BURST];

		/* Out of the way of what is measured, in the cache. */
		for (uint32_t k = 0; k < BURST; k++)
			tuples[k] = from[b->order[i + k]];
		begin = now_ns();
		if (is_in)
			nat_maps_find_in(b->maps, tuples, BURST, ids);
		else
			nat_maps_find_out(b->maps, tuples, BURST, ids);
		for (uint32_t k = 0; is_used && k < BURST; k++)
			n_wrong += (is_in ? nat_maps_in(b->maps, ids[k], remote,
							NULL, b->now_s) :
					    nat_maps_out(b->maps, ids[k],
							 remote, NULL,
							 b->now_s)) != NAT_OK;
		ns += now_ns() - begin;
		n_wrong += ids[0] == MR_FLOW_NONE;
	}
	if (n_wrong != 0)
		die("a packet was not let through");
	return ns / N_PACKETS;
}

/* All end; calls that had something to do. */
static double end_all(struct bench *b)
{
	double begin = now_ns();
	uint32_t n = 0;

	while (n < b->n)
		n += nat_maps_expire(b->maps, b->now_s + 301);
	return (now_ns() - begin) / b->n;
}

static void release_all(struct bench *b)
{
	struct nat_maps_stats stats;

	do {
		nat_maps_expire(b->maps, b->now_s + 301 + 121);
		nat_maps_stats(b->maps, &stats);
	} while (stats.n_quarantined > 0);
	b->now_s += 1000;
}

int main(int argc, char **argv)
{
	struct bench b = { .n = argc > 1 ?
					(uint32_t)strtoul(argv[1], NULL, 10) :
					1000000,
			   .now_s = 1 };
	struct nat_maps_stats before, full, after;
	struct nat_random random;

	if (b.n == 0)
		die("usage: nat-map-bench [SESSIONS]");
	set_up(&b);
	nat_random_init(&random, 1);
	for (uint32_t i = 0; i < N_PACKETS; i++)
		b.order[i] = nat_random_below(&random, b.n);
	nat_maps_stats(b.maps, &before);
	printf("%u sessions, ns per operation\n", b.n);
	printf("%8s %9s %9s %9s %9s %8s\n", "open", "find_out", "out",
	       "find_in", "in", "end");
	for (uint32_t round = 0; round < ROUNDS; round++) {
		double opened = open_all(&b), ns[4];

		note_outside(&b);
		for (uint32_t k = 0; k < 4; k++)
			ns[k] = exchange(&b, k / 2, k % 2);
		nat_maps_stats(b.maps, &full);
		printf("%8.1f %9.1f %9.1f %9.1f %9.1f ", opened, ns[0],
		       ns[1] - ns[0], ns[2], ns[3] - ns[2]);
		printf("%8.1f\n", end_all(&b));
		release_all(&b);
	}
	nat_maps_stats(b.maps, &after);
	printf("bytes per session: %.1f; empty before %" PRIu64
	       ", full %" PRIu64 ", empty behind %" PRIu64 "\n",
	       (double)(full.bytes - before.bytes) / b.n, before.bytes,
	       full.bytes, after.bytes);
	nat_maps_destroy(b.maps);
	mr_ctx_destroy(b.ctx);
	return 0;
}
