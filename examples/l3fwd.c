/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * l3fwd: a router for IPv4 and IPv6, whose addresses the kernel does not have.
 *
 *     sudo ./l3fwd routes.txt xdp:eth0 xdp:eth1
 *
 * A line of the file is an address of the router and the number of its port, or
 * a prefix and a next hop, which is in the network of an address above:
 *
 *     192.0.2.1/24 0
 *     198.51.0.0/16 192.0.2.9 # a comment
 *
 * It does not fragment. It drops packets until their next hop has answered.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <millrace/lpm.h>
#include <millrace/millrace.h>

enum { BURST = 64, MAX_PORTS = 8, MAX_WORKERS = 16, MAX_ROUTES = 1 << 21 };
enum { MAX_HOPS = 1024, MAX_NEIGHBOURS = 4096 };
/* What became of a packet. The first five are as in enum mr_error. */
enum { TTL, NO_ROUTE, NO_HOST, TOO_BIG, NO_PORT, FORWARDED, TAKEN, OTHER };
enum { UNROUTABLE = OTHER + 1, MALFORMED, UNRESOLVED, UNSENT, COUNTS };
static const char *const names[COUNTS] = {
	"ttl",        "no route",  "no host",    "too big",
	"no port",    "forwarded", "taken",      "other",
	"unroutable", "malformed", "unresolved", "not sent"
};

struct addr {
	uint8_t bytes[16]; /* of IPv4 in ::ffff:0:0/96 */
};
struct hop {
	uint32_t port, is_link; /* 1: the destination is a neighbour */
	struct addr addr;
};
struct self {
	struct mr_answer *answers[MAX_PORTS];
	struct mr_frame out[MAX_PORTS][MR_BURST_MAX];
	uint32_t n_out[MAX_PORTS];
	unsigned long counts[COUNTS];
	uint64_t now_ns;
};

static const struct addr none, mapped = { { [10] = 0xff, 0xff } };
static struct mr_dataplane *dp;
static struct mr_reason why;
static struct mr_lpm *tables[2]; /* of IPv6, of IPv4: numbers of hops */
static struct hop hops[MAX_HOPS];
static struct mr_neighbours *macs;
static struct mr_neighbours_link links[MAX_PORTS];
static uint32_t mtus[MAX_PORTS], n_hops, n_ports;
static struct self selves[MAX_WORKERS];
static uint8_t *base;

static const struct hop *find_hop(const struct addr *addr)
{
	const int is4 = memcmp(addr, &mapped, 12) == 0;
	uint32_t i = mr_lpm_find(tables[is4], &addr->bytes[12 * is4]);

	return i == MR_LPM_NONE ? NULL : &hops[i];
}

/* FORWARDED and the next hop, or why not. */
static uint32_t find_route(const struct mr_frame *frames, uint32_t n,
			   uint32_t from, struct hop *ret_hop)
{
	uint8_t *bytes = mr_frame_data(base, frames);
	const uint32_t n_bytes = (uint32_t)mr_frame_n_bytes(frames, n);
	struct mr_net_view view;
	const struct hop *hop;
	struct addr dst;
	int err;

	if (mr_net_parse(bytes, frames->len, n_bytes, &view) < 0)
		return MALFORMED;
	if (memcmp(bytes, links[from].mac, 6) != 0 ||
	    view.l3_bytes != MR_ETH_BYTES)
		return OTHER;
	err = mr_net_count_hop(bytes, &view, dst.bytes);
	if (err < 0 && err != -ETIME)
		return err == -EBADMSG ? MALFORMED : UNROUTABLE;
	hop = find_hop(&dst);
	if (hop == NULL || err == -ETIME)
		return hop == NULL ? NO_ROUTE : TTL;
	*ret_hop = *hop;
	if (hop->is_link)
		ret_hop->addr = dst;
	return n_bytes > MR_ETH_BYTES + mtus[hop->port] ? TOO_BIG : FORWARDED;
}

