/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for sessions: rule.h. */
#include "rule_set.h"

enum {
	/* The driver's clock may be behind ours by so much: a mapping must not
	 * end early. */
	TICK_NS = 10000000,
	SECOND_NS = 1000000000,
	END_FLAGS = NAT_END_SEEN | NAT_END_CONFIRMED | NAT_END_SENT,
};

static struct nat_rule_key key_of(const struct nat_maps *maps, uint32_t map_id,
				  const struct nat_tuple *inside,
				  struct nat_end remote)
{
	const struct nat_map *map = nat_map_at(maps, map_id);

	return (struct nat_rule_key){
		.map_id = map_id,
		.addr = remote.addr,
		.port = !nat_is_one_to_one(map) &&
					nat_is_by_addr(
						maps,
						nat_proto_of(inside->proto)) ?
				0 :
				remote.port,
		.inside_port = inside->port,
		.proto = inside->proto,
	};
}

static bool has_ended(const struct nat_rule *rule)
{
	return rule->state == NAT_RULE_UNASKED || rule->state == NAT_RULE_DEAD;
}

/* The number of a rule that has not ended, or MR_FLOW_NONE. */
static uint32_t find_rule(const struct nat_maps *maps, uint32_t map_id,
			  const struct nat_tuple *inside, struct nat_end remote)
{
	struct nat_rule_key key;
	uint32_t number;

	if ((nat_map_at(maps, map_id)->flags & NAT_MAP_RULES) == 0)
		return MR_FLOW_NONE;
	key = key_of(maps, map_id, inside, remote);
	number = mr_flow_find(maps->rules->table, &key);
	return number != MR_FLOW_NONE &&
			       has_ended(nat_rule_at(maps->rules, number)) ?
		       MR_FLOW_NONE :
		       number;
}

static uint32_t find_session_rule(const struct nat_maps *maps, uint32_t map_id,
				  struct nat_end remote)
{
	return find_rule(maps, map_id, &nat_map_at(maps, map_id)->inside,
			 remote);
}

/* Refresh timers as a packet would have done that the driver forwarded. */
static void refresh_timers(const struct nat_maps *maps,
			   const struct nat_rule *rule,
			   enum nat_direction direction, uint64_t seen_ns)
{
	struct nat_map *map = nat_map_at(maps, rule->key.map_id);
	uint32_t s = (uint32_t)((seen_ns + TICK_NS) / SECOND_NS);

	/* Never later than now, since ages are differences. */
	if ((int32_t)(s - maps->now_s) > 0)
		s = maps->now_s;
	if (seen_ns == 0 || (direction == NAT_IN && !maps->refreshes_inbound) ||
	    nat_is_one_to_one(map))
		return;
	if (map->inside.proto != IPPROTO_TCP)
		nat_later(&map->last_s, s);
	if (rule->session != NAT_NO_SESSION)
		nat_later(nat_tracked_at(maps, rule->key.map_id, rule->session)
				  .last_s,
			  s);
}

static void take_window(const struct nat_maps *maps,
			const struct nat_rule *rule,
			const struct mr_flow_way *ways)
{
	struct nat_window *window =
		nat_tracked_at(maps, rule->key.map_id, rule->session).window;

	for (uint32_t w = 0; w < MR_FLOW_WAYS; w++) {
		const struct mr_flow_end *from = &ways[w].tcp;
		struct nat_window_end *end = &window->ends[w];

		end->ack = __atomic_load_n(&from->ack, __ATOMIC_RELAXED);
		end->end = __atomic_load_n(&from->end, __ATOMIC_RELAXED);
		end->window = __atomic_load_n(&from->window, __ATOMIC_RELAXED);
	}
}

static void take_rule(const struct nat_maps *maps, uint32_t number)
{
	const struct mr_flow_way *ways;
	struct nat_rule *rule;
	struct nat_map *map;

	if (number == MR_FLOW_NONE)
		return;
	rule = nat_rule_at(maps->rules, number);
	if (rule->state != NAT_RULE_HELD)
		return;
	map = nat_map_at(maps, rule->key.map_id);
	ways = mr_rules_ways(maps->rules->set, rule->id);
	for (uint32_t w = 0; w < MR_FLOW_WAYS; w++) {
		const uint32_t n =
			__atomic_load_n(&ways[w].n_frames, __ATOMIC_RELAXED);

		*(w == NAT_OUT ? &map->n_out : &map->n_in) +=
			n - rule->n_frames[w];
		rule->n_frames[w] = n;
		refresh_timers(
			maps, rule, w,
			__atomic_load_n(&ways[w].seen_ns, __ATOMIC_RELAXED));
	}
	if (nat_rule_is_tracked(rule) && rule->is_active)
		take_window(maps, rule, ways);
}

