/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules for sessions go along with the set, which forwards meanwhile: what each
 * had counted when it was last read tells the next process what is new.
 *
 * Only rules in the set are left when the worker is at rest. They keep their
 * records, and with them their mappings' numbers. If the configuration has
 * changed, they end instead, as after a reload.
 */
#include <errno.h>

#include <millrace/experimental/flow_hand_over.h>

#include "hand_over.h"
#include "ports/entry.h"
#include "rule_set.h"

enum { LAYOUT = 1 };

void nat_rules_settle(struct nat_maps *maps)
{
	struct nat_rules *rules = maps->rules;

	if (rules == NULL)
		return;
	do {
		(void)nat_rules_serve(rules);
		(void)nat_rules_tick(maps);
	} while (rules->batches[0].is_sent || rules->batches[1].is_sent);
}

void nat_rules_put(const struct nat_maps *maps, struct mr_parcel *parcel,
		   uint32_t worker_idx)
{
	const struct nat_rules *rules = maps->rules;

	if (rules == NULL)
		return;
	mr_flow_put(rules->table, parcel,
		    nat_entry_name(worker_idx, "rules").text);
	mr_parcel_put(parcel, nat_entry_name(worker_idx, "rule-stats").text,
		      LAYOUT, &rules->stats, sizeof(rules->stats));
}

/* Whether a number is of a record that is in use. */
static bool is_used(const struct mr_flow_table *table, uint32_t number)
{
	return number != MR_FLOW_NONE &&
	       mr_flow_next(table, number - 1) == number;
}

static bool is_sound(const struct nat_maps *copy, const struct nat_rule *rule,
		     uint32_t n_max)
{
	const uint32_t further = rule->session - 1;

	if (rule->state != NAT_RULE_HELD || mr_rule_slot(rule->id) >= n_max ||
	    !is_used(copy->table, rule->key.map_id))
		return false;
	return rule->session == 0 || rule->session == NAT_NO_SESSION ||
	       (is_used(copy->sessions, further) &&
		nat_further_at(copy, further)->key.map_id == rule->key.map_id);
}

int nat_rules_copy(struct nat_maps *copy, const struct nat_maps *own,
		   uint32_t n_max, const struct mr_parcel *parcel,
		   uint32_t worker_idx, struct mr_reason *ret_why)
{
	uint32_t number = MR_FLOW_NONE;
	int err;

	if (own->rules == NULL)
		return 0;
	err = nat_rules_create(copy, own->rules->set, n_max,
			       own->rules->sent_fd, own->rules->min_frames,
			       ret_why);
	if (err < 0)
		return err;
	err = mr_flow_take(copy->ctx, parcel,
			   nat_entry_name(worker_idx, "rules").text,
			   sizeof(struct nat_rule_key), sizeof(struct nat_rule),
			   &copy->rules->table, ret_why);
	if (err < 0)
		return err;
	while ((number = mr_flow_next(copy->rules->table, number)) !=
	       MR_FLOW_NONE) {
		if (!is_sound(copy, nat_rule_at(copy->rules, number), n_max))
			return nat_entry_is_damaged(worker_idx, "rules", number,
						    ret_why);
		nat_rule_at(copy->rules, number)->prev = 0;
		nat_rule_attach(copy, number);
	}
	return mr_parcel_get(parcel,
			     nat_entry_name(worker_idx, "rule-stats").text,
			     LAYOUT, &copy->rules->stats,
			     sizeof(copy->rules->stats), ret_why);
}

/* The driver goes on until the rule has left the set, so the windows will be
 * old: they are learned anew. */
static void end_rule(struct nat_maps *copy, struct nat_maps *to,
		     const struct nat_rule *rule)
{
	/* No mapping has it. */
	const struct nat_rule_key key = { .map_id = MR_FLOW_NONE,
					  .addr = rule->id };
	uint32_t number;

	if (nat_rule_is_tracked(rule) && rule->is_active)
		*nat_tracked_at(copy, rule->key.map_id, rule->session).window =
			(struct nat_window){ 0 };
	/* There is room: the table has that of the set. */
	if (mr_flow_add(to->rules->table, &key, &number) < 0)
		return;
	nat_rule_at(to->rules, number)->id = rule->id;
	nat_rule_bury(to->rules, number);
}

void nat_rules_end_copy(struct nat_maps *copy, struct nat_maps *to)
{
	uint32_t id = MR_FLOW_NONE;

	if (copy->rules == NULL)
		return;
	while ((id = mr_flow_next(copy->table, id)) != MR_FLOW_NONE) {
		nat_rules_take(copy, id);
		if ((nat_map_at(copy, id)->flags & NAT_MAP_RULES) == 0)
			continue;
		for (uint32_t i = copy->rules->of_maps[id]; i != 0;
		     i = nat_rule_at(copy->rules, i - 1)->next)
			end_rule(copy, to, nat_rule_at(copy->rules, i - 1));
	}
	to->rules->stats.n_rules += copy->rules->stats.n_rules;
	to->rules->stats.refused += copy->rules->stats.refused;
}
