/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translate classic BPF to eBPF. Arithmetic is the same in both, and jumps
 * nearly so; they differ in how they load bytes of the frame.
 *
 *     r6  context          r9      A
 *     r7  first byte       stack   X, M[], bytes of a load
 *     r8  end of the first buffer
 *
 * A load at a constant offset, or behind an IPv4 header without options, reads
 * the first buffer directly. Any other load calls bpf_xdp_load_bytes(), which
 * takes 20 ns, but also reads the other buffers, and adds no register to a
 * pointer, for which the verifier requires CAP_PERFMON.
 *
 * Source: FreeBSD's bpf(4), the machine that libpcap compiles for;
 * RFC 9669 (eBPF); linux/include/uapi/linux/bpf.h.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <linux/bpf.h>
#include <linux/filter.h>

#include "program/filter.h"

enum {
	CTX = BPF_REG_6,
	DATA = BPF_REG_7,
	END = BPF_REG_8,
	A = BPF_REG_9,

	/* Offsets from the top of the stack. */
	AT_BYTES = -4,
	AT_X = -8,
	AT_M = -12, /* M[0]; the others are below it */

	MAX_OFFSET = 0xffff, /* of bpf_xdp_load_bytes() */
	MAX_SHIFT = 31,
};

/* Helpers since Linux 5.18: enum bpf_func_id. */
enum { CALL_GET_BUFF_LEN = 188, CALL_LOAD_BYTES = 189 };

static bool is_valid(uint16_t code)
{
	/* clang-format off */
	static const uint8_t others[] = {
		BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_W | BPF_IND,
		BPF_LD | BPF_H | BPF_ABS, BPF_LD | BPF_H | BPF_IND,
		BPF_LD | BPF_B | BPF_ABS, BPF_LD | BPF_B | BPF_IND,
		BPF_LD | BPF_W | BPF_LEN, BPF_LDX | BPF_W | BPF_LEN,
		BPF_LD | BPF_IMM, BPF_LD | BPF_MEM, BPF_LDX | BPF_IMM,
		BPF_LDX | BPF_MEM, BPF_LDX | BPF_B | BPF_MSH, BPF_ST, BPF_STX,
		BPF_RET | BPF_K, BPF_RET | BPF_A, BPF_MISC | BPF_TAX,
		BPF_MISC | BPF_TXA,
	};
	/* clang-format on */

	if (code > UINT8_MAX)
		return false;
	switch (BPF_CLASS(code)) {
	case BPF_ALU:
		return BPF_OP(code) <= BPF_XOR &&
		       code != (BPF_ALU | BPF_NEG | BPF_X);
	case BPF_JMP:
		return BPF_OP(code) <= BPF_JSET &&
		       code != (BPF_JMP | BPF_JA | BPF_X);
	default:
		return memchr(others, code, sizeof(others)) != NULL;
	}
}

struct translation {
	const struct xdp_filter *filter;
	const struct xdp_filter_count *count;
	struct bpf_insn *insns; /* NULL: compute starts only */
	uint32_t n;
	/* Start of each instruction's translation, then of the two ends. */
	uint32_t starts[XDP_FILTER_MAX + 2];
	/* The verifier rejects unreachable code, so it is left out. */
	bool is_target[XDP_FILTER_MAX + 2];
	bool falls_through; /* the last instruction reaches the next */
};

static uint32_t no_match(const struct translation *t)
{
	return t->filter->n;
}

static uint32_t match(const struct translation *t)
{
	return t->filter->n + 1;
}

static void emit(struct translation *t, uint8_t code, uint8_t dst, uint8_t src,
		 int32_t off, uint32_t imm)
{
	if (t->insns != NULL)
		t->insns[t->n] = (struct bpf_insn){ .code = code,
						    .dst_reg = dst,
						    .src_reg = src,
						    .off = (int16_t)off,
						    .imm = (int32_t)imm };
	t->n++;
	t->falls_through =
		code != (BPF_JMP | BPF_JA) && code != (BPF_JMP | BPF_EXIT);
}

/* Jump to the translation of a classic instruction, or to an end. */
static void jump(struct translation *t, uint8_t code, uint8_t dst, uint8_t src,
		 uint32_t imm, uint32_t target)
{
	t->is_target[target] = true;
	emit(t, code, dst, src, (int32_t)(t->starts[target] - t->n - 1), imm);
}