void nat_rule_stop(struct nat_maps *maps, uint32_t number)
{
	struct nat_rule *rule = nat_rule_at(maps->rules, number);

	nat_rule_detach(maps, rule);
	if (rule->state == NAT_RULE_ASKED) {
		rule->state = NAT_RULE_UNASKED;
		return;
	}
	mr_rules_set(maps->rules->set, rule->id, 0, false);
	take_rule(maps, number);
	nat_rule_bury(maps->rules, number);
}

/* Whether both ends are known, and the state allows forwarding. */
static bool is_established(struct nat_tracked session)
{
	return (*session.state == NAT_TCP_OPEN ||
		*session.state == NAT_TCP_HALF_OUT ||
		*session.state == NAT_TCP_HALF_IN) &&
	       session.window->ends[NAT_OUT].seen == END_FLAGS &&
	       session.window->ends[NAT_IN].seen == END_FLAGS;
}

/* Whether a rule ends with its session. Otherwise it ends with the mapping,
 * since any remote end may send. */
static bool is_of_session(const struct nat_maps *maps,
			  const struct nat_map *map)
{
	return !nat_is_one_to_one(map) &&
	       (map->inside.proto != IPPROTO_UDP ||
		maps->filtering[NAT_UDP] != NAT_FILTER_NONE);
}

/* Find the session for a new rule. False: there is no live session. */
static bool find_session(const struct nat_maps *maps, uint32_t id,
			 struct nat_end remote, uint32_t *ret_session)
{
	const struct nat_map *map = nat_map_at(maps, id);
	uint32_t further_id;

	*ret_session = NAT_NO_SESSION;
	if (!is_of_session(maps, map))
		return true;
	*ret_session = 0;
	if (nat_is_first(maps, map, remote) &&
	    nat_first_is_live(maps, map, maps->now_s))
		return true;
	if (map->n_sessions == 0)
		return false;
	further_id = nat_further_find(maps, id, remote);
	*ret_session = further_id + 1;
	return further_id != MR_FLOW_NONE;
}

/* Whether enough frames have passed. The first session has counters; of all
 * other frames, one in some number requests a rule, so that a query with one
 * answer seldom does. */
static bool is_worth_it(const struct nat_maps *maps, const struct nat_map *map,
			struct nat_end remote)
{
	struct nat_rules *rules = maps->rules;

	if (!nat_is_one_to_one(map) && nat_is_first(maps, map, remote))
		return map->n_out + map->n_in >= rules->min_frames;
	return ++rules->n_others % (rules->min_frames * rules->min_frames) == 0;
}

static bool may_request(const struct nat_maps *maps, uint32_t id,
			const struct nat_tuple *inside, struct nat_end remote,
			uint32_t *ret_session)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_rules *rules = maps->rules;

	if (rules->batches[rules->filling].n_asked == NAT_RULES_ASKED ||
	    (int32_t)(maps->now_s - rules->next_s) < 0 ||
	    !find_session(maps, id, remote, ret_session))
		return false;
	if (inside->proto == IPPROTO_TCP && *ret_session != NAT_NO_SESSION)
		return is_established(nat_tracked_at(maps, id, *ret_session));
	return is_worth_it(maps, map, remote);
}

static void request_rule(struct nat_maps *maps, uint32_t id,
			 enum nat_direction direction,
			 const struct nat_tuple *inside, struct nat_end remote,
			 uint32_t hop)
{
	struct nat_rules *rules = maps->rules;
	struct nat_rules_batch *batch = &rules->batches[rules->filling];
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_rule_key key = key_of(maps, id, inside, remote);
	const uint32_t i = batch->n_asked;
	uint32_t session, number;
	struct nat_rule *rule;

	if (!may_request(maps, id, inside, remote, &session) ||
	    mr_flow_add(rules->table, &key, &number) < 0)
		return;
	rule = nat_rule_at(rules, number);
	rule->session = session;
	rule->remote_port = remote.port;
	batch->asked[i] = (struct mr_rule){
		.match = MR_RULE_FLOW,
		.port = NAT_INSIDE,
		.to = NAT_OUTSIDE,
		.proto = inside->proto,
		.from = { map->inside.addr, remote.addr, inside->port,
			  remote.port },
		.as = { map->outside_addr, remote.addr,
			map->flags & NAT_MAP_ADDRESS ? inside->port :
						       map->outside_port,
			remote.port },
	};
	batch->numbers[i] = number;
	batch->hops[i] = hop;
	batch->directions[i] = direction;
	batch->n_asked++;
	nat_rule_attach(maps, number);
	/* The end of its first session is watched from now on. */
	if (session == 0)
		nat_map_set_timer(maps, id);
}

