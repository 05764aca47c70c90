/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_bench: what the translator costs, without a kernel and without a wire.
 *
 *     null: --> headers of a trace --> nat_burst() --> null:   and back
 *
 *     nat_bench [--mode nat] [--sessions 1000000] [--burst 64] [--zipf]
 *               [--addresses 32] [--seconds 1] [--rules N]
 *
 * One worker's packet path, half of the frames in each direction. Modes: nat,
 * all of it; drop, the source alone: frames are written and freed; forward,
 * written and sent; find, written, looked up and freed; check, nat with both
 * sums of each frame verified, and where it goes; workers, nat by way of two
 * workers' rings, with a tenth more frames that are not counted; flood, the
 * same where these are fragments without a first one; create, mappings until no
 * port is left; sustain, sessions that come and go in simulated time. Prints
 * one line of JSON; times are core time.
 */
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/addrs.h"
#include "datapath/neighbours.h"
#include "datapath/path.h"
#include "nat_flood.h"
#include "nat_traffic.h"

enum {
	ROUNDS_PER_CLOCK = 64,
	BEGIN_S = 1000,         /* of the translator's clock */
	POOL_ADDR = 0xcb007101, /* 203.0.113.1 */
	OUTSIDE_NET = 0xcb007100,
	OUTSIDE_GATEWAY = 0xcb0071fe,
	INSIDE_NET = 0x0a000000, /* 10.0.0.0/24, hosts are behind a router */
	INSIDE_GATEWAY = 0x0a0000fe,
	HOSTS_NET = 0x64400000, /* 100.64.0.0/10 */
	REGION_BYTES = 1 << 30, /* few addresses: it runs under valgrind */
};

static const uint64_t second_ns = 1000000000;

struct bench {
	const char *mode;
	uint32_t n_sessions, burst, n_addrs, n_rules;
	bool is_zipf, checks, is_flood;
	double seconds;

	struct nat_config config;
	struct nat_range pool_range;
	struct nat_prefix hosts;
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	uint8_t *base;
	struct mr_port *ports[NAT_SIDES];
	struct nat_neighbours *neighbours;
	struct nat_maps *maps;
	struct nat_path *path;
	struct flood *flood; /* NULL: one worker */
	uint8_t macs[NAT_SIDES][6];
	struct traffic traffic;
	uint32_t at[NAT_SIDES]; /* index into the traces */
	uint64_t now_ns;        /* of the translator's clock */
	uint64_t n_checked, n_wrong;
};

/* CPU time, so that other programs on this core do not count. */
static double ran_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void set_side(struct nat_side_config *side, uint32_t net,
		     uint32_t gateway)
{
	side->n_addrs = 1;
	side->addrs[0] = net + 250;
	side->nets[0] = (struct nat_prefix){ net, 0xffffff00 };
	side->gateway = gateway;
	side->n_neighbours = 1;
	side->neighbours[0].addr = gateway;
	side->neighbours[0].mac[0] = 2;
}

static void configure_nat(struct bench *b)
{
	nat_config_init(&b->config);
	set_side(&b->config.sides[NAT_INSIDE], INSIDE_NET, INSIDE_GATEWAY);
	set_side(&b->config.sides[NAT_OUTSIDE], OUTSIDE_NET, OUTSIDE_GATEWAY);
	b->pool_range.first = POOL_ADDR;
	b->pool_range.last = POOL_ADDR + b->n_addrs - 1;
	b->config.pool = &b->pool_range;
	b->config.n_pool = 1;
	b->hosts = (struct nat_prefix){ HOSTS_NET, 0xffc00000 };
	b->config.subscribers = &b->hosts;
	b->config.n_subscribers = 1;
	b->config.max_mappings = 1 << 22;
	if (b->n_rules > 0)
		traffic_rules(&b->config, b->n_rules);
}

