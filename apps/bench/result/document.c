/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "result/document.h"
#include "result/document_parts.h"

struct document *document_new(const char *kind, const char *label,
			      const char *command)
{
	struct document *document = calloc(1, sizeof(*document));
	struct machine machine;
	json_t *root = json_object();

	/* As everywhere in an application: no memory is the end. */
	if (document == NULL || root == NULL)
		abort();
	machine_look(&machine, command);
	document->root = root;
	json_object_set_new(root, "schema", json_string(DOCUMENT_SCHEMA));
	json_object_set_new(root, "v", json_integer(DOCUMENT_VERSION));
	json_object_set_new(root, "kind", json_text(kind));
	json_object_set_new(root, "label", json_text(label));
	json_object_set_new(root, "date", json_text(machine.date));
	json_object_set_new(root, "command", json_text(command));
	json_object_set_new(root, "millrace", json_text(machine.millrace));
	json_object_set_new(root, "complete", json_true());
	json_object_set_new(root, "why_incomplete", json_string(""));
	json_object_set_new(root, "machine", machine_json(&machine));
	json_object_set_new(root, "ports", json_array());
	json_object_set_new(root, "cores", json_array());
	json_object_set_new(root, "line_bps", document_real(0));
	json_object_set_new(root, "clock", json_null());
	json_object_set_new(root, "device", json_string(""));
	json_object_set_new(root, "streams", json_array());
	json_object_set_new(root, "config", json_object());
	json_object_set_new(root, "measured", json_object());
	json_object_set_new(root, "selftest", json_array());
	json_object_set_new(root, "rows", json_array());
	json_object_set_new(root, "trials", json_array());
	json_object_set_new(root, "series", json_array());
	return document;
}

void document_free(struct document *document)
{
	if (document == NULL)
		return;
	json_decref(document->root);
	free(document);
}

json_t *document_json(const struct document *document)
{
	return document->root;
}

void document_set(struct document *document, const char *key, json_t *value)
{
	json_object_set_new(json_object_get(document->root, "config"), key,
			    value);
}

void document_fail(struct document *document, const char *why)
{
	if (json_is_false(json_object_get(document->root, "complete")))
		return;
	json_object_set_new(document->root, "complete", json_false());
	json_object_set_new(document->root, "why_incomplete", json_text(why));
}

json_t *document_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *document_real(double value)
{
	return json_real(isfinite(value) ? value : 0);
}
