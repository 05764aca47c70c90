/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A translator without ports and without a clock, for Python: one worker's
 * mappings and packet path over a small pool. harness.py is its other half;
 * numbers are host order, bytes are frames.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/addrs.h"
#include "config/keys.h"
#include "datapath/neighbours.h"
#include "datapath/path.h"
#include "datapath/steer.h"
#include "harness.h"
#include "mapping/map.h"
#include "offload.h"
#include "simulated.h"
#include "support/yaml_show.h"

enum {
	N_PAGES = 2048,
	MAX_OUT = 65536,
	MAX_EVENTS = 65536,
	HEADROOM = 128, /* before each entry's bytes */
};

/* A frame that came out. */
struct out {
	uint8_t *bytes;
	uint32_t n_bytes, flags;
};

struct harness {
	struct nat_config configs[2],
		*config; /* a reload makes the other one */
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_cache *cache;
	uint8_t *base;
	struct nat_neighbours *neighbours;
	struct nat_maps *maps;
	struct nat_path *path;
	struct offload offload;
	uint32_t shard, n_shards;
	uint64_t now_ns;
	uint32_t n_shared; /* pages that the harness owns, too */
	struct mr_frame shared[64];
	struct out outs[HARNESS_OUTS][MAX_OUT];
	uint32_t n_out[HARNESS_OUTS], first_out[HARNESS_OUTS];
	struct nat_log_event events[MAX_EVENTS];
	uint32_t n_events;
};

static uint32_t now_s(const struct harness *harness)
{
	return (uint32_t)(harness->now_ns / 1000000000);
}

static const uint8_t harness_macs[NAT_SIDES][6] = {
	{ 2, 0xa, 0xa, 0xa, 0xa, 0xa }, /* inside */
	{ 2, 0xb, 0xb, 0xb, 0xb, 0xb },
};

struct harness *harness_new(uint32_t shard, uint32_t n_shards, uint32_t start_s)
{
	struct harness *harness = calloc(1, sizeof(*harness));

	if (harness != NULL) {
		harness->config = harness->configs;
		harness->shard = shard;
		harness->n_shards = n_shards;
		harness->now_ns = start_s * UINT64_C(1000000000);
	}
	return harness;
}

void harness_offload(struct harness *harness, uint32_t lag, uint32_t n_rules)
{
	harness->offload = (struct offload){ .lag = lag, .n_max = n_rules };
}

bool harness_key(uint32_t i, char *ret_name, uint32_t n_max)
{
	struct nat_key key;

	if (!nat_key_at(i, &key))
		return false;
	snprintf(ret_name, n_max, "%s", key.name);
	return true;
}

/* A configuration that need not make sense together. */
static int read_unchecked(const char *text, struct nat_config *config,
			  struct mr_reason *why)
{
	struct yaml_errors errors;
	struct yaml_reader reader;
	int err = yaml_open(&reader, "harness", text, strlen(text), &errors);

	if (err == 0) {
		nat_config_init(config);
		err = yaml_take_keys(&reader, nat_keys, yaml_root(&reader),
				     config);
		yaml_close(&reader);
	}
	if (err < 0)
		*why = errors.list[0];
	return err < 0 ? err : nat_config_complete(config);
}

static void keep_event(void *opaque, const struct nat_log_event *event)
{
	struct harness *harness = opaque;

	if (harness->n_events < MAX_EVENTS)
		harness->events[harness->n_events++] = *event;
}

static int make_pool(struct harness *harness, struct mr_reason *why)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config) };
	const struct mr_pool_config pool_config = {
		.size = sizeof(pool_config),
		.n_pages = N_PAGES,
		.safety = MR_SAFETY_STATES,
	};

	if (mr_ctx_create(&ctx_config, &harness->ctx, why) < 0 ||
	    mr_pool_create(harness->ctx, &pool_config, &harness->pool, why) <
		    0 ||
	    mr_cache_create(harness->pool, &harness->cache, why) < 0)
		return -1;
	harness->base = mr_region_base(mr_pool_region(harness->pool));
	return 0;
}

/* The next frame that comes out of a side. */
static uint8_t *add_out(struct harness *harness, uint32_t side,
			uint32_t n_bytes, uint32_t flags)
{
	struct out *out =
		&harness->outs[side][harness->n_out[side]++ % MAX_OUT];

	out->n_bytes = n_bytes;
	out->flags = flags;
	return out->bytes = malloc(n_bytes);
}

