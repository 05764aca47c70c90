/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/stream: streams.c, builder.c, builder_open.c, compile.c,
 * share.c and template.c. values_test.c and grammar_test.c have the text,
 * stream_frames.py looks at the frames with the eyes of scapy.
 */
#include "support/unit.h"

#include <endian.h>

#include <millrace/millrace.h>

#include "stream/compiled.h"
#include "stream/stream.h"

enum { ROOM = 2048, MAX_FRAMES = 4096, MAGIC = 0x5eed1234 };

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

static struct streams *parsed(const char *const *texts, uint32_t n,
			      bool is_stamped)
{
	const struct stream_defaults defaults = {
		.src_mac = { 2, 0, 0, 0, 0, 1 },
		.dst_mac = { 2, 0, 0, 0, 0, 2 },
		.is_stamped = is_stamped,
		.magic = MAGIC
	};
	struct mr_reason why = { .text = "" };
	struct streams *streams = NULL;

	if (streams_parse(texts, n, &defaults, &streams, &why) < 0)
		fail_msg("%s", why.text);
	return streams;
}

static struct builder *opened(const struct streams *streams, uint32_t sender,
			      uint32_t n_senders)
{
	struct builder *builder = NULL;
	struct mr_reason why;

	assert_int_equal(
		builder_open(streams, sender, n_senders, 7, &builder, &why), 0);
	return builder;
}

