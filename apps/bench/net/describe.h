/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#ifndef NET_DESCRIBE_H
#define NET_DESCRIBE_H

#include "net/options.h"
#include "result/document.h"

/* Sets "config" of the document, as far as the shared options say it. */
void traffic_describe(const struct traffic_options *options, json_t *document);

/* A path that the front end is to write to, of any bytes: a character of the
 * string stands for each, as in Latin-1. NULL: null. Owner: the caller. */
json_t *path_text(const char *path);

/* The line on an imix whose frames are longer than asked for. False: they are
 * not. */
bool imix_raised_print(const struct streams *streams, char *ret,
		       size_t n_bytes);

/* Of these, what ports and threads are opened with. */
void plane_describe(const struct dataplane_config *plane, json_t *document);

#endif
