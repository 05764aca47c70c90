/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port's device is told while the port is open: it holds, it is put back
 * at close, and what the device cannot is refused with a reason.
 */
#include <errno.h>
#include <string.h>

#include "suite.h"

enum { OFFSET = 256, MAX_COUNTS = 512, SHORT_MTU = 1000 };

static struct mr_port_info info_of(const struct bed *bed)
{
	struct mr_port_info info = { .size = sizeof(info) };

	assert_int_equal(mr_port_info(bed->port, &info), 0);
	return info;
}

/* A refusal is one line that names the port. */
static void check_reason(const struct bed *bed, const struct mr_reason *why)
{
	const struct mr_port_info info = info_of(bed);

	assert_int_equal(strncmp(why->text, info.name, strlen(info.name)), 0);
	assert_null(strchr(why->text, '\n'));
}

/* Go on if the driver did it; skip the test if it cannot. */
static void need_done(struct bed *bed, int err, const struct mr_reason *why)
{
	if (err == 0)
		return;
	if (err != -ENOTSUP)
		fail_msg("error %d: %s", err, why->text);
	check_reason(bed, why);
	print_message("skipped: %s\n", why->text);
	bed_end(bed);
	skip();
}

static void allow(const struct bed *bed, int err, const struct mr_reason *why)
{
	if (err != 0 && err != -ENOTSUP)
		fail_msg("error %d: %s", err, why->text);
	if (err != 0)
		check_reason(bed, why);
}

BED_TEST(each_setting_is_made_or_refused_with_a_reason)
{
	static const uint8_t group[1][6] = { { 1, 0, 0x5e, 0, 0, 1 } };
	struct bed *bed = bed_make(&(struct wish){ 0 });
	struct mr_reason why = { "" };

	for (uint32_t on = 0; on < 4; on++) {
		allow(bed, mr_port_set_promisc(bed->port, on % 2, &why), &why);
		allow(bed, mr_port_set_allmulti(bed->port, on % 2, &why), &why);
		allow(bed,
		      mr_port_set_mac_filter(bed->port, group, on % 2, &why),
		      &why);
	}
	bed_end(bed);
}

BED_TEST(nonsense_is_refused_and_changes_nothing)
{
	static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 1 };
	static const uint8_t zero[1][6] = { { 0 } };
	struct bed *bed = bed_make(&(struct wish){ 0 });
	const struct mr_port_info before = info_of(bed);
	struct mr_port_info after;
	struct mr_reason why = { "" };

	assert_int_equal(mr_port_set_mtu(bed->port, 67, &why), -EINVAL);
	check_reason(bed, &why);
	assert_int_equal(mr_port_set_mtu(bed->port, 65536, &why), -EINVAL);
	assert_int_equal(mr_port_set_mac(bed->port, NULL, &why), -EINVAL);
	assert_int_equal(mr_port_set_mac(bed->port, group, &why), -EINVAL);
	check_reason(bed, &why);
	assert_int_equal(mr_port_set_mac_filter(bed->port, zero, 1, &why),
			 -EINVAL);
	check_reason(bed, &why);
	after = info_of(bed);
	assert_int_equal(after.mtu_bytes, before.mtu_bytes);
	assert_memory_equal(after.mac, before.mac, sizeof(after.mac));
	bed_end(bed);
}

BED_TEST(mtu_is_told_and_put_back)
{
	struct bed *bed = bed_make(&(struct wish){ 0 });
	const uint32_t before = info_of(bed).mtu_bytes;
	struct mr_reason why = { "" };
	int err;

	need_done(bed, mr_port_set_mtu(bed->port, SHORT_MTU, &why), &why);
	assert_int_equal(info_of(bed).mtu_bytes, SHORT_MTU);
	/* The longest there is: taken, or refused with the limit. */
	err = mr_port_set_mtu(bed->port, UINT16_MAX, &why);
	assert_true(err == 0 || err == -EINVAL);
	if (err < 0)
		assert_non_null(strpbrk(why.text, "0123456789"));
	assert_int_equal(info_of(bed).mtu_bytes,
			 err < 0 ? SHORT_MTU : UINT16_MAX);
	bed_close(bed);
	bed_open(bed);
	assert_int_equal(info_of(bed).mtu_bytes, before);
	bed_end(bed);
}

