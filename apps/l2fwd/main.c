/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-l2fwd: forward Ethernet frames between ports.
 *
 * The workers forward; this thread waits for signals, link events and the next
 * report, and never touches a frame before the workers have ended.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "support/report.h"

#include "session.h"

enum {
	REPORT_MS = 1000,
	MAX_WAIT_MS = 100, /* also how often link events are looked for */
	JOIN_MS = 5000,
};

struct run {
	const struct options *options;
	const struct report *report; /* NULL: quiet */
	const struct report *last;   /* form of the end */
	struct session session;
	struct snapshot *now, *before;
	uint64_t start_ns;
	int signal_fd;
	bool is_mute;          /* stdout takes no more */
	bool is_up[MAX_PORTS]; /* mode learn: links, when last looked at */
};

static int complain(const char *text)
{
	fprintf(stderr, "mr-l2fwd: %s\n", text);
	return 1;
}

static uint64_t now_ms(const struct run *run)
{
	return (mr_ctx_now_ns(run->session.plane.ctx) - run->start_ns) /
	       1000000;
}

/* Signals come by fd, so nothing is ever interrupted half-way. */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	/* A reader that went away is a write error, not a signal. */
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool show(struct run *run)
{
	struct snapshot *swap = run->before;
	bool is_first = run->now->t_s == 0;
	bool is_shown;

	run->before = run->now;
	run->now = swap;
	snapshot_take(run->now, &run->session.plane, now_ms(run) / 1000.0,
		      &run->session);
	if (run->report == NULL)
		return true;
	is_shown = run->report->show(run->now, is_first ? NULL : run->before);
	if (!is_shown)
		run->is_mute = true;
	return is_shown;
}

/* Behind a link that went down nobody is where they were. */
static void poll_port(struct run *run, uint32_t p)
{
	struct session *session = &run->session;
	struct mr_link link = { 0 };

	mr_port_poll(session->plane.ports[p]);
	if (session->fdb == NULL ||
	    mr_port_link(session->plane.ports[p], &link) < 0)
		return;
	if (run->is_up[p] && !link.is_up)
		fdb_forget_port(session->fdb, p);
	run->is_up[p] = link.is_up;
}

/* Wait for a signal, a port's event, or until until_ms. True: end. */
static bool wait_for_event(struct run *run, uint64_t until_ms)
{
	struct pollfd fds[MAX_PORTS + 2];
	const struct session *session = &run->session;
	const uint64_t now = now_ms(run);
	uint64_t wait_ms = until_ms > now ? until_ms - now : 0;
	struct signalfd_siginfo info;

	if (wait_ms > MAX_WAIT_MS)
		wait_ms = MAX_WAIT_MS;
	fds[0] = (struct pollfd){ .fd = run->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = session->done_fd, .events = POLLIN };
	for (uint32_t p = 0; p < session->plane.n_ports; p++)
		fds[2 + p] = (struct pollfd){ .fd = mr_port_fd(
						      session->plane.ports[p]),
					      .events = POLLIN };
	if (poll(fds, 2 + session->plane.n_ports, (int)wait_ms) < 0 &&
	    errno != EINTR)
		return true;
	if (fds[1].revents != 0)
		return true;
	for (uint32_t p = 0; p < session->plane.n_ports; p++)
		poll_port(run, p);
	if (run->report != NULL && run->report->is_quit != NULL &&
	    run->report->is_quit())
		return true;
	return read(run->signal_fd, &info, sizeof(info)) == sizeof(info);
}

/* Returns 0, or 1 if stdout takes no more. */
static int forward_until_told(struct run *run)
{
	const uint64_t end_ms = run->options->duration_ms;
	uint64_t next_ms = REPORT_MS;

	for (;;) {
		const uint64_t now = now_ms(run);

		if (end_ms > 0 && now >= end_ms)
			return 0;
		if (now >= next_ms) {
			if (!show(run))
				return 1;
			if (run->session.fdb != NULL)
				fdb_age(run->session.fdb,
					(uint32_t)(mr_ctx_now_ns(
							   run->session.plane
								   .ctx) /
						   1000000000u));
			next_ms += REPORT_MS;
			continue;
		}
		if (wait_for_event(run, end_ms > 0 && end_ms < next_ms ?
						end_ms :
						next_ms))
			return 0;
	}
}

/* Stop, drain, close, and look whether everything adds up. */
static int finish(struct run *run, int status)
{
	struct session *session = &run->session;
	struct snapshot *final = run->now;
	struct mr_reason why;
	double t_s;
	int err;

	t_s = now_ms(run) / 1000.0;
	mr_workers_stop(session->plane.workers);
	err = mr_workers_join(session->plane.workers, JOIN_MS, &why);
	if (err == -ETIMEDOUT) {
		/* It still uses its queues: nothing may be freed under it. The
		 * kernel takes back what the process holds. */
		complain(why.text);
		_exit(1);
	}
	if (err < 0)
		status = complain(why.text);
	session_drain(session);
	snapshot_take(final, &session->plane, t_s, session);
	snapshot_check_laws(final);
	dataplane_close_ports(&session->plane);
	snapshot_take_pool(final, &session->plane);
	final->is_final = true;
	if (!run->last->end(final) || run->is_mute)
		status = complain("cannot write to stdout");
	if (!final->laws_hold) {
		fprintf(stderr, "mr-l2fwd: accounting: %s\n",
			final->broken_law);
		status = 1;
	}
	if (!final->is_conserved) {
		fprintf(stderr,
			"mr-l2fwd: %llu of %llu pages did not come "
			"back\n",
			(unsigned long long)(final->pool.n_pages -
					     final->pool.n_free),
			(unsigned long long) final->pool.n_pages);
		status = 1;
	}
	return status;
}

static int forward(struct run *run)
{
	const struct app_counters *counters = session_counters(&run->session);
	struct mr_reason why;
	int status;

	run->now = snapshot_create(&run->session.plane, counters);
	run->before = snapshot_create(&run->session.plane, counters);
	if (run->now == NULL || run->before == NULL)
		return complain("no memory for statistics");
	if (!run->options->is_quiet)
		dataplane_print_map(&run->session.plane, stderr);
	run->start_ns = mr_ctx_now_ns(run->session.plane.ctx);
	if (mr_workers_start(run->session.plane.workers, forward_run,
			     run->session.forwarders, &why) < 0)
		return complain(why.text);
	/* A terminal that ncurses does not know gets lines. */
	if (run->report == &report_live && !report_live.begin())
		run->report = run->last = &report_text;
	if (run->report != NULL && run->report != &report_live &&
	    !run->report->begin())
		run->report = NULL; /* the first line will say so */
	status = forward_until_told(run);
	return finish(run, status);
}

int main(int argc, char **argv)
{
	struct run run = { 0 };
	struct options options;
	struct mr_reason error;
	int status;

	switch (options_parse(argc, argv, &options, &error)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : complain("cannot write");
	case PARSE_WRONG:
		complain(error.text);
		return 2;
	default:
		break;
	}
	run.options = &options;
	run.signal_fd = open_signals();
	if (run.signal_fd < 0)
		return complain("no signalfd");
	run.last = report_choose(options.output, options.is_quiet);
	run.report = options.is_quiet ? NULL : run.last;
	status = session_open(&run.session, &options, &error);
	if (status != 0) {
		complain(error.text);
		return status;
	}
	status = forward(&run);
	snapshot_destroy(run.before);
	snapshot_destroy(run.now);
	session_close(&run.session);
	close(run.signal_fd);
	return status;
}
