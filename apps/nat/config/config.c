/* SPDX-License-Identifier: BSD-3-Clause */
/* A translator's settings: defaults, what follows from others, and the end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

void nat_config_init(struct nat_config *config)
{
	*config = (struct nat_config){
		/* The sources are beside the members in config.h. */
		.timeouts = { .udp_s = 300,
			      .tcp_opening_s = 240,
			      .tcp_open_s = 7440,
			      .tcp_closing_s = 240,
			      .tcp_reset_s = 240,
			      .tcp_unsolicited_s = 6,
			      .icmp_s = 60,
			      .other_s = 300,
			      .fragment_s = 2,
			      .quarantine_s = 120 },
		/* RFC 6888 REQ-7, RFC 4787 REQ-8: transparency first. */
		.filtering = { NAT_FILTER_NONE, NAT_FILTER_NONE,
			       NAT_FILTER_NONE },
		.ports = { .first = 1024,
			   .last = 65535,
			   .keeps_port = true,
			   .keeps_parity = true,
			   .keeps_class = true,
			   .max_blocks = 8 },
		.max_mappings = 1 << 20,
		.max_sessions = 1 << 20,
		.is_paired = true,
		.hairpins = true,
		.answers_ping = true,
		.fills_options = true,
		.follows_source_routes = true,
		.max_fragments = 256,
		.state_interval_s = 30,
	};
}

void nat_config_free(struct nat_config *config)
{
	free(config->pool);
	free(config->subscribers);
	free(config->forwards);
	free(config->one_to_ones);
	free(config->excludes);
	*config = (struct nat_config){ 0 };
}

int nat_config_complete(struct nat_config *config)
{
	const struct nat_side_config *inside = &config->sides[NAT_INSIDE];
	const struct nat_side_config *outside = &config->sides[NAT_OUTSIDE];

	if (config->n_pool == 0 && outside->n_addrs > 0) {
		config->pool = calloc(1, sizeof(config->pool[0]));
		if (config->pool == NULL)
			return -ENOMEM;
		config->pool[0] = (struct nat_range){ outside->addrs[0],
						      outside->addrs[0] };
		config->n_pool = 1;
	}
	if (config->n_subscribers == 0 && inside->n_addrs > 0) {
		config->subscribers =
			calloc(inside->n_addrs, sizeof(config->subscribers[0]));
		if (config->subscribers == NULL)
			return -ENOMEM;
		/* Two addresses of one network are one network. */
		for (uint32_t i = 0; i < inside->n_addrs; i++) {
			const struct nat_prefix *net = &inside->nets[i];
			bool is_known = false;

			for (uint32_t j = 0; j < config->n_subscribers; j++)
				is_known |= memcmp(net, &config->subscribers[j],
						   sizeof(*net)) == 0;
			if (!is_known)
				config->subscribers[config->n_subscribers++] =
					*net;
		}
	}
	return 0;
}

bool nat_config_advice(const struct nat_config *config, uint32_t i,
		       struct mr_reason *ret_advice)
{
	const struct nat_timeouts *t = &config->timeouts;
	const struct {
		const char *name;
		uint32_t value_s, least_s;
		const char *source;
	} times[] = {
		{ "udp", t->udp_s, 120, "RFC 4787 REQ-5: MUST" },
		{ "tcp_open", t->tcp_open_s, 7440, "RFC 5382 REQ-5: MUST" },
		{ "tcp_opening", t->tcp_opening_s, 240,
		  "RFC 7857 section 2.2: RECOMMENDED" },
		{ "tcp_closing", t->tcp_closing_s, 240,
		  "RFC 7857 section 2.2: RECOMMENDED" },
		{ "tcp_reset", t->tcp_reset_s, 240,
		  "RFC 7857 section 2.3: SHOULD" },
		{ "tcp_unsolicited", t->tcp_unsolicited_s, 6,
		  "RFC 5382 REQ-4: MUST" },
		{ "icmp", t->icmp_s, 60, "RFC 5508 REQ-2: MUST" },
		{ "quarantine", t->quarantine_s, 120,
		  "RFC 6888 REQ-8: SHOULD" },
	};
	uint32_t n = 0;

	for (uint32_t j = 0; j < sizeof(times) / sizeof(times[0]); j++) {
		snprintf(ret_advice->text, sizeof(ret_advice->text),
			 "timeouts: %s: %u s is less than the %u s of %s",
			 times[j].name, times[j].value_s, times[j].least_s,
			 times[j].source);
		if (times[j].value_s < times[j].least_s && n++ == i)
			return true;
	}
	snprintf(ret_advice->text, sizeof(ret_advice->text),
		 "hairpin: off; RFC 4787 REQ-9 and RFC 5382 REQ-8: MUST");
	if (!config->hairpins && n++ == i)
		return true;
	snprintf(ret_advice->text, sizeof(ret_advice->text),
		 "pairing: off; RFC 6888 REQ-2: MUST be the default");
	if (!config->is_paired && n++ == i)
		return true;
	snprintf(ret_advice->text, sizeof(ret_advice->text),
		 "outside: no gateway, so only hosts of its own networks are "
		 "reached");
	return config->sides[NAT_OUTSIDE].gateway == 0 && n == i;
}

bool nat_config_can_follow(const struct nat_config *config,
			   const struct nat_config *next,
			   const char **ret_setting)
{
	const struct nat_side_config *in = &config->sides[NAT_INSIDE];
	const struct nat_side_config *out = &config->sides[NAT_OUTSIDE];
	const struct nat_side_config *next_in = &next->sides[NAT_INSIDE];
	const struct nat_side_config *next_out = &next->sides[NAT_OUTSIDE];
	/* What ports, tables and queues were made from. */
	const struct {
		const char *name;
		bool differs;
	} settings[] = {
		{ "inside: port", strcmp(in->spec, next_in->spec) != 0 },
		{ "outside: port", strcmp(out->spec, next_out->spec) != 0 },
		{ "inside: vlan", in->vlan != next_in->vlan },
		{ "outside: vlan", out->vlan != next_out->vlan },
		{ "inside: mtu", in->mtu != next_in->mtu },
		{ "outside: mtu", out->mtu != next_out->mtu },
		{ "limits: mappings",
		  config->max_mappings != next->max_mappings },
		{ "limits: sessions",
		  config->max_sessions != next->max_sessions },
		{ "limits: fragments",
		  config->max_fragments != next->max_fragments },
		{ "log: path", strcmp(config->log_path, next->log_path) != 0 },
	};

	for (uint32_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].differs) {
			*ret_setting = settings[i].name;
			return false;
		}
	return true;
}
