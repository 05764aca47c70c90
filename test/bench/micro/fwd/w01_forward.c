/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W01: a forwarder without a wire: rx burst, something done to each frame, tx
 * burst. The players are what is done; the first one does nothing.
 *
 * Over null: a frame costs what the library costs, and what is done. Over pair:
 * the same frames go round between two ports of one thread, so that two rings
 * and the far end, which does nothing, are in it too.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/swap.h"
#include "ours.h"
#include "stream/stream.h"
#include "workloads.h"

enum { P_MODE, P_BURST, P_SIZE, P_IS_PAIR };

enum { N_PAGES = 4096, PAGE_BYTES = 2048, HEADROOM_BYTES = 128 };

typedef void touch_fn(void *base, const struct mr_frame *frames, uint32_t n);

struct forward {
	struct ours ours;
	void *base;
	struct mr_port *near, *far; /* far: NULL over null: */
	touch_fn *touch;            /* NULL: nothing is done */
};

/* What a router would look at. */
static void touch_read(void *base, const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mr_net_view view;

		mr_net_parse(mr_frame_data(base, &frames[i]), frames[i].len,
			     frames[i].len, &view);
		keep(&view);
	}
}

static void touch_macs(void *base, const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		swap_frame(mr_frame_data(base, &frames[i]), frames[i].len,
			   frames[i].len, SWAP_MACS);
}

static void touch_ports(void *base, const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		swap_frame(mr_frame_data(base, &frames[i]), frames[i].len,
			   frames[i].len, SWAP_PORTS);
}

static uint16_t fixed(const uint8_t *at, uint32_t delta)
{
	uint16_t csum;

	memcpy(&csum, at, sizeof(csum));
	return mr_csum_fix(csum, delta);
}

/* Another source and port, sums fixed: what a NAT writes, without its table. */
static void rewrite(uint8_t *bytes, uint32_t n_bytes)
{
	struct mr_net_view view;
	uint32_t address, address_delta;
	uint16_t port, csum;
	uint8_t *l3, *l4;

	if (mr_net_parse(bytes, n_bytes, n_bytes, &view) < 0 ||
	    view.ether_type != MR_ETHER_IPV4 || view.csum_bytes == 0)
		return;
	l3 = bytes + view.l3_bytes;
	l4 = bytes + view.l4_bytes;
	memcpy(&address, l3 + 12, sizeof(address));
	memcpy(&port, l4, sizeof(port));
	address_delta = mr_csum_delta32(address, address ^ htonl(1));
	csum = fixed(l3 + 10, address_delta);
	memcpy(l3 + 10, &csum, sizeof(csum));
	csum = fixed(bytes + view.csum_bytes,
		     address_delta + mr_csum_delta16(port, port ^ htons(1)));
	if (csum == 0)
		csum = UINT16_MAX; /* UDP */
	memcpy(bytes + view.csum_bytes, &csum, sizeof(csum));
	address ^= htonl(1);
	port ^= htons(1);
	memcpy(l3 + 12, &address, sizeof(address));
	memcpy(l4, &port, sizeof(port));
}

static void touch_rewrite(void *base, const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		rewrite(mr_frame_data(base, &frames[i]), frames[i].len);
}

static const struct {
	const char *name;
	touch_fn *touch;
} modes[] = {
	{ "none", NULL },
	{ "read", touch_read },
	{ "swap-macs", touch_macs },
	{ "swap-ports", touch_ports },
	{ "rewrite", touch_rewrite },
};

enum { N_MODES = sizeof(modes) / sizeof(modes[0]) };

/* Frames of 4096 flows at addrs + HEADROOM_BYTES. */
static int fill(struct forward *fwd, const uint64_t *addrs,
		struct mr_frame *frames, uint32_t n, uint32_t n_bytes,
		struct mr_reason *why)
{
	static const char *const text[] = { "ip.src=10.0.0.0/20" };
	const struct stream_defaults defaults = { .src_mac = { 2 },
						  .dst_mac = { 2 },
						  .frame_bytes = n_bytes };
	struct streams *streams;
	struct builder *builder;

	if (streams_parse(text, 1, &defaults, &streams, why) < 0)
		return -1;
	if (builder_open(streams, 0, 1, 1, &builder, why) < 0) {
		streams_free(streams);
		return -1;
	}
	for (uint32_t i = 0; i < n; i++)
		frames[i].addr = addrs[i] + HEADROOM_BYTES;
	builder_fill(builder, fwd->base, frames, NULL, n);
	builder_free(builder);
	streams_free(streams);
	return 0;
}

/* null: gives buffers as they are: all of them get a frame before. */
static int fill_all(struct forward *fwd, uint32_t n_bytes,
		    struct mr_reason *why)
{
	struct mr_cache *cache = fwd->ours.caches[0];
	struct mr_frame *frames = calloc(N_PAGES, sizeof(frames[0]));
	uint64_t *addrs = calloc(N_PAGES, sizeof(addrs[0]));
	int err = -1;

	if (frames != NULL && addrs != NULL) {
		const uint32_t n =
			mr_frag_alloc_bulk(cache, addrs, N_PAGES, PAGE_BYTES);

		err = fill(fwd, addrs, frames, n, n_bytes, why);
		mr_frag_free_bulk(cache, addrs, n);
	} else {
		snprintf(why->text, sizeof(why->text), "no memory");
	}
	free(frames);
	free(addrs);
	return err;
}

