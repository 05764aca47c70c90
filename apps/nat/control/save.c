/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions in a file. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "save.h"
#include "support/text.h"

/* Version 1 had sessions only. */
enum { VERSION = 2, OLDEST = 1 };

static const char magic[8] = "mr-nat\n"; /* the last byte is the NUL */

struct header {
	char magic[8];
	uint32_t version;
	uint32_t record_bytes;
	uint64_t time_s; /* of day, at the time of writing */
	uint64_t n;
};

struct record {
	uint32_t inside_addr, outside_addr, remote_addr; /* as on the wire */
	uint16_t inside_port, outside_port, remote_port;
	uint8_t proto, reserved, tcp_state, flags;
	uint16_t reserved2; /* both 0 */
	uint32_t age_s, left_s;
	uint32_t n_out, n_in;
};
_Static_assert(sizeof(struct header) == 32 && sizeof(struct record) == 40,
	       "no holes: they are written as they lie");

/* FNV-1a, by 8-byte words: against accidents, not attackers. */
static uint64_t add_sum(uint64_t sum, const void *bytes, size_t n_bytes)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n_bytes; i += 8) {
		uint64_t word;

		memcpy(&word, at + i, sizeof(word));
		sum = (sum ^ le64toh(word)) * 0x100000001b3ull;
		sum ^= sum >> 32;
	}
	return sum;
}

static int fail_io(struct mr_reason *ret_why, const char *path)
{
	const int err = errno;

	return fail_with(ret_why, -err, "state: %s: %s", path,
			 mr_strerror(err));
}

static void add_bytes(struct nat_save *save, const void *bytes, size_t n)
{
	if (save->n_bytes + n > save->n_max) {
		const size_t n_max = 2 * (save->n_bytes + n) + 4096;
		uint8_t *more = realloc(save->bytes, n_max);

		save->is_broken |= more == NULL;
		if (more == NULL)
			return;
		save->bytes = more;
		save->n_max = n_max;
	}
	memcpy(save->bytes + save->n_bytes, bytes, n);
	save->n_bytes += n;
}

void nat_save_put(struct nat_save *save, const struct nat_session *s)
{
	const struct record record = {
		.inside_addr = s->inside.addr,
		.outside_addr = s->outside.addr,
		.remote_addr = s->remote.addr,
		.inside_port = s->inside.port,
		.outside_port = s->outside.port,
		.remote_port = s->remote.port,
		.proto = s->inside.proto,
		.tcp_state = s->tcp_state,
		.flags = s->flags,
		.age_s = htole32(s->age_s),
		.left_s = htole32(s->left_s),
		.n_out = htole32(s->n_out),
		.n_in = htole32(s->n_in),
	};

	save->sum = add_sum(save->sum, &record, sizeof(record));
	add_bytes(save, &record, sizeof(record));
	save->n++;
}

void nat_save_free(struct nat_save *save)
{
	free(save->bytes);
	*save = (struct nat_save){ 0 };
}

/* Write header, sessions and checksum. 0, or -1 with errno. */
static int write_all(const struct nat_save *save, int fd, uint64_t time_s)
{
	struct header header = { .version = htole32(VERSION),
				 .record_bytes = htole32(sizeof(struct record)),
				 .time_s = htole64(time_s),
				 .n = htole64(save->n) };
	FILE *file = fdopen(fd, "w");
	uint64_t sum;
	bool is_good;

	if (file == NULL) {
		close(fd);
		return -1;
	}
	memcpy(header.magic, magic, sizeof(magic));
	sum = htole64(add_sum(save->sum, &header, sizeof(header)));
	errno = EIO;
	is_good = fwrite(&header, sizeof(header), 1, file) == 1 &&
		  (save->n_bytes == 0 || /* no sessions, no memory */
		   fwrite(save->bytes, save->n_bytes, 1, file) == 1) &&
		  fwrite(&sum, sizeof(sum), 1, file) == 1 &&
		  fflush(file) == 0 && fsync(fd) == 0;
	fclose(file);
	return is_good ? 0 : -1;
}

/*
 * Make the rename durable. Some file systems cannot sync a directory: EINVAL.
 * Returns 0, or -1 with errno.
 */
static int sync_folder(const char *path)
{
	char copy[272];
	int fd, err;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	err = fsync(fd) < 0 && errno != EINVAL ? -1 : 0;
	close(fd);
	return err;
}

int nat_save_end(struct nat_save *save, const char *path, uint64_t time_s,
		 struct mr_reason *ret_why)
{
	char temporary[272];
	int fd = -1, err = 0;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	errno = ENOMEM;
	/* Only the owner may see who talked to whom. */
	if (!save->is_broken)
		fd = open(temporary,
			  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			  0600);
	if (fd >= 0)
		fchmod(fd, 0600);
	if (fd < 0 || write_all(save, fd, time_s) < 0 ||
	    rename(temporary, path) != 0 || sync_folder(path) < 0) {
		err = fail_io(ret_why, path);
		unlink(temporary);
	}
	nat_save_free(save);
	return err;
}

/* Ours, but unusable. */
static int fail_damaged(struct mr_reason *ret_why, const char *name,
			const char *what)
{
	return fail_with(ret_why, -EBADMSG, "state: %.200s %s", name, what);
}

