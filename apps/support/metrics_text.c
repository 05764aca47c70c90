/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A snapshot as text for Prometheus. Tables define what is written. The samples
 * of a name must be contiguous, so the outer loop is over names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "text.h"
#include "version.h"

enum kind { COUNTER, GAUGE, SECONDS }; /* SECONDS: a counter, of ns */

struct row {
	const char *name; /* without millrace_ and _total */
	const char *help;
	size_t offset; /* of an uint64_t */
	enum kind kind;
};

#define RX(member) offsetof(struct queue_snapshot, rx.member)
#define TX(member) offsetof(struct queue_snapshot, tx.member)
#define WORKER(member) offsetof(struct worker_snapshot, member)

static const struct row rx_rows[] = {
	{ "rx_frames", "Frames delivered to the program.", RX(delivered),
	  COUNTER },
	{ "rx_bytes", "Bytes of frames delivered to the program.", RX(bytes),
	  COUNTER },
	{ "rx_received_frames",
	  "Frames received: delivered, offloaded, passed to the kernel, or "
	  "dropped.",
	  RX(received), COUNTER },
	{ "rx_offloaded_frames", "Frames that rules forwarded or dropped.",
	  RX(offloaded), COUNTER },
	{ "rx_passed_to_kernel_frames",
	  "Frames that the filter left to the kernel.", RX(passed_to_kernel),
	  COUNTER },
};

static const struct row tx_rows[] = {
	{ "tx_frames", "Frames accepted from the program.", TX(accepted),
	  COUNTER },
	{ "tx_bytes", "Bytes of frames accepted from the program.", TX(bytes),
	  COUNTER },
	{ "tx_completed_frames", "Frames that the device has sent.",
	  TX(completed), COUNTER },
	{ "tx_pending_frames", "Frames that the device has yet to send.",
	  TX(pending), GAUGE },
};

static const struct row worker_rows[] = {
	{ "worker_busy_seconds", "Time in rounds with work.",
	  WORKER(stats.busy_ns), SECONDS },
	{ "worker_idle_seconds", "Time in rounds without work.",
	  WORKER(stats.idle_ns), SECONDS },
	{ "worker_asleep_seconds", "Time asleep, a part of idle.",
	  WORKER(stats.asleep_ns), SECONDS },
	{ "worker_rounds", "Rounds over all queues.", WORKER(stats.rounds),
	  COUNTER },
	{ "worker_empty_rounds", "Rounds without work.",
	  WORKER(stats.empty_rounds), COUNTER },
	{ "worker_sleeps", "Times that the worker went to sleep.",
	  WORKER(stats.sleeps), COUNTER },
	{ "worker_bursts", "Non-empty bursts received.", WORKER(bursts),
	  COUNTER },
	{ "worker_entries", "Entries in those bursts.", WORKER(entries),
	  COUNTER },
	{ "worker_handed_off_frames", "Frames handed to another worker.",
	  WORKER(stats.handed_off), COUNTER },
};

#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

struct writer {
	FILE *file;
	const struct snapshot *now;
	bool is_openmetrics;
	char ports[MAX_PORTS][2 * sizeof(((struct mr_port_info *)0)->name) +
			      8]; /* as labels */
};

/* OpenMetrics names the counter, the older format its sample. */
static void begin_metric(const struct writer *w, const char *name,
			 const char *help, enum kind kind)
{
	const char *suffix = kind == GAUGE || w->is_openmetrics ? "" : "_total";

	fprintf(w->file,
		"# HELP millrace_%s%s %s\n"
		"# TYPE millrace_%s%s %s\n",
		name, suffix, help, name, suffix,
		kind == GAUGE ? "gauge" : "counter");
}

static void write_sample(const struct writer *w, const char *name,
			 enum kind kind, const char *labels, uint64_t value)
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

