/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

void watch_begin(struct watch *watch, const struct dataplane *plane)
{
	for (uint32_t p = 0; p < plane->n_ports; p++)
		watch->is_seen[p] =
			mr_port_link(plane->ports[p], &watch->links[p]) == 0;
}

enum watch_change watch_port(struct watch *watch, const struct dataplane *plane,
			     uint32_t port_idx)
{
	const struct mr_link before = watch->links[port_idx];
	struct mr_link *now = &watch->links[port_idx];

	if (!watch->is_seen[port_idx] || before.is_gone ||
	    mr_port_link(plane->ports[port_idx], now) < 0)
		return WATCH_SAME;
	if (now->is_gone)
		return WATCH_GONE;
	/* The end of a capture is not a lost link. */
	if (now->is_up == before.is_up || now->is_ended)
		return WATCH_SAME;
	return now->is_up ? WATCH_UP : WATCH_DOWN;
}

const char *watch_text(enum watch_change change)
{
	static const char *const texts[] = {
		[WATCH_SAME] = "",
		[WATCH_UP] = "link up",
		[WATCH_DOWN] = "link down",
		[WATCH_GONE] = "the device is gone",
	};

	return texts[change];
}

bool watch_is_ended(const struct watch *watch, const struct dataplane *plane)
{
	for (uint32_t p = 0; p < plane->n_ports; p++)
		if (!watch->is_seen[p] || !watch->links[p].is_ended)
			return false;
	return true;
}