static void send_one(struct bed *bed, uint32_t n_bytes, uint32_t id)
{
	struct mr_frame frame;

	bed_make_frame(bed, &frame, 1, OFFSET, n_bytes, id);
	bed_tx(bed, &frame, 1);
}

/* A frame may have a VLAN tag on top of the MTU, and not a byte more. */
BED_TEST(mtu_holds_for_what_is_sent)
{
	struct bed *bed;
	struct mr_reason why = { "" };
	struct mr_tx_stats stats;
	uint32_t n_bytes;

	bed_need(RIG_OUT | RIG_LIVE, "the far side does not see frames");
	bed = bed_make(&(struct wish){ 0 });
	need_done(bed, mr_port_set_mtu(bed->port, SHORT_MTU, &why), &why);
	send_one(bed, SHORT_MTU + 14 + 4 + 1, 0);
	stats = bed_tx_stats(bed);
	assert_int_equal(stats.drops[MR_TX_DROP_TOO_LONG], 1);
	send_one(bed, SHORT_MTU + 14, 1);
	assert_int_equal(bed_collect(bed, &n_bytes), 1);
	assert_int_equal(n_bytes, SHORT_MTU + 14);
	assert_int_equal(mr_port_set_mtu(bed->port, 1500, &why), 0);
	send_one(bed, 1514, 2);
	assert_int_equal(bed_collect(bed, &n_bytes), 2);
	assert_int_equal(n_bytes, 1514);
	bed_end(bed);
}

BED_TEST(mac_is_told_and_put_back)
{
	static const uint8_t mac[6] = { 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee };
	struct bed *bed = bed_make(&(struct wish){ 0 });
	const struct mr_port_info before = info_of(bed);
	struct mr_port_info now;
	struct mr_reason why = { "" };

	need_done(bed, mr_port_set_mac(bed->port, mac, &why), &why);
	now = info_of(bed);
	assert_int_equal(now.has_mac, 1);
	assert_memory_equal(now.mac, mac, sizeof(mac));
	bed_close(bed);
	bed_open(bed);
	now = info_of(bed);
	if (!(bed->rig->traits & RIG_RANDOM_MAC))
		assert_memory_equal(now.mac, before.mac, sizeof(mac));
	bed_end(bed);
}

/* One frame from the far side to this address. */
static void inject_to(struct bed *bed, const uint8_t mac[6], uint32_t id)
{
	const uint64_t until_ns = bed_deadline_ns();
	uint8_t bytes[60];

	traffic_make(bytes, sizeof(bytes), id);
	memcpy(bytes, mac, 6);
	while (!bed->rig->inject(bed, bytes, sizeof(bytes))) {
		assert_true(bed_now_ns() < until_ns);
		bed_nap();
	}
}

/*
 * Whether a frame to this address is received: one to the port's own goes
 * behind it, and frames of one sender stay in order.
 */
static bool arrives(struct bed *bed, const uint8_t mac[6])
{
	const uint64_t until_ns = bed_deadline_ns();
	const struct mr_port_info info = info_of(bed);
	bool is_there = false, is_done = false;

	inject_to(bed, mac, 1);
	inject_to(bed, info.mac, 2);
	while (!is_done) {
		struct mr_frame frames[MR_MAX_SEGS];
		const uint32_t n =
			mr_rx_burst(bed->rxq, bed->cache, frames, MR_MAX_SEGS);

		for (uint32_t i = 0; i < n; i++) {
			const uint8_t *bytes =
				mr_frame_data(bed->base, &frames[i]);

			is_there |= bytes[11] == 1;
			is_done |= bytes[11] == 2;
		}
		bed_free(bed, frames, n);
		assert_true(bed_now_ns() < until_ns);
		if (n == 0)
			bed_nap();
	}
	return is_there;
}

