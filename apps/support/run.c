/* SPDX-License-Identifier: BSD-3-Clause */
/* From the start of the workers to the last report. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "background.h"
#include "keeper.h"
#include "notify.h"
#include "run.h"
#include "run_ports.h"
#include "signals.h"
#include "text.h"
#include "upgrade.h"

enum {
	REPORT_MS = 1000,
	MAX_WAIT_MS = 100, /* also how often link events are checked */
	STDOUT_MS = 5000,  /* for the rest of the output at the end */
	STUCK_S = 5,       /* report a worker that does no round for so long */
	N_SERVED = 2,      /* fds of the control socket and the successor */
};

/*
 * Only the writer thread writes to stdout, so that nobody else waits for its
 * reader. While busy, it owns this struct.
 */
struct display {
	const struct report *report;
	struct snapshot *now, *before; /* before: the last one shown, if any */
	bool has_before;
	int err; /* why stdout did not take the last one; 0: it did */
	_Atomic uint64_t n_skipped; /* not taken, or the writer was busy */
};

struct running {
	const struct run_config *config;
	struct dataplane *plane;
	struct background *writer;
	struct display display;
	struct snapshot *next; /* the snapshot that the writer does not have */
	uint64_t start_ns;
	bool is_warned;                  /* about stdout that fails or blocks */
	struct run_ports ports;
	struct upgrade *upgrade;
	bool is_handed_over;             /* the successor has everything */
	bool is_ready_known;             /* systemd has READY=1 */
	struct {
		uint64_t n_rounds; /* as last seen */
		uint32_t n_stuck;  /* seconds since it changed */
	} workers[MR_WORKERS_MAX];
};

static int print_why(const struct running *run, const char *text)
{
	print_error("%s: %s", run->plane->program, text);
	return 1;
}

static uint64_t now_ms(const struct running *run)
{
	return (mr_ctx_now_ns(run->plane->ctx) - run->start_ns) / 1000000;
}

/*
 * Between print_error()'s poll() and write(), another process may fill the
 * pipe. O_NONBLOCK belongs to the open file, which other processes share, so
 * reopen it if possible.
 */
