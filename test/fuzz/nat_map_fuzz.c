/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: the state of a translator, against a model that is a plain list
 * of what was opened, and when it was last used.
 *
 * Four bytes choose the configuration, then each operation takes four: what,
 * and which host, port and remote end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mapping/session.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* UDP: open, send, receive, wait. */
	SEED("\0\0\0\0"
	     "\0\1\1\1\1\1\1\1\2\1\1\1\3\0\0\77\2\1\1\1\3\0\0\377\3\0\0\377"),
	/* Filters by address and port, several remote ends. */
	SEED("\2\0\0\0"
	     "\0\1\1\1\1\1\1\1\1\1\1\2\1\1\1\3\2\1\1\2\2\1\1\7\3\0\0\200"),
	/* TCP from both sides, FINs and an RST. */
	SEED("\1\0\0\0"
	     "\100\1\1\1\101\1\1\22\102\1\1\62\101\1\1\42\102\1\1\102"
	     "\3\0\0\377\101\1\1\22\102\1\1\122"),
	/* Blocks, closed and opened again, reloads. */
	SEED("\0\1\0\0"
	     "\0\1\1\1\0\1\2\1\0\2\1\1\4\1\1\1\5\3\0\0\0\1\3\1\5\0\0\0"
	     "\3\0\0\170\3\0\0\377"),
	/* Deterministic ports; lists and a restart. */
	SEED("\0\2\0\0"
	     "\0\1\1\1\0\3\1\1\100\2\1\1\101\2\1\22\6\0\0\0\0\4\4\1\6\0\0\0"),
	/* No quarantine, parity, the port kept, three workers. */
	SEED("\4\370\2\3"
	     "\0\1\1\1\0\1\2\1\0\2\1\1\4\1\1\1\0\1\1\1\0\7\7\7\3\0\0\1"),
	{ NULL, 0 },
};

enum {
	N_HOSTS = 16,
	N_PORTS = 16,
	MAX_ENTRIES = 3 * N_HOSTS * N_PORTS,
	MAX_SESSIONS = 2048,
	INSIDE = 0x0a000000,
	POOL = 0xcb007100,
	REMOTE = 0xc6336400,
};

static const uint8_t ip_protos[NAT_PROTOS] = { 17, 6, 1 };

/* What the model knows of a mapping. */
struct entry {
	bool is_open, is_static;
	struct nat_tuple inside;
	struct nat_remote outside;
	uint32_t last_s; /* it does not end before its time behind this */
};

/* What a translator looks at for as long as it has it. */
struct setup {
	struct nat_config config;
	struct nat_range pool[2];
	struct nat_prefix subscribers;
	struct nat_forward forwards[2];
};

struct model {
	struct mr_ctx *ctx;
	struct nat_maps *maps;
	struct setup setups[2], *setup; /* the one in force */
	uint32_t now_s, shard, n_shards;
	uint32_t n_open;
	struct entry entries[MAX_ENTRIES];
};

/* Blocks that were begun and not ended, by their first port. */
static int32_t n_blocks;

static void on_log(void *opaque, const struct nat_log_event *event)
{
	(void)opaque;
	if (event->what == NAT_LOG_BLOCK_BEGIN)
		n_blocks++;
	if (event->what == NAT_LOG_BLOCK_END)
		n_blocks--;
	FUZZ_CHECK(n_blocks >= 0);
}

static void choose_ports(struct nat_config *config, uint8_t choice,
			 uint8_t more)
{
	static const uint16_t blocks[] = { 0, 16, 64, 8 };

	config->ports.block = blocks[choice & 3];
	config->ports.is_deterministic = (choice & 3) == 2 && choice & 4;
	config->ports.keeps_port = choice & 8;
	config->ports.keeps_parity = choice & 16;
	config->ports.keeps_class = choice & 32;
	config->is_paired = (choice & 64) == 0;
	config->timeouts.hold_down_s = choice & 128 ? 0 : 20;
	config->ports.max_blocks = 1 + (more & 3);
	config->ports.first = more & 4 ? 1 : 1024;
	config->ports.last =
		(uint16_t)(config->ports.first + (more & 8 ? 2047 : 1023));
	config->n_pool = 1 + (more >> 4 & 1);
	config->n_forwards = more >> 5 & 3;
	if (config->n_forwards == 3)
		config->n_forwards = 2;
}

