/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and destroy; counters. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <millrace/pool.h>

#include "answer/answer.h"
#include "pool/pool.h"

enum { PER_S = 1000, BURST = 50, VLAN_MAX = 4094 };

static int check_config(const struct mr_answer_config *config,
			struct mr_reason *reterr_reason)
{
	if (config->n_ipv4 > MR_ANSWER_ADDRS_MAX ||
	    config->n_ipv6 > MR_ANSWER_ADDRS_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u IPv4 and %u IPv6 addresses: at most %d of "
			       "each are supported",
			       config->n_ipv4, config->n_ipv6,
			       MR_ANSWER_ADDRS_MAX);
	if (config->mac[0] & 1)
		return mr_fail(
			reterr_reason, -EINVAL,
			"mr_answer_config.mac is the address of a group; "
			"use that of the port, mr_port_info.mac");
	for (uint32_t i = 0; i < config->n_ipv4; i++)
		if (ntohl(config->ipv4[i]) >> 28 >= 14)
			return mr_fail(reterr_reason, -EINVAL,
				       "mr_answer_config.ipv4[%u] is not the "
				       "address of one host; the order of its "
				       "bytes is the network's",
				       i);
	for (uint32_t i = 0; i < config->n_ipv6; i++)
		if (config->ipv6[i][0] == 0xff)
			return mr_fail(reterr_reason, -EINVAL,
				       "mr_answer_config.ipv6[%u] is the "
				       "address of a group",
				       i);
	if (config->vlans[0] > VLAN_MAX || config->vlans[1] > VLAN_MAX ||
	    (config->vlans[0] == 0 && config->vlans[1] != 0))
		return mr_fail(
			reterr_reason, -EINVAL,
			"mr_answer_config.vlans are %u and %u: they must "
			"be 1 to %d, the outer one first, or 0",
			config->vlans[0], config->vlans[1], VLAN_MAX);
	return 0;
}

/* Those of the links, from ours on; as many as the limit allows. */
struct addresses {
	uint32_t ipv4[MR_ANSWER_ADDRS_MAX];
	uint8_t ipv6[MR_ANSWER_ADDRS_MAX][16];
};

static void take_addresses(struct mr_answer_config *c,
			   struct addresses *ret_addresses)
{
	static const uint8_t none[16];
	uint32_t n;
	const struct mr_neighbours_link *links =
		mri_neighbours_links(c->neighbours, &n);

	for (uint32_t i = 0; i < n; i++) {
		const struct mr_neighbours_link *link =
			&links[(c->link + i) % n];

		if (c->n_ipv4 < MR_ANSWER_ADDRS_MAX &&
		    memcmp(link->own[1], none, 16) != 0)
			memcpy(&ret_addresses->ipv4[c->n_ipv4++],
			       link->own[1] + 12, 4);
		if (c->n_ipv6 < MR_ANSWER_ADDRS_MAX &&
		    memcmp(link->own[0], none, 16) != 0)
			memcpy(ret_addresses->ipv6[c->n_ipv6++], link->own[0],
			       16);
	}
	c->ipv4 = ret_addresses->ipv4;
	c->ipv6 = (const uint8_t(*)[16])ret_addresses->ipv6;
	memcpy(c->mac, links[c->link].mac, 6);
}

int mr_answer_create(struct mr_cache *cache,
		     const struct mr_answer_config *config,
		     struct mr_answer **ret_answer,
		     struct mr_reason *reterr_reason)
{
	struct mr_pool *pool = mr_cache_pool(cache);
	struct addresses addresses;
	struct mr_answer_config c;
	struct mr_answer *answer;
	size_t n_ipv4, n_ipv6;
	uint32_t n_links;
	int err = mri_copy_sized(&c, config, sizeof(c), "mr_answer_config",
				 reterr_reason);

	if (err == 0 && c.neighbours != NULL) {
		(void)mri_neighbours_links(c.neighbours, &n_links);
		if (c.link >= n_links)
			return mr_fail(reterr_reason, -EINVAL,
				       "mr_answer_config.link is %u, but there "
				       "are %u links",
				       c.link, n_links);
		if (c.n_ipv4 == 0 && c.n_ipv6 == 0)
			take_addresses(&c, &addresses);
	}
	if (err == 0)
		err = check_config(&c, reterr_reason);
	if (err < 0)
		return err;
	n_ipv4 = c.n_ipv4 * sizeof(c.ipv4[0]);
	n_ipv6 = c.n_ipv6 * sizeof(c.ipv6[0]);
	answer = mr_alloc(pool->ctx, MRI_CACHE_LINE,
			  sizeof(*answer) + n_ipv4 + n_ipv6);
	if (answer == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for addresses to answer for");
	if (n_ipv4 > 0)
		memcpy(answer->ipv4, c.ipv4, n_ipv4);
	if (n_ipv6 > 0)
		memcpy(&answer->ipv4[c.n_ipv4], c.ipv6, n_ipv6);
	c.per_s = c.per_s > 0 ? c.per_s : PER_S;
	c.burst = c.burst > 0 ? c.burst : BURST;
	c.ipv4 = NULL; /* the caller's */
	c.ipv6 = NULL;
	answer->cache = cache;
	answer->ctx = pool->ctx;
	answer->base = mr_region_base(pool->region);
	answer->config = c;
	answer->interval_ns = 1000000000 / c.per_s;
	*ret_answer = answer;
	return 0;
}

void mr_answer_destroy(struct mr_answer *answer)
{
	if (answer != NULL)
		mr_free(answer->ctx, answer);
}

int mr_answer_stats(const struct mr_answer *answer,
		    struct mr_answer_stats *stats)
{
	struct mr_answer_stats s = { .size = sizeof(s) };

	for (uint32_t i = 0; i < MR_ANSWER_COUNTS; i++)
		s.counts[i] = mr_counter_get(&answer->counts[i]);
	return mri_fill_sized(stats, &s, sizeof(s));
}

const char *mr_answer_name(uint32_t i)
{
	static const char *const names[MR_ANSWER_COUNTS] = {
		[MR_ANSWER_ARP] = "arp",
		[MR_ANSWER_SOLICITATION] = "solicitation",
		[MR_ANSWER_ECHO] = "echo",
		[MR_ANSWER_ECHO6] = "echo6",
		[MR_ANSWER_LIMITED] = "limited",
		[MR_ANSWER_MALFORMED] = "malformed",
		[MR_ANSWER_NO_PAGE] = "no_page",
		[MR_ANSWER_ERROR] = "error",
		[MR_ANSWER_ERROR_LIMITED] = "error_limited",
		[MR_ANSWER_LEARNT] = "learnt",
	};

	return i < MR_ANSWER_COUNTS ? names[i] : NULL;
}
