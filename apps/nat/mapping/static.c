/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings from the configuration: see static.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "session.h"
#include "static.h"
#include "support/text.h"

_Static_assert(sizeof(struct nat_static) == 24 &&
		       sizeof(struct nat_static_end) == 16,
	       "records are times 8");

static const uint8_t ip_protos[NAT_PROTOS] = {
	[NAT_UDP] = IPPROTO_UDP,
	[NAT_TCP] = IPPROTO_TCP,
	[NAT_ICMP] = IPPROTO_ICMP,
};

static uint64_t count_mappings(const struct nat_config *config)
{
	uint64_t n = config->n_one_to_ones;

	for (uint32_t i = 0; i < config->n_forwards; i++) {
		const struct nat_port_forward *forward = &config->forwards[i];

		n += (uint64_t)(forward->outside_last - forward->outside_first +
				1) *
		     (uint32_t)__builtin_popcount(forward->proto_mask);
	}
	return n;
}

/* No end occurs twice: see nat_config_check(). */
static int add_static(struct nat_static_set *given,
		      const struct nat_static *what)
{
	struct nat_static *record;
	uint32_t id;
	int err = mr_flow_add(given->by_inside, &what->inside, &id);

	if (err < 0)
		return err;
	record = mr_flow_record(given->by_inside, id);
	record->outside = what->outside;
	record->flags = what->flags;
	err = mr_flow_add(given->by_outside, &what->outside, &id);
	if (err < 0)
		return err;
	((struct nat_static_end *)mr_flow_record(given->by_outside, id))
		->inside = what->inside;
	given->n++;
	return 0;
}

static int add_forward(struct nat_static_set *given,
		       const struct nat_port_forward *forward, uint32_t proto)
{
	uint32_t n = (uint32_t)forward->outside_last - forward->outside_first;
	int err = 0;

	for (uint32_t i = 0; i <= n && err == 0; i++) {
		const struct nat_static what = {
			.inside = { htonl(forward->inside_addr),
				    htons((uint16_t)(forward->inside_first +
						     i)),
				    ip_protos[proto], 0 },
			.outside = { htonl(forward->outside_addr),
				     htons((uint16_t)(forward->outside_first +
						      i)),
				     ip_protos[proto], 0 },
			.flags = NAT_MAP_STATIC,
		};

		err = add_static(given, &what);
	}
	return err;
}

static int add_all(struct nat_static_set *given,
		   const struct nat_config *config,
		   struct mr_reason *reterr_why)
{
	int err = 0;

	for (uint32_t i = 0; i < config->n_one_to_ones && err == 0; i++) {
		const struct nat_one_to_one *pair = &config->one_to_ones[i];
		const struct nat_static what = {
			.inside = { .addr = htonl(pair->inside_addr) },
			.outside = { .addr = htonl(pair->outside_addr) },
			.flags = NAT_MAP_STATIC | NAT_MAP_ADDRESS,
		};

		err = add_static(given, &what);
	}
	given->n_one_to_ones = config->n_one_to_ones;
	for (uint32_t i = 0; i < config->n_forwards; i++)
		for (uint32_t proto = 0; proto < NAT_PROTOS && err == 0;
		     proto++)
			if (config->forwards[i].proto_mask & 1u << proto)
				err = add_forward(given, &config->forwards[i],
						  proto);
	return err == 0 ? 0 :
			  fail_with(reterr_why, err,
				    "no memory for static mappings");
}

int nat_static_set_init(struct nat_static_set *given, struct mr_ctx *ctx,
			const struct nat_config *config,
			struct mr_reason *reterr_why)
{
	struct mr_flow_config table = {
		.size = sizeof(table),
		.key_bytes = sizeof(struct nat_tuple),
		.record_bytes = sizeof(struct nat_static),
		.n_max = (uint32_t)count_mappings(config) + 1,
	};
	int err;

	*given = (struct nat_static_set){ 0 };
	if (nat_ordinals_init(&given->ordinals, config) < 0) {
		return fail_with(reterr_why, -ENOMEM,
				 "no memory for %u networks of subscribers",
				 config->n_subscribers);
	}
	err = mr_flow_create(ctx, &table, &given->by_inside, reterr_why);
	table.record_bytes = sizeof(struct nat_static_end);
	if (err == 0)
		err = mr_flow_create(ctx, &table, &given->by_outside,
				     reterr_why);
	if (err == 0)
		err = add_all(given, config, reterr_why);
	if (err < 0)
		nat_static_set_fini(given);
	return err;
}

void nat_static_set_fini(struct nat_static_set *given)
{
	mr_flow_destroy(given->by_outside);
	mr_flow_destroy(given->by_inside);
	nat_externals_fini(&given->ordinals);
	*given = (struct nat_static_set){ 0 };
}

