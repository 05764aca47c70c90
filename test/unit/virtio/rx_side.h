/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the receive half have in common. */
#ifndef RX_SIDE_H
#define RX_SIDE_H

#include <string.h>

#include "rings.h"

enum { RX = 0, MAX_DATA = 4096 - 128 };

static inline uint32_t receive(struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(&fake.rxq->base, fake.cache, frames, n);
}

static inline void assert_bytes(const struct mr_frame *frame, uint8_t seed)
{
	const uint8_t *bytes = mr_frame_data(fake.harness.base, frame);

	for (uint32_t i = 0; i < frame->len; i++)
		assert_int_equal(bytes[i], (uint8_t)(seed + i));
}

/* The device fills a buffer with a plain frame and uses it at once. */
static inline uint32_t deliver(uint32_t n_bytes, uint8_t seed)
{
	const struct fake_chain chain = fake_receive(n_bytes, seed, NULL);

	fake_use(RX, chain.id, n_bytes + fake.port->header_bytes, 1);
	return chain.id;
}

/* A frame of n buffers, the last with n_last bytes; its place in ids[]. */
static inline void deliver_merged(uint32_t n, uint32_t n_last, uint32_t n_said,
				  uint32_t *ids)
{
	const struct virtio_header header = { .n_buffers = (uint16_t)n_said };

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t n_bytes = i + 1 < n ? MAX_DATA : n_last;
		struct fake_chain chain;
		uint8_t *bytes;

		if (i == 0) {
			chain = fake_receive(n_bytes, 0, &header);
		} else {
			chain = fake_take(RX);
			bytes = chain.parts[0].bytes;
			for (uint32_t k = 0; k < n_bytes; k++)
				bytes[k] = (uint8_t)(i + k);
		}
		ids[i] = chain.id;
	}
}

static inline void use_merged(const uint32_t *ids, uint32_t n, uint32_t n_last)
{
	for (uint32_t i = 0; i < n; i++)
		fake_use(RX, ids[i],
			 (i + 1 < n ? MAX_DATA : n_last) + (i == 0 ? 12 : 0),
			 1);
}

#endif
