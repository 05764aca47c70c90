/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices for people, and for programs. Each returns false if stdout is full.
 */
#ifndef DEVICES_SHOW_H
#define DEVICES_SHOW_H

#include "device.h"

bool show_list(const struct device *devices, uint32_t n);
bool show_info(const struct machine *machine, const struct device *device);
/* JSON, version 1: mr-devices.schema.json. */
bool show_json(const struct device *devices, uint32_t n);

#endif
