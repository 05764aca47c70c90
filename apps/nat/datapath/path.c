/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's packet path: its parts, its ports, whose MAC addresses and MTUs
 * may change, its clock, and what others ask of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/experimental/flow_way.h>

#include "arp.h"
#include "forward.h"
#include "fragment.h"
#include "resolve.h"
#include "support/capture.h"
#include "support/text.h"
#include "syn.h"
#include "tickets.h"

enum { DEFAULT_MTU = 1500 };

static const uint64_t second_ns = 1000000000;

static void init_link(struct nat_link *link, const struct nat_side_config *c,
		      uint64_t mac)
{
	*link = (struct nat_link){
		.mac = mac,
		.vlan = htons(c->vlan),
		.l2_bytes = (uint16_t)(MR_ETH_BYTES +
				       (c->vlan != 0 ? MR_VLAN_BYTES : 0)),
		.own = htonl(c->addrs[0]),
		.gateway = htonl(c->gateway),
		.n_nets = c->n_addrs,
	};
	for (uint32_t i = 0; i < c->n_addrs; i++) {
		link->nets[i].addr = htonl(c->nets[i].addr);
		link->nets[i].mask = htonl(c->nets[i].mask);
		link->nets[i].own = htonl(c->addrs[i]);
	}
}

/* The MSS clamp: what fits both links, or the configured value. */
static uint16_t mss_of(const struct nat_path *path)
{
	const uint16_t in = path->links[NAT_INSIDE].mtu;
	const uint16_t out = path->links[NAT_OUTSIDE].mtu;
	const uint16_t mtu = in < out ? in : out;

	if (path->config->mss != 1)
		return path->config->mss;
	return (uint16_t)(mtu - sizeof(struct mr_ipv4) - sizeof(struct mr_tcp));
}

/* The MTU of a side: of its port, or the configured one if that is smaller. */
static uint16_t mtu_of(const struct nat_side_config *side, uint16_t port_mtu)
{
	return side->mtu != 0 && (port_mtu == 0 || side->mtu < port_mtu) ?
		       side->mtu :
		       port_mtu;
}

/* Announce all addresses again; the first worker does. */
static void announce_again(struct nat_path *path)
{
	path->n_announced = 0;
	path->is_announced = path->worker_idx != 0;
}

/* Follow changes of the ports. */
static void follow_links(struct nat_path *path)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		struct nat_link *link = &path->links[s];
		const uint64_t mac =
			__atomic_load_n(&path->port_macs[s], __ATOMIC_RELAXED);

		if (link->mac != mac)
			announce_again(path);
		link->mac = mac;
		link->mtu = mtu_of(
			&path->config->sides[s],
			__atomic_load_n(&path->port_mtus[s], __ATOMIC_RELAXED));
	}
	if (__atomic_exchange_n(&path->must_announce, false, __ATOMIC_RELAXED))
		announce_again(path);
	path->mss = mss_of(path);
}

/* Set up the links for path->config. */
static void init_links(struct nat_path *path)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++)
		init_link(&path->links[s], &path->config->sides[s],
			  path->links[s].mac);
	follow_links(path);
	/* The external addresses may have changed. */
	announce_again(path);
}

void nat_path_set_port(struct nat_path *path, enum nat_side side,
		       const uint8_t mac[6], uint16_t mtu)
{
	__atomic_store_n(&path->port_macs[side], nat_mac(mac),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&path->port_mtus[side], mtu, __ATOMIC_RELAXED);
	/* Pairs with the acquire in nat_path_tick(). */
	__atomic_fetch_add(&path->n_news, 1, __ATOMIC_RELEASE);
}

void nat_path_announce(struct nat_path *path)
{
	__atomic_store_n(&path->must_announce, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&path->n_news, 1, __ATOMIC_RELEASE);
}

static uint16_t port_mtu_of(const struct mr_port_info *info)
{
	return info->mtu_bytes > 0 && info->mtu_bytes < UINT16_MAX ?
		       (uint16_t)info->mtu_bytes :
		       DEFAULT_MTU;
}

void nat_path_describe_port(const struct mr_port *port, enum nat_side side,
			    uint8_t mac[6], uint16_t *ret_mtu)
{
	struct mr_port_info info = { .size = sizeof(info) };
	const uint8_t local[6] = { 2, 'm', 'r', 'n', 't', (uint8_t)side };

	mr_port_info(port, &info);
	memcpy(mac, info.has_mac ? info.mac : local, 6);
	*ret_mtu = port_mtu_of(&info);
}

static __attribute__((noinline, cold)) void update_mtu(struct nat_path *path,
						       enum nat_side side)
{
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(path->ports[side], &info);
	__atomic_store_n(&path->port_mtus[side], port_mtu_of(&info),
			 __ATOMIC_RELAXED);
	follow_links(path);
}

void nat_path_check_mtu(struct nat_path *path, enum nat_side to,
			const struct mr_txq *txq)
{
	const uint64_t n = txq->stats.drops[MR_TX_DROP_TOO_LONG];

	if (n == path->n_too_long[to])
		return;
	path->n_too_long[to] = n;
	update_mtu(path, to);
}

