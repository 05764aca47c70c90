/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stamp: the last 18 bytes of a frame, in network order.
 *
 *     magic 4 | lane 2 | sequence number 6 | due 6
 *
 * A lane has its own sequence numbers: a stream of one sender, at stream *
 * n_senders + sender. due is in ns of the run's clock; 48 bits are 78 hours. A
 * 60-byte frame of UDP over IPv4 has room for 18 bytes.
 *
 * If another program receives, it knows neither the clock nor which run it
 * receives: then the upper 2 bytes of due are the run's number.
 */
#ifndef STREAM_STAMP_H
#define STREAM_STAMP_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { STAMP_BYTES = 18, STAMP_LANES = 1 << 16 };

#define STAMP_MASK ((UINT64_C(1) << 48) - 1) /* of sequence number and due */

struct stamp {
	uint32_t lane;
	uint64_t seq, due_ns;
};

/* The value of due in a stamp; run 0: this program receives. */
static inline uint64_t stamp_due(uint64_t due_ns, uint32_t run)
{
	return run == 0 ? due_ns : (uint64_t)run << 32 | (uint32_t)due_ns;
}

static inline uint32_t stamp_run(uint64_t due)
{
	return (uint32_t)(due >> 32);
}

/* Read the stamp that ends at frame_end; false: it is not of this run. */
static inline bool stamp_read(const uint8_t *frame_end, uint32_t magic,
			      struct stamp *ret)
{
	uint32_t word;
	uint16_t half;
	uint64_t seq, due;

	memcpy(&word, frame_end - STAMP_BYTES, sizeof(word));
	if (be32toh(word) != magic)
		return false;
	memcpy(&half, frame_end - 14, sizeof(half));
	/* Shift out the bytes before and after it. */
	memcpy(&seq, frame_end - 12, sizeof(seq));
	memcpy(&due, frame_end - 8, sizeof(due));
	ret->lane = be16toh(half);
	ret->seq = be64toh(seq) >> 16;
	ret->due_ns = be64toh(due) & STAMP_MASK;
	return true;
}

/* Write sequence number and due; magic and lane are in the template. */
static inline void stamp_write_numbers(uint8_t *frame_end, uint64_t seq,
				       uint64_t due_ns)
{
	const uint64_t both = htobe64(seq << 16 | (due_ns & STAMP_MASK) >> 32);
	const uint32_t rest = htobe32((uint32_t)due_ns);

	memcpy(frame_end - 12, &both, sizeof(both));
	memcpy(frame_end - 4, &rest, sizeof(rest));
}

/* Write all of it; the caller updates a checksum that covers it. */
static inline void stamp_write(uint8_t *frame_end, uint32_t magic,
			       uint32_t lane, uint64_t seq, uint64_t due_ns)
{
	const uint32_t word = htobe32(magic);
	const uint16_t half = htobe16((uint16_t)lane);

	memcpy(frame_end - STAMP_BYTES, &word, sizeof(word));
	memcpy(frame_end - 14, &half, sizeof(half));
	stamp_write_numbers(frame_end, seq, due_ns);
}

/* What both add to a sum of 16-bit words, at an even offset. */
static inline uint32_t stamp_sum(uint64_t seq, uint64_t due_ns)
{
	return (uint32_t)((seq & 0xffff) + (seq >> 16 & 0xffff) +
			  (seq >> 32 & 0xffff) + (due_ns & 0xffff) +
			  (due_ns >> 16 & 0xffff) + (due_ns >> 32 & 0xffff));
}

#endif
