/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread receives, and drops or forwards: B08; and B18, what a pool costs
 * between a completion ring and a fill ring.
 */
#include <stdio.h>

#include <millrace/driver_frame.h>

#include "alloc.h"

enum { P_BURST }; /* of variant.param */

enum { RING = 1024, REFILL = 64, MAX_BURST = 256, FRAME_BYTES = 60 };

/*
 * Bursts from an rx ring of 1024 buffers, all dropped, and the ring refilled 64
 * at a time. The ring is an array: a device that is never the bottleneck.
 *
 * What is posted lies between tail and head. The ring begins full, and ends
 * empty, so that all buffers are at home after each sample.
 */
static ALWAYS_INLINE uint64_t drop(struct variant *variant, uint32_t thread,
				   uint64_t n, const struct ops ops)
{
	void *pool = ((struct harness *)variant->state)->pool;
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	word ring[RING];
	uint32_t head = 0, tail = 0;
	uint64_t done;

	while (head < RING && ops.take(pool, thread, ring + head, REFILL))
		head += REFILL;
	for (done = 0; done < n && head - tail >= burst; done += burst) {
		ops.give(pool, thread, ring + tail % RING, burst);
		tail += burst;
		while (RING - (head - tail) >= REFILL &&
		       ops.take(pool, thread, ring + head % RING, REFILL))
			head += REFILL;
	}
	for (; tail != head; tail += REFILL / 8)
		ops.give(pool, thread, ring + tail % RING, REFILL / 8);
	return done;
}

/* With bare addresses and pointers: only the pools cost time. */
RUN(drop_ours, drop, OURS)
RUN(drop_model, drop, MODEL_DIRECT)
RUN_DPDK(drop_dpdk, drop, DPDK)

/*
 * As a driver and an application do it: what a receive burst writes for each
 * frame is written, the application reads the lengths and gives all of them
 * back.
 *
 *                  written per frame             given back with
 *     ours         16 bytes, all frames' in one  mr_frame_free_bulk()
 *     DPDK         8, its pointer, in one, and   rte_pktmbuf_free_bulk()
 *                  32 in the frame's own line
 *     DPDK's, raw  the same                      rte_mempool_put_bulk()
 *
 * The 32 bytes are those that DPDK's drivers with vectors write: rearm_data,
 * ol_flags and rx_descriptor_fields1. "raw" is right for a sender that was
 * promised one pool and one owner (RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE). Ours
 * looks at the pool of each frame, and at its owners once one of the pool has
 * had two. What a driver writes to its device when it refills the ring is left
 * out on all sides; there DPDK's read the frame's own line once more.
 */

/* What the device reports; the compiler must not know it. */
static inline uint32_t frame_bytes(void)
{
	uint32_t n_bytes = FRAME_BYTES;

	__asm__("" : "+r"(n_bytes));
	return n_bytes;
}

/* Keep the sum from being optimized away. */
static inline void use_sum(uint64_t sum)
{
	__asm__ __volatile__("" : : "r"(sum));
}

static ALWAYS_INLINE void frames_give(void *pool, uint32_t thread,
				      const word *words, uint32_t n)
{
	struct our_pool *our = pool;
	struct mr_frame frames[MAX_BURST];
	const uint32_t n_bytes = frame_bytes();
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		frames[i] =
			(struct mr_frame){ .addr = words[i], .len = n_bytes };
	keep(frames); /* the driver returns here */
	for (uint32_t i = 0; i < n; i++)
		sum += frames[i].len;
	use_sum(sum);
	mr_frame_free_bulk(our->caches[0][thread], frames, n);
}

RUN(drop_frames, drop, (struct ops){ ours_take, frames_give, NULL, NULL })

#ifdef BENCH_DPDK
/* The 32 bytes, which follow the address at the beginning of the line. */
struct rx_half {
	uint16_t data_off, refcnt, nb_segs, port;
	uint64_t ol_flags;
	uint32_t packet_type, pkt_len;
	uint16_t data_len, vlan_tci;
	uint32_t rss_hash;
};

