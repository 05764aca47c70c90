/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "search/nat_search.h"
#include "support/specs.h"

enum {
	N_UNSENT_REPEATS = 2,
	N_AGAIN = 10,         /* rounds of sending what did not arrive, */
	N_IDLE = 2,           /* or so many in a row that bring nothing */
	N_EMPTY = 3,          /* times that an empty table is emptied */
	LEAST_SHARE = 100000, /* of the highest rate: the lowest */
};

/* A path may lose a frame now and then; a table that is full loses more. */
static const double full_share = 0.01;

static int reset(struct nat_search *s, double *ret_seconds,
		 struct mr_reason *why)
{
	int err = 0;

	*ret_seconds = 0;
	if (s->ops->reset != NULL) {
		err = s->ops->reset(s->opaque, ret_seconds, why);
		s->n_made = 0;
	}
	return err;
}

static int establish(struct nat_search *s, double pps, uint32_t n,
		     struct nat_counts *ret, struct mr_reason *why)
{
	int err;

	if (n > s->n_max - s->n_made)
		return fail_with(why, -ENOSPC,
				 "more than %u connections: give --reset, so "
				 "that the table can be emptied, or more "
				 "--max-connections",
				 s->n_max);
	err = s->ops->establish(s->opaque, pps, n, ret, why);
	s->n_made += n;
	s->n_trials++;
	return err;
}

static void tell(const struct nat_search *s, const char *what, double value,
		 uint32_t n_left)
{
	if (s->on_trial != NULL)
		s->on_trial(s->observer, what, value, n_left);
}

/* Halvings until the interval is as narrow as the resolution; one, where it is
 * not known that there are more. */
static uint32_t n_halvings(const struct nat_search *s,
			   const struct nat_rate *rate)
{
	uint32_t n = 1;

	for (double width = rate->high - rate->low;
	     rate->low > 0 && width > s->resolution * rate->high; width /= 2)
		n++;
	return n;
}

static bool is_most(uint64_t n, uint64_t of)
{
	return of > 0 && 2 * n >= of;
}

/* None of them got through: the table is full, whatever the rate. */
static int check_refused(const struct nat_search *s, double pps,
			 const struct nat_counts *made, struct mr_reason *why)
{
	if (made->sent == 0 || made->arrived > 0 || made->is_unsent ||
	    is_most(made->n_dropped_here, made->sent))
		return 0;
	return fail_with(
		why, -EIO,
		"the NAT refused all %llu connections of a trial at "
		"%.0f connections/s: %s",
		(unsigned long long)made->sent, pps,
		s->ops->reset != NULL ?
			"--reset must empty its table and free the "
			"ports, as 'mr-nat clear all --now' does" :
			"its table is full, or ports are in hold-down; "
			"give --reset");
}

/* A trial of a rate: s->n new connections, then each asked from outside. */
static int try_rate(struct nat_search *s, double pps,
		    struct nat_counts *ret_made, struct nat_counts *ret_valid,
		    struct mr_reason *why)
{
	double seconds;
	int err;

	for (uint32_t i = 0; i <= N_UNSENT_REPEATS; i++) {
		err = reset(s, &seconds, why);
		if (err == 0)
			err = establish(s, pps, s->n, ret_made, why);
		if (err != 0 || !ret_made->is_unsent)
			break;
	}
	if (err == 0)
		err = check_refused(s, pps, ret_made, why);
	if (err != 0 || ret_made->is_unsent)
		return err;
	/* Answers need no new entry: at half of the rate they get through. */
	return s->ops->validate(s->opaque, pps / 2, s->n_made - s->n, ret_valid,
				why);
}

/* What a trial that did not hold says of the rates above. */
static void take_limit(const struct nat_counts *made,
		       const struct nat_counts *valid, struct nat_rate *ret)
{
	ret->is_by_sender = made->is_unsent;
	ret->n_lost_above = made->sent - made->arrived;
	ret->n_stale_above =
		made->is_unsent ? 0 : made->arrived - valid->arrived;
	ret->n_dropped_here = made->n_dropped_here + valid->n_dropped_here;
	ret->is_by_receiver = is_most(ret->n_dropped_here,
				      ret->n_lost_above + ret->n_stale_above);
}

int search_nat_rate(struct nat_search *s, struct nat_rate *ret,
		    struct mr_reason *why)
{
	double pps = s->max_pps;
	struct nat_counts made, valid;
	int err;

	memset(ret, 0, sizeof(*ret));
	for (;;) {
		memset(&valid, 0, sizeof(valid));
		tell(s, "set-up rate, connections per second", pps,
		     n_halvings(s, ret));
		err = try_rate(s, pps, &made, &valid, why);
		if (err != 0)
			return err;
		if (!made.is_unsent && valid.arrived == s->n) {
			ret->pps = ret->low = pps;
		} else {
			ret->high = pps;
			take_limit(&made, &valid, ret);
		}
		if (ret->high <= 0 || ret->high <= s->max_pps / LEAST_SHARE ||
		    ret->high - ret->low <= s->resolution * ret->high)
			return 0;
		pps = (ret->low + ret->high) / 2;
	}
}

