/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic for a translator: sessions of many hosts, and packets of randomly
 * drawn sessions, as an array of headers.
 *
 *     sessions --draw--> trace, one each way --> frames of 60 bytes, UDP
 */
#ifndef NAT_TRAFFIC_H
#define NAT_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "config/config.h"

enum {
	TRAFFIC_FRAME_BYTES = 60,
	TRAFFIC_PER_HOST = 64,   /* sessions of a subscriber */
	TRAFFIC_TRACE = 1 << 21, /* packets each way, then repeated */
};

/* Network order. */
struct traffic_header {
	uint32_t src, dst;
	uint16_t sport, dport;
	uint16_t ip_csum, udp_csum;
};

struct traffic {
	uint32_t n_sessions;
	uint64_t random;
	struct traffic_header *sessions[NAT_SIDES]; /* by side of origin */
	struct traffic_header *traces[NAT_SIDES];
	uint8_t frames[NAT_SIDES][TRAFFIC_FRAME_BYTES]; /* constant bytes */
};

/*
 * macs: of the translator. Sessions from inside only. Ends the program if there
 * is no memory.
 */
void traffic_init(struct traffic *traffic, uint32_t n_sessions,
		  uint8_t macs[NAT_SIDES][6]);
/* Add lists of n rules each that match none of these packets. */
void traffic_rules(struct nat_config *config, uint32_t n);
/* Set the header of replies, once the session's external end is known. */
void traffic_set_outside(struct traffic *traffic, uint32_t session,
			 uint32_t addr, uint16_t port);
/* Draw both traces: uniformly, or by Zipf's law with exponent 1. */
void traffic_draw(struct traffic *traffic, bool is_zipf);
void traffic_end(struct traffic *traffic);

/* A random number below n. */
uint32_t traffic_below(struct traffic *traffic, uint32_t n);

/* Whether both sums of a frame are correct. */
bool traffic_sums_hold(const uint8_t *frame);

static inline void traffic_write(const struct traffic *traffic,
				 enum nat_side from,
				 const struct traffic_header *header,
				 uint8_t *frame)
{
	struct mr_ipv4 *ip = (void *)(frame + MR_ETH_BYTES);
	struct mr_udp *udp = (void *)(ip + 1);

	__builtin_memcpy(frame, traffic->frames[from], TRAFFIC_FRAME_BYTES);
	ip->src = header->src;
	ip->dst = header->dst;
	ip->csum = header->ip_csum;
	udp->src = header->sport;
	udp->dst = header->dport;
	udp->csum = header->udp_csum;
}

#endif
