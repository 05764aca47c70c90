/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules in the device, by rte_flow.
 *
 *     wire --> flow? --yes--> counted, and sent from another port or dropped
 *                |
 *                no --> rx queues
 *
 * mr_rules_set() may be called in bursts, but creating and destroying flows is
 * slow. So it only records the change, and mr_rules_poll() applies it.
 *
 * rte_flow can only express MR_RULE_ANY. A bridge looks up two addresses and
 * records when it saw one of them; a flow's packets have windows and tickets.
 *
 * Source: DPDK Programmer's Guide, 22.11, chapter "Generic flow API".
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_flow.h>

#include "dpdk.h"

/* The wanted rule of a port: id << 32, and these; 0: none. */
enum {
	WISH_TO = 0xffff,
	WISH_ACTIVE = 1 << 16,
	WISH_DROP = 1 << 17,
	WISH_RULE = 1 << 18,
};

/* The rule for frames that a port receives. */
struct dpdk_rule {
	uint64_t wish; /* atomic */
	uint64_t told; /* the wish that the device last got; 0: none */
	/* Under the lock: */
	struct rte_flow *flow;       /* NULL: none */
	uint16_t port_id;            /* through which flow was created */
	uint64_t hits, n_bytes;      /* of flow, when last read */
	uint64_t offloaded, dropped; /* by earlier flows */
};

struct dpdk_rules {
	struct mr_rules base;
	pthread_mutex_t lock; /* counters are read on any thread */
	bool is_stopped;
	struct dpdk_rule *rules; /* by port, like the next two */
	uint32_t *can_send;
	struct mr_rules_sent *sent; /* by earlier flows */
};

/* A flow in DPDK's form, from one port to another or, if NULL, dropped. */
struct request {
	uint16_t port_id; /* that takes the request */
	struct rte_flow_attr attr;
	struct rte_flow_item_ethdev from;
	struct rte_flow_action_ethdev to;
	struct rte_flow_item pattern[3];
	struct rte_flow_action actions[3];
};

static struct dpdk_rules *rules_of(const struct mr_rules *base)
{
	return (struct dpdk_rules *)base;
}

static int prepare_flow(struct request *r, const struct dpdk_port *from,
			const struct dpdk_port *to,
			struct rte_flow_error *error)
{
	struct rte_flow_item *item = r->pattern;

	*r = (struct request){
		.port_id = from->port_id,
		.from = { from->port_id },
		.actions = { { .type = RTE_FLOW_ACTION_TYPE_COUNT },
			     { .type = RTE_FLOW_ACTION_TYPE_DROP } },
	};
	if (to == NULL) {
		r->attr.ingress = 1;
	} else {
		r->attr.transfer = 1;
		r->to.port_id = to->port_id;
		*item++ = (struct rte_flow_item){
			.type = RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT,
			.spec = &r->from,
		};
		r->actions[1] = (struct rte_flow_action){
			.type = RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT,
			.conf = &r->to,
		};
	}
	item->type = RTE_FLOW_ITEM_TYPE_ETH;
	return to == NULL ? 0 :
			    rte_flow_pick_transfer_proxy(from->port_id,
							 &r->port_id, error);
}

/* Check whether the device supports a flow: 0, or -errno and its message. */
static int check_flow(const struct dpdk_port *from, const struct dpdk_port *to,
		      struct rte_flow_error *error)
{
	struct request r;
	int err;

	*error = (struct rte_flow_error){ 0 };
	mri_dpdk_ask(true);
	err = prepare_flow(&r, from, to, error);
	if (err == 0)
		err = rte_flow_validate(r.port_id, &r.attr, r.pattern,
					r.actions, error);
	if (err < 0 && error->message == NULL)
		error->message = mr_strerror(-err);
	return err;
}

static int rules_caps(const struct mr_port *base, struct mr_offload_caps *caps,
		      struct mr_reason *reterr_reason)
{
	const struct dpdk_port *port = dpdk_port_of(base);
	struct rte_flow_error error, drop_error;
	int err;

