/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of each pair of ports: what the one sent, and what came of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/tester_parts.h"
#include "support/counter.h"

/* The port, by its place in tx, that a source sends by. */
static uint32_t direction_of(const struct tester *tester, uint32_t source)
{
	const struct sending_place *at = tester_place_of(tester, source);

	return at != NULL ? at->t : tester->sender_port[source];
}

static uint64_t n_unsent(const struct tester *tester, uint32_t source)
{
	const struct sending_place *at = tester_place_of(tester, source);
	struct send_counts counts;

	if (at == NULL)
		return counter_get(&tester->senders[source].n_unsent);
	at->ops->counts(at->place, &counts, NULL);
	return counts.unsent;
}

static void name(const struct tester *tester, uint32_t number, char *ret,
		 size_t n_bytes)
{
	struct mr_port_info info;
	struct mr_link link;

	tester_port(tester, number, &info, &link);
	snprintf(ret, n_bytes, "%s", info.name);
}

/* Of what came where the direction ends. */
static void add_latency(const struct tester *tester, uint32_t r,
			struct hist *hist, struct trial_direction *ret)
{
	memset(hist, 0, sizeof(*hist));
	for (uint32_t i = 0; i < tester->n_receivers; i++)
		if (tester->receiver_port[i] == r)
			hist_merge(hist, tester->latency[i]);
	ret->n_latencies = hist->n;
	if (hist->n == 0)
		return;
	ret->latency_p50_ns = hist_at(hist, 50);
	ret->latency_p99_ns = hist_at(hist, 99);
	ret->latency_max_ns = hist->max;
}

int tester_count_directions(const struct tester *tester, uint32_t n_lanes,
			    struct trial_result *ret)
{
	const uint32_t n = tester->n_tx;
	struct trial_direction *rows;
	struct hist *hist;

	if (n < 2 || tester->n_rx != n)
		return 0;
	rows = calloc(n, sizeof(*rows));
	hist = malloc(sizeof(*hist));
	if (rows == NULL || hist == NULL) {
		free(rows);
		free(hist);
		return -ENOMEM;
	}
	for (uint32_t t = 0; t < n; t++) {
		name(tester, tester->tx[t], rows[t].from, sizeof(rows[t].from));
		name(tester, tester->rx[t], rows[t].to, sizeof(rows[t].to));
		add_latency(tester, t, hist, &rows[t]);
	}
	for (uint32_t s = 0; s < tester->n_sources; s++)
		rows[direction_of(tester, s)].unsent += n_unsent(tester, s);
	for (uint32_t l = 0; l < n_lanes; l++)
		tester_add_lane(
			tester, l, tester_lane_sent(tester, l),
			&rows[direction_of(tester, l % tester->n_sources)].sum);
	free(hist);
	ret->directions = rows;
	ret->n_directions = n;
	return 0;
}
