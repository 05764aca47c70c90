/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Searches for a rate, on a function that makes one trial.
 *
 * Nothing here knows ports: a test puts a mathematical device behind the
 * function. Rates are frames per second. What a trial is worth is judged in one
 * place, search_trial(): a trial whose sender did not keep its rate up says
 * nothing of the device, and no search counts it as loss.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "net/trial.h"

/*
 * Make one trial. 0, or -errno with the reason. *ret is given back with
 * trial_result_free() by whoever called.
 */
typedef int trial_fn(void *opaque, const struct trial_config *config,
		     struct trial_result *ret, struct mr_reason *why);

enum {
	MAX_TRIALS = 2000,   /* of one result */
	MAX_NUMBERS = 65536, /* of all that one size has */
};

/* Why a rate is not one of the device's. */
enum limit {
	LIMIT_DEVICE,   /* it is: the device lost frames above */
	LIMIT_HIGHEST,  /* the highest rate of the search was passed */
	LIMIT_SENDER,   /* above, frames could not be sent in time */
	LIMIT_RECEIVER, /* above, the receiving ports lost frames */
};

/* A trial as a search sees it. */
struct outcome {
	double asked_pps;
	double load_pps; /* what was offered: less what was unsent or late */
	double rx_pps;
	double loss; /* share of the frames sent */
	uint64_t duration_ns;
	uint64_t n_sent, n_lost;
	bool is_unsent;      /* the sender failed, each time that it tried */
	bool is_by_receiver; /* most of the loss has a counter of a receiver */
};

struct search {
	trial_fn *run;
	void *opaque;
	struct trial_config trial; /* what the trials have in common */
	double min_pps, max_pps;
	double resolution;       /* share of the rate, as 0.005 */
	double loss_tolerance;   /* share of the frames sent */
	double unsent_tolerance; /* share of the frames due */
	uint32_t max_trials;     /* of one result, at most MAX_TRIALS */
	/*
	 * Is called behind each trial; returns the trial's number in the
	 * report. left_ns is an estimate. NULL: nobody listens.
	 */
	uint32_t (*on_trial)(void *observer, const struct search *search,
			     const struct trial_result *result);
	void *observer;
	/*
	 * Say where the frames of a trial were seen last, and return true.
	 * Called with opaque; NULL: nobody knows.
	 */
	bool (*explain)(void *opaque, const struct trial_result *result,
			char *ret, size_t n_bytes);

	/* What was done so far. */
	uint32_t n_trials;
	uint32_t n_before;            /* of them, for results before this one */
	uint32_t trials[MAX_NUMBERS]; /* their numbers */
	double sender_pps; /* most that the sender kept up; 0: not known */
	uint64_t left_ns;
};

/* What a search found. */
struct found {
	char goal[24];
	double value;     /* offered load of the best trial; 0: none held */
	double low, high; /* held, did not hold; 0: there was none */
	double loss;      /* at the value */
	enum limit limit; /* of the value */
	bool is_complete;
	char note[160];
};

/*
 * One trial at pps, or of n_frames if that is not 0. One whose sender failed is
 * made again, twice; at less than half of what the sender can do, where only
 * something else can have disturbed it, up to ten times. 0, or -EINTR (a
 * signal), -EAGAIN (max_trials, or the sender is disturbed), -EIO (the trial
 * broke off), or what the function returned.
 */
int search_trial(struct search *s, double pps, uint64_t duration_ns,
		 uint64_t n_frames, struct outcome *ret, struct mr_reason *why);

/* Why the rate above a result is not one, of a trial that did not hold. */
enum limit search_limit(const struct outcome *above);

/*
 * Whether there is a path: a few frames at a low rate. -ENOLINK if none came
 * back; the line says where they were seen last. Frames of a first trial also
 * teach switches their addresses (RFC 2544, 23).
 */
int search_check_path(struct search *s, struct mr_reason *why);

/*
 * RFC 2544, 26.1: halve the interval between a rate that holds and one that
 * does not. n_verify (NFV-TST009, 12.3.3): a trial with loss is made so many
 * times more, and one without loss among them is enough. The rate that was
 * found has to hold once more, for confirm_ns (0: the length of a trial); where
 * it does not it is lowered by a step, and -EAGAIN is returned after 10 such.
 */
int search_binary(struct search *s, uint32_t n_verify, uint64_t confirm_ns,
		  struct found *ret, struct mr_reason *why);

/* RFC 2544, 26.3: from max_pps down in steps until two in turn lose nothing. */
enum { MAX_LOSS_POINTS = 64 };

struct loss_curve {
	uint32_t n;
	struct outcome points[MAX_LOSS_POINTS];
	bool is_complete;
};

int search_frame_loss(struct search *s, double step, struct loss_curve *ret,
		      struct mr_reason *why);

/*
 * RFC 2544, 26.4, as RFC 9004 has it: bursts at max_pps, which double until one
 * loses a frame; then the interval is halved.
 */
struct back2back {
	uint32_t n_tests;      /* 50 in the RFC */
	uint64_t max_burst_ns; /* 30 s in the RFC */
	uint32_t n_verify;     /* RFC 9004, 5.4: loss verification */
	double throughput_pps; /* 0: not known, no corrected time */
};

struct burst_found {
	uint32_t n;                    /* tests */
	double mean, sd, min, max;     /* frames */
	double implied_s, corrected_s; /* time that the buffer holds */
	/* LIMIT_DEVICE only if it ended each test. LIMIT_HIGHEST: the longest
	 * burst was passed. */
	enum limit limit;
	bool is_complete;
};

int search_back2back(struct search *s, const struct back2back *config,
		     struct burst_found *ret, struct mr_reason *why);

#endif
