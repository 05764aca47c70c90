/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/virtio/virtio_features.c: what options turn on, and what is
 * refused. That no set of features is incomplete, or more than was offered, the
 * model checks: any_device_can_be_driven in test/model/offload_test.c.
 */
#include <errno.h>

#include "support/unit.h"
#include "virtio.h"

static uint64_t bits(const uint32_t *features, uint32_t n)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < n; i++)
		all |= virtio_bit(features[i]);
	return all;
}

/* What QEMU 10 offers with everything on. */
static uint64_t all_offered(void)
{
	static const uint32_t features[] = {
		VIRTIO_F_CSUM,
		VIRTIO_F_GUEST_CSUM,
		VIRTIO_F_MTU,
		VIRTIO_F_MAC,
		VIRTIO_F_GUEST_TSO4,
		VIRTIO_F_GUEST_TSO6,
		VIRTIO_F_GUEST_ECN,
		VIRTIO_F_HOST_TSO4,
		VIRTIO_F_HOST_TSO6,
		VIRTIO_F_MRG_RXBUF,
		VIRTIO_F_STATUS,
		VIRTIO_F_CTRL_VQ,
		VIRTIO_F_CTRL_RX,
		VIRTIO_F_GUEST_ANNOUNCE,
		VIRTIO_F_MQ,
		VIRTIO_F_CTRL_MAC_ADDR,
		VIRTIO_F_EVENT_IDX,
		VIRTIO_F_VERSION_1,
		VIRTIO_F_ACCESS_PLATFORM,
		VIRTIO_F_RING_PACKED,
		VIRTIO_F_IN_ORDER,
		VIRTIO_F_ORDER_PLATFORM,
		VIRTIO_F_NOTIFICATION_DATA,
		VIRTIO_F_NOTIF_CONFIG_DATA,
		VIRTIO_F_RING_RESET,
		VIRTIO_F_NOTF_COAL,
		VIRTIO_F_GUEST_USO4,
		VIRTIO_F_GUEST_USO6,
		VIRTIO_F_HOST_USO,
		VIRTIO_F_HASH_REPORT,
		VIRTIO_F_RSS,
		VIRTIO_F_SPEED_DUPLEX,
		19,
		20,
		28,
		41,
		50,
		62, /* and what we have no use for */
	};

	return bits(features, sizeof(features) / sizeof(features[0]));
}

static uint64_t chosen(uint64_t offered, const struct virtio_options *options,
		       bool needs_sg)
{
	uint64_t features = 0;
	struct mr_reason why;

	if (mri_virtio_choose(offered, options, true, needs_sg, "vfio:x",
			      &features, &why) < 0)
		fail_msg("%s", why.text);
	return features;
}

static bool has_feature(uint64_t features, uint32_t feature)
{
	return features & virtio_bit(feature);
}

TEST(headers_are_empty_by_default)
{
	const struct virtio_options options = { .n_queues = 1 };
	const uint64_t features = chosen(all_offered(), &options, false);

	assert_false(has_feature(features, VIRTIO_F_GUEST_CSUM));
	assert_false(has_feature(features, VIRTIO_F_MRG_RXBUF));
	assert_false(has_feature(features, VIRTIO_F_HASH_REPORT));
	assert_false(has_feature(features, VIRTIO_F_GUEST_TSO4));
	assert_false(has_feature(features, VIRTIO_F_RSS));
	assert_false(has_feature(features, VIRTIO_F_MQ));
	assert_false(has_feature(features, VIRTIO_F_NOTF_COAL));
	assert_true(has_feature(features, VIRTIO_F_CSUM));
	assert_true(has_feature(features, VIRTIO_F_HOST_TSO4));
	assert_true(has_feature(features, VIRTIO_F_RING_PACKED));
	assert_true(has_feature(features, VIRTIO_F_IN_ORDER));
	assert_true(has_feature(features, VIRTIO_F_EVENT_IDX));
	assert_true(has_feature(features, VIRTIO_F_RING_RESET));
}

