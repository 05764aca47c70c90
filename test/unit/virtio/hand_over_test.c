/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/virtio/virtio_user_hand_over.c: the back end is a vhost
 * port, which a thread polls. test/netns has whole programs under traffic.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "support/heir.h"
#include "virtio_user.h"

enum {
	N = 20,
	N_ROUNDS = 5,
	RING = 64,
	MAX_PAGES = 65536,
	DEADLINE_MS = 20000
};

extern const struct mr_driver mr_driver_virtio_user;

/* One side: a pool, and the first queue of a port. */
struct side {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct mr_port *port;
	uint32_t n_sent, n_got; /* frames, which are numbered */
};

static struct test_allocator allocator; /* of the port with the data plane */
static struct side near, far;
static struct mr_dataplane *dp;
static char path[64], spec[160];
static pthread_t thread;
static bool is_over; /* atomic */

/* ---- both sides ---- */

static void *poll_far(void *opaque)
{
	const struct timespec nap = { .tv_nsec = 200000 };

	(void)opaque;
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		mr_port_poll(far.port);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static void open_far(bool is_client)
{
	const struct mr_pool_config config = { .size = sizeof(config) };
	const struct mr_port_config port = { .size = sizeof(port) };
	struct mr_port_config own = port;
	char far_spec[160];

	snprintf(path, sizeof(path), "/tmp/hand-over-%d.sock", (int)getpid());
	snprintf(far_spec, sizeof(far_spec),
		 "vhost:%s,unsealed,sg=on,mtu=9000%s", path,
		 is_client ? ",client=on" : "");
	far = (struct side){ 0 };
	assert_int_equal(mr_ctx_create(NULL, &far.ctx, NULL), 0);
	assert_int_equal(mr_pool_create(far.ctx, &config, &far.pool, NULL), 0);
	assert_int_equal(mr_cache_create(far.pool, &far.cache, NULL), 0);
	own.pool = far.pool;
	assert_int_equal(
		mr_port_open(far.ctx, far_spec, &own, &far.port, NULL), 0);
	is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, poll_far, NULL), 0);
}

static void close_far(void)
{
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	mr_port_close(far.port);
	mr_cache_destroy(far.cache);
	assert_int_equal(mr_pool_destroy(far.pool, NULL), 0);
	mr_ctx_destroy(far.ctx);
}

