/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/nat/mapping/hand_over.c and take_over.c: the mappings of old
 * workers in those of new ones.
 */
#include <time.h>

#include "fixture.h"

#include "support/carry.h"
#include "mapping/hand_over.h"

enum { N_WORKERS_MAX = 2, HOST = INSIDE + 5 };

/* The old workers, and those that take over. */
static struct {
	struct nat_maps *maps[N_WORKERS_MAX];
	uint32_t n;
} old, new;

static struct {
	uint32_t n, ends[4]; /* by event */
} events;

static void count_event(void *opaque, const struct nat_log_event *event)
{
	(void)opaque;
	events.n++;
	if (event->what < 4)
		events.ends[event->what]++;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool is_converted; /* at the last take_over() */

/* What the old workers have, which tests do not change. */
static struct {
	struct nat_config config;
	struct nat_range pool[4];
	struct nat_prefix subscribers[4];
	struct nat_port_forward forwards[8];
} kept;

static const struct nat_config *keep_config(void)
{
	kept.config = fixture.config;
	memcpy(kept.pool, fixture.pool, sizeof(kept.pool));
	memcpy(kept.subscribers, fixture.subscribers, sizeof(kept.subscribers));
	memcpy(kept.forwards, fixture.forwards, sizeof(kept.forwards));
	kept.config.pool = kept.pool;
	kept.config.subscribers = kept.subscribers;
	kept.config.forwards = kept.forwards;
	return &kept.config;
}

static void make_workers(uint32_t n, struct nat_maps **maps,
			 const struct nat_config *of_nat)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct nat_maps_config config = {
			.ctx = fixture.ctx,
			.config = of_nat,
			.shard = i,
			.n_shards = n,
			.now_s = fixture.now_s,
			.log = count_event,
		};
		struct mr_reason why = { "" };

		if (nat_maps_create(&config, &maps[i], &why) < 0)
			fail_msg("%s", why.text);
	}
}

static void start_old(uint32_t n)
{
	old.n = n;
	new.n = 0;
	make_workers(n, old.maps, keep_config());
	fixture.maps = old.maps[0];
}

/* The next workers have the configuration that the fixture has by now. */
static uint32_t take_over(uint32_t n)
{
	struct mr_parcel *parcel = mri_parcel_create(fixture.ctx);
	uint32_t n_ended = 0;
	double at_ms[5];

	new.n = n;
	make_workers(n, new.maps, &fixture.config);
	at_ms[0] = now_ms();
	for (uint32_t i = 0; i < old.n; i++)
		nat_maps_put(old.maps[i], parcel, i);
	at_ms[1] = now_ms();
	parcel = carry(fixture.ctx, parcel);
	at_ms[2] = now_ms();
	memset(&events, 0, sizeof(events));
	for (uint32_t i = 0; i < old.n; i++) {
		struct nat_maps *copy;
		struct mr_reason why = { "" };

		if (nat_maps_copy(new.maps[i % n], parcel, i, &copy, &why) < 0)
			fail_msg("%s", why.text);
		n_ended += nat_maps_take(new.maps, n, copy, fixture.now_s,
					 &is_converted);
	}
	at_ms[3] = now_ms();
	mri_parcel_destroy(parcel);
	fixture.maps = new.maps[0];
	print_message("put %.1f, carry %.1f, take %.1f ms\n",
		      at_ms[1] - at_ms[0], at_ms[2] - at_ms[1],
		      at_ms[3] - at_ms[2]);
	return n_ended;
}

static void end_all(void)
{
	for (uint32_t i = 0; i < old.n; i++)
		nat_maps_destroy(old.maps[i]);
	for (uint32_t i = 0; i < new.n; i++)
		nat_maps_destroy(new.maps[i]);
	fixture.maps = NULL;
}

static int compare_sessions(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct nat_session));
}

/* All sessions and ports in hold-down, sorted; to be freed. */
static struct nat_session *list_all(const struct nat_maps *maps, uint32_t *n)
{
	enum { MAX = 4096 };
	struct nat_session *all = calloc(MAX, sizeof(all[0]));
	uint64_t cursor = 0;
	uint32_t n_now;

