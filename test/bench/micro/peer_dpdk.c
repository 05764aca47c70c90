/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

const struct dpdk_kind dpdk_kinds[DPDK_KINDS];

#else

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_version.h>

#define KIND(label, ops, size)                                                 \
	{                                                                      \
		"rte_mempool " label " c" #size, ops, size, C##size            \
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

/* EAL writes to stdout and stderr, which are for our results. */
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
	/*
	 * EAL keeps its huge pages from others: take 600 MB, or what there is.
	 */
	const uint64_t n_free = geteuid() == 0 ? n_huge_free() : 0;
	const bool has_huge = n_free >= 64;
	static char cores[16], megabytes[16]; /* EAL keeps the pointers */
	const char *arguments[] = {
		"mr-micro",
		"--no-pci",
		"--no-telemetry",
		"-l",
		cores,
		"-m",
		megabytes,
		"--force-max-simd-bitwidth=512",
		"",
		"--no-shconf",
		NULL,
	};
	const int n = has_huge ? 9 : 10;
	int saved[2], result;

	/* Without huge pages, --in-memory fails with -EINVAL. */
	arguments[8] = has_huge ? "--in-memory" : "--no-huge";
	snprintf(cores, sizeof(cores), "%u", core);
	snprintf(megabytes, sizeof(megabytes), "%u",
		 has_huge && n_free < 316 ? (uint32_t)(n_free - 16) * 2 : 600);
	if (quiet_begin(saved) < 0) {
		snprintf(why->text, sizeof(why->text), "/dev/null: %m");
		return -1;
	}
	/* EAL reorders the pointers, but does not write to the strings. */
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
		(void)rte_thread_register(); /* without: no cache, as in DPDK */
}

void dpdk_thread_end(void)
{
	rte_thread_unregister();
}

static int fail_dpdk(struct mr_reason *why, const char *what)
{
	snprintf(why->text, sizeof(why->text), "%s: %s", what,
		 rte_strerror(rte_errno));
	return -1;
}

/* A name that no pool or ring has had. */
static void next_name(char name[RTE_MEMPOOL_NAMESIZE])
{
	static uint32_t number;

	snprintf(name, RTE_MEMPOOL_NAMESIZE, "bench%u", number++);
}

static struct rte_mempool *make_mempool(const struct wish *wish,
					struct mr_reason *why)
{
	const struct dpdk_kind *kind = wish->kind;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mp;
	int result;

	next_name(name);
	mp = rte_mempool_create_empty(name, wish->n_objects, wish->n_bytes,
				      wish->is_owned ? 0 : kind->cache, 0,
				      SOCKET_ID_ANY, 0);
	if (mp == NULL) {
		fail_dpdk(why, "rte_mempool_create_empty");
		return NULL;
	}
	result = rte_mempool_set_ops_byname(mp, kind->ops, NULL);
	if (result == 0)
		result = rte_mempool_populate_default(mp);
	if (result >= 0)
		return mp;
	rte_errno = -result;
	fail_dpdk(why, kind->ops);
	rte_mempool_free(mp);
	return NULL;
}

static struct rte_mempool *make_mbufs(const struct wish *wish,
				      struct mr_reason *why)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mp;

	next_name(name);
	mp = rte_pktmbuf_pool_create_by_ops(
		name, wish->n_objects, wish->kind->cache, 0,
		(uint16_t)wish->n_bytes, SOCKET_ID_ANY, wish->kind->ops);
	if (mp == NULL)
		fail_dpdk(why, wish->kind->ops);
	return mp;
}

int dpdk_pool_make(struct variant *variant, void **ret, struct mr_reason *why)
{
	const struct wish *wish = &variant->wish;
	struct dpdk_pool *pool = *ret = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return -1;
	for (; pool->n_pools < wish->n_pools; pool->n_pools++) {
		struct rte_mempool *mp = variant->alloc == A_MBUFS ?
						 make_mbufs(wish, why) :
						 make_mempool(wish, why);

		if (mp == NULL)
			return -1;
		pool->mps[pool->n_pools] = mp;
	}
	if (!wish->is_owned || wish->kind->cache == 0)
		return 0;
	/* For thread 0; a second one to free to, if ours has two as well. */
	pool->a = rte_mempool_cache_create(wish->kind->cache, SOCKET_ID_ANY);
	pool->from[0] = pool->to[0] = pool->a;
	if (wish->caches != CACHES_AWAY)
		return 0;
	pool->b = rte_mempool_cache_create(wish->kind->cache, SOCKET_ID_ANY);
	pool->to[0] = pool->b;
	return 0;
}

void dpdk_pool_free(void *state)
{
	struct dpdk_pool *pool = state;

	/* Their objects are freed with the pool. */
	if (pool->a != NULL)
		rte_mempool_cache_free(pool->a);
	if (pool->b != NULL)
		rte_mempool_cache_free(pool->b);
	while (pool->n_pools > 0)
		rte_mempool_free(pool->mps[--pool->n_pools]);
	free(pool);
}

#endif
