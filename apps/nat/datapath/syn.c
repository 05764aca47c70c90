/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unsolicited SYNs from outside: silence for 6 s, in which a SYN from inside
 * may turn it into a simultaneous open; then port unreachable. Source: RFC 5382
 * REQ-4.
 */
#include <stdlib.h>

#include "syn.h"

#include "frame.h"
#include "hand_over.h"
#include "icmp_send.h"

enum { MAX_HELD = 128 }; /* per worker; more are dropped silently */

struct held_syn {
	struct nat_end remote;
	struct nat_end external;
	uint64_t end_ns;
	bool is_answered; /* by a SYN from inside */
};

struct nat_syns {
	struct held_syn ring[MAX_HELD]; /* parallel to the frames in fifo */
	uint32_t head, tail;            /* free-running */
	struct nat_fifo fifo;
};

struct nat_syns *nat_syns_create(void)
{
	struct nat_syns *syns = calloc(1, sizeof(*syns));

	if (syns != NULL)
		nat_fifo_init(&syns->fifo);
	return syns;
}

void nat_syns_destroy(struct nat_syns *syns)
{
	free(syns);
}

void nat_syn_hold(struct nat_path *path, struct nat_packet *packet)
{
	struct nat_syns *syns = path->syns;
	const uint64_t hold_ns =
		path->config->timeouts.tcp_unsolicited_s * UINT64_C(1000000000);

	if (syns->head - syns->tail == MAX_HELD ||
	    !nat_fifo_put(&path->hold, &syns->fifo, packet, NULL)) {
		nat_drop_packet(path, packet, NAT_DROP_UNSOLICITED_SYN);
		return;
	}
	syns->ring[syns->head++ % MAX_HELD] = (struct held_syn){
		.remote = { .addr = packet->ip->src, .port = packet->sport },
		.external = { .addr = packet->ip->dst, .port = packet->dport },
		.end_ns = path->now_ns + hold_ns
	};
	counter_add(&path->stats.held, 1);
}

static bool is_same(struct nat_end a, uint32_t addr, uint16_t port)
{
	return a.addr == addr && a.port == port;
}

void nat_syn_out(struct nat_path *path, const struct nat_verdict *verdict)
{
	struct nat_syns *syns = path->syns;

	for (uint32_t i = syns->tail; i != syns->head; i++) {
		struct held_syn *syn = &syns->ring[i % MAX_HELD];

		if (is_same(syn->remote, verdict->dst, verdict->dport) &&
		    is_same(syn->external, verdict->src, verdict->sport))
			syn->is_answered = true;
	}
}

void nat_syns_tick(struct nat_path *path)
{
	struct nat_syns *syns = path->syns;
	struct nat_packet packet;

	while (syns->tail != syns->head &&
	       syns->ring[syns->tail % MAX_HELD].end_ns <= path->now_ns &&
	       nat_fifo_take(&path->hold, &syns->fifo, &packet, NULL)) {
		counter_sub(&path->stats.held, 1);
		if (syns->ring[syns->tail++ % MAX_HELD].is_answered)
			nat_drop_packet(path, &packet,
					NAT_DROP_UNSOLICITED_SYN);
		else
			nat_refuse_packet(path, &packet,
					  NAT_DROP_UNSOLICITED_SYN);
	}
}

void nat_syns_copy(const struct nat_path *path, struct nat_path_parts *parts)
{
	const struct nat_syns *syns = path->syns;
	const struct nat_packet *packet;
	uint32_t at = NAT_HELD_NONE, i = syns->tail;

	/* The others are held anew, for the whole time. */
	while ((packet = nat_fifo_next(&path->hold, &syns->fifo, &at)) != NULL)
		if (syns->ring[i++ % MAX_HELD].is_answered)
			parts->n_dropped++;
		else
			nat_packet_copy(packet, parts);
}
