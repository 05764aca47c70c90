/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W02: what a frame costs a sender: a buffer, the frame of a stream in it, tx
 * burst to null:, which counts and frees it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ours.h"
#include "stream/stream.h"
#include "workloads.h"

enum { BURST = 64 };

struct sender {
	struct ours ours;
	struct streams *streams;
	struct builder *builder;
	struct mr_port *port;
	void *base;
	bool is_stamped;
};

/* What is sent, and the plain names of it. */
static const struct {
	const char *name, *text;
} cases[] = {
	{ "fields=0", "" },
	{ "fields=1", "ip.src=10.0.0.0/16" },
	{ "fields=4", "ip.src=10.0.0.0/16 ip.dst=11.0.0.0/24 "
		      "udp.src=1024-65535 udp.dst=53,80" },
	{ "fields=4 random", "ip.src=10.0.0.0/16:random "
			     "ip.dst=11.0.0.0/24:random "
			     "udp.src=1024-65535:random "
			     "udp.dst=1-1000:zipf" },
	{ "fields=1 size=imix", "ip.src=10.0.0.0/16 size=imix" },
	{ "fields=1 size=1514", "ip.src=10.0.0.0/16 size=1514" },
};

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

enum { P_CASE, P_IS_STAMPED };

static void tear_down(struct player *player)
{
	struct sender *sender = player->state;

	mr_port_close(sender->port);
	builder_free(sender->builder);
	streams_free(sender->streams);
	ours_free(&sender->ours);
	free(sender);
}

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct stream_defaults defaults = {
		.src_mac = { 2 },
		.dst_mac = { 2 },
		.is_stamped = player->param[P_IS_STAMPED] != 0,
	};
	struct mr_port_config config = { .size = sizeof(config) };
	struct sender *sender = calloc(1, sizeof(*sender));

	if (sender == NULL ||
	    ours_make(&sender->ours, player->bench, NULL, 1, why) < 0) {
		free(sender);
		return -1;
	}
	player->state = sender;
	sender->base = mr_region_base(mr_pool_region(sender->ours.pool));
	sender->is_stamped = defaults.is_stamped;
	config.pool = sender->ours.pool;
	if (streams_parse(&cases[player->param[P_CASE]].text, 1, &defaults,
			  &sender->streams, why) < 0 ||
	    builder_open(sender->streams, 0, 1, 1, &sender->builder, why) < 0 ||
	    mr_port_open(bench_ctx(player->bench), "null:", &config,
			 &sender->port, why) < 0) {
		tear_down(player);
		return -1;
	}
	return 0;
}

static uint64_t run(struct player *player, uint32_t thread, uint64_t n)
{
	struct sender *sender = player->state;
	struct mr_cache *cache = sender->ours.caches[thread];
	struct mr_txq *txq = mr_port_txq(sender->port, 0);
	const uint32_t n_bytes = streams_max_bytes(sender->streams);
	struct mr_frame frames[BURST];
	uint64_t addrs[BURST], due_ns[BURST];
	uint64_t done = 0;

	for (uint32_t i = 0; i < BURST; i++)
		due_ns[i] = i;
	while (done < n) {
		const uint32_t n_burst =
			mr_frag_alloc_bulk(cache, addrs, BURST, n_bytes);

		for (uint32_t i = 0; i < n_burst; i++)
			frames[i].addr = addrs[i];
		builder_fill(sender->builder, sender->base, frames,
			     sender->is_stamped ? due_ns : NULL, n_burst);
		done += mr_tx_burst(txq, cache, frames, n_burst);
	}
	return done;
}

static void rows(struct bench *bench)
{
	for (uint32_t i = 0; i < N_CASES; i++) {
		struct player players[2];
		struct row row = { .name = cases[i].name,
				   .unit = "frame",
				   .players = players };
		struct player player = { .name = "plain",
					 .side = SIDE_OURS,
					 .setup = set_up,
					 .run = run,
					 .teardown = tear_down,
					 .param = { [P_CASE] = i } };

		bench_add(bench, players, &row.n_players, &player);
		player.name = "stamped";
		player.param[P_IS_STAMPED] = 1;
		bench_add(bench, players, &row.n_players, &player);
		bench_row(bench, &row);
	}
}

const struct workload w02_build = {
	.name = "W02",
	.title = "build",
	.what = "frames of a stream, built and sent to null:",
	.source = "issue 6: 100 Mpps with one field, 40 with four",
	.rows = rows,
};