/* Take all that came out, and have it as bytes. */
static void collect(struct harness *harness)
{
	for (uint32_t side = 0; side < HARNESS_OUTS; side++) {
		struct nat_outbox *outbox =
			side == HARNESS_LOOP ?
				nat_path_loop(harness->path) :
				nat_path_outbox(harness->path, side);
		uint32_t n;

		for (uint32_t i = 0; i < outbox->n; i += n) {
			struct mr_frame *f = &outbox->frames[i];
			uint8_t *to;

			n = mr_frame_n_entries(f);
			to = add_out(harness, side,
				     (uint32_t)mr_frame_n_bytes(f, n),
				     f->flags);
			for (uint32_t j = 0; j < n; j++) {
				memcpy(to, mr_frame_data(harness->base, &f[j]),
				       f[j].len);
				to += f[j].len;
			}
		}
		mr_frame_free_bulk(harness->cache, outbox->frames, outbox->n);
		outbox->n = 0;
	}
}

static int read_config(const struct harness *harness, const char *text,
		       bool is_checked, struct nat_config *config,
		       struct mr_reason *why)
{
	struct yaml_errors errors;
	int err;

	if (!is_checked) {
		err = read_unchecked(text, config, why);
	} else {
		err = nat_settings_parse("harness", text, strlen(text),
					 harness->n_shards, config, &errors);
		if (err < 0)
			*why = errors.list[0];
	}
	return err < 0 ? err : nat_addrs_create(config);
}

int harness_start(struct harness *harness, const char *text, bool is_checked,
		  char *why, uint32_t n_why)
{
	struct mr_reason reason = { "" };
	struct nat_maps_config maps_config = {
		.config = harness->config,
		.shard = harness->shard,
		.n_shards = harness->n_shards,
		.seed = 1,
		.now_s = now_s(harness),
		.log = keep_event,
		.opaque = harness,
	};
	struct nat_path_config path_config = { .config = harness->config,
					       .worker_idx = harness->shard,
					       .n_workers = harness->n_shards };

	if (read_config(harness, text, is_checked, harness->config, &reason) <
		    0 ||
	    make_pool(harness, &reason) < 0)
		goto failed;
	maps_config.ctx = path_config.ctx = harness->ctx;
	path_config.cache = harness->cache;
	path_config.base = harness->base;
	memcpy(path_config.macs, harness_macs, sizeof(harness_macs));
	for (uint32_t side = 0; side < NAT_SIDES; side++)
		path_config.mtus[side] = harness->config->sides[side].mtu;
	if (nat_neighbours_create(harness->config, &harness->neighbours,
				  &reason) < 0 ||
	    nat_maps_create(&maps_config, &harness->maps, &reason) < 0)
		goto failed;
	path_config.neighbours = harness->neighbours;
	path_config.maps = harness->maps;
	if (offload_open(&harness->offload, &path_config, &reason) < 0 ||
	    nat_path_create(&path_config, &harness->path, &reason) < 0)
		goto failed;
	nat_path_tick(harness->path, harness->now_ns);
	collect(harness);
	return 0;
failed:
	snprintf(why, n_why, "%s", reason.text);
	return -1;
}

/* Whether all keys that differ can change at run time. */
static int check_changes(const struct nat_config *config,
			 const struct nat_config *next, struct mr_reason *why)
{
	json_t *from = yaml_show(nat_keys, config);
	json_t *to = yaml_show(nat_keys, next);
	json_t *changes = yaml_changes(nat_keys, from, to), *change;
	int err = 0;
	size_t i;

	json_array_foreach(changes, i, change) if (json_is_true(json_object_get(
							   change, "restart")))
	{
		snprintf(why->text, sizeof(why->text), "%s",
			 json_string_value(json_object_get(change, "key")));
		err = -1;
	}
	json_decref(from);
	json_decref(to);
	json_decref(changes);
	return err;
}

/* As reload.c and request.c do it. */
int harness_reload(struct harness *harness, const char *text, bool is_checked,
		   char *why, uint32_t n_why)
{
	struct nat_config *next =
		&harness->configs[harness->config == harness->configs];
	struct mr_reason reason = { "no memory" };
	int err;

	nat_config_free(next);
	err = read_config(harness, text, is_checked, next, &reason);
	if (err == 0)
		err = check_changes(harness->config, next, &reason);
	offload_end(&harness->offload);
	if (err == 0)
		err = nat_maps_reload(harness->maps, next, now_s(harness),
				      &reason);
	if (err < 0) {
		snprintf(why, n_why, "%s", reason.text);
		return -1;
	}
	nat_path_reload(harness->path, next);
	nat_neighbours_follow(harness->neighbours, harness->config, next,
			      now_s(harness));
	harness->config = next;
	collect(harness);
	offload_serve(&harness->offload, harness->path);
	return 0;
}

/* Entries of at most n_first, n_rest, n_rest, ... bytes (0: all there is). */
static uint32_t make_frame(struct harness *harness, const uint8_t *bytes,
			   uint32_t n_bytes, uint32_t n_first, uint32_t n_rest,
			   struct mr_frame *frames)
{
	uint32_t n = 0, n_now = n_first;

