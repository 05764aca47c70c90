/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of rules, as the files of this driver share it. */
#ifndef XDP_PROGRAM_RULE_SET_H
#define XDP_PROGRAM_RULE_SET_H

#include "program/rules.h"
#include "xdp.h"
#include "xdp_rules.skel.h"

enum { XDP_RULES_PORTS = 64 };

struct xdp_rules {
	struct mr_rules base;
	/* By port; the first has the maps. The tracer counts what is lost. */
	struct xdp_rules_bpf *programs[XDP_RULES_PORTS];
	/* Copies with a filter, or bound to the device; -1: none. */
	int copy_fds[XDP_RULES_PORTS];
	struct xdp_rules_bpf *tracer; /* NULL: the kernel refuses it, or: */
	int tracer_fds[2];            /* links of another process's; -1: none */
	struct mr_parcel *parcel;     /* while maps are taken from it */
	uint64_t features[XDP_RULES_PORTS]; /* as the kernel said last */
	uint32_t queue_base[XDP_RULES_PORTS];
	uint32_t n_queues;
	uint32_t n_buckets; /* of flows: a power of two */
	bool is_simulated;  /* tests: xdp_rule_port.now_ns is the time */
	uint64_t netns;
	struct xdp_rule_slot *slots;
	struct xdp_rule_port *ports;
	struct xdp_rule_queue *queues;
	struct xdp_rule_cell *cells;
	struct xdp_flow_bucket *flows;
	struct xdp_hop *hops;
};

/* Queues of port i that its rules count for: those added later have none. */
static inline uint32_t xdp_rules_n_queues(const struct xdp_rules *rules,
					  uint32_t i)
{
	const uint32_t end = i + 1 < rules->base.n_ports ?
				     rules->queue_base[i + 1] :
				     rules->n_queues;

	return end - rules->queue_base[i];
}

static inline struct xdp_port *xdp_rules_port(const struct xdp_rules *rules,
					      uint32_t i)
{
	return (struct xdp_port *)rules->base.ports[i];
}

static inline uint64_t xdp_rules_get(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Load the programs for the ports and map their arrays, without attaching them;
 * and the reverse, also after a failure. 0, or a negative errno. */
int mri_xdp_rules_load(struct xdp_rules *rules);
void mri_xdp_rules_unload(struct xdp_rules *rules);

/* A set without fds. */
void mri_xdp_rules_begin(struct xdp_rules *rules);
/* Whether the map belongs to the set, not to a port. */
bool mri_xdp_rules_has_map(const struct xdp_rules_bpf *skeleton,
			   const struct bpf_map *map);
/* Ask the kernel what each port can send. */
void mri_xdp_rules_read_features(struct xdp_rules *rules);

/* Of struct mr_rules_ops: here, in rule_hand_over.c and in rules.c. */
void mri_xdp_rules_close(struct mr_rules *base);
int mri_xdp_rules_offer(struct mr_rules *base, struct mr_parcel *parcel,
			struct mr_reason *reterr_reason);
int mri_xdp_rules_take(struct mr_rules *base, struct mr_parcel *parcel,
		       struct mr_reason *reterr_reason);
uint32_t mri_xdp_rules_add(struct mr_rules *base, const uint32_t *ids,
			   uint32_t n);
void mri_xdp_rules_remove(struct mr_rules *base, const uint32_t *ids,
			  uint32_t n);
void mri_xdp_rules_set(struct mr_rules *base, uint32_t id, uint32_t to,
		       bool is_active);
void mri_xdp_rules_read(const struct mr_rules *base, const uint32_t *ids,
			uint32_t n, struct mr_rule_stats *ret_stats);
void mri_xdp_rules_link(struct mr_rules *base, uint32_t i,
			const struct mr_rules_link *link);
void mri_xdp_rules_hop(struct mr_rules *base, uint32_t number, uint64_t mac,
		       uint64_t until_ns);
void mri_xdp_rules_flush(struct mr_rules *base);

#endif
