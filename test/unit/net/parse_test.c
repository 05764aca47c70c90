/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/parse.c: one table of frames, and every way to cut them. */
#include "support/unit.h"

#include <netinet/in.h>

#include <millrace/net.h>

enum { MAX_BYTES = 200 };

/* A frame as hex, "xx*n" for n bytes xx; blanks are for the reader. */
struct frame_case {
	const char *name;
	const char *hex;
	int err;
	struct mr_net_view view;
};

#define ETH "ffffffffffff 020000000001 "
#define IP4(total, frag, proto)                                                \
	"0800 4500" total "0000" frag "40" proto "0000 c0000201 c6336402 "
#define IP6(len, next) "86dd 60000000" len next "40 20*16 30*16 "
#define TCP "04d2 0050 00*8 5000 00*2 abcd 0000 "
#define UDP(len) "04d2 0050" len "abcd "

static const struct frame_case cases[] = {
	{ "bare Ethernet header", ETH "0806", 0, { .ether_type = 0x0806 } },
	{ "ARP",
	  ETH "0806 00*28",
	  0,
	  { .ether_type = 0x0806, .l3_bytes = 14 } },
	{ "802.3 length",
	  ETH "0026 aa*38",
	  0,
	  { .ether_type = 0x26, .l3_bytes = 14 } },
	{ "TCP over IPv4",
	  ETH IP4("0028", "4000", "06") TCP,
	  0,
	  { 0x0800, 14, 34, IPPROTO_TCP, 0, 20, 50, 0, { 0 } } },
	{ "TCP over IPv4, padded",
	  ETH IP4("0028", "0000", "06") TCP "00*6",
	  0,
	  { 0x0800, 14, 34, IPPROTO_TCP, 0, 20, 50, 0, { 0 } } },
	{ "TCP over IPv4 with options",
	  ETH "0800 4600 002c 0000 0000 40 06 0000 c0000201 c6336402 01*4 " TCP,
	  0,
	  { 0x0800, 14, 38, IPPROTO_TCP, 0, 20, 54, 0, { 0 } } },
	{ "UDP over IPv4",
	  ETH IP4("001e", "0000", "11") UDP("000a") "1234",
	  0,
	  { 0x0800, 14, 34, IPPROTO_UDP, 0, 10, 40, 0, { 0 } } },
	{ "UDP over IPv4 without a sum",
	  ETH IP4("001c", "0000", "11") "04d2 0050 0008 0000",
	  0,
	  { 0x0800, 14, 34, IPPROTO_UDP, 0, 8, 0, 0, { 0 } } },
	{ "UDP that is shorter than its packet",
	  ETH IP4("001e", "0000", "11") UDP("0008") "1234",
	  0,
	  { 0x0800, 14, 34, IPPROTO_UDP, 0, 10, 0, 0, { 0 } } },
	{ "ICMP has no sum that devices know",
	  ETH IP4("001c", "0000", "01") "08 00 0000 00*4",
	  0,
	  { 0x0800, 14, 34, IPPROTO_ICMP, 0, 8, 0, 0, { 0 } } },
	{ "first fragment",
	  ETH IP4("0028", "2000", "06") TCP,
	  0,
	  { 0x0800, 14, 34, IPPROTO_TCP, 1, 20, 0, 0, { 0 } } },
	{ "fragment further on",
	  ETH IP4("0028", "2001", "06") TCP,
	  0,
	  { 0x0800, 14, 0, IPPROTO_TCP, 1, 20, 0, 0, { 0 } } },
	{ "last fragment",
	  ETH IP4("0028", "0001", "06") TCP,
	  0,
	  { 0x0800, 14, 0, IPPROTO_TCP, 1, 20, 0, 0, { 0 } } },
	{ "TCP over IPv6",
	  ETH IP6("0014", "06") TCP,
	  0,
	  { 0x86dd, 14, 54, IPPROTO_TCP, 0, 20, 70, 0, { 0 } } },
	{ "UDP over IPv6",
	  ETH IP6("0008", "11") UDP("0008"),
	  0,
	  { 0x86dd, 14, 54, IPPROTO_UDP, 0, 8, 60, 0, { 0 } } },
	{ "UDP over IPv6 behind two extensions",
	  ETH IP6("0020", "00") "3c 00 00*6 11 01 00*14 " UDP("0008"),
	  0,
	  { 0x86dd, 14, 78, IPPROTO_UDP, 0, 8, 84, 0, { 0 } } },
	{ "routed elsewhere: the sum is over another address",
	  ETH IP6("0020", "2b") "11 02 00 01 00*20 " UDP("0008"),
	  0,
	  { 0x86dd, 14, 78, IPPROTO_UDP, 0, 8, 0, 1, { 0 } } },
	{ "at the end of its route",
	  ETH IP6("0020", "2b") "11 02 00 00 00*20 " UDP("0008"),
	  0,
	  { 0x86dd, 14, 78, IPPROTO_UDP, 0, 8, 84, 0, { 0 } } },
	{ "first fragment over IPv6",
	  ETH IP6("0010", "2c") "11 00 0001 00*4 " UDP("0008"),
	  0,
	  { 0x86dd, 14, 62, IPPROTO_UDP, 1, 8, 0, 0, { 0 } } },
	{ "further fragment over IPv6",
	  ETH IP6("0010", "2c") "11 00 0009 00*4 " UDP("0008"),
	  0,
	  { 0x86dd, 14, 0, IPPROTO_UDP, 1, 8, 0, 0, { 0 } } },
	{ "nine extensions: too many to look at",
	  ETH IP6("0050", "00") "00*64 11 00 00*6 " UDP("0008"),
	  0,
	  { 0x86dd, 14, 0, 0, 0, 0, 0, 0, { 0 } } },
	{ "VLAN",
	  ETH "8100 0001 " IP4("0028", "0000", "06") TCP,
	  0,
	  { 0x0800, 18, 38, IPPROTO_TCP, 0, 20, 54, 0, { 0 } } },
	{ "two VLANs",
	  ETH "88a8 0001 8100 0002 " IP6("0014", "06") TCP,
	  0,
	  { 0x86dd, 22, 62, IPPROTO_TCP, 0, 20, 78, 0, { 0 } } },
	{ "three VLANs: two are looked behind",
	  ETH "8100 0001 8100 0002 8100 0003 " IP4("0028", "0000", "06") TCP,
	  0,
	  { 0x8100, 22, 0, 0, 0, 0, 0, 0, { 0 } } },
	{ "IPv4 that says version 6",
	  ETH "0800 6500 0028 00*4 40 06 0000 00*8 " TCP,
	  -EBADMSG,
	  { .ether_type = 0x0800, .l3_bytes = 14 } },
	{ "IPv6 that says version 4",
	  ETH "86dd 40*40",
	  -EBADMSG,
	  { .ether_type = 0x86dd, .l3_bytes = 14 } },
	{ "IPv4 header of 16 bytes",
	  ETH "0800 4400 0028 00*4 40 06 0000 00*8 " TCP,
	  -EBADMSG,
	  { .ether_type = 0x0800, .l3_bytes = 14 } },
	{ "IPv4 shorter than its header",
	  ETH IP4("0013", "0000", "06") TCP,
	  -EBADMSG,
	  { .ether_type = 0x0800, .l3_bytes = 14 } },
	{ "IPv4 longer than its frame",
	  ETH IP4("0029", "0000", "06") TCP,
	  -EBADMSG,
	  { .ether_type = 0x0800, .l3_bytes = 14 } },
	{ "IPv6 longer than its frame",
	  ETH IP6("0015", "06") TCP,
	  -EBADMSG,
	  { .ether_type = 0x86dd, .l3_bytes = 14 } },
	{ "extension longer than its packet",
	  ETH IP6("0008", "00") "11 01 00*6 00*8",
	  -EBADMSG,
	  { .ether_type = 0x86dd, .l3_bytes = 14 } },
	{ "TCP that its packet cuts off",
	  ETH IP4("0027", "0000", "06") TCP,
	  -EBADMSG,
	  { 0x0800, 14, 0, IPPROTO_TCP, 0, 19, 0, 0, { 0 } } },
	{ "UDP that its packet cuts off",
	  ETH IP6("0007", "11") UDP("0008"),
	  -EBADMSG,
	  { 0x86dd, 14, 0, IPPROTO_UDP, 0, 7, 0, 0, { 0 } } },
};

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static uint32_t from_hex(const char *hex, uint8_t *bytes)
{
	uint32_t n = 0;

	for (; *hex != '\0'; hex++) {
		char pair[3] = { hex[0], hex[1], '\0' };
		char *end;
		unsigned long times = 1;

		if (*hex == ' ')
			continue;
		bytes[n] = (uint8_t)strtoul(pair, &end, 16);
		assert_ptr_equal(end, pair + 2);
		hex++;
		if (hex[1] == '*') {
			times = strtoul(hex + 2, &end, 10);
			hex = end - 1;
		}
		assert_true(n + times <= MAX_BYTES);
		memset(bytes + n, bytes[n], times);
		n += (uint32_t)times;
	}
	return n;
}

