/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program with rules and the driver share: arrays in mapped memory. */
#ifndef XDP_PROGRAM_RULES_H
#define XDP_PROGRAM_RULES_H

#include <millrace/experimental/flow_way.h>

/* struct xdp_rule_slot.word, mr_flow_way.word: the port to send from, how, and
 * whose it is. */
enum {
	XDP_RULE_TO = 0xffff,
	XDP_RULE_ACTIVE = 1 << 16,
	XDP_RULE_DROP = 1 << 17,
	XDP_RULE_GENERATION_SHIFT = 24, /* as in the rule's id */
};

/* A rule, by its slot. */
struct xdp_rule_slot {
	__u32 word; /* written whole, so that a frame sees all of a change */
	__u32 reserved;
	__u64 seen_ns; /* its source was seen */
	__u64 held_ns; /* a frame went to user space because it is inactive */
	__u64 mac;     /* of a station, in memory order */
};

/* A port, by its index in the set. */
struct xdp_rule_port {
	__u32 any;          /* id + 1 of its rule for each frame; 0: none */
	__u32 max_bytes;    /* longest frame it can send now; 0: none */
	__u32 max_sg_bytes; /* the same, of frames in several buffers */
	__u32 is_off;       /* what it receives goes to user space */
	/* For flows. */
	__u64 mac;       /* ours, in memory order */
	__u16 vlan;      /* network order; 0: none */
	__u16 mtu_bytes; /* 0: flows match nothing that it receives */
	__u32 epoch;     /* of the rules that match */
	__u64 now_ns;    /* the time, if it is simulated */
	__u64 reserved[3];
};

/* 1 + the ids of two stations' rules, of which one sent to the other. */
struct xdp_pair {
	__u32 from, to;
};

/*
 * A reference to a flow: the id of its rule, then a bit for the direction, then
 * a tag; 0: none.
 */
#define XDP_REF_TAG 0xfffffffe00000000

enum { XDP_REF_WAY = 32, XDP_BUCKET_REFS = 8 };

/* mr_flow_way.confirmed, while there was no ticket. */
#define XDP_FLOW_NEW 0xffffffffu

/* A hash table of references in cache lines. A flow is in the bucket of its
 * hash, or in the other bucket of the pair. */
struct xdp_flow_bucket {
	__u64 refs[XDP_BUCKET_REFS];
};

/* The fields of a frame that identify its flow. */
struct xdp_flow_key {
	__u32 src, dst;
	__u16 sport, dport;
	__u32 origin;
};

/* A flow's port, protocol and epoch. Rules of other epochs match nothing. */
static inline __u32 xdp_flow_origin(const struct xdp_rule_port *port,
				    __u32 port_idx, __u32 proto)
{
	return port->epoch << 16 | port_idx << 8 | proto;
}

/* Spreads keys evenly, even keys chosen by someone who does not know the seed.
 */
static inline __u64 xdp_flow_hash(const struct xdp_flow_key *key, __u32 seed)
{
	__u64 hash = (__u64)key->src << 32 | key->dst;

	hash = (hash ^ seed) * 0x9e3779b97f4a7c15;
	hash ^= hash >> 32;
	hash ^= (__u64)key->origin << 32 | (__u32)key->dport << 16 | key->sport;
	hash *= 0xd6e8feb86659fd93;
	hash ^= hash >> 32;
	return hash * 0xd6e8feb86659fd93;
}

/* The tag of a reference, in its bit position; never 0. */
static inline __u64 xdp_flow_tag(__u64 hash)
{
	return (hash & XDP_REF_TAG) | (1ull << (XDP_REF_WAY + 1));
}

/* A flow's directions, by the slot of its rule. */
struct xdp_flow {
	struct mr_flow_way ways[MR_FLOW_WAYS];
};

/* How to reach a next hop. */
struct xdp_hop {
	__u64 mac;
	__u64 until_ns; /* 0: not at all */
	__u64 asked_ns; /* when user space last saw a frame after that */
	__u64 generation;
};

/* Two of mr_rules_old_ids(): elements of array maps have 8 bytes or more. */
struct xdp_old_ids {
	struct mr_flow_old_id pair[2];
};

/* An rx queue; one CPU at a time runs the program for it. */
struct xdp_rule_queue {
	__u64 dropped;
	/* To user space, although a rule matched, because */
	__u64 no_target; /* the target cannot send now */
	__u64 too_long;  /* the frame is too long for the target */
	__u64 partial;   /* its checksum may be partial */
	__u64 no_hop;    /* the next hop is unknown, or to be asked again */
	__u64 segment;   /* SYN, FIN, RST, or not where it is expected */
	__u32 next_id;   /* of packets that get one */
	__u32 reserved;
	__u64 reserved_too;
};

/* What an rx queue gave a target; as many per queue as there are ports. */
struct xdp_rule_cell {
	__u64 frames;
	__u64 bytes;
	__u64 reserved[6];
};

/* Whose frames are lost: from an interface, to an interface or map index. */
struct xdp_rule_loss {
	__u64 netns; /* cookie */
	__u32 from;
	__u32 to;
	__u32 is_index;
	__u32 reserved;
};

#endif
