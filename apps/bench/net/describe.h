/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#ifndef NET_DESCRIBE_H
#define NET_DESCRIBE_H

#include "net/options.h"
#include "result/document.h"

/* Sets "config" of the document, as far as the shared options say it. */
void traffic_describe(const struct traffic_options *options,
		      struct document *document);

/* The line on frames that are longer than the list of sizes has them, in one or
 * more of so many streams; lengths without FCS. */
void raised_print(uint32_t from_bytes, uint32_t to_bytes, uint32_t n_streams,
		  char *ret, size_t n_bytes);
/* The same of streams that have an imix. False: all frames are as asked. */
bool imix_raised_print(const struct streams *streams, char *ret,
		       size_t n_bytes);

/* Of these, what ports and threads are opened with. */
void plane_describe(const struct dataplane_config *plane,
		    struct document *document);

#endif
