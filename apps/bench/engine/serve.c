/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads requests of the front end, answers the first ones, and dispatches the
 * others. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/serve.h"
#include "support/dataplane_keys.h"
#include "support/json_text.h"
#include "support/specs.h"
#include "support/text.h"

static int print_why(const char *text, int status)
{
	print_error("mr-bench: %s", text);
	return status;
}

/* The next line; NULL: the front end has gone, or sent no JSON. */
static json_t *read_request(void)
{
	static char *line; /* grows, and is kept */
	static size_t n_bytes;
	json_error_t error;

	if (getline(&line, &n_bytes, stdin) < 0)
		return NULL;
	return json_loads(line, JSON_REJECT_DUPLICATES, &error);
}

static bool send_reply(const char *name, json_t *reply)
{
	bool is_sent;

	json_object_set_new(reply, "v", json_integer(SERVE_VERSION));
	json_object_set_new(reply, "reply", json_string(name));
	is_sent = json_dumpf(reply, stdout,
			     JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
		  putchar('\n') != EOF && fflush(stdout) == 0;
	json_decref(reply);
	return is_sent;
}

uint64_t serve_count(const json_t *request, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(request, key));
}

static bool is_at(const json_t *request, const char *key)
{
	return json_is_true(json_object_get(request, key));
}

static const char *text_at(const json_t *array, size_t i)
{
	const char *text = json_string_value(json_array_get(array, i));

	return text != NULL ? text : "";
}

/* Returns how many texts there are, at most room. They are never freed. */
static uint32_t read_texts(const json_t *array, const char **ret, uint32_t room)
{
	uint32_t n = 0;

	while (n < room &&
	       (ret[n] = json_bytes(json_array_get(array, n))) != NULL)
		n++;
	return n;
}

/* Pairs of name and value, as on a command line. */
static int take_plane(const json_t *pairs, struct dataplane_config *plane,
		      struct mr_reason *why)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(pairs, i, pair)
	{
		const int err =
			yaml_take_option(dataplane_keys, text_at(pair, 0),
					 text_at(pair, 1), plane, why);

		if (err == -ENOENT)
			return fail_with(why, 2, "no option '%s'",
					 text_at(pair, 0));
		if (err < 0)
			return 2;
	}
	return dataplane_check_options(plane, why) == PARSE_RUN ? 0 : 2;
}

struct device_config serve_device(const json_t *device)
{
	return (struct device_config){
		.loss_every = (uint32_t)serve_count(device, "loss_every"),
		.corrupt_every = (uint32_t)serve_count(device, "corrupt_every"),
		.reorder_every = (uint32_t)serve_count(device, "reorder_every"),
		.reorder_by = (uint32_t)serve_count(device, "reorder_by"),
		.dup_every = (uint32_t)serve_count(device, "dup_every"),
		.delay_ns = serve_count(device, "delay_ns"),
		.rate_pps =
			json_number_value(json_object_get(device, "rate_pps")),
		.queue_frames = (uint32_t)serve_count(device, "queue_frames"),
	};
}

/* Read the configuration of the ports. Returns 0, or the exit status. */
static int read_config(struct serving *serving, const json_t *ask,
		       struct mr_reason *why)
{
	const json_t *device = json_object_get(ask, "device");
	const uint64_t mac = serve_count(ask, "dst_mac");
	struct tester_config *const config = &serving->config;

	*config = (struct tester_config){
		.tx = serving->tx,
		.n_tx = read_texts(json_object_get(ask, "tx"), serving->tx,
				   MAX_PORTS),
		.rx = serving->rx,
		.n_rx = read_texts(json_object_get(ask, "rx"), serving->rx,
				   MAX_PORTS),
		.streams = json_incref(json_object_get(ask, "streams")),
		.is_virtual = is_at(ask, "is_virtual"),
		.is_unstamped = is_at(ask, "is_unstamped"),
		.has_unstamped = is_at(ask, "has_unstamped"),
		.seed = serve_count(ask, "seed"),
		.has_dst_mac = json_is_integer(json_object_get(ask, "dst_mac")),
		.frame_bytes = (uint32_t)serve_count(ask, "frame_bytes"),
		.plane = { .program = "mr-bench",
			   .log_level = option_log_level(
				   (uint32_t)serve_count(ask, "verbose"),
				   is_at(ask, "is_quiet")) },
	};
	for (uint32_t i = 0; i < 6; i++)
		config->dst_mac[i] = (uint8_t)(mac >> (40 - 8 * i));
	if (json_is_object(device)) {
		serving->device = serve_device(device);
		config->device = &serving->device;
	}
	return take_plane(json_object_get(ask, "plane"), &config->plane, why);
}

/* Returns 0, or 1 if accounts are wrong, with a line on stderr. */
static int close_ports(struct serving *serving)
{
	int status = serve_nat_close(serving);

	if (serving->tester != NULL && tester_close(serving->tester) != 0)
		status = 1;
	serving->tester = NULL;
	return status;
}

/* The first request. The answer is the start of the front end's document. */
static int serve_begin(struct serving *serving, const json_t *request,
		       json_t *reply, struct mr_reason *why)
{
	const int status = read_config(serving, request, why);

	if (status == 0)
		json_object_update_new(reply,
				       document_begin(&serving->config.plane));
	return status;
}

static const struct {
	const char *name;
	request_fn *answer;
} requests[] = {
	{ "begin", serve_begin },
	{ "open", serve_open },
	{ "trial", serve_trial },
	{ "alone", serve_alone },
	{ "nat-open", serve_nat_open },
	{ "nat-establish", serve_nat_phase },
	{ "nat-validate", serve_nat_phase },
	{ "nat-again", serve_nat_phase },
};

static const char *name_of(const json_t *request)
{
	const char *name =
		json_string_value(json_object_get(request, "request"));

	return name != NULL ? name : "";
}

/* False: the front end has gone. */
static bool answer_request(struct serving *serving, const json_t *request)
{
	const char *name = name_of(request);
	struct mr_reason why = { .text = "no such request" };
	json_t *reply = json_object();
	int status = 2;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(requests[i].name, name) == 0)
			status = requests[i].answer(serving, request, reply,
						    &why);
	if (status == 0)
		return send_reply(name, reply);
	json_object_clear(reply);
	json_object_set_new(reply, "status", json_integer(status));
	json_object_set_new(reply, "why", json_text(why.text));
	return send_reply("failed", reply);
}

int serve_main(int argc, char **argv)
{
	static struct serving serving; /* points into itself, and is large */
	json_t *request;
	bool is_last = false;
	int status;

	/* Not all requests notice that the front end has gone. One that goes
	 * before this call has asked for nothing, because it awaits the first
	 * reply. */
	(void)argc;
	(void)argv;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	request = read_request();
	if (serve_count(request, "v") != SERVE_VERSION) {
		json_decref(request);
		return print_why("serve: a front end of another version, or "
				 "none",
				 2);
	}
	serving.document = json_object();
	serving.result = calloc(1, sizeof(*serving.result));
	if (serving.result == NULL)
		abort();
	for (; request != NULL; request = read_request()) {
		bool goes_on;

		is_last = strcmp(name_of(request), "finish") == 0;
		goes_on = !is_last && answer_request(&serving, request);
		json_decref(request);
		if (!goes_on)
			break;
	}
	/* Until the front end ends, or is gone. */
	status = close_ports(&serving) != 0 || !is_last;
	free(serving.result);
	json_decref(serving.document);
	return status;
}
