/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tests of merging: builds segments in every relevant detail. */
#ifndef SUPPORT_GRO_UNIT_H
#define SUPPORT_GRO_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "support/packet.h"

enum {
	MSS = 101,
	FIN = 1,
	SYN = 2,
	PSH = 8,
	ACK = 16,
	URG = 32,
	ECE = 64,
	CWR = 128,
};

/* A frame to build. Its members have one type, so struct change can name one.
 */
struct spec {
	uint32_t flow; /* in the sender's MAC address, address and port */
	uint32_t is_v6, is_udp, n_tags;
	uint32_t tos, ttl, id, fragment;
	uint32_t seq, ack, flags, window;
	uint32_t n_payload, n_padding;
	uint32_t n_ip_options, n_tcp_options; /* words */
	uint32_t option;                      /* each of TCP's */
	uint32_t is_sum_bad, is_sum_marked, is_sum_partial, is_sum_none;
	uint32_t is_ip_sum_bad;
};

/* How a segment differs from the expected next one. */
struct change {
	size_t member;
	uint32_t flip, plus;
	bool is_merged;
};

static const struct change changes[] = {
	{ offsetof(struct spec, tos), 3, 0, false }, /* CE */
	{ offsetof(struct spec, ttl), 0, 1, false },
	{ offsetof(struct spec, id), 0, 1, false },
	{ offsetof(struct spec, id), 0, UINT32_MAX, false },
	{ offsetof(struct spec, fragment), 0x4000, 0, false }, /* DF */
	{ offsetof(struct spec, fragment), 0x2000, 0, false },
	{ offsetof(struct spec, fragment), 0x10, 0, false },
	{ offsetof(struct spec, n_ip_options), 1, 0, false },
	{ offsetof(struct spec, is_ip_sum_bad), 1, 0, false },
	{ offsetof(struct spec, seq), 0, 1, false },
	{ offsetof(struct spec, seq), 0, UINT32_MAX, false },
	{ offsetof(struct spec, ack), 0, 1, false },
	{ offsetof(struct spec, window), 0, 1, false },
	{ offsetof(struct spec, flags), ACK, 0, false },
	{ offsetof(struct spec, flags), SYN, 0, false },
	{ offsetof(struct spec, flags), URG, 0, false },
	{ offsetof(struct spec, flags), ECE, 0, false },
	{ offsetof(struct spec, flags), CWR, 0, false },
	{ offsetof(struct spec, flags), PSH, 0, true },
	{ offsetof(struct spec, flags), FIN, 0, true },
	{ offsetof(struct spec, n_tcp_options), 1, 0, false },
	{ offsetof(struct spec, option), 0, 1, false },
	{ offsetof(struct spec, n_tags), 0, 1, false },
	{ offsetof(struct spec, n_payload), 0, 1, false },
	{ offsetof(struct spec, n_payload), MSS, 0, false }, /* none */
	{ offsetof(struct spec, n_payload), 1, 0, true },    /* MSS is odd */
	{ offsetof(struct spec, n_payload), MSS - 1, 0, true },
	{ offsetof(struct spec, n_padding), 0, 1, false },
	{ offsetof(struct spec, is_sum_bad), 1, 0, false },
	{ offsetof(struct spec, is_sum_marked), 1, 0, true },
	{ offsetof(struct spec, is_sum_partial), 1, 0, true },
};

enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static inline void apply(const struct change *change, struct spec *s)
{
	uint32_t *word = (uint32_t *)((uint8_t *)s + change->member);

	*word = (*word ^ change->flip) + change->plus;
}

static uint32_t seed;

static inline uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)(seed >> 8) * n) >> 24);
}

static inline bool one_in(uint32_t n)
{
	return random_below(n) == 0;
}

