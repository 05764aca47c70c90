/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"

enum { MAX_UTF8_BYTES = 4, ESCAPED_BYTES = 4 /* \xHH */ };

/* Length of the first character of text; 0: invalid. */
static size_t character_bytes(const char *text)
{
	const size_t n_text = strlen(text);

	for (size_t n = 1; n <= MAX_UTF8_BYTES && n <= n_text; n++) {
		json_t *character = json_stringn(text, n);

		json_decref(character);
		if (character != NULL)
			return n;
	}
	return 0;
}

json_t *json_text(const char *text)
{
	json_t *string = json_string(text != NULL ? text : "");
	char *escaped, *to;

	if (string != NULL)
		return string;
	to = escaped = malloc(ESCAPED_BYTES * strlen(text) + 1);
	if (escaped == NULL)
		return NULL;
	while (*text != '\0') {
		const size_t n = character_bytes(text);

		memcpy(to, text, n);
		if (n == 0)
			snprintf(to, ESCAPED_BYTES + 1, "\\x%02x",
				 (unsigned char)*text);
		to += n > 0 ? n : ESCAPED_BYTES;
		text += n > 0 ? n : 1;
	}
	*to = '\0';
	string = json_string(escaped);
	free(escaped);
	return string;
}
