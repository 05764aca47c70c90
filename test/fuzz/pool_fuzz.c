/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: sequences of pool operations, against a model that knows of
 * every buffer how many owners it has.
 *
 * Two bytes choose the pools, then each operation takes two: what, and with
 * which cache and how many.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/millrace.h>

#include "region.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Pages of 4 KiB: bursts of all lengths by two caches. */
	SEED("\x11\x55\x00\x1f\x03\x1f\x00\x3f\x0b\x3f\x40\x7f\x03\x7f"
	     "\x00\x5f\x1b\x1f\x00\x3f\x00\x3f\x03\x3f\x03\x00"),
	/* Pages of 8 and 32 KiB in chunks; a cache that ends. */
	SEED("\xac\x33\x01\x1f\x03\x07\x0b\x0f\x01\x27\x23\x07\x07\x80"
	     "\x01\x00\x06\x80\x2b\x3f\x01\x3f\x08\x03"),
	/* References, unsharing, every second one freed. */
	SEED("\x11\x55\x00\x1f\x05\x1f\x06\x00\x0e\x00\x16\x00\x05\x0f"
	     "\x23\x1f\x2b\x0f\x06\x80\x86\x00\x03\x3f"),
	/* Pages of one pool, freed by caches of the other. */
	SEED("\x12\x55\x80\x9f\x80\x1f\x03\x1f\x0a\x9f\x02\x3f\x0b\x3f"
	     "\x83\xbf\x0b\x1f"),
	/* Pools of one page. */
	SEED("\xa9\x00\x00\x3f\x01\x3f\x80\x3f\x02\x00\x05\x3f\x06\x00"
	     "\x07\x80\x03\x00\x03\x3f"),
	{ NULL, 0 },
};

enum { N_POOLS = 2, N_CACHES = 3, MAX_HELD = 400, MAX_BUFFERS = 4096 };

/* A reference that the application holds. */
struct held {
	struct mr_frame frame;
	uint64_t buffer; /* where its buffer begins */
	uint32_t buffer_bytes;
	uint32_t pool_idx;
};

struct model {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pools[N_POOLS];
	struct mr_cache *caches[N_CACHES];
	uint32_t page_bytes[N_POOLS];
	uint32_t chunk_bytes[N_POOLS];
	uint32_t n_pages[N_POOLS];
	uint32_t n_held;
	struct held held[MAX_HELD];
};

static uint32_t pool_idx_of(const struct model *m, uint32_t cache_idx)
{
	return mr_cache_pool(m->caches[cache_idx]) == m->pools[1];
}

static uint32_t n_owners(const struct model *m, uint64_t buffer)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_held; i++)
		n += m->held[i].buffer == buffer;
	return n;
}

/* A page is in flight as long as something of it is held. */
static void check_conservation(const struct model *m)
{
	for (uint32_t p = 0; p < N_POOLS; p++) {
		struct mr_pool_stats s = { .size = sizeof(s) };
		uint64_t n_in_flight = 0;

		for (uint32_t i = 0; i < m->n_held; i++) {
			const uint64_t mask = ~(uint64_t)(m->page_bytes[p] - 1);
			bool is_first = m->held[i].pool_idx == p;

			for (uint32_t k = 0; k < i && is_first; k++)
				is_first = (m->held[k].buffer & mask) !=
					   (m->held[i].buffer & mask);
			n_in_flight += is_first;
		}
		FUZZ_CHECK(mr_pool_stats(m->pools[p], &s) == 0);
		FUZZ_CHECK(s.n_in_flight == n_in_flight);
		FUZZ_CHECK(s.n_free + s.n_in_flight == s.n_pages);
		FUZZ_CHECK(s.free_invalid == 0);
	}
}

