/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from both sides through the translator, under a configuration that the
 * input chooses. What comes out has right sums if what went in had, shows no
 * inside address outside, and nothing else inside; every frame ends once, and
 * no page is missing in the end.
 *
 * Input: two bytes of configuration, then records: a byte of what to do, a
 * length, and so many bytes (record() below).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/millrace.h>

#include "fuzz.h"
#include "nat/harness.h"

enum {
	IN = 0,
	OUT = 1,
	MAX_FRAME = 4096,
	INSIDE_NET = 0x0a000000, /* 10.0.0.0/16: subscribers */
	INSIDE_MASK = 0xffff0000,
	OUR_ADDR = 0xc0000201, /* 192.0.2.1 and .2: external */
	ONE_TO_ONE = 0xc000024d,
	EXCLUDED = 0xcb007100, /* 203.0.113.0/24 */
};

/* What a record asks for. */
enum {
	DO_OUTSIDE = 1 << 0,
	DO_SUMS = 1 << 1,     /* make its sums right */
	DO_PARTIAL = 1 << 2,  /* leave the layer-4 sum to the device */
	DO_CUT = 1 << 3,      /* the first entry has 21 bytes, the others 50 */
	DO_ETHERNET = 1 << 4, /* its bytes begin with layer 3 */
	DO_WAIT = 1 << 5,     /* no frame: time passes */
	DO_SHARE = 1 << 6,
	DO_ANSWER = 1 << 7, /* no bytes: what came out last goes back */
};

#define IP_OUT(n, proto)                                                       \
	"\x45\0\0" n "\0\1\0\0\x40" proto "\0\0\x0a\0\0\2\xc6\x33\x64\7"
#define IP_HAIR(n, proto)                                                      \
	"\x45\0\0" n "\0\1\0\0\x40" proto "\0\0\x0a\0\0\2\xc0\0\2\1"
#define UDP_53 "\x13\x88\0\x35\0\x0c\0\0four"
#define TCP_SYN "\x0f\xa0\0\x50\0\0\0\1\0\0\0\0\x60\2\x20\0\0\0\0\0\2\4\5\xb4"
#define ECHO "\x08\0\0\0\0\7\0\1ping"
#define FIRST "\x45\0\0\x2c\0\1\x20\0\x40\x11\0\0\x0a\0\0\2\xc6\x33\x64\7"
#define LATER "\x45\0\0\x24\0\1\0\3\x40\x11\0\0\x0a\0\0\2\xc6\x33\x64\7"
#define ARP_REPLY                                                              \
	"\2\x0b\x0b\x0b\x0b\x0b\2\0\0\0\0\1\x08\6\0\1\x08\0\6\4\0\2"           \
	"\2\0\0\0\0\1\xc0\0\2\xfe\2\x0b\x0b\x0b\x0b\x0b\xc0\0\2\1"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\0\x12\x20" IP_OUT("\x20", "\x11") UDP_53 "\x80\0\x80\0"),
	SEED("\0\0\x12\x2c" IP_OUT("\x2c", "\6") TCP_SYN
	     "\x80\0"
	     "\x12\x2c" IP_OUT("\x2c", "\6") TCP_SYN),
	SEED("\7\1\x12\x20" IP_OUT("\x20", "\1") ECHO "\x80\0"),
	SEED("\x0f\2\x12\x20" IP_OUT("\x20", "\x11") UDP_53
	     "\x1a\x20" IP_HAIR("\x20", "\x11") UDP_53 "\x20\xff"),
	SEED("\0\4\x12\x2c" FIRST "\x13\x88\0\x35\0\x28\0\0"
	     "abcdefghijklmnop"
	     "\x12\x24" LATER "abcdefghijklmnop"),
	SEED("\0\x24\x12\x24" LATER "abcdefghijklmnop"
	     "\x12\x2c" FIRST "\x13\x88\0\x35\0\x28\0\0"
	     "abcdefghijklmnop"),
	SEED("\0\x40\x12\x20" IP_OUT("\x20", "\x11") UDP_53
	     "\1\x2a" ARP_REPLY "\x52\x20" IP_OUT("\x20", "\x11") UDP_53),
	/* An error about what went out, from a router. */
	SEED("\0\0\x12\x20" IP_OUT("\x20", "\x11") UDP_53
	     "\x13\x38"
	     "\x45\0\0\x38\0\1\0\0\x40\1\0\0\xcb\0\x72\1\xc0\0\2\1"
	     "\x0b\0\0\0\0\0\0\0"
	     "\x45\0\0\x20\0\1\0\0\x40\x11\0\0"
	     "\xc0\0\2\1\xc6\x33\x64\7\x13\x88\0\x35\0\x0c\0\0"),
	{ NULL, 0 },
};

