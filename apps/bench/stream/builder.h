/* SPDX-License-Identifier: BSD-3-Clause */
/* A builder's state: builder_open.c makes it, builder.c uses it. */
#ifndef STREAM_BUILDER_H
#define STREAM_BUILDER_H

#include "stream/share.h"

enum { NO_FRAME = 0xff };

/* A stream of one sender. */
struct lane {
	struct shape *shapes; /* with the lane's stamp in bytes and sums */
	uint32_t n_shapes;
	uint32_t *sizes; /* as in struct stream */
	uint32_t n_sizes;
	uint32_t size_at; /* of the next frame */
	const struct field *fields;
	struct share shares[FIELDS_MAX]; /* by field */
	uint32_t n_fields;
	bool is_stamped;
	uint16_t run;  /* see stamp.h */
	bool has_sums; /* checksums are computed by frame */
	uint64_t n_sent;
};

struct builder {
	const struct streams *streams;
	struct lane *lanes;
	uint32_t n_lanes;
	uint32_t turn;              /* of the next frame, in streams->turns */
	uint8_t first[STREAMS_MAX]; /* of a chunk's frames, by lane */
};

#endif
