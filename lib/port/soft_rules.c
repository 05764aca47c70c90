/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules in software, for drivers that request them (mr_driver.has_soft_rules):
 * for tests, and to develop applications without a device that has rules.
 *
 *     driver's rx burst --> rule? --yes--> driver's tx burst of another port
 *                             |
 *                             no --> application
 *
 * While a set is open, functions of this file replace those of its ports'
 * queues; otherwise rules cost nothing. A rule sends in the thread that
 * receives, from a tx queue that may belong to another thread, so each call
 * holds the set's lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <millrace/driver.h>

#include "base/base.h"
#include "port/offload.h"
#include "port/soft_rules.h"

enum {
	TO_USER = -1, /* destinations, besides a port's index */
	TO_NOBODY = -2,
	MAC_BYTES = 6,
	HEADER_BYTES = 14,
};

/* A rule, by its slot. References to it are numbers plus 1. */
struct slot {
	uint32_t id;
	uint32_t next; /* with this hash */
	uint32_t to;
	bool is_active;
	struct mr_rule_stats stats;
};

/* The original functions of a port's rx and tx queue of one index. */
struct soft_queue {
	mr_rx_burst_fn *rx_burst;
	struct mri_tx_calls tx;
	bool was_cut;  /* the ring took only part of the last burst */
	bool is_stale; /* was_cut, but a rule has sent since */
};

struct soft_port {
	uint32_t any; /* the rule for all frames */
	uint32_t can_send;
	struct soft_queue *queues; /* NULL: not open */
	uint64_t attempted, drops, bytes;
};

struct soft_rules {
	struct mr_rules base;
	pthread_mutex_t lock;
	bool is_stopped;
	struct slot *slots;
	uint32_t *buckets; /* for stations' rules; as many as slots */
	struct soft_port *ports;
};

static struct soft_rules *rules_of(const struct mr_port *port)
{
	return (struct soft_rules *)port->rules;
}

static struct soft_queue *queue_of(const struct mr_queue *queue)
{
	const struct mr_port *port = queue->port;

	return &rules_of(port)->ports[port->rules_idx].queues[queue->idx];
}

/* ---- rules ---- */

static uint32_t *bucket_of(const struct soft_rules *rules, const uint8_t *mac)
{
	uint64_t key = 0;

	memcpy(&key, mac, MAC_BYTES);
	return &rules->buckets[(key * 0x9e3779b97f4a7c15 >> 32) %
			       rules->base.n_max];
}

static const uint8_t *mac_of(const struct soft_rules *rules, uint32_t slot)
{
	return rules->base.rules[slot].mac;
}

static struct slot *find(const struct soft_rules *rules, const uint8_t *mac)
{
	uint32_t at = *bucket_of(rules, mac);

	while (at != 0 && memcmp(mac_of(rules, at - 1), mac, MAC_BYTES) != 0)
		at = rules->slots[at - 1].next;
	return at == 0 ? NULL : &rules->slots[at - 1];
}

static bool enter(struct soft_rules *rules, uint32_t id)
{
	const uint32_t slot = mr_rule_slot(id);
	const struct mr_rule *rule = &rules->base.rules[slot];
	uint32_t *at = rule->match == MR_RULE_ANY ?
			       &rules->ports[rule->port].any :
			       bucket_of(rules, rule->mac);

	if (rule->match == MR_RULE_ANY ? *at != 0 :
					 find(rules, rule->mac) != NULL)
		return false;
	rules->slots[slot] =
		(struct slot){ .id = id, .next = *at, .to = rule->to };
	*at = slot + 1;
	return true;
}

static uint32_t soft_add(struct mr_rules *base, const uint32_t *ids, uint32_t n)
{
	struct soft_rules *rules = (struct soft_rules *)base;
	uint32_t n_added = 0;

	pthread_mutex_lock(&rules->lock);
	while (n_added < n && enter(rules, ids[n_added]))
		n_added++;
	pthread_mutex_unlock(&rules->lock);
	return n_added;
}

static void leave(struct soft_rules *rules, uint32_t id)
{
	const uint32_t slot = mr_rule_slot(id);
	const struct mr_rule *rule = &rules->base.rules[slot];
	uint32_t *at = rule->match == MR_RULE_ANY ?
			       &rules->ports[rule->port].any :
			       bucket_of(rules, rule->mac);

	while (*at != slot + 1)
		at = &rules->slots[*at - 1].next;
	*at = rules->slots[slot].next;
	rules->slots[slot] = (struct slot){ .id = ~id }; /* unused */
}

