/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON, version 1: one object per line; the schema of the application describes
 * it. Counters count from the start of the program; a reader takes differences.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "counters.h"
#include "json_text.h"
#include "report.h"

static json_t *integer(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static void add_counters(json_t *object, const struct counter_table *table,
			 const void *from)
{
	for (uint32_t i = 0; i < table->n; i++)
		json_object_set_new(
			object, table->rows[i].name,
			integer(counter_row_value(&table->rows[i], from)));
}

/* All named slots, even zeros, so that a reader sees what exists. */
static json_t *named_slots(const uint64_t *slots, const char *(*name)(uint32_t))
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		if (name(i) != NULL)
			json_object_set_new(object, name(i), integer(slots[i]));
	return object;
}

/* Events of rx and tx, distinguished by prefix. */
static json_t *events_of(const struct queue_snapshot *queue)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++) {
		char key[48];

		if (queue->has_rx && mr_rx_event_name(i) != NULL) {
			snprintf(key, sizeof(key), "rx_%s",
				 mr_rx_event_name(i));
			json_object_set_new(object, key,
					    integer(queue->rx.events[i]));
		}
		if (queue->has_tx && mr_tx_event_name(i) != NULL) {
			snprintf(key, sizeof(key), "tx_%s",
				 mr_tx_event_name(i));
			json_object_set_new(object, key,
					    integer(queue->tx.events[i]));
		}
	}
	return object;
}

static json_t *way_object(const struct counter_table *table, const void *stats,
			  json_t *drops)
{
	json_t *object = json_object();

	add_counters(object, table, stats);
	json_object_set_new(object, "drops", drops);
	return object;
}

static json_t *queue_object(const struct queue_snapshot *queue)
{
	const struct mr_rx_stats *rx = &queue->rx;
	const struct mr_tx_stats *tx = &queue->tx;
	json_t *object = json_object();

	if (queue->has_rx)
		json_object_set_new(
			object, "rx",
			way_object(&rx_counters, rx,
				   named_slots(rx->drops, mr_rx_drop_name)));
	if (queue->has_tx)
		json_object_set_new(
			object, "tx",
			way_object(&tx_counters, tx,
				   named_slots(tx->drops, mr_tx_drop_name)));
	json_object_set_new(object, "events", events_of(queue));
	return object;
}

/* If a name occurs twice, the second is the driver's own. */
static json_t *device_stats_object(const struct port_snapshot *port)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < port->n_device_stats; i++)
		json_object_set_new(object, port->device_stats[i].name,
				    integer(port->device_stats[i].value));
	return object;
}

static json_t *port_object(const struct port_snapshot *port)
{
	json_t *device_drops = json_object();
	json_t *queues = json_array();
	json_t *object;

	for (uint32_t i = 0; i < port->n_device_drops; i++)
		json_object_set_new(device_drops, port->device_drops[i].name,
				    integer(port->device_drops[i].value));
	for (uint32_t i = 0; i < port->n_queues; i++)
		json_array_append_new(queues, queue_object(&port->queues[i]));
	object = json_pack("{s:o, s:o, s:o, s:o, s:o}", "port",
			   json_text(port->info.name), "mode",
			   json_text(port->info.mode), "why",
			   json_text(port->info.why), "device_drops",
			   device_drops, "queues", queues);
	add_counters(object, &port_counters, port);
	if (port->n_device_stats > 0)
		json_object_set_new(object, "device_stats",
				    device_stats_object(port));
	if (port->has_link)
		json_object_set_new(object, "link",
				    json_pack("{s:b, s:i, s:b, s:b}", "up",
					      port->link.is_up, "mbps",
					      (int)port->link.speed_mbps,
					      "gone", port->link.is_gone,
					      "detached",
					      port->link.is_detached));
	return object;
}

static json_t *worker_object(const struct worker_snapshot *worker,
			     const struct app_counters *app)
{
	json_t *drops = json_object();
	json_t *object = json_object();

	for (uint32_t i = 0; i < app->n_drops; i++)
		json_object_set_new(drops, app->drop_names[i],
				    integer(worker->drops[i]));
	json_object_set_new(object, "core", integer(worker->core));
	json_object_set_new(object, "numa_node",
			    json_integer(worker->numa_node));
	add_counters(object, &worker_counters, worker);
	for (uint32_t i = 0; i < app->n_worker_rows; i++)
		json_object_set_new(object, app->worker_rows[i].name,
				    integer(worker->counts[i]));
	json_object_set_new(object, "drops", drops);
	return object;
}

static json_t *pool_object(const struct mr_pool_stats *pool)
{
	const struct page_sources from = snapshot_page_sources(pool, NULL);
	json_t *object =
		json_pack("{s:o, s:o, s:o}", "from_cache", integer(from.cache),
			  "from_depot", integer(from.depot), "from_allocator",
			  integer(from.allocator));

	add_counters(object, &pool_counters, pool);
	return object;
}

static json_t *group_object(const struct count_group *group,
			    const uint64_t *counts)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < group->n_rows; i++)
		json_object_set_new(object, group->rows[i].name,
				    integer(counts[i]));
	return object;
}

json_t *report_json_object(const struct snapshot *snapshot)
{
	json_t *ports = json_array();
	json_t *workers = json_array();
	json_t *object;

	for (uint32_t p = 0; p < snapshot->n_ports; p++)
		json_array_append_new(ports, port_object(&snapshot->ports[p]));
	for (uint32_t w = 0; w < snapshot->n_workers; w++)
		json_array_append_new(
			workers,
			worker_object(&snapshot->workers[w], snapshot->app));
	object = json_pack(
		"{s:i, s:f, s:o, s:o, s:o, s:o}", "v", 1, "t", snapshot->t_s,
		"skipped", integer(snapshot->n_skipped), "ports", ports,
		"workers", workers, "pool", pool_object(&snapshot->pool));
	for (uint32_t i = 0; i < snapshot->app->n_groups; i++)
		json_object_set_new(object, snapshot->app->groups[i].name,
				    group_object(&snapshot->app->groups[i],
						 snapshot->groups[i]));
	if (snapshot->app->note.text != NULL)
		json_object_set_new(object, snapshot->app->note.name,
				    json_text(snapshot->app->note.text));
	if (snapshot->is_final) {
		json_object_set_new(object, "final", json_true());
		json_object_set_new(object, "invariants_hold",
				    json_boolean(snapshot->invariants_hold));
		json_object_set_new(object, "conserved",
				    json_boolean(snapshot->is_conserved));
		if (snapshot->about != NULL)
			json_object_set_new(object, "run",
					    json_deep_copy(snapshot->about));
	}
	return object;
}

static bool print_object(const struct snapshot *snapshot)
{
	json_t *object = report_json_object(snapshot);
	char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
	bool is_printed;

	json_decref(object);
	/* A thread waiting here for a reader may be cancelled. */
	pthread_cleanup_push(free, text);
	is_printed = text != NULL && fputs(text, stdout) != EOF &&
		     fputc('\n', stdout) != EOF && fflush(stdout) == 0;
	pthread_cleanup_pop(1);
	return is_printed;
}

static bool show_json(const struct snapshot *now, const struct snapshot *before)
{
	(void)before;
	return print_object(now);
}

const struct report report_json = {
	.show = show_json,
	.end = print_object,
};