	while (n_bytes > 0 && n < MR_MAX_SEGS) {
		const uint64_t addr = mr_frag_alloc(harness->cache, 4096);
		struct mr_frame *f = &frames[n++];

		if (addr == MR_ADDR_NONE)
			abort();
		if (n_now == 0 || n_now > n_bytes)
			n_now = n_bytes;
		if (n_now > 4096 - HEADROOM)
			n_now = 4096 - HEADROOM;
		*f = (struct mr_frame){ .addr = addr + HEADROOM, .len = n_now };
		memcpy(mr_frame_data(harness->base, f), bytes, n_now);
		bytes += n_now;
		n_bytes -= n_now;
		f->flags = n_bytes > 0 ? MR_FRAME_MORE : 0;
		n_now = n_rest;
	}
	if (n_bytes == 0)
		return n;
	mr_frame_free_bulk(harness->cache, frames, n);
	return 0; /* more entries than a frame may have */
}

/* As the driver does it: the XDP program first. */
static int receive_frame(struct harness *harness, uint32_t side,
			 const uint8_t *bytes, uint32_t n_bytes)
{
	uint8_t after[SIMULATED_FRAME];
	struct mr_flow_ticket ticket;
	struct mr_frame frame;
	enum simulated result;

	memcpy(after, bytes, n_bytes);
	result = simulated_run(harness->offload.rules, side, after, &n_bytes,
			       &ticket);
	if (result == SIMULATED_FAILED)
		return -1;
	if (result == SIMULATED_SENT) {
		memcpy(add_out(harness, side ^ 1, n_bytes, 0), after, n_bytes);
		return 0;
	}
	if (make_frame(harness, after, n_bytes, 0, 0, &frame) != 1)
		return -1;
	memcpy(mr_frame_data(harness->base, &frame) - sizeof(ticket), &ticket,
	       sizeof(ticket));
	nat_burst(harness->path, side, &frame, 1);
	return 0;
}

int harness_send(struct harness *harness, uint32_t side, const uint8_t *bytes,
		 uint32_t n_bytes, uint32_t flags, uint32_t n_first,
		 uint32_t n_rest)
{
	struct mr_frame frames[MR_MAX_SEGS];
	uint32_t n;

	if (harness->offload.rules != NULL && flags == 0 && n_first == 0 &&
	    n_bytes <= SIMULATED_FRAME - HEADROOM) {
		if (receive_frame(harness, side, bytes, n_bytes) < 0)
			return -1;
		collect(harness);
		offload_serve(&harness->offload, harness->path);
		return 0;
	}
	n = make_frame(harness, bytes, n_bytes, n_first, n_rest, frames);
	if (n == 0)
		return -1;
	frames[0].flags |= flags & (MR_FRAME_CSUM_VALID |
				    MR_FRAME_CSUM_PARTIAL | NAT_FRAME_LOOPED);
	if ((flags & HARNESS_SHARED) &&
	    mr_frame_ref(harness->cache, frames, n) == 0) {
		memcpy(&harness->shared[harness->n_shared], frames,
		       n * sizeof(*frames));
		harness->n_shared += n;
	}
	nat_burst(harness->path, side, frames, n);
	collect(harness);
	offload_serve(&harness->offload, harness->path);
	return 0;
}

/* The bytes of what harness_send() shared must be as they were; gives them
 * back. */
int harness_shared_is(struct harness *harness, const uint8_t *bytes,
		      uint32_t n_bytes)
{
	uint32_t at = 0;
	int is_same = 1;

	for (uint32_t i = 0; i < harness->n_shared; i++) {
		is_same &= at + harness->shared[i].len <= n_bytes &&
			   memcmp(mr_frame_data(harness->base,
						&harness->shared[i]),
				  bytes + at, harness->shared[i].len) == 0;
		at += harness->shared[i].len;
	}
	mr_frame_free_bulk(harness->cache, harness->shared, harness->n_shared);
	harness->n_shared = 0;
	return is_same && at == n_bytes;
}

int harness_recv(struct harness *harness, uint32_t side, uint8_t *bytes,
		 uint32_t n_max, uint32_t *ret_flags)
{
	struct out *out =
		&harness->outs[side][harness->first_out[side] % MAX_OUT];
	int n;

	if (harness->first_out[side] == harness->n_out[side])
		return 0;
	n = (int)(out->n_bytes < n_max ? out->n_bytes : n_max);
	memcpy(bytes, out->bytes, (size_t)n);
	*ret_flags = out->flags;
	free(out->bytes);
	harness->first_out[side]++;
	return n;
}

