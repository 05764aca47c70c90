/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread sends what is due and receives what has arrived, in turn. It also
 * answers ARP, so that a NAT needs no static neighbours. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nat/nat_path.h"
#include "net/drops.h"
#include "net/mac.h"
#include "net/tester.h"
#include "support/text.h"

enum {
	BURST = 32,
	STATE_SEEN = 1,     /* at the server: the tuple is set */
	STATE_ANSWERED = 2, /* in this validation */
	ARP_TRIES = 30,
	HEADROOM = 128,
	MAX_ROWS = 256, /* loss counters */
	BOTH = 3,       /* ports receive: a bit of each */
};

static const uint64_t arp_wait_ns = 100 * 1000000ull;
/* How long to wait for late frames. */
static const uint64_t settle_ns = 500 * 1000000ull;
static const uint64_t stuck_ns = 2000 * 1000000ull;
static const uint64_t poll_ns = 100 * 1000000ull;

/* Allocate n frames; returns how many there are. */
static uint32_t take_buffers(struct nat_path *path, struct mr_frame *frames,
			     uint32_t n)
{
	uint64_t addrs[BURST];

	n = mr_frag_alloc_bulk(path->cache, addrs, n,
			       HEADROOM + NAT_FRAME_BYTES);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ .addr = addrs[i] + HEADROOM,
					       .len = NAT_FRAME_BYTES };
	return n;
}

static uint8_t *bytes_of(const struct nat_path *path,
			 const struct mr_frame *frame)
{
	return mr_frame_data(path->base, frame);
}

static void send_arp(struct nat_path *path, struct nat_side *side, uint16_t op,
		     uint32_t sender, uint32_t target)
{
	struct mr_frame frame;

	if (take_buffers(path, &frame, 1) == 0)
		return;
	nat_wire_arp(op, sender, target, &side->macs, bytes_of(path, &frame));
	if (mr_tx_burst(side->txqs[0], path->cache, &frame, 1) == 0)
		mr_frame_free_bulk(path->cache, &frame, 1);
}

static void learn_nat(struct nat_side *side, const struct nat_seen *seen)
{
	memcpy(side->macs.dst, seen->src_mac, sizeof(side->macs.dst));
	side->knows_nat = true;
}

/* Count a connection that is seen at the server, or an answer to its client. */
static void count_seen(struct nat_path *path, const struct nat_seen *seen,
		       uint8_t state)
{
	uint8_t *states = path->states;

	if (seen->number >= path->n_known)
		return;
	if (state == STATE_SEEN)
		path->tuples[seen->number] = seen->tuple;
	/* Frames of an earlier phase do not count. */
	if (state == path->awaited && seen->number >= path->first &&
	    (states[seen->number] & state) == 0)
		path->n_arrived++;
	states[seen->number] |= state;
}

static void take_frame(struct nat_path *path, struct nat_side *side,
		       const uint8_t *bytes, uint32_t n_bytes)
{
	struct nat_seen seen = { 0 };

	switch (nat_wire_read(&path->plan, side == &path->server, bytes,
			      n_bytes, &seen)) {
	case NAT_QUERY:
		learn_nat(side, &seen);
		count_seen(path, &seen, STATE_SEEN);
		break;
	case NAT_ANSWER:
		count_seen(path, &seen, STATE_ANSWERED);
		break;
	case NAT_ARP_REQUEST:
		learn_nat(side, &seen);
		send_arp(path, side, MR_ARP_REPLY, seen.asked, seen.asker);
		break;
	case NAT_ARP_REPLY:
		learn_nat(side, &seen);
		break;
	case NAT_OTHER:
		break;
	}
}

static void receive_frames(struct nat_path *path, struct nat_side *side)
{
	for (uint32_t q = 0; q < side->n_rxqs; q++) {
		struct mr_frame frames[BURST];
		const uint32_t n =
			mr_rx_burst(side->rxqs[q], path->cache, frames, BURST);

		for (uint32_t i = 0; i < n; i++)
			take_frame(path, side, bytes_of(path, &frames[i]),
				   frames[i].len);
		mr_frame_free_bulk(path->cache, frames, n);
	}
}

/* Free the frames that the queues have sent. */
static void reclaim_frames(struct nat_path *path, struct nat_side *side)
{
	for (uint32_t q = 0; q < side->n_txqs; q++)
		mr_tx_burst(side->txqs[q], path->cache, NULL, 0);
}

static void receive_both(struct nat_path *path)
{
	receive_frames(path, &path->client);
	receive_frames(path, &path->server);
	reclaim_frames(path, &path->client);
	reclaim_frames(path, &path->server);
}

