/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "result/document.h"
#include "result/document_parts.h"

json_t *document_begin(void)
{
	json_t *document = json_pack("{s{ss ss ss} s{}}", "built", "compiler",
				     __VERSION__, "flags", BENCH_FLAGS,
				     "millrace", mr_version(), "config");

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
