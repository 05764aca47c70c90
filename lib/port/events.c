/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A driver writes port->info, and threads of the program read a copy under a
 * lock. The copy is updated after each mr_port_poll() and each setting. The
 * differences are the events, so drivers need no code to report them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "pool/hand_over.h"
#include "port/events.h"

enum { LINK_STEP_MS = 5 };

static int read_link(const struct mr_driver *driver, const struct mr_port *port,
		     struct mr_link *ret_link)
{
	return driver->link == NULL ? -ENOTSUP : driver->link(port, ret_link);
}

static uint32_t info_changes(const struct mr_port_info *a,
			     const struct mr_port_info *b)
{
	uint32_t events = 0;

	if (a->has_mac != b->has_mac ||
	    memcmp(a->mac, b->mac, sizeof(a->mac)) != 0)
		events |= MR_PORT_EVENT_MAC;
	if (a->mtu_bytes != b->mtu_bytes)
		events |= MR_PORT_EVENT_MTU;
	if (a->n_channels != b->n_channels)
		events |= MR_PORT_EVENT_QUEUES;
	if (strcmp(a->netdev, b->netdev) != 0)
		events |= MR_PORT_EVENT_NAME;
	return events;
}

static uint32_t link_changes(const struct mr_link *before,
			     const struct mr_link *now)
{
	uint32_t events = 0;

	if (before->is_up != now->is_up ||
	    before->speed_mbps != now->speed_mbps)
		events |= MR_PORT_EVENT_LINK;
	if (!before->is_gone && now->is_gone)
		events |= MR_PORT_EVENT_GONE;
	if (!before->is_returned && now->is_returned)
		events |= MR_PORT_EVENT_RETURNED;
	if (!before->is_detached && now->is_detached)
		events |= MR_PORT_EVENT_DETACHED;
	if (!before->is_ended && now->is_ended)
		events |= MR_PORT_EVENT_ENDED;
	return events;
}

void mri_events_begin(struct mr_port *port, struct mri_events *events)
{
	pthread_mutex_init(&events->lock, NULL); /* cannot fail */
	port->info = &events->info;
	port->events = events;
}

void mri_events_end(struct mr_port *port)
{
	struct mri_events *events = port->events;

	pthread_mutex_destroy(&events->lock);
}

uint32_t mri_events_publish(struct mr_port *port)
{
	struct mri_events *events = port->events;
	struct mr_link link = { 0 };
	uint32_t changes;
	int err;

	if (events == NULL) /* a port that a test made */
		return 0;
	err = read_link(port->driver, port, &link);
	changes = info_changes(&events->shown, port->info) |
		  link_changes(&events->link, &link);
	pthread_mutex_lock(&events->lock);
	events->shown = *port->info;
	events->link = link;
	events->link_err = err;
	pthread_mutex_unlock(&events->lock);
	if (changes != 0)
		mri_pool_forget_kept(port->pool);
	return changes;
}

bool mri_events_tell(struct mr_port *port)
{
	const struct mri_events *events = port->events;
	const uint32_t changes = mri_events_publish(port);

	if (changes != 0 && events->fn != NULL)
		events->fn(events->opaque, port, changes);
	return changes != 0;
}

int mr_port_subscribe(struct mr_port *port, mr_port_event_fn *fn, void *opaque)
{
	struct mri_events *events = port->events;

	if (fn != NULL && events->fn != NULL)
		return -EBUSY;
	events->fn = fn;
	events->opaque = opaque;
	return 0;
}

int mr_port_info(const struct mr_port *port, struct mr_port_info *info)
{
	struct mri_events *events = port->events;
	struct mr_port_info now;

	if (events == NULL) {
		now = *port->info;
	} else {
		pthread_mutex_lock(&events->lock);
		now = events->shown;
		pthread_mutex_unlock(&events->lock);
	}
	return mri_fill_sized(info, &now, sizeof(now));
}

int mr_port_link(const struct mr_port *port, struct mr_link *ret_link)
{
	/* Read once: the port may be opened again meanwhile. */
	const struct mr_driver *driver =
		__atomic_load_n(&port->driver, __ATOMIC_RELAXED);
	struct mri_events *events = port->events;
	int err;

	/* A driver without poll() publishes no changes, so ask it. */
	if (driver->poll == NULL || events == NULL)
		return read_link(driver, port, ret_link);
	pthread_mutex_lock(&events->lock);
	err = events->link_err;
	if (err == 0)
		*ret_link = events->link;
	pthread_mutex_unlock(&events->lock);
	return err;
}

/* 1: its link is not waited for, or not any more; 0: it is; or -ENODEV. */
static int has_link(struct mr_port *port)
{
	struct mr_link link = { 0 };

	(void)mr_port_poll(port);
	if (mr_port_link(port, &link) < 0)
		return 1;
	return link.is_gone ? -ENODEV : link.is_up || link.is_ended;
}

int mr_ports_wait_link(struct mr_port *const *ports, uint32_t n_ports,
		       uint32_t timeout_ms)
{
	const struct timespec step = { .tv_nsec = LINK_STEP_MS * 1000000L };
	const uint64_t end_ns =
		n_ports == 0 ? 0 :
			       mr_ctx_now_ns(ports[0]->ctx) +
				       timeout_ms * UINT64_C(1000000);

	for (;;) {
		uint32_t n = 0;

		for (uint32_t p = 0; p < n_ports; p++) {
			const int has = has_link(ports[p]);

			if (has < 0)
				return has;
			n += (uint32_t)has;
		}
		if (n == n_ports)
			return 0;
		if (mr_ctx_now_ns(ports[0]->ctx) >= end_ns)
			return -ETIMEDOUT;
		nanosleep(&step, NULL);
	}
}
