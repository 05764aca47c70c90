/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-bench replay: sends the frames of a capture with their gaps.
 *
 *     pcap: port --rx burst, times--> due when? --tx burst--> port
 *
 * Open loop: when a frame is due follows from the capture alone, not from when
 * the one before it left. What is given up is counted, by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/clock.h"
#include "net/hist.h"
#include "net/relay.h"
#include "net/trial.h"
#include "support/counter.h"
#include "support/json_text.h"
#include "support/signals.h"

enum { CAPTURE_PORT, TO_PORT, N_PORTS };

enum replay_drop { DROP_LATE, DROP_SHUTDOWN, N_DROPS };

static const char *const drop_names[N_DROPS] = {
	[DROP_LATE] = "late",
	[DROP_SHUTDOWN] = "shutdown",
};

enum {
	OPTION_SPEED = RELAY_OWN,
	OPTION_LOOP,
	OPTION_MAX_LAG,
	OPTION_OUT,
	OPTION_ROWS,
	OPTION_LABEL,
};

enum {
	MAX_PASSES = 1000000000, /* as the pcap driver has it */
	/* Further away than that the thread may sleep. */
	SPIN_NS = 100000,
	SLEEP_NS = 10000000,
};

/* When the frames of a capture are due, in ns of its own time. */
struct timing {
	bool has_begun;
	uint64_t first_ns, last_ns; /* of the capture */
	uint64_t gap_ns;            /* the last one that was one */
	uint64_t due_ns;
};

struct replay {
	double speed; /* 0: as fast as the port takes them */
	uint32_t n_loops;
	uint64_t max_lag_ns;
	struct dataplane plane;
	int done_fd;
	struct clock clock;
	/* Entries read and not sent; due_ns is that of each one's frame. */
	struct mr_frame frames[MR_BURST_MAX];
	uint64_t due_ns[MR_BURST_MAX];
	uint32_t n, at, n_burst;
	struct timing timing;
	uint64_t n_bursts, n_entries;
	uint64_t n_sent, n_sent_bytes, last_ns; /* frames; the last one's */
	uint64_t drops[N_DROPS];
	struct hist lateness;
	bool has_ended;    /* the worker says so: lateness is at rest */
	uint64_t n_unread; /* records that are no whole frames */
	bool is_whole; /* it read the capture's end; of no end, any part is */
	json_t *document;
	const struct relay_options *options;
	const char *path;              /* of the capture */
	const char *out, *csv, *label; /* NULL: none */
	/* Of the thread that reports: copies of lateness meanwhile. */
	struct hist seen, before;
};

static const struct option_row rows[] = {
	{ "speed", OPTION_SPEED, "X|max",
	  "X times as fast as captured (default 1), or full speed" },
	{ "loop", OPTION_LOOP, "N",
	  "send the capture N times (default 1); 0: endlessly" },
	{ "max-lag", OPTION_MAX_LAG, "S",
	  "give up frames that are S seconds late (default 0.01)" },
	{ "out", OPTION_OUT, "FILE", "write the document of the run to FILE" },
	{ "csv", OPTION_ROWS, "FILE", "write its trial as CSV" },
	{ "label", OPTION_LABEL, "TEXT", "name of the document in reports" },
};

static enum parse_result parse_speed(const char *arg, double *ret,
				     struct mr_reason *error)
{
	char *end;

	*ret = 0;
	if (strcmp(arg, "max") == 0)
		return PARSE_RUN;
	*ret = strtod(arg, &end);
	if (end == arg || *end != '\0' || !(*ret >= 1e-6 && *ret <= 1e6))
		return parse_wrong(error,
				   "--speed: '%s' is neither max nor a factor "
				   "such as 1 or 0.5",
				   arg);
	return PARSE_RUN;
}

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *own, struct mr_reason *error)
{
	struct replay *replay = own;
	enum parse_result result;
	uint64_t ms;

	switch (row->id) {
	case OPTION_SPEED:
		return parse_speed(arg, &replay->speed, error);
	case OPTION_LOOP:
		return parse_u32(row->name, arg, 0, MAX_PASSES,
				 &replay->n_loops, error);
	case OPTION_OUT:
		replay->out = arg;
		return PARSE_RUN;
	case OPTION_ROWS:
		replay->csv = arg;
		return PARSE_RUN;
	case OPTION_LABEL:
		replay->label = arg;
		return PARSE_RUN;
	default:
		result = parse_seconds(row->name, arg, &ms, error);
		if (result == PARSE_RUN)
			replay->max_lag_ns = ms * 1000000;
		return result;
	}
}

