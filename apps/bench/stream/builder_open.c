/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a builder: a sender's share of flows, and templates with its stamps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/builder.h"
#include "support/specs.h"

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