static inline void write_sum(uint8_t *bytes, uint32_t l3, uint32_t l4,
			     uint32_t n_l4, const struct spec *s)
{
	uint8_t *field = bytes + l4 + (s->is_udp ? 6 : 16);
	const uint32_t pseudo =
		packet_sum(bytes + l3 + (s->is_v6 ? 8 : 12), s->is_v6 ? 32 : 8,
			   (s->is_udp ? 17u : 6u) + n_l4);
	uint16_t sum;

	packet_put16(field, pseudo);
	if (s->is_sum_partial)
		return;
	packet_put16(field, 0);
	sum = (uint16_t)~packet_sum(bytes + l4, n_l4, pseudo);
	/* As software and most devices finish it. */
	packet_put16(field, s->is_sum_none ? 0 : sum != 0 ? sum : 0xffff);
	field[0] ^= s->is_sum_bad ? 0x10 : 0;
}

static inline uint32_t write_ip(uint8_t *ip, uint32_t n_l4,
				const struct spec *s)
{
	const uint32_t n = s->is_v6 ? 40 : 20 + 4 * s->n_ip_options;

	memset(ip, s->n_ip_options > 0 && !s->is_v6 ? 1 : 0, n); /* NOP */
	if (s->is_v6) {
		packet_put32(ip, 0x60000000 | s->tos << 20);
		packet_put16(ip + 4, n_l4);
		ip[6] = s->is_udp ? 17 : 6;
		ip[7] = (uint8_t)s->ttl;
		packet_put32(ip + 20, s->flow);
		ip[39] = 9;
		return n;
	}
	ip[0] = (uint8_t)(0x40 | n / 4);
	ip[1] = (uint8_t)s->tos;
	packet_put16(ip + 2, n + n_l4);
	packet_put16(ip + 4, s->id);
	packet_put16(ip + 6, s->fragment);
	ip[8] = (uint8_t)s->ttl;
	ip[9] = s->is_udp ? 17 : 6;
	packet_put16(ip + 10, 0);
	packet_put32(ip + 12, s->flow);
	packet_put32(ip + 16, 9);
	packet_put16(ip + 10, (uint16_t)~packet_sum(ip, n, 0));
	ip[10] ^= s->is_ip_sum_bad ? 1 : 0;
	return n;
}

/* Returns the bytes of the frame, and of its headers. */
static inline uint32_t make(uint8_t *bytes, const struct spec *s,
			    uint32_t *ret_n_header)
{
	const uint32_t n_l4_header = s->is_udp ? 8 : 20 + 4 * s->n_tcp_options;
	const uint32_t n_l4 = n_l4_header + s->n_payload;
	uint32_t l3 = 14, l4;
	uint8_t *at;

	memcpy(bytes, "\2\0\0\0\0\1\2\0\0\0\0", 11);
	bytes[11] = (uint8_t)s->flow;
	for (uint32_t i = 0; i < s->n_tags; i++, l3 += 4)
		packet_put32(bytes + l3 - 2,
			     (s->n_tags - i == 2 ? 0x88a80000 : 0x81000000) +
				     7 + i);
	packet_put16(bytes + l3 - 2, s->is_v6 ? 0x86dd : 0x0800);
	l4 = l3 + write_ip(bytes + l3, n_l4, s);
	at = bytes + l4;
	memset(at, 0, n_l4_header);
	packet_put16(at, 1000 + s->flow);
	packet_put16(at + 2, 5201);
	if (s->is_udp) {
		packet_put16(at + 4, n_l4);
	} else {
		packet_put32(at + 4, s->seq);
		packet_put32(at + 8, s->ack);
		at[12] = (uint8_t)(n_l4_header / 4 << 4);
		at[13] = (uint8_t)s->flags;
		packet_put16(at + 14, s->window);
		for (uint32_t i = 0; i < s->n_tcp_options; i++)
			packet_put32(at + 20 + 4 * i, s->option);
	}
	for (uint32_t i = 0; i < s->n_payload; i++)
		at[n_l4_header + i] = (uint8_t)random_below(256);
	memset(at + n_l4, 0x77, s->n_padding);
	write_sum(bytes, l3, l4, n_l4, s);
	*ret_n_header = l4 + n_l4_header;
	return l4 + n_l4 + s->n_padding;
}

#endif
