/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W02: what a frame costs a sender: allocate a buffer, write a stream's frame,
 * and send it by a tx burst to null:, which counts and frees it.
 */
#include <stdio.h>

#include "stream/compiled.h"
#include "support/stream_json.h"

#include "alloc.h"

struct sender {
	struct our_pool *our;
	struct streams *streams;
	struct builder *builder;
	struct mr_port *port;
	void *base;
	bool is_stamped;
};

/* As a front end writes them. */
#define FIELD(name, order, pieces)                                             \
	"{'name': '" name "', 'order': '" order "', 'exponent': 1, 'step': 1," \
	" 'pieces': [" pieces "]}"
#define SRC(order) FIELD("ip.src", order, "[167772160, 65536]")
#define DST(order) FIELD("ip.dst", order, "[184549376, 256]")
#define PORT(order) FIELD("udp.src", order, "[1024, 64512]")
#define FOUR(order, last) SRC(order) "," DST(order) "," PORT(order) "," last
#define STREAM(sizes, fields)                                                  \
	"[{'text': '', 'weight': 1, 'sizes': [" sizes "],"                     \
	" 'fields': [" fields "]}]"

/* Names of cases, and their streams as JSON. */
static const struct {
	const char *name, *text;
} cases[] = {
	{ "fields=0", STREAM("", "") },
	{ "fields=1", STREAM("", SRC("seq")) },
	{ "fields=4", STREAM("", FOUR("seq", FIELD("udp.dst", "seq",
						   "[53, 1], [80, 1]"))) },
	{ "fields=4 random",
	  STREAM("", FOUR("random", FIELD("udp.dst", "zipf", "[1, 1000]"))) },
	{ "fields=1 size=imix",
	  STREAM("[60, 7], [566, 4], [1514, 1]", SRC("seq")) },
	{ "fields=1 size=1514", STREAM("[1514, 1]", SRC("seq")) },
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
	if (streams_from(cases[variant->param[P_CASE]].text, &defaults,
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
	const uint32_t n_bytes = sender->streams->max_bytes;
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
