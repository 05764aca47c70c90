/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and trials of a front end. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/serve.h"
#include "support/specs.h"

static const uint64_t second = 1000000000;

/* While a trial runs: print lines of progress, and end it if the front end has
 * gone. */
static void on_progress(void *opaque, const struct trial_result *so_far)
{
	struct serving *serving = opaque;
	struct hist *latency = NULL;
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO },
		/* It has room for a line, or is not waited for. */
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
	};

	poll(fds, 2, 0);
	if ((fds[0].revents & POLLHUP) != 0)
		serving->tester->is_ended = true;
	if (so_far->whole_ns < serving->line_ns || fds[1].revents != POLLOUT)
		return;
	if (serving->told != NULL && (latency = calloc(1, sizeof(*latency))))
		tester_latency_since(serving->tester, serving->told, latency);
	document_line(so_far, serving->config.n_tx > 0,
		      serving->config.n_rx > 0, latency, stdout);
	free(latency);
	/* A late line must not cause two at once. */
	while (serving->line_ns <= so_far->whole_ns)
		serving->line_ns += serving->interval_ns;
}

int serve_open(struct serving *serving, const json_t *request, json_t *reply,
	       struct mr_reason *why)
{
	const struct streams *streams;
	int status;

	if (serving->tester != NULL)
		return fail_with(why, 2, "open: they are open");
	status = tester_open(&serving->config, &serving->tester, why);
	if (status != 0)
		return status;
	serving->tester->progress = on_progress;
	serving->tester->progress_opaque = serving;
	if (json_is_true(json_object_get(request, "has_map")))
		tester_print_map(serving->tester);
	document_ports(serving->document, serving->tester);
	streams = serving->tester->streams[0];
	json_object_set_new(reply, "mean_bytes",
			    json_real(streams->mean_bytes));
	json_object_set_new(reply, "max_bytes",
			    json_integer(streams->max_bytes));
	json_object_set(reply, "document", serving->document);
	return 0;
}

static enum pace pace_of(const json_t *request)
{
	static const char *const names[] = { "constant", "poisson", "bursts" };
	const char *name = json_string_value(json_object_get(request, "pace"));

	for (uint32_t i = PACE_POISSON; name != NULL && i <= PACE_BURSTS; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum pace)i;
	return PACE_CONSTANT;
}

static struct trial_config config_of(const json_t *request)
{
	return (struct trial_config){
		.pps = json_number_value(json_object_get(request, "pps")),
		.pace = pace_of(request),
		.burst_frames = (uint32_t)serve_count(request, "pace_frames"),
		.duration_ns = serve_count(request, "duration_ns"),
		.n_frames = serve_count(request, "frames"),
		.settle_ns = serve_count(request, "settle_ns"),
		.max_lag_ns = serve_count(request, "max_lag_ns"),
		.frame_bytes = (uint32_t)serve_count(request, "frame_bytes"),
	};
}

static json_t *device_of(const struct tester *tester)
{
	struct device_counts c;
	json_t *array = json_array();

	for (uint32_t i = 0; i < tester->n_crossings; i++) {
		device_counts(tester->crossings[i].device, &c);
		json_array_append_new(
			array,
			document_counts(
				"received forwarded lost doubled reordered "
				"corrupted over_its_rate held",
				(uint64_t[]){ c.received, c.forwarded, c.lost,
					      c.duplicated, c.reordered,
					      c.corrupted, c.overrun,
					      c.held }));
	}
	return array;
}

static void describe_trial(const struct trial_result *r, json_t *reply)
{
	json_object_set_new(reply, "trial", document_trial(r));
	json_object_set_new(reply, "is_cut_short",
			    json_boolean(r->is_cut_short));
	json_object_set_new(reply, "n_dropped", document_count(r->n_dropped));
}

/* Run it, with the requested progress. */
static int run_trial(struct serving *serving, const json_t *request,
		     struct mr_reason *why)
{
	const struct trial_config config = config_of(request);
	int status;

	serving->interval_ns = serve_count(request, "progress_ns");
	if (serving->interval_ns == 0)
		serving->interval_ns = second;
	serving->line_ns = serving->interval_ns;
	if (json_is_true(json_object_get(request, "has_latencies")))
		serving->told = calloc(serving->tester->n_receivers + 1,
				       sizeof(*serving->told));
	status = tester_run(serving->tester, &config, serving->result, why);
	free(serving->told);
	serving->told = NULL;
	return status;
}

int serve_trial(struct serving *serving, const json_t *request, json_t *reply,
		struct mr_reason *why)
{
	struct trial_result *const r = serving->result;
	int status;

	if (serving->tester == NULL)
		return fail_with(why, 2, "trial: no port is open");
	status = run_trial(serving, request, why);
	if (status != 0)
		return status;
	describe_trial(r, reply);
	json_object_set_new(reply, "device", device_of(serving->tester));
	json_object_update_new(
		reply,
		document_counts("pending user_ns system_ns",
				(uint64_t[]){ tester_n_pending(serving->tester),
					      r->user_ns, r->system_ns }));
	trial_result_free(r);
	return 0;
}

/*
 * A trial of the tester alone, which is not in the document: frames pass
 * through memory, and through a simulated device if one is given; else on the
 * cores and with the streams of the open ports.
 */
int serve_alone(struct serving *serving, const json_t *request, json_t *reply,
		struct mr_reason *why)
{
	static const char *const from[] = { "pair:tester" };
	static const char *const to[] = { "pair:tester-b" };
	const json_t *asked = json_object_get(request, "device");
	const bool has_device = json_is_object(asked);
	const struct device_config device = serve_device(asked);
	const struct tester_config *const ours = &serving->config;
	struct tester_config config = { .plane = ours->plane };
	struct trial_config trial = config_of(request);
	struct tester *tester;
	int status;

	if (has_device) {
		trial = (struct trial_config){ .pps = trial.pps,
					       .n_frames = trial.n_frames };
	} else {
		if (serving->tester == NULL)
			return fail_with(why, 2, "alone: no port is open");
		config = *ours;
		config.plane.port = (struct port_options){ 0 };
		config.plane.n_pages = 0;
		config.plane.log_level = MR_LOG_ERROR;
		config.plane.n_cores = tester_cores(
			serving->tester, config.plane.cores, MR_WORKERS_MAX);
		config.plane.n_workers = config.plane.n_cores;
	}
	config.tx = from;
	config.rx = has_device ? to : from;
	config.n_tx = config.n_rx = 1;
	config.device = has_device ? &device : NULL;
	config.is_virtual = has_device;
	status = tester_open(&config, &tester, why);
	if (status != 0)
		return status;
	status = tester_run(tester, &trial, serving->result, why);
	if (status == 0) {
		describe_trial(serving->result, reply);
		trial_result_free(serving->result);
	}
	if (tester_close(tester) != 0 && status == 0)
		status = fail_with(why, 1, "its accounts do not add up");
	return status;
}