	*n = 0;
	do {
		n_now = nat_maps_save(maps, &cursor, fixture.now_s, all + *n,
				      MAX - *n);
		*n += n_now;
	} while (n_now > 0);
	qsort(all, *n, sizeof(all[0]), compare_sessions);
	return all;
}

static void check_same(const struct nat_maps *a, const struct nat_maps *b)
{
	uint32_t n_a, n_b;
	struct nat_session *of_a = list_all(a, &n_a), *of_b = list_all(b, &n_b);

	assert_int_equal(n_a, n_b);
	for (uint32_t i = 0; i < n_a; i++)
		assert_memory_equal(&of_a[i], &of_b[i], sizeof(of_a[0]));
	free(of_a);
	free(of_b);
}

static void check_counts(const struct nat_maps *a, const struct nat_maps *b)
{
	struct nat_maps_stats of_a, of_b;

	nat_maps_stats(a, &of_a);
	nat_maps_stats(b, &of_b);
	of_a.bytes = of_b.bytes = 0;
	assert_memory_equal(&of_a, &of_b, sizeof(of_a));
}

/* A connection with windows, and further ones of the same mapping. */
static uint32_t open_tcp(uint16_t port, uint32_t n_further)
{
	const struct nat_segment syn = { .seq = 1000,
					 .n_bytes = 1,
					 .window = 500,
					 .flags = SYN,
					 .shift = 3 };
	const struct nat_segment answer = { .seq = 7000,
					    .ack = 1001,
					    .n_bytes = 1,
					    .window = 600,
					    .flags = SYN | ACK,
					    .shift = 2 };
	const uint32_t id = fixture_map(TCP, HOST, port);

	for (uint32_t i = 0; i <= n_further; i++) {
		const struct nat_end end = remote(REMOTE + i, 80);

		assert_int_equal(nat_maps_out(fixture.maps, id, end, &syn,
					      fixture.now_s),
				 NAT_OK);
		assert_int_equal(nat_maps_in(fixture.maps, id, end, &answer,
					     fixture.now_s),
				 NAT_OK);
	}
	return id;
}

static void configure_all(void)
{
	fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS_PORT;
	fixture.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	fixture.config.passes_other_protocols = true;
	fixture.config.logs_sessions = true;
	fixture.pool[0].last = POOL + 3;
	fixture.config.n_forwards = 1;
	fixture.forwards[0] = (struct nat_port_forward){
		POOL, INSIDE + 9, 8080, 8080, 80, 1 << NAT_TCP
	};
}

/* Of every kind. */
static void open_all(void)
{
	uint32_t id, forward;

	open_tcp(1000, 3);
	id = fixture_map(UDP, HOST, 2000);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(fixture_out(id, REMOTE + i, 53, 0), NAT_OK);
	fixture_map(1, HOST + 1, 77);
	fixture_map(GRE, HOST + 2, 0);
	forward = fixture_find_in(TCP, POOL, 8080);
	assert_int_equal(fixture_out(forward, REMOTE, 999, SYN | ACK), NAT_OK);
	for (uint16_t i = 0; i < 3; i++)
		nat_maps_close(fixture.maps,
			       fixture_map(UDP, HOST + 3, 3000 + i),
			       fixture.now_s++);
}

/* Make the next processes enter records one by one. */
static void change_something(void)
{
	fixture.config.max_sessions++;
}

static void check_everything(bool converts)
{
	const struct nat_window *a, *b;
	uint32_t of_old, of_new;

	configure_all();
	start_old(1);
	open_all();
	of_old = fixture_find_out(TCP, HOST, 1000);
	if (converts)
		change_something();
	assert_int_equal(take_over(1), 0);
	assert_int_equal(is_converted, converts);
	assert_int_equal(events.n, 0);
	check_same(old.maps[0], new.maps[0]);
	check_counts(old.maps[0], new.maps[0]);
	fixture_check_ports();
	of_new = fixture_find_out(TCP, HOST, 1000);
	assert_int_equal(fixture_find_back(of_new), of_new);
	a = &old.maps[0]->windows[of_old];
	b = &new.maps[0]->windows[of_new];
	assert_memory_equal(a, b, sizeof(*a));
	assert_int_equal(a->ends[NAT_OUT].shift, 3);
	for (uint32_t i = 1; i < 4; i++) {
		const struct nat_end end = remote(REMOTE + i, 80);

		a = &nat_further_at(old.maps[0],
				    nat_further_find(old.maps[0], of_old, end))
			     ->window;
		b = &nat_further_at(new.maps[0],
				    nat_further_find(new.maps[0], of_new, end))
			     ->window;
		assert_memory_equal(a, b, sizeof(*a));
	}
	end_all();
}

