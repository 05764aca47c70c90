/* SPDX-License-Identifier: BSD-3-Clause */
/* Which part of a trial's latencies the tester caused. */
#include "net/tester_parts.h"

static const struct away *sender_away(const struct tester *tester, uint32_t i)
{
	for (uint32_t w = 0; w < tester->plane.n_workers; w++)
		for (uint32_t k = 0; k < tester->seats[w].n_senders; k++)
			if (tester->seats[w].senders[k] == &tester->senders[i])
				return &tester->seats[w].away;
	return NULL; /* it is a place */
}

static void explain_receiver(const struct tester *tester,
			     const struct away *away,
			     const struct receiver *receiver, uint64_t least_ns,
			     struct trial_tail *ret)
{
	const struct spans *late = receiver->late;

	if (late != NULL && late->least_ns > least_ns &&
	    late->least_ns > ret->least_ns)
		ret->least_ns = late->least_ns;
	for (uint32_t i = 0; late != NULL && i < late->n; i++) {
		const struct span *span = &late->all[i];

		if (span->end_ns - span->start_ns >= least_ns)
			tail_add(ret, span,
				 sender_away(tester,
					     span->lane % tester->n_sources),
				 away);
	}
}

void tester_explain_tail(const struct tester *tester, struct trial_result *ret)
{
	const uint64_t least_ns = hist_at(&ret->latency, 99.9);

	for (uint32_t w = 0; w < tester->plane.n_workers; w++) {
		const struct seat *seat = &tester->seats[w];
		const struct away *away = &seat->away;

		for (uint32_t i = 0; i < seat->n_receivers; i++)
			explain_receiver(tester, away, seat->receivers[i],
					 least_ns, &ret->tail);
		if (seat->n_senders > 0 &&
		    away->longest_ns > ret->tail.tx_away_ns)
			ret->tail.tx_away_ns = away->longest_ns;
		if (seat->n_receivers > 0 &&
		    away->longest_ns > ret->tail.rx_away_ns)
			ret->tail.rx_away_ns = away->longest_ns;
		ret->tail.all_waited_ns += away->waited_ns;
		ret->tail.all_still_ns += away->still_ns;
	}
}
