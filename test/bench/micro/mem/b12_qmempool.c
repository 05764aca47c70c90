/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B12: objects of 256 bytes (an sk_buff) through a local cache and a shared
 * queue, one at a time: taken and given back at once (fast), or 128 or 256
 * taken and then given back (N), which no local queue of 32 holds. On one
 * thread, on as many as cores, and on more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "model_qmempool.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "support/text.h"
#include "workloads.h"
#ifdef BENCH_DPDK
#include <rte_errno.h>
#endif

enum { OBJECT_BYTES = 256, MAX_N = 256, BY_THREAD = 2048, PAGE_BYTES = 2048 };

enum { N, IS_BULK }; /* of player.param: objects held; in one call */

struct objects {
	struct mr_objpool *pool;
	struct mr_objcache *caches[MAX_THREADS];
	uint32_t n_caches;
};

static void free_objects(struct objects *o)
{
	struct mr_reason why = { .text = "" };

	for (uint32_t i = 0; i < o->n_caches; i++)
		mr_objcache_destroy(o->caches[i]);
	if (mr_objpool_destroy(o->pool, &why) < 0)
		print_error("mr-bench: %s", why.text);
	free(o);
}

static int set_up_ours(struct player *player, struct mr_reason *why)
{
	const uint32_t n = player->row->n_threads;
	const struct mr_objpool_config config = { .size = sizeof(config),
						  .object_bytes = OBJECT_BYTES,
						  .n_objects = n * BY_THREAD };
	struct objects *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -1;
	if (mr_objpool_create(bench_ctx(player->bench), &config, &o->pool,
			      why) < 0) {
		free(o);
		return -1;
	}
	for (; o->n_caches < n; o->n_caches++) {
		if (mr_objcache_create(o->pool, &o->caches[o->n_caches], why) <
		    0) {
			free_objects(o);
			return -1;
		}
	}
	player->state = o;
	return 0;
}

static void tear_down_ours(struct player *player)
{
	free_objects(player->state);
}

static void count_ours(struct player *player, struct counts *counts)
{
	const struct objects *o = player->state;
	struct mr_objpool_stats s = { .size = sizeof(s) };

	mr_objpool_stats(o->pool, &s);
	count_per_1000(counts, "refill_per_1000", s.alloc_refill, player);
	count_per_1000(counts, "cache_full_per_1000", s.recycle_cache_full,
		       player);
	count_per_1000(counts, "empty_per_1000", s.alloc_empty, player);
	count_per_1000(counts, "cas_failed_per_1000", s.depot_cas_failed,
		       player);
	count_add(counts, "parked", (double)s.n_cached);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	struct mr_objcache *cache =
		((struct objects *)player->state)->caches[thread];
	const uint32_t hold = (uint32_t)player->param[N];
	const uint32_t step = player->param[IS_BULK] ? hold : 1;
	void *objects[MAX_N];
	uint64_t done;

	for (done = 0; done < n; done += hold) {
		for (uint32_t i = 0; i < hold; i += step) {
			if (mr_obj_alloc_bulk(cache, objects + i, step) == step)
				continue;
			mr_obj_free_bulk(cache, objects, i);
			return 0;
		}
		keep(objects);
		for (uint32_t i = 0; i < hold; i += step)
			mr_obj_free_bulk(cache, objects + i, step);
	}
	return done;
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	struct rte_mempool *mp = ((struct dpdk_pool *)player->state)->mp;
	const uint32_t hold = (uint32_t)player->param[N];
	const uint32_t step = player->param[IS_BULK] ? hold : variable_one();
	void *objects[MAX_N];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += hold) {
		for (uint32_t i = 0; i < hold; i += step) {
			if (rte_mempool_get_bulk(mp, &objects[i], step) == 0)
				continue;
			rte_mempool_put_bulk(mp, objects, i);
			return 0;
		}
		keep(objects);
		for (uint32_t i = 0; i < hold; i += step)
			rte_mempool_put_bulk(mp, &objects[i], step);
	}
	return done;
}

/* Objects in a ring of pointers, with nothing in front of it. */
struct ringed {
	struct rte_ring *ring;
	uint8_t *memory;
};

static void tear_down_ring(struct player *player)
{
	struct ringed *ringed = player->state;

	rte_ring_free(ringed->ring);
	free(ringed->memory);
	free(ringed);
}

static int set_up_ring(struct player *player, struct mr_reason *why)
{
	const uint32_t n = player->row->n_threads * BY_THREAD;
	struct ringed *ringed = calloc(1, sizeof(*ringed));
	static uint32_t number;
	char name[32];

	if (ringed == NULL)
		return -1;
	player->state = ringed;
	snprintf(name, sizeof(name), "objects%u", number++);
	ringed->memory = malloc((size_t)n * OBJECT_BYTES);
	ringed->ring = rte_ring_create(name, n, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	if (ringed->ring == NULL || ringed->memory == NULL) {
		snprintf(why->text, sizeof(why->text), "rte_ring_create: %s",
			 rte_strerror(rte_errno));
		tear_down_ring(player);
		return -1;
	}
	for (uint32_t i = 0; i < n; i++)
		rte_ring_enqueue(ringed->ring,
				 ringed->memory + (size_t)i * OBJECT_BYTES);
	return 0;
}

static uint64_t run_ring(struct player *player, uint32_t thread, uint64_t n)
{
	struct rte_ring *ring = ((struct ringed *)player->state)->ring;
	const uint32_t hold = (uint32_t)player->param[N];
	const uint32_t step = player->param[IS_BULK] ? hold : variable_one();
	void *objects[MAX_N];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += hold) {
		for (uint32_t i = 0; i < hold; i += step)
			if (rte_ring_dequeue_bulk(ring, objects + i, step,
						  NULL) == 0)
				return 0; /* cannot be: there are 2048 each */
		keep(objects);
		for (uint32_t i = 0; i < hold; i += step)
			rte_ring_enqueue_bulk(ring, objects + i, step, NULL);
	}
	return done;
}

