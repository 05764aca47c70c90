/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow: learn who sends on a port; print and forget who has been silent for a
 * minute, and all of them at the end of a capture.
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

static struct mr_dataplane *dp;
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

static uint32_t now_s(void)
{
	return (uint32_t)(mr_ctx_now_ns(dp->ctx) / 1000000000);
}

static uint32_t receive(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	uint8_t *base = mr_region_base(mr_pool_region(dp->pool));
	uint8_t macs[BURST][8] = { 0 };
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, BURST);
	uint32_t n_macs = 0;

	(void)opaque;
	for (uint32_t i = 0; i < n; i++) /* headers are in a first entry */
		if (i == 0 || !(frames[i - 1].flags & MR_FRAME_MORE))
			memcpy(macs[n_macs++],
			       mr_frame_data(base, &frames[i]) + 6, 6);
	learn(macs, n_macs, now_s());
	mr_frame_free_bulk(worker->cache, frames, n);
	age(now_s());
	return n;
}

/* The end of a capture, or of the device. */
static void on_event(void *opaque, struct mr_port *port, uint32_t events)
{
	(void)opaque;
	(void)port;
	if (events & (MR_PORT_EVENT_ENDED | MR_PORT_EVENT_GONE))
		mr_dataplane_stop(dp);
}

int main(int argc, char **argv)
{
	const struct mr_flow_config flows = { .size = sizeof(flows),
					      .key_bytes = 8,
					      .record_bytes =
						      sizeof(struct sender),
					      .n_max = MAX_SENDERS };
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1 };
	struct mr_reason why;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example pcap:rx=FILE", argv[0]);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0 ||
	    mr_flow_create(dp->ctx, &flows, &table, &why) < 0 ||
	    mr_wheel_create(dp->ctx, MAX_SENDERS, SLOTS, 0, &wheel, &why) < 0)
		errx(1, "%s", why.text);
	mr_port_subscribe(dp->ports[0], on_event, NULL);
	if (mr_dataplane_run(dp, receive, NULL, &why) < 0)
		errx(1, "%s", why.text);
	while (age(now_s() + SILENT_S) > 0)
		; /* all go */
	mr_wheel_destroy(wheel);
	mr_flow_destroy(table);
	mr_dataplane_close(dp, NULL);
	return 0;
}
