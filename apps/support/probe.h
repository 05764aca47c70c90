/* SPDX-License-Identifier: BSD-3-Clause */
/* Static probes, a nop each: docs/operations.md. Without <sys/sdt.h>: nothing.
 */
#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include <stdint.h>

#ifdef HAVE_SDT
#include <sys/sdt.h>
#endif

/* A worker received n entries, 1 or more. */
static inline void probe_burst(uint32_t port_idx, uint32_t queue_idx,
			       uint32_t n)
{
	(void)port_idx;
	(void)queue_idx;
	(void)n;
#ifdef HAVE_SDT
	DTRACE_PROBE3(millrace, burst, port_idx, queue_idx, n);
#endif
}

/* The program is about to free n entries, for a named reason. */
static inline void probe_drop(const char *why, uint32_t n)
{
	(void)why;
	(void)n;
#ifdef HAVE_SDT
	DTRACE_PROBE2(millrace, drop, why, n);
#endif
}

#endif