/* The data plane is the near side now. */
static void use(struct mr_dataplane *plane, struct mr_ctx *ctx)
{
	dp = plane;
	near.ctx = ctx;
	near.pool = dp->pool;
	near.port = dp->ports[0];
	assert_int_equal(mr_cache_create(near.pool, &near.cache, NULL), 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wait_for_link(struct mr_port *port)
{
	const uint64_t end_ms = now_ms() + test_limit_ms(DEADLINE_MS);
	struct mr_link link = { 0 };

	while (!link.is_up) {
		assert_true(now_ms() < end_ms);
		if (port == near.port)
			mr_port_poll(port);
		assert_int_equal(mr_port_link(port, &link), 0);
	}
}

static uint32_t *number_at(const struct side *side, uint64_t addr)
{
	return (uint32_t *)((uint8_t *)mr_region_base(
				    mr_pool_region(side->pool)) +
			    addr);
}

/* Some need several buffers at the other side. */
static void send_frames(struct side *side, bool has_long)
{
	for (uint32_t i = 0; i < N; i++, side->n_sent++) {
		const uint32_t n = has_long && i % 3 == 0 ? 3 : 1;
		struct mr_frame frame[3];
		uint64_t addrs[3];

		assert_int_equal(
			mr_frag_alloc_bulk(side->cache, addrs, n, 2048), n);
		for (uint32_t e = 0; e < n; e++)
			frame[e] = (struct mr_frame){
				addrs[e] + 256, 1400,
				e + 1 < n ? MR_FRAME_MORE : 0
			};
		*number_at(side, frame[0].addr) = side->n_sent;
		assert_int_equal(mr_tx_burst(mr_port_txq(side->port, 0),
					     side->cache, frame, n),
				 n);
	}
}

/* All that the other side has sent, in order. */
static void receive_frames(struct side *side, const struct side *from)
{
	const uint64_t end_ms = now_ms() + test_limit_ms(DEADLINE_MS);
	struct mr_frame frames[32];

	while (side->n_got < from->n_sent) {
		const uint32_t n = mr_rx_burst(mr_port_rxq(side->port, 0),
					       side->cache, frames, 32);

		assert_true(now_ms() < end_ms);
		for (uint32_t i = 0; i < n;
		     i += mr_frame_n_entries(frames + i))
			assert_int_equal(*number_at(side, frames[i].addr),
					 side->n_got++);
		mr_frame_free_bulk(side->cache, frames, n);
	}
}

static void open_near(const char *options)
{
	const char *const specs[] = { spec, NULL };
	const struct mr_dataplane_config config = { .size = sizeof(config),
						    .specs = specs,
						    .n_workers = 1,
						    .page_bytes = 4096 };
	struct mr_dataplane_config own = config;
	struct mr_dataplane *plane;
	struct mr_reason why = { "" };

	lie = NULL;
	open_far(strstr(options, "server") != NULL);
	snprintf(spec, sizeof(spec), "liar:%s,ring=%d,%s", path, RING, options);
	near = (struct side){ 0 };
	own.ctx = liar_ctx(&allocator, &mr_driver_virtio_user);
	if (mr_dataplane_open(&own, &plane, &why) < 0)
		fail_msg("%s", why.text);
	use(plane, own.ctx);
	wait_for_link(near.port);
	wait_for_link(far.port);
}

static void close_near(void)
{
	mr_cache_destroy(near.cache);
	close_plane(dp, near.ctx); /* which finds all pages */
	close_far();
	assert_int_equal(allocator.n_out, 0);
}

/* To an heir with the same options. Returns its error. */
static int hand_over(struct mr_reason *why)
{
	const char *const specs[] = { spec, NULL };
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .specs = specs,
					      .n_workers = 1,
					      .page_bytes = 4096 };
	struct mr_dataplane *const old = dp;
	struct mr_ctx *const old_ctx = near.ctx;
	struct mr_reason old_why = { "" };
	struct heir heir;

	config.ctx = liar_ctx(&allocator, &mr_driver_virtio_user);
	if (heir_hand_over(old, &config, &heir, &old_why) < 0) {
		close_plane(heir.dp, config.ctx);
		*why = heir.why;
		return heir.err;
	}
	mr_cache_destroy(near.cache);
	use(heir.dp, config.ctx);
	close_plane(old, old_ctx);
	return 0;
}

/* ---- tests ---- */

static const char *const kinds[] = {
	"packed=off,in-order=off", "packed=off",
	"packed=on,in-order=off",  "packed=on",
	"packed=off,sg=on,mtu=9000", "packed=on,sg=on,mtu=9000",
	"packed=on,sg=on,mtu=9000,in-order=off,server=on",
};

TEST(rings_go_on_where_they_were)
{
	for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const bool has_long = strstr(kinds[k], "sg=on") != NULL;
		struct mr_reason why = { "" };

		open_near(kinds[k]);
		for (uint32_t i = 0; i < N_ROUNDS; i++) {
			send_frames(&near, has_long);
			send_frames(&far, has_long);
			if (hand_over(&why) < 0)
				fail_msg("%s: %s", kinds[k], why.text);
			receive_frames(&far, &near);
			receive_frames(&near, &far);
		}
		close_near();
	}
}

TEST(a_back_end_that_is_away_is_found_by_the_heir)
{
	struct mr_link link = { .is_up = true };
	struct mr_reason why = { "" };

	open_near("packed=on");
	send_frames(&near, false);
	close_far();
	while (link.is_up) {
		mr_port_poll(near.port);
		assert_int_equal(mr_port_link(near.port, &link), 0);
	}
	assert_int_equal(hand_over(&why), 0);
	open_far(false);
	wait_for_link(near.port);
	wait_for_link(far.port);
	near.n_sent = 0; /* those are lost, and counted */
	send_frames(&near, false);
	receive_frames(&far, &near);
	close_near();
}

/* All pages that are free, in addrs[]. */
static uint32_t take_all(uint64_t *addrs, uint32_t n)
{
	uint32_t n_taken = 0;

	while (n_taken < n && mr_frag_alloc_bulk(near.cache, addrs + n_taken, 1,
						 2048) == 1)
		n_taken++;
	return n_taken;
}

TEST(the_back_end_maps_what_the_heir_adds)
{
	static uint64_t addrs[MAX_PAGES];
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_frame frame = { .len = 60 };
	struct mr_reason why = { "" };
	struct mr_port *other;
	uint32_t n;

	open_near("packed=off");
	assert_int_equal(hand_over(&why), 0);
	n = take_all(addrs, MAX_PAGES);
	config.pool = near.pool; /* which grows for a port */
	if (mr_port_open(near.ctx, "pair:a,ring=4096", &config, &other, &why) <
	    0)
		fail_msg("%s", why.text);
	assert_int_equal(take_all(addrs + n, 1), 1); /* a new one */
	frame.addr = addrs[n] + 256;
	*number_at(&near, frame.addr) = near.n_sent++;
	assert_int_equal(mr_tx_burst(mr_port_txq(near.port, 0), near.cache,
				     &frame, 1),
			 1);
	receive_frames(&far, &near);
	mr_frag_free_bulk(near.cache, addrs, n);
	mr_port_close(other);
	close_near();
}

