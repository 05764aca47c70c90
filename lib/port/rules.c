/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of rules: arguments are checked here, rules get ids, drivers do it. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>

#include "base/base.h"
#include "pool/hand_over.h"
#include "port/hand_over.h"

_Static_assert(sizeof(struct mr_flow_way) == 64, "a cache line");

enum {
	MAX_PORTS = 64,
	DEFAULT_N_RULES = 8192,
	MAX_N_RULES = (1 << MR_RULE_SLOT_BITS) - 1,
};

int mr_port_offload_caps(const struct mr_port *port,
			 struct mr_offload_caps *caps,
			 struct mr_reason *reterr_reason)
{
	const struct mr_rules_ops *ops = port->driver->rules;
	struct mr_offload_caps c = { .n_max_rules = MAX_N_RULES,
				     .can_send = 1,
				     .is_advised = 1 };
	int err;

	if (ops == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: driver %s has no rules: frames go through "
			       "user space",
			       port->info->name, port->driver->name);
	err = ops->caps(port, &c, reterr_reason);
	return err < 0 ? err : mri_fill_sized(caps, &c, sizeof(c));
}

static int check_config(const struct mr_rules_config *config,
			struct mr_reason *reterr_reason)
{
	if (config->n_ports < 1 || config->n_ports > MAX_PORTS ||
	    config->ports == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_rules_config.n_ports is %u: 1 to %d",
			       config->n_ports, MAX_PORTS);
	if (config->n_hops >= 1u << MR_FLOW_HOP_BITS ||
	    (config->n_hops > 0 && config->id_step == 0))
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_rules_config.n_hops is %u, below %u, with "
			       "an id_step",
			       config->n_hops, 1u << MR_FLOW_HOP_BITS);
	if (config->n_max > MAX_N_RULES)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_rules_config.n_max is %u, at most %d",
			       config->n_max, MAX_N_RULES);
	return 0;
}

/* *ret_matches: the kinds of rules that all ports support. */
static int check_ports(const struct mr_rules_config *config,
		       uint32_t *ret_matches, struct mr_reason *reterr_reason)
{
	struct mr_offload_caps caps = { .size = sizeof(caps) };

	*ret_matches = UINT32_MAX;
	for (uint32_t i = 0; i < config->n_ports; i++) {
		const struct mr_port *port = config->ports[i];
		const int err =
			mr_port_offload_caps(port, &caps, reterr_reason);

		if (err < 0)
			return err;
		*ret_matches &= caps.matches;
		if (config->n_hops > 0 && !(caps.matches & 1u << MR_RULE_FLOW))
			return mr_fail(reterr_reason, -ENOTSUP,
				       "%s: driver %s has no rules for flows",
				       port->info->name, port->driver->name);
		if (port->rules != NULL)
			return mr_fail(
				reterr_reason, -EBUSY,
				"%s: the port already has a set of rules",
				port->info->name);
		if (port->driver != config->ports[0]->driver)
			return mr_fail(reterr_reason, -EINVAL,
				       "%s and %s: ports of one set of rules "
				       "have one driver",
				       config->ports[0]->info->name,
				       port->info->name);
		for (uint32_t k = 0; k < i; k++)
			if (config->ports[k] == port)
				return mr_fail(reterr_reason, -EINVAL,
					       "%s: twice in one set of rules",
					       port->info->name);
	}
	return 0;
}

static void free_rules(struct mr_rules *rules)
{
	mr_free(rules->ctx, rules->ports);
	mr_free(rules->ctx, rules->rules);
	mr_free(rules->ctx, rules->free_ids);
	mr_free(rules->ctx, rules);
}

static struct mr_rules *alloc_rules(const struct mr_rules_config *config)
{
	const struct mr_rules_ops *ops = config->ports[0]->driver->rules;
	struct mr_ctx *ctx = config->ports[0]->ctx;
	const uint32_t n = config->n_max != 0 ? config->n_max : DEFAULT_N_RULES;
	struct mr_rules *rules = mr_alloc(ctx, 0, ops->rules_bytes);
	const size_t ports_bytes = config->n_ports * sizeof(rules->ports[0]);

