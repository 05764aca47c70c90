/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's software devices. All start EAL, in their probe: its fds and memory
 * stay, and do not belong to a port.
 *
 *     dpdk-null       a source and a sink
 *     dpdk-pcap       files: fixture_pcap.c
 *     dpdk-tap        a tap device, a packet socket on its other side
 *     dpdk-af_packet  one end of a veth pair, a packet socket on the other
 *     dpdk-vhost      the peer of a virtio-user port: fixture_dpdk_vhost.c
 *     dpdk-ring       rings in memory: fixture_dpdk_ring.c
 */
#include <errno.h>
#include <stdio.h>

#include "far_socket.h"
#include "fixture_pcap.h"
#include "fixtures_dpdk.h"
#include "suite.h"

/* Open and close a port: NULL, or why that fails. */
const char *fixture_dpdk_start(void)
{
	int err;
	const char *why_not = harness_try("dpdk:net_null_probe", &err);

	/* Everything else is for the tests to find. */
	return err == -ENODEV ? why_not : NULL;
}

static void setup_null(struct harness *harness)
{
	snprintf(harness->spec, sizeof(harness->spec),
		 "dpdk:net_null0,ring=%u,queues=%u", harness->wish.ring_entries,
		 harness->wish.n_queues);
}

static const struct bad_spec bad_null_specs[] = {
	{ "dpdk:", -EINVAL, "no device" },
	{ "dpdk:net_nosuch0", -ENODEV, "net_nosuch0" },
	{ "dpdk:net_null0\\,colour=red", -ENODEV, "arguments" },
	{ "dpdk:7777:00:00.0", -ENODEV, "no such PCI device" },
	{ "dpdk:net_null0,queues=0", -EINVAL, "queues" },
	{ "dpdk:net_null0,queues=65", -EINVAL, "64" },
	{ "dpdk:net_null0,ring=1", -EINVAL, "ring" },
	{ "dpdk:net_null0,mtu=9000,sg=off", -EINVAL, "sg=on" },
	{ "dpdk:net_null0,irq=on", -ENOTSUP, "interrupts" },
	{ "dpdk:net_null0,vlan=drop", -EINVAL, "drop" },
	{ "dpdk:net_null0,vlan=strip", -ENOTSUP, "tags" },
	{ "dpdk:net_null0,csum=on", -ENOTSUP, "sums" },
	{ "dpdk:net_null0,eal=--no-huge", -EALREADY, "once per process" },
	{ NULL, 0, NULL },
};

static const struct fixture fixture_dpdk_null = {
	.driver = "dpdk",
	.sink_spec = "dpdk:net_null7",
	.name = "dpdk-null",
	.ring_entries = 256,
	.traits = FIXTURE_ENDLESS | FIXTURE_QUEUES | FIXTURE_REGISTERS |
		  FIXTURE_EXCLUSIVE | FIXTURE_POLLED | FIXTURE_FOREIGN_FDS |
		  FIXTURE_RANDOM_MAC,
	.max_frame_bytes = 1514,
	.n_reopens = 100,
	.bad_specs = bad_null_specs,
	.probe = fixture_dpdk_start,
	.setup = setup_null,
};

static const struct bad_spec bad_pcap_specs[] = {
	{ "dpdk:net_pcap0\\,rx_pcap=/nowhere/in.pcap", -ENODEV, "in.pcap" },
	{ "dpdk:net_pcap0\\,colour=red", -ENODEV, "arguments" },
	{ NULL, 0, NULL },
};

static const struct fixture fixture_dpdk_pcap = {
	.driver = "dpdk",
	.sink_spec = "dpdk:net_null7",
	.name = "dpdk-pcap",
	.ring_entries = 1024,
	/* It reports that it does not send frames of several segments. */
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_CHECKS |
		  FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE | FIXTURE_OVERLONG |
		  FIXTURE_POLLED | FIXTURE_FOREIGN_FDS,
	.max_frame_bytes = 1514,
	.n_reopens = 100,
	.bad_specs = bad_pcap_specs,
	.probe = fixture_dpdk_start,
	.setup = fixture_pcap_setup_dpdk,
	.teardown = fixture_pcap_teardown,
	.opened = fixture_pcap_opened,
	.collect = fixture_pcap_collect,
};