TEST(headers_are_found)
{
	for (uint32_t i = 0; i < N_CASES; i++) {
		uint8_t bytes[MAX_BYTES];
		const uint32_t n = from_hex(cases[i].hex, bytes);
		struct mr_net_view view;
		const int err = mr_net_parse(bytes, n, n, &view);

		if (err != cases[i].err ||
		    memcmp(&view, &cases[i].view, sizeof(view)) != 0)
			fail_msg("%s: %d, type %x l3 %u l4 %u proto %u frag %u "
				 "len %u csum %u",
				 cases[i].name, err, view.ether_type,
				 view.l3_bytes, view.l4_bytes, view.l4_proto,
				 view.is_fragment, view.l4_len_bytes,
				 view.csum_bytes);
	}
}

/* Offsets inside the first entry, lengths inside the frame, whatever is cut. */
static void check_view(const struct mr_net_view *view, uint32_t n_bytes,
		       uint32_t n_frame)
{
	assert_true(view->l3_bytes < n_bytes || view->l3_bytes == 0);
	assert_true(view->l4_bytes <= n_bytes);
	assert_true(view->csum_bytes == 0 || view->csum_bytes + 2u <= n_bytes);
	assert_true(view->l4_bytes == 0 ||
		    (uint32_t)view->l4_bytes + view->l4_len_bytes <= n_frame);
	assert_true(view->csum_bytes == 0 || view->l4_bytes != 0);
}