/* It fits: a burst causes at most as many answers, errors and questions. */
static void put(struct self *self, uint32_t port, const struct mr_frame *frame,
		uint32_t n)
{
	memcpy(self->out[port] + self->n_out[port], frame, n * sizeof(*frame));
	self->n_out[port] += n;
}

static void forward(struct self *self, struct mr_cache *cache,
		    struct mr_frame *frames, uint32_t n, uint32_t from)
{
	uint8_t *bytes = mr_frame_data(base, frames);
	struct mr_frame question;
	struct hop to = { .port = 0 };
	uint32_t what = find_route(frames, n, from, &to);
	int err;

	if (what == FORWARDED) {
		err = mr_neighbours_find(macs, cache, to.port, to.addr.bytes,
					 self->now_ns, bytes, &question);
		put(self, to.port, &question, question.len > 0);
		if (err < 0)
			what = err == -EHOSTUNREACH ? NO_HOST :
			       err == -EADDRINUSE   ? NO_PORT :
						      UNRESOLVED;
	}
	self->counts[what]++;
	if (what == FORWARDED) {
		memcpy(bytes + 6, links[to.port].mac, 6);
		put(self, to.port, frames, n);
	} else if (what <= NO_PORT &&
		   mr_answer_error(self->answers[from], frames, NULL, n, what,
				   mtus[to.port])) {
		put(self, from, frames, 1);
	} else {
		mr_frame_free_bulk(cache, frames, n);
	}
}

static uint32_t serve(struct mr_worker *worker, const struct mr_worker_rxq *rx,
		      void *opaque)
{
	struct self *self = &selves[worker->idx];
	struct mr_frame in[BURST], *out;
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, in, BURST);
	uint32_t n_left, n_answers, n_sent, len;

	(void)opaque;
	self->now_ns = mr_ctx_now_ns(dp->ctx);
	n_left = mr_answer_burst(self->answers[rx->port_idx], in, NULL, n,
				 &n_answers);
	self->counts[TAKEN] += n - n_left;
	put(self, rx->port_idx, in + n_left, n_answers);
	for (uint32_t i = 0; i < n_left; i += len) {
		len = mr_frame_n_entries(&in[i]);
		forward(self, worker->cache, &in[i], len, rx->port_idx);
	}
	for (uint32_t i = 0; i < n_ports; i++) {
		out = self->out[i];
		len = self->n_out[i];
		n_sent = mr_worker_send(worker, i, out, len);
		self->counts[UNSENT] += len - n_sent;
		mr_frame_free_bulk(worker->cache, out + n_sent, len - n_sent);
		self->n_out[i] = 0;
	}
	return n;
}

static int parse_addr(const char *text, struct addr *ret)
{
	*ret = mapped;
	return inet_pton(AF_INET, text, &ret->bytes[12]) == 1 ||
	       inet_pton(AF_INET6, text, ret) == 1;
}

static int add_route(const struct addr *to, uint32_t n_bits, struct hop *hop)
{
	const int is4 = memcmp(to, &mapped, 12) == 0;
	uint32_t i = 0;

	while (i < n_hops && memcmp(&hops[i], hop, sizeof(*hop)) != 0)
		i++;
	if (i == MAX_HOPS)
		return -ENOSPC;
	hops[i] = *hop;
	n_hops += i == n_hops;
	return mr_lpm_add(tables[is4], &to->bytes[12 * is4], n_bits, i);
}

