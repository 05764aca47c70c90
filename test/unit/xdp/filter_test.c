/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/xdp/program/filter_program.c: the translation of a filter
 * must match the same frames as libpcap's interpreter.
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/filter.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include <millrace/driver.h>

#include "program/filter.h"
#include "support/unit.h"
#include "xdp.h"

enum { N_FRAMES = 2000, LONG_BYTES = 9000, N_DRAWN = 300 };

/* Declared here, since libpcap's header and the kernel's define the same names.
 */
unsigned int bpf_filter(const struct sock_filter *insns, const uint8_t *bytes,
			unsigned int n_wire_bytes, unsigned int n_bytes);

enum { LOG_BYTES = 1 << 20, TAKEN = XDP_TX };

/* A filter in libpcap's interpreter and, translated, in the kernel. */
struct pair {
	struct xdp_filter filter; /* not owned */
	int fd;
};

static struct xdp_filter_count count = { .n_queues = 1 };

/* Whether programs can be loaded. */
static bool begin(void)
{
	count.map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "filter_pair", 4,
				      XDP_FILTER_COUNT_BYTES, 1, NULL);
	return count.map_fd >= 0;
}

/* Frames that the translations have passed to the kernel. */
static uint64_t n_passed(void)
{
	uint64_t value[XDP_FILTER_COUNT_BYTES / sizeof(uint64_t)];
	const uint32_t key = 0;

	if (bpf_map_lookup_elem(count.map_fd, &key, value) < 0)
		err(1, "no counter");
	return value[0];
}

static int load_program(const struct bpf_insn *insns, uint32_t n,
			bool has_frags)
{
	char *log = calloc(1, LOG_BYTES);
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = BPF_XDP,
		    .prog_flags = has_frags ? BPF_F_XDP_HAS_FRAGS : 0,
		    .log_buf = log, .log_size = LOG_BYTES);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "filter_pair", "GPL", insns,
			       n, &options);

	if (fd < 0) {
		fd = -errno;
		warnx("%s", log);
	}
	free(log);
	return fd;
}

static int open_pair(struct pair *pair, const struct xdp_filter *filter,
		     bool has_frags)
{
	const struct bpf_insn tail[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = TAKEN },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_insn *insns;
	uint32_t n;
	int error = mri_xdp_filter_translate(filter, &count, NULL, &n);

	if (error < 0)
		return error;
	insns = malloc(n * sizeof(*insns) + sizeof(tail));
	if (insns == NULL)
		err(1, "no memory");
	(void)mri_xdp_filter_translate(filter, &count, insns, &n);
	memcpy(insns + n, tail, sizeof(tail));
	pair->filter = *filter;
	pair->fd = load_program(insns, n + 2, has_frags);
	free(insns);
	return pair->fd < 0 ? pair->fd : 0;
}

static void close_pair(struct pair *pair)
{
	close(pair->fd);
}

static bool interpret(const struct xdp_filter *filter, const uint8_t *bytes,
		      uint32_t n_bytes)
{
	return bpf_filter(filter->insns, bytes, n_bytes, n_bytes) != 0;
}

/* Whether the two disagree about the frame. */
static bool differs(const struct pair *pair, const uint8_t *bytes,
		    uint32_t n_bytes, bool *ret_is_taken)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = bytes,
		    .data_size_in = n_bytes);

	*ret_is_taken = interpret(&pair->filter, bytes, n_bytes);
	if (bpf_prog_test_run_opts(pair->fd, &options) < 0)
		err(1, "BPF_PROG_RUN of %u bytes", n_bytes);
	return options.retval != (*ret_is_taken ? TAKEN : XDP_PASS);
}

static struct test_allocator allocator;
static struct mr_ctx *ctx;
static bool can_load;

