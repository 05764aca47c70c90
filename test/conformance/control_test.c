/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings of an open port's device: they take effect, are restored at close,
 * and unsupported ones are refused with a reason.
 */
#include <errno.h>
#include <string.h>

#include <millrace/experimental/port_queues.h>
#include <millrace/port_events.h>

#include "suite.h"
#include "support/packets.h"

enum { OFFSET = 256, MAX_COUNTS = 512, SHORT_MTU = 1000 };

static struct mr_port_info info_of(const struct harness *harness)
{
	struct mr_port_info info = { .size = sizeof(info) };

	assert_int_equal(mr_port_info(harness->port, &info), 0);
	return info;
}

/* A refusal is one line that names the port. */
static void check_reason(const struct harness *harness,
			 const struct mr_reason *why)
{
	const struct mr_port_info info = info_of(harness);

	assert_int_equal(strncmp(why->text, info.name, strlen(info.name)), 0);
	assert_null(strchr(why->text, '\n'));
}

/* Continue if the driver succeeded; skip the test if it is unsupported. */
static void need_done(struct harness *harness, int err,
		      const struct mr_reason *why)
{
	if (err == 0)
		return;
	if (err != -ENOTSUP)
		fail_msg("error %d: %s", err, why->text);
	check_reason(harness, why);
	print_message("skipped: %s\n", why->text);
	harness_end(harness);
	skip();
}

static void allow(const struct harness *harness, int err,
		  const struct mr_reason *why)
{
	if (err != 0 && err != -ENOTSUP)
		fail_msg("error %d: %s", err, why->text);
	if (err != 0)
		check_reason(harness, why);
}

HARNESS_TEST(each_setting_is_made_or_refused_with_a_reason)
{
	static const uint8_t group[1][6] = { { 1, 0, 0x5e, 0, 0, 1 } };
	struct harness *harness = harness_make(&(struct wish){ 0 });
	struct mr_reason why = { "" };

	for (uint32_t on = 0; on < 4; on++) {
		allow(harness, mr_port_set_promisc(harness->port, on % 2, &why),
		      &why);
		allow(harness,
		      mr_port_set_allmulti(harness->port, on % 2, &why), &why);
		allow(harness,
		      mr_port_set_mac_filter(harness->port, group, on % 2,
					     &why),
		      &why);
	}
	harness_end(harness);
}

HARNESS_TEST(queues_are_chosen_or_refused_with_the_reason)
{
	static const uint32_t first[1] = { 0 };
	const struct mr_rss_config configs[] = {
		{ .size = sizeof(configs[0]) },
		{ .size = sizeof(configs[0]),
		  .keep = MR_RSS_KEEP_KEY,
		  .table = first,
		  .n_entries = 1 },
		{ .size = sizeof(configs[0]), .fields = MR_RSS_FIELDS_ADDRS },
	};
	const struct mr_steer_rule rule = { .size = sizeof(rule),
					    .protocol = 17,
					    .dst_port = 4789,
					    .dst_port_mask = UINT16_MAX };
	struct harness *harness = harness_make(&(struct wish){ 0 });
	struct mr_reason why = { "" };
	uint32_t id;
	int err;

	for (uint32_t i = 0; i < 3; i++)
		allow(harness,
		      mr_port_set_rss(harness->port, &configs[i], &why), &why);
	err = mr_port_steer(harness->port, &rule, &id, &why);
	/* -EINVAL: it has rules, but not such ones. */
	allow(harness, err == -EINVAL ? -ENOTSUP : err, &why);
	if (err == 0)
		assert_int_equal(mr_port_unsteer(harness->port, id, &why), 0);
	assert_true(mr_port_unsteer(harness->port, 12345, &why) < 0);
	check_reason(harness, &why);
	harness_end(harness);
}

