/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer: be a host that only answers ARP, neighbour solicitations and pings.
 *
 *     sudo ./answer 192.0.2.1 2001:db8::1 xdp:eth0
 *
 * The kernel must not have the addresses. A program that does more takes the
 * frames that are left, which are freed here.
 */
#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <millrace/millrace.h>

enum { BURST = 64 };

static struct mr_dataplane *dp;
static struct mr_answer *answer;
static unsigned long n_left, n_unsent;

static uint32_t serve(struct mr_worker *worker, const struct mr_worker_rxq *rx,
		      void *opaque)
{
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, BURST);
	uint32_t left, n_replies, n_sent;

	(void)opaque;
	/* The frames that are left come first, then the answers. */
	left = mr_answer_burst(answer, frames, NULL, n, &n_replies);
	n_sent = mr_worker_send(worker, 0, frames + left, n_replies);
	mr_frame_free_bulk(worker->cache, frames + left + n_sent,
			   n_replies - n_sent);
	mr_frame_free_bulk(worker->cache, frames, left);
	n_left += left;
	n_unsent += n_replies - n_sent;
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
	struct mr_answer_config addresses = { .size = sizeof(addresses),
					      .n_ipv4 = 1,
					      .n_ipv6 = 1 };
	struct mr_answer_stats stats = { .size = sizeof(stats) };
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_reason why;
	struct mr_cache *cache;
	uint32_t ipv4;
	uint8_t ipv6[1][16];

	if (argc != 4 || inet_pton(AF_INET, argv[1], &ipv4) != 1 ||
	    inet_pton(AF_INET6, argv[2], ipv6) != 1)
		errx(2, "usage: %s IPV4 IPV6 PORT", argv[0]);
	config.specs = (const char *const *)argv + 3;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	mr_port_info(dp->ports[0], &info);
	memcpy(addresses.mac, info.mac, 6);
	addresses.ipv4 = &ipv4;
	addresses.ipv6 = (const uint8_t(*)[16])ipv6;
	cache = mr_workers_get(dp->workers, 0)->cache;
	if (mr_answer_create(cache, &addresses, &answer, &why) < 0)
		errx(1, "%s", why.text);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, serve, NULL, &why) < 0)
		errx(1, "%s", why.text);
	mr_answer_stats(answer, &stats);
	for (uint32_t i = 0; mr_answer_name(i) != NULL; i++)
		printf("%lu %s, ", (unsigned long)stats.counts[i],
		       mr_answer_name(i));
	printf("%lu left, %lu not sent\n", n_left, n_unsent);
	mr_answer_destroy(answer);
	mr_dataplane_close(dp, NULL);
	return 0;
}