/* Each mode of loads, each operation, each kind of frame, and the edges. */
static const char *const expressions[] = {
	"",
	"ip",
	"ip6",
	"arp",
	"not ip",
	"udp port 4789",
	"tcp port 22 or udp portrange 50-60",
	"not (tcp port 22 or arp or icmp)",
	"ip6 and tcp dst port 443",
	"host 10.0.0.1",
	"dst net 10.0.0.0/8 and not src host 10.0.0.2",
	"ip6 dst net 2001:db8::/32",
	"ether host 02:00:00:00:00:01",
	"ether broadcast or ether multicast",
	"vlan",
	"vlan 5 and udp",
	"vlan and vlan and ip",
	"(vlan and (ether[14:2] & 0xfff = 5 or ether[14:2] & 0xfff = 6))",
	"mpls and ip",
	"pppoes and ip",
	"tcp[tcpflags] & (tcp-syn|tcp-ack) = tcp-syn",
	"tcp[(tcp[12] & 0xf0) >> 2:4] = 0x47455420",
	"ip[6:2] & 0x1fff != 0 or (ip6[6] = 44 and ip6[42:2] & 0xfff8 != 0)",
	"ip[2:2] - ((ip[0] & 0xf) << 2) > 64",
	"icmp[0] = 8 or icmp6",
	"len > 200",
	"less 64",
	"greater 3600",
	"ether[len - 1] = 7",
	"ether[len - 2:2] = 7",
	"ether[len - 3:4] != 0",
	"ether[0] * ether[1] / (ether[2] + 1) > 50",
	"ether[0] / ether[1] = 2",
	"ether[0] % ether[1] = 1",
	"ether[0] ^ ether[1] | ether[2] > ether[3]",
	"ether[0] << ether[1] > ether[2] >> ether[3]",
	"ether[0] - ether[1] > 0x80000000",
	"-ether[0] > 0xffffff00",
	"ether[ether[13]] = ether[ether[14] + 3]",
	"ether[ether[0:4]:2] = 0",
	"ether[ether[0:4] + 0x7fffffff] != 3",
	"ether[1600:4] > 77",
	"ether[4000] > 9 and ether[8000:2] > 9",
	"ether[len - 4:4] > 0x80000000",
	"ether[65532:4] >= 0",
	"ether[65535] >= 0",
	"ether[70000] >= 0",
	"ether[0x7fffffff] >= 0",
};

