/* SPDX-License-Identifier: BSD-3-Clause */
/* External names, in JSON. */
#ifndef SUPPORT_JSON_TEXT_H
#define SUPPORT_JSON_TEXT_H

#include <jansson.h>

/*
 * A string of any bytes; NULL is "". JSON is UTF-8, but names of files and
 * devices need not be: a byte that is not part of a character becomes \xHH, so
 * that different names stay different.
 */
json_t *json_text(const char *text);

/*
 * Decode bytes from a string that has a character for each, as in Latin-1.
 * NULL: not such a string. The caller frees them.
 */
char *json_bytes(const json_t *string);

#endif
