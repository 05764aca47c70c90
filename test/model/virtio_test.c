/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of virtio-net as a PCI function: what it offers, in which order a
 * driver may use it, and what it blames. virtio.c, virtio_pci.c and
 * virtio_common.c.
 */
#include "virtio_hand.h"

static const struct vnet_config all = { .features = 0 };
static const struct vnet_config plain = { .features = HAND_PLAIN };

TEST(device_comes_up_in_order)
{
	struct hand h = hand_make(&all);

	hand_start(&h, HAND_ALL);
	assert_int_equal(vnet_state(h.v).status, 15);
	hand_status(&h, 0);
	assert_int_equal(vnet_state(h.v).status, 0);
	hand_end(&h);
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

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vnet_config config = {
			.features = cases[i].offered & vnet_all_features(),
		};
		struct hand h = hand_make(&config);

		assert_false(hand_negotiate(&h, HAND_PLAIN | cases[i].taken));
		hand_blamed(&h, cases[i].words);
		hand_end(&h);
	}
}

TEST(access_platform_must_be_taken)
{
	struct hand h = hand_make(&plain);

	assert_false(hand_negotiate(&h, VNET_BIT(VNET_VERSION_1)));
	hand_blamed(&h, "ACCESS_PLATFORM");
	assert_false(hand_negotiate(&h, VNET_BIT(VNET_ACCESS_PLATFORM)));
	hand_blamed(&h, "VERSION_1");
	hand_end(&h);
}

TEST(steps_out_of_order_are_blamed)
{
	struct hand h = hand_make(&plain);

	hand_status(&h, 2);
	hand_blamed(&h, "status 0x2 follows 0");
	hand_status(&h, 0);
	hand_status(&h, 3);
	hand_status(&h, 7);
	hand_blamed(&h, "status 0x7 follows 0x3");
	hand_status(&h, 1);
	hand_blamed(&h, "clears bits");
	assert_true(hand_negotiate(&h, HAND_PLAIN));
	hand_write(&h, 0x0c, 4, 0);
	hand_blamed(&h, "features are written");
	hand_end(&h);
}

TEST(registers_have_one_width)
{
	struct hand h = hand_make(&plain);

	hand_read(&h, 0x00, 2);
	hand_blamed(&h, "read of 2 bytes");
	hand_read(&h, 0x14, 4);
	hand_blamed(&h, "read of 4 bytes");
	hand_write(&h, 0x18, 1, 0);
	hand_blamed(&h, "write of 1 bytes");
	model_read(h.m, HAND_BAR, 0x20, 8);
	hand_blamed(&h, "read of 8 bytes");
	hand_write(&h, 0x12, 2, 1);
	hand_blamed(&h, "read-only");
	hand_read(&h, HAND_DEVICE + 24, 4);
	hand_blamed(&h, "device configuration");
	hand_end(&h);
}