static void choose(struct setup *setup, const uint8_t *bytes)
{
	struct nat_config *config = &setup->config;
	uint32_t filter = bytes[0] & 3;

	*config = (struct nat_config){
		.pool = setup->pool,
		.subscribers = &setup->subscribers,
		.n_subscribers = 1,
		.forwards = setup->forwards,
		.timeouts = { 30, 24, 100, 20, 10, 6, 6, 30, 2, 20 },
		.max_mappings = bytes[0] & 128 ? 100 : MAX_ENTRIES,
		.max_sessions = bytes[0] & 64 ? 10 : MAX_SESSIONS,
		.max_per_subscriber = bytes[0] & 32 ? 5 : 0,
		.refreshes_inbound = bytes[0] & 16,
	};
	for (uint32_t i = 0; i < NAT_PROTOS; i++)
		config->filtering[i] = filter == 3 ? NAT_FILTER_NONE :
						     (enum nat_filtering)filter;
	choose_ports(config, bytes[1], bytes[2]);
	setup->pool[0] = (struct nat_range){ POOL, POOL };
	setup->pool[1] = (struct nat_range){ POOL + 2, POOL + 12 };
	setup->subscribers = (struct nat_prefix){ INSIDE, 0xfffffff0 };
	setup->forwards[0] = (struct nat_forward){
		POOL, INSIDE + 1, 1050, 1059, 2, 1 << NAT_UDP | 1 << NAT_TCP
	};
	setup->forwards[1] =
		(struct nat_forward){ POOL + 40, INSIDE + 2, 80,
				      80,        3,          1 << NAT_TCP };
}

static struct entry *entry_of(struct model *model, const uint8_t *op)
{
	uint32_t proto = (op[0] >> 6) % NAT_PROTOS;
	uint32_t host = op[1] % N_HOSTS, port = op[2] % N_PORTS;
	struct entry *entry =
		&model->entries[(proto * N_HOSTS + host) * N_PORTS + port];

	entry->inside =
		(struct nat_tuple){ htonl(INSIDE + host), htons((uint16_t)port),
				    ip_protos[proto], 0 };
	return entry;
}

static struct nat_remote remote_of(const uint8_t *op)
{
	bool is_icmp = (op[0] >> 6) % NAT_PROTOS == NAT_ICMP;

	return (struct nat_remote){ htonl(REMOTE + (op[3] & 3)),
				    is_icmp ? 0 : htons(op[3] >> 2 & 3) };
}

static uint8_t flags_of(const uint8_t *op)
{
	static const uint8_t flags[] = { 0x10, 0x02, 0x12, 0x11,
					 0x04, 0x14, 0x10, 0x10 };

	return flags[op[3] >> 4 & 7];
}

static uint32_t find(const struct model *model, const struct entry *entry)
{
	uint32_t id;

	nat_maps_find_out(model->maps, &entry->inside, 1, &id);
	return id;
}

/* How long it lasts at least, behind its last use. */
static uint32_t least_s(const struct model *model, const struct entry *entry)
{
	const struct nat_timeouts *t = &model->setup->config.timeouts;

	switch (nat_proto_of(entry->inside.proto)) {
	case NAT_UDP:
		return t->udp_s;
	case NAT_ICMP:
		return t->icmp_s;
	default:
		return t->tcp_reset_s; /* the shortest of TCP's */
	}
}

/* What is there now is what was there, but for what may have ended. */
static void check_entry(struct model *model, struct entry *entry)
{
	uint32_t id = find(model, entry), back;
	const struct nat_map *map;
	struct nat_tuple outside;

	if (id == MR_FLOW_NONE) {
		FUZZ_CHECK(!entry->is_open || entry->is_static ||
			   model->now_s - entry->last_s >
				   least_s(model, entry));
		entry->is_open = false;
		return;
	}
	map = nat_maps_at(model->maps, id);
	FUZZ_CHECK(entry->is_open || map->flags & NAT_MAP_STATIC);
	FUZZ_CHECK(memcmp(&map->inside, &entry->inside, 8) == 0);
	if (entry->is_open && !entry->is_static &&
	    (map->flags & NAT_MAP_STATIC) == 0) {
		FUZZ_CHECK(map->outside_addr == entry->outside.addr);
		FUZZ_CHECK(map->outside_port == entry->outside.port);
	}
	entry->is_static = map->flags & NAT_MAP_STATIC;
	outside = (struct nat_tuple){ map->outside_addr, map->outside_port,
				      map->inside.proto, 0 };
	nat_maps_find_in(model->maps, &outside, 1, &back);
	/* That forward and reverse agree also means that no two share it. */
	FUZZ_CHECK(back == id);
	model->n_open++;
}

