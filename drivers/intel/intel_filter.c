/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which frames the device accepts, up to which length, and to which queues.
 *
 * 16 addresses, the first of them the port's own, match exactly. Multicast
 * addresses are looked up by 12 bits in a table, MTA, so others with the same
 * bits pass.
 */
#include <errno.h>
#include <string.h>

#include "intel.h"

enum { STANDARD_MTU = 1500 };

/* The key of "Verifying the RSS Hash Calculation", Microsoft's NDIS manual. */
static const uint8_t rss_key[INTEL_RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* Address i; NULL: none. */
static void set_rar(struct intel_port *port, uint32_t i, const uint8_t *mac)
{
	uint32_t low, high = 0;

	intel_write(port, INTEL_RAH + 8 * i, 0); /* invalid while RAL changes */
	if (mac == NULL)
		return;
	memcpy(&low, mac, 4);
	memcpy(&high, mac + 4, 2);
	/* Frames go to the first of the pools for virtual machines. */
	if (port->chip->is_igb && !port->chip->is_i210)
		high |= INTEL_RAH_POOL_1;
	intel_write(port, INTEL_RAL + 8 * i, low);
	intel_write(port, INTEL_RAH + 8 * i, high | INTEL_RAH_AV);
}

static void write_mta(struct intel_port *port)
{
	for (uint32_t i = 0; i < INTEL_HASH_WORDS; i++)
		intel_write(port, INTEL_MTA + 4 * i, port->mta[i]);
}

/* Set RCTL and RLPML for frames of this MTU. */
static void limit_frames(struct intel_port *port, uint32_t mtu_bytes)
{
	const uint32_t max_bytes = mtu_bytes + INTEL_LINK_BYTES;

	port->mtu_bytes = mtu_bytes;
	port->rctl &= ~(uint32_t)INTEL_RCTL_LPE;
	if (port->chip->is_igb) {
		intel_write(port, INTEL_RLPML, max_bytes + INTEL_FCS_BYTES);
		port->rctl |= INTEL_RCTL_LPE;
	} else if (mtu_bytes > STANDARD_MTU) {
		port->rctl |= INTEL_RCTL_LPE;
	}
	intel_write(port, INTEL_RCTL, port->rctl);
	for (uint32_t i = 0; i < port->n_queues; i++)
		__atomic_store_n(&port->txqs[i].max_bytes, max_bytes,
				 __ATOMIC_RELAXED);
}

/* Promiscuous mode includes all multicast. */
static uint32_t wanted_modes(const struct intel_port *port)
{
	if (port->options.promisc)
		return INTEL_RCTL_UPE | INTEL_RCTL_MPE;
	return port->options.allmulti ? INTEL_RCTL_MPE : 0;
}

static uint32_t buf_size_bits(uint32_t buf_bytes)
{
	switch (buf_bytes) {
	case 1024:
		return INTEL_RCTL_SZ_1024;
	case 4096:
		return INTEL_RCTL_SZ_4096;
	case 8192:
		return INTEL_RCTL_SZ_8192;
	case 16384:
		return INTEL_RCTL_SZ_16384;
	default:
		return INTEL_RCTL_SZ_2048;
	}
}

void mri_intel_filter_start(struct intel_port *port)
{
	const struct mr_port_info *info = port->base.info;

	set_rar(port, 0, info->has_mac ? info->mac : NULL);
	for (uint32_t i = 1; i < INTEL_RARS; i++)
		set_rar(port, i, NULL);
	port->n_rars = 1;
	write_mta(port);
	for (uint32_t i = 0; i < INTEL_HASH_WORDS; i++)
		intel_write(port, INTEL_VFTA + 4 * i, 0);
	port->rctl = INTEL_RCTL_BAM | INTEL_RCTL_SECRC;
	if (!port->chip->is_igb) /* igb has it in SRRCTL */
		port->rctl |= buf_size_bits(port->buf_bytes);
	port->rctl |= wanted_modes(port);
	limit_frames(port, port->mtu_bytes);
}

/* What the hash covers: TCP, with UDP only igb, by ports; others by addresses.
 */
static uint32_t hash_types(const struct intel_port *port, bool has_ports)
{
	uint32_t mrqc = INTEL_MRQC_IPV4 | INTEL_MRQC_IPV6;

	mrqc |= port->chip->is_igb ? INTEL_MRQC_ENABLE :
				     INTEL_MRQC_ENABLE_82574;
	if (!has_ports)
		return mrqc;
	mrqc |= INTEL_MRQC_TCPV4 | INTEL_MRQC_TCPV6 | INTEL_MRQC_TCPV6_EX;
	if (port->chip->is_igb)
		mrqc |= INTEL_MRQC_UDPV4 | INTEL_MRQC_UDPV6;
	return mrqc;
}

static void write_rss(const struct intel_port *port)
{
	const struct intel_rss *rss = &port->rss;
	const uint32_t shift = port->chip->is_igb ? 0 : INTEL_RETA_82574_SHIFT;

	for (uint32_t i = 0; i < INTEL_RSS_KEY_BYTES; i += 4) {
		uint32_t word;

		memcpy(&word, rss->key + i, 4);
		intel_write(port, INTEL_RSSRK + i, word);
	}
	for (uint32_t i = 0; i < INTEL_RETA_ENTRIES; i += 4) {
		uint32_t word = 0;

		for (uint32_t k = 0; k < 4; k++)
			word |= (uint32_t)rss->table[i + k] << shift << 8 * k;
		intel_write(port, INTEL_RETA + i, word);
	}
	intel_write(port, INTEL_MRQC, rss->mrqc);
}

static void fill_rss(struct intel_port *port, const struct mr_rss_config *c)
{
	struct intel_rss *rss = &port->rss;

	for (uint32_t i = 0; i < INTEL_RSS_KEY_BYTES; i++)
		if (!(c->keep & MR_RSS_KEEP_KEY))
			rss->key[i] = mr_rss_key_byte(c, i);
	for (uint32_t i = 0; i < INTEL_RETA_ENTRIES; i++)
		if (!(c->keep & MR_RSS_KEEP_TABLE))
			rss->table[i] =
				(uint8_t)mr_rss_queue(c, i, port->n_queues);
	if (c->fields != MR_RSS_FIELDS_KEEP)
		rss->mrqc = hash_types(port, c->fields == MR_RSS_FIELDS_PORTS);
}

void mri_intel_rss_start(struct intel_port *port)
{
	const bool is_symmetric = port->options.rss == INTEL_RSS_SYMMETRIC;
	const struct mr_rss_config config = {
		.fields = MR_RSS_FIELDS_PORTS,
		.key = is_symmetric ? NULL : rss_key,
	};

	fill_rss(port, &config);
	/* PCSD: descriptors have the hash, not a checksum of the packet. */
	intel_write(port, INTEL_RXCSUM,
		    INTEL_RXCSUM_IPOFL | INTEL_RXCSUM_TUOFL |
			    INTEL_RXCSUM_PCSD);
	/* A single queue gets the hash, too. */
	write_rss(port);
}

int mri_intel_set_rss(struct mr_port *base, const struct mr_rss_config *config,
		      struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;

	if (config->key != NULL && config->n_key_bytes != INTEL_RSS_KEY_BYTES)
		return mr_fail(reason, -EINVAL,
			       "%s: a key of %u bytes: the device's has %d",
			       base->info->name, config->n_key_bytes,
			       INTEL_RSS_KEY_BYTES);
	if (config->n_entries > INTEL_RETA_ENTRIES)
		return mr_fail(reason, -EINVAL,
			       "%s: an RSS table of %u entries: the device's "
			       "has %d",
			       base->info->name, config->n_entries,
			       INTEL_RETA_ENTRIES);
	if (config->fields == MR_RSS_FIELDS_PORTS && !port->chip->is_igb)
		return mr_fail(reason, -ENOTSUP,
			       "%s: the 82574 does not hash the ports of UDP",
			       base->info->name);
	if (mri_intel_check(port, reason) < 0)
		return -ENODEV;
	fill_rss(port, config);
	write_rss(port);
	return 0;
}

static int set_mode(struct mr_port *base, bool *mode, bool is_on,
		    struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;
	const int err = mri_intel_check(port, reason);

	if (err < 0)
		return err;
	*mode = is_on;
	port->rctl &= ~(uint32_t)(INTEL_RCTL_UPE | INTEL_RCTL_MPE);
	port->rctl |= wanted_modes(port);
	intel_write(port, INTEL_RCTL, port->rctl);
	return 0;
}

int mri_intel_set_promisc(struct mr_port *base, bool on,
			  struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;

	return set_mode(base, &port->options.promisc, on, reason);
}

int mri_intel_set_allmulti(struct mr_port *base, bool on,
			   struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;

	return set_mode(base, &port->options.allmulti, on, reason);
}

int mri_intel_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
		      struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;
	const uint32_t in_bufs =
		port->buf_bytes * (base->info->has_sg ? MR_MAX_SEGS : 1) -
		INTEL_LINK_BYTES;

	if (mtu_bytes > port->chip->max_mtu_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: an MTU of %u: the %s takes at most %u",
			       base->info->name, mtu_bytes, port->chip->name,
			       port->chip->max_mtu_bytes);
	if (mtu_bytes > in_bufs)
		return mr_fail(
			reason, -EINVAL,
			"%s: an MTU of %u: its rx buffers take at most %u; "
			"open it with mtu=%u to use several per frame",
			base->info->name, mtu_bytes, in_bufs, mtu_bytes);
	if (mri_intel_check(port, reason) < 0)
		return -ENODEV;
	limit_frames(port, mtu_bytes);
	return 0;
}

