/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "dpdk_options.h"

enum {
	DEFAULT_RING_ENTRIES = 1024,
	MAX_QUEUES = 64,
};

static const char *const switch_words[] = { "auto", "on", "off", NULL };

int mri_dpdk_read_options(const struct mr_spec *spec,
			  struct dpdk_options *ret_options,
			  struct mr_reason *reason)
{
	static const char *const vlan_words[] = { "keep", "strip", NULL };
	struct dpdk_options o = { 0 };
	uint32_t vlan;
	int err;

	if (mr_spec_device(spec)[0] == '\0')
		return mr_fail(reason, -EINVAL,
			       "dpdk: no device; give its name in DPDK, such "
			       "as dpdk:0000:03:00.0 or dpdk:net_tap0");
	if ((err = mr_spec_get_u32(spec, "queues", 1, 1, MAX_QUEUES,
				   &o.n_queues, reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "ring", DEFAULT_RING_ENTRIES, 64,
				   32768, &o.ring_entries, reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "mtu", 0, MR_MTU_MIN_BYTES, 65535,
				   &o.mtu_bytes, reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "sg", switch_words, &o.sg, reason)) <
		    0 ||
	    (err = mr_spec_get_word(spec, "csum", switch_words, &o.csum,
				    reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "irq", switch_words, &o.irq,
				    reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "vlan", vlan_words, &vlan, reason)) <
		    0 ||
	    (err = mr_spec_get_bool(spec, "force", &o.force, reason)) < 0 ||
	    (err = mr_spec_get_bool(spec, "promisc", &o.promisc, reason)) < 0)
		return err;
	o.strip_vlan = vlan == 1;
	o.eal = mr_spec_get(spec, "eal");
	*ret_options = o;
	return 0;
}

uint32_t mri_dpdk_need(const struct dpdk_options *options)
{
	return (2 * options->ring_entries + MR_BURST_MAX) * options->n_queues;
}