TEST_FIXTURE(everything_is_as_it_was)
{
	check_everything(false);
}

TEST_FIXTURE(everything_is_as_it_was_one_by_one)
{
	check_everything(true);
}

static void check_timers(bool converts)
{
	uint32_t begin_s;

	configure_all();
	start_old(1);
	open_all();
	begin_s = fixture.now_s;
	fixture.now_s += 100;
	if (converts)
		change_something();
	assert_int_equal(take_over(1), 0);
	for (uint32_t s = begin_s + 100; s < begin_s + 8000; s += 7) {
		fixture.maps = old.maps[0];
		fixture_at(s);
		fixture.maps = new.maps[0];
		fixture_at(s);
		check_counts(old.maps[0], new.maps[0]);
	}
	end_all();
}

TEST_FIXTURE(timers_go_on)
{
	check_timers(false);
}

TEST_FIXTURE(timers_go_on_one_by_one)
{
	check_timers(true);
}

static void check_blocks(bool converts)
{
	configure_all();
	fixture.config.ports.block = 64;
	fixture.config.ports.max_blocks = 2;
	start_old(1);
	open_all();
	if (converts)
		change_something();
	assert_int_equal(take_over(1), 0);
	assert_int_equal(events.n, 0);
	check_same(old.maps[0], new.maps[0]);
	check_counts(old.maps[0], new.maps[0]);
	/* The end of all is logged once. */
	fixture_at(fixture.now_s + 10000);
	fixture_at(fixture.now_s + 1000);
	assert_int_equal(fixture_stats().n_ports_used, 1); /* the forward */
	assert_int_equal(events.ends[NAT_LOG_BLOCK_BEGIN], 0);
	assert_int_equal(events.ends[NAT_LOG_BLOCK_END], 4);
	end_all();
}

TEST_FIXTURE(blocks_stay_and_are_logged_once)
{
	check_blocks(false);
}

TEST_FIXTURE(blocks_stay_one_by_one)
{
	check_blocks(true);
}

TEST_FIXTURE(other_blocks_are_logged_anew)
{
	configure_all();
	fixture.config.ports.block = 64;
	fixture.config.ports.max_blocks = 4;
	start_old(1);
	open_all();
	fixture.config.ports.block = 32;
	assert_int_equal(take_over(1), 0);
	check_same(old.maps[0], new.maps[0]);
	assert_int_equal(events.ends[NAT_LOG_BLOCK_END], 4);
	assert_in_range(events.ends[NAT_LOG_BLOCK_BEGIN], 4, 6);
	assert_int_equal(events.ends[NAT_LOG_MAPPING_END], 0);
	end_all();
}

TEST_FIXTURE(limits_end_nothing)
{
	configure_all();
	start_old(1);
	open_all();
	fixture.config.max_mappings_per_subscriber = 1;
	fixture.config.max_sessions_per_subscriber = 1;
	assert_int_equal(take_over(1), 0);
	check_same(old.maps[0], new.maps[0]);
	end_all();
}

