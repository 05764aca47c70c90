/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns compiled streams into tables for the program in the kernel: fixed
 * sizes, no pointers. Refuses what has no room there, and names it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "live/live.h"
#include "stream/compiled.h"

/* How much of the tables that streams share is used. */
struct filling {
	struct live_shape *shape;
	uint32_t stream; /* that is looked at */
	uint32_t n_values, n_sizes;
	struct mr_reason *why;
};

static int refuse_stream(const struct filling *filling, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse_stream(const struct filling *filling, const char *format, ...)
{
	char text[160];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(filling->why->text, sizeof(filling->why->text),
		 "live frames, stream %u: %s; use an xdp: port",
		 filling->stream + 1, text);
	return -ENOTSUP;
}

static bool is_zero(const struct shape *from, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (from->bytes[i] != 0)
			return false;
	return true;
}

/* The program writes headers in words of 8 bytes; zeros and a stamp follow. */
static int check_frame(const struct filling *filling, const struct shape *from)
{
	const uint32_t n = from->n_bytes;
	const uint32_t n_written =
		n < LIVE_HEADER_BYTES ? n / 8 * 8 : LIVE_HEADER_BYTES;

	if (filling->shape->n_frames == LIVE_MAX_FRAMES)
		return refuse_stream(filling, "more than %d sizes of frames",
				     LIVE_MAX_FRAMES);
	if (n < LIVE_MIN_BYTES || n > LIVE_MAX_BYTES)
		return refuse_stream(filling,
				     "a frame of %u bytes, not of %d to %d", n,
				     LIVE_MIN_BYTES, LIVE_MAX_BYTES);
	if (is_zero(from, n_written, n))
		return 0;
	if (n > LIVE_HEADER_BYTES)
		return refuse_stream(filling, "a payload other than zeros");
	return refuse_stream(filling,
			     "headers up to byte %u, for which size=%u has "
			     "room",
			     n, (n + 7) / 8 * 8);
}

/* Add the place of a stamp, unless it is known. */
static int take_stamp(struct filling *filling, uint32_t n_bytes)
{
	struct live_shape *shape = filling->shape;
	const uint16_t place = (uint16_t)(n_bytes - LIVE_STAMP_BYTES);

	for (uint32_t i = 0; i < shape->n_stamps; i++)
		if (shape->stamps_at[i] == place)
			return 0;
	if (shape->n_stamps == LIVE_MAX_STAMPS)
		return refuse_stream(filling,
				     "stamped frames of more than %d sizes",
				     LIVE_MAX_STAMPS);
	shape->stamps_at[shape->n_stamps++] = place;
	return 0;
}

static int take_frame(struct filling *filling, const struct shape *from)
{
	const uint32_t n_header = from->n_bytes < LIVE_HEADER_BYTES ?
					  from->n_bytes :
					  LIVE_HEADER_BYTES;
	struct live_shape *shape = filling->shape;
	struct live_frame *frame;
	const int err = check_frame(filling, from);

	if (err < 0)
		return err;
	frame = &shape->frames[shape->n_frames++];
	memcpy(frame->header, from->bytes, n_header);
	frame->n_bytes = from->n_bytes;
	frame->ip_sum_at = from->l3_csum;
	frame->l4_sum_at = from->l4_csum;
	frame->ip_sum = from->l3_sum;
	frame->l4_sum = from->l4_sum;
	frame->is_udp = from->is_zero_csum_none;
	frame->is_stamp_odd = from->is_stamp_odd;
	if (from->n_bytes > shape->max_bytes)
		shape->max_bytes = from->n_bytes;
	if (from->n_bytes > LIVE_MIN_BYTES)
		shape->has_long = true;
	return shape->is_stamped ? take_stamp(filling, from->n_bytes) : 0;
}

static int take_set(struct filling *filling, const struct field *from,
		    struct live_field *field)
{
	const uint64_t n = from->values.n;

	if (n > LIVE_MAX_VALUES - filling->n_values)
		return refuse_stream(filling,
				     "'%s': more than %d values in sets",
				     from->name, LIVE_MAX_VALUES);
	field->set_at = (uint16_t)filling->n_values;
	for (uint64_t i = 0; i < n; i++)
		filling->shape->values[filling->n_values++] =
			from->values.table[i] << from->shift;
	return 0;
}

/* *every: after how many turns the fields before it begin again. */
static int take_field(struct filling *filling, const struct field *from,
		      struct live_field *field, uint64_t *every)
{
	const struct values *values = &from->values;

	if (values->order == ORDER_ZIPF)
		return refuse_stream(
			filling,
			"'%s' varies by Zipf's law, not in sequence "
			"or at random",
			from->name);
	if (from->at + 4 > LIVE_HEADER_BYTES)
		return refuse_stream(filling, "'%s' behind byte %d", from->name,
				     LIVE_HEADER_BYTES);
	*field = (struct live_field){
		.offset = from->at,
		.n_bytes = from->n_bytes,
		.sums = (from->is_in_l3_sum ? LIVE_SUM_IP : 0) |
			(from->is_in_l4_sum ? LIVE_SUM_L4 : 0),
		.set_at = LIVE_NO_SET,
		.is_random = values->order == ORDER_RANDOM,
		.first = values->first << from->shift,
		.fixed = from->fixed,
		.step = values->step << from->shift,
		.n = values->n,
		.every = *every,
	};
	if (values->order == ORDER_SEQUENCE &&
	    __builtin_mul_overflow(*every, values->n, every))
		*every = UINT64_MAX;
	return values->table != NULL ? take_set(filling, from, field) : 0;
}

static int take_sizes(struct filling *filling, const struct stream *from,
		      struct live_stream *stream)
{
	const uint32_t first = filling->shape->n_frames;

	if (from->n_sizes > LIVE_MAX_SIZES - filling->n_sizes)
		return refuse_stream(filling, "a mix of more than %d sizes",
				     LIVE_MAX_SIZES);
	stream->sizes_at = (uint16_t)filling->n_sizes;
	stream->n_sizes = (uint16_t)from->n_sizes;
	for (uint32_t i = 0; i < from->n_sizes; i++)
		filling->shape->sizes[filling->n_sizes++] =
			(uint8_t)(first + from->sizes[i]);
	for (uint32_t i = 0; i < from->n_shapes; i++) {
		const int err = take_frame(filling, &from->shapes[i]);

		if (err < 0)
			return err;
	}
	return 0;
}

static int take_stream(struct filling *filling, const struct stream *from,
		       struct live_stream *stream)
{
	uint64_t every = 1;
	int err;

	if (from->is_capture)
		return refuse_stream(filling, "frames of a capture");
	if (from->n_fields > LIVE_MAX_FIELDS)
		return refuse_stream(filling, "%u fields vary, more than %d",
				     from->n_fields, LIVE_MAX_FIELDS);
	err = take_sizes(filling, from, stream);
	stream->n_fields = from->n_fields;
	for (uint32_t i = 0; err == 0 && i < from->n_fields; i++)
		err = take_field(filling, &from->fields[i], &stream->fields[i],
				 &every);
	return err;
}

int live_shape_of(const struct streams *streams, uint32_t sender,
		  uint32_t n_senders, uint64_t seed, struct live_shape *ret,
		  struct mr_reason *why)
{
	struct filling filling = { .shape = ret, .why = why };

	memset(ret, 0, sizeof(*ret));
	ret->sender = sender;
	ret->n_senders = n_senders;
	ret->seed = seed + sender * 0x9e3779b97f4a7c15u; /* apart */
	ret->is_stamped = streams->is_stamped;
	ret->n_streams = streams->n;
	ret->n_turns = streams->n_turns;
	if (streams->n > LIVE_MAX_STREAMS)
		return refuse_stream(&filling, "is one of %u; there can be %d",
				     streams->n, LIVE_MAX_STREAMS);
	if (streams->n_turns > LIVE_MAX_TURNS)
		return refuse_stream(&filling,
				     "its weight makes more than %d turns",
				     LIVE_MAX_TURNS);
	for (uint32_t i = 0; i < streams->n_turns; i++)
		ret->turns[i] = (uint8_t)streams->turns[i];
	for (uint32_t i = 0; i < streams->n; i++) {
		int err;

		filling.stream = i;
		err = take_stream(&filling, &streams->of[i], &ret->streams[i]);
		if (err < 0)
			return err;
	}
	if (ret->n_stamps == 1)
		ret->n_stamps = 0; /* each overwrites the one before */
	return 0;
}
