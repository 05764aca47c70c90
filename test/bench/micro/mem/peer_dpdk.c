/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ours.h"
#include "peer_dpdk.h"

#ifndef BENCH_DPDK

int dpdk_start(uint32_t core, struct mr_reason *why)
{
	(void)core;
	snprintf(why->text, sizeof(why->text), "%s", dpdk_version());
	return -1;
}

const char *dpdk_version(void)
{
	return "no libdpdk in this build";
}

bool dpdk_has_small_pages(void)
{
	return false;
}

void dpdk_thread_begin(void)
{
}

void dpdk_thread_end(void)
{
}

void dpdk_add_all(struct bench *bench, struct row *row, uint32_t kinds,
		  const struct player *like)
{
	(void)bench;
	(void)row;
	(void)kinds;
	(void)like;
}

#else

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_version.h>

#define KIND(label, ops, size)                                                 \
	{                                                                      \
		"rte_mempool " label " c" #size, ops, size                     \
	}

const struct dpdk_kind dpdk_kinds[DPDK_KINDS] = {
	KIND("ring", "ring_mp_mc", 512),   KIND("ring", "ring_mp_mc", 256),
	KIND("ring", "ring_mp_mc", 0),     KIND("stack", "stack", 512),
	KIND("stack", "stack", 256),       KIND("stack", "stack", 0),
	KIND("lf_stack", "lf_stack", 512), KIND("lf_stack", "lf_stack", 256),
	KIND("lf_stack", "lf_stack", 0),   KIND("bucket", "bucket", 512),
	KIND("bucket", "bucket", 256),     KIND("bucket", "bucket", 0),
};

static const char *version = "DPDK, not started";
static bool has_small_pages;

/* EAL writes to stdout and stderr as it likes; our report goes there. */
static int quiet_begin(int saved[2])
{
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0)
		return -1;
	fflush(stdout);
	for (int fd = 1; fd <= 2; fd++) {
		saved[fd - 1] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		dup2(null, fd);
	}
	close(null);
	return 0;
}

static void quiet_end(const int saved[2])
{
	fflush(stdout);
	fflush(stderr);
	for (int fd = 1; fd <= 2; fd++) {
		if (saved[fd - 1] < 0)
			continue;
		dup2(saved[fd - 1], fd);
		close(saved[fd - 1]);
	}
}

static uint64_t n_huge_free(void)
{
	static const char path[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
				   "free_hugepages";
	unsigned long long n = 0;
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu", &n) != 1)
		n = 0;
	fclose(file);
	return n;
}

int dpdk_start(uint32_t core, struct mr_reason *why)
{
	/* What it takes is taken from others: 600 MB, or what there is. */
	const uint64_t n_free = geteuid() == 0 ? n_huge_free() : 0;
	const bool has_huge = n_free >= 64;
	static char cores[16], megabytes[16]; /* EAL keeps the pointers */
	const char *arguments[] = {
		"mr-bench", "--no-pci", "--no-telemetry", "-l", cores, "-m",
		megabytes,  "",         "--no-shconf",    NULL,
	};
	const int n = has_huge ? 8 : 9;
	int saved[2], result;

	/* Without huge pages it cannot do --in-memory, and says -EINVAL. */
	arguments[7] = has_huge ? "--in-memory" : "--no-huge";
	snprintf(cores, sizeof(cores), "%u", core);
	snprintf(megabytes, sizeof(megabytes), "%u",
		 has_huge && n_free < 316 ? (uint32_t)(n_free - 16) * 2 : 600);
	if (quiet_begin(saved) < 0) {
		snprintf(why->text, sizeof(why->text), "/dev/null: %m");
		return -1;
	}
	/* It moves them about, but writes to none. */
	result = rte_eal_init(n, (char **)(uintptr_t)arguments);
	quiet_end(saved);
	if (result < 0) {
		snprintf(why->text, sizeof(why->text),
			 "rte_eal_init: %s (root and huge pages may help)",
			 rte_strerror(rte_errno));
		return -1;
	}
	has_small_pages = !has_huge;
	version = has_huge ? RTE_VER_PREFIX " " DPDK_VERSION ", huge pages" :
			     RTE_VER_PREFIX " " DPDK_VERSION
					    ", 4 KiB pages, and so have we";
	return 0;
}

const char *dpdk_version(void)
{
	return version;
}

bool dpdk_has_small_pages(void)
{
	return has_small_pages;
}

void dpdk_thread_begin(void)
{
	if (rte_lcore_id() == LCORE_ID_ANY)
		(void)rte_thread_register(); /* fails: no cache, as DPDK does */
}

void dpdk_thread_end(void)
{
	rte_thread_unregister();
}

static int fail(struct mr_reason *why, const char *what)
{
	snprintf(why->text, sizeof(why->text), "%s: %s", what,
		 rte_strerror(rte_errno));
	return -1;
}

/* One that no pool had before. */
static void name_pool(char name[RTE_MEMPOOL_NAMESIZE])
{
	static uint32_t number;

	snprintf(name, RTE_MEMPOOL_NAMESIZE, "bench%u", number++);
}

int dpdk_pool_make(struct dpdk_pool *pool, const struct dpdk_kind *kind,
		   uint32_t n_objects, uint32_t object_bytes, uint32_t n_owned,
		   struct mr_reason *why)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	int result;

	*pool = (struct dpdk_pool){ .n_objects = n_objects };
	name_pool(name);
	pool->mp = rte_mempool_create_empty(name, n_objects, object_bytes,
					    n_owned > 0 ? 0 : kind->cache, 0,
					    SOCKET_ID_ANY, 0);
	if (pool->mp == NULL)
		return fail(why, "rte_mempool_create_empty");
	result = rte_mempool_set_ops_byname(pool->mp, kind->ops, NULL);
	if (result == 0)
		result = rte_mempool_populate_default(pool->mp);
	if (result < 0) {
		rte_errno = -result;
		fail(why, kind->ops);
		dpdk_pool_free(pool);
		return -1;
	}
	if (n_owned > 0 && kind->cache > 0)
		pool->a = rte_mempool_cache_create(kind->cache, SOCKET_ID_ANY);
	if (n_owned > 1 && kind->cache > 0)
		pool->b = rte_mempool_cache_create(kind->cache, SOCKET_ID_ANY);
	return 0;
}

