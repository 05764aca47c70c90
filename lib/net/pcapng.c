/* SPDX-License-Identifier: BSD-3-Clause */
/* Write pcapng files. Source: draft-ietf-opsawg-pcapng, sections 3 and 4. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <millrace/pcapng.h>

#include "base/base.h"

enum {
	MAX_INTERFACES = 64,
	ROOM = 2 * MR_PCAPNG_SNAP_MAX,
	MORE = 2 * MR_PCAPNG_TEXT_MAX, /* most bytes of a block but a frame's */
};

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_COUNTERS = 5,
	BLOCK_PACKET = 6,
	MAGIC = 0x1a2b3c4d,
	ETHERNET = 1,
	COMMENT = 1,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	NANOSECONDS = 9,
	PACKET_FLAGS = 2,
	PACKET_DROPS = 4,
	PACKET_QUEUE = 6,
	COUNTERS_RECEIVED = 4,
	COUNTERS_DROPPED = 5,
	COUNTERS_WRITTEN = 8,
};

struct mr_pcapng {
	struct mr_ctx *ctx;
	int fd;
	int err; /* negative: of the first write that failed */
	uint32_t n_interfaces;
	uint32_t snap_bytes[MAX_INTERFACES];
	uint64_t n_written[MAX_INTERFACES];
	uint32_t block; /* where the one that is being made begins */
	uint32_t n;     /* bytes collected */
	uint8_t bytes[ROOM];
};

static void put(struct mr_pcapng *file, const void *bytes, uint32_t n)
{
	memcpy(file->bytes + file->n, bytes, n);
	file->n += n;
}

static void put_u32(struct mr_pcapng *file, uint32_t value)
{
	put(file, &value, sizeof(value));
}

static void put_padding(struct mr_pcapng *file)
{
	const uint32_t n = -file->n & 3;

	memset(file->bytes + file->n, 0, n);
	file->n += n;
}

static void put_option(struct mr_pcapng *file, uint16_t code, const void *value,
		       size_t n_bytes)
{
	const uint16_t n = (uint16_t)n_bytes;

	put(file, &code, sizeof(code));
	put(file, &n, sizeof(n));
	put(file, value, n);
	put_padding(file);
}

static void put_text(struct mr_pcapng *file, uint16_t code, const char *text)
{
	if (text != NULL)
		put_option(file, code, text, strnlen(text, MR_PCAPNG_TEXT_MAX));
}

/* Since 1970; the two halves of a block's time. */
static void put_time(struct mr_pcapng *file, uint64_t ns)
{
	struct timespec now;

	if (ns == 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	}
	put_u32(file, (uint32_t)(ns >> 32));
	put_u32(file, (uint32_t)ns);
}

static void begin_block(struct mr_pcapng *file, uint32_t type)
{
	file->block = file->n;
	put_u32(file, type);
	put_u32(file, 0); /* the length, here and at its end */
}

static void end_block(struct mr_pcapng *file)
{
	const uint32_t n = file->n + 4 - file->block;

	memcpy(file->bytes + file->block + 4, &n, sizeof(n));
	put_u32(file, n);
}

static void end_options(struct mr_pcapng *file)
{
	put_u32(file, 0);
	end_block(file);
}

/* After an error with n bytes written: cut what follows the last whole block,
 * if that is possible. */
static void cut_block(const struct mr_pcapng *file, uint32_t n)
{
	const off_t end = lseek(file->fd, 0, SEEK_CUR);
	struct stat status;
	uint32_t whole = 0, length;
	off_t at;

	while (whole + 8 <= n) {
		memcpy(&length, file->bytes + whole + 4, sizeof(length));
		if (length > n - whole)
			break;
		whole += length;
	}
	at = end - (off_t)(n - whole);
	if (whole < n && at >= 0 && fstat(file->fd, &status) == 0 &&
	    S_ISREG(status.st_mode) && ftruncate(file->fd, at) == 0)
		(void)lseek(file->fd, at, SEEK_SET);
}

int mr_pcapng_flush(struct mr_pcapng *file)
{
	uint32_t done = 0;

	while (file->err == 0 && done < file->n) {
		const ssize_t n =
			write(file->fd, file->bytes + done, file->n - done);

		if (n >= 0) {
			done += (uint32_t)n;
		} else if (errno != EINTR) {
			file->err = -errno;
			cut_block(file, done);
		}
	}
	file->n = 0;
	return file->err;
}

/* Have room for a block, or return the error. */
static int make_room(struct mr_pcapng *file, uint32_t n_bytes)
{
	return file->err == 0 && n_bytes <= ROOM - file->n ?
		       0 :
		       mr_pcapng_flush(file);
}