static void check_all(struct model *model)
{
	struct nat_ports_stats ports;
	struct nat_maps_stats stats;

	model->n_open = 0;
	for (uint32_t i = 0; i < MAX_ENTRIES; i++)
		if (model->entries[i].inside.addr != 0)
			check_entry(model, &model->entries[i]);
	nat_maps_stats(model->maps, &stats);
	/* Of the static ones some may never have been asked for. */
	FUZZ_CHECK(stats.n_mappings >= model->n_open &&
		   stats.n_mappings <= model->n_open + 21);
	nat_ports_stats(model->maps->ports, &ports);
	FUZZ_CHECK(ports.n_all == ports.n_free + ports.n_used +
					  ports.n_quarantined + ports.n_static);
	FUZZ_CHECK(stats.n_mappings - model->maps->n_static == ports.n_used);
}

static void open_one(struct model *model, struct entry *entry)
{
	uint32_t id = find(model, entry);
	bool was = id != MR_FLOW_NONE;
	const struct nat_map *map;

	if (nat_maps_open(model->maps, &entry->inside, model->now_s, &id) !=
	    NAT_OK) {
		FUZZ_CHECK(!was);
		return;
	}
	map = nat_maps_at(model->maps, id);
	if (!was)
		entry->last_s = model->now_s;
	entry->is_open = true;
	entry->is_static = map->flags & NAT_MAP_STATIC;
	entry->outside.addr = map->outside_addr;
	entry->outside.port = map->outside_port;
	if (!entry->is_static)
		FUZZ_CHECK(((ntohs(map->outside_port) >> NAT_SLICE_BITS) %
			    model->n_shards) == model->shard);
}

static void send_one(struct model *model, struct entry *entry,
		     const uint8_t *op, bool is_out)
{
	const struct nat_segment segment = { .flags = flags_of(op) };
	uint32_t id = find(model, entry);
	enum nat_reason reason;

	if (id == MR_FLOW_NONE)
		return;
	if (is_out)
		reason = nat_maps_out(model->maps, id, remote_of(op), &segment,
				      model->now_s);
	else
		reason = nat_maps_in(model->maps, id, remote_of(op), &segment,
				     model->now_s);
	if (is_out && entry->inside.proto != 6)
		entry->last_s = model->now_s;
	/* The answer to what went out is let in. */
	if (is_out && reason == NAT_OK && entry->inside.proto != 6)
		FUZZ_CHECK(nat_maps_in(model->maps, id, remote_of(op), &segment,
				       model->now_s) == NAT_OK);
}

static void tick(struct model *model, uint32_t seconds)
{
	uint32_t n_idle = 0;

	model->now_s += seconds;
	while (n_idle < 40)
		n_idle = nat_maps_expire(model->maps, model->now_s) > 0 ?
				 0 :
				 n_idle + 1;
	check_all(model);
}

static bool is_valid(const struct model *model, const struct setup *setup)
{
	struct nat_objection objection;

	return nat_config_check_ports(&setup->config, model->n_shards,
				      &objection) == 0;
}

static int create(struct model *model, struct nat_maps **ret_maps)
{
	struct nat_maps_config config = {
		.ctx = model->ctx,
		.config = &model->setup->config,
		.shard = model->shard,
		.n_shards = model->n_shards,
		.seed = 1,
		.now_s = model->now_s,
		.log = on_log,
	};

	return nat_maps_create(&config, ret_maps, NULL);
}

/* What is not there now, by a reload or for a limit, is not missed. */
static void forget_lost(struct model *model)
{
	for (uint32_t i = 0; i < MAX_ENTRIES; i++)
		if (model->entries[i].inside.addr != 0 &&
		    find(model, &model->entries[i]) == MR_FLOW_NONE)
			model->entries[i].is_open = false;
}

