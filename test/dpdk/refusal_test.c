/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dpdk: driver is refused by EAL, and says so: each in one line, with
 * EAL's own reason, and the process lives on.
 *
 *     refusal_test TEST
 *
 * EAL starts once per process, so each test is run in one of its own.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

static void assert_refused(const char *spec, int err, const char *word)
{
	struct mr_reason why = { .text = "" };
	struct mr_port *port = NULL;

	assert_int_equal(try_open(spec, &port, &why), err);
	if (strstr(why.text, word) == NULL || strchr(why.text, '\n') != NULL)
		fail_msg("%s: '%s' has no '%s', or is several lines", spec,
			 why.text, word);
}

/* Other ports work, and what is left over is seen by tear_down(). */
static void assert_alive(void)
{
	struct mr_frame frames[BURST];
	struct mr_port *port = open_port("null:");
	const uint32_t n = receive(port, frames);

	assert_int_equal(n, BURST);
	mr_frame_free_bulk(cache, frames, n);
	mr_port_close(port);
}

/* The child has EAL, and waits for its end. */
static pid_t start_primary(const char *spec)
{
	struct mr_reason why;
	struct mr_port *port;
	pid_t pid;
	int ends[2];
	char byte = 0;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		byte = try_open(spec, &port, &why) == 0 ? 'y' : 'n';
		if (byte == 'n')
			fprintf(stderr, "%s\n", why.text);
		if (write(ends[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	close(ends[0]);
	return pid;
}

/* Who asks for files in common with others may find them in use. */
TEST(another_primary_is_a_reason)
{
	char spec[128];
	pid_t pid;

	snprintf(spec, sizeof(spec),
		 "dpdk:net_null0,eal=--no-huge -m 64 --file-prefix=mrtest%d",
		 (int)getpid());
	pid = start_primary(spec);
	assert_refused(spec, -EIO, "another primary process");
	assert_alive();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* By default there is nothing in common, but EAL has given up. */
	assert_refused("dpdk:net_null0", -EIO, "another primary process");
}

TEST(primary_that_is_not_there_is_a_reason)
{
	assert_refused("dpdk:net_null0,eal=--no-huge --file-prefix=mrnone "
		       "--proc-type=secondary",
		       -EIO, "config");
	assert_alive();
}

/* Then without: EAL gave up early enough to be started again. */
TEST(unknown_iova_mode_is_a_reason)
{
	assert_refused("dpdk:net_null0,eal=--iova-mode=xa", -EIO, "iova-mode");
	assert_alive();
	mr_port_close(open_port("dpdk:net_null0"));
}

/* Whether there are some or none, and nothing is taken of them. */
TEST(too_few_huge_pages_is_a_reason)
{
	assert_refused("dpdk:net_null0,eal=-m 100000000", -EIO,
		       "EAL does not start");
	assert_alive();
}

/* EAL gives up, and says later that it runs. */
TEST(too_little_memory_is_a_reason)
{
	assert_refused("dpdk:net_null0,eal=--no-huge -m 100000000", -EIO,
		       "EAL does not start");
	assert_alive();
	assert_refused("dpdk:net_null0", -EIO, "new process");
}
