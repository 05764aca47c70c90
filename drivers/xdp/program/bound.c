/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs bound to a device. Only these may call the kfuncs that read a
 * frame's metadata, and not every driver implements them.
 *
 * The object has functions of our own in place of the kfuncs, so that it also
 * loads without a device: on older kernels, in generic mode, under libxdp's
 * dispatcher, and for BPF_PROG_RUN. libbpf 1.1 cannot leave a kfunc out, so we
 * take the instructions of the loaded program, replace the calls, and load it
 * again (mri_xdp_filter_load()).
 *
 * Source: linux/Documentation/networking/xdp-rx-metadata.rst.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "xdp.h"

enum {
	TAG_BYTES = 4,
	KFUNC_CALL = 2, /* BPF_PSEUDO_KFUNC_CALL */
};

/* By enum xdp_kfunc. Linux 6.3; the last one 6.8. */
static const char *const names[XDP_N_KFUNCS] = {
	"bpf_xdp_metadata_rx_timestamp",
	"bpf_xdp_metadata_rx_hash",
	"bpf_xdp_metadata_rx_vlan_tag",
};

/* Not 0, and packet bytes cannot guess it. */
static uint32_t choose_magic(void)
{
	uint32_t magic;

	if (getrandom(&magic, sizeof(magic), 0) < 0)
		magic = 0x9e3779b9;
	return (magic | 1u << 31) >> XDP_RX_META_MAGIC_SHIFT
					     << XDP_RX_META_MAGIC_SHIFT;
}

void mri_xdp_find_kfuncs(struct xdp_port *port)
{
	const uint64_t has = mri_xdp_rx_metadata(port->dev.ifindex);
	struct btf *kernel;

	if (has == 0)
		return;
	kernel = btf__load_vmlinux_btf();
	if (kernel == NULL)
		return;
	for (uint32_t i = 0; i < XDP_N_KFUNCS; i++) {
		const bool is_wanted = i == XDP_KFUNC_TAG || port->options.meta;
		const int32_t id =
			btf__find_by_name_kind(kernel, names[i], BTF_KIND_FUNC);

		if (is_wanted && has >> i & 1 && id > 0)
			port->lease.kfuncs[i] = (uint32_t)id;
	}
	btf__free(kernel);
	if (port->lease.kfuncs[XDP_KFUNC_TIME] != 0 ||
	    port->lease.kfuncs[XDP_KFUNC_HASH] != 0)
		port->lease.meta_magic = choose_magic();
}

/* The kfunc that a function of the object stands for. */
static uint32_t kfunc_of(const struct bpf_insn *insns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (insns[i].code == (BPF_ALU64 | BPF_MOV | BPF_K) &&
		    (uint32_t)insns[i].imm - XDP_KFUNC_MARK < XDP_N_KFUNCS)
			return (uint32_t)insns[i].imm - XDP_KFUNC_MARK;
	return XDP_N_KFUNCS;
}

size_t mri_xdp_bind_calls(const struct xdp_port *port, struct bpf_insn *insns,
			  size_t n)
{
	const struct bpf_insn fail = { BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0,
				       -EOPNOTSUPP };
	size_t n_left = n;

	if (!xdp_is_bound(port))
		return n;
	/* Only those functions are not inlined. They come last, and are
	 * unreachable afterwards: cut them off. */
	for (size_t i = 0; i < n_left; i++) {
		const size_t at = i + 1 + (size_t)insns[i].imm;
		uint32_t kfunc;

		if (insns[i].code != (BPF_JMP | BPF_CALL) ||
		    insns[i].src_reg != BPF_PSEUDO_CALL)
			continue;
		kfunc = kfunc_of(insns + at, n - at);
		n_left = at < n_left ? at : n_left;
		if (kfunc == XDP_N_KFUNCS || port->lease.kfuncs[kfunc] == 0) {
			insns[i] = fail;
		} else {
			insns[i].src_reg = KFUNC_CALL;
			insns[i].imm = (int32_t)port->lease.kfuncs[kfunc];
		}
	}
	return n_left;
}

/*
 * Code around a filter, which must see frames as on the wire: it inserts the
 * tag into the frame, and removes it again if the frame goes to the kernel. The
 * context is in r1, later in r6. The tag is on the stack: TPID and TCI.
 */
static const struct bpf_insn tag_in[] = {
	{ BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0 },
	{ BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0 },
	{ BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0 },
	{ BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -2 },
	{ BPF_JMP | BPF_CALL, 0, KFUNC_CALL, 0, 0 },
	{ BPF_JMP32 | BPF_JNE | BPF_K, 0, 0, 23, 0 }, /* no tag: to the end */
	{ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, -TAG_BYTES },
	{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_xdp_adjust_head },
	{ BPF_JMP | BPF_JNE | BPF_K, 0, 0, 17, 0 }, /* no room: abort */
	{ BPF_LDX | BPF_MEM | BPF_W, 1, 6, offsetof(struct xdp_md, data), 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 2, 6, offsetof(struct xdp_md, data_end),
	  0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 3, 1, 0, 0 },
	{ BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, 16 },
	{ BPF_JMP | BPF_JGT | BPF_X, 3, 2, 12, 0 }, /* abort */
	{ BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0 },
	{ BPF_STX | BPF_MEM | BPF_W, 1, 3, 0, 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 3, 1, 8, 0 },
	{ BPF_STX | BPF_MEM | BPF_W, 1, 3, 4, 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 3, 1, 12, 0 },
	{ BPF_STX | BPF_MEM | BPF_W, 1, 3, 8, 0 },
	{ BPF_LDX | BPF_MEM | BPF_H, 3, 10, -4, 0 },
	{ BPF_STX | BPF_MEM | BPF_H, 1, 3, 12, 0 },
	{ BPF_LDX | BPF_MEM | BPF_H, 3, 10, -2, 0 },
	{ BPF_ALU | BPF_END | BPF_TO_BE, 3, 0, 0, 16 },
	{ BPF_STX | BPF_MEM | BPF_H, 1, 3, 14, 0 },
	{ BPF_JMP | BPF_JA, 0, 0, 2, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_ABORTED },
	{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 },
};

