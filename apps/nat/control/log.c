/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: rings of events, and JSON lines. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "config/values.h"
#include "log.h"
#include "support/background.h"
#include "support/counter.h"
#include "support/text.h"

enum {
	/* An event takes two entries of a ring of frames, which saves writing
	 * and testing another kind of ring. */
	EVENT_ENTRIES = 2,
	RING_ENTRIES = 1 << 15,
	BURST_EVENTS = 64,
	LOG_MS = 5000,      /* for the last lines */
	LOG_HANDED_MS = 20, /* while frames wait */
};

union slot {
	struct nat_log_event event;
	struct mr_frame entries[EVENT_ENTRIES];
};
_Static_assert(sizeof(union slot) == EVENT_ENTRIES * sizeof(struct mr_frame),
	       "an event is two entries");

struct nat_log_ring {
	struct mr_ring_spsc *ring;
	uint64_t n_lost;      /* written by the worker */
	uint64_t n_lost_said; /* used by the thread that writes the file */
};

struct nat_log {
	struct mr_ctx *ctx;
	struct background *writer; /* while it is busy, it owns the rest */
	bool must_reopen;          /* atomic: the file was moved */
	FILE *file;                /* NULL: none */
	char path[256];
	uint32_t n_workers;
	int64_t epoch_s; /* of tick 0 */
	uint64_t n_written, n_failed;
	uint64_t n_buffered; /* written or lost, not yet known */
	bool is_broken;      /* writing failed; reported */
	struct nat_log_ring rings[];
};

static const char *const event_names[] = {
	[NAT_LOG_BLOCK_BEGIN] = "block_begin",
	[NAT_LOG_BLOCK_END] = "block_end",
	[NAT_LOG_MAPPING_BEGIN] = "mapping_begin",
	[NAT_LOG_MAPPING_END] = "mapping_end",
	[NAT_LOG_NO_PORT] = "no_port",
	[NAT_LOG_QUOTA] = "quota",
};

static int fail_open(const struct nat_log *log, struct mr_reason *ret_why)
{
	const int err = errno;

	return fail_with(ret_why, -err, "log: %s: %s", log->path,
			 err == ENXIO ?
				 "a FIFO without a reader; start its reader "
				 "first, or name a file" :
				 mr_strerror(err));
}

/* Open for appending. Only the owner may see who talked to whom, even if the
 * file already existed. */
static FILE *open_file(const char *path)
{
	/* Do not wait for a FIFO's reader; writing may wait. */
	const int fd = open(
		path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK,
		0600);
	struct stat stat;

	if (fd < 0)
		return NULL;
	fcntl(fd, F_SETFL, O_APPEND);
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
	    (stat.st_mode & S_IRWXO) != 0)
		fchmod(fd, stat.st_mode & ~S_IRWXO & 07777);
	return fdopen(fd, "a");
}

static void free_log(struct nat_log *log)
{
	if (log->file != NULL)
		fclose(log->file);
	for (uint32_t w = 0; w < log->n_workers; w++)
		mr_ring_spsc_destroy(log->rings[w].ring);
	free(log);
}

int nat_log_create(struct mr_ctx *ctx, const char *path, uint32_t n_workers,
		   struct nat_log **ret_log, struct mr_reason *ret_why)
{
	struct nat_log *log =
		calloc(1, sizeof(*log) + n_workers * sizeof(log->rings[0]));
	int err = 0;

	if (log == NULL)
		return fail_with(ret_why, -ENOMEM, "no memory for the log");
	log->ctx = ctx;
	log->n_workers = n_workers;
	snprintf(log->path, sizeof(log->path), "%s", path);
	for (uint32_t w = 0; w < n_workers && err == 0; w++)
		err = mr_ring_spsc_create(ctx, RING_ENTRIES,
					  &log->rings[w].ring, ret_why);
	if (err == 0 && path[0] != '\0') {
		log->file = open_file(path);
		if (log->file == NULL)
			err = fail_open(log, ret_why);
	}
	if (err == 0) {
		log->writer = background_create(-1);
		if (log->writer == NULL)
			err = fail_with(ret_why, -errno,
					"no thread for the log");
	}
	if (err < 0) {
		free_log(log);
		return err;
	}
	*ret_log = log;
	return 0;
}

struct nat_log_ring *nat_log_ring(struct nat_log *log, uint32_t worker_idx)
{
	return &log->rings[worker_idx];
}

void nat_log_put(void *opaque, const struct nat_log_event *event)
{
	struct nat_log_ring *ring = opaque;
	union slot slot = { 0 };

	slot.event = *event;
	/* Never room for just one entry: all come in pairs. */
	if (mr_ring_spsc_enqueue_burst(ring->ring, slot.entries,
				       EVENT_ENTRIES) < EVENT_ENTRIES)
		counter_add(&ring->n_lost, 1);
}

static void print_time(FILE *file, int64_t t_s)
{
	const time_t t = (time_t)t_s;
	struct tm tm;
	char text[32];

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(file, "{\"t\":\"%s\"", text);
}

static void print_addr(FILE *file, const char *name, uint32_t addr)
{
	fprintf(file, ",\"%s\":\"%s\"", name, nat_end_text(addr, 0).text);
}

