/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests of a front end, from the command line to the document. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/serve.h"
#include "net/describe.h"
#include "support/json_text.h"
#include "support/text.h"

enum { MAX_WITHOUT = 40 };

static int complain(const char *text, int status)
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

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* An option of the front end's: name and value, for it to read. */
static enum parse_result keep(const struct option_row *row, const char *arg,
			      void *own, struct mr_reason *why)
{
	json_t *pair = json_pack("[s, s]", row->name, arg != NULL ? arg : "");

	if (pair == NULL)
		return parse_wrong(why, "--%s: not UTF-8", row->name);
	json_array_append_new(own, pair);
	return PARSE_RUN;
}

/* The options that the front end asks for, in front of the shared ones. */
static uint32_t gather_rows(const json_t *ask, struct option_row *ret)
{
	const json_t *row;
	uint32_t n = 0;
	size_t i;

	json_array_foreach(json_object_get(ask, "options"), i, row)
	{
		const char *arg = json_string_value(json_array_get(row, 1));

		if (n == MAX_OPTIONS)
			break;
		ret[n] = (struct option_row){
			.id = TRAFFIC_OWN + (int)n,
			.name = json_string_value(json_array_get(row, 0)),
			.arg = arg != NULL && arg[0] != '\0' ? arg : NULL,
			.help = json_string_value(json_array_get(row, 2)),
		};
		n++;
	}
	return n;
}

static enum traffic_ports ports_of(const char *name)
{
	if (strcmp(name, "sends") == 0)
		return TRAFFIC_SENDS;
	if (strcmp(name, "receives") == 0)
		return TRAFFIC_RECEIVES;
	return strcmp(name, "pairs or none") == 0 ? TRAFFIC_PAIRS_OR_NONE :
						    TRAFFIC_PAIRS;
}

/* Returns the exit status, or -1: go on. */
static int read_options(struct serving *serving, const json_t *ask, int argc,
			char **argv, json_t *values)
{
	struct option_row rows[MAX_OPTIONS];
	const char *without[MAX_WITHOUT + 1] = { NULL };
	const json_t *names = json_object_get(ask, "without");
	const struct traffic_command command = {
		.name = text_at(ask, "command"),
		.usage = text_at(ask, "usage"),
		.ports = ports_of(text_at(ask, "ports")),
		.without = without,
		.rows = rows,
		.n_rows = gather_rows(ask, rows),
		.take = keep,
		.own = values,
	};

	for (size_t i = 0; i < json_array_size(names) && i < MAX_WITHOUT; i++)
		without[i] = json_string_value(json_array_get(names, i));
	return traffic_options_main(&command, argc, argv, &serving->options);
}

static json_t *texts(const char *const *list, uint32_t n)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(array, json_text(list[i]));
	return array;
}

/* What the command line has that the front end goes by. Takes begun over. */
static json_t *describe_options(const struct serving *serving, json_t *values,
				json_t *begun)
{
	const struct traffic_options *const o = &serving->options;
	char rate[40];

	rate_print(&o->trial.rate, rate, sizeof(rate));
	return json_pack(
		"{sO so so so si ss ss si sI sI sI si sb sb sb s{so so so} so}",
		"values", values, "tx", texts(o->tx, o->tester.n_tx), "rx",
		texts(o->rx, o->tester.n_rx), "streams",
		texts(o->streams, o->tester.n_streams), "frame_bytes",
		(int)o->tester.frame_bytes, "rate", rate, "pace",
		pace_names[o->trial.pace], "pace_frames",
		(int)o->trial.burst_frames, "count",
		(json_int_t)o->trial.n_frames, "duration_ns",
		(json_int_t)o->trial.duration_ns, "settle_ns",
		(json_int_t)o->trial.settle_ns, "workers",
		(int)o->tester.plane.n_workers, "is_virtual",
		o->tester.is_virtual, "is_json", o->is_json, "is_quiet",
		o->is_quiet, "files", "out", path_text(o->json_out), "csv",
		path_text(o->csv), "hdr", path_text(o->hdr), "document", begun);
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

static const struct {
	const char *name;
	request_fn *answer;
} requests[] = {
	{ "open", serve_open },
	{ "trial", serve_trial },
	{ "alone", serve_alone },
	{ "rate", serve_rate },
	{ "nat-open", serve_nat_open },
	{ "nat-establish", serve_nat_phase },
	{ "nat-validate", serve_nat_phase },
	{ "nat-again", serve_nat_phase },
	{ "nat-reset", serve_nat_reset },
};

/* False: the front end has gone. */
static bool answer(struct serving *serving, const json_t *request)
{
	const char *name = text_at(request, "request");
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

/* Until the front end is content, or gone. Returns the exit status. */
static int serve(struct serving *serving)
{
	json_t *request;
	int status = 1;

	while ((request = read_request()) != NULL) {
		const bool is_last =
			strcmp(text_at(request, "request"), "finish") == 0;
		const bool is_good = is_last || answer(serving, request);

		if (is_last)
			status = 0;
		json_decref(request);
		if (is_last || !is_good)
			break;
	}
	return close_ports(serving) != 0 ? 1 : status;
}

int serve_main(int argc, char **argv)
{
	static struct serving serving; /* points into itself, and is large */
	json_t *ask, *values;
	int status;

	/* Not all requests look whether the front end is still there. One that
	 * goes before this asks for nothing, for it awaits the first reply. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	ask = read_request();
	values = json_array();
	if (argc < 3 || ask == NULL ||
	    json_integer_value(json_object_get(ask, "v")) != SERVE_VERSION) {
		json_decref(values);
		json_decref(ask);
		return complain("serve: a front end of another version, or "
				"none",
				2);
	}
	/* The command stands where it does on the line that was typed. */
	argv[1] = argv[0];
	status = read_options(&serving, ask, argc - 1, argv + 1, values);
	if (status < 0) {
		json_t *begun = document_begin(serving.options.label);

		serving.document = json_object();
		serving.result = calloc(1, sizeof(*serving.result));
		if (serving.result == NULL)
			abort(); /* as everywhere in an application */
		traffic_describe(&serving.options, begun);
		send_reply("options",
			   describe_options(&serving, values, begun));
		status = serve(&serving);
		free(serving.result);
		json_decref(serving.document);
	}
	json_decref(serving.streams);
	json_decref(values);
	json_decref(ask);
	return status;
}
