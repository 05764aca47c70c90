/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a path: make, read, change, send and drop them. */
#include "frame.h"

#include "support/capture.h"

void nat_drop_packet(struct nat_path *path, struct nat_packet *packet,
		     enum nat_drop drop)
{
	capture_drop(path->recorder, packet->from, packet->frames, packet->n,
		     nat_drop_names[drop]);
	mr_frame_free_bulk(path->cache, packet->frames, packet->n);
	counter_add(&path->stats.drops[drop], 1);
}

uint32_t nat_room(const struct nat_path *path)
{
	return path->page_bytes - path->headroom_bytes - MR_VLAN_BYTES -
	       MR_ETH_BYTES;
}

bool nat_make(struct nat_path *path, struct nat_packet *packet,
	      uint32_t n_bytes)
{
	const uint64_t addr = mr_frag_alloc(path->cache, path->page_bytes);
	const uint32_t n_frame = MR_ETH_BYTES + n_bytes;

	if (addr == MR_ADDR_NONE)
		return false;
	memset(packet, 0, sizeof(*packet));
	packet->n = 1;
	packet->l2_bytes = MR_ETH_BYTES;
	packet->frames[0] = (struct mr_frame){
		.addr = addr + path->headroom_bytes + MR_VLAN_BYTES,
		.len = n_frame < MR_ETH_MIN_BYTES ? MR_ETH_MIN_BYTES : n_frame
	};
	memset(mr_frame_data(path->base, packet->frames), 0, MR_ETH_MIN_BYTES);
	counter_add(&path->stats.made, 1);
	return true;
}

void *nat_put_ip(struct nat_path *path, const struct nat_packet *packet,
		 const struct mr_ipv4 *header)
{
	struct mr_ipv4 *ip =
		(void *)(mr_frame_data(path->base, packet->frames) +
			 packet->l2_bytes);

	*ip = *header;
	ip->version_ihl = 0x45;
	ip->ttl = NAT_OUR_TTL;
	mr_csum_write_ipv4(ip);
	return ip + 1;
}

/* Move k bytes of the other entries to the first one. */
static bool move_up(struct nat_path *path, struct nat_packet *packet,
		    uint32_t k)
{
	struct mr_frame *frames = packet->frames;
	const uint32_t at = frames[0].len;

	if (mr_frame_put(path->cache, &frames[0], k) < 0)
		return false;
	mr_frame_copy_bytes(path->base, frames, at + k,
			    mr_frame_data(path->base, &frames[0]) + at, k);
	while (k > 0) {
		const uint32_t n = k < frames[1].len ? k : frames[1].len;

		k -= n;
		if (mr_frame_pull(&frames[1], n) == 0)
			continue;
		/* Consumed: an entry has at least one byte. */
		frames[0].flags = (frames[0].flags & ~(uint32_t)MR_FRAME_MORE) |
				  (frames[1].flags & MR_FRAME_MORE);
		mr_frame_free_bulk(path->cache, &frames[1], 1);
		packet->n--;
		memmove(&frames[1], &frames[2],
			(packet->n - 1) * sizeof(*frames));
	}
	return true;
}

bool nat_pull_up(struct nat_path *path, struct nat_packet *packet,
		 uint32_t n_bytes)
{
	const uint32_t n_first = packet->frames[0].len;

	if (n_first >= n_bytes)
		return true;
	return mr_frame_n_bytes(packet->frames, packet->n) >= n_bytes &&
	       move_up(path, packet, n_bytes - n_first);
}

uint16_t nat_sum_of(const struct nat_path *path,
		    const struct nat_packet *packet, uint32_t offset,
		    uint32_t n_bytes)
{
	return mr_csum_fold(
		mr_csum_frame(path->base, packet->frames, offset, n_bytes));
}

void nat_trim(struct nat_path *path, struct nat_packet *packet)
{
	const uint32_t n_packet = packet->l2_bytes + packet->total_bytes;
	const uint32_t n_keep =
		n_packet < MR_ETH_MIN_BYTES ? MR_ETH_MIN_BYTES : n_packet;
	uint64_t n_frame = mr_frame_n_bytes(packet->frames, packet->n);

	while (n_frame > n_keep) {
		struct mr_frame *last = &packet->frames[packet->n - 1];

		if (n_frame - n_keep < last->len) {
			last->len -= (uint32_t)(n_frame - n_keep);
			return;
		}
		n_frame -= last->len;
		mr_frame_free_bulk(path->cache, last, 1);
		packet->n--;
		packet->frames[packet->n - 1].flags &= ~(uint32_t)MR_FRAME_MORE;
	}
}

static void put_into_outbox(struct nat_path *path, struct nat_packet *packet,
			    enum nat_side to, struct nat_outbox *outbox,
			    uint16_t ether_type, uint64_t mac)
{
	const struct nat_link *link = &path->links[to];
	struct mr_frame *first = &packet->frames[0];

	if (outbox->n + packet->n > NAT_OUTBOX_MAX) {
		nat_drop_packet(path, packet, NAT_DROP_TX_FULL);
		return;
	}
	if (link->l2_bytes < packet->l2_bytes) {
		first->addr += packet->l2_bytes - link->l2_bytes;
		first->len -= packet->l2_bytes - link->l2_bytes;
	} else if (mr_frame_push(path->cache, first,
				 link->l2_bytes - packet->l2_bytes) < 0) {
		nat_drop_packet(path, packet, NAT_DROP_NO_PAGE);
		return;
	}
	nat_write_link(mr_frame_data(path->base, first), link, ether_type, mac);
	memcpy(&outbox->frames[outbox->n], packet->frames,
	       packet->n * sizeof(*packet->frames));
	outbox->n += packet->n;
	counter_add(&path->stats.sent[to], 1);
}

void nat_send_as(struct nat_path *path, struct nat_packet *packet,
		 enum nat_side to, uint16_t ether_type, uint64_t mac)
{
	put_into_outbox(path, packet, to, &path->outboxes[to], ether_type, mac);
}

void nat_send(struct nat_path *path, struct nat_packet *packet,
	      enum nat_side to, uint64_t mac)
{
	nat_send_as(path, packet, to, MR_ETHER_IPV4, mac);
}

void nat_send_looped(struct nat_path *path, struct nat_packet *packet)
{
	packet->frames[0].flags |= NAT_FRAME_LOOPED;
	put_into_outbox(path, packet, NAT_OUTSIDE, &path->loop, MR_ETHER_IPV4,
			path->links[NAT_OUTSIDE].mac);
}
