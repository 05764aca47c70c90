/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/parcel.c: what arrives, whatever happens on the way. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/parcel.h"
#include "support/unit_ctx.h"

enum {
	N_FDS = 1000,
	MAX_MESSAGE_FDS = 200,
	WAIT_MS = 200,
	NO_EXEC = 8, /* MFD_NOEXEC_SEAL, Linux 6.3 */
};

static int out[2], in[2]; /* sender, relay; relay, receiver */

static int parcel_set_up(void **state)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, out), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, in), 0);
	return ctx_set_up(state);
}

static int parcel_tear_down(void **state)
{
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(in[i]);
	}
	return ctx_tear_down(state);
}

#define PARCEL_TEST(name) TEST_WITH(parcel_set_up, parcel_tear_down, name)

static void send_parcel(uint32_t n_fds)
{
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	struct mr_reason why = { "" };

	assert_non_null(parcel);
	mr_parcel_enter(parcel, "folder");
	mr_parcel_put(parcel, "text", 3, "hello", 6);
	for (uint32_t i = 0; i < n_fds; i++)
		mr_parcel_put_fd(parcel, "fd", out[0]);
	if (mri_parcel_send(parcel, out[0], &why) < 0)
		fail_msg("%s", why.text);
	mri_parcel_destroy(parcel);
}

static int receive_parcel(void)
{
	struct mr_parcel *parcel;
	const void *text = NULL;
	size_t n = 0;
	const int err =
		mri_parcel_receive(ctx, in[1], WAIT_MS, &parcel, NULL);

	if (err < 0)
		return err;
	mr_parcel_enter(parcel, "folder");
	assert_int_equal(mr_parcel_find(parcel, "text", 3, &text, &n, NULL), 0);
	assert_string_equal(text, "hello");
	assert_int_equal(mr_parcel_find(parcel, "text", 4, &text, &n, NULL),
			 -EPROTO);
	mri_parcel_destroy(parcel);
	return 0;
}

/* As a system makes it that forbids executable memfds. */
static int copy_without_exec(int fd)
{
	char bytes[4096];
	const ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	const int copy =
		memfd_create("copy", MFD_ALLOW_SEALING | NO_EXEC);

	if (copy < 0)
		return -1;
	assert_int_equal(write(copy, bytes, (size_t)n), n);
	assert_int_equal(fcntl(copy, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
				       F_SEAL_SEAL),
			 0);
	return copy;
}

/* Pass one message on. False: there is none. */
static bool relay(bool without_exec)
{
	_Alignas(struct cmsghdr) char
		space[CMSG_SPACE(MAX_MESSAGE_FDS * sizeof(int))];
	char bytes[64];
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	const ssize_t n = recvmsg(out[1], &message, MSG_DONTWAIT);
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);
	int fds[MAX_MESSAGE_FDS];
	size_t n_fds;

	if (n <= 0)
		return false;
	n_fds = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(control), n_fds * sizeof(int));
	if (without_exec) {
		const int copy = copy_without_exec(fds[0]);

		if (copy < 0)
			skip(); /* before Linux 6.3 */
		close(fds[0]);
		fds[0] = copy;
		memcpy(CMSG_DATA(control), fds, sizeof(copy));
	}
	part.iov_len = (size_t)n;
	assert_int_equal(sendmsg(in[0], &message, 0), n);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return true;
}

PARCEL_TEST(more_seals_than_needed_are_fine)
{
	send_parcel(0);
	assert_true(relay(true));
	assert_int_equal(receive_parcel(), 0);
}

static void *relay_slowly(void *arg)
{
	(void)arg;
	while (relay(false))
		usleep(WAIT_MS * 1000 / 2);
	return NULL;
}

/* Five messages, each in time. */
PARCEL_TEST(the_time_is_that_of_the_whole)
{
	pthread_t thread;

	send_parcel(N_FDS);
	assert_int_equal(pthread_create(&thread, NULL, relay_slowly, NULL), 0);
	assert_int_equal(receive_parcel(), -ETIMEDOUT);
	pthread_join(thread, NULL);
}

static void ignore(int sig)
{
	(void)sig;
}

PARCEL_TEST(signals_do_not_end_the_wait)
{
	const struct sigaction action = { .sa_handler = ignore };
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(receive_parcel(), -ETIMEDOUT);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

PARCEL_TEST(many_fds_arrive)
{
	send_parcel(N_FDS);
	while (relay(false))
		;
	assert_int_equal(receive_parcel(), 0);
}
