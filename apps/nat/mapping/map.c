/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of a worker, and lookups in them; see map.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "session.h"
#include "static.h"
#include "support/text.h"

enum {
	/* Above the longest default timeout: few ids are visited early. */
	WHEEL_SLOTS = 8192,
	/* Its memory per id. */
	WHEEL_ID_BYTES = 12,
	/* Static mappings that a reload may add. */
	N_SPARE_STATIC = 4096,
};

static uint32_t share_of(uint32_t n, uint32_t n_shards)
{
	return (uint32_t)(((uint64_t)n + n_shards - 1) / n_shards);
}

static int make_table(struct nat_maps *maps, uint32_t key_bytes,
		      uint32_t record_bytes, uint32_t n_max,
		      struct mr_flow_table **ret_table,
		      struct mr_reason *reterr_why)
{
	const struct mr_flow_config config = {
		.size = sizeof(config),
		.key_bytes = key_bytes,
		.record_bytes = record_bytes,
		.n_max = n_max,
		.seed = nat_random_u64(&maps->random) | 1,
	};

	return mr_flow_create(maps->ctx, &config, ret_table, reterr_why);
}

static int make_tables(struct nat_maps *maps, uint32_t now_s,
		       struct mr_reason *reterr_why)
{
	uint32_t n_maps = nat_maps_n_max(maps);
	/* Each session may have a permit. */
	uint32_t n_sessions = nat_clamp_count(2ull * maps->max_sessions + 1);
	/* A subscriber without mappings still has a block of ports, which used
	 * to be full of mappings: only flapping hosts could need more than
	 * twice as many. */
	uint32_t n_subscribers = nat_clamp_count(2ull * n_maps);
	int err;

	/* The kernel allocates memory only for those of TCP. */
	maps->windows = calloc(n_maps, sizeof(*maps->windows));
	if (maps->windows == NULL) {
		return fail_with(
			reterr_why, -ENOMEM,
			"no memory for the windows of %u TCP connections",
			n_maps);
	}
	err = make_table(maps, sizeof(struct nat_tuple), sizeof(struct nat_map),
			 n_maps, &maps->table, reterr_why);
	if (err == 0)
		err = make_table(maps, sizeof(struct nat_tuple),
				 sizeof(struct nat_other), n_maps,
				 &maps->others, reterr_why);
	if (err == 0)
		err = make_table(maps, sizeof(struct nat_further_key),
				 sizeof(struct nat_further), n_sessions,
				 &maps->sessions, reterr_why);
	if (err == 0)
		err = make_table(maps, NAT_SUBSCRIBER_KEY,
				 sizeof(struct nat_subscriber), n_subscribers,
				 &maps->subscribers, reterr_why);
	if (err == 0)
		err = mr_wheel_create(maps->ctx, n_maps, WHEEL_SLOTS, now_s,
				      &maps->wheel, reterr_why);
	if (err == 0)
		err = mr_wheel_create(maps->ctx, n_sessions, WHEEL_SLOTS, now_s,
				      &maps->session_wheel, reterr_why);
	return err;
}

/* With as much memory as n mappings will need. */
static int make_spare(struct nat_maps *maps, uint32_t n, uint32_t now_s,
		      struct mr_reason *reterr_why)
{
	enum { PER_PAGE = 4096 / WHEEL_ID_BYTES };
	const uint32_t n_maps = nat_maps_n_max(maps);
	struct mr_flow_config config = {
		.size = sizeof(config),
		.key_bytes = sizeof(struct nat_tuple),
		.record_bytes = sizeof(struct nat_map),
		.n_max = n_maps,
		.n_start = n < n_maps ? n : n_maps,
		.seed = 1,
	};
	int err = mr_flow_create(maps->ctx, &config, &maps->spare_table,
				 reterr_why);

	if (err == 0)
		err = mr_wheel_create(maps->ctx, n_maps, WHEEL_SLOTS, now_s,
				      &maps->spare_wheel, reterr_why);
	for (uint32_t id = 0; id < config.n_start && err == 0; id += PER_PAGE)
		mr_wheel_set(maps->spare_wheel, id, now_s);
	return err;
}

