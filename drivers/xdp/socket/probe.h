/* SPDX-License-Identifier: BSD-3-Clause */
/* Static probes, a nop each: docs/operations.md. Without <sys/sdt.h>: nothing.
 */
#ifndef XDP_SOCKET_PROBE_H
#define XDP_SOCKET_PROBE_H

#include <stdint.h>

#ifdef HAVE_SDT
#include <sys/sdt.h>
#endif

/* n buffers were posted to the fill ring of a queue. */
static inline void xdp_probe_refill(uint32_t queue_idx, uint32_t n)
{
	(void)queue_idx;
	(void)n;
#ifdef HAVE_SDT
	DTRACE_PROBE2(millrace, refill, queue_idx, n);
#endif
}

/* The kernel has sent n entries of a queue. */
static inline void xdp_probe_completion(uint32_t queue_idx, uint32_t n)
{
	(void)queue_idx;
	(void)n;
#ifdef HAVE_SDT
	DTRACE_PROBE2(millrace, completion, queue_idx, n);
#endif
}

#endif
