/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many pages a pool needs for its ports: mr_pool_size_for(), and pools of
 * the default size, which grow.
 */
#include "support/pool_unit.h"

enum { N_NEED = 5000 };

static int size_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		     uint32_t page_bytes, uint32_t *ret_n_pages,
		     struct mr_reason *reterr_reason)
{
	(void)ctx;
	(void)spec;
	(void)page_bytes;
	(void)reterr_reason;
	*ret_n_pages = N_NEED;
	return 0;
}

static struct test_allocator allocator;
/* What the last port found: its first page, and the last line of the log. */
static uint64_t first_addr;
static char line[512];

static int size_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	(void)spec;
	(void)reterr_reason;
	snprintf(line, sizeof(line), "%s", allocator.last_line);
	if (mr_pool_frag_alloc_bulk(base->pool, &first_addr, 1) == 1)
		mr_pool_frag_free_bulk(base->pool, &first_addr, 1);
	return 0;
}

static void size_close(struct mr_port *base)
{
	(void)base;
}

static const struct mr_driver size_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "size",
	.port_bytes = sizeof(struct mr_port),
	.need = size_need,
	.open = size_open,
	.close = size_close,
};

enum { MAX_PORTS = 4, MAX_CACHES = 4 };

static const char *const specs[MAX_PORTS] = { "size:a", "size:b", "size:c",
					      "size:d" };
static struct mr_ctx *ctx;
static struct mr_port *ports[MAX_PORTS];
static struct mr_cache *caches[MAX_CACHES];
static struct mr_reason why;

static int set_up(void **state)
{
	(void)state;
	memset(ports, 0, sizeof(ports));
	memset(caches, 0, sizeof(caches));
	allocator = (struct test_allocator){ 0 };
	ctx = test_ctx(&allocator);
	assert_int_equal(mr_ctx_add_driver(ctx, &size_driver, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mr_ctx_destroy(ctx);
	assert_int_equal(allocator.n_out, 0);
	return 0;
}

#define SIZE_TEST(name) TEST_WITH(set_up, tear_down, name)

static struct mr_pool *make_pool(struct mr_pool_config config)
{
	struct mr_pool *pool = NULL;

	config.size = sizeof(config);
	assert_int_equal(mr_pool_create(ctx, &config, &pool, &why), 0);
	return pool;
}

static int open_port(struct mr_pool *pool, uint32_t i, uint32_t n_workers)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .n_workers = n_workers,
					       .pool = pool };

	return mr_port_open(ctx, specs[i], &config, &ports[i], &why);
}

/* Ports first, or caches first. 0, or what was refused. */
static int open_all(struct mr_pool *pool, uint32_t n_ports, uint32_t n_workers,
		    uint32_t n_caches, bool ports_first)
{
	int err = 0;

	for (uint32_t i = 0; i < n_ports && ports_first && err == 0; i++)
		err = open_port(pool, i, n_workers);
	for (uint32_t i = 0; i < n_caches && err == 0; i++)
		err = mr_cache_create(pool, &caches[i], &why);
	for (uint32_t i = 0; i < n_ports && !ports_first && err == 0; i++)
		err = open_port(pool, i, n_workers);
	return err;
}

static void close_all(struct mr_pool *pool)
{
	for (uint32_t i = 0; i < MAX_PORTS; i++) {
		mr_port_close(ports[i]);
		ports[i] = NULL;
	}
	for (uint32_t i = 0; i < MAX_CACHES; i++) {
		mr_cache_destroy(caches[i]);
		caches[i] = NULL;
	}
	assert_int_equal(mr_pool_destroy(pool, &why), 0);
}

static const struct {
	struct mr_pool_config config;
	uint32_t n_ports, n_workers, n_caches;
} cases[] = {
	{ { 0 }, 1, 0, 1 },
	{ { 0 }, 2, 1, 1 },
	{ { 0 }, 4, 3, 4 },
	{ { .max_caches = 4 }, 2, 4, 4 },
	{ { .n_pages = 9000, .max_caches = 1 }, 2, 1, 1 },
	{ { .page_bytes = 8192 }, 2, 2, 2 },
	{ { .page_bytes = 2048, .magazine_pages = 64 }, 1, 1, 3 },
	{ { .magazine_pages = 512 }, 1, 1, 4 },
};