/* Code that libpcap generates only without optimisation, or never. */
#define S BPF_STMT
#define J BPF_JUMP
static const struct by_hand {
	const char *name;
	struct sock_filter insns[8];
	int err;
} by_hand[] = {
	{ "A = 1: taken",
	  { S(BPF_LD | BPF_IMM, 1), S(BPF_RET | BPF_A, 0) },
	  0 },
	{ "A = 0: not taken",
	  { S(BPF_LD | BPF_IMM, 0), S(BPF_RET | BPF_A, 0) },
	  0 },
	{ "A begins as 0", { S(BPF_RET | BPF_A, 0) }, 0 },
	{ "X begins as 0",
	  { S(BPF_MISC | BPF_TXA, 0), J(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	    S(BPF_RET, 1), S(BPF_RET, 0) },
	  0 },
	{ "X = length; A > X",
	  { S(BPF_LD | BPF_W | BPF_ABS, 0), S(BPF_LDX | BPF_W | BPF_LEN, 0),
	    J(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1), S(BPF_RET, 1),
	    S(BPF_RET, 0) },
	  0 },
	{ "both edges of memory, through X",
	  { S(BPF_LD | BPF_B | BPF_ABS, 1), S(BPF_ST, 15),
	    S(BPF_LDX | BPF_MEM, 15), S(BPF_STX, 0), S(BPF_LD | BPF_MEM, 0),
	    S(BPF_RET | BPF_A, 0) },
	  0 },
	{ "a load that wraps is behind the frame",
	  { S(BPF_LDX | BPF_IMM, 0xffffffff), S(BPF_LD | BPF_B | BPF_IND, 2),
	    S(BPF_RET, 1) },
	  0 },
	{ "so is a header length there",
	  { S(BPF_LDX | BPF_B | BPF_MSH, 0x10000), S(BPF_RET, 1) },
	  0 },
	{ "division by X = 0: not taken",
	  { S(BPF_LD | BPF_IMM, 1), S(BPF_ALU | BPF_DIV | BPF_X, 0),
	    S(BPF_RET, 1) },
	  0 },
	{ "remainder of X = 0: not taken",
	  { S(BPF_LD | BPF_IMM, 1), S(BPF_ALU | BPF_MOD | BPF_X, 0),
	    S(BPF_RET, 1) },
	  0 },
	{ "a shift by 32 leaves nothing",
	  { S(BPF_LD | BPF_IMM, 1), S(BPF_LDX | BPF_IMM, 32),
	    S(BPF_ALU | BPF_LSH | BPF_X, 0), S(BPF_RET | BPF_A, 0) },
	  0 },
	{ "a long jump",
	  { S(BPF_JMP | BPF_JA, 1), S(BPF_RET, 0), S(BPF_RET, 1) },
	  0 },
	{ "a shift by a constant 32",
	  { S(BPF_ALU | BPF_LSH | BPF_K, 32), S(BPF_RET, 1) },
	  -ENOTSUP },
	{ "division by a constant 0",
	  { S(BPF_ALU | BPF_DIV | BPF_K, 0), S(BPF_RET, 1) },
	  -ENOTSUP },
	{ "behind the memory", { S(BPF_ST, 16), S(BPF_RET, 1) }, -ENOTSUP },
	{ "back", { J(BPF_JMP | BPF_JA, 0xffffffff, 0, 0) }, -ENOTSUP },
	{ "behind the end",
	  { J(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), S(BPF_RET, 1) },
	  -ENOTSUP },
	{ "an operation that does not exist",
	  { S(BPF_ALU | 0xf0, 0), S(BPF_RET, 1) },
	  -ENOTSUP },
	{ "nothing is taken", { S(BPF_RET, 0) }, -ENOTSUP },
	{ "a mode that does not exist",
	  { S(BPF_LD | 0xe0, 0), S(BPF_RET, 1) },
	  -ENOTSUP },
};

static uint32_t below(uint32_t n)
{
	static uint64_t state = 88172645463325252ull;

	return test_random(&state, n);
}

static uint32_t put_u16(uint8_t *at, uint16_t value)
{
	value = htons(value);
	memcpy(at, &value, 2);
	return 2;
}

/* Mostly headers that the expressions match; the rest is random. */
static uint32_t make_frame(uint8_t *bytes, uint32_t max_bytes)
{
	static const uint16_t types[] = { 0x0800, 0x0800, 0x86dd, 0x0806,
					  0x8847, 0x8864, 0x88cc };
	/* Of IPv4: without and with options, and another version. */
	static const uint8_t firsts[] = { 0x45, 0x45, 0x46, 0x56 };
	static const uint8_t protocols[] = { 6, 17, 6, 17, 1, 58, 44 };
	static const uint16_t ports[] = { 22, 53, 443, 4789 };
	const uint16_t type = types[below(7)];
	const uint32_t n_bytes =
		below(4) == 0 ? 14 + below(50) : 14 + below(max_bytes - 14);
	uint32_t at = 12;

	for (uint32_t i = 0; i < max_bytes; i++)
		bytes[i] = (uint8_t)below(256);
	if (below(3) == 0)
		memcpy(bytes, "\2\0\0\0\0\1\2\0\0\0\0\2", 12);
	for (uint32_t n_tags = below(4); n_tags > 1; n_tags--) {
		at += put_u16(bytes + at, 0x8100);
		at += put_u16(bytes + at, (uint16_t)(5 + below(2)));
	}
	at += put_u16(bytes + at, type);
	if (type == 0x0800) {
		bytes[at] = firsts[below(4)];
		put_u16(bytes + at + 6, below(3) == 0 ? 100 : 0);
		bytes[at + 9] = protocols[below(7)];
		memcpy(bytes + at + 12, "\12\0\0\1\12\0\0\2", 8);
		bytes[at + 15] = (uint8_t)below(3);
		at += bytes[at] % 16 * 4u;
	} else {
		bytes[at] = 0x60;
		bytes[at + 6] = protocols[below(7)];
		memcpy(bytes + at + 24, "\x20\1\xd\xb8", 4);
		at += 40;
	}
	at += put_u16(bytes + at, ports[below(4)]);
	put_u16(bytes + at, ports[below(4)]);
	return n_bytes;
}

static void assert_same(const struct xdp_filter *filter, bool has_frags,
			uint32_t n_frames, const char *name)
{
	const uint32_t max_bytes = has_frags ? LONG_BYTES : 1600;
	static uint8_t bytes[LONG_BYTES];
	const uint64_t n_before = n_passed();
	struct pair pair;
	uint32_t n_taken = 0;

	if (open_pair(&pair, filter, has_frags) != 0)
		fail_msg("%s: does not load", name);
	for (uint32_t i = 0; i < n_frames; i++) {
		const uint32_t n_bytes = make_frame(bytes, max_bytes);
		bool is_taken;

		if (differs(&pair, bytes, n_bytes, &is_taken))
			fail_msg("%s: libpcap says %d of %u bytes", name,
				 is_taken, n_bytes);
		n_taken += is_taken;
	}
	assert_int_equal(n_passed() - n_before, n_frames - n_taken);
	close_pair(&pair);
}

static struct xdp_filter compile(const char *expression)
{
	struct mr_reason reason = { "" };
	struct xdp_filter filter;

	if (mri_xdp_filter_compile(ctx, "x", expression, &filter, &reason) < 0)
		fail_msg("%s", reason.text);
	return filter;
}

static struct xdp_filter by_hand_cbpf(const struct by_hand *program)
{
	struct xdp_filter filter = { (struct sock_filter *)program->insns, 8 };

	while (program->insns[filter.n - 1].code == 0)
		filter.n--;
	return filter;
}

TEST(expressions_take_what_libpcap_takes)
{
	if (!can_load)
		skip();
	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]);
	     i++) {
		struct xdp_filter filter = compile(expressions[i]);

		assert_same(&filter, false, N_FRAMES, expressions[i]);
		assert_same(&filter, true, N_FRAMES, expressions[i]);
		mr_free(ctx, filter.insns);
	}
}