struct run {
	struct harness *harness;
	bool has_excludes, is_tainted; /* a wrong layer-4 sum has gone in */
	uint16_t vlans[2];
	uint8_t last[MAX_FRAME]; /* what came out */
	uint32_t n_last;
	uint8_t last_side;
};

static uint32_t get32(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return ntohl(word);
}

static uint32_t get16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint16_t sum_of(const uint8_t *bytes, uint32_t n, uint64_t sum)
{
	return mr_csum_fold(mr_csum_add(bytes, n, sum));
}

/* A whole IPv4 packet with a layer-4 sum that says something. */
struct l4 {
	uint8_t *bytes;
	uint32_t n, csum_at;
	uint64_t pseudo; /* sum */
	uint8_t proto;
};

static bool find_l4(uint8_t *ip, uint32_t n, struct l4 *l4)
{
	static const uint8_t at[256] = {
		[IPPROTO_TCP] = 16, [IPPROTO_UDP] = 6, [IPPROTO_ICMP] = 2
	};
	const uint32_t n_ip = (ip[0] & 15u) * 4, n_total = get16(ip + 2);

	if (n < 20 || n_ip < 20 || n_total > n || n_total < n_ip + 8 ||
	    (get16(ip + 6) & 0x3fff) != 0 || at[ip[9]] == 0 ||
	    (ip[9] == IPPROTO_TCP && n_total < n_ip + 20))
		return false;
	l4->bytes = ip + n_ip;
	l4->n = n_total - n_ip;
	l4->csum_at = at[ip[9]];
	l4->proto = ip[9];
	l4->pseudo = ip[9] == IPPROTO_ICMP ? 0 :
					     sum_of(ip + 12, 8, htons(ip[9])) +
						     htons((uint16_t)l4->n);
	return ip[9] != IPPROTO_UDP ||
	       (get16(l4->bytes + 4) == l4->n && get16(l4->bytes + 6) != 0);
}

static bool is_l4_right(uint8_t *ip, uint32_t n)
{
	struct l4 l4;

	return !find_l4(ip, n, &l4) ||
	       sum_of(l4.bytes, l4.n, l4.pseudo) == UINT16_MAX;
}

static void make_sums(uint8_t *ip, uint32_t n, bool is_partial)
{
	const uint32_t n_ip = (ip[0] & 15u) * 4;
	struct l4 l4;
	uint16_t sum;

	if (n < 20 || n_ip < 20 || n_ip > n)
		return;
	memset(ip + 10, 0, 2);
	sum = (uint16_t)~sum_of(ip, n_ip, 0);
	memcpy(ip + 10, &sum, 2);
	if (ip[9] == IPPROTO_UDP && n >= n_ip + 8)
		ip[n_ip + 6] = 1; /* or it has none */
	if (!find_l4(ip, n, &l4))
		return;
	memset(l4.bytes + l4.csum_at, 0, 2);
	sum = is_partial ? mr_csum_fold(l4.pseudo) :
			   (uint16_t)~sum_of(l4.bytes, l4.n, l4.pseudo);
	if (sum == 0 && l4.proto == IPPROTO_UDP && !is_partial)
		sum = UINT16_MAX;
	memcpy(l4.bytes + l4.csum_at, &sum, 2);
}

static bool is_inside(uint32_t addr)
{
	return (addr & INSIDE_MASK) == INSIDE_NET;
}

/* Addresses of a packet that came out, and of one that it quotes. */
static void check_addrs(const struct run *run, uint32_t side, const uint8_t *ip,
			uint32_t n)
{
	const uint32_t src = get32(ip + 12), dst = get32(ip + 16);
	const uint32_t n_ip = (ip[0] & 15u) * 4;
	const bool is_excluded =
		run->has_excludes && ((src & 0xffffff00) == EXCLUDED ||
				      (dst & 0xffffff00) == EXCLUDED);

	if (side == IN) {
		FUZZ_CHECK(is_inside(dst));
		return;
	}
	FUZZ_CHECK(!is_inside(dst));
	if (is_excluded)
		return;
	FUZZ_CHECK(src == OUR_ADDR || src == OUR_ADDR + 1 || src == ONE_TO_ONE);
	if (ip[9] == IPPROTO_ICMP && n >= n_ip + 28 && !run->has_excludes &&
	    (ip[n_ip] == 3 || ip[n_ip] == 11 || ip[n_ip] == 12) &&
	    (get16(ip + 6) & 0x3fff) == 0)
		FUZZ_CHECK(!is_inside(get32(ip + n_ip + 8 + 16)) &&
			   (src == OUR_ADDR || /* it may quote what it got */
			    !is_inside(get32(ip + n_ip + 8 + 12))));
}

