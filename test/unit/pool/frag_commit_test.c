/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/frag.c: prepare, probe, commit and abort. */
#include "support/frag_unit.h"

/* The last of a bulk is the last cut. */
TEST(bulk_counts_for_abort)
{
	struct frag_fixture f;
	uint64_t addrs[3];

	open_frags(&f, 256, 4096, 4096);
	mr_frag_cache_alloc_bulk(f.frags, addrs, 3, 100, 64);
	assert_int_equal(mr_frag_cache_abort(f.frags, addrs[1], 100), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, addrs[2], 100), 0);
	assert_int_equal(cut(&f, 1, 0), addrs[2]);
	give_back(&f, addrs[2]);
	mr_frag_free_bulk(f.p.cache, addrs, 2);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

TEST(only_the_last_cut_is_aborted_once)
{
	struct frag_fixture f;
	uint64_t a, b, c;

	open_frags(&f, 256, 4096, 4096);
	assert_int_equal(mr_frag_cache_abort(f.frags, 0, 1), -EINVAL);
	a = cut(&f, 100, 0);
	b = cut(&f, 50, 64);
	assert_int_equal(mr_frag_cache_abort(f.frags, a, 100), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, b, 49), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, b, 51), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, b - 1, 51), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, a, 178), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, b, 50), 0);
	assert_int_equal(mr_frag_cache_abort(f.frags, b, 50), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, a, 100), -EINVAL);
	/* Padding is not given back: 28 bytes behind the first one. */
	assert_int_equal(cut(&f, 10, 0), b);
	assert_in_flight(f.p.pool, 8);
	give_back(&f, a);
	assert_in_flight(f.p.pool, 8);
	assert_int_equal(mr_frag_cache_abort(f.frags, b, 10), 0);
	assert_in_flight(f.p.pool, 0);
	c = cut(&f, 32768, 0); /* it begins again: nothing is out */
	assert_int_equal(c, a);
	assert_int_equal(mr_frag_cache_abort(f.frags, c, 32768), 0);
	/* Given back already, to the block or on its way there. */
	a = cut(&f, 5, 0);
	give_back(&f, a);
	assert_int_equal(mr_frag_cache_abort(f.frags, a, 5), -EINVAL);
	assert_in_flight(f.p.pool, 0);
	/* Neither is there a last one in a fresh block. */
	cut(&f, 5, 0);
	mr_frag_cache_drain(f.frags);
	assert_int_equal(mr_frag_cache_abort(f.frags, a + 5, 5), -EINVAL);
	give_back(&f, a);
	close_frags(&f);
}

TEST(aborted_reference_leaves_the_bytes)
{
	struct frag_fixture f;
	uint64_t a;

	open_frags(&f, 256, 4096, 4096);
	a = cut(&f, 100, 0);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, a, 99), -EINVAL);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, a, 100), 0);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, a, 100), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, a, 100), -EINVAL);
	assert_in_flight(f.p.pool, 0);
	a = cut(&f, 1, 0);
	assert_int_equal(cut(&f, 2, 0), a + 1);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, a + 1, 2), 0);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, a + 1, 2), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, a + 1, 2), -EINVAL);
	assert_in_flight(f.p.pool, 8);
	give_back(&f, a);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

TEST(shared_frag_is_not_aborted)
{
	struct frag_fixture f;
	struct mr_frame frame = { 0, 10, 0 };

	open_frags(&f, 256, 4096, 4096);
	frame.addr = cut(&f, 10, 0);
	assert_int_equal(mr_frame_ref(f.p.cache, &frame, 1), 0);
	assert_int_equal(mr_frag_cache_abort(f.frags, frame.addr, 10), -EBUSY);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, frame.addr, 10),
			 -EBUSY);
	mr_frame_free_bulk(f.p.cache, &frame, 1);
	assert_in_flight(f.p.pool, 8);
	mr_frame_free_bulk(f.p.cache, &frame, 1);
	assert_in_flight(f.p.pool, 0);
	/* With the block's next life that is forgotten. */
	assert_int_equal(cut(&f, 32768, 0), frame.addr);
	assert_int_equal(mr_frag_cache_abort(f.frags, frame.addr, 32768), 0);
	close_frags(&f);
}

TEST(prepare_takes_nothing_and_probe_sees_the_same)
{
	struct frag_fixture f;
	struct mr_frag a = { 0 }, b = { 0 };
	uint64_t addr;

	open_frags(&f, 256, 4096, 4096);
	assert_false(mr_frag_cache_probe(f.frags, 1, 0, &b));
	assert_in_flight(f.p.pool, 0);
	assert_int_equal(mr_frag_cache_prepare(f.frags, 100, 0, &a), 0);
	assert_int_equal(a.n_bytes, 32768);
	assert_in_flight(f.p.pool, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(mr_frag_cache_probe(f.frags, 100, 0, &b));
		assert_memory_equal(&a, &b, sizeof(a));
		assert_ptr_equal(
			mr_frag_cache_alloc_prepare(f.frags, 100, 0, &b),
			f.p.base + a.addr);
		assert_memory_equal(&a, &b, sizeof(a));
	}
	addr = cut(&f, 10, 0);
	assert_int_equal(addr, a.addr);
	assert_int_equal(mr_frag_cache_prepare(f.frags, 100, 64, &a), 0);
	assert_int_equal(a.addr, addr + 64);
	assert_int_equal(a.n_bytes, 32768 - 64);
	assert_true(mr_frag_cache_probe(f.frags, 32768 - 64, 64, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_false(mr_frag_cache_probe(f.frags, 32768 - 63, 64, &b));
	/* It fetches where probe does not. */
	assert_int_equal(mr_frag_cache_prepare(f.frags, 32768, 0, &b), 0);
	assert_int_equal(mr_frag_cache_commit(f.frags, &a, 1), -ESTALE);
	assert_in_flight(f.p.pool, 8);
	give_back(&f, addr);
	close_frags(&f);
}

TEST(commit_takes_what_is_used_and_says_how_much)
{
	struct frag_fixture f;
	struct mr_frag frag;
	uint64_t addr;

	open_frags(&f, 256, 4096, 4096);
	addr = cut(&f, 10, 0);
	mr_frag_cache_prepare(f.frags, 100, 64, &frag);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 0), -EINVAL);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, frag.n_bytes + 1),
			 -EINVAL);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 30), 54 + 30);
	assert_in_flight(f.p.pool, 8);
	/* Not twice. */
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 30), -ESTALE);
	give_back(&f, addr);
	assert_in_flight(f.p.pool, 8);
	/* More than was asked for, up to all there is. */
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	assert_int_equal(frag.addr, addr + 94);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, frag.n_bytes),
			 32768 - 94);
	give_back(&f, addr + 64);
	give_back(&f, frag.addr);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

