/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of a replay, and its result as a trial. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/replay.h"
#include "support/counter.h"
#include "support/json_text.h"
#include "support/text.h"

static const char *const drop_names[N_DROPS] = {
	[DROP_LATE] = "late",
	[DROP_SHUTDOWN] = "shutdown",
};

static const struct count_row replay_rows[] = {
	{ "passes", "passes" },
	{ "unsent", "unsent" },
	{ "paced", "paced" },
	{ "late_mean_ns", "ns late on average" },
	{ "late_p50_ns", "ns half of them" },
	{ "late_p99_ns", "ns 99 % of them" },
	{ "late_max_ns", "ns at most" },
	{ "untimed", "without a time" },
	{ "steps_back", "steps back of its clock" },
	{ "shortened", "gaps shortened" },
};

enum { N_REPLAY_ROWS = sizeof(replay_rows) / sizeof(replay_rows[0]) };

static const struct count_group replay_group = { "replay", "replay",
						 replay_rows, N_REPLAY_ROWS };

/* How late frames left so far. The sending thread takes no lock, so this reads
 * bucket by bucket, and is exact only at the end. */
static const struct hist *lateness_of(struct replay *replay)
{
	if (__atomic_load_n(&replay->has_ended, __ATOMIC_ACQUIRE))
		return &replay->lateness;
	hist_since(&replay->lateness, &replay->before, &replay->seen);
	return &replay->seen;
}

uint64_t replay_n_passes(const struct replay *replay)
{
	struct mr_named_count passes = { .value = 0 };

	mr_port_device_stats(replay->plane.ports[CAPTURE_PORT], &passes, 1);
	return passes.value;
}

void replay_count_before(struct replay *replay)
{
	struct drop_rows before = { replay->drops_before, 0, MAX_REPLAY_ROWS };

	replay->opened_ns = clock_monotonic_ns();
	drops_read(&before, replay->plane.ports, N_PORTS, 0, NULL);
}

/* Count frames that the port accepted but did not send. */
static uint64_t n_kept(const struct replay *replay, struct drop_rows *moved)
{
	drops_read(moved, replay->plane.ports, N_PORTS, 0,
		   replay->drops_before);
	return drops_unsent(moved, replay->plane.ports[TO_PORT]);
}

static void take_counters(struct snapshot *snapshot, void *app)
{
	struct replay *replay = app;
	const struct hist *late = lateness_of(replay);
	struct worker_snapshot *to = &snapshot->workers[0];
	uint64_t *counts = snapshot->groups[0];
	struct trial_drop found[MAX_REPLAY_ROWS];
	struct drop_rows moved = { found, 0, MAX_REPLAY_ROWS };

	snapshot->about = replay->document;
	snapshot_copy_counters(&to->bursts, &replay->n_bursts, 1);
	snapshot_copy_counters(&to->entries, &replay->n_entries, 1);
	snapshot_copy_counters(to->drops, replay->drops, N_DROPS);
	counts[0] = replay_n_passes(replay);
	counts[1] = to->drops[DROP_LATE] + to->drops[DROP_SHUTDOWN] +
		    n_kept(replay, &moved);
	counts[2] = late->n;
	counts[3] = (uint64_t)hist_mean(late);
	counts[4] = hist_at(late, 50);
	counts[5] = hist_at(late, 99);
	counts[6] = late->max;
	counts[7] = counter_get(&replay->timing.n_untimed);
	counts[8] = counter_get(&replay->timing.n_steps);
	counts[9] = counter_get(&replay->timing.n_shortened);
}

const struct app_counters replay_counters = {
	.program = "mr-bench replay",
	.drop_names = drop_names,
	.n_drops = N_DROPS,
	.groups = &replay_group,
	.n_groups = 1,
	.take = take_counters,
};

static void warn_once(struct replay *replay, uint64_t n, bool *has_told,
		      const char *what)
{
	if (n == 0 || *has_told)
		return;
	*has_told = true;
	print_error("mr-bench replay: %s: %s", replay->path, what);
}

void replay_warn(void *app)
{
	struct replay *replay = app;
	const struct timing *timing = &replay->timing;
	const uint64_t far_ns =
		__atomic_load_n(&replay->far_ns, __ATOMIC_RELAXED);

	if (replay->speed == 0)
		return;
	warn_once(replay, counter_get(&timing->n_untimed),
		  &replay->has_told_untimed,
		  "records without a time are sent right after their "
		  "predecessors");
	warn_once(replay, counter_get(&timing->n_steps),
		  &replay->has_told_steps,
		  "the clock was set back during the capture: times count "
		  "from there");
	warn_once(replay, counter_get(&timing->n_gapless),
		  &replay->has_told_gapless,
		  "it has no gaps, so a pass begins 1 ms after the last one; "
		  "--speed max does not wait");
	if (far_ns == replay->told_far_ns)
		return;
	replay->told_far_ns = far_ns;
	print_error("mr-bench replay: %s: the next frame is due %.0f s after "
		    "the first; --max-gap shortens longer gaps",
		    replay->path, (double)far_ns / 1e9);
}

