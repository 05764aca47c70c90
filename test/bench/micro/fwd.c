/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W01: a forwarder without a wire, over null: rx burst, something done to each
 * frame, tx burst. The variants are what is done; the first one does nothing.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "stream/stream.h"

#include "net/swap.h"

#include "alloc.h"

enum { P_BURST, P_SIZE }; /* of variant.param; P_HOW: a mode */

enum { N_PAGES = 4096, HEADROOM_BYTES = 128 };

typedef void touch_fn(void *base, const struct mr_frame *frames, uint32_t n);

struct forward {
	struct our_pool *our;
	void *base;
	struct mr_port *port;
	touch_fn *touch; /* NULL: nothing is done */
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
	static struct mr_frame frames[N_PAGES];
	static uint64_t addrs[N_PAGES];
	struct mr_cache *cache = fwd->our->caches[0][0];
	const uint32_t n =
		mr_frag_alloc_bulk(cache, addrs, N_PAGES, OBJECT_BYTES);
	const int err = fill(fwd, addrs, frames, n, n_bytes, why);

	mr_frag_free_bulk(cache, addrs, n);
	return err;
}

static void end_forward(struct variant *variant)
{
	struct forward *fwd = extra_of(variant);

	mr_port_close(fwd->port);
}

static int begin_forward(struct variant *variant, struct mr_reason *why)
{
	const uint32_t n_bytes = (uint32_t)variant->param[P_SIZE];
	struct mr_port_config config = { .size = sizeof(config) };
	struct forward *fwd = extra_of(variant);
	char spec[32];

	fwd->our = ((struct harness *)variant->state)->pool;
	fwd->base = fwd->our->base;
	fwd->touch = modes[variant->param[P_HOW]].touch;
	config.pool = fwd->our->pools[0];
	NAME(spec, "null:len=%u", n_bytes);
	if (mr_port_open(bench_ctx(variant->bench), spec, &config, &fwd->port,
			 why) == 0 &&
	    fill_all(fwd, n_bytes, why) == 0)
		return 0;
	end_forward(variant);
	return -1;
}

static uint64_t run_forward(struct variant *variant, uint32_t thread,
			    uint64_t n)
{
	struct forward *fwd = extra_of(variant);
	struct mr_cache *cache = fwd->our->caches[0][thread];
	const uint32_t n_burst = (uint32_t)variant->param[P_BURST];
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t done = 0;

	while (done < n) {
		const uint32_t n_rx = mr_rx_burst(mr_port_rxq(fwd->port, 0),
						  cache, frames, n_burst);

		if (fwd->touch != NULL)
			fwd->touch(fwd->base, frames, n_rx);
		done += mr_tx_burst(mr_port_txq(fwd->port, 0), cache, frames,
				    n_rx);
	}
	return done;
}

static void forward_row(struct bench *bench, uint32_t burst, uint32_t n_bytes)
{
	struct row row = { .unit = "frame",
			   .x_name = "frames per burst",
			   .x = burst };
	const struct variant like = {
		.begin = begin_forward,
		.end = end_forward,
		.wish = { .n_objects = N_PAGES,
			  .n_extra = sizeof(struct forward),
			  .ours = { .headroom_bytes = HEADROOM_BYTES } },
		.param = { burst, n_bytes },
	};

	if (n_bytes == 60) /* else its x is another one */
		NAME(row.plot, "over null:");
	NAME(row.name, "port=null burst=%u size=%u", burst, n_bytes);
	for (uint32_t i = 0; i < N_OF(modes); i++)
		bench_add_all(bench, &row, &like,
			      &(struct contestant){ modes[i].name, A_OURS,
						    run_forward, .how = i },
			      1);
	bench_row(bench, &row);
}

void rows_w01(struct bench *bench)
{
	for (uint32_t burst = 1; burst <= MR_BURST_MAX; burst *= 4)
		forward_row(bench, burst, 60);
	forward_row(bench, 64, 1514);
}

/*
 * W02: what a frame costs a sender: a buffer, the frame of a stream in it, tx
 * burst to null:, which counts and frees it.
 */
struct sender {
	struct our_pool *our;
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

enum { P_CASE, P_IS_STAMPED }; /* of variant.param */

enum { SEND_BURST = 64 };

static void end_sender(struct variant *variant)
{
	struct sender *sender = extra_of(variant);

	mr_port_close(sender->port);
	builder_free(sender->builder);
	streams_free(sender->streams);
}

static int begin_sender(struct variant *variant, struct mr_reason *why)
{
	const struct stream_defaults defaults = {
		.src_mac = { 2 },
		.dst_mac = { 2 },
		.is_stamped = variant->param[P_IS_STAMPED] != 0,
	};
	struct mr_port_config config = { .size = sizeof(config) };
	struct sender *sender = extra_of(variant);

	sender->our = ((struct harness *)variant->state)->pool;
	sender->base = sender->our->base;
	sender->is_stamped = defaults.is_stamped;
	config.pool = sender->our->pools[0];
	if (streams_parse(&cases[variant->param[P_CASE]].text, 1, &defaults,
			  &sender->streams, why) == 0 &&
	    builder_open(sender->streams, 0, 1, 1, &sender->builder, why) ==
		    0 &&
	    mr_port_open(bench_ctx(variant->bench), "null:", &config,
			 &sender->port, why) == 0)
		return 0;
	end_sender(variant);
	return -1;
}

static uint64_t run_sender(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct sender *sender = extra_of(variant);
	struct mr_cache *cache = sender->our->caches[0][thread];
	struct mr_txq *txq = mr_port_txq(sender->port, 0);
	const uint32_t n_bytes = streams_max_bytes(sender->streams);
	struct mr_frame frames[SEND_BURST];
	uint64_t addrs[SEND_BURST], due_ns[SEND_BURST];
	uint64_t done = 0;

	for (uint32_t i = 0; i < SEND_BURST; i++)
		due_ns[i] = i;
	while (done < n) {
		const uint32_t n_burst =
			mr_frag_alloc_bulk(cache, addrs, SEND_BURST, n_bytes);

		for (uint32_t i = 0; i < n_burst; i++)
			frames[i].addr = addrs[i];
		builder_fill(sender->builder, sender->base, frames,
			     sender->is_stamped ? due_ns : NULL, n_burst);
		done += mr_tx_burst(txq, cache, frames, n_burst);
	}
	return done;
}

void rows_w02(struct bench *bench)
{
	static const char *const names[] = { "plain", "stamped" };

	for (uint32_t i = 0; i < 2 * N_OF(cases); i += 2) {
		struct row row = { .unit = "frame" };

		NAME(row.name, "%s", cases[i / 2].name);
		for (uint32_t k = 0; k < N_OF(names); k++)
			bench_add_all(
				bench, &row,
				&(struct variant){
					.begin = begin_sender,
					.end = end_sender,
					.wish = { .n_extra = sizeof(
							  struct sender) },
					.param = { i / 2, k } },
				&(struct contestant){ names[k], A_OURS,
						      run_sender },
				1);
		bench_row(bench, &row);
	}
}