	if (rules == NULL)
		return NULL;
	rules->ops = ops;
	rules->ctx = ctx;
	rules->n_ports = config->n_ports;
	rules->n_max = rules->n_free = n;
	rules->n_hops = config->n_hops;
	rules->first_id = config->first_id;
	rules->id_step = config->id_step;
	rules->hands_over = config->hands_over;
	rules->fd = -1;
	if (getrandom(&rules->magic, sizeof(rules->magic), 0) < 0)
		rules->magic = 0x9e3779b9;
	/* 0 is what a page holds that nobody wrote; even numbers are left to
	 * what else drivers write there. */
	rules->magic |= 1;
	rules->ports = mr_alloc(ctx, 0, ports_bytes);
	rules->rules = mr_alloc(ctx, 0, n * sizeof(rules->rules[0]));
	rules->free_ids = mr_alloc(ctx, 0, n * sizeof(rules->free_ids[0]));
	if (rules->ports == NULL || rules->rules == NULL ||
	    rules->free_ids == NULL) {
		free_rules(rules);
		return NULL;
	}
	memcpy(rules->ports, config->ports, ports_bytes);
	for (uint32_t i = 0; i < n; i++)
		rules->free_ids[i] = i;
	return rules;
}

static void take_ports(struct mr_rules *rules, struct mr_rules *set)
{
	for (uint32_t i = 0; i < rules->n_ports; i++) {
		rules->ports[i]->rules = set;
		rules->ports[i]->rules_idx = i;
	}
}

int mr_rules_open(const struct mr_rules_config *config,
		  struct mr_rules **ret_rules, struct mr_reason *reterr_reason)
{
	struct mr_rules_config c;
	struct mr_rules *rules;
	uint32_t matches = 0;
	int err = mri_copy_sized(&c, config, sizeof(c), "mr_rules_config",
				 reterr_reason);

	if (err == 0)
		err = check_config(&c, reterr_reason);
	if (err == 0)
		err = check_ports(&c, &matches, reterr_reason);
	if (err < 0)
		return err;
	rules = alloc_rules(&c);
	if (rules == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for %u rules",
			       c.n_max);
	rules->matches = matches;
	mri_pool_forget_kept(rules->ports[0]->pool);
	take_ports(rules, rules);
	err = rules->ports[0]->is_away ?
		      mri_rules_take(rules, reterr_reason) :
		      rules->ops->open(rules, reterr_reason);
	if (err < 0) {
		take_ports(rules, NULL);
		free_rules(rules);
		return err;
	}
	*ret_rules = rules;
	return 0;
}

void mr_rules_stop(struct mr_rules *rules)
{
	rules->ops->stop(rules);
}

void mr_rules_close(struct mr_rules *rules)
{
	if (rules == NULL)
		return;
	rules->ops->close(rules);
	take_ports(rules, NULL);
	free_rules(rules);
}

static bool is_valid(const struct mr_rules *rules, const struct mr_rule *rule)
{
	if (rule->to >= rules->n_ports || rule->match > MR_RULE_FLOW ||
	    !(rules->matches & 1u << rule->match))
		return false;
	if (rule->match == MR_RULE_STATION)
		return rule->action == MR_RULE_FORWARD && !(rule->mac[0] & 1);
	if (rule->match == MR_RULE_FLOW)
		return rule->action == MR_RULE_FORWARD && rules->n_hops > 0 &&
		       rule->port < rules->n_ports && rule->port != rule->to &&
		       (rule->proto == IPPROTO_TCP ||
			rule->proto == IPPROTO_UDP);
	return rule->match == MR_RULE_ANY && rule->action <= MR_RULE_DROP &&
	       rule->port < rules->n_ports;
}

static uint32_t take_id(struct mr_rules *rules)
{
	const uint32_t id = rules->free_ids[rules->first_free];

	rules->first_free = (rules->first_free + 1) % rules->n_max;
	rules->n_free--;
	return id;
}

static void give_id(struct mr_rules *rules, uint32_t id)
{
	rules->free_ids[(rules->first_free + rules->n_free) % rules->n_max] =
		id;
	rules->n_free++;
}

