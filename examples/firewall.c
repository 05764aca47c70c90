/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firewall: forward between two ports, except frames from listed addresses.
 * The list is a file with an IPv4 or IPv6 prefix per line; # begins a comment.
 *
 *     sudo ./firewall list.txt xdp:eth0 xdp:eth1
 */
#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/millrace.h>

enum { BURST = 64 };
/* A trie: each bit of an address leads from one node to the next. */
struct node {
	struct node *next[2];
	int is_listed; /* and all nodes below */
};

static struct node ip4, ip6;
static struct mr_dataplane *dp;
static unsigned long n_passed, n_listed, n_unsent;

static int bit(const uint8_t *address, uint32_t i)
{
	return address[i / 8] >> (7 - i % 8) & 1;
}

/* "192.0.2.0/24"; without a length, one address. 0: neither. */
static int add(const char *line)
{
	uint32_t n_max = 32, n_bits = 1000; /* more than three digits can say */
	struct node *node = &ip4, **next;
	int family = AF_INET, end = 0;
	char text[46] = "";
	uint8_t address[16];

	sscanf(line, " %n%45[^/# \t\r\n] %n/%3u %n", &end, text, &end, &n_bits,
	       &end);
	if (text[0] == '\0' && strchr("#", line[end]))
		return 1; /* an empty line, or a comment */
	if (strchr(text, ':')) {
		family = AF_INET6;
		node = &ip6;
		n_max = 128;
	}
	n_bits = n_bits == 1000 ? n_max : n_bits;
	if (!strchr("#", line[end]) || n_bits > n_max ||
	    inet_pton(family, text, address) != 1)
		return 0;
	for (uint32_t i = 0; i < n_bits; i++, node = *next) {
		next = &node->next[bit(address, i)];
		if (*next == NULL && !(*next = calloc(1, sizeof(**next))))
			err(1, "list");
	}
	return node->is_listed = 1;
}

static void read_list(const char *path)
{
	FILE *list = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	for (int i = 1; list && getline(&line, &size, list) >= 0; i++)
		if (!add(line))
			errx(1, "%s:%d: write one prefix, such as 192.0.2.0/24",
			     path, i);
	if (list == NULL || ferror(list))
		err(1, "%s", path);
	free(line);
	fclose(list);
}

/* There are no nodes below the last bit of an address, so this ends there. */
static int is_listed(const uint8_t *bytes, uint32_t n_bytes)
{
	const struct node *node = NULL;
	struct mr_net_view view;
	uint32_t at;

	mr_net_parse(bytes, n_bytes, n_bytes, &view);
	at = view.l3_bytes + (view.ether_type == MR_ETHER_IPV4 ? 12 : 8);
	if (view.ether_type == MR_ETHER_IPV4 && at + 4 <= n_bytes)
		node = &ip4;
	if (view.ether_type == MR_ETHER_IPV6 && at + 16 <= n_bytes)
		node = &ip6;
	for (uint32_t i = at * 8; node != NULL && !node->is_listed; i++)
		node = node->next[bit(bytes, i)];
	return node != NULL;
}

static uint32_t forward(struct mr_worker *worker,
			const struct mr_worker_rxq *from, void *opaque)
{
	uint8_t *base = mr_region_base(mr_pool_region(dp->pool));
	struct mr_frame in[BURST], out[BURST];
	uint32_t n = mr_rx_burst(from->rxq, worker->cache, in, BURST);
	uint32_t n_out = 0, n_sent, len;

	(void)opaque;
	for (uint32_t i = 0; i < n; i += len) {
		len = mr_frame_n_entries(&in[i]);
		if (is_listed(mr_frame_data(base, &in[i]), in[i].len)) {
			mr_frame_free_bulk(worker->cache, &in[i], len);
			n_listed++;
			continue;
		}
		memcpy(&out[n_out], &in[i], len * sizeof(*in));
		n_out += len;
	}
	n_sent = mr_worker_send(worker, !from->port_idx, out, n_out);
	mr_frame_free_bulk(worker->cache, out + n_sent, n_out - n_sent);
	n_passed += mr_frame_n_frames(out, n_sent);
	n_unsent += mr_frame_n_frames(out + n_sent, n_out - n_sent);
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

	if (argc != 4)
		errx(2, "usage: %s LIST PORT PORT", argv[0]);
	read_list(argv[1]);
	config.specs = (const char *const *)argv + 2;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		errx(1, "%s", why.text);
	signal(SIGINT, on_signal);
	if (mr_dataplane_run(dp, forward, NULL, &why) < 0)
		errx(1, "%s", why.text);
	printf("%lu passed, %lu listed, %lu not sent\n", n_passed, n_listed,
	       n_unsent);
	mr_dataplane_close(dp, NULL);
	return 0;
}
