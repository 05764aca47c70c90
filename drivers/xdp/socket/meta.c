/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metadata of received frames, with the option "meta".
 *
 *     kfuncs --> XDP program --> struct xdp_rx_meta --> mr_rx_burst_meta()
 *
 * The record is in front of the frame, and the kernel copies it to the socket's
 * buffer (data_meta). Only mr_rx_burst_meta() reads it.
 *
 * Source: linux/Documentation/networking/xdp-rx-metadata.rst.
 */
#include <stdio.h>
#include <string.h>

#include <millrace/experimental/flow_way.h>

#include "socket/queue.h"
#include "xdp.h"

_Static_assert((int)XDP_RX_META_HASH == (int)MR_META_RSS_HASH << 1 &&
		       (int)XDP_RX_META_TIME == (int)MR_META_RX_TIME << 1,
	       "one shift sets both");

/*
 * Read and erase the record that ends at this address; the next frame in this
 * buffer may have none. False: there is none.
 */
static inline bool take_record(uint32_t magic, uint8_t *end,
			       struct mr_meta *ret_meta)
{
	/* Bit 0 is 0 here, and 1 in a ticket. */
	const uint32_t mask = UINT32_MAX << XDP_RX_META_MAGIC_SHIFT | 1;
	const uint32_t known = MR_HASH_IPV4 | MR_HASH_IPV6 | MR_HASH_L4 |
			       MR_HASH_TCP | MR_HASH_UDP;
	struct xdp_rx_meta record;

	memcpy(&record, end - sizeof(record), sizeof(record));
	if ((record.word & mask) != magic)
		return false;
	memset(end - sizeof(record), 0, sizeof(record.word));
	ret_meta->valid =
		record.word >> 1 & (MR_META_RSS_HASH | MR_META_RX_TIME);
	ret_meta->rss_hash = record.hash;
	ret_meta->hash_type = record.word >> XDP_RX_META_TYPE_SHIFT & known;
	ret_meta->rx_ns = record.ns;
	ret_meta->rx_clock = MR_CLOCK_DEVICE;
	return true;
}

void mri_xdp_read_meta(const struct xdp_rxq *rxq, const struct mr_frame *frames,
		       struct mr_meta *ret_meta, uint32_t n)
{
	/* Read once: bytes may be anything, the queue among it. */
	const uint32_t magic = rxq->meta_magic;
	void *base = rxq->port->base.base;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *data = mr_frame_data(base, &frames[i]);

		ret_meta[i].valid = 0;
		if (magic == 0 ||
		    (i > 0 && frames[i - 1].flags & MR_FRAME_MORE))
			continue;
		/* Before the frame, or before its ticket. */
		if (!take_record(magic, data, &ret_meta[i]))
			(void)take_record(magic,
					  data - sizeof(struct mr_flow_ticket),
					  &ret_meta[i]);
	}
}

uint32_t mri_xdp_meta_offloads(const struct xdp_port *port)
{
	const uint32_t *kfuncs = port->lease.kfuncs;

	/* A veth has times only for frames that a NIC received. */
	return (kfuncs[XDP_KFUNC_HASH] != 0 ? MR_OFFLOAD_RSS_HASH : 0) |
	       (kfuncs[XDP_KFUNC_TIME] != 0 && !port->is_software ?
			MR_OFFLOAD_TIME_RX :
			0);
}

bool mri_xdp_lacks_meta(const struct xdp_port *port, char *ret_why,
			size_t n_bytes)
{
	const uint32_t *kfuncs = port->lease.kfuncs;
	const bool has_hash = kfuncs[XDP_KFUNC_HASH] != 0;
	const bool has_time = kfuncs[XDP_KFUNC_TIME] != 0;

	if (!port->options.meta || (has_hash && has_time))
		return false;
	snprintf(ret_why, n_bytes, "no metadata: %s (%s)",
		 has_time ? "hash" :
		 has_hash ? "receive time" :
			    "hash, receive time",
		 port->options.map != NULL  ? "'map'" :
		 port->options.prog != NULL ? "'prog'" :
					      mri_xdp_unbound_cause(port));
	return true;
}