/* The plainest sum there is, to compare with. */
static uint16_t plain_sum(const uint8_t *bytes, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint32_t)bytes[i] << 8 : bytes[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void check_sums(const uint8_t *bytes, uint32_t n_bytes)
{
	struct mr_net_view view;
	uint32_t pseudo;

	assert_int_equal(mr_net_parse(bytes, n_bytes, n_bytes, &view), 0);
	if (view.ether_type == MR_ETHER_IPV4)
		assert_int_equal(plain_sum(bytes + view.l3_bytes,
					   (bytes[view.l3_bytes] & 15u) * 4, 0),
				 0xffff);
	if (view.csum_bytes == 0)
		return;
	pseudo = view.ether_type == MR_ETHER_IPV4 ?
			 plain_sum(bytes + view.l3_bytes + 12, 8, 0) :
			 plain_sum(bytes + view.l3_bytes + 8, 32, 0);
	pseudo += view.l4_proto + view.l4_len_bytes;
	assert_int_equal(
		plain_sum(bytes + view.l4_bytes, view.l4_len_bytes, pseudo),
		0xffff);
	if (view.l4_proto == 17) /* 0 would be no sum at all */
		assert_int_not_equal(
			bytes[view.csum_bytes] | bytes[view.csum_bytes + 1], 0);
}

static uint32_t get16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t get32(const uint8_t *bytes)
{
	return get16(bytes) << 16 | get16(bytes + 2);
}

TEST(without_words_there_is_one_stream)
{
	struct streams *streams = parsed(NULL, 0, true);
	struct builder *builder = opened(streams, 0, 1);
	struct frames *frames = frames_new();
	const uint64_t due[2] = { 5, (UINT64_C(1) << 48) + 6 };

	assert_int_equal(streams_n(streams), 1);
	assert_int_equal(streams->of[0].n_fields, 0);
	assert_string_equal(streams_text(streams, 0),
			    "udp ip.src=198.18.0.1 ip.dst=198.19.0.1 "
			    "udp.src=1024 udp.dst=9");
	assert_int_equal(streams_max_bytes(streams), 60);
	assert_true(streams_mean_bytes(streams) == 60);
	builder_fill(builder, frames->base, frames->of, due, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const uint8_t *bytes = bytes_of(frames, i);
		struct stamp stamp = { .lane = 0 };

		assert_int_equal(frames->of[i].len, 60);
		assert_int_equal(frames->of[i].flags, 0);
		assert_int_equal(bytes[60], 0xa5); /* not one byte too many */
		check_sums(bytes, 60);
		assert_int_equal(get32(bytes + 26), 0xc6120001);
		assert_int_equal(get32(bytes + 30), 0xc6130001);
		assert_int_equal(get16(bytes + 34), 1024);
		assert_int_equal(get16(bytes + 36), 9);
		assert_true(stamp_read(bytes + 60, MAGIC, &stamp));
		assert_false(stamp_read(bytes + 60, MAGIC + 1, &stamp));
		assert_int_equal(stamp.lane, 0);
		assert_int_equal(stamp.seq, i);
		assert_int_equal(stamp.due_ns, 5 + i);
	}
	assert_int_equal(builder_n_sent(builder, 0), 2);
	frames_free(frames);
	builder_free(builder);
	streams_free(streams);
}

TEST(all_sums_are_right)
{
	static const char *const texts[] = {
		"ip.src=10.0.0.0/16:random ip.ttl=1-255:random",
		"udp.src=0-65535 ip.id=0-65535:random size=61",
		"ip.tos=0-255 ip.dst=0.0.0.0/0:random size=67,1514,100x3",
		"udp.csum=off ip.src=10.0.0.0/8:random",
		"tcp.flags=syn,ack,fin+ack tcp.seq=0-4294967295:random",
		"tcp.window=0-65535 size=83 ip.options=8",
		"ip.src=2001:db8::/96:random udp.src=0-65535 size=83",
		"ip6 tcp.ack=0-4294967295:random ip.flow=0-1048575:random",
		"vlan.id=1-4094 ip.src=1.2.3.0/24:random size=65",
		"qinq.id=1-4094 vlan.id=3 vlan.pcp=7 udp.dst=1-9:zipf=2",
	};

	for (int is_stamped = 0; is_stamped < 2; is_stamped++) {
		for (uint32_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
			const char *text = texts[t];
			struct streams *streams;
			struct builder *builder;
			struct frames *frames = frames_new();
			uint64_t due[256];

			for (uint32_t i = 0; i < 256; i++)
				due[i] = UINT64_C(0x123456789abc) * i;
			streams = parsed(&text, 1, is_stamped != 0);
			builder = opened(streams, 0, 1);
			for (uint32_t i = 0; i < MAX_FRAMES; i += 256)
				builder_fill(builder, frames->base,
					     frames->of + i, due, 256);
			for (uint32_t i = 0; i < MAX_FRAMES; i++)
				check_sums(bytes_of(frames, i),
					   frames->of[i].len);
			frames_free(frames);
			builder_free(builder);
			streams_free(streams);
		}
	}
}

/* A sum that comes out as 0 is written as 0xffff: 0 would be none (RFC 768). */
TEST(no_udp_frame_is_without_a_sum)
{
	const char *text = "udp.src=0-65535";
	struct streams *streams = parsed(&text, 1, true);
	struct builder *builder = opened(streams, 0, 1);
	struct frames *frames = frames_new();
	uint32_t n_ones = 0;

	for (uint32_t n = 0; n < 65536; n += MAX_FRAMES) {
		builder_fill(builder, frames->base, frames->of, NULL,
			     MAX_FRAMES);
		for (uint32_t i = 0; i < MAX_FRAMES; i++) {
			const uint32_t csum = get16(bytes_of(frames, i) + 40);

			assert_int_not_equal(csum, 0);
			n_ones += csum == 0xffff;
		}
	}
	assert_true(n_ones > 0);
	frames_free(frames);
	builder_free(builder);
	streams_free(streams);
}

TEST(fields_count_like_digits)
{
	const char *text = "udp.src=10-12 udp.dst=53,80 ip.ttl=7:step=9";
	struct streams *streams = parsed(&text, 1, false);
	struct builder *builder = opened(streams, 0, 1);
	struct frames *frames = frames_new();

	builder_fill(builder, frames->base, frames->of, NULL, 200);
	for (uint32_t i = 0; i < 200; i++) {
		const uint8_t *bytes = bytes_of(frames, i);

		assert_int_equal(get16(bytes + 34), 10 + i % 3);
		assert_int_equal(get16(bytes + 36), i / 3 % 2 == 0 ? 53 : 80);
		assert_int_equal(bytes[22], 7);
	}
	frames_free(frames);
	builder_free(builder);
	streams_free(streams);
}

/* A burst of any length, and what came of it: none, some or all sent. */
TEST(taken_back_frames_are_made_again)
{
	static const char *const texts[] = {
		"udp.src=1000-1100 ip.ttl=1,2,3 size=60x2,100 weight=3",
		"udp.src=2000-2009:random ip.src=10.0.0.0/24:zipf",
		"tcp tcp.src=3000-3002 size=80",
	};
	struct streams *streams = parsed(texts, 3, true);
	struct builder *once = opened(streams, 1, 2);
	struct builder *again = opened(streams, 1, 2);
	struct frames *plain = frames_new(), *frames = frames_new();
	uint32_t n = 0;

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

TEST(turns_follow_weights_and_lanes_count_alone)
{
	static const char *const texts[] = { "weight=6 size=60",
					     "weight=3 size=100", "size=200",
					     "weight=2 size=70" };
	struct streams *streams = parsed(texts, 4, true);
	struct builder *builder = opened(streams, 2, 3);
	struct frames *frames = frames_new();
	uint64_t seqs[4] = { 0 };

	assert_true(streams_mean_bytes(streams) ==
		    (6 * 60 + 3 * 100 + 200 + 2 * 70) / 12.0);
	assert_int_equal(streams_max_bytes(streams), 200);
	builder_fill(builder, frames->base, frames->of, NULL, 1200);
	for (uint32_t i = 0; i < 1200; i++) {
		struct stamp stamp = { .lane = 0 };

		assert_true(stamp_read(bytes_of(frames, i) + frames->of[i].len,
				       MAGIC, &stamp));
		assert_int_equal(stamp.lane % 3, 2);
		assert_int_equal(frames->of[i].flags, 0);
		/* Spread evenly: A is every other one. */
		assert_int_equal(stamp.lane / 3 == 0,
				 "ABADABCAADBA"[i % 12] == 'A');
		assert_int_equal(stamp.seq, seqs[stamp.lane / 3]++);
	}
	assert_int_equal(seqs[0], 600);
	assert_int_equal(seqs[1], 300);
	assert_int_equal(seqs[2], 100);
	assert_int_equal(seqs[3], 200);
	frames_free(frames);
	builder_free(builder);
	streams_free(streams);
}

/* All senders together have each flow, and no two have the same. */
TEST(flows_are_dealt_out)
{
	static const char *const texts[] = {
		"udp.dst=53,80 udp.src=1000-1016",
		"udp.src=1000-1016 udp.dst=53,80:zipf",
		"udp.dst=53-54:random udp.src=1000-1016:random",
	};
	enum { N_SENDERS = 5, N_FLOWS = 34 };

	for (uint32_t t = 0; t < 3; t++) {
		struct streams *streams = parsed(&texts[t], 1, false);
		struct frames *frames = frames_new();
		uint8_t owner[17][32] = { { 0 } };
		uint32_t n_seen = 0;

		for (uint32_t s = 0; s < N_SENDERS; s++) {
			struct builder *builder = opened(streams, s, N_SENDERS);

			builder_fill(builder, frames->base, frames->of, NULL,
				     MAX_FRAMES);
			for (uint32_t i = 0; i < MAX_FRAMES; i++) {
				const uint8_t *l4 = bytes_of(frames, i) + 34;
				uint8_t *who = &owner[get16(l4) - 1000]
						     [get16(l4 + 2) - 53];

				n_seen += *who == 0;
				if (*who == 0)
					*who = (uint8_t)(s + 1);
				assert_int_equal(*who, s + 1);
			}
			builder_free(builder);
		}
		assert_int_equal(n_seen, N_FLOWS);
		frames_free(frames);
		streams_free(streams);
	}
}

TEST(fewer_values_than_senders_are_shared)
{
	const char *text = "udp.dst=53,80";
	struct streams *streams = parsed(&text, 1, false);
	struct frames *frames = frames_new();

	for (uint32_t s = 0; s < 4; s++) {
		struct builder *builder = opened(streams, s, 4);

		builder_fill(builder, frames->base, frames->of, NULL, 10);
		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(get16(bytes_of(frames, i) + 36),
					 s % 2 == 0 ? 53 : 80);
		builder_free(builder);
	}
	frames_free(frames);
	streams_free(streams);
}

/* Draws have the distribution that was asked for: chi-squared, 0.1 %. */
TEST(draws_are_distributed_as_asked)
{
	static const struct {
		const char *text;
		double exponent;
		double limit; /* of chi-squared with 9 degrees of freedom */
	} cases[] = { { "udp.src=100-109:random", 0, 27.9 },
		      { "udp.src=100-109:zipf", 1, 27.9 },
		      { "udp.src=100-109:zipf=2.5", 2.5, 27.9 } };
	static const double powers[3][10] = {
		{ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
		{ 1, 1 / 2., 1 / 3., 1 / 4., 1 / 5., 1 / 6., 1 / 7., 1 / 8.,
		  1 / 9., 1 / 10. },
		{ 1, 0.176777, 0.0641500, 0.03125, 0.0178885, 0.0113402,
		  0.00771352, 0.00552427, 0.00411523, 0.00316228 }
	};

	for (uint32_t t = 0; t < 3; t++) {
		struct streams *streams = parsed(&cases[t].text, 1, false);
		struct builder *builder = opened(streams, 0, 1);
		struct frames *frames = frames_new();
		uint32_t counts[10] = { 0 }, n = 0;
		double sum = 0, chi = 0;

		for (; n < 16 * MAX_FRAMES; n += MAX_FRAMES) {
			builder_fill(builder, frames->base, frames->of, NULL,
				     MAX_FRAMES);
			for (uint32_t i = 0; i < MAX_FRAMES; i++)
				counts[get16(bytes_of(frames, i) + 34) - 100]++;
		}
		for (uint32_t i = 0; i < 10; i++)
			sum += powers[t][i];
		for (uint32_t i = 0; i < 10; i++) {
			const double wanted = n * powers[t][i] / sum;

			chi += (counts[i] - wanted) * (counts[i] - wanted) /
			       wanted;
		}
		assert_true(chi < cases[t].limit);
		assert_true(chi > 0.5); /* too good is no draw either */
		frames_free(frames);
		builder_free(builder);
		streams_free(streams);
	}
}

TEST(mixes_have_their_shares)
{
	const char *text = "size=imix";
	struct streams *streams = parsed(&text, 1, true);
	struct builder *builder = opened(streams, 0, 1);
	struct frames *frames = frames_new();
	uint32_t n_60 = 0, n_566 = 0, n_1514 = 0;

	builder_fill(builder, frames->base, frames->of, NULL, 1200);
	for (uint32_t i = 0; i < 1200; i++) {
		n_60 += frames->of[i].len == 60;
		n_566 += frames->of[i].len == 566;
		n_1514 += frames->of[i].len == 1514;
		check_sums(bytes_of(frames, i), frames->of[i].len);
	}
	assert_int_equal(n_60, 700);
	assert_int_equal(n_566, 400);
	assert_int_equal(n_1514, 100);
	frames_free(frames);
	builder_free(builder);
	streams_free(streams);
}

TEST(senders_that_there_are_not_are_refused)
{
	struct streams *streams = parsed(NULL, 0, false);
	struct builder *builder = NULL;
	struct mr_reason why = { .text = "" };

	assert_int_equal(builder_open(streams, 0, 0, 1, &builder, &why),
			 -EINVAL);
	assert_int_equal(builder_open(streams, 2, 2, 1, &builder, &why),
			 -EINVAL);
	assert_int_equal(builder_open(streams, 0, 65, 1, &builder, &why),
			 -EINVAL);
	assert_null(builder);
	assert_string_equal(why.text, "sender 0 of 65; there are 1 to 64");
	builder_free(NULL);
	streams_free(streams);
	streams_free(NULL);
}
