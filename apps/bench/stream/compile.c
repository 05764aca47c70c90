/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiles one stream. Values that vary are taken out of templates and sums
 * here, once, so that a builder only adds. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream/compile.h"
#include "stream/template.h"
#include "support/specs.h"

enum { N_FCS = 4 }; /* lengths here exclude it; those of --size include it */

struct turn {
	double at;
	uint32_t which;
};

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->which < y->which ? -1 : x->which > y->which;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		const uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint32_t *spread(const uint32_t *weights, uint32_t n, uint32_t *ret_n_turns)
{
	uint32_t divisor = 0, n_turns = 0, at = 0;
	struct turn *turns;
	uint32_t *which;

	for (uint32_t i = 0; i < n; i++)
		divisor = common_divisor(divisor, weights[i]);
	for (uint32_t i = 0; i < n; i++)
		n_turns += weights[i] / divisor;
	turns = calloc(n_turns, sizeof(turns[0]));
	which = calloc(n_turns, sizeof(which[0]));
	if (turns == NULL || which == NULL) {
		free(turns);
		free(which);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t weight = weights[i] / divisor;

		for (uint32_t j = 0; j < weight; j++)
			turns[at++] = (struct turn){ (j + 0.5) / weight, i };
	}
	qsort(turns, n_turns, sizeof(turns[0]), compare_turns);
	for (uint32_t i = 0; i < n_turns; i++)
		which[i] = turns[i].which;
	free(turns);
	*ret_n_turns = n_turns;
	return which;
}

static uint16_t fold_sum(uint64_t sum)
{
	return ntohs(mr_csum_fold(sum));
}

static void put_sum(uint8_t *at, uint32_t sum, bool is_zero_none)
{
	uint16_t csum = (uint16_t)~fold_sum(htons((uint16_t)sum));

	if (csum == 0 && is_zero_none)
		csum = UINT16_MAX;
	window_put(at, 2, csum);
}

/* Check that a stamp has room after the headers, inside what a checksum covers.
 */
static int check_stamp(const struct layout *layout, uint32_t n_bytes,
		       struct mr_reason *why)
{
	if (layout->n_headers + STAMP_BYTES > n_bytes)
		return fail_with(why, -EINVAL,
				 "%u bytes are too few for headers of %u and "
				 "the stamp of %d; size=%u or more, or do "
				 "without stamps",
				 n_bytes, layout->n_headers, STAMP_BYTES,
				 layout->n_headers + STAMP_BYTES);
	if (layout->l4_csum != 0 && layout->l4_end != n_bytes)
		return fail_with(why, -EINVAL,
				 "the frame is longer than its packet, so a "
				 "stamp would be in the padding; do without "
				 "stamps");
	return 0;
}

/* Sum what does not vary; fields that are computed for each frame are left 0.
 */
static void sum_shape(const struct layout *layout, struct shape *shape)
{
	const uint16_t l3 = layout->layers[LAYER_IP];
	const uint16_t l4 = layout->layers[LAYER_L4];
	uint64_t sum;

	if (layout->l3_csum != 0) {
		window_put(shape->bytes + layout->l3_csum, 2, 0);
		sum = mr_csum_add(shape->bytes + l3,
				  (shape->bytes[l3] & 15u) * 4, 0);
		shape->l3_sum = fold_sum(sum);
		shape->l3_csum = layout->l3_csum;
	}
	if (layout->l4_csum != 0) {
		window_put(shape->bytes + layout->l4_csum, 2, 0);
		sum = layout->has_pseudo ?
			      mr_csum_pseudo(shape->bytes, &layout->view) :
			      0;
		sum = mr_csum_add(shape->bytes + l4, layout->l4_end - l4, sum);
		shape->l4_sum = fold_sum(sum);
		shape->l4_csum = layout->l4_csum;
		shape->is_zero_csum_none = layout->proto == IPPROTO_UDP;
	}
}

/* Set the headers of a shape, which has the bytes of a frame. */
static int make_shape(const struct words *words, bool is_stamped,
		      struct shape *shape, struct layout *layout,
		      struct mr_reason *why)
{
	uint32_t missing;
	int err;

