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

	/* As everywhere in an application: no memory is the end. */
	if (document == NULL)
		abort();
	machine_look(&machine, command);
	document->root = json_pack(
		"{ss si so so so so so sb ss so s[] s[] sf sn ss s[] s{} s{}"
		" s[] s[] s[] s[]}",
		"schema", DOCUMENT_SCHEMA, "v", DOCUMENT_VERSION, "kind",
		json_text(kind), "label", json_text(label), "date",
		json_text(machine.date), "command", json_text(command),
		"millrace", json_text(machine.millrace), "complete", true,
		"why_incomplete", "", "machine", machine_json(&machine),
		"ports", "cores", "line_bps", 0.0, "clock", "device", "",
		"streams", "config", "measured", "selftest", "rows", "trials",
		"series");
	if (document->root == NULL)
		abort();
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
