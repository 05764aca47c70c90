/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/device.c and queues.c, with a driver that writes down what
 * it is told. */
#include <millrace/driver.h>
#include <millrace/experimental/port_queues.h>

#include "port/events.h"
#include "support/unit.h"

static struct {
	uint32_t n_calls, mtu_bytes;
	uint8_t mac[6];
	int err;
} told;

static int fake_mtu(struct mr_port *port, uint32_t mtu_bytes,
		    struct mr_reason *reason)
{
	(void)port;
	told.n_calls++;
	told.mtu_bytes = mtu_bytes;
	return told.err < 0 ? mr_fail(reason, told.err, "not today") : 0;
}

static int fake_mac(struct mr_port *port, const uint8_t mac[6],
		    struct mr_reason *reason)
{
	memcpy(told.mac, mac, sizeof(told.mac));
	return fake_mtu(port, 0, reason);
}

static uint32_t fake_stats(const struct mr_port *port,
			   struct mr_named_count *ret_counts, uint32_t n)
{
	(void)port;
	if (n > 0)
		ret_counts[0] = (struct mr_named_count){ "good_octets", 64 };
	return 3;
}

static const struct mr_driver whole = {
	.name = "whole",
	.set_mtu = fake_mtu,
	.set_mac = fake_mac,
	.device_stats = fake_stats,
};

static const struct mr_driver bare = { .name = "bare" };

static const uint8_t unicast[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t group[6] = { 3, 0, 0, 0, 0, 1 };
static const uint8_t zero[6] = { 0 };

static struct mr_port port_of(const struct mr_driver *driver)
{
	static struct mr_port_info info;
	static struct mri_events events;

	memset(&told, 0, sizeof(told));
	memset(&events, 0, sizeof(events));
	info = (struct mr_port_info){ .name = "fake:dev", .mtu_bytes = 1500 };
	return (struct mr_port){ .driver = driver,
				 .info = &info,
				 .events = &events };
}

TEST(info_is_filled_only_on_success)
{
	struct mr_port port = port_of(&whole);
	struct mr_reason why = { "" };

	told.err = -EIO;
	assert_int_equal(mr_port_set_mtu(&port, 9000, &why), -EIO);
	assert_reason_has(&why, "not today");
	assert_int_equal(mr_port_set_mac(&port, unicast, NULL), -EIO);
	assert_int_equal(told.n_calls, 2);
	assert_int_equal(port.info->mtu_bytes, 1500);
	assert_int_equal(port.info->has_mac, 0);

	told.err = 0;
	assert_int_equal(mr_port_set_mtu(&port, 9000, NULL), 0);
	assert_int_equal(told.mtu_bytes, 9000);
	assert_int_equal(port.info->mtu_bytes, 9000);
	assert_int_equal(mr_port_set_mac(&port, unicast, NULL), 0);
	assert_memory_equal(told.mac, unicast, 6);
	assert_memory_equal(port.info->mac, unicast, 6);
	assert_int_equal(port.info->has_mac, 1);
}

TEST(wrong_arguments_do_not_reach_the_driver)
{
	static const uint8_t macs[2][6] = { { 1, 2, 3, 4, 5, 6 }, { 0 } };
	static const uint32_t mtus[] = { 0, 67, 65536, UINT32_MAX };
	struct mr_port port = port_of(&whole);
	struct mr_reason why = { "" };

	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		assert_int_equal(mr_port_set_mtu(&port, mtus[i], &why),
				 -EINVAL);
		assert_reason_has(&why, "it is 68 to 65535");
	}
	assert_int_equal(mr_port_set_mac(&port, NULL, &why), -EINVAL);
	assert_int_equal(mr_port_set_mac(&port, zero, &why), -EINVAL);
	assert_reason_has(&why, "all zero");
	assert_int_equal(mr_port_set_mac(&port, group, &why), -EINVAL);
	assert_reason_has(&why, "03:00:00:00:00:01 is the address of a group");
	assert_int_equal(mr_port_set_mac_filter(&port, NULL, 1, &why), -EINVAL);
	assert_reason_has(&why, "no list");
	assert_int_equal(mr_port_set_mac_filter(&port, macs, 2, &why), -EINVAL);
	assert_reason_has(&why, "address 1 of the MAC filter is all zero");
	assert_int_equal(told.n_calls, 0);
	/* The ends of the range are in it. */
	assert_int_equal(mr_port_set_mtu(&port, 68, NULL), 0);
	assert_int_equal(mr_port_set_mtu(&port, 65535, NULL), 0);
}

