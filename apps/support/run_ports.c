/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <unistd.h>

#include "run.h"
#include "run_ports.h"
#include "text.h"

static void say(const struct run_port *port, const char *text)
{
	print_error("%s: %s: %s", port->all->config->plane->program, port->name,
		    text);
}

/* What is lost, with --exit-on-port-loss; NULL: nothing. */
static const char *find_loss(const struct run_port *port)
{
	if (!port->has_link || port->link.is_ended)
		return NULL;
	if (port->link.is_gone)
		return "the device is gone";
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
	print_error("%s: %s: %s: ends, because of --exit-on-port-loss",
		    port->all->config->plane->program, port->name, loss);
}

/* Report changes of the link. The end of a capture is no lost link. */
static void take_link(struct run_port *port, uint32_t events)
{
	const bool was_up = port->link.is_up;

	if (mr_port_link(port->all->config->plane->ports[port->idx],
			 &port->link) < 0)
		return;
	if (events & MR_PORT_EVENT_GONE)
		say(port, "the device is gone");
	else if (events & MR_PORT_EVENT_DETACHED)
		say(port, "another program took its frames");
	else if (was_up != port->link.is_up && !port->link.is_ended &&
		 !port->link.is_gone)
		say(port, port->link.is_up ? "link up" : "link down");
	look_for_loss(port);
}

static void take_events(void *opaque, struct mr_port *mr_port, uint32_t events)
{
	struct run_port *port = opaque;
	const struct run_config *config = port->all->config;

	(void)mr_port;
	take_link(port, events);
	port->must_add |= (events & MR_PORT_EVENT_QUEUES) != 0;
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

/* End the workers, and let them begin again with the queues that there are. */
static void restart_workers(struct run_ports *all)
{
	const struct run_config *config = all->config;
	struct dataplane *plane = config->plane;
	struct mr_reason why;
	int err = dataplane_pause(plane, config->drop, config->workers, &why);

	if (err == 0)
		err = dataplane_resume(plane, config->work, config->workers,
				       &why);
	all->has_new_queues = false;
	if (err == 0)
		return;
	print_error("%s: %s", plane->program, why.text);
	_exit(1); /* a worker may still use what would be freed */
}

bool run_ports_poll(struct run_ports *all)
{
	const struct run_config *config = all->config;
	const uint32_t n_ports = config->plane->n_ports;

	for (uint32_t p = 0; p < n_ports; p++)
		mr_port_poll(config->plane->ports[p]);
	if (all->is_lost)
		return true;
	for (uint32_t p = 0; p < n_ports; p++)
		if (all->ports[p].must_add)
			add_queues(&all->ports[p]);
	if (all->has_new_queues)
		restart_workers(all);
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
		(void)mr_port_subscribe(mr_port, take_events, port);
	}
}
