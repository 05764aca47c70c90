/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of streams. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/compile.h"
#include "support/specs.h"

/* RFC 2544, appendix C.2, in the words of --stream. */
#define DEFAULT_STREAM                                                         \
	"udp ip.src=198.18.0.1 ip.dst=198.19.0.1 udp.src=1024 udp.dst=9"

/* Put the stream's number before the reason, if there are several. */
static int fail_stream(uint32_t i, uint32_t n, int err, struct mr_reason *why)
{
	const struct mr_reason what = *why;

	if (n <= 1)
		return fail_with(why, err, "stream: %.360s", what.text);
	return fail_with(why, err, "stream %u: %.360s", i + 1, what.text);
}

/* one: NULL for the default. */
static int make_one(const json_t *one, const struct stream_defaults *defaults,
		    struct stream *ret, struct mr_reason *why)
{
	struct words words = { .weight = 1 };
	int err = one != NULL ? words_read(one, &words, why) : 0;

	if (err < 0)
		return err;
	ret->weight = words.weight;
	err = stream_compile(&words, defaults, ret, why);
	if (err == 0) {
		ret->text = strdup(words.text != NULL ? words.text :
							DEFAULT_STREAM);
		if (ret->text == NULL)
			err = fail_with(why, -ENOMEM, "no memory for a stream");
	}
	words_free(&words);
	return err;
}

/* Compute turns and the lengths of frames. */
static int finish_streams(struct streams *streams, struct mr_reason *why)
{
	uint32_t weights[STREAMS_MAX];
	double n_bytes = 0, n_frames = 0;

	for (uint32_t i = 0; i < streams->n; i++) {
		const struct stream *stream = &streams->of[i];
		double n_cycle = 0;

		weights[i] = stream->weight;
		for (uint32_t j = 0; j < stream->n_sizes; j++) {
			const uint32_t n =
				stream->shapes[stream->sizes[j]].n_bytes;

			n_cycle += n;
			if (n > streams->max_bytes)
				streams->max_bytes = n;
		}
		n_bytes += stream->weight * n_cycle / stream->n_sizes;
		n_frames += stream->weight;
	}
	streams->mean_bytes = n_bytes / n_frames;
	streams->turns = spread(weights, streams->n, &streams->n_turns);
	return streams->turns != NULL ?
		       0 :
		       fail_with(why, -ENOMEM, "no memory for streams");
}

int streams_make(const json_t *of, const struct stream_defaults *defaults,
		 struct streams **ret, struct mr_reason *why)
{
	const uint32_t n_given = (uint32_t)json_array_size(of);
	const uint32_t n = n_given > 0 ? n_given : 1;
	struct streams *streams;
	int err = 0;

	if (n > STREAMS_MAX)
		return fail_with(why, -EINVAL,
				 "%u streams; there are at most %d", n,
				 STREAMS_MAX);
	streams = calloc(1, sizeof(*streams));
	if (streams == NULL)
		return fail_with(why, -ENOMEM, "no memory for streams");
	streams->is_stamped = defaults->is_stamped;
	streams->magic = defaults->magic;
	streams->run = defaults->run;
	streams->of = calloc(n, sizeof(streams->of[0]));
	if (streams->of == NULL)
		err = fail_with(why, -ENOMEM, "no memory for streams");
	for (; err == 0 && streams->n < n; streams->n++) {
		err = make_one(json_array_get(of, streams->n), defaults,
			       &streams->of[streams->n], why);
		if (err < 0)
			err = fail_stream(streams->n, n, err, why);
	}
	if (err == 0)
		err = finish_streams(streams, why);
	if (err < 0) {
		streams_free(streams);
		return err;
	}
	*ret = streams;
	return 0;
}

void streams_free(struct streams *streams)
{
	if (streams == NULL)
		return;
	for (uint32_t i = 0; i < streams->n; i++)
		stream_free(&streams->of[i]);
	free(streams->of);
	free(streams->turns);
	free(streams);
}
