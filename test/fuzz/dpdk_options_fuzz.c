/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of dpdk: ports out of any text: all within their bounds, or a reason
 * of one line.
 */
#include <string.h>

#include "dpdk_options.h"
#include "fuzz.h"
#include "port/spec.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("dpdk:net_null0,queues=2,ring=512,sg=on,csum=off,irq=auto"),
	SEED("dpdk:net_tap0\\,iface=x,vlan=strip,eal=--no-huge -m 64"),
	SEED("dpdk:0000:03:00.0,promisc,link-wait=0,mtu=9000"),
	{ NULL, 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct mr_reason why = { .text = "" };
	struct dpdk_options options;
	struct mr_spec spec;
	char text[512];

	if (n >= sizeof(text))
		return 0;
	memcpy(text, bytes, n);
	text[n] = '\0';
	if (mri_spec_parse(&spec, text, &why) < 0)
		return 0; /* spec_fuzz.c */
	if (mri_dpdk_read_options(&spec, &options, &why) < 0) {
		FUZZ_CHECK(why.text[0] != '\0' &&
			   strchr(why.text, '\n') == NULL);
		return 0;
	}
	FUZZ_CHECK(options.n_queues >= 1 && options.n_queues <= 64);
	FUZZ_CHECK(options.ring_entries >= 64 && options.ring_entries <= 32768);
	FUZZ_CHECK(options.mtu_bytes == 0 || options.mtu_bytes >= 68);
	FUZZ_CHECK(options.sg <= DPDK_OFF && options.csum <= DPDK_OFF &&
		   options.irq <= DPDK_OFF && options.link_wait_ms <= 60000);
	FUZZ_CHECK(mri_dpdk_need(&options) >= 2 * options.ring_entries);
	return 0;
}