static void soft_remove(struct mr_rules *base, const uint32_t *ids, uint32_t n)
{
	struct soft_rules *rules = (struct soft_rules *)base;

	pthread_mutex_lock(&rules->lock);
	for (uint32_t i = 0; i < n; i++)
		leave(rules, ids[i]);
	pthread_mutex_unlock(&rules->lock);
}

static void soft_set(struct mr_rules *base, uint32_t id, uint32_t to,
		     bool is_active)
{
	struct soft_rules *rules = (struct soft_rules *)base;
	struct slot *slot = &rules->slots[mr_rule_slot(id)];

	pthread_mutex_lock(&rules->lock);
	if (slot->id == id) {
		slot->to = to;
		slot->is_active = is_active != 0;
	}
	pthread_mutex_unlock(&rules->lock);
}

static void soft_read(const struct mr_rules *base, const uint32_t *ids,
		      uint32_t n, struct mr_rule_stats *ret_stats)
{
	struct soft_rules *rules = (struct soft_rules *)base;

	pthread_mutex_lock(&rules->lock);
	for (uint32_t i = 0; i < n; i++)
		ret_stats[i] = rules->slots[mr_rule_slot(ids[i])].stats;
	pthread_mutex_unlock(&rules->lock);
}

/* ---- frames ---- */

static int match_station(const struct soft_rules *rules, uint32_t port,
			 const uint8_t *header)
{
	const uint64_t now_ns = mr_ctx_now_ns(rules->base.ctx);
	struct slot *from = find(rules, header + MAC_BYTES);
	struct slot *to = find(rules, header);

	if ((header[0] & 1) || from == NULL || from->to != port)
		return TO_USER;
	from->stats.seen_ns = now_ns;
	if (!from->is_active)
		from->stats.held_ns = now_ns;
	else if (to != NULL && !to->is_active)
		to->stats.held_ns = now_ns;
	if (!from->is_active || to == NULL || !to->is_active)
		return TO_USER;
	return to->to == port ? TO_NOBODY : (int)to->to;
}

static int match(const struct soft_rules *rules, uint32_t port,
		 const struct mr_frame *frame)
{
	const uint32_t any = rules->ports[port].any;

	if (any == 0)
		return frame->len < HEADER_BYTES ?
			       TO_USER :
			       match_station(
				       rules, port,
				       mr_frame_data(
					       rules->base.ports[port]->base,
					       frame));
	if (!rules->slots[any - 1].is_active)
		return TO_USER;
	return rules->base.rules[any - 1].action == MR_RULE_DROP ?
		       TO_NOBODY :
		       (int)rules->slots[any - 1].to;
}

/* False: the target cannot send it now. */
static bool send(struct soft_rules *rules, struct mr_rxq *rxq,
		 struct mr_cache *cache, const struct mr_frame *frames,
		 uint32_t n, uint32_t to)
{
	struct soft_port *target = &rules->ports[to];
	const struct mr_port *port = rules->base.ports[to];
	const uint64_t n_bytes = mr_frame_n_bytes(frames, n);
	struct mri_by_rules *by_rules;
	struct soft_queue *queue;
	uint32_t q;

	if (!target->can_send || (n > 1 && !port->info->has_sg)) {
		mr_counter_add(
			&rxq->stats
				 .events[target->can_send ?
						 MR_RX_EVENT_OFFLOAD_TOO_LONG :
						 MR_RX_EVENT_OFFLOAD_NO_TARGET],
			1);
		return false;
	}
	q = rxq->queue.idx % port->info->n_txqs; /* not 0: it can send */
	queue = &target->queues[q];
	by_rules = mri_offload_by_rules(port->txqs[q]);
	if (queue->tx.burst(port->txqs[q], cache, frames, NULL, n) > 0) {
		by_rules->frames++;
		by_rules->bytes += n_bytes;
	} else {
		mr_frame_free_bulk(cache, frames, n);
		target->drops++;
	}
	queue->is_stale = queue->was_cut;
	target->attempted++;
	target->bytes += n_bytes;
	return true;
}

