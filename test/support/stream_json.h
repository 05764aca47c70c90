/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams for tests in C, without the front end that parses texts. */
#ifndef TEST_STREAM_JSON_H
#define TEST_STREAM_JSON_H

#include <stdlib.h>
#include <string.h>

#include "stream/stream.h"

/* The result of streams_make() for this JSON, in which ' stands for a quote. */
static inline int streams_from(const char *text,
			       const struct stream_defaults *defaults,
			       struct streams **ret, struct mr_reason *why)
{
	char *const json = strdup(text);
	json_t *of;
	int err;

	for (char *at = json; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	of = json_loads(json, 0, NULL);
	free(json);
	if (of == NULL)
		abort();
	err = streams_make(of, defaults, ret, why);
	json_decref(of);
	return err;
}

#endif
