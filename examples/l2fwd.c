/* SPDX-License-Identifier: BSD-3-Clause */
/* l2fwd: forward frames between two ports: sudo ./l2fwd xdp:eth0 xdp:eth1 */
#include <err.h>
#include <signal.h>

#include <millrace/millrace.h>

static struct mr_dataplane *dp;

static void on_signal(int number)
{
	signal(number, SIG_DFL); /* a second one ends it at once */
	mr_dataplane_stop(dp);
}

/* What the other port does not take is dropped: waiting would add latency. */
static uint32_t forward(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	struct mr_frame frames[32]; /* MR_MAX_SEGS or more */
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, 32);
	uint32_t n_sent = mr_worker_send(worker, !rx->port_idx, frames, n);

	(void)opaque;
	mr_frame_free_bulk(worker->cache, frames + n_sent, n - n_sent);
	return n;
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config) };
	struct mr_reason why;

	if (argc != 3)
		errx(2, "usage: %s PORT PORT, for example xdp:eth0", argv[0]);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, forward, NULL, &why) < 0)
		errx(1, "%s", why.text);
	mr_dataplane_close(dp, NULL);
	return 0;
}
