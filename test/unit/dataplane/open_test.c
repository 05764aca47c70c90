/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/dataplane/open.c and size.c: what opens, and what is refused. */
#include <dirent.h>

#include <millrace/driver.h>

#include "fixture.h"

static const char *const nulls[] = { "null:", "null:", NULL };
static const char *const pairs[] = { "pair:0", "pair:1", NULL };

/* A port that merges segments, on a driver that only this context has. */
static int merge_open(struct mr_port *base, const struct mr_spec *spec,
		      struct mr_reason *reterr_reason)
{
	const int err =
		mr_port_make_queues(base, 1, sizeof(struct mr_rxq),
				    sizeof(struct mr_txq), reterr_reason);

	(void)spec;
	base->info->n_txqs = 0;
	base->info->offloads = MR_OFFLOAD_LRO;
	return err;
}

static void merge_close(struct mr_port *base)
{
	(void)base;
}

static const struct mr_driver merge_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "merge",
	.port_bytes = sizeof(struct mr_port),
	.open = merge_open,
	.close = merge_close,
};

static uint32_t n_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(fds) != NULL)
		n++;
	closedir(fds);
	return n;
}

PLANE_TEST(everything_that_was_opened_can_be_used)
{
	const struct mr_dataplane_config config = config_of(pairs);
	struct mr_pool_stats pool = { .size = sizeof(pool) };

	open_plane(&config);
	assert_int_equal(dp->n_ports, 2);
	assert_int_equal(dp->n_workers, 1);
	assert_int_equal(dp->has_meta, 0);
	assert_ptr_equal(dp->ctx, ctx);
	assert_int_equal(mr_pool_stats(dp->pool, &pool), 0);
	assert_in_range(pool.n_pages, dp->n_pages, UINT64_MAX);
	for (uint32_t p = 0; p < 2; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(dp->ports[p], &info);
		assert_string_equal(info.name, pairs[p]);
	}
	assert_int_equal(mr_workers_get(dp->workers, 0)->n_rxqs, 2);
	assert_null(mr_workers_get(dp->workers, 1));
}

PLANE_TEST(a_context_is_made_unless_there_is_one)
{
	struct mr_dataplane_config config = config_of(nulls);
	struct mr_reason why;

	config.ctx = NULL;
	assert_int_equal(mr_dataplane_open(&config, &dp, &why), 0);
	assert_ptr_not_equal(dp->ctx, ctx);
	assert_int_equal(mr_dataplane_close(dp, &why), 0);
	dp = NULL;
	assert_int_equal(allocator.n_calls, 1); /* the context itself */
	assert_int_equal(mr_dataplane_close(NULL, NULL), 0);
}

PLANE_TEST(there_is_a_worker_for_each_queue_of_the_port_with_the_most)
{
	static const char *const specs[] = { "null:", "null:queues=2", NULL };
	struct mr_dataplane_config config = config_of(specs);

	need_two_cores();
	config.n_workers = 0;
	open_plane(&config);
	assert_int_equal(dp->n_workers, 2);
	close_plane();
	config.max_workers = 1;
	open_plane(&config);
	assert_int_equal(dp->n_workers, 1);
}

static uint32_t n_pages_of(const struct mr_dataplane_config *config)
{
	uint32_t n;

	open_plane(config);
	n = dp->n_pages;
	close_plane();
	return n;
}

PLANE_TEST(the_pool_has_the_pages_that_ports_need)
{
	struct mr_dataplane_config config = config_of(nulls);
	const uint32_t n_pages = n_pages_of(&config);
	struct mr_reason why;

	config.kept_pages = 100;
	assert_int_equal(n_pages_of(&config), n_pages + 100);
	/* As it was told to be, down to what is needed; the test's own cache
	 * needs more. */
	config.n_pages = n_pages + 100;
	assert_int_equal(mr_dataplane_open(&config, &dp, &why), 0);
	assert_int_equal(dp->n_pages, n_pages + 100);
	assert_int_equal(mr_dataplane_close(dp, &why), 0);
	dp = NULL;
	config.n_pages--;
	assert_int_equal(mr_dataplane_open(&config, &dp, &why), -EINVAL);
	assert_reason_has(&why, "is too small");
}

