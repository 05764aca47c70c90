/* SPDX-License-Identifier: BSD-3-Clause */
/* What all sets of rules have: offloading.h. */
#include <errno.h>
#include <stdio.h>

#include <millrace/millrace.h>

#include "offloading.h"
#include "specs.h"
#include "text.h"

const char *const offload_words[] = { "off", "auto", "on", NULL };

int offload_refuse(const char *program, enum offload_choice choice,
		   const char *why, struct mr_reason *ret_error)
{
	if (choice == OFFLOAD_ON)
		return fail_with(ret_error, -ENOTSUP, "--offload on: %s", why);
	print_error("%s: --offload auto: off: %s", program, why);
	return 0;
}

int offload_check_ports(const char *program, enum offload_choice choice,
			struct mr_port *const *ports, uint32_t n_ports,
			enum mr_rule_match match, bool sends,
			struct mr_reason *ret_error)
{
	static const char *const kinds[] = { [MR_RULE_ANY] = "all frames",
					     [MR_RULE_STATION] = "addresses",
					     [MR_RULE_FLOW] = "flows" };

	for (uint32_t i = 0; i < n_ports; i++) {
		struct mr_offload_caps caps = { .size = sizeof(caps) };
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_reason why;
		char text[400];

		if (mr_port_offload_caps(ports[i], &caps, &why) < 0)
			return offload_refuse(program, choice, why.text,
					      ret_error);
		mr_port_info(ports[i], &info);
		if (!(caps.matches & 1u << match)) {
			snprintf(text, sizeof(text), "%s: no rules for %s",
				 info.name, kinds[match]);
			return offload_refuse(program, choice, text, ret_error);
		}
		if ((caps.can_send || !sends) &&
		    (caps.is_advised || choice == OFFLOAD_ON))
			continue;
		snprintf(text, sizeof(text), "%s: %s", info.name, caps.why);
		if (choice == OFFLOAD_AUTO)
			return offload_refuse(program, choice, text, ret_error);
		print_error("%s: --offload on: %s", program, text);
	}
	return 1;
}

struct offload_counts offload_count(struct mr_rules *rules, uint32_t n_ports)
{
	struct offload_counts counts = { .has_drops = 1, .n_ports = n_ports };

	for (uint32_t i = 0; i < n_ports; i++) {
		struct mr_rules_sent *sent = &counts.sent[i];

		sent->size = sizeof(*sent);
		mr_rules_sent(rules, i, sent);
		counts.attempted += sent->attempted;
		counts.drops += sent->drops;
		counts.has_drops &= sent->has_drops;
	}
	return counts;
}

void offload_add(struct offload_counts *counts,
		 const struct offload_counts *before)
{
	if (before->n_ports == 0) /* there were none */
		return;
	counts->attempted += before->attempted;
	counts->drops += before->drops;
	counts->has_drops &= before->has_drops;
	for (uint32_t i = 0; i < before->n_ports; i++) {
		counts->sent[i].attempted += before->sent[i].attempted;
		counts->sent[i].bytes += before->sent[i].bytes;
	}
}

void offload_fill(struct snapshot *snapshot,
		  const struct offload_counts *counts)
{
	for (uint32_t i = 0; i < counts->n_ports; i++) {
		const struct mr_rules_sent *sent = &counts->sent[i];
		struct port_snapshot *port = &snapshot->ports[i];

		port->has_rules = true;
		port->tx_offloaded = sent->attempted;
		port->offloaded_bytes = sent->bytes;
	}
}