	mri_dpdk_enter(base->ctx);
	err = check_flow(port, port, &error);
	if (err < 0 && check_flow(port, NULL, &drop_error) < 0)
		err = mr_fail(reterr_reason, -ENOTSUP,
			      "%s: the device (driver %s) accepts no rules: to "
			      "forward: %s; to drop: %s",
			      base->info->name, port->info.driver_name,
			      error.message, drop_error.message);
	else
		caps->matches = 1u << MR_RULE_ANY;
	mri_dpdk_leave();
	if (caps->matches == 0)
		return err;
	if (err < 0) {
		caps->can_send = caps->is_advised = 0;
		snprintf(caps->why, sizeof(caps->why),
			 "the device (driver %s) cannot forward by itself: "
			 "%s",
			 port->info.driver_name, error.message);
	}
	return 0;
}

/* ---- flows ---- */

static uint32_t to_of(const struct dpdk_rule *rule)
{
	return rule->told & WISH_TO;
}

static void read_hits(struct dpdk_rule *rule)
{
	const struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_COUNT },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_query_count count = { 0 };
	struct rte_flow_error error;

	if (rule->flow != NULL &&
	    rte_flow_query(rule->port_id, rule->flow, actions, &count,
			   &error) == 0 &&
	    count.hits_set) {
		rule->hits = count.hits;
		rule->n_bytes = count.bytes_set ? count.bytes : 0;
	}
}

static void end_flow(struct dpdk_rules *rules, struct dpdk_rule *rule)
{
	struct rte_flow_error error;

	if (rule->flow == NULL)
		return;
	read_hits(rule);
	(void)rte_flow_destroy(rule->port_id, rule->flow, &error);
	rule->flow = NULL;
	if (rule->told & WISH_DROP) {
		rule->dropped += rule->hits;
	} else {
		rule->offloaded += rule->hits;
		rules->sent[to_of(rule)].attempted += rule->hits;
		rules->sent[to_of(rule)].bytes += rule->n_bytes;
	}
	rule->hits = rule->n_bytes = 0;
}

static void begin_flow(struct dpdk_rules *rules, struct dpdk_rule *rule,
		       uint32_t from)
{
	const struct mr_port *base = rules->base.ports[from];
	const struct dpdk_port *to =
		rule->told & WISH_DROP ?
			NULL :
			dpdk_port_of(rules->base.ports[to_of(rule)]);
	struct rte_flow_error error = { 0 };
	struct request r;

	mri_dpdk_ask(false);
	if (prepare_flow(&r, dpdk_port_of(base), to, &error) == 0)
		rule->flow = rte_flow_create(r.port_id, &r.attr, r.pattern,
					     r.actions, &error);
	rule->port_id = r.port_id;
	if (rule->flow == NULL)
		mr_log(base->ctx, MR_LOG_WARNING,
		       "%s: the device refuses a rule, and its frames go to "
		       "user space: %s",
		       base->info->name,
		       error.message != NULL ? error.message :
					       mri_dpdk_why(EIO));
}

/* Apply changes to the device. A refused rule is not tried again. */
static void tell_device(struct dpdk_rules *rules, uint32_t i)
{
	struct dpdk_rule *rule = &rules->rules[i];
	uint64_t wish = __atomic_load_n(&rule->wish, __ATOMIC_ACQUIRE);

	if (rules->is_stopped || !(wish & WISH_ACTIVE) ||
	    !(wish & WISH_DROP || rules->can_send[wish & WISH_TO]))
		wish = 0;
	if (wish == rule->told)
		return;
	mri_dpdk_enter(rules->base.ctx);
	pthread_mutex_lock(&rules->lock);
	end_flow(rules, rule);
	rule->told = wish;
	if (wish != 0)
		begin_flow(rules, rule, i);
	pthread_mutex_unlock(&rules->lock);
	mri_dpdk_leave();
}

