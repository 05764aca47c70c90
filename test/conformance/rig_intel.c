/* SPDX-License-Identifier: BSD-3-Clause */
/* igb, e1000e: drivers/intel over a register-level model of the NIC. */
#include <errno.h>
#include <stdio.h>

#include "model/intel.h"
#include "rig_model.h"

enum { LINK_NS = 300000 };

static void destroy(struct model *m)
{
	intel_destroy((struct intel *)m);
}

static void setup(struct bed *bed, const struct intel_chip *chip)
{
	/* Its frames go there (traffic.c): no promiscuous mode is needed. */
	static const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, 1 };
	struct intel *nic = intel_create(chip, mac);
	const uint32_t n_entries =
		bed->wish.ring_entries != 0 ? bed->wish.ring_entries : 512;

	assert_non_null(nic);
	nic->link_delay_ns = LINK_NS;
	rig_model_add(bed, &nic->m, destroy);
	/* For moderated interrupts: they come later, and by themselves. */
	assert_int_equal(model_start(&nic->m), 0);
	snprintf(bed->spec, sizeof(bed->spec),
		 "vfio:model,rx-ring=%u,tx-ring=%u,queues=%u%s", n_entries,
		 n_entries, bed->wish.n_queues != 0 ? bed->wish.n_queues : 1,
		 bed->wish.is_sg ? ",sg=on,mtu=9000" : "");
}

static void setup_82576(struct bed *bed)
{
	setup(bed, &chip_82576);
}

static void setup_82574l(struct bed *bed)
{
	setup(bed, &chip_82574l);
}

/* A frame that comes before the link is up is lost, as on a cable. */
static void opened(struct bed *bed)
{
	struct intel *nic = bed->far; /* NULL: nothing will be sent */
	const uint64_t until_ns = bed_deadline_ns();
	bool is_up = nic == NULL;

	while (!is_up) {
		assert_true(bed_now_ns() < until_ns);
		bed_nap();
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

const struct rig rig_igb = {
	RIG_OVER_A_MODEL,
	.name = "igb",
	.traits = RIG_MODEL_TRAITS | RIG_SG | RIG_QUEUES | RIG_FILTERS,
	.min_frame_bytes = 60, /* the NIC pads to Ethernet's 64 with FCS */
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.setup = setup_82576,
	.opened = opened,
};

const struct rig rig_e1000e = {
	RIG_OVER_A_MODEL,
	.name = "e1000e",
	.traits = RIG_MODEL_TRAITS | RIG_SG | RIG_QUEUES | RIG_FILTERS,
	.min_frame_bytes = 60,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.setup = setup_82574l,
	.opened = opened,
};
