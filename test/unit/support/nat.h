/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of an application that there is not, with one of each kind. */
#ifndef UNIT_SUPPORT_NAT_H
#define UNIT_SUPPORT_NAT_H

#include "support/snapshot.h"

enum { NAT_MADE, NAT_KEPT, NAT_HITS, N_NAT_WORKER };
enum { NAT_OPEN, NAT_CREATED, NAT_BYTES, N_NAT_SESSION };

static const char *const nat_drops[] = { "no_port", "martian" };

static const struct worker_row nat_worker[N_NAT_WORKER] = {
	[NAT_MADE] = { "icmp_made", INVARIANT_MADE },
	[NAT_KEPT] = { "for_us", INVARIANT_KEPT },
	[NAT_HITS] = { "hits", INVARIANT_NONE },
};

static const struct count_row nat_session[N_NAT_SESSION] = {
	[NAT_OPEN] = { "open", "open" },
	[NAT_CREATED] = { "created", "created" },
	[NAT_BYTES] = { "bytes", "bytes of memory" },
};

static const struct count_row nat_quiet[] = {
	{ "blocks", "blocks" },
};

static const struct count_group nat_groups[] = {
	{ "sessions", "sessions", nat_session, N_NAT_SESSION },
	{ "subscribers", "subscribers", nat_quiet, 1 },
};

#endif
