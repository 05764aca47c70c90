/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count: frames and bytes per EtherType, until Ctrl-C or until the link is
 * down, as it is behind the end of a capture. Sleeps while there is nothing.
 *
 *     ./count pcap:rx=in.pcap
 *     sudo ./count xdp:eth1
 */
#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include <millrace/millrace.h>

enum { BURST = 64, POLL_MS = 200, MAX_QUEUES = 64 };

static volatile sig_atomic_t stop;
static uint64_t n_frames[UINT16_MAX + 1], n_bytes[UINT16_MAX + 1];

static void on_signal(int sig)
{
	stop = sig;
}

/* One frame of entries; the headers are in the first. Returns its entries. */
static uint32_t count(const struct mr_frame *frames, uint8_t *base)
{
	uint64_t len = 0;
	struct mr_net_view view;
	uint32_t n = 0;

	do {
		len += frames[n].len;
	} while (frames[n++].flags & MR_FRAME_MORE);
	mr_net_parse(mr_frame_data(base, frames), frames[0].len, (uint32_t)len,
		     &view);
	n_frames[view.ether_type]++;
	n_bytes[view.ether_type] += len;
	return n;
}

/*
 * Nothing came: sleep until something does. Arming says whether it may: what
 * came since the last burst would else never wake us. False: nothing more comes.
 */
static int wait_for_work(struct mr_port *port)
{
	struct pollfd fds[MAX_QUEUES];
	struct mr_link link;
	struct mr_rxq *rxq;
	uint32_t n;

	for (n = 0; n < MAX_QUEUES && (rxq = mr_port_rxq(port, n)); n++) {
		fds[n].fd = mr_queue_fd(&rxq->queue);
		fds[n].events = POLLIN;
		if (mr_queue_arm(&rxq->queue) == 1)
			return 1;
	}
	poll(fds, n, POLL_MS);
	mr_port_poll(port);
	/* Not every port has a notion of a link. */
	return mr_port_link(port, &link) < 0 ||
	       !(link.is_ended || link.is_gone);
}

static void receive(struct mr_port *port, struct mr_cache *cache, uint8_t *base)
{
	struct mr_frame frames[BURST];
	struct mr_rxq *rxq;
	uint32_t n, n_all;

	do {
		n_all = 0;
		for (uint32_t q = 0; (rxq = mr_port_rxq(port, q)); q++) {
			n = mr_rx_burst(rxq, cache, frames, BURST);
			for (uint32_t i = 0; i < n;)
				i += count(&frames[i], base);
			mr_frame_free_bulk(cache, frames, n);
			n_all += n;
		}
	} while (!stop && (n_all > 0 || wait_for_work(port)));
}

int main(int argc, char **argv)
{
	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_ctx *ctx;
	struct mr_cache *cache;
	struct mr_port *port;
	struct mr_reason why;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example pcap:rx=FILE", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 1, 1, 1, &pool,
			     &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &config, &port, &why) < 0)
		errx(1, "%s", why.text);

	signal(SIGINT, on_signal);
	receive(port, cache, mr_region_base(mr_pool_region(config.pool)));
	for (uint32_t type = 0; type <= UINT16_MAX; type++)
		if (n_frames[type] > 0)
			printf("0x%04" PRIx32 " %10" PRIu64 " frames %12" PRIu64
			       " bytes\n",
			       type, n_frames[type], n_bytes[type]);

	mr_port_close(port);
	mr_cache_destroy(cache);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}
