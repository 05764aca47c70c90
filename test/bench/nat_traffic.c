/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nat_traffic.h"

enum {
	FIRST_HOST = 0x64400001,   /* 100.64.0.1, RFC 6598 */
	FIRST_REMOTE = 0xc6120000, /* 198.18.0.0/15, RFC 2544 */
	N_REMOTES = 1 << 17,
	FIRST_PORT = 1024,
	N_PORTS = 65536 - FIRST_PORT,
	PORT_STEP = 997, /* between two ports of a host */
	HUGE_BYTES = 1 << 21,
};

/* In huge pages, so that the source causes few TLB misses. */
static void *alloc_huge(size_t n_bytes)
{
	void *memory = aligned_alloc(HUGE_BYTES, (n_bytes + HUGE_BYTES - 1) &
							 ~(HUGE_BYTES - 1ul));

	if (memory == NULL)
		errx(1, "no memory for %zu bytes of traffic", n_bytes);
	(void)madvise(memory, n_bytes, MADV_HUGEPAGE);
	memset(memory, 0, n_bytes);
	return memory;
}

void traffic_rules(struct nat_config *config, uint32_t n)
{
	struct nat_prefix *hosts = alloc_huge(n * sizeof(*hosts));

	config->forwards = alloc_huge(n * sizeof(*config->forwards));
	config->one_to_ones = alloc_huge(n * sizeof(*config->one_to_ones));
	config->excludes = alloc_huge(n * sizeof(*config->excludes));
	for (uint32_t i = 0; i < n; i++) {
		config->forwards[i] = (struct nat_port_forward){
			.outside_addr = 0xcb100000 + i / 4,
			.inside_addr = 0x0a100000 + i,
			.outside_first = 80 + i % 4,
			.outside_last = 80 + i % 4,
			.inside_first = 80,
			.proto_mask = 1 << NAT_UDP,
		};
		config->one_to_ones[i] =
			(struct nat_one_to_one){ 0xcb200000 + i,
						 0x0a200000 + i };
		config->excludes[i] =
			(struct nat_exclude){ { FIRST_REMOTE + 0x20000 + 16 * i,
						0xfffffff0 },
					      IPPROTO_TCP,
					      80,
					      89 };
		hosts[i] =
			(struct nat_prefix){ 0x0a300000 + 16 * i, 0xfffffff0 };
	}
	hosts[n - 1] = config->subscribers[0];
	config->subscribers = hosts;
	config->n_forwards = config->n_one_to_ones = config->n_excludes =
		config->n_subscribers = n;
}

/* splitmix64 (G. L. Steele, D. Lea, C. H. Flood, 2014). */
static uint64_t draw(struct traffic *traffic)
{
	uint64_t x = traffic->random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

uint32_t traffic_below(struct traffic *traffic, uint32_t n)
{
	return (uint32_t)((draw(traffic) >> 32) * n >> 32);
}

static uint16_t udp_sum(const struct mr_ipv4 *ip)
{
	const struct mr_udp *udp = (const void *)(ip + 1);
	const uint32_t n_udp = ntohs(udp->n_bytes);
	const uint64_t pseudo =
		(uint64_t)ip->src + ip->dst + htons(IPPROTO_UDP) + udp->n_bytes;

	return mr_csum_fold(mr_csum_add((const void *)udp, n_udp, pseudo));
}

bool traffic_sums_hold(const uint8_t *frame)
{
	const struct mr_ipv4 *ip = (const void *)(frame + MR_ETH_BYTES);

	return mr_csum_fold(mr_csum_add((const void *)ip, sizeof(*ip), 0)) ==
		       UINT16_MAX &&
	       udp_sum(ip) == UINT16_MAX;
}

/* Set the header's sums by writing the frame without them. */
static void write_sums(const struct traffic *traffic, enum nat_side from,
		       struct traffic_header *header)
{
	_Alignas(8) uint8_t frame[TRAFFIC_FRAME_BYTES];
	const struct mr_ipv4 *ip = (const void *)(frame + MR_ETH_BYTES);

	header->ip_csum = header->udp_csum = 0;
	traffic_write(traffic, from, header, frame);
	header->ip_csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const void *)ip, sizeof(*ip), 0));
	header->udp_csum = (uint16_t)~udp_sum(ip);
	if (header->udp_csum == 0)
		header->udp_csum = UINT16_MAX;
}

