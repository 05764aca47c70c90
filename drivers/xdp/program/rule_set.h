/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of rules, as the files of this driver share it. */
#ifndef XDP_PROGRAM_RULE_SET_H
#define XDP_PROGRAM_RULE_SET_H

#include "xdp.h"
#include "program/rules.h"
#include "xdp_rules.skel.h"

enum { XDP_RULES_PORTS = 64 };

struct xdp_rules {
	struct mr_rules base;
	/* By port; the first has the maps. The tracer counts what is lost. */
	struct xdp_rules_bpf *programs[XDP_RULES_PORTS];
	/* Copies with a filter, or bound to the device; -1: none. */
	int copy_fds[XDP_RULES_PORTS];
	struct xdp_rules_bpf *tracer;       /* NULL: the kernel refuses it */
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

/* program/rules.c: struct mr_rules_ops. */
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
