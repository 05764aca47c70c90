/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/pages/page_alloc.c: groups and buckets, against a set. */
#include "support/pool_unit.h"

enum { MAX_PAGES = 2048 };

struct fixture {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mri_page_alloc pa;
	bool is_out[MAX_PAGES];
	uint32_t n_out;
	uint32_t n_per_segment;
	uint64_t random;
	struct mri_page_counters expected; /* some of it */
};

/* Segments of so many pages each, all there, or the last one in part. */
static void open_pages(struct fixture *f, uint32_t page_shift, uint32_t n_pages,
		       uint32_t n_per_segment)
{
	memset(f, 0, sizeof(*f));
	f->n_per_segment = n_per_segment;
	f->random = UINT64_C(0x9e3779b97f4a7c15);
	f->ctx = test_ctx(&f->allocator);
	assert_int_equal(
		mri_page_alloc_init(&f->pa, f->ctx, n_pages, page_shift), 0);
	for (uint32_t end = 0; end < n_pages;) {
		end = mri_min_u32(end + n_per_segment, n_pages);
		mri_page_alloc_append(&f->pa, end, -1, true);
		mri_page_alloc_populate(&f->pa, end);
	}
}

static void close_pages(struct fixture *f)
{
	mri_page_alloc_fini(&f->pa, f->ctx);
	mr_ctx_destroy(f->ctx);
	assert_int_equal(f->allocator.n_out, 0);
}

static uint32_t below(struct fixture *f, uint32_t n)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (uint32_t)((f->random >> 32) * n >> 32);
}

/* Whether a block is free, in the set. */
static bool is_free(const struct fixture *f, uint32_t page, uint32_t order)
{
	for (uint32_t i = page; i < page + (1u << order); i++)
		if (i >= f->pa.n_pages || f->is_out[i])
			return false;
	return true;
}

/* The segment whose blocks come next: near before far, low before high. */
static uint32_t next_segment(const struct fixture *f, uint32_t order)
{
	for (uint32_t far = 0; far < 2; far++)
		for (uint32_t page = 0; page < f->pa.n_pages;
		     page += 1u << order)
			if ((f->pa.near >> page / f->n_per_segment & 1) !=
				    far &&
			    is_free(f, page, order))
				return page / f->n_per_segment;
	return UINT32_MAX;
}

static void set_out(struct fixture *f, uint32_t page, uint32_t order,
		    bool is_out)
{
	for (uint32_t i = page; i < page + (1u << order); i++) {
		assert_int_equal(f->is_out[i], !is_out);
		f->is_out[i] = is_out;
	}
	f->n_out += (is_out ? 1u : -1u) << order;
}

/* Blocks are aligned, of pages that were free; a part means: none is left. */
static uint32_t take(struct fixture *f, uint32_t order, uint32_t *pages,
		     uint32_t n)
{
	const uint32_t n_got = mri_page_alloc_blocks(&f->pa, order, pages, n);

	assert_true(n_got <= n);
	for (uint32_t i = 0; i < n_got; i++) {
		assert_int_equal(pages[i] & ((1u << order) - 1), 0);
		assert_true(is_free(f, pages[i], order));
		if (i == 0 || i == n_got - 1)
			assert_int_equal(pages[i] / f->n_per_segment,
					 next_segment(f, order));
		set_out(f, pages[i], order, true);
	}
	if (n_got < n && order <= f->pa.group_shift)
		assert_int_equal(next_segment(f, order), UINT32_MAX);
	assert_int_equal(f->pa.n_free, f->pa.n_pages - f->n_out);
	if (order > f->pa.group_shift) {
		assert_int_equal(n_got, 0);
	} else {
		f->expected.alloc_calls++;
		f->expected.alloc_failed += n - n_got;
	}
	f->expected.alloc_pages += (uint64_t)n_got << order;
	assert_int_equal(f->pa.counters.alloc_calls, f->expected.alloc_calls);
	assert_int_equal(f->pa.counters.alloc_pages, f->expected.alloc_pages);
	assert_int_equal(f->pa.counters.alloc_failed, f->expected.alloc_failed);
	return n_got;
}

static void give(struct fixture *f, uint32_t order, const uint32_t *pages,
		 uint32_t n)
{
	mri_page_free_blocks(&f->pa, order, pages, n);
	for (uint32_t i = 0; i < n; i++)
		set_out(f, pages[i], order, false);
	f->expected.free_pages += (uint64_t)n << order;
	assert_int_equal(f->pa.counters.free_pages, f->expected.free_pages);
	assert_int_equal(f->pa.n_free, f->pa.n_pages - f->n_out);
	assert_int_equal(f->pa.counters.free_double, 0);
	assert_int_equal(f->pa.counters.free_invalid, 0);
}

