/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count: frames and bytes per EtherType, until Ctrl-C or the end of a capture.
 * Sleeps while there is nothing.
 *
 *     ./count pcap:rx=in.pcap
 *     sudo ./count xdp:eth1
 */
#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include <millrace/millrace.h>

enum { BURST = 64 };

static struct mr_dataplane *dp;
static uint64_t n_frames[UINT16_MAX + 1], n_bytes[UINT16_MAX + 1];

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

static uint32_t receive(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	uint8_t *base = mr_region_base(mr_pool_region(dp->pool));
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, BURST);

	(void)opaque;
	for (uint32_t i = 0; i < n;)
		i += count(&frames[i], base);
	mr_frame_free_bulk(worker->cache, frames, n);
	return n;
}

/* The end of a capture, or of the device. */
static void on_event(void *opaque, struct mr_port *port, uint32_t events)
{
	(void)opaque;
	(void)port;
	if (events & (MR_PORT_EVENT_ENDED | MR_PORT_EVENT_GONE))
		mr_dataplane_stop(dp);
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
	struct mr_reason why;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example pcap:rx=FILE", argv[0]);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	mr_port_subscribe(dp->ports[0], on_event, NULL);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, receive, NULL, &why) < 0)
		errx(1, "%s", why.text);
	for (uint32_t type = 0; type <= UINT16_MAX; type++)
		if (n_frames[type] > 0)
			printf("0x%04" PRIx32 " %10" PRIu64 " frames %12" PRIu64
			       " bytes\n",
			       type, n_frames[type], n_bytes[type]);
	mr_dataplane_close(dp, NULL);
	return 0;
}
