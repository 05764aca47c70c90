/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a set. A change of a rule's slot takes effect with the next
 * frame. A hash table in mapped memory finds the slot by the ends of a flow;
 * one of the kernel's finds it by a station's address.
 *
 * Source: linux/Documentation/bpf/map_hash.rst.
 */
#include <arpa/inet.h>
#include <string.h>

#include <bpf/bpf.h>

#include <millrace/wire.h>

#include "program/rule_set.h"
#include "xdp.h"

static struct xdp_rules *rules_of(struct mr_rules *base)
{
	return (struct xdp_rules *)base;
}

static uint64_t station_key(const struct mr_rule *rule)
{
	uint64_t key = 0;

	memcpy(&key, rule->mac, sizeof(rule->mac));
	return key;
}

static void fill_word(uint32_t *word, uint32_t id, uint32_t bits)
{
	const uint32_t generation = id >> XDP_RULE_GENERATION_SHIFT;
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	/* A thread that was late finds another rule there: leave it alone. */
	while (old >> XDP_RULE_GENERATION_SHIFT == generation &&
	       !__atomic_compare_exchange_n(
		       word, &old,
		       bits | generation << XDP_RULE_GENERATION_SHIFT, true,
		       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void mri_xdp_rules_set(struct mr_rules *base, uint32_t id, uint32_t to,
		       bool is_active)
{
	const uint32_t slot = mr_rule_slot(id);
	const struct mr_rule *rule = &base->rules[slot];
	const uint32_t bits =
		(is_active ? XDP_RULE_ACTIVE : 0) |
		(rule->action == MR_RULE_DROP ? XDP_RULE_DROP : 0);

	if (rule->match == MR_RULE_FLOW) {
		fill_word(&base->ways[slot][0].word, id, bits | rule->to);
		fill_word(&base->ways[slot][1].word, id, bits | rule->port);
	} else {
		fill_word(&rules_of(base)->slots[slot].word, id, bits | to);
	}
}

static void store_generation(uint32_t *word, uint32_t id)
{
	__atomic_store_n(word,
			 id >> XDP_RULE_GENERATION_SHIFT
					 << XDP_RULE_GENERATION_SHIFT,
			 __ATOMIC_RELEASE);
}

/* Give the slot to a generation, with a rule that is inactive. */
static void reset_slot(struct xdp_rules *rules, uint32_t id)
{
	const uint32_t slot = mr_rule_slot(id);

	store_generation(&rules->slots[slot].word, id);
	rules->slots[slot].seen_ns = rules->slots[slot].held_ns = 0;
	for (uint32_t w = 0; w < MR_FLOW_WAYS && rules->base.n_hops > 0; w++)
		store_generation(&rules->base.ways[slot][w].word, id);
}

static struct mr_flow_ends reverse_ends(const struct mr_flow_ends *ends)
{
	return (struct mr_flow_ends){ .src = ends->dst,
				      .dst = ends->src,
				      .sport = ends->dport,
				      .dport = ends->sport };
}

/* A frame that arrives with the ends from leaves with as. Its first frame gets
 * a ticket: others may have been received before the rule was added. */
static void fill_way(struct mr_flow_way *way, const struct mr_flow_ends *from,
		     const struct mr_flow_ends *as)
{
	const uint32_t addrs = mr_csum_delta32(from->src, as->src) +
			       mr_csum_delta32(from->dst, as->dst);
	const uint32_t ports = mr_csum_delta16(from->sport, as->sport) +
			       mr_csum_delta16(from->dport, as->dport);

	*way = (struct mr_flow_way){
		.word = way->word,
		.confirmed = XDP_FLOW_NEW,
		.src = as->src,
		.dst = as->dst,
		.sport = as->sport,
		.dport = as->dport,
		.addr_delta = mr_csum_fold32(addrs),
		.l4_delta = mr_csum_fold32(addrs + ports),
		.hop = MR_FLOW_HOP_NONE,
	};
}

/* A direction's key, as its frames arrive. */
static struct xdp_flow_key flow_key(const struct xdp_rules *rules,
				    const struct mr_rule *rule, uint32_t way)
{
	const struct mr_flow_ends back = reverse_ends(&rule->as);
	const struct mr_flow_ends *ends = way == 0 ? &rule->from : &back;
	const uint32_t port = way == 0 ? rule->port : rule->to;

	return (struct xdp_flow_key){
		.src = ends->src,
		.dst = ends->dst,
		.sport = ends->sport,
		.dport = ends->dport,
		.origin =
			xdp_flow_origin(&rules->ports[port], port, rule->proto),
	};
}

/* Find a reference in the two buckets of a hash; NULL: there is none. */
static __u64 *find_ref(const struct xdp_rules *rules, uint64_t hash,
		       uint64_t wanted, uint64_t mask)
{
	const uint64_t idx = hash & (rules->n_buckets - 1);

	for (uint32_t i = 0; i < 2 * XDP_BUCKET_REFS; i++) {
		__u64 *ref = &rules->flows[idx ^ i / XDP_BUCKET_REFS]
				      .refs[i % XDP_BUCKET_REFS];

		if ((*ref & mask) == wanted)
			return ref;
	}
	return NULL;
}

/* Enter a rule's ends into the hash table. False: another rule has them, or
 * there is no room. */
static bool enter_way(struct xdp_rules *rules, uint32_t id, uint32_t way)
{
	const uint32_t slot = mr_rule_slot(id);
	const struct xdp_flow_key key =
		flow_key(rules, &rules->base.rules[slot], way);
	const uint64_t hash = xdp_flow_hash(&key, rules->base.magic);
	const uint64_t tag = xdp_flow_tag(hash);
	__u64 *ref = find_ref(rules, hash, 0, UINT64_MAX);

	if (ref == NULL || find_ref(rules, hash, tag, XDP_REF_TAG) != NULL)
		return false;
	rules->base.ways[slot][way].origin = key.origin;
	__atomic_store_n(ref, tag | (uint64_t)way << XDP_REF_WAY | id,
			 __ATOMIC_RELEASE);
	return true;
}

static void leave_way(struct xdp_rules *rules, uint32_t id, uint32_t way)
{
	const uint32_t slot = mr_rule_slot(id);
	struct xdp_flow_key key =
		flow_key(rules, &rules->base.rules[slot], way);
	uint64_t hash;
	__u64 *ref;

	key.origin = rules->base.ways[slot][way].origin;
	hash = xdp_flow_hash(&key, rules->base.magic);
	ref = find_ref(rules, hash,
		       xdp_flow_tag(hash) | (uint64_t)way << XDP_REF_WAY | id,
		       UINT64_MAX);
	if (ref != NULL)
		__atomic_store_n(ref, 0, __ATOMIC_RELEASE);
}

static bool enter_flow(struct xdp_rules *rules, uint32_t id)
{
	const struct mr_rule *rule = &rules->base.rules[mr_rule_slot(id)];
	struct mr_flow_way *ways = rules->base.ways[mr_rule_slot(id)];
	const struct mr_flow_ends there = reverse_ends(&rule->as);
	const struct mr_flow_ends back = reverse_ends(&rule->from);

	fill_way(&ways[0], &rule->from, &rule->as);
	fill_way(&ways[1], &there, &back);
	if (!enter_way(rules, id, 0))
		return false;
	if (enter_way(rules, id, 1))
		return true;
	leave_way(rules, id, 0);
	return false;
}

static bool enter_rule(struct xdp_rules *rules, uint32_t id)
{
	const int map_fd = bpf_map__fd(rules->programs[0]->maps.stations);
	const struct mr_rule *rule = &rules->base.rules[mr_rule_slot(id)];
	const uint64_t key = station_key(rule);

	reset_slot(rules, id);
	mri_xdp_rules_set(&rules->base, id, rule->to, 0);
	if (rule->match == MR_RULE_FLOW)
		return enter_flow(rules, id);
	rules->slots[mr_rule_slot(id)].mac = key;
	if (rule->match == MR_RULE_STATION)
		return bpf_map_update_elem(map_fd, &key, &id, BPF_NOEXIST) == 0;
	if (rules->ports[rule->port].any != 0)
		return false;
	__atomic_store_n(&rules->ports[rule->port].any, id + 1,
			 __ATOMIC_RELEASE);
	return true;
}

uint32_t mri_xdp_rules_add(struct mr_rules *base, const uint32_t *ids,
			   uint32_t n)
{
	uint32_t n_added = 0;

	while (n_added < n && enter_rule(rules_of(base), ids[n_added]))
		n_added++;
	return n_added;
}

static void leave_rule(struct xdp_rules *rules, uint32_t id)
{
	const struct xdp_rules_bpf *first = rules->programs[0];
	const struct mr_rule *rule = &rules->base.rules[mr_rule_slot(id)];
	const uint64_t key = station_key(rule);

	switch (rule->match) {
	case MR_RULE_FLOW:
		for (uint32_t w = 0; w < MR_FLOW_WAYS; w++)
			leave_way(rules, id, w);
		break;
	case MR_RULE_STATION:
		(void)bpf_map_delete_elem(bpf_map__fd(first->maps.stations),
					  &key);
		break;
	default:
		__atomic_store_n(&rules->ports[rule->port].any, 0,
				 __ATOMIC_RELEASE);
	}
}

void mri_xdp_rules_remove(struct mr_rules *base, const uint32_t *ids,
			  uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		leave_rule(rules_of(base), ids[i]);
		/* Of the next generation: a late change of it does nothing. */
		reset_slot(rules_of(base),
			   ids[i] + (1u << XDP_RULE_GENERATION_SHIFT));
	}
}

void mri_xdp_rules_read(const struct mr_rules *base, const uint32_t *ids,
			uint32_t n, struct mr_rule_stats *ret_stats)
{
	const struct xdp_rules *rules = (const struct xdp_rules *)base;

	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_rule_slot *slot =
			&rules->slots[mr_rule_slot(ids[i])];

		ret_stats[i] = (struct mr_rule_stats){
			.seen_ns = xdp_rules_get(&slot->seen_ns),
			.held_ns = xdp_rules_get(&slot->held_ns),
		};
	}
}

void mri_xdp_rules_link(struct mr_rules *base, uint32_t i,
			const struct mr_rules_link *link)
{
	struct xdp_rule_port *port = &rules_of(base)->ports[i];
	const uint16_t mtu_bytes = link->mtu_bytes < UINT16_MAX ?
					   (uint16_t)link->mtu_bytes :
					   UINT16_MAX;
	uint64_t mac = 0;

	memcpy(&mac, link->mac, sizeof(link->mac));
	/* While rules match nothing, frames get no tickets, and may be
	 * overtaken: not for nothing. */
	if (port->mac == mac && port->vlan == htons(link->vlan) &&
	    port->mtu_bytes == mtu_bytes)
		return;
	__atomic_store_n(&port->mtu_bytes, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&port->mac, mac, __ATOMIC_RELAXED);
	__atomic_store_n(&port->vlan, htons(link->vlan), __ATOMIC_RELAXED);
	__atomic_store_n(&port->mtu_bytes, mtu_bytes, __ATOMIC_RELEASE);
}

void mri_xdp_rules_hop(struct mr_rules *base, uint32_t number, uint64_t mac,
		       uint64_t until_ns)
{
	struct xdp_hop *hop =
		&rules_of(base)->hops[number & ((1u << MR_FLOW_HOP_BITS) - 1)];
	const uint64_t generation = number >> MR_FLOW_HOP_BITS;

	/* Never the old address until the new time. */
	if (hop->mac != mac || hop->generation != generation)
		__atomic_store_n(&hop->until_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&hop->generation, generation, __ATOMIC_RELEASE);
	__atomic_store_n(&hop->mac, mac, __ATOMIC_RELEASE);
	__atomic_store_n(&hop->until_ns, until_ns, __ATOMIC_RELEASE);
}

void mri_xdp_rules_flush(struct mr_rules *base)
{
	const uint32_t epoch = rules_of(base)->ports[0].epoch + 1;

	for (uint32_t i = 0; i < base->n_ports; i++)
		__atomic_store_n(&rules_of(base)->ports[i].epoch, epoch,
				 __ATOMIC_RELEASE);
}
