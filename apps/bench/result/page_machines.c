/* SPDX-License-Identifier: BSD-3-Clause */
/* What the figures belong to: enough to measure them again. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "result/page.h"
#include "result/units.h"

__attribute__((format(printf, 3, 4))) static void
fact(struct page *page, const char *name, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (text[0] == '\0')
		return;
	fputs("<dt>", page->to);
	page_text(page, name);
	fputs("</dt><dd>", page->to);
	page_text(page, text);
	fputs("</dd>\n", page->to);
}

/* Texts of an array, with this between them. */
static void join(const json_t *array, const char *between, char *ret, size_t n)
{
	const json_t *entry;
	size_t i, at = 0;

	ret[0] = '\0';
	json_array_foreach(array, i, entry)
	{
		const int k = snprintf(
			ret + at, n - at, "%s%s", i > 0 ? between : "",
			json_is_string(entry) ? json_string_value(entry) : "");

		at += k > 0 ? (size_t)k : 0;
		if (at >= n)
			return;
	}
}

static void machine_facts(struct page *page, const json_t *m)
{
	const bool is_guest = json_text_of(m, "guest")[0] != '\0';
	char text[2048];

	fact(page, "Processor", "%s, microcode %s", json_text_of(m, "cpu"),
	     json_text_of(m, "microcode"));
	fact(page, "Cores", "%.0f, %s; governor %s; NUMA nodes %.0f",
	     json_number_of(m, "cores"),
	     json_is_true(json_object_get(m, "smt")) ? "two threads to a core" :
						       "one thread to a core",
	     json_text_of(m, "governor"), json_number_of(m, "numa_nodes"));
	fact(page, "Isolated", "%s; without a tick: %s",
	     json_text_of(m, "isolated")[0] != '\0' ?
		     json_text_of(m, "isolated") :
		     "none",
	     json_text_of(m, "nohz_full")[0] != '\0' ?
		     json_text_of(m, "nohz_full") :
		     "none");
	fact(page, "Runs in", "%s",
	     is_guest ? json_text_of(m, "guest") : "nothing that shows");
	fact(page, "Kernel", "%s", json_text_of(m, "kernel"));
	fact(page, "Its command line", "%s", json_text_of(m, "kernel_words"));
	join(json_object_get(m, "vulnerabilities"), "; ", text, sizeof(text));
	fact(page, "Vulnerabilities", "%s", text);
	fact(page, "Huge pages", "%.0f of 2 MiB, %.0f free; transparent: %s",
	     json_number_of(m, "huge_pages"),
	     json_number_of(m, "huge_pages_free"), json_text_of(m, "thp"));
	fact(page, "Load before", "%s", json_text_of(m, "load"));
	fact(page, "Compiled", "%s, %s", json_text_of(m, "compiler"),
	     json_text_of(m, "flags"));
}

/* A NIC and its slot, as far as the kernel knows. */
static void print_nic(const json_t *nic, char *ret, size_t n)
{
	const json_t *pci = json_object_get(nic, "pci");
	const json_t *wait = json_object_get(nic, "coalesce");
	const json_t *rings = json_object_get(nic, "rings");
	int at;

	at = snprintf(ret, n, "driver %.40s %.40s, firmware %.60s",
		      json_text_of(nic, "driver"),
		      json_text_of(nic, "driver_version"),
		      json_text_of(nic, "firmware")[0] != '\0' ?
			      json_text_of(nic, "firmware") :
			      "unknown");
	if (json_is_object(rings))
		at += snprintf(ret + at, n - (size_t)at,
			       "; rings %.0f and %.0f",
			       json_number_of(rings, "rx"),
			       json_number_of(rings, "tx"));
	if (json_is_object(wait))
		at += snprintf(ret + at, n - (size_t)at,
			       "; interrupts wait %.0f and %.0f us",
			       json_number_of(wait, "rx_us"),
			       json_number_of(wait, "tx_us"));
	if (json_is_object(pci))
		snprintf(ret + at, n - (size_t)at,
			 "; slot %.24s x%.8s of %.24s x%.8s, NUMA node %.0f, "
			 "distance %.0f",
			 json_text_of(pci, "link_speed"),
			 json_text_of(pci, "link_width"),
			 json_text_of(pci, "max_link_speed"),
			 json_text_of(pci, "max_link_width"),
			 json_number_of(nic, "numa_node"),
			 json_number_of(nic, "numa_distance"));
}

static void port_facts(struct page *page, const json_t *port)
{
	const json_t *nic = json_object_get(port, "nic");
	const char *why = json_text_of(port, "why");
	char text[512] = "", link[32] = "link unknown", mtu[32] = "";

	if (json_is_object(nic))
		print_nic(nic, text, sizeof(text));
	if (json_number_of(port, "link_mbps") > 0)
		snprintf(link, sizeof(link), "%.0f Mbit/s",
			 json_number_of(port, "link_mbps"));
	if (json_number_of(port, "mtu") > 0)
		snprintf(mtu, sizeof(mtu), ", MTU %.0f",
			 json_number_of(port, "mtu"));
	fact(page, json_text_of(port, "name"),
	     "mode %s%s%s%s; %s; queues %.0f and %.0f%s%s%s",
	     json_text_of(port, "mode"), why[0] != '\0' ? " (" : "", why,
	     why[0] != '\0' ? ")" : "", link, json_number_of(port, "rx_queues"),
	     json_number_of(port, "tx_queues"), mtu,
	     text[0] != '\0' ? "; " : "", text);
}

