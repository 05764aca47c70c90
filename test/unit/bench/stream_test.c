/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are taken back; streams_test.py looks at those that are sent. */
#include "support/stream_json.h"
#include "support/unit.h"

enum { ROOM = 2048, MAX_FRAMES = 4096 };

/* Buffers with what others left in them. */
struct frames {
	uint8_t *base;
	struct mr_frame of[MAX_FRAMES];
};

static struct frames *frames_new(void)
{
	struct frames *frames = calloc(1, sizeof(*frames));

	assert_non_null(frames);
	frames->base = malloc((size_t)ROOM * MAX_FRAMES);
	assert_non_null(frames->base);
	memset(frames->base, 0xa5, (size_t)ROOM * MAX_FRAMES);
	for (uint32_t i = 0; i < MAX_FRAMES; i++)
		frames->of[i] = (struct mr_frame){ (uint64_t)i * ROOM, 0, 9 };
	return frames;
}

static void frames_free(struct frames *frames)
{
	free(frames->base);
	free(frames);
}

static const uint8_t *bytes_of(const struct frames *frames, uint32_t i)
{
	return frames->base + frames->of[i].addr;
}

static struct builder *opened(const struct streams *streams)
{
	struct builder *builder = NULL;
	struct mr_reason why;

	assert_int_equal(builder_open(streams, 1, 2, 7, &builder, &why), 0);
	return builder;
}

/* A burst of any length, and what came of it: none, some or all sent. */
TEST(frames_that_were_not_sent_are_made_again)
{
	static const char *const text =
		"[{'text': 'a', 'weight': 3, 'proto': 17,"
		"  'sizes': [[60, 2], [100, 1]], 'fields': ["
		"   {'name': 'udp.src', 'step': 1, 'pieces': [[1000, 101]]},"
		"   {'name': 'ip.ttl', 'step': 1,"
		"    'pieces': [[1, 1], [2, 1], [3, 1]]}]},"
		" {'text': 'b', 'weight': 1, 'proto': 17, 'fields': ["
		"   {'name': 'udp.src', 'step': 1, 'pieces': [[2000, 10]],"
		"    'order': 'random'},"
		"   {'name': 'ip.src', 'step': 1, 'pieces': [[167772160, 256]],"
		"    'order': 'zipf', 'exponent': 1}]},"
		" {'text': 'c', 'weight': 1, 'proto': 6, 'sizes': [[80, 1]],"
		"  'fields': ["
		"   {'name': 'tcp.src', 'step': 1, 'pieces': [[3000, 3]]}]}]";
	const struct stream_defaults defaults = { .is_stamped = true };
	struct frames *plain = frames_new(), *frames = frames_new();
	struct streams *streams = NULL;
	struct builder *once, *again;
	struct mr_reason why;
	uint32_t n = 0;

	assert_int_equal(streams_from(text, &defaults, &streams, &why), 0);
	once = opened(streams);
	again = opened(streams);
	srand(1);
	builder_fill(once, plain->base, plain->of, NULL, MAX_FRAMES);
	while (n < MAX_FRAMES) {
		const uint32_t n_left = MAX_FRAMES - n;
		uint32_t n_made = (uint32_t)rand() % 200;
		uint32_t n_back;

		n_made = n_made < n_left ? n_made : n_left;
		n_back = n_made == 0 ? 0 : (uint32_t)rand() % (n_made + 1);
		builder_fill(again, frames->base, frames->of + n, NULL, n_made);
		builder_take_back(again, n_back);
		n += n_made - n_back;
	}
	for (uint32_t i = 0; i < MAX_FRAMES; i++) {
		assert_int_equal(frames->of[i].len, plain->of[i].len);
		assert_memory_equal(bytes_of(frames, i), bytes_of(plain, i),
				    plain->of[i].len);
		assert_int_equal(frames->of[i].flags, 0);
		/* Not one byte too many. */
		assert_int_equal(bytes_of(frames, i)[plain->of[i].len], 0xa5);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(builder_n_sent(once, i),
				 builder_n_sent(again, i));
	frames_free(plain);
	frames_free(frames);
	builder_free(once);
	builder_free(again);
	streams_free(streams);
}
