/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PCAPNG_H
#define MILLRACE_PCAPNG_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/frame.h>

MR_BEGIN_DECLS

/**
 * @file
 * Write frames to a pcapng file or a pipe, for tcpdump, tshark and Wireshark.
 *
 *     mr_pcapng_open(ctx, fd, "sampler", &file, &why);
 *     interface = mr_pcapng_add_interface(file, "eth0", 0);
 *     packet.interface = (uint32_t)interface;
 *     mr_pcapng_write(file, base, &frames[i], &packet);
 *     mr_pcapng_close(file, &why);
 *
 * Blocks are collected in memory; mr_pcapng_flush() writes them. After an
 * error, an incomplete block is cut off a regular file, so readers see whole
 * blocks. Ignore SIGPIPE if the fd is a pipe: otherwise it ends the program when
 * the reader is gone.
 */

struct mr_ctx;
struct mr_pcapng;

enum {
	MR_PCAPNG_INBOUND = 1,
	MR_PCAPNG_OUTBOUND = 2,
	MR_PCAPNG_SNAP_MAX = 262144, /**< most bytes of a frame */
	MR_PCAPNG_TEXT_MAX = 1024,   /**< of a name or a comment, then cut */
};

/** What to record of a frame. Zero is the default of each member but size. */
struct mr_pcapng_packet {
	uint32_t size;      /**< sizeof(struct mr_pcapng_packet) */
	uint32_t interface; /**< from mr_pcapng_add_interface() */
	uint64_t ns;        /**< since 1970; 0: now */
	uint32_t n_bytes;   /**< of the original frame; 0: not cut */
	uint32_t direction; /**< MR_PCAPNG_INBOUND, _OUTBOUND; 0: unknown */
	uint32_t has_queue; /**< 1: queue is set */
	uint32_t queue;
	uint64_t n_missed;   /**< frames lost since the previous one */
	const char *comment; /**< UTF-8; NULL: none */
};

/**
 * Begin a file: a section, in this machine's byte order.
 *
 * @param      fd           blocking, at the file's end; remains the caller's
 * @param      application  that writes it; NULL: unnamed
 * @param[out] ret_file     set on success, unchanged on failure
 *
 * @return 0 or -ENOMEM
 *
 * Owner:  the caller, of the file; it must not use the fd until it is closed.
 * Thread: any. Cost: takes 512 KiB; no write yet.
 * Source: draft-ietf-opsawg-pcapng, section 4, also for the other functions.
 */
MR_API int mr_pcapng_open(struct mr_ctx *ctx, int fd, const char *application,
			  struct mr_pcapng **ret_file,
			  struct mr_reason *reterr_reason);

/**
 * Add an Ethernet interface. Times of its frames are in nanoseconds.
 *
 * @param name        UTF-8
 * @param snap_bytes  cut longer frames; 0: MR_PCAPNG_SNAP_MAX
 *
 * @return its number, from 0, or
 *   -ENOSPC  there are 64 interfaces
 *   others   as mr_pcapng_flush()
 *
 * Owner: unchanged. Thread: one at a time. Cost: as mr_pcapng_write().
 */
MR_API int mr_pcapng_add_interface(struct mr_pcapng *file, const char *name,
				   uint32_t snap_bytes);

/**
 * Write one frame.
 *
 * @param base    mr_region_base() of the frame's region; for bytes from
 *                elsewhere, their address, and an entry with addr 0
 * @param frames  a whole frame
 * @param packet  not changed
 *
 * @return 0, or
 *   -EINVAL  packet->size, or there is no such interface
 *   others   as mr_pcapng_flush()
 *
 * Owner:  unchanged: the frame is copied.
 * Thread: one at a time.
 * Cost:   a copy; now and then a system call, which may sleep.
 */
MR_API int mr_pcapng_write(struct mr_pcapng *file, void *base,
			   const struct mr_frame *frames,
			   const struct mr_pcapng_packet *packet);

/**
 * Write how many frames an interface received and lost, as of now, and how many
 * of them were written.
 *
 * @param n_received  with those lost
 *
 * @return as mr_pcapng_write()
 *
 * Owner: unchanged. Thread: one at a time. Cost: as mr_pcapng_write().
 */
MR_API int mr_pcapng_count(struct mr_pcapng *file, uint32_t interface,
			   uint64_t n_received, uint64_t n_lost);

/**
 * Write what was collected.
 *
 * @return 0, or a negative errno of write(2), which each later call returns
 *
 * Owner: unchanged. Thread: one at a time. Cost: system calls, may sleep.
 */
MR_API int mr_pcapng_flush(struct mr_pcapng *file);

/**
 * Flush and free it; NULL is allowed. The fd stays open.
 *
 * @return as mr_pcapng_flush(); the file is gone in any case
 *
 * Owner: nobody. Thread: the last user. Cost: as mr_pcapng_flush().
 */
MR_API int mr_pcapng_close(struct mr_pcapng *file,
			   struct mr_reason *reterr_reason);

MR_END_DECLS

#endif
