/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv4 options that a router processes: source routes, Record Route and
 * Timestamp. parse.c has checked their lengths. Sources: RFC 791 3.1, RFC 1812
 * 5.3.13.4 to 5.3.13.6.
 */
#include <time.h>

#include "core.h"

enum {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_RECORD_ROUTE = 7,
	OPTION_TIMESTAMP = 68,
	OPTION_LSRR = 131,
	OPTION_SSRR = 137,
};

/* Flags of a timestamp, in the lower half of its fourth byte. */
enum { STAMP_ALONE = 0, STAMP_WITH_ADDR = 1, STAMP_OF_ADDR = 3 };

static uint8_t *end_of(const struct nat_packet *packet)
{
	return (uint8_t *)packet->ip + packet->ip_bytes;
}

static uint8_t *next_of(uint8_t *option)
{
	return option + (*option == OPTION_NOP ? 1 : option[1]);
}

static void fix_sum(const struct nat_packet *packet)
{
	packet->ip->csum = 0;
	packet->ip->csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const uint8_t *)packet->ip, packet->ip_bytes, 0));
}

/* Its source route, or NULL. */
static uint8_t *route_of(const struct nat_packet *packet)
{
	uint8_t *option = (uint8_t *)(packet->ip + 1);
	const uint8_t *end = end_of(packet);

	for (; option < end && *option != OPTION_END; option = next_of(option))
		if (*option == OPTION_LSRR || *option == OPTION_SSRR)
			return option;
	return NULL;
}

bool nat_options_has_route(const struct nat_packet *packet)
{
	return route_of(packet) != NULL;
}

/*
 * Whether a packet may continue to this stop through us. From outside, only to
 * our external addresses, where mappings and filters decide; and only if this
 * worker has all of them, since it was chosen by the previous stop's address.
 */
static bool may_stop_at(const struct nat_path *path,
			const struct nat_packet *packet, uint32_t addr)
{
	return packet->from == NAT_INSIDE ||
	       (!path->has_peers &&
		nat_addrs_of(&path->addrs, addr) & NAT_ADDR_EXTERNAL);
}

enum nat_reason nat_options_route(struct nat_path *path,
				  struct nat_packet *packet)
{
	const uint32_t is = nat_addrs_of(&path->addrs, packet->ip->dst);
	uint8_t *option = route_of(packet);
	uint32_t addr;

	if (option == NULL)
		return NAT_OK;
	if (!path->config->follows_source_routes || option[1] < 3 ||
	    option[2] < 4)
		return NAT_DROP_SOURCE_ROUTE;
	if ((is & NAT_ADDR_OURS) == 0 || option[2] > option[1])
		return NAT_OK; /* we are not a stop of it, or the last one */
	if (option[2] + 3 > option[1])
		return NAT_DROP_SOURCE_ROUTE;
	memcpy(&addr, option + option[2] - 1, sizeof(addr));
	if (!may_stop_at(path, packet, addr))
		return NAT_DROP_SOURCE_ROUTE;
	packet->stop = packet->ip->dst;
	packet->ip->dst = addr;
	addr = path->links[nat_addrs_of(&path->addrs, addr) & NAT_ADDR_INSIDE ?
				   NAT_INSIDE :
				   NAT_OUTSIDE]
		       .own;
	memcpy(option + option[2] - 1, &addr, sizeof(addr));
	option[2] += sizeof(addr);
	fix_sum(packet);
	return NAT_OK;
}

void nat_options_unroute(struct nat_packet *packet)
{
	uint8_t *option;

	if (packet->stop == 0)
		return;
	option = route_of(packet);
	option[2] -= sizeof(packet->ip->dst);
	memcpy(option + option[2] - 1, &packet->ip->dst,
	       sizeof(packet->ip->dst));
	packet->ip->dst = packet->stop;
	packet->stop = 0;
	fix_sum(packet);
}

/* Milliseconds since midnight UT, network order. */
static uint32_t stamp(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return htonl(
		(uint32_t)(now.tv_sec % 86400 * 1000 + now.tv_nsec / 1000000));
}

/* Put n bytes into an option; false: not enough room, but not full. */
static bool put(uint8_t *option, const void *from, uint32_t n)
{
	if (option[2] > option[1])
		return true; /* full */
	if (option[2] - 1u + n > option[1])
		return false;
	memcpy(option + option[2] - 1, from, n);
	option[2] = (uint8_t)(option[2] + n);
	return true;
}

static bool put_stamp(const struct nat_path *path, uint8_t *option,
		      uint32_t own)
{
	const uint32_t words[] = { own, stamp() };
	uint32_t addr;

	if (option[1] < 4 || option[2] < 5)
		return false;
	switch (option[3] & 15) {
	case STAMP_ALONE:
	case STAMP_WITH_ADDR:
		if (option[2] > option[1]) { /* full: count the overflow */
			option[3] = (uint8_t)(option[3] + 16);
			return option[3] >= 16;
		}
		return (option[3] & 15) == STAMP_ALONE ?
			       put(option, &words[1], sizeof(words[1])) :
			       put(option, words, sizeof(words));
	case STAMP_OF_ADDR:
		if (option[2] + 7u > option[1])
			return option[2] > option[1];
		memcpy(&addr, option + option[2] - 1, sizeof(addr));
		return (nat_addrs_of(&path->addrs, addr) & NAT_ADDR_OURS) ==
			       0 ||
		       put(option, (uint32_t[]){ addr, words[1] },
			   sizeof(words));
	default:
		return true;
	}
}

bool nat_options_fill(struct nat_path *path, struct nat_packet *packet,
		      enum nat_side to)
{
	const uint32_t own = path->links[to].own;
	const uint8_t *end = end_of(packet);
	bool is_right = true;

	for (uint8_t *option = (uint8_t *)(packet->ip + 1);
	     is_right && option < end && *option != OPTION_END;
	     option = next_of(option)) {
		if (*option == OPTION_RECORD_ROUTE)
			is_right = option[1] >= 3 && option[2] >= 4 &&
				   put(option, &own, sizeof(own));
		else if (*option == OPTION_TIMESTAMP)
			is_right = put_stamp(path, option, own);
	}
	fix_sum(packet);
	return is_right;
}

enum nat_reason nat_options_forward(struct nat_path *path,
				    struct nat_packet *packet,
				    const struct nat_verdict *verdict)
{
	const enum nat_side to = (enum nat_side)verdict->to;
	uint8_t *option = (uint8_t *)(packet->ip + 1);
	const uint8_t *end = end_of(packet);

	while (option < end && *option != OPTION_END && *option != OPTION_SSRR)
		option = next_of(option);
	if (option < end && *option == OPTION_SSRR &&
	    nat_next_hop(path, to, verdict->dst) != verdict->dst)
		return NAT_DROP_SOURCE_ROUTE;
	if (path->config->fills_options && !nat_options_fill(path, packet, to))
		return NAT_DROP_MALFORMED;
	return NAT_OK;
}