/* Apply the rules to a frame. False: it goes to the application. */
static bool handle(struct soft_rules *rules, struct mr_rxq *rxq,
		   struct mr_cache *cache, const struct mr_frame *frames,
		   uint32_t n)
{
	const int to = match(rules, rxq->queue.port->rules_idx, frames);
	uint64_t *counter = &rxq->stats.offloaded;

	if (to == TO_USER)
		return false;
	if (to == TO_NOBODY) {
		mr_frame_free_bulk(cache, frames, n);
		counter = &rxq->stats.drops[MR_RX_DROP_RULE];
	} else if (!send(rules, rxq, cache, frames, n, (uint32_t)to)) {
		return false;
	}
	mr_counter_add(counter, 1);
	mr_counter_add(&rxq->stats.delivered, -UINT64_C(1));
	mr_counter_add(&rxq->stats.bytes, -mr_frame_n_bytes(frames, n));
	return true;
}

static uint32_t soft_rx_burst(struct mr_rxq *rxq, struct mr_cache *cache,
			      struct mr_frame *frames, struct mr_meta *meta,
			      uint32_t n)
{
	struct soft_rules *rules = rules_of(rxq->queue.port);
	uint32_t n_kept = 0, n_entries;

	pthread_mutex_lock(&rules->lock);
	n = queue_of(&rxq->queue)->rx_burst(rxq, cache, frames, meta, n);
	for (uint32_t i = 0; i < n; i += n_entries) {
		n_entries = mr_frame_n_entries(frames + i);
		if (!rules->is_stopped &&
		    handle(rules, rxq, cache, frames + i, n_entries))
			continue;
		memmove(frames + n_kept, frames + i,
			n_entries * sizeof(frames[0]));
		if (meta != NULL)
			memmove(meta + n_kept, meta + i,
				n_entries * sizeof(meta[0]));
		n_kept += n_entries;
	}
	pthread_mutex_unlock(&rules->lock);
	return n_kept;
}

static uint32_t soft_tx_burst(struct mr_txq *txq, struct mr_cache *cache,
			      const struct mr_frame *frames,
			      const struct mr_meta *meta, uint32_t n)
{
	struct soft_rules *rules = rules_of(txq->queue.port);
	struct soft_queue *queue = queue_of(&txq->queue);
	uint32_t n_sent;

	pthread_mutex_lock(&rules->lock);
	n_sent = queue->tx.burst(txq, cache, frames, meta, n);
	queue->was_cut = n_sent < n;
	queue->is_stale = false;
	pthread_mutex_unlock(&rules->lock);
	return n_sent;
}

static int soft_tx_arm(struct mr_queue *base)
{
	struct soft_rules *rules = rules_of(base->port);
	struct soft_queue *queue = queue_of(base);
	int has_work = 1; /* if stale: try the burst again */

	pthread_mutex_lock(&rules->lock);
	if (!queue->is_stale && queue->tx.arm != NULL)
		has_work = queue->tx.arm(base);
	queue->is_stale = queue->was_cut = false;
	pthread_mutex_unlock(&rules->lock);
	return has_work;
}

/* ---- sets ---- */

static uint32_t soft_poll(struct mr_rules *base)
{
	struct soft_rules *rules = (struct soft_rules *)base;
	int n_changed = 0;

	for (uint32_t i = 0; i < base->n_ports; i++) {
		const struct mr_port *port = base->ports[i];
		struct mr_link link = { .is_up = 1 };

		(void)mr_port_link(port, &link);
		link.is_up = link.is_up && port->info->n_txqs > 0;
		pthread_mutex_lock(&rules->lock);
		n_changed += rules->ports[i].can_send != link.is_up;
		rules->ports[i].can_send = link.is_up;
		pthread_mutex_unlock(&rules->lock);
	}
	return n_changed;
}

static void soft_sent(struct mr_rules *base, uint32_t i,
		      struct mr_rules_sent *sent)
{
	struct soft_rules *rules = (struct soft_rules *)base;

	pthread_mutex_lock(&rules->lock);
	sent->can_send = rules->ports[i].can_send;
	sent->has_drops = 1;
	sent->attempted = rules->ports[i].attempted;
	sent->drops = rules->ports[i].drops;
	sent->bytes = rules->ports[i].bytes;
	pthread_mutex_unlock(&rules->lock);
}

static int soft_caps(const struct mr_port *port, struct mr_offload_caps *caps,
		     struct mr_reason *reterr_reason)
{
	(void)port;
	(void)reterr_reason;
	caps->matches = 1u << MR_RULE_ANY | 1u << MR_RULE_STATION;
	caps->is_advised = 0;
	snprintf(caps->why, sizeof(caps->why),
		 "rules run in software, no faster than user space");
	return 0;
}

