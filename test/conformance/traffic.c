/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "traffic.h"

static uint8_t byte_at(uint32_t id, uint32_t place)
{
	/* Neighbours differ, as do places a page or a cache line apart. */
	return (uint8_t)(id * 31 + place * 7 + (place >> 6) * 13 +
			 (place >> 12) * 29);
}

void traffic_make(uint8_t *bytes, uint32_t n_bytes, uint32_t id)
{
	const uint8_t header[TRAFFIC_MIN_BYTES] = {
		0x02,
		0,
		0,
		0,
		0,
		0x01, /* destination; 02: locally administered */
		0x02,
		0,
		(uint8_t)(id >> 24),
		(uint8_t)(id >> 16),
		(uint8_t)(id >> 8),
		(uint8_t)id, /* source */
		TRAFFIC_ETHER_TYPE >> 8,
		TRAFFIC_ETHER_TYPE & 0xff,
	};

	memcpy(bytes, header, sizeof(header));
	for (uint32_t i = sizeof(header); i < n_bytes; i++)
		bytes[i] = byte_at(id, i);
}

uint32_t traffic_tag(uint8_t *bytes, uint32_t n_bytes, uint16_t tci)
{
	const uint8_t tag[] = { 0x81, 0, (uint8_t)(tci >> 8), (uint8_t)tci };

	memmove(bytes + 12 + sizeof(tag), bytes + 12, n_bytes - 12);
	memcpy(bytes + 12, tag, sizeof(tag));
	return n_bytes + sizeof(tag);
}

bool traffic_is_ours(const uint8_t *bytes, uint32_t n_bytes)
{
	static const uint8_t to_and_from[] = {
		0x02, 0, 0, 0, 0, 0x01, 0x02, 0
	};

	return n_bytes >= TRAFFIC_MIN_BYTES &&
	       memcmp(bytes, to_and_from, sizeof(to_and_from)) == 0;
}

int64_t traffic_check(const uint8_t *bytes, uint32_t n_bytes)
{
	uint8_t header[TRAFFIC_MIN_BYTES];
	uint32_t id;

	if (!traffic_is_ours(bytes, n_bytes))
		return -1;
	id = (uint32_t)bytes[8] << 24 | (uint32_t)bytes[9] << 16 |
	     (uint32_t)bytes[10] << 8 | bytes[11];
	traffic_make(header, sizeof(header), id);
	if (memcmp(bytes, header, sizeof(header)) != 0)
		return -1;
	for (uint32_t i = sizeof(header); i < n_bytes; i++)
		if (bytes[i] != byte_at(id, i))
			return -1;
	return id;
}

uint32_t traffic_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}
