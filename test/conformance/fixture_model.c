/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drivers over register-level models: the device is in this process, the peer
 * is the other end of its wire. At the end of each test the model must have
 * recorded no violation. It is lazy: what is sent stays in the queues until the
 * peer collects it.
 *
 *     inject --> wire --> model ~~~ rings ~~~ port under test
 *     collect <-- wire <-- model ~~~ rings ~~~ port under test
 *
 * igb, e1000e: test/model/intel.h. virtio: test/model/virtio.h, with every
 * feature; virtio-plain has no mergeable buffers, control queue, EVENT_IDX,
 * NOTIFICATION_DATA or offloads. Options select the kind of ring:
 * packed=on|off, in-order=on|off.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <millrace/experimental/pci.h>

#include "harness.h"
#include "model/intel.h"
#include "model/virtio.h"

enum { N_WIRE_FRAMES = 256, LINK_NS = 300000 };

/* A context keeps its devices until it ends: keep them, too. */
static struct {
	struct model *model;
	struct model_wire *wire;
	void (*destroy)(struct model *model);
} the;

/* Add the device "vfio:model" to the harness's context. */
static void add_model(struct harness *harness, struct model *model,
		      void (*destroy)(struct model *model))
{
	if (the.model != NULL)
		the.destroy(the.model);
	model_wire_destroy(the.wire);
	assert_non_null(model);
	the.model = model;
	the.destroy = destroy;
	the.wire = model_wire_create(N_WIRE_FRAMES);
	assert_non_null(the.wire);
	model_wire_attach(the.wire, 0, model);
	model->is_lazy = true;
	assert_int_equal(mr_ctx_add_pci_device(harness->ctx, "model",
					       model_backend(), model),
			 0);
	harness->far = model;
}

static void teardown(struct harness *harness)
{
	if (harness->far == NULL)
		return;
	harness->far = NULL;
	assert_string_equal(model_violations(the.model), "");
}

static bool inject(struct harness *harness, const uint8_t *bytes,
		   uint32_t n_bytes)
{
	const bool is_sent = model_wire_send(the.wire, 1, bytes, n_bytes);

	model_step(harness->far);
	return is_sent;
}

static uint32_t collect(struct harness *harness, uint8_t *bytes, uint32_t room)
{
	model_step(harness->far);
	return model_wire_receive(the.wire, 1, bytes, room);
}

static void destroy_intel(struct model *m)
{
	intel_destroy((struct intel *)m);
}

static void destroy_virtio(struct model *m)
{
	vnet_destroy(vnet_of(m));
}

static void set_spec(struct harness *harness, const char *sg)
{
	const uint32_t n = harness->wish.ring_entries;

	snprintf(harness->spec, sizeof(harness->spec),
		 "vfio:model,rx-ring=%u,tx-ring=%u,queues=%u%s", n, n,
		 harness->wish.n_queues, harness->wish.is_sg ? sg : "");
}

static void setup_intel(struct harness *harness)
{
	/* Destination of all frames (traffic.c): needs no promiscuous mode. */
	static const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, 1 };
	const bool is_igb = strcmp(harness->fixture->name, "igb") == 0;
	struct intel *nic =
		intel_create(is_igb ? &chip_82576 : &chip_82574l, mac);

	assert_non_null(nic);
	nic->link_delay_ns = LINK_NS;
	add_model(harness, &nic->m, destroy_intel);
	/* For moderated interrupts, which come later, by themselves. */
	assert_int_equal(model_start(&nic->m), 0);
	set_spec(harness, ",sg=on,mtu=9000");
}

/* A frame that comes before the link is up is lost, as on a cable. */
static void wait_for_link(struct harness *harness)
{
	struct intel *nic = harness->far; /* NULL: nothing will be sent */
	const uint64_t until_ns = harness_deadline_ns();
	bool is_up = nic == NULL;

	if (nic != NULL) /* by what the driver says, too */
		assert_int_equal(mr_ports_wait_link(&harness->port, 1,
						    harness_deadline_ms()),
				 0);
	while (!is_up) {
		assert_true(harness_now_ns() < until_ns);
		harness_nap();
		model_step(&nic->m);
		model_lock(&nic->m);
		is_up = nic->is_link_up;
		model_unlock(&nic->m);
	}
}

