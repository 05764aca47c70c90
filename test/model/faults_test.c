/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our drivers on a device that is broken, hostile, or gone: each loss is
 * counted by name, no page is lost, and no wait is endless.
 */
#include <poll.h>

#include "devices.h"

enum { ROUNDS = 60, FRAME_BYTES = 200 };

/* Frame number i: to any address, with bytes that depend on i. */
static void make_frame(uint8_t *bytes, uint32_t i)
{
	memset(bytes, 0xff, 6);
	for (uint32_t k = 6; k < FRAME_BYTES; k++)
		bytes[k] = (uint8_t)(i * 7 + k);
	bytes[12] = 0x88;
	bytes[13] = 0xb5;
	memcpy(bytes + 14, &i, 4);
}

static bool is_intact(const uint8_t *bytes, uint32_t n_bytes)
{
	uint8_t want[FRAME_BYTES];
	uint32_t i;

	if (n_bytes != FRAME_BYTES)
		return false;
	memcpy(&i, bytes + 14, 4);
	make_frame(want, i);
	return memcmp(bytes, want, FRAME_BYTES) == 0;
}

/* Traffic through a port, both ways. */
struct traffic {
	uint32_t n_injected, n_received, n_intact, n_sent, n_collected;
};

static void inject(struct harness *harness, struct traffic *t, uint32_t n)
{
	uint8_t bytes[FRAME_BYTES];

	for (uint32_t i = 0; i < n; i++) {
		make_frame(bytes, t->n_injected);
		t->n_injected +=
			model_wire_send(harness->wire, 1, bytes, FRAME_BYTES);
	}
}

static void send_frames(struct harness *harness, struct traffic *t, uint32_t n)
{
	struct mr_frame frames[HARNESS_BURST];
	uint8_t bytes[FRAME_BYTES];
	uint32_t n_tx;

	for (uint32_t i = 0; i < n; i++) {
		make_frame(bytes, t->n_sent + i);
		harness_frame(harness, bytes, FRAME_BYTES, &frames[i]);
	}
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, n);
	mr_frame_free_bulk(harness->cache, frames + n_tx, n - n_tx);
	t->n_sent += n_tx;
}

static void receive_frames(struct harness *harness, struct traffic *t)
{
	static uint8_t bytes[HARNESS_BURST * 4096];
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	uint32_t n;

	while ((n = mr_rx_burst_meta(harness->rxq, harness->cache, frames, meta,
				     HARNESS_BURST)) > 0) {
		assert_int_equal(mr_frame_n_whole(frames, n), n);
		for (uint32_t i = 0; i < n;
		     i += mr_frame_n_entries(&frames[i])) {
			t->n_received++;
			t->n_intact += is_intact(
				bytes,
				harness_copy(harness, &frames[i], bytes));
		}
		mr_frame_free_bulk(harness->cache, frames, n);
	}
}

static void collect(struct harness *harness, struct traffic *t)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n;

	while ((n = model_wire_receive(harness->wire, 1, bytes,
				       sizeof(bytes))) > 0)
		t->n_collected += is_intact(bytes, n);
}

/* Frames each way, and what an application does besides. */
static struct traffic run_traffic(struct harness *harness, uint32_t n_rounds)
{
	struct traffic t = { .n_sent = 0 };

	for (uint32_t i = 0; i < n_rounds; i++) {
		inject(harness, &t, 1 + i % 20);
		send_frames(harness, &t, 1 + i % HARNESS_BURST);
		receive_frames(harness, &t);
		collect(harness, &t);
		mr_port_poll(harness->port);
		harness_check_invariants(harness);
	}
	/* What is late. */
	for (uint32_t i = 0; i < 20; i++) {
		model_step(harness->m);
		mr_tx_burst(harness->txq, harness->cache, NULL, 0);
		receive_frames(harness, &t);
		collect(harness, &t);
	}
	return t;
}

static void assert_passes(struct harness *harness)
{
	const struct traffic t = run_traffic(harness, ROUNDS);
	const struct mr_tx_stats tx = harness_tx_stats(harness);

	assert_true(t.n_injected > 500 && t.n_sent > 500);
	assert_int_equal(t.n_intact, t.n_injected);
	assert_int_equal(t.n_collected, t.n_sent);
	assert_int_equal(tx.pending, 0);
}

