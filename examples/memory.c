/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: the memory layer without a port. The README shows the middle of it.
 *
 *     ./memory
 */
#include <err.h>
#include <stdio.h>

#include <millrace/experimental/frag.h>
#include <millrace/experimental/objpool.h>
#include <millrace/millrace.h>

struct flow {
	uint32_t addrs[2];
	uint16_t ports[2];
};

/* Take one of each, and give it back. */
static void use(struct mr_cache *cache, struct mr_frag_cache *frags,
		struct mr_objcache *objects)
{
	uint64_t page, frag, addrs[32];
	uint32_t n, n_flows;
	void *entries[16];

	page = mr_frag_alloc(cache, 2048);                  /* one, inline */
	n = mr_frag_alloc_bulk(cache, addrs, 32, 2048);     /* a burst */
	if (mr_frag_cache_alloc(frags, 75, 64, &frag) < 0)  /* of any size */
		errx(1, "no page is left");
	n_flows = mr_obj_alloc_bulk(objects, entries, 16);  /* fixed-size objects */

	printf("a page at 0x%llx, %u more, 75 bytes at 0x%llx, %u flows\n",
	       (unsigned long long)page, n, (unsigned long long)frag, n_flows);

	mr_obj_free_bulk(objects, entries, n_flows);
	mr_frag_free_bulk(cache, &frag, 1);
	mr_frag_free_bulk(cache, addrs, n);
	mr_frag_free(cache, page);
}

int main(void)
{
	struct mr_pool_config pages = { .size = sizeof(pages),
					.page_bytes = 2048 };
	struct mr_objpool_config flows = { .size = sizeof(flows),
					   .object_bytes = sizeof(struct flow),
					   .n_objects = 1000 };
	struct mr_frag_cache *frags;
	struct mr_objcache *objects;
	struct mr_objpool *objpool;
	struct mr_cache *cache;
	struct mr_reason why;
	struct mr_pool *pool;
	struct mr_ctx *ctx;

	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_create(ctx, &pages, &pool, &why) < 0 ||
	    mr_cache_create(pool, &cache, &why) < 0 ||
	    mr_frag_cache_create(cache, &frags, &why) < 0 ||
	    mr_objpool_create(ctx, &flows, &objpool, &why) < 0 ||
	    mr_objcache_create(objpool, &objects, &why) < 0)
		errx(1, "%s", why.text);

	use(cache, frags, objects);

	mr_objcache_destroy(objects);
	mr_objpool_destroy(objpool, NULL);
	mr_frag_cache_destroy(frags);
	mr_cache_destroy(cache);
	if (mr_pool_destroy(pool, &why) < 0) /* would say who has a page */
		errx(1, "%s", why.text);
	mr_ctx_destroy(ctx);
	return 0;
}
