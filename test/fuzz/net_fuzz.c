/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from the wire: views stay inside, sums are those of the plain loop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/net.h>

#include "fuzz.h"

#define MACS "\2\0\0\0\0\1\2\0\0\0\0\2"
#define UDP "\x23\x28\0\x35\0\x0c\0\0four"
#define IPV4(n, proto)                                                         \
	"\x45\0\0" n "\0\0\0\0\x40" proto "\0\0\x0a\0\0\1\x0a\0\0\2"
#define IPV6(n, next)                                                          \
	"\x60\0\0\0\0" n next "\x40\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1"         \
	"\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\2"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(MACS "\x08\0" IPV4("\x20", "\x11") UDP),
	SEED(MACS "\x81\0\0\5\x08\0" IPV4("\x20", "\x11") UDP),
	SEED(MACS "\x88\xa8\0\6\x81\0\0\5\x86\xdd" IPV6("\x0c", "\x11") UDP),
	SEED(MACS "\x86\xdd" IPV6("\x14", "\0") "\x11\0\1\4\0\0\0\0" UDP),
	SEED(MACS "\x08\0" IPV4("\x28", "\6") "\x9c\x40\x13\x89\0\0\0\1"
					      "\0\0\0\2\x50\x18\xff\xff\0\0"
					      "\0\0"),
	SEED(MACS "\x08\6\0\1\x08\0\6\4\0\1"),
	SEED(MACS "\x08\0" IPV4("\x52", "\x11") "\x23\x28\x12\xb5\0\x3e\0\0"
						"\x08\0\0\0\0\1\2\0" MACS
						"\x08\0" IPV4("\x20", "\x11")
							UDP),
	SEED(MACS
	     "\x08\0" IPV4("\x6a", "\x11") "\x23\x28\x17\xc1\0\x56\0\0"
					   "\1\0\x65\x58\0\1\2\0\0\0\0\0" MACS
					   "\x86\xdd" IPV6("\x0c", "\x11") UDP),
	SEED(MACS "\x08\0" IPV4("\x3c", "\x2f") "\x20\0\x08\0\0\0\0\7" IPV4(
		"\x20", "\x11") UDP),
	{ NULL, 0 },
};

/* RFC 1071 as it is written. */
static uint16_t plain_sum(const uint8_t *bytes, size_t n)
{
	uint64_t sum = 0;
	uint8_t pair[2];
	uint16_t folded;

	for (size_t i = 0; i < n; i += 2)
		sum += (uint64_t)bytes[i] << 8 | (i + 1 < n ? bytes[i + 1] : 0);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	pair[0] = (uint8_t)(sum >> 8);
	pair[1] = (uint8_t)sum;
	memcpy(&folded, pair, sizeof(folded));
	return folded;
}

static void check_view(const struct mr_net_view *view, size_t n_bytes)
{
	if (view->l3_bytes != 0)
		FUZZ_CHECK(view->l3_bytes >= MR_ETH_BYTES &&
			   view->l3_bytes < n_bytes);
	if (view->l4_bytes != 0) {
		FUZZ_CHECK(view->l3_bytes != 0);
		FUZZ_CHECK(view->l4_bytes > view->l3_bytes &&
			   view->l4_bytes <= n_bytes);
		FUZZ_CHECK((size_t)view->l4_bytes + view->l4_len_bytes <=
			   n_bytes);
	}
	if (view->csum_bytes != 0) {
		FUZZ_CHECK(view->l4_bytes != 0);
		FUZZ_CHECK(view->csum_bytes > view->l4_bytes &&
			   (size_t)view->csum_bytes + 2 <= n_bytes);
	}
}

/* A frame whose sum is finished by us is good for a receiver. */
static void check_finish(const uint8_t *bytes, uint32_t n,
			 const struct mr_net_view *view)
{
	uint8_t *copy = malloc(n);
	uint16_t sum;

	FUZZ_CHECK(copy != NULL);
	memcpy(copy, bytes, n);
	sum = mr_csum_pseudo(copy, view);
	memcpy(copy + view->csum_bytes, &sum, sizeof(sum));
	sum = (uint16_t)~mr_csum_fold(
		mr_csum_add(copy + view->l4_bytes, view->l4_len_bytes, 0));
	memcpy(copy + view->csum_bytes, &sum, sizeof(sum));
	sum = mr_csum_fold(mr_csum_add(copy + view->l4_bytes,
				       view->l4_len_bytes,
				       mr_csum_pseudo(copy, view)));
	FUZZ_CHECK(sum == 0xffff);
	free(copy);
}

static void check_tunnel(const uint8_t *bytes, uint32_t n,
			 const struct mr_net_view *outer)
{
	struct mr_net_tunnel tunnel;

	if (mr_net_parse_tunnel(bytes, n, n, outer, &tunnel) == -ENOENT)
		FUZZ_CHECK(tunnel.kind == 0);
	check_view(&tunnel.inner, n);
	if (tunnel.kind != 0)
		FUZZ_CHECK(tunnel.inner_bytes > outer->l4_bytes &&
			   tunnel.inner_bytes < n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	const uint32_t n = (uint32_t)n_bytes;
	struct mr_net_view view;
	uint32_t even = n / 2 & ~1u;
	uint64_t sum;

	if (mr_net_parse(bytes, n, n, &view) == 0 && view.csum_bytes != 0)
		check_finish(bytes, n, &view);
	check_view(&view, n);
	check_tunnel(bytes, n, &view);
	/* A frame whose first entry has only a part of it. */
	(void)mr_net_parse(bytes, n / 2, n, &view);
	check_view(&view, n);

	FUZZ_CHECK(mr_csum_fold(mr_csum_add(bytes, n, 0)) ==
		   plain_sum(bytes, n));
	sum = mr_csum_add(bytes, even, 0);
	FUZZ_CHECK(mr_csum_fold(mr_csum_add(bytes + even, n - even, sum)) ==
		   plain_sum(bytes, n));
	return 0;
}
