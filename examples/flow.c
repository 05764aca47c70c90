/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow: learn who sends on a port; print and forget who has been silent for a
 * minute, and all of them when the link is down.
 *
 *     ./flow pcap:rx=in.pcap
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <millrace/flow.h>
#include <millrace/millrace.h>

enum { BURST = 32, MAX_SENDERS = 1000000, SILENT_S = 60, SLOTS = 64 };
struct sender {
	uint8_t mac[8]; /* the key: six bytes, and two that are 0 */
	uint32_t seen_s;
	uint32_t n_frames;
};

static struct mr_flow_table *table;
static struct mr_wheel *wheel;

/* The time goes into the record: for that the wheel need not be touched. */
static void learn(uint8_t macs[][8], uint32_t n, uint32_t now_s)
{
	uint32_t ids[BURST];

	mr_flow_find_bulk(table, macs, n, ids);
	for (uint32_t i = 0; i < n; i++) {
		struct sender *sender;

		/* Not added: there since this burst, or there is no room. */
		if (ids[i] == MR_FLOW_NONE &&
		    mr_flow_add(table, macs[i], &ids[i]) == 0)
			mr_wheel_set(wheel, ids[i], now_s + SILENT_S);
		if (ids[i] == MR_FLOW_NONE)
			continue;
		sender = mr_flow_record(table, ids[i]);
		sender->seen_s = now_s;
		sender->n_frames++;
	}
}

/* Who is due has been silent, or is looked at again when he would have been. */
static uint32_t age(uint32_t now_s)
{
	uint32_t ids[BURST], n = mr_wheel_expire(wheel, now_s, ids, BURST);

	for (uint32_t i = 0; i < n; i++) {
		const struct sender *sender = mr_flow_record(table, ids[i]);

		if (now_s - sender->seen_s < SILENT_S) {
			mr_wheel_set(wheel, ids[i], sender->seen_s + SILENT_S);
			continue;
		}
		for (uint32_t k = 0; k < 6; k++)
			printf("%02x%c", sender->mac[k], k < 5 ? ':' : ' ');
		printf("%u frames\n", sender->n_frames);
		mr_flow_remove(table, ids[i]);
	}
	return n;
}

/* Receive one burst of a queue. Returns its number of entries. */
static uint32_t receive_burst(struct mr_rxq *rxq, struct mr_cache *cache,
			      uint32_t now_s)
{
	uint8_t *base = mr_region_base(mr_pool_region(mr_cache_pool(cache)));
	uint8_t macs[BURST][8] = { 0 };
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(rxq, cache, frames, BURST);
	uint32_t n_macs = 0;

	for (uint32_t i = 0; i < n; i++) /* headers are in a first entry */
		if (i == 0 || !(frames[i - 1].flags & MR_FRAME_MORE))
			memcpy(macs[n_macs++],
			       mr_frame_data(base, &frames[i]) + 6, 6);
	learn(macs, n_macs, now_s);
	mr_frame_free_bulk(cache, frames, n);
	return n;
}

/* Receive one burst of each queue. 0: no frame came, and none will come. */
static int receive_all(struct mr_port *port, struct mr_cache *cache,
		       uint32_t now_s)
{
	struct mr_link link;
	struct mr_rxq *rxq;
	uint32_t n = 0;

	for (uint32_t i = 0; (rxq = mr_port_rxq(port, i)) != NULL; i++)
		n += receive_burst(rxq, cache, now_s);
	age(now_s);
	if (n == 0)
		mr_port_poll(port);
	return n > 0 || mr_port_link(port, &link) < 0 ||
	       !(link.is_ended || link.is_gone);
}

int main(int argc, char **argv)
{
	struct mr_flow_config flows = { .size = sizeof(flows),
					.key_bytes = 8,
					.record_bytes = sizeof(struct sender),
					.n_max = MAX_SENDERS };
	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_cache *cache;
	struct mr_reason why;
	struct mr_port *port;
	struct mr_ctx *ctx;
	uint32_t now_s;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example pcap:rx=FILE", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_flow_create(ctx, &flows, &table, &why) < 0 ||
	    mr_wheel_create(ctx, MAX_SENDERS, SLOTS, 0, &wheel, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 1, 1, 1, &pool,
			     &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &config, &port, &why) < 0)
		errx(1, "%s", why.text);
	do {
		now_s = (uint32_t)(mr_ctx_now_ns(ctx) / 1000000000);
	} while (receive_all(port, cache, now_s));
	while (age(now_s + SILENT_S) > 0)
		; /* all go */
	mr_port_close(port);
	mr_cache_destroy(cache);
	mr_pool_destroy(config.pool, NULL);
	mr_wheel_destroy(wheel);
	mr_flow_destroy(table);
	mr_ctx_destroy(ctx);
	return 0;
}
