/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss by rate, in steps down from the highest. */
#include <string.h>

#include "search/search.h"

int search_frame_loss(struct search *s, double step, struct loss_curve *ret,
		      struct mr_reason *why)
{
	const uint32_t n_steps = (uint32_t)(1 / step + 0.5);
	const uint64_t trial_ns = s->trial.duration_ns + s->trial.settle_ns;
	uint32_t n_clean = 0;
	int err;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < n_steps && ret->n < MAX_LOSS_POINTS; i++) {
		struct outcome *point = &ret->points[ret->n];

		s->left_ns = (n_steps - i) * trial_ns;
		err = search_trial(s, s->max_pps * (1 - i * step),
				   s->trial.duration_ns, 0, point, why);
		if (err != 0)
			return err;
		ret->n++;
		n_clean = point->n_lost == 0 && !point->is_unsent ?
				  n_clean + 1 :
				  0;
		if (n_clean == 2)
			break;
	}
	s->left_ns = 0;
	ret->is_complete = true;
	return 0;
}
