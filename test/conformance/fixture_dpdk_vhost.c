/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio-user: the back end is DPDK's net_vhost, in a port of its own pool. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "far_port.h"
#include "fixtures_dpdk.h"

struct far_end {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
};

/* Of the first port and the second. */
static struct far_end ends[2];

static void name_socket(const struct harness *harness, char *path, size_t n)
{
	snprintf(path, n, "/tmp/conformance-%d-%u.sock", (int)getpid(),
		 harness->number);
}

static void setup(struct harness *harness)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .page_bytes = 16384 };
	struct far_end *end = &ends[harness->number];
	struct mr_reason why = { .text = "" };
	char path[64], spec[128];

	name_socket(harness, path, sizeof(path));
	snprintf(spec, sizeof(spec),
		 "dpdk:net_vhost%u\\,iface=%s\\,queues=%u,queues=%u%s",
		 harness->number, path, harness->wish.n_queues,
		 harness->wish.n_queues,
		 harness->wish.is_sg ? ",mtu=9000" : "");
	if (mr_ctx_create(NULL, &end->ctx, &why) < 0 ||
	    mr_pool_create(end->ctx, &config, &end->pool, &why) < 0)
		fail_msg("%s", why.text);
	harness->far = far_port_open(end->ctx, end->pool, spec,
				     harness->wish.n_queues, &why);
	if (harness->far == NULL)
		fail_msg("%s: %s", spec, why.text);
	snprintf(harness->spec, sizeof(harness->spec),
		 "virtio-user:%s,ring=%u,queues=%u,csum=off%s", path,
		 harness->wish.ring_entries, harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on,mtu=9000" : "");
}

static void teardown(struct harness *harness)
{
	struct far_end *end = &ends[harness->number];
	char path[64];

	far_port_close(harness->far);
	harness->far = NULL;
	mr_pool_destroy(end->pool, NULL);
	mr_ctx_destroy(end->ctx);
	*end = (struct far_end){ 0 };
	name_socket(harness, path, sizeof(path));
	unlink(path);
}

/* A back end takes frames once it has seen that all queues are enabled. */
static void wait_for_far(struct harness *harness)
{
	struct mr_port *port;

	if (harness->far == NULL)
		return;
	port = far_port_get(harness->far);
	if (mr_ports_wait_link(&port, 1, harness_deadline_ms()) < 0)
		fail_msg("%s: the back end has no link", harness->spec);
}

/* DPDK's first back end makes fds that stay. */
static const char *probe(void)
{
	const char *why_not = fixture_dpdk_start();
	int err;

	return why_not != NULL ? why_not :
				 harness_try("dpdk:net_vhost9\\,iface=/tmp/"
					     "conformance-probe.sock",
					     &err);
}

static const struct bad_spec bad_specs[] = {
	{ "virtio-user:/nowhere.sock", -ENODEV, "start the vhost-user" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_dpdk_vhost = {
	.driver = "virtio-user",
	.name = "dpdk-vhost",
	.sink_spec = "dpdk:net_null7",
	.ring_entries = 512,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_QUEUES | FIXTURE_FOREIGN_FDS |
		  FIXTURE_RANDOM_MAC | FIXTURE_LED,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 2000,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.probe = probe,
	.setup = setup,
	.opened = wait_for_far,
	.teardown = teardown,
	.inject = far_port_inject,
	.collect = far_port_collect,
};
