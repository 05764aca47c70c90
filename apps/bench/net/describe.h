/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#ifndef NET_DESCRIBE_H
#define NET_DESCRIBE_H

#include "net/options.h"
#include "result/document.h"

/* Sets "config" of the document, as far as the shared options say it. */
void traffic_describe(const struct traffic_options *options,
		      struct document *document);

/* Write the files that were asked for. Returns 0, or 1 with a line on stderr.
 */
int traffic_write(const struct traffic_options *options,
		  const struct document *document);

/* The line on an imix whose frames are longer than asked for. False: they are
 * not. */
bool imix_raised_print(const struct streams *streams, char *ret,
		       size_t n_bytes);

/* Of these, what ports and threads are opened with. */
void plane_describe(const struct dataplane_config *plane,
		    struct document *document);

#endif
