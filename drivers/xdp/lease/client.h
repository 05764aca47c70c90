/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports opened by the broker: what differs from other ports. */
#ifndef XDP_LEASE_CLIENT_H
#define XDP_LEASE_CLIENT_H

#include <millrace/experimental/port_queues.h>

#include "xdp.h"

/* XDP_CLIENT or not, as the spec says or the process's capabilities require. */
int mri_xdp_choose_role(const char *interface, const struct xdp_options *o,
			enum xdp_role *ret_role,
			struct mr_reason *reterr_reason);
/* As mri_xdp_netdev_find(), in the broker's network namespace. */
int mri_xdp_broker_find(const char *interface, const struct xdp_options *o,
			struct xdp_netdev *ret_dev,
			struct mr_reason *reterr_reason);
/* Ask the broker to do mri_xdp_take(), and use the result. */
int mri_xdp_broker_open(struct xdp_port *port, struct mr_reason *reterr_reason);
/* Ask it to change a setting; value as in struct xdp_change. */
int mri_xdp_broker_set(struct xdp_port *port, enum xdp_setting setting,
		       uint64_t value, struct mr_reason *reterr_reason);
/* Make the broker do <millrace/experimental/port_queues.h> and
 * mr_port_set_filter(). */
int mri_xdp_broker_rss(struct xdp_port *port,
		       const struct mr_rss_config *config,
		       struct mr_reason *reterr_reason);
int mri_xdp_broker_steer(struct xdp_port *port,
			 const struct mr_steer_rule *rule, uint32_t *ret_id,
			 struct mr_reason *reterr_reason);
int mri_xdp_broker_unsteer(struct xdp_port *port, uint32_t id,
			   struct mr_reason *reterr_reason);
/* Replace the program with one that has port->filter. */
int mri_xdp_broker_filter(struct xdp_port *port,
			  struct mr_reason *reterr_reason);
/* Return -ENOTSUP: a client cannot do that. */
int mri_xdp_broker_refuse(const struct xdp_port *port, const char *what,
			  struct mr_reason *reterr_reason);
/*
 * For a client in another network namespace: a netlink socket that tells its
 * reader only of one interface, as the kernel lets anyone ask for all; or -1.
 */
int mri_xdp_query_open(uint32_t ifindex);
/* Have it restore the interface, and wait until it has. */
void mri_xdp_broker_close(struct xdp_port *port);

#endif
