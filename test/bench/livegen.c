/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * livegen: puts frames into an interface as fast as a core can.
 *
 *     livegen --dev g0 [--size 60] [--flows 1] [--count N | --seconds S]
 *
 *     BPF_PROG_RUN, live frames --> XDP_TX --> veth g0 ==> peer's NAPI --> XDP
 *
 * The kernel makes 64 frames per round from a page pool, runs a program that
 * says XDP_TX on each, and hands them to the interface's ndo_xdp_xmit(): no
 * skb, no socket, no copy. 4 to 5 Mpps from one core into a veth, whose peer
 * must have NAPI, that is an XDP program, or GRO on.
 *
 * The program counts the frames that it passes, so that what is printed is
 * exact even where a signal cuts a call short and the kernel does not say how
 * far it came. Frames are UDP with right sums, source ports 9000 + flow, and
 * 256 flows to a source address, 198.18.0.1 and up; with --ethertype 0x88b5
 * they are something that no host has a handler for.
 *
 * Source: Documentation/bpf/bpf_prog_run.rst, "Running XDP programs in live
 * frame mode".
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* uapi constants that Debian 12's headers may be too old for. */
enum { TEST_XDP_LIVE_FRAMES = 1u << 1 };

enum {
	HEADER_BYTES = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr),
	MIN_BYTES = 60,
	MAX_BYTES = 3000, /* of an OS page, less what the kernel keeps of it */
	MAX_FLOWS = 50000,
	IP_CSUM_OFFSET = ETH_HLEN + 10,
	ADDR_OFFSET = ETH_HLEN + 14, /* lower half of the source address */
	SPORT_OFFSET = ETH_HLEN + sizeof(struct iphdr),
	UDP_CSUM_OFFSET = SPORT_OFFSET + 6,
	FIRST_SPORT = 9000,
	FIRST_ADDR = 0xc6120001, /* 198.18.0.1, RFC 2544 */
	ADDR_SHIFT = 8,          /* log2 of the flows of an address */
	/* Each call costs some 20 ms of set-up; a signal ends it early. */
	FRAMES_PER_CALL = 1 << 30,
};

struct options {
	const char *dev;
	uint64_t count; /* 0: no limit */
	double seconds; /* 0: no limit */
	uint32_t size_bytes;
	uint32_t flows;
	int core;       /* -1: any */
	uint16_t ethertype;
	uint8_t dst[6], src[6];
};

static int stop; /* atomic: set by the signal handler */

static void on_signal(int sig)
{
	__atomic_store_n(&stop, sig, __ATOMIC_RELAXED);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* What is summed up already of a frame: all but what differs. */
struct sums {
	uint16_t ip, udp;
};

static int load(const struct bpf_insn *insns, size_t n_insns)
{
	char log[4096] = "";
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log,
		    .log_size = sizeof(log)); /* level 0: if it is refused */
	const int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "livegen",
				     "Dual BSD/GPL", insns, n_insns, &opts);

	if (fd < 0)
		errx(1, "program refused: %s\n%s", strerror(-fd), log);
	return fd;
}

struct program {
	size_t n;
	struct bpf_insn insns[96];
};

static void emit(struct program *p, const struct bpf_insn *insns, size_t n)
{
	if (p->n + n > sizeof(p->insns) / sizeof(p->insns[0]))
		errx(1, "program too long");
	memcpy(p->insns + p->n, insns, n * sizeof(insns[0]));
	p->n += n;
}

/*
 * The headers of the first flow to r4. A frame's page comes round again as its
 * receiver left it, which is with other addresses if a router passed it on
 * without a copy.
 */
static void emit_headers(struct program *p, const uint8_t *frame)
{
	int16_t at = 0;

	for (; at + 8 <= HEADER_BYTES; at += 8) {
		int32_t words[2];

		memcpy(words, frame + at, sizeof(words));
		emit(p,
		     (const struct bpf_insn[]){
			 {BPF_LD | BPF_DW | BPF_IMM, 9, 0, 0, words[0]},
			 {0, 0, 0, 0, words[1]},
			 {BPF_STX | BPF_MEM | BPF_DW, 4, 9, at, 0},
		     },
		     3);
	}
	for (; at < HEADER_BYTES; at++)
		emit(p,
		     (const struct bpf_insn[]){
			 {BPF_ST | BPF_MEM | BPF_B, 4, 0, at, frame[at]},
		     },
		     1);
}

