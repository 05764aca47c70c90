/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdint.h>
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

char *json_bytes(const json_t *string)
{
	const char *text = json_string_value(string);
	char *bytes, *to;

	if (text == NULL)
		return NULL;
	bytes = to = strdup(text);
	if (bytes == NULL)
		abort(); /* as everywhere in an application */
	for (; *text != '\0'; text++) {
		const bool is_two = (uint8_t)*text >= 0xc0;

		*to++ = is_two ? (char)((uint8_t)text[0] << 6 |
					((uint8_t)text[1] & 0x3f)) :
				 *text;
		text += is_two;
	}
	*to = '\0';
	return bytes;
}