static void check_frame(struct run *run, uint32_t side, uint8_t *frame,
			uint32_t n, uint32_t flags)
{
	uint32_t at = 12;

	FUZZ_CHECK(n >= MR_ETH_BYTES);
	if (run->vlans[side] != 0) {
		FUZZ_CHECK(get16(frame + 12) == MR_ETHER_VLAN &&
			   get16(frame + 14) == run->vlans[side]);
		at += MR_VLAN_BYTES;
	}
	if (get16(frame + at) == MR_ETHER_ARP)
		return;
	FUZZ_CHECK(get16(frame + at) == MR_ETHER_IPV4);
	at += 2;
	FUZZ_CHECK(n >= at + 20 && get16(frame + at + 2) <= n - at);
	FUZZ_CHECK(sum_of(frame + at, (frame[at] & 15u) * 4, 0) == UINT16_MAX);
	FUZZ_CHECK(frame[at + 8] != 0); /* TTL */
	if ((flags & MR_FRAME_CSUM_PARTIAL) == 0 && !run->is_tainted)
		FUZZ_CHECK(is_l4_right(frame + at, n - at));
	check_addrs(run, side, frame + at, n - at);
}

static void collect(struct run *run)
{
	static uint8_t frame[65536];
	uint32_t flags;

	for (uint32_t side = 0; side < 2; side++) {
		int n;

		while ((n = harness_recv(run->harness, side, frame,
					 sizeof(frame), &flags)) > 0) {
			check_frame(run, side, frame, (uint32_t)n, flags);
			if (n > MAX_FRAME)
				continue;
			memcpy(run->last, frame, (size_t)n);
			run->n_last = (uint32_t)n;
			run->last_side = (uint8_t)side;
		}
	}
	FUZZ_CHECK(harness_invariant(run->harness) == 0);
}

/* The header of layer 2 for side; its length. */
static uint32_t put_ethernet(const struct run *run, uint32_t side, uint8_t *to)
{
	const uint8_t ours = side == IN ? 0xa : 0xb;
	const uint8_t macs[12] = { 2, ours, ours, ours, ours, ours, 2 };
	const uint8_t tag[4] = { 0x81, 0, (uint8_t)(run->vlans[side] >> 8),
				 (uint8_t)run->vlans[side] };
	uint32_t n = sizeof(macs);

	memcpy(to, macs, n);
	if (run->vlans[side] != 0) {
		memcpy(to + n, tag, sizeof(tag));
		n += sizeof(tag);
	}
	to[n++] = 8;
	to[n++] = 0;
	return n;
}

static void send_frame(struct run *run, uint32_t what, uint32_t side,
		       uint8_t *frame, uint32_t n, uint32_t n_l2)
{
	const bool is_partial = what & DO_PARTIAL;
	uint32_t flags = is_partial ? MR_FRAME_CSUM_PARTIAL : 0;

	if (n >= n_l2 + 20 && (what & DO_SUMS))
		make_sums(frame + n_l2, n - n_l2, is_partial);
	if (n >= n_l2 + 20 && !is_partial &&
	    !is_l4_right(frame + n_l2, n - n_l2))
		run->is_tainted = true;
	/* What the device is to finish, and finds something else there. */
	if (is_partial && (what & DO_SUMS) == 0)
		run->is_tainted = true;
	if (what & DO_SHARE)
		flags |= HARNESS_SHARED;
	harness_send(run->harness, side, frame, n, flags,
		     what & DO_CUT ? 21 : 0, 50);
	if (what & DO_SHARE)
		FUZZ_CHECK(harness_shared_is(run->harness, frame, n));
	collect(run);
}

/* What came out last, turned round: what a far host would say. */
static void answer(struct run *run, uint32_t what)
{
	uint8_t frame[MAX_FRAME + 4], *ip;
	const uint32_t side = run->last_side;
	const uint32_t n_l2 = put_ethernet(run, side, frame);
	const uint32_t n = run->n_last;
	uint32_t n_ip;

	if (n < n_l2 + 28 || get16(run->last + n_l2 - 2) != MR_ETHER_IPV4)
		return;
	memcpy(frame + n_l2, run->last + n_l2, n - n_l2);
	ip = frame + n_l2;
	n_ip = (ip[0] & 15u) * 4;
	memcpy(ip + 12, run->last + n_l2 + 16, 4);
	memcpy(ip + 16, run->last + n_l2 + 12, 4);
	ip[8] = 64;
	if ((ip[9] == IPPROTO_UDP || ip[9] == IPPROTO_TCP) &&
	    n >= n_l2 + n_ip + 4) {
		memcpy(ip + n_ip, run->last + n_l2 + n_ip + 2, 2);
		memcpy(ip + n_ip + 2, run->last + n_l2 + n_ip, 2);
		if (ip[9] == IPPROTO_TCP && n >= n_l2 + n_ip + 20)
			ip[n_ip + 13] |= 0x10; /* an ACK with it */
	} else if (ip[9] == IPPROTO_ICMP && n >= n_l2 + n_ip + 1) {
		ip[n_ip] = 0; /* echo reply */
	}
	send_frame(run, (what & (DO_PARTIAL | DO_CUT | DO_SHARE)) | DO_SUMS,
		   side, frame, n, n_l2);
}