/*
 * When the frame that was captured at time_ns is due. One that is older than
 * its predecessor comes behind it at once. Where the capture begins anew its
 * last gap is repeated: it has none of its own there.
 */
static uint64_t due_of(struct timing *t, uint64_t time_ns)
{
	if (!t->has_begun) {
		t->has_begun = true;
		t->first_ns = t->last_ns = time_ns;
		return 0;
	}
	if (time_ns == t->first_ns && t->last_ns > t->first_ns) {
		t->due_ns += t->gap_ns;
		t->last_ns = time_ns;
	} else if (time_ns > t->last_ns) {
		t->gap_ns = time_ns - t->last_ns;
		t->due_ns += t->gap_ns;
		t->last_ns = time_ns;
	}
	return t->due_ns;
}

/* Read on. False: the capture has ended. */
static bool read_burst(struct replay *replay, struct mr_worker *worker,
		       struct mr_rxq *rxq)
{
	struct mr_meta meta[MR_BURST_MAX];
	uint64_t due_ns = 0;

	replay->at = 0;
	replay->n = mr_rx_burst_meta(rxq, worker->cache, replay->frames, meta,
				     replay->n_burst);
	if (replay->n == 0)
		return mr_queue_arm(&rxq->queue) != 0;
	counter_add(&replay->n_bursts, 1);
	counter_add(&replay->n_entries, replay->n);
	for (uint32_t i = 0; i < replay->n; i++) {
		const bool is_first = i == 0 || !(replay->frames[i - 1].flags &
						  MR_FRAME_MORE);

		if (is_first)
			due_ns = due_of(&replay->timing, meta[i].rx_ns);
		replay->due_ns[i] =
			replay->speed == 0 ?
				0 :
				(uint64_t)((double)due_ns / replay->speed);
	}
	return true;
}

/* Entries, from replay->at on, that are due; those of a frame are together. */
static uint32_t n_due(const struct replay *replay, uint64_t now_ns)
{
	uint32_t i = replay->at;

	while (i < replay->n && replay->due_ns[i] <= now_ns)
		i++;
	return i - replay->at;
}

/* The next frame is due later: sleep while that is far off. */
static void wait_for_next(const struct replay *replay, uint64_t now_ns)
{
	const uint64_t left_ns = replay->due_ns[replay->at] - now_ns;
	struct timespec pause = { 0 };

	if (left_ns < 2 * SPIN_NS)
		return;
	pause.tv_nsec = left_ns - SPIN_NS < SLEEP_NS ?
				(long)(left_ns - SPIN_NS) :
				SLEEP_NS;
	nanosleep(&pause, NULL);
}

static void drop(struct replay *replay, struct mr_worker *worker,
		 const struct mr_frame *frames, uint32_t n,
		 enum replay_drop why)
{
	counter_add(&replay->drops[why], mr_frame_n_frames(frames, n));
	mr_frame_free_bulk(worker->cache, frames, n);
}

static void give_up_late(struct replay *replay, struct mr_worker *worker,
			 uint64_t now_ns)
{
	uint32_t i = replay->at;

	while (i < replay->n && replay->due_ns[i] + replay->max_lag_ns < now_ns)
		i++;
	drop(replay, worker, replay->frames + replay->at, i - replay->at,
	     DROP_LATE);
	replay->at = i;
}

