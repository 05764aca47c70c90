/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's rules in the driver's set: batches, and which rules end to make
 * room. See rule.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rule_set.h"
#include "support/text.h"

enum {
	SECOND_NS = 1000000000,
	PAUSE_S = 1, /* without requests, after a refusal */
	IDLE_S = 10, /* after which a rule may end */
	SWEPT = 16,  /* rules examined per call to make room */
};

int nat_rules_create(struct nat_maps *maps, struct mr_rules *set,
		     uint32_t n_max, int sent_fd, uint32_t min_frames,
		     struct mr_reason *reterr_why)
{
	const struct mr_flow_config config = {
		.size = sizeof(config),
		.key_bytes = sizeof(struct nat_rule_key),
		.record_bytes = sizeof(struct nat_rule),
		/* Plus those requested, and those leaving the set. */
		.n_max = n_max + 2 * NAT_RULES_ASKED,
	};
	struct nat_rules *rules = calloc(1, sizeof(*rules));

	if (rules != NULL) /* the kernel allocates memory for those in use */
		rules->of_maps = calloc(nat_maps_n_max(maps), sizeof(uint32_t));
	if (rules == NULL || rules->of_maps == NULL ||
	    mr_flow_create(maps->ctx, &config, &rules->table, NULL) < 0) {
		nat_rules_destroy(rules);
		return fail_with(reterr_why, -ENOMEM,
				 "no memory for %u rules of %u mappings", n_max,
				 nat_maps_n_max(maps));
	}
	rules->set = set;
	rules->sent_fd = sent_fd;
	rules->min_frames = min_frames;
	maps->rules = rules;
	return 0;
}

void nat_rules_destroy(struct nat_rules *rules)
{
	if (rules == NULL)
		return;
	mr_flow_destroy(rules->table);
	free(rules->of_maps);
	free(rules);
}

struct nat_rules_stats nat_rules_stats(const struct nat_rules *rules)
{
	return (struct nat_rules_stats){
		.n_rules = __atomic_load_n(&rules->stats.n_rules,
					   __ATOMIC_RELAXED),
		.refused = __atomic_load_n(&rules->stats.refused,
					   __ATOMIC_RELAXED),
	};
}

