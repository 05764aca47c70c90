/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICES_ROUTE_H
#define DEVICES_ROUTE_H

#include "machine.h"

/*
 * Whether the machine's default route goes by this interface: by itself, or by
 * a bridge, bond or VLAN on top of it. "" has none.
 */
bool route_is_default(const struct machine *machine, const char *interface);

#endif
