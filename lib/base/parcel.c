/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parcels: a memfd with one entry after the other, and fds in messages.
 *
 *     memfd, sealed:  entry, its bytes | entry, its bytes | ...
 *     socket:         struct head with the memfd
 *                     then the other fds, up to FDS_PER_MESSAGE at a time
 *
 * The receiver maps the memfd, so large entries are not copied. It checks all
 * entries at first, since the sender may be another release.
 *
 * Source: unix(7), memfd_create(2), fcntl(2) (F_ADD_SEALS).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/parcel.h"

enum {
	FORMAT = 1, /* of parcels */
	MAX_FDS = 4096,
	FDS_PER_MESSAGE = 200, /* the kernel takes 253 */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL,
};

#define MAX_BYTES (UINT64_C(1) << 32)

static const uint64_t NS_PER_MS = 1000000;

static const uint32_t MAGIC = 0x6d727063; /* "mrpc" */

struct head {
	uint32_t magic, format;
	uint64_t n_bytes;
	uint32_t n_fds, n_entries;
};

/* Followed by the bytes, padded to 8. */
struct entry {
	uint32_t layout;
	uint32_t fd_plus_1; /* index among the fds; 0: it has bytes */
	uint64_t n_bytes;
	char name[MR_PARCEL_NAME_BYTES];
};

_Static_assert(sizeof(struct entry) == 56, "the format");

/* Bytes that are not copied into the parcel. */
struct lent {
	uint64_t at; /* of the parcel's own bytes: they come before these */
	const uint8_t *bytes;
	uint64_t n_bytes;
};

struct mr_parcel {
	const struct mr_ctx *ctx;
	char folder[MR_PARCEL_NAME_BYTES];
	uint8_t *bytes;
	uint64_t n_bytes, n_max;
	struct lent *lents;
	uint64_t n_lent_bytes;
	uint64_t last; /* where the last entry begins */
	uint32_t n_lents, n_lents_max;
	uint32_t n_entries, n_fds;
	bool is_received; /* bytes are mapped, and the fds its own */
	bool is_broken;   /* something did not fit in */
	int reserved_fd;  /* a memfd with memory; -1: none */
	int fds[MAX_FDS]; /* -1: taken */
};

struct mr_parcel *mri_parcel_create(const struct mr_ctx *ctx)
{
	struct mr_parcel *parcel = mr_alloc(ctx, 0, sizeof(*parcel));

	if (parcel != NULL) {
		parcel->ctx = ctx;
		parcel->reserved_fd = -1;
	}
	return parcel;
}

void mri_parcel_destroy(struct mr_parcel *parcel)
{
	if (parcel == NULL)
		return;
	for (uint32_t i = 0; parcel->is_received && i < parcel->n_fds; i++)
		mr_fd_close(parcel->fds[i]);
	mr_fd_close(parcel->reserved_fd);
	mr_free(parcel->ctx, parcel->lents);
	if (!parcel->is_received)
		mr_free(parcel->ctx, parcel->bytes);
	else if (parcel->bytes != NULL)
		munmap(parcel->bytes, parcel->n_bytes);
	mr_free(parcel->ctx, parcel);
}

void mr_parcel_enter(struct mr_parcel *parcel, const char *folder)
{
	snprintf(parcel->folder, sizeof(parcel->folder), "%s%s", folder,
		 folder[0] != '\0' ? "/" : "");
}

/* False: it is too long. */
static bool make_name(const struct mr_parcel *parcel, const char *name,
		      char ret_name[MR_PARCEL_NAME_BYTES])
{
	const int n = snprintf(ret_name, MR_PARCEL_NAME_BYTES, "%s%s",
			       parcel->folder, name);

	return n > 0 && n < MR_PARCEL_NAME_BYTES;
}

/* ---- to be sent ---- */

