/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run-time checks of a pool, from MR_SAFETY_STATES on.
 *
 * A checked pool has a struct mri_safety. Its caches treat no burst as simple,
 * so every page passes here when allocated and when freed; unchecked pools pay
 * nothing.
 *
 *     states[page]:  | time, in us 52 | site 10 | is_poisoned 1 | is_out 1 |
 *
 * A page's word records who allocated it and when, or who freed it. It is
 * stored on allocation, when only one thread has the page, and exchanged on
 * freeing, since two threads may free it at once: one of them finds it free.
 */
#ifndef POOL_SAFETY_H
#define POOL_SAFETY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pool/cache.h"

enum {
	MRI_STATE_OUT = 1 << 0,
	MRI_STATE_POISONED = 1 << 1, /* every byte is MRI_POISON */
	MRI_SITE_SHIFT = 2,
	MRI_SITE_BITS = 10,
	MRI_SITES = 1 << MRI_SITE_BITS,
	MRI_TIME_SHIFT = MRI_SITE_SHIFT + MRI_SITE_BITS,
	MRI_POISON = 0xfd,
	MRI_SITE_TEXT = 160,
};

/* What was already reported about a site. */
enum {
	MRI_TOLD_DOUBLE = 1 << 0,
	MRI_TOLD_INVALID = 1 << 1,
	MRI_TOLD_BROKEN = 1 << 2,
};

/* A call site in the program. Place 0 is for those that do not fit, and for
 * unknown callers. */
struct mri_site {
	uint64_t addr; /* return address; 0: free; atomic */
	uint32_t told; /* atomic */
	uint32_t pad;
};

/*
 * Freed pages, oldest first. Those above the bound are reused, and all of them
 * if there are no others. lib/pool/debug/poison.c
 */
struct mri_quarantine {
	pthread_mutex_t lock;
	uint32_t *pages; /* a ring */
	uint32_t n_places;
	uint32_t first;
	uint32_t n;      /* atomic, for readers without the lock */
	uint64_t n_left; /* pages that have left */
	uint64_t n_seen,
		seen_ns; /* for mr_pool_trim(): total of pages that came in */
	uint32_t bound;
};

struct mri_safety {
	enum mr_safety level;
	uint64_t *states; /* atomic */
	uint64_t now_us;  /* atomic: mr_pool_trim()'s last tick */
	struct mri_site sites[MRI_SITES];
	struct mri_quarantine quarantine; /* from MR_SAFETY_POISON on */
};

/* lib/pool/debug/safety.c. For a pool with no page in use. -ENOMEM. */
int mri_safety_set(struct mr_pool *pool, enum mr_safety level,
		   struct mr_reason *reterr_reason);
/* Returns its pages in quarantine to the page allocator. */
void mri_safety_destroy(struct mr_pool *pool);

/* Pages [first, end) are removed: what comes there next is new. */
void mri_safety_forget(struct mr_pool *pool, uint32_t first, uint32_t end);

/* Set the time that states are stamped with. */
void mri_safety_tick(struct mr_pool *pool, uint64_t now_ns);

/* lib/pool/debug/site.c: the index of a site in sites[]. */
uint32_t mri_site_find(struct mri_safety *safety, const void *site);
/* "function+0x12 in object+0x3456", as addr2line expects it. */
void mri_site_say(const struct mri_safety *safety, uint32_t place,
		  char text[MRI_SITE_TEXT]);
/* True once per site and kind of report. */
bool mri_site_tell(struct mri_safety *safety, uint32_t place, uint32_t matter);
/* Who allocated most of the pages in use: "; most by ...", or "". */
void mri_site_say_leaks(const struct mr_pool *pool, char *text, size_t n);

/* lib/pool/debug/poison.c */
int mri_quarantine_init(struct mr_pool *pool, struct mri_quarantine *q);
void mri_quarantine_fini(struct mr_pool *pool, struct mri_quarantine *q);
void mri_quarantine_put(struct mri_quarantine *q, const uint32_t *pages,
			uint32_t n);
/* Up to n of the oldest, leaving n_keep of them. */
uint32_t mri_quarantine_take(struct mri_quarantine *q, uint32_t *pages,
			     uint32_t n, uint32_t n_keep);
/* Return some of the oldest to the page allocator; returns how many. */
uint32_t mri_quarantine_reclaim(struct mr_pool *pool);
/* Once per idle_ns: return those that were there the time before; how many. */
uint64_t mri_quarantine_end(struct mr_pool *pool, uint64_t now_ns,
			    uint64_t idle_ns);
void mri_poison_fill(struct mr_pool *pool, uint64_t addr, uint32_t n_bytes);
/* A filled page leaves: check that it is unchanged. */
void mri_poison_check(struct mr_pool *pool, uint32_t page, uint64_t state);
/* Tell AddressSanitizer, if present, that these bytes may be used. */
void mri_poison_allow(const struct mr_pool *pool, uint64_t addr,
		      uint64_t n_bytes);

static inline uint64_t mri_thread_self(void)
{
	return (uint64_t)pthread_self();
}

static inline uint32_t mri_state_site(uint64_t state)
{
	return state >> MRI_SITE_SHIFT & (MRI_SITES - 1);
}

static inline uint64_t mri_state(const struct mri_safety *safety, uint32_t site,
				 uint32_t bits)
{
	const uint64_t now = __atomic_load_n(&safety->now_us, __ATOMIC_RELAXED);

	return now << MRI_TIME_SHIFT | (site << MRI_SITE_SHIFT | bits);
}

/* Pages in quarantine. */
static inline uint32_t mri_safety_n_held(const struct mr_pool *pool)
{
	return pool->safety == NULL ?
		       0 :
		       __atomic_load_n(&pool->safety->quarantine.n,
				       __ATOMIC_RELAXED);
}

#endif