/* Up to where the headers go that must not be cut off. */
static uint32_t n_header_bytes(const struct frame_case *c)
{
	if (c->err == 0 && c->view.l4_bytes != 0 && !c->view.is_fragment) {
		if (c->view.l4_proto == IPPROTO_TCP)
			return c->view.l4_bytes + 20;
		if (c->view.l4_proto == IPPROTO_UDP)
			return c->view.l4_bytes + 8;
	}
	return c->view.ether_type == 0x0800 ? c->view.l3_bytes + 20u :
	       c->view.ether_type == 0x86dd ? c->view.l3_bytes + 40u :
					      MR_ETH_BYTES;
}

/* Each cut is its own allocation, so that ASan sees a byte read too far. */
TEST(truncated_frames_are_parsed_safely)
{
	for (uint32_t i = 0; i < N_CASES; i++) {
		uint8_t bytes[MAX_BYTES];
		const uint32_t n = from_hex(cases[i].hex, bytes);

		for (uint32_t cut = 0; cut < n; cut++) {
			uint8_t *copy = malloc(cut + (cut == 0));
			struct mr_net_view view;
			int err;

			memcpy(copy, bytes, cut);
			mr_net_parse(copy, cut, cut, &view);
			check_view(&view, cut, cut);
			err = mr_net_parse(copy, cut, n, &view);
			check_view(&view, cut, n);
			if (cut < n_header_bytes(&cases[i]))
				assert_int_equal(err, -EBADMSG);
			free(copy);
		}
	}
}

/* What the headers need is in the first entry, the payload in the next. */
TEST(payload_may_be_in_other_entries)
{
	uint8_t bytes[MAX_BYTES];
	struct mr_net_view view;
	const uint32_t n = from_hex(ETH IP4("1028", "0000", "06") TCP, bytes);

	assert_int_equal(mr_net_parse(bytes, n, n + 4096, &view), 0);
	assert_int_equal(view.l4_len_bytes, 20 + 4096);
	assert_int_equal(mr_net_parse(bytes, n, n + 4095, &view), -EBADMSG);
	assert_int_equal(mr_net_parse(bytes, n, n - 1, &view), -EBADMSG);
	assert_int_equal(view.ether_type, 0);
}

TEST(frame_beyond_16_bits_of_offset)
{
	static uint8_t bytes[70000];
	struct mr_net_view view;

	from_hex(ETH IP6("ffff", "00"), bytes);
	bytes[54] = IPPROTO_UDP;
	assert_int_equal(
		mr_net_parse(bytes, sizeof(bytes), sizeof(bytes), &view), 0);
	assert_int_equal(view.l4_len_bytes, 65535 - 8);
	check_view(&view, sizeof(bytes), sizeof(bytes));
}
