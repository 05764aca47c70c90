/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of documents. */
#include <math.h>

#include "result/document_parts.h"

json_t *document_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *document_real(double value)
{
	return json_real(isfinite(value) ? value : 0);
}