TEST(the_kernel_as_back_end_is_refused)
{
	struct mr_reason why = { "" };

	open_near("packed=off");
	((struct virtio_port *)near.port)->user->n_devices = 1; /* as if */
	assert_int_equal(hand_over(&why), -ECANCELED);
	assert_reason_has(&why, "the kernel's device serves the process");
	((struct virtio_port *)near.port)->user->n_devices = 0;
	close_near();
}

struct refused {
	struct lie lie;
	const char *text; /* in the reason */
};

/* Each lie is refused by name, and the old process goes on. Closes the port. */
static void check_lies(const struct refused *lies, uint32_t n)
{
	struct mr_reason why = { "" };

	for (uint32_t i = 0; i < n; i++) {
		send_frames(&near, true);
		send_frames(&far, true);
		lie = &lies[i].lie;
		if (hand_over(&why) == 0 ||
		    strstr(why.text, lies[i].text) == NULL)
			fail_msg("%s: '%s'", lie->name, why.text);
		lie = NULL;
		receive_frames(&far, &near);
		receive_frames(&near, &far);
	}
	send_frames(&near, true);
	send_frames(&far, true);
	receive_frames(&far, &near);
	receive_frames(&near, &far);
	close_near();
}

TEST(damaged_queues_are_refused)
{
	/* head, tail, n_skip, state, is_started, n_avail and n_used */
	static const uint32_t far_ahead[] = { 70000, 0, 0, 0, 1, 0 };
	static const uint32_t one_more[] = { 1, 0, 0, 0, 1, 0 };
	static const uint32_t skips[] = { 0, 0, RING + 1, 0, 1, 0 };
	static const uint32_t gone[] = { 0, 0, 0, 2, 1, 0 };
	static const uint64_t outside[RING] = { UINT64_MAX & ~0xff };
	static const uint64_t inside_a_page[RING] = { 64 << 8 };
	/* 7 of 20 frames have three buffers. */
	static uint8_t no_bufs[34], no_chains[34];
	const struct refused lies[] = {
		{ { "queue/1", far_ahead, 24, 0, false }, "a tx queue" },
		{ { "queue/1", one_more, 24, 0, false }, "a tx queue" },
		{ { "queue/1", gone, 24, 0, false }, "a queue" },
		{ { "queue/0", skips, 24, 0, false }, "an rx queue" },
		{ { "queue/0", skips, 16, 0, false }, "16 bytes" },
		{ { "posted/0", outside, 8, 0, false }, "1 references" },
		{ { "posted/0", outside, 8 * RING, 0, false }, "a reference" },
		{ { "posted/0", inside_a_page, 8 * RING, 0, false },
		  "an rx buffer" },
		{ { "posted/1", outside, 8, 0, false }, "references" },
		{ { "chains/1", no_bufs, 33, 0, false }, "a tx queue" },
		{ { "chains/1", no_bufs, 34, 0, false }, "34 references" },
		{ { "chains/1", no_chains, 34, 0, false }, "a tx queue" },
	};

	memset(no_chains, 64, sizeof(no_chains)); /* each has a buffer */
	open_near("packed=off,sg=on,mtu=9000");
	check_lies(lies, sizeof(lies) / sizeof(lies[0]));
}

TEST(other_files_are_refused)
{
	/* Packed rings, long frames, and one that needs a register. */
	static const uint64_t image[4] = { UINT64_C(1) << 63 | UINT64_C(1) << 34 |
					   UINT64_C(1) << 32 | 1 << 15 };
	static const uint64_t link[4] = { 0 };  /* without an MTU */
	const int loose = memfd_create("loose", MFD_CLOEXEC);
	const int blocking = open("/dev/zero", O_RDWR | O_CLOEXEC);
	const struct refused lies[] = {
		{ { "rings", NULL, 0, loose, true }, "memory of the rings" },
		{ { "rings", NULL, 0, blocking, true }, "memory of the rings" },
		{ { "kick/0", NULL, 0, blocking, true }, "an eventfd" },
		{ { "irq/1", NULL, 0, blocking, true }, "an eventfd" },
		{ { "listener", image, 8, 0, true }, "a listener" },
		{ { "image", image, 32, 0, true }, "needs a restart" },
		{ { "link", link, 32, 0, false }, "the link" },
	};

	open_near("packed=on,sg=on,mtu=9000");
	assert_int_equal(ftruncate(loose, 1 << 20), 0);
	check_lies(lies, sizeof(lies) / sizeof(lies[0]));
	close(loose);
	close(blocking);
}