	if (layout_find(shape->bytes, shape->n_bytes, layout) < 0)
		return fail_with(
			why, -EINVAL,
			"headers are cut off or contradict themselves");
	if (!template_set(words, layout, shape->bytes, &missing))
		return fail_with(why, -EINVAL,
				 "%s: the frame has no such field",
				 words->given[missing].row->name);
	if (is_stamped) {
		uint8_t *stamp = shape->bytes + shape->n_bytes - STAMP_BYTES;

		err = check_stamp(layout, shape->n_bytes, why);
		if (err < 0)
			return err;
		memset(stamp, 0, STAMP_BYTES);
		shape->has_stamp_in_sum = layout->l4_csum != 0;
		shape->is_stamp_odd =
			(shape->n_bytes - layout->layers[LAYER_L4]) % 2 != 0;
	}
	sum_shape(layout, shape);
	return 0;
}

/* All shapes must have what the fields of a stream rely on. */
static bool is_same_layout(const struct layout *a, const struct layout *b)
{
	return memcmp(a->layers, b->layers, sizeof(a->layers)) == 0 &&
	       a->ether_type == b->ether_type && a->proto == b->proto &&
	       a->l3_csum == b->l3_csum && a->l4_csum == b->l4_csum;
}

static bool is_same_beside(const struct stream *stream,
			   const struct shape *shape)
{
	for (uint32_t i = 0; i < stream->n_fields; i++) {
		const struct field *field = &stream->fields[i];

		if (window_get(shape->bytes + field->at, field->n_bytes) !=
		    field->fixed)
			return false;
	}
	return true;
}

static int add_field(const struct given *given, const struct layout *layout,
		     const struct shape *shape, struct stream *stream,
		     struct mr_reason *why)
{
	const struct field_row *row = given->row;
	struct field *field = &stream->fields[stream->n_fields];
	uint16_t at;
	const struct place *place = layout_place(layout, row, &at);
	const uint16_t in_layer = (uint16_t)(at - layout->layers[row->layer]);

	for (uint32_t i = 0; i < stream->n_fields; i++) {
		const struct field *other = &stream->fields[i];

		if (at < other->at + other->n_bytes &&
		    other->at < at + place->n_bytes)
			return fail_with(why, -EINVAL,
					 "%s and %s share a word; only one of "
					 "them can vary",
					 other->name, row->name);
	}
	*field = (struct field){
		.values = given->values,
		.at = at,
		.n_bytes = place->n_bytes,
		.shift = place->shift,
		.fixed = window_get(shape->bytes + at, place->n_bytes),
		.is_in_l3_sum = row->layer == LAYER_IP && layout->l3_csum != 0,
		.is_in_l4_sum = layout->l4_csum != 0 &&
				(row->layer == LAYER_L4 ||
				 (row->kind == VALUE_IP && layout->has_pseudo)),
		.sum_shift = place->n_bytes == 1 && in_layer % 2 == 0 ? 8 : 0,
	};
	snprintf(field->name, sizeof(field->name), "%s", row->name);
	stream->n_fields++;
	return 0;
}

/* The values move from the words to the stream. */
static int add_fields(struct words *words, const struct layout *layout,
		      struct stream *stream, struct mr_reason *why)
{
	int err = 0;

	stream->fields = calloc(FIELDS_MAX, sizeof(stream->fields[0]));
	if (stream->fields == NULL)
		return fail_with(why, -ENOMEM, "no memory for a stream");
	for (uint32_t i = 0; err == 0 && i < words->n_given; i++) {
		struct given *given = &words->given[i];

		if (given->values.n == 1)
			continue;
		if (stream->n_fields == FIELDS_MAX)
			return fail_with(why, -EINVAL,
					 "%s: more than %d fields that vary",
					 given->row->name, FIELDS_MAX);
		err = add_field(given, layout, &stream->shapes[0], stream, why);
		if (err == 0)
			given->values.table = NULL;
	}
	return err;
}

/* Write sums that no field and no stamp changes into the template. */
static void settle_sums(struct stream *stream)
{
	bool has_l3 = false, has_l4 = false;

	for (uint32_t i = 0; i < stream->n_fields; i++) {
		has_l3 |= stream->fields[i].is_in_l3_sum;
		has_l4 |= stream->fields[i].is_in_l4_sum;
	}
	for (uint32_t i = 0; i < stream->n_shapes; i++) {
		struct shape *shape = &stream->shapes[i];

		if (shape->l3_csum != 0 && !has_l3) {
			put_sum(shape->bytes + shape->l3_csum, shape->l3_sum,
				false);
			shape->l3_csum = 0;
		}
		if (shape->l4_csum != 0 && !has_l4 &&
		    !shape->has_stamp_in_sum) {
			put_sum(shape->bytes + shape->l4_csum, shape->l4_sum,
				shape->is_zero_csum_none);
			shape->l4_csum = 0;
		}
	}
}

