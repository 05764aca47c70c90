/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handle events of the ports of a running program.
 * Called by the thread of run().
 */
#ifndef SUPPORT_RUN_PORTS_H
#define SUPPORT_RUN_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "dataplane.h"

struct run_config;
struct run_ports;

struct run_port {
	struct run_ports *all;
	uint32_t idx;
	bool has_link; /* it reports its link */
	bool has_netdev; /* a network interface: it is opened again */
	struct mr_link link;
	char name[sizeof(((struct mr_port_info *)0)->name)];
	uint64_t up_by_ns; /* limit for its first link; 0: it was up */
	bool must_add; /* there are channels without a queue */
	/* Its device is gone: when to try to open it again, and the next
	 * wait. */
	bool is_away;
	uint64_t retry_ns, wait_ns;
	bool has_failed; /* and the failure was reported */
};

struct run_ports {
	const struct run_config *config;
	struct run_port ports[MAX_PORTS];
	bool is_lost; /* a port was lost, with --exit-on-port-loss */
	bool is_frozen; /* they are being handed over: neither add nor reopen */
	bool has_new_queues; /* some queues have no worker yet */
};

/* Call it when the workers have started. */
void run_ports_begin(struct run_ports *all, const struct run_config *config);

/* Handle the events of all ports. True: stop. */
bool run_ports_poll(struct run_ports *all);

/* Whether no port can receive any more: all captures have ended. */
bool run_ports_have_ended(const struct run_ports *all);

#endif
