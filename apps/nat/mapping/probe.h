/* SPDX-License-Identifier: BSD-3-Clause */
/* Static probes of mappings, as in support/probe.h. */
#ifndef NAT_PROBE_H
#define NAT_PROBE_H

#include <arpa/inet.h>

#include "map.h"

#ifdef HAVE_SDT
#include <sys/sdt.h>
#endif

/* For mappings that are not static: protocol, inside and outside ends.
 * Addresses are in network byte order, as bpftrace's ntop() expects; ports are
 * in host order. */
static inline void nat_probe_created(const struct nat_map *map)
{
	(void)map;
#ifdef HAVE_SDT
	DTRACE_PROBE5(millrace, mapping_created, map->inside.proto,
		      map->inside.addr, ntohs(map->inside.port),
		      map->outside_addr, ntohs(map->outside_port));
#endif
}

static inline void nat_probe_ended(const struct nat_map *map)
{
	(void)map;
#ifdef HAVE_SDT
	DTRACE_PROBE5(millrace, mapping_ended, map->inside.proto,
		      map->inside.addr, ntohs(map->inside.port),
		      map->outside_addr, ntohs(map->outside_port));
#endif
}

#endif
