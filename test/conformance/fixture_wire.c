/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The suite on two NICs that reach each other, real or emulated.
 *
 *     mr-conformance PORT FAR [PATTERN]
 *
 * PORT is under test: an xdp:, vfio:, dpdk: or virtio-user: spec. FAR is its
 * peer: such a spec, or kernel:INTERFACE, where the kernel sends and receives,
 * through one tx queue, because frames in two have no order. Nothing else may
 * use either.
 *
 * MR_NIC_LACKS may say what the port has not: "queues", a second one; and of
 * DPDK's "irqs", "macs", where it still receives an address that was replaced,
 * "steering", where rules are accepted without effect, and "cleanup", where one
 * cannot be asked to look for what was sent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "far_port.h"
#include "far_socket.h"

static const char *near_spec, *far_spec;
static char near_netdev[16]; /* the interface's name; "": none */
/* Open while the program runs: a NIC may take seconds to bring its link up. */
static struct far_port *far_port;

/* Whether MR_NIC_LACKS lists it. */
static bool nic_lacks(const char *what)
{
	const char *words = getenv("MR_NIC_LACKS");

	return words != NULL && strstr(words, what) != NULL;
}

/* The interface of kernel:INTERFACE; NULL: a port. */
static const char *far_interface(void)
{
	return strncmp(far_spec, "kernel:", 7) == 0 ? far_spec + 7 : NULL;
}

/* What is sent before the link is up is lost. */
static void wait_for_link(struct harness *harness)
{
	if (harness->far == NULL) /* nothing is sent */
		return;
	if (mr_ports_wait_link(&harness->port, 1, harness_deadline_ms()) < 0)
		fail_msg("%s: no link", harness->spec);
	if (far_port != NULL) {
		struct mr_port *port = far_port_get(far_port);

		if (mr_ports_wait_link(&port, 1, harness_deadline_ms()) < 0)
			fail_msg("%s: no link", far_spec);
	}
}

static void set_up_far(struct harness *harness)
{
	uint8_t bytes[HARNESS_MAX_BYTES];

	if (far_interface() != NULL) {
		far_socket_open(harness, far_interface());
		return;
	}
	harness->far = far_port;
	/* What an earlier test has left. */
	while (far_port_collect(harness, bytes, sizeof(bytes)) > 0)
		continue;
}

static void tear_down_far(struct harness *harness)
{
	if (far_interface() != NULL)
		far_socket_close(harness);
	harness->far = NULL;
}

/* Whether the interface under test is in software, and its peer a port: no
 * wire completes the checksum of a frame, and a port does not see that. */
static bool leaves_checksums(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", near_netdev);
	return far_interface() == NULL && access(path, F_OK) < 0 &&
	       strstr(near_spec, ",csum=") == NULL;
}

static void set_up_xdp(struct harness *harness)
{
	const char *mode = strstr(near_spec, ",mode=");
	int n = (int)strlen(near_spec);

	set_up_far(harness);
	/* igb uses 1 KiB of such a page: there, the port chooses its mode. */
	if (harness->wish.page_bytes != 2048 || mode == NULL)
		mode = "";
	else {
		n = (int)(mode - near_spec);
		mode += 1 + strcspn(mode + 1, ",");
	}
	snprintf(harness->spec, sizeof(harness->spec),
		 "%.*s%s,ring=%u,promisc%s", n, near_spec, mode,
		 harness->wish.ring_entries,
		 leaves_checksums() ? ",csum=off" : "");
}

static void set_up_vfio(struct harness *harness)
{
	const struct wish *wish = &harness->wish;

	set_up_far(harness);
	/* QEMU's virtio sends from 256. For receiving, use more: a NIC loses
	 * what its ring has no room for. */
	snprintf(harness->spec, sizeof(harness->spec),
		 "%s,rx-ring=%u,tx-ring=%u,queues=%u,promisc%s", near_spec,
		 wish->ring_entries,
		 wish->ring_entries < 256 ? wish->ring_entries : 256,
		 wish->n_queues, wish->is_sg ? ",sg=on,mtu=9000" : "");
}

static void set_up_dpdk(struct harness *harness)
{
	const struct wish *wish = &harness->wish;
	/* As above; long frames take many places. */
	const uint32_t n_ring = wish->ring_entries < 256 || wish->is_sg ?
					wish->ring_entries :
					256;

	set_up_far(harness);
	snprintf(harness->spec, sizeof(harness->spec),
		 "%s,ring=%u,queues=%u,promisc%s", near_spec, n_ring,
		 wish->n_queues, wish->is_sg ? ",sg=on,mtu=9000" : "");
}