static bool is_timed_out(const struct replay *replay)
{
	const uint64_t ms = replay->options.run.duration_ms;

	return ms > 0 &&
	       clock_monotonic_ns() >= replay->opened_ns + ms * 1000000;
}

/* libpcap stops there. */
static bool has_other_link(const struct trial_result *trial)
{
	for (uint32_t i = 0; i < trial->n_drops; i++)
		if (strcmp(trial->drops[i].name, "rx_other_link_type") == 0)
			return true;
	return false;
}

/* Say why some records of the capture were not read. */
static void explain_part(struct replay *replay, struct trial_result *trial)
{
	char *to = trial->why_stopped;

	if (!replay->is_whole)
		snprintf(to, sizeof(trial->why_stopped), "%s",
			 is_timed_out(replay) ? "ended before the capture" :
						"ended by a signal");
	else if (replay->n_unread > 0)
		snprintf(to, sizeof(trial->why_stopped),
			 "%llu records of the capture are %s and were not "
			 "sent",
			 (unsigned long long)replay->n_unread,
			 has_other_link(trial) ?
				 "after an interface of another link type" :
				 "damaged, cut off or too long");
	trial->is_cut_short = to[0] != '\0';
}

/* Count what left, and say why some frames did not. */
static void judge_replay(struct replay *replay, struct trial_result *trial)
{
	struct drop_rows moved = { trial->drops, 0, MAX_REPLAY_ROWS };
	const uint64_t n = n_kept(replay, &moved);

	trial->n_drops = moved.n;
	replay->n_unread =
		drops_received(&moved, replay->plane.ports[CAPTURE_PORT]);
	if (n == 0)
		explain_part(replay, trial);
	trial_judge(trial, n, 0, replay->n_loops > 0);
	if (replay->is_whole && n == 0 && replay->n_unread > 0)
		fail_with(&replay->why_failed, 0,
			  "not all of the capture was sent: %s; capture again, "
			  "%s",
			  trial->why_stopped,
			  has_other_link(trial) ? "one interface at a time" :
						  "with -s 0");
	/* Ending after --duration is no failure. */
	else if (replay->is_whole || n > 0 || !is_timed_out(replay))
		fail_with(&replay->why_failed, 0, "%s", trial->why_incomplete);
}

/* Have the front end add the trial, and why it is incomplete. */
static void tell_trial(struct replay *replay, const struct trial_result *trial)
{
	json_t *document = relay_ask(
		&replay->options,
		json_pack("{so so}", "trial", document_trial(trial),
			  "why_incomplete", json_text(trial->why_incomplete)));

	json_object_update_new(replay->document, document);
}

void replay_add_trial(void *app)
{
	struct replay *replay = app;
	struct trial_result *trial = calloc(1, sizeof(*trial));
	const uint64_t n_unsent =
		replay->drops[DROP_LATE] + replay->drops[DROP_SHUTDOWN];
	const uint64_t due_ns =
		replay->speed == 0 ? 0 :
				     (uint64_t)((double)replay->timing.due_ns /
						replay->speed);

	/* Applications end when memory runs out. */
	if (trial == NULL)
		abort();
	trial->drops = calloc(MAX_REPLAY_ROWS, sizeof(*trial->drops));
	if (trial->drops == NULL)
		abort();
	/* Frames in the queue may still be dropped. */
	mr_dataplane_drain(replay->plane.open, DATAPLANE_DRAIN_MS,
			   replay_drop_at_end, replay);
	trial->sent = replay->n_sent;
	trial->unsent = n_unsent;
	trial->tx_bytes = replay->n_sent_bytes;
	trial->sending_ns = trial->whole_ns = replay->last_ns;
	judge_replay(replay, trial);
	replay_warn(replay);
	/* There is one gap less than frames. */
	if (due_ns > 0)
		trial->asked_pps =
			(double)(trial->due - 1) * 1e9 / (double)due_ns;
	if (trial->sent > 1)
		trial->tx_pps = (double)(trial->sent - 1) * 1e9 /
				(double)trial->sending_ns;
	trial->lateness = replay->lateness;
	trial->clock_error_ns =
		replay->clock.error_ns + clock_drift_ns(&replay->clock);
	tell_trial(replay, trial);
	trial_result_free(trial);
	free(trial);
}
