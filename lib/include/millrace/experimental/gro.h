/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_GRO_H
#define MILLRACE_EXPERIMENTAL_GRO_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/frame.h>

MR_BEGIN_DECLS

/**
 * @file
 * Merging received segments in software, for ports that can send a long frame
 * at the cost of a short one: the inverse of MR_META_GSO.
 */

/**
 * Merge the segments of a burst that MR_META_GSO would restore byte for byte.
 * No data is copied: a merged frame is the first segment, followed by the
 * payload of the others, with metadata as mr_tx_burst_meta() expects it.
 *
 * Merges TCP and UDP over IPv4 without options, and over IPv6 without extension
 * headers. Segments that are merged have the same tags and addresses, and
 * correct checksums, as verified by the device or by this call. They are in
 * sequence and of the same size, except that the last one may be shorter, and
 * do not differ otherwise. Of the TCP flags, FIN and PSH may be set in the last
 * segment, and CWR in the first. All other frames, including shared ones, stay
 * as they are.
 *
 * @param         cache     the calling thread's cache of the frames' pool
 * @param         offloads  MR_OFFLOAD_TSO4, _TSO6, _USO: what to merge, such as
 *                          mr_port_info.offloads of the port to send to
 * @param         mtu_bytes that port's, as in mr_port_info; longer segments are
 *                          not merged, because it cannot send them. 0: no limit
 * @param[in,out] frames    @p n entries, whole frames; their order may change,
 *                          but not within a flow
 * @param[in,out] metas     @p n elements, as from mr_rx_burst_meta(); a merged
 *                          frame keeps those of its first segment
 * @param         n         entries, 0..MR_BURST_MAX; unchanged by the call
 *
 * @return by how many the number of frames decreased
 *
 * Owner:  the caller, before and after.
 * Thread: the one that uses @p cache.
 * Cost:   reads the headers, and the payload of segments whose checksum has not
 *         been verified. Keeps nothing between calls.
 * Source: Linux's generic receive offload, but stricter where segmentation
 *         would not restore the burst: Linux ignores changes of the TCP window,
 *         for example.
 */
MR_API uint32_t mr_gro(struct mr_cache *cache, uint32_t offloads,
		       uint32_t mtu_bytes, struct mr_frame *frames,
		       struct mr_meta *metas, uint32_t n);

MR_END_DECLS

#endif
