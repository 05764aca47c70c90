/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver does wrong with the virtio-net model, and what the model says
 * of it. That it does what devices do is shown by our driver, which runs the
 * same tests over it and over QEMU's device.
 */
#include "packets.h"
#include "virtio_hand.h"

static const struct vnet_config plain = { .features = HAND_PLAIN };

enum { FRESH, NEGOTIATED, ENABLED, RUNNING };

static struct hand hand_in(int state)
{
	struct hand h = hand_make(&plain);

	if (state == RUNNING) {
		hand_start(&h, HAND_PLAIN);
	} else if (state != FRESH) {
		assert_true(hand_negotiate(&h, HAND_PLAIN));
		hand_set_queue(&h, 0, 64);
		hand_write(&h, 0x1c, 2, state == ENABLED);
		model_forgive(h.m); /* enable 0 */
	}
	return h;
}

/* One access to a register, in one state of the device. */
static const struct {
	int state;
	enum { READ, WRITE, NOTIFY } what;
	uint32_t n_bytes;
	uint64_t offset;
	uint64_t value;
	const char *words;
} accesses[] = {
	{ FRESH, WRITE, 1, 0x14, 2, "status 0x2 follows 0" },
	{ FRESH, WRITE, 1, 0x14, 7, "status 0x7 follows 0" },
	{ FRESH, WRITE, 2, 0x18, 64, "wrong time" },
	{ FRESH, READ, 2, 0x00, 0, "read of 2 bytes" },
	{ FRESH, READ, 4, 0x14, 0, "read of 4 bytes" },
	{ FRESH, READ, 8, 0x20, 0, "read of 8 bytes" },
	{ FRESH, WRITE, 1, 0x18, 0, "write of 1 bytes" },
	{ FRESH, WRITE, 2, 0x12, 1, "read-only" },
	{ FRESH, READ, 4, HAND_DEVICE + 24, 0, "device configuration" },
	{ FRESH, NOTIFY, 2, HAND_NOTIFY, 0, "before DRIVER_OK" },
	{ NEGOTIATED, WRITE, 1, 0x14, 1, "clears bits" },
	{ NEGOTIATED, WRITE, 4, 0x0c, 0, "features are written" },
	/* Areas of a ring: 16, 2 and 4 bytes apart, and mapped. */
	{ NEGOTIATED, WRITE, 4, 0x20, HAND_IOVA + 8, "aligned" },
	{ NEGOTIATED, WRITE, 4, 0x28, HAND_IOVA + 1, "aligned" },
	{ NEGOTIATED, WRITE, 4, 0x30, HAND_IOVA + 2, "aligned" },
	{ NEGOTIATED, WRITE, 4, 0x20, HAND_IOVA - 0x1000, "not mapped" },
	{ NEGOTIATED, WRITE, 4, 0x28, HAND_IOVA + HAND_BYTES - 16,
	  "not mapped" },
	{ NEGOTIATED, WRITE, 4, 0x30, 0, "not mapped" },
	{ NEGOTIATED, WRITE, 2, 0x18, 65, "power of two" },
	{ NEGOTIATED, WRITE, 2, 0x18, 512, "out of range" },
	{ ENABLED, WRITE, 4, 0x20, 0, "wrong time" },
	{ ENABLED, WRITE, 2, 0x1c, 0, "enable 0" },
	{ RUNNING, WRITE, 2, 0x3a, 1, "cannot be reset" },
	/* Of another queue, of one that there is not, too wide. */
	{ RUNNING, NOTIFY, 2, HAND_NOTIFY, 1, "queue 1: doorbell" },
	{ RUNNING, NOTIFY, 2, HAND_NOTIFY, 9, "not enabled" },
	{ RUNNING, NOTIFY, 4, HAND_NOTIFY + 4, 1, "doorbell of 4 bytes" },
};