void nat_path_reload(struct nat_path *path, const struct nat_config *config)
{
	path->config = config;
	path->addrs = *config->addrs; /* with the configuration's tables */
	init_links(path);
}

/* Start ids at random; the last bits identify the worker. */
static void init_ids(struct nat_path *path, uint32_t n_owners,
		     struct nat_random *random)
{
	path->id_step = nat_id_step(n_owners);
	path->next_id =
		(uint16_t)((nat_random_u64(random) & ~(path->id_step - 1ull)) |
			   path->worker_idx);
}

static int create_parts(struct nat_path *path,
			const struct nat_path_config *config)
{
	struct nat_random random;
	/* Frames held for neighbours and SYNs, and fragments. */
	const uint32_t n_held = 256 + 128 + path->config->max_fragments;

	if (nat_random_init(&random, 0) < 0)
		return -EIO;
	init_ids(path,
		 config->n_id_owners > 0 ? config->n_id_owners :
					   config->n_workers,
		 &random);
	if (config->rules != NULL) {
		path->rule_ids = mr_rules_old_ids(config->rules);
		path->tickets = nat_tickets_create(config->rules);
		if (path->tickets == NULL)
			return -ENOMEM;
	}
	path->resolver = nat_resolver_create();
	path->old_ids = calloc((UINT16_MAX + 1u) / path->id_step,
			       sizeof(*path->old_ids));
	path->fragments = nat_fragments_create(path->config, &random);
	path->syns = nat_syns_create();
	return path->resolver == NULL || path->old_ids == NULL ||
			       path->fragments == NULL || path->syns == NULL ?
		       -ENOMEM :
		       nat_hold_init(&path->hold, n_held,
				     nat_held_pages(path->config) -
					     NAT_STEER_PAGES);
}

int nat_path_create(const struct nat_path_config *config,
		    struct nat_path **ret_path, struct mr_reason *reterr_why)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	struct nat_path *path =
		aligned_alloc(64, (sizeof(*path) + 63) & ~(size_t)63);

	if (path == NULL)
		goto no_memory;
	memset(path, 0, sizeof(*path));
	mr_pool_stats(mr_cache_pool(config->cache), &pool);
	path->cache = config->cache;
	path->base = config->base;
	path->maps = config->maps;
	path->neighbours = config->neighbours;
	path->page_bytes = pool.page_bytes;
	path->headroom_bytes = pool.headroom_bytes;
	path->worker_idx = config->worker_idx;
	path->has_peers = config->n_workers > 1;
	path->recorder =
		config->recorder != NULL ? config->recorder : &capture_none;
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		path->port_macs[s] = nat_mac(config->macs[s]);
		path->port_mtus[s] = config->mtus[s];
		path->ports[s] = config->ports[s];
	}
	nat_path_reload(path, config->config);
	if (create_parts(path, config) == 0) {
		*ret_path = path;
		return 0;
	}
	nat_path_destroy(path);
no_memory:
	return fail_with(
		reterr_why, -ENOMEM,
		"no memory or random numbers for the packet path of worker %u",
		config->worker_idx);
}

void nat_path_rest(struct nat_path *path)
{
	if (path->tickets != NULL)
		nat_tickets_confirm(path->tickets);
}

void nat_path_end_rules(struct nat_path *path)
{
	nat_tickets_destroy(path->tickets);
	path->tickets = NULL;
	path->rule_ids = NULL;
}

void nat_path_destroy(struct nat_path *path)
{
	if (path == NULL)
		return;
	if (path->hold.slots != NULL)
		nat_path_give_up(path);
	nat_hold_end(&path->hold);
	nat_resolver_destroy(path->resolver);
	nat_fragments_destroy(path->fragments);
	nat_syns_destroy(path->syns);
	nat_tickets_destroy(path->tickets);
	free(path->old_ids);
	free(path);
}

bool nat_path_sent(struct nat_path *path, enum nat_side from,
		   const struct mr_txq *txq)
{
	return path->tickets != NULL &&
	       nat_tickets_settle(path->tickets, from, txq, path->now_ns);
}

struct nat_outbox *nat_path_outbox(struct nat_path *path, enum nat_side to)
{
	return &path->outboxes[to];
}

struct nat_outbox *nat_path_loop(struct nat_path *path)
{
	return &path->loop;
}

struct nat_stats *nat_path_stats(struct nat_path *path)
{
	return &path->stats;
}

void nat_path_tick(struct nat_path *path, uint64_t now_ns)
{
	const uint32_t n_news =
		__atomic_load_n(&path->n_news, __ATOMIC_ACQUIRE);

	path->now_ns = now_ns;
	if (now_ns >= path->next_s_ns) {
		path->now_s = (uint32_t)(now_ns / second_ns);
		path->next_s_ns = (path->now_s + UINT64_C(1)) * second_ns;
	}
	if (n_news != path->n_followed) {
		path->n_followed = n_news;
		follow_links(path);
	}
	if (!path->is_announced)
		nat_announce(path);
	nat_forward_ready(path);
	nat_resolver_tick(path);
	nat_fragments_tick(path);
	nat_syns_tick(path);
	nat_maps_expire(path->maps, path->now_s);
}