/* Room for n more bytes, zeroed; NULL: no memory. */
static uint8_t *add_room(struct mr_parcel *parcel, uint64_t n)
{
	const uint64_t n_max = 2 * (parcel->n_bytes + n);
	uint8_t *bytes;

	if (n > MAX_BYTES || parcel->n_bytes > MAX_BYTES - n)
		return NULL;
	if (parcel->n_bytes + n > parcel->n_max) {
		bytes = mr_alloc(parcel->ctx, 0, n_max);
		if (bytes == NULL)
			return NULL;
		if (parcel->n_bytes > 0)
			memcpy(bytes, parcel->bytes, parcel->n_bytes);
		mr_free(parcel->ctx, parcel->bytes);
		parcel->bytes = bytes;
		parcel->n_max = n_max;
	}
	bytes = parcel->bytes + parcel->n_bytes;
	parcel->n_bytes += n;
	return bytes;
}

static void put(struct mr_parcel *parcel, const char *name, struct entry entry,
		const void *bytes)
{
	uint8_t *at = NULL;

	if (make_name(parcel, name, entry.name))
		at = add_room(parcel,
			      sizeof(entry) + mri_round_up(entry.n_bytes, 8));
	if (at == NULL) {
		parcel->is_broken = true;
		return;
	}
	parcel->last = (uint64_t)(at - parcel->bytes);
	memcpy(at, &entry, sizeof(entry));
	if (bytes != NULL)
		memcpy(at + sizeof(entry), bytes, entry.n_bytes);
	parcel->n_entries++;
}

void mr_parcel_put(struct mr_parcel *parcel, const char *name, uint32_t layout,
		   const void *bytes, size_t n_bytes)
{
	put(parcel, name,
	    (struct entry){ .layout = layout, .n_bytes = n_bytes }, bytes);
}

static bool add_lent(struct mr_parcel *parcel, const void *bytes,
		     uint64_t n_bytes)
{
	const uint32_t n_max = 2 * parcel->n_lents_max + 64;
	struct lent *more;

	if (parcel->n_lents == parcel->n_lents_max) {
		more = mr_alloc(parcel->ctx, 0, n_max * sizeof(more[0]));
		if (more == NULL)
			return false;
		if (parcel->n_lents > 0)
			memcpy(more, parcel->lents,
			       parcel->n_lents * sizeof(more[0]));
		mr_free(parcel->ctx, parcel->lents);
		parcel->lents = more;
		parcel->n_lents_max = n_max;
	}
	parcel->lents[parcel->n_lents++] =
		(struct lent){ parcel->n_bytes, bytes, n_bytes };
	parcel->n_lent_bytes += n_bytes;
	return true;
}

void mr_parcel_lend(struct mr_parcel *parcel, const char *name, uint32_t layout,
		    const void *bytes, size_t n_bytes)
{
	struct entry *entry;

	if (name != NULL)
		mr_parcel_put(parcel, name, layout, NULL, 0);
	if (n_bytes % 8 != 0 || parcel->n_entries == 0 ||
	    (n_bytes > 0 && !add_lent(parcel, bytes, n_bytes)))
		parcel->is_broken = true;
	if (parcel->is_broken)
		return;
	entry = (struct entry *)(parcel->bytes + parcel->last);
	entry->n_bytes += n_bytes;
}

void mr_parcel_put_fd(struct mr_parcel *parcel, const char *name, int fd)
{
	if (fd < 0)
		return;
	if (parcel->n_fds == MAX_FDS) {
		parcel->is_broken = true;
		return;
	}
	parcel->fds[parcel->n_fds++] = fd;
	put(parcel, name, (struct entry){ .fd_plus_1 = parcel->n_fds }, NULL);
}

static bool write_bytes(int fd, const uint8_t *bytes, uint64_t n_bytes)
{
	ssize_t n = 0;

	for (; n_bytes > 0; bytes += n, n_bytes -= (uint64_t)n) {
		n = write(fd, bytes, n_bytes);
		if (n < 0)
			return false;
	}
	return true;
}

/* The parcel's own bytes, and those lent, in their order. */
static bool write_all(const struct mr_parcel *parcel, int fd)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < parcel->n_lents; i++) {
		const struct lent *lent = &parcel->lents[i];

		if (!write_bytes(fd, parcel->bytes + at, lent->at - at) ||
		    !write_bytes(fd, lent->bytes, lent->n_bytes))
			return false;
		at = lent->at;
	}
	return write_bytes(fd, parcel->bytes + at, parcel->n_bytes - at);
}

