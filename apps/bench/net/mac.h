/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's MAC address in one word, written by one thread and read by others.
 */
#ifndef NET_MAC_H
#define NET_MAC_H

#include <string.h>

#include <millrace/millrace.h>

/* The first 6 bytes are the address; 0: the port has none. */
static inline uint64_t mac_of_port(struct mr_port *port)
{
	struct mr_port_info info = { .size = sizeof(info) };
	uint64_t mac = 0;

	mr_port_info(port, &info);
	if (info.has_mac)
		memcpy(&mac, info.mac, sizeof(info.mac));
	return mac;
}

static inline uint64_t mac_get(const uint64_t *mac)
{
	return __atomic_load_n(mac, __ATOMIC_RELAXED);
}

/* Call it after MR_PORT_EVENT_MAC. Sets mac, and prints it with the text what.
 */
void mac_follow(struct mr_port *port, const char *program, const char *what,
		uint64_t *mac);

#endif