/* Start the translation of instruction i. Returns whether it is reachable: all
 * jumps go forward, so those to it are known. */
static bool start_insn(struct translation *t, uint32_t i)
{
	t->starts[i] = t->n;
	return t->is_target[i] || t->falls_through;
}

static void move(struct translation *t, uint8_t dst, uint8_t src)
{
	emit(t, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void set(struct translation *t, uint8_t dst, uint32_t imm)
{
	emit(t, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

static void load_word(struct translation *t, uint8_t dst, uint8_t src,
		      int32_t off)
{
	emit(t, BPF_LDX | BPF_MEM | BPF_W, dst, src, off, 0);
}

static void store_word(struct translation *t, int32_t off, uint8_t src)
{
	emit(t, BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, src, off, 0);
}

static uint32_t n_bytes_of(uint16_t code)
{
	return BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1;
}

/* Load the frame's bytes at offset r2 into r0. */
enum { N_CALL = 7 };

static void call_load(struct translation *t, uint16_t code)
{
	move(t, BPF_REG_1, CTX);
	move(t, BPF_REG_3, BPF_REG_10);
	emit(t, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0,
	     (uint32_t)AT_BYTES);
	set(t, BPF_REG_4, n_bytes_of(code));
	emit(t, BPF_JMP | BPF_CALL, 0, 0, 0, CALL_LOAD_BYTES);
	jump(t, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 0, no_match(t));
	emit(t, BPF_LDX | BPF_MEM | BPF_SIZE(code), BPF_REG_0, BPF_REG_10,
	     AT_BYTES, 0);
}

/* Load the bytes at the constant k and skip n_skipped instructions; if they are
 * not in the first buffer, run those instead. */
static void try_direct(struct translation *t, uint16_t code, uint32_t k,
		       int32_t n_skipped)
{
	const uint32_t n_bytes = n_bytes_of(code);

	move(t, BPF_REG_1, DATA);
	emit(t, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, k + n_bytes);
	emit(t, BPF_JMP | BPF_JGT | BPF_X, BPF_REG_1, END, 2, 0);
	emit(t, BPF_LDX | BPF_MEM | BPF_SIZE(code), BPF_REG_0, BPF_REG_1,
	     -(int32_t)n_bytes, 0);
	emit(t, BPF_JMP | BPF_JA, 0, 0, n_skipped, 0);
}

/* Load the bytes at the constant offset k into r0. */
static void load_at(struct translation *t, uint16_t code, uint32_t k)
{
	if (k <= MAX_OFFSET - n_bytes_of(code))
		try_direct(t, code, k, 1 + N_CALL);
	set(t, BPF_REG_2, k < MAX_OFFSET ? k : MAX_OFFSET);
	call_load(t, code);
}

/* Load the bytes at offset X + k into r0. */
static void load_at_x(struct translation *t, uint16_t code, uint32_t k)
{
	enum { IPV4_BYTES = 20, N_DIRECT = 5, N_ADD = 3 };

	load_word(t, BPF_REG_2, BPF_REG_10, AT_X);
	if (k <= MAX_OFFSET - IPV4_BYTES - n_bytes_of(code)) {
		emit(t, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, N_DIRECT,
		     IPV4_BYTES);
		try_direct(t, code, k + IPV4_BYTES, N_ADD + N_CALL);
	}
	/* Both have 32 bits: the sum does not wrap, as in libpcap. */
	set(t, BPF_REG_1, k);
	emit(t, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_1, 0, 0);
	jump(t, BPF_JMP | BPF_JGT | BPF_K, BPF_REG_2, 0, MAX_OFFSET,
	     no_match(t));
	call_load(t, code);
}

static void load_a(struct translation *t, const struct sock_filter *insn)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_ABS:
		load_at(t, insn->code, insn->k);
		break;
	case BPF_IND:
		load_at_x(t, insn->code, insn->k);
		break;
	case BPF_LEN:
		move(t, BPF_REG_1, CTX);
		emit(t, BPF_JMP | BPF_CALL, 0, 0, 0, CALL_GET_BUFF_LEN);
		move(t, A, BPF_REG_0);
		return;
	case BPF_IMM:
		set(t, A, insn->k);
		return;
	default: /* BPF_MEM */
		load_word(t, A, BPF_REG_10, AT_M - 4 * (int32_t)insn->k);
		return;
	}
	if (BPF_SIZE(insn->code) != BPF_B)
		emit(t, BPF_ALU | BPF_END | BPF_TO_BE, BPF_REG_0, 0, 0,
		     8 * n_bytes_of(insn->code));
	move(t, A, BPF_REG_0);
}

static void load_x(struct translation *t, const struct sock_filter *insn)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_MSH: /* the length of an IPv4 header */
		load_at(t, BPF_B, insn->k);
		emit(t, BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, 0, 0xf);
		emit(t, BPF_ALU | BPF_LSH | BPF_K, BPF_REG_0, 0, 0, 2);
		break;
	case BPF_LEN:
		move(t, BPF_REG_1, CTX);
		emit(t, BPF_JMP | BPF_CALL, 0, 0, 0, CALL_GET_BUFF_LEN);
		break;
	case BPF_IMM:
		set(t, BPF_REG_0, insn->k);
		break;
	default: /* BPF_MEM */
		load_word(t, BPF_REG_0, BPF_REG_10,
			  AT_M - 4 * (int32_t)insn->k);
	}
	store_word(t, AT_X, BPF_REG_0);
}

