/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/gro.c and lib/net/gro.c. Segmentation (lib/port/offload.c)
 * must turn merged frames back into the same frames.
 */
#include <stdbool.h>

#include <millrace/experimental/gro.h>
#include <millrace/port.h>

#include "support/gro_unit.h"
#include "support/invariants.h"
#include "support/packet.h"
#include "support/pool_unit.h"

enum {
	PAGES = 4096,
	PAGE = 2048,
	BURST = 128,
	MAX_BYTES = 2048,
	FLOWS = 24, /* more than are merged at a time */
	ROUNDS = 400,
	ALL = MR_OFFLOAD_TSO4 | MR_OFFLOAD_TSO6 | MR_OFFLOAD_USO,
};

static struct {
	struct pool_fixture f;
	struct mr_port *near, *far;
	struct mr_frame frames[BURST], got[MR_BURST_MAX];
	struct mr_meta metas[MR_BURST_MAX];
	uint32_t n, n_frames;
	uint32_t mtu_bytes; /* of the next port */
	bool has_long;      /* frames of several entries */
} b;

static void open_gro(void)
{
	struct mr_port_config config = { .size = sizeof(config) };

	fixture_open_with(&b.f, (struct mr_pool_config){ .n_pages = PAGES,
							 .page_bytes = PAGE });
	config.pool = b.f.pool;
	assert_int_equal(mr_port_open(b.f.ctx, "pair:g,ring=1024,sg=on",
				      &config, &b.near, NULL),
			 0);
	assert_int_equal(mr_port_open(b.f.ctx, "pair:g,ring=1024,sg=on",
				      &config, &b.far, NULL),
			 0);
	b.n = b.n_frames = 0;
	b.has_long = false;
	seed = 1;
}

static void close_gro(void)
{
	mr_frame_free_bulk(b.f.cache, b.frames, b.n);
	mr_port_close(b.near);
	mr_port_close(b.far);
	fixture_close(&b.f);
}

/* Append the bytes as a frame: in one entry, or cut in the payload. */
static void append(const uint8_t *bytes, uint32_t n, uint32_t n_first,
		   uint32_t flags, struct mr_meta meta)
{
	for (uint32_t at = 0; at < n; b.n++) {
		const uint32_t k = at == 0 ? n_first : n - at;
		struct mr_frame *frame = &b.frames[b.n];

		*frame = (struct mr_frame){
			alloc_one(b.f.cache, PAGE) + 64, k,
			(at == 0 ? flags : 0) | (at + k < n ? MR_FRAME_MORE : 0)
		};
		memcpy(b.f.base + frame->addr, bytes + at, k);
		b.metas[b.n] = meta;
		at += k;
	}
	b.n_frames++;
}

static void append_spec(const struct spec *s)
{
	uint8_t bytes[MAX_BYTES];
	uint32_t n_header;
	const uint32_t n = make(bytes, s, &n_header);

	append(bytes, n,
	       b.has_long && s->n_payload > 1 && one_in(8) ?
		       n_header + 1 + random_below(s->n_payload - 1) :
		       n,
	       (s->is_sum_marked ? MR_FRAME_CSUM_VALID : 0u) |
		       (s->is_sum_partial ? MR_FRAME_CSUM_PARTIAL : 0u),
	       (struct mr_meta){ 0 });
}

/* The bytes of a frame, its checksum finished. Returns how many. */
static uint32_t flatten(const struct mr_frame *frames, uint8_t *to)
{
	struct mr_frame copy[MR_MAX_SEGS];
	const uint32_t k = mr_frame_n_entries(frames);
	struct mr_partial partial;
	uint32_t n = 0;

	memcpy(copy, frames, k * sizeof(copy[0]));
	for (uint32_t i = 0; i < k; i++) {
		memcpy(to + n, b.f.base + frames[i].addr, frames[i].len);
		n += frames[i].len;
	}
	copy[0] = (struct mr_frame){ 0, n, 0 };
	if (frames[0].flags & MR_FRAME_CSUM_PARTIAL &&
	    mr_partial_find(to, copy, NULL, &partial) == 0) {
		partial.has_no_zero = 1; /* as with metadata */
		mr_partial_finish(to, copy, &partial);
	}
	return n;
}

/* ---- bursts at random ---- */

/* Frames in the order in which they came, for comparison. */
struct kept {
	uint32_t n;
	bool is_used;
	uint8_t bytes[MAX_BYTES];
};

static struct kept *keep_all(void)
{
	struct kept *kept = calloc(b.n_frames, sizeof(*kept));
	uint32_t at = 0;

