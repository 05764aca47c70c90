/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of what a path has, for another process: hand_over.h. */
#include <stdlib.h>
#include <string.h>

#include "fragment.h"
#include "hand_over.h"

void *nat_records_add(struct nat_records *r)
{
	uint8_t *at;

	if (r->n == r->n_max) {
		const uint32_t n_max = 2 * r->n_max + 64;
		void *more = realloc(r->records, n_max * r->record_bytes);

		r->is_broken |= more == NULL;
		if (more == NULL)
			return NULL;
		r->records = more;
		r->n_max = n_max;
	}
	at = (uint8_t *)r->records + r->n++ * r->record_bytes;
	return memset(at, 0, r->record_bytes);
}

/* A fragment that will be seen again. */
static void unsee(const struct nat_packet *packet, struct nat_path_parts *parts)
{
	const struct nat_datagram_key key = nat_datagram_key_of(packet);
	const uint32_t n = packet->total_bytes - packet->ip_bytes;
	const uint32_t first = packet->fragment_offset / 8;
	struct nat_datagram_image *images = parts->datagrams.records;

	for (uint32_t i = 0; i < parts->datagrams.n; i++)
		for (uint32_t unit = first;
		     memcmp(&images[i].key, &key, sizeof(key)) == 0 &&
		     unit < first + (n + 7) / 8;
		     unit++)
			images[i].seen[unit / 64] &=
				~(UINT64_C(1) << (unit & 63));
}

void nat_packet_copy(const struct nat_packet *packet,
		     struct nat_path_parts *parts)
{
	parts->n_received[packet->from]++;
	if (packet->fragment_offset != 0 || packet->has_more)
		unsee(packet, parts);
	for (uint32_t i = 0; i < packet->n; i++) {
		struct mr_frame *frame =
			nat_records_add(&parts->frames[packet->from]);

		if (frame == NULL)
			return;
		*frame = packet->frames[i];
		if (i == 0 && packet->is_looped)
			frame->flags |= NAT_FRAME_LOOPED;
	}
}

void nat_fifo_copy(const struct nat_hold *hold, const struct nat_fifo *fifo,
		   struct nat_path_parts *parts)
{
	const struct nat_packet *packet;
	uint32_t at = NAT_HELD_NONE;

	while ((packet = nat_fifo_next(hold, fifo, &at)) != NULL)
		nat_packet_copy(packet, parts);
}