SIZE_TEST(pool_of_the_size_opens_all_ports_and_caches_in_any_order)
{
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_pool_config config = cases[i / 2].config;
		const uint32_t n_own = config.n_pages;
		const uint32_t n_ports = cases[i / 2].n_ports;
		struct mr_pool *pool;

		config.size = sizeof(config);
		assert_int_equal(mr_pool_size_for(ctx, specs, n_ports,
						  cases[i / 2].n_workers,
						  cases[i / 2].n_caches,
						  &config, &why),
				 0);
		assert_true(config.n_pages > n_ports * N_NEED + n_own);
		pool = make_pool(config);
		assert_int_equal(open_all(pool, n_ports, cases[i / 2].n_workers,
					  cases[i / 2].n_caches, i % 2 == 0),
				 0);
		assert_true(pool_stats(pool).n_committed + n_own <=
			    config.n_pages);
		close_all(pool);
	}
}

SIZE_TEST(pool_of_one_page_less_is_refused)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .magazine_pages = 64 };
	struct mr_pool *pool;

	assert_int_equal(mr_pool_size_for(ctx, specs, 2, 1, 2, &config, &why),
			 0);
	config.n_pages--;
	pool = make_pool(config);
	assert_int_equal(open_all(pool, 2, 1, 2, true), -ENOMEM);
	close_all(pool);
}

/* What a refusal says is enough for what was asked for until then. */
SIZE_TEST(refusal_has_a_number_that_is_enough)
{
	struct mr_pool_config config = { .n_pages = 8192 };
	struct mr_pool *pool = make_pool(config);
	const char *number;

	assert_int_equal(open_all(pool, 4, 2, 2, true), -ENOMEM);
	close_all(pool);
	while ((number = strstr(why.text, "at least ")) != NULL) {
		config.n_pages =
			(uint32_t)strtoul(number + 9, NULL, 10);
		pool = make_pool(config);
		why.text[0] = '\0';
		(void)open_all(pool, 4, 2, 2, true);
		/* It got further than the one before. */
		assert_non_null(ports[1]);
		close_all(pool);
	}
	assert_true(config.n_pages < 4 * (N_NEED + 2 * MR_BURST_MAX) + 3000);
}

SIZE_TEST(a_pool_that_cannot_be_sized_changes_nothing)
{
	static const char *const wrong[] = { "size:a", "nosuch:x" };
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 7 };

	assert_int_equal(mr_pool_size_for(ctx, wrong, 2, 1, 1, &config, &why),
			 -ENODEV);
	assert_reason_has(&why, "no driver 'nosuch'");
	assert_int_equal(mr_pool_size_for(ctx, specs, 1, 4097, 1, &config,
					  &why),
			 -EINVAL);
	assert_int_equal(mr_pool_size_for(ctx, specs, 1, 1, 1, NULL, &why),
			 -EINVAL);
	assert_int_equal(config.n_pages, 7);
	config.n_pages = 1u << 28;
	assert_int_equal(mr_pool_size_for(ctx, specs, 1, 1, 1, &config, &why),
			 -EINVAL);
	assert_reason_has(&why, "a pool has at most 268435456");
	config.size = 0;
	assert_int_equal(mr_pool_size_for(ctx, specs, 1, 1, 1, &config, &why),
			 -EINVAL);
}

SIZE_TEST(pool_of_the_default_size_grows_for_ports_and_caches)
{
	struct mr_pool *pool = make_pool((struct mr_pool_config){ 0 });
	uint64_t n_pages;

	assert_int_equal(pool_stats(pool).n_pages, 8192);
	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_int_equal(pool_stats(pool).n_pages, 8192);
	assert_int_equal(open_port(pool, 1, 4), 0);
	n_pages = pool_stats(pool).n_pages;
	assert_true(n_pages > 8192);
	assert_non_null(strstr(line,
			       "pool has grown from 8192 to "));
	assert_non_null(strstr(line, "for size:b"));
	/* The workers' caches were thought of. */
	for (uint32_t i = 0; i < MAX_CACHES; i++)
		assert_int_equal(mr_cache_create(pool, &caches[i], &why), 0);
	assert_int_equal(pool_stats(pool).n_pages, n_pages);
	assert_int_equal(pool_stats(pool).n_free, n_pages);
	close_all(pool);
}

