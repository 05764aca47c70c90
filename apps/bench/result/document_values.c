/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of documents. */
#include <math.h>

#include "result/document_parts.h"

json_t *document_text(const char *text)
{
	json_t *string = json_string(text != NULL ? text : "");

	/* What a device or the user calls something need not be UTF-8. */
	return string != NULL ? string : json_string("(not UTF-8)");
}

json_t *document_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *document_real(double value)
{
	return json_real(isfinite(value) ? value : 0);
}
