/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "run.h"
#include "run_ports.h"
#include "text.h"

enum {
	FIRST_WAIT_MS = 100, /* to open a port again */
	MAX_WAIT_MS = 5000,
	/* For a link at the start: attaching a program resets many NICs. */
	LINK_WAIT_MS = 10000,
};

static void print_event(const struct run_port *port, const char *text)
{
	print_error("%s: %s: %s", port->all->config->plane->program, port->name,
		    text);
}

static uint64_t now_ns(const struct run_port *port)
{
	return mr_ctx_now_ns(port->all->config->plane->ctx);
}

/* Why a port counts as lost for --exit-on-port-loss; NULL: it does not. */
static const char *find_loss(const struct run_port *port)
{
	if (!port->has_link || port->link.is_ended)
		return NULL;
	if (port->link.is_gone)
		return "the device is gone";
	if (port->up_by_ns > now_ns(port))
		return NULL;
	if (port->link.is_detached)
		return "another program took its frames";
	return port->link.is_up ? NULL : "the link is down";
}

static void look_for_loss(struct run_port *port)
{
	const char *loss = find_loss(port);

	if (loss == NULL || !port->all->config->options.is_ending_on_loss ||
	    port->all->is_lost)
		return;
	port->all->is_lost = true;
	print_error("%s: %s: %s: stopping (--exit-on-port-loss)",
		    port->all->config->plane->program, port->name, loss);
}

/* Report changes of the link. The end of a capture is not a lost link. */
static void take_link(struct run_port *port, uint32_t events)
{
	const bool was_up = port->link.is_up;

	if (mr_port_link(port->all->config->plane->ports[port->idx],
			 &port->link) < 0)
		return;
	if (events & MR_PORT_EVENT_GONE)
		print_event(port, "the device is gone");
	else if (events & MR_PORT_EVENT_DETACHED)
		print_event(port, "another program took its frames");
	else if (was_up != port->link.is_up && !port->link.is_ended &&
		 !port->link.is_gone)
		print_event(port, port->link.is_up ? "link up" : "link down");
	if (port->link.is_up)
		port->up_by_ns = 0;
	look_for_loss(port);
}

/* Only network interfaces are opened again: while a NIC is pulled, the kernel
 * waits for its users, and opening it would block. */
static void begin_absence(struct run_port *port)
{
	port->is_away = port->has_netdev;
	port->wait_ns = FIRST_WAIT_MS * UINT64_C(1000000);
	port->retry_ns = now_ns(port) + port->wait_ns;
}

static void take_events(void *opaque, struct mr_port *mr_port, uint32_t events)
{
	struct run_port *port = opaque;
	const struct run_config *config = port->all->config;

	(void)mr_port;
	take_link(port, events);
	port->must_add |= (events & MR_PORT_EVENT_QUEUES) != 0;
	if (events & (MR_PORT_EVENT_GONE | MR_PORT_EVENT_DETACHED))
		begin_absence(port);
	if (events & MR_PORT_EVENT_RETURNED)
		port->retry_ns = 0;
	if (config->port_event != NULL)
		config->port_event(config->app, port->idx, events);
}

static void add_queues(struct run_port *port)
{
	const struct dataplane *plane = port->all->config->plane;
	struct mr_reason why;
	const int n = mr_port_add_queues(plane->ports[port->idx], &why);

	port->must_add = false;
	if (n < 0)
		print_error("%s: %s: frames of the new channels are dropped "
			    "(queue_without_socket): %s",
			    plane->program, port->name, why.text);
	else if (n > 0)
		print_error("%s: %s: %d rx queues added", plane->program,
			    port->name, n);
	port->all->has_new_queues |= n > 0;
}

/* End the process at once: a worker may still use what would be freed. */
static void end_process(const struct run_ports *all,
			const struct mr_reason *why)
{
	print_error("%s: %s", all->config->plane->program, why->text);
	_exit(1);
}

static void pause_workers(const struct run_ports *all)
{
	const struct run_config *config = all->config;
	struct mr_reason why;

	if (dataplane_pause(config->plane, config->drop, config->workers,
			    &why) < 0)
		end_process(all, &why);
}

/* Start the workers again with all queues that exist now. */
static void resume_workers(struct run_ports *all)
{
	const struct run_config *config = all->config;
	struct mr_reason why;

	if (dataplane_resume(config->plane, config->work, config->workers,
			     &why) < 0)
		end_process(all, &why);
	all->has_new_queues = false;
}

