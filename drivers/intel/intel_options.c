/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a port: words, bounds and defaults. */
#include "intel.h"

enum {
	MIN_RING_ENTRIES = 64,
	MAX_RING_ENTRIES = 4096,
	DEFAULT_RING_ENTRIES = 512,
	DEFAULT_ITR_US = 20,
	MIN_MTU_BYTES = 68,
};

static const char *const access_words[] = { "auto", "iommufd", "group",
					    "noiommu", NULL };
static const char *const rss_words[] = { "auto", "symmetric", "keep", NULL };
static const char *const switch_words[] = { "auto", "on", "off", NULL };

int mri_intel_read_options(const struct mr_spec *spec, struct intel_options *o,
			   struct mr_reason *reason)
{
	uint32_t n_entries = 0;
	int err;

	if ((err = mr_spec_get_word(spec, "iommu", access_words, &o->access,
				    reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "queues", 1, 1, INTEL_MAX_QUEUES,
				   &o->n_queues, reason)) < 0 ||
	    (err = mr_spec_get_pow2(spec, "ring", DEFAULT_RING_ENTRIES,
				    MIN_RING_ENTRIES, MAX_RING_ENTRIES,
				    &n_entries, reason)) < 0 ||
	    (err = mr_spec_get_pow2(spec, "rx-ring", n_entries,
				    MIN_RING_ENTRIES, MAX_RING_ENTRIES,
				    &o->n_rx_entries, reason)) < 0 ||
	    (err = mr_spec_get_pow2(spec, "tx-ring", n_entries,
				    MIN_RING_ENTRIES, MAX_RING_ENTRIES,
				    &o->n_tx_entries, reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "mtu", INTEL_DEFAULT_MTU,
				   MIN_MTU_BYTES, UINT16_MAX, &o->mtu_bytes,
				   reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "sg", switch_words, &o->sg, reason)) <
		    0 ||
	    (err = mr_spec_get_word(spec, "rss", rss_words, &o->rss, reason)) <
		    0 ||
	    (err = mr_spec_get_word(spec, "head-wb", switch_words, &o->head_wb,
				    reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "itr", DEFAULT_ITR_US, 0,
				   INTEL_EITR_INTERVAL_MAX, &o->itr_us,
				   reason)) < 0 ||
	    (err = mr_spec_get_bool(spec, "promisc", &o->promisc, reason)) <
		    0 ||
	    (err = mr_spec_get_bool(spec, "allmulti", &o->allmulti, reason)) <
		    0 ||
	    (err = mr_spec_get_bool(spec, "vlan", &o->vlan, reason)) < 0)
		return err;
	return 0;
}
