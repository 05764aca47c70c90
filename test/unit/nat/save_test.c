/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/control/save.c. */
#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/save.h"

enum { N = 5, NOW_S = 1000000 };

static char folder[] = "/tmp/nat-save-XXXXXX";
static char path[64];

static struct nat_session session_of(uint32_t i)
{
	return (struct nat_session){
		.inside = { 0x0500000a + i, (uint16_t)(100 + i), 6, 0 },
		.outside = { 0x010200c0, (uint16_t)(200 + i) },
		.remote = { 0x097100cb, (uint16_t)(300 + i) },
		.tcp_state = 2,
		.flags = 0,
		.age_s = i,
		.left_s = 10 * (i + 1),
		.n_out = 7,
		.n_in = 8,
	};
}

static void write_file(void)
{
	struct nat_save save = { 0 };
	struct mr_reason why = { "" };

	for (uint32_t i = 0; i < N; i++) {
		const struct nat_session session = session_of(i);

		nat_save_put(&save, &session);
	}
	assert_int_equal(nat_save_end(&save, path, NOW_S, &why), 0);
}

struct got {
	uint32_t n, n_most;
	struct nat_session sessions[N];
};

static bool take(void *opaque, const struct nat_session *session)
{
	struct got *got = opaque;

	assert_true(got->n < N);
	got->sessions[got->n++] = *session;
	return got->n != got->n_most;
}

TEST(test_what_is_written_is_read)
{
	struct got got = { 0 };
	struct mr_reason why;
	struct stat stat_;

	write_file();
	assert_int_equal(nat_saved_read(path, NOW_S, take, &got, &why), 0);
	assert_int_equal(got.n, N);
	for (uint32_t i = 0; i < N; i++) {
		const struct nat_session wanted = session_of(i);

		assert_memory_equal(&got.sessions[i].inside, &wanted.inside,
				    sizeof(wanted.inside));
		assert_int_equal(got.sessions[i].outside.addr,
				 wanted.outside.addr);
		assert_int_equal(got.sessions[i].remote.port,
				 wanted.remote.port);
		assert_int_equal(got.sessions[i].tcp_state, 2);
		assert_int_equal(got.sessions[i].left_s, wanted.left_s);
		assert_int_equal(got.sessions[i].age_s, wanted.age_s);
		assert_int_equal(got.sessions[i].n_in, 8);
	}
	/* Who talked to whom is nobody else's business. */
	assert_int_equal(stat(path, &stat_), 0);
	assert_int_equal(stat_.st_mode & 0777, 0600);
}

TEST(test_time_goes_on_while_nobody_runs)
{
	struct got got = { 0 };
	struct mr_reason why;

	write_file();
	/* 10 and 20 s were left for the first two: they have ended. */
	assert_int_equal(nat_saved_read(path, NOW_S + 20, take, &got, &why), 0);
	assert_int_equal(got.n, 3);
	assert_int_equal(got.sessions[0].left_s, 10);
	assert_int_equal(got.sessions[0].age_s, 22);
	/* A clock that was set back. */
	got = (struct got){ 0 };
	assert_int_equal(nat_saved_read(path, 5, take, &got, &why), 0);
	assert_int_equal(got.n, N);
	assert_int_equal(got.sessions[0].left_s, 10);
	/* The reader may stop. */
	got = (struct got){ .n_most = 2 };
	assert_int_equal(nat_saved_read(path, NOW_S, take, &got, &why), 0);
	assert_int_equal(got.n, 2);
}

static uint8_t *read_all(size_t *ret_n)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes = malloc(4096);

	assert_non_null(file);
	assert_non_null(bytes);
	*ret_n = fread(bytes, 1, 4096, file);
	fclose(file);
	return bytes;
}

TEST(test_each_byte_and_each_length_counts)
{
	struct got got = { 0 };
	struct mr_reason why;
	uint8_t *bytes;
	size_t n;

	write_file();
	bytes = read_all(&n);
	assert_int_equal(n, 32 + N * 40 + 8);
	for (size_t i = 0; i < n; i++) {
		uint8_t *copy = malloc(i + 1);

		assert_non_null(copy);
		bytes[i] ^= 1;
		assert_int_equal(
			nat_saved_parse("f", bytes, n, NOW_S, take, &got, &why),
			i < 8 ? -EINVAL : -EBADMSG);
		bytes[i] ^= 1;
		/* Cut off; of its size exactly, for ASan. */
		memcpy(copy, bytes, i);
		assert_int_equal(
			nat_saved_parse("f", copy, i, NOW_S, take, &got, &why),
			-EBADMSG);
		free(copy);
	}
	assert_int_equal(got.n, 0);
	free(bytes);
}

/* As after a crash in the middle of writing: the old file counts. */
TEST(test_an_old_file_stays_until_the_new_one_is_whole)
{
	const struct nat_session session = session_of(0);
	struct rlimit limit = { 100, RLIM_INFINITY };
	struct nat_save save = { 0 };
	struct got got = { 0 };
	struct mr_reason why;
	char other[80];

	write_file();
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (uint32_t i = 0; i < N; i++)
		nat_save_put(&save, &session);
	assert_int_equal(nat_save_end(&save, path, NOW_S, &why), -EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(strstr(why.text, path));
	assert_int_equal(nat_saved_read(path, NOW_S, take, &got, &why), 0);
	assert_int_equal(got.n, N);
	snprintf(other, sizeof(other), "%s.new", path);
	assert_int_equal(access(other, F_OK), -1);
	/* Nothing is left of the one that failed. */
	assert_int_equal(nat_save_end(&save, path, NOW_S, &why), 0);
	got = (struct got){ 0 };
	assert_int_equal(nat_saved_read(path, NOW_S, take, &got, &why), 0);
	assert_int_equal(got.n, 0);
}

/* What is at PATH.new already is neither followed nor left readable. */
TEST(test_the_temporary_file_is_ours_alone)
{
	struct nat_save save = { 0 };
	struct mr_reason why;
	struct stat stat_;
	char other[80];
	int fd;

	snprintf(other, sizeof(other), "%s.new", path);
	assert_int_equal(symlink("victim", other), 0);
	assert_int_equal(nat_save_end(&save, path, NOW_S, &why), -ELOOP);
	fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	fchmod(fd, 0666);
	close(fd);
	assert_int_equal(nat_save_end(&save, path, NOW_S, &why), 0);
	assert_int_equal(stat(path, &stat_), 0);
	assert_int_equal(stat_.st_mode & 0777, 0600);
}

TEST(test_a_place_that_cannot_be_written)
{
	struct nat_save save = { 0 };
	struct mr_reason why;
	struct got got = { 0 };

	assert_int_equal(nat_save_end(&save, "/nowhere/x", 0, &why), -ENOENT);
	assert_non_null(strstr(why.text, "/nowhere/x"));
	assert_int_equal(nat_saved_read("/nowhere/x", 0, take, &got, &why),
			 -ENOENT);
	assert_int_equal(nat_saved_read("/dev/null", 0, take, &got, &why),
			 -EINVAL);
}

/* It would block, with signals blocked as well. */
TEST(test_a_fifo_is_not_waited_for)
{
	struct got got = { 0 };
	struct mr_reason why;

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10);
	assert_int_equal(nat_saved_read(path, 0, take, &got, &why), -EINVAL);
	assert_non_null(strstr(why.text, "was not written by mr-nat"));
	alarm(0);
	unlink(path);
}

static int begin(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/state", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	return test_run(NULL, begin, end);
}