/* Whatever cuts, commits, aborts or drains makes a prepared frag stale. */
TEST(stale_prepare_is_refused)
{
	struct frag_fixture f;
	struct mr_frag frag, other, zero = { 0 };
	uint64_t addr;

	open_frags(&f, 256, 4096, 4096);
	assert_int_equal(mr_frag_cache_commit(f.frags, &zero, 1), -ESTALE);
	for (int way = 0; way < 7; way++) {
		addr = cut(&f, 8, 0);
		assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag),
				 0);
		other = frag;
		switch (way) {
		case 0:
			give_back(&f, cut(&f, 1, 0));
			break;
		case 1:
			mr_frag_cache_abort(f.frags, addr, 8);
			addr = UINT64_MAX;
			break;
		case 2:
			mr_frag_cache_abort_ref(f.frags, addr, 8);
			addr = UINT64_MAX;
			break;
		case 3:
			assert_int_equal(
				mr_frag_cache_commit(f.frags, &other, 1), 1);
			give_back(&f, other.addr);
			break;
		case 4:
			assert_int_equal(
				mr_frag_cache_commit_noref(f.frags, &other, 1),
				1);
			break;
		case 5:
			assert_int_equal(mr_frag_cache_alloc_bulk(
						 f.frags, &other.addr, 1, 1, 0),
					 1);
			give_back(&f, other.addr);
			break;
		default:
			mr_frag_cache_drain(f.frags);
			break;
		}
		assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1),
				 -ESTALE);
		assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 1),
				 -ESTALE);
		if (addr != UINT64_MAX)
			give_back(&f, addr);
		assert_in_flight(f.p.pool, 0);
	}
	close_frags(&f);
}

/* What the caller wrote into the struct is not believed. */
TEST(forged_prepare_is_refused)
{
	struct frag_fixture f;
	struct mr_frag frag, forged;
	uint64_t addr;

	open_frags(&f, 256, 4096, 4096);
	addr = cut(&f, 100, 0);
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	forged = frag;
	forged.addr--;
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, 1), -EINVAL);
	forged.addr = frag.addr + frag.n_bytes;
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, 1), -EINVAL);
	forged.addr = frag.addr + UINT64_C(0x100000000);
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, 1), -EINVAL);
	forged.addr = frag.addr;
	forged.n_bytes = UINT32_MAX;
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, UINT32_MAX),
			 -EINVAL);
	assert_int_equal(
		mr_frag_cache_commit(f.frags, &forged, frag.n_bytes + 1),
		-EINVAL);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), 1);
	give_back(&f, frag.addr);
	give_back(&f, addr);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

TEST(commit_without_reference_lengthens_the_last_one)
{
	struct frag_fixture f;
	struct mr_frag frag;
	uint64_t addr;

	open_frags(&f, 256, 4096, 4096);
	/* There is none before. */
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 1),
			 -EINVAL);
	addr = cut(&f, 100, 0);
	/* Not right behind it. */
	mr_frag_cache_prepare(f.frags, 1, 64, &frag);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 1),
			 -EINVAL);
	mr_frag_cache_prepare(f.frags, 50, 0, &frag);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 0),
			 -EINVAL);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 50), 50);
	mr_frag_cache_prepare(f.frags, 50, 0, &frag);
	assert_int_equal(frag.addr, addr + 150);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 10), 10);
	/* It is one frag of 160 bytes, and goes as one. */
	assert_int_equal(mr_frag_cache_abort(f.frags, addr, 100), -EINVAL);
	assert_int_equal(mr_frag_cache_abort(f.frags, addr, 160), 0);
	assert_in_flight(f.p.pool, 0);
	/* After that there is none to be lengthened. */
	cut(&f, 1, 0);
	assert_int_equal(mr_frag_cache_abort_ref(f.frags, addr, 1), 0);
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 1),
			 -EINVAL);
	/* Nor when it, the only one, has been given back. */
	give_back(&f, cut(&f, 10, 0));
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 1),
			 -EINVAL);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

/* Generations wrap; so do the counts of nothing else that lives long. */
TEST(generation_wraps)
{
	struct frag_fixture f;
	struct mr_frag frag;

	open_frags(&f, 64, 4096, 4096);
	f.frags->generation = UINT32_MAX;
	assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag), 0);
	f.frags->generation = UINT32_MAX;
	assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag), 0);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), 1);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), -ESTALE);
	give_back(&f, frag.addr);
	close_frags(&f);
}