/* Lists, bits and sums say the same; the buckets are those of the words. */
static void check_lists(const struct fixture *f)
{
	const struct mri_page_alloc *pa = &f->pa;
	const uint32_t n_per_group = 1u << pa->group_shift;
	uint32_t n_listed = 0, n_free_groups = 0, n_free = 0;

	for (uint32_t s = 0; s < pa->n_segments; s++) {
		uint32_t n_segment = 0;

		for (uint32_t k = 0; k <= pa->group_shift; k++) {
			uint32_t prev = 0, at = pa->segments[s].heads[k];

			assert_int_equal(pa->segments[s].buckets >> k & 1,
					 at != 0);
			for (; at != 0; at = pa->groups[at - 1].next) {
				const struct mri_page_group *g =
					&pa->groups[at - 1];

				assert_int_equal(g->prev, prev);
				assert_int_equal(g->bucket, k);
				assert_int_equal(g->segment, s);
				assert_true(g->free != 0);
				n_segment +=
					(uint32_t)__builtin_popcount(g->free);
				n_listed++;
				prev = at;
			}
		}
		assert_int_equal(n_segment, pa->segments[s].n_free);
		assert_int_equal(pa->with_free >> s & 1, n_segment > 0);
	}
	for (uint32_t page = 0; page < pa->n_pages; page += n_per_group) {
		const uint32_t free = pa->groups[page / n_per_group].free;
		uint32_t largest = MRI_BUCKET_NONE;

		for (uint32_t i = 0; i < n_per_group; i++)
			assert_int_equal(free >> i & 1,
					 is_free(f, page + i, 0));
		for (uint32_t k = 0; k <= pa->group_shift; k++)
			for (uint32_t i = 0; i < n_per_group; i += 1u << k)
				if (is_free(f, page + i, k))
					largest = k;
		/* A head may be in the list of a block that it had. */
		if (largest != MRI_BUCKET_NONE &&
		    pa->groups[page / n_per_group].prev == 0)
			assert_true(pa->groups[page / n_per_group].bucket >=
				    largest);
		else
			assert_int_equal(pa->groups[page / n_per_group].bucket,
					 largest);
		n_free_groups += free != 0;
		n_free += (uint32_t)__builtin_popcount(free);
	}
	assert_int_equal(n_listed, n_free_groups);
	assert_int_equal(n_free, pa->n_free);
}

/* All is free again: as many whole groups as there can be. */
static void check_whole(struct fixture *f)
{
	const uint32_t order = f->pa.group_shift;
	static uint32_t pages[MAX_PAGES];
	uint32_t n;

	check_lists(f);
	assert_int_equal(f->n_out, 0);
	n = take(f, order, pages, MAX_PAGES);
	assert_int_equal(n, f->pa.n_pages >> order);
	give(f, order, pages, n);
}

struct block {
	uint32_t page, order;
};

/* Random blocks of random orders, back one by one or in bulk. */
static void traffic(struct fixture *f, uint32_t n_rounds)
{
	static struct block blocks[MAX_PAGES];
	uint32_t pages[100], n_blocks = 0;

	for (uint32_t round = 0; round < n_rounds; round++) {
		const uint32_t order = below(f, f->pa.group_shift + 2);
		const uint32_t n = below(f, sizeof(pages) / sizeof(pages[0]));

		if (below(f, 2) == 0) {
			const uint32_t n_got = take(f, order, pages, n);

			for (uint32_t i = 0; i < n_got; i++)
				blocks[n_blocks++] =
					(struct block){ pages[i], order };
		} else {
			for (uint32_t i = 0; i < n && n_blocks > 0; i++) {
				const uint32_t j = below(f, n_blocks);

				give(f, blocks[j].order, &blocks[j].page, 1);
				blocks[j] = blocks[--n_blocks];
			}
		}
		if (round % 64 == 0) {
			check_lists(f);
			f->pa.near = below(f, UINT32_MAX);
		}
	}
	while (n_blocks > 0) {
		n_blocks--;
		give(f, blocks[n_blocks].order, &blocks[n_blocks].page, 1);
	}
}

TEST(random_traffic_agrees_with_a_set)
{
	for (uint32_t shift = 11; shift <= 15; shift++) {
		static const uint32_t sizes[][2] = {
			{ 1, 1 << 10 },    { 15, 1 << 10 }, { 100, 1 << 10 },
			{ 1000, 1 << 10 }, { 700, 64 },     { 2048, 64 },
		};

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct fixture f;

			open_pages(&f, shift, sizes[i][0], sizes[i][1]);
			check_whole(&f);
			traffic(&f, 600);
			check_whole(&f);
			close_pages(&f);
		}
	}
}

TEST(fresh_pages_come_in_the_order_of_addresses)
{
	for (uint32_t shift = 11; shift <= 15; shift++) {
		struct fixture f;
		uint32_t pages[65];

		open_pages(&f, shift, 512, 128);
		for (uint32_t at = 0; at + 65 <= 512; at += 65) {
			assert_int_equal(take(&f, 0, pages, 65), 65);
			for (uint32_t i = 0; i < 65; i++)
				assert_int_equal(pages[i], at + i);
		}
		close_pages(&f);
	}
}