void harness_advance_ms(struct harness *harness, uint32_t ms)
{
	while (ms > 0) {
		const uint32_t step = ms > 60000 ? 1000 : ms > 100 ? 100 : ms;

		ms -= step;
		harness->now_ns += step * UINT64_C(1000000);
		offload_tick(&harness->offload, harness->now_ns);
		nat_path_tick(harness->path, harness->now_ns);
		collect(harness);
		offload_serve(&harness->offload, harness->path);
	}
}

uint64_t harness_offloaded(const struct harness *harness, uint32_t from)
{
	return harness->offload.rules == NULL ?
		       0 :
		       simulated_n_sent(harness->offload.rules, from);
}

const struct nat_stats *harness_stats(const struct harness *harness,
				      struct nat_maps_stats *ret_maps)
{
	nat_maps_stats(harness->maps, ret_maps);
	return nat_path_stats(harness->path);
}

int64_t harness_invariant(const struct harness *harness)
{
	const struct nat_stats *s = nat_path_stats(harness->path);
	uint64_t ended = s->sent[0] + s->sent[1] + s->held;

	for (uint32_t i = 0; i < NAT_DROPS; i++)
		ended += s->drops[i];
	return (int64_t)(s->received[0] + s->received[1] + s->made - ended);
}

int64_t harness_pages_in_use(const struct harness *harness)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	mr_pool_stats(harness->pool, &stats);
	return (int64_t)stats.n_in_flight;
}

uint32_t harness_list(const struct harness *harness, uint64_t *cursor,
		      struct nat_session *sessions, uint32_t n)
{
	return nat_maps_list(harness->maps, cursor, now_s(harness), sessions,
			     n);
}

void harness_link_event(struct harness *harness, uint32_t side)
{
	nat_neighbours_doubt(harness->neighbours, side);
}

uint32_t harness_save(const struct harness *harness, uint64_t *cursor,
		      struct nat_session *sessions, uint32_t n)
{
	return nat_maps_save(harness->maps, cursor, now_s(harness), sessions,
			     n);
}

int harness_restore(struct harness *harness, const struct nat_session *session)
{
	return nat_maps_restore(harness->maps, session, now_s(harness));
}

uint32_t harness_windows(struct harness *harness, uint32_t *numbers,
			 uint32_t n_max)
{
	return offload_windows(harness->maps, numbers, n_max);
}

int64_t harness_ask(struct harness *harness, enum nat_question question,
		    const char *filter, bool is_now, uint32_t *ret_rounds,
		    char *why, uint32_t n_why)
{
	const struct nat_request_to to = { .maps = harness->maps,
					   .path = harness->path,
					   .now_s = now_s(harness) };
	struct nat_request request = { .answered_fd = -1,
				       .question = question,
				       .is_now = is_now };
	struct mr_reason reason;
	int64_t n = 0;

	if (!nat_filter_parse(filter, &request.filter, &reason)) {
		snprintf(why, n_why, "%s", reason.text);
		return -1;
	}
	for (*ret_rounds = 0; !request.is_end; ++*ret_rounds) {
		nat_request_set(&request, NAT_REQUEST_ASKED);
		nat_request_answer(&request, &to);
		n += request.n;
	}
	offload_serve(&harness->offload, harness->path);
	return n;
}

const struct nat_log_event *harness_event(const struct harness *harness,
					  uint32_t i)
{
	return i < harness->n_events ? &harness->events[i] : NULL;
}

uint32_t harness_owner(const struct harness *harness, uint32_t side,
		       const uint8_t *bytes, uint32_t n_bytes, uint32_t *lane)
{
	const struct nat_routes routes = { harness->maps,
					   harness->config->addrs,
					   harness->n_shards };
	enum nat_lane to = *lane;
	/* Of its size exactly, so that ASan sees a byte too far. */
	uint8_t *copy = malloc(n_bytes + 1);
	uint32_t owner;

	memcpy(copy, bytes, n_bytes);
	owner = nat_routes_owner(&routes, side, copy, n_bytes, harness->shard,
				 &to);
	free(copy);
	*lane = to;
	return owner;
}

int64_t harness_free(struct harness *harness)
{
	int64_t n_left = 0;
	uint8_t byte;
	uint32_t flags;

	nat_path_destroy(harness->path);
	nat_maps_destroy(harness->maps);
	nat_neighbours_destroy(harness->neighbours);
	if (harness->offload.rules != NULL)
		simulated_close(harness->offload.rules);
	if (harness->pool != NULL)
		n_left = harness_pages_in_use(harness);
	mr_cache_destroy(harness->cache);
	if (n_left == 0) {
		mr_pool_destroy(harness->pool, NULL);
		mr_ctx_destroy(harness->ctx);
	}
	for (uint32_t side = 0; side < HARNESS_OUTS; side++)
		while (harness_recv(harness, side, &byte, 1, &flags) > 0)
			;
	nat_config_free(&harness->configs[0]);
	nat_config_free(&harness->configs[1]);
	free(harness);
	return n_left;
}
