/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments: each is forwarded as soon as the first one has determined where.
 * Those that come before it wait; there is no reassembly. A bit per 8 bytes
 * records what was seen of a datagram, so overlaps and repetitions are found in
 * any order.
 *
 * Everything is bounded: new datagrams displace the oldest, and waiting frames
 * have a separate store. A flood of fragments affects only fragments. Sources:
 * RFC 791, RFC 1858, RFC 3128, RFC 4787 section 11, RFC 6864.
 */
#include <stdlib.h>

#include "fragment.h"

#include "datagrams.h"
#include "decide.h"
#include "forward.h"
#include "frame.h"
#include "hand_over.h"
#include "header.h"
#include "icmp.h"
#include "icmp_send.h"
#include "kernel.h"
#include "local.h"
#include "parse.h"
#include "syn.h"

enum {
	MIN_DATAGRAMS = 64,
	MAX_DATAGRAMS = 4096,
	MAX_WAITING = 48,   /* per datagram: 64 KiB by 1500 */
	MAX_EXPIRED = 64,   /* datagrams per tick; the rest follows */
	MAX_PACKET = 65535, /* bytes, of IPv4 */
	N_WORDS = (MAX_PACKET + 1) / 8 / 64,
};

enum state {
	STATE_WAITING, /* for the first fragment */
	STATE_KNOWN,   /* verdict is valid */
	STATE_LOCAL,   /* for ourselves */
	STATE_DEAD,    /* drop is valid */
};

struct datagram {
	uint8_t state;
	uint8_t drop; /* enum nat_drop */
	struct nat_verdict verdict;
	struct nat_fifo waiting;
	uint64_t seen[N_WORDS];
};

struct nat_fragments {
	struct nat_datagrams index;
	struct datagram *datagrams; /* by slot of index */
	uint32_t n_waiting, max_waiting;
};

struct nat_fragments *nat_fragments_create(const struct nat_config *config,
					   struct nat_random *random)
{
	struct nat_fragments *f = calloc(1, sizeof(*f));
	uint32_t n = MIN_DATAGRAMS;

	if (f == NULL)
		return NULL;
	f->max_waiting = config->max_fragments;
	while (n < f->max_waiting && n < MAX_DATAGRAMS)
		n *= 2;
	f->datagrams = calloc(n, sizeof(*f->datagrams));
	if (f->datagrams == NULL ||
	    nat_datagrams_init(&f->index, n, random) < 0) {
		nat_fragments_destroy(f);
		return NULL;
	}
	return f;
}

void nat_fragments_destroy(struct nat_fragments *f)
{
	if (f == NULL)
		return;
	nat_datagrams_end(&f->index);
	free(f->datagrams);
	free(f);
}

/* Waiting frames share the fate of their datagram. */
static void drop_waiting(struct nat_path *path, struct datagram *d,
			 enum nat_drop drop)
{
	struct nat_packet packet;

	while (nat_fifo_take(&path->hold, &d->waiting, &packet, NULL)) {
		path->fragments->n_waiting--;
		counter_sub(&path->stats.held, 1);
		nat_drop_packet(path, &packet, drop);
	}
}

static void forget_oldest(struct nat_path *path)
{
	struct nat_fragments *f = path->fragments;

	drop_waiting(path, &f->datagrams[nat_datagrams_forget(&f->index)],
		     NAT_DROP_FRAGMENT_OLD);
}

void nat_fragments_tick(struct nat_path *path)
{
	for (uint32_t i = 0; i < MAX_EXPIRED; i++) {
		if (!nat_datagrams_is_due(&path->fragments->index,
					  path->now_ns))
			return;
		forget_oldest(path);
	}
}

/* The datagram of a fragment, created if necessary. */
static struct datagram *find_datagram(struct nat_path *path,
				      const struct nat_packet *packet)
{
	const uint64_t keep_ns =
		path->config->timeouts.fragment_s * UINT64_C(1000000000);
	struct nat_fragments *f = path->fragments;
	const struct nat_datagram_key key = nat_datagram_key_of(packet);
	uint32_t at = nat_datagrams_find(&f->index, &key);

	if (at == NAT_DATAGRAM_NONE) {
		if (nat_datagrams_is_full(&f->index))
			forget_oldest(path);
		at = nat_datagrams_add(&f->index, &key, path->now_ns + keep_ns);
		f->datagrams[at] = (struct datagram){ .state = STATE_WAITING };
		nat_fifo_init(&f->datagrams[at].waiting);
	}
	return &f->datagrams[at];
}

/* Lengths that no legitimate sender uses; n: bytes after the IP header. */
static bool is_wrong(const struct nat_packet *packet, uint32_t n)
{
	const uint32_t end = packet->fragment_offset + n;

	if (n == 0 || end + packet->ip_bytes > MAX_PACKET ||
	    (packet->has_more && n % 8 != 0))
		return true;
	/* RFC 1858: TCP flags in the second fragment, to bypass a filter. */
	return packet->proto == IPPROTO_TCP && packet->fragment_offset == 8;
}

