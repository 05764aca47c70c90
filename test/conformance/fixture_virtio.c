/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio: the model of test/model/virtio.h, which checks each step of the
 * driver. virtio offers every feature; virtio-plain has no mergeable buffers,
 * control queue, EVENT_IDX, NOTIFICATION_DATA or offloads. Options select the
 * kind of ring: packed=on|off, in-order=on|off.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fixture_model.h"
#include "model/virtio.h"

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

static void destroy(struct model *model)
{
	vnet_destroy(vnet_of(model));
}

static void setup(struct harness *harness)
{
	const struct vnet_config config = {
		.features = features_of(harness->fixture),
		.n_pairs = harness->wish.n_queues,
		.mtu_bytes = harness->wish.is_sg ? 9000 : 1500,
		.queue_size = 1024,
	};
	const uint32_t n = harness->wish.ring_entries;

	fixture_model_add(harness, vnet_model(vnet_create(&config)), destroy);
	snprintf(harness->spec, sizeof(harness->spec),
		 "vfio:model,queues=%u,rx-ring=%u,tx-ring=%u%s",
		 harness->wish.n_queues, n, n,
		 harness->wish.is_sg ? ",mtu=9000" : "");
}

static const struct bad_spec bad_specs[] = {
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

const struct fixture fixture_virtio = {
	FIXTURE_OVER_A_MODEL,
	.name = "virtio",
	.ring_entries = 256,
	.traits = FIXTURE_MODEL_TRAITS | FIXTURE_SG | FIXTURE_QUEUES |
		  FIXTURE_FILTERS,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 50,
	.bad_specs = bad_specs,
	.setup = setup,
};

const struct fixture fixture_virtio_plain = {
	.name = "virtio-plain",
	.ring_entries = 256,
	.traits = FIXTURE_MODEL_TRAITS,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 1514,
	.n_reopens = 50,
	.bad_specs = bad_specs,
	.setup = setup,
	FIXTURE_OVER_A_MODEL,
};