/* ---- rules ---- */

static bool enter_rule(struct dpdk_rules *rules, uint32_t id)
{
	const struct mr_rule *rule = &rules->base.rules[mr_rule_slot(id)];
	const bool is_drop = rule->action == MR_RULE_DROP;
	const struct mr_port *base = rules->base.ports[rule->port];
	uint64_t *wish = &rules->rules[rule->port].wish;
	struct rte_flow_error error;
	int err;

	if (*wish != 0)
		return false;
	mri_dpdk_enter(base->ctx);
	err = check_flow(dpdk_port_of(base),
			 is_drop ? NULL :
				   dpdk_port_of(rules->base.ports[rule->to]),
			 &error);
	if (err < 0)
		mr_log(base->ctx, MR_LOG_WARNING,
		       "%s: the device refuses a rule: %s", base->info->name,
		       error.message);
	mri_dpdk_leave();
	if (err < 0)
		return false;
	__atomic_store_n(wish,
			 (uint64_t)id << 32 | WISH_RULE |
				 (is_drop ? WISH_DROP : 0) | rule->to,
			 __ATOMIC_RELEASE);
	return true;
}

static uint32_t rules_add(struct mr_rules *base, const uint32_t *ids,
			  uint32_t n)
{
	uint32_t n_added = 0;

	while (n_added < n && enter_rule(rules_of(base), ids[n_added]))
		n_added++;
	return n_added;
}

static void rules_remove(struct mr_rules *base, const uint32_t *ids, uint32_t n)
{
	struct dpdk_rules *rules = rules_of(base);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t port = base->rules[mr_rule_slot(ids[i])].port;

		__atomic_store_n(&rules->rules[port].wish, 0, __ATOMIC_RELEASE);
		tell_device(rules, port);
	}
}

