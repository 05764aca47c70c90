/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's view of its two ports: MAC addresses and MTUs, which may
 * change. */
#include "links.h"

#include <arpa/inet.h>

enum { DEFAULT_MTU = 1500 };

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

void nat_links_follow(struct nat_path *path)
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

void nat_links_init(struct nat_path *path)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++)
		init_link(&path->links[s], &path->config->sides[s],
			  path->links[s].mac);
	nat_links_follow(path);
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
	nat_links_follow(path);
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
