/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decide whether a filter may take a frame of which only some bits are known.
 * Each value has known and unknown bits; if a branch depends on unknown bits,
 * both sides are followed. "No" is certain, "yes" means "perhaps".
 *
 * Like the verifier's tnum: linux/kernel/bpf/tnum.c.
 */
#include <linux/filter.h>

#include "program/filter.h"

/* After so many steps, the answer is yes. */
enum { MAX_STEPS = 1 << 16 };

struct bits {
	uint32_t value, known; /* unknown bits are 0 in value */
};

struct machine {
	struct bits a, x, m[BPF_MEMWORDS];
};

struct walk {
	const struct sock_filter *insns;
	const struct xdp_shape *shape;
	uint32_t n_steps;
};

static struct bits constant(uint32_t value)
{
	return (struct bits){ value, UINT32_MAX };
}

static bool is_constant(struct bits bits)
{
	return bits.known == UINT32_MAX;
}

/* Load n_bytes of the frame at an offset that may be unknown. */
static struct bits load_bits(const struct xdp_shape *shape, struct bits at,
			     uint32_t n_bytes)
{
	/* Higher bits are 0. */
	struct bits bits = { 0, n_bytes == 4 ? 0 : UINT32_MAX << 8 * n_bytes };

	if (!is_constant(at) || at.value > XDP_SHAPE_BYTES - n_bytes)
		return bits;
	for (uint32_t i = 0; i < n_bytes; i++) {
		const uint32_t shift = 8 * (n_bytes - 1 - i);

		bits.value |= (uint32_t)shape->bytes[at.value + i] << shift;
		bits.known |= (uint32_t)shape->known[at.value + i] << shift;
	}
	return bits;
}

static struct bits shift_bits(uint16_t op, struct bits a, uint32_t n)
{
	if (n > 31)
		return constant(0);
	if (op == BPF_LSH)
		return (struct bits){ a.value << n,
				      a.known << n | ((1u << n) - 1) };
	return (struct bits){ a.value >> n, ~(~a.known >> n) };
}

static uint32_t compute_constant(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV: /* by 0: handled elsewhere */
		return b == 0 ? 0 : a / b;
	case BPF_MOD:
		return b == 0 ? 0 : a % b;
	default: /* BPF_NEG */
		return -a;
	}
}

static struct bits compute_bits(uint16_t op, struct bits a, struct bits b)
{
	const uint32_t both = a.known & b.known;

	switch (op) {
	case BPF_AND:
		return (struct bits){ a.value & b.value,
				      both | (a.known & ~a.value) |
					      (b.known & ~b.value) };
	case BPF_OR:
		return (struct bits){ a.value | b.value,
				      both | a.value | b.value };
	case BPF_XOR:
		return (struct bits){ (a.value ^ b.value) & both, both };
	case BPF_LSH:
	case BPF_RSH:
		return is_constant(b) ? shift_bits(op, a, b.value) :
					(struct bits){ 0 };
	default:
		if (!is_constant(a) || (op != BPF_NEG && !is_constant(b)))
			return (struct bits){ 0 };
		return constant(compute_constant(op, a.value, b.value));
	}
}

enum truth { FALSE, TRUE, MAYBE };

static enum truth compare_bits(uint16_t op, struct bits a, struct bits b)
{
	const uint32_t a_max = a.value | ~a.known, b_max = b.value | ~b.known;
	const uint32_t both = a.known & b.known;

	switch (op) {
	case BPF_JEQ:
		if ((a.value ^ b.value) & both)
			return FALSE;
		return both == UINT32_MAX ? TRUE : MAYBE;
	case BPF_JGT:
		return a.value > b_max  ? TRUE :
		       a_max <= b.value ? FALSE :
					  MAYBE;
	case BPF_JGE:
		return a.value >= b_max ? TRUE :
		       a_max < b.value  ? FALSE :
					  MAYBE;
	default: /* BPF_JSET */
		return a.value & b.value ? TRUE : a_max & b_max ? MAYBE : FALSE;
	}
}

/* The value that an instruction loads into A or X. */
static struct bits loaded_by(const struct xdp_shape *shape,
			     const struct machine *m,
			     const struct sock_filter *insn)
{
	const uint32_t n_bytes = BPF_SIZE(insn->code) == BPF_W ? 4 :
				 BPF_SIZE(insn->code) == BPF_H ? 2 :
								 1;

	switch (BPF_MODE(insn->code)) {
	case BPF_ABS:
		return load_bits(shape, constant(insn->k), n_bytes);
	case BPF_IND:
		return load_bits(shape,
				 compute_bits(BPF_ADD, m->x, constant(insn->k)),
				 n_bytes);
	case BPF_MSH:
		return shift_bits(
			BPF_LSH,
			compute_bits(BPF_AND,
				     load_bits(shape, constant(insn->k), 1),
				     constant(0xf)),
			2);
	case BPF_MEM:
		return m->m[insn->k];
	case BPF_IMM:
		return constant(insn->k);
	default: /* BPF_LEN */
		return (struct bits){ 0 };
	}
}

/* Execute an instruction other than a jump or a return. */
static void run_insn(const struct walk *walk, struct machine *m,
		     const struct sock_filter *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
		m->a = loaded_by(walk->shape, m, insn);
		break;
	case BPF_LDX:
		m->x = loaded_by(walk->shape, m, insn);
		break;
	case BPF_ST:
		m->m[insn->k] = m->a;
		break;
	case BPF_STX:
		m->m[insn->k] = m->x;
		break;
	case BPF_ALU:
		m->a = compute_bits(BPF_OP(insn->code), m->a,
				    BPF_SRC(insn->code) == BPF_X ?
					    m->x :
					    constant(insn->k));
		break;
	default: /* BPF_MISC */
		if (BPF_MISCOP(insn->code) == BPF_TXA)
			m->a = m->x;
		else
			m->x = m->a;
	}
}

static bool may_reach_match(struct walk *walk, uint32_t i, struct machine m)
{
	for (;; i++) {
		const struct sock_filter *insn = &walk->insns[i];
		enum truth truth;

		if (++walk->n_steps > MAX_STEPS)
			return true;
		if (BPF_CLASS(insn->code) == BPF_RET)
			return BPF_RVAL(insn->code) == BPF_K ?
				       insn->k != 0 :
				       !is_constant(m.a) || m.a.value != 0;
		if (insn->code == (BPF_JMP | BPF_JA)) {
			i += insn->k;
			continue;
		}
		if (BPF_CLASS(insn->code) != BPF_JMP) {
			run_insn(walk, &m, insn);
			continue;
		}
		truth = compare_bits(
			BPF_OP(insn->code), m.a,
			BPF_SRC(insn->code) == BPF_X ? m.x : constant(insn->k));
		if (truth == MAYBE &&
		    may_reach_match(walk, i + 1 + insn->jt, m))
			return true;
		i += truth == TRUE ? insn->jt : insn->jf;
	}
}

bool mri_xdp_filter_may_match(const struct xdp_filter *filter,
			      const struct xdp_shape *shape)
{
	const struct machine machine = { .a = constant(0), .x = constant(0) };
	struct walk walk = { .insns = filter->insns, .shape = shape };

	return may_reach_match(&walk, 0, machine);
}
