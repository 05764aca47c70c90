/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments: each goes its way as soon as the first one has said which. Those
 * that come before it wait; nothing is put together. What is known of a
 * datagram is a bit per 8 bytes that were seen, so overlaps and repetitions are
 * found in any order.
 *
 * All of it is bounded: datagrams are kept in the order they began in and the
 * oldest one gives way, frames that wait have a store of their own. A flood of
 * fragments takes from fragments. Sources: RFC 791, RFC 1858, RFC 3128, RFC
 * 4787 section 11, RFC 6864.
 */
#include <stdlib.h>

#include "core.h"

enum {
	MIN_DATAGRAMS = 64,
	MAX_DATAGRAMS = 4096,
	MAX_WAITING = 48,   /* of one: 64 KiB by 1500 */
	MAX_PACKET = 65535, /* bytes, of IPv4 */
	N_WORDS = (MAX_PACKET + 1) / 8 / 64,
};

enum state {
	STATE_FREE,
	STATE_WAITING, /* for the first fragment */
	STATE_KNOWN,   /* way holds */
	STATE_LOCAL,   /* for ourselves */
	STATE_DEAD,    /* reason holds */
};

struct datagram {
	uint32_t src, dst;
	uint16_t id;
	uint8_t proto, from;
	uint8_t state;
	uint8_t reason; /* enum nat_reason */
	uint32_t next;  /* with the same hash, or NONE */
	uint64_t end_ns;
	struct nat_way way;
	struct nat_fifo waiting;
	uint64_t seen[N_WORDS];
};

enum { NONE = UINT32_MAX };

struct nat_fragments {
	struct datagram *ring; /* n, a power of two; oldest at tail */
	uint32_t *heads;       /* n: by hash */
	uint32_t n;
	uint32_t head, tail; /* free-running */
	uint32_t n_waiting, max_waiting;
	uint64_t keep_ns;
	uint64_t seeds[2]; /* odd; of the hash */
};

struct nat_fragments *nat_fragments_create(const struct nat_config *config,
					   struct nat_random *random)
{
	struct nat_fragments *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	for (uint32_t i = 0; i < 2; i++)
		f->seeds[i] = nat_random_u64(random) | 1;
	f->max_waiting = config->max_fragments;
	f->keep_ns = config->timeouts.fragment_s * UINT64_C(1000000000);
	f->n = MIN_DATAGRAMS;
	while (f->n < f->max_waiting && f->n < MAX_DATAGRAMS)
		f->n *= 2;
	f->ring = calloc(f->n, sizeof(*f->ring));
	f->heads = malloc(f->n * sizeof(*f->heads));
	if (f->ring == NULL || f->heads == NULL) {
		nat_fragments_destroy(f);
		return NULL;
	}
	memset(f->heads, 0xff, f->n * sizeof(*f->heads)); /* NONE */
	return f;
}

void nat_fragments_destroy(struct nat_fragments *f)
{
	if (f == NULL)
		return;
	free(f->ring);
	free(f->heads);
	free(f);
}

/* Keyed: whoever chooses addresses and ids does not choose which ones meet. */
static uint32_t hash_of(const struct nat_fragments *f, uint32_t src,
			uint32_t dst, uint16_t id)
{
	const uint64_t sum = ((uint64_t)src << 32 | dst) * f->seeds[0] +
			     (uint64_t)id * f->seeds[1];

	return (uint32_t)((sum ^ sum >> 32) * UINT64_C(0xd6e8feb86659fd93) >>
			  40) &
	       (f->n - 1);
}

/* Frames that wait end as what became of their datagram. */
static void drop_waiting(struct nat_path *path, struct datagram *d,
			 enum nat_reason reason)
{
	struct nat_packet packet;

	while (nat_fifo_take(&path->hold, &d->waiting, &packet, NULL)) {
		path->fragments->n_waiting--;
		counter_sub(&path->stats.held, 1);
		nat_drop(path, &packet, reason);
	}
}

static void forget_oldest(struct nat_path *path)
{
	struct nat_fragments *f = path->fragments;
	const uint32_t at = f->tail++ & (f->n - 1);
	struct datagram *d = &f->ring[at];
	uint32_t *link = &f->heads[hash_of(f, d->src, d->dst, d->id)];

	drop_waiting(path, d, NAT_DROP_FRAGMENT_OLD);
	while (*link != at)
		link = &f->ring[*link].next;
	*link = d->next;
	d->state = STATE_FREE;
}

void nat_fragments_tick(struct nat_path *path)
{
	struct nat_fragments *f = path->fragments;

	while (f->tail != f->head &&
	       f->ring[f->tail & (f->n - 1)].end_ns <= path->now_ns)
		forget_oldest(path);
}

/* The datagram that a fragment belongs to, new if need be. */
static struct datagram *find(struct nat_path *path,
			     const struct nat_packet *packet)
{
	struct nat_fragments *f = path->fragments;
	const struct mr_ipv4 *ip = packet->ip;
	uint32_t *link = &f->heads[hash_of(f, ip->src, ip->dst, ip->id)];
	struct datagram *d;
	uint32_t at;

	for (at = *link; at != NONE; at = d->next) {
		d = &f->ring[at];
		if (d->src == ip->src && d->dst == ip->dst && d->id == ip->id &&
		    d->proto == ip->proto && d->from == packet->from)
			return d;
	}
	if (f->head - f->tail == f->n)
		forget_oldest(path);
	at = f->head++ & (f->n - 1);
	d = &f->ring[at];
	*d = (struct datagram){ .src = ip->src,
				.dst = ip->dst,
				.id = ip->id,
				.proto = ip->proto,
				.from = packet->from,
				.state = STATE_WAITING,
				.next = *link,
				.end_ns = path->now_ns + f->keep_ns };
	nat_fifo_init(&d->waiting);
	*link = at;
	return d;
}

