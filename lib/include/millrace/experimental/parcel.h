/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PARCEL_H
#define MILLRACE_EXPERIMENTAL_PARCEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * What a process sends when it hands over its data plane: named entries of
 * bytes, and named fds. <millrace/experimental/hand_over.h> creates and sends
 * parcels; drivers and programs add their state and read it.
 * docs/design/0014-upgrade.md describes the format.
 *
 * The functions that add entries report no errors. If one of them runs out of
 * memory, sending the parcel fails.
 */

struct mr_parcel;

enum { MR_PARCEL_NAME_BYTES = 40 }; /**< of a name, with folder and NUL */

/**
 * Set the folder of the names in later calls, for adding and for finding: in
 * the folder "port/0", the name "rx" means "port/0/rx". "" is no folder, as at
 * first.
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: negligible.
 */
MR_API void mr_parcel_enter(struct mr_parcel *parcel, const char *folder);

/**
 * Add an entry with a copy of @p n_bytes.
 *
 * @param layout  version of the layout of the bytes
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: a copy.
 */
MR_API void mr_parcel_put(struct mr_parcel *parcel, const char *name,
			  uint32_t layout, const void *bytes, size_t n_bytes);

/**
 * Add an entry without copying the bytes. They are read when the parcel is
 * sent, and must not change before.
 *
 * @param name     NULL: append the bytes to the last entry
 * @param n_bytes  a multiple of 8
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: negligible.
 */
MR_API void mr_parcel_lend(struct mr_parcel *parcel, const char *name,
			   uint32_t layout, const void *bytes, size_t n_bytes);

/**
 * Add an fd. If it is -1, do nothing.
 *
 * Owner:  the caller, who keeps it open until the parcel has been sent.
 * Thread: as mr_port_open().
 */
MR_API void mr_parcel_put_fd(struct mr_parcel *parcel, const char *name,
			     int fd);

/**
 * Find the bytes of a received entry.
 *
 * @param[out] ret_bytes  aligned to 8; valid until the parcel is destroyed
 *
 * @return 0, or
 *   -ENOENT  there is no such entry
 *   -EPROTO  its layout is another one; the reason names both
 *
 * Owner:  the parcel, of the bytes. Thread: as mr_port_open().
 * Cost:   a search of all entries.
 */
MR_API int mr_parcel_find(const struct mr_parcel *parcel, const char *name,
			  uint32_t layout, const void **ret_bytes,
			  size_t *ret_n_bytes, struct mr_reason *reterr_reason);

/**
 * Find an entry of exactly @p n_bytes, and copy them.
 *
 * @return as mr_parcel_find(); -EPROTO also if it has another size
 *
 * Owner: the caller, of the copy. Thread: as mr_port_open().
 * Cost:  a search of all entries.
 */
MR_API int mr_parcel_get(const struct mr_parcel *parcel, const char *name,
			 uint32_t layout, void *ret_bytes, size_t n_bytes,
			 struct mr_reason *reterr_reason);

/**
 * Take a received fd, which is close-on-exec.
 *
 * @return the fd, or -1: there is none, or it was taken before
 *
 * Owner: the caller. Thread: as mr_port_open().
 */
MR_API int mr_parcel_take_fd(struct mr_parcel *parcel, const char *name);

/**
 * Write the name of one of several entries, such as "queue/3".
 *
 * @return ret_name
 *
 * Owner: unchanged. Thread: any.
 */
static inline const char *mr_parcel_name(char ret_name[MR_PARCEL_NAME_BYTES],
					 const char *what, uint32_t i)
{
	snprintf(ret_name, MR_PARCEL_NAME_BYTES, "%s/%u", what, i);
	return ret_name;
}

MR_END_DECLS

#endif
