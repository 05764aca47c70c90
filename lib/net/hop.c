/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet on its way through a router. Source: RFC 1812 5.2 and 5.3. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

/* Not "this" network, loopback, a group, reserved or broadcast. */
static bool is_routable4(uint32_t addr)
{
	addr = ntohl(addr);
	return addr >> 24 != 0 && addr >> 24 != 127 && addr >> 28 < 14;
}

/* Not ::/64, which has the unspecified, loopback and IPv4-mapped addresses; nor
 * link-local, nor of a group. */
static bool is_routable6(const uint8_t *addr)
{
	static const uint8_t zeros[8];

	return memcmp(addr, zeros, sizeof(zeros)) != 0 && addr[0] != 0xff &&
	       !(addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80);
}

static int count_hop4(struct mr_ipv4 *ip)
{
	const uint32_t n = (ip->version_ihl & 15u) * 4;

	if (mr_csum_fold(mr_csum_add((const uint8_t *)ip, n, 0)) != UINT16_MAX)
		return -EBADMSG;
	if (!is_routable4(ip->src) || !is_routable4(ip->dst))
		return -EADDRNOTAVAIL;
	if (ip->ttl <= 1)
		return -ETIME;
	ip->ttl--; /* the upper byte of its word */
	ip->csum = mr_csum_fix(ip->csum, mr_csum_delta16(htons(1 << 8), 0));
	return 0;
}

static int count_hop6(struct mr_ipv6 *ip)
{
	if (!is_routable6(ip->src) || !is_routable6(ip->dst))
		return -EADDRNOTAVAIL;
	if (ip->hop_limit <= 1)
		return -ETIME;
	ip->hop_limit--;
	return 0;
}

int mr_net_count_hop(uint8_t *bytes, const struct mr_net_view *view,
		     uint8_t *ret_dst)
{
	struct mr_ipv4 *ipv4 = (void *)(bytes + view->l3_bytes);
	struct mr_ipv6 *ipv6 = (void *)(bytes + view->l3_bytes);
	int err = -ENOTSUP;

	if (view->ether_type == MR_ETHER_IPV4) {
		memset(ret_dst, 0, 10);
		memset(ret_dst + 10, 0xff, 2);
		memcpy(ret_dst + 12, &ipv4->dst, 4);
		err = count_hop4(ipv4);
	} else if (view->ether_type == MR_ETHER_IPV6) {
		memcpy(ret_dst, ipv6->dst, 16);
		err = count_hop6(ipv6);
	}
	return err;
}
