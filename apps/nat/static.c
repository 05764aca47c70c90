/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings of the configuration: port forwards and one-to-one. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "session.h"

static const uint8_t ip_protos[NAT_PROTOS] = {
	[NAT_UDP] = 17,
	[NAT_TCP] = 6,
	[NAT_ICMP] = 1,
};

uint64_t nat_statics_count(const struct nat_config *config)
{
	uint64_t n = config->n_one_to_ones;

	for (uint32_t i = 0; i < config->n_forwards; i++) {
		const struct nat_forward *forward = &config->forwards[i];

		n += (uint64_t)(forward->outside_last - forward->outside_first +
				1) *
		     (uint32_t)__builtin_popcount(forward->proto_mask);
	}
	return n;
}

static int say_taken(struct mr_reason *reterr_why, const char *end,
		     const struct nat_tuple *tuple)
{
	char addr[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &tuple->addr, addr, sizeof(addr));
	snprintf(reterr_why->text, sizeof(reterr_why->text),
		 "%s %s port %u is forwarded or mapped twice", end, addr,
		 ntohs(tuple->port));
	return -EINVAL;
}

/* The way back in: the array if the port is one of ours, else by hash. */
static bool enter_outside(struct nat_maps *maps, uint32_t id,
			  const struct nat_tuple *outside)
{
	uint32_t proto = nat_proto_of(outside->proto);
	uint32_t place = NAT_PLACE_NONE;

	if (proto != NAT_PROTOS)
		place = nat_ports_place(maps->ports, proto,
					ntohl(outside->addr),
					ntohs(outside->port));
	if (place != NAT_PLACE_NONE)
		return nat_ports_set_static(maps->ports, place, id);
	return nat_other_add(maps, outside, id) == 0;
}

static int no_memory(struct mr_reason *reterr_why)
{
	snprintf(reterr_why->text, sizeof(reterr_why->text),
		 "no room for static mappings: restart with them, or forward "
		 "fewer ports");
	return -ENOSPC;
}

static int make(struct nat_maps *maps, const struct nat_tuple *inside,
		const struct nat_tuple *outside, uint8_t flags,
		struct mr_reason *reterr_why)
{
	uint32_t id, subscriber_id, index;
	struct nat_subscriber *subscriber;
	int err = mr_flow_add(maps->table, inside, &id);

	if (err == -EEXIST)
		return say_taken(reterr_why, "inside address", inside);
	if (err < 0)
		return no_memory(reterr_why);
	subscriber_id = nat_subscriber_get(maps->subscribers, inside->addr,
					   inside->realm);
	if (subscriber_id == MR_FLOW_NONE) {
		mr_flow_remove(maps->table, id);
		return no_memory(reterr_why);
	}
	if (!enter_outside(maps, id, outside)) {
		mr_flow_remove(maps->table, id);
		nat_subscriber_put(maps->subscribers, subscriber_id);
		return say_taken(reterr_why, "outside address", outside);
	}
	subscriber = nat_subscriber_at(maps->subscribers, subscriber_id);
	subscriber->n_statics++;
	/* Paired: what it opens itself comes from the same address. */
	index = nat_external_index(&maps->ports->externals,
				   ntohl(outside->addr));
	if (index != NAT_EXTERNAL_NONE && subscriber->external == 0)
		subscriber->external = index + 1;
	nat_map_fill(maps, id, outside->addr, outside->port,
		     (uint8_t)(NAT_MAP_STATIC | flags), subscriber_id, 0);
	maps->n_statics++;
	return 0;
}

static int make_forward(struct nat_maps *maps,
			const struct nat_forward *forward, uint32_t proto,
			struct mr_reason *reterr_why)
{
	uint32_t n = (uint32_t)forward->outside_last - forward->outside_first;
	int err = 0;

	for (uint32_t i = 0; i <= n && err == 0; i++) {
		const struct nat_tuple inside = {
			.addr = htonl(forward->inside_addr),
			.port = htons((uint16_t)(forward->inside_first + i)),
			.proto = ip_protos[proto],
		};
		const struct nat_tuple outside = {
			.addr = htonl(forward->outside_addr),
			.port = htons((uint16_t)(forward->outside_first + i)),
			.proto = ip_protos[proto],
		};

		err = make(maps, &inside, &outside, 0, reterr_why);
	}
	return err;
}

int nat_statics_make(struct nat_maps *maps, struct mr_reason *reterr_why)
{
	const struct nat_config *config = maps->config;
	int err = 0;

	for (uint32_t i = 0; i < config->n_one_to_ones && err == 0; i++) {
		const struct nat_one_to_one *pair = &config->one_to_ones[i];
		const struct nat_tuple inside = { .addr = htonl(
							  pair->inside_addr) };
		const struct nat_tuple outside = {
			.addr = htonl(pair->outside_addr)
		};

		err = make(maps, &inside, &outside, NAT_MAP_ADDRESS,
			   reterr_why);
	}
	maps->n_one_to_ones = config->n_one_to_ones;
	for (uint32_t i = 0; i < config->n_forwards; i++)
		for (uint32_t proto = 0; proto < NAT_PROTOS && err == 0;
		     proto++)
			if (config->forwards[i].proto_mask & 1u << proto)
				err = make_forward(maps, &config->forwards[i],
						   proto, reterr_why);
	return err;
}