TEST(wrong_accesses_are_blamed)
{
	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		struct hand h = hand_in(accesses[i].state);
		const uint32_t bar =
			accesses[i].what == NOTIFY ? HAND_NOTIFY_BAR : HAND_BAR;

		assert_string_equal(model_violations(h.m), "");
		if (accesses[i].what == READ)
			model_read(h.m, bar, accesses[i].offset,
				   accesses[i].n_bytes);
		else
			model_write(h.m, bar, accesses[i].offset,
				    accesses[i].n_bytes, accesses[i].value);
		/* What a ring is like is looked at when it is enabled. */
		if (accesses[i].state == NEGOTIATED &&
		    accesses[i].offset > 0x14) {
			hand_write(&h, 0x1c, 2, 1);
			assert_int_equal(hand_read(&h, 0x1c, 2), 0);
		}
		hand_blamed(&h, accesses[i].words);
		hand_end(&h);
	}
}

TEST(features_without_what_they_need_are_refused)
{
	static const struct {
		uint64_t offered, taken;
		const char *words;
	} cases[] = {
		{ UINT64_MAX, VNET_BIT(VNET_CTRL_RX), "need others" },
		{ UINT64_MAX, VNET_BIT(VNET_MQ), "need others" },
		{ UINT64_MAX, VNET_BIT(VNET_RSS), "need others" },
		{ UINT64_MAX, VNET_BIT(VNET_NOTF_COAL), "need others" },
		{ UINT64_MAX, VNET_BIT(VNET_HOST_TSO4), "need others" },
		{ UINT64_MAX, VNET_BIT(VNET_HOST_USO), "need others" },
		{ UINT64_MAX, VNET_BIT(VNET_GUEST_TSO6), "need others" },
		{ HAND_PLAIN, VNET_BIT(VNET_CSUM), "not offered" },
	};
	struct hand h;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vnet_config config = {
			.features = cases[i].offered & vnet_all_features(),
		};

		h = hand_make(&config);
		assert_false(hand_negotiate(&h, HAND_PLAIN | cases[i].taken));
		hand_blamed(&h, cases[i].words);
		hand_end(&h);
	}
	h = hand_make(&plain);
	assert_false(hand_negotiate(&h, VNET_BIT(VNET_VERSION_1)));
	hand_blamed(&h, "ACCESS_PLATFORM");
	assert_false(hand_negotiate(&h, VNET_BIT(VNET_ACCESS_PLATFORM)));
	hand_blamed(&h, "VERSION_1");
	hand_end(&h);
}

TEST(queues_have_their_time)
{
	struct hand h = hand_in(ENABLED);

	hand_set_queue(&h, 1, 64);
	hand_status(&h, 15);
	hand_post(&h, HAND_RX, hand_buffer(&h, 0), 2048, DESC_WRITE);
	hand_kick(&h, HAND_RX);
	hand_blamed(&h, "before bus mastering");
	hand_master(&h, true);
	hand_write(&h, 0x16, 2, 1);
	hand_write(&h, 0x1c, 2, 1);
	hand_blamed(&h, "after DRIVER_OK");
	hand_end(&h);
}

TEST(wrong_notification_data_is_blamed)
{
	for (size_t k = 0; k < HAND_N_LAYOUTS; k++) {
		struct hand h = hand_run(hand_layouts[k] |
					 VNET_BIT(VNET_NOTIFICATION_DATA));
		const uint16_t doorbell = h.queues[HAND_TX].doorbell;
		const uint32_t good = h.is_packed ? 0x8001 : 1;

		for (int i = 0; i < 2; i++) {
			hand_post(&h, HAND_TX, hand_buffer(&h, 0), 72, 0);
			model_write(h.m, HAND_NOTIFY_BAR, doorbell, 4,
				    good << 16 | HAND_TX);
			if (i == 0)
				assert_string_equal(model_violations(h.m), "");
		}
		hand_blamed(&h, "NOTIFICATION_DATA");
		model_write(h.m, HAND_NOTIFY_BAR, doorbell, 2, HAND_TX);
		hand_blamed(&h, "doorbell of 2 bytes");
		hand_end(&h);
	}
}