/* Each option, and what it turns on; and off. */
TEST(options_turn_features_on_and_off)
{
	struct virtio_options o = { .n_queues = 1 };
	uint64_t features;

	o.csum = VIRTIO_CSUM_ON;
	features = chosen(all_offered(), &o, false);
	assert_true(has_feature(features, VIRTIO_F_GUEST_CSUM));
	assert_false(has_feature(features, VIRTIO_F_GUEST_TSO4));

	o = (struct virtio_options){ .n_queues = 1,
				     .csum = VIRTIO_CSUM_OFF,
				     .packed = VIRTIO_OFF,
				     .in_order = VIRTIO_OFF };
	features = chosen(all_offered(), &o, false);
	assert_false(has_feature(features, VIRTIO_F_CSUM));
	assert_false(has_feature(features, VIRTIO_F_HOST_TSO4));
	assert_false(has_feature(features, VIRTIO_F_HOST_USO));
	assert_false(has_feature(features, VIRTIO_F_RING_PACKED));
	assert_false(has_feature(features, VIRTIO_F_IN_ORDER));

	o = (struct virtio_options){
		.n_queues = 2, .tso = 1, .hash = 1, .rx_usecs = 10
	};
	features = chosen(all_offered(), &o, true);
	assert_true(has_feature(features, VIRTIO_F_GUEST_CSUM));
	assert_true(has_feature(features, VIRTIO_F_GUEST_TSO4));
	assert_true(has_feature(features, VIRTIO_F_GUEST_TSO6));
	/* Nobody would be told of the bit, so segments come one by one. */
	assert_false(has_feature(features, VIRTIO_F_GUEST_ECN));
	assert_true(has_feature(features, VIRTIO_F_MRG_RXBUF));
	assert_true(has_feature(features, VIRTIO_F_MQ));
	assert_true(has_feature(features, VIRTIO_F_RSS));
	assert_true(has_feature(features, VIRTIO_F_HASH_REPORT));
	assert_true(has_feature(features, VIRTIO_F_NOTF_COAL));

	o = (struct virtio_options){ .n_queues = 2, .rss = VIRTIO_OFF };
	features = chosen(all_offered(), &o, false);
	assert_true(has_feature(features, VIRTIO_F_MQ));
	assert_false(has_feature(features, VIRTIO_F_RSS));
}

struct refusal {
	uint32_t missing;
	struct virtio_options options;
	bool needs_sg;
	const char *words;
};

static const struct refusal refusals[] = {
	{ VIRTIO_F_VERSION_1, { .n_queues = 1 }, false, "legacy" },
	{ VIRTIO_F_ACCESS_PLATFORM,
	  { .n_queues = 1 },
	  false,
	  "iommu_platform=on" },
	{ VIRTIO_F_RING_PACKED,
	  { .n_queues = 1, .packed = VIRTIO_ON },
	  false,
	  "packed=on" },
	{ VIRTIO_F_IN_ORDER,
	  { .n_queues = 1, .in_order = VIRTIO_ON },
	  false,
	  "in-order=on" },
	{ VIRTIO_F_MRG_RXBUF, { .n_queues = 1 }, true, "larger pages" },
	{ VIRTIO_F_GUEST_CSUM,
	  { .n_queues = 1, .csum = VIRTIO_CSUM_ON },
	  false,
	  "csum=on" },
	{ VIRTIO_F_GUEST_TSO4, { .n_queues = 1, .tso = 1 }, true, "tso=on" },
	{ VIRTIO_F_GUEST_CSUM, { .n_queues = 1, .tso = 1 }, true, "tso=on" },
	{ VIRTIO_F_MQ, { .n_queues = 2 }, false, "mq=on" },
	{ VIRTIO_F_CTRL_VQ, { .n_queues = 2 }, false, "mq=on" },
	{ VIRTIO_F_RSS, { .n_queues = 2, .rss = VIRTIO_ON }, false, "rss=on" },
	{ VIRTIO_F_HASH_REPORT,
	  { .n_queues = 1, .hash = 1 },
	  false,
	  "hash=on" },
	{ VIRTIO_F_NOTF_COAL,
	  { .n_queues = 1, .tx_frames = 3 },
	  false,
	  "tx-frames" },
};

TEST(a_requested_feature_that_is_missing_is_refused)
{
	for (uint32_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		uint64_t features = 4711;
		struct mr_reason why;

		assert_int_equal(
			mri_virtio_choose(all_offered() &
						  ~virtio_bit(r->missing),
					  &r->options, true, r->needs_sg,
					  "vfio:x", &features, &why),
			-ENOTSUP);
		assert_reason_has(&why, r->words);
		assert_reason_has(&why, "vfio:x");
		assert_int_equal(features, 4711);
	}
}

/* Without an IOMMU there is none to go past. */
TEST(without_an_iommu_access_platform_is_not_requested)
{
	const struct virtio_options options = { .n_queues = 1 };
	uint64_t features;

	assert_int_equal(
		mri_virtio_choose(
			all_offered() & ~virtio_bit(VIRTIO_F_ACCESS_PLATFORM),
			&options, false, false, "vfio:x", &features, NULL),
		0);
}