static const struct bad_spec bad_intel_specs[] = {
	{ "vfio:nosuchmodel", -ENODEV, "nosuchmodel" },
	{ "vfio:model,queues=0", -EINVAL, "queues" },
	{ "vfio:model,queues=99", -EINVAL, "queues" },
	{ "vfio:model,rx-ring=1", -EINVAL, "rx-ring" },
	{ "vfio:model,tx-ring=100000", -EINVAL, "tx-ring" },
	{ "vfio:model,mtu=60000", -EINVAL, "mtu" },
	{ NULL, 0, NULL },
};

static uint64_t features_of(const struct fixture *fixture)
{
	const uint64_t all = vnet_all_features();

	if (strcmp(fixture->name, "virtio") == 0)
		return all;
	return all &
	       (VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM) |
		VNET_BIT(VNET_RING_PACKED) | VNET_BIT(VNET_IN_ORDER) |
		VNET_BIT(VNET_MAC) | VNET_BIT(VNET_STATUS));
}

static void setup_virtio(struct harness *harness)
{
	const struct vnet_config config = {
		.features = features_of(harness->fixture),
		.n_pairs = harness->wish.n_queues,
		.mtu_bytes = harness->wish.is_sg ? 9000 : 1500,
		.queue_size = 1024,
	};

	add_model(harness, vnet_model(vnet_create(&config)), destroy_virtio);
	set_spec(harness, ",mtu=9000");
}

static const struct bad_spec bad_virtio_specs[] = {
	{ "vfio:", -ENODEV, "neither a PCI address" },
	{ "vfio:nothing", -ENODEV, "nothing" },
	{ "vfio:model,queues=0", -EINVAL, "queues" },
	{ "vfio:model,queues=65", -EINVAL, "64" },
	{ "vfio:model,queues=9,rx-ring=32,tx-ring=32", -EINVAL, "queues" },
	{ "vfio:model,rx-ring=33", -EINVAL, "power of two" },
	{ "vfio:model,ring=33", -EINVAL, "power of two" },
	{ "vfio:model,promisc=maybe", -EINVAL, "promisc" },
	{ "vfio:model,tx-ring=2048", -EINVAL, "1024" },
	{ "vfio:model,packed=maybe", -EINVAL, "maybe" },
	{ "vfio:model,mtu=67", -EINVAL, "mtu" },
	{ NULL, 0, NULL },
};

#define TRAITS                                                                 \
	(FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_CHECKS |            \
	 FIXTURE_STALLS | FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE |              \
	 FIXTURE_WIRE)

#define OVER_A_MODEL                                                           \
	.driver = "vfio", .n_sleeps = 20000, .max_frame_bytes = 1514,          \
	.teardown = teardown, .inject = inject, .collect = collect

/* The NIC pads to Ethernet's 64 bytes with FCS. */
#define OVER_INTEL                                                             \
	OVER_A_MODEL, .ring_entries = 512, .min_frame_bytes = 60,              \
		      .max_sg_frame_bytes = 9014,                              \
		      .traits = TRAITS | FIXTURE_SG | FIXTURE_QUEUES |         \
				FIXTURE_FILTERS,                               \
		      .n_reopens = 20, .bad_specs = bad_intel_specs,           \
		      .setup = setup_intel, .opened = wait_for_link

#define OVER_VIRTIO                                                            \
	OVER_A_MODEL, .ring_entries = 256, .n_reopens = 50,                    \
		      .bad_specs = bad_virtio_specs, .setup = setup_virtio

const struct fixture fixture_igb = { OVER_INTEL, .name = "igb" };
const struct fixture fixture_e1000e = { OVER_INTEL, .name = "e1000e" };

const struct fixture fixture_virtio = {
	OVER_VIRTIO,
	.name = "virtio",
	.traits = TRAITS | FIXTURE_SG | FIXTURE_QUEUES | FIXTURE_FILTERS,
	.max_sg_frame_bytes = 9014,
};

const struct fixture fixture_virtio_plain = {
	OVER_VIRTIO,
	.name = "virtio-plain",
	.traits = TRAITS,
	.max_sg_frame_bytes = 1514,
};
