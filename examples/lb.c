/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lb: spread the connections to an address over servers. All of them have this
 * address, and answer clients directly (direct server return). The file has the
 * MAC address of one server per line; SIGHUP reads it again.
 *
 *     sudo ./lb servers.txt 'xdp:eth0,filter=tcp and dst host 192.0.2.80'
 */
#include <err.h>
#include <netinet/ether.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/flow.h>
#include <millrace/millrace.h>

enum { BURST = 64, IDLE_S = 300, MAX_SERVERS = 255, SLOTS = 65537 };
struct key {
	uint8_t addresses[32], ports[4], proto, zeros[3];
};
struct connection {
	struct key key;
	uint8_t server[6], zeros[2];
	uint32_t set, seen_s; /* the last set seen to have its server */
};

static const struct mr_flow_config flows = {
	.size = sizeof(flows),
	.key_bytes = sizeof(struct key),
	.record_bytes = sizeof(struct connection),
	.n_max = 1 << 20,
};
static struct mr_dataplane *dp;
static struct mr_flow_table *table;
static struct mr_port_info port_info = { .size = sizeof(port_info) };
static volatile sig_atomic_t is_changed;
static uint8_t servers[MAX_SERVERS][6], slots[SLOTS];
static uint32_t n_servers, set;
static unsigned long n_balanced, n_ignored, n_unsent;

static uint64_t hash(const void *data, uint32_t n, uint64_t sum)
{
	for (const uint8_t *byte = data; n > 0; n--, byte++)
		sum = (sum ^ *byte) * 0x100000001b3; /* FNV-1a */
	sum = (sum ^ sum >> 32) * 0x9e3779b97f4a7c15;
	return sum ^ sum >> 29;
}

/*
 * Servers take slots in turn, each in its own order. If one is added or
 * removed, the others keep nearly all of their slots. SLOTS is a prime. Source:
 * Eisenbud et al., "Maglev", NSDI 2016, 3.4.
 */
static void fill_slots(void)
{
	uint64_t at[MAX_SERVERS], step[MAX_SERVERS];

	for (uint32_t i = 0; i < n_servers; i++) {
		at[i] = hash(servers[i], 6, 1) % SLOTS;
		step[i] = hash(servers[i], 6, 2) % (SLOTS - 1) + 1;
	}
	memset(slots, MAX_SERVERS, sizeof(slots));
	for (uint32_t n = 0, i = 0; n < SLOTS; n++, i = (i + 1) % n_servers) {
		while (slots[at[i]] != MAX_SERVERS)
			at[i] = (at[i] + step[i]) % SLOTS;
		slots[at[i]] = (uint8_t)i;
	}
}

static const uint8_t *server_by_slot(const struct key *key)
{
	return servers[slots[hash(key, sizeof(*key), 0) % SLOTS]];
}

/* Use the servers in a file, or say what is wrong with it. 0: no servers. */
static int read_servers(const char *path)
{
	struct ether_addr found[MAX_SERVERS];
	FILE *file = fopen(path, "re");
	int i = 0, end = 0, is_good = 1;
	char *line = NULL, text[18];
	size_t size = 0;
	uint32_t n = 0;

	is_changed = 0;
	for (; file && is_good && getline(&line, &size, file) >= 0; i++) {
		text[0] = '\0';
		sscanf(line, " %n%17[^# \t\r\n] %n", &end, text, &end);
		is_good = strchr("#", line[end]) &&
			  (text[0] == '\0' ||
			   (n < MAX_SERVERS && ether_aton_r(text, &found[n]) &&
			    !(found[n++].ether_addr_octet[0] & 1)));
	}
	if (file == NULL || ferror(file)) {
		warn("%s", path);
	} else if (!is_good || n == 0) {
		warnx("%s:%d: write the MAC addresses of 1 to %d servers, "
		      "one per line, such as 02:00:00:00:00:01",
		      path, i, MAX_SERVERS);
	} else {
		memcpy(servers, found, n * sizeof(*found));
		n_servers = n;
		set++;
		fill_slots();
		printf("%u servers\n", n);
	}
	if (file != NULL)
		fclose(file);
	free(line);
	return n_servers > 0;
}

