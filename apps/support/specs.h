/* SPDX-License-Identifier: BSD-3-Clause */
/* The specs for opening ports: the user's, with the options for all. */
#ifndef SUPPORT_SPECS_H
#define SUPPORT_SPECS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "text.h"

enum { MAX_SPEC_BYTES = 1024, MAX_PUNT_BYTES = 240 };

enum promisc {
	PROMISC_AUTO, /* on if the driver supports the option */
	PROMISC_ON,   /* at least one port must support it */
	PROMISC_OFF,
};

/* For all ports whose driver has the option. 0: each port's default. */
struct port_options {
	uint32_t n_queues, n_ring, mtu_bytes;
	enum promisc promisc;
	char punt[MAX_PUNT_BYTES + 1]; /* frames that the kernel keeps: a
					* filter; "": none */
};

/*
 * Write the spec of each port, with the options that its driver supports and
 * the spec does not set. Returns 0, or an exit status with a message: a spec
 * does not parse, or no port takes a given option.
 */
int specs_make(struct mr_ctx *ctx, const char *const *specs, uint32_t n_specs,
	       const struct port_options *options,
	       char (*ret_specs)[MAX_SPEC_BYTES], struct mr_reason *ret_error);

/*
 * Whether no interface or PCI device occurs twice, as far as the specs show;
 * sets the message if one does.
 */
bool specs_differ(const char *const *specs, uint32_t n_specs,
		  struct mr_reason *ret_error);

/* With the port's name as prefix, unless the message has it. */
int fail_port(struct mr_reason *ret_error, int status, const char *spec,
	      const struct mr_reason *why);

#endif
