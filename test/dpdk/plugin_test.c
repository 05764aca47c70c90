/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mempool handler of plugins/dpdk/mempool.c, through DPDK's interface.
 *
 *     plugin_test PLUGIN.so
 *
 * Four lcores, which share what CPUs there are; no huge pages, no root.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mempool.h>

enum {
	N_OBJECTS = 1000,
	N_WORKERS = 3,
	N_PER_THREAD = 300,
	N_ROUNDS = 100000,
	BURST = 32,
	OS_PAGE = 4096,
};

static void *objects[N_OBJECTS + 1];

static struct rte_mempool *make_empty(uint32_t object_bytes, unsigned int flags)
{
	struct rte_mempool *mp = rte_mempool_create_empty(
		"test", N_OBJECTS, object_bytes, 0, 0, SOCKET_ID_ANY, flags);

	assert_non_null(mp);
	assert_int_equal(rte_mempool_set_ops_byname(mp, "millrace", NULL), 0);
	return mp;
}

static struct rte_mempool *make_mempool(void)
{
	struct rte_mempool *mp = make_empty(256, 0);

	assert_int_equal(rte_mempool_populate_default(mp), N_OBJECTS);
	assert_int_equal(rte_mempool_avail_count(mp), N_OBJECTS);
	return mp;
}

static int by_address(const void *a, const void *b)
{
	const uintptr_t left = (uintptr_t) * (void *const *)a;
	const uintptr_t right = (uintptr_t) * (void *const *)b;

	return (left > right) - (left < right);
}

/* All of them, one by one, each once; and back. */
static void take_all(struct rte_mempool *mp)
{
	void *one_more;

	for (int i = 0; i < N_OBJECTS; i++)
		assert_int_equal(rte_mempool_get(mp, &objects[i]), 0);
	assert_int_equal(rte_mempool_avail_count(mp), 0);
	assert_int_equal(rte_mempool_get(mp, &one_more), -ENOBUFS);
	qsort(objects, N_OBJECTS, sizeof(objects[0]), by_address);
	for (int i = 0; i < N_OBJECTS; i++) {
		assert_ptr_equal(rte_mempool_from_obj(objects[i]), mp);
		if (i > 0)
			assert_ptr_not_equal(objects[i], objects[i - 1]);
	}
	rte_mempool_put_bulk(mp, objects, N_OBJECTS);
	assert_int_equal(rte_mempool_avail_count(mp), N_OBJECTS);
}

/* Leaves what it took in the lane of its lcore. */
static int take_and_put(void *arg)
{
	void *mine[N_PER_THREAD];

	for (int i = 0; i < N_PER_THREAD; i++)
		if (rte_mempool_get(arg, &mine[i]) < 0)
			return -1;
	for (int i = 0; i < N_PER_THREAD; i++)
		rte_mempool_put(arg, mine[i]);
	return 0;
}

static void *take_and_put_unregistered(void *arg)
{
	assert(rte_lcore_id() == LCORE_ID_ANY);
	return (void *)(intptr_t)take_and_put(arg);
}

TEST(test_all_to_one_lcore)
{
	struct rte_mempool *mp = make_mempool();
	unsigned int lcore;

	for (int round = 0; round < 10; round++) {
		RTE_LCORE_FOREACH_WORKER(lcore)
		assert_int_equal(rte_eal_remote_launch(take_and_put, mp, lcore),
				 0);
		RTE_LCORE_FOREACH_WORKER(lcore)
		assert_int_equal(rte_eal_wait_lcore(lcore), 0);
		assert_int_equal(rte_mempool_avail_count(mp), N_OBJECTS);
		take_all(mp);
	}
	rte_mempool_free(mp);
}

TEST(test_all_or_nothing)
{
	struct rte_mempool *mp = make_mempool();

	assert_int_equal(rte_mempool_get_bulk(mp, objects, N_OBJECTS + 1),
			 -ENOBUFS);
	assert_int_equal(rte_mempool_avail_count(mp), N_OBJECTS);
	assert_int_equal(rte_mempool_get_bulk(mp, objects, N_OBJECTS), 0);
	rte_mempool_put_bulk(mp, objects, 10);
	assert_int_equal(rte_mempool_get_bulk(mp, objects, 11), -ENOBUFS);
	assert_int_equal(rte_mempool_avail_count(mp), 10);
	rte_mempool_put_bulk(mp, objects + 10, N_OBJECTS - 10);
	take_all(mp);
	rte_mempool_free(mp);
}

