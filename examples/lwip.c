/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lwip: a TCP/IP stack, lwIP, on a port. It has addresses that the kernel does
 * not have, answers HTTP requests with a file, and receives from iperf (2.x):
 *
 *     sudo ./lwip FILE 192.0.2.1/24 2001:db8::1 xdp:eth0
 *     curl http://192.0.2.1/; iperf -c 192.0.2.1
 *
 * A received frame is a pbuf, and freed with it. A frame to be sent is a copy
 * of a pbuf, which lwIP keeps until it is acknowledged. Only one thread, the
 * worker's, calls lwIP: nothing is locked.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lwip/etharp.h>
#include <lwip/ethip6.h>
#include <lwip/init.h>
#include <lwip/ip4_frag.h>
#include <lwip/ip6_frag.h>
#include <lwip/tcp.h>
#include <lwip/timeouts.h>
#include <netif/ethernet.h>

#include <millrace/millrace.h>

enum { BURST = 64, UNSENT = MR_BURST_MAX, MOST_HELD = 4096 };
enum { HTTP_PORT = 80, REQUEST_END = 0x0d0a0d0a, IPERF_PORT = 5001 };

/* A received frame while lwIP has it, in the headroom of that frame. */
struct held {
	struct pbuf_custom pbuf; /* first: lwIP hands its address back */
	struct mr_frame frame;
};

struct client {
	size_t n_received, n_sent;
	uint32_t newest; /* bytes of the request, until they are REQUEST_END */
};

static struct mr_dataplane *dp;
static struct mr_worker *worker;
static uint8_t *base;
static struct netif netif;
static struct mr_frame unsent[UNSENT];
static uint32_t n_unsent, n_held;
static unsigned long n_refused, n_dropped;
static char reply[64 << 20];
static size_t n_reply;

static void free_held(struct pbuf *pbuf)
{
	struct mr_frame frame = ((struct held *)pbuf)->frame;

	mr_frame_free_bulk(worker->cache, &frame, 1);
	n_held--;
}

static struct pbuf *hold_frame(const struct mr_frame *frame)
{
	uint8_t *bytes = mr_frame_data(base, frame);
	const uint16_t len = (uint16_t)frame->len;
	struct held *held =
		(void *)(((uintptr_t)bytes - sizeof(*held)) & -sizeof(void *));

	n_held++;
	held->frame = *frame;
	held->pbuf.custom_free_function = free_held;
	return pbuf_alloced_custom(PBUF_RAW, len, PBUF_REF, &held->pbuf, bytes,
				   len);
}

/* A veth's sender leaves checksums to the device, and lwIP verifies them. */
static void finish_csum(const struct mr_frame *frame)
{
	struct mr_net_view view;

	if (mr_net_parse(mr_frame_data(base, frame), frame->len, frame->len,
			 &view) == 0)
		mr_csum_write(base, frame, &view);
}

/* What a full queue does not take is sent in the next round. */
static void send_frames(void)
{
	uint32_t n = mr_worker_send(worker, 0, unsent, n_unsent);

	n_unsent -= n;
	memmove(unsent, unsent + n, n_unsent * sizeof(*unsent));
}

static err_t send_pbuf(struct netif *to, struct pbuf *pbuf)
{
	struct mr_frame frame = { .len = pbuf->tot_len };

	(void)to;
	if (n_unsent == UNSENT)
		send_frames();
	if (n_unsent == UNSENT ||
	    mr_frag_alloc_bulk(worker->cache, &frame.addr, 1, frame.len) == 0) {
		n_dropped++;
		return ERR_MEM;
	}
	pbuf_copy_partial(pbuf, mr_frame_data(base, &frame), pbuf->tot_len, 0);
	unsent[n_unsent++] = frame;
	return ERR_OK;
}

/* Frames of several entries are longer than the MTU that lwIP knows. */
static uint32_t serve(struct mr_worker *self, const struct mr_worker_rxq *rx,
		      void *opaque)
{
	struct mr_frame in[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, self->cache, in, BURST), len;

	(void)opaque;
	for (uint32_t i = 0; i < n; i += len) {
		len = mr_frame_n_entries(&in[i]);
		if (len > 1 || n_held == MOST_HELD ||
		    mr_frame_unshare(self->cache, &in[i], 1) < 0) {
			mr_frame_free_bulk(self->cache, &in[i], len);
			n_refused++;
			continue;
		}
		if (in[i].flags & MR_FRAME_CSUM_PARTIAL)
			finish_csum(&in[i]);
		ethernet_input(hold_frame(&in[i]), &netif);
	}
	sys_check_timeouts();
	send_frames();
	return n + n_unsent; /* do not sleep while frames wait */
}

static void free_client(void *client, err_t error)
{
	(void)error;
	free(client);
}

static err_t close_client(struct client *client, struct tcp_pcb *pcb)
{
	tcp_recv(pcb, NULL);
	tcp_sent(pcb, NULL);
	tcp_err(pcb, NULL);
	free(client);
	return tcp_close(pcb);
}

/* Send as much as the connection takes, and close it after the last byte. */
static err_t send_reply(void *opaque, struct tcp_pcb *pcb, uint16_t n_acked)
{
	struct client *client = opaque;
	size_t n;

	(void)n_acked;
	while ((n = n_reply - client->n_sent) > 0) {
		n = LWIP_MIN(n, tcp_sndbuf(pcb));
		if (n == 0 || tcp_write(pcb, reply + client->n_sent,
					(uint16_t)n, 0) != ERR_OK)
			return tcp_output(pcb);
		client->n_sent += n;
	}
	return close_client(client, pcb);
}