static void init_frame(uint8_t *frame, const uint8_t *mac)
{
	struct mr_eth *eth = (void *)frame;
	struct mr_ipv4 *ip = (void *)(eth + 1);
	struct mr_udp *udp = (void *)(ip + 1);

	memcpy(frame, mac, 6);
	memcpy(frame + 6, (uint8_t[]){ 2, 0, 0, 0, 0, 1 }, 6);
	eth->type = htons(MR_ETHER_IPV4);
	ip->version_ihl = 0x45;
	ip->total_bytes = htons(TRAFFIC_FRAME_BYTES - MR_ETH_BYTES);
	ip->ttl = 64;
	ip->proto = IPPROTO_UDP;
	udp->n_bytes = htons(TRAFFIC_FRAME_BYTES - MR_ETH_BYTES - sizeof(*ip));
	memset(udp + 1, 0x5a,
	       TRAFFIC_FRAME_BYTES - MR_ETH_BYTES - sizeof(*ip) - sizeof(*udp));
}

void traffic_init(struct traffic *traffic, uint32_t n_sessions,
		  uint8_t macs[NAT_SIDES][6])
{
	*traffic = (struct traffic){ .n_sessions = n_sessions, .random = 1 };
	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		init_frame(traffic->frames[side], macs[side]);
		traffic->sessions[side] = alloc_huge(
			n_sessions * sizeof(*traffic->sessions[side]));
		traffic->traces[side] = alloc_huge(
			TRAFFIC_TRACE * sizeof(*traffic->traces[side]));
	}
	for (uint32_t i = 0; i < n_sessions; i++) {
		struct traffic_header *h = &traffic->sessions[NAT_INSIDE][i];
		const uint32_t host = i / TRAFFIC_PER_HOST;
		const uint32_t first = host * 2654435761u % N_PORTS;

		h->src = htonl(FIRST_HOST + host);
		h->sport = htons(
			(uint16_t)(FIRST_PORT +
				   (first + i % TRAFFIC_PER_HOST * PORT_STEP) %
					   N_PORTS));
		h->dst =
			htonl(FIRST_REMOTE + traffic_below(traffic, N_REMOTES));
		h->dport = htons(443);
		write_sums(traffic, NAT_INSIDE, h);
	}
}

void traffic_set_outside(struct traffic *traffic, uint32_t session,
			 uint32_t addr, uint16_t port)
{
	const struct traffic_header *out =
		&traffic->sessions[NAT_INSIDE][session];
	struct traffic_header *back = &traffic->sessions[NAT_OUTSIDE][session];

	back->src = out->dst;
	back->sport = out->dport;
	back->dst = addr;
	back->dport = port;
	write_sums(traffic, NAT_OUTSIDE, back);
}

/* sums[i] is the sum of the weights of ranks 0 to i. */
static double *zipf_sums(uint32_t n)
{
	double *sums = alloc_huge(n * sizeof(*sums)), sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sums[i] = sum += 1.0 / (i + 1);
	return sums;
}

static uint32_t zipf_rank(struct traffic *traffic, const double *sums)
{
	const uint32_t n = traffic->n_sessions;
	const double wanted =
		(double)(draw(traffic) >> 11) * 0x1p-53 * sums[n - 1];
	uint32_t low = 0, high = n - 1;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;

		if (sums[mid] > wanted)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

void traffic_draw(struct traffic *traffic, bool is_zipf)
{
	const uint32_t n = traffic->n_sessions;
	double *sums = is_zipf ? zipf_sums(n) : NULL;

	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		for (uint32_t i = 0; i < TRAFFIC_TRACE; i++) {
			/* Busy sessions are anywhere, not side by side. */
			const uint32_t session =
				is_zipf ? (uint32_t)(zipf_rank(traffic, sums) *
						     UINT64_C(2654435761) % n) :
					  traffic_below(traffic, n);

			traffic->traces[side][i] =
				traffic->sessions[side][session];
		}
	}
	free(sums);
}

void traffic_end(struct traffic *traffic)
{
	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		free(traffic->sessions[side]);
		free(traffic->traces[side]);
	}
}
