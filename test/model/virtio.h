/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtio-net device of version 1 on PCI, in the test process.
 *
 *     driver --> registers, rings --> [ model ] --> wire --> the test
 *     driver <-- rings, interrupts <-- [ model ] <-- wire <-- the test
 *
 * Written from the specification (VIRTIO 1.2, OASIS), not from the driver:
 * model_violation() records what a driver must not do. Faults are in struct
 * vnet_faults, and in struct model_faults, except error_bits, for which virtio
 * has no equivalent. Even if the model is lazy, rx and control doorbells act at
 * once: only tx waits for model_step().
 */
#ifndef MODEL_VIRTIO_H
#define MODEL_VIRTIO_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

/* Feature bits: 2.2.1 and 5.1.3 of the specification. */
enum vnet_feature {
	VNET_CSUM = 0,
	VNET_GUEST_CSUM = 1,
	VNET_CTRL_GUEST_OFFLOADS = 2,
	VNET_MTU = 3,
	VNET_MAC = 5,
	VNET_GUEST_TSO4 = 7,
	VNET_GUEST_TSO6 = 8,
	VNET_GUEST_ECN = 9,
	VNET_GUEST_UFO = 10,
	VNET_HOST_TSO4 = 11,
	VNET_HOST_TSO6 = 12,
	VNET_HOST_ECN = 13,
	VNET_HOST_UFO = 14,
	VNET_MRG_RXBUF = 15,
	VNET_STATUS = 16,
	VNET_CTRL_VQ = 17,
	VNET_CTRL_RX = 18,
	VNET_CTRL_VLAN = 19,
	VNET_CTRL_RX_EXTRA = 20,
	VNET_GUEST_ANNOUNCE = 21,
	VNET_MQ = 22,
	VNET_CTRL_MAC_ADDR = 23,
	VNET_INDIRECT_DESC = 28,
	VNET_EVENT_IDX = 29,
	VNET_VERSION_1 = 32,
	VNET_ACCESS_PLATFORM = 33,
	VNET_RING_PACKED = 34,
	VNET_IN_ORDER = 35,
	VNET_ORDER_PLATFORM = 36,
	VNET_NOTIFICATION_DATA = 38,
	VNET_NOTIF_CONFIG_DATA = 39,
	VNET_RING_RESET = 40,
	VNET_DEVICE_STATS = 50,
	VNET_VQ_NOTF_COAL = 52,
	VNET_NOTF_COAL = 53,
	VNET_GUEST_USO4 = 54,
	VNET_GUEST_USO6 = 55,
	VNET_HOST_USO = 56,
	VNET_HASH_REPORT = 57,
	VNET_GUEST_HDRLEN = 59,
	VNET_RSS = 60,
	VNET_SPEED_DUPLEX = 63,
};

#define VNET_BIT(feature) (UINT64_C(1) << (feature))

/* All of the model's features, including the packed ring and IN_ORDER. */
uint64_t vnet_all_features(void);

enum {
	VNET_MAX_PAIRS = 8,
	VNET_MAX_RING = 1024,
	VNET_MAX_MACS = 64,
	VNET_KEY_BYTES = 40,
	VNET_MAX_TABLE = 128,
	VNET_MAX_PACKET_BYTES = 65536 + 64,
};

/* Capability lists that a driver must survive. */
enum vnet_caps {
	VNET_CAPS_GOOD,
	VNET_CAPS_LOOP, /* the last one points to the first */
	VNET_CAPS_NO_COMMON,
	VNET_CAPS_NO_NOTIFY,
	VNET_CAPS_NO_DEVICE,
	VNET_CAPS_BAR_6,      /* there are BARs 0 to 5 */
	VNET_CAPS_BAR_EMPTY,  /* a BAR that the device does not have */
	VNET_CAPS_BEYOND_BAR, /* begins inside, ends outside */
	VNET_CAPS_OVERFLOW,   /* offset + length overflows 32 bits */
	VNET_CAPS_SHORT,      /* 8 bytes of common configuration */
	VNET_CAPS_MULTIPLIER, /* doorbells far beyond the BAR */
	VNET_CAPS_CUT_OFF,    /* cap_len is that of an empty capability */
	VNET_CAPS_NO_LIST,    /* the status register reports no capabilities */
	/* And some that it must tolerate. */
	VNET_CAPS_UNKNOWN,  /* an unknown type comes first */
	VNET_CAPS_TWICE,    /* a second, worse one of a type comes last */
	VNET_CAPS_UNUSABLE, /* unusable BARs come first */
	VNET_CAPS_OLD, /* common configuration without the last two registers */
	VNET_N_CAPS,
};

/* Zero is the default of each member. */
struct vnet_config {
	uint64_t features;    /* offered; 0: vnet_all_features() */
	uint32_t queue_size;  /* offered; 0: 256 */
	uint32_t n_pairs;     /* 0: 1 */
	uint32_t n_vectors;   /* of MSI-X; 0: one per queue and one more */
	uint32_t multiplier;  /* of notifications, bytes; 0: 4 */
	bool one_doorbell;    /* the multiplier is 0: all queues share one */
	bool is_transitional; /* device id 0x1000 */
	bool is_held;  /* rx and tx queues belong to the test (virtio_core.h) */
	bool polls_tx; /* no tx notifications: polls on each step */
	enum vnet_caps caps;
	uint16_t rss_table; /* maximum of entries; 0: VNET_MAX_TABLE */
	uint16_t mtu_bytes; /* 0: 1500 */
	uint8_t mac[6];     /* 0: 02:00:00:00:00:01 */
};