/* Pages come from where a large block is lost already. */
TEST(fragmented_groups_are_used_first)
{
	struct fixture f;
	uint32_t one, two, pages[8];

	open_pages(&f, 12, 64, 64);
	assert_int_equal(take(&f, 0, &one, 1), 1);
	assert_int_equal(take(&f, 0, pages, 7), 7);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(pages[i] / 8, one / 8);
	/* Of a group with 1 + 2 + 4 pages free, two take the 2. */
	give(&f, 0, pages, 7);
	assert_int_equal(take(&f, 1, &two, 1), 1);
	assert_int_equal(two / 8, one / 8);
	assert_int_equal(take(&f, 2, pages, 1), 1);
	assert_int_equal(pages[0] / 8, one / 8);
	close_pages(&f);
}

/* What is freed last is warm still. */
TEST(whole_groups_are_used_last_in_first_out)
{
	struct fixture f;
	uint32_t blocks[4], again;

	open_pages(&f, 12, 64, 64);
	assert_int_equal(take(&f, 3, blocks, 4), 4);
	give(&f, 3, &blocks[2], 1);
	give(&f, 3, &blocks[0], 1);
	assert_int_equal(take(&f, 3, &again, 1), 1);
	assert_int_equal(again, blocks[0]);
	assert_int_equal(take(&f, 3, &again, 1), 1);
	assert_int_equal(again, blocks[2]);
	close_pages(&f);
}

TEST(double_frees_are_counted_and_left_alone)
{
	struct fixture f;
	uint32_t pages[3], block;
	const uint32_t twice[] = { 0, 0 };
	const uint32_t wrong[] = { 64, UINT32_MAX };

	open_pages(&f, 12, 64, 64);
	/* Never allocated. */
	mri_page_free_bulk(&f.pa, twice, 1);
	assert_int_equal(f.pa.counters.free_double, 1);
	/* Twice in one call, and once more in the next. */
	assert_int_equal(take(&f, 0, pages, 3), 3);
	mri_page_free_bulk(&f.pa, twice, 2);
	mri_page_free_bulk(&f.pa, twice, 1);
	assert_int_equal(f.pa.counters.free_double, 3);
	assert_int_equal(f.pa.n_free, 62);
	f.is_out[0] = false;
	f.n_out--;
	/* A block of which a part is free. */
	block = 0;
	mri_page_free_blocks(&f.pa, 1, &block, 1);
	assert_int_equal(f.pa.counters.free_double, 4);
	assert_int_equal(f.pa.n_free, 62);
	/* No pages, and no block. */
	mri_page_free_bulk(&f.pa, wrong, 2);
	block = 1;
	mri_page_free_blocks(&f.pa, 1, &block, 1);
	assert_int_equal(f.pa.counters.free_invalid, 3);
	assert_int_equal(f.pa.counters.free_pages, 1);
	check_lists(&f);
	close_pages(&f);
}

/* A segment goes when all of it is free, and no earlier. */
TEST(last_segment_is_removed_when_it_is_free)
{
	struct fixture f;
	static uint32_t pages[192];

	open_pages(&f, 12, 192, 64);
	assert_int_equal(take(&f, 0, pages, 192), 192);
	give(&f, 0, pages + 128, 63);
	assert_false(mri_page_alloc_remove_last(&f.pa));
	give(&f, 0, pages + 191, 1);
	assert_true(mri_page_alloc_remove_last(&f.pa));
	assert_int_equal(f.pa.n_pages, 128);
	assert_int_equal(f.pa.n_segments, 2);
	f.n_out = 128;
	check_lists(&f);
	assert_int_equal(take(&f, 0, pages + 128, 1), 0);
	/* Nobody can give back what is not there. */
	mri_page_free_bulk(&f.pa, pages + 128, 1);
	assert_int_equal(f.pa.counters.free_invalid, 1);
	f.pa.counters.free_invalid = 0;
	/* It may come again, with another end. */
	mri_page_alloc_append(&f.pa, 192, -1, true);
	mri_page_alloc_populate(&f.pa, 150);
	mri_page_alloc_populate(&f.pa, 190);
	assert_false(mri_page_back_one(&f.pa, 191));
	check_lists(&f);
	give(&f, 0, pages, 128);
	check_lists(&f);
	assert_int_equal(take(&f, 0, pages, 192), 190);
	close_pages(&f);
}

TEST(no_memory_is_enomem)
{
	for (uint32_t k = 1; k <= 2; k++) {
		struct test_allocator a = { 0 };
		struct mr_ctx *ctx = test_ctx(&a);
		struct mri_page_alloc pa = { 0 };

		a.fail_at = a.n_calls + k;
		assert_int_equal(mri_page_alloc_init(&pa, ctx, 10, 12),
				 -ENOMEM);
		assert_int_equal(a.n_out, 1);
		mr_ctx_destroy(ctx);
	}
}