static void add_rings(struct bench *bench, struct row *row, uint32_t hold)
{
	struct player player = { .name = "rte_ring",
				 .side = SIDE_DPDK,
				 .setup = set_up_ring,
				 .run = run_ring,
				 .teardown = tear_down_ring,
				 .param = { hold } };

	bench_add(bench, row->players, &row->n_players, &player);
	player.name = "rte_ring, in bulk";
	player.param[IS_BULK] = 1;
	if (hold > 1)
		bench_add(bench, row->players, &row->n_players, &player);
}

/*
 * Without caches, more threads than cores would wait for each other's tails a
 * time slice at a time: such a row does not end.
 */
static void add_dpdk(struct bench *bench, struct row *row, uint32_t hold)
{
	struct player player = {
		.run = run_dpdk,
		.param = { hold, [P_PAGES] = row->n_threads * BY_THREAD,
			   [P_BYTES] = OBJECT_BYTES }
	};
	uint32_t n_single;

	dpdk_add_all(bench, row,
		     row->n_threads > bench_n_cores(bench) ? C512 | C256 :
							     C_ALL,
		     &player);
	n_single = row->n_players;
	player.param[IS_BULK] = 1;
	if (hold > 1)
		dpdk_add_all(bench, row, C512 | C256, &player);
	for (uint32_t i = n_single; i < row->n_players; i++)
		row->players[i].name =
			dpdk_name(row->players[i].opaque, ", in bulk");
	if (row->n_threads <= bench_n_cores(bench))
		add_rings(bench, row, hold);
}
#else
static void add_dpdk(struct bench *bench, struct row *row, uint32_t hold)
{
	(void)bench;
	(void)row;
	(void)hold;
}
#endif

static int set_up_model(struct player *player, struct mr_reason *why)
{
	(void)why;
	player->state = qm_make(player->row->n_threads, OBJECT_BYTES);
	return player->state == NULL ? -1 : 0;
}

static void tear_down_model(struct player *player)
{
	qm_destroy(player->state);
}

static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	const uint32_t hold = (uint32_t)player->param[N];
	void *objects[MAX_N];
	uint64_t done;

	for (done = 0; done < n; done += hold) {
		for (uint32_t i = 0; i < hold; i++)
			objects[i] = qm_alloc(player->state, thread);
		keep(objects);
		for (uint32_t i = 0; i < hold; i++)
			qm_free(player->state, thread, objects[i]);
	}
	return done;
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	const uint32_t hold = (uint32_t)player->param[N];
	void *objects[MAX_N];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += hold) {
		for (uint32_t i = 0; i < hold; i++)
			objects[i] = malloc(OBJECT_BYTES);
		keep(objects);
		for (uint32_t i = 0; i < hold; i++)
			free(objects[i]);
	}
	return done;
}

static void row_of(struct bench *bench, uint32_t hold, uint32_t n_threads)
{
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "object",
			   .n_threads = n_threads,
			   .is_per_thread = true,
			   .plot = plot,
			   .x_name = "threads",
			   .x = n_threads,
			   .players = players };
	struct player ours = { .name = "millrace objects",
			       .side = SIDE_OURS,
			       .setup = set_up_ours,
			       .run = run_ours,
			       .count = count_ours,
			       .teardown = tear_down_ours,
			       .param = { hold } };

	snprintf(plot, sizeof(plot), hold == 1 ? "fast" : "N=%u", hold);
	snprintf(name, sizeof(name), "%s threads=%u", plot, n_threads);
	bench_add(bench, players, &row.n_players, &ours);
	if (hold > 1) {
		ours.name = "millrace objects, in bulk";
		ours.param[IS_BULK] = 1;
		bench_add(bench, players, &row.n_players, &ours);
	}
	add_dpdk(bench, &row, hold);
	/* Its threads wait for each other's tails as well: see add_dpdk(). */
	if (hold == 1 || n_threads <= bench_n_cores(bench))
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = "model of qmempool",
					    .side = SIDE_KERNEL,
					    .setup = set_up_model,
					    .run = run_model,
					    .teardown = tear_down_model,
					    .param = { hold } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "malloc",
				    .side = SIDE_MALLOC,
				    .run = run_malloc,
				    .param = { hold } });
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	static const uint32_t holds[] = { 1, 128, 256 };
	const uint32_t n_cores = bench_n_cores(bench);

	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t n = 1; n <= n_cores;
		     n = next_n_threads(n, n_cores))
			row_of(bench, holds[i], n);
		if (4 * n_cores <= MAX_THREADS)
			row_of(bench, holds[i], 4 * n_cores);
	}
}

const struct workload b12_qmempool = {
	.name = "B12",
	.title = "qm_fast, qm_N",
	.what = "objects through a local cache and a shared queue",
	.source = "prototype-kernel, qmempool_bench",
	.rows = rows,
};
