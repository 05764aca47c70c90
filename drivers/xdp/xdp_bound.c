/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that are loaded for one device. Only they may call the kernel's
 * functions (kfuncs) that tell what the device knows of a frame; drivers have
 * them or not.
 *
 * In the object, a function of our own stands for the kernel's, so that it also
 * loads for no device: on older kernels, in generic mode, under libxdp's
 * dispatcher, and for BPF_PROG_RUN. libbpf 1.1 cannot leave a kfunc out, so we
 * take the program that it has loaded, and load it again with other calls
 * (mri_xdp_filter_load()).
 *
 * Source: linux/Documentation/networking/xdp-rx-metadata.rst.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "xdp.h"

enum {
	KFUNC_CALL = 2,      /* BPF_PSEUDO_KFUNC_CALL */
	TELLS_TAGS = 1 << 2, /* NETDEV_XDP_RX_METADATA_VLAN_TAG, Linux 6.8 */
};

uint32_t mri_xdp_vlan_kfunc(const struct xdp_port *port)
{
	struct btf *kernel;
	int32_t id;

	if (!(mri_xdp_rx_metadata(port->dev.ifindex) & TELLS_TAGS))
		return 0;
	kernel = btf__load_vmlinux_btf();
	id = btf__find_by_name_kind(kernel, "bpf_xdp_metadata_rx_vlan_tag",
				    BTF_KIND_FUNC);
	btf__free(kernel);
	return id > 0 ? (uint32_t)id : 0;
}

size_t mri_xdp_bind_calls(const struct xdp_port *port, struct bpf_insn *insns,
			  size_t n)
{
	size_t n_left = n;

	for (size_t i = 0; i < n && port->prog.vlan_kfunc != 0; i++) {
		/* Only one function is not inline. */
		if (insns[i].code != (BPF_JMP | BPF_CALL) ||
		    insns[i].src_reg != BPF_PSEUDO_CALL)
			continue;
		/* It is the last, and must go: nothing leads there now. */
		n_left = i + 1 + (size_t)insns[i].imm;
		insns[i].src_reg = KFUNC_CALL;
		insns[i].imm = (int32_t)port->prog.vlan_kfunc;
	}
	return n_left;
}

/* Whether the kernel may keep the tag of a frame outside of it. */
static bool may_hold_tags(const struct xdp_port *port)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

	/* Its peer decides, perhaps in another network namespace. */
	if (strcmp(port->dev.driver, "veth") == 0)
		return true;
	return mri_xdp_netdev_ethtool(port->dev.name, &flags) == 0 &&
	       flags.data & ETH_FLAG_RXVLAN;
}

bool mri_xdp_loses_tags(const struct xdp_port *port, char *ret_why,
			size_t n_bytes)
{
	/* A program of others may know better. */
	if (port->prog.vlan_kfunc != 0 || port->prog.skeleton == NULL ||
	    !may_hold_tags(port))
		return false;
	snprintf(ret_why, n_bytes,
		 "VLAN tags outside the frame are lost (%s): 'ethtool -K %s' "
		 "keeps them inside",
		 port->prog.dispatched != NULL ? "libxdp's dispatcher" :
		 !port->prog.is_native         ? "generic attach" :
						 "driver or kernel",
		 strcmp(port->dev.driver, "veth") == 0 ? "PEER txvlan off" :
							 "IFNAME rxvlan off");
	return true;
}