TEST(test_thread_without_lcore)
{
	struct rte_mempool *mp = make_mempool();
	pthread_t thread;
	void *failed;

	for (int round = 0; round < 10; round++) {
		assert_int_equal(pthread_create(&thread, NULL,
						take_and_put_unregistered, mp),
				 0);
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
		take_all(mp);
	}
	rte_mempool_free(mp);
}

/*
 * Bursts of any size from a mempool that is often empty, so that threads
 * collect all the time. Whoever has an object owns its first word.
 */
static int take_and_put_at_random(void *arg)
{
	struct rte_mempool *mp = arg;
	const uint64_t self = (uint64_t)gettid();
	uint32_t n_held = 0, seed = (uint32_t)self;
	void *held[N_OBJECTS];
	int n_wrong = 0;

	for (int round = 0; round < N_ROUNDS; round++) {
		const uint32_t n = 1 + (uint32_t)rand_r(&seed) % BURST;

		/* More gets than puts, until it holds a third of them all. */
		if (rand_r(&seed) % 8 < 5 && n_held + n <= N_PER_THREAD &&
		    rte_mempool_get_bulk(mp, held + n_held, n) == 0) {
			for (uint32_t i = 0; i < n; i++, n_held++)
				n_wrong += __atomic_exchange_n(
						   (uint64_t *)held[n_held],
						   self, __ATOMIC_RELAXED) != 0;
		} else if (n_held >= n) {
			for (uint32_t i = 0; i < n; i++)
				n_wrong += __atomic_exchange_n(
						   (uint64_t *)held[--n_held],
						   0, __ATOMIC_RELAXED) != self;
			rte_mempool_put_bulk(mp, held + n_held, n);
		}
		if (round % 256 == 0)
			sched_yield();
	}
	for (uint32_t i = 0; i < n_held; i++)
		*(uint64_t *)held[i] = 0;
	rte_mempool_put_bulk(mp, held, n_held);
	return n_wrong;
}

static void *take_and_put_at_random_unregistered(void *arg)
{
	return (void *)(intptr_t)take_and_put_at_random(arg);
}

TEST(test_lcores_and_thread_at_once)
{
	struct rte_mempool *mp = make_mempool();
	pthread_t thread;
	unsigned int lcore;
	void *n_wrong;

	assert_int_equal(rte_mempool_get_bulk(mp, objects, N_OBJECTS), 0);
	for (int i = 0; i < N_OBJECTS; i++)
		memset(objects[i], 0, 256);
	rte_mempool_put_bulk(mp, objects, N_OBJECTS);

	assert_int_equal(pthread_create(&thread, NULL,
					take_and_put_at_random_unregistered,
					mp),
			 0);
	RTE_LCORE_FOREACH_WORKER(lcore)
	assert_int_equal(
		rte_eal_remote_launch(take_and_put_at_random, mp, lcore), 0);
	assert_int_equal(take_and_put_at_random(mp), 0);
	RTE_LCORE_FOREACH_WORKER(lcore)
	assert_int_equal(rte_eal_wait_lcore(lcore), 0);
	assert_int_equal(pthread_join(thread, &n_wrong), 0);
	assert_null(n_wrong);
	take_all(mp);
	rte_mempool_free(mp);
}

/* Any number of chunks, in any order of addresses, 8-byte aligned objects. */
TEST(test_chunks)
{
	struct rte_mempool *mp = make_empty(
		200, RTE_MEMPOOL_F_NO_CACHE_ALIGN | RTE_MEMPOOL_F_NO_SPREAD);
	const size_t n_bytes = 2 * N_OBJECTS * 256;
	const size_t n_pages = n_bytes / OS_PAGE;
	char *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int n_done = 0;

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (size_t i = 0; i < n_pages && n_done < N_OBJECTS; i++) {
		const size_t page = i * 7 % n_pages; /* n_pages is even */
		const int n = rte_mempool_populate_iova(
			mp, memory + page * OS_PAGE, RTE_BAD_IOVA, OS_PAGE,
			NULL, NULL);

		assert_true(n > 0);
		n_done += n;
	}
	assert_int_equal(n_done, N_OBJECTS);
	take_all(mp);
	rte_mempool_free(mp);
	munmap(memory, n_bytes);
}

