/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions of the specification: registers, features, rings, commands.
 *
 * Source: OASIS virtio 1.2 and the 1.4 draft: 2.7 "Split Virtqueues", 2.8
 * "Packed Virtqueues", 4.1 "Virtio Over PCI Bus", 5.1 "Network Device", 6
 * "Reserved Feature Bits". All of it is little-endian.
 */
#ifndef VIRTIO_VIRTIO_SPEC_H
#define VIRTIO_VIRTIO_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/frame.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "rings and headers are used as they lie");

/* Bounds that both sides have chosen. */
enum {
	VIRTIO_MAX_PAIRS = 64,
	VIRTIO_MIN_FRAME_BYTES = 14, /* an Ethernet header */
	/* What a frame has besides the packet: that, and a VLAN tag. */
	VIRTIO_LINK_BYTES = 14 + 4,
	/* Segments of one TCP frame: an IPv4 packet of 64 KiB. */
	VIRTIO_MAX_GSO_BYTES = 65535 + VIRTIO_LINK_BYTES,
};

/* 4.1.2, 4.1.4: locations of registers. */
enum {
	VIRTIO_PCI_VENDOR = 0x1af4,
	VIRTIO_PCI_NET = 0x1041,
	VIRTIO_PCI_NET_TRANSITIONAL = 0x1000,

	VIRTIO_CAP_ID = 0x09, /* vendor specific */
	VIRTIO_CAP_COMMON = 1,
	VIRTIO_CAP_NOTIFY = 2,
	VIRTIO_CAP_DEVICE = 4,
	VIRTIO_CAP_BYTES = 16,
	VIRTIO_CAP_NOTIFY_BYTES = 20,
};

/* struct virtio_pci_cap, 4.1.4. */
struct virtio_cap {
	uint8_t id, next, n_bytes, type;
	uint8_t bar, cap_id, padding[2];
	uint32_t offset, length;
	uint32_t notify_off_multiplier; /* VIRTIO_CAP_NOTIFY only */
};
_Static_assert(sizeof(struct virtio_cap) == VIRTIO_CAP_NOTIFY_BYTES, "4.1.4.4");

/* struct virtio_pci_common_cfg, 4.1.4.3: offsets. */
enum {
	VIRTIO_DEVICE_FEATURE_SELECT = 0x00,
	VIRTIO_DEVICE_FEATURE = 0x04,
	VIRTIO_DRIVER_FEATURE_SELECT = 0x08,
	VIRTIO_DRIVER_FEATURE = 0x0c,
	VIRTIO_CONFIG_VECTOR = 0x10,     /* 16 bits */
	VIRTIO_NUM_QUEUES = 0x12,        /* 16 */
	VIRTIO_STATUS = 0x14,            /* 8 */
	VIRTIO_CONFIG_GENERATION = 0x15, /* 8 */
	VIRTIO_QUEUE_SELECT = 0x16,      /* 16; also those below */
	VIRTIO_QUEUE_SIZE = 0x18,
	VIRTIO_QUEUE_VECTOR = 0x1a,
	VIRTIO_QUEUE_ENABLE = 0x1c,
	VIRTIO_QUEUE_NOTIFY_OFF = 0x1e,
	VIRTIO_QUEUE_DESC = 0x20,   /* 64, as two of 32 */
	VIRTIO_QUEUE_DRIVER = 0x28, /* 64 */
	VIRTIO_QUEUE_DEVICE = 0x30, /* 64 */
	VIRTIO_QUEUE_NOTIF_CONFIG_DATA = 0x38,
	VIRTIO_QUEUE_RESET = 0x3a,
	VIRTIO_COMMON_BYTES = 0x38,     /* that every device has */
	VIRTIO_COMMON_ALL_BYTES = 0x3c, /* with NOTIF_CONFIG_DATA, RING_RESET */

	VIRTIO_NO_VECTOR = 0xffff,
	VIRTIO_MAX_QUEUE_SIZE = 32768,
};

