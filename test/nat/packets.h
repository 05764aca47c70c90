/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random packets of a few hosts and their peers, plausible and not: flows that
 * live long enough to be forwarded by the XDP program, and everything else that
 * may happen to them. A seed makes the same packets again.
 */
#ifndef NAT_PACKETS_H
#define NAT_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PACKETS_MAX = 2048, /* bytes of one */
	PACKETS_HOSTS = 5,
	PACKETS_PORTS = 2,
	PACKETS_PEERS = 8,
	PACKETS_PROTOS = 2, /* UDP, TCP */
};

/* An end of a TCP connection. */
struct packets_end {
	uint32_t next;  /* sequence number */
	uint32_t acked; /* what it acknowledged last */
	uint16_t window, largest;
	uint8_t shift;
};

struct packets_conn {
	uint8_t stage; /* of the handshake */
	struct packets_end ends[2];
};

/* Indices of what its packets have in common. */
struct packets_flow {
	uint32_t host, port, peer;
	bool is_tcp;
};

struct packets {
	uint64_t state; /* of the random numbers */
	uint16_t vlans[2];
	/* The external end of a host's port, by packets_map(); port 0:
	 * unknown. */
	struct {
		uint32_t addr;
		uint16_t port;
	} outside[PACKETS_PROTOS][PACKETS_HOSTS][PACKETS_PORTS];
	struct packets_flow flow; /* of the last packet */
	struct packets_conn conns[PACKETS_HOSTS][PACKETS_PORTS][PACKETS_PEERS];
	/* What came out last, which an ICMP error may quote. */
	uint8_t quoted[2][64];
};

/* 0 to n - 1. */
uint32_t packets_below(struct packets *packets, uint32_t n);
static inline bool packets_percent(struct packets *packets, uint32_t n)
{
	return packets_below(packets, 100) < n;
}

/* The next frame; *ret_side: where it is received. Returns its length. */
uint32_t packets_next(struct packets *packets, uint32_t *ret_side,
		      uint8_t *bytes);

/* A frame came out: it may be quoted. */
void packets_see(struct packets *packets, uint32_t side, const uint8_t *bytes,
		 uint32_t n);
/* Note a mapping; proto 0: one-to-one, all ports. */
void packets_map(struct packets *packets, uint32_t proto, uint32_t inside,
		 uint32_t inside_port, uint32_t outside, uint32_t outside_port);

/* An answer to an ARP request, or an announcement; its length. */
uint32_t packets_arp(const struct packets *packets, uint32_t side,
		     uint32_t addr, uint32_t generation, uint8_t *bytes);
/* Whether a frame is a request for a neighbour, and whose. */
bool packets_is_asked(const struct packets *packets, uint32_t side,
		      const uint8_t *bytes, uint32_t n, uint32_t *ret_addr);
bool packets_is_tcp(const struct packets *packets, uint32_t side,
		    const uint8_t *bytes, uint32_t n);
/* Where IPv4 begins; 0: it is something else. */
uint32_t packets_ip_at(const struct packets *packets, uint32_t side,
		       const uint8_t *bytes, uint32_t n);

#endif