void nat_maps_adopt(struct nat_maps *maps, const struct nat_config *config)
{
	maps->config = config;
	maps->timeouts = config->timeouts;
	maps->refreshes_inbound = config->refreshes_inbound;
	maps->max_mappings = share_of(config->max_mappings, maps->n_shards);
	maps->max_sessions = share_of(config->max_sessions, maps->n_shards);
	for (uint32_t i = 0; i < NAT_PROTOS; i++)
		maps->filtering[i] = (uint8_t)config->filtering[i];
}

int nat_maps_make_ports(struct nat_maps *maps, const struct nat_config *config,
			struct nat_ports **ret_ports,
			struct mr_reason *reterr_why)
{
	const struct nat_ports_env env = {
		.shard = maps->shard,
		.n_shards = maps->n_shards,
		.random = &maps->random,
		.subscribers = maps->subscribers,
		.log = maps->log,
		.opaque = maps->opaque,
	};

	return nat_ports_create(config, &env, ret_ports, reterr_why);
}

static int init_maps(struct nat_maps *maps,
		     const struct nat_maps_config *config,
		     struct mr_reason *reterr_why)
{
	struct nat_static_set *given = &maps->static_ends;
	int err = nat_random_init(&maps->random, config->seed);

	if (err < 0) {
		return fail_with(
			reterr_why, err,
			"getrandom: no random numbers for choosing ports");
	}
	nat_maps_adopt(maps, config->config);
	maps->n_max_mappings = maps->max_mappings;
	maps->n_max_sessions = maps->max_sessions;
	err = nat_static_set_init(given, maps->ctx, config->config, reterr_why);
	if (err < 0)
		return err;
	maps->n_max_static = given->n + N_SPARE_STATIC;
	err = make_tables(maps, config->now_s, reterr_why);
	if (err == 0 && config->n_expected > 0)
		err = make_spare(maps, config->n_expected, config->now_s,
				 reterr_why);
	if (err == 0)
		err = nat_maps_make_ports(maps, config->config, &maps->ports,
					  reterr_why);
	if (err == 0)
		err = nat_static_set_make(maps, given, reterr_why);
	if (err == 0)
		nat_static_set_enter(maps, given, true);
	return err;
}

int nat_maps_create(const struct nat_maps_config *config,
		    struct nat_maps **ret_maps, struct mr_reason *reterr_why)
{
	struct nat_maps *maps;
	struct mr_reason unused;
	int err;

	if (reterr_why == NULL)
		reterr_why = &unused;
	maps = calloc(1, sizeof(*maps));
	if (maps == NULL) {
		return fail_with(reterr_why, -ENOMEM, "no memory for mappings");
	}
	maps->ctx = config->ctx;
	maps->shard = config->shard;
	maps->n_shards = config->n_shards;
	maps->log = config->log;
	maps->opaque = config->opaque;
	maps->now_s = config->now_s;
	err = init_maps(maps, config, reterr_why);
	if (err < 0) {
		nat_maps_destroy(maps);
		return err;
	}
	*ret_maps = maps;
	return 0;
}

void nat_maps_destroy(struct nat_maps *maps)
{
	if (maps == NULL)
		return;
	nat_rules_destroy(maps->rules);
	nat_static_set_fini(&maps->static_ends);
	nat_ports_destroy(maps->ports);
	mr_wheel_destroy(maps->spare_wheel);
	mr_flow_destroy(maps->spare_table);
	mr_wheel_destroy(maps->session_wheel);
	mr_wheel_destroy(maps->wheel);
	mr_flow_destroy(maps->subscribers);
	mr_flow_destroy(maps->sessions);
	mr_flow_destroy(maps->others);
	mr_flow_destroy(maps->table);
	free(maps->windows);
	free(maps);
}

struct nat_map *nat_maps_at(struct nat_maps *maps, uint32_t id)
{
	return nat_map_at(maps, id);
}

struct nat_map *nat_maps_fetch(struct nat_maps *maps, uint32_t id,
			       uint8_t proto)
{
	struct nat_map *map = nat_map_at(maps, id);

	__builtin_prefetch(map, 1);
	if (proto == IPPROTO_TCP)
		__builtin_prefetch(&maps->windows[id], 1);
	return map;
}

uint32_t nat_maps_static_shard(const struct nat_maps *maps, uint32_t id)
{
	const struct nat_map *map = nat_map_at(maps, id);

	return map->flags & NAT_MAP_STATIC ?
		       nat_steer_subscriber(map->inside.addr, maps->n_shards) :
		       NAT_SHARD_NONE;
}

