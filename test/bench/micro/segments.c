/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W03: the cost of software segmentation and merging per segment, compared with
 * the same segments without it. All data is in the caches, including payload.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include <millrace/experimental/gro.h>

#include "alloc.h"

enum {
	HEADER_BYTES = 54, /* Ethernet, IPv4, TCP */
	MSS = 1448,
	HEADROOM_BYTES = 128,
	SEGMENTS = 15, /* of a frame that is cut */
	ENTRY_BYTES = 1800,
	BURST = 60, /* segments that are merged, or not */
};

/* Who verifies the checksums. */
enum sum { SUM_PARTIAL, SUM_VERIFIED, SUM_UNKNOWN };

enum { P_FLOWS, P_SUM, P_MERGES }; /* of variant.param */

struct segments {
	struct our_pool *our;
	struct mr_cache *cache;
	struct mr_port *port;
	struct mr_frame frames[BURST]; /* as received, with their headers */
	uint8_t headers[BURST][HEADER_BYTES];
};

/* The headers of segment i of a flow, without its checksum. */
static void make_headers(uint8_t *bytes, uint32_t flow, uint32_t i,
			 uint32_t n_payload)
{
	struct mr_ipv4 *ip = (struct mr_ipv4 *)(bytes + MR_ETH_BYTES);
	struct mr_tcp *tcp = (struct mr_tcp *)(ip + 1);

	memset(bytes, 2, MR_ETH_BYTES);
	((struct mr_eth *)bytes)->type = htons(MR_ETHER_IPV4);
	*ip = (struct mr_ipv4){
		.version_ihl = 0x45,
		.total_bytes = htons((uint16_t)(40 + n_payload)),
		.id = htons((uint16_t)i),
		.ttl = 64,
		.proto = 6,
		.src = htonl(0x0a000001 + flow),
		.dst = htonl(0x0a000002),
	};
	ip->csum = (uint16_t)~mr_csum_fold(
		mr_csum_add((const uint8_t *)ip, sizeof(*ip), 0));
	*tcp = (struct mr_tcp){
		.src = htons(5201),
		.dst = htons(40000),
		.seq = htonl(i * MSS),
		.offset = 0x50,
		.flags = MR_TCP_ACK,
	};
}

/* Finish a checksum, or leave it partial. */
static void write_sum(uint8_t *bytes, uint32_t n_bytes, bool is_partial)
{
	struct mr_net_view view;
	uint16_t sum;

	(void)mr_net_parse(bytes, n_bytes, n_bytes, &view);
	sum = mr_csum_pseudo(bytes, &view);
	memcpy(bytes + view.csum_bytes, &sum, sizeof(sum));
	if (is_partial)
		return;
	sum = (uint16_t)~mr_csum_fold(
		mr_csum_add(bytes + view.l4_bytes, view.l4_len_bytes, 0));
	memcpy(bytes + view.csum_bytes, &sum, sizeof(sum));
}

static void end_segments(struct variant *variant)
{
	struct segments *s = extra_of(variant);

	if (s->frames[0].len > 0)
		mr_frame_free_bulk(s->cache, s->frames, BURST);
	mr_port_close(s->port);
}

static int begin_segments(struct variant *variant, struct mr_reason *why)
{
	struct mr_port_config config = { .size = sizeof(config) };
	struct segments *s = extra_of(variant);

	s->our = ((struct harness *)variant->state)->pool;
	s->cache = s->our->caches[0][0];
	config.pool = s->our->pools[0];
	return mr_port_open(bench_ctx(variant->bench), "null:", &config,
			    &s->port, why);
}

/* Segments of flows in turn. */
static int begin_burst(struct variant *variant, struct mr_reason *why)
{
	const uint32_t n_flows = (uint32_t)variant->param[P_FLOWS];
	const enum sum sum = (enum sum)variant->param[P_SUM];
	struct segments *s = extra_of(variant);
	uint64_t addrs[BURST];

	if (begin_segments(variant, why) < 0)
		return -1;
	if (mr_frag_alloc_bulk(s->cache, addrs, BURST, OBJECT_BYTES) < BURST)
		return -1; /* impossible: the pool has more */
	for (uint32_t i = 0; i < BURST; i++) {
		uint8_t *bytes = s->our->base + addrs[i] + HEADROOM_BYTES;

		memset(bytes, (int)i, HEADER_BYTES + MSS);
		make_headers(bytes, i % n_flows, i / n_flows, MSS);
		write_sum(bytes, HEADER_BYTES + MSS, sum == SUM_PARTIAL);
		memcpy(s->headers[i], bytes, HEADER_BYTES);
		s->frames[i] = (struct mr_frame){
			.addr = addrs[i] + HEADROOM_BYTES,
			.len = HEADER_BYTES + MSS,
			.flags = sum == SUM_PARTIAL  ? MR_FRAME_CSUM_PARTIAL :
				 sum == SUM_VERIFIED ? MR_FRAME_CSUM_VALID :
						       0,
		};
	}
	return 0;
}

