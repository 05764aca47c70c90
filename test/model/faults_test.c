/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our driver on a NIC that is broken, hostile, or gone: every loss is counted
 * by name, no page is lost, and no wait is endless.
 */
#include <poll.h>
#include <time.h>

#include "model/port_harness.h"
#include "support/unit.h"

enum { N_FRAMES = 2000, FRAME_BYTES = 200, ROOM = 16384 };

static const struct intel_chip *chip;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Frame number i: to any address, with bytes that depend on i. */
static void make(uint8_t *bytes, uint32_t i)
{
	memset(bytes, 0xff, 6);
	for (uint32_t k = 6; k < FRAME_BYTES; k++)
		bytes[k] = (uint8_t)(i * 7 + k);
	bytes[12] = 0x88;
	bytes[13] = 0xb5;
	memcpy(bytes + 14, &i, 4);
}

static bool is_intact(const uint8_t *bytes, int32_t n_bytes)
{
	uint8_t want[FRAME_BYTES];
	uint32_t i;

	if (n_bytes != FRAME_BYTES)
		return false;
	memcpy(&i, bytes + 14, 4);
	make(want, i);
	return memcmp(bytes, want, FRAME_BYTES) == 0;
}

/* Traffic through a port, both ways. */
struct traffic {
	uint32_t n_injected, n_received, n_intact, n_sent, n_collected;
};

static void receive(struct port_harness *harness, struct traffic *t)
{
	struct mr_frame frames[PORT_BED_BURST];
	struct mr_meta meta[PORT_BED_BURST];
	uint8_t bytes[ROOM];
	const uint32_t n =
		mr_rx_burst_meta(mr_port_rxq(harness->ports[0], 0),
				 harness->cache, frames, meta, PORT_BED_BURST);

	assert_true(n <= PORT_BED_BURST);
	assert_int_equal(mr_frame_n_whole(frames, n), n);
	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&frames[i])) {
		t->n_received++;
		t->n_intact += is_intact(
			bytes, port_harness_bytes(harness, &frames[i], bytes,
						  sizeof(bytes)));
	}
	mr_frame_free_bulk(harness->cache, frames, n);
}

static void transmit(struct port_harness *harness, struct traffic *t)
{
	uint8_t bytes[FRAME_BYTES];
	struct mr_frame frame;

	make(bytes, t->n_sent);
	assert_int_equal(
		port_harness_frame(harness, &frame, bytes, FRAME_BYTES), 1);
	if (mr_tx_burst(mr_port_txq(harness->ports[0], 0), harness->cache,
			&frame, 1) == 1)
		t->n_sent++;
	else
		mr_frame_free_bulk(harness->cache, &frame, 1);
}

static void collect(struct port_harness *harness, struct traffic *t)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n_bytes;

	while ((n_bytes = model_wire_receive(harness->wire, 1, bytes,
					     sizeof(bytes))) > 0)
		t->n_collected += is_intact(bytes, (int32_t)n_bytes);
}

/* Up to n frames each way, as far as they get in that many milliseconds. */
static struct traffic run(struct port_harness *harness, uint32_t n, uint64_t ms)
{
	const uint64_t until_ms = now_ms() + ms;
	struct traffic t = { .n_sent = 0 };
	uint8_t bytes[FRAME_BYTES];

	while (now_ms() < until_ms &&
	       (t.n_received < n || t.n_sent < n || t.n_collected < n)) {
		make(bytes, t.n_injected);
		/* At most as many as the port has buffers. */
		if (t.n_injected < n && model_wire_n(harness->wire, 0) < 64 &&
		    model_wire_send(harness->wire, 1, bytes, FRAME_BYTES))
			t.n_injected++;
		receive(harness, &t);
		if (t.n_sent < n)
			transmit(harness, &t);
		else
			mr_tx_burst(mr_port_txq(harness->ports[0], 0),
				    harness->cache, NULL, 0);
		collect(harness, &t);
		mr_port_poll(harness->ports[0]);
	}
	return t;
}