/* Taps that stay when the port is closed, with what is bound to them. */
static const char *probe_tap(void)
{
	const char *why_not = far_namespace();

	if (why_not != NULL)
		return why_not;
	if (!far_run("ip tuntap add mrt mode tap multi_queue && "
		     "ip link set mrt up"))
		return "no tap: ip tuntap failed";
	return fixture_dpdk_start();
}

static void setup_tap(struct harness *harness)
{
	assert_true(far_run("ip link set mrt up"));
	far_socket_open(harness, "mrt");
	snprintf(harness->spec, sizeof(harness->spec),
		 "dpdk:net_tap0\\,iface=mrt,ring=%u,queues=%u",
		 harness->wish.ring_entries, harness->wish.n_queues);
}

static void opened_tap(struct harness *harness)
{
	far_socket_await_link(harness, "mrt");
}

static const struct bad_spec bad_tap_specs[] = {
	{ "dpdk:net_tap0\\,iface=mrt,ring=64,queues=17", -EINVAL, "16 rx" },
	{ "dpdk:net_tap0\\,iface=mrt,mtu=9000", -EINVAL, "1508" },
	{ NULL, 0, NULL },
};

static const struct fixture fixture_dpdk_tap = {
	.driver = "dpdk",
	.sink_spec = "dpdk:net_null7",
	.name = "dpdk-tap",
	.ring_entries = 512,
	/* A forked child keeps its queue of the tap, which then gets some of
	 * the flows. */
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_CHECKS |
		  FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE | FIXTURE_QUEUES |
		  FIXTURE_FOREIGN_FDS | FIXTURE_FORK_HOLDS | FIXTURE_RANDOM_MAC,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 1514,
	.n_sleeps = 5000,
	.n_reopens = 20,
	.bad_specs = bad_tap_specs,
	.probe = probe_tap,
	.setup = setup_tap,
	.opened = opened_tap,
	.teardown = far_socket_close,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

static const char *probe_af_packet(void)
{
	const char *why_not = far_namespace();

	if (why_not != NULL)
		return why_not;
	if (!far_run("ip link add mra type veth peer name mrb && "
		     "ip link set mra up && ip link set mrb up"))
		return "no veth pair: ip link add failed";
	return fixture_dpdk_start();
}

/* Its slots must not exceed an rx buffer, of the smallest size in any test. */
static void setup_af_packet(struct harness *harness)
{
	far_socket_open(harness, "mrb");
	snprintf(harness->spec, sizeof(harness->spec),
		 "dpdk:net_af_packet0\\,iface=mra\\,framesz=1792\\,blocksz="
		 "28672,"
		 "ring=%u",
		 harness->wish.ring_entries);
}

static const struct bad_spec bad_af_packet_specs[] = {
	{ "dpdk:net_af_packet0\\,iface=mrnone", -ENODEV, "arguments" },
	{ "dpdk:net_af_packet0\\,iface=mra,queues=2", -EINVAL, "1 rx" },
	{ NULL, 0, NULL },
};

static const struct fixture fixture_dpdk_af_packet = {
	.driver = "dpdk",
	.sink_spec = "dpdk:net_null7",
	.name = "dpdk-af_packet",
	.ring_entries = 512,
	/* A forked child keeps its socket in the fanout group, which then gets
	 * some of the flows. */
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_CHECKS |
		  FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE | FIXTURE_POLLED |
		  FIXTURE_FOREIGN_FDS | FIXTURE_FORK_HOLDS,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 1514,
	.n_reopens = 20,
	.bad_specs = bad_af_packet_specs,
	.probe = probe_af_packet,
	.setup = setup_af_packet,
	.teardown = far_socket_close,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

const struct fixture *const suite_fixtures[] = { &fixture_dpdk_null,
						 &fixture_dpdk_ring,
						 &fixture_dpdk_pcap,
						 &fixture_dpdk_tap,
						 &fixture_dpdk_af_packet,
						 &fixture_dpdk_vhost,
						 NULL };
