/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for sessions: rule.h. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rule.h"
#include "session.h"

enum {
	/* The driver's clock may be behind ours by so much: a mapping must not
	 * end early. */
	TICK_NS = 10000000,
	SECOND_NS = 1000000000,
	PAUSE_S = 1, /* after a rule was refused */
	END_FLAGS = NAT_END_SEEN | NAT_END_CONFIRMED | NAT_END_SENT,
};

enum state {
	FREE,
	ASKED,   /* in a batch */
	UNASKED, /* the same, but its mapping has ended */
	HELD,    /* in the set */
	DEAD,    /* to be removed from it */
};

/* Of a mapping, by its number. The record outlives the mapping. */
struct rule {
	uint32_t id;
	uint32_t next_dead;   /* 1 + number */
	uint32_t n_frames[2]; /* of its ways, when last taken */
	uint8_t state;
	bool is_active;
};

struct nat_rules {
	struct mr_rules *set;
	int sent_fd;
	uint32_t min_frames;
	uint32_t dead;    /* 1 + number of the first one */
	uint32_t next_s;  /* no rule is asked for before */
	uint32_t filling; /* the batch that is not sent */
	struct rule *rules;
	struct nat_rules_stats stats; /* atomic */
	struct nat_rules_batch batches[2];
};

int nat_rules_create(struct nat_maps *maps, struct mr_rules *set, int sent_fd,
		     uint32_t min_frames, struct mr_reason *reterr_why)
{
	struct nat_rules *rules = calloc(1, sizeof(*rules));

	if (rules != NULL) /* the kernel allocates memory for those in use */
		rules->rules =
			calloc(nat_maps_n_max(maps), sizeof(struct rule));
	if (rules == NULL || rules->rules == NULL) {
		nat_rules_destroy(rules);
		snprintf(reterr_why->text, sizeof(reterr_why->text),
			 "no memory for the rules of %u mappings",
			 nat_maps_n_max(maps));
		return -ENOMEM;
	}
	rules->set = set;
	rules->sent_fd = sent_fd;
	rules->min_frames = min_frames;
	maps->rules = rules;
	return 0;
}

void nat_rules_destroy(struct nat_rules *rules)
{
	if (rules != NULL)
		free(rules->rules);
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

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static bool is_sent(const struct nat_rules_batch *batch)
{
	return __atomic_load_n(&batch->is_sent, __ATOMIC_ACQUIRE);
}

void nat_rules_serve(struct nat_rules *rules)
{
	for (uint32_t b = 0; b < 2; b++) {
		struct nat_rules_batch *batch = &rules->batches[b];
		uint32_t n = 0;

		if (!is_sent(batch))
			continue;
		/* First: a new session may have the ends of one that ended. */
		mr_rules_remove(rules->set, batch->removed, batch->n_removed);
		while (n < batch->n_asked) {
			n += mr_rules_add(rules->set, batch->asked + n,
					  batch->n_asked - n, batch->ids + n);
			if (n < batch->n_asked)
				batch->ids[n++] = NAT_RULE_NONE;
		}
		__atomic_store_n(&batch->is_sent, 0, __ATOMIC_RELEASE);
	}
}

static void bury(struct nat_rules *rules, uint32_t map_id)
{
	rules->rules[map_id].state = DEAD;
	rules->rules[map_id].next_dead = rules->dead;
	rules->dead = map_id + 1;
}

static void hold(struct nat_maps *maps, const struct nat_rules_batch *batch,
		 uint32_t i)
{
	struct nat_rules *rules = maps->rules;
	const uint32_t map_id = batch->map_ids[i], id = batch->ids[i];
	struct rule *rule = &rules->rules[map_id];
	struct mr_flow_way *ways;

	if (id == NAT_RULE_NONE) {
		if (rule->state == ASKED)
			nat_map_at(maps, map_id)->flags &= ~NAT_MAP_RULE;
		rule->state = FREE;
		rules->next_s = maps->now_s + PAUSE_S;
		add(&rules->stats.refused, 1);
		return;
	}
	rule->id = id;
	add(&rules->stats.n_rules, 1);
	if (rule->state == UNASKED) {
		bury(rules, map_id);
		return;
	}
	ways = mr_rules_ways(rules->set, id);
	ways[batch->directions[i]].hop = batch->hops[i];
	ways[NAT_OUT].tcp.flags = MR_FLOW_NEW_ID;
	rule->state = HELD;
	rule->n_frames[NAT_OUT] = rule->n_frames[NAT_IN] = 0;
	/* TCP: with the next segment, which has its windows. */
	rule->is_active = nat_map_at(maps, map_id)->inside.proto == IPPROTO_UDP;
	if (rule->is_active)
		mr_rules_set(rules->set, id, 0, 1);
}

static void send_batch(struct nat_rules *rules)
{
	struct nat_rules_batch *batch = &rules->batches[rules->filling];
	const uint64_t one = 1;

	for (batch->n_removed = 0;
	     rules->dead != 0 && batch->n_removed < NAT_RULES_REMOVED;) {
		struct rule *rule = &rules->rules[rules->dead - 1];

		batch->removed[batch->n_removed++] = rule->id;
		rules->dead = rule->next_dead;
		rule->state = FREE;
	}
	if (batch->n_removed == 0 && batch->n_asked == 0)
		return;
	add(&rules->stats.n_rules, -(uint64_t)batch->n_removed);
	__atomic_store_n(&batch->is_sent, 1, __ATOMIC_RELEASE);
	rules->filling ^= 1;
	/* It fails only if already readable, which is all we want. */
	if (rules->sent_fd >= 0 && write(rules->sent_fd, &one, sizeof(one)) < 0)
		return;
}

void nat_rules_tick(struct nat_maps *maps)
{
	struct nat_rules *rules = maps->rules;
	struct nat_rules_batch *other;

	if (rules == NULL)
		return;
	/* One at a time, or a rule might be added before one with the same ends
	 * is removed. */
	other = &rules->batches[rules->filling ^ 1];
	if (is_sent(other))
		return;
	for (uint32_t i = 0; i < other->n_asked; i++)
		hold(maps, other, i);
	other->n_asked = 0;
	send_batch(rules);
}

void nat_rules_end_all(struct nat_maps *maps)
{
	for (uint32_t id = mr_flow_next(maps->table, MR_FLOW_NONE);
	     maps->rules != NULL && id != MR_FLOW_NONE;
	     id = mr_flow_next(maps->table, id))
		nat_rule_end(maps, id);
}

/* Whether both ends are known, and nothing unusual is going on. */
static bool is_established(const struct nat_maps *maps, uint32_t id)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_window *window = &maps->windows[id];

	return (map->tcp_state == NAT_TCP_OPEN ||
		map->tcp_state == NAT_TCP_HALF_OUT ||
		map->tcp_state == NAT_TCP_HALF_IN) &&
	       window->ends[NAT_OUT].seen == END_FLAGS &&
	       window->ends[NAT_IN].seen == END_FLAGS;
}