TEST(programs_take_what_libpcap_takes)
{
	for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
		const struct by_hand *p = &by_hand[i];
		const struct xdp_filter filter = by_hand_cbpf(p);
		uint32_t n;

		if (mri_xdp_filter_translate(&filter,
					     &(struct xdp_filter_count){ 0 },
					     NULL, &n) != p->err)
			fail_msg("%s", p->name);
		if (p->err == 0 && can_load)
			assert_same(&filter, false, N_FRAMES, p->name);
	}
}

/* Two of them, combined in each way. */
TEST(combinations_take_what_libpcap_takes)
{
	static const char *const operators[] = { "and", "or", "and not",
						 "or not" };
	enum { N = sizeof(expressions) / sizeof(expressions[0]) };

	if (!can_load)
		skip();
	for (uint32_t i = 0; i < N_DRAWN; i++) {
		struct xdp_filter filter;
		char text[256];

		snprintf(text, sizeof(text), "(%s) %s (%s)",
			 expressions[1 + below(N - 1)], operators[i % 4],
			 expressions[1 + below(N - 1)]);
		/* "ip and arp" is refused, because it matches no frame. */
		if (mri_xdp_filter_compile(ctx, "", text, &filter, NULL) < 0)
			continue;
		assert_same(&filter, i % 8 < 4, N_FRAMES / 20, text);
		mr_free(ctx, filter.insns);
	}
}

/* Any instructions but loads from memory, which libpcap does not clear. */
static struct sock_filter draw(void)
{
	static const uint16_t codes[] = { BPF_LD | BPF_W | BPF_ABS,
					  BPF_LD | BPF_H | BPF_ABS,
					  BPF_LD | BPF_B | BPF_IND,
					  BPF_LD | BPF_W | BPF_IND,
					  BPF_LDX | BPF_B | BPF_MSH,
					  BPF_LD | BPF_W | BPF_LEN,
					  BPF_LD | BPF_IMM,
					  BPF_LDX | BPF_IMM,
					  BPF_ST,
					  BPF_STX,
					  BPF_MISC | BPF_TAX,
					  BPF_MISC | BPF_TXA,
					  BPF_RET | BPF_A,
					  BPF_RET | BPF_K,
					  BPF_JMP | BPF_JA };
	const uint32_t which = below(30);
	const uint16_t source = below(2) ? BPF_X : BPF_K;
	struct sock_filter insn = { .jt = (uint8_t)below(4),
				    .jf = (uint8_t)below(4),
				    .k = below(4) ? below(70) :
						    below(UINT32_MAX) };

	if (which < 15)
		insn.code = codes[which];
	else if (which < 22)
		insn.code = (uint16_t)(BPF_JMP | below(6) << 4 | source);
	else
		insn.code = (uint16_t)(BPF_ALU | below(11) << 4 | source);
	return insn;
}

TEST(drawn_programs_take_what_libpcap_takes)
{
	uint32_t n_translated = 0;

	if (!can_load)
		skip();
	for (uint32_t i = 0; i < 60 * N_DRAWN; i++) {
		struct sock_filter insns[8];
		const struct xdp_filter filter = { insns, 1 + below(8) };
		uint32_t n;

		for (uint32_t k = 0; k < filter.n; k++)
			insns[k] = draw();
		insns[filter.n - 1] = (struct sock_filter)S(BPF_RET, below(2));
		if (mri_xdp_filter_translate(&filter,
					     &(struct xdp_filter_count){ 0 },
					     NULL, &n) < 0)
			continue;
		n_translated++;
		assert_same(&filter, i % 2, N_FRAMES / 100, "a drawn program");
	}
	assert_true(n_translated > N_DRAWN);
}