/* Lengths that no honest sender makes; n: bytes behind the IP header. */
static bool is_wrong(const struct nat_packet *packet, uint32_t n)
{
	const uint32_t end = packet->fragment_offset + n;

	if (n == 0 || end + packet->ip_bytes > MAX_PACKET ||
	    (packet->has_more && n % 8 != 0))
		return true;
	/* RFC 1858: flags of TCP in the second one, to pass a filter. */
	return packet->proto == IPPROTO_TCP && packet->fragment_offset == 8;
}

/* Mark its bytes as seen. How many of its units of 8 bytes were so before. */
static uint32_t mark(struct datagram *d, const struct nat_packet *packet,
		     uint32_t n, uint32_t *ret_units)
{
	const uint32_t first = packet->fragment_offset / 8;
	const uint32_t end = first + (n + 7) / 8;
	uint32_t n_seen = 0;

	for (uint32_t unit = first; unit < end; unit++) {
		const uint64_t bit = UINT64_C(1) << (unit & 63);

		n_seen += (d->seen[unit / 64] & bit) != 0;
		d->seen[unit / 64] |= bit;
	}
	*ret_units = end - first;
	return n_seen;
}

static void kill(struct nat_path *path, struct datagram *d,
		 enum nat_reason reason)
{
	d->state = STATE_DEAD;
	d->reason = (uint8_t)reason;
	drop_waiting(path, d, reason);
}

/* Where a datagram goes that is known: a fragment of it follows. */
static void follow(struct nat_path *path, const struct datagram *d,
		   struct nat_packet *packet)
{
	if (d->state == STATE_LOCAL)
		nat_local(path, packet);
	else if (packet->ip->ttl <= 1)
		nat_refuse(path, packet, NAT_DROP_TTL);
	else
		nat_forward(path, packet, &d->way);
}

static void decide_first(struct nat_path *path, struct datagram *d,
			 struct nat_packet *packet)
{
	struct nat_packet waiting;
	enum nat_reason reason = nat_parse_l4(path, packet);

	if (reason == NAT_DROP_L4_MALFORMED)
		reason = NAT_DROP_FRAGMENT_WRONG; /* tiny: RFC 1858 */
	if (reason == NAT_OK)
		reason = nat_verdict(path, packet, &d->way);
	if (reason != NAT_OK && reason != NAT_TAKEN) {
		kill(path, d, reason);
		if (reason == NAT_DROP_UNSOLICITED_SYN)
			nat_syn_hold(path, packet);
		else
			nat_refuse(path, packet, reason);
		return;
	}
	if (reason == NAT_TAKEN &&
	    (packet->proto != IPPROTO_ICMP || packet->l4[0] != NAT_ICMP_ECHO)) {
		kill(path, d, NAT_DROP_NO_MAPPING);
		nat_local(path, packet);
		return;
	}
	d->state = reason == NAT_OK ? STATE_KNOWN : STATE_LOCAL;
	if (d->way.src != packet->ip->src) {
		/* Ids are per source, and this is another one: RFC 6864. */
		d->way.id = nat_take_id(path);
		d->way.has_id = true;
	}
	follow(path, d, packet);
	while (nat_fifo_take(&path->hold, &d->waiting, &waiting, NULL)) {
		path->fragments->n_waiting--;
		counter_sub(&path->stats.held, 1);
		follow(path, d, &waiting);
	}
}

static void wait_for_first(struct nat_path *path, struct datagram *d,
			   struct nat_packet *packet)
{
	struct nat_fragments *f = path->fragments;

	if (f->n_waiting == f->max_waiting || d->waiting.n == MAX_WAITING ||
	    !nat_fifo_put(&path->hold, &d->waiting, packet, NULL)) {
		nat_drop(path, packet, NAT_DROP_FRAGMENT_FULL);
		return;
	}
	f->n_waiting++;
	counter_add(&path->stats.held, 1);
}

void nat_fragment(struct nat_path *path, struct nat_packet *packet)
{
	const uint32_t n = packet->total_bytes - packet->ip_bytes;
	uint32_t n_seen, n_units;
	struct datagram *d;

	/* What a partial sum is over is in other frames, too. */
	if (is_wrong(packet, n) || packet->is_partial) {
		nat_drop(path, packet, NAT_DROP_FRAGMENT_WRONG);
		return;
	}
	d = find(path, packet);
	if (d->state == STATE_DEAD) {
		nat_drop(path, packet, d->reason);
		return;
	}
	n_seen = mark(d, packet, n, &n_units);
	if (n_seen != 0) {
		/* The same again is the network's doing, a part of it not. */
		if (n_seen != n_units)
			kill(path, d, NAT_DROP_FRAGMENT_WRONG);
		nat_drop(path, packet, NAT_DROP_FRAGMENT_WRONG);
		return;
	}
	if (packet->is_first)
		decide_first(path, d, packet);
	else if (d->state == STATE_WAITING)
		wait_for_first(path, d, packet);
	else
		follow(path, d, packet);
}