/* A frame of SEGMENTS segments to a port that cannot cut it. */
static uint64_t run_cut(struct variant *variant, uint32_t thread, uint64_t n)
{
	enum {
		WHOLE = HEADER_BYTES + SEGMENTS * MSS,
		ENTRIES = (WHOLE + ENTRY_BYTES - 1) / ENTRY_BYTES
	};
	struct segments *s = extra_of(variant);
	struct mr_txq *txq = mr_port_txq(s->port, 0);
	const struct mr_meta metas[ENTRIES] = { { .valid = MR_META_GSO |
							   MR_META_CSUM,
						  .csum_start_bytes = 34,
						  .csum_offset_bytes = 16,
						  .gso_bytes = MSS,
						  .gso_type = MR_GSO_TCPV4 } };
	struct mr_frame frames[ENTRIES];
	uint64_t addrs[ENTRIES], done = 0;

	(void)thread;
	for (; done < n; done += SEGMENTS) {
		if (mr_frag_alloc_bulk(s->cache, addrs, ENTRIES, OBJECT_BYTES) <
		    ENTRIES)
			return 0;
		for (uint32_t i = 0; i < ENTRIES; i++)
			frames[i] = (struct mr_frame){
				.addr = addrs[i] + HEADROOM_BYTES,
				.len = i + 1 < ENTRIES ?
					       ENTRY_BYTES :
					       WHOLE - i * ENTRY_BYTES,
				.flags = i + 1 < ENTRIES ? MR_FRAME_MORE : 0,
			};
		frames[0].flags |= MR_FRAME_CSUM_PARTIAL;
		make_headers(s->our->base + frames[0].addr, 0, 0,
			     SEGMENTS * MSS);
		mr_tx_burst_meta(txq, s->cache, frames, metas, ENTRIES);
	}
	return done;
}

/* The same segments, made one by one, without a payload. */
static uint64_t run_uncut(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct segments *s = extra_of(variant);
	struct mr_txq *txq = mr_port_txq(s->port, 0);
	struct mr_frame frames[SEGMENTS];
	uint64_t addrs[SEGMENTS], done = 0;

	(void)thread;
	for (; done < n; done += SEGMENTS) {
		if (mr_frag_alloc_bulk(s->cache, addrs, SEGMENTS,
				       OBJECT_BYTES) < SEGMENTS)
			return 0;
		for (uint32_t i = 0; i < SEGMENTS; i++) {
			frames[i] = (struct mr_frame){
				.addr = addrs[i] + HEADROOM_BYTES,
				.len = HEADER_BYTES + MSS,
			};
			make_headers(s->our->base + frames[i].addr, 0, i, MSS);
		}
		mr_tx_burst(txq, s->cache, frames, SEGMENTS);
	}
	return done;
}

/* Merge a burst, and undo it: only the first headers were written to. */
static uint64_t run_burst(struct variant *variant, uint32_t thread, uint64_t n)
{
	const uint32_t offloads =
		variant->param[P_MERGES] ? MR_OFFLOAD_TSO4 : 0;
	struct segments *s = extra_of(variant);
	struct mr_frame frames[BURST];
	struct mr_meta metas[BURST];
	uint64_t done = 0;

	(void)thread;
	for (; done < n; done += BURST) {
		memcpy(frames, s->frames, sizeof(frames));
		for (uint32_t i = 0; i < BURST; i++)
			metas[i].valid = 0;
		keep(frames);
		if (offloads == 0)
			continue;
		mr_gro(s->cache, offloads, 0, frames, metas, BURST);
		for (uint32_t i = 0; i < BURST; i++)
			memcpy(s->our->base + s->frames[i].addr, s->headers[i],
			       HEADER_BYTES);
	}
	return done;
}

static void add_rows_of_bursts(struct bench *bench)
{
	static const char *const sums[] = { "partial", "verified", "unknown" };
	static const uint32_t flows[] = { 1, 8, 60 };

	for (uint32_t i = 0; i < 9; i++) {
		struct row row = { .unit = "segment" };

		NAME(row.name, "gro flows=%u sum=%s", flows[i / 3],
		     sums[i % 3]);
		for (uint64_t merges = 2; merges-- > 0;)
			bench_add_all(
				bench, &row,
				&(struct variant){
					.begin = begin_burst,
					.end = end_segments,
					.wish = { .n_extra = sizeof(
							  struct segments) },
					.param = { flows[i / 3], i % 3,
						   merges } },
				&(struct contestant){ merges ? "mr_gro()" :
							       "without",
						      A_OURS, run_burst },
				1);
		bench_row(bench, &row);
	}
}

void rows_w03(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "cut", A_OURS, run_cut },
		{ "made one by one", A_OURS, run_uncut },
	};
	struct row row = { .name = "gso segments=15", .unit = "segment" };

	bench_add_all(bench, &row,
		      &(struct variant){
			      .begin = begin_segments,
			      .end = end_segments,
			      .wish = { .n_extra = sizeof(struct segments) } },
		      list, N_OF(list));
	bench_row(bench, &row);
	add_rows_of_bursts(bench);
}