TEST_FIXTURE(what_is_not_allowed_any_more_ends)
{
	const uint32_t n_kept = 1 + 3; /* TCP to HOST */

	configure_all();
	start_old(1);
	open_all();
	/* No other protocols, another filter, and HOST + 1 may not. */
	fixture.config.passes_other_protocols = false;
	fixture.config.filtering[NAT_UDP] = NAT_FILTER_NONE;
	fixture.config.timeouts.hold_down_s = 0;
	fixture.subscribers[0] = (struct nat_prefix){ HOST, 0xffffffff };
	fixture.config.n_forwards = 0;
	assert_int_equal(take_over(1), 4 + 2);
	assert_int_equal(events.ends[NAT_LOG_MAPPING_END], 2);
	assert_int_equal(events.n, 2);
	assert_int_equal(fixture_stats().n_mappings, 2);
	assert_int_equal(fixture_stats().n_sessions, n_kept - 1);
	assert_int_equal(fixture_stats().n_hold_down, 0);
	assert_int_equal(fixture_stats().created,
			 old.maps[0]->created);
	assert_int_equal(fixture_stats().expired, old.maps[0]->expired + 2);
	fixture_check_ports();
	end_all();
}

TEST_FIXTURE(a_new_forward_takes_the_place_of_a_mapping)
{
	uint32_t id;

	fixture.config.logs_sessions = true;
	start_old(1);
	id = fixture_map(UDP, HOST, 2000);
	fixture.config.n_forwards = 1;
	fixture.forwards[0] = (struct nat_port_forward){
		POOL, HOST + 1, fixture_port(id), fixture_port(id), 80,
		1 << NAT_UDP
	};
	assert_int_equal(take_over(1), 1);
	assert_int_equal(events.ends[NAT_LOG_MAPPING_END], 1);
	assert_int_equal(fixture_stats().n_mappings, 1);
	end_all();
}

/* Each of several hosts gets a mapping from the worker that it belongs to. */
static void open_of_workers(void)
{
	for (uint32_t i = 0; i < 200; i++) {
		const uint32_t addr = INSIDE + 1000 + i;

		fixture.maps =
			old.maps[nat_steer_subscriber(htonl(addr), old.n)];
		fixture_map(UDP, addr, 5000);
	}
}

TEST_FIXTURE(two_workers_give_theirs_to_one)
{
	struct nat_maps_stats stats;

	start_old(2);
	open_of_workers();
	assert_int_equal(take_over(1), 0);
	nat_maps_stats(new.maps[0], &stats);
	assert_int_equal(stats.n_mappings, 200);
	assert_int_equal(stats.created, 200);
	for (uint32_t i = 0; i < 200; i++) {
		const uint32_t id =
			fixture_find_out(UDP, INSIDE + 1000 + i, 5000);

		assert_int_not_equal(id, MR_FLOW_NONE);
		assert_int_equal(fixture_find_back(id), id);
	}
	end_all();
}

/* A mapping needs its host and its port at the same worker. */
TEST_FIXTURE(one_worker_gives_to_two_what_fits)
{
	uint32_t n_ended, n_there = 0;

	fixture.config.logs_sessions = true;
	start_old(1);
	open_of_workers();
	n_ended = take_over(2);
	for (uint32_t i = 0; i < 200; i++) {
		const uint32_t addr = INSIDE + 1000 + i;
		uint32_t id;

		fixture.maps = new.maps[nat_steer_subscriber(htonl(addr), 2)];
		id = fixture_find_out(UDP, addr, 5000);
		if (id == MR_FLOW_NONE)
			continue;
		assert_int_equal(fixture_find_back(id), id);
		n_there++;
	}
	assert_int_equal(n_there + n_ended, 200);
	assert_int_equal(events.ends[NAT_LOG_MAPPING_END], n_ended);
	assert_in_range(n_ended, 60, 140);
	end_all();
}

TEST_FIXTURE(ports_in_hold_down_are_not_given_out)
{
	uint16_t port;
	uint32_t id;

	fixture.config.ports.first = 2000;
	fixture.config.ports.last = 2001;
	start_old(1);
	id = fixture_map(UDP, HOST, 1);
	port = fixture_port(id);
	nat_maps_close(fixture.maps, id, fixture.now_s);
	fixture.now_s += 60;
	assert_int_equal(take_over(1), 0);
	assert_int_not_equal(fixture_port(fixture_map(UDP, HOST, 2)), port);
	fixture_at(fixture.now_s + 61);
	assert_int_equal(fixture_port(fixture_map(UDP, HOST, 3)), port);
	end_all();
}

/* ---- damage ---- */