static void hold(struct model *m, uint64_t addr, uint32_t buffer_bytes,
		 uint32_t pool_idx)
{
	FUZZ_CHECK(addr % buffer_bytes == 0);
	/* No overlap with anything that is held. */
	for (uint32_t i = 0; i < m->n_held; i++)
		FUZZ_CHECK(addr + buffer_bytes <= m->held[i].buffer ||
			   addr >= m->held[i].buffer + m->held[i].buffer_bytes);
	m->held[m->n_held++] = (struct held){
		.frame = { addr + 128, 64, 0 },
		.buffer = addr,
		.buffer_bytes = buffer_bytes,
		.pool_idx = pool_idx,
	};
}

static void do_alloc(struct model *m, uint32_t cache_idx, uint32_t n,
		     bool is_page, bool is_direct)
{
	const uint32_t p = pool_idx_of(m, cache_idx);
	const uint32_t bytes = is_page ? m->page_bytes[p] : m->chunk_bytes[p];
	uint64_t addrs[64];
	uint32_t n_got;

	if (n > MAX_HELD - m->n_held)
		n = MAX_HELD - m->n_held;
	n_got = is_direct ?
			mr_pool_frag_alloc_bulk(m->pools[p], addrs, n, bytes) :
			mr_frag_alloc_bulk(m->caches[cache_idx], addrs, n,
					   bytes);
	FUZZ_CHECK(n_got <= n);
	for (uint32_t i = 0; i < n_got; i++)
		hold(m, addrs[i], bytes, p);
}

/* The n references held last, or every second of twice as many. */
static uint32_t take(struct model *m, uint32_t n, bool is_every_second,
		     struct mr_frame *frames)
{
	uint32_t n_taken = 0, n_kept = 0, first;

	if (is_every_second)
		n *= 2;
	if (n > m->n_held)
		n = m->n_held;
	first = m->n_held - n;
	for (uint32_t i = first; i < m->n_held; i++) {
		if (is_every_second && i % 2 != 0)
			m->held[first + n_kept++] = m->held[i];
		else
			frames[n_taken++] = m->held[i].frame;
	}
	m->n_held = first + n_kept;
	return n_taken;
}

static void do_free(struct model *m, uint32_t cache_idx, uint32_t n,
		    uint32_t way)
{
	struct mr_frame frames[128];
	uint64_t addrs[128];

	n = take(m, n, way & 4, frames);
	for (uint32_t i = 0; i < n; i++)
		addrs[i] = frames[i].addr;
	if ((way & 3) == 0)
		mr_frag_free_bulk(m->caches[cache_idx], addrs, n);
	else if ((way & 3) == 1)
		mr_pool_frag_free_bulk(m->pools[pool_idx_of(m, cache_idx)],
				       addrs, n);
	else
		mr_frame_free_bulk(m->caches[cache_idx], frames, n);
}

static void do_ref(struct model *m, uint32_t cache_idx, uint32_t n)
{
	while (n-- > 0 && m->n_held > 0 && m->n_held < MAX_HELD) {
		const struct held *h = &m->held[n % m->n_held];
		const bool is_full = n_owners(m, h->buffer) == 255;

		FUZZ_CHECK(mr_frame_ref(m->caches[cache_idx], &h->frame, 1) ==
			   (is_full ? -EOVERFLOW : 0));
		if (!is_full)
			m->held[m->n_held++] = *h;
	}
}