/* Open on a working NIC, and wait for its link. */
static void make_port(struct port_harness *harness, const char *options)
{
	struct mr_reason why;

	port_harness_make(harness, chip, NULL, NULL);
	if (port_harness_open(harness, 0, options, &why) < 0)
		fail_msg("%s", why.text);
	assert_true(port_harness_wait_link(harness, 0, true));
}

static void end(struct port_harness *harness)
{
	assert_true(harness->ports[0] == NULL ||
		    port_harness_invariants_hold(harness, 0));
	assert_true(port_harness_end(harness));
}

static struct mr_rx_stats rx_stats(struct port_harness *harness)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	mr_rxq_stats(mr_port_rxq(harness->ports[0], 0), &stats);
	return stats;
}

static struct mr_tx_stats tx_stats(struct port_harness *harness)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	mr_txq_stats(mr_port_txq(harness->ports[0], 0), &stats);
	return stats;
}

/* Every frame arrives, and all counters agree. */
static void lose_nothing(const struct model_faults *faults)
{
	struct port_harness harness;
	struct traffic t;

	make_port(&harness, "");
	model_set_faults(&harness.nics[0]->m, faults);
	t = run(&harness, N_FRAMES, 20000);
	assert_int_equal(t.n_intact, N_FRAMES);
	assert_int_equal(t.n_collected, N_FRAMES);
	assert_int_equal(rx_stats(&harness).received, N_FRAMES);
	port_harness_close(&harness, 0);
	assert_int_equal(harness.n_drops, 0);
	assert_string_equal(model_violations(&harness.nics[0]->m), "");
	end(&harness);
}

TEST(sound_nic_loses_nothing)
{
	const struct model_faults none = { .late_completions = 0 };

	lose_nothing(&none);
}

TEST(late_completions_lose_nothing)
{
	const struct model_faults faults = { .late_completions = 5 };

	lose_nothing(&faults);
}

/* Frames marked bad, or invalid: each is counted as a drop. */
TEST(bad_descriptors_are_named_drops)
{
	static const struct {
		const char *name;
		struct model_faults faults;
		const char *options;
	} table[] = {
		{ "error bits", { .error_bits = 4 }, "" },
		{ "lengths", { .bad_length = 4 }, "" },
		{ "lengths, in several entries",
		  { .bad_length = 4 },
		  ",sg=on,mtu=9000" },
		{ "no end of frame", { .bad_count = 4 }, "" },
	};
	struct port_harness harness;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct model_faults none = { .late_completions = 0 };
		struct mr_rx_stats stats;
		uint64_t n_drops;
		struct traffic t;

		make_port(&harness, table[i].options);
		model_set_faults(&harness.nics[0]->m, &table[i].faults);
		t = run(&harness, N_FRAMES, 1500);
		stats = rx_stats(&harness);
		n_drops = stats.drops[MR_RX_DROP_INVALID] +
			  stats.drops[MR_RX_DROP_TOO_LONG];
		print_message("%s: %u injected, %u received, %llu dropped\n",
			      table[i].name, t.n_injected, t.n_received,
			      (unsigned long long)n_drops);
		assert_in_range(n_drops, t.n_injected / 16, t.n_injected);
		assert_true(t.n_intact > 0);
		/* Without faults, it works again. */
		model_set_faults(&harness.nics[0]->m, &none);
		run(&harness, 2, 100);
		t = run(&harness, 100, 5000);
		assert_int_equal(t.n_intact, 100);
		end(&harness);
	}
}