/* Chunks so far apart that no number reaches both. */
TEST(test_too_far)
{
	const size_t n_bytes = 64 * OS_PAGE;
	char *near =
		mmap((void *)0x10000000000, n_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *far = mmap((void *)0x20000000000, n_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rte_mempool *mp = make_empty(256, 0);
	char line[512];
	FILE *log;
	int n;

	assert_ptr_not_equal(near, MAP_FAILED);
	assert_ptr_not_equal(far, MAP_FAILED);
	assert_true(far - near > 1ll << 38 || near - far > 1ll << 38);
	n = rte_mempool_populate_iova(mp, near, RTE_BAD_IOVA, n_bytes, NULL,
				      NULL);
	assert_true(n > 0);

	log = tmpfile();
	assert_non_null(log);
	rte_openlog_stream(log);
	assert_int_equal(rte_mempool_populate_iova(mp, far, RTE_BAD_IOVA,
						   n_bytes, NULL, NULL),
			 -ERANGE);
	rte_openlog_stream(NULL);
	rewind(log);
	assert_non_null(fgets(line, sizeof(line), log));
	assert_non_null(strstr(line, "too far"));
	fclose(log);

	assert_int_equal(rte_mempool_avail_count(mp), n);
	assert_int_equal(rte_mempool_get_bulk(mp, objects, n), 0);
	rte_mempool_put_bulk(mp, objects, n);
	rte_mempool_free(mp);
	munmap(near, n_bytes);
	munmap(far, n_bytes);
}

/* DPDK frees a mempool whatever is still out. */
TEST(test_freed_while_in_use)
{
	for (int i = 0; i < 3; i++) {
		struct rte_mempool *mp = make_mempool();

		assert_int_equal(rte_mempool_get_bulk(mp, objects, 500), 0);
		rte_mempool_free(mp);
	}
	rte_mempool_free(make_empty(256, 0));
}

/* Before it has memory: no objects, and no crash. */
TEST(test_not_populated)
{
	struct rte_mempool *mp = make_empty(256, 0);

	assert_int_equal(rte_mempool_avail_count(mp), 0);
	rte_mempool_free(mp);
}

/* "--lcores=(0-3)@(CPU,...)": each on all CPUs that we may use. */
static void name_lcores(char *lcores, size_t n_bytes)
{
	cpu_set_t cpus;
	int n = snprintf(lcores, n_bytes, "--lcores=(0-%d)@(", N_WORKERS);

	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0; i < CPU_SETSIZE && (size_t)n + 8 < n_bytes; i++)
		if (CPU_ISSET(i, &cpus))
			n += snprintf(lcores + n, n_bytes - (size_t)n, "%d,",
				      i);
	lcores[n - 1] = ')';
}

static int init_eal(const char *program, const char *plugin)
{
	char prefix[32], lcores[256];
	const char *words[] = { program,
				"--no-pci",
				"--no-telemetry",
				"--no-huge",
				"--no-shconf",
				"-m",
				"64",
				"--file-prefix",
				prefix,
				lcores,
				"-d",
				plugin };
	char *argv[RTE_DIM(words)];

	snprintf(prefix, sizeof(prefix), "mr%d", (int)getpid());
	name_lcores(lcores, sizeof(lcores));
	for (size_t i = 0; i < RTE_DIM(words); i++)
		argv[i] = strdup(words[i]); /* EAL keeps them */
	return rte_eal_init(RTE_DIM(argv), argv);
}

/* EAL loads no plug-in from below a folder that everybody may write to. */
static bool is_safe(const char *plugin)
{
	char *path = realpath(plugin, NULL);
	bool is_safe = path != NULL;

	for (char *end = path; is_safe && (end = strrchr(path, '/')) != NULL;) {
		struct stat about;

		*end = '\0';
		is_safe = stat(path[0] != '\0' ? path : "/", &about) == 0 &&
			  (about.st_mode & S_IWOTH) == 0;
		if (!is_safe)
			printf("%s is world-writable: EAL loads no plug-in "
			       "below it\n",
			       path);
	}
	free(path);
	return is_safe;
}

int main(int argc, char **argv)
{
	int n_failed;

	if (argc != 2) {
		fprintf(stderr, "usage: plugin_test PLUGIN.so\n");
		return 2;
	}
	if (!is_safe(argv[1]))
		return 77; /* skipped */
	if (init_eal(argv[0], argv[1]) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	n_failed = test_run("dpdk plug-in", NULL, NULL);
	rte_eal_cleanup();
	return n_failed;
}
