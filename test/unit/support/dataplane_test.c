/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support: dataplane.c, and what dataplane_options.c refuses.
 * What that and run_options.c take is shown by l2fwd/options_test.c. */
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

TEST(the_pool_holds_what_is_needed)
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

TEST(what_cannot_be_is_refused_and_leaves_nothing)
{
	static const char *const sg[] = { "pair:sg,sg=on" };
	static const char *const none[] = { "nodriver:x" };
	static const char *const twice[] = { "pair:t", "pair:t", "pair:t" };
	struct dataplane_config configs[] = {
		config_of(nulls, 2),
		config_of(sg, 1),
		config_of(none, 1),
		config_of(nulls, 2),
		config_of(twice, 3),
		config_of(nulls, 2),
		config_of(nulls, MAX_PORTS + 1),
	};
	static const char *const says[] = {
		"--pool-pages 30 is too small",
		"--burst 17: frames of pair:sg have several entries",
		"nodriver:x",
		"--mtu: no port has this",
		"pair:t",
		"--cores: core 1023",
		"33 ports are more than 32",
	};

	configs[0].n_pages = 30;
	configs[1].burst = MR_MAX_SEGS - 1;
	configs[3].port.mtu_bytes = 1500;
	configs[5].n_cores = 1;
	configs[5].cores[0] = 1023;
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		struct mr_reason error = { "" };
		struct dataplane plane;

		if (dataplane_open(&plane, &configs[i], &error) == 0)
			fail_msg("taken: %s", says[i]);
		assert_reason_has(&error, says[i]);
		assert_null(plane.ctx);
		assert_null(plane.pool);
		assert_int_equal(plane.n_ports, 0);
	}
}

TEST(the_map_has_a_line_per_port_and_worker)
{
	const struct dataplane_config config = config_of(nulls, 2);
	struct dataplane plane;
	char text[1024];
	FILE *to = tmpfile();
	const int stderr_fd = dup(STDERR_FILENO);

	open_plane(&plane, &config);
	dup2(fileno(to), STDERR_FILENO);
	dataplane_print_map(&plane);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	rewind(to);
	text[fread(text, 1, sizeof(text) - 1, to)] = '\0';
	fclose(to);
	assert_ptr_equal(strstr(text,
				"port null:  mode memory, 1 rx, 1 tx queues\n"
				"port null:  mode memory, 1 rx, 1 tx queues\n"
				"worker 0: core "),
			 text);
	close_plane(&plane);
}

static void count_and_free(void *opaque, struct mr_worker *worker,
			   const struct mr_frame *frames, uint32_t n)
{
	*(uint64_t *)opaque += mr_frame_n_frames(frames, n);
	mr_frame_free_bulk(worker->cache, frames, n);
}

/* A worker has no tx queue of its own, and the peer of the port is slow. */
TEST(the_end_sends_what_it_can_and_counts_the_rest)
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
	assert_int_equal(mr_worker_hand_off(worker, 1, frames, N_SENT), N_SENT);
	dataplane_drain(&plane, count_and_free, &n_dropped);
	mr_txq_stats(mr_port_txq(plane.ports[1], 0), &stats);
	assert_int_equal(stats.accepted + n_dropped, N_SENT);
	assert_in_range(stats.accepted, RING / 2, RING);

	mr_port_close(peer);
	close_plane(&plane);
}

static const struct option_row rows[] = {
	{ "queues", OPTION_QUEUES, "", "" },
	{ "workers", OPTION_WORKERS, "", "" },
	{ "cores", OPTION_CORES, "", "" },
	{ "burst", OPTION_BURST, "", "" },
	{ "ring", OPTION_RING, "", "" },
	{ "pool-pages", OPTION_POOL_PAGES, "", "" },
	{ "page-bytes", OPTION_PAGE_BYTES, "", "" },
	{ "safety", OPTION_SAFETY, "", "" },
	{ "mtu", OPTION_MTU, "", "" },
	{ "promisc", OPTION_PROMISC, "", "" },
	{ "idle", OPTION_IDLE, "", "" },
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Take a value by each row; the rows that refuse theirs, as bits. */
static uint32_t take_all(struct dataplane_config *config,
			 const char *const *values)
{
	struct mr_reason error;
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < N_ROWS; i++)
		if (dataplane_take_option(&rows[i], values[i], config,
					  &error) != PARSE_RUN) {
			assert_reason_has(&error, rows[i].name);
			wrong |= 1u << i;
		}
	return wrong;
}

TEST(values_out_of_range_are_refused)
{
	static const char *const low[N_ROWS] = { "0",  "0", "",     "0",
						 "63", "0", "2047", "",
						 "67", "",  "" };
	static const char *const high[N_ROWS] = { "65",    "65",    "0-64",
						  "257",   "32769", "67108865",
						  "32769", "most",  "65536",
						  "maybe", "never" };
	struct dataplane_config c = { 0 };

	assert_int_equal(take_all(&c, low), (1u << N_ROWS) - 1);
	assert_int_equal(take_all(&c, high), (1u << N_ROWS) - 1);
}

static bool is_over; /* atomic */

static void *spin(void *opaque)
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

TEST(what_keeps_a_worker_is_told)
{
	enum { MAX_THREADS = 4 };
	static const struct {
		void *(*work)(void *);
		uint32_t n_threads;
		const char *words, *or_words;
	} cases[] = {
		{ spin, 1, "it is still running", "another thread uses" },
		{ spin, MAX_THREADS, "another thread uses", "its core" },
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
