/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and protocols in text form. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

enum { MAX_PIECE = 40 }; /* of a value that is split */

bool value_addr(const char *text, uint32_t *ret, struct mr_reason *ret_why)
{
	struct in_addr addr;

	if (inet_pton(AF_INET, text, &addr) != 1)
		return value_wrong(
			ret_why,
			"'%s' is not an IPv4 address, such as 192.0.2.1", text);
	*ret = ntohl(addr.s_addr);
	return true;
}

/* Split at the mark: returns what follows it; NULL: no mark. */
static const char *cut_at(const char *text, char mark, char *piece)
{
	const char *at = strchr(text, mark);

	if (at == NULL || at - text >= MAX_PIECE)
		return NULL;
	memcpy(piece, text, (size_t)(at - text));
	piece[at - text] = '\0';
	return at + 1;
}

bool value_host(const char *text, uint32_t *ret_addr,
		struct nat_prefix *ret_net, struct mr_reason *ret_why)
{
	char piece[MAX_PIECE];
	const char *rest = cut_at(text, '/', piece);
	uint32_t addr = 0, n = 0;

	if (rest == NULL || !value_addr(piece, &addr, ret_why) ||
	    !value_number(rest, 1, 32, &n, ret_why))
		return value_wrong(ret_why,
				   "'%s' is not an address with a prefix "
				   "length, such as 10.0.0.1/24",
				   text);
	*ret_addr = addr;
	ret_net->mask = UINT32_MAX << (32 - n);
	ret_net->addr = addr & ret_net->mask;
	return true;
}

bool value_prefix(const char *text, struct nat_prefix *ret,
		  struct mr_reason *ret_why)
{
	struct nat_prefix prefix = { 0, 0 };
	uint32_t addr = 0;
	struct in_addr in;

	/* The only valid network whose address is not a host's. */
	if (strcmp(text, "0.0.0.0/0") != 0 &&
	    !value_host(text, &addr, &prefix, ret_why))
		return value_wrong(ret_why,
				   "'%s' is not a network, such as 10.0.0.0/8",
				   text);
	in.s_addr = htonl(prefix.addr);
	if (addr != prefix.addr)
		return value_wrong(ret_why,
				   "'%s' has bits set beyond its prefix "
				   "length; the network is %s%s",
				   text, inet_ntoa(in), strchr(text, '/'));
	*ret = prefix;
	return true;
}

bool value_range(const char *text, struct nat_range *ret,
		 struct mr_reason *ret_why)
{
	char piece[MAX_PIECE];
	struct nat_prefix prefix;
	struct nat_range range;
	const char *rest;

	if (strchr(text, '/') != NULL) {
		if (!value_prefix(text, &prefix, ret_why))
			return false;
		*ret = (struct nat_range){ prefix.addr,
					   prefix.addr | ~prefix.mask };
		return true;
	}
	rest = cut_at(text, '-', piece);
	if (!value_addr(rest != NULL ? piece : text, &range.first, ret_why) ||
	    !value_addr(rest != NULL ? rest : text, &range.last, ret_why))
		return value_wrong(
			ret_why,
			"'%s' is not an address, range or network, such as "
			"192.0.2.1, 192.0.2.1-192.0.2.9 or 192.0.2.0/28",
			text);
	if (range.last < range.first)
		return value_wrong(ret_why,
				   "'%s': the smaller address must come first",
				   text);
	*ret = range;
	return true;
}

bool value_ports(const char *text, uint16_t *ret_first, uint16_t *ret_last,
		 struct mr_reason *ret_why)
{
	char piece[MAX_PIECE];
	const char *rest = cut_at(text, '-', piece);
	uint32_t first = 0, last = 0;

	if (!value_number(rest != NULL ? piece : text, 1, 65535, &first,
			  ret_why) ||
	    !value_number(rest != NULL ? rest : text, 1, 65535, &last,
			  ret_why) ||
	    last < first)
		return value_wrong(ret_why,
				   "'%s' is not a port or range of ports "
				   "within 1-65535, such as 80 or 8000-8009",
				   text);
	*ret_first = (uint16_t)first;
	*ret_last = (uint16_t)last;
	return true;
}

