/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "text.h"

json_t *json_text(const char *text)
{
	json_t *string = json_string(text != NULL ? text : "");
	char *escaped;
	size_t n;

	if (string != NULL)
		return string;
	n = 4 * strlen(text) + 1; /* \xHH for each byte */
	escaped = malloc(n);
	if (escaped == NULL)
		return NULL;
	string = json_string(text_escape(text, escaped, n));
	free(escaped);
	return string;
}