DEVICE_TEST(ON_ALL, sound_and_slow_devices_lose_nothing)
{
	static const struct model_faults table[] = {
		{ .late_completions = 0 },
		{ .late_completions = 5 },
		{ .bad_hash = 1 },
	};
	struct harness harness;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		device_make(&harness, NULL);
		device_open(&harness, "");
		model_set_faults(harness.m, &table[i]);
		assert_passes(&harness);
		assert_int_equal(
			invariants_sum(harness_rx_stats(&harness).drops), 0);
		assert_int_equal(
			invariants_sum(harness_tx_stats(&harness).drops), 0);
		device_end(&harness);
	}
}

/* Short frames, with and without metadata; and long ones. */
enum { SHORT, WITH_META, LONG, N_FORMS };

/* A fault while frames move. */
static const struct fault_case {
	const char *name;
	struct model_faults faults;
	struct vnet_faults more;
	uint32_t on;    /* 0: all */
	uint32_t drops; /* on these it is a named drop */
	uint32_t ruins; /* on these, frames may not pass later either */
	uint32_t forms; /* bits: which of the options; 0: all */
} fault_cases[] = {
	{ .name = "error bits 4",
	  .faults.error_bits = 4,
	  .on = ON_INTEL,
	  .drops = ON_INTEL },
	{ .name = "bad length 4", .faults.bad_length = 4, .drops = ON_ALL },
	{ .name = "bad length 7", .faults.bad_length = 7, .drops = ON_ALL },
	{ .name = "bad length 1",
	  .faults.bad_length = 1,
	  .on = ON_VIRTIO,
	  .drops = ON_VIRTIO },
	{ .name = "no end 4",
	  .faults.bad_count = 4,
	  .on = ON_INTEL,
	  .drops = ON_INTEL,
	  .forms = 1 << SHORT },
	{ .name = "bad count 5",
	  .faults.bad_count = 5,
	  .on = ON_VIRTIO,
	  .drops = ON_VIRTIO,
	  .forms = 1 << LONG },
	{ .name = "bad count 1",
	  .faults.bad_count = 1,
	  .on = ON_VIRTIO,
	  .drops = ON_VIRTIO,
	  .forms = 1 << LONG },
	{ .name = "bad id 16", .faults.bad_id = 16, .ruins = ON_INTEL },
	{ .name = "bad id 7",
	  .faults.bad_id = 7,
	  .on = ON_VIRTIO,
	  .drops = ON_VIRTIO },
	{ .name = "bad id 1", .faults.bad_id = 1, .on = ON_VIRTIO },
	/* In order, each id ends a batch. */
	{ .name = "wrong completion 4",
	  .faults.wrong_completion = 4,
	  .ruins = ON_INTEL | ON_IN_ORDER },
	{ .name = "wrong completion 7",
	  .faults.wrong_completion = 7,
	  .on = ON_VIRTIO,
	  .ruins = ON_IN_ORDER },
	{ .name = "doubled 7",
	  .more.doubled = 7,
	  .on = ON_VIRTIO,
	  .ruins = ON_IN_ORDER },
	/* Packed rings have no index. */
	{ .name = "idx jumps 7",
	  .more.idx_jumps = 7,
	  .on = ON_SPLIT | ON_SPLIT_IN_ORDER },
	{ .name = "reordered 3",
	  .more.reordered = 3,
	  .on = ON_SPLIT | ON_PACKED },
	{ .name = "bad header 3", .more.bad_header = 3, .on = ON_VIRTIO },
	{ .name = "bad hash 1", .faults.bad_hash = 1 },
	{ .name = "dma unmapped 2", .faults.dma_unmapped = 2 },
	{ .name = "many",
	  .faults = { .error_bits = 8,
		      .bad_length = 8,
		      .bad_count = 8,
		      .bad_hash = 2,
		      .dma_unmapped = 8,
		      .late_completions = 2 },
	  .drops = ON_INTEL,
	  .ruins = ON_ALL },
	{ .name = "many, of ids",
	  .faults = { .bad_id = 8,
		      .wrong_completion = 2,
		      .bad_length = 4,
		      .spurious_irqs = 2,
		      .lost_irqs = 2 },
	  .ruins = ON_ALL },
};