bool nat_rule_is_sessions(const struct nat_maps *maps,
			  const struct nat_map *map)
{
	return map->inside.proto != IPPROTO_UDP ||
	       maps->filtering[NAT_UDP] != NAT_FILTER_NONE;
}

bool nat_rule_lasts(const struct nat_maps *maps, const struct nat_map *map)
{
	return !nat_rule_is_sessions(maps, map) ||
	       nat_first_is_live(maps, map, maps->now_s);
}

static bool may_ask(const struct nat_maps *maps, uint32_t id)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_rules *rules = maps->rules;

	if ((map->flags & (NAT_MAP_ADDRESS | NAT_MAP_RULE)) ||
	    !nat_rule_lasts(maps, map) ||
	    rules->batches[rules->filling].n_asked == NAT_RULES_ASKED ||
	    rules->rules[id].state != FREE ||
	    (int32_t)(maps->now_s - rules->next_s) < 0)
		return false;
	return map->inside.proto == IPPROTO_UDP ?
		       map->n_out + map->n_in >= rules->min_frames :
		       map->inside.proto == IPPROTO_TCP &&
			       is_established(maps, id);
}

static void ask(struct nat_maps *maps, uint32_t id,
		enum nat_direction direction, uint32_t hop)
{
	struct nat_rules *rules = maps->rules;
	struct nat_rules_batch *batch = &rules->batches[rules->filling];
	struct nat_map *map = nat_map_at(maps, id);
	const uint32_t i = batch->n_asked++;

	batch->asked[i] = (struct mr_rule){
		.match = MR_RULE_FLOW,
		.port = NAT_INSIDE,
		.to = NAT_OUTSIDE,
		.proto = map->inside.proto,
		.from = { map->inside.addr, map->remote.addr, map->inside.port,
			  map->remote.port },
		.as = { map->outside_addr, map->remote.addr, map->outside_port,
			map->remote.port },
	};
	batch->map_ids[i] = id;
	batch->hops[i] = hop;
	batch->directions[i] = direction;
	rules->rules[id].state = ASKED;
	map->flags |= NAT_MAP_RULE;
	/* The end of its first session is watched from now on. */
	nat_map_set_timer(maps, id);
}

void nat_rule_use(struct nat_maps *maps, uint32_t id,
		  enum nat_direction direction, struct nat_remote remote,
		  uint32_t hop)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct rule *rule;

	/* Other sessions of the mapping have other next hops. */
	if (maps->rules == NULL || map->remote.addr != remote.addr ||
	    map->remote.port != remote.port)
		return;
	if ((map->flags & NAT_MAP_RULE) == 0) {
		if (may_ask(maps, id))
			ask(maps, id, direction, hop);
		return;
	}
	rule = &maps->rules->rules[id];
	if (rule->state == HELD)
		__atomic_store_n(
			&mr_rules_ways(maps->rules->set, rule->id)[direction]
				 .hop,
			hop, __ATOMIC_RELAXED);
}

static struct rule *held_rule(const struct nat_maps *maps, uint32_t id)
{
	struct rule *rule;