/* NULL is the end of the stream. Any HTTP request gets the same reply. */
static err_t receive(void *opaque, struct tcp_pcb *pcb, struct pbuf *pbuf,
		     err_t error)
{
	struct client *client = opaque;
	const int is_http = pcb->local_port == HTTP_PORT,
		  is_answered = client->newest == REQUEST_END;

	(void)error;
	if (pbuf == NULL && !is_http)
		printf("%s: %zu bytes\n", ipaddr_ntoa(&pcb->remote_ip),
		       client->n_received);
	if (pbuf == NULL)
		return is_answered ? ERR_OK : close_client(client, pcb);
	client->n_received += pbuf->tot_len;
	tcp_recved(pcb, pbuf->tot_len);
	for (uint16_t i = 0;
	     is_http && i < pbuf->tot_len && client->newest != REQUEST_END; i++)
		client->newest = client->newest << 8 | pbuf_get_at(pbuf, i);
	pbuf_free(pbuf);
	if (is_answered || client->newest != REQUEST_END)
		return ERR_OK;
	tcp_sent(pcb, send_reply);
	return send_reply(client, pcb, 0);
}

static err_t accept_client(void *opaque, struct tcp_pcb *pcb, err_t error)
{
	struct client *client;

	(void)opaque;
	if (error != ERR_OK || (client = calloc(1, sizeof(*client))) == NULL)
		return ERR_MEM;
	ip_set_option(pcb, SOF_KEEPALIVE); /* finds clients that are gone */
	pcb->keep_idle = 10000;
	tcp_arg(pcb, client);
	tcp_recv(pcb, receive);
	tcp_err(pcb, free_client);
	return ERR_OK;
}

static err_t set_up_netif(struct netif *to)
{
	struct mr_port_info info = { .size = sizeof(info) };

	mr_port_info(dp->ports[0], &info);
	memcpy(to->hwaddr, info.mac, to->hwaddr_len = 6);
	to->mtu = (uint16_t)LWIP_MIN(info.mtu_bytes - 1, 1499) + 1;
	to->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_MLD6 |
		    NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
	to->output = etharp_output;
	to->output_ip6 = ethip6_output;
	to->linkoutput = send_pbuf;
	return ERR_OK;
}

static void start_stack(const ip4_addr_t *ip, int n_bits, const ip6_addr_t *ip6)
{
	const ip4_addr_t mask = { lwip_htonl(UINT32_MAX << (32 - n_bits)) };

	lwip_init();
	netif_add(&netif, ip, &mask, NULL, NULL, set_up_netif, ethernet_input);
	netif_create_ip6_linklocal_address(&netif, 1);
	netif_add_ip6_address(&netif, ip6, NULL);
	netif_set_up(&netif);
	for (int i = 0; i < 2; i++) {
		struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);

		tcp_bind(pcb, IP_ANY_TYPE, i == 0 ? HTTP_PORT : IPERF_PORT);
		tcp_accept(tcp_listen(pcb), accept_client);
	}
}

static void on_signal(int number)
{
	signal(number, SIG_DFL); /* a second one ends it at once */
	mr_dataplane_stop(dp);
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1,
					      .kept_pages = MOST_HELD };
	struct mr_reason why;
	char text[16], end;
	ip6_addr_t ip6;
	ip4_addr_t ip;
	int n_bits;

	if (argc != 5)
		errx(2, "usage: %s FILE IPV4/BITS IPV6 PORT", argv[0]);
	if (sscanf(argv[2], "%15[0-9.]/%2d%c", text, &n_bits, &end) != 2 ||
	    !ip4addr_aton(text, &ip) || n_bits < 1 || n_bits > 30 ||
	    ip4_addr_isany_val(ip) || ip4_addr_ismulticast(&ip))
		errx(2, "%s: not an address like 192.0.2.1/24", argv[2]);
	if (!ip6addr_aton(argv[3], &ip6) || ip6_addr_isany(&ip6) ||
	    ip6_addr_ismulticast(&ip6))
		errx(2, "%s: not an address like 2001:db8::1", argv[3]);
	if (freopen(argv[1], "re", stdin) == NULL)
		err(1, "%s", argv[1]);
	n_reply = snprintf(reply, sizeof(reply), "HTTP/1.0 200 OK\r\n\r\n");
	n_reply += fread(reply + n_reply, 1, sizeof(reply) - n_reply, stdin);
	if (!feof(stdin))
		errx(1, "%s: not a file, or longer than 63 MiB", argv[1]);
	config.specs = (const char *const *)argv + 4;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	worker = mr_workers_get(dp->workers, 0);
	base = mr_region_base(mr_pool_region(dp->pool));
	start_stack(&ip, n_bits, &ip6);
	signal(SIGINT, on_signal);
	setlinebuf(stdout);
	puts("ready");
	if (mr_dataplane_run(dp, serve, NULL, &why) < 0)
		errx(1, "%s", why.text);
	netif_remove(&netif); /* resets all connections */
	for (int i = 0; i <= IPV6_REASS_MAXAGE; i++) { /* frees fragments */
		ip_reass_tmr();
		ip6_reass_tmr();
	}
	send_frames();
	mr_frame_free_bulk(worker->cache, unsent, n_unsent);
	printf("%lu refused, %lu not sent\n", n_refused, n_dropped + n_unsent);
	if (mr_dataplane_close(dp, &why) < 0)
		errx(1, "%s", why.text);
	return 0;
}
