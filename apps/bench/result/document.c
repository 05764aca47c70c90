/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "result/document.h"
#include "result/document_parts.h"

json_t *document_new(const char *kind, const char *label, const char *command)
{
	struct machine machine;
	json_t *document;

	machine_look(&machine, command);
	document = json_pack(
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
	/* As everywhere in an application: no memory is the end. */
	if (document == NULL)
		abort();
	return document;
}

void document_set(json_t *document, const char *key, json_t *value)
{
	json_object_set_new(json_object_get(document, "config"), key, value);
}

void document_fail(json_t *document, const char *why)
{
	if (json_is_false(json_object_get(document, "complete")))
		return;
	json_object_set_new(document, "complete", json_false());
	json_object_set_new(document, "why_incomplete", json_text(why));
}

json_t *document_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *document_real(double value)
{
	return json_real(isfinite(value) ? value : 0);
}
