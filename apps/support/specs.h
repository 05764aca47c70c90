/* SPDX-License-Identifier: BSD-3-Clause */
/* The specs that ports are opened with: the user's, and the options for all. */
#ifndef SUPPORT_SPECS_H
#define SUPPORT_SPECS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum { MAX_SPEC_BYTES = 1024 };

enum promisc {
	PROMISC_AUTO, /* on where the driver knows the option */
	PROMISC_ON,   /* and one port has to know it */
	PROMISC_OFF,
};

/* For all ports whose driver knows the option. 0: each port's own default. */
struct port_options {
	uint32_t n_queues, n_ring, mtu_bytes;
	enum promisc promisc;
};

/*
 * Write the spec of each port, with those of the options that its driver knows
 * and the spec does not set itself. Returns 0, or the exit status with a line
 * that says why: a spec that does not parse, or an option that was given and
 * that no port takes.
 */
int specs_make(struct mr_ctx *ctx, const char *const *specs, uint32_t n_specs,
	       const struct port_options *options,
	       char (*ret_specs)[MAX_SPEC_BYTES], struct mr_reason *ret_error);

/*
 * Whether no interface and no PCI device is there twice, as far as the specs
 * say it; sets the line if one is.
 */
bool specs_differ(const char *const *specs, uint32_t n_specs,
		  struct mr_reason *ret_error);

/* Set a line, and return the status. */
int fail_with(struct mr_reason *ret_error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* With the port's name in front, unless the library says it itself. */
int fail_port(struct mr_reason *ret_error, int status, const char *spec,
	      const struct mr_reason *why);

#endif