SIZE_TEST(elastic_pool_of_a_chosen_size_grows_for_ports)
{
	struct mr_pool *pool = make_pool((struct mr_pool_config){
		.n_pages = 256, .magazine_pages = 64, .is_elastic = 1 });

	assert_int_equal(pool_stats(pool).n_pages, 256);
	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_true(pool_stats(pool).n_pages > 256);
	close_all(pool);
}

/* It grows for ports, and not because frames are not freed. */
static struct mr_pool *logged_pool;
static uint32_t n_asked;

/* As a program that adds its state to each line. */
static void ask_pool(void *opaque, enum mr_log_level level, const char *text)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	(void)opaque, (void)level, (void)text;
	if (logged_pool == NULL)
		return;
	mr_pool_stats(logged_pool, &stats);
	n_asked++;
}

SIZE_TEST(log_hook_may_ask_a_pool_that_grows)
{
	const struct mr_ctx_config hooks = { .size = sizeof(hooks),
					     .log = ask_pool };
	struct mr_port_config c = { .size = sizeof(c) };
	struct mr_ctx *asking;
	struct mr_port *port;
	uint32_t n_before;

	assert_int_equal(mr_ctx_create(&hooks, &asking, &why), 0);
	assert_int_equal(mr_ctx_add_driver(asking, &size_driver, NULL), 0);
	assert_int_equal(mr_pool_create(asking, NULL, &c.pool, &why), 0);
	logged_pool = c.pool;
	assert_int_equal(mr_port_open(asking, "size:a", &c, &port, &why), 0);
	mr_port_close(port);
	n_before = n_asked;
	c.n_workers = 256; /* a burst each */
	assert_int_equal(mr_port_open(asking, "size:a", &c, &port, &why), 0);
	assert_true(n_asked > n_before + 1); /* one line says that it is open */
	mr_port_close(port);
	logged_pool = NULL;
	assert_int_equal(mr_pool_destroy(c.pool, &why), 0);
	mr_ctx_destroy(asking);
}

SIZE_TEST(pool_of_the_default_size_does_not_grow_when_it_runs_dry)
{
	struct mr_pool *pool = make_pool((struct mr_pool_config){ 0 });
	uint64_t *addrs = calloc(8193, sizeof(*addrs));

	assert_int_equal(mr_pool_frag_alloc_bulk(pool, addrs, 8193),
			 8192);
	mr_pool_frag_free_bulk(pool, addrs, 8192);
	free(addrs);
	close_all(pool);
}

SIZE_TEST(a_limit_of_the_program_is_kept)
{
	static const struct mr_pool_config bounds[] = { { .n_pages = 8192 },
							{ .max_pages = 9000 } };

	for (int i = 0; i < 2; i++) {
		struct mr_pool *pool = make_pool(bounds[i]);

		assert_int_equal(open_port(pool, 0, 1), 0);
		assert_int_equal(open_port(pool, 1, 1), -ENOMEM);
		assert_reason_has(&why, "and has 8192");
		close_all(pool);
	}
}

/* And it may still grow by itself, as far as that goes. */
SIZE_TEST(a_limit_of_the_program_may_be_reached_in_two_ways)
{
	const struct mr_pool_config bound = { .max_pages = 20000 };
	struct mr_pool *pool = make_pool(bound);
	uint64_t *addrs = calloc(20001, sizeof(*addrs));

	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_int_equal(open_port(pool, 1, 1), 0);
	assert_in_range(pool_stats(pool).n_pages, 10000, 15000);
	assert_int_equal(mr_pool_frag_alloc_bulk(pool, addrs, 20001),
			 20000);
	mr_pool_frag_free_bulk(pool, addrs, 20000);
	free(addrs);
	close_all(pool);
	/* The caches of four workers would not fit, and the port does. */
	pool = make_pool((struct mr_pool_config){ .max_pages = 12600 });
	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_int_equal(open_port(pool, 1, 8), 0);
	assert_int_equal(pool_stats(pool).n_pages, 12600);
	close_all(pool);
}

