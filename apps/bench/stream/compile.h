/* SPDX-License-Identifier: BSD-3-Clause */
/* From the words of one stream to its shapes and fields. */
#ifndef STREAM_COMPILE_H
#define STREAM_COMPILE_H

#include "stream/words.h"

/*
 * Fill all but text and weight; tables of values go from words to ret. On
 * failure ret is to be freed, too.
 */
int stream_compile(struct words *words, const struct stream_defaults *defaults,
		   struct stream *ret, struct mr_reason *why);
void stream_free(struct stream *stream);

/*
 * All frames of a capture as shapes of ret; shorter ones are filled up to 60
 * bytes. Returns 0, -ENOENT, -EINVAL (no capture of Ethernet, none or too many
 * frames, a frame that was cut off), -ENOTSUP (built without libpcap) or
 * -ENOMEM, with a line. On failure ret is to be freed, too.
 */
int capture_read(const char *path, struct stream *ret, struct mr_reason *why);

/*
 * Places 0..n_turns - 1 for n things, each as often as its weight says, spread
 * as evenly as that allows. NULL: no memory.
 */
uint32_t *spread(const uint32_t *weights, uint32_t n, uint32_t *ret_n_turns);

#endif