/* Device status, 2.1. */
enum {
	VIRTIO_STATUS_ACKNOWLEDGE = 1,
	VIRTIO_STATUS_DRIVER = 2,
	VIRTIO_STATUS_DRIVER_OK = 4,
	VIRTIO_STATUS_FEATURES_OK = 8,
	VIRTIO_STATUS_NEEDS_RESET = 64,
	VIRTIO_STATUS_GONE = 0xff,
};

/* Feature bits: 5.1.3 and 6. */
enum {
	VIRTIO_F_CSUM = 0,
	VIRTIO_F_GUEST_CSUM = 1,
	VIRTIO_F_MTU = 3,
	VIRTIO_F_MAC = 5,
	VIRTIO_F_GUEST_TSO4 = 7,
	VIRTIO_F_GUEST_TSO6 = 8,
	VIRTIO_F_GUEST_ECN = 9,
	VIRTIO_F_HOST_TSO4 = 11,
	VIRTIO_F_HOST_TSO6 = 12,
	VIRTIO_F_HOST_ECN = 13,
	VIRTIO_F_MRG_RXBUF = 15,
	VIRTIO_F_STATUS = 16,
	VIRTIO_F_CTRL_VQ = 17,
	VIRTIO_F_CTRL_RX = 18,
	VIRTIO_F_GUEST_ANNOUNCE = 21,
	VIRTIO_F_MQ = 22,
	VIRTIO_F_CTRL_MAC_ADDR = 23,
	VIRTIO_F_INDIRECT_DESC = 28,
	VIRTIO_F_EVENT_IDX = 29,
	VIRTIO_F_VERSION_1 = 32,
	VIRTIO_F_ACCESS_PLATFORM = 33,
	VIRTIO_F_RING_PACKED = 34,
	VIRTIO_F_IN_ORDER = 35,
	VIRTIO_F_ORDER_PLATFORM = 36,
	VIRTIO_F_NOTIFICATION_DATA = 38,
	VIRTIO_F_NOTIF_CONFIG_DATA = 39,
	VIRTIO_F_RING_RESET = 40,
	VIRTIO_F_DEVICE_STATS = 50,
	VIRTIO_F_NOTF_COAL = 53,
	VIRTIO_F_GUEST_USO4 = 54,
	VIRTIO_F_GUEST_USO6 = 55,
	VIRTIO_F_HOST_USO = 56,
	VIRTIO_F_HASH_REPORT = 57,
	VIRTIO_F_RSS = 60,
	VIRTIO_F_SPEED_DUPLEX = 63,
};

static inline uint64_t virtio_bit(uint32_t feature)
{
	return UINT64_C(1) << feature;
}

/* struct virtio_net_config, 5.1.4: offsets, in the device's capability. */
enum {
	VIRTIO_NET_MAC = 0,
	VIRTIO_NET_STATUS = 6,
	VIRTIO_NET_MAX_PAIRS = 8,
	VIRTIO_NET_MTU = 10,
	VIRTIO_NET_SPEED = 12,
	VIRTIO_NET_RSS_MAX_KEY = 17,
	VIRTIO_NET_RSS_MAX_TABLE = 18,
	VIRTIO_NET_HASH_TYPES = 20,

	VIRTIO_NET_STATUS_LINK_UP = 1,
	VIRTIO_NET_STATUS_ANNOUNCE = 2,
};

/* MR_HASH_* by hash_report, 5.1.6.4.4. */
enum { VIRTIO_N_HASH_TYPES = 10 };
static const uint8_t virtio_hash_types[VIRTIO_N_HASH_TYPES] = {
	[1] = MR_HASH_IPV4,
	[2] = MR_HASH_IPV4 | MR_HASH_L4 | MR_HASH_TCP,
	[3] = MR_HASH_IPV4 | MR_HASH_L4 | MR_HASH_UDP,
	[4] = MR_HASH_IPV6,
	[5] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_TCP,
	[6] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_UDP,
	[7] = MR_HASH_IPV6,
	[8] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_TCP,
	[9] = MR_HASH_IPV6 | MR_HASH_L4 | MR_HASH_UDP,
};