static void try_fault(const struct fault_case *c, const char *options)
{
	const struct vnet_config jumbo = { .n_pairs = 2, .mtu_bytes = 9000 };
	struct harness harness;
	struct mr_rx_stats rx;
	struct traffic t;

	device_make(&harness, &jumbo);
	device_open(&harness, options);
	device_set_faults(&harness, &c->faults, &c->more);
	run_traffic(&harness, ROUNDS);
	rx = harness_rx_stats(&harness);
	if (c->drops & device->bit &&
	    rx.drops[MR_RX_DROP_INVALID] + rx.drops[MR_RX_DROP_TOO_LONG] == 0)
		fail_msg("%s, %s: no drop", c->name, options);
	if (harness.v != NULL)
		assert_true(vnet_stats(harness.v).n_faults > 0);
	device_heal(&harness);
	run_traffic(&harness, 5);
	t = run_traffic(&harness, ROUNDS);
	/* A virtio driver may be skipping the rest of a frame that was none. */
	if (!(c->ruins & device->bit) &&
	    t.n_intact < (device->chip != NULL ? t.n_injected : 1))
		fail_msg("%s, %s: frames are lost later", c->name, options);
	/* What a device wrote into a ring, the driver repeats. */
	model_forgive(harness.m);
	device_end(&harness);
}

DEVICE_TEST(ON_ALL, faults_are_counted_and_lose_no_page)
{
	static const char *const options[2][N_FORMS] = {
		{ "", "sg=on", "sg=on,mtu=9000" },
		{ "mtu=1500", "mtu=1500,hash=on,csum=on", "mtu=9000" },
	};

	for (size_t i = 0; i < sizeof(fault_cases) / sizeof(fault_cases[0]);
	     i++) {
		const struct fault_case *c = &fault_cases[i];

		if (c->on != 0 && !(c->on & device->bit))
			continue;
		for (int form = 0; form < N_FORMS; form++)
			if (c->forms == 0 || c->forms & 1u << form)
				try_fault(c,
					  options[device->chip == NULL][form]);
	}
}

/* Restarted without its counters, which it does not report, it fails. */
static const struct vnet_faults no_reset = { .reset_reads = UINT32_MAX };
static const struct vnet_faults no_features = { .refuses_features = true };
static const struct vnet_faults no_queues = { .queues_missing = true };

DEVICE_TEST(ON_82574 | ON_82576 | ON_PACKED_IN_ORDER,
	    device_that_does_not_come_up_is_refused)
{
	static const struct {
		struct model_faults faults;
		struct vnet_faults more; /* if any: only virtio */
		bool is_virtio;
		const char *options, *words;
	} cases[] = {
		{ { .reset_never_ends = 1 }, { 0 }, false, "", "reset" },
		{ { .all_ones = 1 }, { 0 }, false, "", "ffff:ffff" },
		{ { 0 }, { .refuses_features = true }, true, "", "refuses" },
		{ { 0 }, { .queues_missing = true }, true, "", "queue" },
		{ { 0 }, { .refuses_vectors = true }, true, "", "interrupt" },
		{ { 0 }, { .ctrl_refuses = true }, true, "queues=2", "queues" },
		{ { 0 }, { .ctrl_hangs = true }, true, "queues=2", "queues" },
		{ { 0 }, { .reset_reads = UINT32_MAX }, true, "", "reset" },
		{ { 0 },
		  { .query_hangs = true, .behind_query = &no_reset },
		  true,
		  "",
		  "reset" },
		{ { 0 },
		  { .query_hangs = true, .behind_query = &no_features },
		  true,
		  "",
		  "refuses" },
		{ { 0 },
		  { .query_hangs = true, .behind_query = &no_queues },
		  true,
		  "",
		  "queue" },
	};
	struct harness harness;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].is_virtio && device->chip != NULL)
			continue;
		device_make(&harness, NULL);
		device_set_faults(&harness, &cases[i].faults, &cases[i].more);
		device_refuses(&harness, cases[i].options, cases[i].words);
		/* And as soon as it is well, it works. */
		device_heal(&harness);
		device_open(&harness, cases[i].options);
		harness_inject(&harness, 5);
		assert_int_equal(harness_drain(&harness), 5);
		device_end(&harness);
	}
}

