/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Busy polling: our system calls run the device's NAPI, instead of interrupts.
 *
 * The kernel leaves a NAPI to us as long as we poll it at least once per
 * gro_flush_timeout, provided that napi_defer_hard_irqs is set as well. Both
 * are set for the NAPIs of the port's queues (Linux 6.13), else for the whole
 * interface (device/settings.c); device/record.c restores them.
 *
 * Source: linux/Documentation/networking/napi.rst, "Busy polling" and "IRQ
 * mitigation"; Documentation/networking/af_xdp.rst.
 */
#include <errno.h>
#include <sys/socket.h>

#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

enum {
	SOFT_BUSY_POLL_US = 20,
	PREFER_BUSY_POLL = 69, /* SO_PREFER_BUSY_POLL */
	BUSY_POLL_BUDGET = 70, /* SO_BUSY_POLL_BUDGET */

	/* The values that napi.rst and af_xdp.rst use. */
	DEFER_HARD_IRQS = 2,
	GRO_FLUSH_TIMEOUT_NS = 200000,
};

bool mri_xdp_busy_poll(const struct xdp_port *port, int fd)
{
	const int one = 1, timeout = SOFT_BUSY_POLL_US;
	const int budget = (int)port->options.busy;

	if (budget == 0)
		return false;
	if (setsockopt(fd, SOL_SOCKET, PREFER_BUSY_POLL, &one, sizeof(one)) ==
		    0 &&
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &timeout,
		       sizeof(timeout)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, BUSY_POLL_BUDGET, &budget,
		       sizeof(budget)) == 0)
		return true;
	mr_log(port->base.ctx, MR_LOG_WARNING, "%s: no busy polling: %s",
	       port->base.info->name, mr_strerror(errno));
	return false;
}

/*
 * The NAPIs of the port's queues or, if the driver does not report them, all of
 * the interface. Returns how many, or -errno.
 */
static int find_napis(const struct xdp_port *port, uint32_t *ids)
{
	const uint32_t ifindex = port->dev.ifindex;
	uint32_t n = 0, k;

	for (uint32_t i = 0; i < port->lease.n_queues; i++) {
		const uint32_t id = mri_xdp_queue_napi(
			ifindex, port->lease.first_queue + i);

		if (id == 0)
			return mri_xdp_napi_list(ifindex, ids);
		for (k = 0; k < n && ids[k] != id; k++)
			;
		ids[k] = id;
		n += k == n;
	}
	return (int)n;
}

static int defer_interrupts(struct xdp_port *port, uint32_t napi)
{
	const int err =
		mri_xdp_change(port, XDP_SETTING_DEFER, napi, DEFER_HARD_IRQS);

	return err < 0 ? err :
			 mri_xdp_change(port, XDP_SETTING_FLUSH, napi,
					GRO_FLUSH_TIMEOUT_NS);
}

void mri_xdp_busy_open(struct xdp_port *port)
{
	const char *const name = port->base.info->name;
	uint32_t ids[XDP_MAX_NAPIS];
	int n = 0, err = 0;

	if (port->options.busy == 0)
		return;
	if (port->lease.is_native)
		n = find_napis(port, ids);
	if (n == 0) {
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: busy=%u has no effect: there is no NAPI to poll "
		       "%s",
		       name, port->options.busy,
		       port->lease.is_native ?
			       "with this driver" :
			       "if the program is attached in generic mode");
		return;
	}
	for (uint32_t i = 0; i < port->lease.n_queues; i++) {
		if (!mri_xdp_busy_poll(port, port->lease.sockets[i]))
			return;
		port->rxqs[i].is_busy = port->txqs[i].is_busy = true;
	}
	port->lease.is_busy = true;
	for (int i = 0; i < n && err == 0; i++)
		err = defer_interrupts(port, ids[i]);
	if (n < 0 || err == -EOPNOTSUPP)
		err = defer_interrupts(port, 0);
	if (err < 0)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: cannot defer interrupts (%s), which compete with "
		       "busy polling: set napi_defer_hard_irqs and "
		       "gro_flush_timeout in /sys/class/net",
		       name,
		       err == -EALREADY ? "another Millrace program is using "
					  "this interface" :
					  mr_strerror(-err));
}