static void start_nat(struct bench *b)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config), .max_bytes = REGION_BYTES
	};
	struct mr_port_config port_config = { .size = sizeof(port_config),
					      .n_workers = 2 };
	struct mr_pool_config pool_config = { .size = sizeof(pool_config) };
	struct nat_maps_config maps_config = {
		.config = &b->config, .n_shards = 1, .seed = 1, .now_s = BEGIN_S
	};
	struct nat_path_config path_config = { .config = &b->config,
					       .mtus = { 1500, 1500 } };
	struct mr_reason why;

	configure_nat(b);
	memcpy(b->macs, (uint8_t[2][6]){ { 2, 0xa }, { 2, 0xb } },
	       sizeof(b->macs));
	if (mr_ctx_create(NULL, &b->ctx, &why) < 0 ||
	    mr_region_create(b->ctx, &region_config, &b->region, &why) < 0)
		errx(1, "%s", why.text);
	pool_config.region = b->region;
	if (mr_pool_create(b->ctx, &pool_config, &b->pool, &why) < 0 ||
	    mr_cache_create(b->pool, &b->cache, &why) < 0)
		errx(1, "%s", why.text);
	b->base = mr_region_base(mr_pool_region(b->pool));
	port_config.pool = b->pool;
	for (uint32_t side = 0; side < NAT_SIDES; side++)
		if (mr_port_open(b->ctx, "null:", &port_config, &b->ports[side],
				 &why) < 0)
			errx(1, "null: %s", why.text);
	maps_config.ctx = path_config.ctx = b->ctx;
	path_config.cache = b->cache;
	path_config.base = b->base;
	memcpy(path_config.macs, b->macs, sizeof(b->macs));
	if (nat_addrs_create(&b->config) < 0 ||
	    nat_neighbours_create(&b->config, &b->neighbours, &why) < 0 ||
	    nat_maps_create(&maps_config, &b->maps, &why) < 0)
		errx(1, "%s", why.text);
	path_config.neighbours = b->neighbours;
	path_config.maps = b->maps;
	if (nat_path_create(&path_config, &b->path, &why) < 0)
		errx(1, "%s", why.text);
	b->now_ns = BEGIN_S * second_ns;
	nat_path_tick(b->path, b->now_ns);
	traffic_init(&b->traffic, b->n_sessions, b->macs);
}

static void empty_outboxes(struct bench *b)
{
	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		struct nat_outbox *outbox = nat_path_outbox(b->path, side);

		mr_frame_free_bulk(b->cache, outbox->frames, outbox->n);
		outbox->n = 0;
	}
}

/* All pages must be free, or the translator lost one. */
static void finish_nat(struct bench *b)
{
	struct mr_reason why;

	empty_outboxes(b);
	flood_close(b->flood);
	nat_path_destroy(b->path);
	nat_maps_destroy(b->maps);
	nat_neighbours_destroy(b->neighbours);
	for (uint32_t side = 0; side < NAT_SIDES; side++)
		mr_port_close(b->ports[side]);
	mr_cache_destroy(b->cache);
	if (mr_pool_destroy(b->pool, &why) < 0 ||
	    mr_region_destroy(b->region, &why) < 0)
		errx(1, "%s", why.text);
	mr_ctx_destroy(b->ctx);
	traffic_end(&b->traffic);
}

/* Write n frames with these headers, as received on a side. */
static uint32_t receive_burst(struct bench *b, enum nat_side from,
			      const struct traffic_header *headers, uint32_t n,
			      struct mr_frame *frames)
{
	const uint32_t n_rx = mr_rx_burst(mr_port_rxq(b->ports[from], 0),
					  b->cache, frames, n);

	for (uint32_t i = 0; i < n_rx; i++)
		traffic_write(&b->traffic, from, &headers[i],
			      mr_frame_data(b->base, &frames[i]));
	return n_rx;
}

/* A burst from the trace. */
static uint32_t receive_next(struct bench *b, enum nat_side from,
			     struct mr_frame *frames)
{
	const uint32_t at = b->at[from];

	b->at[from] = at + 2 * b->burst <= TRAFFIC_TRACE ? at + b->burst : 0;
	return receive_burst(b, from, &b->traffic.traces[from][at], b->burst,
			     frames);
}

static void transmit_burst(struct bench *b, enum nat_side to,
			   struct mr_frame *frames, uint32_t n)
{
	struct mr_txq *txq = mr_port_txq(b->ports[to], 0);

	for (uint32_t i = 0; i < n;) {
		const uint32_t n_now =
			n - i < MR_BURST_MAX ? n - i : MR_BURST_MAX;

		i += mr_tx_burst(txq, b->cache, frames + i, n_now);
	}
}

static void transmit_outbox(struct bench *b, enum nat_side to)
{
	struct nat_outbox *outbox = nat_path_outbox(b->path, to);

	transmit_burst(b, to, outbox->frames, outbox->n);
	outbox->n = 0;
}

