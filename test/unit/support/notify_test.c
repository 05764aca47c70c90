/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/notify.c. What programs send, and when, is tested on
 * them: test/netns/test_operation.py. */
#include "support/unit.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/notify.h"

/* A socket with an address in the abstract name space, which is chosen. */
static int open_service(char *ret_name, size_t n_bytes)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	socklen_t n = offsetof(struct sockaddr_un, sun_path);
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, n), 0);
	n = sizeof(own);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &n), 0);
	snprintf(ret_name, n_bytes, "@%.*s",
		 (int)(n - offsetof(struct sockaddr_un, sun_path) - 1),
		 own.sun_path + 1);
	return fd;
}

TEST(a_state_is_sent_to_the_socket_in_the_environment)
{
	char name[64], got[64] = "";
	const int fd = open_service(name, sizeof(name));

	setenv("NOTIFY_SOCKET", name, 1);
	assert_true(notify("READY=1"));
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), 7);
	assert_string_equal(got, "READY=1");
	/* Nobody reads: it does not block. */
	for (uint32_t i = 0; i < 1000; i++)
		(void)notify("WATCHDOG=1");
	assert_false(notify("READY=1"));
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), 10);
	assert_true(notify("READY=1"));
	unsetenv("NOTIFY_SOCKET");
	close(fd);
}

TEST(without_a_usable_socket_nothing_happens)
{
	char too_long[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
	const char *const values[] = { "", "@", "/nonexistent/socket",
				       too_long };

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setenv("NOTIFY_SOCKET", values[i], 1);
		assert_true(notify("READY=1"));
	}
	unsetenv("NOTIFY_SOCKET");
	assert_true(notify("READY=1"));
}
