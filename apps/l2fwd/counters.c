/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-l2fwd counts beside ports, queues, workers and pool. */
#include "session.h"

static const struct worker_row worker_rows[] = {
	{ "cloned", LAW_MADE },
	{ "flooded", LAW_NONE },
};

static const struct count_row fdb_rows[] = {
	{ "entries", "known", LIVE_NUMBER },
	{ "learned", "learned", LIVE_NOTHING },
	{ "moved", "moved", LIVE_NUMBER },
	{ "aged", "aged", LIVE_NOTHING },
	{ "full", "not learned", LIVE_NUMBER },
};

static const struct count_group fdb_group = { "fdb", "addresses", fdb_rows, 5 };

/* Of a session with a table of addresses, whose group is the only one. */
static void take(struct snapshot *snapshot, void *app)
{
	const struct session *session = app;

	for (uint32_t w = 0; w < snapshot->n_workers; w++) {
		const struct forward_stats *from =
			&session->forwarders[w].stats;
		struct worker_snapshot *to = &snapshot->workers[w];

		snapshot_copy_counters(&to->bursts, &from->bursts, 1);
		snapshot_copy_counters(&to->entries, &from->entries, 1);
		snapshot_copy_counters(&to->counts[0], &from->cloned, 1);
		snapshot_copy_counters(&to->counts[1], &from->flooded, 1);
		snapshot_copy_counters(to->drops, from->drops, N_FORWARD_DROPS);
	}
	if (session->fdb != NULL) {
		uint64_t *counts = snapshot->groups[0];
		struct fdb_stats fdb;

		fdb_stats(session->fdb, &fdb);
		counts[0] = fdb.n_entries;
		counts[1] = fdb.learned;
		counts[2] = fdb.moved;
		counts[3] = fdb.aged;
		counts[4] = fdb.full;
	}
}

static const struct app_counters with_fdb = {
	.program = "mr-l2fwd",
	.drop_names = forward_drop_names,
	.n_drops = N_FORWARD_DROPS,
	.worker_rows = worker_rows,
	.n_worker_rows = 2,
	.groups = &fdb_group,
	.n_groups = 1,
	.take = take,
};

static const struct app_counters without_fdb = {
	.program = "mr-l2fwd",
	.drop_names = forward_drop_names,
	.n_drops = N_FORWARD_DROPS,
	.worker_rows = worker_rows,
	.n_worker_rows = 2,
	.take = take,
};

const struct app_counters *session_counters(const struct session *session)
{
	return session->fdb != NULL ? &with_fdb : &without_fdb;
}
