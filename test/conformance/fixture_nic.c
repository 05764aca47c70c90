/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real or emulated NICs, given by the environment and connected by a cable:
 * MR_NIC, under test, and MR_NIC_FAR, a kernel interface at the other end.
 * MR_NIC_OPTIONS follow the spec, such as mode=zc. The caller sets them up.
 *
 * nic: MR_NIC is an interface, for the xdp driver.
 * vfio: MR_NIC is a PCI address that vfio-pci has, for a driver of ours; and
 * MR_NIC_FAR takes frames of 9014 bytes. dpdk-nic: the same for DPDK's.
 * MR_NIC_LACKS may say what such a NIC has not: "queues", a second one; and of
 * DPDK's "irqs", "macs", where it still receives an address that was replaced,
 * "steering", where rules are accepted without effect, and "cleanup", where one
 * cannot be asked to look for what was sent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "far_socket.h"

static const char *probe(void)
{
	static const char *const names[] = { "MR_NIC", "MR_NIC_FAR",
					     "MR_NIC_OPTIONS" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]) == NULL)
			return "MR_NIC, MR_NIC_FAR and MR_NIC_OPTIONS name no "
			       "NICs to test on";
	return NULL;
}

/* Whether MR_NIC_LACKS lists it. */
static bool nic_lacks(const char *what)
{
	const char *words = getenv("MR_NIC_LACKS");

	return words != NULL && strstr(words, what) != NULL;
}

/* What is sent before the link is up is lost. */
static void wait_for_link(struct harness *harness)
{
	if (harness->far != NULL && /* else nothing is sent */
	    mr_ports_wait_link(&harness->port, 1, harness_deadline_ms()) < 0)
		fail_msg("%s: no link", harness->spec);
}

static void setup_nic(struct harness *harness)
{
	far_socket_open(harness, getenv("MR_NIC_FAR"));
	/* igb uses 1 KiB of such a page: there, the port chooses its mode. */
	snprintf(harness->spec, sizeof(harness->spec),
		 "xdp:%s,ring=%u,promisc,%s", getenv("MR_NIC"),
		 harness->wish.ring_entries,
		 harness->wish.page_bytes == 2048 ? "mode=auto" :
						    getenv("MR_NIC_OPTIONS"));
}

static const struct bad_spec bad_nic_specs[] = {
	{ "xdp:mrnone", -ENODEV, "mrnone" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_nic = {
	.driver = "xdp",
	.ring_entries = 1024,
	.name = "nic",
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_CHECKS |
		  FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE | FIXTURE_ALONE,
	.min_frame_bytes = 60, /* Ethernet's 64 without FCS: NICs pad to it */
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 1514,
	.max_page_bytes = 4096,
	.n_sleeps = 2000,
	.n_reopens = 3,
	.bad_specs = bad_nic_specs,
	.probe = probe,
	.setup = setup_nic,
	.teardown = far_socket_close,
	.opened = wait_for_link,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

static void setup_vfio(struct harness *harness)
{
	const char *options = getenv("MR_NIC_OPTIONS");
	/* QEMU's virtio sends from that many. For receiving, use more: a NIC
	 * loses what its ring has no room for. */
	const uint32_t n_tx = harness->wish.ring_entries < 256 ?
				      harness->wish.ring_entries :
				      256;

	far_socket_open(harness, getenv("MR_NIC_FAR"));
	snprintf(harness->spec, sizeof(harness->spec),
		 "vfio:%s,rx-ring=%u,tx-ring=%u,queues=%u,promisc%s%s%s",
		 getenv("MR_NIC"), harness->wish.ring_entries, n_tx,
		 harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on,mtu=9000" : "",
		 options[0] != '\0' ? "," : "", options);
}

static const struct bad_spec bad_vfio_specs[] = {
	{ "vfio:", -ENODEV, "address" },
	{ "vfio:0000:00:1d.7", -ENODEV, "0000:00:1d.7" },
	{ NULL, 0, NULL },
};

static const char *probe_vfio(void);

struct fixture fixture_vfio = {
	.driver = "vfio",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES | FIXTURE_FILTERS | FIXTURE_ALONE,
	.min_frame_bytes = 60,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 2000,
	.n_reopens = 3,
	.bad_specs = bad_vfio_specs,
	.probe = probe_vfio,
	.setup = setup_vfio,
	.teardown = far_socket_close,
	.opened = wait_for_link,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

static const char *probe_vfio(void)
{
	if (nic_lacks("queues"))
		fixture_vfio.traits &= ~(uint32_t)FIXTURE_QUEUES;
	return probe();
}

static void set_dpdk_spec(const struct wish *wish, uint32_t n_ring,
			  char *ret_spec, size_t n_bytes)
{
	const char *options = getenv("MR_NIC_OPTIONS");

	snprintf(ret_spec, n_bytes, "dpdk:%s,ring=%u,queues=%u,promisc%s%s%s",
		 getenv("MR_NIC"), n_ring, wish->n_queues,
		 wish->is_sg ? ",sg=on,mtu=9000" : "",
		 options[0] != '\0' ? "," : "", options);
}

static const struct bad_spec bad_dpdk_specs[] = {
	{ "dpdk:0000:00:1d.7", -ENODEV, "no such PCI device" },
	{ NULL, 0, NULL },
};

static const char *probe_dpdk(void);

static void setup_dpdk(struct harness *harness)
{
	/* QEMU's virtio sends from that many; a receive ring loses what does
	 * not fit, and long frames take many places. */
	const uint32_t n_ring =
		harness->wish.ring_entries < 256 || harness->wish.is_sg ?
			harness->wish.ring_entries :
			256;

	far_socket_open(harness, getenv("MR_NIC_FAR"));
	set_dpdk_spec(&harness->wish, n_ring, harness->spec,
		      sizeof(harness->spec));
}

struct fixture fixture_dpdk_nic = {
	.driver = "dpdk",
	.ring_entries = 1024,
	.sink_spec = "dpdk:net_null7",
	.name = "dpdk-nic",
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES | FIXTURE_FILTERS | FIXTURE_FOREIGN_FDS |
		  FIXTURE_FORK_HOLDS | FIXTURE_LATE | FIXTURE_ALONE,
	.min_frame_bytes = 60,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 2000,
	.n_reopens = 3,
	.bad_specs = bad_dpdk_specs,
	.probe = probe_dpdk,
	.setup = setup_dpdk,
	.teardown = far_socket_close,
	.opened = wait_for_link,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

/*
 * EAL starts with the first port: its fds and memory stay, and do not belong to
 * a port.
 */
static const char *probe_dpdk(void)
{
	const char *why_not = probe();
	char spec[256];
	int err;

	if (why_not != NULL)
		return why_not;
	if (nic_lacks("cleanup"))
		fixture_dpdk_nic.traits |= FIXTURE_LAZY;
	if (nic_lacks("irqs"))
		fixture_dpdk_nic.traits |= FIXTURE_POLLED;
	if (nic_lacks("macs"))
		fixture_dpdk_nic.traits |= FIXTURE_OLD_MAC;
	if (nic_lacks("steering"))
		fixture_dpdk_nic.traits |= FIXTURE_NO_STEERING;
	if (nic_lacks("queues"))
		fixture_dpdk_nic.traits &= ~(uint32_t)FIXTURE_QUEUES;
	set_dpdk_spec(&(struct wish){ .n_queues = 1 }, 256, spec, sizeof(spec));
	return harness_try(spec, &err);
}
