/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/port.c, with a driver of their own. */
#include "support/pool_unit.h"

/* A driver that does what the test says, and says what was asked of it. */
struct fake_port {
	struct mr_port base;
	struct mr_rxq rxq;
	struct mr_rxq *rxqs[1];
	uint8_t own[100];
};

static struct {
	int need_err, open_err;
	uint32_t n_need;
	uint32_t n_opened, n_closed, n_polled;
	struct mr_port head; /* as open() found it */
	char device[64];
	bool was_zeroed;
} fake;

static int fake_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		     uint32_t page_bytes, uint32_t *ret_n_pages,
		     struct mr_reason *reterr_reason)
{
	(void)ctx;
	(void)page_bytes;
	(void)spec;
	if (fake.need_err < 0)
		return mr_fail(reterr_reason, fake.need_err, "no need");
	*ret_n_pages = fake.n_need;
	return 0;
}

static int fake_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	struct fake_port *port = (struct fake_port *)base;

	fake.head = *base;
	fake.was_zeroed = true;
	for (size_t i = 0; i < sizeof(port->own); i++)
		fake.was_zeroed &= port->own[i] == 0;
	snprintf(fake.device, sizeof(fake.device), "%s", mr_spec_device(spec));
	if (fake.open_err < 0)
		return mr_fail(reterr_reason, fake.open_err, "no luck");
	fake.n_opened++;
	port->rxqs[0] = &port->rxq;
	base->rxqs = port->rxqs;
	base->info->n_rxqs = 1;
	snprintf(base->info->mode, sizeof(base->info->mode), "fake");
	return 0;
}

static void fake_close(struct mr_port *port)
{
	(void)port;
	fake.n_closed++;
}

static uint32_t fake_poll(struct mr_port *port)
{
	(void)port;
	return (int)++fake.n_polled;
}

static int fake_link(const struct mr_port *port, struct mr_link *ret_link)
{
	(void)port;
	*ret_link = (struct mr_link){ .is_up = 1, .speed_mbps = 10 };
	return 0;
}

static uint32_t fake_drops(const struct mr_port *port,
			   struct mr_named_count *ret_counts, uint32_t n)
{
	(void)port;
	if (n > 0)
		ret_counts[0] = (struct mr_named_count){ "lost", 5 };
	return 2;
}

static const char *const fake_keys[] = { "key", NULL };

static const struct mr_driver fake_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "fake",
	.keys = fake_keys,
	.port_bytes = sizeof(struct fake_port),
	.need = fake_need,
	.open = fake_open,
	.close = fake_close,
	.poll = fake_poll,
	.link = fake_link,
	.device_drops = fake_drops,
};

static const struct mr_driver bare_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "bare",
	.port_bytes = sizeof(struct fake_port),
	.need = fake_need,
	.open = fake_open,
	.close = fake_close,
};

/* Queues of its own, on lines of their own. */
struct made_rxq {
	_Alignas(64) struct mr_rxq base;
	uint8_t own[100];
};

struct made_txq {
	struct mr_txq base;
	uint64_t own[3];
};

static int made_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	int err = mr_port_make_queues(base, 3, sizeof(struct made_rxq),
				      sizeof(struct made_txq), reterr_reason);

	(void)spec;
	return err == 0 ? fake.open_err : err;
}

static const struct mr_driver made_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "made",
	.port_bytes = sizeof(struct mr_port),
	.need = fake_need,
	.open = made_open,
	.close = fake_close,
};

static struct pool_fixture f;
static struct mr_port_config config;
static struct mr_port *port;
static struct mr_reason why;

static int set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fixture_open(&f, 1024, 4096);
	assert_int_equal(mr_ctx_add_driver(f.ctx, &fake_driver, NULL), 0);
	assert_int_equal(mr_ctx_add_driver(f.ctx, &bare_driver, NULL), 0);
	assert_int_equal(mr_ctx_add_driver(f.ctx, &made_driver, NULL), 0);
	config = (struct mr_port_config){ .size = sizeof(config),
					  .pool = f.pool };
	return 0;
}

/* Nothing is left. */
static int tear_down(void **state)
{
	(void)state;
	fixture_close(&f);
	return 0;
}

