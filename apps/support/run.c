/* SPDX-License-Identifier: BSD-3-Clause */
/* From the start of the workers to the last report. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "run.h"

enum {
	REPORT_MS = 1000,
	MAX_WAIT_MS = 100, /* also how often link events are looked for */
	JOIN_MS = 5000,
};

struct running {
	const struct run_config *config;
	struct dataplane *plane;
	const struct report *report; /* NULL: quiet */
	const struct report *last;   /* form of the end */
	struct snapshot *now, *before;
	uint64_t start_ns;
	bool is_mute; /* stdout takes no more */
};

static int complain(const struct running *run, const char *text)
{
	fprintf(stderr, "%s: %s\n", run->plane->program, text);
	return 1;
}

static uint64_t now_ms(const struct running *run)
{
	return (mr_ctx_now_ns(run->plane->ctx) - run->start_ns) / 1000000;
}

/* Signals come by fd, so nothing is ever interrupted half-way. */
int run_open_signals(void)
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

static bool show(struct running *run)
{
	struct snapshot *swap = run->before;
	bool is_first = run->now->t_s == 0;
	bool is_shown;

	run->before = run->now;
	run->now = swap;
	snapshot_take(run->now, run->plane, now_ms(run) / 1000.0,
		      run->config->app);
	if (run->report == NULL)
		return true;
	is_shown = run->report->show(run->now, is_first ? NULL : run->before);
	if (!is_shown)
		run->is_mute = true;
	return is_shown;
}

/* True: end. */
static bool take_signal(struct running *run)
{
	struct signalfd_siginfo info;

	if (read(run->config->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGHUP || run->config->hang_up == NULL)
		return true;
	run->config->hang_up(run->config->app);
	return false;
}

/* Wait for a signal, an event, or until until_ms. True: end. */
static bool wait_for_event(struct running *run, uint64_t until_ms)
{
	const struct run_config *config = run->config;
	const uint32_t n_ports = run->plane->n_ports;
	struct pollfd fds[1 + MAX_RUN_FDS + MAX_PORTS];
	struct pollfd *own = fds + 1, *ports = own + config->n_fds;
	const uint64_t now = now_ms(run);
	uint64_t wait_ms = until_ms > now ? until_ms - now : 0;

	if (wait_ms > MAX_WAIT_MS)
		wait_ms = MAX_WAIT_MS;
	fds[0] = (struct pollfd){ .fd = config->signal_fd, .events = POLLIN };
	for (uint32_t i = 0; i < config->n_fds; i++)
		own[i] = (struct pollfd){ .fd = config->fds[i].fd,
					  .events = POLLIN };
	for (uint32_t p = 0; p < n_ports; p++)
		ports[p] =
			(struct pollfd){ .fd = mr_port_fd(run->plane->ports[p]),
					 .events = POLLIN };
	if (poll(fds, 1 + config->n_fds + n_ports, (int)wait_ms) < 0 &&
	    errno != EINTR)
		return true;
	for (uint32_t i = 0; i < config->n_fds; i++)
		if (own[i].revents != 0 && config->fds[i].ready(config->app))
			return true;
	for (uint32_t p = 0; p < n_ports; p++) {
		mr_port_poll(run->plane->ports[p]);
		if (config->port_event != NULL)
			config->port_event(config->app, p);
	}
	if (run->report != NULL && run->report->is_quit != NULL &&
	    run->report->is_quit())
		return true;
	return take_signal(run);
}

/* Returns 0, or 1 if stdout takes no more. */
static int forward_until_told(struct running *run)
{
	const uint64_t end_ms = run->config->options.duration_ms;
	uint64_t next_ms = REPORT_MS;

	for (;;) {
		const uint64_t now = now_ms(run);

		if (end_ms > 0 && now >= end_ms)
			return 0;
		if (now >= next_ms) {
			if (!show(run))
				return 1;
			if (run->config->each_second != NULL)
				run->config->each_second(run->config->app);
			/* After a stall, one line: not one per second of it. */
			next_ms = now - now % REPORT_MS + REPORT_MS;
			continue;
		}
		if (wait_for_event(run, end_ms > 0 && end_ms < next_ms ?
						end_ms :
						next_ms))
			return 0;
	}
}

/* Stop, drain, close, and look whether everything adds up. */
static int finish(struct running *run, int status)
{
	struct dataplane *plane = run->plane;
	struct snapshot *final = run->now;
	struct mr_reason why;
	double t_s;
	int err;

	t_s = now_ms(run) / 1000.0;
	mr_workers_stop(plane->workers);
	err = mr_workers_join(plane->workers, JOIN_MS, &why);
	if (err == -ETIMEDOUT) {
		/* It still uses its queues: nothing may be freed under it. The
		 * kernel takes back what the process holds. */
		complain(run, why.text);
		_exit(1);
	}
	if (err < 0)
		status = complain(run, why.text);
	if (run->config->give_up != NULL)
		run->config->give_up(run->config->app);
	dataplane_drain(plane, run->config->drop, run->config->workers);
	snapshot_take(final, plane, t_s, run->config->app);
	snapshot_take_device_stats(final, plane);
	snapshot_check_laws(final);
	dataplane_close_ports(plane);
	snapshot_take_pool(final, plane);
	final->is_final = true;
	if (!run->last->end(final) || run->is_mute)
		status = complain(run, "cannot write to stdout");
	if (!final->laws_hold) {
		fprintf(stderr, "%s: accounting: %s\n", plane->program,
			final->broken_law);
		status = 1;
	}
	if (!final->is_conserved) {
		fprintf(stderr, "%s: %llu of %llu pages did not come back\n",
			plane->program,
			(unsigned long long)(final->pool.n_pages -
					     final->pool.n_free),
			(unsigned long long) final->pool.n_pages);
		status = 1;
	}
	return status;
}

static int forward(struct running *run)
{
	const struct run_config *config = run->config;
	struct mr_reason why;

	if (run->now == NULL || run->before == NULL)
		return complain(run, "no memory for statistics");
	if (!config->options.is_quiet)
		dataplane_print_map(run->plane, stderr);
	run->start_ns = mr_ctx_now_ns(run->plane->ctx);
	if (mr_workers_start(run->plane->workers, config->work, config->workers,
			     &why) < 0)
		return complain(run, why.text);
	/* A terminal that ncurses does not know gets lines. */
	if (run->report == &report_live && !report_live.begin())
		run->report = run->last = &report_text;
	if (run->report != NULL && run->report != &report_live &&
	    !run->report->begin())
		run->report = NULL; /* the first line will say so */
	return finish(run, forward_until_told(run));
}

int run(const struct run_config *config)
{
	struct running all = {
		.config = config,
		.plane = config->plane,
		.last = report_choose(config->options.output,
				      config->options.is_quiet),
		.now = snapshot_create(config->plane, config->counters),
		.before = snapshot_create(config->plane, config->counters),
	};
	int status;

	all.report = config->options.is_quiet ? NULL : all.last;
	status = forward(&all);
	snapshot_destroy(all.before);
	snapshot_destroy(all.now);
	return status;
}