/* Its frames pass a tap of the kernel's, or whatever a back end does. */
static void set_up_virtio_user(struct harness *harness)
{
	const struct wish *wish = &harness->wish;

	set_up_far(harness);
	snprintf(harness->spec, sizeof(harness->spec),
		 "%s,ring=%u,queues=%u,csum=off%s", near_spec,
		 wish->ring_entries, wish->n_queues,
		 wish->is_sg ? ",sg=on,mtu=9000" : "");
}

static const struct bad_spec bad_xdp_specs[] = {
	{ "xdp:mrnone", -ENODEV, "mrnone" },
	{ NULL, 0, NULL },
};

static const struct bad_spec bad_vfio_specs[] = {
	{ "vfio:", -ENODEV, "address" },
	{ "vfio:ffff:ff:1f.7", -ENODEV, "ffff:ff:1f.7" },
	{ NULL, 0, NULL },
};

static const struct bad_spec bad_virtio_user_specs[] = {
	{ "virtio-user:/dev/vhost-net", -EINVAL, "name the tap" },
	{ "virtio-user:/dev/null,tap=mrnone", -ENODEV, "/dev/vhost-net" },
	{ "virtio-user:/dev/vhost-net,tap=lo", -ENODEV, "not a tap" },
	{ NULL, 0, NULL },
};

static const struct bad_spec bad_dpdk_specs[] = {
	{ "dpdk:ffff:ff:1f.7", -ENODEV, "no such PCI device" },
	{ NULL, 0, NULL },
};

static struct fixture fixture = {
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_CHECKS |
		  FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE | FIXTURE_ALONE,
	.min_frame_bytes = 60, /* Ethernet's 64 without FCS: NICs pad to it */
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 2000,
	.n_reopens = 3,
	.teardown = tear_down_far,
	.opened = wait_for_link,
};

/* Whether the far side receives 9014 bytes. */
static bool far_takes_long_frames(void)
{
	struct mr_port_info info = { .size = sizeof(info) };

	if (far_interface() != NULL)
		return far_socket_mtu(far_interface()) >= 9000;
	assert_int_equal(mr_port_info(far_port_get(far_port), &info), 0);
	return info.has_sg && info.mtu_bytes >= 9000;
}

static void adapt_to_vfio(void)
{
	fixture.bad_specs = bad_vfio_specs;
	fixture.setup = set_up_vfio;
	fixture.traits |= FIXTURE_FILTERS;
	if (!nic_lacks("queues"))
		fixture.traits |= FIXTURE_QUEUES;
	if (far_takes_long_frames())
		fixture.traits |= FIXTURE_SG;
}

static void adapt_to_virtio_user(void)
{
	fixture.bad_specs = bad_virtio_user_specs;
	fixture.setup = set_up_virtio_user;
	fixture.traits |= FIXTURE_RANDOM_MAC;
	if (!nic_lacks("queues"))
		fixture.traits |= FIXTURE_QUEUES;
	if (far_takes_long_frames())
		fixture.traits |= FIXTURE_SG;
}

/*
 * EAL starts with the first port: its fds and memory stay, and do not belong to
 * a port.
 */
static void adapt_to_dpdk(void)
{
	adapt_to_vfio();
	fixture.bad_specs = bad_dpdk_specs;
	fixture.setup = set_up_dpdk;
	fixture.sink_spec = "dpdk:net_null7";
	fixture.traits |=
		FIXTURE_FOREIGN_FDS | FIXTURE_FORK_HOLDS | FIXTURE_LATE;
	if (nic_lacks("cleanup"))
		fixture.traits |= FIXTURE_LAZY;
	if (nic_lacks("irqs"))
		fixture.traits |= FIXTURE_POLLED;
	if (nic_lacks("macs"))
		fixture.traits |= FIXTURE_OLD_MAC;
	if (nic_lacks("steering"))
		fixture.traits |= FIXTURE_NO_STEERING;
}

/* The driver of an open port; NULL, with the reason: none of these. */
static const char *find_driver(struct mr_port *port, struct mr_reason *why)
{
	static const char *const drivers[] = { "xdp", "vfio", "dpdk",
					       "virtio-user" };
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(port, &info);
	memcpy(near_netdev, info.netdev, sizeof(near_netdev));
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcspn(info.name, ":") == strlen(drivers[i]) &&
		    strncmp(info.name, drivers[i], strlen(drivers[i])) == 0)
			return drivers[i];
	snprintf(why->text, sizeof(why->text),
		 "'%s' is not under test: name an xdp:, vfio:, dpdk: or "
		 "virtio-user: port",
		 near_spec);
	return NULL;
}