#define PORT_TEST(name) TEST_WITH(set_up, tear_down, name)

static int open_port(const char *spec)
{
	return mr_port_open(f.ctx, spec, &config, &port, &why);
}

PORT_TEST(open_gives_the_driver_its_head)
{
	struct mr_port_info info = { .size = sizeof(info) };

	config.n_workers = 2;
	fake.n_need = 100;
	assert_int_equal(open_port("fake:dev,key=1"), 0);
	assert_string_equal(fake.device, "dev");
	assert_true(fake.was_zeroed);
	assert_ptr_equal(fake.head.ctx, f.ctx);
	assert_ptr_equal(fake.head.pool, f.pool);
	assert_ptr_equal(fake.head.region, f.region);
	assert_ptr_equal(fake.head.base, f.base);
	assert_int_equal(fake.head.page_bytes, 4096);
	assert_int_equal(fake.head.headroom_bytes, 128);
	assert_int_equal(fake.head.n_workers, 2);
	assert_int_equal(fake.head.fd, -1);
	assert_int_equal(fake.head.n_committed_pages, 100 + 2 * MR_BURST_MAX);
	assert_int_equal(pool_stats(f.pool).n_committed,
			 128 + 100 + 2 * MR_BURST_MAX);

	assert_int_equal(mr_port_info(port, &info), 0);
	assert_string_equal(info.name, "fake:dev");
	assert_int_equal(info.n_rxqs, 1);
	info.size = 0;
	assert_int_equal(mr_port_info(port, &info), -EINVAL);
	assert_non_null(mr_port_rxq(port, 0));
	assert_null(mr_port_rxq(port, 1));
	assert_null(mr_port_txq(port, 0));
	mr_port_close(port);
	assert_int_equal(fake.n_closed, 1);
	assert_int_equal(pool_stats(f.pool).n_committed, 128);
	mr_port_close(NULL);
}

