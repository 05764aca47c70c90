/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a plan, done one after the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/child.h"
#include "plan/series.h"
#include "support/text.h"

enum {
	PATH_CHARS = PLAN_PATH_CHARS + 4 * PLAN_NAME_CHARS + 16,
	COMMAND_CHARS = 6 * PLAN_COMMAND_CHARS,
	READY_S = 30,  /* for a device to become ready */
	HELPER_S = 60, /* for before, after and stop to end */
};

/* What is under test at the moment. */
struct device {
	bool is_up, is_failed;
	uint32_t which, round;
	pid_t pid;  /* 0: its start command has ended, */
	pid_t left; /* and left this group behind; 0: nothing */
};

struct run {
	const struct series *series;
	struct series_end *end;
	struct device device;
	double planned_s, taken_s; /* of the steps that were done */
};

void print_time(double seconds, char *ret, size_t n_bytes)
{
	const unsigned minutes = (unsigned)(seconds / 60 + 0.5);

	if (seconds < 99.5)
		snprintf(ret, n_bytes, "%.0f s", seconds);
	else if (minutes < 100)
		snprintf(ret, n_bytes, "%u min", minutes);
	else
		snprintf(ret, n_bytes, "%u h %u min", minutes / 60,
			 minutes % 60);
}

static void log_path(const struct run *run, const char *name, char *ret,
		     size_t n_bytes)
{
	journal_path(run->series->journal, name, ".log", ret, n_bytes);
}

/* The last line that a program left, for what is said of its failure. */
static void last_line(const char *log, char *ret, size_t n_bytes)
{
	char line[200];
	FILE *from = fopen(log, "re");

	ret[0] = '\0';
	if (from == NULL)
		return;
	while (fgets(line, sizeof(line), from) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] != '\0')
			snprintf(ret, n_bytes, "%s", line);
	}
	fclose(from);
}

static void complain(const char *who, int status, const char *log)
{
	char line[200];

	last_line(log, line, sizeof(line));
	print_error("mr-bench: plan: %s: exit status %d: %s (%s)", who, status,
		    line, log);
}

/* before, after, stop: to the end, whatever signal comes. */
static int help_with(const struct run *run, const char *name,
		     const char *command, struct mr_reason *why)
{
	char log[PATH_CHARS];
	int status = 0;
	pid_t pid;

	if (command[0] == '\0')
		return 0;
	log_path(run, name, log, sizeof(log));
	pid = child_start(command, log, why);
	if (pid < 0)
		return pid;
	if (!child_finish(pid, HELPER_S, &status)) {
		child_stop(pid);
		status = 128;
	}
	if (status == 0)
		return 0;
	complain(name, status, log);
	snprintf(why->text, sizeof(why->text), "%s: exit status %d; see %.250s",
		 name, status, log);
	return -ECHILD;
}

static void stop_device(struct run *run)
{
	struct device *device = &run->device;
	const struct plan_device *is =
		&run->series->plan->devices[device->which];
	struct mr_reason why;

	if (!device->is_up)
		return;
	if (device->pid != 0)
		child_stop(device->pid);
	(void)help_with(run, is->name, is->stop, &why);
	if (device->left != 0)
		child_stop(device->left);
	*device = (struct device){ .is_up = false };
}

/* False: it has ended and was not to, or a signal came. One that sets something
 * up ends with 0, which may be later than it is ready. */
static bool check_device(struct run *run)
{
	struct device *device = &run->device;
	const struct plan_device *is =
		&run->series->plan->devices[device->which];
	char log[PATH_CHARS];
	int status;

	if (device->pid == 0 ||
	    child_wait(device->pid, 0, &status) != CHILD_ENDED)
		return !child_is_ending();
	device->left = child_is_group_there(device->pid) ? device->pid : 0;
	device->pid = 0;
	if (status == 0)
		return true;
	log_path(run, is->name, log, sizeof(log));
	complain(is->name, status, log);
	return false;
}