	assert_non_null(kept);
	for (uint32_t i = 0; i < b.n_frames; i++) {
		kept[i].n = flatten(&b.frames[at], kept[i].bytes);
		at += mr_frame_n_entries(&b.frames[at]);
	}
	return kept;
}

/* The next frame of a flow, or something in its place. */
static struct spec next_of(struct spec *flow)
{
	struct spec s = *flow;

	if (one_in(2))
		apply(&changes[random_below(CHANGES)], &s);
	flow->id = s.id + 1;
	flow->seq = s.seq + s.n_payload;
	flow->ack = s.ack;
	flow->window = s.window;
	flow->option = s.option;
	flow->tos = s.tos;
	return s;
}

static void make_burst(void)
{
	const uint32_t n_flows = 1 + random_below(FLOWS);
	struct spec flows[FLOWS];

	for (uint32_t f = 0; f < n_flows; f++)
		flows[f] = (struct spec){
			.flow = 1 + f,
			.is_v6 = one_in(2),
			.is_udp = one_in(3),
			.n_tags = random_below(2),
			.ttl = 64,
			.flags = ACK,
			.id = random_below(65536),
			.window = 500,
			.seq = random_below(1u << 24) << 8, /* it wraps */
			.n_payload = MSS,
			.n_tcp_options = 3 * random_below(2),
			.is_sum_partial = one_in(4),
		};
	while (b.n + MR_MAX_SEGS < BURST) {
		const struct spec s = next_of(&flows[random_below(n_flows)]);

		append_spec(&s);
		if (one_in(30))
			append((const uint8_t
					*)"\2\0\0\0\0\1\2\0\0\0\0\xff\x08\6"
					  "an ARP packet, say",
			       14 + 18, 14 + 18, 0, (struct mr_meta){ 0 });
	}
}

/* Through the library's segmentation, to frames received by b.got. */
static uint32_t segment(void)
{
	uint32_t n;

	assert_int_equal(mr_tx_burst_meta(mr_port_txq(b.near, 0), b.f.cache,
					  b.frames, b.metas, b.n),
			 b.n);
	b.n = 0;
	n = mr_rx_burst(mr_port_rxq(b.far, 0), b.f.cache, b.got, MR_BURST_MAX);
	assert_int_equal(mr_rx_burst(mr_port_rxq(b.far, 0), b.f.cache,
				     b.got + n, MR_BURST_MAX - n),
			 0);
	return n;
}

/* Of the frames of the same sender the first that is left. */
static struct kept *next_kept(struct kept *kept, uint32_t n, uint8_t sender)
{
	for (uint32_t i = 0; i < n; i++)
		if (!kept[i].is_used && kept[i].bytes[11] == sender)
			return &kept[i];
	return NULL;
}

static void compare(struct kept *kept, uint32_t n_kept, uint32_t n)
{
	uint8_t bytes[MAX_BYTES];
	uint32_t n_frames = 0;

	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&b.got[i])) {
		const uint32_t n_bytes = flatten(&b.got[i], bytes);
		struct kept *k = next_kept(kept, n_kept, bytes[11]);

		assert_non_null(k);
		assert_int_equal(n_bytes, k->n);
		assert_memory_equal(bytes, k->bytes, n_bytes);
		k->is_used = true;
		n_frames++;
	}
	assert_int_equal(n_frames, n_kept);
}

TEST(segmentation_restores_a_burst)
{
	uint64_t n_all = 0, n_merged = 0;

	open_gro();
	b.has_long = true;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t n, n_fewer, n_before;
		struct kept *kept;

		b.n_frames = 0;
		make_burst();
		n_before = b.n_frames;
		kept = keep_all();
		n_fewer = mr_gro(b.f.cache, ALL, 0, b.frames, b.metas, b.n);
		assert_int_equal(mr_frame_n_whole(b.frames, b.n), b.n);
		assert_int_equal(mr_frame_n_frames(b.frames, b.n),
				 n_before - n_fewer);
		n = segment();
		compare(kept, n_before, n);
		mr_frame_free_bulk(b.f.cache, b.got, n);
		free(kept);
		n_all += n_before;
		n_merged += n_fewer;
	}
	/* Most frames are the next ones of their flow. */
	assert_true(n_merged > n_all / 4);
	close_gro();
}

/* ---- the inverse ---- */

