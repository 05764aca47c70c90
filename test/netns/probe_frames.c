/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of the probe that move frames, and those that count them. */
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum { BURST = 64, STEP_MS = 1, SEND_MS = 2000, TEST_TYPE = 0x88b5 };

/* info PORT */
json_t *probe_info(struct probe *probe)
{
	struct mr_port_info i = { .size = sizeof(i) };

	mr_port_info(port_of(probe), &i);
	return json_pack("{s:s, s:i, s:[iiiiii], s:b, s:s, s:s, s:s, s:i, s:i, "
			 "s:i, s:b, s:b, s:I, s:I}",
			 "netdev", i.netdev, "channels", (int)i.n_channels,
			 "mac", i.mac[0], i.mac[1], i.mac[2], i.mac[3],
			 i.mac[4], i.mac[5], "ok", 1, "name", i.name, "mode", i.mode, "why", i.why,
			 "rxqs", (int)i.n_rxqs, "txqs", (int)i.n_txqs, "mtu",
			 (int)i.mtu_bytes, "sg", (int)i.has_sg, "csum_tx",
			 !!(i.offloads & MR_OFFLOAD_CSUM_TX), "locked",
			 (json_int_t)i.locked_bytes, "kernel",
			 (json_int_t)i.kernel_bytes);
}

static json_t *names_of(uint32_t events)
{
	static const char *const names[] = { "link",	 "mac",	 "mtu",
					     "queues",	 "name", "gone",
					     "returned", "detached", "ended" };
	json_t *array = json_array();

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (events & 1u << i)
			json_array_append_new(array, json_string(names[i]));
	return array;
}

/* link PORT: after the events that have come; and which, since the last. */
json_t *probe_link(struct probe *probe)
{
	struct mr_port *port = port_of(probe);
	uint32_t *events = &probe->events[number(probe, 1, 0)];
	const int n_events = mr_port_poll(port);
	struct mr_link link = { 0 };

	json_t *changed = names_of(*events);

	*events = 0;
	(void)mr_port_link(port, &link);
	return json_pack("{s:b, s:i, s:b, s:b, s:b, s:b, s:o}", "ok", 1,
			 "events", n_events, "up", (int)link.is_up, "gone",
			 (int)link.is_gone, "returned", (int)link.is_returned,
			 "detached", (int)link.is_detached, "changed", changed);
}

/* wake PORT MS: sleep until the port's fd says that something happened. */
json_t *probe_wake(struct probe *probe)
{
	struct pollfd fd = { .fd = mr_port_fd(port_of(probe)),
			     .events = POLLIN };
	const int n = poll(&fd, 1, (int)number(probe, 2, 0));

	return json_pack("{s:b}", "ok", n == 1);
}

static json_t *named(const uint64_t *counts, const char *(*name)(uint32_t))
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < MR_STATS_SLOTS && name(i) != NULL; i++)
		json_object_set_new(object, name(i),
				    json_integer((json_int_t)counts[i]));
	return object;
}

static json_t *rx_json(struct mr_rxq *rxq)
{
	struct mr_rx_stats s = { .size = sizeof(s) };

	mr_rxq_stats(rxq, &s);
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "received",
		(json_int_t)s.received, "delivered", (json_int_t)s.delivered,
		"offloaded", (json_int_t)s.offloaded, "passed_to_kernel",
		(json_int_t)s.passed_to_kernel, "bytes", (json_int_t)s.bytes,
		"drops", named(s.drops, mr_rx_drop_name), "events",
		named(s.events, mr_rx_event_name));
}

static json_t *tx_json(struct mr_txq *txq)
{
	struct mr_tx_stats s = { .size = sizeof(s) };

	mr_txq_stats(txq, &s);
	return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "accepted",
			 (json_int_t)s.accepted, "completed",
			 (json_int_t)s.completed, "pending",
			 (json_int_t)s.pending, "bytes", (json_int_t)s.bytes,
			 "drops", named(s.drops, mr_tx_drop_name), "events",
			 named(s.events, mr_tx_event_name));
}

