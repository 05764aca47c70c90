/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose which offered features to accept. Pure functions of bits.
 *
 * A feature whose dependencies are missing is not accepted (5.1.3.1). That is
 * an error if an option or the design requires it.
 *
 * Source: virtio 1.2, 5.1.3.1 "Feature bit requirements", 6.
 */
#include <errno.h>

#include "virtio.h"

/* A feature, and those of which it needs at least one. */
struct need {
	uint32_t feature;
	uint64_t any_of;
};

static const struct need needs[] = {
	{ VIRTIO_F_GUEST_TSO4, UINT64_C(1) << VIRTIO_F_GUEST_CSUM },
	{ VIRTIO_F_GUEST_TSO6, UINT64_C(1) << VIRTIO_F_GUEST_CSUM },
	{ VIRTIO_F_GUEST_USO4, UINT64_C(1) << VIRTIO_F_GUEST_CSUM },
	{ VIRTIO_F_GUEST_USO6, UINT64_C(1) << VIRTIO_F_GUEST_CSUM },
	/* Ours: there are no buffers of 64 KiB, 5.1.6.3.1. */
	{ VIRTIO_F_GUEST_TSO4, UINT64_C(1) << VIRTIO_F_MRG_RXBUF },
	{ VIRTIO_F_GUEST_TSO6, UINT64_C(1) << VIRTIO_F_MRG_RXBUF },
	{ VIRTIO_F_GUEST_USO4, UINT64_C(1) << VIRTIO_F_MRG_RXBUF },
	{ VIRTIO_F_GUEST_USO6, UINT64_C(1) << VIRTIO_F_MRG_RXBUF },
	{ VIRTIO_F_HOST_TSO4, UINT64_C(1) << VIRTIO_F_CSUM },
	{ VIRTIO_F_HOST_TSO6, UINT64_C(1) << VIRTIO_F_CSUM },
	{ VIRTIO_F_HOST_USO, UINT64_C(1) << VIRTIO_F_CSUM },
	{ VIRTIO_F_CTRL_RX, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_CTRL_MAC_ADDR, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_GUEST_ANNOUNCE, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_GUEST_ANNOUNCE, UINT64_C(1) << VIRTIO_F_STATUS },
	{ VIRTIO_F_MQ, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_RSS, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_HASH_REPORT, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_DEVICE_STATS, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
	{ VIRTIO_F_NOTF_COAL, UINT64_C(1) << VIRTIO_F_CTRL_VQ },
};

enum { N_NEEDS = sizeof(needs) / sizeof(needs[0]) };

/* Features whose dependency is missing. */
static uint64_t find_incomplete(uint64_t features)
{
	uint64_t incomplete = 0;

	for (uint32_t i = 0; i < N_NEEDS; i++)
		if (!(features & needs[i].any_of))
			incomplete |= features & virtio_bit(needs[i].feature);
	return incomplete;
}

/* Features that are useful for every port. */
static uint64_t always(void)
{
	return virtio_bit(VIRTIO_F_VERSION_1) |
	       virtio_bit(VIRTIO_F_ACCESS_PLATFORM) |
	       virtio_bit(VIRTIO_F_ORDER_PLATFORM) |
	       virtio_bit(VIRTIO_F_EVENT_IDX) |
	       virtio_bit(VIRTIO_F_NOTIFICATION_DATA) |
	       virtio_bit(VIRTIO_F_NOTIF_CONFIG_DATA) |
	       virtio_bit(VIRTIO_F_RING_RESET) | virtio_bit(VIRTIO_F_MAC) |
	       virtio_bit(VIRTIO_F_MTU) | virtio_bit(VIRTIO_F_STATUS) |
	       virtio_bit(VIRTIO_F_SPEED_DUPLEX) |
	       virtio_bit(VIRTIO_F_CTRL_VQ) | virtio_bit(VIRTIO_F_CTRL_RX) |
	       virtio_bit(VIRTIO_F_CTRL_MAC_ADDR) |
	       virtio_bit(VIRTIO_F_GUEST_ANNOUNCE) |
	       virtio_bit(VIRTIO_F_DEVICE_STATS);
}

static bool has_coalescing(const struct virtio_options *o)
{
	return o->rx_usecs != 0 || o->rx_frames != 0 || o->tx_usecs != 0 ||
	       o->tx_frames != 0;
}

static uint64_t wanted(const struct virtio_options *o, bool needs_sg)
{
	uint64_t bits = always();

	if (o->packed != VIRTIO_OFF)
		bits |= virtio_bit(VIRTIO_F_RING_PACKED);
	if (o->in_order != VIRTIO_OFF)
		bits |= virtio_bit(VIRTIO_F_IN_ORDER);
	if (needs_sg)
		bits |= virtio_bit(VIRTIO_F_MRG_RXBUF);
	if (o->csum != VIRTIO_CSUM_OFF)
		bits |= virtio_bit(VIRTIO_F_CSUM) |
			virtio_bit(VIRTIO_F_HOST_TSO4) |
			virtio_bit(VIRTIO_F_HOST_TSO6) |
			virtio_bit(VIRTIO_F_HOST_USO);
	if (o->csum == VIRTIO_CSUM_ON || o->tso)
		bits |= virtio_bit(VIRTIO_F_GUEST_CSUM);
	if (o->tso)
		bits |= virtio_bit(VIRTIO_F_GUEST_TSO4) |
			virtio_bit(VIRTIO_F_GUEST_TSO6) |
			virtio_bit(VIRTIO_F_GUEST_USO4) |
			virtio_bit(VIRTIO_F_GUEST_USO6);
	if (o->n_queues > 1)
		bits |= virtio_bit(VIRTIO_F_MQ);
	if (o->rss == VIRTIO_ON || (o->rss == VIRTIO_AUTO && o->n_queues > 1))
		bits |= virtio_bit(VIRTIO_F_RSS);
	if (o->hash)
		bits |= virtio_bit(VIRTIO_F_HASH_REPORT);
	if (has_coalescing(o))
		bits |= virtio_bit(VIRTIO_F_NOTF_COAL);
	return bits;
}

/* A required feature, and the error message without it. */
struct demand {
	bool is_made;
	uint32_t feature;
	const char *text;
};

int mri_virtio_choose(uint64_t offered, const struct virtio_options *o,
		      bool is_behind_iommu, bool needs_sg, const char *name,
		      uint64_t *ret_features, struct mr_reason *reterr_reason)
{
	const struct demand demands[] = {
		{ true, VIRTIO_F_VERSION_1,
		  "it is a legacy device; QEMU: disable-modern=off" },
		{ is_behind_iommu, VIRTIO_F_ACCESS_PLATFORM,
		  "it does not offer ACCESS_PLATFORM and would bypass the "
		  "IOMMU; QEMU: iommu_platform=on,disable-legacy=on" },
		{ o->packed == VIRTIO_ON, VIRTIO_F_RING_PACKED,
		  "packed=on: it has no packed rings; QEMU: packed=on" },
		{ o->in_order == VIRTIO_ON, VIRTIO_F_IN_ORDER,
		  "in-order=on: it does not support that; QEMU: in_order=on" },
		{ needs_sg, VIRTIO_F_MRG_RXBUF,
		  "its frames are longer than a buffer, but it does not offer "
		  "MRG_RXBUF: use larger pages, less headroom, or a smaller "
		  "mtu" },
		{ o->csum == VIRTIO_CSUM_ON, VIRTIO_F_GUEST_CSUM,
		  "csum=on: it does not verify checksums" },
		{ o->tso, VIRTIO_F_GUEST_TSO4,
		  "tso=on: it does not merge segments" },
		{ o->n_queues > 1, VIRTIO_F_MQ,
		  "queues: it has only one pair; QEMU: mq=on" },
		{ o->rss == VIRTIO_ON, VIRTIO_F_RSS,
		  "rss=on: it has no RSS; QEMU: rss=on" },
		{ o->hash, VIRTIO_F_HASH_REPORT,
		  "hash=on: it reports no hashes; QEMU: hash=on" },
		{ has_coalescing(o), VIRTIO_F_NOTF_COAL,
		  "rx-usecs, rx-frames, tx-usecs, tx-frames: it does not "
		  "coalesce notifications" },
	};
	uint64_t features = offered & wanted(o, needs_sg), incomplete;

	/* Removing one may remove the dependency of another. */
	while ((incomplete = find_incomplete(features)) != 0)
		features &= ~incomplete;
	for (uint32_t i = 0; i < sizeof(demands) / sizeof(demands[0]); i++)
		if (demands[i].is_made &&
		    !(features & virtio_bit(demands[i].feature)))
			return mr_fail(reterr_reason, -ENOTSUP, "%s: %s", name,
				       demands[i].text);
	*ret_features = features;
	return 0;
}