/* Whether a frame from the port arrives at the peer within some seconds: if
 * not, each test would wait for it. */
static bool reaches_far(struct mr_port *port, struct mr_pool *pool)
{
	struct harness far = { .port = port };
	const uint64_t until_ns = harness_now_ns() + UINT64_C(10000000000);
	uint8_t *base = mr_region_base(mr_pool_region(pool));
	uint8_t bytes[HARNESS_MAX_BYTES];
	struct mr_cache *cache;
	bool has_arrived = false;

	assert_int_equal(mr_cache_create(pool, &cache, NULL), 0);
	set_up_far(&far);
	while (!has_arrived && harness_now_ns() < until_ns) {
		struct mr_frame frame = { .len = 60 };

		if (mr_frag_alloc_bulk(cache, &frame.addr, 1, 2048) == 1) {
			frame.addr += 128;
			traffic_make(base + frame.addr, frame.len, 0);
			if (mr_tx_burst(mr_port_txq(port, 0), cache, &frame,
					1) == 0)
				mr_frame_free_bulk(cache, &frame, 1);
		}
		usleep(10000);
		has_arrived = fixture.collect(&far, bytes, sizeof(bytes)) > 0;
	}
	tear_down_far(&far);
	mr_cache_destroy(cache);
	return has_arrived;
}

/* Open the far side. False: with the reason. */
static bool open_far(struct mr_ctx *ctx, struct mr_pool *pool,
		     struct mr_reason *why)
{
	if (far_interface() == NULL) {
		fixture.inject = far_port_inject;
		fixture.collect = far_port_collect;
		far_port = far_port_open(ctx, pool, far_spec, 1, why);
		return far_port != NULL;
	}
	fixture.inject = far_socket_inject;
	fixture.collect = far_socket_collect;
	snprintf(why->text, sizeof(why->text), "%s: no such network interface",
		 far_interface());
	return far_socket_mtu(far_interface()) > 0;
}

/* Open both ports once. False: they cannot be tested, with the reason. */
static bool prepare(struct mr_ctx *ctx, struct mr_reason *why)
{
	struct mr_port_config config = { .size = sizeof(config) };
	const struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port *port;

	if (mr_pool_create(ctx, &pool, &config.pool, why) < 0 ||
	    mr_port_open(ctx, near_spec, &config, &port, why) < 0)
		return false;
	fixture.driver = find_driver(port, why);
	if (fixture.driver == NULL || !open_far(ctx, config.pool, why))
		return false;
	if (!reaches_far(port, config.pool)) {
		snprintf(why->text, sizeof(why->text),
			 "no frame from %s reaches %s: check cable and link",
			 near_spec, far_spec);
		return false;
	}
	mr_port_close(port);
	return true;
}

/* What the suite may expect of the driver. */
static void adapt_to_driver(void)
{
	if (strcmp(fixture.driver, "vfio") == 0)
		adapt_to_vfio();
	else if (strcmp(fixture.driver, "dpdk") == 0)
		adapt_to_dpdk();
	else if (strcmp(fixture.driver, "virtio-user") == 0)
		adapt_to_virtio_user();
	else {
		fixture.bad_specs = bad_xdp_specs;
		fixture.max_page_bytes = 4096;
		fixture.setup = set_up_xdp;
	}
}

int main(int argc, char **argv)
{
	struct mr_reason why;
	struct mr_ctx *ctx;
	int n_failed;

	if (argc < 3 || argc > 4) {
		fprintf(stderr,
			"usage: %s PORT FAR [PATTERN]\n"
			"PORT: xdp:, vfio:, dpdk: or virtio-user:. FAR, which "
			"it reaches: the same, or kernel:INTERFACE\n",
			argv[0]);
		return 2;
	}
	near_spec = argv[1];
	far_spec = argv[2];
	if (mr_ctx_create(NULL, &ctx, &why) < 0 || !prepare(ctx, &why)) {
		fprintf(stderr, "mr-conformance: %s\n", why.text);
		return 2;
	}
	adapt_to_driver();
	harness_set_fixture(&fixture, "");
	if (argc > 3)
		cmocka_set_test_filter(argv[3]);
	n_failed = test_run(near_spec, NULL, NULL);
	far_port_close(far_port);
	return n_failed > 0;
}
