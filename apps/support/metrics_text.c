/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A snapshot as text for Prometheus, from its JSON document: the tables of
 * counters.c, and what has names of its own. The samples of a name must be
 * contiguous, so the outer loop is over names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "counters.h"
#include "metrics.h"
#include "report.h"
#include "text.h"
#include "version.h"

/* The object that has the member. */
enum place { OF_RX, OF_TX, OF_QUEUE, OF_PORT, OF_WORKER, OF_POOL };

struct metric {
	const char *name; /* without millrace_ and _total */
	const char *help;
	enum place place;
	const char *member;
	enum counter_kind kind;
	/* The member has counters by name, which become the values of this
	 * label, without the prefix. NULL: it is a number. */
	const char *label, *prefix;
};

static const struct metric named[] = {
	{ "rx_drops", "Frames received and lost, by reason.", OF_RX, "drops",
	  COUNTER, "reason", "" },
	{ "tx_drops", "Frames accepted and lost, by reason.", OF_TX, "drops",
	  COUNTER, "reason", "" },
	{ "rx_events", "Events while receiving, by type.", OF_QUEUE, "events",
	  COUNTER, "event", "rx_" },
	{ "tx_events", "Events while sending, by type.", OF_QUEUE, "events",
	  COUNTER, "event", "tx_" },
	{ "device_drops", "Frames that the device lost, by reason.", OF_PORT,
	  "device_drops", COUNTER, "reason", "" },
	{ "worker_drops", "Frames received and not sent, by reason.", OF_WORKER,
	  "drops", COUNTER, "reason", "" },
};

struct writer {
	FILE *file;
	const struct snapshot *now;
	const json_t *document; /* of now */
	bool is_openmetrics;
	char ports[MAX_PORTS][2 * sizeof(((struct mr_port_info *)0)->name) +
			      8]; /* as labels */
};

/* OpenMetrics names the counter, the older format its sample. */
static void begin_metric(const struct writer *w, const char *name,
			 const char *help, enum counter_kind kind)
{
	const char *suffix = kind == GAUGE || w->is_openmetrics ? "" : "_total";

	fprintf(w->file,
		"# HELP millrace_%s%s %s\n"
		"# TYPE millrace_%s%s %s\n",
		name, suffix, help, name, suffix,
		kind == GAUGE ? "gauge" : "counter");
}

static void write_sample(const struct writer *w, const char *name,
			 enum counter_kind kind, const char *labels,
			 uint64_t value)
{
	fprintf(w->file, "millrace_%s%s%s%s%s ", name,
		kind == GAUGE ? "" : "_total", labels[0] != '\0' ? "{" : "",
		labels, labels[0] != '\0' ? "}" : "");
	if (kind == SECONDS)
		fprintf(w->file, "%" PRIu64 ".%09" PRIu64 "\n",
			value / 1000000000, value % 1000000000);
	else
		fprintf(w->file, "%" PRIu64 "\n", value);
}

/* With \ and " escaped, and a number if another port has the same name. */
static void name_ports(struct writer *w)
{
	const struct snapshot *now = w->now;
	char text[sizeof(w->ports[0])];

	for (uint32_t p = 0; p < now->n_ports; p++) {
		uint32_t n_same = 0;
		size_t n = 0;

		for (uint32_t i = 0; i < p; i++)
			n_same += strcmp(now->ports[i].info.name,
					 now->ports[p].info.name) == 0;
		text_escape(now->ports[p].info.name, text, sizeof(text));
		for (const char *c = text; *c != '\0' && n < 120; c++) {
			if (*c == '\\' || *c == '"')
				w->ports[p][n++] = '\\';
			w->ports[p][n++] = *c;
		}
		w->ports[p][n] = '\0';
		if (n_same > 0)
			snprintf(w->ports[p] + n, sizeof(w->ports[p]) - n,
				 "#%u", n_same + 1);
	}
}

static void write_member(const struct writer *w, const struct metric *m,
			 const json_t *object, const char *labels)
{
	json_t *member = json_object_get(object, m->member), *value;
	const size_t n_prefix = m->label != NULL ? strlen(m->prefix) : 0;
	const char *name;
	char more[256];

	if (m->label == NULL && member != NULL)
		write_sample(w, m->name, m->kind, labels,
			     (uint64_t)json_integer_value(member));
	if (m->label == NULL)
		return;
	json_object_foreach(member, name, value)
	{
		if (strncmp(name, m->prefix, n_prefix) != 0)
			continue;
		snprintf(more, sizeof(more), "%s,%s=\"%s\"", labels, m->label,
			 name + n_prefix);
		write_sample(w, m->name, m->kind, more,
			     (uint64_t)json_integer_value(value));
	}
}

static void write_of_queues(const struct writer *w, const struct metric *m,
			    const char *port_name, const json_t *port)
{
	json_t *queue;
	size_t i;

	json_array_foreach(json_object_get(port, "queues"), i, queue)
	{
		char labels[192];

		snprintf(labels, sizeof(labels), "port=\"%s\",queue=\"%zu\"",
			 port_name, i);
		if (m->place != OF_QUEUE)
			queue = json_object_get(
				queue, m->place == OF_RX ? "rx" : "tx");
		write_member(w, m, queue, labels);
	}
}