uint32_t mr_rules_add(struct mr_rules *rules, const struct mr_rule *new_rules,
		      uint32_t n, uint32_t *ret_ids)
{
	uint32_t n_given = 0, n_added;

	while (n_given < n && rules->n_free > 0 &&
	       is_valid(rules, &new_rules[n_given])) {
		const uint32_t id = take_id(rules);

		rules->rules[mr_rule_slot(id)] = new_rules[n_given];
		ret_ids[n_given++] = id;
	}
	n_added = n_given == 0 ? 0 : rules->ops->add(rules, ret_ids, n_given);
	while (n_given > n_added)
		give_id(rules, ret_ids[--n_given]);
	return n_added;
}

void mr_rules_remove(struct mr_rules *rules, const uint32_t *ids, uint32_t n)
{
	rules->ops->remove(rules, ids, n);
	for (uint32_t i = 0; i < n; i++)
		give_id(rules, ids[i] + (1u << MR_RULE_SLOT_BITS));
}

void mr_rules_set(struct mr_rules *rules, uint32_t id, uint32_t to,
		  bool is_active)
{
	if (to < rules->n_ports)
		rules->ops->set(rules, id, to, is_active);
}

void mr_rules_read(const struct mr_rules *rules, const uint32_t *ids,
		   uint32_t n, struct mr_rule_stats *ret_stats)
{
	rules->ops->read(rules, ids, n, ret_stats);
}

struct mr_flow_way *mr_rules_ways(const struct mr_rules *rules, uint32_t id)
{
	return rules->ways[mr_rule_slot(id)];
}

const struct mr_flow_old_id *mr_rules_old_ids(const struct mr_rules *rules)
{
	return rules->n_hops > 0 ? rules->old_ids : NULL;
}

void mr_rules_link(struct mr_rules *rules, uint32_t i,
		   const struct mr_rules_link *link)
{
	if (i < rules->n_ports && rules->n_hops > 0)
		rules->ops->link(rules, i, link);
}

void mr_rules_hop(struct mr_rules *rules, uint32_t hop, uint64_t mac,
		  uint64_t until_ns)
{
	if ((hop & ((1u << MR_FLOW_HOP_BITS) - 1)) < rules->n_hops)
		rules->ops->hop(rules, hop, mac, until_ns);
}

void mr_rules_flush(struct mr_rules *rules)
{
	if (rules->n_hops > 0)
		rules->ops->flush(rules);
}

bool mr_rules_ticket(const struct mr_rules *rules, uint8_t *data,
		     struct mr_flow_ticket *ret_ticket)
{
	const uint32_t none = 0;

	memcpy(ret_ticket, data - sizeof(*ret_ticket), sizeof(*ret_ticket));
	if (ret_ticket->magic != rules->magic ||
	    mr_rule_slot(ret_ticket->id) >= rules->n_max ||
	    ret_ticket->way >= MR_FLOW_WAYS)
		return false;
	/* The next frame in this buffer may have none. */
	memcpy(data - sizeof(*ret_ticket), &none, sizeof(none));
	return true;
}

void mr_rules_confirm(struct mr_rules *rules,
		      const struct mr_flow_ticket *ticket)
{
	struct mr_flow_way *way =
		&mr_rules_ways(rules, ticket->id)[ticket->way];

	/* Late, and the slot is another rule's by now, or the driver did not
	 * wait: leave it alone. */
	if (__atomic_load_n(&way->word, __ATOMIC_RELAXED) >>
			    MR_RULE_SLOT_BITS ==
		    ticket->id >> MR_RULE_SLOT_BITS &&
	    (int32_t)(ticket->number -
		      __atomic_load_n(&way->confirmed, __ATOMIC_RELAXED)) > 0)
		__atomic_store_n(&way->confirmed, ticket->number,
				 __ATOMIC_RELEASE);
}

uint32_t mr_rules_poll(struct mr_rules *rules)
{
	return rules->ops->poll(rules);
}

int mr_rules_fd(const struct mr_rules *rules)
{
	return rules->fd;
}

int mr_rules_sent(struct mr_rules *rules, uint32_t i,
		  struct mr_rules_sent *sent)
{
	struct mr_rules_sent s = { 0 };

	if (i >= rules->n_ports)
		return -EINVAL;
	rules->ops->sent(rules, i, &s);
	return mri_fill_sized(sent, &s, sizeof(s));
}