/* Unplugged, requested by the kernel, or an error on the bus (AER). */
DEVICE_TEST(ON_ALL, device_removed_under_traffic_is_reported_gone)
{
	const struct model_faults gone = { .all_ones = 1 };
	enum { UNPLUGGED, REQUESTED, BUS_ERROR, N };
	struct mr_link link = { 0 };
	struct harness harness;

	for (int how = 0; how < N; how++) {
		struct pollfd fd = { .events = POLLIN };
		uint64_t start_ms;

		device_make(&harness, NULL);
		device_open(&harness, "");
		run_traffic(&harness, 10);
		fd.fd = mr_port_fd(harness.port);
		start_ms = harness_now_ms();
		if (how == UNPLUGGED)
			model_set_faults(harness.m, &gone);
		else if (how == REQUESTED)
			model_request(harness.m);
		else
			model_pci_error(harness.m);
		if (how != UNPLUGGED)
			assert_int_equal(poll(&fd, 1, 5000), 1);
		assert_int_equal(mr_port_poll(harness.port), 1);
		assert_int_equal(mr_port_link(harness.port, &link), 0);
		assert_true(link.is_gone && !link.is_up);
		harness_send(&harness, 5);
		assert_int_equal(
			harness_tx_stats(&harness).drops[MR_TX_DROP_PORT_GONE],
			5);
		run_traffic(&harness, 20);
		mr_port_close(harness.port);
		harness.port = NULL;
		assert_true(harness_now_ms() - start_ms <
			    test_limit_ms(DEVICE_OPEN_MS));
		/* Opened again, it works: it is another one, or was reset. */
		device_heal(&harness);
		model_forgive(harness.m); /* writes had no effect */
		device_open(&harness, "");
		run_traffic(&harness, 10);
		assert_true(harness_rx_stats(&harness).delivered > 0);
		device_end(&harness);
	}
}

DEVICE_TEST(ON_ALL, link_changes_are_reported)
{
	struct harness harness;

	device_make(&harness, NULL);
	device_open(&harness, "");
	for (int i = 0; i < 5; i++) {
		assert_passes(&harness);
		device_set_link(&harness, false);
		mr_port_poll(harness.port);
		assert_false(harness_is_up(&harness));
		device_set_link(&harness, true);
		model_step(harness.m);
		mr_port_poll(harness.port);
		assert_true(harness_is_up(&harness));
	}
	device_end(&harness);
}

DEVICE_TEST(ON_ALL, lost_and_spurious_interrupts_lose_no_frame)
{
	const struct model_faults lost = { .lost_irqs = 1 };
	const struct model_faults spurious = { .spurious_irqs = 1 };
	struct harness harness;

	device_make(&harness, NULL);
	device_open(&harness, "");
	assert_int_equal(mr_queue_arm(&harness.rxq->queue), 0);
	model_set_faults(harness.m, &lost);
	harness_inject(&harness, 3);
	/* No wake-up; but arming again reports the work. */
	assert_int_equal(mr_queue_arm(&harness.rxq->queue), 1);
	assert_int_equal(harness_drain(&harness), 3);

	model_set_faults(harness.m, &spurious);
	for (int i = 0; i < 100; i++) {
		mr_queue_arm(&harness.rxq->queue);
		model_step(harness.m);
		mr_port_poll(harness.port);
		assert_int_equal(harness_drain(&harness), 0);
	}
	harness_inject(&harness, 3);
	assert_int_equal(harness_drain(&harness), 3);
	device_end(&harness);
}

/* DEVICE_NEEDS_RESET: all of it must be restarted. */
DEVICE_TEST(ON_VIRTIO, device_that_needs_a_reset_loses_no_page)
{
	const struct vnet_faults faults = { .needs_reset = 40 };
	struct harness harness;
	uint64_t n_before;

	device_make(&harness, NULL);
	vnet_set_faults(harness.v, &faults);
	device_open(&harness, "");
	run_traffic(&harness, 20);
	mr_port_poll(harness.port);
	n_before = harness_rx_stats(&harness).delivered;
	run_traffic(&harness, 20);
	assert_true(harness_rx_stats(&harness).delivered > n_before ||
		    !harness_is_up(&harness));
	device_end(&harness);
}

int main(void)
{
	return devices_run(ON_82574 | ON_82576 | ON_VIRTIO);
}
