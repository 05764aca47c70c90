/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --offload, and what all sets of rules have:
 * <millrace/experimental/offload.h>.
 */
#ifndef SUPPORT_OFFLOADING_H
#define SUPPORT_OFFLOADING_H

#include <stdbool.h>

#include <millrace/experimental/offload.h>

#include "options.h"
#include "snapshot.h"

enum offload_choice { OFFLOAD_OFF, OFFLOAD_AUTO, OFFLOAD_ON };
extern const char *const offload_words[]; /* their names; NULL ends them */

/* There will be no rules: 0 and a line on stderr if the choice is auto, or
 * -ENOTSUP. */
int offload_refuse(const char *program, enum offload_choice choice,
		   const char *why, struct mr_reason *ret_error);

/*
 * Check that ports support a kind of rules; sends: rules must also send from
 * the ports. 1, or as offload_refuse(). If rules are merely not advised and the
 * choice is on, a line on stderr says so; a port that rules cannot send from
 * now may support it later.
 */
int offload_check_ports(const char *program, enum offload_choice choice,
			struct mr_port *const *ports, uint32_t n_ports,
			enum mr_rule_match match, bool sends,
			struct mr_reason *ret_error);

struct offload_counts {
	uint64_t attempted; /* frames that rules gave a port */
	uint64_t drops;     /* of those, lost */
	uint64_t has_drops; /* 0: losses are unknown */
	uint32_t n_ports;
	struct mr_rules_sent sent[MAX_PORTS];
};

struct offload_counts offload_count(struct mr_rules *rules, uint32_t n_ports);
/* Add the counts of rules that were closed before. */
void offload_add(struct offload_counts *counts,
		 const struct offload_counts *before);
/* Add the frames that rules sent by each port. */
void offload_fill(struct snapshot *snapshot,
		  const struct offload_counts *counts);

#endif
