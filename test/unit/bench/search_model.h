/* SPDX-License-Identifier: BSD-3-Clause */
/* Mathematical devices behind a trial function: what is to be found is known.
 */
#ifndef SEARCH_MODEL_H
#define SEARCH_MODEL_H

#include <math.h>

#include "support/unit.h"

#include "search/search.h"

enum { MODEL_MAX_PPS = 1000000 };

struct model {
	double rate_pps;  /* frames above it are lost; 0: none are */
	double buffer;    /* frames that wait before any is lost */
	double soft_loss; /* share lost at all rates above soft_from */
	double soft_from;
	uint32_t burst_every; /* each Nth trial loses a few frames; 0: none */
	double drift;         /* share that each trial takes off the rate */
	double sender_pps;    /* more is not sent in time; 0: all is */
	double late_share;    /* of the trial, that the last frame is late by */
	uint32_t is_unsent_once; /* the next trials that the sender fails */
	bool is_receiver;        /* losses have a counter of the receiver */
	bool is_sending_port;    /* which is of the port that sends */
	double foreign_share;    /* of the frames that came */
	uint32_t unsent_from;    /* calls from here on are; 0: none */
	bool is_dead;
	uint32_t cut_at;  /* the trial that a signal ends; 0: none */
	const char *stop; /* why a trial broke off */
	uint32_t n_calls;
	double n_seconds;
};

static inline void model_results(struct model *m,
				 const struct trial_config *config,
				 struct trial_result *r)
{
	const double pps = config->rate.value;
	const double seconds = config->n_frames != 0 ?
				       (double)config->n_frames / pps :
				       (double)config->duration_ns / 1e9;
	double load = pps, lost = 0;

	if (m->sender_pps > 0 && load > m->sender_pps)
		load = m->sender_pps;
	if ((m->is_unsent_once > 0 && m->is_unsent_once--) ||
	    (m->unsent_from > 0 && m->n_calls >= m->unsent_from))
		load *= 0.9;
	if (m->rate_pps > 0 && load > m->rate_pps)
		lost = fmax(0, (load - m->rate_pps) * seconds - m->buffer);
	if (m->soft_loss > 0 && load > m->soft_from)
		lost = fmax(lost, m->soft_loss * load * seconds);
	if (m->burst_every != 0 && m->n_calls % m->burst_every == 0)
		lost += 3;
	for (uint32_t i = 0; i <= 100; i++)
		hist_add(&r->lateness,
			 (uint64_t)(i * seconds * 1e7 * m->late_share));
	r->asked_pps = pps;
	r->due = (uint64_t)(pps * seconds + 0.5);
	r->sent = (uint64_t)(load * seconds + 0.5);
	r->unsent = r->due - r->sent;
	r->lost = m->is_dead ? r->sent : (uint64_t)ceil(lost);
	r->unique = r->sent - r->lost;
	r->foreign = (uint64_t)((double)r->unique * m->foreign_share /
				(1 - m->foreign_share));
	r->received = r->unique + r->foreign;
	r->tx_pps = load;
	r->rx_pps = (double)r->unique / seconds;
	m->rate_pps *= 1 - m->drift;
	m->n_seconds += seconds;
}

static inline int model_run(void *opaque, const struct trial_config *config,
			    struct trial_result *ret, struct mr_reason *why)
{
	struct model *m = opaque;

	(void)why;
	m->n_calls++;
	memset(ret, 0, sizeof(*ret));
	model_results(m, config, ret);
	if (m->is_receiver && ret->lost > 0) {
		ret->drops = calloc(1, sizeof(*ret->drops));
		assert_non_null(ret->drops);
		*ret->drops =
			(struct trial_drop){ "p1", "rx", "no_room", ret->lost,
					     !m->is_sending_port };
		ret->n_drops = 1;
	}
	ret->is_cut_short = m->cut_at == m->n_calls;
	if (m->stop != NULL)
		snprintf(ret->why_stopped, sizeof(ret->why_stopped), "%s",
			 m->stop);
	return 0;
}

static inline struct search model_search(struct model *m)
{
	const uint64_t second = 1000 * 1000 * 1000;

	return (struct search){
		.run = model_run,
		.opaque = m,
		.trial = { .duration_ns = second, .settle_ns = second / 10 },
		.min_pps = MODEL_MAX_PPS / 1e3,
		.max_pps = MODEL_MAX_PPS,
		.resolution = 0.005,
		.unsent_tolerance = 0.005,
		.max_trials = MAX_TRIALS,
	};
}

static inline void assert_within(double value, double low, double high)
{
	if (value < low || value > high)
		fail_msg("%g is not in %g..%g", value, low, high);
}

#endif
