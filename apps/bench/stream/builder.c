/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds frames. This is the transmitter's hot path.
 *
 *     copy templates -> per field: values, sums, stores -> stamps -> checksums
 *
 * A burst is built in chunks of 64 frames, by one short loop after another over
 * arrays that stay in the L1 cache, so that there are no decisions per frame
 * and the compiler can use vectors. Templates are copied whole, because a
 * buffer has old bytes in it.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/share.h"
#include "support/specs.h"

enum { CHUNK = 64 };

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

/* Frames of one lane, and what is made for them. */
struct chunk {
	uint32_t n;
	uint8_t *bytes[CHUNK];
	uint64_t due_ns[CHUNK];
	const struct shape *shapes[CHUNK]; /* only if there are several */
	uint32_t values[CHUNK];
	uint32_t l3[CHUNK], l4[CHUNK]; /* sums */
};

/* 32 bytes at a time; frames have 60 or more, so the last 32 may overlap. */
static inline void copy_frame(uint8_t *to, const uint8_t *from, uint32_t n)
{
	for (uint32_t i = 0; i + 32 < n; i += 32)
		memcpy(to + i, from + i, 32);
	memcpy(to + n - 32, from + n - 32, 32);
}

static inline void put16(uint8_t *at, uint32_t value)
{
	const uint16_t half = htobe16((uint16_t)value);

	memcpy(at, &half, sizeof(half));
}

static inline void put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static void copy_one(const struct shape *shape, struct chunk *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		copy_frame(c->bytes[i], shape->bytes, shape->n_bytes);
	for (uint32_t i = 0; i < c->n; i++) {
		c->l3[i] = shape->l3_sum;
		c->l4[i] = shape->l4_sum;
	}
}

static void copy_several(struct lane *lane, struct chunk *c)
{
	uint32_t at = lane->size_at;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct shape *shape = &lane->shapes[lane->sizes[at]];

		at = at + 1 == lane->n_sizes ? 0 : at + 1;
		c->shapes[i] = shape;
		copy_frame(c->bytes[i], shape->bytes, shape->n_bytes);
		c->l3[i] = shape->l3_sum;
		c->l4[i] = shape->l4_sum;
	}
	lane->size_at = at;
}

/* What a window adds to a sum of 16-bit words. */
static void add_values(uint32_t *sums, const uint32_t *values, uint32_t n,
		       uint8_t sum_shift)
{
	for (uint32_t i = 0; i < n; i++)
		sums[i] += ((values[i] >> 16) + (values[i] & 0xffff))
			   << sum_shift;
}

static void put_values(const struct field *field, struct chunk *c)
{
	const uint32_t at = field->at, fixed = field->fixed;

	switch (field->n_bytes) {
	case 4:
		for (uint32_t i = 0; i < c->n; i++)
			put32(c->bytes[i] + at, fixed | c->values[i]);
		break;
	case 2:
		for (uint32_t i = 0; i < c->n; i++)
			put16(c->bytes[i] + at, fixed | c->values[i]);
		break;
	default:
		for (uint32_t i = 0; i < c->n; i++)
			c->bytes[i][at] = (uint8_t)(fixed | c->values[i]);
		break;
	}
}

static void make_field(const struct field *field, struct share *share,
		       uint64_t k, struct chunk *c)
{
	share_make(share, k, c->values, c->n);
	if (field->shift != 0)
		for (uint32_t i = 0; i < c->n; i++)
			c->values[i] <<= field->shift;
	if (field->is_in_l3_sum)
		add_values(c->l3, c->values, c->n, field->sum_shift);
	if (field->is_in_l4_sum)
		add_values(c->l4, c->values, c->n, field->sum_shift);
	put_values(field, c);
}