/* Whatever it claims: no page is lost, and nothing outside is read. */
TEST(lies_cost_no_page)
{
	static const struct model_faults table[] = {
		{ .bad_id = 16 },
		{ .wrong_completion = 4 },
		{ .dma_unmapped = 2 },
		{ .bad_hash = 1 },
		{ .error_bits = 8,
		  .bad_length = 8,
		  .bad_count = 8,
		  .bad_hash = 2,
		  .dma_unmapped = 8,
		  .late_completions = 2 },
		{ .bad_id = 8,
		  .wrong_completion = 2,
		  .bad_length = 4,
		  .spurious_irqs = 2,
		  .lost_irqs = 2 },
	};
	static const char *const options[] = { "", ",sg=on,mtu=9000" };
	struct port_harness harness;

	for (size_t i = 0; i < 2 * sizeof(table) / sizeof(table[0]); i++) {
		make_port(&harness, options[i % 2]);
		model_set_faults(&harness.nics[0]->m, &table[i / 2]);
		run(&harness, N_FRAMES, 300);
		assert_true(port_harness_invariants_hold(&harness, 0));
		end(&harness);
	}
}

/* Random bits about a frame leave its bytes alone. */
TEST(random_hash_and_type_lose_no_frame)
{
	const struct model_faults faults = { .bad_hash = 1 };
	struct port_harness harness;
	struct traffic t;

	make_port(&harness, "");
	model_set_faults(&harness.nics[0]->m, &faults);
	t = run(&harness, N_FRAMES, 20000);
	assert_int_equal(t.n_intact, N_FRAMES);
	end(&harness);
}

/* With a reason, in time, leaving nothing behind. */
static void refuse(const struct model_faults *faults, const char *words)
{
	const uint64_t start_ms = now_ms();
	struct mr_reason why = { .text = "" };
	struct port_harness harness;

	port_harness_make(&harness, chip, NULL, NULL);
	model_set_faults(&harness.nics[0]->m, faults);
	assert_true(port_harness_open(&harness, 0, "", &why) < 0);
	assert_reason_has(&why, words);
	assert_true(now_ms() - start_ms < test_limit_ms(5000));
	end(&harness);
}

TEST(reset_that_never_ends_has_a_deadline)
{
	const struct model_faults faults = { .reset_never_ends = 1 };

	refuse(&faults, "reset");
}

TEST(dead_device_is_refused)
{
	const struct model_faults faults = { .all_ones = 1 };

	refuse(&faults, "nic0");
}

/* Unplugged under traffic: it reports that, stops, and closes at once. */
TEST(unplugged_device_is_gone)
{
	const struct model_faults faults = { .all_ones = 1 };
	struct mr_link link = { .is_up = 1 };
	struct port_harness harness;
	uint64_t start_ms;
	struct traffic t;

	make_port(&harness, "");
	t = run(&harness, 100, 5000);
	assert_int_equal(t.n_intact, 100);
	model_set_faults(&harness.nics[0]->m, &faults);
	start_ms = now_ms();
	while (!link.is_gone && now_ms() - start_ms < test_limit_ms(5000)) {
		run(&harness, 10, 5);
		assert_int_equal(mr_port_link(harness.ports[0], &link), 0);
	}
	assert_int_equal(link.is_gone, 1);
	assert_int_equal(link.is_up, 0);
	run(&harness, 2000, 200);
	assert_true(port_harness_invariants_hold(&harness, 0));
	start_ms = now_ms();
	port_harness_close(&harness, 0);
	assert_true(now_ms() - start_ms < test_limit_ms(2000));
	end(&harness);
}

/* The kernel requests the device: the port's fd wakes, and it is gone. */
TEST(requested_device_is_gone)
{
	struct mr_link link = { .is_up = 1 };
	struct port_harness harness;
	struct pollfd fd;

	make_port(&harness, "");
	fd = (struct pollfd){ .fd = mr_port_fd(harness.ports[0]),
			      .events = POLLIN };
	assert_true(fd.fd >= 0);
	mr_port_poll(harness.ports[0]);
	model_request(&harness.nics[0]->m);
	assert_int_equal(poll(&fd, 1, 5000), 1);
	mr_port_poll(harness.ports[0]);
	assert_int_equal(mr_port_link(harness.ports[0], &link), 0);
	assert_int_equal(link.is_gone, 1);
	end(&harness);
}

