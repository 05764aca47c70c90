/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that one thread takes and another one gives back: B05, B14, B15 and
 * B20.
 */
#include <stdio.h>

#include "alloc.h"
#include "workloads.h"

enum { BURST = 32, RING = 1024 };

/* Of a harness whose rings wait; and of a run, what its threads have done. */
static void count_pipe(struct variant *variant, struct counts *counts)
{
	const struct harness *harness = variant->state;
	const struct hop *hop = harness->hops[0];

	if (hop->n_looks > 0)
		count_add(counts, "in_flight",
			  (double)hop->n_waiting / (double)hop->n_looks);
	count_per_1000(counts, "ring_full_waits_per_1000", harness->n_full,
		       variant);
	if (variant->side != SIDE_PLAIN)
		count_per_1000(counts, "pool_empty_waits_per_1000",
			       harness->n_empty, variant);
	harness_count(variant, counts);
}

/* Take n objects and send them on; give back what comes back, if any does. */
static ALWAYS_INLINE uint64_t produce(struct harness *harness, uint64_t n,
				      const struct ops ops)
{
	struct hop *back = harness->hops[1];
	struct patience patience = { 0 };
	word words[BURST], returned[BURST];
	uint64_t n_sent = 0, n_back = back == NULL ? n : 0;
	bool has = false; /* a burst in hand */

	while (n_sent < n || n_back < n) {
		bool is_idle = true;

		if (n_back < n) {
			const uint32_t got = hop_get(back, returned, BURST);

			ops.give(harness->pool, 0, returned, got);
			n_back += got;
			is_idle = got == 0;
		}
		if (n_sent < n && !has) {
			has = ops.take(harness->pool, 0, words, BURST);
			harness->n_empty += !has;
		}
		if (has && hop_put(harness->hops[0], words, BURST)) {
			n_sent += BURST;
			has = false;
			is_idle = false;
		}
		harness->n_full += has;
		if (!is_idle)
			patience = (struct patience){ 0 };
		else if (harness_is_dead(harness, &patience))
			break;
	}
	if (has)
		ops.give(harness->pool, 0, words, BURST);
	return n_sent < n || n_back < n ? 0 : n;
}

/*
 * B05: one core takes pages and deals them round-robin to the others, which
 * give them back; bench_page_pool_cross_cpu. A ring of 1024 leads to each. If
 * it is full the page goes straight back where it came from, and is counted;
 * so are the polls of an empty ring.
 */
enum { P_BULK, P_ONE }; /* of variant.param: in a returner's call, a dealer's */

/* Each returner is to get n: whatever was full is dealt again. */
static ALWAYS_INLINE uint64_t deal(struct variant *variant, uint64_t n,
				   const struct ops ops)
{
	struct harness *harness = variant->state;
	const uint32_t n_returners = harness->n_threads - 1;
	const uint32_t one = (uint32_t)variant->param[P_ONE];
	uint64_t n_dealt[MAX_THREADS] = { 0 }, n_full = 0;
	word page[BURST];

	for (uint64_t left = n * n_returners; left > 0;) {
		for (uint32_t i = 1; i <= n_returners; i++) {
			if (n_dealt[i] == n)
				continue;
			if (!ops.take(harness->pool, 0, page, one)) {
				sched_yield(); /* all are with returners */
				continue;
			}
			if (hop_put(harness->hops[i], page, 1)) {
				n_dealt[i]++;
				left--;
				continue;
			}
			ops.give(harness->pool, 0, page, one);
			if (++n_full % 1024 == 0)
				sched_yield();
		}
	}
	harness->n_full += n_full;
	return 0;
}

static ALWAYS_INLINE uint64_t cross(struct variant *variant, uint32_t thread,
				    uint64_t n, const struct ops ops)
{
	struct harness *harness = variant->state;
	const uint32_t bulk = (uint32_t)variant->param[P_BULK];
	uint64_t n_idle = 0;
	word pages[BURST];

	if (thread == 0)
		return deal(variant, n, ops);
	for (uint64_t left = n; left > 0;) {
		const uint32_t got =
			hop_get(harness->hops[thread], pages,
				left < bulk ? (uint32_t)left : bulk);

		if (got == 0) {
			if (++n_idle % 10000 == 0)
				sched_yield();
			continue;
		}
		ops.give(harness->pool, thread, pages, got);
		left -= got;
	}
	__atomic_add_fetch(&harness->n_idle, n_idle, __ATOMIC_RELAXED);
	return n;
}

