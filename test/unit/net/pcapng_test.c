/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/pcapng.c, with a small reader. */
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <millrace/pcapng.h>

static uint8_t bytes[1 << 20];
static uint32_t n_bytes, at;

static uint32_t word(uint32_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + at + offset, sizeof(value));
	return value;
}

/* Go to the next block, whose lengths must agree. */
static uint32_t next_block(void)
{
	at += word(4);
	return at < n_bytes ? word(0) : 0;
}

static void check_blocks(void)
{
	for (at = 0; at < n_bytes; at += word(4)) {
		const uint32_t n = word(4);

		assert_true(n >= 12 && n % 4 == 0 && n <= n_bytes - at);
		assert_int_equal(word(n - 4), n);
	}
	at = 0;
}

/* The value of an option of this block, whose options begin at `from`. */
static const void *option(uint32_t from, uint16_t code, uint16_t n)
{
	while (from + 8 <= word(4)) {
		const uint32_t head = word(from);

		if (head == 0)
			break;
		if ((head & 0xffff) == code) {
			assert_int_equal(head >> 16, n);
			return bytes + at + from + 4;
		}
		from += 4 + ((head >> 16) + 3) / 4 * 4;
	}
	return NULL;
}

static void read_file(int fd)
{
	const ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	assert_true(n >= 0);
	n_bytes = (uint32_t)n;
	check_blocks();
}