static uint64_t value_at(const void *base, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
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

/* Calls fn with the statistics of each queue that has them, and its labels. */
typedef void queue_fn(const struct writer *w, const struct queue_snapshot *q,
		      const char *labels, const void *arg);

static void each_queue(const struct writer *w, bool is_tx, queue_fn *fn,
		       const void *arg)
{
	char labels[192];

	for (uint32_t p = 0; p < w->now->n_ports; p++)
		for (uint32_t i = 0; i < w->now->ports[p].n_queues; i++) {
			const struct queue_snapshot *q =
				&w->now->ports[p].queues[i];

			snprintf(labels, sizeof(labels),
				 "port=\"%s\",queue=\"%u\"", w->ports[p], i);
			if (is_tx ? q->has_tx : q->has_rx)
				fn(w, q, labels, arg);
		}
}

static void write_row(const struct writer *w, const struct queue_snapshot *q,
		      const char *labels, const void *arg)
{
	const struct row *row = arg;

	write_sample(w, row->name, row->kind, labels, value_at(q, row->offset));
}

/* Named slots of a queue. */
static const struct slots {
	const char *name, *help, *label;
	const char *(*name_of)(uint32_t);
	size_t offset; /* in struct queue_snapshot */
	bool is_tx;
} all_slots[] = {
	{ "rx_drops", "Frames received and lost, by reason.", "reason",
	  mr_rx_drop_name, RX(drops), false },
	{ "tx_drops", "Frames accepted and lost, by reason.", "reason",
	  mr_tx_drop_name, TX(drops), true },
	{ "rx_events", "Events while receiving, by type.", "event",
	  mr_rx_event_name, RX(events), false },
	{ "tx_events", "Events while sending, by type.", "event",
	  mr_tx_event_name, TX(events), true },
};

static void write_slots(const struct writer *w, const struct queue_snapshot *q,
			const char *labels, const void *arg)
{
	const struct slots *slots = arg;
	char more[256];

	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++) {
		if (slots->name_of(i) == NULL)
			continue;
		snprintf(more, sizeof(more), "%s,%s=\"%s\"", labels,
			 slots->label, slots->name_of(i));
		write_sample(w, slots->name, COUNTER, more,
			     value_at(q, slots->offset + i * sizeof(uint64_t)));
	}
}

static void write_queues(const struct writer *w)
{
	for (size_t i = 0; i < N(rx_rows); i++) {
		begin_metric(w, rx_rows[i].name, rx_rows[i].help,
			     rx_rows[i].kind);
		each_queue(w, false, write_row, &rx_rows[i]);
	}
	for (size_t i = 0; i < N(tx_rows); i++) {
		begin_metric(w, tx_rows[i].name, tx_rows[i].help,
			     tx_rows[i].kind);
		each_queue(w, true, write_row, &tx_rows[i]);
	}
	for (size_t i = 0; i < N(all_slots); i++) {
		const struct slots *slots = &all_slots[i];

		begin_metric(w, slots->name, slots->help, COUNTER);
		each_queue(w, slots->is_tx, write_slots, slots);
	}
}

