/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MLRsearch. How a load is classified is in the words of the RFC's appendix A,
 * which load is tried next is ours: first single trials find each goal, then
 * the bounds that they found are measured longer, level by level. To spend the
 * time on few loads, one goal's upper bound is another's lower bound wherever
 * possible.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/mlr.h"
#include "support/specs.h"

enum {
	N_LEVELS = 3,
	N_WIDE = 4, /* widths of the first step of the first level */
};

struct mlr {
	struct search *search;
	struct mlr_trial *trials; /* in their order */
	struct outcome *outcomes; /* of the same */
	uint32_t n;
	/* From here on the sender fails, at this level; 0: nowhere known. */
	double unsent_pps;
};

/* Loads that bound the goal; 0: none is known. */
struct bounds {
	double lower, upper;
};

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

enum load_class mlr_classify(const struct mlr_goal *goal,
			     const struct load_sums *sums)
{
	const double balance =
		sums->short_low * goal->exceed_ratio / (1 - goal->exceed_ratio);
	const double excess = fmax(0, sums->short_high - balance);
	const double high = sums->full_high + excess;
	const double whole =
		fmax(sums->full_low + high, seconds(goal->duration_sum_ns));
	const double allowed = whole * goal->exceed_ratio;
	/* If all that is missing were bad, and if all of it were good. */
	const bool is_lower_at_worst = whole - sums->full_low <= allowed;
	const bool is_lower_at_best = high <= allowed;

	if (is_lower_at_worst && is_lower_at_best)
		return LOAD_LOWER;
	return is_lower_at_best ? LOAD_UNDECIDED : LOAD_UPPER;
}

static bool is_same(double a, double b)
{
	return fabs(a - b) <= 1e-9 * b;
}

static struct load_sums sums_at(const struct mlr_goal *goal, double pps,
				const struct mlr_trial *trials, uint32_t n)
{
	struct load_sums sums = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const double s = seconds(trials[i].duration_ns);
		const bool is_low = trials[i].loss <= goal->loss_ratio;

		if (!is_same(trials[i].pps, pps))
			continue;
		if (trials[i].duration_ns >= goal->final_trial_ns)
			*(is_low ? &sums.full_low : &sums.full_high) += s;
		else
			*(is_low ? &sums.short_low : &sums.short_high) += s;
	}
	return sums;
}

static int by_loss(const void *a, const void *b)
{
	const double x = ((const struct mlr_trial *)a)->loss;
	const double y = ((const struct mlr_trial *)b)->loss;

	return (x > y) - (x < y);
}

double mlr_conditional_throughput(const struct mlr_goal *goal, double pps,
				  const struct mlr_trial *trials, uint32_t n)
{
	struct mlr_trial sorted[MAX_TRIALS];
	double whole = 0, remaining, loss = -1;
	uint32_t n_full = 0;

	for (uint32_t i = 0; i < n && n_full < MAX_TRIALS; i++) {
		if (!is_same(trials[i].pps, pps) ||
		    trials[i].duration_ns < goal->final_trial_ns)
			continue;
		whole += seconds(trials[i].duration_ns);
		sorted[n_full++] = trials[i];
	}
	qsort(sorted, n_full, sizeof(*sorted), by_loss);
	whole = fmax(whole, seconds(goal->duration_sum_ns));
	remaining = whole * (1 - goal->exceed_ratio);
	for (uint32_t i = 0; i < n_full && (loss < 0 || remaining > 0); i++) {
		loss = sorted[i].loss;
		remaining -= seconds(sorted[i].duration_ns);
	}
	/* Seconds that were not measured count as lost. */
	return loss < 0 || remaining > 1e-9 ? 0 : pps * (1 - loss);
}

/* The goal at a level: early levels measure for fewer seconds. */
static struct mlr_goal at_level(const struct mlr_goal *goal, uint32_t level,
				uint64_t initial_ns)
{
	struct mlr_goal g = *goal;
	const double first = (double)initial_ns;
	const double last = (double)goal->duration_sum_ns;

	if (level == 0)
		return g;
	g.final_trial_ns = initial_ns;
	g.duration_sum_ns =
		(uint64_t)(first * pow(last / first,
				       1 - (double)level / (N_LEVELS - 1)));
	return g;
}

static enum load_class class_of(const struct mlr *m,
				const struct mlr_goal *goal, double pps)
{
	const struct load_sums sums = sums_at(goal, pps, m->trials, m->n);

	return mlr_classify(goal, &sums);
}