/* Check the direction, and both sums. The order is that of the trace. */
static void check_frames(struct bench *b, enum nat_side from,
			 const struct traffic_header *headers, uint32_t n)
{
	const enum nat_side to = from ^ 1;
	const struct nat_outbox *outbox = nat_path_outbox(b->path, to);

	b->n_checked += n;
	b->n_wrong += n - outbox->n;
	for (uint32_t i = 0; i < outbox->n; i++) {
		const uint8_t *frame =
			mr_frame_data(b->base, &outbox->frames[i]);
		const struct mr_ipv4 *ip = (const void *)(frame + MR_ETH_BYTES);
		const uint32_t addr =
			ntohl(from == NAT_INSIDE ? ip->src : ip->dst);
		const bool is_right =
			from == NAT_INSIDE ?
				addr >= b->pool_range.first &&
					addr <= b->pool_range.last &&
					ip->dst == headers[i].dst :
				(addr & b->hosts.mask) == b->hosts.addr &&
					ip->src == headers[i].src;

		b->n_wrong +=
			!is_right || ip->ttl != 63 || !traffic_sums_hold(frame);
	}
}

/* Rounds: a burst in each direction. They return the number of frames. */

static uint32_t round_nat(struct bench *b)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_frames = 0;

	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		const struct traffic_header *headers =
			&b->traffic.traces[side][b->at[side]];
		const uint32_t n = receive_next(b, side, frames);

		if (b->flood != NULL)
			flood_burst(b->flood, side, frames, n, n / 5,
				    !b->is_flood, b->now_ns);
		else
			nat_burst(b->path, side, frames, n);
		if (b->checks)
			check_frames(b, side, headers, n);
		transmit_outbox(b, side ^ 1);
		n_frames += n;
	}
	nat_path_tick(b->path, b->now_ns);
	return n_frames;
}

static uint32_t round_drop(struct bench *b)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_frames = 0;

	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		const uint32_t n = receive_next(b, side, frames);

		mr_frame_free_bulk(b->cache, frames, n);
		n_frames += n;
	}
	return n_frames;
}

static uint32_t round_forward(struct bench *b)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_frames = 0;

	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		const uint32_t n = receive_next(b, side, frames);

		transmit_burst(b, side ^ 1, frames, n);
		n_frames += n;
	}
	return n_frames;
}

/* Like the packet path, with the access to the mapping's cache line. */
static uint32_t find_mappings(struct bench *b, enum nat_side from,
			      const struct mr_frame *frames, uint32_t n)
{
	struct nat_tuple tuples[MR_BURST_MAX];
	uint32_t ids[MR_BURST_MAX], n_found = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *frame = mr_frame_data(b->base, &frames[i]);
		const struct mr_ipv4 *ip = (const void *)(frame + MR_ETH_BYTES);
		const struct mr_udp *udp = (const void *)(ip + 1);

		tuples[i] = (struct nat_tuple){
			from == NAT_INSIDE ? ip->src : ip->dst,
			from == NAT_INSIDE ? udp->src : udp->dst, ip->proto, 0
		};
	}
	if (from == NAT_INSIDE)
		nat_maps_find_out(b->maps, tuples, n, ids);
	else
		nat_maps_find_in(b->maps, tuples, n, ids);
	for (uint32_t i = 0; i < n; i++)
		n_found += ids[i] != MR_FLOW_NONE &&
			   nat_maps_at(b->maps, ids[i])->outside_addr != 0;
	return n_found;
}

static uint32_t round_find(struct bench *b)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_frames = 0;

	for (uint32_t side = 0; side < NAT_SIDES; side++) {
		const uint32_t n = receive_next(b, side, frames);

		n_frames += find_mappings(b, side, frames, n);
		mr_frame_free_bulk(b->cache, frames, n);
	}
	return n_frames;
}

typedef uint32_t round_fn(struct bench *b);

static uint64_t rounds_for(struct bench *b, round_fn *round, double seconds,
			   double *ret_elapsed)
{
	const double begin = ran_s();
	uint64_t n_frames = 0;

	do {
		for (uint32_t i = 0; i < ROUNDS_PER_CLOCK; i++)
			n_frames += round(b);
		*ret_elapsed = ran_s() - begin;
		b->now_ns =
			BEGIN_S * second_ns + (uint64_t)(*ret_elapsed * 1e9);
	} while (*ret_elapsed < seconds);
	return n_frames;
}

