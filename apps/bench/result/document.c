/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes what was requested and what was opened: ports, clock, streams. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/tester.h"
#include "result/document.h"
#include "stream/compiled.h"
#include "support/json_text.h"

json_t *document_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *document_counts(const char *names, const uint64_t *values)
{
	json_t *object = json_object();
	char name[24];

	for (int n; sscanf(names, "%23s%n", name, &n) == 1; names += n)
		json_object_set_new(object, name, document_count(*values++));
	return object;
}

json_t *document_real(double value)
{
	return json_real(isfinite(value) ? value : 0);
}

static json_t *numbers(const uint32_t *from, uint32_t n)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(array, document_count(from[i]));
	return array;
}

json_t *document_begin(const struct dataplane_config *plane)
{
	static const char *const promisc[] = {
		[PROMISC_AUTO] = "auto",
		[PROMISC_ON] = "on",
		[PROMISC_OFF] = "off",
	};
	json_t *document = json_pack(
		"{s{ss ss ss} s{so so so so so so ss so}}", "built", "compiler",
		__VERSION__, "flags", BENCH_FLAGS, "millrace", mr_version(),
		"config", "queues", document_count(plane->port.n_queues),
		"workers", document_count(plane->n_workers), "burst",
		document_count(plane->burst), "ring",
		document_count(plane->port.n_ring), "page_bytes",
		document_count(plane->page_bytes), "pool_pages",
		document_count(plane->n_pages), "promisc",
		promisc[plane->port.promisc], "cores", /* none: auto */
		numbers(plane->cores, plane->n_cores));

	/* As everywhere in an application: no memory is the end. */
	if (document == NULL)
		abort();
	return document;
}

void document_clock(json_t *document, const char *source, uint64_t error_ns)
{
	json_object_set_new(document, "clock",
			    json_pack("{s:s, s:o}", "source", source,
				      "error_ns", document_count(error_ns)));
}

/* A port as it was opened. */
static json_t *port_json(const struct mr_port_info *info,
			 const struct mr_link *link, bool sends, bool receives)
{
	return json_pack("{so sb sb so so so so so so si so so sn}", "name",
			 json_text(info->name), "sends", sends, "receives",
			 receives, "mode", json_text(info->mode), "why",
			 json_text(info->why), "rx_queues",
			 document_count(info->n_rxqs), "tx_queues",
			 document_count(info->n_txqs), "mtu",
			 document_count(info->mtu_bytes), "offloads",
			 document_count(info->offloads), "numa_node",
			 (int)info->numa_node, "locked_bytes",
			 document_count(info->locked_bytes), "link_mbps",
			 document_count(link->speed_mbps), "nic");
}

void document_plane(json_t *document, const struct dataplane *plane,
		    const uint32_t *cores, uint32_t n_cores, uint32_t sends,
		    uint32_t receives)
{
	json_t *ports = json_array();

	json_object_set_new(document, "cores", numbers(cores, n_cores));
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_link link;

		mr_port_info(plane->ports[p], &info);
		if (mr_port_link(plane->ports[p], &link) < 0)
			link = (struct mr_link){ 0 };
		json_array_append_new(ports,
				      port_json(&info, &link, sends >> p & 1,
						receives >> p & 1));
	}
	json_object_set_new(document, "ports", ports);
}

static bool is_among(const uint32_t *ports, uint32_t n, uint32_t port)
{
	for (uint32_t i = 0; i < n; i++)
		if (ports[i] == port)
			return true;
	return false;
}

void document_ports(json_t *document, const struct tester *t)
{
	uint32_t cores[MR_WORKERS_MAX];
	json_t *texts = json_array(), *ports = json_array();

	json_object_set_new(
		document, "cores",
		numbers(cores, tester_cores(t, cores, MR_WORKERS_MAX)));
	for (uint32_t i = 0; i < tester_n_ports(t); i++) {
		struct mr_port_info info;
		struct mr_link link;

		tester_port(t, i, &info, &link);
		json_array_append_new(ports,
				      port_json(&info, &link,
						is_among(t->tx, t->n_tx, i),
						is_among(t->rx, t->n_rx, i)));
	}
	json_object_set_new(document, "ports", ports);
	for (uint32_t i = 0; t->n_tx > 0 && i < t->streams[0]->n; i++)
		json_array_append_new(texts,
				      json_text(t->streams[0]->of[i].text));
	json_object_set_new(document, "line_bps",
			    document_real(tester_line_bps(t)));
	document_clock(document, clock_source(&t->clock), t->clock.error_ns);
	json_object_set_new(document, "streams", texts);
}