/* The lowest upper bound, and the highest lower bound below it. */
static struct bounds bounds_of(const struct mlr *m, const struct mlr_goal *goal)
{
	struct bounds b = { 0, m->unsent_pps };

	for (uint32_t i = 0; i < m->n; i++) {
		const double pps = m->trials[i].pps;

		if ((b.upper <= 0 || pps < b.upper) &&
		    class_of(m, goal, pps) == LOAD_UPPER)
			b.upper = pps;
	}
	for (uint32_t i = 0; i < m->n; i++) {
		const double pps = m->trials[i].pps;

		if (pps > b.lower && (b.upper <= 0 || pps < b.upper) &&
		    class_of(m, goal, pps) == LOAD_LOWER)
			b.lower = pps;
	}
	return b;
}

/*
 * A load between the bounds that has trials, but not enough: the highest of
 * those that look good, else the lowest of those that look bad. 0: none.
 */
static double undecided_between(const struct mlr *m,
				const struct mlr_goal *goal,
				const struct bounds *b)
{
	double good = 0, bad = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const double pps = m->trials[i].pps;

		if (pps <= b->lower || is_same(pps, b->lower) ||
		    (b->upper > 0 && pps >= b->upper))
			continue;
		if (m->trials[i].loss <= goal->loss_ratio)
			good = fmax(good, pps);
		else if (bad <= 0 || pps < bad)
			bad = pps;
	}
	return good > 0 && (bad <= 0 || good < bad) ? good : bad;
}

/* Between two bounds: about the middle, a whole number of widths from below,
 * so that other goals' bounds can be the same loads. */
static double between(const struct mlr_goal *goal, const struct bounds *b)
{
	const double n = (b->upper - b->lower) / (goal->width * b->lower);

	return b->lower * (1 + goal->width * fmax(1, floor(n / 2)));
}

/*
 * The next load; 0: the bounds are narrow enough. Steps away from what is known
 * double: *step is the next, a share of the load.
 */
static double next_load(const struct mlr *m, const struct mlr_goal *goal,
			double *step)
{
	const struct search *s = m->search;
	const struct bounds b = bounds_of(m, goal);
	const double share = *step;
	double pps;

	if (b.lower >= s->max_pps ||
	    (b.upper > 0 &&
	     (b.upper - b.lower <= goal->width * b.upper * (1 + 1e-9) ||
	      b.upper <= s->min_pps)))
		return 0;
	pps = undecided_between(m, goal, &b);
	if (pps > 0)
		return pps;
	*step = fmin(2 * share, 1);
	/* The highest load bounds every goal, and is far away. */
	if (b.lower > 0 && b.upper > 0)
		return b.upper >= s->max_pps &&
				       share < (b.upper / b.lower - 1) / 2 ?
			       b.lower * (1 + share) :
			       between(goal, &b);
	if (b.lower <= 0 && b.upper <= 0)
		return s->max_pps;
	if (b.lower <= 0)
		return fmax(s->min_pps, b.upper * fmax(1 - share, 0.5));
	return fmin(s->max_pps, b.lower * (1 + share));
}

static int measure(struct mlr *m, double pps, uint64_t duration_ns,
		   struct mr_reason *why)
{
	struct outcome outcome;
	int err;

	if (m->n == MAX_TRIALS)
		return fail_with(why, -EAGAIN, "no result after %u trials",
				 m->n);
	err = search_trial(m->search, pps, duration_ns, 0, &outcome, why);
	if (err != 0)
		return err;
	if (outcome.is_unsent) {
		if (m->unsent_pps <= 0 || pps < m->unsent_pps)
			m->unsent_pps = pps;
		return 0;
	}
	m->outcomes[m->n] = outcome;
	m->trials[m->n++] =
		(struct mlr_trial){ pps, outcome.loss, duration_ns };
	return 0;
}

/* A goal at one level, until its bounds are as near as the level wants. */
static int narrow(struct mlr *m, const struct mlr_goal *goal, double step,
		  struct mr_reason *why)
{
	int err;

	for (;;) {
		const double pps = next_load(m, goal, &step);

		if (pps <= 0)
			return 0;
		err = measure(m, pps, goal->final_trial_ns, why);
		if (err != 0)
			return err;
	}
}

/*
 * The first loads: the highest, then half a width below the rate that came
 * through. That is near the goals of a device that drops the excess, and a
 * width above it is an upper bound of one goal and a lower bound of the other.
 */
