/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests from the wire. The first byte says where a second entry begins (0:
 * none). Nothing but the frame changes, a frame that is left does not either,
 * and the receiver of an answer accepts it.
 */
#include <arpa/inet.h>
#include <string.h>

#include <millrace/millrace.h>

#include "fuzz.h"

#define MACS "\2\0\0\0\0\1\2\0\0\0\0\2"
#define US4 "\xc0\0\2\1"
#define THEM4 "\xc0\0\2\2"
#define US6 "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
#define THEM6 "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\2"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\xff\xff\xff\xff\xff\xff\2\0\0\0\0\2\x08\6\0\1\x08\0\6\4\0\1"
	     "\2\0\0\0\0\2" THEM4 "\0\0\0\0\0\0" US4),
	SEED("\0" MACS "\x08\0\x45\0\0\x1c\0\0\0\0\x40\1\xf6\xdd" THEM4 US4
	     "\x08\0\xf7\xfe\0\0\0\1"),
	SEED("\x30" MACS "\x08\0\x46\0\0\x24\0\0\0\0\x40\1\xf3\xd3" THEM4 US4
	     "\1\1\1\1\x08\0\xf7\xfe\0\0\0\1\0\0\0\0"),
	SEED("\0" MACS "\x86\xdd\x60\0\0\0\0\x08\x3a\x40" THEM6 US6
	     "\x80\0\x24\x47\0\0\0\1"),
	SEED("\0" MACS "\x86\xdd\x60\0\0\0\0\x18\x3a\xff" THEM6 US6
	     "\x87\0\xef\x7d\0\0\0\0" US6),
	SEED("\0" MACS "\x81\0\0\0\x86\xdd\x60\0\0\0\0\x20\x3c\x40" THEM6 US6
	     "\x3a\0\1\4\0\0\0\0\x80\0\x24\x47\0\0\0\1"),
	{ NULL, 0 },
};

enum { PAGE = 4096, HEADROOM = 256, MAX = 1500, ROOM = 64 };

static struct mr_ctx *ctx;
static struct mr_region *region;
static struct mr_cache *cache;
static struct mr_answer *answer;

static void open_once(void)
{
	static const uint8_t ipv6[1][16] = { US6 };
	struct mr_answer_config config = { .size = sizeof(config),
					   .mac = { 2, 0, 0, 0, 0, 1 },
					   .n_ipv4 = 1,
					   .ipv6 = ipv6,
					   .n_ipv6 = 1,
					   .per_s = 1000000000,
					   .burst = UINT32_MAX };
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 64,
						    .page_bytes = PAGE };
	struct mr_pool *pool;
	uint32_t ipv4;

	if (ctx != NULL)
		return;
	memcpy(&ipv4, US4, sizeof(ipv4));
	config.ipv4 = &ipv4;
	FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	FUZZ_CHECK(mr_pool_create(ctx, &pool_config, &pool, NULL) == 0);
	region = mr_pool_region(pool);
	FUZZ_CHECK(mr_cache_create(pool, &cache, NULL) == 0);
	FUZZ_CHECK(mr_answer_create(cache, &config, &answer, NULL) == 0);
}

static void put_entry(struct mr_frame *frame, const uint8_t *bytes, uint32_t n)
{
	uint8_t *base = mr_region_base(region);

	*frame = (struct mr_frame){ .len = n };
	FUZZ_CHECK(mr_frag_alloc_bulk(cache, &frame->addr, 1, PAGE) == 1);
	memset(base + frame->addr, 0xa5, PAGE);
	frame->addr += HEADROOM;
	memcpy(base + frame->addr, bytes, n);
}

