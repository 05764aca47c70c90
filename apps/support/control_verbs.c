/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs of every application. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "json_text.h"
#include "report.h"
#include "settings.h"
#include "upgrade.h"
#include "values.h"
#include "version.h"

static void add_names(json_t *names, const struct control_verb *verbs,
		      uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(names, json_string(verbs[i].name));
}

/* The program and its verbs. */
static bool answer_hello(struct control_request *r, void *opaque)
{
	const struct control *control = opaque;
	const struct control_config *config = control_config_of(control);
	json_t *verbs = json_array();

	if (!control_args(r, "{}")) {
		json_decref(verbs);
		return true;
	}
	add_names(verbs, control_verbs, N_CONTROL_VERBS);
	add_names(verbs, config->verbs, config->n_verbs);
	control_add(r, json_pack("{s:s, s:s, s:s, s:i, s:i, s:o}", "program",
				 config->program, "version", program_version,
				 "instance", control_name(control), "pid",
				 (int)getpid(), "v", CONTROL_PROTOCOL, "verbs",
				 verbs));
	return control_end(r, NULL);
}

/* A line of --json. */
static bool answer_stats(struct control_request *r, void *opaque)
{
	if (!control_args(r, "{}"))
		return true;
	control_add(r, report_json_object(control_snapshot(opaque)));
	return control_end(r, NULL);
}

/* The program's command line. */
static json_t *command_line(void)
{
	json_t *words = json_array();
	FILE *file = fopen("/proc/self/cmdline", "re");
	char *word = NULL;
	size_t n_max = 0;

	while (file != NULL && getdelim(&word, &n_max, '\0', file) > 0)
		json_array_append_new(words, json_text(word));
	free(word);
	if (file != NULL)
		fclose(file);
	return words;
}

static json_t *port_object(const struct mr_port_info *info)
{
	return json_pack("{s:o, s:o, s:i, s:i, s:i, s:b}", "port",
			 json_text(info->name), "mode", json_text(info->mode),
			 "rx_queues", (int)info->n_rxqs, "tx_queues",
			 (int)info->n_txqs, "mtu", (int)info->mtu_bytes,
			 "segments", (int)info->has_sg);
}

static bool answer_config(struct control_request *r, void *opaque)
{
	struct control *control = opaque;
	const struct control_view *view = control_view_of(control);
	const struct snapshot *now;
	json_t *ports, *cores;

	if (!control_args(r, "{}"))
		return true;
	now = control_snapshot(control);
	ports = json_array();
	cores = json_array();
	for (uint32_t p = 0; p < now->n_ports; p++)
		json_array_append_new(ports, port_object(&now->ports[p].info));
	for (uint32_t w = 0; w < now->n_workers; w++)
		json_array_append_new(cores,
				      json_integer(now->workers[w].core));
	control_add(r,
		    json_pack("{s:o, s:s, s:s, s:o, s:o, s:I, s:I}", "command",
			      command_line(), "log_level",
			      dataplane_log_words[view->plane->log_level],
			      "idle", dataplane_idle_words[view->plane->idle],
			      "ports", ports, "cores", cores, "pool_pages",
			      (json_int_t)now->pool.n_pages, "page_bytes",
			      (json_int_t)now->pool.page_bytes));
	return control_end(r, NULL);
}

static void set_log(struct dataplane *plane, uint32_t word)
{
	dataplane_set_log(plane, word);
}

static void set_idle(struct dataplane *plane, uint32_t word)
{
	dataplane_set_idle(plane, word);
}

/* What can be set. */
static const struct {
	const char *name;
	const char *const *words;
	void (*set)(struct dataplane *plane, uint32_t word);
} settings[] = {
	{ "log_level", dataplane_log_words, set_log },
	{ "idle", dataplane_idle_words, set_idle },
};

enum { N_SETTINGS = sizeof(settings) / sizeof(settings[0]) };

/* The name of the first unknown setting; NULL: all are known. */
static const char *find_unknown(json_t *args)
{
	const char *name;
	json_t *value;

	json_object_foreach(args, name, value) {
		uint32_t i = 0;

		while (i < N_SETTINGS && strcmp(settings[i].name, name) != 0)
			i++;
		if (i == N_SETTINGS)
			return name;
	}
	return NULL;
}

/* Sets all values, or none. */
static bool answer_set(struct control_request *r, void *opaque)
{
	struct dataplane *plane = control_view_of(opaque)->plane;
	const char *given[N_SETTINGS] = { NULL };
	const char *unknown = find_unknown(r->args);
	uint32_t words[N_SETTINGS];
	struct mr_reason why;

	if (unknown != NULL)
		return control_fail(r, "unknown setting '%s'; valid: log_level, "
				    "idle",
				    unknown);
	if (!control_args(r, "{s?s, s?s}", settings[0].name, &given[0],
			  settings[1].name, &given[1]))
		return true;
	if (given[0] == NULL && given[1] == NULL)
		return control_fail(r, "set: give log_level or idle");
	for (uint32_t i = 0; i < N_SETTINGS; i++)
		if (given[i] != NULL &&
		    !value_word(given[i], settings[i].words, &words[i], &why))
			return control_fail(r, "%s: %s", settings[i].name,
					    why.text);
	for (uint32_t i = 0; i < N_SETTINGS; i++)
		if (given[i] != NULL)
			settings[i].set(plane, words[i]);
	return control_end(r, NULL);
}

const struct control_verb control_verbs[N_CONTROL_VERBS] = {
	{ "hello", 0, answer_hello },
	{ "stats", 0, answer_stats },
	{ "config", 0, answer_config },
	{ "set", 0, answer_set },
	{ "capture", CONTROL_CAPTURE_STATE, control_answer_capture },
	{ "trace", CONTROL_CAPTURE_STATE, control_answer_trace },
	{ "plan", 0, settings_answer_plan },
	{ "apply", SETTINGS_STATE_BYTES, settings_answer_apply },
	{ "dump", 0, settings_answer_dump },
	{ "upgrade", UPGRADE_STATE_BYTES, upgrade_answer },
};
