/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The longest burst without loss, and the time that the device's buffer holds.
 *
 * The device forwards while the burst comes in, so that the burst is longer
 * than the buffer; RFC 9004 takes off what was forwarded meanwhile.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "search/search.h"
#include "support/specs.h"

enum { FIRST_BURST = 64 };

/* *ret_limit is whose fault it is, where the burst does not hold. */
static int burst_holds(struct search *s, uint64_t n_frames, uint32_t n_verify,
		       bool *ret_holds, enum limit *ret_limit,
		       struct mr_reason *why)
{
	struct outcome outcome = { .is_unsent = false };
	int err;

	*ret_holds = false;
	for (uint32_t i = 0; i <= n_verify && !*ret_holds; i++) {
		err = search_trial(s, s->max_pps, 0, n_frames, &outcome, why);
		if (err != 0)
			return err;
		*ret_holds = outcome.n_lost == 0 && !outcome.is_unsent;
	}
	if (!*ret_holds)
		*ret_limit = search_limit(&outcome);
	return 0;
}

/* One test: the longest burst, in frames, to s->resolution. */
static int one_test(struct search *s, const struct back2back *config,
		    uint64_t longest, uint64_t *ret_frames,
		    enum limit *ret_limit, struct mr_reason *why)
{
	uint64_t low = 0, high = longest + 1, n = FIRST_BURST;
	bool holds;
	int err;

	*ret_limit = LIMIT_HIGHEST;
	for (;;) {
		n = n > longest ? longest : n;
		err = burst_holds(s, n, config->n_verify, &holds, ret_limit,
				  why);
		if (err != 0)
			return err;
		*(holds ? &low : &high) = n;
		if (high - low <= 1 ||
		    (high <= longest &&
		     (double)(high - low) <= s->resolution * (double)high))
			break;
		n = high > longest ? 2 * n : low + (high - low) / 2;
	}
	*ret_frames = low;
	if (low == 0 && *ret_limit == LIMIT_SENDER)
		return fail_with(why, -EAGAIN,
				 "the sender sends no burst at %.0f frames/s; "
				 "give a lower --rate",
				 s->max_pps);
	return 0;
}

static void add(struct burst_found *ret, double frames, double *sum_sq)
{
	const double delta = frames - ret->mean;

	ret->n++;
	ret->mean += delta / ret->n;
	*sum_sq += delta * (frames - ret->mean);
	ret->sd = ret->n > 1 ? sqrt(*sum_sq / (ret->n - 1)) : 0;
	ret->min = ret->n == 1 ? frames : fmin(ret->min, frames);
	ret->max = fmax(ret->max, frames);
}

int search_back2back(struct search *s, const struct back2back *config,
		     struct burst_found *ret, struct mr_reason *why)
{
	const uint64_t longest =
		(uint64_t)(s->max_pps / 1e9 * (double)config->max_burst_ns);
	const double n_halvings = fmax(1, -log2(s->resolution));
	enum limit limit;
	uint64_t frames;
	double sum_sq = 0;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (longest == 0)
		return fail_with(why, -EINVAL,
				 "--max-burst is shorter than one frame at "
				 "%.0f frames/s",
				 s->max_pps);
	for (uint32_t i = 0; i < config->n_tests; i++) {
		s->left_ns = (uint64_t)((config->n_tests - i) * n_halvings *
					(double)s->trial.settle_ns);
		s->n_before = s->n_trials;
		err = one_test(s, config, longest, &frames, &limit, why);
		if (err != 0)
			return err;
		add(ret, (double)frames, &sum_sq);
		ret->implied_s = ret->mean / s->max_pps;
		ret->corrected_s = ret->implied_s *
				   (1 - config->throughput_pps / s->max_pps);
		if (ret->limit == LIMIT_DEVICE)
			ret->limit = limit;
	}
	s->left_ns = 0;
	ret->is_complete = true;
	return 0;
}
