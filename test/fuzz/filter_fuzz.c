/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: filters of xdp: ports. libpcap's interpreter and our
 * translation, run by the kernel, must agree on each frame.
 *
 * Three bytes choose an expression: two parts and how they are combined, and
 * whether programs take frames of several buffers. Or they are 0xff and how
 * many instructions of classic BPF follow. The rest is the frame.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/driver.h>

#include "fuzz.h"
#include "model/filter_pair.h"

#define MACS "\2\0\0\0\0\1\2\0\0\0\0\2"
#define UDP                                                                    \
	MACS "\x8\0\x45\0\0\x2e\0\0\0\0\x40\x11\0\0\xa\0\0\1\xa\0\0\2"         \
	     "\x12\xb5\0\x35\0\x1a\0\0payload of some bytes"
#define TCP6                                                                   \
	MACS "\x86\xdd\x60\0\0\0\0\x14\6\x40\x20\1\xd\xb8\0\0\0\0\0\0\0\0"     \
	     "\0\0\0\1\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\2\0\x16\x30\x39"     \
	     "\0\0\0\1\0\0\0\2\x50\x12\xff\xff\0\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\x0\x0\x1" UDP),
	SEED("\x5\x1\x2" TCP6),
	SEED("\xa\x2\x3" UDP),
	SEED("\xf\x4\x9" MACS "\x81\0\0\5\x8\0\x45\0\0\x2e\0\0\0\0\x40\x11"),
	SEED("\x14\x5\x11" MACS "\x8\6\0\1\x8\0\6\4\0\1"),
	/* ldh [12]; jeq #0x800, 0, 1; ret #1; ret #0 */
	SEED("\xff\4\0\x28\0\0\0\xc\0\0\0\x15\0\0\1\0\x8\0\0\6\0\0\0\1\0\0\0"
	     "\6\0\0\0\0\0\0\0" UDP),
	/* ldx msh [14]; ld [x + 14]; add x; tax; ret a */
	SEED("\xff\5\0\xb1\0\0\0\xe\0\0\0\x40\0\0\0\xe\0\0\0\xc\0\0\0\0\0\0\0"
	     "\7\0\0\0\0\0\0\0\x16\0\0\0\0\0\0\0" UDP),
	{ NULL, 0 },
};

static const char *const parts[] = {
	"udp port 4789",
	"tcp port 22",
	"ip6",
	"arp",
	"vlan 5",
	"icmp or icmp6",
	"port 53",
	"host 10.0.0.1",
	"net 10.0.0.0/24",
	"ip6 net 2001:db8::/64",
	"ether host 02:00:00:00:00:01",
	"ether multicast",
	"ip broadcast",
	"greater 60",
	"len = 64",
	"tcp[tcpflags] & tcp-syn != 0",
	"tcp[(tcp[12] & 0xf0) >> 2:4] = 0x47455420",
	"ip[6:2] & 0x3fff != 0",
	"ip[2:2] - ((ip[0] & 0xf) << 2) > 20",
	"ether[len - 4:4] > 0x80000000",
	"ether[ether[14]:2] & 1 = 0",
	"ether[6] / ether[7] = ether[8] % ether[9]",
	"ether[6] << ether[7] > ether[8] ^ ether[9]",
	"ether[ether[0:4] + 0xffffff] = 1",
	"portrange 1000-5000",
	"mpls",
	"pppoes",
	"ip proto 17",
	"ip6 proto 44",
	"vlan and vlan",
};

enum {
	N_PARTS = sizeof(parts) / sizeof(parts[0]),
	N_KEPT = 512, /* cached programs */
	MAX_INSNS = 32,
	MAX_FRAME = 3000,
};

static struct mr_ctx *ctx;

struct kept {
	uint32_t key; /* + 1; 0: none */
	struct filter_pair pair;
};

static void check(const struct filter_pair *pair, const uint8_t *bytes,
		  size_t n_bytes)
{
	uint8_t frame[MAX_FRAME] = { 0 };
	bool is_taken;

	if (n_bytes > MAX_FRAME)
		n_bytes = MAX_FRAME;
	memcpy(frame, bytes, n_bytes);
	if (n_bytes < FILTER_PAIR_MIN_BYTES)
		n_bytes = FILTER_PAIR_MIN_BYTES;
	FUZZ_CHECK(!filter_pair_differs(pair, frame, (uint32_t)n_bytes,
					&is_taken));
}

static void compile(struct kept *kept, const uint8_t choice[3])
{
	static const char *const operators[] = { "and", "or", "and not",
						 "or not" };
	struct xdp_cbpf cbpf;
	char text[256];

	snprintf(text, sizeof(text), "(%s) %s (%s)", parts[choice[0] % N_PARTS],
		 operators[choice[2] / 2 % 4], parts[choice[1] % N_PARTS]);
	if (kept->key != 0) {
		filter_pair_close(&kept->pair);
		mr_free(ctx, kept->pair.cbpf.insns);
	}
	kept->key = 0;
	/* "ip and arp" is refused, because it matches no frame. */
	if (mri_xdp_expr_compile(ctx, "", text, &cbpf, NULL) < 0)
		return;
	FUZZ_CHECK(filter_pair_open(&kept->pair, &cbpf, choice[2] % 2) == 0);
	kept->key = 1;
}

static const struct filter_pair *pair_of(const uint8_t choice[3])
{
	static struct kept kept[N_KEPT];
	const uint32_t key = 1 + choice[0] % N_PARTS +
			     choice[1] % N_PARTS * N_PARTS +
			     choice[2] % 8 * N_PARTS * N_PARTS;
	struct kept *here = &kept[key * 2654435761u / 8 % N_KEPT];

	if (here->key == key)
		return &here->pair;
	compile(here, choice);
	if (here->key == 0)
		return NULL;
	here->key = key;
	return &here->pair;
}

/* libpcap does not clear M[], so a program must not read it first. */
static bool reads_memory(const struct sock_filter *insns, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (BPF_CLASS(insns[i].code) <= BPF_LDX &&
		    BPF_MODE(insns[i].code) == BPF_MEM)
			return true;
	return false;
}

static void run_raw(const uint8_t *bytes, size_t n_bytes, uint32_t n)
{
	struct sock_filter insns[MAX_INSNS + 1] = { 0 };
	const struct xdp_cbpf cbpf = { insns, n + 1 };
	const struct xdp_filter_count none = { .map_fd = -1 };
	struct filter_pair pair;
	uint32_t n_insns;

	if (n_bytes < n * sizeof(insns[0]))
		return;
	memcpy(insns, bytes, n * sizeof(insns[0]));
	insns[n] = (struct sock_filter)BPF_STMT(BPF_RET, 0);
	if (reads_memory(insns, n) ||
	    mri_xdp_cbpf_translate(&cbpf, &none, NULL, &n_insns) < 0)
		return;
	FUZZ_CHECK(filter_pair_open(&pair, &cbpf, true) == 0);
	check(&pair, bytes + n * sizeof(insns[0]),
	      n_bytes - n * sizeof(insns[0]));
	filter_pair_close(&pair);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	const struct filter_pair *pair;

	if (ctx == NULL) {
		FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
		if (!filter_pair_begin()) {
			warnx("not root: no BPF programs, nothing is compared");
			exit(0);
		}
	}
	if (n_bytes < 3)
		return 0;
	if (bytes[0] == 0xff) {
		run_raw(bytes + 3, n_bytes - 3, bytes[1] % MAX_INSNS);
		return 0;
	}
	pair = pair_of(bytes);
	if (pair != NULL)
		check(pair, bytes + 3, n_bytes - 3);
	return 0;
}
