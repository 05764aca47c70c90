/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench mem, flow, fwd: workloads, each beside its peers. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "machine.h"
#include "mem.h"
#include "peer_dpdk.h"
#include "report.h"
#include "support/text.h"
#include "team.h"
#include "workloads.h"

/* By number. A file of mem/ adds its line here. */
static const struct workload *const mem_workloads[] = {
	&b01_baseline,  &b02_pp_fast,  &b03_pp_ring,      &b04_pp_slow,
	&b05_pp_cross,  &b06_bulk,     &b07_sunrpc,       &b08_xdp_drop,
	&b09_frag_pp,   &b10_frag_mix, &b11_frag_abort,   &b12_qmempool,
	&b13_dpdk_perf, &b14_pipeline, &b15_pipeline_qos, &b16_fwd_shared,
	&b17_txcompl,   &b18_recycle,  &b19_preempt,      &b20_cost_of_safety,
	&b21_policy,    &b22_shrink,   &b23_ring,         NULL,
};

/* Those of flow/. */
static const struct workload *const flow_workloads[] = {
	&f01_hit, &f02_miss, &f03_replace, &f04_fill, &f05_wheel, NULL,
};

/* Those of fwd/. */
static const struct workload *const fwd_workloads[] = {
	&w01_forward,
	&w02_build,
	NULL,
};

static const struct workload *const *workloads_of(const struct options *options)
{
	return strcmp(options->command, "flow") == 0 ? flow_workloads :
	       strcmp(options->command, "fwd") == 0  ? fwd_workloads :
						       mem_workloads;
}

static int complain(const char *text)
{
	print_error("mr-bench: %s", text);
	return 1;
}

static void end_soon(int signal_number)
{
	__atomic_store_n(&bench_end_signal, signal_number, __ATOMIC_RELAXED);
}

static void catch_signals(void)
{
	/* A second one ends the program at once. */
	struct sigaction action = { .sa_handler = end_soon,
				    .sa_flags = SA_RESETHAND | SA_RESTART };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL); /* the limit of --goals */
	/* A reader that went away is a write error, not a signal. */
	signal(SIGPIPE, SIG_IGN);
}

/* The cores asked for, of those that this process may use; or all of these. */
static int choose_cores(struct bench *bench, struct mr_reason *why)
{
	const struct options *options = bench->options;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) < 0) {
		snprintf(why->text, sizeof(why->text), "sched_getaffinity: %m");
		return -1;
	}
	for (uint32_t i = 0; i < options->n_cores; i++) {
		if (!CPU_ISSET(options->cores[i], &set)) {
			snprintf(why->text, sizeof(why->text),
				 "--cores: core %u is not there or may not be "
				 "used",
				 options->cores[i]);
			return -1;
		}
		bench->cores[bench->n_cores++] = options->cores[i];
	}
	for (uint32_t c = 0; options->n_cores == 0 && c < CPU_SETSIZE &&
			     bench->n_cores < MAX_THREADS;
	     c++)
		if (CPU_ISSET(c, &set))
			bench->cores[bench->n_cores++] = c;
	return 0;
}

/* Rows whose names were given must be there. */
static int check_names(struct bench *bench, struct mr_reason *why)
{
	const struct workload *const *workloads = workloads_of(bench->options);

	bench->is_counting = true;
	bench->is_listing = bench->options->is_list;
	for (uint32_t i = 0; workloads[i] != NULL; i++) {
		const struct workload *w = workloads[i];

		if (bench->is_listing)
			printf("%-4s %-14s %s\n", w->name, w->title, w->what);
		bench_run(bench, w);
	}
	bench->is_counting = false;
	if (bench->n_jobs > 0)
		return 0;
	snprintf(why->text, sizeof(why->text),
		 "no row has such a name%s; mr-bench %s --list has them",
		 bench->options->sides != UINT32_MAX ?
			 " and a player of --only" :
			 "",
		 bench->options->command);
	return -1;
}

static void start_dpdk(struct bench *bench)
{
	struct mr_reason why = { .text = "" };

	if ((bench->options->sides & 1u << SIDE_DPDK) == 0)
		snprintf(why.text, sizeof(why.text), "left out by --only");
	else if (dpdk_start(bench->cores[0], &why) == 0)
		bench->has_dpdk = true;
	snprintf(bench->why_no_dpdk, sizeof(bench->why_no_dpdk), "%.150s",
		 why.text);
}

static int run_all(struct bench *bench, const char *command)
{
	const struct options *options = bench->options;
	const struct workload *const *workloads = workloads_of(options);
	struct mr_reason why = { .text = "" };
	struct machine machine;
	int status = 0;

	machine_look(&machine, command);
	snprintf(machine.dpdk, sizeof(machine.dpdk), "%s", dpdk_version());
	machine_governor("/sys", bench->cores, bench->n_cores, machine.governor,
			 sizeof(machine.governor));
	if (options->is_goals)
		alarm(GOALS_LIMIT_S);
	if (!options->is_json) {
		report_text_head(&machine, bench->n_cores, bench->why_no_dpdk);
		bench->show = report_text_row;
	}
	for (uint32_t i = 0; workloads[i] != NULL; i++)
		bench_run(bench, workloads[i]);
	if (!options->is_json)
		report_text_end(&bench->results);
	else if (!report_print_json(&bench->results, &machine, bench->n_cores,
				    bench->why_no_dpdk, stdout))
		status = complain("cannot write to stdout");
	if (options->out != NULL &&
	    report_write(&bench->results, &machine, bench->n_cores,
			 bench->why_no_dpdk, options->out, &why) < 0)
		status = complain(why.text);
	return status;
}

int mem_main(const struct options *options, const char *command)
{
	struct bench bench = { .options = options,
			       .results = { .command = options->command,
					    .has_all_goals =
						    options->is_goals } };
	struct mr_reason why = { .text = "" };
	int status = 1;

	catch_signals();
	if (choose_cores(&bench, &why) < 0)
		return complain(why.text) + 1;
	if (mr_ctx_create(NULL, &bench.ctx, &why) < 0)
		return complain(why.text);
	start_dpdk(&bench);
	team_pin(bench.cores[0]);
	if (check_names(&bench, &why) < 0)
		status = complain(why.text) + 1;
	else if (options->is_list)
		status = 0;
	else
		status = run_all(&bench, command);
	bench_free(&bench);
	if (fflush(stdout) != 0 && status == 0)
		status = complain("cannot write to stdout");
	return status;
}