void dpdk_pool_free(struct dpdk_pool *pool)
{
	/* What is in them goes with the pool. */
	if (pool->a != NULL)
		rte_mempool_cache_free(pool->a);
	if (pool->b != NULL)
		rte_mempool_cache_free(pool->b);
	rte_mempool_free(pool->mp);
}

static rte_mempool_dequeue_t handler_get;
static rte_mempool_enqueue_t handler_put;
static uint64_t n_gets, n_puts, n_got, n_failed;

static int counted_get(struct rte_mempool *mp, void **objects, unsigned int n)
{
	const int result = handler_get(mp, objects, n);

	__atomic_add_fetch(&n_gets, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(result < 0 ? &n_failed : &n_got, result < 0 ? 1 : n,
			   __ATOMIC_RELAXED);
	return result;
}

static int counted_put(struct rte_mempool *mp, void *const *objects,
		       unsigned int n)
{
	__atomic_add_fetch(&n_puts, 1, __ATOMIC_RELAXED);
	return handler_put(mp, objects, n);
}

void dpdk_pool_count(struct dpdk_pool *pool, struct player *player,
		     struct counts *counts)
{
	struct rte_mempool_ops *ops = rte_mempool_get_ops(pool->mp->ops_index);
	const uint64_t n_wanted = 1000000;
	uint64_t parked = 0, n;

	handler_get = ops->dequeue;
	handler_put = ops->enqueue;
	n_gets = n_puts = n_got = n_failed = 0;
	ops->dequeue = counted_get;
	ops->enqueue = counted_put;
	n = bench_run_again(player, n_wanted);
	ops->dequeue = handler_get;
	ops->enqueue = handler_put;
	if (n == 0)
		return;
	count_add(counts, "backend_gets_per_1000", 1000.0 * n_gets / n);
	count_add(counts, "backend_puts_per_1000", 1000.0 * n_puts / n);
	count_add(counts, "backend_objects_per_1000", 1000.0 * n_got / n);
	count_add(counts, "empty_per_1000", 1000.0 * n_failed / n);
	if (pool->a != NULL)
		parked += pool->a->len;
	if (pool->b != NULL)
		parked += pool->b->len;
	for (uint32_t i = 0; i < RTE_MAX_LCORE && pool->mp->cache_size > 0; i++)
		parked += pool->mp->local_cache[i].len;
	count_add(counts, "parked", (double)parked);
}

int dpdk_set_up(struct player *player, struct mr_reason *why)
{
	struct dpdk_pool *pool = malloc(sizeof(*pool));
	const uint32_t bytes = (uint32_t)player->param[P_BYTES];

	if (pool == NULL)
		return -1;
	player->state = pool;
	if (dpdk_pool_make(pool, player->opaque, player_n_pages(player),
			   bytes > 0 ? bytes : 2048,
			   (uint32_t)player->param[P_MORE], why) == 0)
		return 0;
	free(pool);
	return -1;
}

int dpdk_frames_set_up(struct player *player, struct mr_reason *why)
{
	const struct dpdk_kind *kind = player->opaque;
	struct dpdk_pool *pool = calloc(1, sizeof(*pool));
	char name[RTE_MEMPOOL_NAMESIZE];

	if (pool == NULL)
		return -1;
	player->state = pool;
	pool->n_objects = player_n_pages(player);
	name_pool(name);
	pool->mp = rte_pktmbuf_pool_create_by_ops(
		name, pool->n_objects, kind->cache, 0,
		RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, kind->ops);
	if (pool->mp != NULL)
		return 0;
	fail(why, kind->ops);
	free(pool);
	return -1;
}

void dpdk_player_count(struct player *player, struct counts *counts)
{
	dpdk_pool_count(player->state, player, counts);
}

void dpdk_tear_down(struct player *player)
{
	dpdk_pool_free(player->state);
	free(player->state);
}

const char *dpdk_name(const struct dpdk_kind *kind, const char *words)
{
	static char names[DPDK_KINDS][64];
	char *name = names[kind - dpdk_kinds];

	snprintf(name, sizeof(names[0]), "%s%s", kind->name, words);
	return name;
}

void dpdk_add_all(struct bench *bench, struct row *row, uint32_t kinds,
		  const struct player *like)
{
	for (uint32_t i = 0; i < DPDK_KINDS; i++) {
		const struct dpdk_kind *kind = &dpdk_kinds[i];
		const uint32_t bit = kind->cache == 512 ? C512 :
				     kind->cache == 256 ? C256 :
							  C0;
		struct player player = *like;

		if ((kinds & bit) == 0)
			continue;
		player.name = kind->name;
		player.side = SIDE_DPDK;
		player.setup = dpdk_set_up;
		player.count = dpdk_player_count;
		player.teardown = dpdk_tear_down;
		player.opaque = kind;
		bench_add(bench, row->players, &row->n_players, &player);
	}
}

#endif
