/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocators of frags by one interface, as takers.h has them for pages. */
#ifndef CUTTERS_H
#define CUTTERS_H

#include "kernel_frag.h"
#include "takers.h"

/* How a frag is cut. */
enum cut { CUT_ALLOC, CUT_COMMIT, CUT_PROBE };

struct our_frags {
	struct our_pool pool;        /* caches for 2 threads */
	struct mr_frag_cache *frags; /* of thread 0 */
};

/* n frags or fewer; all by thread 0. */
typedef uint32_t (*cut_fn)(void *state, word *words, uint32_t n, uint32_t size,
			   uint32_t align, enum cut how);

struct cutter {
	cut_fn cut;
	give_fn give;
};

static ALWAYS_INLINE bool ours_cut_one(struct mr_frag_cache *frags, word *at,
				       uint32_t size, uint32_t align,
				       enum cut how)
{
	struct mr_frag frag;

	if (how == CUT_ALLOC)
		return mr_frag_cache_alloc(frags, size, align,
					   (uint64_t *)at) == 0;
	if ((how == CUT_COMMIT ||
	     !mr_frag_cache_probe(frags, size, align, &frag)) &&
	    mr_frag_cache_alloc_prepare(frags, size, align, &frag) == NULL)
		return false;
	*at = frag.addr;
	return mr_frag_cache_commit(frags, &frag, size) >= 0;
}

static ALWAYS_INLINE uint32_t ours_cut(void *state, word *words, uint32_t n,
				       uint32_t size, uint32_t align,
				       enum cut how)
{
	const struct our_frags *ours = state;
	uint32_t i = 0;

	if (how == CUT_ALLOC && n > 1)
		return mr_frag_cache_alloc_bulk(ours->frags, (uint64_t *)words,
						n, size, align);
	while (i < n && ours_cut_one(ours->frags, &words[i], size, align, how))
		i++;
	return i;
}

#define OURS_CUTTER ((struct cutter){ ours_cut, ours_give })

static ALWAYS_INLINE bool kernel_cut_one(struct kernel_frags *frags, word *at,
					 uint32_t size, uint32_t align,
					 enum cut how)
{
	struct kernel_frag frag;

	if (how == CUT_ALLOC) {
		*at = (uintptr_t)kernel_frag_alloc(frags, size, align);
		return *at != 0;
	}
	if ((how == CUT_COMMIT ||
	     !kernel_frag_probe(frags, size, align, &frag)) &&
	    !kernel_frag_prepare(frags, size, align, &frag))
		return false;
	*at = (uintptr_t)frag.data;
	kernel_frag_commit(frags, &frag, size);
	return true;
}

static ALWAYS_INLINE uint32_t kernel_cut(void *state, word *words, uint32_t n,
					 uint32_t size, uint32_t align,
					 enum cut how)
{
	uint32_t i = 0;

	while (i < n && kernel_cut_one(state, &words[i], size, align, how))
		i++;
	return i;
}

static ALWAYS_INLINE void kernel_give(void *state, uint32_t thread,
				      const word *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		kernel_frag_free(state, thread, (void *)(uintptr_t)words[i]);
}

#define KERNEL_CUTTER ((struct cutter){ kernel_cut, kernel_give })

static ALWAYS_INLINE uint32_t malloc_cut(void *state, word *words, uint32_t n,
					 uint32_t size, uint32_t align,
					 enum cut how)
{
	(void)state;
	(void)how;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t rounded = (size + align - 1) & -align;

		words[i] =
			(uintptr_t)(align > 16 ? aligned_alloc(align, rounded) :
						 malloc(size));
	}
	return n;
}

#define MALLOC_CUTTER ((struct cutter){ malloc_cut, malloc_give })

#ifdef BENCH_DPDK
/* A whole object for each frag: what a DPDK program would do. */
static ALWAYS_INLINE uint32_t dpdk_cut(void *state, word *words, uint32_t n,
				       uint32_t size, uint32_t align,
				       enum cut how)
{
	(void)size;
	(void)align;
	(void)how;
	return dpdk_take(state, 0, words, n) ? n : 0;
}

#define DPDK_CUTTER ((struct cutter){ dpdk_cut, dpdk_give })
#endif

/* What frags are cut from: n_bytes. For pools of DPDK: objects of 2 KiB. */
void *cutter_make(struct player *player, uint64_t n_bytes,
		  struct mr_reason *why);
void cutter_free(const struct player *player, void *state);

/* Bytes that cannot be used for anything else. At rest. */
uint64_t cutter_pinned(const struct player *player, void *state);

#endif
