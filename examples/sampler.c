/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sampler: write every Nth frame of each queue of a port to a pcapng file, or
 * to a program. The port receives mirrored traffic: nothing is forwarded.
 *
 *     sudo ./sampler 1000 samples.pcapng xdp:eth1
 *     sudo ./sampler 100 /dev/stdout xdp:eth1 | tshark -r -
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <millrace/millrace.h>

enum { BURST = 64, MAX_QUEUES = 64 };

static struct mr_dataplane *dp;
static uint64_t n_seen[MAX_QUEUES], n_written[MAX_QUEUES];
static long interval;
static FILE *file;

static void put(uint64_t value, uint32_t n_bytes)
{
	for (; n_bytes > 0; n_bytes--, value >>= 8)
		putc((int)(value & 255), file);
}

/* draft-ietf-opsawg-pcapng, 4.1 to 4.3 and 4.6. A queue is an interface. */
static void begin_block(uint32_t type, uint32_t n_bytes, uint32_t queue)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	put(type, 4);
	put(n_bytes, 4);
	put(queue, 4);
	put(ns >> 32, 4);
	put(ns, 4);
}

static void write_head(uint32_t n_queues)
{
	put(0x0a0d0d0a, 4); /* a section, little-endian, version 1.0 */
	put(28, 4);
	put(0x1a2b3c4d, 4);
	put(1, 4);
	put(UINT64_MAX, 8); /* of unknown length */
	put(28, 4);         /* the block's length is at both ends */
	for (uint32_t queue = 0; queue < n_queues; queue++) {
		put(1, 4);
		put(44, 4);
		put(1, 4);           /* Ethernet */
		put(0, 4);           /* whole frames */
		put(2 | 8 << 16, 4); /* its name, in 8 bytes */
		fprintf(file, "queue %02u", queue);
		put(9 | 1 << 16, 4);
		put(9, 4); /* times are in nanoseconds */
		put(0, 4);
		put(44, 4);
	}
}

static void write_frame(const struct mr_frame *frames, uint32_t n,
			uint32_t queue)
{
	uint8_t *base = mr_region_base(mr_pool_region(dp->pool));
	const uint32_t n_frame = (uint32_t)mr_frame_n_bytes(frames, n);
	const uint32_t n_padding = -n_frame & 3;

	begin_block(6, 32 + n_frame + n_padding, queue);
	put(n_frame, 4);
	put(n_frame, 4);
	for (uint32_t i = 0; i < n; i++)
		fwrite(mr_frame_data(base, &frames[i]), frames[i].len, 1, file);
	put(0, n_padding);
	put(32 + n_frame + n_padding, 4);
	n_written[queue]++;
}

static void write_counters(const struct mr_worker_rxq *from)
{
	const uint32_t queue = from->queue_idx;
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	uint64_t n_lost = 0;

	mr_rxq_stats(from->rxq, &stats);
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_lost += stats.drops[i];
	begin_block(5, 64, queue);
	put(4 | 8 << 16, 4); /* frames received, with those lost */
	put(n_seen[queue] + n_lost, 8);
	put(5 | 8 << 16, 4); /* frames lost */
	put(n_lost, 8);
	put(8 | 8 << 16, 4); /* frames written */
	put(n_written[queue], 8);
	put(0, 4);
	put(64, 4);
}

/* If the reader is slow, this waits, and the port drops and counts frames. */
static uint32_t sample(struct mr_worker *worker,
		       const struct mr_worker_rxq *from, void *opaque)
{
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(from->rxq, worker->cache, frames, BURST);

	(void)opaque;
	for (uint32_t i = 0, len; i < n; i += len) {
		len = mr_frame_n_entries(&frames[i]);
		if (n_seen[from->queue_idx]++ % (uint64_t)interval == 0)
			write_frame(&frames[i], len, from->queue_idx);
	}
	mr_frame_free_bulk(worker->cache, frames, n);
	if (fflush(file) != 0)
		mr_dataplane_stop(dp); /* the reader has ended */
	return n;
}

static void on_signal(int number)
{
	(void)number;
	mr_dataplane_stop(dp);
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1 };
	const struct mr_worker *worker;
	struct mr_reason why;
	char *end;

	interval = argc == 4 ? strtol(argv[1], &end, 10) : 0;
	if (interval < 1 || *end != '\0')
		errx(2, "usage: %s N FILE PORT, with N >= 1", argv[0]);
	config.specs = (const char *const *)argv + 3;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	worker = mr_workers_get(dp->workers, 0);
	if (worker->n_rxqs > MAX_QUEUES)
		errx(1, "the port has more than %d queues", MAX_QUEUES);
	if ((file = fopen(argv[2], "we")) == NULL)
		err(1, "%s", argv[2]);
	write_head(worker->n_rxqs);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, sample, NULL, &why) < 0)
		errx(1, "%s", why.text);
	for (uint32_t i = 0; i < worker->n_rxqs; i++)
		write_counters(&worker->rxqs[i]);
	mr_dataplane_close(dp, NULL);
	if (fclose(file) != 0)
		err(1, "%s", argv[2]);
	return 0;
}