static void send_due(struct replay *replay, struct mr_worker *worker)
{
	const uint64_t now_ns = clock_now(&replay->clock);
	uint64_t sent_ns;
	uint32_t n, n_sent;

	if (replay->speed != 0)
		give_up_late(replay, worker, now_ns);
	n = n_due(replay, now_ns);
	if (n == 0) {
		if (replay->at < replay->n)
			wait_for_next(replay, now_ns);
		return;
	}
	n_sent =
		mr_worker_send(worker, TO_PORT, replay->frames + replay->at, n);
	/* As the tester's: a copy takes its time. */
	sent_ns = clock_now(&replay->clock);
	for (uint32_t i = 0; i < n_sent && replay->speed != 0; i++)
		if (!(replay->frames[replay->at + i].flags & MR_FRAME_MORE))
			hist_add(&replay->lateness,
				 sent_ns - replay->due_ns[replay->at + i]);
	if (n_sent > 0)
		replay->last_ns = sent_ns;
	counter_add(&replay->n_sent,
		    mr_frame_n_frames(replay->frames + replay->at, n_sent));
	counter_add(&replay->n_sent_bytes,
		    mr_frame_n_bytes(replay->frames + replay->at, n_sent));
	replay->at += n_sent;
}

static int replay_run(struct mr_worker *worker, void *opaque)
{
	struct replay *replay = opaque;
	struct mr_rxq *rxq = mr_port_rxq(replay->plane.ports[CAPTURE_PORT], 0);
	const uint64_t one = 1;
	bool goes_on = true;

	clock_start(&replay->clock);
	/* 1: a round is never empty; what is waited for is the clock. */
	do {
		if (replay->at == replay->n)
			goes_on = read_burst(replay, worker, rxq);
		else
			send_due(replay, worker);
	} while (mr_worker_wait(worker, 1) && goes_on);
	replay->is_whole = !goes_on || replay->n_loops == 0;
	drop(replay, worker, replay->frames + replay->at,
	     replay->n - replay->at, DROP_SHUTDOWN);
	__atomic_store_n(&replay->has_ended, true, __ATOMIC_RELEASE);
	/* Cannot fail but for being readable already. */
	return write(replay->done_fd, &one, sizeof(one)) < 0 ? -errno : 0;
}

static bool end(void *app)
{
	(void)app;
	return true;
}

static void drop_at_end(void *opaque, struct mr_worker *worker,
			const struct mr_frame *frames, uint32_t n)
{
	drop(opaque, worker, frames, n, DROP_SHUTDOWN);
}

static const struct count_row replay_rows[] = {
	{ "passes", "passes", LIVE_NUMBER },
	{ "unsent", "unsent", LIVE_NUMBER },
	{ "paced", "paced", LIVE_NOTHING },
	{ "late_mean_ns", "ns late on average", LIVE_NUMBER },
	{ "late_p50_ns", "ns half of them", LIVE_NOTHING },
	{ "late_p99_ns", "ns 99 % of them", LIVE_NUMBER },
	{ "late_max_ns", "ns at most", LIVE_NUMBER },
};

enum { N_REPLAY_ROWS = sizeof(replay_rows) / sizeof(replay_rows[0]) };

static const struct count_group replay_group = { "replay", "replay",
						 replay_rows, N_REPLAY_ROWS };

/* How late frames left so far. The sending thread waits for nobody: meanwhile
 * it is told by buckets, at the end exactly. */
static const struct hist *lateness_of(struct replay *replay)
{
	if (__atomic_load_n(&replay->has_ended, __ATOMIC_ACQUIRE))
		return &replay->lateness;
	hist_since(&replay->lateness, &replay->before, &replay->seen);
	return &replay->seen;
}

/* The capture's own count: times of frames do not tell passes apart. */
static uint64_t n_passes(const struct replay *replay)
{
	struct mr_named_count passes = { .value = 0 };

	mr_port_device_stats(replay->plane.ports[CAPTURE_PORT], &passes, 1);
	return passes.value;
}