void nat_rule_use(struct nat_maps *maps, uint32_t id,
		  enum nat_direction direction, const struct nat_tuple *inside,
		  struct nat_end remote, uint32_t hop)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_rule *rule;
	uint32_t number;

	if (maps->rules == NULL)
		return;
	if (!nat_is_one_to_one(map))
		inside = &map->inside;
	number = find_rule(maps, id, inside, remote);
	if (number == MR_FLOW_NONE) {
		request_rule(maps, id, direction, inside, remote, hop);
		return;
	}
	rule = nat_rule_at(maps->rules, number);
	if (rule->state == NAT_RULE_HELD && rule->remote_port == remote.port)
		__atomic_store_n(
			&mr_rules_ways(maps->rules->set, rule->id)[direction]
				 .hop,
			hop, __ATOMIC_RELAXED);
}

void nat_rule_take(const struct nat_maps *maps, uint32_t id,
		   struct nat_end remote)
{
	const struct nat_map *map = nat_map_at(maps, id);

	if ((map->flags & NAT_MAP_RULES) == 0 || !is_of_session(maps, map))
		return;
	take_rule(maps, find_session_rule(maps, id, remote));
	if ((map->flags & NAT_MAP_RULE) && !nat_is_first(maps, map, remote))
		take_rule(maps, find_session_rule(maps, id, map->remote));
}

void nat_rules_take(const struct nat_maps *maps, uint32_t id)
{
	if ((nat_map_at(maps, id)->flags & NAT_MAP_RULES) == 0)
		return;
	for (uint32_t i = maps->rules->of_maps[id]; i != 0;
	     i = nat_rule_at(maps->rules, i - 1)->next)
		take_rule(maps, i - 1);
}

/* Without a ticket, the driver may write too: never go back then. */
static void advance_word(uint32_t *to, uint32_t value, bool is_active)
{
	if (!is_active ||
	    (int32_t)(value - __atomic_load_n(to, __ATOMIC_RELAXED)) > 0)
		__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void give_end(const struct nat_window_end *end, struct mr_flow_end *to,
		     bool is_active)
{
	advance_word(&to->ack, end->ack, is_active);
	advance_word(&to->end, end->end, is_active);
	if (!is_active || to->window < end->window)
		__atomic_store_n(&to->window, end->window, __ATOMIC_RELAXED);
	__atomic_store_n(&to->shift, end->shift, __ATOMIC_RELAXED);
}

void nat_rule_give(struct nat_maps *maps, uint32_t id,
		   enum nat_direction direction, struct nat_end remote)
{
	struct nat_tracked session;
	struct mr_flow_way *ways;
	struct nat_rule *rule;
	uint32_t number;
	bool may_pass;

	if (nat_map_at(maps, id)->inside.proto != IPPROTO_TCP)
		return;
	number = find_session_rule(maps, id, remote);
	if (number == MR_FLOW_NONE)
		return;
	rule = nat_rule_at(maps->rules, number);
	if (rule->state != NAT_RULE_HELD)
		return;
	ways = mr_rules_ways(maps->rules->set, rule->id);
	session = nat_tracked_at(maps, id, rule->session);
	may_pass = is_established(session);
	/* The driver does not touch the end of this direction until the frame
	 * is confirmed, nor both ends while the rule is inactive. */
	if (may_pass || *session.state == NAT_TCP_CLOSING ||
	    *session.state == NAT_TCP_RESET)
		give_end(&session.window->ends[direction], &ways[direction].tcp,
			 rule->is_active);
	if (may_pass && !rule->is_active)
		give_end(&session.window->ends[!direction],
			 &ways[!direction].tcp, false);
	if (*session.state == NAT_TCP_CLOSING ||
	    *session.state == NAT_TCP_RESET) {
		nat_rule_stop(maps, number); /* also takes the state */
	} else if (rule->is_active != may_pass) {
		rule->is_active = may_pass;
		mr_rules_set(maps->rules->set, rule->id, 0, rule->is_active);
	}
}

void nat_rule_end(struct nat_maps *maps, uint32_t id, struct nat_end remote)
{
	const uint32_t number = find_session_rule(maps, id, remote);

	if (number != MR_FLOW_NONE)
		nat_rule_stop(maps, number);
}

void nat_rules_end(struct nat_maps *maps, uint32_t id)
{
	while (nat_map_at(maps, id)->flags & NAT_MAP_RULES)
		nat_rule_stop(maps, maps->rules->of_maps[id] - 1);
}