static int make_file(void)
{
	const int fd = memfd_create("pcapng", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct mr_ctx *make_ctx(void)
{
	struct mr_ctx *ctx;

	assert_int_equal(mr_ctx_create(NULL, &ctx, NULL), 0);
	return ctx;
}

TEST(frame_of_several_entries_is_written_with_what_is_said_of_it)
{
	static uint8_t data[] = "the first entry, the second";
	const struct mr_frame frames[] = { { 0, 16, MR_FRAME_MORE },
					   { 16, 11, 0 } };
	const struct mr_pcapng_packet packet = {
		.size = sizeof(packet),
		.interface = 1,
		.ns = 0x123456789abcdef0,
		.n_bytes = 1500,
		.direction = MR_PCAPNG_OUTBOUND,
		.has_queue = 1,
		.queue = 3,
		.n_missed = 9,
		.comment = "drop: no_route",
	};
	struct mr_ctx *ctx = make_ctx();
	const int fd = make_file();
	struct mr_pcapng *file;

	assert_int_equal(mr_pcapng_open(ctx, fd, "a test", &file, NULL), 0);
	assert_int_equal(mr_pcapng_add_interface(file, "eth0", 0), 0);
	assert_int_equal(mr_pcapng_add_interface(file, "eth1", 2000), 1);
	assert_int_equal(mr_pcapng_write(file, data, frames, &packet), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* not yet */
	assert_int_equal(mr_pcapng_count(file, 1, 12, 2), 0);
	assert_int_equal(mr_pcapng_close(file, NULL), 0);
	read_file(fd);
	assert_int_equal(word(0), 0x0a0d0d0a);
	assert_int_equal(word(8), 0x1a2b3c4d);
	assert_int_equal(word(12), 1);
	assert_memory_equal(option(24, 4, 6), "a test", 6);
	assert_int_equal(next_block(), 1);
	assert_int_equal(word(8), 1);
	assert_int_equal(word(12), MR_PCAPNG_SNAP_MAX);
	assert_memory_equal(option(16, 2, 4), "eth0", 4);
	assert_memory_equal(option(16, 9, 1), "\x9", 1);
	assert_int_equal(next_block(), 1);
	assert_int_equal(word(12), 2000);
	assert_memory_equal(option(16, 2, 4), "eth1", 4);
	assert_int_equal(next_block(), 6);
	assert_int_equal(word(8), 1);
	assert_int_equal(word(12), 0x12345678);
	assert_int_equal(word(16), 0x9abcdef0);
	assert_int_equal(word(20), 27);
	assert_int_equal(word(24), 1500);
	assert_memory_equal(bytes + at + 28, data, 27);
	assert_int_equal(*(const uint32_t *)option(56, 2, 4), 2);
	assert_int_equal(*(const uint32_t *)option(56, 6, 4), 3);
	assert_memory_equal(option(56, 4, 8), "\x9\0\0\0\0\0\0", 8);
	assert_memory_equal(option(56, 1, 14), packet.comment, 14);
	assert_int_equal(next_block(), 5);
	assert_int_equal(word(8), 1);
	assert_memory_equal(option(20, 4, 8), "\xc\0\0\0\0\0\0", 8);
	assert_memory_equal(option(20, 5, 8), "\2\0\0\0\0\0\0", 8);
	assert_memory_equal(option(20, 8, 8), "\1\0\0\0\0\0\0", 8);
	assert_int_equal(next_block(), 0);
	close(fd);
	mr_ctx_destroy(ctx);
}

TEST(long_frames_are_cut_and_long_texts_too)
{
	static uint8_t data[MR_PCAPNG_SNAP_MAX + 100];
	static char text[5000];
	const struct mr_frame frame = { .len = sizeof(data) };
	struct mr_pcapng_packet packet = { .size = sizeof(packet),
					   .comment = text };
	struct mr_ctx *ctx = make_ctx();
	const int fd = make_file();
	struct mr_pcapng *file;

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(mr_pcapng_open(ctx, fd, text, &file, NULL), 0);
	assert_int_equal(mr_pcapng_add_interface(file, text, 0), 0);
	assert_int_equal(mr_pcapng_add_interface(file, text, 60), 1);
	for (packet.interface = 0; packet.interface < 2; packet.interface++)
		assert_int_equal(mr_pcapng_write(file, data, &frame, &packet),
				 0);
	assert_int_equal(mr_pcapng_close(file, NULL), 0);
	read_file(fd);
	assert_int_equal(next_block(), 1);
	assert_int_equal(next_block(), 1);
	assert_int_equal(next_block(), 6);
	assert_int_equal(word(20), MR_PCAPNG_SNAP_MAX);
	assert_int_equal(word(24), sizeof(data));
	assert_true(word(12) != 0); /* now */
	assert_int_equal(next_block(), 6);
	assert_int_equal(word(20), 60);
	assert_non_null(option(88, 1, MR_PCAPNG_TEXT_MAX));
	close(fd);
	mr_ctx_destroy(ctx);
}

TEST(what_does_not_exist_is_refused)
{
	static uint8_t data[60];
	const struct mr_frame frame = { .len = sizeof(data) };
	struct mr_pcapng_packet packet = { .size = sizeof(packet) };
	struct mr_ctx *ctx = make_ctx();
	const int fd = make_file();
	struct mr_pcapng *file;

	assert_int_equal(mr_pcapng_open(ctx, fd, NULL, &file, NULL), 0);
	assert_int_equal(mr_pcapng_write(file, data, &frame, &packet), -EINVAL);
	assert_int_equal(mr_pcapng_count(file, 0, 0, 0), -EINVAL);
	for (int i = 0; i < 64; i++)
		assert_int_equal(mr_pcapng_add_interface(file, "x", 0), i);
	assert_int_equal(mr_pcapng_add_interface(file, "x", 0), -ENOSPC);
	packet.size = 0;
	assert_int_equal(mr_pcapng_write(file, data, &frame, &packet), -EINVAL);
	assert_int_equal(mr_pcapng_close(file, NULL), 0);
	assert_int_equal(mr_pcapng_close(NULL, NULL), 0);
	close(fd);
	mr_ctx_destroy(ctx);
}

TEST(file_that_cannot_grow_ends_with_a_whole_block)
{
	static uint8_t data[1000];
	const struct mr_frame frame = { .len = sizeof(data) };
	const struct mr_pcapng_packet packet = { .size = sizeof(packet) };
	char path[] = "/tmp/mr-pcapng-XXXXXX";
	const int fd = mkostemp(path, O_CLOEXEC);
	struct rlimit before, limit;
	struct mr_ctx *ctx = make_ctx();
	struct mr_pcapng *file;
	struct mr_reason why;
	off_t end;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 5000;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(mr_pcapng_open(ctx, fd, NULL, &file, NULL), 0);
	assert_int_equal(mr_pcapng_add_interface(file, "x", 0), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(mr_pcapng_write(file, data, &frame, &packet),
				 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(mr_pcapng_flush(file), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	/* It says so from now on, and writes no more. */
	assert_int_equal(mr_pcapng_write(file, data, &frame, &packet), -EFBIG);
	assert_int_equal(mr_pcapng_close(file, &why), -EFBIG);
	assert_non_null(strstr(why.text, "File too large"));
	/* What the program writes next makes no hole. */
	end = lseek(fd, 0, SEEK_CUR);
	assert_int_equal(end, lseek(fd, 0, SEEK_END));
	read_file(fd);
	assert_in_range(n_bytes, 4000, 5000);
	close(fd);
	mr_ctx_destroy(ctx);
}
