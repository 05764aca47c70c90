/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges trials of all kinds. */
#include <stdio.h>
#include <stdlib.h>

#include "net/trial.h"

/* The largest counter of unsent frames, if it explains half of them. */
static const struct trial_drop *find_cause(const struct trial_result *r)
{
	const struct trial_drop *most = NULL;

	for (uint32_t i = 0; i < r->n_drops; i++)
		if (r->drops[i].is_departure &&
		    (most == NULL || r->drops[i].n > most->n))
			most = &r->drops[i];
	return most != NULL && most->n >= r->unsent / 2 ? most : NULL;
}

static void explain_unsent(struct trial_result *r)
{
	const struct trial_drop *cause = find_cause(r);
	char why[128] = "the sender was late by more than --max-lag";

	if (cause != NULL)
		snprintf(why, sizeof(why), "%s dropped %llu (%s)", cause->port,
			 (unsigned long long)cause->n, cause->name);
	snprintf(r->why_incomplete, sizeof(r->why_incomplete),
		 "%llu of %llu frames did not leave: %s",
		 (unsigned long long)r->unsent, (unsigned long long)r->due,
		 why);
}

void trial_judge(struct trial_result *r, uint64_t n_kept, uint64_t n_no_room,
		 bool is_bounded)
{
	const uint64_t n_accepted = r->sent;

	/* A device also counts frames of other programs. */
	n_kept = n_kept < n_accepted ? n_kept : n_accepted;
	n_no_room = n_no_room < n_kept ? n_no_room : n_kept;
	/* There is no counter of the dropped bytes. */
	if (n_kept > 0)
		r->tx_bytes = (uint64_t)((double)r->tx_bytes *
					 (double)(n_accepted - n_kept) /
					 (double)n_accepted);
	r->sent -= n_kept;
	r->unsent += n_kept - n_no_room;
	r->due = r->sent + r->unsent;
	r->n_dropped = n_kept - n_no_room;
	r->why_incomplete[0] = '\0';
	if (r->why_stopped[0] != '\0')
		snprintf(r->why_incomplete, sizeof(r->why_incomplete), "%s",
			 r->why_stopped);
	else if (r->is_cut_short) /* whatever has not left then */
		snprintf(r->why_incomplete, sizeof(r->why_incomplete),
			 "ended by a signal");
	else if (r->n_dropped > 0 || (is_bounded && r->unsent > 0))
		explain_unsent(r);
}

void trial_result_free(struct trial_result *result)
{
	free(result->streams);
	free(result->directions);
	free(result->drops);
	result->streams = NULL;
	result->directions = NULL;
	result->drops = NULL;
	result->n_streams = result->n_directions = result->n_drops = 0;
}