static inline uint32_t fold_sum(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static inline void stamp_one(const struct lane *lane, const struct shape *shape,
			     struct chunk *c, uint32_t i)
{
	const uint64_t seq = (lane->n_sent + i) & STAMP_MASK;
	const uint64_t due = stamp_due(c->due_ns[i], lane->run);
	uint32_t sum;

	stamp_write_numbers(c->bytes[i] + shape->n_bytes, seq, due);
	/* At an odd offset, upper and lower bytes of words change places. */
	sum = stamp_sum(seq, due);
	c->l4[i] += shape->is_stamp_odd ? fold_sum(sum) << 8 : sum;
}

static void stamp_frames(const struct lane *lane, struct chunk *c)
{
	if (lane->n_shapes == 1)
		for (uint32_t i = 0; i < c->n; i++)
			stamp_one(lane, lane->shapes, c, i);
	else
		for (uint32_t i = 0; i < c->n; i++)
			stamp_one(lane, c->shapes[i], c, i);
}

static inline uint32_t csum_of(uint32_t sum, bool is_zero_none)
{
	const uint32_t csum = ~fold_sum(sum) & 0xffff;

	return csum == 0 && is_zero_none ? 0xffff : csum;
}

static void put_sums_one(const struct shape *shape, struct chunk *c)
{
	const uint32_t l3 = shape->l3_csum, l4 = shape->l4_csum;

	if (l3 != 0)
		for (uint32_t i = 0; i < c->n; i++)
			put16(c->bytes[i] + l3, csum_of(c->l3[i], false));
	if (l4 == 0)
		return;
	if (shape->is_zero_csum_none)
		for (uint32_t i = 0; i < c->n; i++)
			put16(c->bytes[i] + l4, csum_of(c->l4[i], true));
	else
		for (uint32_t i = 0; i < c->n; i++)
			put16(c->bytes[i] + l4, csum_of(c->l4[i], false));
}

static void put_sums_several(struct chunk *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct shape *shape = c->shapes[i];

		if (shape->l3_csum != 0)
			put16(c->bytes[i] + shape->l3_csum,
			      csum_of(c->l3[i], false));
		if (shape->l4_csum != 0)
			put16(c->bytes[i] + shape->l4_csum,
			      csum_of(c->l4[i], shape->is_zero_csum_none));
	}
}

static void fill_lane(struct lane *lane, struct chunk *c)
{
	const bool is_one = lane->n_shapes == 1;

	if (is_one)
		copy_one(lane->shapes, c);
	else
		copy_several(lane, c);
	for (uint32_t i = 0; i < lane->n_fields; i++)
		make_field(&lane->fields[i], &lane->shares[i], lane->n_sent, c);
	if (lane->is_stamped)
		stamp_frames(lane, c);
	if (lane->has_sums && is_one)
		put_sums_one(lane->shapes, c);
	else if (lane->has_sums)
		put_sums_several(c);
	lane->n_sent += c->n;
}

static void set_lengths(const struct lane *lane, const struct chunk *c,
			struct mr_frame *frames)
{
	for (uint32_t i = 0; i < c->n; i++) {
		frames[i].len = lane->n_shapes == 1 ? lane->shapes->n_bytes :
						      c->shapes[i]->n_bytes;
		frames[i].flags = 0;
	}
}

static void fill_single(struct builder *b, uint8_t *base,
			struct mr_frame *frames, const uint64_t *due_ns,
			uint32_t n)
{
	struct chunk c;

	c.n = n;
	for (uint32_t i = 0; i < n; i++)
		c.bytes[i] = base + frames[i].addr;
	if (due_ns != NULL)
		memcpy(c.due_ns, due_ns, n * sizeof(due_ns[0]));
	else
		memset(c.due_ns, 0, n * sizeof(c.due_ns[0]));
	fill_lane(b->lanes, &c);
	set_lengths(b->lanes, &c, frames);
}

/* Choose the lane of each frame: b->first has the first frame of each lane,
 * next the following one of the same lane. */
static void deal_turns(struct builder *b, uint16_t *lane_of, uint8_t *next,
		       uint32_t n)
{
	uint8_t last[CHUNK];

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t lane = b->streams->turns[b->turn];

		b->turn = b->turn + 1 == b->streams->n_turns ? 0 : b->turn + 1;
		lane_of[i] = (uint16_t)lane;
		next[i] = NO_FRAME;
		if (b->first[lane] == NO_FRAME)
			b->first[lane] = (uint8_t)i;
		else
			next[last[b->first[lane]]] = (uint8_t)i;
		last[b->first[lane]] = (uint8_t)i;
	}
}

static void fill_turns(struct builder *b, uint8_t *base,
		       struct mr_frame *frames, const uint64_t *due_ns,
		       uint32_t n)
{
	uint16_t lane_of[CHUNK];
	uint8_t next[CHUNK], which[CHUNK];
	struct mr_frame made[CHUNK];
	struct chunk c;

	deal_turns(b, lane_of, next, n);
	for (uint32_t i = 0; i < n; i++) {
		struct lane *lane = &b->lanes[lane_of[i]];

		if (b->first[lane_of[i]] != i)
			continue;
		c.n = 0;
		for (uint32_t j = i; j != NO_FRAME; j = next[j]) {
			c.bytes[c.n] = base + frames[j].addr;
			c.due_ns[c.n] = due_ns != NULL ? due_ns[j] : 0;
			which[c.n++] = (uint8_t)j;
		}
		fill_lane(lane, &c);
		set_lengths(lane, &c, made);
		for (uint32_t j = 0; j < c.n; j++) {
			frames[which[j]].len = made[j].len;
			frames[which[j]].flags = 0;
		}
		b->first[lane_of[i]] = NO_FRAME;
	}
}