/* stats PORT: as in the JSON of mr-l2fwd. */
json_t *probe_stats(struct probe *probe)
{
	struct mr_port *port = port_of(probe);
	struct mr_named_count counts[16];
	const uint32_t n = mr_port_device_drops(port, counts, 16);
	json_t *drops = json_object(), *queues = json_array();
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(port, &info);
	for (uint32_t i = 0; i < n && i < 16; i++)
		json_object_set_new(drops, counts[i].name,
				    json_integer((json_int_t)counts[i].value));
	for (uint32_t i = 0; mr_port_rxq(port, i) != NULL; i++) {
		json_t *queue = json_object();

		json_object_set_new(queue, "rx", rx_json(mr_port_rxq(port, i)));
		if (mr_port_txq(port, i) != NULL)
			json_object_set_new(queue, "tx",
					    tx_json(mr_port_txq(port, i)));
		json_array_append_new(queues, queue);
	}
	return json_pack("{s:b, s:s, s:o, s:o}", "ok", 1, "port", info.name,
			 "device_drops", drops, "queues", queues);
}

/* Sleep until a queue of these ports has work, at most STEP_MS. */
static void wait_for_work(struct probe *probe, const uint64_t *ports,
			  uint32_t n_ports)
{
	struct pollfd fds[64];
	nfds_t n = 0;

	for (uint32_t p = 0; p < n_ports; p++) {
		struct mr_port *port = probe->ports[ports[p]];

		for (uint32_t i = 0; mr_port_rxq(port, i) != NULL && n < 64;
		     i++) {
			struct mr_queue *queue = &mr_port_rxq(port, i)->queue;

			if (mr_queue_arm(queue) == 1)
				return;
			fds[n++] = (struct pollfd){ .fd = mr_queue_fd(queue),
						    .events = POLLIN };
		}
	}
	(void)poll(fds, n, STEP_MS);
}

/*
 * hold PORT N_ENTRIES MS: receive that many and keep them. It ends late, not
 * early: when none is there after MS.
 */
json_t *probe_hold(struct probe *probe)
{
	const uint64_t p = number(probe, 1, 0), n_want = number(probe, 2, 0);
	const uint64_t end_ms = now_ms() + number(probe, 3, 0);
	struct mr_cache *cache = probe->caches[probe->pool_of[p]];
	uint32_t n_got = 0;

	while (n_got < n_want && probe->n_held + BURST <= MAX_HELD) {
		const bool is_late = now_ms() >= end_ms;
		uint32_t n_round = 0;

		for (uint32_t i = 0; mr_port_rxq(probe->ports[p], i) != NULL;
		     i++) {
			const uint32_t n = mr_rx_burst(
				mr_port_rxq(probe->ports[p], i), cache,
				probe->held + probe->n_held, BURST);

			probe->n_held += n;
			n_round += n;
		}
		n_got += n_round;
		if (n_round == 0 && is_late)
			break;
		if (n_round == 0)
			wait_for_work(probe, &p, 1);
	}
	return json_pack("{s:b, s:i, s:i}", "ok", 1, "n", (int)n_got, "held",
			 (int)probe->n_held);
}

/* Frames with the hash that chose this one of n_queues. */
static uint32_t count_fitting(const struct mr_meta *meta, uint32_t n,
			      uint32_t queue, uint32_t n_queues)
{
	uint32_t n_fitting = 0;

	for (uint32_t i = 0; i < n; i++)
		n_fitting += (meta[i].valid & MR_META_RSS_HASH) != 0 &&
			     meta[i].rss_hash % n_queues == queue;
	return n_fitting;
}

/*
 * hashes PORT N MS: receive N frames of one entry and drop them; from each
 * queue how many, and of how many the hash is of that queue: the tables of all
 * our drivers have entry i for queue i % queues.
 */