static int fail_foreign(struct mr_reason *ret_why, const char *name)
{
	return fail_with(
		ret_why, -EINVAL,
		"state: %.200s was not written by mr-nat; name another file, "
		"or remove it",
		name);
}

static struct nat_session session_of(const struct record *r, uint64_t gone_s)
{
	return (struct nat_session){
		.inside = { r->inside_addr, r->inside_port, r->proto, 0 },
		.outside = { r->outside_addr, r->outside_port },
		.remote = { r->remote_addr, r->remote_port },
		.tcp_state = r->tcp_state,
		.flags = r->flags,
		.age_s = (uint32_t)(le32toh(r->age_s) + gone_s),
		.left_s = (uint32_t)(le32toh(r->left_s) - gone_s),
		.n_out = le32toh(r->n_out),
		.n_in = le32toh(r->n_in),
	};
}

/* Set ret to the record gone_s later. False: it has expired. */
static bool age_record(const struct record *record, uint64_t gone_s,
		       bool resumes, struct nat_session *ret)
{
	const uint32_t left_s = le32toh(record->left_s);

	*ret = session_of(record, gone_s);
	if (left_s > gone_s)
		return true;
	if (!resumes || ret->flags & NAT_MAP_RESTS)
		return false;
	ret->flags = NAT_MAP_RESTS;
	ret->age_s = (uint32_t)(gone_s - left_s);
	return gone_s - left_s < INT32_MAX / 2;
}

/* Report all sessions first, because one may use the port of an expired one;
 * then ports in hold-down. */
static void tell_all(const uint8_t *bytes, uint64_t n, uint64_t gone_s,
		     bool resumes, nat_saved_fn *fn, void *opaque)
{
	for (uint64_t i = 0; i < 2 * n; i++) {
		struct nat_session session;
		struct record record;

		memcpy(&record, bytes + i % n * sizeof(record), sizeof(record));
		if (age_record(&record, gone_s, resumes, &session) &&
		    ((session.flags & NAT_MAP_RESTS) != 0) == (i >= n) &&
		    !fn(opaque, &session))
			return;
	}
}

int nat_saved_parse(const char *name, const uint8_t *bytes, size_t n_bytes,
		    uint64_t time_s, bool resumes, nat_saved_fn *fn,
		    void *opaque, struct mr_reason *ret_why)
{
	const size_t n_room =
		n_bytes - sizeof(struct header) - sizeof(uint64_t);
	struct header header;
	uint64_t n, sum = 0, gone_s;

	if (n_bytes == 0)
		return fail_damaged(ret_why, name, "is empty");
	if (memcmp(bytes, magic,
		   n_bytes < sizeof(magic) ? n_bytes : sizeof(magic)) != 0)
		return fail_foreign(ret_why, name);
	if (n_bytes < sizeof(header) + sizeof(sum))
		return fail_damaged(ret_why, name, "is truncated");
	memcpy(&header, bytes, sizeof(header));
	if (le32toh(header.version) < OLDEST ||
	    le32toh(header.version) > VERSION ||
	    le32toh(header.record_bytes) != sizeof(struct record))
		return fail_damaged(ret_why, name,
				    "has an unsupported version");
	n = le64toh(header.n);
	if (n_room % sizeof(struct record) != 0 ||
	    n != n_room / sizeof(struct record))
		return fail_damaged(ret_why, name, "is truncated");
	bytes += sizeof(header);
	memcpy(&sum, bytes + n_room, sizeof(sum));
	if (le64toh(sum) !=
	    add_sum(add_sum(0, bytes, n_room), &header, sizeof(header)))
		return fail_damaged(ret_why, name, "is damaged");
	/* If the clock was set back, ages stay unchanged. */
	gone_s = time_s > le64toh(header.time_s) ?
			 time_s - le64toh(header.time_s) :
			 0;
	tell_all(bytes, n, gone_s, resumes, fn, opaque);
	return 0;
}

/* 0, or -1 with errno. */
static int read_all(int fd, uint8_t *bytes, size_t n_bytes)
{
	for (size_t at = 0; at < n_bytes;) {
		const ssize_t n = read(fd, bytes + at, n_bytes - at);

		if (n <= 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

int nat_saved_read(const char *path, uint64_t time_s, bool resumes,
		   nat_saved_fn *fn, void *opaque, struct mr_reason *ret_why)
{
	/* Opening a FIFO would wait for its other end. */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint8_t *bytes = NULL;
	struct stat stat;
	int err;

	if (fd < 0)
		return fail_io(ret_why, path);
	if (fstat(fd, &stat) < 0) {
		err = fail_io(ret_why, path);
	} else if (!S_ISREG(stat.st_mode)) {
		err = fail_foreign(ret_why, path);
	} else {
		const size_t n = (size_t)stat.st_size;

		bytes = malloc(n + 1);
		errno = EIO;
		if (bytes == NULL || read_all(fd, bytes, n) < 0)
			err = fail_io(ret_why, path);
		else
			err = nat_saved_parse(path, bytes, n, time_s, resumes,
					      fn, opaque, ret_why);
	}
	free(bytes);
	close(fd);
	return err;
}