/* The same opcodes, except for division by zero and wide shifts. */
static int compute(struct translation *t, const struct sock_filter *insn)
{
	const uint8_t op = BPF_OP(insn->code);
	const bool divides = op == BPF_DIV || op == BPF_MOD;
	const bool shifts = op == BPF_LSH || op == BPF_RSH;

	if (BPF_SRC(insn->code) == BPF_K) {
		if ((divides && insn->k == 0) ||
		    (shifts && insn->k > MAX_SHIFT))
			return -ENOTSUP;
		emit(t, (uint8_t)insn->code, A, 0, 0,
		     op == BPF_NEG ? 0 : insn->k);
		return 0;
	}
	load_word(t, BPF_REG_0, BPF_REG_10, AT_X);
	if (divides)
		jump(t, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 0,
		     no_match(t));
	if (shifts) {
		emit(t, BPF_JMP | BPF_JLE | BPF_K, BPF_REG_0, 0, 2, MAX_SHIFT);
		set(t, A, 0);
		emit(t, BPF_JMP | BPF_JA, 0, 0, 1, 0);
	}
	emit(t, (uint8_t)insn->code, A, BPF_REG_0, 0, 0);
	return 0;
}

static int branch(struct translation *t, const struct sock_filter *insn,
		  uint32_t i)
{
	const uint8_t op = BPF_OP(insn->code);
	const bool has_x = BPF_SRC(insn->code) == BPF_X;
	const uint32_t n_left = t->filter->n - i - 1;

	if (op == BPF_JA) {
		if (insn->k >= n_left) /* a loop, as of protochain */
			return -ENOTSUP;
		jump(t, BPF_JMP | BPF_JA, 0, 0, 0, i + 1 + insn->k);
		return 0;
	}
	if (insn->jt >= n_left || insn->jf >= n_left)
		return -ENOTSUP;
	if (has_x)
		load_word(t, BPF_REG_0, BPF_REG_10, AT_X);
	jump(t, (uint8_t)(BPF_JMP32 | op | BPF_SRC(insn->code)), A,
	     has_x ? BPF_REG_0 : 0, has_x ? 0 : insn->k, i + 1 + insn->jt);
	if (insn->jf != 0)
		jump(t, BPF_JMP | BPF_JA, 0, 0, 0, i + 1 + insn->jf);
	return 0;
}

static void end(struct translation *t, const struct sock_filter *insn)
{
	const bool is_a = BPF_RVAL(insn->code) == BPF_A;

	if (is_a)
		jump(t, BPF_JMP | BPF_JEQ | BPF_K, A, 0, 0, no_match(t));
	jump(t, BPF_JMP | BPF_JA, 0, 0, 0,
	     is_a || insn->k != 0 ? match(t) : no_match(t));
}

