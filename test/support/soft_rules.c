/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A driver for tests: "ruled:NAME,..." is "pair:NAME,..." with rules, which run
 * in software.
 *
 *     pair's rx burst --> rule? --yes--> pair's tx burst of another port
 *                           |
 *                           no --> application
 *
 * A rule sends in the thread that receives, from a tx queue that may belong to
 * another thread, so each call holds the lock of the set, if there is one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>
#include <millrace/pool.h>

#include "support/soft_rules.h"

enum {
	TO_USER = -1, /* destinations, besides a port's index */
	TO_NOBODY = -2,
	MAC_BYTES = 6,
	HEADER_BYTES = 14,
	MAX_QUEUES = 64, /* of a pair: port */
};

/* A rule, by its slot. References to it are numbers plus 1. */
struct slot {
	uint32_t id;
	uint32_t next; /* with this hash */
	uint32_t to;
	bool is_active;
	struct mr_rule_stats stats;
};

/* Of the tx queue of this index. */
struct soft_queue {
	bool was_cut;           /* the ring took only part of the last burst */
	bool is_stale;          /* was_cut, but a rule has sent since */
	uint64_t frames, bytes; /* sent by rules */
	uint64_t completed;     /* highest count known for other frames */
};

/* Behind the struct of a pair: port. */
struct soft_port {
	struct soft_rules *rules; /* NULL: none */
	uint32_t any;             /* the rule for all frames */
	uint32_t can_send;
	uint64_t attempted, drops, bytes;
	struct soft_queue queues[MAX_QUEUES];
};

struct soft_rules {
	struct mr_rules base;
	pthread_mutex_t lock;
	bool is_stopped;
	struct slot *slots;
	uint32_t *buckets; /* for stations' rules; as many as slots */
};

/* Pair's table, and the functions of its queues. */
static const struct mr_driver *pair;
static mr_rx_burst_fn *pair_rx_burst;
static mr_tx_burst_fn *pair_tx_burst;
static int (*pair_tx_arm)(struct mr_queue *queue);

static struct soft_port *soft_of(const struct mr_port *port)
{
	return (struct soft_port *)((char *)port + pair->port_bytes);
}

static struct soft_port *port_at(const struct soft_rules *rules, uint32_t i)
{
	return soft_of(rules->base.ports[i]);
}

static void lock_rules(const struct mr_port *port)
{
	if (soft_of(port)->rules != NULL)
		pthread_mutex_lock(&soft_of(port)->rules->lock);
}

