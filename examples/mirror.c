/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror: forward between two ports, and send each frame to a tap interface,
 * too. A frame then has two owners: it is not copied to be sent twice.
 *
 *     sudo ./mirror xdp:eth0 xdp:eth1 tap:mirror0
 *     sudo ip link set mirror0 up; sudo tcpdump -i mirror0
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>

#include <millrace/millrace.h>

enum { BURST = 64, TAP = 2, N_PORTS = 3 };

static struct mr_dataplane *dp;
static unsigned long n_forwarded, n_unsent, n_unseen;

/* Free entries that a port did not take. Returns how many frames they are. */
static uint32_t lose(struct mr_cache *cache, const struct mr_frame *frames,
		     uint32_t n)
{
	mr_frame_free_bulk(cache, frames, n);
	return mr_frame_n_frames(frames, n);
}

static uint32_t forward(struct mr_worker *worker,
			const struct mr_worker_rxq *from, void *opaque)
{
	struct mr_cache *cache = worker->cache;
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(from->rxq, cache, frames, BURST), n_sent;

	(void)opaque;
	if (from->port_idx == TAP) { /* from the kernel: drop them */
		mr_frame_free_bulk(cache, frames, n);
		return n;
	}
	/*
	 * The tap goes first, because it frees a frame as soon as it has taken
	 * it. The other port is then its only owner, and may write a checksum.
	 */
	if (mr_frame_ref(cache, frames, n) == 0) {
		n_sent = mr_worker_send(worker, TAP, frames, n);
		n_unseen += lose(cache, frames + n_sent, n - n_sent);
	} else {
		n_unseen += mr_frame_n_frames(frames, n);
	}
	n_sent = mr_worker_send(worker, !from->port_idx, frames, n);
	n_forwarded += mr_frame_n_frames(frames, n_sent);
	n_unsent += lose(cache, frames + n_sent, n - n_sent);
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
	struct mr_tx_stats tap = { .size = sizeof(tap) };
	struct mr_reason why;

	if (argc != 1 + N_PORTS)
		errx(2, "usage: %s PORT PORT tap:NAME", argv[0]);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, forward, NULL, &why) < 0)
		errx(1, "%s", why.text);
	mr_txq_stats(mr_port_txq(dp->ports[TAP], 0), &tap);
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_unseen += tap.drops[i]; /* such as: the interface is down */
	printf("%lu forwarded, %lu not sent; %lu mirrored, %lu not\n",
	       n_forwarded, n_unsent, (unsigned long)tap.completed, n_unseen);
	mr_dataplane_close(dp, NULL);
	return 0;
}