/* Resend what did not arrive: the path may have lost it. It does not matter if
 * the sender is late: no frame is due at a given time. */
static int insist(struct nat_search *s, double pps, uint64_t n_expected,
		  struct nat_counts *counts, struct mr_reason *why)
{
	struct nat_counts more;
	uint32_t n_idle = 0;
	int err = 0;

	for (uint32_t i = 0; i < N_AGAIN && n_idle < N_IDLE && err == 0 &&
			     counts->arrived < n_expected;
	     i++) {
		err = s->ops->again(s->opaque, pps, &more, why);
		if (err != 0)
			return err;
		n_idle = more.arrived > 0 ? 0 : n_idle + 1;
		counts->arrived += more.arrived;
		counts->n_dropped_here = more.n_dropped_here;
	}
	return err;
}

/* How many of all connections answer. */
static int count_answers(struct nat_search *s, double pps, uint64_t n_expected,
			 struct nat_counts *ret, struct mr_reason *why)
{
	int err = s->ops->validate(s->opaque, pps, 0, ret, why);

	return err == 0 ? insist(s, pps, n_expected, ret, why) : err;
}

int search_nat_capacity(struct nat_search *s, double pps,
			struct nat_capacity *ret, struct mr_reason *why)
{
	struct nat_counts made, valid = { 0 };
	uint32_t n = s->n;
	uint64_t n_expected;
	double seconds;
	int err = reset(s, &seconds, why);

	memset(ret, 0, sizeof(*ret));
	/* Without a reset: what trials at too high a rate left, if anything. */
	if (err == 0 && s->n_made > 0)
		err = count_answers(s, pps, s->n_made, &valid, why);
	ret->n_made = ret->n = valid.arrived;
	while (err == 0) {
		tell(s, "table capacity, connections", (double)s->n_made + n,
		     0);
		err = establish(s, pps, n, &made, why);
		n_expected = ret->n + n;
		if (err == 0)
			err = insist(s, pps, n, &made, why);
		if (err == 0 && ret->n == 0)
			err = check_refused(s, pps, &made, why);
		if (err == 0)
			err = count_answers(s, pps, n_expected, &valid, why);
		if (err != 0)
			return err;
		ret->n = valid.arrived;
		ret->n_made += n;
		ret->is_by_receiver =
			is_most(made.n_dropped_here + valid.n_dropped_here,
				n_expected - ret->n);
		ret->is_full =
			(double)ret->n < (1 - full_share) * (double)n_expected;
		if (ret->is_full || s->n_made == s->n_max)
			return 0;
		n = ret->n_made < s->n_max - s->n_made ? (uint32_t)ret->n_made :
							 s->n_max - s->n_made;
	}
	return err;
}

/* What emptying takes where nothing is in the table: the longest of some. */
static int time_empty(struct nat_search *s, double *ret_seconds,
		      struct mr_reason *why)
{
	double seconds;
	int err = reset(s, &seconds, why);

	*ret_seconds = 0;
	for (uint32_t i = 0; i < N_EMPTY && err == 0; i++) {
		err = reset(s, &seconds, why);
		if (seconds > *ret_seconds)
			*ret_seconds = seconds;
	}
	return err;
}

int search_nat_tear_down(struct nat_search *s, double pps,
			 struct nat_tear_down *ret, struct mr_reason *why)
{
	struct nat_counts made, valid;
	const uint32_t n = s->n;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (s->ops->reset == NULL)
		return fail_with(why, -ENOTSUP,
				 "tear-down is emptying the table: --reset is "
				 "the command that does it");
	tell(s, "tear-down, connections", n, 0);
	err = time_empty(s, &ret->empty_seconds, why);
	if (err == 0)
		err = establish(s, pps, n, &made, why);
	if (err == 0)
		err = check_refused(s, pps, &made, why);
	if (err == 0)
		err = s->ops->validate(s->opaque, pps, 0, &valid, why);
	if (err != 0)
		return err;
	ret->n = valid.arrived;
	err = s->ops->reset(s->opaque, &ret->seconds, why);
	/* The tuples are still known: nothing may come through them. */
	if (err == 0)
		err = s->ops->validate(s->opaque, pps, 0, &valid, why);
	s->n_made = 0;
	ret->n_after = valid.arrived;
	if (ret->seconds > 0)
		ret->pps = (double)ret->n / ret->seconds;
	if (ret->seconds > ret->empty_seconds)
		ret->high_pps =
			(double)ret->n / (ret->seconds - ret->empty_seconds);
	return err;
}