/*
 * Which flow, by the counter in r3: r7 is the lower half of its address, r8
 * its port.
 */
static void emit_flow(struct program *p, uint32_t flows, struct sums sums)
{
	const struct bpf_insn insns[] = {
	    {BPF_ALU64 | BPF_MOD | BPF_K, 3, 0, 0, (int)flows},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 7, 3, 0, 0},
	    {BPF_ALU64 | BPF_RSH | BPF_K, 7, 0, 0, ADDR_SHIFT},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 7, 0, 0, FIRST_ADDR & 0xffff},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 8, 3, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 8, 0, 0, FIRST_SPORT},
	    /* IP: r0 = ~fold(sums.ip + r7); folding once is enough */
	    {BPF_ALU64 | BPF_MOV | BPF_X, 0, 7, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, sums.ip},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 9, 0, 0, 0},
	    {BPF_ALU64 | BPF_RSH | BPF_K, 9, 0, 0, 16},
	    {BPF_ALU64 | BPF_ADD | BPF_X, 0, 9, 0, 0},
	    {BPF_ALU64 | BPF_XOR | BPF_K, 0, 0, 0, 0xffff},
	    {BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 16},
	    {BPF_STX | BPF_MEM | BPF_H, 4, 0, IP_CSUM_OFFSET, 0},
	    /* UDP: r0 = ~fold(sums.udp + (r7 + r8)); 0 is 0xffff */
	    {BPF_ALU64 | BPF_MOV | BPF_X, 0, 7, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_X, 0, 8, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, sums.udp},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 9, 0, 0, 0},
	    {BPF_ALU64 | BPF_RSH | BPF_K, 9, 0, 0, 16},
	    {BPF_ALU64 | BPF_ADD | BPF_X, 0, 9, 0, 0},
	    {BPF_ALU64 | BPF_XOR | BPF_K, 0, 0, 0, 0xffff},
	    {BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 0xffff},
	    {BPF_JMP | BPF_JNE | BPF_K, 0, 0, 1, 0},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0xffff},
	    {BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 16},
	    {BPF_STX | BPF_MEM | BPF_H, 4, 0, UDP_CSUM_OFFSET, 0},
	    /* address and port */
	    {BPF_ALU | BPF_END | BPF_TO_BE, 7, 0, 0, 16},
	    {BPF_STX | BPF_MEM | BPF_H, 4, 7, ADDR_OFFSET, 0},
	    {BPF_ALU | BPF_END | BPF_TO_BE, 8, 0, 0, 16},
	    {BPF_STX | BPF_MEM | BPF_H, 4, 8, SPORT_OFFSET, 0},
	};

	emit(p, insns, sizeof(insns) / sizeof(insns[0]));
}

/*
 * r1 is the context. The counter is one 64-bit word of an array map that is
 * mapped here; one CPU writes it, so no atomic.
 */
static int load_program(int map_fd, const struct options *opt,
			const uint8_t *frame, struct sums sums)
{
	const struct bpf_insn begin[] = {
	    {BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_VALUE, 0, map_fd},
	    {0, 0, 0, 0, 0},
	    /* r3 = ++*counter */
	    {BPF_LDX | BPF_MEM | BPF_DW, 3, 2, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, 1},
	    {BPF_STX | BPF_MEM | BPF_DW, 2, 3, 0, 0},
	    /* if (data + HEADER_BYTES <= data_end) write the headers */
	    {BPF_LDX | BPF_MEM | BPF_W, 4, 1, 0, 0},
	    {BPF_LDX | BPF_MEM | BPF_W, 5, 1, 4, 0},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 0, 4, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, HEADER_BYTES},
	    {BPF_JMP | BPF_JGT | BPF_X, 0, 5, 0, 0}, /* to where it ends */
	};
	const struct bpf_insn end[] = {
	    {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_TX},
	    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	const size_t n_begin = sizeof(begin) / sizeof(begin[0]);
	struct program p = {.n = 0};

	emit(&p, begin, n_begin);
	emit_headers(&p, frame);
	if (opt->flows > 1)
		emit_flow(&p, opt->flows, sums);
	p.insns[n_begin - 1].off = (int16_t)(p.n - n_begin);
	emit(&p, end, sizeof(end) / sizeof(end[0]));
	return load(p.insns, p.n);
}

