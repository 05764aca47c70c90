/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device delivers and a driver receives, as one-line scripts:
 *
 *     m    a buffer of a frame that continues      R9=4  a burst of at most 9
 *     e    a buffer that ends one, 100 bytes           receives 4 entries
 *     b    an invalid buffer
 *     P    take all pages but 3                p     free them
 *
 * A prefix number repeats: 17m. Received frames are kept until the end.
 */
#ifndef SUPPORT_RX_SCRIPT_H
#define SUPPORT_RX_SCRIPT_H

#include <stdio.h>

#include <millrace/millrace.h>

#include "support/invariants.h"
#include "support/unit.h"

enum { RX_SCRIPT_END_BYTES = 100, RX_SCRIPT_PAGES = 4096 };

struct rx_script {
	const char *options; /* for the driver's own fixture */
	const char *script;
	/* The final counters. */
	uint32_t delivered, invalid, too_long, pool_empty;
};

/* The queue, and its source of buffers. */
struct rx_double {
	struct mr_rxq *rxq;
	struct mr_cache *cache;
	void (*give)(bool is_end);
	void (*give_bad)(void); /* NULL: no script uses it */
};

static inline void rx_script_burst(const struct rx_double *d, const char *text,
				   struct mr_frame *frames, uint32_t *n)
{
	unsigned int burst, want;
	uint32_t n_got;

	assert_int_equal(sscanf(text, "R%u=%u", &burst, &want), 2);
	n_got = mr_rx_burst(d->rxq, d->cache, frames + *n, burst);
	if (n_got != want)
		fail_msg("%s: %u", text, n_got);
	assert_int_equal(mr_frame_n_whole(frames + *n, n_got), n_got);
	for (uint32_t i = *n; i < *n + n_got; i++)
		if (!(frames[i].flags & MR_FRAME_MORE))
			assert_int_equal(frames[i].len, RX_SCRIPT_END_BYTES);
	*n += n_got;
}

static inline void rx_script_run(const struct rx_script *row,
				 const struct rx_double *d)
{
	static uint64_t pages[RX_SCRIPT_PAGES];
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	struct mr_frame frames[256];
	uint32_t n = 0, n_pages = 0;
	const char *at = row->script;

	for (; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
		char *word;
		const unsigned long times = strtoul(at, &word, 10);

		for (unsigned long i = 0; i < (times == 0 ? 1 : times); i++) {
			if (*word == 'm' || *word == 'e')
				d->give(*word == 'e');
			else if (*word == 'b')
				d->give_bad();
			else if (*word == 'R')
				rx_script_burst(d, word, frames, &n);
		}
		if (*word == 'P') {
			n_pages = mr_frag_alloc_bulk(d->cache, pages,
						     RX_SCRIPT_PAGES, 4096);
			mr_frag_free_bulk(d->cache, pages + n_pages - 3, 3);
			n_pages -= 3;
		}
		if (*word == 'p')
			mr_frag_free_bulk(d->cache, pages, n_pages);
	}
	mr_frame_free_bulk(d->cache, frames, n);
	if (d->rxq->queue.port->driver != NULL)
		assert_int_equal(mr_rxq_stats(d->rxq, &stats), 0);
	else
		stats = d->rxq->stats; /* a port that was not opened */
	assert_int_equal(stats.delivered, row->delivered);
	assert_int_equal(stats.drops[MR_RX_DROP_INVALID], row->invalid);
	assert_int_equal(stats.drops[MR_RX_DROP_TOO_LONG], row->too_long);
	assert_int_equal(stats.events[MR_RX_EVENT_POOL_EMPTY], row->pool_empty);
	assert_true(invariants_of_rx_hold(&stats));
}

#endif