/* A connection keeps its server while the set has that server. */
static const uint8_t *server_of(const struct key *key, uint32_t id,
				uint32_t now_s)
{
	struct connection *it;

	if (id == MR_FLOW_NONE)
		mr_flow_add(table, key, &id);
	if (id == MR_FLOW_NONE)
		return server_by_slot(key); /* the table is full */
	it = mr_flow_record(table, id);
	for (uint32_t i = 0; i < n_servers && it->set != set; i++)
		if (memcmp(it->server, servers[i], 6) == 0)
			it->set = set;
	if (it->set != set)
		memcpy(it->server, server_by_slot(key), 6);
	it->set = set;
	it->seen_s = now_s;
	return it->server;
}

/* Scan a part of the table per burst, and remove idle connections. */
static void age(uint32_t now_s, uint32_t n)
{
	static uint32_t id = MR_FLOW_NONE;
	const struct connection *it;

	while (n-- > 0 && (id = mr_flow_next(table, id)) != MR_FLOW_NONE) {
		it = mr_flow_record(table, id);
		if (now_s - it->seen_s > IDLE_S)
			mr_flow_remove(table, id);
	}
}

/* 0: no connection, a fragment, or for another host. */
static int get_key(const uint8_t *bytes, uint32_t n_bytes, struct key *key)
{
	struct mr_net_view at;

	memset(key, 0, sizeof(*key));
	if (mr_net_parse(bytes, n_bytes, n_bytes, &at) < 0 || at.is_fragment ||
	    (at.l4_proto != IPPROTO_TCP && at.l4_proto != IPPROTO_UDP) ||
	    memcmp(bytes, port_info.mac, 6) != 0)
		return 0;
	if (at.ether_type == MR_ETHER_IPV4)
		memcpy(key->addresses, bytes + at.l3_bytes + 12, 8);
	else
		memcpy(key->addresses, bytes + at.l3_bytes + 8, 32);
	memcpy(key->ports, bytes + at.l4_bytes, sizeof(key->ports));
	key->proto = at.l4_proto;
	return 1;
}

/* opaque: the path of the list of servers. */
static uint32_t balance(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	uint8_t *base = mr_region_base(mr_pool_region(dp->pool));
	const uint32_t now_s = (uint32_t)(mr_ctx_now_ns(dp->ctx) / 1000000000);
	struct mr_frame in[BURST], out[BURST];
	uint32_t ids[BURST], n_out = 0, n_sent, len;
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, in, BURST);
	struct key keys[BURST];

	if (is_changed)
		read_servers(opaque);
	for (uint32_t i = 0; i < n; i += len) {
		len = mr_frame_n_entries(&in[i]);
		if (len == 1 && get_key(mr_frame_data(base, &in[i]), in[i].len,
					&keys[n_out])) {
			out[n_out++] = in[i];
			continue;
		}
		mr_frame_free_bulk(worker->cache, &in[i], len);
		n_ignored++;
	}
	mr_flow_find_bulk(table, keys, n_out, ids);
	for (uint32_t i = 0; i < n_out; i++) {
		uint8_t *bytes = mr_frame_data(base, &out[i]);

		memcpy(bytes, server_of(&keys[i], ids[i], now_s), 6);
		memcpy(bytes + 6, port_info.mac, 6);
	}
	n_sent = mr_worker_send(worker, 0, out, n_out);
	mr_frame_free_bulk(worker->cache, out + n_sent, n_out - n_sent);
	n_balanced += n_sent;
	n_unsent += n_out - n_sent;
	age(now_s, 1 + n);
	return n;
}

static void on_signal(int sig)
{
	if (sig == SIGHUP)
		is_changed = 1;
	else
		mr_dataplane_stop(dp);
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1 };
	struct mr_reason why;

	if (argc != 3)
		errx(2, "usage: %s SERVERS PORT", argv[0]);
	setlinebuf(stdout);
	if (!read_servers(argv[1]))
		return 1;
	config.specs = (const char *const *)argv + 2;
	if (mr_dataplane_open(&config, &dp, &why) < 0 ||
	    mr_flow_create(dp->ctx, &flows, &table, &why) < 0)
		errx(1, "%s", why.text);
	mr_port_info(dp->ports[0], &port_info);
	signal(SIGINT, on_signal);
	signal(SIGHUP, on_signal);
	if (mr_dataplane_run(dp, balance, argv[1], &why) < 0)
		errx(1, "%s", why.text);
	printf("%lu balanced, %lu ignored, %lu not sent\n", n_balanced,
	       n_ignored, n_unsent);
	mr_flow_destroy(table);
	mr_dataplane_close(dp, NULL);
	return 0;
}
