/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the interface. */
#ifndef XDP_DEVICE_EVENTS_H
#define XDP_DEVICE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/error.h>

struct mr_port;
struct xdp_port;

/* events.c */
/* rtnetlink events; an fd or -errno. */
int mri_xdp_events_open(void);
/* Make port->base.fd readable at each event. */
int mri_xdp_events_watch(struct xdp_port *port, struct mr_reason *reason);
void mri_xdp_events_close(struct xdp_port *port);
uint32_t mri_xdp_events_poll(struct mr_port *base);
/* Discard the events of a netlink socket, or of -1. Whether there were any. */
bool mri_xdp_drain_events(int fd);
/* Read how many channels there are. */
void mri_xdp_take_channels(struct xdp_port *port);

/*
 * For a client in another network namespace: a netlink socket that answers only
 * about one interface, because the kernel lets anyone ask about all; or -1.
 */
int mri_xdp_query_open(uint32_t ifindex);

#endif
