/* SPDX-License-Identifier: BSD-3-Clause */
/* The far side in files, for who else reads and writes captures. */
#ifndef CONFORMANCE_RIG_PCAP_H
#define CONFORMANCE_RIG_PCAP_H

#include "bed.h"

/* The same files, read and written by DPDK. */
void rig_pcap_setup_dpdk(struct bed *bed);

void rig_pcap_teardown(struct bed *bed);
void rig_pcap_opened(struct bed *bed);
uint32_t rig_pcap_collect(struct bed *bed, uint8_t *bytes, uint32_t room);

#endif
