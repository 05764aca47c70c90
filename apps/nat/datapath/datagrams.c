/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragmented datagrams. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datagrams.h"

_Static_assert(sizeof(struct nat_datagram_key) == 12, "a key has no holes");

int nat_datagrams_init(struct nat_datagrams *d, uint32_t n,
		       struct nat_random *random)
{
	*d = (struct nat_datagrams){ .n = n };
	for (uint32_t i = 0; i < 2; i++)
		d->seeds[i] = nat_random_u64(random) | 1;
	d->slots = calloc(n, sizeof(*d->slots));
	d->heads = malloc(n * sizeof(*d->heads));
	if (d->slots == NULL || d->heads == NULL) {
		nat_datagrams_end(d);
		return -ENOMEM;
	}
	memset(d->heads, 0xff, n * sizeof(*d->heads)); /* NONE */
	return 0;
}

void nat_datagrams_end(struct nat_datagrams *d)
{
	free(d->slots);
	free(d->heads);
	*d = (struct nat_datagrams){ 0 };
}

static uint32_t *head_of(const struct nat_datagrams *d,
			 const struct nat_datagram_key *key)
{
	const uint64_t sum =
		((uint64_t)key->src << 32 | key->dst) * d->seeds[0] +
		(uint64_t)key->id * d->seeds[1];
	const uint64_t hash =
		(sum ^ sum >> 32) * UINT64_C(0xd6e8feb86659fd93) >> 40;

	return &d->heads[hash & (d->n - 1)];
}

uint32_t nat_datagrams_find(const struct nat_datagrams *d,
			    const struct nat_datagram_key *key)
{
	uint32_t at = *head_of(d, key);

	while (at != NAT_DATAGRAM_NONE &&
	       memcmp(&d->slots[at].key, key, sizeof(*key)) != 0)
		at = d->slots[at].next;
	return at;
}

uint32_t nat_datagrams_add(struct nat_datagrams *d,
			   const struct nat_datagram_key *key, uint64_t end_ns)
{
	const uint32_t at = d->head++ & (d->n - 1);
	uint32_t *head = head_of(d, key);

	d->slots[at] = (struct nat_datagram_slot){ *key, *head, end_ns };
	*head = at;
	return at;
}

uint32_t nat_datagrams_forget(struct nat_datagrams *d)
{
	const uint32_t at = d->tail & (d->n - 1);
	uint32_t *link;

	if (d->head == d->tail)
		return NAT_DATAGRAM_NONE;
	d->tail++;
	link = head_of(d, &d->slots[at].key);
	while (*link != at)
		link = &d->slots[*link].next;
	*link = d->slots[at].next;
	return at;
}