static int translate_one(struct translation *t, uint32_t i)
{
	const struct sock_filter *insn = &t->filter->insns[i];
	const uint8_t class = BPF_CLASS(insn->code);
	const bool has_m =
		class == BPF_ST || class == BPF_STX ||
		(class <= BPF_LDX && BPF_MODE(insn->code) == BPF_MEM);

	if (!is_valid(insn->code) || (has_m && insn->k >= BPF_MEMWORDS))
		return -ENOTSUP;
	switch (class) {
	case BPF_LD:
		load_a(t, insn);
		break;
	case BPF_LDX:
		load_x(t, insn);
		break;
	case BPF_ST:
		store_word(t, AT_M - 4 * (int32_t)insn->k, A);
		break;
	case BPF_STX:
		load_word(t, BPF_REG_0, BPF_REG_10, AT_X);
		store_word(t, AT_M - 4 * (int32_t)insn->k, BPF_REG_0);
		break;
	case BPF_ALU:
		return compute(t, insn);
	case BPF_JMP:
		return branch(t, insn, i);
	case BPF_RET:
		end(t, insn);
		break;
	default: /* BPF_MISC */
		if (BPF_MISCOP(insn->code) == BPF_TXA)
			load_word(t, A, BPF_REG_10, AT_X);
		else
			store_word(t, AT_X, A);
	}
	return 0;
}

/* The verifier rejects reads of uninitialised stack. */
static void clear_memory(struct translation *t)
{
	const struct xdp_filter *filter = t->filter;
	bool is_read[BPF_MEMWORDS] = { 0 };

	for (uint32_t i = 0; i < filter->n; i++)
		if (BPF_CLASS(filter->insns[i].code) <= BPF_LDX &&
		    BPF_MODE(filter->insns[i].code) == BPF_MEM &&
		    filter->insns[i].k < BPF_MEMWORDS)
			is_read[filter->insns[i].k] = true;
	for (int32_t k = 0; k < BPF_MEMWORDS; k++)
		if (is_read[k])
			store_word(t, AT_M - 4 * k, A);
}

static void begin_program(struct translation *t)
{
	move(t, CTX, BPF_REG_1);
	load_word(t, DATA, CTX, offsetof(struct xdp_md, data));
	load_word(t, END, CTX, offsetof(struct xdp_md, data_end));
	set(t, A, 0);
	store_word(t, AT_X, A);
	clear_memory(t);
}

/* One CPU at a time processes a queue, so its counter needs no lock. */
static void pass_to_kernel(struct translation *t)
{
	load_word(t, BPF_REG_1, CTX, offsetof(struct xdp_md, rx_queue_index));
	emit(t, BPF_ALU | BPF_SUB | BPF_K, BPF_REG_1, 0, 0,
	     t->count->first_queue);
	emit(t, BPF_JMP | BPF_JGE | BPF_K, BPF_REG_1, 0, 7, t->count->n_queues);
	emit(t, BPF_ALU64 | BPF_MUL | BPF_K, BPF_REG_1, 0, 0,
	     XDP_FILTER_COUNT_BYTES);
	emit(t, BPF_LD | BPF_IMM | BPF_DW, BPF_REG_2, BPF_PSEUDO_MAP_VALUE, 0,
	     (uint32_t)t->count->map_fd);
	emit(t, 0, 0, 0, 0, 0); /* its second half */
	emit(t, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_1, 0, 0);
	emit(t, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_2, 0, 0);
	emit(t, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, 1);
	emit(t, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1, 0, 0);
	set(t, BPF_REG_0, XDP_PASS);
	emit(t, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int translate_all(struct translation *t, struct bpf_insn *insns)
{
	int err = 0;

	t->insns = insns;
	t->n = 0;
	begin_program(t);
	for (uint32_t i = 0; i < t->filter->n && err == 0; i++)
		if (start_insn(t, i))
			err = translate_one(t, i);
	if (start_insn(t, no_match(t)))
		pass_to_kernel(t);
	if (!start_insn(t, match(t)))
		return -ENOTSUP;
	move(t, BPF_REG_1, CTX);
	return err;
}

int mri_xdp_filter_translate(const struct xdp_filter *filter,
			     const struct xdp_filter_count *count,
			     struct bpf_insn *insns, uint32_t *ret_n)
{
	struct translation t = { .filter = filter, .count = count };
	int err;

	if (filter->n > XDP_FILTER_MAX)
		return -ENOTSUP;
	err = translate_all(&t, NULL); /* finds jump targets */
	/* A jump has 16 bits. */
	if (err == 0 && t.n > INT16_MAX)
		err = -ENOTSUP;
	if (err == 0 && insns != NULL)
		err = translate_all(&t, insns);
	*ret_n = t.n;
	return err;
}
