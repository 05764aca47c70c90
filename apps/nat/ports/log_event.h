/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for the log: ports/ and mapping/ emit them, control/log.c prints
 * them. */
#ifndef NAT_LOG_EVENT_H
#define NAT_LOG_EVENT_H

#include <stdint.h>

/* addr, port: network order. */
struct nat_log_event {
	enum {
		NAT_LOG_BLOCK_BEGIN,
		NAT_LOG_BLOCK_END,
		NAT_LOG_MAPPING_BEGIN,
		NAT_LOG_MAPPING_END,
		NAT_LOG_NO_PORT,
		NAT_LOG_QUOTA,
	} what;
	uint32_t now_s;
	uint8_t proto;
	uint32_t inside_addr, outside_addr;
	uint16_t inside_port, outside_port, n_ports;
};
typedef void nat_log_fn(void *opaque, const struct nat_log_event *event);

#endif