static void write_ports(const struct writer *w)
{
	char labels[256];

	begin_metric(w, "device_drops",
		     "Frames that the device lost, by reason.", COUNTER);
	for (uint32_t p = 0; p < w->now->n_ports; p++)
		for (uint32_t i = 0; i < w->now->ports[p].n_device_drops; i++) {
			const struct mr_named_count *drop =
				&w->now->ports[p].device_drops[i];

			snprintf(labels, sizeof(labels),
				 "port=\"%s\",reason=\"%s\"", w->ports[p],
				 drop->name);
			write_sample(w, "device_drops", COUNTER, labels,
				     drop->value);
		}
	begin_metric(w, "port_up", "1: the link is up, and frames arrive.",
		     GAUGE);
	for (uint32_t p = 0; p < w->now->n_ports; p++) {
		snprintf(labels, sizeof(labels), "port=\"%s\"", w->ports[p]);
		if (w->now->ports[p].has_link)
			write_sample(
				w, "port_up", GAUGE, labels,
				w->now->ports[p].link.is_up &&
					!w->now->ports[p].link.is_gone &&
					!w->now->ports[p].link.is_detached);
	}
	begin_metric(w, "port_reopened",
		     "How often the port was opened again after its device had "
		     "gone.",
		     COUNTER);
	for (uint32_t p = 0; p < w->now->n_ports; p++) {
		snprintf(labels, sizeof(labels), "port=\"%s\"", w->ports[p]);
		write_sample(w, "port_reopened", COUNTER, labels,
			     w->now->ports[p].n_reopened);
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

/* Of workers, at base + offset in each. */
static void write_of_workers(const struct writer *w, const char *name,
			     enum kind kind, size_t offset, const char *reason)
{
	char labels[128];

	for (uint32_t i = 0; i < w->now->n_workers; i++) {
		const struct worker_snapshot *worker = &w->now->workers[i];

		snprintf(labels, sizeof(labels),
			 "worker=\"%u\",core=\"%u\"%s%s%s", i, worker->core,
			 reason != NULL ? ",reason=\"" : "",
			 reason != NULL ? reason : "",
			 reason != NULL ? "\"" : "");
		write_sample(w, name, kind, labels, value_at(worker, offset));
	}
}

static enum kind kind_of(const struct app_counters *app, const char *name)
{
	for (const char *const *g = app->gauges; g != NULL && *g != NULL; g++)
		if (strcmp(*g, name) == 0)
			return GAUGE;
	return COUNTER;
}

static void write_workers(const struct writer *w)
{
	const struct app_counters *app = w->now->app;
	char name[96];

	for (size_t i = 0; i < N(worker_rows); i++) {
		const struct row *row = &worker_rows[i];

		begin_metric(w, row->name, row->help, row->kind);
		write_of_workers(w, row->name, row->kind, row->offset, NULL);
	}
	for (uint32_t i = 0; i < app->n_worker_rows; i++) {
		const enum kind kind = kind_of(app, app->worker_rows[i].name);

		snprintf(name, sizeof(name), "worker_%s_frames",
			 app->worker_rows[i].name);
		begin_metric(w, name,
			     "Frames of a worker; the JSON schema has more.",
			     kind);
		write_of_workers(w, name, kind,
				 WORKER(counts) + i * sizeof(uint64_t), NULL);
	}
	begin_metric(w, "worker_drops",
		     "Frames received and not sent, by reason.", COUNTER);
	for (uint32_t i = 0; i < app->n_drops; i++)
		write_of_workers(w, "worker_drops", COUNTER,
				 WORKER(drops) + i * sizeof(uint64_t),
				 app->drop_names[i]);
}

static void write_rest(const struct writer *w)
{
	const struct snapshot *now = w->now;
	const char *program = now->app->program + 3; /* without mr- */
	char name[96], help[128];

	for (uint32_t i = 0; i < N_POOL_ROWS; i++) {
		const struct pool_row *row = &pool_rows[i];
		const enum kind kind = row->is_gauge ? GAUGE : COUNTER;

		snprintf(name, sizeof(name), "pool_%s",
			 row->name +
				 (strncmp(row->name, "n_", 2) == 0 ? 2 : 0));
		begin_metric(w, name, row->help, kind);
		write_sample(w, name, kind, "",
			     pool_row_value(row, &now->pool));
	}
	for (uint32_t g = 0; g < now->app->n_groups; g++)
		for (uint32_t i = 0; i < now->app->groups[g].n_rows; i++) {
			const struct count_group *group = &now->app->groups[g];
			const struct count_row *row = &group->rows[i];
			const enum kind kind = kind_of(now->app, row->name);

			snprintf(name, sizeof(name), "%s_%s_%s", program,
				 group->name, row->name);
			snprintf(help, sizeof(help), "%s: %s.", group->label,
				 row->label);
			begin_metric(w, name, help, kind);
			write_sample(w, name, kind, "", now->groups[g][i]);
		}
}

char *metrics_text(const struct snapshot *snapshot, const char *instance,
		   bool is_openmetrics, size_t *ret_n)
{
	struct writer w = { .now = snapshot, .is_openmetrics = is_openmetrics };
	char labels[160];
	char *text;
	bool is_bad;

	w.file = open_memstream(&text, ret_n);
	if (w.file == NULL)
		return NULL;
	name_ports(&w);
	snprintf(labels, sizeof(labels),
		 "program=\"%s\",version=\"%s\",name=\"%s\"",
		 snapshot->app->program, program_version, instance);
	begin_metric(&w, "build_info",
		     "The program, and the name of its instance.", GAUGE);
	write_sample(&w, "build_info", GAUGE, labels, 1);
	write_queues(&w);
	write_ports(&w);
	write_workers(&w);
	write_rest(&w);
	if (is_openmetrics)
		fputs("# EOF\n", w.file);
	is_bad = ferror(w.file) != 0;
	if (fclose(w.file) != 0 || is_bad) {
		free(text);
		return NULL;
	}
	return text;
}
