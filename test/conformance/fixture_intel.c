/* SPDX-License-Identifier: BSD-3-Clause */
/* igb, e1000e: drivers/intel over a register-level model of the NIC. */
#include <errno.h>
#include <stdio.h>

#include "fixture_model.h"
#include "model/intel.h"

enum { LINK_NS = 300000 };

static void destroy(struct model *m)
{
	intel_destroy((struct intel *)m);
}

static void setup(struct harness *harness, const struct intel_chip *chip)
{
	/* Destination of all frames (traffic.c): needs no promiscuous mode. */
	static const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, 1 };
	struct intel *nic = intel_create(chip, mac);
	const uint32_t n_entries = harness->wish.ring_entries;

	assert_non_null(nic);
	nic->link_delay_ns = LINK_NS;
	fixture_model_add(harness, &nic->m, destroy);
	/* For moderated interrupts, which come later, by themselves. */
	assert_int_equal(model_start(&nic->m), 0);
	snprintf(harness->spec, sizeof(harness->spec),
		 "vfio:model,rx-ring=%u,tx-ring=%u,queues=%u%s", n_entries,
		 n_entries, harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on,mtu=9000" : "");
}

static void setup_82576(struct harness *harness)
{
	setup(harness, &chip_82576);
}

static void setup_82574l(struct harness *harness)
{
	setup(harness, &chip_82574l);
}

/* A frame that comes before the link is up is lost, as on a cable. */
static void opened(struct harness *harness)
{
	struct intel *nic = harness->far; /* NULL: nothing will be sent */
	const uint64_t until_ns = harness_deadline_ns();
	bool is_up = nic == NULL;

	while (!is_up) {
		assert_true(harness_now_ns() < until_ns);
		harness_nap();
		model_step(&nic->m);
		model_lock(&nic->m);
		is_up = nic->is_link_up;
		model_unlock(&nic->m);
	}
}

static const struct bad_spec bad_specs[] = {
	{ "vfio:nosuchmodel", -ENODEV, "nosuchmodel" },
	{ "vfio:model,queues=0", -EINVAL, "queues" },
	{ "vfio:model,queues=99", -EINVAL, "queues" },
	{ "vfio:model,rx-ring=1", -EINVAL, "rx-ring" },
	{ "vfio:model,tx-ring=100000", -EINVAL, "tx-ring" },
	{ "vfio:model,mtu=60000", -EINVAL, "mtu" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_igb = {
	FIXTURE_OVER_A_MODEL,
	.name = "igb",
	.ring_entries = 512,
	.traits = FIXTURE_MODEL_TRAITS | FIXTURE_SG | FIXTURE_QUEUES |
		  FIXTURE_FILTERS,
	.min_frame_bytes = 60, /* the NIC pads to Ethernet's 64 with FCS */
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.setup = setup_82576,
	.opened = opened,
};

const struct fixture fixture_e1000e = {
	FIXTURE_OVER_A_MODEL,
	.name = "e1000e",
	.ring_entries = 512,
	.traits = FIXTURE_MODEL_TRAITS | FIXTURE_SG | FIXTURE_QUEUES |
		  FIXTURE_FILTERS,
	.min_frame_bytes = 60,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.setup = setup_82574l,
	.opened = opened,
};