SIZE_TEST(growth_names_ports_that_lack_the_new_pages)
{
	struct mr_pool *pool = make_pool((struct mr_pool_config){ 0 });
	struct mr_region *region = mr_pool_region(pool);

	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_int_equal(mr_region_pin(region, "xdp:lan", 8192 * 4096), 0);
	assert_int_equal(mr_region_pin(region, "vfio:nic", UINT64_MAX), 0);
	assert_int_equal(open_port(pool, 1, 1), 0);
	assert_non_null(strstr(line,
			       "frames in the new pages are copied when they "
			       "leave by xdp:lan, which"));
	mr_region_unpin(region, "vfio:nic", UINT64_MAX);
	mr_region_unpin(region, "xdp:lan", 8192 * 4096);
	close_all(pool);
}

/* Pages that lie idle in the depot, low ones, before those that are new. */
SIZE_TEST(port_takes_the_lowest_pages_first)
{
	struct mr_pool *pool = make_pool((struct mr_pool_config){ 0 });
	uint64_t *addrs = calloc(8192, sizeof(*addrs));

	assert_int_equal(mr_cache_create(pool, &caches[0], &why), 0);
	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_int_equal(open_port(pool, 1, 1), 0);
	assert_int_equal(mr_frag_alloc_bulk(caches[0], addrs, 8192, 4096),
			 8192);
	mr_frag_free_bulk(caches[0], addrs, 8192);
	free(addrs);
	assert_true(pool_stats(pool).n_depot > 7000);
	assert_int_equal(open_port(pool, 2, 1), 0);
	assert_true(first_addr < 8192 * 4096);
	close_all(pool);
}

SIZE_TEST(second_pool_of_a_region_follows_the_first_without_a_gap)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config), .os_pages = MR_OS_PAGES_4K
	};
	struct mr_region *region;
	struct mr_pool *first, *second;
	struct mr_cache *cache;
	uint64_t addr, other;

	assert_int_equal(mr_region_create(ctx, &region_config, &region, NULL),
			 0);
	first = make_pool((struct mr_pool_config){ .region = region });
	second = make_pool((struct mr_pool_config){ .region = region });
	assert_int_equal(mr_region_n_contiguous_bytes(region),
			 2 * 8192 * 4096);
	/* A frame finds its pool, whoever frees it. */
	assert_int_equal(mr_cache_create(first, &cache, &why), 0);
	assert_int_equal(mr_pool_frag_alloc_bulk(second, &addr, 1), 1);
	assert_int_equal(mr_pool_frag_alloc_bulk(first, &other, 1), 1);
	mr_frag_free(cache, addr);
	mr_frag_free(cache, other);
	mr_cache_flush(cache);
	assert_int_equal(pool_stats(second).n_free, 8192);
	assert_int_equal(pool_stats(first).free_invalid, 0);
	mr_cache_destroy(cache);
	/* The first can no longer grow, and the second can. */
	assert_int_equal(open_port(second, 0, 1), 0);
	assert_int_equal(open_port(second, 1, 1), 0);
	assert_int_equal(open_port(first, 2, 1), 0);
	assert_int_equal(open_port(first, 3, 1), -ENOMEM);
	assert_reason_has(&why, "and has 8192: no room for");
	assert_reason_has(&why, "another pool of the region begins there");
	mr_port_close(ports[2]);
	ports[2] = NULL;
	close_all(second);
	assert_int_equal(mr_pool_destroy(first, &why), 0);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

/* A region may be smaller than what a pool would reserve. */
SIZE_TEST(pool_of_the_default_size_fits_into_a_small_region)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.os_pages = MR_OS_PAGES_4K,
		.max_bytes = 1 << 30,
	};
	struct mr_region *region;
	struct mr_pool *pool;

	assert_int_equal(mr_region_create(ctx, &region_config, &region, NULL),
			 0);
	pool = make_pool((struct mr_pool_config){ .region = region });
	assert_int_equal(open_port(pool, 0, 1), 0);
	assert_int_equal(open_port(pool, 1, 1), 0);
	close_all(pool);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}
