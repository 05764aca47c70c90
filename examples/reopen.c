/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reopen: count frames on a port whose device may disappear and return.
 *
 *     ./reopen xdp:eth0
 */
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include <millrace/millrace.h>

enum { FIRST_WAIT_MS = 100, MAX_WAIT_MS = 5000 };

static struct mr_dataplane *dp;
static volatile sig_atomic_t is_stopping;
static int is_away;
static unsigned long long n_entries;

static void on_signal(int number)
{
	signal(number, SIG_DFL); /* a second one ends it at once */
	is_stopping = 1;
	mr_dataplane_stop(dp);
}

/* Only end the run: the port must not be closed here. */
static void note_loss(void *opaque, struct mr_port *port, uint32_t events)
{
	(void)opaque;
	(void)port;
	if (events & (MR_PORT_EVENT_GONE | MR_PORT_EVENT_DETACHED)) {
		printf("the device is gone\n");
		is_away = 1;
		mr_dataplane_stop(dp);
	}
}

static uint32_t receive(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	struct mr_frame frames[64];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, 64);

	(void)opaque;
	mr_frame_free_bulk(worker->cache, frames, n);
	n_entries += n;
	return n;
}

/* Now nobody uses the queues. The workers get those of the new port. */
static void open_again(void)
{
	int wait_ms = FIRST_WAIT_MS;
	struct mr_reason why;

	while (!is_stopping && mr_port_reopen(dp->ports[0], &why) < 0) {
		poll(NULL, 0, wait_ms);
		if (wait_ms < MAX_WAIT_MS)
			wait_ms *= 2;
	}
	if (is_stopping)
		return;
	if (mr_workers_reassign(dp->workers, &why) < 0)
		errx(1, "%s", why.text);
	is_away = 0;
	printf("opened again after %llu entries\n", n_entries);
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1 };
	struct mr_reason why;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example xdp:eth0", argv[0]);
	setlinebuf(stdout);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	mr_port_subscribe(dp->ports[0], note_loss, NULL);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	printf("counting\n");
	while (!is_stopping) {
		if (is_away)
			open_again();
		else if (mr_dataplane_run(dp, receive, NULL, &why) < 0)
			errx(1, "%s", why.text);
	}
	printf("%llu entries\n", n_entries);
	mr_dataplane_close(dp, NULL);
	return 0;
}
