/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices for people, and for programs. */
#ifndef DEVICES_SHOW_H
#define DEVICES_SHOW_H

#include "device.h"

enum show { SHOW_LIST, SHOW_INFO, SHOW_JSON };

/*
 * Print a table, all of one device, or JSON, version 1: mr-devices.schema.json.
 * False: stdout is full.
 */
bool show_devices(enum show how, const struct device *devices, uint32_t n);

#endif