void builder_fill(struct builder *builder, void *base, struct mr_frame *frames,
		  const uint64_t *due_ns, uint32_t n)
{
	for (uint32_t done = 0; done < n; done += CHUNK) {
		const uint32_t n_chunk = n - done < CHUNK ? n - done : CHUNK;
		const uint64_t *due = due_ns != NULL ? due_ns + done : NULL;

		if (builder->n_lanes == 1)
			fill_single(builder, base, frames + done, due, n_chunk);
		else
			fill_turns(builder, base, frames + done, due, n_chunk);
	}
}

/* Update what depends on n_sent. */
static void lane_seek(struct lane *lane)
{
	lane->size_at = (uint32_t)(lane->n_sent % lane->n_sizes);
	for (uint32_t i = 0; i < lane->n_fields; i++)
		share_seek(&lane->shares[i], lane->n_sent);
}

void builder_take_back(struct builder *builder, uint32_t n)
{
	const struct streams *streams = builder->streams;
	const uint32_t n_seeks = n < builder->n_lanes ? n : builder->n_lanes;

	if (builder->n_lanes == 1) {
		builder->lanes->n_sent -= n;
		lane_seek(builder->lanes);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		builder->turn = (builder->turn == 0 ? streams->n_turns :
						      builder->turn) -
				1;
		builder->lanes[streams->turns[builder->turn]].n_sent--;
	}
	if (n_seeks == builder->n_lanes) {
		for (uint32_t i = 0; i < n_seeks; i++)
			lane_seek(&builder->lanes[i]);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		lane_seek(&builder->lanes[streams->turns[(builder->turn + i) %
							 streams->n_turns]]);
}

uint64_t builder_n_sent(const struct builder *builder, uint32_t stream)
{
	return builder->lanes[stream].n_sent;
}

void builder_set_mac(struct builder *builder, uint32_t at, const void *from,
		     const void *to)
{
	for (uint32_t i = 0; i < builder->n_lanes; i++) {
		struct lane *lane = &builder->lanes[i];

		if (builder->streams->of[i].is_capture)
			continue;
		for (uint32_t j = 0; j < lane->n_shapes; j++)
			if (memcmp(lane->shapes[j].bytes + at, from, 6) == 0)
				memcpy(lane->shapes[j].bytes + at, to, 6);
	}
}

enum { NO_FIELD = FIELDS_MAX };

/* A different one for each stream, sender and field (splitmix64, S. Vigna). */
static uint64_t next_seed(uint64_t *state)
{
	uint64_t seed = *state += UINT64_C(0x9e3779b97f4a7c15);

	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	return seed ^ seed >> 31;
}

/* The field that is dealt out: the one with the most values, except Zipf's, of
 * which the first sender would have most of the frequent values. */
static uint32_t dealt_field(const struct stream *stream)
{
	uint32_t dealt = NO_FIELD;

	for (uint32_t i = 0; i < stream->n_fields; i++)
		if (stream->fields[i].values.order != ORDER_ZIPF &&
		    (dealt == NO_FIELD ||
		     stream->fields[i].values.n >
			     stream->fields[dealt].values.n))
			dealt = i;
	return dealt;
}

static void stamp_shape(struct shape *shape, uint32_t magic, uint32_t lane)
{
	uint32_t sum = (magic >> 16) + (magic & 0xffff) + lane;

	stamp_write(shape->bytes + shape->n_bytes, magic, lane, 0, 0);
	if (!shape->has_stamp_in_sum)
		return;
	sum = mr_csum_fold32(sum);
	if (shape->is_stamp_odd)
		sum = (sum << 8 | sum >> 8) & 0xffff;
	shape->l4_sum = mr_csum_fold32(shape->l4_sum + sum);
}

/* Copy every n_senders-th shape. */
static int copy_shapes(const struct stream *stream, uint32_t sender,
		       uint32_t n_senders, struct lane *lane)
{
	const uint32_t n =
		(stream->n_shapes - sender + n_senders - 1) / n_senders;

	lane->shapes = calloc(n, sizeof(lane->shapes[0]));
	lane->sizes = calloc(stream->n_sizes, sizeof(lane->sizes[0]));
	if (lane->shapes == NULL || lane->sizes == NULL)
		return -ENOMEM;
	for (; lane->n_shapes < n; lane->n_shapes++) {
		const struct shape *from =
			&stream->shapes[sender + lane->n_shapes * n_senders];
		struct shape *to = &lane->shapes[lane->n_shapes];

		*to = *from;
		to->bytes = malloc(from->n_bytes);
		if (to->bytes == NULL)
			return -ENOMEM;
		memcpy(to->bytes, from->bytes, from->n_bytes);
		lane->has_sums |= to->l3_csum != 0 || to->l4_csum != 0;
	}
	/* The sizes of a capture are the numbers of its frames. */
	lane->n_sizes = stream->is_capture ? n : stream->n_sizes;
	memcpy(lane->sizes, stream->sizes,
	       lane->n_sizes * sizeof(lane->sizes[0]));
	return 0;
}

static int open_shares(const struct stream *stream, uint32_t dealt,
		       uint32_t sender, uint32_t n_senders, uint64_t *seed,
		       struct lane *lane)
{
	uint64_t period = 1;

	lane->fields = stream->fields;
	for (; lane->n_fields < stream->n_fields; lane->n_fields++) {
		const struct values *values =
			&stream->fields[lane->n_fields].values;
		struct share *share = &lane->shares[lane->n_fields];
		uint32_t n = 1;
		int err;

		if (lane->n_fields == dealt)
			n = values->n < n_senders ? (uint32_t)values->n :
						    n_senders;
		err = share_open(share, values, sender % n, n, next_seed(seed));
		if (err < 0) {
			share_close(share);
			return err;
		}
		if (share->order != ORDER_SEQUENCE)
			continue;
		share->period = period;
		share_seek(share, 0);
		if (__builtin_mul_overflow(period, share->n, &period))
			period = UINT64_MAX;
	}
	return 0;
}

static int open_lane(const struct streams *streams, uint32_t i, uint32_t sender,
		     uint32_t n_senders, uint64_t *seed, struct lane *lane)
{
	const struct stream *stream = &streams->of[i];
	const bool deals_frames =
		stream->is_capture && stream->n_shapes >= n_senders;
	int err = copy_shapes(stream, deals_frames ? sender : 0,
			      deals_frames ? n_senders : 1, lane);

	if (err == 0)
		err = open_shares(stream,
				  deals_frames ? NO_FIELD : dealt_field(stream),
				  sender, n_senders, seed, lane);
	lane->is_stamped = streams->is_stamped;
	lane->run = streams->run;
	for (uint32_t j = 0; err == 0 && lane->is_stamped && j < lane->n_shapes;
	     j++)
		stamp_shape(&lane->shapes[j], streams->magic,
			    i * n_senders + sender);
	return err;
}

int builder_open(const struct streams *streams, uint32_t sender,
		 uint32_t n_senders, uint64_t seed, struct builder **ret,
		 struct mr_reason *why)
{
	struct builder *b;
	int err = 0;

	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return fail_with(why, -ENOMEM, "no memory for a sender");
	b->streams = streams;
	memset(b->first, NO_FRAME, sizeof(b->first));
	seed += sender;
	b->lanes = calloc(streams->n, sizeof(b->lanes[0]));
	if (b->lanes == NULL)
		err = -ENOMEM;
	for (; err == 0 && b->n_lanes < streams->n; b->n_lanes++)
		err = open_lane(streams, b->n_lanes, sender, n_senders, &seed,
				&b->lanes[b->n_lanes]);
	if (err < 0) {
		builder_free(b);
		return fail_with(why, err, "no memory for a sender");
	}
	*ret = b;
	return 0;
}

static void close_lane(struct lane *lane)
{
	for (uint32_t i = 0; i < lane->n_fields; i++)
		share_close(&lane->shares[i]);
	for (uint32_t i = 0; i < lane->n_shapes; i++)
		free(lane->shapes[i].bytes);
	free(lane->shapes);
	free(lane->sizes);
}

void builder_free(struct builder *builder)
{
	if (builder == NULL)
		return;
	for (uint32_t i = 0; i < builder->n_lanes; i++)
		close_lane(&builder->lanes[i]);
	free(builder->lanes);
	free(builder);
}