/* Each header that no driver may send, and what is said of it. */
TEST(wrong_headers_are_blamed)
{
	static const struct {
		uint64_t features;
		uint32_t at;
		uint16_t value;
		const char *words;
	} cases[] = {
		{ 0, 0, 0x0101, "NEEDS_CSUM without" },
		{ 1, 0, 0x0102, "only a device" },
		{ 1, 0, 0x0101, "without its feature" },
		{ 1, 0, 0x8001, "GSO_ECN" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0100, "without NEEDS" },
		{ 1 | VNET_BIT(VNET_HOST_TSO6), 0, 0x0401, "not that of" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0201, "unknown" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 2, 53, "hdr_len" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 4, 0, "gso_size" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 6, 36, "not where" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 8, 4000, "beyond" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 10, 1, "num_buffers" },
		/* Right, over a sum that is not the pseudo-header's. */
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0101, "pseudo-header" },
	};
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	const struct packet_kind kind = { .n_payload = 1000 };
	uint8_t bytes[2048];

	for (size_t i = 0; i < N; i++) {
		struct hand h = hand_run(cases[i].features);
		/* The sum of TCP over IPv4; segments of 500 bytes. */
		uint8_t header[12] = { 1, VNET_GSO_TCPV4, 54, 0, 0xf4, 1, 34, 0,
				       16 };
		const uint32_t n = packet_of(bytes, &kind, true);

		bytes[34 + 16] ^= i == N - 1;
		hand_put16(header + cases[i].at, cases[i].value);
		hand_send(&h, 0, header, bytes, n);
		hand_kick(&h, HAND_TX);
		hand_blamed(&h, cases[i].words);
		assert_int_equal(model_wire_n(h.wire, 1), 0);
		hand_end(&h);
	}
}

TEST(commands_that_no_device_takes_are_blamed)
{
	static const struct {
		uint8_t class, number;
		uint32_t n_bytes;
	} cases[] = { { 0, 0, 2 },  { 0, 6, 1 },  { 1, 0, 3 },  { 1, 1, 5 },
		      { 1, 2, 6 },  { 2, 0, 1 },  { 2, 2, 2 },  { 3, 0, 1 },
		      { 4, 0, 2 },  { 4, 1, 10 }, { 4, 1, 12 }, { 4, 2, 12 },
		      { 4, 3, 1 },  { 5, 0, 7 },  { 5, 1, 8 },  { 6, 0, 7 },
		      { 6, 2, 11 }, { 6, 4, 8 },  { 9, 0, 1 } };
	const uint8_t bytes[64] = { 0, 0, 0, 0, 1 };
	const struct vnet_config config = { .features = 0 };
	struct hand h = hand_make(&config);

	hand_start(&h, HAND_ALL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(hand_command(&h, cases[i].class,
					      cases[i].number, bytes,
					      cases[i].n_bytes),
				 1);
		hand_blamed(&h, "control");
	}
	hand_end(&h);
}

/* One thing that a driver does wrong, in a ring; and what is said of it. */
static void post_twice(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_post(h, HAND_RX, hand_buffer(h, 0) + 100, 2048, DESC_WRITE);
	hand_kick(h, HAND_RX);
}

static void post_unmapped(struct hand *h)
{
	hand_post(h, HAND_TX, h->memory + HAND_BYTES - 10, 72, 0);
	hand_kick(h, HAND_TX);
}

static void post_nothing(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 0, 0);
	hand_kick(h, HAND_TX);
}

static void post_readable_behind_writable(struct hand *h)
{
	hand_desc(h, HAND_CTRL, hand_buffer(h, 0), 1, DESC_WRITE | DESC_NEXT);
	hand_desc(h, HAND_CTRL, hand_buffer(h, 1), 2, 0);
	if (!h->is_packed)
		hand_publish(h, HAND_CTRL, 0);
	hand_kick(h, HAND_CTRL);
}

static void post_small_rx(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 1525, DESC_WRITE);
	hand_kick(h, HAND_RX);
}

static void post_readable_rx(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, 0);
	hand_kick(h, HAND_RX);
}

static void post_writable_tx(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 72, DESC_WRITE);
	hand_kick(h, HAND_TX);
}

static void post_indirect(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 32, DESC_INDIRECT);
	hand_kick(h, HAND_TX);
}

static void post_num_buffers(struct hand *h)
{
	const uint8_t header[12] = { [10] = 1 };
	const uint8_t bytes[60] = { 2 };

	hand_send(h, 0, header, bytes, 60);
	hand_kick(h, HAND_TX);
}

static void post_too_short(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 25, 0);
	hand_kick(h, HAND_TX);
}

static void post_too_long(struct hand *h)
{
	hand_post(h, HAND_TX, hand_buffer(h, 0), 12 + 1519, 0);
	hand_kick(h, HAND_TX);
}

