/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long an adaptive worker polls before it sleeps.
 *
 * A gap is the time from the end of one piece of work to the next. Polling
 * costs the gap in CPU time; sleeping costs the wake-up, which delays the
 * frame. The worker counts gaps by length and chooses the limit at which both
 * together would have cost least:
 *
 *     cost(limit) = time polled in gaps up to limit
 *                   + longer gaps x (limit + price of a wake-up)
 *
 * The price is PRICE_FACTOR times the delay of a wake-up: we pay that much CPU
 * time for latency. The delay is how late the kernel ends sleeps that time out.
 * With a constant gap of up to MIN_PRICE_NS the limit exceeds the gap, whatever
 * a wake-up costs, so at 5000 frames/s and more there is no sleep.
 */
#include "worker/worker.h"

enum {
	PRICE_FACTOR = 10,
	MIN_PRICE_NS = 200000,
	MAX_PRICE_NS = 2000000,
	FIRST_WAKE_NS = 50000, /* before the first measurement */
	/* After this many gaps, the weight of earlier ones is halved. */
	FORGET_GAPS = 128,
	LONG_GAP_NS = 32000, /* the limit reacts at once to each of these */
};

static uint64_t edge_ns(uint32_t bucket)
{
	return 1000ull << bucket;
}

static uint32_t bucket_of(uint64_t gap_ns)
{
	uint32_t bucket = 0;

	while (bucket < MRI_GAP_BUCKETS - 1 && gap_ns > edge_ns(bucket))
		bucket++;
	return bucket;
}

static uint64_t price_of(uint64_t wake_ns)
{
	const uint64_t ns = PRICE_FACTOR * wake_ns;

	if (ns < MIN_PRICE_NS)
		return MIN_PRICE_NS;
	return ns < MAX_PRICE_NS ? ns : MAX_PRICE_NS;
}

/* Of limits with equal cost, the longest. Without gaps, the price, which never
 * costs more than twice as much as the best limit. */
static uint64_t best_limit(const struct mri_adapt *a)
{
	const uint64_t price = price_of(a->wake_ns);
	uint64_t n_longer = 0, polled = 0, best = 0, best_cost;

	for (uint32_t b = 0; b < MRI_GAP_BUCKETS; b++)
		n_longer += a->n_gaps[b];
	if (n_longer == 0)
		return price;
	best_cost = n_longer * price;
	for (uint32_t b = 0; b < MRI_GAP_BUCKETS - 1; b++) {
		uint64_t cost;

		polled += a->sum_ns[b];
		n_longer -= a->n_gaps[b];
		cost = polled + n_longer * (edge_ns(b) + price);
		if (cost > best_cost)
			continue;
		best_cost = cost;
		best = edge_ns(b);
	}
	return best;
}

void mri_adapt_begin(struct mri_adapt *a)
{
	*a = (struct mri_adapt){ .wake_ns = FIRST_WAKE_NS };
	a->limit_ns = best_limit(a);
}

void mri_adapt_gap(struct mri_adapt *a, uint64_t gap_ns, uint32_t n_slept_for)
{
	uint32_t bucket;

	/* Frames that came during a wake-up had shorter gaps than measured. */
	if (n_slept_for > 1 && gap_ns < edge_ns(MRI_GAP_BUCKETS - 2))
		gap_ns /= n_slept_for;
	bucket = bucket_of(gap_ns);
	a->n_gaps[bucket]++;
	a->sum_ns[bucket] += gap_ns;
	if (++a->n_new < FORGET_GAPS) {
		if (gap_ns >= LONG_GAP_NS)
			a->limit_ns = best_limit(a);
		return;
	}
	a->limit_ns = best_limit(a);
	a->n_new = 0;
	for (uint32_t b = 0; b < MRI_GAP_BUCKETS; b++) {
		a->n_gaps[b] /= 2;
		a->sum_ns[b] /= 2;
	}
}

void mri_adapt_wake(struct mri_adapt *a, uint64_t late_ns)
{
	if (late_ns > MAX_PRICE_NS)
		late_ns = MAX_PRICE_NS;
	a->wake_ns = (7 * a->wake_ns + late_ns) / 8;
	a->limit_ns = best_limit(a);
}