bool value_end(const char *text, uint32_t *ret_addr, uint16_t *ret_first,
	       uint16_t *ret_last, struct mr_reason *ret_why)
{
	char piece[MAX_PIECE];
	const char *rest = cut_at(text, ':', piece);

	if (rest == NULL)
		return value_wrong(
			ret_why,
			"'%s' is not an address and port, such as 192.0.2.1:80",
			text);
	return value_addr(piece, ret_addr, ret_why) &&
	       value_ports(rest, ret_first, ret_last, ret_why);
}

static const char *const protocols[] = { "udp", "tcp", "icmp", NULL };
static const uint8_t protocol_numbers[] = { IPPROTO_UDP, IPPROTO_TCP,
					    IPPROTO_ICMP };

bool value_protocol(const char *text, uint8_t *ret, struct mr_reason *ret_why)
{
	uint32_t value;

	if (value_number(text, 1, 255, &value, ret_why)) {
		*ret = (uint8_t)value;
		return true;
	}
	if (!value_word(text, protocols, &value, ret_why))
		return value_wrong(ret_why,
				   "'%.20s' is not one of udp, tcp, icmp, or a "
				   "number from 1 to 255",
				   text);
	*ret = protocol_numbers[value];
	return true;
}

struct nat_end_text nat_end_text(uint32_t addr, uint16_t port)
{
	struct nat_end_text end;
	size_t n;

	inet_ntop(AF_INET, &addr, end.text, sizeof(end.text));
	n = strlen(end.text);
	if (port != 0)
		snprintf(end.text + n, sizeof(end.text) - n, ":%u",
			 ntohs(port));
	return end;
}

const char *nat_proto_name(uint8_t proto)
{
	for (uint32_t i = 0; protocols[i] != NULL; i++)
		if (protocol_numbers[i] == proto)
			return protocols[i];
	return NULL;
}

void write_protocol(const void *from, char *ret_text, size_t n_bytes)
{
	const uint8_t proto = *(const uint8_t *)from;
	const char *name = nat_proto_name(proto);

	if (name != NULL)
		snprintf(ret_text, n_bytes, "%s", name);
	else
		snprintf(ret_text, n_bytes, proto != 0 ? "%u" : "", proto);
}

void write_addr(const void *from, char *ret_text, size_t n_bytes)
{
	struct in_addr in;

	memcpy(&in.s_addr, from, sizeof(in.s_addr));
	in.s_addr = htonl(in.s_addr);
	snprintf(ret_text, n_bytes, "%s", in.s_addr != 0 ? inet_ntoa(in) : "");
}

void write_prefix(const void *from, char *ret_text, size_t n_bytes)
{
	const struct nat_prefix *prefix = from;
	const struct in_addr in = { htonl(prefix->addr) };

	snprintf(ret_text, n_bytes, "%s/%d", inet_ntoa(in),
		 __builtin_popcount(prefix->mask));
}

void write_range(const void *from, char *ret_text, size_t n_bytes)
{
	const struct nat_range *range = from;
	size_t n;

	write_addr(&range->first, ret_text, n_bytes);
	n = strlen(ret_text);
	if (range->last == range->first || n + 1 >= n_bytes)
		return;
	ret_text[n] = '-';
	write_addr(&range->last, ret_text + n + 1, n_bytes - n - 1);
}

bool value_mac(const char *text, uint8_t ret[6], struct mr_reason *ret_why)
{
	uint8_t mac[6];
	uint32_t i = 0;
	const char *at = text;

	for (; i < 6; i++) {
		char *end;
		/* strtoul() would also accept blanks and signs. */
		const bool is_hex = strspn(at, "0123456789abcdefABCDEF") == 2;

		if (!is_hex || at[2] != (i < 5 ? ':' : '\0'))
			break;
		mac[i] = (uint8_t)strtoul(at, &end, 16);
		at = end + (i < 5);
	}
	if (i < 6)
		return value_wrong(
			ret_why,
			"'%s' is not a MAC address, such as 02:00:00:00:00:01",
			text);
	memcpy(ret, mac, sizeof(mac));
	return true;
}
