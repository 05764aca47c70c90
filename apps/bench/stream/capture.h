/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a capture file, as templates. */
#ifndef STREAM_CAPTURE_H
#define STREAM_CAPTURE_H

#include <stdint.h>

#include <millrace/millrace.h>

enum { CAPTURE_FRAMES_MAX = 1 << 16 };

struct capture_frame {
	uint8_t *bytes;
	uint32_t n_bytes; /* shorter ones are filled up to 60 */
};

/*
 * Read all frames. Returns 0, -ENOENT, -EINVAL (no capture of Ethernet, none or
 * too many frames, a frame that was cut off), -ENOTSUP (built without libpcap)
 * or -ENOMEM, with a line.
 */
int capture_read(const char *path, struct capture_frame **ret, uint32_t *ret_n,
		 struct mr_reason *why);
void capture_free(struct capture_frame *frames, uint32_t n);

#endif
