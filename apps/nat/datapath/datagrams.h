/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragmented datagrams: found by the key that their fragments share, forgotten
 * oldest first.
 *
 *     key --hash--> slot --> next slot with the same hash
 *     ring of slots:  tail, the oldest ... head, the newest
 *
 * Every call does a bounded amount of work. The hash is keyed, so choosing
 * addresses and ids cannot create long chains.
 */
#ifndef NAT_DATAGRAMS_H
#define NAT_DATAGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/random.h"

enum { NAT_DATAGRAM_NONE = UINT32_MAX };

/* RFC 791. Network order. */
struct nat_datagram_key {
	uint32_t src, dst;
	uint16_t id;
	uint8_t proto, from; /* from: enum nat_side */
};

struct nat_datagram_slot {
	struct nat_datagram_key key;
	uint32_t next; /* or NAT_DATAGRAM_NONE */
	uint64_t end_ns;
};

struct nat_datagrams {
	struct nat_datagram_slot *slots;
	uint32_t *heads;     /* by hash */
	uint32_t n;          /* a power of two */
	uint32_t head, tail; /* free-running */
	uint64_t seeds[2];   /* odd; of the hash */
};

/* n: a power of two. 0 or -ENOMEM. */
int nat_datagrams_init(struct nat_datagrams *d, uint32_t n,
		       struct nat_random *random);
void nat_datagrams_end(struct nat_datagrams *d);

/* The slot of a datagram, 0..n-1, or NAT_DATAGRAM_NONE. */
uint32_t nat_datagrams_find(const struct nat_datagrams *d,
			    const struct nat_datagram_key *key);
/* A slot for a new one; there must be room. */
uint32_t nat_datagrams_add(struct nat_datagrams *d,
			   const struct nat_datagram_key *key, uint64_t end_ns);
/* Forget the oldest. Returns its slot, or NAT_DATAGRAM_NONE. */
uint32_t nat_datagrams_forget(struct nat_datagrams *d);

static inline bool nat_datagrams_is_full(const struct nat_datagrams *d)
{
	return d->head - d->tail == d->n;
}

/* Whether the oldest has expired. */
static inline bool nat_datagrams_is_due(const struct nat_datagrams *d,
					uint64_t now_ns)
{
	return d->head != d->tail &&
	       d->slots[d->tail & (d->n - 1)].end_ns <= now_ns;
}

#endif