/* The reason why a copy cannot be made, if a name has other bytes. */
static struct mr_reason refusal(const char *name, const void *bytes, size_t n)
{
	struct mr_parcel *parcel = mri_parcel_create(fixture.ctx);
	struct nat_maps *copy;
	struct mr_reason why = { "" };

	/* The first one of a name is found. */
	mr_parcel_put(parcel, name, 1, bytes, n);
	nat_maps_put(old.maps[0], parcel, 0);
	parcel = carry(fixture.ctx, parcel);
	assert_int_equal(nat_maps_copy(fixture.maps, parcel, 0, &copy, &why),
			 -EPROTO);
	mri_parcel_destroy(parcel);
	return why;
}

TEST_FIXTURE(damage_is_refused_by_name)
{
	static const char *const names[] = {
		"0/state",    "0/maps",	       "0/maps.o",     "0/maps.p",
		"0/maps.r",   "0/maps.q",      "0/others",     "0/sessions",
		"0/subscribers", "0/wheel",    "0/session-wheel",
		"0/windows",  "0/ports",       "0/ranges",     "0/sets",
		"0/batches",  "0/full",	       "0/index",      "0/bits",
		"0/block-bits", "0/owners"
	};
	uint8_t bytes[4096];

	fixture.config.ports.block = 64;
	configure_all();
	start_old(1);
	open_all();
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (uint32_t fill = 0; fill < 256; fill += 255) {
			char table[MR_PARCEL_NAME_BYTES];
			struct mr_reason why;

			memset(bytes, (int)fill, sizeof(bytes));
			why = refusal(names[i], bytes, sizeof(bytes));
			snprintf(table, sizeof(table), "%s", names[i]);
			/* Of tables, the name of the table is enough. */
			if (strrchr(table, '.') != NULL)
				*strrchr(table, '.') = '\0';
			assert_reason_has(&why, table);
		}
	end_all();
}

/* With the right size, the numbers of items must be those of the bytes. */
TEST_FIXTURE(counts_that_contradict_each_other_are_refused)
{
	struct mr_reason why;
	uint8_t bytes[104];

	start_old(1);
	memset(bytes, 0xff, sizeof(bytes));
	why = refusal("0/state", bytes, sizeof(bytes));
	assert_reason_has(&why, "0/state");
	why = refusal("0/maps", bytes, sizeof(bytes));
	assert_reason_has(&why, "0/maps");
	why = refusal("0/ports", bytes, sizeof(bytes));
	assert_reason_has(&why, "0/ports");
	end_all();
}

TEST_FIXTURE(a_missing_entry_is_named)
{
	struct mr_parcel *parcel = mri_parcel_create(fixture.ctx);
	struct nat_maps *copy;
	struct mr_reason why = { "" };

	start_old(1);
	nat_maps_put(old.maps[0], parcel, 0);
	parcel = carry(fixture.ctx, parcel);
	assert_int_equal(nat_maps_copy(fixture.maps, parcel, 1, &copy, &why),
			 -ENOENT);
	assert_reason_has(&why, "1/state");
	mri_parcel_destroy(parcel);
	end_all();
}

/* ---- how long it takes ---- */

static void check_many(bool converts)
{
	const char *factor = getenv("MR_TEST_OPS_FACTOR");
	const uint32_t n =
		10000 * (factor != NULL ?
				 (uint32_t)strtoul(factor, NULL, 10) :
				 1);
	double begin_ms;

	fixture.pool[0].last = POOL + 31;
	fixture.config.max_mappings = 1100000;
	start_old(1);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(
			fixture_out(fixture_map(i % 2 ? UDP : TCP,
						INSIDE + i / 63,
						(uint16_t)(1024 + i % 63)),
				    REMOTE, 53, SYN),
			NAT_OK);
	if (converts)
		change_something();
	begin_ms = now_ms();
	assert_int_equal(take_over(1), 0);
	print_message("%u sessions: %.1f ms\n", n, now_ms() - begin_ms);
	check_counts(old.maps[0], new.maps[0]);
	end_all();
}

TEST_FIXTURE(many_sessions_go_over)
{
	check_many(false);
}

TEST_FIXTURE(many_sessions_go_over_one_by_one)
{
	check_many(true);
}
