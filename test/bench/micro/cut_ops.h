/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocators of frags, as alloc.h has them for pages. Thread 0 cuts all. */
#ifndef CUT_OPS_H
#define CUT_OPS_H

#include "alloc.h"

/* How a frag is cut. */
enum cut { CUT_ALLOC, CUT_COMMIT, CUT_PROBE };

/* n frags or fewer. */
typedef uint32_t cut_fn(void *pool, word *words, uint32_t n, uint32_t size,
			uint32_t align, enum cut how);

struct cut_ops {
	cut_fn *cut;
	give_fn *give;
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

static ALWAYS_INLINE uint32_t ours_cut(void *pool, word *words, uint32_t n,
				       uint32_t size, uint32_t align,
				       enum cut how)
{
	struct mr_frag_cache *frags = ((struct our_pool *)pool)->frags;
	uint32_t i = 0;

	if (how == CUT_ALLOC && n > 1)
		return mr_frag_cache_alloc_bulk(frags, (uint64_t *)words, n,
						size, align);
	while (i < n && ours_cut_one(frags, &words[i], size, align, how))
		i++;
	return i;
}

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

static ALWAYS_INLINE uint32_t kernel_cut(void *pool, word *words, uint32_t n,
					 uint32_t size, uint32_t align,
					 enum cut how)
{
	uint32_t i = 0;

	while (i < n && kernel_cut_one(pool, &words[i], size, align, how))
		i++;
	return i;
}

GIVE_EACH(kernel_give, kernel_frag_free(pool, thread, object))

static ALWAYS_INLINE uint32_t heap_cut(void *pool, word *words, uint32_t n,
				       uint32_t size, uint32_t align,
				       enum cut how)
{
	(void)pool;
	(void)how;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t rounded = (size + align - 1) & -align;

		words[i] =
			(uintptr_t)(align > 16 ? aligned_alloc(align, rounded) :
						 malloc(size));
	}
	return n;
}

#define OUR_FRAGS ((struct cut_ops){ ours_cut, ours_give })
#define KERNEL_FRAGS ((struct cut_ops){ kernel_cut, kernel_give })
#define HEAP_FRAGS ((struct cut_ops){ heap_cut, heap_give })

#ifdef BENCH_DPDK
/* A whole object for each frag: what a DPDK program would do. */
static ALWAYS_INLINE uint32_t dpdk_cut(void *pool, word *words, uint32_t n,
				       uint32_t size, uint32_t align,
				       enum cut how)
{
	(void)size;
	(void)align;
	(void)how;
	return dpdk_take(pool, 0, words, n) ? n : 0;
}

#define DPDK_FRAGS ((struct cut_ops){ dpdk_cut, dpdk_give })
#endif

/* Add variants whose memory is n_mib; pages of ours have 4 KiB, objects of DPDK
 * 2 KiB. */
void add_cut_ops(struct bench *bench, struct row *row,
		 const struct variant *like, uint32_t n_mib,
		 const struct contestant *list, uint32_t n);

#endif