/* Send the first packets of the sessions from begin to end. */
static void open_sessions(struct bench *b, uint32_t begin, uint32_t end)
{
	struct mr_frame frames[MR_BURST_MAX];

	for (uint32_t i = begin; i < end; i += b->burst) {
		const uint32_t n = end - i < b->burst ? end - i : b->burst;

		nat_burst(b->path, NAT_INSIDE, frames,
			  receive_burst(b, NAT_INSIDE,
					&b->traffic.sessions[NAT_INSIDE][i], n,
					frames));
		empty_outboxes(b);
	}
}

/* Check what came out for them. */
static void learn_outside(struct bench *b)
{
	for (uint32_t i = 0; i < b->n_sessions; i++) {
		const struct traffic_header *h =
			&b->traffic.sessions[NAT_INSIDE][i];
		const struct nat_tuple inside = { h->src, h->sport, IPPROTO_UDP,
						  0 };
		const struct nat_map *map;
		uint32_t id;

		nat_maps_find_out(b->maps, &inside, 1, &id);
		if (id == MR_FLOW_NONE)
			errx(1, "session %u was refused; more --addresses", i);
		map = nat_maps_at(b->maps, id);
		traffic_set_outside(&b->traffic, i, map->outside_addr,
				    map->outside_port);
	}
}

static void measure_rounds(struct bench *b, round_fn *round)
{
	const double warm_up = b->seconds / 4;
	double elapsed;
	struct nat_maps_stats stats;
	uint64_t n;

	open_sessions(b, 0, b->n_sessions);
	learn_outside(b);
	traffic_draw(&b->traffic, b->is_zipf);
	(void)rounds_for(b, round, warm_up, &elapsed);
	n = rounds_for(b, round, b->seconds, &elapsed);
	nat_maps_stats(b->maps, &stats);
	printf("{\"mode\":\"%s\",\"sessions\":%" PRIu64 ",\"burst\":%u,"
	       "\"draw\":\"%s\",\"addresses\":%u,\"frames\":%" PRIu64
	       ",\"seconds\":%.6f,\"ns_per_frame\":%.3f,"
	       "\"bytes_per_session\":%.1f,\"translated\":%" PRIu64
	       ",\"checked\":%" PRIu64 ",\"wrong\":%" PRIu64 "}\n",
	       b->mode, stats.n_mappings, b->burst,
	       b->is_zipf ? "zipf" : "uniform", b->n_addrs, n, elapsed,
	       elapsed * 1e9 / (double)n,
	       (double)stats.bytes / (double)stats.n_mappings,
	       nat_path_stats(b->path)->translated[NAT_INSIDE] +
		       nat_path_stats(b->path)->translated[NAT_OUTSIDE],
	       b->n_checked, b->n_wrong);
}

/* Send until the pool is full, then on: the rest is refused. */
static void create_mappings(struct bench *b)
{
	const double begin = ran_s();
	struct nat_maps_stats stats;
	double elapsed;

	open_sessions(b, 0, b->n_sessions);
	elapsed = ran_s() - begin;
	nat_maps_stats(b->maps, &stats);
	printf("{\"mode\":\"create\",\"offered\":%u,\"addresses\":%u,"
	       "\"ports\":%u,\"created\":%" PRIu64 ",\"no_port\":%" PRIu64
	       ",\"seconds\":%.6f,\"created_per_s\":%.0f,"
	       "\"bytes_per_session\":%.1f}\n",
	       b->n_sessions, b->n_addrs,
	       b->n_addrs * (65536 - b->config.ports.first), stats.created,
	       nat_path_stats(b->path)->drops[NAT_DROP_NO_PORT], elapsed,
	       (double)stats.created / elapsed,
	       (double)stats.bytes / (double)stats.n_mappings);
}

/*
 * In each simulated second a fifth more sessions come than there are ports in
 * the long run. Each sends once, ages, and leaves its port in hold-down.
 */