RUN(cross_ours, cross, OURS)
RUN(cross_model, cross, MODEL)
RUN_DPDK(cross_dpdk, cross, DPDK)

static void count_cross(struct variant *variant, struct counts *counts)
{
	const struct harness *harness = variant->state;

	count_per_1000(counts, "queue_full_per_1000", harness->n_full, variant);
	count_per_1000(counts, "empty_polls_per_1000", harness->n_idle,
		       variant);
	harness_count(variant, counts);
}

/* The original has two returners; more where there are cores for them. */
void rows_b05(struct bench *bench)
{
	static const struct contestant list[] = {
		POOLS(cross_ours, cross_dpdk),
		{ "model of page_pool", A_PAGE_POOL, cross_model },
	};
	const uint32_t n_cores = bench_n_cores(bench);
	const uint32_t most = n_cores > 2 ? n_cores - 1 : 1;

	for (uint32_t bulk = 1; bulk <= BURST; bulk *= BURST)
		for (uint32_t n = 1; n <= most; n = next_n_threads(n, most)) {
			struct row row = { .unit = "page",
					   .n_threads = n + 1,
					   .x_name = "returners",
					   .x = n };
			const struct variant like = {
				.count = count_cross,
				.wish = { .n_objects = 32000,
					  .n_hops = n + 1,
					  .hop_words = RING },
				.param = { bulk, 1 },
			};

			NAME(row.plot, "bulk=%u", bulk);
			NAME(row.name, "returners=%u %s", n, row.plot);
			bench_add_all(bench, &row, &like, list, N_OF(list));
			bench_row(bench, &row);
		}
}

/*
 * B14: one core takes pages in bursts of 32, the other one touches their bytes
 * and gives them back:
 *
 *     core 0: take -> ring -> core 1: touch -> give
 *
 * With back=ring the pages come back through a second ring, and core 0 gives
 * them back where it took them. The rows by ring size show what a longer queue
 * costs (the advice of founding document 4): as a driver that completes late,
 * core 1 waits until the ring is three quarters full, then empties it. Such a
 * queue holds, and returns at once, pages that no cache has room for.
 *
 * What is taken is room for a frame of Ethernet behind a headroom, out of 2048
 * bytes: ours begins at one of the lines that are left over, an object of
 * rte_mempool has a header and padding that spread them.
 */
enum { P_TOUCH, P_IS_LATE }; /* of variant.param */

static ALWAYS_INLINE void touch_all(struct harness *harness, const word *words,
				    uint32_t n, uint64_t touch,
				    const struct ops ops)
{
	for (uint32_t i = 0; i < n && touch > 0; i++) {
		uint64_t *data = ops.data(harness->pool, words[i]);

		data[0]++; /* as a forwarder writes the header */
		if (touch > 1)
			harness->sum += data[8];
	}
}

/* Whether so much is there that a late core begins; left: what is to come. */
static bool is_time(const struct hop *hop, uint64_t left)
{
	const uint32_t most = (hop->mask + 1) / 4 * 3;

	return hop_count(hop) >= (left < most ? left : most);
}

/* Touch n objects, and give them back or send them back. */
static ALWAYS_INLINE uint64_t consume(struct harness *harness, uint64_t n,
				      uint64_t touch, bool is_late,
				      const struct ops ops)
{
	struct patience patience = { 0 };
	word words[BURST];
	bool is_on = !is_late;

	for (uint64_t done = 0; done < n;) {
		uint32_t got = 0;

		is_on = is_on || is_time(harness->hops[0], n - done);
		if (is_on)
			got = hop_get(harness->hops[0], words, BURST);
		if (got == 0) {
			is_on = !is_late;
			idle(harness, 1, ops);
			if (harness_is_dead(harness, &patience))
				return 0;
			continue;
		}
		patience = (struct patience){ 0 };
		touch_all(harness, words, got, touch, ops);
		done += got;
		if (harness->hops[1] == NULL)
			ops.give(harness->pool, 1, words, got);
		else
			while (!hop_put(harness->hops[1], words, got))
				if (harness_is_dead(harness, &patience))
					return 0;
	}
	idle(harness, 1, ops);
	return 0;
}

