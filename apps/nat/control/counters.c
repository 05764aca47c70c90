/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of the translator, for reports. */
#include "app.h"

/* In the order of fill_worker(). */
static const struct worker_row worker_rows[] = {
	{ "received", INVARIANT_NONE },
	{ "sent", INVARIANT_NONE },
	{ "made", INVARIANT_MADE },
	{ "taken", INVARIANT_KEPT },
	{ "translated_out", INVARIANT_NONE },
	{ "translated_in", INVARIANT_NONE },
	{ "hairpinned", INVARIANT_NONE },
	{ "excluded", INVARIANT_NONE },
	{ "held", INVARIANT_NONE },
	{ "steered", INVARIANT_NONE },
};

enum {
	GROUP_STATE,
	GROUP_OPERATION,
	GROUP_OFFLOAD,
};

/* In the order of struct nat_maps_stats. */
static const struct count_row state_rows[] = {
	{ "mappings", "mappings" },
	{ "sessions", "more sessions" },
	{ "subscribers", "subscribers" },
	{ "hold_down", "ports in hold-down" },
	{ "ports", "ports" },
	{ "ports_used", "in use" },
	{ "created", "created" },
	{ "expired", "expired" },
	{ "bytes", "bytes" },
};

static const struct count_row operation_rows[] = {
	{ "log_written", "lines of log" },
	{ "log_lost", "lost" },
	{ "reloads", "reloads" },
	{ "reloads_refused", "refused" },
};

static const struct count_row offload_rows[] = {
	{ "rules", "rules" },
	{ "full", "no room" },
	{ "attempted", "forwarded by the kernel" },
	{ "tx_drops", "lost by it" },
	{ "tx_drops_known", "losses known" },
};

static const struct count_group groups[] = {
	[GROUP_STATE] = { "state", "state", state_rows,
			  sizeof(state_rows) / sizeof(state_rows[0]) },
	[GROUP_OPERATION] = { "operation", "operation", operation_rows,
			      sizeof(operation_rows) /
				      sizeof(operation_rows[0]) },
	[GROUP_OFFLOAD] = { "offload", "offload", offload_rows,
			    sizeof(offload_rows) / sizeof(offload_rows[0]) },
};

static const char *const gauges[] = { "held",           "mappings",  "sessions",
				      "subscribers",    "hold_down", "ports",
				      "ports_used",     "bytes",     "rules",
				      "tx_drops_known", NULL };

/* NAT_OK has no drops, but has an index; NAT_TAKEN is not a loss. */
static const char *drop_names[NAT_TAKEN];

static void fill_worker(struct worker_snapshot *to, const struct nat_worker *w)
{
	struct nat_stats stats;
	uint64_t *const counts = to->counts;

	snapshot_copy_counters((uint64_t *)&stats,
			       (const uint64_t *)nat_path_stats(w->path),
			       sizeof(stats) / sizeof(uint64_t));
	snapshot_copy_counters(&to->bursts, &w->stats.bursts, 1);
	snapshot_copy_counters(&to->entries, &w->stats.entries, 1);
	counts[0] = stats.received[NAT_INSIDE] + stats.received[NAT_OUTSIDE];
	counts[1] = stats.sent[NAT_INSIDE] + stats.sent[NAT_OUTSIDE];
	counts[2] = stats.made;
	counts[3] = stats.drops[NAT_TAKEN];
	counts[4] = stats.translated[NAT_INSIDE];
	counts[5] = stats.translated[NAT_OUTSIDE];
	counts[6] = stats.hairpinned;
	counts[7] = stats.excluded;
	counts[8] = stats.held;
	counts[9] = 0;
	if (w->steer != NULL)
		snapshot_copy_counters(
			&counts[9], &nat_steer_stats(w->steer)->handed_off, 1);
	for (uint32_t i = 0; i < NAT_TAKEN; i++)
		to->drops[i] = stats.drops[i];
}

static void add_state(uint64_t *to, const struct nat_worker *w)
{
	uint64_t stats[sizeof(struct nat_maps_stats) / sizeof(uint64_t)];
	const uint32_t n = sizeof(stats) / sizeof(stats[0]);

	snapshot_copy_counters(stats, (const uint64_t *)&w->stats.maps, n);
	for (uint32_t i = 0; i < n; i++)
		to[i] += stats[i];
}

static void take_offload(struct snapshot *snapshot, uint64_t *counts,
			 const struct app *app)
{
	struct nat_offload_stats stats;

	nat_offload_stats(app, &stats);
	counts[0] = stats.rules.n_rules;
	counts[1] = stats.rules.refused;
	counts[2] = stats.counts.attempted;
	counts[3] = stats.counts.drops;
	counts[4] = stats.counts.has_drops;
	offload_fill(snapshot, &stats.counts);
}

static void take_counters(struct snapshot *snapshot, void *opaque)
{
	const struct app *app = opaque;
	uint64_t *state = snapshot->groups[GROUP_STATE];
	uint64_t *log = snapshot->groups[GROUP_OPERATION];
	const struct nat_log_stats log_stats = nat_log_stats(app->log);

	for (uint32_t i = 0; i < MAX_COUNTS; i++)
		state[i] = 0;
	for (uint32_t w = 0; w < app->n_workers; w++) {
		fill_worker(&snapshot->workers[w], &app->workers[w]);
		add_state(state, &app->workers[w]);
	}
	log[0] = log_stats.n_written;
	log[1] = log_stats.n_lost;
	log[2] = app->n_reloads;
	log[3] = app->n_refused;
	take_offload(snapshot, snapshot->groups[GROUP_OFFLOAD], app);
}

static struct app_counters counters = {
	.program = "mr-nat",
	.drop_names = drop_names,
	.n_drops = NAT_TAKEN,
	.worker_rows = worker_rows,
	.n_worker_rows = sizeof(worker_rows) / sizeof(worker_rows[0]),
	.groups = groups,
	.note = { .name = "not_steered",
		  .label = "workers hand frames over, because" },
	.gauges = gauges,
	.take = take_counters,
};

const struct app_counters *app_counters(const struct app *app)
{
	/* Set only once: the thread that writes stdout reads them later. */
	if (counters.n_groups == 0)
		counters.n_groups = app->n_id_owners > 0 ? GROUP_OFFLOAD + 1 :
							   GROUP_OFFLOAD;
	for (uint32_t i = 0; i < NAT_TAKEN && drop_names[i] == NULL; i++)
		drop_names[i] = nat_drop_name(i);
	if (app->not_steered.text[0] != '\0')
		counters.note.text = app->not_steered.text;
	return &counters;
}