json_t *probe_hashes(struct probe *probe)
{
	const uint64_t p = number(probe, 1, 0), n_want = number(probe, 2, 0);
	const uint64_t end_ms = now_ms() + number(probe, 3, 0);
	struct mr_cache *cache = probe->caches[probe->pool_of[p]];
	struct mr_port_info info = { .size = sizeof(info) };
	uint32_t n_of[64] = { 0 }, n_fitting[64] = { 0 }, n_got = 0;
	json_t *queues = json_array();

	mr_port_info(probe->ports[p], &info);
	for (uint32_t i = 0; n_got < n_want && now_ms() < end_ms;
	     i = (i + 1) % info.n_rxqs) {
		struct mr_frame frames[BURST];
		struct mr_meta meta[BURST];
		const uint32_t n =
			mr_rx_burst_meta(mr_port_rxq(probe->ports[p], i), cache,
					 frames, meta, BURST);

		n_of[i] += n;
		n_fitting[i] += count_fitting(meta, n, i, info.n_rxqs);
		n_got += n;
		mr_frame_free_bulk(cache, frames, n);
	}
	for (uint32_t i = 0; i < info.n_rxqs; i++)
		json_array_append_new(queues,
				      json_pack("{s:i, s:i}", "n", (int)n_of[i],
						"fitting", (int)n_fitting[i]));
	return json_pack("{s:b, s:o}", "ok", n_got == n_want, "queues", queues);
}

/*
 * metas PORT N MS: receive N frames of one entry from queue 0 and drop them;
 * what the metadata of each says.
 */
json_t *probe_metas(struct probe *probe)
{
	const uint64_t p = number(probe, 1, 0), n_want = number(probe, 2, 0);
	const uint64_t end_ms = now_ms() + number(probe, 3, 0);
	struct mr_cache *cache = probe->caches[probe->pool_of[p]];
	json_t *metas = json_array();

	while (json_array_size(metas) < n_want && now_ms() < end_ms) {
		struct mr_frame frames[BURST];
		struct mr_meta meta[BURST];
		const uint32_t n =
			mr_rx_burst_meta(mr_port_rxq(probe->ports[p], 0), cache,
					 frames, meta, BURST);

		for (uint32_t i = 0; i < n; i++)
			json_array_append_new(
				metas,
				json_pack("{s:i, s:I, s:i, s:I, s:i}", "valid",
					  (int)meta[i].valid, "hash",
					  (json_int_t)meta[i].rss_hash, "type",
					  (int)meta[i].hash_type, "ns",
					  (json_int_t)meta[i].rx_ns, "clock",
					  (int)meta[i].rx_clock));
		mr_frame_free_bulk(cache, frames, n);
		if (n == 0)
			wait_for_work(probe, &p, 1);
	}
	return json_pack("{s:b, s:o}", "ok", json_array_size(metas) == n_want,
			 "metas", metas);
}

/* release: give back all that is held. */
json_t *probe_release(struct probe *probe)
{
	const uint32_t n = probe->n_held;

	if (n > 0)
		mr_frame_free_bulk(probe->caches[0], probe->held, n);
	probe->n_held = 0;
	return answer_number("n", n);
}

static uint32_t forward_burst(struct probe *probe, uint64_t from, uint64_t to,
			      uint32_t queue, bool has_meta)
{
	struct mr_cache *cache = probe->caches[probe->pool_of[from]];
	struct mr_port *out = probe->ports[to];
	struct mr_txq *txq = mr_port_txq(out, queue);
	struct mr_meta meta[BURST], *metas = has_meta ? meta : NULL;
	struct mr_frame frames[BURST];
	uint32_t n_rx, n_tx = 0;

	n_rx = mr_rx_burst_meta(mr_port_rxq(probe->ports[from], queue), cache,
				frames, metas, BURST);
	if (txq != NULL)
		n_tx = mr_tx_burst_meta(txq, cache, frames, metas, n_rx);
	mr_frame_free_bulk(cache, frames + n_tx, n_rx - n_tx);
	return n_rx;
}

/*
 * forward PORT [PORT [META]]: queue i to queue i, both ways (one port: back out
 * of where it came from), with META 1 with metadata, until the next line comes.
 * That line is a command like any other.
 */
json_t *probe_forward(struct probe *probe)
{
	const uint64_t ports[2] = { number(probe, 1, 0),
				    number(probe, 2, number(probe, 1, 0)) };
	const bool has_meta = number(probe, 3, 0) != 0;
	const uint32_t n_ports = ports[0] == ports[1] ? 1 : 2;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t n_entries = 0;

	while (poll(&input, 1, 0) == 0) {
		uint32_t n_round = 0;

		for (uint32_t p = 0; p < n_ports; p++) {
			struct mr_port *port = probe->ports[ports[p]];

			(void)mr_port_poll(port);
			for (uint32_t i = 0; mr_port_rxq(port, i) != NULL; i++)
				n_round += forward_burst(probe, ports[p],
							 ports[1 - p], i,
							 has_meta);
		}
		n_entries += n_round;
		if (n_round == 0)
			wait_for_work(probe, ports, n_ports);
	}
	return answer_number("entries", n_entries);
}

