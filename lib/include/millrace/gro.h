/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_GRO_H
#define MILLRACE_GRO_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * Merging received segments in software, for ports that send long frames at the
 * cost of short ones: the inverse of MR_META_GSO.
 */

/**
 * Merge the segments of a burst that MR_META_GSO would restore byte by byte.
 * Entries stay in their buffers: a merged frame is the first segment, followed
 * by the payload of the others, with metadata as mr_tx_burst_meta() expects it.
 *
 * Merged are TCP and UDP over IPv4 without options and IPv6 without extension
 * headers, of the same tags and addresses, whose checksums are right according
 * to the device or to a look at their bytes. Those of a flow are in sequence,
 * have the same size but for a shorter last one, and differ in nothing else: of
 * TCP's flags, FIN and PSH may be set in the last one and CWR in the first. All
 * other frames, shared ones included, stay as they are.
 *
 * @param         cache     the calling thread's cache of the frames' pool
 * @param         offloads  MR_OFFLOAD_TSO4, _TSO6, _USO: what to merge, for
 *                          instance mr_port_info.offloads of the next port
 * @param[in,out] frames    @p n entries, whole frames; their order may change,
 *                          but not that of the frames of a flow
 * @param[in,out] metas     @p n elements, as from mr_rx_burst_meta(); a merged
 *                          frame keeps those of its first segment
 * @param         n         entries, 0..MR_BURST_MAX; as many afterwards
 *
 * @return how many frames fewer there are
 *
 * Owner:  the caller, before and after.
 * Thread: the one that uses @p cache.
 * Cost:   reads the headers, and the payload of segments whose checksum nobody
 *         has verified. Keeps nothing between calls.
 * Source: Linux's generic receive offload, and stricter where that does not
 *         restore a burst: it ignores changes of the TCP window, for one.
 */
MR_API uint32_t mr_gro(struct mr_cache *cache, uint32_t offloads,
		       struct mr_frame *frames, struct mr_meta *metas,
		       uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
