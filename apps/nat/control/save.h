/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions in a file, from one run to the next.
 *
 *     +--------------------------+---------------------------+-----+
 *     | magic, version, time, n  | n records of 40 bytes     | sum |
 *     +--------------------------+---------------------------+-----+
 *
 * A record is a session, or since version 2 a port in hold-down (NAT_MAP_RESTS).
 * Numbers are little-endian; addresses and ports as on the wire. The new file
 * is written next to the old one and replaces it atomically, so that there is
 * always a complete one.
 */
#ifndef NAT_SAVE_H
#define NAT_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "mapping/map.h"

/* A file being built; initially all zeros. */
struct nat_save {
	uint8_t *bytes; /* the file without the checksum */
	size_t n_bytes, n_max;
	uint64_t n, sum;
	bool is_broken; /* out of memory */
};

void nat_save_put(struct nat_save *save, const struct nat_session *session);
/* Discard it. */
void nat_save_free(struct nat_save *save);
/*
 * Write everything to path, with the time of day, and discard it. An existing
 * file is replaced only after the new one is on disk. 0 or -errno with a
 * message. May block.
 */
int nat_save_end(struct nat_save *save, const char *path, uint64_t time_s,
		 struct mr_reason *ret_why);

/* One session of a file; false: stop reading. */
typedef bool nat_saved_fn(void *opaque, const struct nat_session *session);

/*
 * Call fn with each session that has not expired, as it is at time_s, and then
 * with each port in hold-down, in the order in which they were freed. 0,
 * -ENOENT, -EINVAL if the file is not ours, -EBADMSG if it is ours but empty,
 * truncated, damaged or of another version, or the errno of reading; with a
 * message. fn is called only if the whole file is valid. resumes: the port of
 * an expired session is in hold-down since then.
 */
int nat_saved_read(const char *path, uint64_t time_s, bool resumes,
		   nat_saved_fn *fn, void *opaque, struct mr_reason *ret_why);
/* The same from memory. */
int nat_saved_parse(const char *name, const uint8_t *bytes, size_t n_bytes,
		    uint64_t time_s, bool resumes, nat_saved_fn *fn,
		    void *opaque, struct mr_reason *ret_why);

#endif
