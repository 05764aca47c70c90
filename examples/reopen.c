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

static volatile sig_atomic_t is_stopping;

static void stop(int number)
{
	(void)number;
	is_stopping = 1;
}

/* Only note that the device is gone: the port must not be closed here. */
static void note_loss(void *opaque, struct mr_port *port, uint32_t events)
{
	(void)port;
	if (events & (MR_PORT_EVENT_GONE | MR_PORT_EVENT_DETACHED)) {
		printf("the device is gone\n");
		*(int *)opaque = 1;
	}
}

static uint32_t receive(struct mr_port *port, struct mr_cache *cache)
{
	struct mr_frame frames[64];
	struct mr_rxq *rxq;
	uint32_t n, n_all = 0;

	for (uint32_t i = 0; (rxq = mr_port_rxq(port, i)) != NULL; i++) {
		n = mr_rx_burst(rxq, cache, frames, 64);
		mr_frame_free_bulk(cache, frames, n);
		n_all += n;
	}
	return n_all;
}

static unsigned long long count(struct mr_port *port, struct mr_cache *cache)
{
	int is_away = 0, wait_ms = FIRST_WAIT_MS;
	unsigned long long n_entries = 0;
	struct mr_reason why;
	uint32_t n;

	mr_port_subscribe(port, note_loss, &is_away);
	printf("counting\n");
	while (!is_stopping) {
		/* Between two bursts, nobody uses the queues. */
		if (is_away && mr_port_reopen(port, &why) == 0) {
			printf("opened again after %llu entries\n", n_entries);
			is_away = 0;
			wait_ms = FIRST_WAIT_MS;
		}
		n = receive(port, cache);
		n_entries += n;
		if (n > 0)
			continue;
		poll(NULL, 0, is_away ? wait_ms : 1);
		if (is_away && wait_ms < MAX_WAIT_MS)
			wait_ms *= 2;
		mr_port_poll(port);
	}
	return n_entries;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: %s PORT, for example xdp:eth0", argv[0]);

	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why;
	struct mr_cache *cache;
	struct mr_port *port;
	struct mr_ctx *ctx;

	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	setlinebuf(stdout);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 1, 1, 1, &pool,
			     &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &config, &port, &why) < 0)
		errx(1, "%s", why.text);
	printf("%llu entries\n", count(port, cache));

	mr_port_close(port);
	mr_cache_destroy(cache);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}