int mri_intel_set_mac(struct mr_port *base, const uint8_t mac[6],
		      struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;
	const int err = mri_intel_check(port, reason);

	if (err < 0)
		return err;
	set_rar(port, 0, mac);
	base->info->has_mac = 1;
	return 0;
}

int mri_intel_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			     uint32_t n, struct mr_reason *reason)
{
	struct intel_port *port = (struct intel_port *)base;
	uint32_t n_unicast = 0;

	for (uint32_t i = 0; i < n; i++)
		n_unicast += !(macs[i][0] & 1);
	if (n_unicast >= INTEL_RARS)
		return mr_fail(reason, -ENOSPC,
			       "%s: the device holds %d unicast addresses in "
			       "addition to its own, not %u",
			       base->info->name, INTEL_RARS - 1, n_unicast);
	if (mri_intel_check(port, reason) < 0)
		return -ENODEV;
	memset(port->mta, 0, sizeof(port->mta));
	n_unicast = 0;
	for (uint32_t i = 0; i < n; i++) {
		/* RCTL.MO 0: bits 47 to 36 of the address. */
		const uint32_t hash =
			(uint32_t)macs[i][5] << 4 | macs[i][4] >> 4;

		if (macs[i][0] & 1)
			port->mta[hash / 32] |= 1u << hash % 32;
		else
			set_rar(port, ++n_unicast, macs[i]);
	}
	for (uint32_t i = n_unicast + 1; i < port->n_rars; i++)
		set_rar(port, i, NULL);
	port->n_rars = n_unicast + 1;
	write_mta(port);
	return 0;
}