PORT_TEST(failure_is_undone_and_has_its_reason)
{
	static const struct {
		const char *spec;
		int need_err, open_err;
		uint32_t n_need;
		int err;
		const char *words;
	} cases[] = {
		{ "", 0, 0, 0, -EINVAL, "empty" },
		{ "nosuch:x", 0, 0, 0, -ENODEV,
		  "no driver 'nosuch'; this build has:" },
		{ "fake:x,kay=1", 0, 0, 0, -EINVAL, "no option 'kay'" },
		{ "bare:x,key=1", 0, 0, 0, -EINVAL, "it has: none" },
		{ "fake:x", -ENODEV, 0, 0, -ENODEV, "no need" },
		{ "fake:x", 0, -EPERM, 0, -EPERM, "no luck" },
		{ "fake:x", 0, 0, 641, -ENOMEM,
		  "fake:x needs 897 pages for its rings and a burst per "
		  "worker, and other ports and caches of pool hold 128: "
		  "the pool needs at least 1025 pages and has 1024" },
		{ "fake:x", 0, 0, UINT32_MAX, -ENOMEM,
		  "the pool needs at least" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int32_t n_out = f.allocator.n_out;

		port = (struct mr_port *)1;
		fake.need_err = cases[i].need_err;
		fake.open_err = cases[i].open_err;
		fake.n_need = cases[i].n_need;
		assert_int_equal(open_port(cases[i].spec), cases[i].err);
		assert_reason_has(&why, cases[i].words);
		assert_ptr_equal(port, (struct mr_port *)1);
		assert_int_equal(f.allocator.n_out, n_out);
		assert_int_equal(pool_stats(f.pool).n_committed, 128);
		assert_int_equal(f.pool->n_ports, 0);
	}
	assert_int_equal(fake.n_closed, 0); /* open() undoes itself */
}

PORT_TEST(wrong_config_is_refused)
{
	assert_int_equal(mr_port_open(f.ctx, "fake:x", NULL, &port, &why),
			 -EINVAL);
	assert_reason_has(&why, "a port needs a pool");
	config.pool = NULL;
	assert_int_equal(open_port("fake:x"), -EINVAL);
	config.pool = f.pool;
	config.size = 0;
	assert_int_equal(open_port("fake:x"), -EINVAL);
	assert_reason_has(&why, "mr_port_config.size is 0");
	config.size = sizeof(config);
	/* 2^24 workers times a burst of 256 would be 0 pages in 32 bits. */
	config.n_workers = 1u << 24;
	assert_int_equal(open_port("fake:x"), -EINVAL);
	assert_reason_has(&why, "n_workers is 16777216, at most 4096");
	config.n_workers = 1;
	f.allocator.fail_at = f.allocator.n_calls + 1;
	assert_int_equal(open_port("fake:x"), -ENOMEM);
	assert_reason_has(&why, "no memory for a port");
	assert_int_equal(pool_stats(f.pool).n_committed, 128);
}

PORT_TEST(queues_are_arrays_of_the_drivers_structs)
{
	struct mr_port_info info = { .size = sizeof(info) };

	assert_int_equal(open_port("made:x"), 0);
	mr_port_info(port, &info);
	assert_int_equal(info.n_rxqs, 3);
	assert_int_equal(info.n_txqs, 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct made_rxq *rxq =
			(struct made_rxq *)mr_port_rxq(port, 0) + i;
		struct made_txq *txq =
			(struct made_txq *)mr_port_txq(port, 0) + i;

		assert_ptr_equal(mr_port_rxq(port, i), rxq);
		assert_ptr_equal(mr_port_txq(port, i), txq);
		assert_int_equal((uintptr_t)rxq % 64, 0);
		assert_ptr_equal(rxq->base.queue.port, port);
		assert_ptr_equal(txq->base.queue.port, port);
		assert_int_equal(rxq->base.queue.idx, i);
		assert_int_equal(txq->base.queue.idx, i);
		assert_int_equal(rxq->base.queue.fd, -1);
		assert_int_equal(txq->base.queue.fd, -1);
		assert_null(txq->base.queue.arm);
		/* Each byte is its own: none is in another's way. */
		for (size_t b = 0; b < sizeof(rxq->own); b++)
			assert_int_equal(rxq->own[b], 0);
		memset(rxq->own, 0xff, sizeof(rxq->own));
		assert_int_equal(txq->own[2], 0);
		memset(txq->own, 0xff, sizeof(txq->own));
	}
	mr_port_close(port);
}

PORT_TEST(queues_of_a_failed_open_are_given_back)
{
	const int32_t n_out = f.allocator.n_out;

	fake.open_err = -EPERM;
	assert_int_equal(open_port("made:x"), -EPERM);
	assert_int_equal(f.allocator.n_out, n_out);
	f.allocator.fail_at = f.allocator.n_calls + 2; /* behind the port's */
	assert_int_equal(open_port("made:x"), -ENOMEM);
	assert_reason_has(&why, "made:x: no memory for 3 queues");
	assert_int_equal(f.allocator.n_out, n_out);
}

PORT_TEST(missing_hooks_have_a_default)
{
	struct mr_named_count counts[2] = { { "untouched", 1 } };
	struct mr_link link = { 0 };

	assert_int_equal(open_port("fake:x"), 0);
	assert_int_equal(mr_port_poll(port), 1);
	assert_int_equal(mr_port_poll(port), 2);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.speed_mbps, 10);
	assert_int_equal(mr_port_device_drops(port, NULL, 0), 2);
	assert_int_equal(mr_port_device_drops(port, counts, 2), 2);
	assert_string_equal(counts[0].name, "lost");
	assert_int_equal(mr_port_fd(port), -1);
	mr_port_close(port);

	assert_int_equal(open_port("bare:x"), 0);
	assert_int_equal(mr_port_poll(port), 0);
	assert_int_equal(mr_port_link(port, &link), -ENOTSUP);
	assert_int_equal(mr_port_device_drops(port, counts, 2), 0);
	mr_port_close(port);
}

PORT_TEST(long_names_are_cut_off)
{
	struct mr_port_info info = { .size = sizeof(info) };
	char spec[200] = "fake:";

	memset(spec + 5, 'n', 150);
	assert_int_equal(open_port(spec), 0);
	mr_port_info(port, &info);
	assert_int_equal(strlen(info.name), sizeof(info.name) - 1);
	mr_port_close(port);
}