_Static_assert(sizeof(struct rx_half) == 32 &&
		       offsetof(dpdk_frame, rx_descriptor_fields1) -
				       offsetof(dpdk_frame, rearm_data) ==
			       offsetof(struct rx_half, packet_type) &&
		       offsetof(dpdk_frame, pkt_len) -
				       offsetof(dpdk_frame, rearm_data) ==
			       offsetof(struct rx_half, pkt_len),
	       "as DPDK has them");

/* What a driver's burst writes, and the application's look at lengths. */
static ALWAYS_INLINE void receive_theirs(dpdk_frame **frames, const word *ring,
					 uint32_t n)
{
	const uint32_t n_bytes = frame_bytes();
	const struct rx_half half = { .data_off = RTE_PKTMBUF_HEADROOM,
				      .refcnt = 1,
				      .nb_segs = 1,
				      .pkt_len = n_bytes,
				      .data_len = (uint16_t)n_bytes };
	uint64_t sum = 0;

	memcpy(frames, ring, n * sizeof(frames[0]));
	for (uint32_t i = 0; i < n; i++)
		memcpy(&frames[i]->rearm_data, &half, sizeof(half));
	keep(frames); /* the driver returns here */
	for (uint32_t i = 0; i < n; i++)
		sum += frames[i]->pkt_len;
	use_sum(sum);
}

static ALWAYS_INLINE void mbufs_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	dpdk_frame *frames[MAX_BURST];

	(void)pool;
	(void)thread;
	receive_theirs(frames, words, n);
	rte_pktmbuf_free_bulk(frames, n);
}

static ALWAYS_INLINE void raw_give(void *pool, uint32_t thread,
				   const word *words, uint32_t n)
{
	dpdk_frame *frames[MAX_BURST];

	receive_theirs(frames, words, n);
	dpdk_give(pool, thread, (const word *)frames, n);
}
#endif

RUN_DPDK(drop_mbufs, drop, (struct ops){ dpdk_take, mbufs_give, NULL, NULL })
RUN_DPDK(drop_raw, drop, (struct ops){ dpdk_take, raw_give, NULL, NULL })

/*
 * The ladder of B08, of the founding document on recycling (netdev, page_pool:
 * recycling and inlining): a NAT-like forward of single frames, in which one
 * of 16 pages is kept by somebody else and goes back to the page allocator.
 * Frames are received one by one, changed as NAT changes them, sent through a
 * tx ring of 256, and their pages come back 256 frames later.
 *
 * On ours with recycling and without; with the path of one page inlined
 * (mr_frag_alloc()) and called (mr_frag_alloc_bulk() for 1); by bursts; and
 * outside of the poll loop: what the kernel calls no allow_direct. On the model
 * of the kernel's pool, always outside of it, in the document's five steps, of
 * which one was a loss there (572 to 540 Mbit/s).
 */
enum { N_TX = 256, KEPT = 16 /* one page in 16 is kept */, BURST = 32 };