TEST(link_comes_and_goes)
{
	const struct model_faults cut = { .link_down = 1 }, whole = { 0 };
	struct port_harness harness;
	struct traffic t;

	make_port(&harness, "");
	for (int i = 0; i < 5; i++) {
		t = run(&harness, 200, 10000);
		assert_int_equal(t.n_intact, 200);
		assert_int_equal(t.n_collected, 200);
		model_set_faults(&harness.nics[0]->m, &cut);
		assert_true(port_harness_wait_link(&harness, 0, false));
		run(&harness, 0, 5);
		model_set_faults(&harness.nics[0]->m, &whole);
		assert_true(port_harness_wait_link(&harness, 0, true));
	}
	assert_string_equal(model_violations(&harness.nics[0]->m), "");
	end(&harness);
}

/* Half of all interrupts are lost: sleeping with a timeout still gets all. */
TEST(lost_and_spurious_interrupts_lose_no_frame)
{
	const struct model_faults faults = { .lost_irqs = 2,
					     .spurious_irqs = 3 };
	struct traffic t = { .n_sent = 0 };
	uint8_t bytes[FRAME_BYTES];
	struct port_harness harness;

	make_port(&harness, "");
	model_set_faults(&harness.nics[0]->m, &faults);
	for (uint32_t i = 0; i < 300; i++) {
		struct mr_queue *queue =
			&mr_port_rxq(harness.ports[0], 0)->queue;
		struct pollfd fd = { .fd = queue->fd, .events = POLLIN };

		make(bytes, i);
		if (mr_queue_arm(queue) == 0) {
			assert_true(model_wire_send(harness.wire, 1, bytes,
						    FRAME_BYTES));
			poll(&fd, 1, 2);
		} else {
			assert_true(model_wire_send(harness.wire, 1, bytes,
						    FRAME_BYTES));
		}
		receive(&harness, &t);
	}
	for (int i = 0; i < 1000 && t.n_received < 300; i++)
		receive(&harness, &t);
	assert_int_equal(t.n_intact, 300);
	end(&harness);
}

/* A sender that found no room sleeps until the NIC has sent. */
TEST(refused_sender_is_woken)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	struct mr_frame frame;
	struct mr_queue *queue;
	struct port_harness harness;
	struct pollfd fd;
	uint32_t n = 0;

	make_port(&harness, ",tx-ring=64");
	queue = &mr_port_txq(harness.ports[0], 0)->queue;
	/* The wire takes 512 frames, the ring 63 or fewer. */
	for (;;) {
		make(bytes, n);
		port_harness_frame(&harness, &frame, bytes, FRAME_BYTES);
		if (mr_tx_burst(mr_port_txq(harness.ports[0], 0), harness.cache,
				&frame, 1) == 0)
			break;
		n++;
		assert_true(n < 512 + 64);
	}
	mr_frame_free_bulk(harness.cache, &frame, 1);
	assert_true(n > 512);
	assert_true(tx_stats(&harness).events[MR_TX_EVENT_RING_FULL] > 0);
	assert_int_equal(mr_queue_arm(queue), 0);
	fd = (struct pollfd){ .fd = queue->fd, .events = POLLIN };
	assert_int_equal(poll(&fd, 1, 20), 0);
	while (model_wire_receive(harness.wire, 1, bytes, sizeof(bytes)) > 0)
		n--;
	assert_int_equal(n, 0);
	assert_int_equal(poll(&fd, 1, 5000), 1);
	mr_tx_burst(mr_port_txq(harness.ports[0], 0), harness.cache, NULL, 0);
	end(&harness);
}

int main(void)
{
	static const struct intel_chip *const chips[] = { &chip_82574l,
							  &chip_82576 };
	int n_failed = 0;

	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		chip = chips[i];
		n_failed += test_run(chip->name, NULL, NULL);
	}
	return n_failed;
}