/* What it saves, another one takes up; and is the same then. */
static void restart(struct model *model)
{
	static struct nat_session sessions[MAX_SESSIONS + MAX_ENTRIES];
	const struct nat_config *config = &model->setup->config;
	uint64_t cursor = 0;
	uint32_t n = nat_maps_list(model->maps, &cursor, model->now_s, sessions,
				   MAX_SESSIONS + MAX_ENTRIES);
	bool is_limited = config->max_per_subscriber > 0, is_lost = false;

	nat_maps_destroy(model->maps);
	n_blocks = 0;
	FUZZ_CHECK(create(model, &model->maps) == 0);
	for (uint32_t i = 0; i < n; i++) {
		int err = nat_maps_restore(model->maps, &sessions[i],
					   model->now_s);

		/* A static one without a session is there already; limits may
		 * have become lower meanwhile. */
		FUZZ_CHECK(err == 0 || sessions[i].flags & NAT_MAP_STATIC ||
			   (is_limited && err == -ENOSPC));
		is_lost |= err == -ENOSPC;
	}
	if (is_lost)
		forget_lost(model);
	check_all(model);
}

/* Another configuration; what it does not allow ends, and may. */
static void reload(struct model *model, const uint8_t *op)
{
	struct setup *next = &model->setups[model->setup == model->setups];

	choose(next, op + 1);
	if (!is_valid(model, next))
		return;
	next->config.max_mappings = model->setup->config.max_mappings;
	next->config.max_sessions = model->setup->config.max_sessions;
	if (nat_maps_reload(model->maps, &next->config, model->now_s, NULL) ==
	    0) {
		model->setup = next;
		/* What has to be looked at is so in these. */
		for (uint32_t i = 0; i < 8; i++)
			nat_maps_expire(model->maps, model->now_s);
		forget_lost(model);
	}
	check_all(model);
}

static void run_one(struct model *model, const uint8_t *op)
{
	struct entry *entry = entry_of(model, op);
	uint32_t id;

	switch (op[0] & 7) {
	case 0:
		open_one(model, entry);
		break;
	case 1:
		send_one(model, entry, op, true);
		break;
	case 2:
		send_one(model, entry, op, false);
		break;
	case 3:
		tick(model, op[3]);
		break;
	case 4:
		id = find(model, entry);
		if (id != MR_FLOW_NONE)
			nat_maps_close(model->maps, id, model->now_s);
		if (!entry->is_static)
			entry->is_open = false;
		break;
	case 5:
		reload(model, op);
		break;
	case 6:
		restart(model);
		break;
	default:
		check_all(model);
	}
}

/* All ends, and all ports are free again. */
static void end(struct model *model)
{
	struct nat_maps_stats stats;

	tick(model, 150);
	tick(model, 150);
	nat_maps_stats(model->maps, &stats);
	FUZZ_CHECK(stats.n_mappings == model->maps->n_static);
	FUZZ_CHECK(stats.n_sessions == 0);
	FUZZ_CHECK(stats.n_quarantined == 0);
	FUZZ_CHECK(stats.n_subscribers <= 2);
	FUZZ_CHECK(n_blocks == 0);
	FUZZ_CHECK(model->maps->ports->n_used == 0);
	FUZZ_CHECK(mr_wheel_n(model->maps->wheel) == 0);
	FUZZ_CHECK(mr_wheel_n(model->maps->session_wheel) == 0);
	nat_maps_destroy(model->maps);
	mr_ctx_destroy(model->ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct model model;

	if (n_bytes < 4)
		return 0;
	memset(&model, 0, sizeof(model));
	n_blocks = 0;
	model.setup = model.setups;
	choose(model.setup, bytes);
	model.n_shards = 1 + bytes[3] % 3;
	model.shard = bytes[3] / 3 % model.n_shards;
	model.now_s = UINT32_MAX - 60; /* it wraps on the way */
	FUZZ_CHECK(mr_ctx_create(NULL, &model.ctx, NULL) == 0);
	if (!is_valid(&model, model.setup)) {
		mr_ctx_destroy(model.ctx);
		return 0;
	}
	FUZZ_CHECK(create(&model, &model.maps) == 0);
	for (size_t i = 4; i + 4 <= n_bytes && i < 4 + 4 * 250; i += 4)
		run_one(&model, bytes + i);
	end(&model);
	return 0;
}