/* What is wrong with a line; NULL: nothing. */
static const char *use_line(const char *line)
{
	char text[46] = "", next[46] = "";
	struct hop hop = { .is_link = 0 };
	const struct hop *to;
	uint32_t n_bits = 999;
	struct addr addr;
	int end = 0, is4;

	sscanf(line, " %n%45[^/# \t\r\n]/%3u %45[^# \t\r\n] %n", &end, text,
	       &n_bits, next, &end);
	is4 = strchr(text, ':') == NULL;
	if (strchr("#", line[end]) && text[0] == '\0')
		return NULL;
	if (!strchr("#", line[end]) || !parse_addr(text, &addr) ||
	    n_bits > (is4 ? 32 : 128))
		return "write an address and a port, such as 192.0.2.1/24 0, "
		       "or a prefix and a next hop, such as ::/0 2001:db8::9";
	if (parse_addr(next, &hop.addr)) {
		to = find_hop(&hop.addr);
		if (to == NULL || !to->is_link)
			return "add an address in its next hop's network above";
		hop.port = to->port;
	} else if (sscanf(next, "%3u%n", &hop.port, &end) != 1 || next[end] ||
		   hop.port >= n_ports ||
		   memcmp(links[hop.port].own[is4], &none, 16) != 0) {
		return "ports count from 0, and have one address of a family";
	} else {
		memcpy(links[hop.port].own[is4], &addr, 16);
		hop = (struct hop){ hop.port, 1, none };
	}
	return add_route(&addr, n_bits, &hop) < 0 ? "too many routes" : NULL;
}

static void read_routes(const char *path)
{
	FILE *file = fopen(path, "re");
	const char *wrong;
	char line[1024];

	for (int i = 1; file && fgets(line, sizeof(line), file); i++)
		if ((wrong = use_line(line)) != NULL)
			errx(1, "%s:%d: %s", path, i, wrong);
	if (file == NULL || ferror(file))
		err(1, "%s", path);
	fclose(file);
}

static void must(int err)
{
	if (err < 0)
		errx(1, "%s", why.text);
}

static void on_signal(int number)
{
	signal(number, SIG_DFL); /* a second one ends it at once */
	mr_dataplane_stop(dp);
}

static void open_links(void)
{
	struct mr_answer_config c = { .size = sizeof(c), .is_router = 1 };
	struct mr_port_info info = { .size = sizeof(info) };

	for (uint32_t i = 0; i < n_ports; i++) {
		mr_port_info(dp->ports[i], &info);
		memcpy(links[i].mac, info.mac, 6);
		mtus[i] = info.mtu_bytes > 0 ? info.mtu_bytes : UINT16_MAX;
	}
	must(mr_neighbours_create(dp->ctx, MAX_NEIGHBOURS, links, n_ports,
				  &macs, &why));
	c.neighbours = macs;
	for (uint32_t i = 0; i < dp->n_workers * n_ports; i++) {
		c.link = i % n_ports;
		must(mr_answer_create(
			mr_workers_get(dp->workers, i / n_ports)->cache, &c,
			&selves[i / n_ports].answers[c.link], &why));
	}
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config) };

	n_ports = (uint32_t)argc - 2;
	if (argc < 3 || n_ports > MAX_PORTS)
		errx(2, "usage: %s ROUTES PORT...", argv[0]);
	must(mr_ctx_create(NULL, &config.ctx, &why));
	must(mr_lpm_create(config.ctx, 16, MAX_ROUTES, &tables[0], &why));
	must(mr_lpm_create(config.ctx, 4, MAX_ROUTES, &tables[1], &why));
	read_routes(argv[1]);
	config.specs = (const char *const *)argv + 2;
	must(mr_dataplane_open(&config, &dp, &why));
	base = mr_region_base(mr_pool_region(dp->pool));
	open_links();
	signal(SIGINT, on_signal);
	must(mr_dataplane_run(dp, serve, NULL, &why));
	for (uint32_t i = 0; i < COUNTS; i++) {
		for (uint32_t j = 1; j < MAX_WORKERS; j++)
			selves->counts[i] += selves[j].counts[i];
		printf("%lu %s\n", selves->counts[i], names[i]);
	}
	for (uint32_t i = 0; i < MAX_WORKERS * MAX_PORTS; i++)
		mr_answer_destroy(selves[i / MAX_PORTS].answers[i % MAX_PORTS]);
	must(mr_dataplane_close(dp, &why));
	mr_neighbours_destroy(macs);
	mr_lpm_destroy(tables[0]);
	mr_lpm_destroy(tables[1]);
	mr_ctx_destroy(config.ctx);
	return 0;
}
