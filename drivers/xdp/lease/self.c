/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lease made with the capabilities of this process.
 *
 * Opening: interface, without what a killed process had set -> its settings ->
 * program attached -> buffers in the fill rings -> sockets bound -> sockets in
 * the program's map. Closing is the same backwards: no frame is steered to a
 * socket that is being closed.
 */
#include <errno.h>

#include "device/events.h"
#include "device/stats.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

static int open_program(struct xdp_port *port, bool *has_sg,
			struct mr_reason *reason)
{
	int err = mri_xdp_prog_open(port, *has_sg, reason);

	if (err == -ERANGE && !*has_sg && port->options.sg == XDP_AUTO) {
		/* A peer whose MTU is larger than ours may send such frames. */
		*has_sg = true;
		err = mri_xdp_prog_open(port, *has_sg, reason);
	}
	return err == -ERANGE ? -ENOTSUP : err;
}

int mri_xdp_lease_take(struct xdp_port *port, struct mr_reason *reason)
{
	bool has_sg;
	int err = mri_xdp_record_open(port, reason);

	if (err > 0)
		err = mri_xdp_netdev_read(port->dev.ifindex, &port->dev);
	if (err < 0 || (err = mri_xdp_settings_open(port, reason)) < 0 ||
	    (err = mri_xdp_choose_sg(port, &has_sg, reason)) < 0 ||
	    (err = mri_xdp_filter_open(port, reason)) < 0 ||
	    (err = open_program(port, &has_sg, reason)) < 0)
		return err;
	return mri_xdp_climb(port, has_sg, reason);
}

int mri_xdp_lease_finish(struct xdp_port *port, struct mr_reason *reason)
{
	char why[sizeof(port->base.info->why)];

	mri_xdp_busy_open(port);
	if (mri_xdp_loses_tags(port, why, sizeof(why)))
		mri_xdp_add_why(port, why);
	if (mri_xdp_lacks_meta(port, why, sizeof(why)))
		mri_xdp_add_why(port, why);
	return mri_xdp_prog_steer(port, reason);
}

void mri_xdp_lease_end(struct xdp_port *port)
{
	mri_xdp_prog_unsteer(port);
	/* NAPIs may go with the program. */
	mri_xdp_record_undo(port, XDP_SETTING_DEFER);
	mri_xdp_sockets_close(port);
	mri_xdp_sockets_wait(port);
	mri_xdp_sockets_take_back(port);
	mri_xdp_kernel_close(port);
	mri_xdp_prog_close(port);
	mri_xdp_settings_close(port);
}

static int open_own(struct xdp_port *port, struct mr_reason *reason)
{
	int err;

	if ((err = mri_xdp_refuse_used(port, reason)) < 0 ||
	    (err = mri_xdp_events_watch(port, reason)) < 0 ||
	    (err = mri_xdp_lease_take(port, reason)) < 0)
		return err;
	return mri_xdp_lease_finish(port, reason);
}

static int find_own(const char *name, const struct xdp_options *o,
		    struct xdp_netdev *ret_dev, struct mr_reason *reason)
{
	const int err = mri_xdp_netdev_find(name, ret_dev, reason);

	(void)o;
	return err < 0 ? err : mri_xdp_refuse_master(ret_dev, reason);
}

const struct xdp_lessor mri_xdp_self = {
	.driver = &mr_driver_xdp,
	.find = find_own,
	.open = open_own,
	.close = mri_xdp_lease_end,
	.set = mri_xdp_set,
	.set_filter = mri_xdp_filter_reload,
	.rules_caps = mri_xdp_rules_caps,
};