static void take_counters(struct snapshot *snapshot, void *app)
{
	struct replay *replay = app;
	const struct hist *late = lateness_of(replay);
	struct worker_snapshot *to = &snapshot->workers[0];
	uint64_t *counts = snapshot->groups[0];

	snapshot->about = replay->document;
	snapshot_copy_counters(&to->bursts, &replay->n_bursts, 1);
	snapshot_copy_counters(&to->entries, &replay->n_entries, 1);
	snapshot_copy_counters(to->drops, replay->drops, N_DROPS);
	counts[0] = n_passes(replay);
	counts[1] = to->drops[DROP_LATE] + to->drops[DROP_SHUTDOWN];
	counts[2] = late->n;
	counts[3] = (uint64_t)hist_mean(late);
	counts[4] = hist_at(late, 50);
	counts[5] = hist_at(late, 99);
	counts[6] = late->max;
}

static const struct app_counters counters = {
	.program = "mr-bench replay",
	.drop_names = drop_names,
	.n_drops = N_DROPS,
	.groups = &replay_group,
	.n_groups = 1,
	.take = take_counters,
};

/* Records of the capture that were no whole frame, so far. */
static uint64_t n_unread(const struct replay *replay)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	uint64_t n = 0;

	mr_rxq_stats(mr_port_rxq(replay->plane.ports[CAPTURE_PORT], 0), &stats);
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n += stats.drops[i];
	return n;
}

/* The front end adds the trial, and why it is not all. */
static void tell_trial(struct replay *replay, const struct trial_result *trial)
{
	struct mr_reason why = { .text = "" };
	json_t *document;

	if (!replay->is_whole)
		fail_with(&why, 0, "ended before the capture");
	else if (replay->n_unread > 0)
		fail_with(&why, 0,
			  "%llu records of the capture are damaged, cut off or "
			  "too long, and were not sent",
			  (unsigned long long)replay->n_unread);
	document = relay_ask(replay->options,
			     json_pack("{so ss}", "trial",
				       document_trial(trial), "why_incomplete",
				       why.text));
	json_object_update_new(replay->document, document);
}

/* The worker has ended: all of it is one trial. */
static void add_trial(void *app)
{
	struct replay *replay = app;
	struct trial_result *trial = calloc(1, sizeof(*trial));
	const uint64_t n_unsent =
		replay->drops[DROP_LATE] + replay->drops[DROP_SHUTDOWN];
	const uint64_t due_ns =
		replay->speed == 0 ? 0 :
				     (uint64_t)((double)replay->timing.due_ns /
						replay->speed);

	/* As everywhere in an application: no memory is the end. */
	if (trial == NULL)
		abort();
	trial->due = replay->n_sent + n_unsent;
	trial->sent = replay->n_sent;
	trial->unsent = n_unsent;
	trial->tx_bytes = replay->n_sent_bytes;
	trial->sending_ns = trial->whole_ns = replay->last_ns;
	/* From the first to the last there is one gap less than frames. */
	if (due_ns > 0)
		trial->asked_pps =
			(double)(trial->due - 1) * 1e9 / (double)due_ns;
	if (trial->sent > 1)
		trial->tx_pps = (double)(trial->sent - 1) * 1e9 /
				(double)trial->sending_ns;
	trial->lateness = replay->lateness;
	trial->clock_error_ns =
		clock_error_ns(&replay->clock) + clock_drift_ns(&replay->clock);
	replay->n_unread = n_unread(replay);
	trial->is_cut_short = !replay->is_whole || replay->n_unread > 0;
	tell_trial(replay, trial);
	free(trial);
}

static void describe(struct replay *replay)
{
	json_t *found = relay_found(
		replay->options, &replay->plane, 1 << TO_PORT,
		1 << CAPTURE_PORT,
		json_pack("{so sf si sf}", "file", json_text(replay->path),
			  "speed", replay->speed, "loop", (int)replay->n_loops,
			  "max_lag_s", (double)replay->max_lag_ns / 1e9));

	document_clock(found, clock_source(&replay->clock),
		       clock_error_ns(&replay->clock));
	replay->document = relay_ask(replay->options, found);
}

/* The front end writes them: a process that it left behind, our child. Returns
 * the exit status. */