/* The queue at which a packet of this flow arrives. */
static uint32_t queue_of(struct harness *harness, uint16_t from_port,
			 uint16_t to_port)
{
	const uint64_t until_ns = harness_deadline_ns();
	const struct packet_kind kind = { .is_udp = true,
					  .n_payload = 18,
					  .from_port = from_port,
					  .to_port = to_port };
	struct mr_frame frames[MR_MAX_SEGS];
	uint8_t bytes[60];

	packet_of(bytes, &kind, false);
	while (!harness->fixture->inject(harness, bytes, sizeof(bytes)))
		assert_true(harness_now_ns() < until_ns);
	for (uint32_t i = 0;; i = (i + 1) % 2) {
		const uint32_t n =
			mr_rx_burst(mr_port_rxq(harness->port, i),
				    harness->cache, frames, MR_MAX_SEGS);

		const bool is_ours =
			n > 0 && traffic_is_ours(harness->base + frames[0].addr,
						 frames[0].len);

		harness_free(harness, frames, n);
		if (is_ours)
			return i;
		assert_true(harness_now_ns() < until_ns);
		harness_nap();
	}
}

HARNESS_TEST(frames_arrive_at_the_queue_of_the_table)
{
	struct mr_rss_config config = { .size = sizeof(config),
					.fields = MR_RSS_FIELDS_PORTS };
	struct mr_reason why = { "" };
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_LIVE | FIXTURE_QUEUES,
		     "it has no two rx queues that can be told apart");
	harness = harness_make(&(struct wish){ .n_queues = 2 });
	for (uint32_t queue = 0; queue < 2; queue++) {
		config.table = &queue;
		config.n_entries = 1;
		need_done(harness,
			  mr_port_set_rss(harness->port, &config, &why), &why);
		for (uint16_t i = 0; i < 8; i++)
			assert_int_equal(queue_of(harness, 1000 + i, 53),
					 queue);
	}
	config = (struct mr_rss_config){ .size = sizeof(config) };
	assert_int_equal(mr_port_set_rss(harness->port, &config, &why), 0);
	for (uint16_t i = 0, seen = 0; seen != 3; i++) {
		assert_true(i < 256);
		seen |= (uint16_t)(1 << queue_of(harness, 1000 + i, 53));
	}
	harness_end(harness);
}

HARNESS_TEST(frames_arrive_at_the_queue_of_a_rule)
{
	struct mr_steer_rule rule = { .size = sizeof(rule),
				      .protocol = 17,
				      .dst_port = 4789,
				      .dst_port_mask = UINT16_MAX };
	struct mr_reason why = { "" };
	struct harness *harness;
	uint32_t id;

	harness_need(FIXTURE_IN | FIXTURE_LIVE | FIXTURE_QUEUES,
		     "it has no two rx queues that can be told apart");
	harness_lack(FIXTURE_NO_STEERING, "its device ignores steering rules");
	harness = harness_make(&(struct wish){ .n_queues = 2 });
	for (rule.queue = 0; rule.queue < 2; rule.queue++) {
		const int err = mr_port_steer(harness->port, &rule, &id, &why);

		/* -EINVAL: it has rules, but not such ones. */
		need_done(harness, err == -EINVAL ? -ENOTSUP : err, &why);
		for (uint16_t i = 0; i < 8; i++)
			assert_int_equal(queue_of(harness, 1000 + i, 4789),
					 rule.queue);
		assert_int_equal(mr_port_unsteer(harness->port, id, &why), 0);
		assert_int_equal(mr_port_unsteer(harness->port, id, &why),
				 -ENOENT);
	}
	harness_end(harness);
}

HARNESS_TEST(nonsense_is_refused_and_changes_nothing)
{
	static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 1 };
	static const uint8_t zero[1][6] = { { 0 } };
	struct harness *harness = harness_make(&(struct wish){ 0 });
	const struct mr_port_info before = info_of(harness);
	struct mr_port_info after;
	struct mr_reason why = { "" };

	assert_int_equal(mr_port_set_mtu(harness->port, 67, &why), -EINVAL);
	check_reason(harness, &why);
	assert_int_equal(mr_port_set_mtu(harness->port, 65536, &why), -EINVAL);
	assert_int_equal(mr_port_set_mac(harness->port, NULL, &why), -EINVAL);
	assert_int_equal(mr_port_set_mac(harness->port, group, &why), -EINVAL);
	check_reason(harness, &why);
	assert_int_equal(mr_port_set_mac_filter(harness->port, zero, 1, &why),
			 -EINVAL);
	check_reason(harness, &why);
	after = info_of(harness);
	assert_int_equal(after.mtu_bytes, before.mtu_bytes);
	assert_memory_equal(after.mac, before.mac, sizeof(after.mac));
	harness_end(harness);
}

