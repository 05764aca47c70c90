/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on the model, for tests of what goes wrong and of what
 * applications that read no metadata never see. The far side is the test.
 */
#ifndef MODEL_VIRTIO_HARNESS_H
#define MODEL_VIRTIO_HARNESS_H

#include "harness.h"
#include "model/virtio.h"
#include "packets.h"

/* The kinds of rings, as options. */
static const char *const vharness_rings[] = {
	"packed=off,in-order=off",
	"packed=off,in-order=on",
	"packed=on,in-order=off",
	"packed=on,in-order=on",
};
enum { VBED_N_RINGS = 4 };

/* All but opening the port. */
static inline void vharness_make(struct harness *harness,
				 const struct vnet_config *config)
{
	struct vnet *v = vnet_create(config);

	harness_begin(harness, v != NULL ? vnet_model(v) : NULL,
		      (struct mr_pool_config){ 0 }, NULL);
	harness->v = v;
}

static inline void vharness_end(struct harness *harness)
{
	harness_close(harness);
	vnet_destroy(harness->v);
	model_wire_destroy(harness->wire);
}

/* No fault any more. */
static inline void vharness_heal(struct harness *harness)
{
	static const struct model_faults faults;
	static const struct vnet_faults more;

	model_set_faults(harness->m, &faults);
	vnet_set_faults(harness->v, &more);
}

#endif
