/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tester opened: ports, the clock, streams. */
#include <stdio.h>
#include <string.h>

#include "net/tester.h"
#include "result/document_parts.h"
#include "stream/stream.h"

static bool names(const char *spec, const char *name)
{
	const size_t length = strlen(name);

	return strncmp(spec, name, length) == 0 &&
	       (spec[length] == '\0' || spec[length] == ',');
}

/* A port's name has its driver in front, a spec may be the device alone. */
static bool is_among(const char *const *specs, uint32_t n, const char *name)
{
	const char *colon = strchr(name, ':');

	for (uint32_t i = 0; i < n; i++)
		if (names(specs[i], name) ||
		    (colon != NULL && names(specs[i], colon + 1)))
			return true;
	return false;
}

static void set_cores(json_t *document, const uint32_t *cores, uint32_t n)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(array, document_count(cores[i]));
	json_object_set_new(document, "cores", array);
}

/* A port as it was opened; link: zeros if unknown. */
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

void document_clock(json_t *document, const char *source, uint64_t error_ns)
{
	json_object_set_new(document, "clock",
			    json_pack("{s:s, s:o}", "source", source,
				      "error_ns", document_count(error_ns)));
}

void document_plane(json_t *document, const struct dataplane *plane,
		    const uint32_t *cores, uint32_t n_cores, uint32_t sends,
		    uint32_t receives)
{
	json_t *ports = json_array();

	set_cores(document, cores, n_cores);
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

static json_t *tester_port(const struct tester *tester, uint32_t i)
{
	const struct tester_config *config = tester_config_of(tester);
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_link link;

	tester_port_info(tester, i, &info);
	if (tester_link(tester, i, &link) < 0)
		link = (struct mr_link){ 0 };
	return port_json(&info, &link,
			 is_among(config->tx, config->n_tx, info.name),
			 is_among(config->rx, config->n_rx, info.name));
}

void document_ports(json_t *document, const struct tester *tester)
{
	const struct tester_config *config = tester_config_of(tester);
	const struct streams *streams = tester_streams(tester);
	uint32_t cores[MR_WORKERS_MAX];
	json_t *texts = json_array(), *ports = json_array();

	set_cores(document, cores, tester_cores(tester, cores, MR_WORKERS_MAX));
	for (uint32_t i = 0; i < tester_n_ports(tester); i++)
		json_array_append_new(ports, tester_port(tester, i));
	json_object_set_new(document, "ports", ports);
	for (uint32_t i = 0; config->n_tx > 0 && i < streams_n(streams); i++)
		json_array_append_new(texts,
				      json_text(streams_text(streams, i)));
	json_object_set_new(document, "line_bps",
			    document_real(tester_line_bps(tester)));
	document_clock(document, tester_clock_source(tester),
		       tester_clock_error_ns(tester));
	json_object_set_new(document, "streams", texts);
}
