/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parcels from a process that lies: refused, or each entry lies within them.
 * An input has the head, the bytes of the memfd, and in front of both how many
 * fds come at a time, and whether the head's size is replaced by the right one.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/millrace.h>

#include "base/parcel.h"
#include "fuzz.h"

enum {
	N_OPTIONS = 2,
	HEAD_BYTES = 24,
	SIZE_AT = 8, /* in the head */
	MAX_FDS = 8,
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL,
};

#define HEAD(n_fds, n_entries)                                                 \
	"cprm\1\0\0\0\0\0\0\0\0\0\0\0" n_fds "\0\0\0" n_entries "\0\0\0"
#define NAME(text, zeros) text zeros "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define Z16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	/* name: eight bytes; then the fd "fd" */
	SEED("\1\0" HEAD("\2", "\2") "\7\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0" NAME(
		"name", Z16) "12345678"
			    "\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0" NAME("fd\0\0",
								      Z16)),
	{ NULL, 0 },
};

static void send_message(int fd, const void *bytes, size_t n_bytes,
			 const int *fds, size_t n_fds)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(MAX_FDS * sizeof(int))];
	struct iovec part = { (void *)(uintptr_t)bytes, n_bytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen =
					  CMSG_SPACE(n_fds * sizeof(int)) };
	struct cmsghdr *control = (struct cmsghdr *)space;

	memset(space, 0, sizeof(space));
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(control), fds, n_fds * sizeof(int));
	FUZZ_CHECK(sendmsg(fd, &message, 0) == (ssize_t)n_bytes);
}

/* The head, with a memfd that has the bytes, and then as many fds as it says,
 * or MAX_FDS. */
static void send_parcel(int fd, const uint8_t *input, uint64_t n_bytes)
{
	const uint32_t n_each = 1 + input[0] % MAX_FDS;
	const int memfd = memfd_create("fuzz", MFD_ALLOW_SEALING);
	uint8_t head[HEAD_BYTES];
	int fds[MAX_FDS];
	uint32_t n_fds;

	FUZZ_CHECK(write(memfd, input + N_OPTIONS + HEAD_BYTES, n_bytes) ==
		   (ssize_t)n_bytes);
	FUZZ_CHECK(fcntl(memfd, F_ADD_SEALS, SEALS) == 0);
	memcpy(head, input + N_OPTIONS, HEAD_BYTES);
	if ((input[1] & 1) == 0)
		memcpy(head + SIZE_AT, &n_bytes, sizeof(n_bytes));
	memcpy(&n_fds, head + 16, sizeof(n_fds));
	if (n_fds > MAX_FDS)
		n_fds = MAX_FDS;
	for (uint32_t i = 0; i < MAX_FDS; i++)
		fds[i] = memfd;
	send_message(fd, head, sizeof(head), fds, 1);
	for (uint32_t i = 0; i < n_fds; i += n_each)
		send_message(fd, &i, sizeof(i), fds, n_each);
	close(memfd);
}

static void check_entries(struct mr_parcel *parcel)
{
	static const char *const names[] = { "name", "fd", "port/0" };

	for (uint32_t i = 0; i < 3; i++) {
		const void *bytes = NULL;
		uint64_t sum = 0;
		size_t n = 0;
		int fd;

		(void)mr_parcel_find(parcel, names[i], 7, &bytes, &n, NULL);
		for (size_t at = 0; at < n; at++)
			sum += ((const uint8_t *)bytes)[at];
		FUZZ_CHECK(sum <= UINT8_MAX * n); /* it can be read */
		fd = mr_parcel_take_fd(parcel, names[i]);
		FUZZ_CHECK(fd < 0 || close(fd) == 0);
		FUZZ_CHECK(fd < 0 ||
			   mr_parcel_take_fd(parcel, names[i]) < 0);
	}
}

/* The lowest free fd: it stays the same, unless one is leaked. */
static int next_fd(void)
{
	const int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct mr_ctx *ctx;
	const int fd_before = next_fd();
	struct mr_parcel *parcel;
	int fds[2];

	if (ctx == NULL)
		FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	if (n_bytes < N_OPTIONS + HEAD_BYTES)
		return 0;
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
	send_parcel(fds[0], bytes, n_bytes - N_OPTIONS - HEAD_BYTES);
	close(fds[0]);
	if (mri_parcel_receive(ctx, fds[1], 0, &parcel, NULL) == 0) {
		check_entries(parcel);
		mri_parcel_destroy(parcel);
	}
	close(fds[1]);
	FUZZ_CHECK(next_fd() == fd_before);
	return 0;
}