static void add_to_counter(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static bool is_sent(const struct nat_rules_batch *batch)
{
	return __atomic_load_n(&batch->is_sent, __ATOMIC_ACQUIRE);
}

bool nat_rules_serve(struct nat_rules *rules)
{
	bool is_full = false;

	for (uint32_t b = 0; b < 2; b++) {
		struct nat_rules_batch *batch = &rules->batches[b];
		uint32_t n = 0;

		if (!is_sent(batch))
			continue;
		/* First: a new session may have the ends of an ended one. */
		mr_rules_remove(rules->set, batch->removed, batch->n_removed);
		while (n < batch->n_asked) {
			n += mr_rules_add(rules->set, batch->asked + n,
					  batch->n_asked - n, batch->ids + n);
			if (n == batch->n_asked)
				break;
			batch->ids[n++] = NAT_RULE_NONE;
			is_full = true;
		}
		__atomic_store_n(&batch->is_sent, 0, __ATOMIC_RELEASE);
	}
	return is_full;
}

void nat_rules_make_room(struct nat_rules *rules)
{
	__atomic_store_n(&rules->needs_room, 1, __ATOMIC_RELAXED);
}

static void line_up(struct nat_rules *rules, uint32_t number)
{
	struct nat_rule *rule = nat_rule_at(rules, number);

	rule->after = 0;
	rule->before = rules->last;
	if (rules->last != 0)
		nat_rule_at(rules, rules->last - 1)->after = number + 1;
	else
		rules->first = number + 1;
	rules->last = number + 1;
	rules->n_in_line++;
}

static void step_out(struct nat_rules *rules, const struct nat_rule *rule)
{
	if (rule->before != 0)
		nat_rule_at(rules, rule->before - 1)->after = rule->after;
	else
		rules->first = rule->after;
	if (rule->after != 0)
		nat_rule_at(rules, rule->after - 1)->before = rule->before;
	else
		rules->last = rule->before;
	rules->n_in_line--;
}

void nat_rule_attach(struct nat_maps *maps, uint32_t number)
{
	struct nat_rules *rules = maps->rules;
	struct nat_rule *rule = nat_rule_at(rules, number);
	uint32_t *first = &rules->of_maps[rule->key.map_id];

	rule->next = *first;
	if (*first != 0)
		nat_rule_at(rules, *first - 1)->prev = number + 1;
	*first = number + 1;
	line_up(rules, number);
	nat_map_at(maps, rule->key.map_id)->flags |=
		rule->session == 0 ? NAT_MAP_RULE | NAT_MAP_RULES :
				     NAT_MAP_RULES;
}

void nat_rule_detach(struct nat_maps *maps, const struct nat_rule *rule)
{
	struct nat_rules *rules = maps->rules;
	struct nat_map *map = nat_map_at(maps, rule->key.map_id);
	uint32_t *first = &rules->of_maps[rule->key.map_id];

	if (rule->next != 0)
		nat_rule_at(rules, rule->next - 1)->prev = rule->prev;
	if (rule->prev != 0)
		nat_rule_at(rules, rule->prev - 1)->next = rule->next;
	else
		*first = rule->next;
	step_out(rules, rule);
	if (rule->session == 0)
		map->flags &= ~NAT_MAP_RULE;
	if (*first == 0)
		map->flags &= ~NAT_MAP_RULES;
}

void nat_rule_bury(struct nat_rules *rules, uint32_t number)
{
	struct nat_rule *rule = nat_rule_at(rules, number);

	rule->state = NAT_RULE_DEAD;
	rule->next = rules->dead;
	rules->dead = number + 1;
}

/* The rule is in the set now; still inactive. */
static void begin_rule(struct nat_maps *maps, struct nat_rule *rule,
		       enum nat_direction direction, uint32_t hop)
{
	struct mr_flow_way *ways = mr_rules_ways(maps->rules->set, rule->id);
	const bool is_tracked = nat_rule_is_tracked(rule);

	ways[direction].hop = hop;
	if (!is_tracked)
		ways[NAT_OUT].tcp.flags = ways[NAT_IN].tcp.flags =
			MR_FLOW_UNTRACKED;
	ways[NAT_OUT].tcp.flags |= MR_FLOW_NEW_ID;
	rule->state = NAT_RULE_HELD;
	rule->since_s = maps->now_s;
	/* TCP: the next segment activates it, with its windows. */
	rule->is_active = !is_tracked;
	if (rule->is_active)
		mr_rules_set(maps->rules->set, rule->id, 0, true);
}

static void hold_answer(struct nat_maps *maps,
			const struct nat_rules_batch *batch, uint32_t i)
{
	struct nat_rules *rules = maps->rules;
	const uint32_t number = batch->numbers[i];
	struct nat_rule *rule = nat_rule_at(rules, number);

	rule->id = batch->ids[i];
	if (rule->id == NAT_RULE_NONE) {
		if (rule->state == NAT_RULE_ASKED)
			nat_rule_detach(maps, rule);
		mr_flow_remove(rules->table, number);
		rules->next_s = maps->now_s + PAUSE_S;
		add_to_counter(&rules->stats.refused, 1);
		return;
	}
	add_to_counter(&rules->stats.n_rules, 1);
	if (rule->state == NAT_RULE_UNASKED)
		nat_rule_bury(rules, number);
	else
		begin_rule(maps, rule, batch->directions[i], batch->hops[i]);
}

static void send_batch(struct nat_rules *rules)
{
	struct nat_rules_batch *batch = &rules->batches[rules->filling];
	const uint64_t one = 1;

	for (batch->n_removed = 0;
	     rules->dead != 0 && batch->n_removed < NAT_RULES_REMOVED;) {
		const uint32_t number = rules->dead - 1;
		const struct nat_rule *rule = nat_rule_at(rules, number);

		batch->removed[batch->n_removed++] = rule->id;
		rules->dead = rule->next;
		mr_flow_remove(rules->table, number);
	}
	if (batch->n_removed == 0 && batch->n_asked == 0)
		return;
	add_to_counter(&rules->stats.n_rules, -(uint64_t)batch->n_removed);
	__atomic_store_n(&batch->is_sent, 1, __ATOMIC_RELEASE);
	rules->filling ^= 1;
	/* It fails only if the fd is readable already, which suffices. */
	if (rules->sent_fd >= 0 && write(rules->sent_fd, &one, sizeof(one)) < 0)
		return;
}

static bool is_idle(const struct nat_maps *maps, const struct nat_rule *rule)
{
	const struct mr_flow_way *ways =
		mr_rules_ways(maps->rules->set, rule->id);
	uint32_t last_s = rule->since_s;

	for (uint32_t w = 0; w < MR_FLOW_WAYS; w++)
		nat_later(&last_s,
			  (uint32_t)(__atomic_load_n(&ways[w].seen_ns,
						     __ATOMIC_RELAXED) /
				     SECOND_NS));
	return (int32_t)(maps->now_s - last_s) >= IDLE_S;
}

/* A rule for a remote end without a session, other than the first: there may be
 * any number of these. */
static bool is_stray(const struct nat_maps *maps, const struct nat_rule *rule)
{
	const struct nat_map *map = nat_map_at(maps, rule->key.map_id);
	const struct nat_end remote = { rule->key.addr, rule->remote_port };

	return rule->session == NAT_NO_SESSION &&
	       (nat_is_one_to_one(map) || !nat_is_first(maps, map, remote));
}

/* End the next rule in the list if it is idle, and stray or its room is needed.
 */
static void examine_rule(struct nat_maps *maps)
{
	struct nat_rules *rules = maps->rules;
	const uint32_t number = rules->first - 1;
	const struct nat_rule *rule = nat_rule_at(rules, number);
	const bool is_for_room = rules->n_to_sweep > 0;

	rules->n_to_sweep -= is_for_room;
	step_out(rules, rule);
	line_up(rules, number);
	if (rule->state == NAT_RULE_HELD &&
	    (is_for_room || is_stray(maps, rule)) && is_idle(maps, rule))
		nat_rule_stop(maps, number);
}

/* End idle rules: all of them to make room, otherwise only stray ones, slowly.
 * Returns whether to continue at once. */
static bool sweep_rules(struct nat_maps *maps)
{
	struct nat_rules *rules = maps->rules;
	uint32_t n;

	if (__atomic_load_n(&rules->needs_room, __ATOMIC_RELAXED)) {
		__atomic_store_n(&rules->needs_room, 0, __ATOMIC_RELAXED);
		rules->n_to_sweep = rules->n_in_line;
	}
	n = rules->n_to_sweep > 0 ? SWEPT : 1;
	for (uint32_t i = 0; i < n && rules->first != 0; i++)
		examine_rule(maps);
	if (rules->first == 0)
		rules->n_to_sweep = 0;
	return rules->n_to_sweep > 0;
}

bool nat_rules_tick(struct nat_maps *maps)
{
	struct nat_rules *rules = maps->rules;
	struct nat_rules_batch *other;
	bool is_behind;

	if (rules == NULL)
		return false;
	is_behind = sweep_rules(maps);
	/* Send one batch at a time; otherwise a rule might be added before one
	 * with the same ends is removed. */
	other = &rules->batches[rules->filling ^ 1];
	if (is_sent(other))
		return is_behind;
	for (uint32_t i = 0; i < other->n_asked; i++)
		hold_answer(maps, other, i);
	other->n_asked = 0;
	send_batch(rules);
	return is_behind;
}

void nat_rules_end_all(struct nat_maps *maps)
{
	for (uint32_t id = mr_flow_next(maps->table, MR_FLOW_NONE);
	     maps->rules != NULL && id != MR_FLOW_NONE;
	     id = mr_flow_next(maps->table, id))
		nat_rules_end(maps, id);
}