static ALWAYS_INLINE uint64_t pipeline(struct variant *variant, uint32_t thread,
				       uint64_t n, const struct ops ops)
{
	const bool is_late = variant->param[P_IS_LATE] != 0;
	struct harness *harness = variant->state;

	n = n_of_run(n, BURST);
	if (thread == 0)
		return produce(harness, n, ops);
	/* One copy of the loop for each: the touch is a constant in it. */
	switch (variant->param[P_TOUCH]) {
	case 0:
		return consume(harness, n, 0, is_late, ops);
	case 1:
		return consume(harness, n, 1, is_late, ops);
	default:
		return consume(harness, n, 2, is_late, ops);
	}
}

RUN(pipeline_ours, pipeline, OURS)
RUN(pipeline_round, pipeline, ROUND)
RUN(pipeline_heap, pipeline, HEAP)
RUN_DPDK(pipeline_dpdk, pipeline, DPDK)

/* ring: 0: rows by the size of the pool, with a ring of 1024. */
static void pipeline_row(struct bench *bench, uint32_t n_pages, uint32_t touch,
			 uint32_t ring, bool is_back)
{
	static const char *const touches[] = { "none", "header", "header+64" };
	static const struct contestant list[] = {
		POOLS(pipeline_ours, pipeline_dpdk),
		{ "ring alone", A_ROUND, pipeline_round },
		{ "malloc", A_MALLOC, pipeline_heap },
	};
	const bool is_rings = ring > 0;
	const char *back = is_back ? " back=ring" : "";
	struct row row = { .unit = "page",
			   .n_threads = 2,
			   .plot_count = is_rings ? "in_flight" : NULL,
			   .x_name = is_rings ? "entries of the ring" :
						"pages of the pool",
			   .x = is_rings ? ring : n_pages };
	const struct variant like = {
		.count = count_pipe,
		.wish = { .n_objects = n_pages,
			  .frag_bytes = 128 + 1518,
			  .n_hops = is_back ? 2 : 1,
			  .hop_words = is_rings ? ring : RING },
		.param = { touch, is_rings },
	};

	if (is_rings)
		NAME(row.name, "ring=%u touch=%s", ring, touches[touch]);
	else
		NAME(row.name, "pages=%u touch=%s%s", n_pages, touches[touch],
		     back);
	NAME(row.plot, "%s touch=%s%s", is_rings ? "ring sizes" : "pool sizes",
	     touches[touch], back);
	bench_add_all(bench, &row, &like, list, N_OF(list));
	bench_row(bench, &row);
}

void rows_b14(struct bench *bench)
{
	static const uint32_t pools[] = { 2048, 16384, 32768, 65536, 131072 };

	for (uint32_t touch = 0; touch < 3; touch++)
		for (uint32_t i = 0; i < N_OF(pools); i++)
			pipeline_row(bench, pools[i], touch, 0, false);
	for (uint32_t i = 0; i < N_OF(pools); i++)
		pipeline_row(bench, pools[i], 1, 0, true);
	for (uint32_t ring = 64; ring <= 4096; ring *= 2)
		pipeline_row(bench, 32768, 1, ring, false);
}

/*
 * B15: as B14, but the second core queues the pages before it frees them, as a
 * traffic shaper does. How many it queues is a random walk between 0 and 16 Ki:
 * with each burst that comes the aim moves by up to 256, and all that is above
 * it goes. So pages come back in clumps, which no cache of a fixed size holds:
 * the figures beside the time say how often each went behind its cache.
 */
enum { QUEUE = 32768, MAX_AIM = 16384, STEP = 256 };

/* First in, first out; stays filled from run to run. */
struct queue {
	uint32_t head, tail, aim;
	uint64_t random;
	word words[QUEUE];
};

static struct queue *queue_of(struct harness *harness)
{
	return (struct queue *)(void *)harness->extra;
}

static int begin_queue(struct variant *variant, struct mr_reason *why)
{
	(void)why;
	queue_of(variant->state)->random = RANDOM_SEED;
	return 0;
}

static void end_queue(struct variant *variant)
{
	struct harness *harness = variant->state;
	struct queue *queue = queue_of(harness);

	for (; variant->side == SIDE_OURS && queue->head != queue->tail;
	     queue->head++)
		ours_give(harness->pool, 1, &queue->words[queue->head % QUEUE],
			  1);
}

