/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trial is worth, and what is said where it is worth nothing. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/search.h"
#include "support/specs.h"

enum {
	N_UNSENT_REPEATS = 2,
	N_DISTURBED_REPEATS = 9,
	/* The path is looked for at a rate that everything can take. */
	PATH_PPS = 1000,
	PATH_FRAMES = 100,
	PATH_TRIES = 3,
	/* What a frame may be late by, as long as the rate is kept: threads
	 * look at the clock in rounds. */
	JITTER_NS = 20000,
};

static const char nowhere[] =
	"no port lost any; is the device forwarding, to this port and this "
	"address (--dst-mac)?";

/* Frames that the receiving ports had, and lost by their own account. Of these
 * as many are foreign as of those that came. */
static double lost_by_receiver(const struct trial_result *r)
{
	const double share_ours =
		r->received > 0 ? 1 - (double)r->foreign / (double)r->received :
				  1;
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_drops; i++)
		if (r->drops[i].is_receivers &&
		    (strcmp(r->drops[i].side, "rx") == 0 ||
		     strncmp(r->drops[i].name, "rx", 2) == 0))
			n += r->drops[i].n;
	return share_ours * (double)n;
}

/*
 * How much longer the sender took than was asked. If it falls behind steadily
 * its frames are later and later, the first quarter of them by a quarter of
 * that; a pause that it makes good again does not show in a quarter.
 */
static double overrun_ns(const struct trial_result *r)
{
	const double late = fmin((double)r->lateness.max,
				 4 * (double)hist_at(&r->lateness, 25));

	return fmax(0, late - JITTER_NS);
}

static void judge(const struct search *s, const struct trial_result *r,
		  struct outcome *ret)
{
	const double share_sent =
		r->due > 0 ? (double)r->sent / (double)r->due : 1;

	double asked_ns;

	ret->load_pps = r->tx_pps;
	if (ret->asked_pps > 0) {
		asked_ns = (double)r->due * 1e9 / ret->asked_pps;
		ret->load_pps = ret->asked_pps * share_sent * asked_ns /
				(asked_ns + overrun_ns(r));
		ret->is_unsent = ret->load_pps <
				 ret->asked_pps * (1 - s->unsent_tolerance);
	}
	ret->rx_pps = r->rx_pps;
	ret->n_sent = r->sent;
	ret->n_lost = r->lost;
	ret->loss = r->sent > 0 ? (double)r->lost / (double)r->sent : 0;
	ret->is_by_receiver =
		r->lost > 0 && 2 * lost_by_receiver(r) >= (double)r->lost;
}

/* One call of the function, seen by the observer. */
static int try_once(struct search *s, const struct trial_config *config,
		    struct trial_result *result, struct mr_reason *why)
{
	int err;

	if (s->n_trials - s->n_before >= s->max_trials)
		return fail_with(why, -EAGAIN,
				 "no result after %u trials: the device is not "
				 "steady, or --resolution too fine",
				 s->n_trials - s->n_before);
	if (s->n_trials == MAX_NUMBERS)
		return fail_with(why, -E2BIG,
				 "more than %u trials; give fewer --tests",
				 s->n_trials);
	err = s->run(s->opaque, config, result, why);
	if (err != 0)
		return err;
	s->trials[s->n_trials] = s->on_trial == NULL ?
					 s->n_trials :
					 s->on_trial(s->observer, s, result);
	s->n_trials++;
	if (result->is_cut_short)
		return fail_with(why, -EINTR, "ended by a signal");
	if (result->why_stopped[0] != '\0')
		return fail_with(why, -EIO, "the trial broke off: %s",
				 result->why_stopped);
	if (result->sent == 0)
		return fail_with(why, -EIO,
				 "nothing was sent of %" PRIu64 " frames",
				 result->due);
	return 0;
}

/* Far below what the sender can do, it is not the rate that it fails at. */
static bool is_disturbance(const struct search *s, double pps)
{
	return s->sender_pps > 0 && pps > 0 && pps < s->sender_pps / 2;
}

enum limit search_limit(const struct outcome *above)
{
	if (above->is_unsent)
		return LIMIT_SENDER;
	return above->is_by_receiver ? LIMIT_RECEIVER : LIMIT_DEVICE;
}

static int complain_of_sender(const struct search *s, const struct outcome *o,
			      struct mr_reason *why)
{
	return fail_with(why, -EAGAIN,
			 "the sender is disturbed: %.1f %% of the frames were "
			 "not sent in time at %.0f frames/s, of %.0f that it "
			 "can do; other load on its cores (--cores, --max-lag, "
			 "--unsent-tolerance)",
			 100 * (1 - o->load_pps / o->asked_pps), o->asked_pps,
			 s->sender_pps);
}

int search_trial(struct search *s, double pps, uint64_t duration_ns,
		 uint64_t n_frames, struct outcome *ret, struct mr_reason *why)
{
	struct trial_config config = s->trial;
	struct trial_result *result = malloc(sizeof(*result));
	const uint32_t n_repeats =
		is_disturbance(s, pps) ? N_DISTURBED_REPEATS : N_UNSENT_REPEATS;
	int err = 0;

	if (result == NULL)
		return fail_with(why, -ENOMEM, "out of memory");
	config.rate.unit = pps > 0 ? RATE_PPS : RATE_FULL;
	config.rate.value = pps;
	config.duration_ns = n_frames == 0 ? duration_ns : 0;
	config.n_frames = n_frames;
	*ret = (struct outcome){ .asked_pps = pps, .duration_ns = duration_ns };
	for (uint32_t i = 0; i <= n_repeats; i++) {
		memset(result, 0, sizeof(*result));
		err = try_once(s, &config, result, why);
		if (err == 0)
			judge(s, result, ret);
		trial_result_free(result);
		if (err != 0 || !ret->is_unsent)
			break;
	}
	free(result);
	if (err == 0 && ret->is_unsent && is_disturbance(s, pps))
		return complain_of_sender(s, ret, why);
	if (err == 0 && !ret->is_unsent)
		s->sender_pps = fmax(s->sender_pps, ret->load_pps);
	return err;
}

/* None came back, in all tries. */
static int complain_of_path(const struct search *s,
			    const struct trial_result *result,
			    struct mr_reason *why)
{
	char seen[256];

	if (s->explain == NULL ||
	    !s->explain(s->opaque, result, seen, sizeof(seen)))
		snprintf(seen, sizeof(seen), "%s", nowhere);
	return fail_with(why, -ENOLINK,
			 "none of %" PRIu64 " frames came back: %s",
			 result->sent, seen);
}

int search_check_path(struct search *s, struct mr_reason *why)
{
	struct trial_config config = s->trial;
	struct trial_result *result = calloc(1, sizeof(*result));
	bool has_path = false;
	int err = 0;

	if (result == NULL)
		return fail_with(why, -ENOMEM, "out of memory");
	config.rate.unit = RATE_PPS;
	config.rate.value =
		s->max_pps > 0 && s->max_pps < PATH_PPS ? s->max_pps : PATH_PPS;
	config.duration_ns = 0;
	config.n_frames = PATH_FRAMES;
	for (uint32_t i = 0; i < PATH_TRIES && err == 0 && !has_path; i++) {
		err = try_once(s, &config, result, why);
		has_path = result->unique > 0;
		if (err == 0 && !has_path && i + 1 == PATH_TRIES)
			err = complain_of_path(s, result, why);
		trial_result_free(result);
	}
	free(result);
	return err;
}