/* A phase: frames at pps, one for each of n numbers, starting with first. */
struct phase {
	struct nat_side *side;
	bool is_answer;
	bool is_again; /* only those that have not arrived */
	double pps;
	uint32_t first, n, n_done;
	uint64_t n_sent;
	bool is_stuck;
};

/* A connection that was never seen cannot be queried. */
static bool is_wanted(const struct nat_path *path, const struct phase *p,
		      uint32_t number)
{
	const uint8_t state = path->states[number];

	if (p->is_again && (state & path->awaited) != 0)
		return false;
	return !p->is_answer || (state & STATE_SEEN) != 0;
}

/* At most n frames, of numbers before end. */
static uint32_t build_frames(struct nat_path *path, struct phase *p,
			     struct mr_frame *frames, uint32_t n, uint32_t end)
{
	uint32_t n_built = 0;

	n = take_buffers(path, frames, n);
	while (n_built < n && p->n_done < p->n && p->first + p->n_done < end) {
		const uint32_t number = p->first + p->n_done++;
		uint8_t *bytes = bytes_of(path, &frames[n_built]);

		if (!is_wanted(path, p, number))
			continue;
		n_built++;
		if (p->is_answer)
			nat_wire_answer(&path->plan, number,
					&path->tuples[number], &p->side->macs,
					bytes);
		else
			nat_wire_query(&path->plan, number, &p->side->macs,
				       bytes);
	}
	mr_frame_free_bulk(path->cache, frames + n_built, n - n_built);
	return n_built;
}

/* Send the frames that are due, as far as the queue accepts them. */
static void send_due(struct nat_path *path, struct phase *p, uint64_t now_ns)
{
	const double due = (double)now_ns / 1e9 * p->pps + 1;
	const uint32_t n_due = due < p->n ? (uint32_t)due : p->n;
	struct mr_frame frames[BURST];
	const uint64_t until_ns = now_ns + stuck_ns;
	struct mr_txq *txq;
	uint32_t n, group;

	while (p->n_done < p->n && !is_wanted(path, p, p->first + p->n_done))
		p->n_done++;
	if (p->n_done == p->n || n_due <= p->n_sent)
		return;
	/* A connection always uses the same queue, as on a host's NIC;
	 * neighbours share it, so that bursts are long. */
	group = (p->first + p->n_done) / BURST;
	txq = p->side->txqs[group % p->side->n_txqs];
	n = n_due - (uint32_t)p->n_sent;
	n = build_frames(path, p, frames, n < BURST ? n : BURST,
			 (group + 1) * BURST);
	/* Repeat until the queue accepts them; whether that was too late is
	 * judged below. A port that accepts nothing at all is gone. */
	for (uint32_t n_out = 0; n_out < n; receive_both(path)) {
		n_out += mr_tx_burst(txq, path->cache, frames + n_out,
				     n - n_out);
		p->is_stuck = n_out < n && clock_now(&path->clock) > until_ns;
		if (p->is_stuck || tester_is_ending()) {
			mr_frame_free_bulk(path->cache, frames + n_out,
					   n - n_out);
			return;
		}
	}
	p->n_sent += n;
}

/* Announce the port's MAC address for all hosts that the tester plays. */
static void announce_hosts(struct nat_path *path, struct nat_side *side)
{
	const bool is_client = side == &path->client;
	const uint32_t n = is_client ? path->plan.n_clients : 1;
	const uint32_t first =
		is_client ? path->plan.client : path->plan.server;

	for (uint32_t i = 0; i < n; i++) {
		send_arp(path, side, MR_ARP_REQUEST, first + i, first + i);
		reclaim_frames(path, side);
	}
}

static void take_event(void *opaque, struct mr_port *port, uint32_t events)
{
	struct nat_path *path = opaque;
	struct nat_side *side =
		port == path->client.port ? &path->client : &path->server;
	uint64_t mac;

	if ((events & MR_PORT_EVENT_MAC) == 0)
		return;
	mac_follow(port, "mr-bench", "announced to its link", &mac);
	memcpy(side->macs.src, &mac, sizeof(side->macs.src));
	announce_hosts(path, side);
}

/* Poll the ports now and then. 0, or -errno if a port is gone. */
static int poll_ports(struct nat_path *path, uint64_t now_ns,
		      struct mr_reason *why)
{
	struct nat_side *const sides[] = { &path->client, &path->server };

	if (now_ns < path->next_poll_ns)
		return 0;
	path->next_poll_ns = now_ns + poll_ns;
	for (uint32_t i = 0; i < 2; i++) {
		struct mr_link link;

		mr_port_poll(sides[i]->port);
		if (mr_port_link(sides[i]->port, &link) == 0 && link.is_gone)
			return fail_with(why, -ENODEV, "the %s port is gone",
					 i == 0 ? "first" : "second");
	}
	return 0;
}