HARNESS_TEST(mtu_is_set_and_restored)
{
	struct harness *harness = harness_make(&(struct wish){ 0 });
	const uint32_t before = info_of(harness).mtu_bytes;
	struct mr_reason why = { "" };
	int err;

	need_done(harness, mr_port_set_mtu(harness->port, SHORT_MTU, &why),
		  &why);
	assert_int_equal(info_of(harness).mtu_bytes, SHORT_MTU);
	/* The largest: accepted, or refused with the limit. */
	err = mr_port_set_mtu(harness->port, UINT16_MAX, &why);
	assert_true(err == 0 || err == -EINVAL);
	if (err < 0)
		assert_non_null(strpbrk(why.text, "0123456789"));
	assert_int_equal(info_of(harness).mtu_bytes,
			 err < 0 ? SHORT_MTU : UINT16_MAX);
	harness_close(harness);
	harness_open(harness);
	assert_int_equal(info_of(harness).mtu_bytes, before);
	harness_end(harness);
}

static void send_one(struct harness *harness, uint32_t n_bytes, uint32_t id)
{
	struct mr_frame frame;

	harness_make_frame(harness, &frame, 1, OFFSET, n_bytes, id);
	harness_tx(harness, &frame, 1);
}

/* A frame may have a VLAN tag beyond the MTU, and nothing more. */
HARNESS_TEST(mtu_holds_for_what_is_sent)
{
	struct harness *harness;
	struct mr_reason why = { "" };
	struct mr_tx_stats stats;
	uint32_t n_bytes;

	harness_need(FIXTURE_OUT | FIXTURE_LIVE,
		     "the far side does not see frames");
	harness = harness_make(&(struct wish){ 0 });
	need_done(harness, mr_port_set_mtu(harness->port, SHORT_MTU, &why),
		  &why);
	send_one(harness, SHORT_MTU + 14 + 4 + 1, 0);
	stats = harness_tx_stats(harness);
	assert_int_equal(stats.drops[MR_TX_DROP_TOO_LONG], 1);
	send_one(harness, SHORT_MTU + 14, 1);
	assert_int_equal(harness_collect(harness, &n_bytes), 1);
	assert_int_equal(n_bytes, SHORT_MTU + 14);
	assert_int_equal(mr_port_set_mtu(harness->port, 1500, &why), 0);
	send_one(harness, 1514, 2);
	assert_int_equal(harness_collect(harness, &n_bytes), 2);
	assert_int_equal(n_bytes, 1514);
	harness_end(harness);
}

HARNESS_TEST(mac_is_set_and_restored)
{
	static const uint8_t mac[6] = { 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee };
	struct harness *harness = harness_make(&(struct wish){ 0 });
	const struct mr_port_info before = info_of(harness);
	struct mr_port_info now;
	struct mr_reason why = { "" };

	need_done(harness, mr_port_set_mac(harness->port, mac, &why), &why);
	now = info_of(harness);
	assert_int_equal(now.has_mac, 1);
	assert_memory_equal(now.mac, mac, sizeof(mac));
	harness_close(harness);
	harness_open(harness);
	now = info_of(harness);
	if (!(harness->fixture->traits & FIXTURE_RANDOM_MAC))
		assert_memory_equal(now.mac, before.mac, sizeof(mac));
	harness_end(harness);
}

/* Send one frame from the peer to this address. */
static void inject_to(struct harness *harness, const uint8_t mac[6],
		      uint32_t id)
{
	const uint64_t until_ns = harness_deadline_ns();
	uint8_t bytes[60];

	traffic_make(bytes, sizeof(bytes), id);
	memcpy(bytes, mac, 6);
	while (!harness->fixture->inject(harness, bytes, sizeof(bytes))) {
		assert_true(harness_now_ns() < until_ns);
		harness_nap();
	}
}

/*
 * Whether a frame to this address is received: a frame to the port's own
 * address follows it, and frames of one sender stay in order.
 */