/* What nobody asked for is false, empty, or the 0 of an option whose default
 * that is; of others, as --verify, 0 is an answer. */
static bool is_default(const char *key, const json_t *value)
{
	static const char *const zeros[] = {
		"burst",          "confirm_s",  "count",      "duration_s",
		"loss_tolerance", "page_bytes", "pool_pages", "queues",
		"ring",           "seed",       "settle_s",   "size",
		"workers",
	};
	bool may_be_zero = false;

	for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
		may_be_zero |= strcmp(key, zeros[i]) == 0;
	return json_is_false(value) ||
	       (json_is_string(value) && json_string_length(value) == 0) ||
	       (json_is_array(value) && json_array_size(value) == 0) ||
	       (may_be_zero && json_is_number(value) &&
		json_number_value(value) == 0);
}

/* What was asked for, or measured beside the results, as JSON has it. */
static void config_facts(struct page *page, json_t *config, bool is_asked)
{
	const char *key;
	json_t *value;

	json_object_foreach(config, key, value)
	{
		char *text = json_is_string(value) ?
				     NULL :
				     json_dumps(value,
						JSON_ENCODE_ANY |
							JSON_REAL_PRECISION(6));

		if (is_asked && is_default(key, value)) {
			free(text);
			continue;
		}
		fact(page, key, "%s",
		     text != NULL          ? text :
		     json_is_string(value) ? json_string_value(value) :
					     "");
		free(text);
	}
}

/* The one before it that ran on the same machine, set up the same; or d. */
static uint32_t same_machine(const struct page *page, uint32_t d)
{
	static const char *const moves[] = { "load", "huge_pages_free",
					     "millrace", "command", "date" };
	json_t *mine =
		json_copy(json_object_get(page->documents[d].root, "machine"));
	uint32_t same = d;

	for (uint32_t k = 0; k < 5; k++)
		json_object_del(mine, moves[k]);
	for (uint32_t i = 0; i < d && same == d; i++) {
		json_t *other = json_copy(
			json_object_get(page->documents[i].root, "machine"));

		for (uint32_t k = 0; k < 5; k++)
			json_object_del(other, moves[k]);
		if (json_equal(mine, other))
			same = i;
		json_decref(other);
	}
	json_decref(mine);
	return same;
}

/* What a time of any of its trials may be wrong by. */
static double clock_error_ns(const json_t *root)
{
	double most =
		json_number_of(json_object_get(root, "clock"), "error_ns");
	const json_t *trial;
	size_t i;

	json_array_foreach(json_object_get(root, "trials"), i, trial) most =
		fmax(most, json_number_of(trial, "clock_error_ns"));
	return most;
}

static void document_facts(struct page *page, uint32_t d)
{
	const json_t *root = page->documents[d].root;
	const json_t *clock = json_object_get(root, "clock"), *port;
	char streams[2048], *text;
	uint32_t same;
	size_t i;

	fputs("<h3>", page->to);
	page_text(page, page->names[d]);
	fputs("</h3>\n<dl>\n", page->to);
	fact(page, "Command line", "%s", json_text_of(root, "command"));
	fact(page, "File", "%s", page->documents[d].name);
	fact(page, "Date", "%s, Millrace %s", json_text_of(root, "date"),
	     json_text_of(root, "millrace"));
	same = same_machine(page, d);
	if (same != d)
		fact(page, "Machine", "that of %s; load before: %s",
		     page->names[same],
		     json_text_of(json_object_get(root, "machine"), "load"));
	else
		machine_facts(page, json_object_get(root, "machine"));
	if (json_is_object(clock))
		fact(page, "Clock", "%s, times are within %.0f ns",
		     json_text_of(clock, "source"), clock_error_ns(root));
	if (json_array_size(json_object_get(root, "cores")) > 0) {
		text = json_dumps(json_object_get(root, "cores"), JSON_COMPACT);
		fact(page, "Cores of the tester", "%s",
		     text != NULL ? text : "");
		free(text);
	}
	json_array_foreach(json_object_get(root, "ports"), i, port)
		port_facts(page, port);
	fact(page, "Known device", "%s", json_text_of(root, "device"));
	join(json_object_get(root, "streams"), "\n", streams, sizeof(streams));
	fact(page, "Streams", "%s",
	     streams[0] != '\0' ? streams : "the default one");
	config_facts(page, json_object_get(root, "config"), true);
	config_facts(page, json_object_get(root, "measured"), false);
	fputs("</dl>\n", page->to);
}

void page_machines(struct page *page)
{
	page_section(page, "machines", "What it was measured on",
		     "Machine, ports and options, to measure it again. Options "
		     "that do not stand here had their defaults.");
	for (uint32_t d = 0; d < page->n_documents; d++)
		document_facts(page, d);
}
