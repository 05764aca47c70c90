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

static struct mr_workers *workers;
static unsigned long n_forwarded, n_unsent, n_unseen;

/* Free entries that a port did not take. Returns how many frames they are. */
static uint32_t lose(struct mr_cache *cache, const struct mr_frame *frames,
		     uint32_t n)
{
	mr_frame_free_bulk(cache, frames, n);
	return mr_frame_n_frames(frames, n);
}

static uint32_t forward(struct mr_worker *worker,
			const struct mr_worker_rxq *from)
{
	struct mr_cache *cache = worker->cache;
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(from->rxq, cache, frames, BURST), n_sent;

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

static void on_signal(int sig)
{
	(void)sig;
	mr_workers_stop(workers);
}

static void run(struct mr_worker *worker)
{
	struct mr_tx_stats tap = { .size = sizeof(tap) };
	uint32_t n;

	signal(SIGINT, on_signal);
	do {
		n = 0;
		for (uint32_t i = 0; i < worker->n_rxqs; i++)
			n += forward(worker, &worker->rxqs[i]);
	} while (mr_worker_wait(worker, n));
	mr_txq_stats(worker->routes[TAP].txq, &tap);
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_unseen += tap.drops[i]; /* such as: the interface is down */
	printf("%lu forwarded, %lu not sent; %lu mirrored, %lu not\n",
	       n_forwarded, n_unsent, (unsigned long)tap.completed, n_unseen);
}

/* One pool for all ports, and for frames in this program. */
static struct mr_pool *pool_for(struct mr_ctx *ctx, char **specs,
				uint32_t n)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 2048 };
	struct mr_pool *pool;
	struct mr_reason why;

	if (mr_pool_size_for(ctx, (const char **)specs, n, 1, 1, &config,
			     &why) < 0 ||
	    mr_pool_create(ctx, &config, &pool, &why) < 0)
		errx(1, "%s", why.text);
	return pool;
}

int main(int argc, char **argv)
{
	char **specs = argv + 1;
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_port *ports[N_PORTS];
	struct mr_workers_config one = { .size = sizeof(one),
					 .n_workers = 1,
					 .ports = ports,
					 .n_ports = N_PORTS };
	struct mr_reason why;
	struct mr_ctx *ctx;

	if (argc != 1 + N_PORTS)
		errx(2, "usage: %s PORT PORT tap:NAME", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0)
		errx(1, "%s", why.text);
	config.pool = pool_for(ctx, specs, N_PORTS);
	for (int i = 0; i < N_PORTS; i++)
		if (mr_port_open(ctx, specs[i], &config, &ports[i], &why) < 0)
			errx(1, "%s", why.text);
	one.pool = config.pool;
	if (mr_workers_create(ctx, &one, &workers, &why) < 0 ||
	    mr_worker_attach(mr_workers_get(workers, 0), &why) < 0)
		errx(1, "%s", why.text);

	run(mr_workers_get(workers, 0));

	mr_worker_detach(mr_workers_get(workers, 0));
	for (int i = 0; i < N_PORTS; i++)
		mr_port_close(ports[i]);
	mr_workers_destroy(workers);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}