static bool arrives(struct harness *harness, const uint8_t mac[6])
{
	const uint64_t until_ns = harness_deadline_ns();
	const struct mr_port_info info = info_of(harness);
	bool is_there = false, is_done = false;

	inject_to(harness, mac, 1);
	inject_to(harness, info.mac, 2);
	while (!is_done) {
		struct mr_frame frames[MR_MAX_SEGS];
		const uint32_t n = mr_rx_burst(harness->rxq, harness->cache,
					       frames, MR_MAX_SEGS);

		for (uint32_t i = 0; i < n; i++) {
			const uint8_t *bytes =
				mr_frame_data(harness->base, &frames[i]);

			is_there |= bytes[11] == 1;
			is_done |= bytes[11] == 2;
		}
		harness_free(harness, frames, n);
		assert_true(harness_now_ns() < until_ns);
		if (n == 0)
			harness_nap();
	}
	return is_there;
}

/* A station and a group that a filter has, and a group that it has not. */
static const uint8_t macs[2][6] = { { 0x02, 9, 8, 7, 6, 5 },
				    { 0x01, 0, 0x5e, 1, 2, 3 } };
static const uint8_t other_group[6] = { 0x01, 0, 0x5e, 0x7f, 2, 4 };

HARNESS_TEST(device_receives_only_addresses_it_was_set_to)
{
	static const uint8_t everyone[6] = { 255, 255, 255, 255, 255, 255 };
	struct mr_reason why = { "" };
	struct mr_port_info before;
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_LIVE | FIXTURE_FILTERS,
		     "its device passes frames to all addresses");
	harness = harness_make(&(struct wish){ 0 });
	need_done(harness, mr_port_set_promisc(harness->port, 0, &why), &why);
	before = info_of(harness);
	assert_true(arrives(harness, everyone));
	assert_false(arrives(harness, macs[0]));
	assert_false(arrives(harness, macs[1]));

	assert_int_equal(mr_port_set_promisc(harness->port, 1, &why), 0);
	assert_true(arrives(harness, macs[0]));
	assert_true(arrives(harness, other_group));
	assert_int_equal(mr_port_set_promisc(harness->port, 0, &why), 0);
	assert_false(arrives(harness, macs[0]));
	assert_false(arrives(harness, other_group));

	assert_int_equal(mr_port_set_allmulti(harness->port, 1, &why), 0);
	assert_true(arrives(harness, macs[1]));
	assert_true(arrives(harness, other_group));
	assert_false(arrives(harness, macs[0]));
	/* One does not affect the other. */
	assert_int_equal(mr_port_set_promisc(harness->port, 1, &why), 0);
	assert_int_equal(mr_port_set_promisc(harness->port, 0, &why), 0);
	assert_true(arrives(harness, other_group));
	assert_false(arrives(harness, macs[0]));
	assert_int_equal(mr_port_set_allmulti(harness->port, 0, &why), 0);
	assert_false(arrives(harness, macs[1]));

	assert_int_equal(mr_port_set_mac_filter(harness->port, macs, 2, &why),
			 0);
	assert_true(arrives(harness, macs[0]));
	assert_true(arrives(harness, macs[1]));
	assert_false(arrives(harness, other_group));
	assert_int_equal(mr_port_set_mac_filter(harness->port, macs, 1, &why),
			 0);
	assert_true(arrives(harness, macs[0]));
	assert_false(arrives(harness, macs[1]));
	assert_int_equal(mr_port_set_mac_filter(harness->port, NULL, 0, &why),
			 0);
	assert_false(arrives(harness, macs[0]));
	/* Its new address instead of the old one: arrives() sends to it. */
	if (!(harness->fixture->traits & FIXTURE_OLD_MAC) &&
	    mr_port_set_mac(harness->port, macs[0], &why) == 0)
		assert_false(arrives(harness, before.mac));
	harness_end(harness);
}

/* Reopen the port, and find its queues again. */
static void open_again(struct harness *harness)
{
	struct mr_reason why = { "" };

	if (mr_port_reopen(harness->port, &why) < 0)
		fail_msg("%s", why.text);
	harness->rxq = mr_port_rxq(harness->port, 0);
	harness->txq = mr_port_txq(harness->port, 0);
	if (harness->fixture->opened != NULL)
		harness->fixture->opened(harness);
}