/* -ENODEV: no device. This is usual, so workers are not stopped for it. */
static int find_device(const struct run_port *port, struct mr_reason *why)
{
	const struct dataplane *plane = port->all->config->plane;
	const char *const spec = plane->specs[port->idx];
	struct mr_pool_config size = { .size = sizeof(size),
				       .page_bytes = 4096 };

	return mr_pool_size_for(plane->ctx, &spec, 1, 1, 0, &size, why);
}

static int reopen_port(struct run_port *port, struct mr_reason *why)
{
	const struct run_config *config = port->all->config;
	struct mr_port *mr_port = config->plane->ports[port->idx];
	int err;

	pause_workers(port->all);
	if (config->port_closing != NULL)
		config->port_closing(config->app, port->idx);
	err = mr_port_reopen(mr_port, why);
	(void)mr_port_link(mr_port, &port->link);
	if (err == 0 && config->port_opened != NULL)
		config->port_opened(config->app, port->idx);
	resume_workers(port->all);
	return err;
}

static void try_to_reopen(struct run_port *port)
{
	struct dataplane *plane = port->all->config->plane;
	struct mr_reason why;
	int err;

	if (now_ns(port) < port->retry_ns)
		return;
	err = find_device(port, &why);
	if (err == 0)
		err = reopen_port(port, &why);
	if (err == 0) {
		port->is_away = port->has_failed = false;
		plane->n_reopened[port->idx]++;
		print_event(port, port->link.is_up ?
					  "opened again, link up" :
					  "opened again, link down");
		return;
	}
	if (err != -ENODEV && !port->has_failed) {
		port->has_failed = true;
		print_error("%s: %s: cannot be opened again yet: %s",
			    plane->program, port->name, why.text);
	}
	port->wait_ns *= port->wait_ns < MAX_WAIT_MS * UINT64_C(1000000) ? 2 : 1;
	port->retry_ns = now_ns(port) + port->wait_ns;
}

/* Add queues and open lost ports again, while the workers are stopped. */
static void repair_ports(struct run_ports *all)
{
	const uint32_t n_ports = all->config->plane->n_ports;

	for (uint32_t p = 0; p < n_ports; p++)
		if (all->ports[p].must_add)
			add_queues(&all->ports[p]);
	if (all->has_new_queues) {
		pause_workers(all);
		resume_workers(all);
	}
	for (uint32_t p = 0; p < n_ports; p++)
		if (all->ports[p].is_away)
			try_to_reopen(&all->ports[p]);
}

bool run_ports_poll(struct run_ports *all)
{
	const struct run_config *config = all->config;
	const uint32_t n_ports = config->plane->n_ports;

	for (uint32_t p = 0; p < n_ports; p++)
		mr_port_poll(config->plane->ports[p]);
	for (uint32_t p = 0; p < n_ports; p++)
		look_for_loss(&all->ports[p]);
	if (all->is_lost)
		return true;
	if (!config->ends_by_fd && !all->is_frozen)
		repair_ports(all);
	if (config->polled != NULL)
		config->polled(config->app);
	return false;
}

bool run_ports_have_ended(const struct run_ports *all)
{
	for (uint32_t p = 0; p < all->config->plane->n_ports; p++)
		if (!all->ports[p].has_link || !all->ports[p].link.is_ended)
			return false;
	return true;
}

void run_ports_begin(struct run_ports *all, const struct run_config *config)
{
	*all = (struct run_ports){ .config = config };
	for (uint32_t p = 0; p < config->plane->n_ports; p++) {
		struct mr_port *mr_port = config->plane->ports[p];
		struct mr_port_info info = { .size = sizeof(info) };
		struct run_port *port = &all->ports[p];

		port->all = all;
		port->idx = p;
		port->has_link = mr_port_link(mr_port, &port->link) == 0;
		mr_port_info(mr_port, &info);
		snprintf(port->name, sizeof(port->name), "%s", info.name);
		port->has_netdev = info.netdev[0] != '\0';
		(void)mr_port_subscribe(mr_port, take_events, port);
		if (port->has_link && !port->link.is_up &&
		    !port->link.is_gone && !port->link.is_ended) {
			port->up_by_ns = now_ns(port) +
					 LINK_WAIT_MS * UINT64_C(1000000);
			print_event(port, "link down");
		}
		if (port->link.is_gone || port->link.is_detached)
			begin_absence(port);
	}
}
