/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merging: each half of the input is a frame. If the two are merged, segmenting
 * the result must restore them, except for the checksum. If the last byte is
 * odd, the checksums of the IPv4 headers are corrected first.
 */
#include <stdlib.h>
#include <string.h>

#include "net/net.h"

#include "fuzz.h"

#define MACS "\2\0\0\0\0\1\2\0\0\0\0\2"
#define IPV4(id, proto, n) "\x45\0\0" n "\0" id "\0\0\x40" proto
#define ENDS4 "\x0a\0\0\1\x0a\0\0\2"
#define ENDS6                                                                  \
	"\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1"                                   \
	"\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
#define TCP(seq)                                                               \
	"\x9c\x40\x13\x89\0\0\0" seq "\0\0\0\2\x50\x10\xff\xff\x12\x34\0\0"
#define UDP "\x23\x28\0\x35\0\x0c\x12\x34"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(MACS "\x08\0" IPV4("\1", "\6", "\x2c") "\x66\xc9" ENDS4 TCP(
		"\1") "four" MACS
		      "\x08\0" IPV4("\2", "\6",
				    "\x2c") "\x66\xc8" ENDS4 TCP("\5") "more"),
	SEED(MACS "\x08\0" IPV4(
		"\1", "\x11", "\x20") "\x66\xca" ENDS4 UDP "four" MACS
				      "\x08\0" IPV4("\2", "\x11",
						    "\x20") "\x66\xc9" ENDS4 UDP
							    "more"),
	SEED(MACS "\x81\0\0\5\x86\xdd\x60\0\0\0\0\x18\6\x40" ENDS6 TCP(
		"\1") "four" MACS
		      "\x81\0\0\5\x86\xdd\x60\0\0\0\0\x18\6\x40" ENDS6 TCP(
			      "\5") "more"),
	SEED(MACS "\x86\xdd\x60\0\0\0\0\x0c\x11\x40" ENDS6 UDP "four" MACS
		  "\x86\xdd\x60\0\0\0\0\x0c\x11\x40" ENDS6 UDP "more"),
	{ NULL, 0 },
};

enum { MAX_BYTES = 65536 };

static uint8_t whole[2 * MAX_BYTES];

/* Compare what segmentation makes of the merged frame with the two. */
static void check_segments(const struct mri_gro *gro, uint32_t n_whole,
			   const uint8_t *frames[2], const uint32_t n[2])
{
	const struct mr_meta meta = {
		.valid = MR_META_GSO | MR_META_CSUM,
		.gso_bytes = (uint16_t)gro->n_segment_bytes,
		.gso_type = gro->gso_type,
	};
	const uint32_t n_header = gro->n_header_bytes;
	uint8_t header[MRI_GSO_HEADER_BYTES];
	struct mri_gso gso;
	uint32_t done = 0;

	FUZZ_CHECK(mri_gso_begin(&gso, whole, n_header, n_whole, &meta) == 0);
	FUZZ_CHECK(gso.n_header_bytes == n_header);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t n_payload = mri_gso_header(&gso, done, header);

		FUZZ_CHECK(n_header + n_payload == n[i]);
		/* The field is partial. */
		memcpy(header + gro->view.csum_bytes,
		       frames[i] + gro->view.csum_bytes, 2);
		FUZZ_CHECK(memcmp(header, frames[i], n_header) == 0);
		done += n_payload;
	}
	FUZZ_CHECK(done == gro->n_payload_bytes);
}

/* A copy of its own, so that ASan sees its end. */
static uint8_t *copy_of(const uint8_t *bytes, uint32_t n, bool is_mended)
{
	uint8_t *copy = malloc(n > 0 ? n : 1);
	struct mr_net_view view;
	uint16_t sum;

	FUZZ_CHECK(copy != NULL);
	memcpy(copy, bytes, n);
	/* Otherwise IPv4 headers could differ only by luck. */
	if (is_mended && mr_net_parse(copy, n, n, &view) == 0 &&
	    view.ether_type == MRI_ETHER_IPV4 && view.l3_bytes != 0) {
		uint8_t *ip = copy + view.l3_bytes;

		memset(ip + 10, 0, sizeof(sum));
		sum = (uint16_t)~mr_csum_fold(
			mr_csum_add(ip, (ip[0] & 15u) * 4, 0));
		memcpy(ip + 10, &sum, sizeof(sum));
	}
	return copy;
}

static void check_pair(const uint8_t *frames[2], const uint32_t n[2])
{
	struct mri_gro gro, next;
	const enum mri_gro_kind kinds[2] = {
		mri_gro_begin(&gro, frames[0], n[0], n[0]),
		mri_gro_begin(&next, frames[1], n[1], n[1]),
	};

	if (kinds[0] < MRI_GRO_ALONE || kinds[1] < MRI_GRO_ALONE)
		return;
	FUZZ_CHECK(mri_gro_is_same_flow(&gro, &next) ==
		   mri_gro_is_same_flow(&next, &gro));
	if (kinds[0] != MRI_GRO_SEGMENT || kinds[1] != MRI_GRO_SEGMENT ||
	    !mri_gro_is_same_flow(&gro, &next) || !mri_gro_add(&gro, &next))
		return;
	memcpy(whole, frames[0], n[0]);
	memcpy(whole + n[0], frames[1] + next.n_header_bytes,
	       n[1] - next.n_header_bytes);
	mri_gro_finish(&gro, whole);
	check_segments(&gro, n[0] + n[1] - next.n_header_bytes, frames, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	const uint32_t n_first = (uint32_t)n_bytes / 2;
	const uint32_t n[2] = { n_first, (uint32_t)n_bytes - n_first };
	const bool is_mended = n_bytes > 0 && bytes[n_bytes - 1] & 1;
	uint8_t *copies[2];

	if (n_bytes > MAX_BYTES)
		return 0;
	copies[0] = copy_of(bytes, n[0], is_mended);
	copies[1] = copy_of(bytes + n_first, n[1], is_mended);
	check_pair((const uint8_t *[2]){ copies[0], copies[1] }, n);
	free(copies[0]);
	free(copies[1]);
	return 0;
}
