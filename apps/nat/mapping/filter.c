/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters that select sessions. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "config/values.h"
#include "filter.h"

enum { MAX_TERM = 64 };

/* An address is a network of its own. */
static bool take_net(const char *text, struct nat_prefix *ret,
		     struct mr_reason *why)
{
	if (strchr(text, '/') != NULL)
		return value_prefix(text, ret, why);
	ret->mask = UINT32_MAX;
	return value_addr(text, &ret->addr, why);
}

static bool take_term(struct nat_filter *filter, const char *term,
		      struct mr_reason *why)
{
	static const char *const keys[] = { "inside", "outside", "remote",
					    "port",   "proto",   NULL };
	const char *value = strchr(term, '=');
	char name[MAX_TERM];
	uint32_t key, port;

	if (value == NULL)
		return value_wrong(
			why, "filter: '%s' is not a condition, such as port=53",
			term);
	snprintf(name, sizeof(name), "%.*s", (int)(value++ - term), term);
	if (!value_word(name, keys, &key, why))
		return false;
	switch (key) {
	case 0:
		return take_net(value, &filter->inside, why);
	case 1:
		return take_net(value, &filter->outside, why);
	case 2:
		return take_net(value, &filter->remote, why);
	case 3:
		if (!value_number(value, 1, 65535, &port, why))
			return false;
		filter->port = (uint16_t)port;
		return true;
	default:
		return value_protocol(value, &filter->proto, why);
	}
}

bool nat_filter_parse(const char *text, struct nat_filter *ret_filter,
		      struct mr_reason *ret_why)
{
	*ret_filter = (struct nat_filter){ 0 };
	if (text == NULL || text[0] == '\0' || strcmp(text, "all") == 0)
		return true;
	for (;;) {
		const size_t n = strcspn(text, ",");
		char term[MAX_TERM];

		if (n >= sizeof(term))
			return value_wrong(ret_why,
					   "filter: '%.40s...' is too "
					   "long",
					   text);
		memcpy(term, text, n);
		term[n] = '\0';
		if (!take_term(ret_filter, term, ret_why))
			return false;
		if (text[n] == '\0')
			return true;
		text += n + 1;
	}
}

static bool has_addr(const struct nat_prefix *prefix, uint32_t addr)
{
	return prefix->mask == 0 || nat_prefix_has(prefix, ntohl(addr));
}

bool nat_filter_has(const struct nat_filter *filter,
		    const struct nat_session *session)
{
	const uint16_t port = htons(filter->port);

	return has_addr(&filter->inside, session->inside.addr) &&
	       has_addr(&filter->outside, session->outside.addr) &&
	       has_addr(&filter->remote, session->remote.addr) &&
	       (filter->proto == 0 || filter->proto == session->inside.proto) &&
	       (port == 0 || port == session->inside.port ||
		port == session->outside.port || port == session->remote.port);
}