TEST(merging_restores_a_long_frame)
{
	open_gro();
	for (uint32_t c = 0; c < 8 * 4; c++) {
		const uint32_t n_segments = 2 + c / 8 * 5;
		const bool has_short_end = c & 4;
		struct spec s = {
			.flow = 1,
			.is_v6 = c & 1,
			.is_udp = c & 2,
			.n_tags = c % 3,
			.ttl = 64,
			.flags = ACK | PSH | CWR,
			.id = 0xfffe,
			.seq = UINT32_MAX - MSS,
			.n_tcp_options = 3,
			.n_payload = n_segments * MSS - (has_short_end ? 9 : 0),
			.is_sum_partial = true,
		};
		uint8_t before[MAX_BYTES], after[MAX_BYTES];
		uint32_t n, n_before, n_header, l4;

		n_before = make(before, &s, &n_header);
		l4 = n_header - (s.is_udp ? 8 : 32);
		append(before, n_before, n_before, MR_FRAME_CSUM_PARTIAL,
		       (struct mr_meta){ .valid = MR_META_CSUM | MR_META_GSO,
					 .csum_start_bytes = (uint16_t)l4,
					 .csum_offset_bytes = s.is_udp ? 6 : 16,
					 .gso_bytes = MSS,
					 .gso_type = s.is_udp ? MR_GSO_UDP :
						     s.is_v6  ? MR_GSO_TCPV6 :
								MR_GSO_TCPV4 });
		n = segment();
		assert_int_equal(n, n_segments);
		memset(b.metas, 0, sizeof(b.metas));
		assert_int_equal(mr_gro(b.f.cache, ALL, 0, b.got, b.metas, n),
				 n - 1);
		assert_int_equal(mr_frame_n_entries(b.got), n);
		assert_int_equal(b.metas[0].valid, MR_META_CSUM | MR_META_GSO);
		assert_int_equal(b.metas[0].gso_bytes, MSS);
		assert_int_equal(b.metas[0].csum_start_bytes, l4);
		assert_true(b.got[0].flags & MR_FRAME_CSUM_PARTIAL);
		assert_int_equal(flatten(b.got, after), n_before);
		b.n_frames = 0;
		append(before, n_before, n_before, MR_FRAME_CSUM_PARTIAL,
		       (struct mr_meta){ 0 });
		assert_int_equal(flatten(b.frames, before), n_before);
		assert_memory_equal(after, before, n_before);
		mr_frame_free_bulk(b.f.cache, b.frames, b.n);
		mr_frame_free_bulk(b.f.cache, b.got, n);
		b.n = 0;
	}
	close_gro();
}

/* ---- one rule after the other ---- */

static const struct spec plain = { .flow = 1,
				   .ttl = 64,
				   .flags = ACK,
				   .id = 7,
				   .window = 500,
				   .seq = 1000,
				   .n_payload = MSS,
				   .n_tcp_options = 3 };

static struct spec follower(void)
{
	struct spec s = plain;

	s.id++;
	s.seq += MSS;
	return s;
}

/* Whether two frames are merged. */
static bool are_merged(const struct spec *first, const struct spec *second,
		       uint32_t offloads)
{
	bool result;

	open_gro();
	append_spec(first);
	append_spec(second);
	result = mr_gro(b.f.cache, offloads, b.mtu_bytes, b.frames, b.metas,
			b.n) == 1;
	assert_int_equal(mr_frame_n_frames(b.frames, b.n), result ? 1 : 2);
	close_gro();
	return result;
}

TEST(segments_gso_cannot_restore_are_not_merged)
{
	const struct spec next = follower();

	for (uint32_t i = 0; i < CHANGES; i++) {
		struct spec s = follower();

		apply(&changes[i], &s);
		assert_int_equal(are_merged(&plain, &s, ALL),
				 changes[i].is_merged);
	}
	assert_true(are_merged(&plain, &next, ALL));
	assert_true(are_merged(&plain, &next, MR_OFFLOAD_TSO4));
	assert_false(are_merged(&plain, &next, ALL & ~MR_OFFLOAD_TSO4));
}

TEST(segments_the_next_port_cannot_send_are_not_merged)
{
	const struct spec next = follower();
	const uint32_t n = 20 + 20 + 4 * plain.n_tcp_options + MSS;

	b.mtu_bytes = n;
	assert_true(are_merged(&plain, &next, ALL));
	b.mtu_bytes = n - 1;
	assert_false(are_merged(&plain, &next, ALL));
	b.mtu_bytes = 0;
}

TEST(the_first_segment_is_checked_as_well)
{
	struct spec first = plain, second = follower();

	first.flags = ACK | PSH; /* it ends here */
	assert_false(are_merged(&first, &second, ALL));
	first.flags = ACK | CWR;
	assert_true(are_merged(&first, &second, ALL));
	first = plain;
	second.flow = 2;
	assert_false(are_merged(&first, &second, ALL));
	/* The device has verified the checksum, so nobody else does. */
	second = follower();
	second.is_sum_bad = second.is_sum_marked = true;
	assert_true(are_merged(&first, &second, ALL));
	second = follower();
	first.is_udp = second.is_udp = true;
	assert_true(are_merged(&first, &second, ALL));
	second.is_sum_none = true;
	assert_false(are_merged(&first, &second, ALL));
	/* Segmentation writes 0xffff where TCP may have 0. */
	second = follower();
	second.is_sum_none = second.is_sum_marked = true;
	assert_false(are_merged(&plain, &second, ALL));
}