static int make_frames(const struct words *words,
		       const struct stream_defaults *defaults,
		       struct stream *ret, struct mr_reason *why)
{
	const uint32_t n_stamp = defaults->is_stamped ? STAMP_BYTES : 0;
	const uint32_t n_headers = template_n_headers(words);
	const uint32_t n_least = n_headers + n_stamp > MR_ETH_MIN_BYTES ?
					 n_headers + n_stamp :
					 MR_ETH_MIN_BYTES;
	uint32_t weights[SIZES_MAX] = { 1 };
	uint32_t bytes[SIZES_MAX] = { defaults->frame_bytes };

	if (bytes[0] == 0)
		bytes[0] = n_least;
	for (uint32_t i = 0; i < words->n_sizes; i++) {
		bytes[i] = words->sizes[i].n_bytes;
		weights[i] = words->sizes[i].weight;
	}
	ret->n_shapes = words->n_sizes > 0 ? words->n_sizes : 1;
	ret->sizes = spread(weights, ret->n_shapes, &ret->n_sizes);
	ret->shapes = calloc(ret->n_shapes, sizeof(ret->shapes[0]));
	if (ret->sizes == NULL || ret->shapes == NULL)
		return fail_with(why, -ENOMEM, "no memory for a stream");
	for (uint32_t i = 0; i < ret->n_shapes; i++) {
		if (bytes[i] < n_least)
			return fail_with(
				why, -EINVAL,
				"size=%u: headers%s need %u bytes: give such "
				"sizes (size=; --size and --sizes from %u "
				"on)%s",
				bytes[i], n_stamp > 0 ? " and the stamp" : "",
				n_least, n_least + N_FCS,
				n_stamp > 0 && defaults->has_unstamped ?
					", or --unstamped" :
					"");
		ret->shapes[i] = (struct shape){ .bytes = malloc(bytes[i]),
						 .n_bytes = bytes[i] };
		if (ret->shapes[i].bytes == NULL)
			return fail_with(why, -ENOMEM,
					 "no memory for a stream");
		template_make(words, defaults, ret->shapes[i].bytes, bytes[i]);
	}
	return 0;
}

/* Put the frame's number in a capture before what is wrong. */
static int fail_shape(const struct words *words, uint32_t i, int err,
		      struct mr_reason *why)
{
	const struct mr_reason what = *why;

	if (words->capture == NULL)
		return err;
	return fail_with(why, err, "pcap=%.120s: frame %u: %.200s",
			 words->capture, i + 1, what.text);
}

static int compile_shapes(struct words *words, bool is_stamped,
			  struct stream *ret, struct mr_reason *why)
{
	struct layout first = { .n_headers = 0 }, layout;
	int err = 0;

	for (uint32_t i = 0; i < ret->n_shapes; i++) {
		err = make_shape(words, is_stamped, &ret->shapes[i], &layout,
				 why);
		if (err < 0)
			return fail_shape(words, i, err, why);
		if (i == 0) {
			first = layout;
			err = add_fields(words, &layout, ret, why);
			if (err < 0)
				return err;
		} else if (ret->n_fields > 0 &&
			   (!is_same_layout(&first, &layout) ||
			    !is_same_beside(ret, &ret->shapes[i]))) {
			fail_with(why, -EINVAL,
				  "its headers are not those of frame 1, so "
				  "no field can vary; use a capture of one "
				  "kind of frame");
			return fail_shape(words, i, -EINVAL, why);
		}
	}
	settle_sums(ret);
	return 0;
}

int stream_compile(struct words *words, const struct stream_defaults *defaults,
		   struct stream *ret, struct mr_reason *why)
{
	int err = words->capture != NULL ?
			  capture_read(words->capture, ret, why) :
			  make_frames(words, defaults, ret, why);

	/* A capture that needs no change is sent as it is. */
	if (err < 0 || (words->capture != NULL && words->n_given == 0 &&
			!defaults->is_stamped))
		return err;
	return compile_shapes(words, defaults->is_stamped, ret, why);
}

void stream_free(struct stream *stream)
{
	for (uint32_t i = 0; i < stream->n_shapes && stream->shapes != NULL;
	     i++)
		free(stream->shapes[i].bytes);
	for (uint32_t i = 0; i < stream->n_fields; i++)
		free(stream->fields[i].values.table);
	free(stream->shapes);
	free(stream->sizes);
	free(stream->fields);
	free(stream->text);
	*stream = (struct stream){ .n_shapes = 0 };
}