static void write_metric(const struct writer *w, const struct metric *m)
{
	const bool is_of_worker = m->place == OF_WORKER;
	json_t *one;
	size_t i;

	begin_metric(w, m->name, m->help, m->kind);
	json_array_foreach(json_object_get(w->document,
					   is_of_worker ? "workers" : "ports"),
			   i, one)
	{
		char labels[192];

		if (is_of_worker)
			snprintf(labels, sizeof(labels),
				 "worker=\"%zu\",core=\"%u\"", i,
				 w->now->workers[i].core);
		else
			snprintf(labels, sizeof(labels), "port=\"%s\"",
				 w->ports[i]);
		if (is_of_worker || m->place == OF_PORT)
			write_member(w, m, one, labels);
		else
			write_of_queues(w, m, w->ports[i], one);
	}
}

static void write_links(const struct writer *w)
{
	char labels[192];

	begin_metric(w, "port_up", "1: the link is up, and frames arrive.",
		     GAUGE);
	for (uint32_t p = 0; p < w->now->n_ports; p++) {
		const struct port_snapshot *port = &w->now->ports[p];

		snprintf(labels, sizeof(labels), "port=\"%s\"", w->ports[p]);
		if (port->has_link)
			write_sample(w, "port_up", GAUGE, labels,
				     port->link.is_up && !port->link.is_gone &&
					     !port->link.is_detached);
	}
	begin_metric(w, "port_speed_bytes_per_second", "Speed of the link.",
		     GAUGE);
	for (uint32_t p = 0; p < w->now->n_ports; p++) {
		snprintf(labels, sizeof(labels), "port=\"%s\"", w->ports[p]);
		if (w->now->ports[p].link.speed_mbps > 0)
			write_sample(
				w, "port_speed_bytes_per_second", GAUGE, labels,
				w->now->ports[p].link.speed_mbps * 125000ull);
	}
}

static enum counter_kind kind_of(const struct app_counters *app,
				 const char *name)
{
	for (const char *const *g = app->gauges; g != NULL && *g != NULL; g++)
		if (strcmp(*g, name) == 0)
			return GAUGE;
	return COUNTER;
}

/* A number of the whole program. */
static void write_number(const struct writer *w, const struct metric *m,
			 const char *object)
{
	begin_metric(w, m->name, m->help, m->kind);
	write_member(w, m, json_object_get(w->document, object), "");
}

/* The program's own counters. */
static void write_own(const struct writer *w)
{
	const struct app_counters *app = w->now->app;
	char name[96], help[128];
	struct metric m = { .name = name, .place = OF_WORKER };

	for (uint32_t i = 0; i < app->n_worker_rows; i++) {
		m.help = "Frames of a worker; the JSON schema has more.";
		m.member = app->worker_rows[i].name;
		m.kind = kind_of(app, m.member);
		snprintf(name, sizeof(name), "worker_%s_frames", m.member);
		write_metric(w, &m);
	}
	m.help = help;
	for (uint32_t g = 0; g < app->n_groups; g++)
		for (uint32_t i = 0; i < app->groups[g].n_rows; i++) {
			const struct count_group *group = &app->groups[g];

			m.member = group->rows[i].name;
			m.kind = kind_of(app, m.member);
			snprintf(name, sizeof(name), "%s_%s_%s",
				 app->program + 3, /* without mr- */
				 group->name, m.member);
			snprintf(help, sizeof(help), "%s: %s.", group->label,
				 group->rows[i].label);
			write_number(w, &m, group->name);
		}
}

static void write_table(const struct writer *w,
			const struct counter_table *table, enum place place)
{
	for (uint32_t i = 0; i < table->n; i++) {
		const struct counter_row *row = &table->rows[i];
		const struct metric m = {
			.name = row->metric,
			.help = row->help,
			.place = place,
			.member = row->name,
			.kind = row->kind,
		};

		if (row->metric != NULL && place == OF_POOL)
			write_number(w, &m, "pool");
		else if (row->metric != NULL)
			write_metric(w, &m);
	}
}

char *metrics_text(const struct snapshot *snapshot, const char *instance,
		   bool is_openmetrics, size_t *ret_n)
{
	json_t *document = report_json_object(snapshot);
	struct writer w = { .now = snapshot,
			    .document = document,
			    .is_openmetrics = is_openmetrics };
	char labels[160];
	char *text;
	bool is_bad;

	w.file = open_memstream(&text, ret_n);
	if (w.file == NULL) {
		json_decref(document);
		return NULL;
	}
	name_ports(&w);
	snprintf(labels, sizeof(labels),
		 "program=\"%s\",version=\"%s\",name=\"%s\"",
		 snapshot->app->program, program_version, instance);
	begin_metric(&w, "build_info",
		     "The program, and the name of its instance.", GAUGE);
	write_sample(&w, "build_info", GAUGE, labels, 1);
	write_table(&w, &rx_counters, OF_RX);
	write_table(&w, &tx_counters, OF_TX);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		write_metric(&w, &named[i]);
	write_table(&w, &port_counters, OF_PORT);
	write_links(&w);
	write_table(&w, &worker_counters, OF_WORKER);
	write_table(&w, &pool_counters, OF_POOL);
	write_own(&w);
	if (is_openmetrics)
		fputs("# EOF\n", w.file);
	json_decref(document);
	is_bad = ferror(w.file) != 0;
	if (fclose(w.file) != 0 || is_bad) {
		free(text);
		return NULL;
	}
	return text;
}
