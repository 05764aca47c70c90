/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PORT_EVENTS_H
#define MILLRACE_PORT_EVENTS_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/port.h>

MR_BEGIN_DECLS

/**
 * @file
 * The link of an open port, and what happens to its device.
 *
 * mr_port_poll() looks for changes and calls the port's subscriber once with
 * all of them. mr_port_info() and mr_port_link() have the new values by then.
 */

/** State of a port's link. */
struct mr_link {
	uint32_t is_up;       /**< carrier and administratively up */
	uint32_t speed_mbps;  /**< 0: unknown */
	uint32_t is_gone;     /**< 1: deleted, moved to another network
			       *   namespace, or failed for good */
	uint32_t is_ended;    /**< 1: nothing more will arrive (end of the
			       *   capture) */
	uint32_t is_detached; /**< 1: another program took the device's frames:
			       *   nothing arrives */
	uint32_t is_returned; /**< 1: gone, but a device of its name exists
			       *   again: close the port and open it */
	uint32_t reserved[2];
};

/** Bits of the argument of mr_port_event_fn. */
enum mr_port_event {
	/** mr_link.is_up or speed_mbps changed. */
	MR_PORT_EVENT_LINK = 1u << 0,
	/** mr_port_info.mac changed. */
	MR_PORT_EVENT_MAC = 1u << 1,
	/** mr_port_info.mtu_bytes changed. */
	MR_PORT_EVENT_MTU = 1u << 2,
	/** mr_port_info.n_channels changed. Unless it equals n_rxqs, the device
	 * may receive on a queue that the port does not have. */
	MR_PORT_EVENT_QUEUES = 1u << 3,
	/** mr_port_info.netdev changed: the interface was renamed. */
	MR_PORT_EVENT_NAME = 1u << 4,
	/** mr_link.is_gone is set: the device was deleted, moved to another
	 * network namespace, or failed. The port stays dead: close it. */
	MR_PORT_EVENT_GONE = 1u << 5,
	/** mr_link.is_returned is set: a port opened with the same spec would
	 * find a device again. */
	MR_PORT_EVENT_RETURNED = 1u << 6,
	/** mr_link.is_detached is set: another program took the device's
	 * frames. None arrive until the port is closed and opened again. */
	MR_PORT_EVENT_DETACHED = 1u << 7,
	/** mr_link.is_ended is set: nothing more will arrive. */
	MR_PORT_EVENT_ENDED = 1u << 8,
};

/**
 * State of the link, as of the last mr_port_poll().
 *
 * @return 0, or -ENOTSUP: the device has no link state. Thread: any.
 */
MR_API int mr_port_link(const struct mr_port *port, struct mr_link *ret_link);

/**
 * Wait until each of @p ports has its link, has none to report, or has ended
 * (mr_link.is_ended). Opening a port does not wait: a NIC that opening resets
 * needs seconds for its link, and what is sent before that may be lost. Calls
 * mr_port_poll() on all ports, again and again, so that their subscribers are
 * called.
 *
 * @return 0, or
 *   -ENODEV    a port is gone (mr_link.is_gone)
 *   -ETIMEDOUT a link is still down after @p timeout_ms
 *
 * Owner:  unchanged.
 * Thread: that of mr_port_poll() of all these ports.
 * Cost:   sleeps, and looks again every few milliseconds.
 */
MR_API int mr_ports_wait_link(struct mr_port *const *ports, uint32_t n_ports,
			      uint32_t timeout_ms);

/**
 * A subscriber of a port's events. Must not close the port.
 *
 * @param events  MR_PORT_EVENT_* bits, at least one
 *
 * Thread: that of mr_port_poll().
 */
typedef void mr_port_event_fn(void *opaque, struct mr_port *port,
			      uint32_t events);

/**
 * Set the subscriber of @p port. Changes that the program makes itself, with
 * mr_port_set_mtu() and the like, are not reported.
 *
 * @param fn  called from mr_port_poll() only; NULL ends the subscription
 *
 * @return 0, or -EBUSY: the port has a subscriber already
 *
 * Owner:  the caller, of @p opaque.
 * Thread: any; not during mr_port_poll().
 */
MR_API int mr_port_subscribe(struct mr_port *port, mr_port_event_fn *fn,
			     void *opaque);

/**
 * Close the device of @p port and open it again with the same spec and config,
 * after MR_PORT_EVENT_GONE, _RETURNED or _DETACHED. The port, its subscriber
 * and its counters stay; queue 0 has what all queues counted before. Pending
 * frames are lost: MR_TX_DROP_PORT_GONE. The queues are new: get them again.
 * Settings made with mr_port_set_mtu() and the like (<millrace/port_device.h>)
 * are repeated, but not RSS, steering and mr_port_open_kernel(). A setting that
 * the device now refuses is logged, and stays as opened.
 *
 * @return 0, or as mr_port_open(). If the spec names no device, or one that
 *         lacks what the spec requires (-ENODEV, -EINVAL), nothing changes.
 *         After other errors the port has no device: it is gone,
 *         mr_port_info.mode is "absent", and it has an rx queue without frames
 *         and a tx queue that drops them; call again later.
 *   -EBUSY  also if the port belongs to a set of rules; nothing changes
 *
 * Owner:  the port, of the new queues; the old ones have ended.
 * Thread: that of mr_port_poll(), with nobody using the queues or reading their
 *         counters and the port's; otherwise as mr_port_open(). Others may call
 *         mr_port_info() and mr_port_link().
 * Cost:   as mr_port_close() and mr_port_open().
 */
MR_API int mr_port_reopen(struct mr_port *port,
			  struct mr_reason *reterr_reason);

/**
 * Open queues for all channels for which the port has none, or for none of
 * them. Call it after MR_PORT_EVENT_QUEUES: until then, frames on these
 * channels are lost, and mr_port_device_drops() counts them.
 *
 * @return how many rx queues were added, at most mr_port_info.n_channels -
 *         n_rxqs; there may be fewer tx queues; or
 *   -ENOTSUP the driver cannot do this, or not with the port's options
 *   -ENOMEM  no memory, or the pool has too few pages for more rings
 *   others   as mr_port_open()
 *
 * Owner:  the port, of the queues.
 * Thread: that of mr_port_poll(); concurrently with the users of the queues
 *         that the port had.
 * Cost:   as mr_port_open().
 */
MR_API int mr_port_add_queues(struct mr_port *port,
			      struct mr_reason *reterr_reason);

MR_END_DECLS

#endif
