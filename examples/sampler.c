/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sampler: write every Nth frame of each queue of a port to a pcapng file, or
 * to a program. The port receives mirrored traffic: nothing is forwarded.
 *
 *     sudo ./sampler 1000 samples.pcapng xdp:eth1
 *     sudo ./sampler 100 /dev/stdout xdp:eth1 | tshark -r -
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <millrace/millrace.h>

enum { BURST = 64, MAX_QUEUES = 64 };

static struct mr_dataplane *dp;
static uint64_t n_seen[MAX_QUEUES];
static long interval;
static struct mr_pcapng *file;

static void write_frame(const struct mr_frame *frame, uint32_t queue)
{
	const struct mr_pcapng_packet packet = { .size = sizeof(packet),
						 .interface = queue };

	mr_pcapng_write(file, mr_region_base(mr_pool_region(dp->pool)), frame,
			&packet);
}

static void write_counters(const struct mr_worker_rxq *from)
{
	const uint32_t queue = from->queue_idx;
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	uint64_t n_lost = 0;

	mr_rxq_stats(from->rxq, &stats);
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_lost += stats.drops[i];
	mr_pcapng_count(file, queue, n_seen[queue] + n_lost, n_lost);
}

/* A queue is an interface. */
static void open_file(const char *path, uint32_t n_queues)
{
	const int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	struct mr_reason why;
	char name[16];

	if (fd < 0)
		err(1, "%s", path);
	if (mr_pcapng_open(dp->ctx, fd, "sampler", &file, &why) < 0)
		errx(1, "%s", why.text);
	for (uint32_t queue = 0; queue < n_queues; queue++) {
		snprintf(name, sizeof(name), "queue %02u", queue);
		mr_pcapng_add_interface(file, name, 0);
	}
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
			write_frame(&frames[i], from->queue_idx);
	}
	mr_frame_free_bulk(worker->cache, frames, n);
	if (mr_pcapng_flush(file) < 0)
		mr_dataplane_stop(dp); /* the reader has ended */
	return n;
}

static void on_signal(int number)
{
	signal(number, SIG_DFL); /* a second one ends it at once */
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
	open_file(argv[2], worker->n_rxqs);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, sample, NULL, &why) < 0)
		errx(1, "%s", why.text);
	for (uint32_t i = 0; i < worker->n_rxqs; i++)
		write_counters(&worker->rxqs[i]);
	if (mr_pcapng_close(file, &why) < 0)
		errx(1, "%s: %s", argv[2], why.text);
	mr_dataplane_close(dp, NULL);
	return 0;
}
