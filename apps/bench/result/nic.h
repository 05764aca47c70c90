/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port's device is: of its NIC, its driver and its slot, and how the
 * kernel has set it. Figures of two machines differ by these.
 */
#ifndef RESULT_NIC_H
#define RESULT_NIC_H

#include <stdint.h>

#include <jansson.h>

/*
 * device: the name of an interface of this network namespace, or a PCI
 * address. sysfs: "/sys". cores: those that use it. Returns an object; null if
 * there is no such device, as for ports in memory. Owner: the caller.
 */
json_t *nic_json(const char *sysfs, const char *device, const uint32_t *cores,
		 uint32_t n_cores);

#endif
