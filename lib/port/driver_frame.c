/* SPDX-License-Identifier: BSD-3-Clause */
/* For drivers: copies of frames that a device cannot send as they are. */
#include <millrace/driver.h>

uint32_t mr_port_alloc_frame(const struct mr_port *port, struct mr_cache *cache,
			     uint64_t n_bytes, uint64_t n_reach_bytes,
			     struct mr_frame *ret_frames)
{
	const uint32_t room = mr_port_room_bytes(port);
	const uint32_t n = (uint32_t)((n_bytes + room - 1) / room);
	uint64_t addrs[MR_MAX_SEGS];
	const uint32_t n_got =
		mr_frag_alloc_bulk(cache, addrs, n, port->page_bytes);
	uint32_t n_near = 0;

	for (uint32_t i = 0; i < n_got; i++)
		n_near += addrs[i] < n_reach_bytes;
	if (n_near < n) {
		mr_frag_free_bulk(cache, addrs, n_got);
		return 0;
	}
	for (uint32_t i = 0; i < n; i++, n_bytes -= room)
		ret_frames[i] = (struct mr_frame){
			.addr = addrs[i] + port->headroom_bytes,
			.len = i + 1 < n ? room : (uint32_t)n_bytes,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
	return n;
}

uint32_t mr_port_copy_frame(const struct mr_port *port, struct mr_cache *cache,
			    const struct mr_frame *frames, uint32_t n,
			    uint64_t n_reach_bytes, struct mr_frame *ret_frames)
{
	const uint32_t n_out =
		mr_port_alloc_frame(port, cache, mr_frame_n_bytes(frames, n),
				    n_reach_bytes, ret_frames);
	uint32_t at = 0;

	for (uint32_t i = 0; i < n_out; at += ret_frames[i++].len)
		mr_frame_copy_bytes(port->base, frames, at,
				    mr_frame_data(port->base, &ret_frames[i]),
				    ret_frames[i].len);
	if (n_out > 0)
		ret_frames[0].flags |=
			frames[0].flags & ~(uint32_t)MR_FRAME_MORE;
	return n_out;
}
