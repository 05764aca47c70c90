/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/support/dataplane.c and dataplane_stop.c. l2fwd/cli_test.py
 * tests what dataplane.c, dataplane_keys.c and run_options.c refuse,
 * l2fwd/options_test.c what the latter two accept.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "support/unit.h"

#include "support/dataplane.h"

enum { N_SENT = 200, RING = 64 };

static const char *const nulls[] = { "null:", "null:" };

static struct dataplane_config config_of(const char *const *specs, uint32_t n)
{
	return (struct dataplane_config){ .program = "test",
					  .log_level = MR_LOG_ERROR,
					  .specs = specs,
					  .n_ports = n,
					  .n_workers = 1,
					  .burst = MR_BURST_MAX,
					  .page_bytes = 4096 };
}

static void open_plane(struct dataplane *plane,
		       const struct dataplane_config *config)
{
	struct mr_reason error;

	if (dataplane_open(plane, config, &error) != 0)
		fail_msg("%s", error.text);
}

/* All pages are back when ports and workers are closed. */
static void close_plane(struct dataplane *plane)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };

	dataplane_close_ports(plane);
	assert_int_equal(mr_pool_stats(plane->pool, &pool), 0);
	assert_int_equal(pool.n_pages, plane->n_pages);
	assert_int_equal(pool.n_free, plane->n_pages);
	dataplane_close(plane);
	assert_null(plane->ctx);
}

TEST(the_pool_has_the_pages_that_ports_need)
{
	struct dataplane_config config = config_of(nulls, 2);
	struct mr_reason error;
	struct dataplane plane;
	uint32_t n_pages;

	open_plane(&plane, &config);
	assert_int_equal(plane.n_ports, 2);
	assert_int_equal(plane.n_workers, 1);
	n_pages = plane.n_pages;
	close_plane(&plane);

	config.n_kept_pages = 100;
	open_plane(&plane, &config);
	assert_int_equal(plane.n_pages, n_pages + 100);
	close_plane(&plane);

	/* As it was told to be, down to what is needed. */
	config.n_pages = n_pages + 100;
	open_plane(&plane, &config);
	assert_int_equal(plane.n_pages, n_pages + 100);
	close_plane(&plane);
	config.n_pages--;
	assert_int_equal(dataplane_open(&plane, &config, &error), 2);
	assert_reason_has(&error, "is too small");
}

static void count_and_free(void *opaque, struct mr_worker *worker,
			   const struct mr_frame *frames, uint32_t n)
{
	*(uint64_t *)opaque += mr_frame_n_frames(frames, n);
	mr_frame_free_bulk(worker->cache, frames, n);
}

/* A worker has no tx queue of its own, and the peer of the port is slow. */
TEST(frames_left_at_the_end_are_sent_or_counted)
{
	static const char *const specs[] = { "pair:in,queues=2",
					     "pair:out,ring=64" };
	struct mr_port_config port = { .size = sizeof(port) };
	struct dataplane_config config = config_of(specs, 2);
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	struct mr_frame frames[N_SENT];
	struct mr_worker *worker = NULL;
	struct mr_port *peer;
	struct dataplane plane;
	uint64_t n_dropped = 0, addrs[N_SENT];
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) < 2) {
		print_message("needs two cores\n");
		skip();
	}
	config.n_workers = 2;
	open_plane(&plane, &config);
	port.pool = plane.pool;
	assert_int_equal(mr_port_open(plane.ctx, specs[1], &port, &peer, NULL),
			 0);
	for (uint32_t w = 0; w < plane.n_workers; w++)
		if (mr_workers_get(plane.workers, w)->routes[1].txq == NULL)
			worker = mr_workers_get(plane.workers, w);
	assert_non_null(worker);

	for (uint32_t i = 0; i < N_SENT; i += N_SENT / 8)
		assert_int_equal(mr_frag_alloc_bulk(worker->cache, addrs + i,
						    N_SENT / 8, 4096),
				 N_SENT / 8);
	for (uint32_t i = 0; i < N_SENT; i++)
		frames[i] = (struct mr_frame){ addrs[i], 60, 0 };
	assert_int_equal(mr_worker_hand_off(worker, 1, frames, NULL, N_SENT),
			 N_SENT);
	dataplane_drain(&plane, count_and_free, &n_dropped);
	mr_txq_stats(mr_port_txq(plane.ports[1], 0), &stats);
	assert_int_equal(stats.accepted + n_dropped, N_SENT);
	assert_in_range(stats.accepted, RING / 2, RING);

	mr_port_close(peer);
	close_plane(&plane);
}

static bool is_over; /* atomic */

static void *spin_until_end(void *opaque)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		;
	return opaque;
}

static void *sleep_long(void *opaque)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		poll(NULL, 0, 200);
	return opaque;
}

/* Ask until one of two answers comes: a thread may not have started yet. */
static bool is_told(const char *words, const char *or_words)
{
	char why[200] = "";
	bool is_it = false;

	for (uint32_t k = 0; k < 200 && !is_it; k++) {
		dataplane_why_stuck(63, why, sizeof(why));
		is_it = strstr(why, words) != NULL ||
			strstr(why, or_words) != NULL;
	}
	return is_it;
}

TEST(the_reason_why_a_worker_hangs_is_reported)
{
	enum { MAX_THREADS = 4 };
	static const struct {
		void *(*work)(void *);
		uint32_t n_threads;
		const char *words, *or_words;
	} cases[] = {
		{ spin_until_end, 1, "it is still running",
		  "another thread uses" },
		{ spin_until_end, MAX_THREADS, "another thread uses",
		  "its core" },
		{ sleep_long, 1, "waits in the kernel", "does not respond" },
	};
	pthread_t threads[MAX_THREADS];
	cpu_set_t before, one;
	char why[200];

	dataplane_why_stuck(63, why, sizeof(why));
	assert_string_equal(why, "");
	/* On one core, where three of four that spin wait at any time. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_getaffinity(0, sizeof(before), &before);
	sched_setaffinity(0, sizeof(one), &one);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		__atomic_store_n(&is_over, false, __ATOMIC_RELAXED);
		for (uint32_t k = 0; k < cases[i].n_threads; k++)
			pthread_create(&threads[k], NULL, cases[i].work, NULL);
		pthread_setname_np(threads[0], "mr-worker-63");
		assert_true(is_told(cases[i].words, cases[i].or_words));
		__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
		for (uint32_t k = 0; k < cases[i].n_threads; k++)
			pthread_join(threads[k], NULL);
	}
	sched_setaffinity(0, sizeof(before), &before);
}
