/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/l2fwd/fdb.c: what is learned, found, moved and forgotten. */
#include <pthread.h>

#include "support/unit.h"

#include "fdb.h"

static const uint64_t alice = 0x020000000001, bob = 0x020000000002;

TEST(only_learned_addresses_are_found)
{
	struct fdb *fdb = fdb_create(100, 300, 42);
	struct fdb_stats stats;

	assert_int_equal(fdb_find(fdb, alice), FDB_NOWHERE);
	fdb_learn(fdb, alice, 0, 10);
	fdb_learn(fdb, bob, 31, 10);
	assert_int_equal(fdb_find(fdb, alice), 0);
	assert_int_equal(fdb_find(fdb, bob), 31);
	assert_int_equal(fdb_find(fdb, alice ^ bob), FDB_NOWHERE);
	/* A free place must not pass for the address of all zeros. */
	assert_int_equal(fdb_find(fdb, 0), FDB_NOWHERE);
	fdb_stats(fdb, &stats);
	assert_int_equal(stats.n_entries, 2);
	assert_int_equal(stats.learned, 2);
	assert_int_equal(stats.moved, 0);
	fdb_destroy(fdb);
	fdb_destroy(NULL);
}

TEST(an_address_moves_with_its_host)
{
	struct fdb *fdb = fdb_create(100, 300, 42);
	struct fdb_stats stats;

	fdb_learn(fdb, alice, 0, 10);
	fdb_learn(fdb, alice, 1, 11);
	fdb_learn(fdb, alice, 1, 12);
	assert_int_equal(fdb_find(fdb, alice), 1);
	fdb_stats(fdb, &stats);
	assert_int_equal(stats.n_entries, 1);
	assert_int_equal(stats.learned, 1);
	assert_int_equal(stats.moved, 1);
	fdb_destroy(fdb);
}

TEST(silent_stations_are_forgotten_after_the_age)
{
	struct fdb *fdb = fdb_create(100, 300, 42);
	struct fdb_stats stats;

	fdb_learn(fdb, alice, 0, 1000);
	fdb_learn(fdb, bob, 1, 1000);
	fdb_learn(fdb, alice, 0, 1200); /* seen again */
	fdb_age(fdb, 1300);             /* bob: 300 s, not more */
	assert_int_equal(fdb_find(fdb, bob), 1);
	fdb_age(fdb, 1301);
	assert_int_equal(fdb_find(fdb, bob), FDB_NOWHERE);
	assert_int_equal(fdb_find(fdb, alice), 0);
	/* A worker whose clock is a second ahead of ours. */
	fdb_learn(fdb, bob, 1, 1302);
	fdb_age(fdb, 1301);
	assert_int_equal(fdb_find(fdb, bob), 1);
	fdb_stats(fdb, &stats);
	assert_int_equal(stats.aged, 1);
	assert_int_equal(stats.n_entries, 2);
	fdb_destroy(fdb);
}

TEST(a_port_can_be_forgotten)
{
	struct fdb *fdb = fdb_create(100, 300, 42);

	fdb_learn(fdb, alice, 0, 1);
	fdb_learn(fdb, bob, 1, 1);
	fdb_forget_port(fdb, 0);
	assert_int_equal(fdb_find(fdb, alice), FDB_NOWHERE);
	assert_int_equal(fdb_find(fdb, bob), 1);
	fdb_destroy(fdb);
}

TEST(at_the_limit_known_addresses_stay)
{
	struct fdb *fdb = fdb_create(10, 300, 42);
	struct fdb_stats stats;
	uint32_t n_found = 0;

	for (uint32_t i = 0; i < 1000; i++)
		fdb_learn(fdb, alice + i, i % 4, 1);
	for (uint32_t i = 0; i < 1000; i++)
		n_found += fdb_find(fdb, alice + i) != FDB_NOWHERE;
	fdb_stats(fdb, &stats);
	assert_int_equal(stats.n_entries, 10);
	assert_int_equal(n_found, 10);
	assert_int_equal(stats.full, 990);
	/* Room again when they are gone. */
	fdb_age(fdb, 1000);
	fdb_learn(fdb, bob, 1, 1000);
	assert_int_equal(fdb_find(fdb, bob), 1);
	fdb_stats(fdb, &stats);
	assert_int_equal(stats.n_entries, 1);
	fdb_destroy(fdb);
}

/* The size is right: nearly all of a full table's addresses find a place. */
TEST(a_table_has_buckets_for_its_limit)
{
	enum { LIMIT = 8192 };
	struct fdb *fdb = fdb_create(LIMIT, 300, 42);
	struct fdb_stats stats;

	for (uint32_t i = 0; i < LIMIT; i++)
		fdb_learn(fdb, 0x0050560000000000 >> 8 | i * 7919u, i % 4, 1);
	fdb_stats(fdb, &stats);
	assert_true(stats.n_entries >= LIMIT * 99 / 100);
	fdb_destroy(fdb);
}

TEST(the_seed_decides_which_flows_share_a_bucket)
{
	uint32_t n_differ = 0;

	/* Eight addresses fill one bucket at most once in a while; which ones
	 * are refused depends on the seed. */
	struct fdb *a = fdb_create(1000, 300, 1), *b = fdb_create(1000, 300, 2);

	for (uint32_t i = 0; i < 1000; i++) {
		fdb_learn(a, alice + i, 0, 1);
		fdb_learn(b, alice + i, 0, 1);
	}
	for (uint32_t i = 0; i < 1000; i++)
		n_differ += fdb_find(a, alice + i) != fdb_find(b, alice + i);
	assert_true(n_differ > 0);
	fdb_destroy(a);
	fdb_destroy(b);
}

enum { N_THREADS = 4, N_ROUNDS = 20000 };

struct racer {
	struct fdb *fdb;
	uint32_t port;
	uint32_t n_wrong;
};

/* All learn the same addresses, each from its own port; one ages. */
static void *race(void *opaque)
{
	struct racer *racer = opaque;

	for (uint32_t i = 0; i < N_ROUNDS; i++) {
		const uint64_t mac = alice + i % 64;
		uint32_t port;

		fdb_learn(racer->fdb, mac, racer->port, i / 1000);
		port = fdb_find(racer->fdb, mac);
		if (port != FDB_NOWHERE && port >= N_THREADS)
			racer->n_wrong++;
		if (racer->port == 0 && i % 512 == 0)
			fdb_forget_port(racer->fdb, i / 512 % N_THREADS);
	}
	return NULL;
}

TEST(racing_workers_leave_a_consistent_table)
{
	struct fdb *fdb = fdb_create(1000, 300, 42);
	struct racer racers[N_THREADS];
	pthread_t threads[N_THREADS];
	struct fdb_stats stats;

	for (uint32_t i = 0; i < N_THREADS; i++) {
		racers[i] = (struct racer){ fdb, i, 0 };
		assert_int_equal(
			pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(racers[i].n_wrong, 0);
	}
	/* The count is that of the places: nothing left when all is aged. */
	fdb_age(fdb, 100000);
	fdb_stats(fdb, &stats);
	assert_int_equal(stats.n_entries, 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(fdb_find(fdb, alice + i), FDB_NOWHERE);
	fdb_destroy(fdb);
}