int mr_pcapng_open(struct mr_ctx *ctx, int fd, const char *application,
		   struct mr_pcapng **ret_file, struct mr_reason *reterr_reason)
{
	const uint64_t unknown_length = UINT64_MAX;
	struct mr_pcapng *file = mr_alloc(ctx, MRI_CACHE_LINE, sizeof(*file));

	if (file == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory to write a pcapng file");
	file->ctx = ctx;
	file->fd = fd;
	begin_block(file, BLOCK_SECTION);
	put_u32(file, MAGIC);
	put(file, (const uint16_t[]){ 1, 0 }, 4); /* version 1.0 */
	put(file, &unknown_length, sizeof(unknown_length));
	put_text(file, SECTION_APPLICATION, application);
	end_options(file);
	*ret_file = file;
	return 0;
}

int mr_pcapng_add_interface(struct mr_pcapng *file, const char *name,
			    uint32_t snap_bytes)
{
	const uint8_t resolution = NANOSECONDS;
	const int err = make_room(file, MORE);

	if (err < 0)
		return err;
	if (file->n_interfaces == MAX_INTERFACES)
		return -ENOSPC;
	if (snap_bytes == 0 || snap_bytes > MR_PCAPNG_SNAP_MAX)
		snap_bytes = MR_PCAPNG_SNAP_MAX;
	begin_block(file, BLOCK_INTERFACE);
	put_u32(file, ETHERNET);
	put_u32(file, snap_bytes);
	put_text(file, INTERFACE_NAME, name);
	put_option(file, INTERFACE_RESOLUTION, &resolution, 1);
	end_options(file);
	file->snap_bytes[file->n_interfaces] = snap_bytes;
	return (int)file->n_interfaces++;
}

static void put_bytes(struct mr_pcapng *file, void *base,
		      const struct mr_frame *frames, uint32_t n_bytes)
{
	for (; n_bytes > 0; frames++) {
		const uint32_t n = mri_min_u32(n_bytes, frames->len);

		put(file, mr_frame_data(base, frames), n);
		n_bytes -= n;
	}
	put_padding(file);
}

int mr_pcapng_write(struct mr_pcapng *file, void *base,
		    const struct mr_frame *frames,
		    const struct mr_pcapng_packet *packet)
{
	const uint64_t n_frame =
		mr_frame_n_bytes(frames, mr_frame_n_entries(frames));
	struct mr_pcapng_packet p;
	uint32_t n;
	int err =
		mri_copy_sized(&p, packet, sizeof(p), "mr_pcapng_packet", NULL);

	if (err < 0 || p.interface >= file->n_interfaces)
		return -EINVAL;
	n = file->snap_bytes[p.interface];
	n = n_frame < n ? (uint32_t)n_frame : n;
	err = make_room(file, MORE + n);
	if (err < 0)
		return err;
	begin_block(file, BLOCK_PACKET);
	put_u32(file, p.interface);
	put_time(file, p.ns);
	put_u32(file, n);
	put_u32(file, p.n_bytes > n ? p.n_bytes : (uint32_t)n_frame);
	put_bytes(file, base, frames, n);
	if (p.direction != 0)
		put_option(file, PACKET_FLAGS, &p.direction, 4);
	if (p.has_queue != 0)
		put_option(file, PACKET_QUEUE, &p.queue, 4);
	if (p.n_missed != 0)
		put_option(file, PACKET_DROPS, &p.n_missed, 8);
	put_text(file, COMMENT, p.comment);
	end_options(file);
	file->n_written[p.interface]++;
	return 0;
}

int mr_pcapng_count(struct mr_pcapng *file, uint32_t interface,
		    uint64_t n_received, uint64_t n_lost)
{
	const int err = make_room(file, MORE);

	if (interface >= file->n_interfaces)
		return -EINVAL;
	if (err < 0)
		return err;
	begin_block(file, BLOCK_COUNTERS);
	put_u32(file, interface);
	put_time(file, 0);
	put_option(file, COUNTERS_RECEIVED, &n_received, 8);
	put_option(file, COUNTERS_DROPPED, &n_lost, 8);
	put_option(file, COUNTERS_WRITTEN, &file->n_written[interface], 8);
	end_options(file);
	return 0;
}

int mr_pcapng_close(struct mr_pcapng *file, struct mr_reason *reterr_reason)
{
	int err;

	if (file == NULL)
		return 0;
	err = mr_pcapng_flush(file);
	mr_free(file->ctx, file);
	return err < 0 ? mr_fail(reterr_reason, err,
				 "cannot write the pcapng file: %s",
				 mr_strerror(-err)) :
			 0;
}