/* Faults, besides struct model_faults. Zero: none. */
struct vnet_faults {
	bool refuses_features;   /* FEATURES_OK is cleared */
	bool generation_changes; /* on each read */
	bool generation_lags;    /* until the change is read: 4.1.4.3.1 */
	bool refuses_vectors;    /* reads back as none */
	bool queues_missing;     /* queue_size reads 0 */
	bool queue_reset_hangs;  /* while this is set */
	bool link_flaps;         /* between two reads of the configuration */
	uint32_t reset_reads;    /* status is 0 only after that many reads */
	uint32_t needs_reset;    /* after that many used buffers */
	uint32_t reordered;      /* one in N buffers, unless IN_ORDER */
	uint32_t doubled;        /* one in N is used twice */
	uint32_t idx_jumps;      /* one in N: used index beyond the ring */
	uint32_t bad_header;     /* one in N: offsets beyond the packet */
	uint32_t bad_sizes;      /* one in N statistics replies */
	uint32_t bad_types;      /* likewise: another type's */
	bool rx_stats_only;      /* no statistics of tx queues */
	bool no_results;         /* OK, but without the result */
	bool tears_entries;      /* of a used ring: what is on a second page is
				  * lost, as in QEMU behind an IOMMU */
	bool ctrl_refuses;       /* each command: VIRTIO_NET_ERR */
	bool ctrl_hangs;         /* no command is ever answered */
	bool query_hangs; /* nor statistics commands, nor any after them */
	/* Faults after such a command, instead of these; or NULL. */
	const struct vnet_faults *behind_query;
};

/* Offloads of one packet: struct virtio_net_hdr without num_buffers. */
struct vnet_offload {
	uint8_t flags;    /* NEEDS_CSUM 1, DATA_VALID 2 */
	uint8_t gso_type; /* TCPV4 1, TCPV6 4, UDP_L4 5 */
	uint16_t hdr_len, gso_size, csum_start, csum_offset;
};

enum {
	VNET_NEEDS_CSUM = 1,
	VNET_DATA_VALID = 2,
	VNET_GSO_TCPV4 = 1,
	VNET_GSO_TCPV6 = 4,
	VNET_GSO_UDP_L4 = 5,
};

/* What the device did, in packets unless said otherwise. */
struct vnet_stats {
	uint64_t n_sent;      /* taken from tx queues */
	uint64_t n_segmented; /* of these, cut into several frames */
	uint64_t n_summed;    /* of these, whose checksum was completed */
	uint64_t n_doorbells;
	uint64_t n_commands; /* of the control queue */
	uint64_t n_faults;   /* things done wrong on purpose, of all kinds */
	uint64_t n_pair[VNET_MAX_PAIRS]; /* received, by queue pair */
};

/* What the driver has told the device. */
struct vnet_state {
	bool promisc, allmulti;
	bool has_rss, wants_announcement;
	uint16_t n_active_pairs;
	uint64_t features; /* that it took */
	uint32_t coal_max_packets[2 * VNET_MAX_PAIRS];
	uint32_t coal_max_usecs[2 * VNET_MAX_PAIRS];
	uint32_t hash_types;
	uint8_t key[VNET_KEY_BYTES];
};

struct vnet;

/* NULL: no memory. Owner: the caller, until vnet_destroy(). */
struct vnet *vnet_create(const struct vnet_config *config);
void vnet_destroy(struct vnet *v);

/* What mr_ctx_add_pci_device() and model_wire_attach() take; and back. */
struct model *vnet_model(struct vnet *v);
struct vnet *vnet_of(struct model *model);

/* Faults may change while the device runs. */
void vnet_set_faults(struct vnet *v, const struct vnet_faults *faults);

/*
 * A packet past the wire, which carries no offloads and no packets as big, and
 * a step. False: too many wait. What the driver did not ask for is finished by
 * the device first.
 */
bool vnet_inject(struct vnet *v, const uint8_t *bytes, uint32_t n_bytes,
		 const struct vnet_offload *offload);

/* The device asks the driver to announce itself, as after a migration. */
void vnet_announce(struct vnet *v);

/*
 * A hostile device writes two bytes into a queue's memory: at its descriptors
 * (area 0), where the driver writes (1), or where the device does (2).
 */
void vnet_scribble(struct vnet *v, uint32_t queue, uint32_t area,
		   uint32_t offset, uint16_t value);

struct vnet_stats vnet_stats(struct vnet *v);
struct vnet_state vnet_state(struct vnet *v);

/* The hash of a packet, by its kind (VIRTIO_NET_HASH_REPORT_*; 0: none). */
uint32_t vnet_hash(const uint8_t *key, uint32_t types, const uint8_t *bytes,
		   uint32_t n_bytes, uint16_t *ret_kind);

/*
 * Finish a packet as a NIC does: complete its checksum, cut it into frames.
 * Calls @p emit for each. What is wrong with the request, or NULL.
 */
typedef void vnet_emit_fn(void *arg, const uint8_t *bytes, uint32_t n_bytes);
const char *vnet_finish(uint8_t *bytes, uint32_t n_bytes,
			const struct vnet_offload *offload, vnet_emit_fn *emit,
			void *arg);

#endif
