/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on the model, for tests of what goes wrong and of what
 * applications that read no metadata never see. The far side is the test.
 */
#ifndef MODEL_VIRTIO_BED_H
#define MODEL_VIRTIO_BED_H

#include "bed.h"
#include "model/virtio.h"
#include "packets.h"

/* The kinds of rings, as options. */
static const char *const vbed_rings[] = {
	"packed=off,in-order=off",
	"packed=off,in-order=on",
	"packed=on,in-order=off",
	"packed=on,in-order=on",
};
enum { VBED_N_RINGS = 4 };

/* All but opening the port. */
static inline void vbed_make(struct bed *bed, const struct vnet_config *config)
{
	struct vnet *v = vnet_create(config);

	bed_begin(bed, v != NULL ? vnet_model(v) : NULL,
		  (struct mr_pool_config){ 0 }, NULL);
	bed->v = v;
}

static inline void vbed_end(struct bed *bed)
{
	bed_close(bed);
	vnet_destroy(bed->v);
	model_wire_destroy(bed->wire);
}

/* No fault any more. */
static inline void vbed_heal(struct bed *bed)
{
	static const struct model_faults faults;
	static const struct vnet_faults more;

	model_set_faults(bed->m, &faults);
	vnet_set_faults(bed->v, &more);
}

#endif