static int begin(struct mlr *m, double width, uint64_t initial_ns,
		 struct mr_reason *why)
{
	const struct search *s = m->search;
	double rx_pps;
	int err = measure(m, s->max_pps, initial_ns, why);

	if (err != 0 || m->n == 0 || m->trials[0].loss <= 0)
		return err;
	rx_pps = s->max_pps * (1 - m->trials[0].loss) * (1 - width / 2);
	return rx_pps > s->min_pps ? measure(m, rx_pps, initial_ns, why) : 0;
}

static enum limit limit_at(const struct mlr *m, double upper)
{
	if (upper <= 0)
		return LIMIT_HIGHEST;
	if (upper >= m->unsent_pps && m->unsent_pps > 0)
		return LIMIT_SENDER;
	for (uint32_t i = 0; i < m->n; i++)
		if (is_same(m->trials[i].pps, upper) &&
		    m->outcomes[i].is_by_receiver)
			return LIMIT_RECEIVER;
	return LIMIT_DEVICE;
}

/* A search that was ended early has the bounds of the finest level with any. */
static void take(const struct mlr *m, const struct mlr_goal *goal,
		 uint64_t initial_ns, struct found *ret)
{
	struct mlr_goal g = *goal;
	struct bounds b = bounds_of(m, &g);

	for (uint32_t level = 1; level < N_LEVELS && !ret->is_complete &&
				 (b.lower <= 0 || b.upper <= 0);
	     level++) {
		g = at_level(goal, level, initial_ns);
		b = bounds_of(m, &g);
	}
	snprintf(ret->goal, sizeof(ret->goal), "%s", goal->name);
	ret->low = b.lower;
	ret->high = b.upper;
	ret->limit = limit_at(m, b.upper);
	if (b.lower > 0) {
		ret->value = mlr_conditional_throughput(&g, b.lower, m->trials,
							m->n);
		ret->loss = 1 - ret->value / b.lower;
	} else if (ret->is_complete) {
		snprintf(ret->note, sizeof(ret->note),
			 "the goal is missed at all loads down to %.0f "
			 "frames/s",
			 b.upper);
	}
}

/* Seconds of about three loads for each level and goal that is left. */
static uint64_t time_left(const struct mlr_goal *goals, uint32_t n,
			  uint32_t goal_idx, uint32_t level,
			  uint64_t initial_ns)
{
	uint64_t ns = 0;

	for (uint32_t g = 0; g < n; g++)
		for (uint32_t l = 0; l < N_LEVELS; l++)
			if (l < level || (l == level && g >= goal_idx))
				ns += 3 * at_level(&goals[g], l, initial_ns)
						  .duration_sum_ns;
	return ns;
}

static int search_levels(struct mlr *m, const struct mlr_goal *goals,
			 uint32_t n, uint64_t initial_ns, struct found *ret,
			 struct mr_reason *why)
{
	int err = begin(m, goals[0].width, initial_ns, why);

	for (uint32_t level = N_LEVELS; err == 0 && level-- > 0;) {
		/* A disturbance does not bound what comes behind it. */
		m->unsent_pps = 0;
		for (uint32_t g = 0; err == 0 && g < n; g++) {
			const struct mlr_goal goal =
				at_level(&goals[g], level, initial_ns);

			m->search->left_ns =
				time_left(goals, n, g, level, initial_ns);
			err = narrow(m, &goal,
				     goal.width * (level == N_LEVELS - 1 ?
							   N_WIDE :
							   1),
				     why);
			ret[g].is_complete = err == 0 && level == 0;
		}
	}
	return err;
}

int search_mlr(struct search *s, const struct mlr_goal *goals, uint32_t n,
	       uint64_t initial_trial_ns, struct found *ret,
	       struct mr_reason *why)
{
	struct mlr m = { .search = s };
	int err;

	memset(ret, 0, n * sizeof(*ret));
	m.trials = calloc(MAX_TRIALS, sizeof(*m.trials));
	m.outcomes = calloc(MAX_TRIALS, sizeof(*m.outcomes));
	if (m.trials == NULL || m.outcomes == NULL)
		err = fail_with(why, -ENOMEM, "out of memory");
	else
		err = search_levels(&m, goals, n, initial_trial_ns, ret, why);
	for (uint32_t g = 0; m.outcomes != NULL && g < n; g++)
		take(&m, &goals[g], initial_trial_ns, &ret[g]);
	s->left_ns = 0;
	free(m.outcomes);
	free(m.trials);
	return err;
}