BED_TEST(device_receives_what_it_was_told_to)
{
	static const uint8_t macs[2][6] = { { 0x02, 9, 8, 7, 6, 5 },
					    { 0x01, 0, 0x5e, 1, 2, 3 } };
	static const uint8_t other_group[6] = { 0x01, 0, 0x5e, 0x7f, 2, 4 };
	struct mr_reason why = { "" };
	struct bed *bed;

	bed_need(RIG_IN | RIG_LIVE | RIG_FILTERS,
		 "its device passes frames to all addresses");
	bed = bed_make(&(struct wish){ 0 });
	need_done(bed, mr_port_set_promisc(bed->port, 0, &why), &why);
	assert_false(arrives(bed, macs[0]));
	assert_false(arrives(bed, macs[1]));

	assert_int_equal(mr_port_set_promisc(bed->port, 1, &why), 0);
	assert_true(arrives(bed, macs[0]));
	assert_true(arrives(bed, other_group));
	assert_int_equal(mr_port_set_promisc(bed->port, 0, &why), 0);
	assert_false(arrives(bed, macs[0]));
	assert_false(arrives(bed, other_group));

	assert_int_equal(mr_port_set_allmulti(bed->port, 1, &why), 0);
	assert_true(arrives(bed, macs[1]));
	assert_true(arrives(bed, other_group));
	assert_false(arrives(bed, macs[0]));
	/* The one is not the other's. */
	assert_int_equal(mr_port_set_promisc(bed->port, 1, &why), 0);
	assert_int_equal(mr_port_set_promisc(bed->port, 0, &why), 0);
	assert_true(arrives(bed, other_group));
	assert_false(arrives(bed, macs[0]));
	assert_int_equal(mr_port_set_allmulti(bed->port, 0, &why), 0);
	assert_false(arrives(bed, macs[1]));

	assert_int_equal(mr_port_set_mac_filter(bed->port, macs, 2, &why), 0);
	assert_true(arrives(bed, macs[0]));
	assert_true(arrives(bed, macs[1]));
	assert_false(arrives(bed, other_group));
	assert_int_equal(mr_port_set_mac_filter(bed->port, macs, 1, &why), 0);
	assert_true(arrives(bed, macs[0]));
	assert_false(arrives(bed, macs[1]));
	assert_int_equal(mr_port_set_mac_filter(bed->port, NULL, 0, &why), 0);
	assert_false(arrives(bed, macs[0]));
	bed_end(bed);
}

/* One of them grew by n at least. */
static bool have_grown(const struct mr_named_count *now,
		       const struct mr_named_count *before, uint32_t n_counts,
		       uint64_t n)
{
	for (uint32_t i = 0; i < n_counts; i++)
		if (now[i].value >= before[i].value + n)
			return true;
	return false;
}

BED_TEST(device_counts_what_is_sent)
{
	enum { N_FRAMES = 100 };
	static struct mr_named_count before[MAX_COUNTS], now[MAX_COUNTS];
	uint64_t until_ns;
	uint32_t n;
	struct bed *bed;

	bed_need(RIG_OUT | RIG_LIVE, "the far side does not see frames");
	bed = bed_make(&(struct wish){ 0 });
	n = mr_port_device_stats(bed->port, before, MAX_COUNTS);
	if (n == 0) {
		bed_end(bed);
		print_message("skipped: no counters of the device's own\n");
		skip();
	}
	assert_true(n <= MAX_COUNTS);
	assert_int_equal(mr_port_device_stats(bed->port, NULL, 0), n);
	for (uint32_t i = 0; i < n; i++)
		assert_true(before[i].name[0] != '\0');
	for (uint32_t i = 0; i < N_FRAMES; i++)
		send_one(bed, 60, i);
	bed_collect_last(bed, N_FRAMES, 0);
	until_ns = bed_deadline_ns();
	do {
		assert_int_equal(
			mr_port_device_stats(bed->port, now, MAX_COUNTS), n);
		assert_true(bed_now_ns() < until_ns);
	} while (!have_grown(now, before, n, N_FRAMES));
	bed_end(bed);
}
