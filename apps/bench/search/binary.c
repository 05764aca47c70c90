/* SPDX-License-Identifier: BSD-3-Clause */
/* Binary search for a rate, with or without loss verification. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "search/search.h"
#include "support/specs.h"

enum { MAX_STEPS_DOWN = 10 };

/* A rate that was tried. */
struct verdict {
	bool holds;
	struct outcome last; /* trial of it */
};

/* Trials are made again while they lose, and while n_verify lasts. */
static int try_rate(struct search *s, double pps, uint64_t duration_ns,
		    uint32_t n_verify, struct verdict *ret,
		    struct mr_reason *why)
{
	int err;

	for (uint32_t i = 0; i <= n_verify; i++) {
		err = search_trial(s, pps, duration_ns, 0, &ret->last, why);
		if (err != 0)
			return err;
		ret->holds = !ret->last.is_unsent &&
			     ret->last.loss <= s->loss_tolerance;
		if (ret->holds || ret->last.is_unsent)
			break;
	}
	return 0;
}

static void take(struct found *ret, double pps, const struct verdict *verdict)
{
	if (verdict->holds) {
		ret->low = pps;
		ret->value = verdict->last.load_pps;
		ret->loss = verdict->last.loss;
		if (ret->high <= 0)
			ret->limit = LIMIT_HIGHEST;
	} else {
		ret->high = pps;
		ret->limit = search_limit(&verdict->last);
	}
}

/* Trials that are left: halvings, and the one that confirms. */
static uint64_t time_left(const struct search *s, double low, double high,
			  uint64_t confirm_ns)
{
	const double n = log2((high - low) / (s->resolution * high));
	const uint64_t trial_ns = s->trial.duration_ns + s->trial.settle_ns;

	return (uint64_t)(n > 0 ? ceil(n) : 0) * trial_ns + confirm_ns +
	       s->trial.settle_ns;
}

/* Highest first; then the middle of what holds and what does not. */
static int halve(struct search *s, uint32_t n_verify, uint64_t confirm_ns,
		 struct found *ret, struct mr_reason *why)
{
	double pps = s->max_pps;
	struct verdict verdict;
	int err;

	for (;;) {
		s->left_ns = time_left(s, ret->low, pps, confirm_ns);
		err = try_rate(s, pps, s->trial.duration_ns, n_verify, &verdict,
			       why);
		if (err != 0)
			return err;
		take(ret, pps, &verdict);
		if (ret->high <= 0) /* the highest rate holds */
			return 0;
		if (ret->high - ret->low <= s->resolution * ret->high ||
		    ret->high <= s->min_pps)
			return 0;
		pps = (ret->low + ret->high) / 2;
	}
}

static int complain_of_sender(double pps, struct mr_reason *why)
{
	return fail_with(why, -EAGAIN,
			 "the sender kept no rate up, down to %.0f frames/s: "
			 "other load on its cores (--cores, --max-lag, "
			 "--unsent-tolerance)",
			 pps);
}

/* What held once has to hold once more, or it is lowered. */
static int confirm(struct search *s, uint32_t n_verify, uint64_t confirm_ns,
		   struct found *ret, struct mr_reason *why)
{
	const double first = ret->low;
	struct verdict verdict;
	bool is_by_sender = true;
	int err;

	for (uint32_t i = 0; i < MAX_STEPS_DOWN; i++) {
		const double pps = first * pow(1 - s->resolution, i);

		if (pps < s->min_pps)
			break;
		s->left_ns = confirm_ns + s->trial.settle_ns;
		err = try_rate(s, pps, confirm_ns, n_verify, &verdict, why);
		if (err != 0)
			return err;
		take(ret, pps, &verdict);
		if (verdict.holds) {
			if (i > 0)
				snprintf(ret->note, sizeof(ret->note),
					 "%u steps below a rate that held "
					 "only once",
					 i);
			return 0;
		}
		ret->low = ret->value = 0;
		is_by_sender &= verdict.last.is_unsent;
	}
	if (is_by_sender)
		return complain_of_sender(ret->high, why);
	return fail_with(why, -EAGAIN,
			 "the search does not converge: %.0f frames/s passed "
			 "once, and none of up to %d steps below it again; the "
			 "device is not steady, --method mlr is made for that",
			 first, MAX_STEPS_DOWN);
}

int search_binary(struct search *s, uint32_t n_verify, uint64_t confirm_ns,
		  struct found *ret, struct mr_reason *why)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->goal, sizeof(ret->goal), "%s",
		 s->loss_tolerance > 0 ? "pdr" : "ndr");
	if (confirm_ns == 0)
		confirm_ns = s->trial.duration_ns;
	err = halve(s, n_verify, confirm_ns, ret, why);
	if (err == 0 && ret->low > 0)
		err = confirm(s, n_verify, confirm_ns, ret, why);
	else if (err == 0 && ret->limit == LIMIT_SENDER)
		err = complain_of_sender(ret->high, why);
	else if (err == 0)
		snprintf(ret->note, sizeof(ret->note),
			 "more than the tolerated loss at all rates down to "
			 "%.0f frames/s",
			 ret->high);
	s->left_ns = 0;
	ret->is_complete = err == 0;
	return err;
}
