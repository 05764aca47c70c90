/* SPDX-License-Identifier: BSD-3-Clause */
/* When frames are due. */
#include <math.h>

#include "net/pacer.h"

/* A random number above 0, at most 1: 53 bits of xorshift64* (Vigna 2016). */
static double draw_fraction(struct pacer *pacer)
{
	uint64_t x = pacer->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	pacer->random = x;
	return (double)((x * 0x2545f4914f6cdd1dull >> 11) + 1) * 0x1p-53;
}

/* A multiple of the period, so that errors do not add up. */
static uint64_t due_of(const struct pacer *pacer)
{
	return pacer->start_ns +
	       (uint64_t)((double)pacer->n * pacer->period_ns);
}

static void schedule_next(struct pacer *pacer)
{
	switch (pacer->pace) {
	case PACE_CONSTANT:
		pacer->n += pacer->n_senders;
		pacer->next_ns = due_of(pacer);
		break;
	case PACE_POISSON:
		/* Each sender has its own process; their sum has the whole
		 * rate. */
		pacer->poisson_ns += -log(draw_fraction(pacer)) *
				     pacer->period_ns * pacer->n_senders;
		pacer->next_ns = pacer->start_ns + (uint64_t)pacer->poisson_ns;
		break;
	case PACE_BURSTS:
		if (++pacer->n_in_burst < pacer->burst_frames)
			return;
		pacer->n_in_burst = 0;
		pacer->n += pacer->n_senders;
		pacer->next_ns = due_of(pacer);
		break;
	}
	if (pacer->next_ns >= pacer->end_ns)
		pacer->next_ns = UINT64_MAX;
}

static void advance_frame(struct pacer *pacer)
{
	if (--pacer->n_left == 0)
		pacer->next_ns = UINT64_MAX;
	else
		schedule_next(pacer);
}

void pacer_begin(struct pacer *pacer, const struct send_orders *orders)
{
	const uint32_t sender = orders->sender, n_senders = orders->n_senders;

	*pacer = (struct pacer){
		.n_left = orders->n_frames,
		.start_ns = orders->start_ns,
		.end_ns = orders->end_ns,
		.is_paced = orders->pps > 0,
		.pace = orders->pace,
		.n = sender,
		.n_senders = n_senders,
		.burst_frames = orders->burst_frames,
		.random = (orders->seed ^ sender) * 0x9e3779b97f4a7c15ull | 1,
	};
	if (orders->n_frames != UINT64_MAX)
		pacer->n_left = orders->n_frames / n_senders +
				(sender < orders->n_frames % n_senders);
	pacer->next_ns = orders->start_ns;
	if (!pacer->is_paced || pacer->n_left == 0)
		return;
	pacer->period_ns = 1e9 / orders->pps;
	if (pacer->pace == PACE_BURSTS)
		pacer->period_ns *= pacer->burst_frames;
	if (pacer->pace == PACE_POISSON) {
		schedule_next(pacer);
		return;
	}
	pacer->next_ns = due_of(pacer);
	if (pacer->next_ns >= pacer->end_ns)
		pacer->next_ns = UINT64_MAX;
}

static uint32_t take_full(struct pacer *pacer, uint64_t now_ns,
			  uint64_t *ret_due_ns, uint32_t room)
{
	const uint32_t n =
		pacer->n_left < room ? (uint32_t)pacer->n_left : room;

	if (now_ns < pacer->start_ns || now_ns >= pacer->end_ns)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		ret_due_ns[i] = now_ns;
	if (pacer->n_left != UINT64_MAX)
		pacer->n_left -= n;
	return n;
}

uint32_t pacer_take(struct pacer *pacer, uint64_t now_ns, uint64_t *ret_due_ns,
		    uint32_t room)
{
	uint32_t n = 0;

	if (!pacer->is_paced)
		return take_full(pacer, now_ns, ret_due_ns, room);
	while (n < room && pacer->next_ns <= now_ns) {
		ret_due_ns[n++] = pacer->next_ns;
		advance_frame(pacer);
	}
	return n;
}

/* Skip whole periods at once, up to the last few before before_ns. Returns how
 * many frames. */
static uint64_t jump_periods(struct pacer *pacer, uint64_t before_ns)
{
	const uint64_t until =
		before_ns < pacer->end_ns ? before_ns : pacer->end_ns;
	const uint32_t n_each =
		pacer->pace == PACE_BURSTS ? pacer->burst_frames : 1;
	uint64_t n_most = (pacer->n_left - 1) / n_each;
	double n_steps;

	if (!pacer->is_paced || pacer->pace == PACE_POISSON ||
	    pacer->next_ns >= until)
		return 0;
	/* Stop two short: the steps that follow are exact. */
	n_steps = (double)(until - pacer->next_ns) /
			  (pacer->period_ns * pacer->n_senders) -
		  2;
	if (n_steps < 1)
		return 0;
	if (n_steps < (double)n_most)
		n_most = (uint64_t)n_steps;
	pacer->n += n_most * pacer->n_senders;
	pacer->n_left -= n_most * n_each;
	pacer->next_ns = due_of(pacer);
	return n_most * n_each;
}

uint64_t pacer_skip(struct pacer *pacer, uint64_t before_ns)
{
	uint64_t n = jump_periods(pacer, before_ns);

	while (pacer->is_paced && pacer->next_ns < before_ns) {
		advance_frame(pacer);
		n++;
	}
	return n;
}