struct mistake {
	void (*make)(struct hand *h);
	const char *words;
};

static void blame(const struct mistake *mistakes, size_t n, uint64_t features)
{
	for (size_t i = 0; i < n; i++) {
		struct hand h = hand_run(features | VNET_BIT(VNET_CTRL_VQ));

		mistakes[i].make(&h);
		hand_blamed(&h, mistakes[i].words);
		hand_end(&h);
	}
}

TEST(mistakes_are_blamed_in_each_layout)
{
	static const struct mistake mistakes[] = {
		{ post_twice, "posted twice" },
		{ post_unmapped, "not mapped" },
		{ post_nothing, "no bytes" },
		{ post_readable_behind_writable, "readable behind writable" },
		{ post_small_rx, "too small" },
		{ post_readable_rx, "a readable descriptor" },
		{ post_writable_tx, "a buffer to be written" },
		{ post_indirect, "INDIRECT was not negotiated" },
		{ post_num_buffers, "num_buffers" },
		{ post_too_short, "too short" },
		{ post_too_long, "MTU" },
	};

	for (size_t k = 0; k < HAND_N_LAYOUTS; k++)
		blame(mistakes, sizeof(mistakes) / sizeof(mistakes[0]),
		      hand_layouts[k]);
}

static void split_idx_too_far(struct hand *h)
{
	hand_put16(h->queues[HAND_TX].driver + 2, HAND_QUEUE_SIZE + 1);
	hand_kick(h, HAND_TX);
}

static void split_no_descriptor(struct hand *h)
{
	hand_publish(h, HAND_TX, HAND_QUEUE_SIZE);
	hand_kick(h, HAND_TX);
}

static void split_loop(struct hand *h)
{
	hand_desc(h, HAND_TX, hand_buffer(h, 0), 100, DESC_NEXT);
	hand_put16(h->queues[HAND_TX].desc + 14, 0);
	hand_publish(h, HAND_TX, 0);
	hand_kick(h, HAND_TX);
}

/* The wire is full: descriptor 0 is still with the device. */
static void split_not_used_yet(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_publish(h, HAND_RX, 0);
	hand_kick(h, HAND_RX);
}

static void split_next_outside(struct hand *h)
{
	hand_desc(h, HAND_TX, hand_buffer(h, 0), 100, DESC_NEXT);
	hand_put16(h->queues[HAND_TX].desc + 14, 1000);
	hand_publish(h, HAND_TX, 0);
	hand_kick(h, HAND_TX);
}

TEST(mistakes_in_split_rings_are_blamed)
{
	static const struct mistake mistakes[] = {
		{ split_idx_too_far, "more than the ring ahead" },
		{ split_no_descriptor, "names no descriptor" },
		{ split_loop, "not used yet" },
		{ split_not_used_yet, "not used yet" },
		{ split_next_outside, "no such descriptor" },
	};

	blame(mistakes, sizeof(mistakes) / sizeof(mistakes[0]), 0);
}

static void packed_first_too_early(struct hand *h)
{
	hand_desc(h, HAND_TX, hand_buffer(h, 0), 12, DESC_NEXT);
	hand_kick(h, HAND_TX);
}

static void packed_id_not_used_yet(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_post(h, HAND_RX, hand_buffer(h, 1), 2048, DESC_WRITE);
	hand_put16(h->queues[HAND_RX].desc + 16 + 12, 0);
	hand_kick(h, HAND_RX);
}

static void packed_id_beyond(struct hand *h)
{
	hand_post(h, HAND_RX, hand_buffer(h, 0), 2048, DESC_WRITE);
	hand_put16(h->queues[HAND_RX].desc + 12, HAND_QUEUE_SIZE);
	hand_kick(h, HAND_RX);
}

TEST(mistakes_in_packed_rings_are_blamed)
{
	static const struct mistake mistakes[] = {
		{ packed_first_too_early, "before the others" },
		{ packed_id_not_used_yet, "not used yet" },
		{ packed_id_beyond, "beyond the ring" },
	};

	blame(mistakes, sizeof(mistakes) / sizeof(mistakes[0]),
	      VNET_BIT(VNET_RING_PACKED));
}