/* As wire.py's frame(): its bytes depend on its number. */
static void fill_bytes(uint8_t *bytes, uint32_t n_bytes, uint32_t number)
{
	static const uint8_t head[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff,           0x02,
		0,    0,    0,    0,    1,    TEST_TYPE >> 8, TEST_TYPE & 0xff
	};
	const uint8_t digits[] = { (uint8_t)(number >> 24),
				   (uint8_t)(number >> 16),
				   (uint8_t)(number >> 8), (uint8_t)number };

	for (uint32_t i = 0; i < n_bytes; i++) {
		if (i < sizeof(head))
			bytes[i] = head[i];
		else if (i < sizeof(head) + sizeof(digits))
			bytes[i] = digits[i - sizeof(head)];
		else
			bytes[i] = (uint8_t)(number * 31 + (i - 18) * 7);
	}
}

/* One frame as one entry, at an offset in a page of a pool. */
static bool make_frame(struct probe *probe, uint64_t pool, uint32_t n_bytes,
		       uint32_t offset, struct mr_frame *ret_frame)
{
	struct mr_pool_stats s = { .size = sizeof(s) };
	uint64_t addr;

	mr_pool_stats(probe->pools[pool], &s);
	if (offset + n_bytes > s.page_bytes ||
	    mr_frag_alloc_bulk(probe->caches[pool], &addr, 1, s.page_bytes) ==
		    0)
		return false;
	*ret_frame = (struct mr_frame){ .addr = addr + offset, .len = n_bytes };
	fill_bytes(mr_frame_data(mr_region_base(probe->region), ret_frame),
		   n_bytes, probe->n_numbered++);
	return true;
}

/*
 * send PORT QUEUE N BYTES [OFFSET [POOL]]: frames of one entry each, until one
 * is not taken for SEND_MS.
 */
json_t *probe_send(struct probe *probe)
{
	const uint64_t p = number(probe, 1, 0), n_want = number(probe, 3, 1);
	const uint64_t pool = number(probe, 6, probe->pool_of[p]);
	struct mr_cache *cache = probe->caches[probe->pool_of[p]];
	struct mr_txq *txq = mr_port_txq(probe->ports[p], number(probe, 2, 0));
	const uint32_t first = probe->n_numbered;
	uint64_t n_sent = 0;

	while (n_sent < n_want) {
		const uint64_t end_ms = now_ms() + SEND_MS;
		struct mr_frame frame;
		uint32_t n_taken;

		if (!make_frame(probe, pool, number(probe, 4, 60),
				number(probe, 5, 256), &frame))
			break;
		do {
			n_taken = mr_tx_burst(txq, cache, &frame, 1);
		} while (n_taken == 0 && now_ms() < end_ms);
		if (n_taken == 0) {
			mr_frame_free_bulk(cache, &frame, 1);
			break;
		}
		n_sent += n_taken;
	}
	return json_pack("{s:b, s:i, s:i}", "ok", n_sent == n_want, "n",
			 (int)n_sent, "first", (int)first);
}

/* flush PORT MS: collect completions until none is pending. */
json_t *probe_flush(struct probe *probe)
{
	struct mr_port *port = port_of(probe);
	struct mr_cache *cache =
		probe->caches[probe->pool_of[number(probe, 1, 0)]];
	const uint64_t end_ms = now_ms() + number(probe, 2, 0);
	uint64_t n_pending;

	do {
		n_pending = 0;
		for (uint32_t i = 0; mr_port_txq(port, i) != NULL; i++) {
			struct mr_tx_stats s = { .size = sizeof(s) };

			(void)mr_tx_burst(mr_port_txq(port, i), cache, NULL, 0);
			mr_txq_stats(mr_port_txq(port, i), &s);
			n_pending += s.pending;
		}
		if (n_pending > 0)
			(void)poll(NULL, 0, STEP_MS);
	} while (n_pending > 0 && now_ms() < end_ms);
	return json_pack("{s:b, s:I}", "ok", n_pending == 0, "pending",
			 (json_int_t)n_pending);
}