HARNESS_TEST(mtu_and_mac_stay_when_the_port_is_opened_again)
{
	static const uint8_t mac[6] = { 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee };
	struct harness *harness = harness_make(&(struct wish){ 0 });
	struct mr_reason why = { "" };
	struct mr_port_info now;
	bool has_mtu, has_mac;

	has_mtu = mr_port_set_mtu(harness->port, SHORT_MTU, &why) == 0;
	has_mac = mr_port_set_mac(harness->port, mac, &why) == 0;
	need_done(harness, has_mtu || has_mac ? 0 : -ENOTSUP, &why);
	open_again(harness);
	now = info_of(harness);
	if (has_mtu)
		assert_int_equal(now.mtu_bytes, SHORT_MTU);
	if (has_mac)
		assert_memory_equal(now.mac, mac, sizeof(mac));
	harness_end(harness);
}

HARNESS_TEST(addresses_stay_when_the_port_is_opened_again)
{
	static const uint8_t stranger[6] = { 0x02, 1, 1, 1, 1, 1 };
	struct mr_reason why = { "" };
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_LIVE | FIXTURE_FILTERS,
		     "its device passes frames to all addresses");
	harness = harness_make(&(struct wish){ 0 });
	/* Some fixtures open theirs with promiscuous mode. */
	need_done(harness, mr_port_set_promisc(harness->port, false, &why),
		  &why);
	need_done(harness, mr_port_set_mac_filter(harness->port, macs, 2, &why),
		  &why);
	open_again(harness);
	assert_true(arrives(harness, macs[0]));
	assert_true(arrives(harness, macs[1]));
	assert_false(arrives(harness, other_group));
	assert_int_equal(mr_port_set_allmulti(harness->port, true, &why), 0);
	open_again(harness);
	assert_true(arrives(harness, other_group));
	assert_false(arrives(harness, stranger));
	assert_int_equal(mr_port_set_promisc(harness->port, true, &why), 0);
	open_again(harness);
	assert_true(arrives(harness, stranger));
	/* The last settings are repeated. */
	assert_int_equal(mr_port_set_promisc(harness->port, false, &why), 0);
	assert_int_equal(mr_port_set_allmulti(harness->port, false, &why), 0);
	assert_int_equal(mr_port_set_mac_filter(harness->port, NULL, 0, &why),
			 0);
	open_again(harness);
	assert_false(arrives(harness, stranger));
	assert_false(arrives(harness, other_group));
	assert_false(arrives(harness, macs[0]));
	harness_end(harness);
}

/* One of them grew by at least n. */
static bool have_grown(const struct mr_named_count *now,
		       const struct mr_named_count *before, uint32_t n_counts,
		       uint64_t n)
{
	for (uint32_t i = 0; i < n_counts; i++)
		if (now[i].value >= before[i].value + n)
			return true;
	return false;
}

HARNESS_TEST(device_counts_sent_frames)
{
	enum { N_FRAMES = 100 };
	static struct mr_named_count before[MAX_COUNTS], now[MAX_COUNTS];
	uint64_t until_ns;
	uint32_t n;
	struct harness *harness;

	harness_need(FIXTURE_OUT | FIXTURE_LIVE,
		     "the far side does not see frames");
	harness = harness_make(&(struct wish){ 0 });
	n = mr_port_device_stats(harness->port, before, MAX_COUNTS);
	if (n == 0) {
		harness_end(harness);
		print_message("skipped: no counters of the device's own\n");
		skip();
	}
	assert_true(n <= MAX_COUNTS);
	assert_int_equal(mr_port_device_stats(harness->port, NULL, 0), n);
	for (uint32_t i = 0; i < n; i++)
		assert_true(before[i].name[0] != '\0');
	for (uint32_t i = 0; i < N_FRAMES; i++)
		send_one(harness, 60, i);
	harness_collect_last(harness, N_FRAMES, 0);
	until_ns = harness_deadline_ns();
	do {
		assert_int_equal(
			mr_port_device_stats(harness->port, now, MAX_COUNTS),
			n);
		assert_true(harness_now_ns() < until_ns);
	} while (!have_grown(now, before, n, N_FRAMES));
	harness_end(harness);
}
