/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer as files, for other fixtures that read and write captures. */
#ifndef CONFORMANCE_FIXTURE_PCAP_H
#define CONFORMANCE_FIXTURE_PCAP_H

#include "harness.h"

/* The same files, read and written by DPDK. */
void fixture_pcap_setup_dpdk(struct harness *harness);

void fixture_pcap_teardown(struct harness *harness);
void fixture_pcap_opened(struct harness *harness);
uint32_t fixture_pcap_collect(struct harness *harness, uint8_t *bytes,
			      uint32_t room);

#endif
