/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the transmit half have in common. */
#ifndef TX_SIDE_H
#define TX_SIDE_H

#include <string.h>

#include "rings.h"

enum { TX = 1 };

static inline uint32_t transmit(const struct mr_frame *frames, uint32_t n)
{
	return mr_tx_burst(&fake.txq->base, fake.cache, frames, n);
}

/* What the device reads of a chain, in one piece; its bytes. */
static inline uint32_t read_chain(const struct fake_chain *chain, uint8_t *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < chain->n; i++) {
		assert_false(chain->parts[i].is_written);
		memcpy(out + n, chain->parts[i].bytes, chain->parts[i].len);
		n += chain->parts[i].len;
	}
	return n;
}

/* The device takes the next frame; its header is returned. */
static inline struct virtio_header take_frame(uint32_t n_bytes, uint8_t seed,
					      struct fake_chain *ret)
{
	const uint32_t n_header = fake.port->header_bytes;
	struct virtio_header header = { 0 };
	uint8_t bytes[70000];

	*ret = fake_take(TX);
	assert_true(ret->n > 0);
	assert_int_equal(read_chain(ret, bytes), n_header + n_bytes);
	memcpy(&header, bytes, n_header);
	for (uint32_t i = 0; i < n_bytes; i++)
		assert_int_equal(bytes[n_header + i], (uint8_t)(seed + i));
	return header;
}

static inline void assert_is_zero(const struct virtio_header *header)
{
	static const struct virtio_header zero;

	assert_memory_equal(header, &zero, sizeof(zero));
}

static inline void use(const struct fake_chain *chain)
{
	fake_use(TX, chain->id, 0, chain->n);
}

/* A frame of n entries of 60 bytes, one pattern over all of them. */
static inline void make_long(struct mr_frame *frames, uint32_t n, uint8_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = fake_frame(128, 60, (uint8_t)(seed + 60 * i));
		frames[i].flags = i + 1 < n ? MR_FRAME_MORE : 0;
	}
}

/* Of the next chain, without a look at the data. */
static inline struct virtio_header next_header(struct fake_chain *ret)
{
	struct virtio_header header = { 0 };
	uint8_t bytes[70000];

	*ret = fake_take(TX);
	read_chain(ret, bytes);
	memcpy(&header, bytes, fake.port->header_bytes);
	return header;
}

#endif