/* A burst of frames, that go round from then on. */
static int send_first(struct forward *fwd, uint32_t n_bytes, uint32_t n,
		      struct mr_reason *why)
{
	struct mr_cache *cache = fwd->ours.caches[0];
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t addrs[MR_BURST_MAX];
	uint32_t n_sent;

	if (mr_frag_alloc_bulk(cache, addrs, n, PAGE_BYTES) != n ||
	    fill(fwd, addrs, frames, n, n_bytes, why) < 0)
		return -1;
	n_sent = mr_tx_burst(mr_port_txq(fwd->far, 0), cache, frames, n);
	mr_frame_free_bulk(cache, frames + n_sent, n - n_sent);
	return 0;
}

static int open_ports(struct forward *fwd, const struct player *player,
		      struct mr_reason *why)
{
	const uint32_t n_bytes = (uint32_t)player->param[P_SIZE];
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = fwd->ours.pool };
	struct mr_ctx *ctx = bench_ctx(player->bench);
	char spec[32];

	if (player->param[P_IS_PAIR]) {
		/* The players of a row are there at the same time. */
		snprintf(spec, sizeof(spec), "pair:w01-%s", player->name);
		if (mr_port_open(ctx, spec, &config, &fwd->near, why) < 0 ||
		    mr_port_open(ctx, spec, &config, &fwd->far, why) < 0)
			return -1;
		return send_first(fwd, n_bytes,
				  (uint32_t)player->param[P_BURST], why);
	}
	snprintf(spec, sizeof(spec), "null:len=%u", n_bytes);
	if (mr_port_open(ctx, spec, &config, &fwd->near, why) < 0)
		return -1;
	return fill_all(fwd, n_bytes, why);
}

static void tear_down(struct player *player)
{
	struct forward *fwd = player->state;

	mr_port_close(fwd->near);
	mr_port_close(fwd->far);
	ours_free(&fwd->ours);
	free(fwd);
}

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct mr_pool_config config = { .n_pages = N_PAGES,
					       .page_bytes = PAGE_BYTES,
					       .headroom_bytes =
						       HEADROOM_BYTES };
	struct forward *fwd = calloc(1, sizeof(*fwd));

	if (fwd == NULL ||
	    ours_make(&fwd->ours, player->bench, &config, 1, why) < 0) {
		free(fwd);
		return -1;
	}
	player->state = fwd;
	fwd->base = mr_region_base(mr_pool_region(fwd->ours.pool));
	fwd->touch = modes[player->param[P_MODE]].touch;
	if (open_ports(fwd, player, why) < 0) {
		tear_down(player);
		return -1;
	}
	return 0;
}

static uint64_t run(struct player *player, uint32_t thread, uint64_t n)
{
	struct forward *fwd = player->state;
	struct mr_cache *cache = fwd->ours.caches[thread];
	const uint32_t n_burst = (uint32_t)player->param[P_BURST];
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t done = 0;

	while (done < n) {
		uint32_t n_rx = mr_rx_burst(mr_port_rxq(fwd->near, 0), cache,
					    frames, n_burst);

		if (fwd->touch != NULL)
			fwd->touch(fwd->base, frames, n_rx);
		/* There is room: no more go round than the ring holds. */
		done += mr_tx_burst(mr_port_txq(fwd->near, 0), cache, frames,
				    n_rx);
		if (fwd->far == NULL)
			continue;
		n_rx = mr_rx_burst(mr_port_rxq(fwd->far, 0), cache, frames,
				   n_burst);
		mr_tx_burst(mr_port_txq(fwd->far, 0), cache, frames, n_rx);
	}
	return done;
}

static void row_of(struct bench *bench, bool is_pair, uint32_t burst,
		   uint32_t n_bytes)
{
	struct player players[MAX_PLAYERS];
	char name[64];
	struct row row = { .name = name,
			   .unit = "frame",
			   .plot = is_pair ? "over pair:" : "over null:",
			   .x_name = "frames per burst",
			   .x = burst,
			   .players = players };

	if (n_bytes != 60)
		row.plot = NULL; /* its x is another one */
	for (uint32_t i = 0; i < N_MODES; i++) {
		const struct player player = {
			.name = modes[i].name,
			.side = SIDE_OURS,
			.setup = set_up,
			.run = run,
			.teardown = tear_down,
			.param = { [P_MODE] = i,
				   [P_BURST] = burst,
				   [P_SIZE] = n_bytes,
				   [P_IS_PAIR] = is_pair },
		};

		bench_add(bench, players, &row.n_players, &player);
	}
	snprintf(name, sizeof(name), "port=%s burst=%u size=%u",
		 is_pair ? "pair" : "null", burst, n_bytes);
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	for (uint32_t burst = 1; burst <= MR_BURST_MAX; burst *= 4)
		row_of(bench, false, burst, 60);
	row_of(bench, false, 64, 1514);
	for (uint32_t burst = 1; burst <= MR_BURST_MAX; burst *= 4)
		row_of(bench, true, burst, 60);
}

const struct workload w01_forward = {
	.name = "W01",
	.title = "forward",
	.what = "rx burst, something done to each frame, tx burst; no wire",
	.source = "xdp-tools, xdp-bench: -p no-touch, parse-ip, swap-macs",
	.rows = rows,
};