static void unlock_rules(const struct mr_port *port)
{
	if (soft_of(port)->rules != NULL)
		pthread_mutex_unlock(&soft_of(port)->rules->lock);
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

static struct slot *find_station(const struct soft_rules *rules,
				 const uint8_t *mac)
{
	uint32_t at = *bucket_of(rules, mac);

	while (at != 0 && memcmp(mac_of(rules, at - 1), mac, MAC_BYTES) != 0)
		at = rules->slots[at - 1].next;
	return at == 0 ? NULL : &rules->slots[at - 1];
}

static bool enter_rule(struct soft_rules *rules, uint32_t id)
{
	const uint32_t slot = mr_rule_slot(id);
	const struct mr_rule *rule = &rules->base.rules[slot];
	uint32_t *at = rule->match == MR_RULE_ANY ?
			       &port_at(rules, rule->port)->any :
			       bucket_of(rules, rule->mac);

	if (rule->match == MR_RULE_ANY ? *at != 0 :
					 find_station(rules, rule->mac) != NULL)
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
	while (n_added < n && enter_rule(rules, ids[n_added]))
		n_added++;
	pthread_mutex_unlock(&rules->lock);
	return n_added;
}

static void leave_rule(struct soft_rules *rules, uint32_t id)
{
	const uint32_t slot = mr_rule_slot(id);
	const struct mr_rule *rule = &rules->base.rules[slot];
	uint32_t *at = rule->match == MR_RULE_ANY ?
			       &port_at(rules, rule->port)->any :
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
		leave_rule(rules, ids[i]);
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
	struct slot *from = find_station(rules, header + MAC_BYTES);
	struct slot *to = find_station(rules, header);

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

static int match_frame(const struct soft_rules *rules, uint32_t port,
		       const struct mr_frame *frame)
{
	const uint32_t any = port_at(rules, port)->any;

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
static bool send_frame(struct soft_rules *rules, struct mr_rxq *rxq,
		       struct mr_cache *cache, const struct mr_frame *frames,
		       uint32_t n, uint32_t to)
{
	struct soft_port *target = port_at(rules, to);
	const struct mr_port *port = rules->base.ports[to];
	const uint64_t n_bytes = mr_frame_n_bytes(frames, n);
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
	if (pair_tx_burst(port->txqs[q], cache, frames, NULL, n) > 0) {
		queue->frames++;
		queue->bytes += n_bytes;
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
static bool apply_rules(struct soft_rules *rules, struct mr_rxq *rxq,
			struct mr_cache *cache, const struct mr_frame *frames,
			uint32_t n)
{
	const int to = match_frame(rules, rxq->queue.port->rules_idx, frames);
	uint64_t *counter = &rxq->stats.offloaded;

	if (to == TO_USER)
		return false;
	if (to == TO_NOBODY) {
		mr_frame_free_bulk(cache, frames, n);
		counter = &rxq->stats.drops[MR_RX_DROP_RULE];
	} else if (!send_frame(rules, rxq, cache, frames, n, (uint32_t)to)) {
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
	struct soft_rules *rules = soft_of(rxq->queue.port)->rules;
	uint32_t n_kept = 0, n_entries;

	if (rules == NULL)
		return pair_rx_burst(rxq, cache, frames, meta, n);
	pthread_mutex_lock(&rules->lock);
	n = pair_rx_burst(rxq, cache, frames, meta, n);
	for (uint32_t i = 0; i < n; i += n_entries) {
		n_entries = mr_frame_n_entries(frames + i);
		if (!rules->is_stopped &&
		    apply_rules(rules, rxq, cache, frames + i, n_entries))
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
	const struct mr_port *port = txq->queue.port;
	struct soft_queue *queue = &soft_of(port)->queues[txq->queue.idx];
	uint32_t n_sent;

	lock_rules(port);
	n_sent = pair_tx_burst(txq, cache, frames, meta, n);
	queue->was_cut = n_sent < n;
	queue->is_stale = false;
	unlock_rules(port);
	return n_sent;
}

static int soft_tx_arm(struct mr_queue *base)
{
	struct soft_queue *queue = &soft_of(base->port)->queues[base->idx];
	int has_work = 1; /* if stale: try the burst again */

	lock_rules(base->port);
	if (!queue->is_stale)
		has_work = pair_tx_arm(base);
	queue->is_stale = queue->was_cut = false;
	unlock_rules(base->port);
	return has_work;
}

/* A burst counts a frame before a rule takes or sends it; so copy again. */
static void soft_rxq_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats)
{
	const uint32_t n_size = stats->size;

	if (soft_of(rxq->queue.port)->rules == NULL)
		return;
	lock_rules(rxq->queue.port);
	*stats = rxq->stats;
	stats->size = n_size;
	unlock_rules(rxq->queue.port);
}

/* Without what rules sent. Pending frames may all be theirs. */
static void soft_txq_stats(const struct mr_txq *txq, struct mr_tx_stats *stats)
{
	const struct mr_port *port = txq->queue.port;
	struct soft_queue *queue = &soft_of(port)->queues[txq->queue.idx];
	const uint32_t n_size = stats->size;
	uint64_t n;

	lock_rules(port);
	if (soft_of(port)->rules != NULL) {
		*stats = txq->stats;
		stats->size = n_size;
	}
	pair->txq_stats(txq, stats);
	n = mr_counter_get(&queue->completed);
	if (stats->completed > n + queue->frames)
		n = stats->completed - queue->frames;
	__atomic_store_n(&queue->completed, n, __ATOMIC_RELAXED);
	stats->pending += stats->completed - queue->frames - n;
	stats->accepted -= queue->frames;
	stats->bytes -= queue->bytes;
	stats->completed = n;
	unlock_rules(port);
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
		n_changed += port_at(rules, i)->can_send != link.is_up;
		port_at(rules, i)->can_send = link.is_up;
		pthread_mutex_unlock(&rules->lock);
	}
	return n_changed;
}

static void soft_sent(struct mr_rules *base, uint32_t i,
		      struct mr_rules_sent *sent)
{
	struct soft_rules *rules = (struct soft_rules *)base;

	pthread_mutex_lock(&rules->lock);
	sent->can_send = port_at(rules, i)->can_send;
	sent->has_drops = 1;
	sent->attempted = port_at(rules, i)->attempted;
	sent->drops = port_at(rules, i)->drops;
	sent->bytes = port_at(rules, i)->bytes;
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

	for (uint32_t i = 0; i < base->n_ports; i++)
		port_at(rules, i)->rules = NULL;
	mr_free(base->ctx, rules->buckets);
	mr_free(base->ctx, rules->slots);
	pthread_mutex_destroy(&rules->lock);
}

static int soft_open(struct mr_rules *base, struct mr_reason *reterr_reason)
{
	struct soft_rules *rules = (struct soft_rules *)base;
	const uint32_t n = base->n_max;
	struct mr_ctx *ctx = base->ctx;

	pthread_mutex_init(&rules->lock, NULL);
	rules->slots = mr_alloc(ctx, 0, n * sizeof(rules->slots[0]));
	rules->buckets = mr_alloc(ctx, 0, n * sizeof(rules->buckets[0]));
	if (rules->slots == NULL || rules->buckets == NULL) {
		soft_close(base);
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for %u rules between %u ports", n,
			       base->n_ports);
	}
	for (uint32_t i = 0; i < base->n_ports; i++) {
		struct soft_port *port = port_at(rules, i);

		port->rules = rules;
		port->any = port->can_send = 0;
		port->attempted = port->drops = port->bytes = 0;
	}
	(void)soft_poll(base);
	return 0;
}

static const struct mr_rules_ops soft_ops = {
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

/* ---- ports ---- */

static int ruled_open(struct mr_port *port, const struct mr_spec *spec,
		      struct mr_reason *reterr_reason)
{
	const int err = pair->open(port, spec, reterr_reason);

	for (uint32_t q = 0; err == 0 && q < port->info->n_rxqs; q++) {
		pair_rx_burst = port->rxqs[q]->burst;
		pair_tx_burst = port->txqs[q]->burst;
		pair_tx_arm = port->txqs[q]->queue.arm;
		port->rxqs[q]->burst = soft_rx_burst;
		port->txqs[q]->burst = soft_tx_burst;
		port->txqs[q]->queue.arm = soft_tx_arm;
	}
	return err;
}

/* The library does not export the table of pair:, but its ports point to it. */
static int find_pair(void)
{
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 4096 };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_port *port;
	struct mr_ctx *ctx;
	int err = mr_ctx_create(NULL, &ctx, NULL);

	if (err < 0)
		return err;
	err = mr_pool_create(ctx, &pool_config, &config.pool, NULL);
	if (err == 0) {
		err = mr_port_open(ctx, "pair:table,ring=2", &config, &port,
				   NULL);
		if (err == 0) {
			pair = port->driver;
			mr_port_close(port);
		}
		(void)mr_pool_destroy(config.pool, NULL);
	}
	mr_ctx_destroy(ctx);
	return err;
}

int soft_rules_add_driver(struct mr_ctx *ctx)
{
	struct mr_driver ruled;
	int err = pair == NULL ? find_pair() : 0;

	if (err < 0)
		return err;
	ruled = *pair;
	ruled.name = "ruled";
	ruled.version = MR_DRIVER_VERSION;
	ruled.size = sizeof(ruled);
	ruled.port_bytes += sizeof(struct soft_port);
	ruled.open = ruled_open;
	ruled.rxq_stats = soft_rxq_stats;
	ruled.txq_stats = soft_txq_stats;
	ruled.rules = &soft_ops;
	return mr_ctx_add_driver(ctx, &ruled, NULL);
}