static void rules_set(struct mr_rules *base, uint32_t id, uint32_t to,
		      bool is_active)
{
	const uint32_t port = base->rules[mr_rule_slot(id)].port;
	uint64_t *wish = &rules_of(base)->rules[port].wish;
	uint64_t old = __atomic_load_n(wish, __ATOMIC_SEQ_CST), new;
	const uint64_t one = 1;

	do {
		/* A late thread may find another rule, or none. */
		if (!(old & WISH_RULE) || old >> 32 != id)
			return;
		new = (old & ~(uint64_t)(WISH_TO | WISH_ACTIVE)) | to |
		      (is_active ? WISH_ACTIVE : 0);
	} while (!__atomic_compare_exchange_n(
		wish, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	/* It fails only after 2^64 writes without a read. */
	if (new != old && write(base->fd, &one, sizeof(one)) < 0)
		return;
}

static void rules_read(const struct mr_rules *base, const uint32_t *ids,
		       uint32_t n, struct mr_rule_stats *ret_stats)
{
	(void)base;
	(void)ids;
	memset(ret_stats, 0, n * sizeof(ret_stats[0]));
}

/* ---- sets ---- */

static uint32_t rules_poll(struct mr_rules *base)
{
	struct dpdk_rules *rules = rules_of(base);
	uint64_t n_notes;
	int n_changed = 0;

	/* Read it before the changes: a later change wakes us again. */
	if (read(base->fd, &n_notes, sizeof(n_notes)) < 0 && errno != EAGAIN)
		return 0;
	for (uint32_t i = 0; i < base->n_ports; i++) {
		struct mr_link link = { 0 };

		(void)mri_dpdk_link(base->ports[i], &link);
		n_changed += rules->can_send[i] != link.is_up;
		rules->can_send[i] = link.is_up;
	}
	for (uint32_t i = 0; i < base->n_ports; i++)
		tell_device(rules, i);
	return n_changed;
}

static void rules_stop(struct mr_rules *base)
{
	struct dpdk_rules *rules = rules_of(base);

	rules->is_stopped = true;
	for (uint32_t i = 0; i < base->n_ports; i++)
		tell_device(rules, i);
}

static void rules_sent(struct mr_rules *base, uint32_t to,
		       struct mr_rules_sent *sent)
{
	struct dpdk_rules *rules = rules_of(base);

	pthread_mutex_lock(&rules->lock);
	sent->can_send = rules->can_send[to];
	sent->attempted = rules->sent[to].attempted;
	sent->bytes = rules->sent[to].bytes;
	for (uint32_t i = 0; i < base->n_ports; i++) {
		struct dpdk_rule *rule = &rules->rules[i];

		read_hits(rule);
		if (!(rule->told & WISH_DROP) && to_of(rule) == to) {
			sent->attempted += rule->hits;
			sent->bytes += rule->n_bytes;
		}
	}
	pthread_mutex_unlock(&rules->lock);
}

/* The device counts per port; the first queue reports the frames. */
void mri_dpdk_rules_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats)
{
	const struct mr_port *port = rxq->queue.port;
	struct dpdk_rules *rules = rules_of(port->rules);
	struct dpdk_rule *rule;
	uint64_t n_offloaded, n_dropped;

	if (rules == NULL || rxq->queue.idx != 0)
		return;
	rule = &rules->rules[port->rules_idx];
	pthread_mutex_lock(&rules->lock);
	read_hits(rule);
	n_offloaded = rule->offloaded;
	n_dropped = rule->dropped;
	*(rule->told & WISH_DROP ? &n_dropped : &n_offloaded) += rule->hits;
	pthread_mutex_unlock(&rules->lock);
	stats->offloaded += n_offloaded;
	stats->drops[MR_RX_DROP_RULE] += n_dropped;
	stats->received += n_offloaded + n_dropped;
}

static void free_rules(struct dpdk_rules *rules)
{
	const struct mr_ctx *ctx = rules->base.ctx;

	mr_free(ctx, rules->rules);
	mr_free(ctx, rules->can_send);
	mr_free(ctx, rules->sent);
	if (rules->base.fd >= 0)
		close(rules->base.fd);
	pthread_mutex_destroy(&rules->lock);
}

static void rules_close(struct mr_rules *base)
{
	rules_stop(base);
	for (uint32_t i = 0; i < base->n_ports; i++)
		mri_dpdk_rules_stats(base->ports[i]->rxqs[0],
				     &base->ports[i]->rxqs[0]->stats);
	free_rules(rules_of(base));
}

static int rules_open(struct mr_rules *base, struct mr_reason *reterr_reason)
{
	struct dpdk_rules *rules = rules_of(base);
	const uint32_t n = base->n_ports;

	pthread_mutex_init(&rules->lock, NULL);
	rules->rules = mr_alloc(base->ctx, 0, n * sizeof(rules->rules[0]));
	rules->can_send =
		mr_alloc(base->ctx, 0, n * sizeof(rules->can_send[0]));
	rules->sent = mr_alloc(base->ctx, 0, n * sizeof(rules->sent[0]));
	base->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rules->rules == NULL || rules->can_send == NULL ||
	    rules->sent == NULL) {
		free_rules(rules);
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for the rules of %u ports", n);
	}
	if (base->fd < 0) {
		free_rules(rules);
		return mr_fail(reterr_reason, -EIO, "rules: no eventfd: %s",
			       mr_strerror(errno));
	}
	(void)rules_poll(base);
	return 0;
}

const struct mr_rules_ops mri_dpdk_rules_ops = {
	.rules_bytes = sizeof(struct dpdk_rules),
	.caps = rules_caps,
	.open = rules_open,
	.close = rules_close,
	.stop = rules_stop,
	.add = rules_add,
	.remove = rules_remove,
	.set = rules_set,
	.read = rules_read,
	.poll = rules_poll,
	.sent = rules_sent,
};