/* Mark its bytes as seen. Returns how many of its 8-byte units already were. */
static uint32_t mark_seen(struct datagram *d, const struct nat_packet *packet,
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

static void kill_datagram(struct nat_path *path, struct datagram *d,
			  enum nat_drop drop)
{
	d->state = STATE_DEAD;
	d->drop = (uint8_t)drop;
	drop_waiting(path, d, drop);
}

/* Forward a fragment of a datagram whose verdict is known. */
static void follow_datagram(struct nat_path *path, const struct datagram *d,
			    struct nat_packet *packet)
{
	if (d->state == STATE_LOCAL)
		nat_local(path, packet);
	else if (packet->ip->ttl <= 1)
		nat_refuse_packet(path, packet, NAT_DROP_TTL);
	else
		nat_forward_packet(path, packet, &d->verdict);
}

static void decide_first(struct nat_path *path, struct datagram *d,
			 struct nat_packet *packet)
{
	struct nat_packet waiting;
	enum nat_drop drop = nat_parse_l4(path, packet);

	if (drop == NAT_DROP_L4_MALFORMED)
		drop = NAT_DROP_FRAGMENT_WRONG; /* tiny: RFC 1858 */
	if (drop == NAT_OK)
		drop = nat_decide(path, packet, &d->verdict);
	if (nat_kernel_takes(path, packet, drop))
		drop = NAT_TAKEN;
	if (drop != NAT_OK && drop != NAT_TAKEN) {
		kill_datagram(path, d, drop);
		if (drop == NAT_DROP_UNSOLICITED_SYN)
			nat_syn_hold(path, packet);
		else
			nat_refuse_packet(path, packet, drop);
		return;
	}
	if (drop == NAT_TAKEN && !path->config->is_shared &&
	    (packet->proto != IPPROTO_ICMP || packet->l4[0] != NAT_ICMP_ECHO)) {
		kill_datagram(path, d, NAT_DROP_NO_MAPPING);
		nat_local(path, packet);
		return;
	}
	d->state = drop == NAT_OK ? STATE_KNOWN : STATE_LOCAL;
	if (d->verdict.src != packet->ip->src) {
		/* Ids are per source, which changes: RFC 6864. */
		d->verdict.id = nat_new_id(path, packet->ip);
		d->verdict.has_id = true;
	}
	follow_datagram(path, d, packet);
	while (nat_fifo_take(&path->hold, &d->waiting, &waiting, NULL)) {
		path->fragments->n_waiting--;
		counter_sub(&path->stats.held, 1);
		follow_datagram(path, d, &waiting);
	}
}

static void wait_for_first(struct nat_path *path, struct datagram *d,
			   struct nat_packet *packet)
{
	struct nat_fragments *f = path->fragments;

	if (f->n_waiting == f->max_waiting || d->waiting.n == MAX_WAITING ||
	    !nat_fifo_put(&path->hold, &d->waiting, packet, NULL)) {
		nat_drop_packet(path, packet, NAT_DROP_FRAGMENT_FULL);
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

	/* A partial checksum covers bytes of other frames, too. */
	if (is_wrong(packet, n) || packet->is_partial) {
		nat_drop_packet(path, packet, NAT_DROP_FRAGMENT_WRONG);
		return;
	}
	d = find_datagram(path, packet);
	if (d->state == STATE_DEAD) {
		nat_drop_packet(path, packet, d->drop);
		return;
	}
	n_seen = mark_seen(d, packet, n, &n_units);
	if (n_seen != 0) {
		/* The network may repeat a fragment, but not a part of it. */
		if (n_seen != n_units)
			kill_datagram(path, d, NAT_DROP_FRAGMENT_WRONG);
		nat_drop_packet(path, packet, NAT_DROP_FRAGMENT_WRONG);
		return;
	}
	if (packet->is_first)
		decide_first(path, d, packet);
	else if (d->state == STATE_WAITING)
		wait_for_first(path, d, packet);
	else
		follow_datagram(path, d, packet);
}

/* ---- for another process: hand_over.h ---- */

_Static_assert(N_WORDS ==
		       sizeof(((struct nat_datagram_image *)0)->seen) / 8,
	       "the image has all bits");

void nat_fragments_copy(const struct nat_path *path,
			struct nat_path_parts *parts)
{
	const struct nat_fragments *f = path->fragments;

	for (uint32_t i = f->index.tail; i != f->index.head; i++) {
		const uint32_t at = i & (f->index.n - 1);
		const struct datagram *d = &f->datagrams[at];
		struct nat_datagram_image *image;

		nat_fifo_copy(&path->hold, &d->waiting, parts);
		if (d->state == STATE_WAITING)
			continue; /* these frames make it again */
		image = nat_records_add(&parts->datagrams);
		if (image == NULL)
			return;
		image->key = f->index.slots[at].key;
		image->end_ns = f->index.slots[at].end_ns;
		image->state = d->state;
		image->drop = d->drop;
		image->verdict = d->verdict;
		memcpy(image->seen, d->seen, sizeof(image->seen));
	}
}

bool nat_datagram_is_sound(const struct nat_datagram_image *image)
{
	return image->key.from < NAT_SIDES && image->verdict.to < NAT_SIDES &&
	       (image->state == STATE_KNOWN || image->state == STATE_LOCAL ||
		(image->state == STATE_DEAD && image->drop < NAT_DROPS));
}

void nat_fragments_paste(struct nat_path *path,
			 const struct nat_datagram_image *images, uint32_t n)
{
	struct nat_fragments *f = path->fragments;

	for (uint32_t i = 0; i < n && !nat_datagrams_is_full(&f->index); i++) {
		const struct nat_datagram_image *image = &images[i];
		struct datagram *d;

		if (nat_datagrams_find(&f->index, &image->key) !=
		    NAT_DATAGRAM_NONE)
			continue;
		d = &f->datagrams[nat_datagrams_add(&f->index, &image->key,
						    image->end_ns)];
		*d = (struct datagram){ .state = image->state,
					.drop = image->drop,
					.verdict = image->verdict };
		nat_fifo_init(&d->waiting);
		memcpy(d->seen, image->seen, sizeof(d->seen));
	}
}
