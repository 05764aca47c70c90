/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP and UDP packets for tests of offloads; verified with lib/net. */
#ifndef SUPPORT_PACKETS_H
#define SUPPORT_PACKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <millrace/net.h>

#include "packet.h"

struct packet_kind {
	bool is_v6, is_udp;
	uint32_t n_payload;
	uint16_t from_port, to_port;
};

static inline uint32_t packet_l4(const struct packet_kind *kind)
{
	return kind->is_v6 ? 54 : 34;
}

static inline uint32_t packet_headers(const struct packet_kind *kind)
{
	return packet_l4(kind) + (kind->is_udp ? 8 : 20);
}

/* Whether the checksums of layers 3 and 4 are right, and the lengths. */
static inline bool packet_is_right(const uint8_t *bytes, uint32_t n_bytes)
{
	struct mr_net_view view;
	uint64_t sum;

	if (mr_net_parse(bytes, n_bytes, n_bytes, &view) < 0 ||
	    view.l4_bytes == 0 || view.l4_bytes + view.l4_len_bytes != n_bytes)
		return false;
	if (view.ether_type == 0x0800 &&
	    mr_csum_fold(mr_csum_add(bytes + 14, 20, 0)) != 0xffff)
		return false;
	sum = mr_csum_pseudo(bytes, &view);
	return mr_csum_fold(mr_csum_add(bytes + view.l4_bytes,
					view.l4_len_bytes, sum)) == 0xffff;
}

/* To the address that models and the conformance suite have, with these ports.
 * Returns its bytes. */
static inline uint32_t packet_of(uint8_t *bytes, const struct packet_kind *kind,
				 bool is_partial)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	const uint32_t l4 = packet_l4(kind);
	const uint32_t n_bytes =
		packet_make(bytes, mac, kind->is_v6 ? 6 : 4,
			    kind->is_udp ? 17 : 6, kind->n_payload);

	packet_put16(bytes + l4, kind->from_port);
	packet_put16(bytes + l4 + 2, kind->to_port);
	packet_leave_partial(bytes, n_bytes, true);
	if (!is_partial)
		packet_put16(
			bytes + l4 + (kind->is_udp ? 6 : 16),
			(uint16_t)~packet_sum(bytes + l4, n_bytes - l4, 0));
	return n_bytes;
}

#endif
