/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-l2fwd counts beside ports, queues, workers and pool. */
#include "session.h"

static const struct worker_row worker_rows[] = {
	{ "cloned", INVARIANT_MADE },
	{ "flooded", INVARIANT_NONE },
	{ "merged", INVARIANT_KEPT },
};

static const struct count_row fdb_rows[] = {
	{ "entries", "known" },
	{ "learned", "learned" },
	{ "moved", "moved" },
	{ "aged", "aged" },
	{ "full", "not learned" },
};

static const struct count_row offload_rows[] = {
	{ "rules", "rules" },
	{ "pending", "pending" },
	{ "forced", "forced" },
	{ "full", "no room" },
	{ "attempted", "forwarded by rules" },
	{ "tx_drops", "lost by it" },
	{ "tx_drops_known", "losses known" },
};

static const char *const gauges[] = { "entries", "rules", "pending",
				      "tx_drops_known", NULL };

static const struct count_group fdb_group = { "fdb", "addresses", fdb_rows, 5 };
static const struct count_group offload_group = { "offload", "offload",
						  offload_rows, 7 };

static void take_workers(struct snapshot *snapshot,
			 const struct session *session)
{
	for (uint32_t w = 0; w < snapshot->n_workers; w++) {
		const struct forward_stats *from =
			&session->forwarders[w].stats;
		struct worker_snapshot *to = &snapshot->workers[w];

		snapshot_copy_counters(&to->bursts, &from->bursts, 1);
		snapshot_copy_counters(&to->entries, &from->entries, 1);
		snapshot_copy_counters(&to->counts[0], &from->cloned, 1);
		snapshot_copy_counters(&to->counts[1], &from->flooded, 1);
		snapshot_copy_counters(&to->counts[2], &from->merged, 1);
		snapshot_copy_counters(to->drops, from->drops, N_FORWARD_DROPS);
	}
}

static void take_fdb(uint64_t *counts, const struct session *session)
{
	struct fdb_stats fdb;

	fdb_stats(session->fdb, &fdb);
	counts[0] = fdb.n_entries;
	counts[1] = fdb.learned;
	counts[2] = fdb.moved;
	counts[3] = fdb.aged;
	counts[4] = fdb.full;
}

static void take_offload(struct snapshot *snapshot, uint64_t *counts,
			 const struct session *session)
{
	struct offload_stats stats;

	session_offload_stats(session, &stats);
	counts[0] = stats.n_active;
	counts[1] = stats.n_pending;
	counts[2] = stats.forced;
	counts[3] = stats.full;
	counts[4] = stats.counts.attempted;
	counts[5] = stats.counts.drops;
	counts[6] = stats.counts.has_drops;
	offload_fill(snapshot, &stats.counts);
}

/* As session_counters() has chosen: snapshots may outlive the session. */
static struct count_group groups[2];
static struct app_counters counters;

static void take_counters(struct snapshot *snapshot, void *app)
{
	const struct session *session = app;

	take_workers(snapshot, session);
	for (uint32_t i = 0; i < counters.n_groups; i++)
		if (groups[i].rows == fdb_rows)
			take_fdb(snapshot->groups[i], session);
		else
			take_offload(snapshot, snapshot->groups[i], session);
}

const struct app_counters *session_counters(const struct session *session)
{
	uint32_t n = 0;

	if (session->fdb != NULL)
		groups[n++] = fdb_group;
	if (session->offload != NULL)
		groups[n++] = offload_group;
	counters = (struct app_counters){
		.program = "mr-l2fwd",
		.drop_names = forward_drop_names,
		.n_drops = N_FORWARD_DROPS,
		.worker_rows = worker_rows,
		.n_worker_rows = 3,
		.groups = groups,
		.n_groups = n,
		.gauges = gauges,
		.take = take_counters,
	};
	return &counters;
}