/* Where the walk is now; at both ends it turns round. */
static uint32_t next_aim(struct queue *queue)
{
	int32_t aim;

	aim = (int32_t)queue->aim - STEP +
	      (int32_t)(random_u32(&queue->random) % (2 * STEP + 1));
	if (aim < 0)
		aim = -aim;
	if (aim > MAX_AIM)
		aim = 2 * MAX_AIM - aim;
	queue->aim = (uint32_t)aim;
	return queue->aim;
}

/* Queue what came, and free the oldest above the aim, in bursts. */
static ALWAYS_INLINE void shape(struct harness *harness, const word *words,
				uint32_t n, const struct ops ops)
{
	struct queue *queue = queue_of(harness);
	const uint32_t aim = next_aim(queue);

	for (uint32_t i = 0; i < n; i++)
		queue->words[queue->tail++ % QUEUE] = words[i];
	while (queue->tail - queue->head > aim) {
		const uint32_t over = queue->tail - queue->head - aim;
		const uint32_t at = queue->head % QUEUE;
		uint32_t go = over < BURST ? over : BURST;

		if (go > QUEUE - at)
			go = QUEUE - at;
		ops.give(harness->pool, 1, &queue->words[at], go);
		queue->head += go;
	}
}

static ALWAYS_INLINE uint64_t shaper(struct variant *variant, uint32_t thread,
				     uint64_t n, const struct ops ops)
{
	struct harness *harness = variant->state;
	struct patience patience = { 0 };
	word words[BURST];

	n = n_of_run(n, BURST);
	if (thread == 0)
		return produce(harness, n, ops);
	for (uint64_t done = 0; done < n;) {
		const uint32_t got = hop_get(harness->hops[0], words, BURST);

		if (got > 0) {
			shape(harness, words, got, ops);
			done += got;
			patience = (struct patience){ 0 };
			continue;
		}
		idle(harness, 1, ops);
		if (harness_is_dead(harness, &patience))
			break;
	}
	idle(harness, 1, ops);
	return 0;
}

RUN(shaper_ours, shaper, OURS)
RUN(shaper_heap, shaper, HEAP)
RUN_DPDK(shaper_dpdk, shaper, DPDK)

void rows_b15(struct bench *bench)
{
	static const struct contestant list[] = {
		POOLS(shaper_ours, shaper_dpdk),
		{ "malloc", A_MALLOC, shaper_heap },
	};
	struct row row = { .name = "queue=0..16384",
			   .unit = "page",
			   .n_threads = 2 };
	const struct variant like = { .count = count_pipe,
				      .begin = begin_queue,
				      .end = end_queue,
				      .wish = { .n_objects = 32768,
						.n_hops = 1,
						.hop_words = RING,
						.n_extra = sizeof(
							struct queue) } };

	bench_add_all(bench, &row, &like, list, N_OF(list));
	bench_row(bench, &row);
}

/*
 * B20: what each level of checks costs. One core takes bursts of 32 and drops
 * them (as B08), or sends them to another one that frees them (as B14). The
 * first level is what all the others are compared with. Pages are of 4096
 * bytes, the smallest that can be guarded; guards have OS pages of that size,
 * the other levels huge ones. Statistics are on in all: they cannot be
 * switched off.
 */
static uint64_t drop_bursts(struct variant *variant, uint32_t thread,
			    uint64_t n)
{
	struct harness *harness = variant->state;
	word words[BURST];

	n = n_of_run(n, BURST);
	for (uint64_t done = 0; done < n; done += BURST) {
		if (!ours_take(harness->pool, thread, words, BURST))
			return 0;
		keep(words);
		ours_give(harness->pool, thread, words, BURST);
	}
	return n;
}

void rows_b20(struct bench *bench)
{
	static const char *const levels[] = { "0 counts", "1 states",
					      "2 poison", "3 guard" };

	for (uint32_t n = 1; n <= 2; n++) {
		struct row row = { .unit = "page", .n_threads = n };
		struct variant like = { .count = count_pipe,
					.wish = { .n_objects = 8192,
						  .n_bytes = 4096,
						  .n_hops = 1,
						  .hop_words = RING } };

		NAME(row.name, n == 1 ? "drop" : "pipeline");
		for (uint32_t i = MR_SAFETY_COUNTS; i <= MR_SAFETY_GUARD; i++) {
			const struct contestant level = {
				levels[i], A_OURS,
				n == 1 ? drop_bursts : pipeline_ours
			};

			like.wish.ours.safety = (enum mr_safety)i;
			bench_add_all(bench, &row, &like, &level, 1);
		}
		bench_row(bench, &row);
	}
}
