/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/control/log.c: events in, JSON lines out. */
#include "support/unit_ctx.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/log.h"

static char folder[] = "/tmp/nat-log-XXXXXX";
static char path[64];

static const struct nat_log_event mapping = {
	.what = NAT_LOG_MAPPING_BEGIN,
	.now_s = 100,
	.proto = 17,
};

static struct nat_log *open_log(const char *file)
{
	struct nat_log *log = NULL;
	struct mr_reason why = { "" };

	if (nat_log_create(ctx, file, 2, 100, &log, &why) != 0)
		fail_msg("%s", why.text);
	return log;
}

/* Lines of a file; the first one is copied. */
static uint32_t read_lines(const char *name, char *ret_first, size_t n_bytes)
{
	FILE *file = fopen(name, "re");
	char line[512];
	uint32_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		if (n++ == 0)
			snprintf(ret_first, n_bytes, "%s", line);
	fclose(file);
	return n;
}

TEST_CTX(test_events_become_lines)
{
	struct nat_log *log = open_log(path);
	struct nat_log_event event = mapping;
	struct mr_reason why;
	char line[512];

	event.inside_addr = htonl(0x0a000005);
	event.inside_port = htons(1234);
	event.outside_addr = htonl(0xc0000201);
	event.outside_port = htons(5678);
	nat_log_put(nat_log_ring(log, 1), &event);
	event.what = NAT_LOG_BLOCK_BEGIN;
	event.n_ports = 512;
	nat_log_put(nat_log_ring(log, 0), &event);
	assert_true(nat_log_write(log, 100, &why));
	assert_int_equal(read_lines(path, line, sizeof(line)), 2);
	/* The ring of worker 0 first. */
	assert_non_null(strstr(line, "\"event\":\"block_begin\",\"proto\":17,"
				     "\"inside\":\"10.0.0.5\","
				     "\"outside\":\"192.0.2.1\","
				     "\"first_port\":5678,\"n_ports\":512}\n"));
	assert_int_equal(strncmp(line, "{\"t\":\"20", 8), 0);
	assert_int_equal(nat_log_stats(log).n_written, 2);
	nat_log_destroy(log);
	unlink(path);
}

TEST_CTX(test_what_does_not_fit_is_counted_and_said)
{
	struct nat_log *log = open_log(path);
	struct mr_reason why;
	uint64_t n_lost;
	char line[512];

	for (uint32_t i = 0; i < 20000; i++)
		nat_log_put(nat_log_ring(log, 0), &mapping);
	n_lost = nat_log_stats(log).n_lost;
	assert_true(n_lost > 0 && n_lost < 20000);
	assert_true(nat_log_write(log, 100, &why));
	/* Each event has its line, or is in the line about the lost ones. */
	assert_int_equal(read_lines(path, line, sizeof(line)),
			 20000 - n_lost + 1);
	assert_true(nat_log_write(log, 100, &why));
	assert_int_equal(read_lines(path, line, sizeof(line)),
			 20000 - n_lost + 1);
	nat_log_destroy(log);
	unlink(path);
}

TEST_CTX(test_a_file_that_takes_no_more_is_said_once)
{
	struct nat_log *log = NULL;
	struct mr_reason why;

	assert_int_equal(nat_log_create(ctx, "/nowhere/x", 1, 0, &log, &why),
			 -ENOENT);
	assert_string_equal(why.text,
			    "log: /nowhere/x: No such file or directory");
	log = open_log("/dev/full");
	nat_log_put(nat_log_ring(log, 0), &mapping);
	assert_false(nat_log_write(log, 100, &why));
	nat_log_put(nat_log_ring(log, 0), &mapping);
	assert_true(nat_log_write(log, 100, &why));
	assert_int_equal(nat_log_stats(log).n_written, 0);
	assert_int_equal(nat_log_stats(log).n_lost, 2);
	nat_log_destroy(log);
}

TEST_CTX(test_a_fifo_needs_a_reader)
{
	struct nat_log *log = NULL;
	struct mr_reason why;
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(test_limit_ms(30000) / 1000);
	assert_int_equal(nat_log_create(ctx, path, 1, 0, &log, &why), -ENXIO);
	assert_non_null(strstr(why.text, "start its reader first"));
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	log = open_log(path);
	nat_log_put(nat_log_ring(log, 0), &mapping);
	assert_true(nat_log_write(log, 100, &why));
	alarm(0);
	nat_log_destroy(log);
	close(fd);
	unlink(path);
}

/* The log was begun at tick 100; at tick 500 the clock has been set back by the
 * 400 s between, as this test does not wait for them. */
TEST_CTX(test_a_line_has_the_time_of_the_clock_now)
{
	struct nat_log *log = open_log(path);
	struct nat_log_event event = mapping;
	struct mr_reason why;
	struct tm tm = { 0 };
	char line[512];
	time_t t;

	event.now_s = 500;
	nat_log_put(nat_log_ring(log, 0), &event);
	assert_true(nat_log_write(log, 500, &why));
	assert_int_equal(read_lines(path, line, sizeof(line)), 1);
	assert_non_null(strptime(line, "{\"t\":\"%Y-%m-%dT%H:%M:%SZ\"", &tm));
	t = timegm(&tm);
	assert_in_range(t, time(NULL) - 100, time(NULL));
	nat_log_destroy(log);
	unlink(path);
}

static int begin(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/log", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* Who talked to whom; a file that is there keeps its group. */
TEST_CTX(test_others_cannot_read_it)
{
	static const mode_t modes[][2] = { { 0, 0600 },
					   { 0644, 0640 },
					   { 0660, 0660 } };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct stat stat_;

		unlink(path);
		if (modes[i][0] != 0) {
			assert_int_equal(mknod(path, S_IFREG, 0), 0);
			assert_int_equal(chmod(path, modes[i][0]), 0);
		}
		nat_log_destroy(open_log(path));
		assert_int_equal(stat(path, &stat_), 0);
		assert_int_equal(stat_.st_mode & 0777, modes[i][1]);
	}
}

int main(void)
{
	return test_run(NULL, begin, end);
}