static void do_write(struct model *m, uint32_t cache_idx, uint32_t i)
{
	struct mr_cache *cache = m->caches[cache_idx];
	struct held *h;
	struct held before;
	bool is_ours, is_exclusive;
	int err;

	if (m->n_held == 0)
		return;
	h = &m->held[i % m->n_held];
	before = *h;
	is_ours = h->pool_idx == pool_idx_of(m, cache_idx);
	is_exclusive = n_owners(m, h->buffer) == 1;
	FUZZ_CHECK(mr_frame_is_exclusive(cache, &h->frame) ==
		   (is_ours && is_exclusive));
	err = mr_frame_push(cache, &h->frame, 8);
	FUZZ_CHECK(err == (!is_ours                              ? -EINVAL :
			   !is_exclusive                         ? -EROFS :
			   before.frame.addr - before.buffer < 8 ? -ENOSPC :
								   0));
	err = mr_frame_unshare(cache, &h->frame, 1);
	if (!is_ours) {
		FUZZ_CHECK(err == -EINVAL);
	} else if (err == 0 && !is_exclusive) {
		const struct mr_frame copy = h->frame;

		*h = m->held[--m->n_held];
		FUZZ_CHECK(copy.len == before.frame.len);
		/* At the same place of a buffer of the same size. */
		hold(m, copy.addr - (before.frame.addr - before.buffer),
		     before.buffer_bytes, before.pool_idx);
		m->held[m->n_held - 1].frame = copy;
	} else {
		FUZZ_CHECK(err == (is_exclusive ? 0 : -ENOMEM));
	}
}

static void do_cache(struct model *m, uint32_t cache_idx)
{
	struct mr_pool *pool = mr_cache_pool(m->caches[cache_idx]);

	mr_cache_destroy(m->caches[cache_idx]);
	FUZZ_CHECK(mr_cache_create(pool, &m->caches[cache_idx], NULL) == 0);
}

static void step(struct model *m, uint8_t what, uint8_t with)
{
	const uint32_t cache_idx = (with >> 6) % N_CACHES;
	const uint32_t n = (with & 63u) + 1;

	switch (what % 8) {
	case 0:
	case 1:
		do_alloc(m, cache_idx, n, what % 8 == 0, false);
		break;
	case 2:
		do_alloc(m, cache_idx, n, what & 8, true);
		break;
	case 3:
	case 4:
		do_free(m, cache_idx, n, what >> 3);
		break;
	case 5:
		do_ref(m, cache_idx, n);
		break;
	case 6:
		do_write(m, cache_idx, what >> 3);
		break;
	default:
		do_cache(m, cache_idx);
		break;
	}
}

static void open_pools(struct model *m, uint8_t shapes, uint8_t pages)
{
	for (uint32_t p = 0; p < N_POOLS; p++) {
		const uint32_t shape = shapes >> 4 * p & 15;
		struct mr_pool_config config = {
			.size = sizeof(config),
			.n_pages = 1 + (pages >> 4 * p & 15) * 6,
			.page_bytes = 2048u << shape % 5,
			.chunk_bytes = shape >= 8 ? 2048 : 0,
			.max_caches = N_CACHES,
			.region = m->region,
		};

		FUZZ_CHECK(mr_pool_create(m->ctx, &config, &m->pools[p],
					  NULL) == 0);
		m->page_bytes[p] = config.page_bytes;
		m->chunk_bytes[p] =
			config.page_bytes == 2048 || shape >= 8 ? 2048 : 4096;
		m->n_pages[p] = config.n_pages;
	}
	for (uint32_t c = 0; c < N_CACHES; c++)
		FUZZ_CHECK(mr_cache_create(m->pools[c == 2], &m->caches[c],
					   NULL) == 0);
}

static void close_pools(struct model *m)
{
	do_free(m, 0, 0, 2);
	while (m->n_held > 0)
		do_free(m, m->n_held % N_CACHES, 64, 2);
	check_conservation(m);
	for (uint32_t c = 0; c < N_CACHES; c++)
		mr_cache_destroy(m->caches[c]);
	for (uint32_t p = 0; p < N_POOLS; p++)
		FUZZ_CHECK(mr_pool_destroy(m->pools[p], NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct model m; /* context and region stay for the next input */

	fuzz_region(&m.ctx, &m.region);
	if (n_bytes < 2)
		return 0;
	open_pools(&m, data[0], data[1]);
	for (size_t i = 2; i + 1 < n_bytes && i < 400; i += 2) {
		step(&m, data[i], data[i + 1]);
		if (i % 64 == 0)
			check_conservation(&m);
	}
	close_pools(&m);
	return 0;
}