static uint64_t *map_counter(int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const int fd =
	    bpf_map_create(BPF_MAP_TYPE_ARRAY, "livegen", 4, 8, 1, &opts);
	void *map;

	if (fd < 0)
		errx(1, "counter map: %s", strerror(-fd));
	map = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
		   fd, 0);
	if (map == MAP_FAILED)
		err(1, "counter map: mmap");
	*ret_fd = fd;
	return map;
}

/* The sum of 16-bit words in network order, folded so that it may be added to
 * once more. */
static uint32_t sum_of(const void *bytes, size_t n_bytes, uint32_t sum)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n_bytes; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The frame of the first flow. What lies behind its headers is 0. */
static struct sums make_frame(const struct options *opt, uint8_t *frame)
{
	struct ether_header eth = {.ether_type = htons(opt->ethertype)};
	struct iphdr ip = {
	    .version = 4,
	    .ihl = 5,
	    .tot_len = htons((uint16_t)(opt->size_bytes - ETH_HLEN)),
	    .ttl = 64,
	    .protocol = IPPROTO_UDP,
	    .saddr = htonl(FIRST_ADDR & 0xffff0000),
	    .daddr = htonl(0xc6120101),
	};
	struct udphdr udp = {
	    .dest = htons(9), /* discard */
	    .len = htons((uint16_t)(opt->size_bytes - ETH_HLEN - sizeof(ip))),
	};
	struct sums sums;

	memcpy(eth.ether_dhost, opt->dst, 6);
	memcpy(eth.ether_shost, opt->src, 6);
	sums.ip = (uint16_t)sum_of(&ip, sizeof(ip), 0);
	/* The pseudo-header has addresses, protocol and length. */
	sums.udp = (uint16_t)sum_of(
	    &udp, sizeof(udp),
	    sum_of(&ip.saddr, 8, IPPROTO_UDP + ntohs(udp.len)));
	ip.saddr = htonl(FIRST_ADDR);
	ip.check = htons((uint16_t)~sum_of(&ip, sizeof(ip), 0));
	udp.source = htons(FIRST_SPORT);
	udp.check = htons((uint16_t)~sum_of(
	    NULL, 0, sums.udp + (FIRST_ADDR & 0xffff) + FIRST_SPORT));
	if (udp.check == 0)
		udp.check = UINT16_MAX;

	memset(frame, 0, opt->size_bytes);
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
	memcpy(frame + SPORT_OFFSET, &udp, sizeof(udp));
	return sums;
}

static void usage(void)
{
	fprintf(stderr,
		"usage: livegen --dev IFNAME [--size BYTES] [--flows N]\n"
		"               [--count FRAMES] [--seconds S] [--core N]\n"
		"               [--dst MAC] [--src MAC] [--ethertype NUMBER]\n"
		"Sends until the count, the time, or SIGINT or SIGTERM;\n"
		"then prints one line of JSON.\n");
	exit(2);
}

static double number(const char *text, double min, double max)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end != '\0' || value < min || value > max)
		errx(2, "%s: not a number in %.0f..%.0f", text, min, max);
	return value;
}

static void mac(const char *text, uint8_t *ret_mac)
{
	const struct ether_addr *addr = ether_aton(text);

	if (addr == NULL)
		errx(2, "%s: not a MAC address", text);
	memcpy(ret_mac, addr, 6);
}