static int write_files(const struct replay *replay)
{
	int status = 1;

	json_decref(relay_ask(
		replay->options,
		json_pack("{so so ss}", "out", relay_path(replay->out), "csv",
			  relay_path(replay->csv), "why_incomplete",
			  replay->has_ended ? "" : "it did not run")));
	close(replay->options->document_fd);
	fflush(stdout);
	while (wait(&status) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : 1;
}

/* The capture as a port: what a spec takes for its own has a backslash. */
static bool make_spec(const char *path, uint32_t n_loops, char *ret)
{
	int n = snprintf(ret, MAX_SPEC_BYTES, "pcap:rx=");

	for (; *path != '\0' && n < MAX_SPEC_BYTES - 32; path++) {
		if (strchr("\\,=", *path) != NULL)
			ret[n++] = '\\';
		ret[n++] = *path;
	}
	snprintf(ret + n, (size_t)(MAX_SPEC_BYTES - n), ",loop=%u", n_loops);
	return *path == '\0';
}

static int replay_to_port(const struct relay_command *command,
			  const struct relay_options *options)
{
	struct replay *replay = command->own;
	const struct run_fd fds[] = { { replay->done_fd, end } };
	struct run_config config = { .plane = &replay->plane,
				     .counters = &counters,
				     .options = options->run,
				     .work = replay_run,
				     .drop = drop_at_end,
				     .workers = replay,
				     .app = replay,
				     .give_up = add_trial,
				     .fds = fds,
				     .n_fds = 1,
				     .ends_by_fd = true };
	struct mr_reason why;
	int status;

	config.signal_fd = signals_open();
	if (config.signal_fd < 0)
		return relay_complain(command, 1, "no signalfd");
	clock_open(&replay->clock, false);
	status = dataplane_open(&replay->plane, &options->plane, &why);
	if (status == 0) {
		describe(replay);
		status = run(&config);
		if (status == 0 && replay->n_unread > 0)
			status = relay_complain(command, 1,
						"not all of the capture was "
						"sent: records are damaged, "
						"cut off or too long; capture "
						"again, with -s 0");
		if (write_files(replay) != 0)
			status = 1;
		json_decref(replay->document);
		dataplane_close(&replay->plane);
	} else {
		relay_complain(command, status, why.text);
	}
	close(config.signal_fd);
	return status;
}

static int parse_and_replay(const struct relay_command *command, int argc,
			    char **argv)
{
	static const uint32_t sends_to[] = { TO_PORT, TO_PORT };
	struct replay *replay = command->own;
	struct relay_options options;
	char spec[MAX_SPEC_BYTES];
	const char *specs[N_PORTS];
	int first;
	int status = relay_options_main(command, argc, argv, &options, &first);

	if (status >= 0)
		return status;
	if (argc - first != N_PORTS)
		return relay_complain(command, 2,
				      "two words: mr-bench replay FILE PORT");
	if (!make_spec(argv[first], replay->n_loops, spec))
		return relay_complain(command, 2,
				      "the file's name is too long");
	replay->path = argv[first];
	options.label = replay->label;
	replay->options = &options;
	specs[CAPTURE_PORT] = spec;
	specs[TO_PORT] = argv[first + 1];
	options.plane.specs = specs;
	options.plane.n_ports = N_PORTS;
	options.plane.n_workers = 1; /* a capture has one order */
	options.plane.sends_to = sends_to;
	replay->n_burst = options.plane.burst;
	replay->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (replay->done_fd < 0)
		return relay_complain(command, 1, mr_strerror(errno));
	status = replay_to_port(command, &options);
	close(replay->done_fd);
	return status;
}

int replay_main(int argc, char **argv)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	const struct relay_command command = {
		.program = "mr-bench replay",
		.usage = "usage: mr-bench replay [options] FILE PORT\n"
			 "Send the frames of a capture unchanged, with its "
			 "gaps.\n",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.take = take,
		.own = replay,
	};
	int status;

	if (replay == NULL)
		return relay_complain(&command, 1, "no memory");
	replay->speed = 1;
	replay->n_loops = 1;
	replay->max_lag_ns = DEFAULT_LAG_MS * UINT64_C(1000000);
	status = parse_and_replay(&command, argc, argv);
	free(replay);
	return status;
}