static bool is_ready(struct run *run, const struct plan_device *is)
{
	const double end_s = child_now_s() + READY_S;
	struct mr_reason why;
	char log[PATH_CHARS];

	log_path(run, is->name, log, sizeof(log));
	while (check_device(run) && child_now_s() < end_s) {
		int status = 1;
		const pid_t pid = child_start(is->ready, log, &why);

		if (pid < 0)
			return false;
		if (child_wait(pid, READY_S, &status) != CHILD_ENDED)
			child_stop(pid);
		else if (status == 0)
			return true;
		(void)child_sleep(0.1);
	}
	if (child_now_s() >= end_s)
		fprintf(stderr,
			"mr-bench: plan: %s: not ready within %d s: '%s' "
			"fails; see %s\n",
			is->name, READY_S, is->ready, log);
	return false;
}

static bool start_device(struct run *run, const struct step *step)
{
	const struct plan_device *is =
		&run->series->plan->devices[step->device];
	struct device *device = &run->device;
	struct mr_reason why;
	char log[PATH_CHARS];

	*device = (struct device){ .is_up = true,
				   .which = step->device,
				   .round = step->round };
	if (is->start[0] == '\0')
		return true;
	log_path(run, is->name, log, sizeof(log));
	device->pid = child_start(is->start, log, &why);
	if (device->pid < 0) {
		print_error("mr-bench: plan: %s", why.text);
		device->pid = 0;
		return false;
	}
	if (is->ready[0] != '\0')
		return is_ready(run, is) && child_sleep(is->wait_s) &&
		       check_device(run);
	return child_sleep(is->wait_s > 0 ? is->wait_s : 1) &&
	       check_device(run);
}

/* True: what the step measures is there. */
static bool have_device(struct run *run, const struct step *step)
{
	struct device *device = &run->device;

	if (device->is_up && device->which == step->device &&
	    device->round == step->round) {
		if (!device->is_failed)
			device->is_failed = !check_device(run);
		return !device->is_failed;
	}
	stop_device(run);
	device->is_failed = !start_device(run, step);
	return !device->is_failed;
}

static double time_of(const struct run *run, const struct step *step)
{
	return run->series->plan->measures[step->measure].time_s;
}

struct key {
	char words[2 * PLAN_COMMAND_CHARS], setup[PLAN_SETUP_CHARS];
	struct journal_key of;
};

static void make_key(const struct series *series, const struct step *step,
		     struct key *ret)
{
	step_words(series->plan, step, ret->words, sizeof(ret->words));
	step_setup(series->plan, step, ret->setup, sizeof(ret->setup));
	ret->of = (struct journal_key){ .run = ret->words,
					.setup = ret->setup,
					.program = series->program };
}

static bool is_done(const struct series *series, const struct step *step)
{
	struct key key;

	make_key(series, step, &key);
	return journal_has(series->journal, step->name, &key.of);
}

/* Of the steps from the i-th on; as those that were done, so much longer. */
static double time_left(const struct run *run, uint32_t i)
{
	const struct series *series = run->series;
	const double factor =
		run->planned_s > 0 ? run->taken_s / run->planned_s : 1;
	double sum = 0;

	for (; i < series->n_steps; i++)
		if (!is_done(series, &series->steps[i]))
			sum += time_of(run, &series->steps[i]);
	return sum * factor;
}

static void say_step(const struct run *run, uint32_t i)
{
	const struct series *series = run->series;
	char title[200], left[40];

	if (series->is_quiet)
		return;
	step_title(series->plan, &series->steps[i], title, sizeof(title));
	print_time(time_left(run, i), left, sizeof(left));
	fprintf(stderr, "[%u/%u] %s; about %s left\n", i + 1, series->n_steps,
		title, left);
}

/* A result of before, of whatever it was, is gone. Names that the shell would
 * take apart reach it as variables. */
static void make_command(const struct run *run, const struct step *step,
			 const char *words, char *ret, size_t n_bytes)
{
	const struct series *series = run->series;
	char path[PATH_CHARS], title[200];

	journal_path(series->journal, step->name, ".json", path, sizeof(path));
	step_title(series->plan, step, title, sizeof(title));
	unlink(path);
	setenv("MR_OUT", path, 1);
	setenv("MR_LABEL", title, 1);
	snprintf(ret, n_bytes,
		 "%s \"$MR_BENCH\" %s --quiet --out \"$MR_OUT\" "
		 "--label \"$MR_LABEL\"",
		 series->plan->prefix, words);
}

