/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a port by name, as text or as JSON, with the same code.
 *
 *     text: queue 0 rx drops ring_full 12
 *     JSON: { ..., "queues": [{"rx": {..., "drops": {"ring_full": 12}}}] }
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <millrace/port_device.h>

#include "base/base.h"

enum { MAX_DEVICE_DROPS = 64, PATH_BYTES = 64 };

struct writer {
	char *text;
	size_t n_bytes; /* room */
	size_t n;       /* of the whole text, including what does not fit */
	bool is_json;
	bool is_first;         /* the next member is the first of its object */
	char path[PATH_BYTES]; /* the words before the name in a line of text */
};

static void put_text(struct writer *w, const char *format, ...)
{
	const size_t n_left = w->n < w->n_bytes ? w->n_bytes - w->n : 0;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(n_left > 0 ? w->text + w->n : NULL, n_left, format, args);
	va_end(args);
	w->n += n > 0 ? (size_t)n : 0;
}

/* Length of the UTF-8 character at the start of text; 0: there is none. */
static size_t n_of_utf8(const char *text)
{
	const uint8_t *t = (const uint8_t *)text;
	const size_t n = t[0] < 0x80 ? 1 :
			 t[0] < 0xc2 ? 0 :
			 t[0] < 0xe0 ? 2 :
			 t[0] < 0xf0 ? 3 :
			 t[0] < 0xf5 ? 4 :
				       0;

	for (size_t i = 1; i < n; i++)
		if ((t[i] & 0xc0) != 0x80)
			return 0;
	/* An overlong form, a surrogate, or above U+10FFFF. */
	if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f) ||
	    (t[0] == 0xf0 && t[1] < 0x90) || (t[0] == 0xf4 && t[1] > 0x8f))
		return 0;
	return n;
}

/* Print a JSON string. A path may have any bytes, and a name may be cut. */
static void put_string(struct writer *w, const char *text)
{
	put_text(w, "\"");
	while (*text != '\0') {
		const size_t n = n_of_utf8(text);

		if (n == 0)
			put_text(w, "\\ufffd");
		else if ((uint8_t)*text < 0x20 || *text == '"' || *text == '\\')
			put_text(w, "\\u%04x", *text);
		else
			put_text(w, "%.*s", (int)n, text);
		text += n > 0 ? n : 1;
	}
	put_text(w, "\"");
}

static void put_key(struct writer *w, const char *name)
{
	if (!w->is_first)
		put_text(w, ", ");
	w->is_first = false;
	put_string(w, name);
	put_text(w, ": ");
}

static void put_count(struct writer *w, const char *name, uint64_t value)
{
	if (w->is_json)
		put_key(w, name);
	else
		put_text(w, "%s%s ", w->path, name);
	put_text(w, "%llu%s", (unsigned long long)value,
		 w->is_json ? "" : "\n");
}

/* Returns the previous length of the path, for close_object(). */
static size_t open_object(struct writer *w, const char *name)
{
	const size_t n = strlen(w->path);

	if (w->is_json) {
		put_key(w, name);
		put_text(w, "{");
		w->is_first = true;
	}
	snprintf(w->path + n, sizeof(w->path) - n, "%s ", name);
	return n;
}

static void close_object(struct writer *w, size_t n_path)
{
	if (w->is_json)
		put_text(w, "}");
	w->is_first = false;
	w->path[n_path] = '\0';
}

/* Print all counters with a name, also zeros, so that readers see them. */
static void put_slots(struct writer *w, const char *name, const uint64_t *slots,
		      const char *(*name_of)(uint32_t))
{
	const size_t n_path = open_object(w, name);

	for (uint32_t i = 0; name_of(i) != NULL; i++)
		put_count(w, name_of(i), slots[i]);
	close_object(w, n_path);
}

static void put_rx(struct writer *w, const struct mr_rxq *rxq)
{
	struct mr_rx_stats s = { .size = sizeof(s) };
	const size_t n_path = open_object(w, "rx");

	mr_rxq_stats(rxq, &s);
	put_count(w, "received", s.received);
	put_count(w, "delivered", s.delivered);
	put_count(w, "offloaded", s.offloaded);
	put_count(w, "passed_to_kernel", s.passed_to_kernel);
	put_count(w, "bytes", s.bytes);
	put_slots(w, "drops", s.drops, mr_rx_drop_name);
	put_slots(w, "events", s.events, mr_rx_event_name);
	close_object(w, n_path);
}

static void put_tx(struct writer *w, const struct mr_txq *txq)
{
	struct mr_tx_stats s = { .size = sizeof(s) };
	const size_t n_path = open_object(w, "tx");

	mr_txq_stats(txq, &s);
	put_count(w, "accepted", s.accepted);
	put_count(w, "completed", s.completed);
	put_count(w, "pending", s.pending);
	put_count(w, "bytes", s.bytes);
	put_slots(w, "drops", s.drops, mr_tx_drop_name);
	put_slots(w, "events", s.events, mr_tx_event_name);
	close_object(w, n_path);
}

static void put_device_drops(struct writer *w, const struct mr_port *port)
{
	struct mr_named_count drops[MAX_DEVICE_DROPS];
	const uint32_t n = mr_port_device_drops(port, drops, MAX_DEVICE_DROPS);
	const size_t n_path = open_object(w, "device_drops");

	for (uint32_t i = 0; i < mri_min_u32(n, MAX_DEVICE_DROPS); i++)
		put_count(w, drops[i].name, drops[i].value);
	close_object(w, n_path);
}

static void put_queue(struct writer *w, struct mr_port *port, uint32_t i)
{
	const struct mr_rxq *rxq = mr_port_rxq(port, i);
	const struct mr_txq *txq = mr_port_txq(port, i);

	if (w->is_json)
		put_text(w, i > 0 ? ", {" : "{");
	else
		snprintf(w->path, sizeof(w->path), "queue %u ", i);
	w->is_first = true;
	if (rxq != NULL)
		put_rx(w, rxq);
	if (txq != NULL)
		put_tx(w, txq);
	close_object(w, 0);
}

static size_t put_port(struct writer *w, const struct mr_port *port)
{
	struct mr_port *p = (struct mr_port *)port; /* to find its queues */
	struct mr_port_info info = { .size = sizeof(info) };

	if (w->n_bytes > 0)
		w->text[0] = '\0';
	mr_port_info(port, &info);
	if (w->is_json) {
		put_text(w, "{");
		put_key(w, "port");
		put_string(w, info.name);
	} else {
		put_text(w, "port %s\n", info.name);
	}
	put_device_drops(w, port);
	if (w->is_json) {
		put_key(w, "queues");
		put_text(w, "[");
	}
	for (uint32_t i = 0; i < info.n_rxqs || i < info.n_txqs; i++)
		put_queue(w, p, i);
	if (w->is_json)
		put_text(w, "]}");
	return w->n;
}

size_t mr_port_stats_text(const struct mr_port *port, char *ret_text,
			  size_t n_bytes)
{
	struct writer w = { .text = ret_text, .n_bytes = n_bytes };

	return put_port(&w, port);
}

size_t mr_port_stats_json(const struct mr_port *port, char *ret_text,
			  size_t n_bytes)
{
	struct writer w = { .text = ret_text, .n_bytes = n_bytes,
			    .is_json = true, .is_first = true };

	return put_port(&w, port);
}
