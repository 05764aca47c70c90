/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio-user: the back end is a vhost port, in a pool of its own. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "far_port.h"

struct far_end {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	/* Answers our port's requests, while that waits for them. */
	pthread_t thread;
	struct mr_port *port;
	bool is_over; /* atomic */
};

/* Of the first port and the second. */
static struct far_end ends[2];

/* Our port listens, and the back end connects. */
static bool is_server(const struct harness *harness)
{
	return harness->fixture == &fixture_virtio_user_server;
}

static void name_socket(const struct harness *harness, char *path, size_t n)
{
	snprintf(path, n, "/tmp/conformance-user-%d-%u.sock", (int)getpid(),
		 harness->number);
}

static void *poll_far(void *opaque)
{
	struct far_end *end = opaque;

	while (!__atomic_load_n(&end->is_over, __ATOMIC_ACQUIRE)) {
		mr_port_poll(end->port);
		harness_nap();
	}
	return NULL;
}

static void open_far(struct harness *harness, struct far_end *end,
		     const char *path)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .page_bytes = 16384 };
	const struct wish *wish = &harness->wish;
	struct mr_reason why = { .text = "" };
	char spec[128];

	snprintf(spec, sizeof(spec), "vhost:%s,unsealed,queues=%u%s%s", path,
		 wish->n_queues, wish->is_sg ? ",mtu=9000" : "",
		 is_server(harness) ? ",client=on" : "");
	if (mr_ctx_create(NULL, &end->ctx, &why) < 0 ||
	    mr_pool_create(end->ctx, &config, &end->pool, &why) < 0)
		fail_msg("%s", why.text);
	harness->far =
		far_port_open(end->ctx, end->pool, spec, wish->n_queues, &why);
	if (harness->far == NULL)
		fail_msg("%s: %s", spec, why.text);
	end->port = far_port_get(harness->far);
	end->is_over = false;
	assert_int_equal(pthread_create(&end->thread, NULL, poll_far, end), 0);
}

static void setup(struct harness *harness)
{
	const struct wish *wish = &harness->wish;
	char path[64];

	name_socket(harness, path, sizeof(path));
	open_far(harness, &ends[harness->number], path);
	snprintf(harness->spec, sizeof(harness->spec),
		 "virtio-user:%s,ring=%u,queues=%u,csum=off%s%s", path,
		 wish->ring_entries, wish->n_queues,
		 wish->is_sg ? ",sg=on,mtu=9000" : "",
		 is_server(harness) ? ",server=on" : "");
}

static void teardown(struct harness *harness)
{
	struct far_end *end = &ends[harness->number];

	__atomic_store_n(&end->is_over, true, __ATOMIC_RELEASE);
	pthread_join(end->thread, NULL);
	far_port_close(harness->far);
	harness->far = NULL;
	mr_pool_destroy(end->pool, NULL);
	mr_ctx_destroy(end->ctx);
	*end = (struct far_end){ 0 };
}

/* The back end takes frames once it has seen that all queues are enabled. */
static void wait_for_far(struct harness *harness)
{
	const uint64_t deadline_ns = harness_deadline_ns();
	struct mr_link link = { 0 };

	while (harness->far != NULL && !link.is_up) {
		if (harness_now_ns() > deadline_ns)
			fail_msg("%s: the back end has no link", harness->spec);
		harness_nap();
		mr_port_link(far_port_get(harness->far), &link);
	}
}

static const struct bad_spec bad_specs[] = {
	{ "virtio-user:", -EINVAL, "name the socket" },
	{ "virtio-user:/nowhere.sock", -ENODEV, "start the vhost-user" },
	{ "virtio-user:/etc/passwd", -ENOTSOCK, "not a socket" },
	{ "virtio-user:/x,mac=01:00:00:00:00:00", -EINVAL, "mac=" },
	{ "virtio-user:/x,mac=02:00:00:00:00:1", -EINVAL, "mac=" },
	{ "virtio-user:/x,mac=02:00:00:00:00:01x", -EINVAL, "mac=" },
	{ "virtio-user:/x,mac=02:00: 0:00:00:01", -EINVAL, "mac=" },
	{ "virtio-user:/x,promisc", -EINVAL, "promisc" },
	{ "virtio-user:/x,tap=t0,server=on", -EINVAL, "server=on" },
	{ "virtio-user:/nowhere,tap=t0", -ENODEV, "modprobe vhost_net" },
	{ "virtio-user:/x,tap=", -EINVAL, "tap=" },
	{ NULL, 0, NULL },
};

#define OVER_VHOST                                                             \
	.driver = "virtio-user", .sink_spec = "null:", .ring_entries = 512,    \
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |       \
		  FIXTURE_CHECKS | FIXTURE_QUEUES | FIXTURE_RANDOM_MAC |       \
		  FIXTURE_LED,                                                 \
	.max_frame_bytes = 1514, .max_sg_frame_bytes = 9014, .n_sleeps = 2000, \
	.n_reopens = 20, .bad_specs = bad_specs, .setup = setup,               \
	.opened = wait_for_far, .teardown = teardown,                          \
	.inject = far_port_inject, .collect = far_port_collect

const struct fixture fixture_virtio_user = { OVER_VHOST };
const struct fixture fixture_virtio_user_server = {
	OVER_VHOST, .name = "virtio-user-server"
};
