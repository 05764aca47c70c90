/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiles the words of a stream to shapes and fields. */
#ifndef STREAM_COMPILE_H
#define STREAM_COMPILE_H

#include "stream/words.h"

/* Fill all except text and weight; tables of values move from words to ret. On
 * failure, ret must be freed, too. */
int stream_compile(struct words *words, const struct stream_defaults *defaults,
		   struct stream *ret, struct mr_reason *why);
void stream_free(struct stream *stream);

/*
 * Read all frames of a capture as shapes of ret; shorter ones are padded to 60
 * bytes. Returns 0, -ENOENT, -EINVAL (no capture of Ethernet, no or too many
 * frames, or a frame that was cut off), -ENOTSUP (built without libpcap) or
 * -ENOMEM, with a reason. On failure, ret must be freed, too.
 */
int capture_read(const char *path, struct stream *ret, struct mr_reason *why);

/* Deal turns to n things, each as often as its weight says, spread as evenly as
 * possible. NULL: no memory. */
uint32_t *spread(const uint32_t *weights, uint32_t n, uint32_t *ret_n_turns);

#endif
