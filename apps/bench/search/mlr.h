/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MLRsearch (draft-ietf-bmwg-mlrsearch-15, in its last form RFC 9971): several
 * goals in one search, each decided by the share of the time in which a load
 * lost too much, so that one bad trial does not decide.
 */
#ifndef SEARCH_MLR_H
#define SEARCH_MLR_H

#include "search/search.h"

enum { MAX_GOALS = 8 };

struct mlr_goal {
	char name[24];
	double loss_ratio;        /* of a trial that is good */
	double exceed_ratio;      /* of the time: share of bad trials; < 1 */
	double width;             /* share of the upper bound */
	uint64_t final_trial_ns;  /* shorter trials count for less */
	uint64_t duration_sum_ns; /* until then a load is undecided */
};

enum load_class { LOAD_UNDECIDED, LOAD_LOWER, LOAD_UPPER };

/* The sums of seconds that a load is classified by. */
struct load_sums {
	double full_low, full_high;   /* of trials of the final length */
	double short_low, short_high; /* of shorter ones */
};

enum load_class mlr_classify(const struct mlr_goal *goal,
			     const struct load_sums *sums);

struct mlr_trial {
	double pps, loss;
	uint64_t duration_ns;
};

/* The forwarding rate that the goal grants at pps, by its trials. */
double mlr_conditional_throughput(const struct mlr_goal *goal, double pps,
				  const struct mlr_trial *trials, uint32_t n);

/*
 * Search for n goals at once. ret has a row for each. As search_binary(), and
 * -EAGAIN if a goal has no result after max_trials.
 */
int search_mlr(struct search *s, const struct mlr_goal *goals, uint32_t n,
	       uint64_t initial_trial_ns, struct found *ret,
	       struct mr_reason *why);

#endif