/* struct virtio_net_hdr, 5.1.6; the last three only with HASH_REPORT. */
struct virtio_header {
	uint8_t flags;
	uint8_t gso_type;
	uint16_t header_bytes;
	uint16_t gso_bytes;
	uint16_t csum_start;
	uint16_t csum_offset;
	uint16_t n_buffers; /* rx only; 0 in tx */
	uint32_t hash;
	uint16_t hash_report;
	uint16_t padding;
};

enum {
	VIRTIO_HEADER_BYTES = 12,
	VIRTIO_HASH_HEADER_BYTES = 20,

	VIRTIO_HEADER_NEEDS_CSUM = 1,
	VIRTIO_HEADER_DATA_VALID = 2,

	VIRTIO_GSO_NONE = 0,
	VIRTIO_GSO_TCPV4 = 1,
	VIRTIO_GSO_TCPV6 = 4,
	VIRTIO_GSO_UDP_L4 = 5,
	VIRTIO_GSO_ECN = 0x80,
};
_Static_assert(sizeof(struct virtio_header) == VIRTIO_HASH_HEADER_BYTES,
	       "5.1.6");
_Static_assert(offsetof(struct virtio_header, hash) == VIRTIO_HEADER_BYTES,
	       "5.1.6");

/* Split ring, 2.7. */
struct virtio_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};

struct virtio_avail {
	uint16_t flags;
	uint16_t idx;
	uint16_t ring[]; /* then used_event */
};

struct virtio_used {
	uint16_t flags;
	uint16_t idx;
	/* Then the ring, id | written bytes << 32, and avail_event. */
};

/* An entry of the used ring, which the driver may have put anywhere. */
struct virtio_used_entry {
	uint32_t id;
	uint32_t n_bytes;
};

enum {
	VIRTIO_DESC_NEXT = 1,
	VIRTIO_DESC_WRITE = 2,
	VIRTIO_DESC_INDIRECT = 4,
	VIRTIO_AVAIL_NO_INTERRUPT = 1,
	VIRTIO_USED_NO_NOTIFY = 1,
};

/* Packed ring, 2.8. */
struct virtio_packed_desc {
	uint64_t addr;
	uint64_t word; /* len | id << 32 | flags << 48: written in one store */
};

/* As one word: offset of a descriptor | wrap << 15 | flags << 16. */
enum {
	VIRTIO_PACKED_AVAIL = 1 << 7,
	VIRTIO_PACKED_USED = 1 << 15,
	VIRTIO_EVENT_ENABLE = 0,
	VIRTIO_EVENT_DISABLE = 1,
	VIRTIO_EVENT_DESC = 2, /* at one descriptor, with EVENT_IDX */
};

/* Commands of the control queue, 5.1.6.5: class << 8 | command. */
enum {
	VIRTIO_CTRL_PROMISC = 0x0000,
	VIRTIO_CTRL_ALLMULTI = 0x0001,
	VIRTIO_CTRL_MAC_TABLE = 0x0100,
	VIRTIO_CTRL_MAC_ADDR = 0x0101,
	VIRTIO_CTRL_ANNOUNCE_ACK = 0x0300,
	VIRTIO_CTRL_MQ_PAIRS = 0x0400,
	VIRTIO_CTRL_MQ_RSS = 0x0401,
	VIRTIO_CTRL_MQ_HASH = 0x0402,
	VIRTIO_CTRL_COAL_TX = 0x0600,
	VIRTIO_CTRL_COAL_RX = 0x0601,
	VIRTIO_CTRL_STATS_QUERY = 0x0800,
	VIRTIO_CTRL_STATS_GET = 0x0801,
	VIRTIO_CTRL_OK = 0,
};

/* Hash types, 5.1.6.4.3.1. */
enum {
	VIRTIO_HASH_IPV4 = 1 << 0,
	VIRTIO_HASH_TCPV4 = 1 << 1,
	VIRTIO_HASH_UDPV4 = 1 << 2,
	VIRTIO_HASH_IPV6 = 1 << 3,
	VIRTIO_HASH_TCPV6 = 1 << 4,
	VIRTIO_HASH_UDPV6 = 1 << 5,
};

#endif