PLANE_TEST(a_pool_of_its_own_size_grows_for_more)
{
	const struct mr_dataplane_config config = config_of(pairs);
	struct mr_port_config port = { .size = sizeof(port) };
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	struct mr_port *more;

	open_plane(&config); /* and two ports and a cache of the test's */
	port.pool = dp->pool;
	assert_int_equal(
		mr_port_open(ctx, "pair:2,ring=65536", &port, &more, NULL), 0);
	mr_pool_stats(dp->pool, &pool);
	assert_in_range(pool.n_pages, 65536, UINT64_MAX);
	mr_port_close(more);
}

PLANE_TEST(a_port_of_a_driver_of_the_context_opens)
{
	static const char *const specs[] = { "merge:x", NULL };
	struct mr_dataplane_config config = config_of(specs);
	struct mr_reason why;

	assert_int_equal(mr_ctx_add_driver(ctx, &merge_driver, NULL), 0);
	assert_int_equal(mr_dataplane_open(&config, &dp, &why), -EINVAL);
	assert_reason_has(&why, "merge:x merges received segments");
	config.takes_meta = 1;
	open_plane(&config);
	assert_int_equal(dp->has_meta, 1);
}

static void set_size(struct mr_dataplane_config *c)
{
	c->size = 0;
}

static void set_large_size(struct mr_dataplane_config *c)
{
	c->size += 8;
}

static void set_short_size(struct mr_dataplane_config *c)
{
	c->size = 8; /* ends before specs */
}

static void set_no_specs(struct mr_dataplane_config *c)
{
	c->specs = NULL;
	c->n_specs = 1;
}

static void set_empty_specs(struct mr_dataplane_config *c)
{
	c->specs += 2; /* NULL */
}

static void set_hole(struct mr_dataplane_config *c)
{
	c->n_specs = 3;
}

static void set_many_ports(struct mr_dataplane_config *c)
{
	static const char *many[65];

	for (uint32_t p = 0; p < 65; p++)
		many[p] = "null:";
	c->specs = many;
	c->n_specs = 65;
}

static void set_workers(struct mr_dataplane_config *c)
{
	c->n_workers = MR_WORKERS_MAX + 1;
}

static void set_workers_without_cores(struct mr_dataplane_config *c)
{
	c->n_workers = MR_WORKERS_MAX;
}

static void set_core(struct mr_dataplane_config *c)
{
	static const uint32_t none = 100000;

	c->cores = &none;
	c->n_cores = 1;
}

static void set_no_cores(struct mr_dataplane_config *c)
{
	c->n_cores = 1;
}

static void set_destination(struct mr_dataplane_config *c)
{
	static const uint32_t sends_to[] = { 1, 2 };

	c->sends_to = sends_to;
}

static void set_pages(struct mr_dataplane_config *c)
{
	c->n_pages = 5;
}

static void set_kept_pages(struct mr_dataplane_config *c)
{
	c->kept_pages = UINT32_MAX;
}

static void set_page_bytes(struct mr_dataplane_config *c)
{
	c->page_bytes = 3000;
}

static void set_idle(struct mr_dataplane_config *c)
{
	c->idle = (enum mr_idle_mode)9;
}

static void set_driver(struct mr_dataplane_config *c)
{
	static const char *const specs[] = { "null:", "nosuch:x", NULL };

	c->specs = specs;
}

static void set_option(struct mr_dataplane_config *c)
{
	static const char *const specs[] = { "null:", "pair:x,nosuch=1", NULL };

	c->specs = specs;
}

static void set_third_end(struct mr_dataplane_config *c)
{
	static const char *const specs[] = { "pair:x", "pair:x", "pair:x",
					     NULL };

	c->specs = specs;
}

static const struct refusal {
	void (*set)(struct mr_dataplane_config *config);
	int err;
	const char *words;
} refusals[] = {
	{ set_size, -EINVAL, "mr_dataplane_config.size is 0" },
	{ set_large_size, -EINVAL, "mr_dataplane_config.size is" },
	{ set_short_size, -EINVAL, "no ports: " },
	{ set_no_specs, -EINVAL, "such as xdp:eth0" },
	{ set_empty_specs, -EINVAL, "no ports: " },
	{ set_hole, -EINVAL, "specs[2] is NULL, but n_specs is 3" },
	{ set_many_ports, -EINVAL, "more than 64 ports" },
	{ set_workers, -EINVAL, "65 workers: at most 64 are supported" },
	{ set_workers_without_cores, -EINVAL, "64 workers need 64 cores" },
	{ set_core, -EINVAL, "core 100000 does not exist" },
	{ set_no_cores, -EINVAL, "set both cores and n_cores" },
	{ set_destination, -EINVAL, "sends_to[1] is 2" },
	{ set_pages, -EINVAL, "a pool of 5 pages is too small" },
	{ set_kept_pages, -EINVAL, "pages" },
	{ set_page_bytes, -EINVAL, "3000" },
	{ set_idle, -EINVAL, "no such idle mode: 9" },
	{ set_driver, -ENODEV, "nosuch" },
	{ set_option, -EINVAL, "pair:x: " },
	{ set_third_end, -EBUSY, "pair:x" },
};

