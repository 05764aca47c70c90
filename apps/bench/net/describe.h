/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#ifndef NET_DESCRIBE_H
#define NET_DESCRIBE_H

#include <jansson.h>

#include "support/dataplane.h"

/* A path that the front end is to write to, of any bytes: a character of the
 * string stands for each, as in Latin-1. NULL: null. Owner: the caller. */
json_t *path_text(const char *path);

/* Adds the configuration of ports and threads to "config". */
void plane_describe(const struct dataplane_config *plane, json_t *document);

#endif