static void unblock_stderr(void)
{
	struct stat stat;
	int fd;

	if (fstat(STDERR_FILENO, &stat) < 0 ||
	    !(S_ISFIFO(stat.st_mode) || S_ISCHR(stat.st_mode)))
		return;
	fd = open("/proc/self/fd/2",
		  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* What stdout did not take must not be written later. */
static void note_written(struct display *display, bool is_written)
{
	display->err = is_written ? 0 : errno;
	if (is_written)
		return;
	atomic_fetch_add(&display->n_skipped, 1);
	__fpurge(stdout);
	clearerr(stdout);
}

/* Jobs of the writer thread. */
static void write_next(void *opaque)
{
	struct display *display = opaque;

	note_written(display, display->report->show(display->now,
						    display->has_before ?
							    display->before :
							    NULL));
	display->has_before = true;
}

static void write_last(void *opaque)
{
	struct display *display = opaque;

	note_written(display, display->report->end(display->now));
}

/* Swap run->next for an older snapshot of the writer, which is idle. */
static void hand_over(struct running *run, void (*job)(void *))
{
	struct display *display = &run->display;
	struct snapshot *oldest = display->before;

	run->next->n_skipped = atomic_load(&display->n_skipped);
	display->before = display->now;
	display->now = run->next;
	run->next = oldest;
	background_do(run->writer, job, display);
}

/* Only once: stderr may be the same as stdout. */
static void warn_about_stdout(struct running *run, const char *why)
{
	if (!run->is_warned)
		print_error("%s: stdout: %s; reports that cannot be written "
			    "are skipped and counted",
			    run->plane->program, why);
	run->is_warned = true;
}

static void show_report(struct running *run)
{
	snapshot_take(run->next, run->plane, now_ms(run) / 1000.0,
		      run->config->app);
	if (run->config->options.is_quiet)
		return;
	if (!background_is_idle(run->writer)) {
		atomic_fetch_add(&run->display.n_skipped, 1);
		warn_about_stdout(run, "nothing is reading it");
		return;
	}
	if (run->display.err != 0)
		warn_about_stdout(run, mr_strerror(run->display.err));
	hand_over(run, write_next);
}

/* True: stop. */
static bool take_signal(struct running *run)
{
	switch (signals_take(run->config->signal_fd)) {
	case SIGNALS_END:
		return true;
	case SIGNALS_RELOAD:
		if (upgrade_is_running(run->upgrade))
			print_why(run, "SIGHUP: busy: an upgrade is under way; "
				       "nothing has changed");
		else if (run->config->hang_up != NULL)
			run->config->hang_up(run->config->app);
		else
			print_why(run, "SIGHUP: no configuration to reload");
		return false;
	default:
		return false;
	}
}

static bool has_control_work(const struct run_config *config)
{
	return config->control != NULL && control_has_work(config->control);
}

/* True: the successor has everything; the client has been told. */
static bool serve_upgrade(struct running *run)
{
	const bool was_running = upgrade_is_running(run->upgrade);

	run->is_handed_over = upgrade_serve(run->upgrade);
	run->ports.is_frozen = upgrade_is_running(run->upgrade);
	if (was_running && run->config->control != NULL)
		control_advance(run->config->control);
	return run->is_handed_over;
}

/* Wait for a signal, an event, or until_ms. True: stop. */
static bool wait_for_event(struct running *run, uint64_t until_ms)
{
	const struct run_config *config = run->config;
	const uint32_t n_ports = run->plane->n_ports;
	struct pollfd fds[1 + N_SERVED + MAX_RUN_FDS + MAX_PORTS];
	struct pollfd *own = fds + 1 + N_SERVED, *ports = own + config->n_fds;
	const uint64_t now = now_ms(run);
	uint64_t wait_ms = until_ms > now ? until_ms - now : 0;

	if (wait_ms > MAX_WAIT_MS)
		wait_ms = MAX_WAIT_MS;
	if (has_control_work(config))
		wait_ms = 0;
	fds[0] = (struct pollfd){ .fd = config->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = config->control != NULL ?
						control_fd(config->control) :
						-1,
				  .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = upgrade_socket(run->upgrade),
				  .events = POLLIN };
	for (uint32_t i = 0; i < config->n_fds; i++)
		own[i] = (struct pollfd){ .fd = config->fds[i].fd,
					  .events = POLLIN };
	for (uint32_t p = 0; p < n_ports; p++)
		ports[p] =
			(struct pollfd){ .fd = mr_port_fd(run->plane->ports[p]),
					 .events = POLLIN };
	if (poll(fds, 1 + N_SERVED + config->n_fds + n_ports, (int)wait_ms) <
		    0 &&
	    errno != EINTR)
		return true;
	if (fds[1].revents != 0 || has_control_work(config))
		control_serve(config->control);
	if (serve_upgrade(run))
		return true;
	for (uint32_t i = 0; i < config->n_fds; i++)
		if (own[i].revents != 0 && config->fds[i].ready(config->app))
			return true;
	if (run_ports_poll(&run->ports))
		return true;
	if (!config->ends_by_fd && run_ports_have_ended(&run->ports))
		return true;
	return take_signal(run);
}

/* Whether each worker has done a round since the last call. A sleeping worker
 * wakes ten times a second. */
static bool all_advance(struct running *run)
{
	bool do_all = true;

	for (uint32_t w = 0; w < run->plane->n_workers; w++) {
		struct mr_worker_stats now = { .size = sizeof(now) };

		mr_worker_stats(mr_workers_get(run->plane->workers, w), &now);
		if (now.rounds != run->workers[w].n_rounds) {
			run->workers[w].n_rounds = now.rounds;
			run->workers[w].n_stuck = 0;
			continue;
		}
		do_all = false;
		if (++run->workers[w].n_stuck == STUCK_S)
			print_error("%s: worker %u has been stuck for %u "
				    "seconds; the watchdog is not fed until it "
				    "continues",
				    run->plane->program, w, STUCK_S);
	}
	return do_all;
}

static void forward_until_told(struct running *run)
{
	const uint64_t end_ms = run->config->options.duration_ms;
	uint64_t next_ms = REPORT_MS;

	for (;;) {
		const uint64_t now = now_ms(run);

		if (end_ms > 0 && now >= end_ms)
			return;
		if (now >= next_ms) {
			show_report(run);
			if (!run->is_ready_known)
				run->is_ready_known = notify("READY=1");
			if (all_advance(run))
				(void)notify("WATCHDOG=1");
			keeper_tick(run->plane->open);
			if (run->config->each_second != NULL)
				run->config->each_second(run->config->app);
			if (run->config->control != NULL)
				control_tick(run->config->control);
			/* After a stall, print one line, not one per second. */
			next_ms = now - now % REPORT_MS + REPORT_MS;
			continue;
		}
		if (wait_for_event(run, end_ms > 0 && end_ms < next_ms ?
						end_ms :
						next_ms))
			return;
	}
}

/* The last report. Returns the exit status. */
static int end_output(struct running *run, int status)
{
	struct display *display = &run->display;
	const bool is_idle = background_wait(run->writer, STDOUT_MS);

	if (is_idle)
		hand_over(run, write_last);
	if (!is_idle || !background_wait(run->writer, STDOUT_MS)) {
		if (background_destroy(run->writer))
			run->writer = NULL;
		__fpurge(stdout); /* exit() would also wait */
		return print_why(run, "stdout: nothing is reading it; the last "
				      "report is lost");
	}
	if (display->err == 0)
		return status;
	print_error("%s: cannot write to stdout: %s", run->plane->program,
		    mr_strerror(display->err));
	return 1;
}

/* Take the last counters, and check them. Closes the ports. */
static void take_last(struct running *run, double t_s)
{
	struct snapshot *last = run->next;

	snapshot_take(last, run->plane, t_s, run->config->app);
	snapshot_take_device_stats(last, run->plane);
	snapshot_check_invariants(last);
	dataplane_close_ports(run->plane);
	snapshot_take_pool(last, run->plane);
	last->is_final = true;
}

/* A successor that is still starting ends with this process. */
static void end_upgrade(struct running *run)
{
	if (!upgrade_is_running(run->upgrade))
		return;
	upgrade_cancel(run->upgrade);
	if (run->config->control != NULL) /* its client waits */
		control_advance(run->config->control);
}

/* Leave everything to the successor. */
static int leave_run(struct running *run)
{
	if (run->config->leave != NULL)
		run->config->leave(run->config->app);
	if (run->config->control != NULL)
		control_leave(run->config->control);
	(void)background_wait(run->writer, STDOUT_MS);
	return 0;
}

/* Stop, drain, close, and check that everything adds up. */
static int finish_run(struct running *run)
{
	struct dataplane *plane = run->plane;
	struct snapshot *final = run->next;
	const double t_s = now_ms(run) / 1000.0;
	struct mr_reason why;
	int err, status = run->ports.is_lost;

	mr_workers_stop(plane->workers);
	err = dataplane_join(plane, &why);
	if (err == -ETIMEDOUT) {
		/* It still uses its queues, so nothing may be freed. The kernel
		 * reclaims what the process holds. */
		print_why(run, why.text);
		_exit(1);
	}
	if (err < 0)
		status = print_why(run, why.text);
	if (run->config->give_up != NULL)
		run->config->give_up(run->config->app);
	mr_dataplane_drain(plane->open, DATAPLANE_DRAIN_MS, run->config->drop,
			   run->config->workers);
	take_last(run, t_s);
	status = end_output(run, status);
	if (!final->invariants_hold) {
		print_error("%s: accounting: %s", plane->program,
			    final->broken_invariant);
		status = 1;
	}
	if (!final->is_conserved) {
		print_error("%s: %llu of %llu pages did not come back",
			    plane->program,
			    (unsigned long long)(final->pool.n_pages -
						 final->pool.n_free),
			    (unsigned long long) final->pool.n_pages);
		status = 1;
	}
	return status;
}

static int start_and_forward(struct running *run)
{
	const struct run_config *config = run->config;
	struct control_view view = { .plane = run->plane,
				     .capture = config->capture,
				     .counters = config->counters,
				     .app = config->app,
				     .n_skipped = &run->display.n_skipped,
				     .upgrade = run->upgrade };
	struct mr_reason why;

	if (run->next == NULL || run->display.now == NULL ||
	    run->display.before == NULL || run->upgrade == NULL)
		return print_why(run, "no memory for statistics");
	if (run->writer == NULL)
		return print_why(run, "no thread for stdout");
	if (config->options.config_path != NULL && signals_ignore_hang_up())
		print_why(run, "note: SIGHUP was ignored at the start, so it "
			       "does not reload the configuration");
	unblock_stderr();
	run->start_ns = mr_ctx_now_ns(run->plane->ctx);
	if (config->plane->is_taken_over &&
	    upgrade_take(config, &run->start_ns, &why) < 0)
		return print_why(run, why.text);
	view.start_ns = run->start_ns;
	if (!config->options.is_quiet)
		dataplane_print_map(run->plane);
	if (config->control != NULL && !control_begin(config->control, &view)) {
		print_error("%s: control socket: %s", run->plane->program,
			    mr_strerror(errno));
		return 1;
	}
	if (mr_workers_start(run->plane->workers, config->work, config->workers,
			     &why) < 0)
		return print_why(run, why.text);
	upgrade_tell_start(run->plane);
	run_ports_begin(&run->ports, config);
	run->is_ready_known = notify("READY=1");
	keeper_tick(run->plane->open);
	forward_until_told(run);
	keeper_leave();
	if (run->is_handed_over)
		return leave_run(run);
	end_upgrade(run);
	(void)notify("STOPPING=1");
	return finish_run(run);
}

static struct snapshot *new_snapshot(const struct run_config *config)
{
	return snapshot_create(config->plane, config->counters);
}

int run(const struct run_config *config)
{
	struct running all = {
		.config = config,
		.plane = config->plane,
		.writer = background_create(-1),
		.display = { .report = config->options.is_json ? &report_json :
								 &report_text,
			     .now = new_snapshot(config),
			     .before = new_snapshot(config) },
		.next = new_snapshot(config),
		.upgrade = upgrade_create(config, &all.start_ns),
	};
	const int status = start_and_forward(&all);

	if (!background_destroy(all.writer))
		return status; /* which still uses the rest */
	snapshot_destroy(all.display.before);
	snapshot_destroy(all.display.now);
	snapshot_destroy(all.next);
	upgrade_destroy(all.upgrade);
	return status;
}
