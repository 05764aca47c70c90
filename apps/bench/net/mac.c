/* SPDX-License-Identifier: BSD-3-Clause */
/* Follow changes of a port's MAC address. */
#include "net/mac.h"
#include "support/text.h"

void mac_follow(struct mr_port *port, const char *program, const char *what,
		uint64_t *mac)
{
	struct mr_port_info info = { .size = sizeof(info) };
	uint64_t now = 0;

	mr_port_info(port, &info);
	memcpy(&now, info.mac, sizeof(info.mac));
	__atomic_store_n(mac, now, __ATOMIC_RELAXED);
	print_error("%s: %s: MAC address %02x:%02x:%02x:%02x:%02x:%02x: %s",
		    program, info.name, info.mac[0], info.mac[1], info.mac[2],
		    info.mac[3], info.mac[4], info.mac[5], what);
}
