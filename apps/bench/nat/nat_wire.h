/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of connections through a NAT: what a client sends, what the server
 * receives of it, and what it answers. A frame carries the number of its
 * connection (UDP: in the payload; TCP: as the sequence number).
 */
#ifndef NAT_NAT_WIRE_H
#define NAT_NAT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum {
	NAT_FRAME_BYTES = 60,
	NAT_FIRST_PORT = 1024,
	NAT_CLIENT_PORTS = 60000, /* of each client, then the server's change */
	NAT_SERVER_PORT = 5000,
};

/* The addresses of both sides, in host order. */
struct nat_plan {
	uint32_t client, n_clients; /* the first of them */
	uint32_t server, gateway;
	bool is_tcp;
	uint32_t magic; /* of this run */
};

/* What the NAT made of a client's address and port, in network order. */
struct nat_tuple {
	uint32_t addr;
	uint16_t port, server_port;
};

struct nat_macs {
	uint8_t src[6], dst[6];
};

enum nat_kind {
	NAT_OTHER,
	NAT_QUERY,       /* at the server's side */
	NAT_ANSWER,      /* at the clients' */
	NAT_ARP_REQUEST, /* for an address of ours */
	NAT_ARP_REPLY,
};

struct nat_seen {
	uint32_t number;        /* of a query or an answer */
	struct nat_tuple tuple; /* of a query */
	uint8_t src_mac[6];
	uint32_t asked, asker; /* of ARP, in host order */
};

/* Each writes a frame of NAT_FRAME_BYTES. */
void nat_wire_query(const struct nat_plan *plan, uint32_t number,
		    const struct nat_macs *macs, uint8_t *frame);
void nat_wire_answer(const struct nat_plan *plan, uint32_t number,
		     const struct nat_tuple *tuple, const struct nat_macs *macs,
		     uint8_t *frame);
/* op: MR_ARP_REQUEST (macs->dst is not read) or MR_ARP_REPLY. */
void nat_wire_arp(uint16_t op, uint32_t sender, uint32_t target,
		  const struct nat_macs *macs, uint8_t *frame);

/* Classify a frame that arrived on the side of the clients or the server. */
enum nat_kind nat_wire_read(const struct nat_plan *plan, bool is_server_side,
			    const uint8_t *frame, uint32_t n_bytes,
			    struct nat_seen *ret);

#endif