/* Whether a receiver takes the answer: lengths and checksums. */
static void check_answer(struct mr_frame *frames)
{
	uint8_t *base = mr_region_base(region);
	const uint8_t *bytes = mr_frame_data(base, frames), *ip;
	const uint32_t n =
		(uint32_t)mr_frame_n_bytes(frames, mr_frame_n_entries(frames));
	struct mr_net_view view;
	uint64_t sum = 0;

	FUZZ_CHECK(mr_net_parse(bytes, frames[0].len, n, &view) == 0);
	FUZZ_CHECK(memcmp(bytes + 6, MACS, 6) == 0);
	if (view.ether_type == MR_ETHER_ARP)
		return;
	ip = bytes + view.l3_bytes;
	if (view.ether_type == MR_ETHER_IPV6) {
		FUZZ_CHECK(view.l4_bytes == view.l3_bytes + 40);
		sum = mr_csum_pseudo(bytes, &view);
	} else {
		FUZZ_CHECK(view.l4_bytes == view.l3_bytes + 20);
		FUZZ_CHECK(mr_csum_fold(mr_csum_add(ip, 20, 0)) == 0xffff);
	}
	FUZZ_CHECK(mr_csum_fold(sum + mr_csum_frame(base, frames, view.l4_bytes,
						    view.l4_len_bytes)) ==
		   0xffff);
}

/* What the page has before the frame, and behind it and its answer. */
static void check_around(uint64_t addr, uint32_t n)
{
	const uint8_t *page =
		(uint8_t *)mr_region_base(region) + addr / PAGE * PAGE;

	for (uint32_t i = 0; i < HEADROOM; i++)
		FUZZ_CHECK(page[i] == 0xa5);
	for (uint32_t i = HEADROOM + n + ROOM; i < PAGE; i++)
		FUZZ_CHECK(page[i] == 0xa5);
}

/* Changes nothing but the TTL, and not even that if it fails. */
static void read_as_router(const struct mr_frame *frames, uint32_t n)
{
	void *base = mr_region_base(region);
	uint8_t *bytes = mr_frame_data(base, frames), copy[MAX], dst[16];
	struct mr_net_neighbour said;
	struct mr_net_view view;

	if (mr_net_parse(bytes, frames->len, n, &view) < 0 ||
	    view.l3_bytes == 0)
		return;
	if (mr_net_read_neighbour(base, frames, &view, &said) == 0)
		FUZZ_CHECK(!(said.mac[0] & 1));
	memcpy(copy, bytes, frames->len);
	if (mr_net_count_hop(bytes, &view, dst) < 0)
		FUZZ_CHECK(memcmp(copy, bytes, frames->len) == 0);
	memcpy(bytes, copy, frames->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_frame frames[2], freed[2];
	uint32_t cut, n, n_entries = 1, n_left, n_replies;

	open_once();
	if (n_bytes < 2 || n_bytes > MAX)
		return 0;
	cut = bytes[0];
	bytes++;
	n = (uint32_t)n_bytes - 1;
	if (cut == 0 || cut >= n)
		cut = n;
	put_entry(&frames[0], bytes, cut);
	if (cut < n) {
		frames[0].flags = MR_FRAME_MORE;
		put_entry(&frames[n_entries++], bytes + cut, n - cut);
	}
	memcpy(freed, frames, sizeof(freed[0]) * n_entries);
	read_as_router(frames, n);
	n_left = mr_answer_burst(answer, frames, NULL, n_entries, &n_replies);
	FUZZ_CHECK(n_left + n_replies == 0 || n_left + n_replies == n_entries);
	if (n_left > 0) {
		for (uint32_t i = 0, at = 0; i < n_left; i++) {
			FUZZ_CHECK(memcmp(mr_frame_data(mr_region_base(region),
							&frames[i]),
					  bytes + at, frames[i].len) == 0);
			at += frames[i].len;
		}
		FUZZ_CHECK(mr_frame_n_bytes(frames, n_left) == n);
	}
	if (n_left == n_entries &&
	    mr_answer_error(answer, frames, NULL, n_left,
			    (enum mr_error)(bytes[0] % 7), 1280)) {
		FUZZ_CHECK(!(frames[0].flags & MR_FRAME_MORE));
		check_answer(frames);
		mr_frame_free_bulk(cache, frames, 1);
		return 0;
	}
	if (n_replies > 0) {
		check_answer(frames);
		FUZZ_CHECK(mr_frame_n_bytes(frames, n_replies) <=
			   (uint64_t)n + ROOM);
	}
	if (n_left + n_replies > 0) {
		check_around(freed[0].addr, cut);
		mr_frame_free_bulk(cache, frames, n_entries);
	}
	return 0;
}
