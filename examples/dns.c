/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dns: answer queries for names that contain their address: 192.0.2.1 for
 * 192-0-2-1.example.org. The answer is written over the query, in its page.
 *
 *     sudo ./dns 'xdp:eth0,filter=udp dst port 53 and dst host 192.0.2.53'
 *
 * The kernel keeps the interface's address, answers ARP, and gets other frames.
 */
#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <millrace/millrace.h>

enum { BURST = 64, HEADER = 12, LONGEST_NAME = 255, RECORD = 16, EDNS = 11 };

static struct mr_dataplane *dp;
static struct mr_port_info port_info = { .size = sizeof(port_info) };
static unsigned long n_answered, n_ignored, n_unsent;

/*
 * Turn a query into its answer, which can be longer by a record and EDNS.
 * Returns its length, or 0: do not answer. RFC 1035, 4.1; RFC 6891, 6.1.
 */
static uint32_t answer(uint8_t *dns, uint32_t n)
{
	uint8_t edns[EDNS] = { 0, 0, 41, 1232 >> 8, 1232 & 255 };
	uint8_t record[RECORD] = "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4";
	uint32_t at = HEADER, has_edns, has_name, has_record, is_newer;
	char text[16] = "";

	/* Only queries with one question: answering answers would loop. */
	if (n < HEADER || dns[2] >> 3 || memcmp(dns + 4, "\0\1\0\0\0\0", 6))
		return 0;
	while (at < n && dns[at] > 0 && dns[at] < 64)
		at += 1 + dns[at];
	if (at + 5 > n || dns[at] != 0 || at >= HEADER + LONGEST_NAME)
		return 0;
	at += 5; /* the name's end, type and class */
	if (dns[HEADER] < sizeof(text))
		memcpy(text, dns + HEADER + 1, dns[HEADER]);
	for (char *dash = text; (dash = strchr(dash, '-')) != NULL;)
		*dash = '.';
	has_name = inet_pton(AF_INET, text, record + 12) == 1;
	has_record = has_name && !memcmp(dns + at - 4, "\0\1\0\1", 4);
	has_edns = n >= at + EDNS && !memcmp(dns + at, edns, 3);
	is_newer = has_edns && dns[at + 6] > 0; /* than version 0 */
	edns[5] = (uint8_t)is_newer;            /* BADVERS: 1 here, 0 there */
	has_record &= !is_newer;

	dns[2] = 0x84 | (dns[2] & 1);          /* an authoritative answer */
	dns[3] = has_name || is_newer ? 0 : 3; /* no such name */
	memcpy(dns + 6, (uint8_t[]){ 0, has_record, 0, 0, 0, has_edns }, 6);
	memcpy(dns + at, record, RECORD);
	at += has_record * RECORD;
	memcpy(dns + at, edns, EDNS);
	return at + has_edns * EDNS;
}

/* Whether it is for us, and whole. IP options get no answer. */
static int is_ours(const uint8_t *bytes, uint32_t n, struct mr_net_view *at)
{
	return mr_net_parse(bytes, n, n, at) == 0 && !at->is_fragment &&
	       memcmp(bytes, port_info.mac, 6) == 0 &&
	       at->ether_type == MR_ETHER_IPV4 && at->l4_proto == IPPROTO_UDP &&
	       at->l4_bytes == at->l3_bytes + 20 &&
	       ntohs(((const struct mr_udp *)(bytes + at->l4_bytes))
			     ->n_bytes) == at->l4_len_bytes &&
	       mr_csum_fold(mr_csum_add(bytes + at->l3_bytes, 20, 0)) == 0xffff;
}

/* Turn a frame with a query into one with its answer. 0: do not answer. */
static int reply(struct mr_cache *cache, uint8_t *base, struct mr_frame *frame)
{
	uint8_t *bytes = mr_frame_data(base, frame);
	struct mr_net_view at;
	struct mr_ipv4 *ip;
	struct mr_udp *udp, udp_in;
	uint32_t n;

	if (!is_ours(bytes, frame->len, &at) ||
	    mr_frame_put(cache, frame, RECORD + EDNS) < 0 ||
	    (n = answer(bytes + at.l4_bytes + sizeof(*udp),
			at.l4_len_bytes - sizeof(*udp))) == 0)
		return 0;
	ip = (struct mr_ipv4 *)(bytes + at.l3_bytes);
	udp_in = *(udp = (struct mr_udp *)(bytes + at.l4_bytes));
	at.l4_len_bytes = (uint16_t)(n += sizeof(*udp));
	mr_net_swap_macs(bytes);
	mr_net_swap_addrs(bytes, &at);
	ip->total_bytes = htons((uint16_t)(sizeof(*ip) + n));
	ip->ttl = 64;
	mr_csum_write_ipv4(ip);
	udp->src = udp_in.dst;
	udp->dst = udp_in.src;
	udp->n_bytes = htons((uint16_t)n);
	mr_csum_write(base, frame, &at);
	frame->flags &= ~MR_FRAME_CSUM_PARTIAL;
	return mr_frame_trim(frame, frame->len - at.l4_bytes - n) == 0;
}

static uint32_t serve(struct mr_worker *worker, const struct mr_worker_rxq *rx,
		      void *opaque)
{
	uint8_t *base = mr_region_base(mr_pool_region(dp->pool));
	struct mr_frame in[BURST], out[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, in, BURST);
	uint32_t n_out = 0, n_sent, len;

	(void)opaque;
	for (uint32_t i = 0; i < n; i += len) {
		len = mr_frame_n_entries(&in[i]);
		if (len == 1 && reply(worker->cache, base, &in[i])) {
			out[n_out++] = in[i];
			continue;
		}
		mr_frame_free_bulk(worker->cache, &in[i], len);
		n_ignored++;
	}
	n_sent = mr_worker_send(worker, 0, out, n_out);
	mr_frame_free_bulk(worker->cache, out + n_sent, n_out - n_sent);
	n_answered += n_sent;
	n_unsent += n_out - n_sent;
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
	struct mr_reason why;

	if (argc != 2)
		errx(2, "usage: %s PORT", argv[0]);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	mr_port_info(dp->ports[0], &port_info);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, serve, NULL, &why) < 0)
		errx(1, "%s", why.text);
	printf("%lu answered, %lu ignored, %lu not sent\n", n_answered,
	       n_ignored, n_unsent);
	mr_dataplane_close(dp, NULL);
	return 0;
}