void mri_parcel_reserve(struct mr_parcel *parcel, uint64_t n_bytes)
{
	mr_fd_close(parcel->reserved_fd);
	parcel->reserved_fd = mr_memfd_create("millrace-parcel", 0);
	/* Without it, writing allocates. */
	if (parcel->reserved_fd >= 0 && n_bytes > 0 && n_bytes <= MAX_BYTES)
		(void)fallocate(parcel->reserved_fd, 0, 0, (off_t)n_bytes);
}

/* Write all bytes to a sealed memfd: its fd, or -errno. */
static int make_memfd(const struct mr_parcel *parcel)
{
	const int fd = parcel->reserved_fd >= 0 ?
			       mr_fd_guard(fcntl(parcel->reserved_fd,
						 F_DUPFD_CLOEXEC, 0)) :
			       mr_memfd_create("millrace-parcel", 0);
	const uint64_t n_bytes = parcel->n_bytes + parcel->n_lent_bytes;
	int err;

	if (fd < 0)
		return -errno;
	if (write_all(parcel, fd) && ftruncate(fd, (off_t)n_bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	err = -errno;
	mr_fd_close(fd);
	return err;
}

static int send_fds(int socket_fd, const void *bytes, size_t n_bytes,
		    const int *fds, uint32_t n_fds)
{
	_Alignas(struct cmsghdr) char
		space[CMSG_SPACE(FDS_PER_MESSAGE * sizeof(int))] = { 0 };
	struct iovec part = { (void *)(uintptr_t)bytes, n_bytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen =
					  CMSG_SPACE(n_fds * sizeof(int)) };
	struct cmsghdr *control = (struct cmsghdr *)space;

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(control), fds, n_fds * sizeof(int));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int mri_parcel_send(const struct mr_parcel *parcel, int socket_fd,
		    struct mr_reason *reterr_reason)
{
	const struct head head = { MAGIC, FORMAT,
				   parcel->n_bytes + parcel->n_lent_bytes,
				   parcel->n_fds, parcel->n_entries };
	int fd = parcel->is_broken ? -ENOMEM : make_memfd(parcel), err = fd;

	if (fd >= 0)
		err = send_fds(socket_fd, &head, sizeof(head), &fd, 1);
	mr_fd_close(fd);
	for (uint32_t i = 0; i < parcel->n_fds && err == 0;
	     i += FDS_PER_MESSAGE)
		err = send_fds(socket_fd, &i, sizeof(i), parcel->fds + i,
			       mri_min_u32(parcel->n_fds - i, FDS_PER_MESSAGE));
	return err == 0 ? 0 :
			  mr_fail(reterr_reason, err,
				  "the state cannot be sent: %s",
				  mr_strerror(-err));
}

/* ---- received ---- */

/* Where a parcel comes from, and the deadline. */
struct source {
	const struct mr_ctx *ctx;
	int socket_fd;
	uint64_t end_ns;
};

/* Wait until it is readable, also after a signal. 0 or -errno. */
static int wait_for(const struct source *source)
{
	struct pollfd ready = { .fd = source->socket_fd, .events = POLLIN };
	int n;

	do {
		const uint64_t now_ns = mr_ctx_now_ns(source->ctx);

		n = poll(&ready, 1,
			 now_ns >= source->end_ns ?
				 0 :
				 (int)((source->end_ns - now_ns) / NS_PER_MS) +
					 1);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;
}

/* A message with fds: its bytes, 0 at the end, or -errno. */
static ssize_t receive_fds(const struct source *source, void *bytes,
			   size_t n_bytes, int *ret_fds, uint32_t *ret_n_fds)
{
	_Alignas(struct cmsghdr) char
		space[CMSG_SPACE(FDS_PER_MESSAGE * sizeof(int))];
	struct iovec part = { bytes, n_bytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *control;
	ssize_t n;

	*ret_n_fds = 0;
	n = wait_for(source);
	if (n < 0)
		return n;
	n = recvmsg(source->socket_fd, &message,
		    MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	control = CMSG_FIRSTHDR(&message);
	if (control != NULL && control->cmsg_level == SOL_SOCKET &&
	    control->cmsg_type == SCM_RIGHTS) {
		*ret_n_fds = (uint32_t)((control->cmsg_len - CMSG_LEN(0)) /
					sizeof(int));
		memcpy(ret_fds, CMSG_DATA(control), *ret_n_fds * sizeof(int));
	}
	for (uint32_t i = 0; i < *ret_n_fds; i++)
		ret_fds[i] = mr_fd_guard(ret_fds[i]);
	return message.msg_flags & MSG_CTRUNC ? -EMFILE :
	       message.msg_flags & MSG_TRUNC  ? -EPROTO :
						n;
}

static bool is_name(const char name[MR_PARCEL_NAME_BYTES])
{
	return name[0] != '\0' &&
	       memchr(name, '\0', MR_PARCEL_NAME_BYTES) != NULL;
}

/* The next entry at *offset; NULL: there is none, or it is invalid. */
static const struct entry *next_entry(const struct mr_parcel *parcel,
				      uint64_t *offset)
{
	const struct entry *entry;
	uint64_t n_left = parcel->n_bytes - *offset;

	if (n_left < sizeof(*entry))
		return NULL;
	entry = (const struct entry *)(parcel->bytes + *offset);
	n_left -= sizeof(*entry);
	if (entry->n_bytes > n_left ||
	    mri_round_up(entry->n_bytes, 8) > n_left ||
	    entry->fd_plus_1 > parcel->n_fds || !is_name(entry->name))
		return NULL;
	*offset += sizeof(*entry) + mri_round_up(entry->n_bytes, 8);
	return entry;
}

/* Whether its entries fill it, and are as many as announced. */
static bool is_whole(const struct mr_parcel *parcel)
{
	uint64_t offset = 0;
	uint32_t n = 0;

	while (next_entry(parcel, &offset) != NULL)
		n++;
	return offset == parcel->n_bytes && n == parcel->n_entries;
}

bool mri_is_sealed(int fd, int seals)
{
	const int found = fcntl(fd, F_GET_SEALS);

	/* Others may be set, too: the system may forbid to execute it. */
	return found >= 0 && (found & seals) == seals;
}

/* Map the memfd. Its seals keep everybody from changing it. */
static int map_bytes(struct mr_parcel *parcel, int fd, uint64_t n_bytes)
{
	struct stat found;
	void *bytes;

	if (!mri_is_sealed(fd, SEALS) || fstat(fd, &found) < 0 ||
	    (uint64_t)found.st_size != n_bytes || n_bytes == 0 ||
	    n_bytes > MAX_BYTES)
		return -EPROTO;
	bytes = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	parcel->bytes = bytes;
	parcel->n_bytes = n_bytes;
	return 0;
}

static int receive_head(struct mr_parcel *parcel, const struct source *source)
{
	int fds[FDS_PER_MESSAGE];
	struct head head = { 0 };
	uint32_t n_fds;
	ssize_t n = receive_fds(source, &head, sizeof(head), fds, &n_fds);
	int err = n == 0 ? -ECONNRESET : n < 0 ? (int)n : 0;

	if (err == 0 &&
	    (n != sizeof(head) || n_fds != 1 || head.magic != MAGIC ||
	     head.format != FORMAT || head.n_fds > MAX_FDS))
		err = -EPROTO;
	if (err == 0)
		err = map_bytes(parcel, fds[0], head.n_bytes);
	for (uint32_t i = 0; i < n_fds; i++)
		mr_fd_close(fds[i]);
	parcel->n_entries = head.n_entries;
	parcel->n_fds = err == 0 ? head.n_fds : 0;
	memset(parcel->fds, 0xff, sizeof(parcel->fds)); /* -1 */
	return err;
}

static int receive_rest(struct mr_parcel *parcel, const struct source *source)
{
	uint32_t n_done = 0;

	while (n_done < parcel->n_fds) {
		int fds[FDS_PER_MESSAGE];
		uint32_t i, n_fds;
		const ssize_t n =
			receive_fds(source, &i, sizeof(i), fds, &n_fds);
		const bool is_good = n == sizeof(i) && i == n_done &&
				     n_fds > 0 &&
				     n_fds <= parcel->n_fds - n_done;

		for (uint32_t k = 0; k < n_fds; k++)
			if (is_good)
				parcel->fds[n_done + k] = fds[k];
			else
				mr_fd_close(fds[k]);
		if (!is_good)
			return n < 0 ? (int)n : n == 0 ? -ECONNRESET : -EPROTO;
		n_done += n_fds;
	}
	return is_whole(parcel) ? 0 : -EPROTO;
}

int mri_parcel_receive(const struct mr_ctx *ctx, int socket_fd, int timeout_ms,
		       struct mr_parcel **ret_parcel,
		       struct mr_reason *reterr_reason)
{
	const struct source source = {
		ctx, socket_fd,
		mr_ctx_now_ns(ctx) + (uint64_t)timeout_ms * NS_PER_MS
	};
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	int err = -ENOMEM;

	if (parcel != NULL) {
		parcel->is_received = true;
		err = receive_head(parcel, &source);
		if (err == 0)
			err = receive_rest(parcel, &source);
	}
	if (err == 0) {
		*ret_parcel = parcel;
		return 0;
	}
	mri_parcel_destroy(parcel);
	return mr_fail(reterr_reason, err, "the state was not received: %s",
		       err == -EPROTO     ? "it has another format" :
		       err == -ECONNRESET ? "the other process is gone" :
					    mr_strerror(-err));
}

static const struct entry *find_entry(const struct mr_parcel *parcel,
				      const char *name, bool is_fd)
{
	char wanted[MR_PARCEL_NAME_BYTES];
	const struct entry *entry = NULL;
	uint64_t offset = 0;

	if (!parcel->is_received || !make_name(parcel, name, wanted))
		return NULL;
	while ((entry = next_entry(parcel, &offset)) != NULL)
		if (strcmp(entry->name, wanted) == 0 &&
		    (entry->fd_plus_1 != 0) == is_fd)
			break;
	return entry;
}

int mr_parcel_find(const struct mr_parcel *parcel, const char *name,
		   uint32_t layout, const void **ret_bytes, size_t *ret_n_bytes,
		   struct mr_reason *reterr_reason)
{
	const struct entry *entry = find_entry(parcel, name, false);

	if (entry == NULL)
		return mr_fail(reterr_reason, -ENOENT,
			       "the state has no entry %s%s", parcel->folder,
			       name);
	if (entry->layout != layout)
		return mr_fail(reterr_reason, -EPROTO,
			       "entry %s of the state has layout %u, and this "
			       "release reads %u",
			       entry->name, entry->layout, layout);
	*ret_bytes = entry + 1;
	*ret_n_bytes = entry->n_bytes;
	return 0;
}

int mr_parcel_get(const struct mr_parcel *parcel, const char *name,
		  uint32_t layout, void *ret_bytes, size_t n_bytes,
		  struct mr_reason *reterr_reason)
{
	const void *bytes = NULL;
	size_t n = 0;
	const int err =
		mr_parcel_find(parcel, name, layout, &bytes, &n, reterr_reason);

	if (err < 0)
		return err;
	if (n != n_bytes)
		return mr_fail(reterr_reason, -EPROTO,
			       "entry %s%s of the state has %zu bytes, and "
			       "this release reads %zu",
			       parcel->folder, name, n, n_bytes);
	memcpy(ret_bytes, bytes, n);
	return 0;
}

int mr_parcel_take_fd(struct mr_parcel *parcel, const char *name)
{
	const struct entry *entry = find_entry(parcel, name, true);
	int fd;

	if (entry == NULL)
		return -1;
	fd = parcel->fds[entry->fd_plus_1 - 1];
	parcel->fds[entry->fd_plus_1 - 1] = -1;
	return fd;
}
