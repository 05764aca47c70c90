/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B22: a pool that grows for a burst of 128 Ki pages and shrinks afterwards. An
 * operation is a page that is taken in the burst, written to once, and given
 * back; with shrink=each the janitor then brings the pool back to where it
 * began, and that and the growth of the next burst are in the figure.
 *
 * Beside the time, from a cycle of its own: the memory of the process before
 * the burst, at its top, when all pages are free again, and after the janitor;
 * and what single takes of 32 pages took in the next burst.
 */
#include <stdio.h>

#include "latency.h"
#include "takers.h"
#include "workloads.h"

enum { IS_SHRUNK };            /* of player.param */
enum { NEVER, EACH, DRAINED }; /* its values */

enum {
	BURST = 32,
	TOP_PAGES = 131072,
	BASE_PAGES = 8192,
	MAX_TENDS = 256, /* until it has shrunk, or never will */
};

struct shrink {
	void *pool;
	uint32_t n_held;
	struct latency latency;
	word words[TOP_PAGES];
};

static void *make_ours(struct bench *bench, struct mr_reason *why)
{
	const struct mr_pool_config config = {
		.n_pages = BASE_PAGES,
		.page_bytes = OBJECT_BYTES,
		.max_pages = TOP_PAGES + BASE_PAGES,
		.segment_pages = BASE_PAGES,
	};
	struct our_pool *our = malloc(sizeof(*our));

	if (our == NULL)
		return NULL;
	if (ours_make(&our->ours, bench, &config, 1, why) < 0) {
		free(our);
		return NULL;
	}
	our->base = mr_region_base(mr_pool_region(our->ours.pool));
	return our;
}

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = { .n_objects = TOP_PAGES + BASE_PAGES,
					.n_threads = 1 };
	struct shrink *shrink = calloc(1, sizeof(*shrink));

	if (shrink == NULL)
		return -1;
	if (player->side == SIDE_OURS)
		shrink->pool = make_ours(player->bench, why);
	else
		shrink->pool = taker_pool_make(player->side, player->bench,
					       &wish, player->opaque, why);
	if (shrink->pool == NULL) {
		free(shrink);
		return -1;
	}
	player->state = shrink;
	return 0;
}

static void tear_down(struct player *player)
{
	struct shrink *shrink = player->state;

	taker_pool_free(player->side, shrink->pool);
	free(shrink);
}

/* Up to the top, or as far as there are pages. */
static ALWAYS_INLINE void grow(struct shrink *shrink, bool is_timed,
			       const struct taker taker)
{
	for (uint32_t n = 0; n < TOP_PAGES; n += BURST) {
		const uint64_t start = is_timed ? latency_now() : 0;

		if (!taker.take(shrink->pool, 0, &shrink->words[n], BURST))
			return;
		if (is_timed)
			latency_add(&shrink->latency, latency_now() - start);
		for (uint32_t i = 0; i < BURST; i++)
			*(uint64_t *)taker.data(shrink->pool,
						shrink->words[n + i]) = n;
		shrink->n_held = n + BURST;
	}
}

static ALWAYS_INLINE uint32_t release(struct shrink *shrink,
				      const struct taker taker)
{
	const uint32_t n_held = shrink->n_held;

	for (uint32_t n = 0; n < n_held; n += BURST)
		taker.give(shrink->pool, 0, &shrink->words[n], BURST);
	shrink->n_held = 0;
	return n_held;
}

/*
 * The janitor, as often as it still finds something to do. What the cache of a
 * worker holds is not the janitor's, and one page is enough to keep a segment.
 */
static void tend(struct shrink *shrink, bool is_drained)
{
	const struct mr_tend_config config = { .size = sizeof(config),
					       .n_keep = BASE_PAGES,
					       .idle_ns = 1,
					       .max_magazines = 4096 };
	struct ours *ours = &((struct our_pool *)shrink->pool)->ours;
	struct mr_reason why = { .text = "" };
	uint32_t n_vain = 0;

	if (is_drained) {
		mr_cache_destroy(ours->caches[0]);
		ours->n_caches = 0;
	}

	for (uint32_t i = 0; i < MAX_TENDS && n_vain < 4; i++) {
		struct mr_tend_report report = { .size = sizeof(report) };

		if (mr_pool_tend(ours->pool, &config, &report) < 0)
			break;
		n_vain = report.n_pages_back + report.n_pages_shrunk > 0 ?
				 0 :
				 n_vain + 1;
	}
	if (is_drained &&
	    mr_cache_create(ours->pool, &ours->caches[0], &why) == 0)
		ours->n_caches = 1;
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint64_t n,
				  const struct taker taker)
{
	struct shrink *shrink = player->state;
	uint64_t done = 0;

	do {
		uint32_t got;

		grow(shrink, false, taker);
		got = release(shrink, taker);
		if (player->param[IS_SHRUNK] != 0)
			tend(shrink, player->param[IS_SHRUNK] == DRAINED);
		if (got < TOP_PAGES)
			return 0;
		done += got;
	} while (done < n);
	return done;
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return run(player, n, OURS_TAKER);
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return run(player, n, MALLOC_TAKER);
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return run(player, n, DPDK_TAKER);
}
#else
#define run_dpdk NULL
#endif

/* What the process has in memory, huge pages included, in MiB. */
static double resident_mib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long kib, sum = 0;
	char line[128];

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "VmRSS: %llu", &kib) == 1 ||
		    sscanf(line, "HugetlbPages: %llu", &kib) == 1)
			sum += kib;
	fclose(file);
	return (double)sum / 1024;
}

static void count(struct player *player, struct counts *counts)
{
	struct shrink *shrink = player->state;
	const double before = resident_mib();
	double top, idle;

	grow(shrink, false, OURS_TAKER);
	top = resident_mib();
	release(shrink, OURS_TAKER);
	idle = resident_mib();
	if (player->param[IS_SHRUNK] != 0)
		tend(shrink, player->param[IS_SHRUNK] == DRAINED);
	count_add(counts, "mib_before", before);
	count_add(counts, "mib_top", top);
	count_add(counts, "mib_idle", idle);
	count_add(counts, "mib_after", resident_mib());
	grow(shrink, true, OURS_TAKER);
	release(shrink, OURS_TAKER);
	latency_count(&shrink->latency, 1, counts);
}

static void rows(struct bench *bench)
{
	struct player players[MAX_PLAYERS];
	struct row row = { .name = "top=131072 base=8192",
			   .unit = "page",
			   .players = players };
	struct player player = { .setup = set_up, .teardown = tear_down };

	player.side = SIDE_OURS;
	player.run = run_ours;
	player.count = count;
	player.name = "shrink=never";
	bench_add(bench, players, &row.n_players, &player);
	player.param[IS_SHRUNK] = EACH;
	player.name = "shrink=each";
	bench_add(bench, players, &row.n_players, &player);
	player.param[IS_SHRUNK] = DRAINED;
	player.name = "shrink=each, the worker's cache gone";
	bench_add(bench, players, &row.n_players, &player);
	player.param[IS_SHRUNK] = NEVER;
	player.count = NULL;
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	player.name = "malloc";
	player.side = SIDE_MALLOC;
	player.run = run_malloc;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

const struct workload b22_shrink = {
	.name = "B22",
	.title = "shrink",
	.what = "grow for a burst of 128 Ki pages, and shrink again",
	.source = "no peer shrinks: DPDK, VPP, ixy",
	.rows = rows,
};
