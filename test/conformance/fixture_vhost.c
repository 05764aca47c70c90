/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost: the driver is a virtio-user port, in a pool of its own. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "far_port.h"

struct far_end {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	/* While the far port waits for answers, somebody polls ours. */
	pthread_t thread;
	struct mr_port *port;
	bool is_over; /* atomic */
};

/* Of the first port and the second. */
static struct far_end ends[2];

static void name_socket(const struct harness *harness, char *path, size_t n)
{
	snprintf(path, n, "/tmp/conformance-vhost-%d-%u.sock", (int)getpid(),
		 harness->number);
}

/* unsealed: the far port's pool may have huge pages. */
static void setup(struct harness *harness)
{
	char path[64];

	name_socket(harness, path, sizeof(path));
	snprintf(harness->spec, sizeof(harness->spec), "vhost:%s,unsealed,queues=%u%s",
		 path, harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on,mtu=9000" : "");
}

static void make_pool(struct far_end *end)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .page_bytes = 16384 };
	struct mr_reason why = { .text = "" };

	if (mr_ctx_create(NULL, &end->ctx, &why) < 0 ||
	    mr_pool_create(end->ctx, &config, &end->pool, &why) < 0)
		fail_msg("%s", why.text);
}

static void open_far(struct harness *harness, struct far_end *end)
{
	struct mr_reason why = { .text = "" };
	char path[64], spec[128];

	name_socket(harness, path, sizeof(path));
	snprintf(spec, sizeof(spec),
		 "virtio-user:%s,ring=%u,queues=%u,csum=off%s", path,
		 harness->wish.ring_entries, harness->wish.n_queues,
		 harness->wish.is_sg ? ",mtu=9000" : "");
	make_pool(end);
	harness->far = far_port_open(end->ctx, end->pool, spec,
				     harness->wish.n_queues, &why);
	if (harness->far == NULL)
		fail_msg("%s: %s", spec, why.text);
}

static void *poll_ours(void *opaque)
{
	struct far_end *end = opaque;

	while (!__atomic_load_n(&end->is_over, __ATOMIC_ACQUIRE)) {
		mr_port_poll(end->port);
		harness_nap();
	}
	return NULL;
}

/* The far port starts its queues again one by one, after it has connected. */
static void wait_for_link(struct harness *harness)
{
	const uint64_t deadline_ns = harness_deadline_ns();
	struct mr_link link = { 0 };

	while (!link.is_up) {
		if (harness_now_ns() > deadline_ns)
			fail_msg("%s: no link", harness->spec);
		mr_port_poll(far_port_get(harness->far));
		harness_nap();
		assert_int_equal(mr_port_link(harness->port, &link), 0);
	}
}

static void connect_far(struct harness *harness)
{
	struct far_end *end = &ends[harness->number];

	end->port = harness->port;
	end->is_over = false;
	assert_int_equal(pthread_create(&end->thread, NULL, poll_ours, end), 0);
	if (harness->far == NULL)
		open_far(harness, end);
	wait_for_link(harness);
	__atomic_store_n(&end->is_over, true, __ATOMIC_RELEASE);
	pthread_join(end->thread, NULL);
}

static void teardown(struct harness *harness)
{
	struct far_end *end = &ends[harness->number];

	if (harness->far == NULL)
		return;
	far_port_close(harness->far);
	harness->far = NULL;
	mr_pool_destroy(end->pool, NULL);
	mr_ctx_destroy(end->ctx);
	*end = (struct far_end){ 0 };
}

static const struct bad_spec bad_specs[] = {
	{ "vhost:", -EINVAL, "name a socket" },
	{ "vhost:/etc/passwd", -ENOTSOCK, "not a socket" },
	{ "vhost:/nowhere/vm.sock", -ENOENT, "cannot listen" },
	{ "vhost:/tmp/x,tso=on,sg=off", -EINVAL, "tso=on" },
	{ "vhost:/tmp/x,ring=64", -EINVAL, "ring" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_vhost = {
	.driver = "vhost",
	.sink_spec = "null:",
	.ring_entries = 512,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_QUEUES | FIXTURE_EXCLUSIVE |
		  FIXTURE_STALLS,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 2000,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.setup = setup,
	.opened = connect_far,
	.teardown = teardown,
	.inject = far_port_inject,
	.collect = far_port_collect,
};
