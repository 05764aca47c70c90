/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv4 options that a router fills in: Record Route and Timestamp. parse.c has
 * checked their lengths, and dropped source routes. Sources: RFC 791 3.1, RFC
 * 1812 5.3.13.5 and 5.3.13.6.
 */
#include <time.h>

#include "ip_options.h"

#include <arpa/inet.h>
#include <string.h>

/* Flags of a timestamp, in the lower half of its fourth byte. */
enum { STAMP_ALONE = 0, STAMP_WITH_ADDR = 1, STAMP_OF_ADDR = 3 };

static uint8_t *end_of(const struct nat_packet *packet)
{
	return (uint8_t *)packet->ip + packet->ip_bytes;
}

/* Milliseconds since midnight UT, network order. */
static uint32_t time_stamp(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return htonl(
		(uint32_t)(now.tv_sec % 86400 * 1000 + now.tv_nsec / 1000000));
}

/* Put n bytes into an option; false: not enough room, but not full. */
static bool put_into_option(uint8_t *option, const void *from, uint32_t n)
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
	const uint32_t words[] = { own, time_stamp() };
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
			       put_into_option(option, &words[1],
					       sizeof(words[1])) :
			       put_into_option(option, words, sizeof(words));
	case STAMP_OF_ADDR:
		if (option[2] + 7u > option[1])
			return option[2] > option[1];
		memcpy(&addr, option + option[2] - 1, sizeof(addr));
		return (nat_addrs_of(&path->addrs, addr) & NAT_ADDR_OURS) ==
			       0 ||
		       put_into_option(option, (uint32_t[]){ addr, words[1] },
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
	     is_right && option < end && *option != NAT_OPTION_END;
	     option += nat_option_bytes(option)) {
		if (*option == NAT_OPTION_RECORD_ROUTE)
			is_right = option[1] >= 3 && option[2] >= 4 &&
				   put_into_option(option, &own, sizeof(own));
		else if (*option == NAT_OPTION_TIMESTAMP)
			is_right = put_stamp(path, option, own);
	}
	mr_csum_write_ipv4(packet->ip);
	return is_right;
}