static void sustain(struct bench *b)
{
	const struct nat_timeouts *t = &b->config.timeouts;
	const uint32_t n_ports = b->n_addrs * (65536 - b->config.ports.first);
	const uint32_t cycle_s = t->udp_s + t->hold_down_s;
	const double bound = (double)n_ports / cycle_s;
	const uint32_t n_offered = (uint32_t)(bound * 1.2);
	const uint32_t end_s = 4 * cycle_s;
	const double begin = ran_s();
	struct nat_maps_stats stats;
	uint64_t before = 0;
	uint32_t at = 0;

	for (uint32_t s = 0; s < end_s; s++) {
		b->now_ns += second_ns;
		/* There are many rounds in a second; each ends at most 64. */
		for (uint32_t i = 0; i < n_offered / 32; i++)
			nat_path_tick(b->path, b->now_ns);
		empty_outboxes(b);
		if (at + n_offered > b->n_sessions)
			at = 0;
		open_sessions(b, at, at + n_offered);
		at += n_offered;
		nat_maps_stats(b->maps, &stats);
		if (s + 1 == end_s - 2 * cycle_s)
			before = stats.created;
	}
	printf("{\"mode\":\"sustain\",\"addresses\":%u,\"ports\":%u,"
	       "\"lifetime_s\":%u,\"hold_down_s\":%u,\"bound_per_s\":%.1f,"
	       "\"offered_per_s\":%u,\"created_per_s\":%.1f,"
	       "\"seconds\":%.3f}\n",
	       b->n_addrs, n_ports, t->udp_s, t->hold_down_s, bound, n_offered,
	       (double)(stats.created - before) / (2 * cycle_s),
	       ran_s() - begin);
}

static const struct mode {
	const char *name;
	round_fn *round;
	void (*run)(struct bench *b); /* or without rounds */
} modes[] = {
	{ "nat", round_nat, NULL },         { "drop", round_drop, NULL },
	{ "forward", round_forward, NULL }, { "find", round_find, NULL },
	{ "check", round_nat, NULL },       { "workers", round_nat, NULL },
	{ "flood", round_nat, NULL },       { "create", NULL, create_mappings },
	{ "sustain", NULL, sustain },
};

static double number(const char *text, double min, double max)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= min && value <= max))
		errx(2, "%s: not a number in %g..%g", text, min, max);
	return value;
}

static void parse_options(struct bench *b, int argc, char **argv)
{
	static const struct option names[] = {
		{ "mode", 1, NULL, 'm' },      { "sessions", 1, NULL, 'n' },
		{ "burst", 1, NULL, 'b' },     { "zipf", 0, NULL, 'z' },
		{ "addresses", 1, NULL, 'a' }, { "seconds", 1, NULL, 's' },
		{ "rules", 1, NULL, 'r' },     { NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'm')
			b->mode = optarg;
		else if (c == 'n')
			b->n_sessions = (uint32_t)number(optarg, 1, 1 << 22);
		else if (c == 'b')
			b->burst = (uint32_t)number(optarg, 1, MR_BURST_MAX);
		else if (c == 'z')
			b->is_zipf = true;
		else if (c == 'a')
			b->n_addrs = (uint32_t)number(optarg, 1, 200);
		else if (c == 'r')
			b->n_rules = (uint32_t)number(optarg, 1, NAT_MAX_ITEMS);
		else if (c == 's')
			b->seconds = number(optarg, 0.001, 3600);
		else
			exit(2);
	}
	if (optind != argc)
		errx(2, "%s: not an option", argv[optind]);
}

int main(int argc, char **argv)
{
	static struct bench b = { .mode = "nat",
				  .n_sessions = 1000000,
				  .burst = 64,
				  .n_addrs = 32,
				  .seconds = 1 };
	const struct mode *mode = NULL;

	parse_options(&b, argc, argv);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(modes[i].name, b.mode) == 0)
			mode = &modes[i];
	if (mode == NULL)
		errx(2, "%s: no such mode", b.mode);
	b.checks = strcmp(b.mode, "check") == 0;
	b.is_flood = strcmp(b.mode, "flood") == 0;
	start_nat(&b);
	if (b.is_flood || strcmp(b.mode, "workers") == 0)
		b.flood = flood_open(b.ctx, b.pool, b.ports, &b.config, b.path,
				     b.cache);
	if (mode->run != NULL)
		mode->run(&b);
	else
		measure_rounds(&b, mode->round);
	finish_nat(&b);
	return b.n_wrong == 0 ? 0 : 1;
}