static const struct bpf_insn tag_out[] = {
	{ BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0 },
	{ BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0 },
	{ BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -2 },
	{ BPF_JMP | BPF_CALL, 0, KFUNC_CALL, 0, 0 },
	{ BPF_JMP32 | BPF_JNE | BPF_K, 0, 0, 14, 0 }, /* none */
	{ BPF_LDX | BPF_MEM | BPF_W, 1, 6, offsetof(struct xdp_md, data), 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 2, 6, offsetof(struct xdp_md, data_end),
	  0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 3, 1, 0, 0 },
	{ BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, 16 },
	{ BPF_JMP | BPF_JGT | BPF_X, 3, 2, 9, 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 3, 1, 8, 0 },
	{ BPF_STX | BPF_MEM | BPF_W, 1, 3, 12, 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0 },
	{ BPF_STX | BPF_MEM | BPF_W, 1, 3, 8, 0 },
	{ BPF_LDX | BPF_MEM | BPF_W, 3, 1, 0, 0 },
	{ BPF_STX | BPF_MEM | BPF_W, 1, 3, 4, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 },
	{ BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, TAG_BYTES },
	{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_xdp_adjust_head },
	{ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS },
	{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
};

_Static_assert(sizeof(tag_in) + sizeof(tag_out) <=
		       XDP_TAG_INSNS * sizeof(struct bpf_insn),
	       "both are counted");

static uint32_t add_insns(const struct xdp_port *port, struct bpf_insn *to,
			  const struct bpf_insn *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		to[i] = from[i];
		if (to[i].src_reg == KFUNC_CALL &&
		    to[i].code == (BPF_JMP | BPF_CALL))
			to[i].imm = (int32_t)port->lease.kfuncs[XDP_KFUNC_TAG];
	}
	return n;
}

uint32_t mri_xdp_add_tag_in(const struct xdp_port *port, struct bpf_insn *insns)
{
	return port->lease.kfuncs[XDP_KFUNC_TAG] == 0 ?
		       0 :
		       add_insns(port, insns, tag_in,
				 sizeof(tag_in) / sizeof(tag_in[0]));
}

size_t mri_xdp_add_tag_out(const struct xdp_port *port, struct bpf_insn *insns,
			   size_t n_filter, size_t n)
{
	size_t i = sizeof(tag_in) / sizeof(tag_in[0]);

	if (port->lease.kfuncs[XDP_KFUNC_TAG] == 0)
		return n;
	while (i < n_filter && insns[i].code != (BPF_JMP | BPF_EXIT))
		i++;
	if (i >= n_filter)
		return n; /* no filter, or it matches all frames */
	insns[i] = (struct bpf_insn){ .code = BPF_JMP | BPF_JA,
				      .off = (int16_t)(n - i - 1) };
	return n + add_insns(port, insns + n, tag_out,
			     sizeof(tag_out) / sizeof(tag_out[0]));
}

/* Whether the kernel may hold a frame's tag outside the frame. */
static bool may_hold_tags(const struct xdp_port *port)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

	/* Its peer decides, perhaps in another network namespace. */
	if (strcmp(port->dev.driver, "veth") == 0)
		return true;
	return mri_xdp_netdev_ethtool(port->dev.name, &flags) == 0 &&
	       flags.data & ETH_FLAG_RXVLAN;
}

const char *mri_xdp_unbound_cause(const struct xdp_port *port)
{
	return port->prog.dispatched != NULL ? "libxdp's dispatcher" :
	       !port->lease.is_native        ? "generic attach" :
	       port->prog.unbound_why[0]     ? port->prog.unbound_why :
					       "driver or kernel";
}

bool mri_xdp_loses_tags(const struct xdp_port *port, char *ret_why,
			size_t n_bytes)
{
	/* We cannot tell what a program of others does. */
	if (port->lease.kfuncs[XDP_KFUNC_TAG] != 0 ||
	    port->prog.skeleton == NULL || !may_hold_tags(port))
		return false;
	snprintf(ret_why, n_bytes,
		 "VLAN tags outside the frame are lost (%s): 'ethtool -K %s' "
		 "keeps them inside",
		 mri_xdp_unbound_cause(port),
		 strcmp(port->dev.driver, "veth") == 0 ? "PEER txvlan off" :
							 "IFNAME rxvlan off");
	return true;
}