/* Send, then wait for late frames. */
static int send_phase(struct nat_path *path, struct phase *p,
		      uint64_t *ret_sent_ns, struct mr_reason *why)
{
	uint64_t now, sent_ns = 0;
	int err;

	path->next_poll_ns = 0;
	clock_start(&path->clock);
	do {
		now = clock_now(&path->clock);
		err = poll_ports(path, now, why);
		if (err < 0)
			return err;
		if (p->n_done < p->n)
			send_due(path, p, now);
		if (p->n_done == p->n && sent_ns == 0)
			sent_ns = clock_now(&path->clock);
		receive_both(path);
		if (tester_is_ending())
			return fail_with(why, -EINTR, "ended by a signal");
		if (p->is_stuck)
			return fail_with(why, -EIO,
					 "the %s port takes no frames: is its "
					 "link up?",
					 p->is_answer ? "second" : "first");
	} while (sent_ns == 0 ||
		 (path->n_arrived < p->n_sent && now < sent_ns + settle_ns));
	*ret_sent_ns = sent_ns;
	return 0;
}

/* Count the frames of the phase that left, as in every trial. */
static int judge_phase(const struct nat_path *path, const struct phase *p,
		       const struct trial_drop *before, struct nat_counts *ret,
		       struct mr_reason *why)
{
	struct trial_drop rows[MAX_ROWS];
	struct drop_rows moved = { rows, 0, MAX_ROWS };
	struct trial_result trial = { .sent = p->n_sent, .drops = rows };

	drops_read(&moved, path->plane.ports, 2, BOTH, before);
	trial.n_drops = moved.n;
	trial_judge(&trial, drops_unsent(&moved, p->side->port), 0, true);
	if (trial.sent == 0 && trial.unsent > 0)
		return fail_with(why, -EIO, "%s", trial.why_incomplete);
	ret->sent = trial.sent;
	ret->is_unsent |= trial.unsent > 0;
	ret->n_dropped_here = drops_received(&moved, path->client.port) +
			      drops_received(&moved, path->server.port);
	return 0;
}

static int run_phase(struct nat_path *path, struct phase *p,
		     struct nat_counts *ret, struct mr_reason *why)
{
	struct trial_drop rows[MAX_ROWS];
	struct drop_rows before = { rows, 0, MAX_ROWS };
	uint64_t sent_ns = 0;
	int err;

	path->n_arrived = 0;
	path->awaited = p->is_answer ? STATE_ANSWERED : STATE_SEEN;
	path->first = p->first;
	drops_read(&before, path->plane.ports, 2, BOTH, NULL);
	err = send_phase(path, p, &sent_ns, why);
	if (err < 0)
		return err;
	ret->arrived = path->n_arrived;
	/* 2 % and 10 ms late: that was not the requested rate. */
	ret->is_unsent =
		(double)sent_ns > 1.02e9 * (double)p->n_sent / p->pps + 1e7;
	return judge_phase(path, p, rows, ret, why);
}

void nat_path_forget(struct nat_path *path)
{
	path->n_known = 0;
	/* Far enough away that no late frame has one of the new numbers. */
	path->plan.magic += path->n_room;
}

int nat_path_establish(struct nat_path *path, double pps, uint32_t n,
		       struct nat_counts *ret, struct mr_reason *why)
{
	struct phase p = { .side = &path->client,
			   .pps = pps,
			   .first = path->n_known,
			   .n = n };

	path->n_known += n;
	memset(path->states + p.first, 0, n);
	path->n_last = n;
	return run_phase(path, &p, ret, why);
}

int nat_path_validate(struct nat_path *path, double pps, uint32_t n_skipped,
		      struct nat_counts *ret, struct mr_reason *why)
{
	struct phase p = { .side = &path->server,
			   .is_answer = true,
			   .pps = pps,
			   .first = n_skipped,
			   .n = path->n_known - n_skipped };

	for (uint32_t i = 0; i < path->n_known; i++)
		path->states[i] &= (uint8_t)~STATE_ANSWERED;
	path->n_last = p.n;
	return run_phase(path, &p, ret, why);
}

int nat_path_again(struct nat_path *path, double pps, struct nat_counts *ret,
		   struct mr_reason *why)
{
	const bool is_answer = path->awaited == STATE_ANSWERED;
	struct phase p = { .is_answer = is_answer, .is_again = true };

	p.side = is_answer ? &path->server : &path->client;
	p.pps = pps;
	p.first = path->first;
	p.n = path->n_last;
	return run_phase(path, &p, ret, why);
}