static void print_event(struct nat_log *log, const struct nat_log_event *e)
{
	const bool is_mapping = e->what == NAT_LOG_MAPPING_BEGIN ||
				e->what == NAT_LOG_MAPPING_END;
	FILE *file = log->file;

	print_time(file, log->epoch_s + e->now_s);
	fprintf(file, ",\"event\":\"%s\"", event_names[e->what]);
	if (e->proto != 0)
		fprintf(file, ",\"proto\":%u", e->proto);
	print_addr(file, "inside", e->inside_addr);
	if (is_mapping)
		fprintf(file, ",\"inside_port\":%u", ntohs(e->inside_port));
	if (e->outside_addr != 0)
		print_addr(file, "outside", e->outside_addr);
	if (is_mapping)
		fprintf(file, ",\"outside_port\":%u", ntohs(e->outside_port));
	else if (e->n_ports > 0)
		fprintf(file, ",\"first_port\":%u,\"n_ports\":%u",
			ntohs(e->outside_port), e->n_ports);
	fputs("}\n", file);
	log->n_buffered++;
}

/* How many lines are missing before this one. */
static void print_lost(struct nat_log *log, struct nat_log_ring *ring)
{
	const uint64_t n_lost = counter_get(&ring->n_lost);

	if (n_lost == ring->n_lost_said)
		return;
	print_time(log->file, (int64_t)time(NULL));
	fprintf(log->file, ",\"event\":\"lost\",\"n\":%llu}\n",
		(unsigned long long)(n_lost - ring->n_lost_said));
	ring->n_lost_said = n_lost;
	log->n_buffered++;
}

/* Whether the file took all lines; if not, none of them counts as written. */
static bool flush_lines(struct nat_log *log)
{
	const bool is_good = fflush(log->file) == 0 && !ferror(log->file);

	counter_add(is_good ? &log->n_written : &log->n_failed,
		    log->n_buffered);
	log->n_buffered = 0;
	return is_good;
}

bool nat_log_flush(struct nat_log *log, uint32_t now_s,
		   struct mr_reason *ret_why)
{
	log->epoch_s = (int64_t)time(NULL) - now_s;
	if (log->file != NULL)
		clearerr(log->file); /* the disk may have room again */
	for (uint32_t w = 0; w < log->n_workers; w++) {
		struct nat_log_ring *ring = &log->rings[w];
		union slot slots[BURST_EVENTS];
		uint32_t n;

		while ((n = mr_ring_spsc_dequeue_burst(
				ring->ring, slots[0].entries,
				BURST_EVENTS * EVENT_ENTRIES)) > 0)
			for (uint32_t i = 0;
			     i < n / EVENT_ENTRIES && log->file != NULL; i++)
				print_event(log, &slots[i].event);
		if (log->file != NULL)
			print_lost(log, ring);
	}
	if (log->file == NULL || flush_lines(log) || log->is_broken)
		return true;
	log->is_broken = true;
	fail_open(log, ret_why);
	return false;
}

static void write_rings(struct nat_log *log)
{
	struct mr_reason why;

	if (!nat_log_flush(log,
			   (uint32_t)(mr_ctx_now_ns(log->ctx) / 1000000000u),
			   &why))
		print_error("mr-nat: %s", why.text);
}

/* On failure, the old file stays. */
static void reopen_file(struct nat_log *log)
{
	FILE *file = open_file(log->path);
	struct mr_reason why;

	if (file == NULL) {
		fail_open(log, &why);
		print_error("mr-nat: %s", why.text);
		return;
	}
	fclose(log->file);
	log->file = file;
	log->is_broken = false;
}

/* Jobs of the writer. */
static void write_log(void *opaque)
{
	struct nat_log *log = opaque;

	if (__atomic_exchange_n(&log->must_reopen, false, __ATOMIC_RELAXED) &&
	    log->path[0] != '\0')
		reopen_file(log);
	write_rings(log);
}

static void end_log(void *opaque)
{
	struct nat_log *log = opaque;

	if (log->file != NULL)
		write_rings(log);
	free_log(log);
}

void nat_log_write(struct nat_log *log)
{
	if (background_is_idle(log->writer))
		background_do(log->writer, write_log, log);
}

void nat_log_reopen(struct nat_log *log)
{
	__atomic_store_n(&log->must_reopen, true, __ATOMIC_RELAXED);
	nat_log_write(log);
}

void nat_log_destroy(struct nat_log *log)
{
	struct background *writer;
	char path[sizeof(log->path)];

	if (log == NULL)
		return;
	writer = log->writer;
	memcpy(path, log->path, sizeof(path));
	if (background_wait(writer, LOG_MS))
		background_do(writer, end_log, log);
	if (!background_wait(writer, LOG_MS))
		print_error("mr-nat: log: %s: cannot write the last lines",
			    path);
	background_destroy(writer);
}

struct nat_log_stats nat_log_stats(const struct nat_log *log)
{
	struct nat_log_stats stats = {
		.n_written = counter_get(&log->n_written),
		.n_lost = counter_get(&log->n_failed),
	};

	for (uint32_t w = 0; w < log->n_workers; w++)
		stats.n_lost += __atomic_load_n(&log->rings[w].n_lost,
						__ATOMIC_RELAXED);
	return stats;
}

struct nat_log_stats nat_log_settle(struct nat_log *log)
{
	struct nat_log_stats stats;

	/* It may have looked into a ring before the last event. */
	if (background_wait(log->writer, LOG_HANDED_MS)) {
		background_do(log->writer, write_log, log);
		(void)background_wait(log->writer, LOG_HANDED_MS);
	}
	stats = nat_log_stats(log);
	/* It is slow: it writes the rest before the process ends. */
	for (uint32_t w = 0; w < log->n_workers; w++)
		stats.n_written +=
			mr_ring_spsc_count(log->rings[w].ring) / EVENT_ENTRIES;
	return stats;
}

void nat_log_inherit(struct nat_log *log, const struct nat_log_stats *stats)
{
	counter_add(&log->n_written, stats->n_written);
	counter_add(&log->n_failed, stats->n_lost);
}