bool nat_maps_is_elsewhere(const struct nat_maps *maps, uint32_t id)
{
	const uint32_t shard = nat_maps_static_shard(maps, id);

	return shard != NAT_SHARD_NONE && shard != maps->shard;
}

/* If a tuple is not found, its address may be mapped one to one. No other
 * mapping has a key without a protocol. */
static void find_one_to_ones(const struct nat_maps *maps,
			     const struct nat_tuple *inside, uint32_t n,
			     uint32_t *ids)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct nat_tuple any = { .addr = inside[i].addr };

		if (ids[i] == MR_FLOW_NONE)
			ids[i] = mr_flow_find(maps->table, &any);
	}
}

void nat_maps_find_out(const struct nat_maps *maps,
		       const struct nat_tuple *inside, uint32_t n,
		       uint32_t *ret_ids)
{
	for (uint32_t i = 0; i < n; i += MR_FLOW_BURST_MAX) {
		uint32_t n_here =
			n - i < MR_FLOW_BURST_MAX ? n - i : MR_FLOW_BURST_MAX;

		mr_flow_find_bulk(maps->table, inside + i, n_here, ret_ids + i);
		if (maps->n_one_to_ones > 0)
			find_one_to_ones(maps, inside + i, n_here, ret_ids + i);
	}
}

/* For those that are not in the array of ports. */
static uint32_t find_other(const struct nat_maps *maps,
			   const struct nat_tuple *outside)
{
	const struct nat_tuple any = { .addr = outside->addr };
	const struct nat_other *other;
	uint32_t id = mr_flow_find(maps->others, outside);

	if (id == MR_FLOW_NONE && maps->n_one_to_ones > 0)
		id = mr_flow_find(maps->others, &any);
	if (id == MR_FLOW_NONE)
		return MR_FLOW_NONE;
	other = mr_flow_record(maps->others, id);
	return other->map_id;
}

/* By now the array entries are being prefetched. */
static void find_places(const struct nat_maps *maps,
			const struct nat_tuple *outside, uint32_t n,
			uint32_t *places)
{
	for (uint32_t i = 0; i < n; i++) {
		places[i] = nat_place_of(maps->ports, &outside[i]);
		if (places[i] != NAT_PLACE_NONE)
			__builtin_prefetch(&maps->ports->index[places[i]]);
	}
}

void nat_maps_find_in(const struct nat_maps *maps,
		      const struct nat_tuple *outside, uint32_t n,
		      uint32_t *ret_ids)
{
	find_places(maps, outside, n, ret_ids);
	for (uint32_t i = 0; i < n; i++) {
		if (ret_ids[i] != NAT_PLACE_NONE)
			ret_ids[i] = nat_ports_mapping(maps->ports, ret_ids[i]);
		if (ret_ids[i] == MR_FLOW_NONE)
			ret_ids[i] = find_other(maps, &outside[i]);
		if (ret_ids[i] != MR_FLOW_NONE)
			__builtin_prefetch(nat_map_at(maps, ret_ids[i]), 1);
	}
}

void nat_maps_stats(const struct nat_maps *maps, struct nat_maps_stats *stats)
{
	const struct mr_flow_table *tables[] = { maps->table, maps->others,
						 maps->sessions,
						 maps->subscribers };
	struct mr_flow_stats flow = { .size = sizeof(flow) };
	struct nat_ports_stats ports;

	nat_ports_stats(maps->ports, &ports);
	*stats = (struct nat_maps_stats){
		.n_mappings = maps->n_mappings + maps->n_static,
		.n_sessions = maps->n_sessions,
		.created = maps->created,
		.expired = maps->expired,
		.n_hold_down = ports.n_hold_down,
		.n_ports = ports.n_all,
		.n_ports_used = ports.n_used + ports.n_static,
		.bytes = sizeof(*maps) + ports.bytes,
	};
	for (uint32_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		mr_flow_stats(tables[i], &flow);
		stats->bytes += flow.bytes;
	}
	stats->n_subscribers = flow.n;
	stats->bytes += (uint64_t)maps->n_windows * sizeof(maps->windows[0]);
	stats->bytes +=
		(uint64_t)WHEEL_ID_BYTES *
		(mr_wheel_n(maps->wheel) + mr_wheel_n(maps->session_wheel));
}