/* Ask for the gateway's address, on the clients' side. */
static int find_nat(struct nat_path *path, struct mr_reason *why)
{
	const struct nat_plan *plan = &path->plan;
	uint64_t until;

	for (uint32_t i = 0; i < ARP_TRIES && !path->client.knows_nat; i++) {
		send_arp(path, &path->client, MR_ARP_REQUEST, plan->client,
			 plan->gateway);
		until = clock_monotonic_ns() + arp_wait_ns;
		while (!path->client.knows_nat && clock_monotonic_ns() < until)
			receive_both(path);
		if (tester_is_ending())
			return fail_with(why, 1, "ended by a signal");
	}
	if (path->client.knows_nat)
		return 0;
	return fail_with(why, 1,
			 "no answer to ARP for --gateway %u.%u.%u.%u on the "
			 "first port: check that the NAT runs, and that this "
			 "is its inside",
			 plan->gateway >> 24, plan->gateway >> 16 & 255,
			 plan->gateway >> 8 & 255, plan->gateway & 255);
}

static int take_queues(struct nat_side *side, const struct mr_port_info *info,
		       struct mr_reason *why)
{
	struct mr_rxq *rxq;
	struct mr_txq *txq;

	if (info->n_rxqs > NAT_MAX_QUEUES || info->n_txqs > NAT_MAX_QUEUES)
		return fail_with(why, 2,
				 "%s: more than %d queues; --queues makes "
				 "fewer",
				 info->name, NAT_MAX_QUEUES);
	while ((rxq = mr_port_rxq(side->port, side->n_rxqs)) != NULL)
		side->rxqs[side->n_rxqs++] = rxq;
	while ((txq = mr_port_txq(side->port, side->n_txqs)) != NULL)
		side->txqs[side->n_txqs++] = txq;
	return 0;
}

static int take_port(struct nat_side *side, struct mr_port *port,
		     struct mr_reason *why)
{
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(port, &info);
	side->port = port;
	memcpy(side->macs.src, info.mac, sizeof(side->macs.src));
	if (!info.has_mac)
		memcpy(side->macs.src, (const uint8_t[6]){ 2, 0, 0, 0, 0, 1 },
		       sizeof(side->macs.src));
	return take_queues(side, &info, why);
}

static int open_parts(struct nat_path *path, uint32_t n_room,
		      struct mr_reason *why)
{
	int status;

	if (mr_cache_create(path->plane.pool, &path->cache, why) < 0)
		return 1;
	path->base = mr_region_base(mr_pool_region(path->plane.pool));
	path->tuples = calloc(n_room, sizeof(*path->tuples));
	path->states = calloc(n_room, sizeof(*path->states));
	path->n_room = n_room;
	if (path->tuples == NULL || path->states == NULL)
		return fail_with(why, 1, "no memory for %u connections",
				 n_room);
	status = take_port(&path->client, path->plane.ports[0], why);
	if (status == 0)
		status = take_port(&path->server, path->plane.ports[1], why);
	for (uint32_t p = 0; status == 0 && p < 2; p++)
		(void)mr_port_subscribe(path->plane.ports[p], take_event, path);
	if (status != 0)
		return status;
	clock_open(&path->clock, false);
	(void)mr_ports_wait_link(path->plane.ports, path->plane.n_ports,
				 LINK_WAIT_MS);
	return find_nat(path, why);
}

/* Sending and receiving is done by this thread, not by a worker. */
static int take_core(struct nat_path *path,
		     const struct dataplane_config *config,
		     struct mr_reason *why)
{
	cpu_set_t set;

	if (config->n_cores == 0)
		return 0;
	path->core = mr_workers_get(path->plane.workers, 0)->core;
	path->has_core = true;
	CPU_ZERO(&set);
	CPU_SET(path->core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return fail_with(why, 1, "--cores: core %u: %s", path->core,
				 mr_strerror(errno));
	return 0;
}

int nat_path_open(struct nat_path *path, const struct dataplane_config *config,
		  uint32_t n_room, struct mr_reason *why)
{
	struct dataplane_config plane = *config;
	int status;

	plane.burst = BURST;
	if (config->n_ports != 2)
		return fail_with(why, 2,
				 "%u ports instead of two, the NAT's inside "
				 "and outside",
				 config->n_ports);
	status = dataplane_open(&path->plane, &plane, why);
	if (status != 0)
		return status;
	status = take_core(path, config, why);
	if (status == 0)
		status = open_parts(path, n_room, why);
	if (status != 0)
		nat_path_close(path);
	return status;
}

int nat_path_close(struct nat_path *path)
{
	struct mr_reason why = { .text = "" };
	int status = 0;

	dataplane_close_ports(&path->plane);
	mr_cache_destroy(path->cache);
	if (dataplane_close(&path->plane, &why) < 0) {
		print_error("mr-bench: %s", why.text);
		status = 1;
	}
	free(path->states);
	free(path->tuples);
	return status;
}
