/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners of a region: devices that need each segment before its first page
 * is used. Everything is under the region's lock, so that no segment is missed.
 */
#include <errno.h>

#include "base/base.h"
#include "mem/mem.h"

/* Tell all listeners, or none. */
int mri_listeners_add(struct mr_region *region,
		      const struct mr_segment_info *segment,
		      struct mr_reason *reterr_reason)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < MRI_MAX_LISTENERS; i++) {
		const struct mri_listener *l = &region->listeners[i];

		if (l->add != NULL)
			err = l->add(l->opaque, segment, reterr_reason);
		if (err < 0)
			break;
	}
	while (err < 0 && i-- > 0)
		if (region->listeners[i].add != NULL)
			region->listeners[i].remove(region->listeners[i].opaque,
						    segment);
	return err;
}

/* Tell one listener of all segments, or of none. */
static int tell_all(const struct mr_region *region,
		    const struct mri_listener *listener,
		    struct mr_reason *reterr_reason)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < region->n_segments && err == 0; i++)
		err = listener->add(listener->opaque, &region->segments[i],
				    reterr_reason);
	if (err == 0)
		return 0;
	for (i--; i-- > 0;)
		listener->remove(listener->opaque, &region->segments[i]);
	return err;
}

int mr_region_listen(struct mr_region *region, mr_segment_add_fn *add,
		     mr_segment_remove_fn *remove, void *opaque,
		     struct mr_reason *reterr_reason)
{
	const struct mri_listener listener = { add, remove, opaque };
	struct mri_listener *place = NULL;
	int err;

	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_LISTENERS && place == NULL; i++)
		if (region->listeners[i].add == NULL)
			place = &region->listeners[i];
	if (place == NULL)
		err = mr_fail(reterr_reason, -ENOSPC,
			      "a region has room for %d listeners, all in use",
			      MRI_MAX_LISTENERS);
	else
		err = tell_all(region, &listener, reterr_reason);
	if (err == 0)
		*place = listener;
	pthread_mutex_unlock(&region->lock);
	return err;
}

void mr_region_unlisten(struct mr_region *region, void *opaque)
{
	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_LISTENERS; i++) {
		struct mri_listener *l = &region->listeners[i];

		if (l->add == NULL || l->opaque != opaque)
			continue;
		for (uint32_t s = region->n_segments; s-- > 0;)
			l->remove(opaque, &region->segments[s]);
		*l = (struct mri_listener){ 0 };
	}
	pthread_mutex_unlock(&region->lock);
}