TEST(rings_are_looked_at_when_they_are_enabled)
{
	static const struct {
		uint64_t offset, value;
		uint32_t n_bytes;
		const char *words;
	} cases[] = {
		{ 0x20, HAND_IOVA + 8, 4, "aligned" },
		{ 0x28, HAND_IOVA + 1, 4, "aligned" },
		{ 0x30, HAND_IOVA + 2, 4, "aligned" },
		{ 0x20, HAND_IOVA - 0x1000, 4, "not mapped" },
		{ 0x28, HAND_IOVA + HAND_BYTES - 16, 4, "not mapped" },
		{ 0x30, 0, 4, "not mapped" },
		{ 0x18, 65, 2, "power of two" },
		{ 0x18, 512, 2, "out of range" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hand h = hand_make(&plain);

		assert_true(hand_negotiate(&h, HAND_PLAIN));
		hand_set_queue(&h, 0, 64);
		hand_write(&h, cases[i].offset, cases[i].n_bytes,
			   (uint32_t)cases[i].value);
		hand_write(&h, 0x1c, 2, 1);
		hand_blamed(&h, cases[i].words);
		assert_int_equal(hand_read(&h, 0x1c, 2), 0);
		hand_end(&h);
	}
}

TEST(queue_registers_have_their_time)
{
	struct hand h = hand_make(&plain);

	hand_write(&h, 0x16, 2, 0);
	hand_write(&h, 0x18, 2, 64);
	hand_blamed(&h, "wrong time");
	assert_true(hand_negotiate(&h, HAND_PLAIN));
	hand_set_queue(&h, 0, 64);
	hand_write(&h, 0x1c, 2, 1);
	hand_write(&h, 0x20, 4, 0);
	hand_blamed(&h, "wrong time");
	hand_write(&h, 0x1c, 2, 0);
	hand_blamed(&h, "enable 0");
	hand_set_queue(&h, 1, 64);
	hand_master(&h, true);
	hand_status(&h, 15);
	hand_write(&h, 0x1c, 2, 1);
	hand_blamed(&h, "after DRIVER_OK");
	hand_write(&h, 0x16, 2, 3);
	assert_int_equal(hand_read(&h, 0x18, 2), 0);
	hand_end(&h);
}

TEST(doorbells_are_looked_at)
{
	struct hand h = hand_make(&plain);

	model_write(h.m, HAND_NOTIFY_BAR, HAND_NOTIFY, 2, 0);
	hand_blamed(&h, "before DRIVER_OK");
	hand_start(&h, HAND_PLAIN);
	hand_kick(&h, HAND_TX);
	assert_string_equal(model_violations(h.m), "");
	model_write(h.m, HAND_NOTIFY_BAR, h.queues[0].doorbell, 2, HAND_TX);
	hand_blamed(&h, "queue 1: doorbell");
	model_write(h.m, HAND_NOTIFY_BAR, h.queues[1].doorbell, 4, HAND_TX);
	hand_blamed(&h, "doorbell of 4 bytes");
	model_write(h.m, HAND_NOTIFY_BAR, HAND_NOTIFY, 2, 9);
	hand_blamed(&h, "not enabled");
	assert_int_equal(vnet_stats(h.v).n_doorbells, 3);
	hand_end(&h);
}

TEST(doorbells_name_their_queue_as_they_are_told)
{
	const uint64_t features = HAND_PLAIN | VNET_BIT(VNET_NOTIF_CONFIG_DATA);
	const struct vnet_config config = { .features = features };
	struct hand h = hand_make(&config);
	uint32_t data;

	hand_start(&h, features);
	hand_write(&h, 0x16, 2, HAND_TX);
	data = hand_read(&h, 0x38, 2);
	assert_int_not_equal(data, HAND_TX);
	model_write(h.m, HAND_NOTIFY_BAR, h.queues[HAND_TX].doorbell, 2, data);
	assert_string_equal(model_violations(h.m), "");
	hand_kick(&h, HAND_TX);
	hand_blamed(&h, "not enabled");
	hand_end(&h);
}

TEST(announcement_is_asked_for)
{
	struct hand h = hand_make(&all);

	hand_start(&h, HAND_ALL);
	vnet_announce(h.v);
	assert_int_equal(hand_irqs(&h, 0), 1);
	assert_int_equal(hand_read(&h, HAND_DEVICE + 6, 2), 3);
	assert_true(vnet_state(h.v).wants_announcement);
	hand_end(&h);
}

TEST(nothing_moves_without_bus_mastering)
{
	struct hand h = hand_make(&plain);

	assert_true(hand_negotiate(&h, HAND_PLAIN));
	for (uint16_t i = 0; i < 2; i++) {
		hand_set_queue(&h, i, 64);
		hand_write(&h, 0x1c, 2, 1);
	}
	hand_status(&h, 15);
	hand_post(&h, HAND_TX, hand_buffer(&h, 0), 72, 0);
	hand_kick(&h, HAND_TX);
	hand_blamed(&h, "before bus mastering");
	assert_int_equal(vnet_stats(h.v).n_sent, 0);
	hand_master(&h, true);
	hand_kick(&h, HAND_TX);
	assert_int_equal(vnet_stats(h.v).n_sent, 1);
	hand_end(&h);
}

TEST(reset_takes_its_time_or_never_ends)
{
	const struct vnet_faults slow = { .reset_reads = 3 };
	const struct model_faults never = { .reset_never_ends = 1 };
	struct hand h = hand_make(&plain);

	hand_start(&h, HAND_PLAIN);
	vnet_set_faults(h.v, &slow);
	hand_status(&h, 0);
	for (int i = 0; i < 3; i++)
		assert_int_not_equal(hand_read(&h, 0x14, 1), 0);
	assert_int_equal(hand_read(&h, 0x14, 1), 0);
	model_set_faults(h.m, &never);
	hand_status(&h, 0);
	for (int i = 0; i < 1000; i++)
		assert_int_not_equal(hand_read(&h, 0x14, 1), 0);
	hand_end(&h);
}

TEST(queue_is_reset_alone)
{
	const uint64_t features = HAND_PLAIN | VNET_BIT(VNET_RING_RESET);
	const struct vnet_config config = { .features = features };
	const struct vnet_faults hangs = { .queue_reset_hangs = true };
	struct hand h = hand_make(&config);

	hand_start(&h, features);
	hand_write(&h, 0x16, 2, 1);
	hand_write(&h, 0x3a, 2, 1);
	assert_int_equal(hand_read(&h, 0x3a, 2), 0);
	assert_int_equal(hand_read(&h, 0x1c, 2), 0);
	hand_set_queue(&h, 1, 32);
	hand_write(&h, 0x1c, 2, 1);
	assert_int_equal(hand_read(&h, 0x1c, 2), 1);
	assert_int_equal(vnet_state(h.v).queue_size[1], 32);

	vnet_set_faults(h.v, &hangs);
	hand_write(&h, 0x3a, 2, 1);
	assert_int_equal(hand_read(&h, 0x3a, 2), 1);
	assert_int_equal(vnet_stats(h.v).n_faults, 1);
	hand_end(&h);

	h = hand_make(&plain);
	hand_start(&h, HAND_PLAIN);
	hand_write(&h, 0x3a, 2, 1);
	hand_blamed(&h, "cannot be reset");
	hand_end(&h);
}

TEST(vectors_can_be_refused)
{
	const struct vnet_faults faults = { .refuses_vectors = true };
	struct hand h = hand_make(&plain);

	assert_true(hand_negotiate(&h, HAND_PLAIN));
	hand_write(&h, 0x10, 2, 0);
	assert_int_equal(hand_read(&h, 0x10, 2), 0);
	hand_write(&h, 0x10, 2, 4); /* there are four: 0 to 3 */
	assert_int_equal(hand_read(&h, 0x10, 2), 0xffff);
	vnet_set_faults(h.v, &faults);
	hand_write(&h, 0x10, 2, 1);
	assert_int_equal(hand_read(&h, 0x10, 2), 0xffff);
	hand_end(&h);
}

TEST(link_changes_are_told)
{
	const struct model_faults down = { .link_down = 1 }, none = { 0 };
	const struct vnet_faults flaps = { .link_flaps = true };
	struct hand h = hand_make(&plain);
	uint32_t generation;

	hand_start(&h, HAND_PLAIN);
	generation = hand_read(&h, 0x15, 1);
	assert_int_equal(hand_read(&h, HAND_DEVICE + 6, 2), 1);
	model_set_faults(h.m, &down);
	assert_int_equal(hand_irqs(&h, 0), 1);
	assert_int_equal(hand_read(&h, HAND_DEVICE + 6, 2), 0);
	assert_int_not_equal(hand_read(&h, 0x15, 1), generation);
	model_set_faults(h.m, &none);
	assert_int_equal(hand_irqs(&h, 0), 1);
	assert_int_equal(hand_read(&h, HAND_DEVICE + 6, 2), 1);

	vnet_set_faults(h.v, &flaps);
	generation = hand_read(&h, 0x15, 1);
	assert_int_not_equal(hand_read(&h, 0x15, 1), generation);
	assert_int_not_equal(hand_read(&h, HAND_DEVICE + 6, 2),
			     hand_read(&h, HAND_DEVICE + 6, 2));
	hand_end(&h);
}

TEST(device_asks_to_be_reset)
{
	struct hand h = hand_make(&plain);

	hand_start(&h, HAND_PLAIN);
	vnet_need_reset(h.v);
	assert_int_equal(hand_read(&h, 0x14, 1), 0x4f);
	assert_int_equal(hand_irqs(&h, 0), 1);
	assert_int_equal(hand_read(&h, 0x1000, 1), 2);
	assert_int_equal(hand_read(&h, 0x1000, 1), 0); /* by reading */
	hand_post(&h, HAND_TX, hand_buffer(&h, 0), 72, 0);
	hand_kick(&h, HAND_TX);
	assert_int_equal(vnet_stats(h.v).n_sent, 0);
	hand_end(&h);
}

TEST(unplugged_device_reads_all_ones)
{
	const struct model_faults gone = { .all_ones = 1 }, none = { 0 };
	struct hand h = hand_make(&plain);

	hand_start(&h, HAND_PLAIN);
	model_set_faults(h.m, &gone);
	assert_int_equal(hand_read(&h, 0x14, 1), 0xff);
	assert_int_equal(hand_read(&h, 0x04, 4), UINT32_MAX);
	hand_kick(&h, HAND_TX);
	assert_int_equal(vnet_stats(h.v).n_doorbells, 0);
	model_set_faults(h.m, &none);
	hand_end(&h);
}

/* Where the capability of a type is; its fields. 0: there is none. */
static uint32_t find_cap(const struct hand *h, uint8_t type)
{
	const uint8_t *config = h->m->config;
	uint32_t at = config[0x34];

	for (int i = 0; i < 48 && at != 0 && (config[6] & 0x10) != 0; i++) {
		if (config[at] == 0x09 && config[at + 3] == type)
			return at;
		at = config[at + 1];
	}
	return 0;
}

static uint32_t get32(const uint8_t *at)
{
	return hand_get16(at) | (uint32_t)hand_get16(at + 2) << 16;
}

TEST(capabilities_say_where_registers_are)
{
	struct hand h = hand_make(&plain);
	const uint8_t *config = h.m->config;
	uint32_t at;

	assert_int_equal(hand_get16(config), 0x1af4);
	assert_int_equal(hand_get16(config + 2), 0x1041);
	for (uint8_t type = 1; type <= 4; type++) {
		at = find_cap(&h, type);
		assert_true(at >= 0x40);
		assert_int_equal(config[at + 2], type == 2 ? 20 : 16);
		assert_int_equal(config[at + 4],
				 type == 2 ? HAND_NOTIFY_BAR : HAND_BAR);
		assert_true(get32(config + at + 8) + get32(config + at + 12) <=
			    h.m->bar_bytes[config[at + 4]]);
	}
	assert_int_equal(get32(config + find_cap(&h, 2) + 16), 4);
	assert_int_equal(get32(config + find_cap(&h, 4) + 8), HAND_DEVICE);
	hand_end(&h);
}

/* Each list is bad in its way, or the faults test nothing. */
TEST(hostile_capabilities_are_what_they_say)
{
	static const struct {
		enum vnet_caps caps;
		uint8_t type, bar;
		uint32_t offset, length;
	} cases[] = {
		{ VNET_CAPS_BAR_6, 1, 6, 0, 0x40 },
		{ VNET_CAPS_BAR_EMPTY, 1, 3, 0, 0x40 },
		{ VNET_CAPS_BEYOND_BAR, 1, 4, 0x3ff8, 0x40 },
		{ VNET_CAPS_OVERFLOW, 1, 4, 0xfffffff0, 0x40 },
		{ VNET_CAPS_SHORT, 1, 4, 0, 8 },
	};
	static const struct {
		enum vnet_caps caps;
		uint8_t type;
	} missing[] = { { VNET_CAPS_NO_COMMON, 1 },
			{ VNET_CAPS_NO_NOTIFY, 2 },
			{ VNET_CAPS_NO_DEVICE, 4 },
			{ VNET_CAPS_NO_LIST, 1 } };
	struct vnet_config config = plain;
	struct hand h;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *at;

		config.caps = cases[i].caps;
		h = hand_make(&config);
		at = h.m->config + find_cap(&h, cases[i].type);
		assert_int_equal(at[4], cases[i].bar);
		assert_int_equal(get32(at + 8), cases[i].offset);
		assert_int_equal(get32(at + 12), cases[i].length);
		hand_end(&h);
	}
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		config.caps = missing[i].caps;
		h = hand_make(&config);
		assert_int_equal(find_cap(&h, missing[i].type), 0);
		hand_end(&h);
	}
	config.caps = VNET_CAPS_LOOP;
	h = hand_make(&config);
	assert_int_equal(h.m->config[h.m->last_cap + 1], h.m->config[0x34]);
	hand_end(&h);
	config.caps = VNET_CAPS_MULTIPLIER;
	h = hand_make(&config);
	assert_int_equal(get32(h.m->config + find_cap(&h, 2) + 16), 0x10000000);
	hand_end(&h);
}