TEST(a_driver_without_the_hook_is_named)
{
	struct mr_port port = port_of(&bare);
	struct mr_reason why = { "" };

	assert_int_equal(mr_port_set_promisc(&port, 1, &why), -ENOTSUP);
	assert_reason_has(&why, "fake:dev: driver bare cannot set promiscuous "
				"mode of this device");
	assert_int_equal(mr_port_set_allmulti(&port, 1, &why), -ENOTSUP);
	assert_reason_has(&why, "all multicast");
	assert_int_equal(mr_port_set_mtu(&port, 1500, &why), -ENOTSUP);
	assert_reason_has(&why, "the MTU");
	assert_int_equal(mr_port_set_mac(&port, unicast, &why), -ENOTSUP);
	assert_reason_has(&why, "the MAC address");
	assert_int_equal(mr_port_set_mac_filter(&port, NULL, 0, &why),
			 -ENOTSUP);
	assert_reason_has(&why, "a MAC filter");
	assert_int_equal(mr_port_set_filter(&port, "udp", &why), -ENOTSUP);
	assert_reason_has(&why, "a filter");
	assert_int_equal(mr_port_set_filter(&port, "", &why), -EINVAL);
}

TEST(wrong_queues_are_refused)
{
	static const uint32_t table[2] = { 0, 2 };
	static const uint8_t key[1];
	const struct {
		struct mr_rss_config config;
		const char *why;
	} wrong[] = {
		{ { .keep = 4 }, "keep has an unknown bit" },
		{ { .fields = 3 }, "fields has an unknown value" },
		{ { .key = key }, "no key has 0" },
		{ { .key = key, .n_key_bytes = 65 }, "1 to 64 bytes" },
		{ { .table = table }, "no table has 0" },
		{ { .table = table, .n_entries = 2 },
		  "queue 2: it has 2 rx queues" },
		{ { .reserved = 1 }, "reserved must be 0" },
	};
	struct mr_port port = port_of(&bare);
	struct mr_reason why = { "" };

	port.info->n_rxqs = 2;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct mr_rss_config config = wrong[i].config;

		assert_int_equal(mr_port_set_rss(&port, &config, &why),
				 -EINVAL);
		assert_reason_has(&why, "mr_rss_config");
		config.size = sizeof(config);
		assert_int_equal(mr_port_set_rss(&port, &config, &why),
				 -EINVAL);
		assert_reason_has(&why, wrong[i].why);
	}
}

TEST(wrong_rules_are_refused)
{
	const struct {
		struct mr_steer_rule rule;
		const char *why;
	} wrong[] = {
		{ { 0 }, "it matches every frame" },
		{ { .dst_port_mask = 1 }, "ports need a protocol" },
		{ { .is_ipv6 = 1 }, "ports need a protocol" },
		{ { .protocol = 1 }, "is not 6 (TCP) or 17 (UDP)" },
		{ { .protocol = 6, .ethertype = 0x800 }, "no MAC address" },
		{ { .protocol = 6, .is_ipv6 = 2 }, "0 or 1" },
		{ { .protocol = 6, .reserved = 1 }, "reserved must be 0" },
		{ { .protocol = 6, .dst_port = 80 }, "outside its mask" },
		{ { .protocol = 6, .src_port = 3, .src_port_mask = 1 },
		  "outside its mask" },
		{ { .protocol = 6, .src = { 10 } }, "outside its mask" },
		{ { .protocol = 6, .is_ipv6 = 1, .dst = { [15] = 1 } },
		  "outside its mask" },
		{ { .ethertype = 0x88f7, .queue = 1 },
		  "steering: queue 1: it has 1 rx queues" },
	};
	struct mr_port port = port_of(&bare);
	struct mr_reason why = { "" };
	uint32_t id = 7;

	port.info->n_rxqs = 1;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct mr_steer_rule rule = wrong[i].rule;

		rule.size = sizeof(rule);
		assert_int_equal(mr_port_steer(&port, &rule, &id, &why),
				 -EINVAL);
		assert_reason_has(&why, wrong[i].why);
	}
	assert_int_equal(id, 7);
	assert_int_equal(mr_port_unsteer(&port, 0, &why), -ENOTSUP);
	assert_reason_has(&why, "driver bare has no steering rules");
}

TEST(counters_come_from_the_device)
{
	struct mr_named_count counts[1] = { { "untouched", 1 } };
	struct mr_port port = port_of(&bare);

	assert_int_equal(mr_port_device_stats(&port, counts, 1), 0);
	assert_string_equal(counts[0].name, "untouched");
	port.driver = &whole;
	assert_int_equal(mr_port_device_stats(&port, NULL, 0), 3);
	assert_int_equal(mr_port_device_stats(&port, counts, 1), 3);
	assert_string_equal(counts[0].name, "good_octets");
	assert_int_equal(counts[0].value, 64);
}
