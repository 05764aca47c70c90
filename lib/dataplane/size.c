/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Size a pool before its ports open.
 *
 *     pages = what rings hold + what the program keeps + what caches may hold
 *
 * A cache holds at most two magazines, so larger magazines need more pages. An
 * eighth of the pool may go to that.
 */
#include <errno.h>
#include <string.h>

#include "dataplane/dataplane.h"

/* The least, with the smallest magazines. */
static int count_pages(struct mr_ctx *ctx,
		       const struct mr_dataplane_config *config,
		       uint32_t n_workers, uint32_t *ret_n,
		       struct mr_reason *reterr_reason)
{
	struct mr_pool_config pool = { .size = sizeof(pool),
				       .n_pages = config->kept_pages,
				       .page_bytes = config->page_bytes,
				       .magazine_pages = MR_MAGAZINE_PAGES };

	/* One port at a time, so that an error names the port. */
	for (uint32_t p = 0; p < config->n_specs; p++) {
		struct mr_reason why;
		const int err =
			mr_pool_size_for(ctx, &config->specs[p], 1, n_workers,
					 p == 0 ? n_workers : 0, &pool, &why);

		if (err < 0)
			return mri_dataplane_fail_port(err, config->specs[p],
						       &why, reterr_reason);
	}
	*ret_n = pool.n_pages;
	return 0;
}

/* Pages per magazine: the default of such a pool, or less if the caches would
 * take what others need. */
static uint32_t fit_magazines(uint32_t n_pages, uint64_t n_others,
			      uint32_t n_workers)
{
	uint32_t n = mr_magazine_default_pages(n_pages, n_workers);

	while (n > MR_MAGAZINE_PAGES &&
	       n_others + (uint64_t)n_workers * mr_cache_max_pages(n) > n_pages)
		n /= 2;
	return n;
}

int mri_dataplane_size(struct mr_ctx *ctx,
		       const struct mr_dataplane_config *config,
		       uint32_t n_workers, struct mr_pool_config *pool,
		       struct mr_reason *reterr_reason)
{
	const uint32_t n_caches =
		n_workers * mr_cache_max_pages(MR_MAGAZINE_PAGES);
	uint64_t n_all, n_others;
	uint32_t n_least = 0;
	int err;

	err = count_pages(ctx, config, n_workers, &n_least, reterr_reason);
	if (err < 0)
		return err;
	if (config->n_pages > 0 && config->n_pages < n_least)
		return mr_fail(reterr_reason, -EINVAL,
			       "a pool of %u pages is too small: the ports' "
			       "rings, %u caches and bursts need %u",
			       config->n_pages, n_workers, n_least);
	n_all = n_least;
	if (n_workers > 1)
		n_all +=
			(uint64_t)n_workers * config->n_specs *
			(config->handoff_entries > 0 ? config->handoff_entries :
						       MRI_HANDOFF_ENTRIES);
	if (n_all > UINT32_MAX / 2)
		return mr_fail(reterr_reason, -EINVAL,
			       "%llu pages are too many",
			       (unsigned long long)n_all);
	n_others = n_all - n_caches;
	if (config->n_pages > 0) {
		pool->n_pages = config->n_pages;
		pool->magazine_pages =
			fit_magazines(config->n_pages, n_others, n_workers);
		return 0;
	}
	pool->magazine_pages = fit_magazines((uint32_t)(n_all + n_all / 8),
					     n_others, n_workers);
	pool->n_pages = (uint32_t)n_others +
			n_workers * mr_cache_max_pages(pool->magazine_pages);
	pool->is_elastic = 1; /* for queues that are added later */
	return 0;
}