	if ((nat_map_at(maps, id)->flags & NAT_MAP_RULE) == 0)
		return NULL;
	rule = &maps->rules->rules[id];
	return rule->state == HELD ? rule : NULL;
}

static void later(uint32_t *last_s, uint32_t s)
{
	if ((int32_t)(s - *last_s) > 0)
		*last_s = s;
}

/* What a packet that the driver forwarded would have refreshed. */
static void refresh(const struct nat_maps *maps, uint32_t id,
		    enum nat_direction direction, uint64_t seen_ns)
{
	struct nat_map *map = nat_map_at(maps, id);
	uint32_t s = (uint32_t)((seen_ns + TICK_NS) / SECOND_NS);
	const bool is_tcp = map->inside.proto == IPPROTO_TCP;

	/* Never later than now: ages are differences. */
	if ((int32_t)(s - maps->now_s) > 0)
		s = maps->now_s;
	if (seen_ns == 0 || (direction == NAT_IN && !maps->refreshes_inbound))
		return;
	if (!is_tcp)
		later(&map->last_s, s);
	if (is_tcp || maps->filtering[NAT_UDP] != NAT_FILTER_NONE)
		later(&map->remote_last_s, s);
}

void nat_rule_take(const struct nat_maps *maps, uint32_t id)
{
	struct nat_map *map = nat_map_at(maps, id);
	struct rule *rule = held_rule(maps, id);
	const struct mr_flow_way *ways;

	if (rule == NULL)
		return;
	ways = mr_rules_ways(maps->rules->set, rule->id);
	for (uint32_t w = 0; w < MR_FLOW_WAYS; w++) {
		struct nat_window_end *end = &maps->windows[id].ends[w];
		const uint32_t n =
			__atomic_load_n(&ways[w].n_frames, __ATOMIC_RELAXED);

		*(w == NAT_OUT ? &map->n_out : &map->n_in) +=
			n - rule->n_frames[w];
		rule->n_frames[w] = n;
		refresh(maps, id, w,
			__atomic_load_n(&ways[w].seen_ns, __ATOMIC_RELAXED));
		if (map->inside.proto != IPPROTO_TCP || !rule->is_active)
			continue;
		end->ack = __atomic_load_n(&ways[w].tcp.ack, __ATOMIC_RELAXED);
		end->end = __atomic_load_n(&ways[w].tcp.end, __ATOMIC_RELAXED);
		end->window =
			__atomic_load_n(&ways[w].tcp.window, __ATOMIC_RELAXED);
	}
}

/* Without a ticket the driver may be writing, too: never go back then. */
static void advance(uint32_t *to, uint32_t value, bool is_active)
{
	if (!is_active ||
	    (int32_t)(value - __atomic_load_n(to, __ATOMIC_RELAXED)) > 0)
		__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void give_end(struct nat_maps *maps, uint32_t id,
		     struct mr_flow_way *ways, uint32_t w, bool is_active)
{
	const struct nat_window_end *end = &maps->windows[id].ends[w];

	advance(&ways[w].tcp.ack, end->ack, is_active);
	advance(&ways[w].tcp.end, end->end, is_active);
	if (!is_active || ways[w].tcp.window < end->window)
		__atomic_store_n(&ways[w].tcp.window, end->window,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&ways[w].tcp.shift, end->shift, __ATOMIC_RELAXED);
}

void nat_rule_give(struct nat_maps *maps, uint32_t id,
		   enum nat_direction direction, struct nat_remote remote)
{
	const struct nat_map *map = nat_map_at(maps, id);
	struct rule *rule = held_rule(maps, id);
	struct mr_flow_way *ways;

	if (rule == NULL || map->inside.proto != IPPROTO_TCP ||
	    map->remote.addr != remote.addr || map->remote.port != remote.port)
		return;
	ways = mr_rules_ways(maps->rules->set, rule->id);
	if (map->tcp_state == NAT_TCP_CLOSING ||
	    map->tcp_state == NAT_TCP_RESET) {
		/* The end takes it all back. */
		give_end(maps, id, ways, direction, rule->is_active);
		nat_rule_end(maps, id);
		return;
	}
	if (is_established(maps, id)) {
		/* The driver leaves the end of this direction alone until the
		 * frame is confirmed, and both while the rule is inactive. */
		give_end(maps, id, ways, direction, rule->is_active);
		if (!rule->is_active)
			give_end(maps, id, ways, !direction, false);
	}
	if (rule->is_active != is_established(maps, id)) {
		rule->is_active = !rule->is_active;
		mr_rules_set(maps->rules->set, rule->id, 0, rule->is_active);
	}
}

void nat_rule_end(struct nat_maps *maps, uint32_t id)
{
	struct nat_map *map = nat_map_at(maps, id);
	struct rule *rule;

	if ((map->flags & NAT_MAP_RULE) == 0)
		return;
	rule = &maps->rules->rules[id];
	if (rule->state == HELD) {
		mr_rules_set(maps->rules->set, rule->id, 0, 0);
		nat_rule_take(maps, id);
		bury(maps->rules, id);
	} else {
		rule->state = UNASKED;
	}
	map->flags &= ~NAT_MAP_RULE;
}