/* What was measured so far is not a result, and is kept as something else. */
static void set_aside(const struct run *run, const struct step *step)
{
	const struct journal *journal = run->series->journal;
	char path[PATH_CHARS], aside[PATH_CHARS];

	journal_path(journal, step->name, ".json", path, sizeof(path));
	journal_path(journal, step->name, ".json.failed", aside, sizeof(aside));
	(void)rename(path, aside); /* or there is none */
}

/* What was measured of a device that ended meanwhile is not its result. */
static int look_behind(struct run *run, const struct step *step, int status)
{
	if (child_is_ending() || check_device(run))
		return status;
	run->device.is_failed = true;
	print_error(
		"mr-bench: plan: %s: the device ended while it was measured",
		step->name);
	return status != 0 ? status : 1;
}

/* 0: go on; -errno: no more can be done. */
static int do_step(struct run *run, const struct step *step,
		   struct mr_reason *why)
{
	const struct series *series = run->series;
	const struct plan_measure *measure =
		&series->plan->measures[step->measure];
	char command[COMMAND_CHARS];
	struct key key;
	const double begin_s = child_now_s();
	char log[PATH_CHARS];
	enum child_end end;
	int status = 1;
	pid_t pid;

	make_key(series, step, &key);
	make_command(run, step, key.words, command, sizeof(command));
	log_path(run, step->name, log, sizeof(log));
	unlink(log);
	pid = child_start(command, log, why);
	if (pid < 0)
		return pid;
	end = child_wait(pid, measure->limit_s, &status);
	if (end != CHILD_ENDED)
		child_stop(pid);
	if (end == CHILD_STOPPED) {
		set_aside(run, step);
		return 0;
	}
	if (end == CHILD_LATE) {
		status = 124; /* as timeout(1) */
		fprintf(stderr,
			"mr-bench: plan: %s: ended after %u s; a higher "
			"'limit' in the plan gives it more\n",
			step->name, measure->limit_s);
	} else if (status != 0) {
		complain(step->name, status, log);
	}
	status = look_behind(run, step, status);
	if (status != 0)
		set_aside(run, step);
	run->planned_s += measure->time_s;
	run->taken_s += child_now_s() - begin_s;
	run->end->n_failed += status != 0;
	run->end->n_done += status == 0;
	return journal_note(series->journal, step->name, &key.of,
			    child_now_s() - begin_s, status, why);
}

static int do_steps(struct run *run, struct mr_reason *why)
{
	const struct series *series = run->series;
	int err = 0;

	for (uint32_t i = 0;
	     i < series->n_steps && err == 0 && !child_is_ending(); i++) {
		if (is_done(series, &series->steps[i])) {
			run->end->n_before++;
			continue;
		}
		say_step(run, i);
		if (have_device(run, &series->steps[i]))
			err = do_step(run, &series->steps[i], why);
		else
			run->end->n_failed += !child_is_ending();
	}
	stop_device(run);
	return err;
}

int series_run(const struct series *series, struct series_end *ret,
	       struct mr_reason *why)
{
	struct run run = { .series = series, .end = ret };
	struct mr_reason why_after;
	int err;

	*ret = (struct series_end){ .n_done = 0 };
	if (time_left(&run, 0) > 0) {
		err = help_with(&run, "before", series->plan->before, why);
		if (err == 0)
			err = do_steps(&run, why);
		/* What is first wrong is said. */
		if (help_with(&run, "after", series->plan->after, &why_after) <
			    0 &&
		    err == 0) {
			*why = why_after;
			err = -ECHILD;
		}
	} else {
		ret->n_before = series->n_steps;
		err = 0;
	}
	ret->is_cut_short = child_is_ending();
	return err;
}

void series_list(const struct series *series)
{
	const struct run run = { .series = series };
	char words[2 * PLAN_COMMAND_CHARS], left[40];

	for (uint32_t i = 0; i < series->n_steps; i++) {
		const struct step *step = &series->steps[i];

		step_words(series->plan, step, words, sizeof(words));
		printf("%4u %-4s %4.0f s  %-16s mr-bench %s\n", i + 1,
		       is_done(series, step) ? "done" : "", time_of(&run, step),
		       series->plan->devices[step->device].name, words);
	}
	print_time(time_left(&run, 0), left, sizeof(left));
	printf("%u steps, about %s to go; results: %s\n", series->n_steps, left,
	       series->journal->folder);
}