/* Nothing is left: no memory, no fd, no end of a pair. */
PLANE_TEST(what_cannot_be_opened_is_refused_with_a_reason)
{
	const int32_t n_out = allocator.n_out;
	const uint32_t n_fds_before = n_fds();

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct mr_dataplane_config config = config_of(pairs);
		struct mr_reason why = { "" };

		refusals[i].set(&config);
		assert_int_equal(mr_dataplane_open(&config, &dp, &why),
				 refusals[i].err);
		assert_reason_has(&why, refusals[i].words);
		assert_int_equal(allocator.n_out, n_out);
		assert_int_equal(n_fds(), n_fds_before);
	}
}

PLANE_TEST(no_configuration_has_no_ports)
{
	struct mr_reason why;

	assert_int_equal(mr_dataplane_open(NULL, &dp, &why), -EINVAL);
	assert_reason_has(&why, "no ports");
}

/* Two workers, but one rx and one tx queue. */
PLANE_TEST(a_worker_without_a_queue_is_refused)
{
	static const char *const specs[] = { "pair:0", NULL };
	struct mr_dataplane_config config = config_of(specs);
	struct mr_reason why;

	need_two_cores();
	config.n_workers = 2;
	assert_int_equal(mr_dataplane_open(&config, &dp, &why), -EINVAL);
	assert_reason_has(&why, "worker 1 of 2 would have no queue; use fewer");
	config.may_idle = 1;
	open_plane(&config);
}

/* Whichever allocation fails: memory, fds and ports are given back. */
PLANE_TEST(opening_without_memory_leaves_nothing_open)
{
	const struct mr_dataplane_config config = config_of(pairs);
	const int32_t n_out = allocator.n_out;
	const uint32_t n_fds_before = n_fds();
	const uint32_t n_before = allocator.n_calls;
	struct mr_reason why = { "" };
	uint32_t n = 0;
	int err;

	do {
		allocator.n_calls = n_before;
		allocator.fail_at = n_before + ++n;
		err = mr_dataplane_open(&config, &dp, &why);
		if (err == 0)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_true(why.text[0] != '\0');
		assert_int_equal(allocator.n_out, n_out);
		assert_int_equal(n_fds(), n_fds_before);
	} while (n < 1000);
	assert_in_range(n, 10, 999);
	allocator.fail_at = 0;
	assert_int_equal(mr_dataplane_close(dp, &why), 0);
	dp = NULL;
}

/* Of the caller, who may still use the pool then. */
PLANE_TEST(closing_waits_for_the_frames_of_the_program)
{
	const struct mr_dataplane_config config = config_of(nulls);
	struct mr_frame frames[3];
	struct mr_reason why;

	open_plane(&config);
	take_frames(cache, frames, 3);
	assert_int_equal(mr_dataplane_close(dp, &why), -EBUSY);
	assert_reason_has(&why, "3");
	assert_int_equal(dp->n_ports, 0);
	assert_null(dp->workers);
	mr_frame_free_bulk(cache, frames, 3);
}

/* As by a signal, and to look at what is left. */
PLANE_TEST(what_has_no_ports_can_be_stopped_and_printed)
{
	const struct mr_dataplane_config config = config_of(nulls);
	char text[8192];

	open_plane(&config);
	mr_dataplane_close_ports(dp);
	mr_dataplane_stop(dp);
	mr_dataplane_drain(dp, 0, NULL, NULL);
	assert_in_range(mr_dataplane_text(dp, text, sizeof(text)), 1,
			sizeof(text) - 1);
	assert_int_equal(strncmp(text, "pool n_pages ", 13), 0);
	mr_dataplane_json(dp, text, sizeof(text));
	assert_non_null(strstr(text, "\"ports\": [], \"workers\": [], "));
}