bool nat_static_has(const struct nat_static_set *given,
		    const struct nat_map *map)
{
	uint32_t id = mr_flow_find(given->by_inside, &map->inside);
	const struct nat_static *what;

	if (id == MR_FLOW_NONE)
		return false;
	what = nat_static_at(given, id);
	return what->flags == (map->flags & NAT_MAP_KIND) &&
	       what->outside.addr == map->outside_addr &&
	       what->outside.port == map->outside_port;
}

static void fill_mapping(struct nat_maps *maps, uint32_t id,
			 const struct nat_static *what, uint32_t subscriber_id)
{
	const struct nat_end outside = { what->outside.addr,
					 what->outside.port };

	nat_map_fill(maps, id, outside, what->flags, subscriber_id,
		     maps->now_s);
	nat_subscriber_at(maps->subscribers, subscriber_id)->n_static++;
	maps->n_static++;
}

/* Create a mapping, with the memory for its external end. */
static int make_mapping(struct nat_maps *maps, struct nat_static *what)
{
	uint32_t id, subscriber_id;
	int err = mr_flow_add(maps->table, &what->inside, &id);

	if (err < 0)
		return err;
	subscriber_id =
		nat_subscriber_get(maps->subscribers, what->inside.addr);
	if (subscriber_id == MR_FLOW_NONE) {
		mr_flow_remove(maps->table, id);
		return -ENOMEM;
	}
	fill_mapping(maps, id, what, subscriber_id);
	what->is_new = true;
	/* -EEXIST: a mapping that is about to end has it. */
	err = nat_other_add(maps, &what->outside, id);
	return err == -EEXIST ? 0 : err;
}

static void unmake_mapping(struct nat_maps *maps, const struct nat_static *what)
{
	uint32_t id = mr_flow_find(maps->table, &what->inside);
	uint32_t subscriber_id = nat_map_at(maps, id)->subscriber;

	nat_other_remove(maps, &what->outside, id);
	nat_map_drop(maps, id);
	nat_subscriber_put(maps->subscribers, subscriber_id);
}

int nat_static_set_make(struct nat_maps *maps, struct nat_static_set *given,
			struct mr_reason *reterr_why)
{
	struct mr_flow_table *table = given->by_inside;
	int err = 0;

	for (uint32_t i = mr_flow_next(table, MR_FLOW_NONE);
	     i != MR_FLOW_NONE && err == 0; i = mr_flow_next(table, i))
		if (mr_flow_find(maps->table,
				 &nat_static_at(given, i)->inside) ==
		    MR_FLOW_NONE)
			err = make_mapping(maps, nat_static_at(given, i));
	if (err == 0)
		return 0;
	for (uint32_t i = mr_flow_next(table, MR_FLOW_NONE); i != MR_FLOW_NONE;
	     i = mr_flow_next(table, i))
		if (nat_static_at(given, i)->is_new)
			unmake_mapping(maps, nat_static_at(given, i));
	return fail_with(reterr_why, -ENOMEM, "no memory for static mappings");
}

void nat_static_set_convert(struct nat_maps *maps, struct nat_static_set *given,
			    uint32_t now_s)
{
	struct mr_flow_table *table = given->by_inside;

	for (uint32_t i = mr_flow_next(table, MR_FLOW_NONE); i != MR_FLOW_NONE;
	     i = mr_flow_next(table, i)) {
		struct nat_static *what = nat_static_at(given, i);
		uint32_t id = mr_flow_find(maps->table, &what->inside);

		if (nat_static_has(given, nat_map_at(maps, id)))
			continue;
		nat_map_strip(maps, id, now_s);
		fill_mapping(maps, id, what, nat_map_at(maps, id)->subscriber);
		what->is_new = true;
	}
}

/* Enter the external end: in the array if the port is ours, else by hash. */
static void enter_outside(struct nat_maps *maps, uint32_t id)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_tuple outside = nat_outside_of(map);
	struct nat_subscriber *subscriber =
		nat_subscriber_at(maps->subscribers, map->subscriber);
	const uint32_t place = nat_place_of(maps->ports, &outside);
	uint32_t index = nat_external_index(&maps->ports->externals,
					    ntohl(outside.addr));

	/* Paired: connections that it opens use the same address. */
	if (index != NAT_EXTERNAL_NONE && subscriber->external == 0)
		subscriber->external = index + 1;
	if (place == NAT_PLACE_NONE) {
		nat_other_add(maps, &outside, id);
		return;
	}
	nat_other_remove(maps, &outside, id);
	nat_ports_set_static(maps->ports, place, id);
}

void nat_static_set_enter(struct nat_maps *maps, struct nat_static_set *given,
			  bool all)
{
	struct mr_flow_table *table = given->by_inside;

	for (uint32_t i = mr_flow_next(table, MR_FLOW_NONE); i != MR_FLOW_NONE;
	     i = mr_flow_next(table, i)) {
		struct nat_static *what = nat_static_at(given, i);

		if (all || what->is_new)
			enter_outside(maps,
				      mr_flow_find(maps->table, &what->inside));
		what->is_new = false;
	}
	maps->n_one_to_ones = given->n_one_to_ones;
}
