/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring of many producers and many consumers (after D. Vyukov's bounded queue,
 * 2010), extended to bursts.
 *
 * Every place has a turn. A producer that finds the turns of the next k places
 * equal to their numbers may claim all k with one compare-and-swap on head: a
 * place that waits for entry n waits until whoever claims n has filled it, so
 * the observation still holds when the swap succeeds. Consumers do the same
 * with n + 1.
 *
 * Nobody waits: if a producer is stopped between its swap and its last store,
 * consumers find a place whose turn has not come, and return.
 *
 * Order: the release of a turn pairs with the acquire of the same turn by the
 * other side, and hands over the entry, or its place.
 */
#include <errno.h>

#include "base/base.h"
#include "ring/ring.h"

int mr_ring_mpmc_create(struct mr_ctx *ctx, uint32_t n_entries,
			struct mr_ring_mpmc **ret_ring,
			struct mr_reason *reterr_reason)
{
	struct mr_ring_mpmc *ring;

	if (!mri_ring_is_size(n_entries))
		return mr_fail(reterr_reason, -EINVAL,
			       "a ring of %u entries: must be a power of two, "
			       "2 to %u",
			       n_entries, MRI_RING_MAX_ENTRIES);
	ring = mr_alloc(ctx, 0,
			sizeof(*ring) +
				n_entries * sizeof(struct mri_ring_place));
	if (ring == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a ring of %u entries", n_entries);
	ring->ctx = ctx;
	ring->n_entries = n_entries;
	mri_ring_mpmc_start_at(ring, 0);
	*ret_ring = ring;
	return 0;
}

void mr_ring_mpmc_destroy(struct mr_ring_mpmc *ring)
{
	if (ring != NULL)
		mr_free(ring->ctx, ring);
}

void mri_ring_mpmc_start_at(struct mr_ring_mpmc *ring, uint32_t count)
{
	ring->head = ring->tail = count;
	for (uint32_t i = 0; i < ring->n_entries; i++)
		ring->places[(count + i) & (ring->n_entries - 1)].turn =
			count + i;
}

static struct mri_ring_place *place_at(struct mr_ring_mpmc *ring, uint32_t at)
{
	return &ring->places[at & (ring->n_entries - 1)];
}

/*
 * Claim up to n places from *counter on whose turn is their number plus lead.
 * Returns how many, and the first one.
 */
static uint32_t claim(struct mr_ring_mpmc *ring, uint32_t *counter,
		      uint32_t lead, uint32_t n, uint32_t *ret_first)
{
	uint32_t first = __atomic_load_n(counter, __ATOMIC_RELAXED);
	uint32_t k;

	do {
		for (k = 0; k < n; k++)
			if (__atomic_load_n(&place_at(ring, first + k)->turn,
					    __ATOMIC_ACQUIRE) !=
			    first + k + lead)
				break;
		if (k == 0) {
			/* Full, empty, or first is outdated: try once more. */
			const uint32_t now =
				__atomic_load_n(counter, __ATOMIC_RELAXED);

			if (now == first)
				return 0;
			first = now;
			continue;
		}
		if (__atomic_compare_exchange_n(counter, &first, first + k,
						true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			break;
		k = 0;
	} while (k == 0);
	*ret_first = first;
	return k;
}

uint32_t mr_ring_mpmc_enqueue_burst(struct mr_ring_mpmc *ring,
				    const struct mr_frame *frames, uint32_t n)
{
	uint32_t first;

	n = claim(ring, &ring->head, 0, n, &first);
	for (uint32_t i = 0; i < n; i++) {
		struct mri_ring_place *place = place_at(ring, first + i);

		place->frame = frames[i];
		__atomic_store_n(&place->turn, first + i + 1, __ATOMIC_RELEASE);
	}
	return n;
}

uint32_t mr_ring_mpmc_dequeue_burst(struct mr_ring_mpmc *ring,
				    struct mr_frame *frames, uint32_t n)
{
	uint32_t first;

	n = claim(ring, &ring->tail, 1, n, &first);
	for (uint32_t i = 0; i < n; i++) {
		struct mri_ring_place *place = place_at(ring, first + i);

		frames[i] = place->frame;
		__atomic_store_n(&place->turn, first + i + ring->n_entries,
				 __ATOMIC_RELEASE);
	}
	return n;
}