TEST(a_program_that_is_too_long_is_refused)
{
	static struct sock_filter insns[XDP_FILTER_MAX + 1];
	struct xdp_filter filter = { insns, XDP_FILTER_MAX };
	uint32_t n;

	for (uint32_t i = 0; i <= XDP_FILTER_MAX; i++)
		insns[i] = (struct sock_filter)S(BPF_MISC | BPF_TAX, 0);
	insns[XDP_FILTER_MAX - 1] = (struct sock_filter)S(BPF_RET, 1);
	assert_int_equal(
		mri_xdp_filter_translate(
			&filter, &(struct xdp_filter_count){ 0 }, NULL, &n),
		0);
	filter.n++;
	assert_int_equal(
		mri_xdp_filter_translate(
			&filter, &(struct xdp_filter_count){ 0 }, NULL, &n),
		-ENOTSUP);
	/* Jumps would be too far for their 16 bits. */
	filter.n--;
	for (uint32_t i = 0; i < XDP_FILTER_MAX - 1; i++)
		insns[i] = (struct sock_filter)S(BPF_LD | BPF_W | BPF_IND, 0);
	assert_int_equal(
		mri_xdp_filter_translate(
			&filter, &(struct xdp_filter_count){ 0 }, NULL, &n),
		-ENOTSUP);
}

/* If a filter takes a frame, the answer for its known bits must be maybe. */
static void assert_may_match(const struct xdp_filter *filter, const char *name)
{
	static uint8_t bytes[LONG_BYTES];

	for (uint32_t i = 0; i < N_FRAMES; i++) {
		const uint32_t n_bytes = make_frame(bytes, 200);
		struct xdp_shape shape = { 0 };

		for (uint32_t k = 0; k < XDP_SHAPE_BYTES; k++) {
			if (k < n_bytes && below(4) != 0)
				shape.known[k] = below(8) != 0 ?
							 0xff :
							 (uint8_t)below(256);
			shape.bytes[k] = bytes[k] & shape.known[k];
		}
		if (interpret(filter, bytes, n_bytes) &&
		    !mri_xdp_filter_may_match(filter, &shape))
			fail_msg("%s", name);
	}
}

TEST(matching_frames_are_never_ruled_out)
{
	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]);
	     i++) {
		struct xdp_filter filter = compile(expressions[i]);

		assert_may_match(&filter, expressions[i]);
		mr_free(ctx, filter.insns);
	}
	for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
		const struct xdp_filter filter = by_hand_cbpf(&by_hand[i]);

		if (by_hand[i].err == 0)
			assert_may_match(&filter, by_hand[i].name);
	}
}

/* What stands for a program that is loaded already, and reads too much. */
static const struct bpf_insn refused[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .src_reg = BPF_REG_5 },
	{ .code = BPF_JMP | BPF_EXIT },
};

const struct bpf_insn *__wrap_bpf_program__insns(const struct bpf_program *p);
size_t __wrap_bpf_program__insn_cnt(const struct bpf_program *p);

const struct bpf_insn *__wrap_bpf_program__insns(const struct bpf_program *p)
{
	(void)p;
	return refused;
}

size_t __wrap_bpf_program__insn_cnt(const struct bpf_program *p)
{
	(void)p;
	return sizeof(refused) / sizeof(refused[0]);
}

TEST(a_refusal_of_the_verifier_is_reported)
{
	static struct mr_port_info info;
	static struct xdp_port port = { .base.info = &info,
					.lease.n_queues = 1 };
	struct mr_reason reason = { "" };

	if (!can_load)
		skip();
	port.base.ctx = ctx;
	port.filter = compile("udp");
	assert_int_equal(mri_xdp_filter_open(&port, &reason), 0);
	assert_int_equal(mri_xdp_filter_load(&port, NULL, true, &reason), -EIO);
	assert_non_null(strstr(reason.text, "verifier refuses"));
	assert_non_null(strstr(reason.text, "R5 !read_ok"));
	assert_null(strchr(reason.text, '\n'));
	mr_fd_close(port.lease.fds[XDP_LEASE_PASSED]);
	mri_xdp_filter_close(&port);
}

TEST(an_error_names_its_place_and_cause)
{
	static const char *const cases[][2] = {
		{ "udp prt 4789", "after 'udp': " },
		{ "udp port 4789 an tcp", "after 'udp port 4789': " },
		{ "prt 4789", "'prt 4789': can't parse" },
		{ "udp port 70000", "illegal port number" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason reason = { "" };
		struct xdp_filter filter;

		assert_int_equal(mri_xdp_filter_compile(ctx, "x", cases[i][0],
							&filter, &reason),
				 -EINVAL);
		if (strstr(reason.text, cases[i][1]) == NULL ||
		    strchr(reason.text, '\n') != NULL)
			fail_msg("%s", reason.text);
	}
}

int main(void)
{
	int n_failed;

	ctx = test_ctx_with(&allocator, NULL);
	can_load = begin();
	n_failed = test_run(NULL, NULL, NULL);
	mr_ctx_destroy(ctx);
	return n_failed + (allocator.n_out != 0);
}
