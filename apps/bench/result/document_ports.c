/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tester opened: ports, the clock, streams. */
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "net/tester.h"
#include "result/document_parts.h"
#include "result/nic.h"
#include "stream/stream.h"

/* A port as it was opened, and who uses it. */
struct port_of_document {
	struct mr_port_info info;
	struct mr_link link; /* zeros: unknown */
	bool sends, receives;
	const uint32_t *cores; /* of the threads that use it */
	uint32_t n_cores;      /* 0: not known */
};

/* The device in "driver:device". */
static const char *device_of(const struct mr_port_info *info)
{
	const char *colon = strchr(info->name, ':');

	return colon != NULL ? colon + 1 : "";
}

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
	json_t *array = json_object_get(document, "cores");
	char governor[96];

	machine_governor("/sys", cores, n, governor, sizeof(governor));
	if (n > 0)
		json_object_set_new(json_object_get(document, "machine"),
				    "governor", json_text(governor));
	json_array_clear(array);
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(array, document_count(cores[i]));
}

static void describe_port(json_t *document, const struct port_of_document *port)
{
	const struct mr_port_info *info = &port->info;
	json_t *object = json_pack(
		"{so sb sb so so so so so so si so so so}", "name",
		json_text(info->name), "sends", port->sends, "receives",
		port->receives, "mode", json_text(info->mode), "why",
		json_text(info->why), "rx_queues", document_count(info->n_rxqs),
		"tx_queues", document_count(info->n_txqs), "mtu",
		document_count(info->mtu_bytes), "offloads",
		document_count(info->offloads), "numa_node",
		(int)info->numa_node, "locked_bytes",
		document_count(info->locked_bytes), "link_mbps",
		document_count(port->link.speed_mbps), "nic",
		nic_json("/sys", device_of(info), port->cores, port->n_cores));

	json_array_append_new(json_object_get(document, "ports"), object);
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
	set_cores(document, cores, n_cores);
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct port_of_document port = {
			.info.size = sizeof(port.info),
			.sends = sends >> p & 1,
			.receives = receives >> p & 1,
			.cores = cores,
			.n_cores = n_cores,
		};

		mr_port_info(plane->ports[p], &port.info);
		if (mr_port_link(plane->ports[p], &port.link) < 0)
			port.link = (struct mr_link){ 0 };
		describe_port(document, &port);
	}
}

static void add_port(json_t *document, const struct tester *tester, uint32_t i)
{
	const struct tester_config *config = tester_config_of(tester);
	uint32_t cores[MR_WORKERS_MAX];
	struct port_of_document port = {
		.info.size = sizeof(port.info),
		.cores = cores,
		.n_cores = tester_cores(tester, cores, MR_WORKERS_MAX),
	};

	tester_port_info(tester, i, &port.info);
	if (tester_link(tester, i, &port.link) < 0)
		port.link = (struct mr_link){ 0 };
	port.sends = is_among(config->tx, config->n_tx, port.info.name);
	port.receives = is_among(config->rx, config->n_rx, port.info.name);
	describe_port(document, &port);
}

/* Of all sending links, with preamble, FCS and gap; 0: unknown. */
static double line_bps(const struct tester *tester)
{
	const uint32_t frame_bytes = 60;

	return rate_l1_bps(tester_line_rate_pps(tester, frame_bytes),
			   frame_bytes);
}

void document_ports(json_t *document, const struct tester *tester)
{
	const struct tester_config *config = tester_config_of(tester);
	const struct streams *streams = tester_streams(tester);
	uint32_t cores[MR_WORKERS_MAX];
	json_t *texts = json_array();

	set_cores(document, cores, tester_cores(tester, cores, MR_WORKERS_MAX));
	for (uint32_t i = 0; i < tester_n_ports(tester); i++)
		add_port(document, tester, i);
	for (uint32_t i = 0; config->n_tx > 0 && i < streams_n(streams); i++)
		json_array_append_new(texts,
				      json_text(streams_text(streams, i)));
	json_object_set_new(document, "line_bps",
			    document_real(line_bps(tester)));
	document_clock(document, tester_clock_source(tester),
		       tester_clock_error_ns(tester));
	json_object_set_new(document, "device", json_text(config->device));
	json_object_set_new(document, "streams", texts);
}