static void record(struct run *run, uint32_t what, const uint8_t *bytes,
		   uint32_t n)
{
	const uint32_t side = what & DO_OUTSIDE ? OUT : IN;
	uint8_t frame[512];
	uint32_t n_l2 = 14;

	if (what & DO_ANSWER) {
		answer(run, what);
	} else if (what & DO_WAIT) {
		harness_advance_ms(run->harness, n * n);
		collect(run);
	} else {
		if (what & DO_ETHERNET)
			n_l2 = put_ethernet(run, side, frame);
		else if (n > 13 && bytes[12] == 0x81)
			n_l2 = 18;
		memcpy(frame + (what & DO_ETHERNET ? n_l2 : 0), bytes, n);
		n += what & DO_ETHERNET ? n_l2 : 0;
		if (n > 0)
			send_frame(run, what, side, frame, n, n_l2);
	}
}

/* A configuration from two bytes. */
static void configure(struct run *run, uint8_t a, uint8_t b, char *text,
		      size_t n_max)
{
	static const char *const filtering[] = { "none", "address",
						 "address-port" };
	static const char mac[] = "02:00:00:00:00:01";
	const bool is_asked = b & 64; /* else all of them are known */
	int n;

	run->vlans[IN] = a & 0x40 ? 5 : 0;
	run->vlans[OUT] = a & 0x80 ? 6 : 0;
	run->has_excludes = b & 8;
	n = snprintf(
		text, n_max,
		"outside: {port: b, addresses: 192.0.2.1/24, mtu: %d, %s"
		"gateway: 192.0.2.254, neighbours: [%s%s]}\n"
		"pool: 192.0.2.1-192.0.2.2\nsubscribers: 10.0.0.0/16\n"
		"filtering: %s\nhairpin: %s\nother_protocols: %s\nmss: %s\n"
		"inbound_refresh: %s\n"
		"limits: {fragments: %d, mappings: %d, sessions: 16}\n%s%s%s"
		"inside: {port: a, addresses: 10.0.0.1/24, mtu: 1500, %s"
		"gateway: 10.0.0.254, neighbours: [",
		b & 16 ? 68 : 1500, a & 0x80 ? "vlan: 6, " : "",
		is_asked ? "" : "192.0.2.254 ", is_asked ? "" : mac,
		filtering[(a & 3u) % 3], a & 4 ? "no" : "yes",
		a & 8 ? "yes" : "no", a & 16 ? "mtu" : "no",
		a & 32 ? "yes" : "no", b & 4 ? 3 : 64, b & 32 ? 4 : 1024,
		b & 1 ? "forwards: {outside: '192.0.2.1:5000-5009', inside: "
			"'10.0.0.5:80'}\n" :
			"",
		b & 2 ? "one_to_one: {outside: 192.0.2.77, inside: "
			"10.0.0.7}\n" :
			"",
		run->has_excludes ? "exclude: {to: 203.0.113.0/24}\n" : "",
		a & 0x40 ? "vlan: 5, " : "");
	for (uint32_t i = 2; i < 13 && !is_asked; i++)
		n += snprintf(text + n, n_max - (size_t)n, "10.0.0.%u %s, ",
			      i < 12 ? i : 254, mac);
	snprintf(text + n, n_max - (size_t)n, "]}\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct run run = { .harness = harness_new(0, 1, 1000) };
	char why[400], text[2048];
	size_t at = 2;

	FUZZ_CHECK(run.harness != NULL);
	configure(&run, n_bytes > 0 ? bytes[0] : 0, n_bytes > 1 ? bytes[1] : 0,
		  text, sizeof(text));
	FUZZ_CHECK(harness_start(run.harness, text, false, why, sizeof(why)) ==
		   0);
	collect(&run);
	while (at + 2 <= n_bytes) {
		uint32_t n = bytes[at + 1];

		if (n > n_bytes - at - 2)
			n = (uint32_t)(n_bytes - at - 2);
		record(&run, bytes[at], bytes + at + 2, n);
		at += 2 + (bytes[at] & (DO_WAIT | DO_ANSWER) ? 0 : n);
	}
	FUZZ_CHECK(harness_free(run.harness) == 0);
	return 0;
}
