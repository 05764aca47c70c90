/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames made of adjacent frags. If a driver writes outside one, it damages a
 * neighbour: the next frame to be sent, or one that was kept.
 *
 *     kept | frame | frame | frame | ... | kept
 *     kept | frame | kept | frame | kept | ...
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/experimental/frag.h>

#include "suite.h"

enum { N_FRAMES = 24, KEPT_BYTES = 40, TCI = 0x2abc, N_SEGS = 3 };

/* By the device or, if unsupported, in software. */
enum { HAS_SUM = 1, HAS_TAG = 2 };

/* Frags of one row. */
struct row {
	uint32_t n_segs; /* of a frame */
	uint32_t needs;  /* HAS_*: left to the driver */
	struct mr_frame frames[N_FRAMES * N_SEGS];
	struct mr_meta meta[N_FRAMES * N_SEGS];
	struct mr_frame kept[N_FRAMES + 1];
	uint32_t n_kept;
};

/* Frames of one entry and of several: the checksum must be in the first. */
static uint32_t len_of(uint32_t id)
{
	return 3 * 60 + 17 * id;
}

static uint16_t complement(uint64_t sum)
{
	return (uint16_t)~mr_csum_fold(sum);
}

/* Frame number id, a UDP packet if it has a checksum: complete or partial. */
static void make_frame(uint8_t *bytes, uint32_t id, uint32_t needs,
		       bool is_finished)
{
	const uint32_t n_l3 = len_of(id) - MR_ETH_BYTES;
	struct mr_ipv4 *ip = (struct mr_ipv4 *)(bytes + MR_ETH_BYTES);
	struct mr_udp *udp = (struct mr_udp *)(ip + 1);
	struct mr_net_view view;

	traffic_make(bytes, len_of(id), id);
	if (!(needs & HAS_SUM))
		return;
	((struct mr_eth *)bytes)->type = htons(MR_ETHER_IPV4);
	*ip = (struct mr_ipv4){ .version_ihl = 0x45,
				.total_bytes = htons((uint16_t)n_l3),
				.ttl = 64,
				.proto = IPPROTO_UDP,
				.src = htonl(0x0a000001),
				.dst = htonl(0x0a000002) };
	ip->csum = complement(mr_csum_add((uint8_t *)ip, sizeof(*ip), 0));
	*udp = (struct mr_udp){ .src = htons(7),
				.dst = htons(9),
				.n_bytes =
					htons((uint16_t)(n_l3 - sizeof(*ip))) };
	assert_int_equal(mr_net_parse(bytes, len_of(id), len_of(id), &view), 0);
	udp->csum = mr_csum_pseudo(bytes, &view);
	if (is_finished)
		udp->csum = complement(
			mr_csum_add((uint8_t *)udp, view.l4_len_bytes, 0));
}

/* Like make(), but as on the wire: with its tag. Returns its bytes. */
static uint32_t make_sent(uint8_t *bytes, uint32_t id, uint32_t needs,
			  bool is_finished)
{
	make_frame(bytes, id, needs, is_finished);
	return needs & HAS_TAG ? traffic_tag(bytes, len_of(id), TCI) :
				 len_of(id);
}

static struct mr_frame cut_frag(struct mr_frag_cache *frags, uint32_t n_bytes)
{
	struct mr_frame frame = { .len = n_bytes };

	assert_int_equal(mr_frag_cache_alloc(frags, n_bytes, 0, &frame.addr),
			 0);
	return frame;
}

static void cut_kept(struct harness *harness, struct mr_frag_cache *frags,
		     struct row *row)
{
	struct mr_frame *kept = &row->kept[row->n_kept++];

	*kept = cut_frag(frags, KEPT_BYTES);
	harness_write_frame(harness, kept->addr, kept->len, ~row->n_kept);
}

static void cut_frame(struct harness *harness, struct mr_frag_cache *frags,
		      struct row *row, uint32_t id)
{
	struct mr_frame *frames = &row->frames[id * row->n_segs];
	uint8_t bytes[HARNESS_MAX_BYTES];
	uint32_t n_done = 0;