/* UDP over IPv6 has no numbers that would tell that one is missing. */
TEST(a_flow_is_not_merged_past_a_frame_of_unknown_flow)
{
	struct spec s = plain;
	uint8_t bytes[MAX_BYTES];
	uint32_t n, n_header;

	open_gro();
	s.is_v6 = s.is_udp = true;
	append_spec(&s);
	n = make(bytes, &s, &n_header);
	append(bytes, n, n_header - 4, 0, (struct mr_meta){ 0 });
	append_spec(&s);
	assert_int_equal(mr_gro(b.f.cache, ALL, 0, b.frames, b.metas, b.n), 0);
	close_gro();
}

/* Metadata that a merged frame could not have stays with its frame. */
TEST(metadata_must_agree)
{
	static const struct {
		struct mr_meta first, second;
		bool is_merged;
	} cases[] = {
		{ { .valid = MR_META_VLAN, .vlan_tci = 5 },
		  { .valid = MR_META_VLAN, .vlan_tci = 5 },
		  true },
		{ { .valid = MR_META_VLAN, .vlan_tci = 5 },
		  { .valid = MR_META_VLAN, .vlan_tci = 6 },
		  false },
		{ { .valid = MR_META_VLAN, .vlan_tci = 5 }, { 0 }, false },
		{ { .valid = MR_META_MARK, .mark = 5 },
		  { .valid = MR_META_MARK, .mark = 6 },
		  false },
		{ { .valid = MR_META_RSS_HASH, .rss_hash = 1 }, { 0 }, true },
		{ { 0 }, { .valid = MR_META_TX_TIME }, false },
		{ { 0 }, { .valid = MR_META_LAUNCH_TIME }, false },
		{ { 0 }, { .valid = MR_META_GSO, .gso_bytes = 50 }, false },
	};
	const struct spec second = follower();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_gro();
		append_spec(&plain);
		append_spec(&second);
		b.metas[0] = cases[i].first;
		b.metas[1] = cases[i].second;
		assert_int_equal(
			mr_gro(b.f.cache, ALL, 0, b.frames, b.metas, b.n),
			cases[i].is_merged);
		if (cases[i].is_merged)
			assert_int_equal(b.metas[0].valid,
					 cases[i].first.valid | MR_META_CSUM |
						 MR_META_GSO);
		close_gro();
	}
}

/* The partial checksum of an inner packet says nothing about the outer one. */
TEST(a_tunnels_partial_sum_is_not_that_of_the_frame)
{
	struct spec second = follower();

	for (uint32_t i = 0; i < 2; i++) {
		open_gro();
		second.is_sum_partial = true;
		append_spec(&plain);
		append_spec(&second);
		b.metas[1].valid = MR_META_CSUM;
		b.metas[1].csum_start_bytes = i == 0 ? 34 : 84;
		b.metas[1].csum_offset_bytes = 16;
		assert_int_equal(
			mr_gro(b.f.cache, ALL, 0, b.frames, b.metas, b.n),
			1 - i);
		close_gro();
	}
}

/* A frame with another owner is not written to. */
TEST(shared_frames_stay_as_they_are)
{
	const struct spec second = follower();

	for (uint32_t i = 0; i < 2; i++) {
		open_gro();
		append_spec(&plain);
		append_spec(&second);
		assert_int_equal(mr_frame_ref(b.f.cache, &b.frames[i], 1), 0);
		assert_int_equal(
			mr_gro(b.f.cache, ALL, 0, b.frames, b.metas, b.n), 0);
		mr_frame_free_bulk(b.f.cache, &b.frames[i], 1);
		close_gro();
	}
}

TEST(a_frame_has_no_more_entries_than_ports_take)
{
	struct spec s = plain;

	open_gro();
	for (uint32_t i = 0; i < MR_MAX_SEGS + 3; i++) {
		append_spec(&s);
		s.id++;
		s.seq += MSS;
	}
	assert_int_equal(mr_gro(b.f.cache, ALL, 0, b.frames, b.metas, b.n),
			 MR_MAX_SEGS + 3 - 2);
	assert_int_equal(mr_frame_n_entries(b.frames), MR_MAX_SEGS);
	assert_int_equal(mr_frame_n_entries(b.frames + MR_MAX_SEGS), 3);
	assert_int_equal(b.metas[MR_MAX_SEGS].gso_bytes, MSS);
	close_gro();
}