static struct options parse(int argc, char **argv)
{
	static const struct option names[] = {
	    {"dev", 1, NULL, 'i'},       {"size", 1, NULL, 's'},
	    {"flows", 1, NULL, 'f'},     {"count", 1, NULL, 'n'},
	    {"seconds", 1, NULL, 't'},   {"core", 1, NULL, 'c'},
	    {"dst", 1, NULL, 'd'},       {"src", 1, NULL, 'a'},
	    {"ethertype", 1, NULL, 'e'}, {NULL, 0, NULL, 0},
	};
	struct options opt = {.size_bytes = MIN_BYTES,
			      .flows = 1,
			      .core = -1,
			      .ethertype = ETHERTYPE_IP,
			      .dst = {0x02, 0, 0, 0, 0, 0x02},
			      .src = {0x02, 0, 0, 0, 0, 0x01}};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'i')
			opt.dev = optarg;
		else if (c == 's')
			opt.size_bytes =
			    number(optarg, HEADER_BYTES, MAX_BYTES);
		else if (c == 'f')
			opt.flows = number(optarg, 1, MAX_FLOWS);
		else if (c == 'n')
			opt.count = number(optarg, 1, 1e15);
		else if (c == 't')
			opt.seconds = number(optarg, 0, 1e6);
		else if (c == 'c')
			opt.core = number(optarg, 0, CPU_SETSIZE - 1);
		else if (c == 'e')
			opt.ethertype = number(optarg, 0x600, 0xffff);
		else if (c == 'd')
			mac(optarg, opt.dst);
		else if (c == 'a')
			mac(optarg, opt.src);
		else
			usage();
	}
	if (optind != argc || opt.dev == NULL)
		usage();
	return opt;
}

/* No SA_RESTART: a signal is to end the kernel's loop with EINTR. */
static void catch_signals(double seconds)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const struct itimerval timer = {
	    .it_value = {.tv_sec = (time_t)seconds,
			 .tv_usec =
			     (suseconds_t)((seconds - (time_t)seconds) * 1e6)},
	    /* Again and again: one may come before the call begins. */
	    .it_interval = {.tv_usec = 10000},
	};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	if (seconds > 0)
		setitimer(ITIMER_REAL, &timer, NULL);
}

static void run(const struct options *opt, const uint8_t *frame, int prog_fd,
		int ifindex, const uint64_t *counter)
{
	struct xdp_md ctx = {.data_end = opt->size_bytes,
			     .ingress_ifindex = (uint32_t)ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = opt->size_bytes, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .flags = TEST_XDP_LIVE_FRAMES);

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		const uint64_t sent =
		    __atomic_load_n(counter, __ATOMIC_RELAXED);
		uint64_t n = FRAMES_PER_CALL;
		int ret;

		if (opt->count != 0 && opt->count - sent < n)
			n = opt->count - sent;
		if (n == 0)
			break;
		opts.repeat = (int)n;
		ret = bpf_prog_test_run_opts(prog_fd, &opts);
		if (ret < 0 && ret != -EINTR)
			errx(1, "%s: BPF_PROG_RUN: %s", opt->dev,
			     strerror(-ret));
	}
}

int main(int argc, char **argv)
{
	const struct options opt = parse(argc, argv);
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	const int ifindex = (int)if_nametoindex(opt.dev);
	const uint64_t *counter;
	uint8_t frame[MAX_BYTES];
	struct sums sums;
	int map_fd, prog_fd;
	double begin, end;

	if (ifindex == 0)
		err(1, "%s", opt.dev);
	/* Kernels before 5.11 count maps here; not raising it is no matter. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	if (opt.core >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(opt.core, &set);
		if (sched_setaffinity(0, sizeof(set), &set) < 0)
			err(1, "core %d", opt.core);
	}
	counter = map_counter(&map_fd);
	sums = make_frame(&opt, frame);
	prog_fd = load_program(map_fd, &opt, frame, sums);
	catch_signals(opt.seconds);

	begin = now_s();
	run(&opt, frame, prog_fd, ifindex, counter);
	end = now_s();
	printf("{\"sent\":%" PRIu64 ",\"seconds\":%.6f,\"mpps\":%.4f,"
	       "\"size\":%u,\"flows\":%u}\n",
	       *counter, end - begin, *counter / (end - begin) / 1e6,
	       opt.size_bytes, opt.flows);
	close(prog_fd);
	close(map_fd);
	return 0;
}
