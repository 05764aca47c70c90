/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PARCEL_H
#define MILLRACE_EXPERIMENTAL_PARCEL_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * What one process sends to the next when it hands over its data plane: named
 * entries of bytes, and named fds. <millrace/experimental/hand_over.h> makes
 * parcels and sends them; drivers and programs put their state in and take it
 * out. docs/design/0014-upgrade.md describes the format.
 *
 * Put functions return nothing: if memory is short, sending fails.
 */

struct mr_parcel;

enum { MR_PARCEL_NAME_BYTES = 40 }; /**< of a name, with folder and NUL */

/**
 * Put the following names into a folder, also when they are looked up: "port/0"
 * makes "rx" "port/0/rx". "": none, as at first.
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: negligible.
 */
MR_API void mr_parcel_enter(struct mr_parcel *parcel, const char *folder);

/**
 * Put a copy of @p n_bytes under a name.
 *
 * @param layout  version of the layout of the bytes
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: a copy.
 */
MR_API void mr_parcel_put(struct mr_parcel *parcel, const char *name,
			  uint32_t layout, const void *bytes, size_t n_bytes);

/**
 * Put bytes without a copy: they are read when the parcel is sent, and stay as
 * they are until then.
 *
 * @param name     NULL: they continue the entry that was put last
 * @param n_bytes  a multiple of 8
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: negligible.
 */
MR_API void mr_parcel_lend(struct mr_parcel *parcel, const char *name,
			   uint32_t layout, const void *bytes, size_t n_bytes);

/**
 * Put an fd under a name. -1 is put as no fd.
 *
 * Owner:  the caller, who keeps it open until the parcel was sent.
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
 *   -EPROTO  it has another layout; the reason has both
 *
 * Owner:  the parcel, of the bytes. Thread: as mr_port_open().
 * Cost:   a search of all entries.
 */
MR_API int mr_parcel_find(const struct mr_parcel *parcel, const char *name,
			  uint32_t layout, const void **ret_bytes,
			  size_t *ret_n_bytes, struct mr_reason *reterr_reason);

/**
 * The same for an entry of exactly @p n_bytes, which are copied.
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
 * @return the fd, or -ENOENT: there is none, or it was taken
 *
 * Owner: the caller. Thread: as mr_port_open().
 */
MR_API int mr_parcel_take_fd(struct mr_parcel *parcel, const char *name);

MR_END_DECLS

#endif