	make_frame(bytes, id, row->needs, false);
	for (uint32_t k = 0; k < row->n_segs; k++) {
		frames[k] = cut_frag(frags,
				     (len_of(id) - n_done) / (row->n_segs - k));
		memcpy(harness->base + frames[k].addr, bytes + n_done,
		       frames[k].len);
		n_done += frames[k].len;
		if (k + 1 < row->n_segs)
			frames[k].flags = MR_FRAME_MORE;
	}
	if (row->needs & HAS_SUM)
		frames[0].flags |= MR_FRAME_CSUM_PARTIAL;
	if (row->needs & HAS_TAG)
		row->meta[id * row->n_segs] =
			(struct mr_meta){ .valid = MR_META_VLAN,
					  .vlan_tci = TCI };
}

/* Each frame arrived unchanged, except for what was left to the driver. */
static void check_sent(struct harness *harness, const struct row *row,
		       bool is_finished)
{
	uint8_t sent[HARNESS_MAX_BYTES], wanted[HARNESS_MAX_BYTES];

	for (uint32_t id = 0; id < N_FRAMES; id++) {
		const uint32_t n =
			make_sent(wanted, id, row->needs, is_finished);

		assert_int_equal(harness_collect_bytes(harness, sent), n);
		assert_memory_equal(sent, wanted, n);
	}
}

static void send_row(struct harness *harness, struct mr_frag_cache *frags,
		     uint32_t n_segs, uint32_t needs, bool is_apart)
{
	const struct mr_tx_stats before = harness_tx_stats(harness);
	struct row row = { .n_segs = n_segs, .needs = needs };
	struct mr_tx_stats after;
	uint64_t n_finished;

	cut_kept(harness, frags, &row);
	for (uint32_t id = 0; id < N_FRAMES; id++) {
		cut_frame(harness, frags, &row, id);
		if (is_apart || id + 1 == N_FRAMES)
			cut_kept(harness, frags, &row);
	}
	harness_tx_meta(harness, row.frames, row.meta, N_FRAMES * n_segs);
	after = harness_tx_stats(harness);
	n_finished = after.events[MR_TX_EVENT_CSUM_DEVICE] -
		     before.events[MR_TX_EVENT_CSUM_DEVICE] +
		     after.events[MR_TX_EVENT_CSUM_SOFTWARE] -
		     before.events[MR_TX_EVENT_CSUM_SOFTWARE];
	/* A port in memory leaves checksums to the receiver. */
	if (n_finished != 0)
		assert_int_equal(n_finished, needs & HAS_SUM ? N_FRAMES : 0);
	if (harness->fixture->traits & FIXTURE_OUT)
		check_sent(harness, &row, n_finished != 0);
	harness_assert_completed(harness, before.accepted + N_FRAMES);
	for (uint32_t i = 0; i < row.n_kept; i++) {
		uint32_t n_entries, n_bytes;

		assert_int_equal(harness_check_frame(harness, &row.kept[i],
						     &n_entries, &n_bytes),
				 ~(i + 1));
	}
	harness_free(harness, row.kept, row.n_kept);
}

static void send_rows(uint32_t n_segs)
{
	for (uint32_t page = 4096; page <= 8192 && page <= harness_max_page_bytes();
	     page *= 2) {
		const struct wish wish = { .is_sg = n_segs > 1,
					   .page_bytes = page };
		struct harness *harness = harness_make(&wish);
		struct mr_frag_cache *frags;

		assert_int_equal(
			mr_frag_cache_create(harness->cache, &frags, NULL), 0);
		for (uint32_t needs = 0; needs <= (HAS_SUM | HAS_TAG);
		     needs++) {
			send_row(harness, frags, n_segs, needs, false);
			send_row(harness, frags, n_segs, needs, true);
		}
		mr_frag_cache_destroy(frags);
		harness_end(harness);
	}
}

HARNESS_TEST(adjacent_frags_leave_intact)
{
	send_rows(1);
}

HARNESS_TEST(frames_of_adjacent_frags_leave_intact)
{
	harness_need(FIXTURE_SG, "it has no frames of several entries");
	send_rows(N_SEGS);
}