static void stand_in(struct mr_port *port, struct soft_queue *queues)
{
	for (uint32_t q = 0; q < port->info->n_rxqs; q++) {
		struct mr_rxq *rxq = port->rxqs[q];

		queues[q].rx_burst = rxq->burst;
		rxq->burst = soft_rx_burst;
	}
	for (uint32_t q = 0; q < port->info->n_txqs; q++)
		queues[q].tx = mri_offload_replace(
			port->txqs[q],
			(struct mri_tx_calls){ soft_tx_burst, soft_tx_arm });
}

static void step_back(struct mr_port *port, const struct soft_queue *queues)
{
	for (uint32_t q = 0; q < port->info->n_rxqs; q++)
		port->rxqs[q]->burst = queues[q].rx_burst;
	for (uint32_t q = 0; q < port->info->n_txqs; q++)
		(void)mri_offload_replace(port->txqs[q], queues[q].tx);
}

static void soft_stop(struct mr_rules *base)
{
	struct soft_rules *rules = (struct soft_rules *)base;

	pthread_mutex_lock(&rules->lock);
	rules->is_stopped = true;
	pthread_mutex_unlock(&rules->lock);
}

static void soft_close(struct mr_rules *base)
{
	struct soft_rules *rules = (struct soft_rules *)base;

	for (uint32_t i = 0; rules->ports != NULL && i < base->n_ports; i++) {
		struct soft_port *port = &rules->ports[i];

		if (port->queues != NULL)
			step_back(base->ports[i], port->queues);
		mr_free(base->ctx, port->queues);
	}
	mr_free(base->ctx, rules->ports);
	mr_free(base->ctx, rules->buckets);
	mr_free(base->ctx, rules->slots);
	pthread_mutex_destroy(&rules->lock);
}

static int soft_open(struct mr_rules *base, struct mr_reason *reterr_reason)
{
	struct soft_rules *rules = (struct soft_rules *)base;
	const uint32_t n = base->n_max;
	struct mr_ctx *ctx = base->ctx;
	bool has_memory;

	for (uint32_t i = 1; i < base->n_ports; i++)
		if (base->ports[i]->region != base->ports[0]->region)
			return mr_fail(reterr_reason, -EINVAL,
				       "%s and %s: rules in software need "
				       "ports that share a region",
				       base->ports[0]->info->name,
				       base->ports[i]->info->name);
	pthread_mutex_init(&rules->lock, NULL);
	rules->slots = mr_alloc(ctx, 0, n * sizeof(rules->slots[0]));
	rules->buckets = mr_alloc(ctx, 0, n * sizeof(rules->buckets[0]));
	rules->ports =
		mr_alloc(ctx, 0, base->n_ports * sizeof(rules->ports[0]));
	has_memory = rules->slots != NULL && rules->buckets != NULL &&
		     rules->ports != NULL;
	for (uint32_t i = 0; has_memory && i < base->n_ports; i++) {
		struct mr_port *port = base->ports[i];
		struct soft_queue *queues =
			mr_alloc(ctx, 0,
				 (port->info->n_rxqs + port->info->n_txqs) *
					 sizeof(queues[0]));

		has_memory = queues != NULL;
		if (!has_memory)
			break;
		stand_in(port, queues);
		rules->ports[i].queues = queues;
	}
	if (!has_memory) {
		soft_close(base);
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for %u rules between %u ports", n,
			       base->n_ports);
	}
	(void)soft_poll(base);
	return 0;
}

void mri_soft_rules_lock(const struct mr_port *port)
{
	if (port->rules != NULL && port->driver->has_soft_rules)
		pthread_mutex_lock(&rules_of(port)->lock);
}

void mri_soft_rules_unlock(const struct mr_port *port)
{
	if (port->rules != NULL && port->driver->has_soft_rules)
		pthread_mutex_unlock(&rules_of(port)->lock);
}

const struct mr_rules_ops mri_soft_rules_ops = {
	.rules_bytes = sizeof(struct soft_rules),
	.caps = soft_caps,
	.open = soft_open,
	.close = soft_close,
	.stop = soft_stop,
	.add = soft_add,
	.remove = soft_remove,
	.set = soft_set,
	.read = soft_read,
	.poll = soft_poll,
	.sent = soft_sent,
};