/* Write a new source address, and update the header's checksum. */
static inline void translate_header(uint8_t *header, uint32_t address)
{
	uint32_t old, sum;
	uint16_t checksum;

	memcpy(&old, header + 26, sizeof(old));
	memcpy(&checksum, header + 24, sizeof(checksum));
	sum = (uint16_t)~checksum + (uint16_t)~old + (uint16_t)(~old >> 16) +
	      (uint16_t)address + (address >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	checksum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	memcpy(header + 26, &address, sizeof(address));
	memcpy(header + 24, &checksum, sizeof(checksum));
	header[22]--; /* TTL */
}

/* kept: how to free a page that somebody else kept. */
static ALWAYS_INLINE uint64_t forward(struct variant *variant, uint32_t thread,
				      uint64_t n, const struct ops ops,
				      give_fn kept)
{
	void *pool = ((struct harness *)variant->state)->pool;
	word tx[N_TX];

	if (n < N_TX)
		n = N_TX;
	for (uint64_t i = 0; i < n + N_TX; i++) {
		word *slot = &tx[i % N_TX];

		if (i >= N_TX && i % KEPT == 0)
			kept(pool, thread, slot, 1);
		else if (i >= N_TX)
			ops.give(pool, thread, slot, 1);
		if (i >= n)
			continue;
		if (!ops.take(pool, thread, slot, 1))
			return 0; /* cannot happen: there are 16 Ki */
		translate_header(ops.data(pool, *slot), (uint32_t)i);
	}
	return n;
}

/* Free a kept page by another cache, as another thread would. */
GIVE_EACH(other_give, mr_frag_free(our_pool(pool)->others[thread], *w))
GIVE(other_bulk_give,
     mr_frag_free_bulk(our_pool(pool)->others[thread], addrs, n))

/* Never free a page to where it came from: the kernel without allow_direct. */
#define AWAY ((struct ops){ single_take, other_give, ours_data, NULL })

RUN(forward_inlined, forward, OURS_SINGLE, other_give)
RUN(forward_outlined, forward, OURS, other_bulk_give)
RUN(forward_away, forward, AWAY, other_give)
RUN(forward_uncached, forward, PAGES, pages_give)

/* As our programs do it: whole receive bursts. */
static uint64_t forward_bursts(struct variant *variant, uint32_t thread,
			       uint64_t n)
{
	struct our_pool *our = ((struct harness *)variant->state)->pool;
	word tx[N_TX], own[BURST];

	n = n < N_TX ? N_TX : (n + BURST - 1) / BURST * BURST;
	for (uint64_t done = 0; done < n + N_TX; done += BURST) {
		word *slots = &tx[done % N_TX];
		uint32_t n_own = 0;

		for (uint32_t i = 0; done >= N_TX && i < BURST; i++) {
			if (i % KEPT == 0)
				other_give(our, thread, &slots[i], 1);
			else
				own[n_own++] = slots[i];
		}
		ours_give(our, thread, own, n_own);
		if (done >= n)
			continue;
		if (!ours_take(our, thread, slots, BURST))
			return 0; /* cannot happen: there are 16 Ki */
		for (uint32_t i = 0; i < BURST; i++)
			translate_header(our->base + slots[i],
					 (uint32_t)(done + i));
	}
	return n;
}

/* Calls instead of inlined code, as before steps 4 and 5. */
static __attribute__((noinline)) bool
outlined_refill(struct model_page_pool *model)
{
	return model_refill(model);
}

static __attribute__((noinline)) uint32_t
outlined_bulk(struct model_page_pool *model, word *pages, uint32_t n)
{
	return model_buddy_alloc(model, pages, n);
}

static __attribute__((noinline)) bool slow(struct model_page_pool *model,
					   word *page, int step)
{
	model->n_slow++;
	if (step == 2)
		return model_buddy_alloc(model, page, 1) == 1;
	model->n_cached =
		step == 3 ?
			outlined_bulk(model, model->cache, MODEL_REFILL) :
			model_buddy_alloc(model, model->cache, MODEL_REFILL);
	if (model->n_cached == 0)
		return false;
	*page = model->cache[--model->n_cached];
	return true;
}

static ALWAYS_INLINE bool step_take(struct model_page_pool *model, word *page,
				    int step)
{
	if (model->n_cached == 0 && !outlined_refill(model))
		return slow(model, page, step);
	*page = model->cache[--model->n_cached];
	return true;
}

static __attribute__((noinline)) void
outlined_put(struct model_page_pool *model, uint32_t page)
{
	model_put_ring(model, page);
}

GIVE(outlined_give, outlined_put(pool, (uint32_t)words[0]))

#define STEP(n)                                                                \
	TAKE(step_##n##_take, step_take(pool, words, n))                       \
	RUN(forward_##n, forward,                                              \
	    (struct ops){ step_##n##_take, outlined_give, model_data, NULL },  \
	    buddy_give)

/*
 * Every page from the page allocator and back to it; one page at a time through
 * the locked ring; what is missing comes 64 at a time; without a call for that;
 * and all of it inlined.
 */
RUN(forward_1, forward, BUDDY, buddy_give)
STEP(2)
STEP(3)
STEP(4)
RUN(forward_5, forward, MODEL_RINGED, buddy_give)

static void drop_rows(struct bench *bench, const char *what, const char *plot,
		      uint32_t n_objects, const struct contestant *list,
		      uint32_t n)
{
	for (uint32_t burst = 8; burst <= MAX_BURST; burst *= 2) {
		struct row row = { .unit = "frame" };

		NAME(row.plot, "%s", plot);
		NAME(row.name, "%s burst=%u", what, burst);
		for (uint32_t i = 0; i < n; i++)
			bench_add_all(
				bench, &row,
				&(struct variant){
					.count = harness_count,
					/* DPDK's frames: its usual buffers. */
					.wish = { .n_objects = n_objects,
						  .n_bytes =
							  list[i].alloc ==
									  A_MBUFS ?
								  2176 :
								  2048 },
					.param = { burst } },
				&list[i], 1);
		bench_row(bench, &row);
	}
}

void rows_b08(struct bench *bench)
{
	static const struct contestant addresses[] = {
		{ "addresses", A_OURS, drop_ours },
		{ "", A_MEMPOOL, drop_dpdk, C_ALL },
		{ "model of page_pool", A_PAGE_POOL, drop_model },
	};
	static const struct contestant frames[] = {
		{ "frames", A_OURS, drop_frames },
		{ ", frames", A_MBUFS, drop_mbufs, C512 | C256 },
		{ ", raw", A_MBUFS, drop_raw, C512 | C256 },
	};
	static const struct contestant ladder[] = {
		{ "recycling", A_OURS, forward_inlined },
		{ "recycling, outlined", A_OURS, forward_outlined },
		{ "recycling, 32 at a time", A_OURS, forward_bursts },
		{ "recycling through the depot", A_OURS, forward_away },
		{ "no recycling", A_OURS, forward_uncached },
		{ "1 no recycling", A_PAGE_POOL, forward_1 },
		{ "2 recycling, one by one", A_PAGE_POOL, forward_2 },
		{ "3 + bulk refill", A_PAGE_POOL, forward_3 },
		{ "4 + bulk path inlined", A_PAGE_POOL, forward_4 },
		{ "5 + refill inlined", A_PAGE_POOL, forward_5 },
	};
	struct row row = { .name = "ladder of a forward", .unit = "frame" };

	drop_rows(bench, "drop", "drop", 16384, addresses, N_OF(addresses));
	drop_rows(bench, "frames", "receive and drop", 4096, frames,
		  N_OF(frames));
	bench_add_all(bench, &row,
		      &(struct variant){ .count = harness_count,
					 .wish = { .caches = CACHES_OTHERS } },
		      ladder, N_OF(ladder));
	bench_row(bench, &row);
}

/*
 * B18: pages from a completion ring into a fill ring.
 *
 * Either copied directly, as DPDK's rte_eth_recycle_mbufs() does for a pair of
 * queues, or through the thread's cache, as our drivers do it. The rings are
 * arrays of 64-bit addresses as in AF_XDP, with 2048 entries. There is no
 * kernel at the other end: what was filled completes next. The difference is
 * the cost of the pool in such a round, the most that a direct copy could save.
 */
enum { N_WIRE = 2048, N_PAGES = 8192, N_BETWEEN = 512 };

struct wire {
	uint32_t at; /* next to complete, then to fill */
	word ring[N_WIRE];
	word burst[MAX_BURST];
};

static int begin_wire(struct variant *variant, struct mr_reason *why)
{
	struct harness *harness = variant->state;
	struct wire *wire = extra_of(variant);

	(void)why;
	if (variant->alloc == A_OURS)
		return ours_take(harness->pool, 0, wire->ring, N_WIRE) ? 0 : -1;
	for (uint32_t i = 0; i < N_WIRE; i++)
		wire->ring[i] = i * OBJECT_BYTES;
	return 0;
}

static void end_wire(struct variant *variant)
{
	struct harness *harness = variant->state;
	struct wire *wire = extra_of(variant);

	if (variant->alloc == A_OURS)
		ours_give(harness->pool, 0, wire->ring, N_WIRE);
}

/* The next n completed addresses, which are contiguous: n divides N_WIRE. */
static word *complete_pages(struct wire *wire, uint32_t n)
{
	word *at = &wire->ring[wire->at];

	wire->at = (wire->at + n) % N_WIRE;
	return at;
}

/*
 * Copy completed addresses, with the offset masked away, into the fill ring. An
 * entry goes back to its own place, so both rings stay valid.
 */
static uint64_t recycle_straight(struct variant *variant, uint32_t thread,
				 uint64_t n)
{
	struct wire *wire = extra_of(variant);
	const uint32_t burst = (uint32_t)variant->param[P_BURST];

	(void)thread;
	for (uint64_t i = 0; i < n; i += burst) {
		word *completed = complete_pages(wire, burst);

		for (uint32_t k = 0; k < burst; k++)
			wire->burst[k] = completed[k] & ~UINT64_C(2047);
		keep(wire->burst);
		memcpy(completed, wire->burst, burst * sizeof(*completed));
		keep(completed);
	}
	return n;
}

/* Free completed pages to the cache, and allocate as many. */
static uint64_t recycle_cached(struct variant *variant, uint32_t thread,
			       uint64_t n)
{
	struct harness *harness = variant->state;
	struct wire *wire = extra_of(variant);
	const uint32_t burst = (uint32_t)variant->param[P_BURST];

	for (uint64_t i = 0; i < n; i += burst) {
		word *completed = complete_pages(wire, burst);

		ours_give(harness->pool, thread, completed, burst);
		if (!ours_take(harness->pool, thread, completed, burst))
			return i; /* cannot happen: all were just freed */
		keep(completed);
	}
	return n;
}

/* Post pages that the pool got by growing after its cache was made. */
static int begin_grown(struct variant *variant, struct mr_reason *why)
{
	struct our_pool *our = ((struct harness *)variant->state)->pool;
	struct mr_pool *pool = our->pools[0];
	static word first[N_PAGES];
	int err;

	if (mr_pool_frag_alloc_bulk(pool, first, N_PAGES) < N_PAGES ||
	    mr_pool_grow(pool, N_PAGES, why) < 0)
		return -1;
	err = begin_wire(variant, why);
	mr_pool_frag_free_bulk(pool, first, N_PAGES);
	return err;
}

/* Through the cache, and one page of another pool per N_BETWEEN pages. */
static uint64_t recycle_foreign(struct variant *variant, uint32_t thread,
				uint64_t n)
{
	struct our_pool *our = ((struct harness *)variant->state)->pool;

	n = n_of_run(n, N_BETWEEN);
	for (uint64_t i = 0; i < n; i += N_BETWEEN) {
		const uint64_t addr =
			mr_frag_alloc(our->caches[1][thread], OBJECT_BYTES);

		mr_frag_free(our->caches[0][thread], addr);
		recycle_cached(variant, thread, N_BETWEEN);
	}
	return n;
}

void rows_b18(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "through the cache", A_OURS, recycle_cached },
		{ "straight", A_NOTHING, recycle_straight },
	};
	static const struct contestant foreign[] = {
		{ "one page in 512 of another pool", A_OURS, recycle_foreign },
	};
	static const struct contestant grown[] = {
		{ "pages that the pool grew by", A_OURS, recycle_cached },
	};
	static const uint32_t bursts[] = { 32, 64, 256 };

	for (uint32_t i = 0; i < N_OF(bursts); i++) {
		struct row row = { .unit = "page" };

		struct variant like = {
			.begin = begin_wire,
			.end = end_wire,
			.count = harness_count,
			.wish = { .n_objects = N_PAGES,
				  .n_extra = sizeof(struct wire) },
			.param = { bursts[i] },
		};

		NAME(row.name, "burst=%u", bursts[i]);
		bench_add_all(bench, &row, &like, list, N_OF(list));
		like.wish.n_pools = 2;
		bench_add_all(bench, &row, &like, foreign, N_OF(foreign));
		like.wish.n_pools = 1;
		like.wish.ours.max_pages = 2 * N_PAGES;
		like.begin = begin_grown;
		bench_add_all(bench, &row, &like, grown, N_OF(grown));
		bench_row(bench, &row);
	}
}
