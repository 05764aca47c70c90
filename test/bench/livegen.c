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
 * far it came. Frames are UDP with a sum of 0, source ports 9000 + flow; with
 * --ethertype 0x88b5 they are something that no host has a handler for.
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
	MAX_FLOWS = 32768,
	SPORT_OFFSET = ETH_HLEN + sizeof(struct iphdr),
	FIRST_SPORT = 9000,
	/* Each call costs some 20 ms of set-up; a signal ends it early. */
	FRAMES_PER_CALL = 1 << 30,
};

struct options {
	const char *dev;
	uint64_t count; /* 0: no limit */
	double seconds; /* 0: no limit */
	uint32_t size_bytes;
	uint32_t flows; /* a power of two */
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

/*
 * r1 is the context. The counter is one 64-bit word of an array map that is
 * mapped here; one CPU writes it, so no atomic. With more than one flow the
 * source port takes the counter's low bits; a frame's page comes round again
 * with the port that it had, which is why every frame's is written.
 */
static int load_program(int map_fd, uint32_t flows)
{
	const struct bpf_insn insns[] = {
	    {BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_VALUE, 0, map_fd},
	    {0, 0, 0, 0, 0},
	    /* r3 = ++*counter */
	    {BPF_LDX | BPF_MEM | BPF_DW, 3, 2, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, 1},
	    {BPF_STX | BPF_MEM | BPF_DW, 2, 3, 0, 0},
	    /* one flow: r6 = 1 skips what follows */
	    {BPF_ALU64 | BPF_MOV | BPF_K, 6, 0, 0, flows == 1},
	    {BPF_JMP | BPF_JNE | BPF_K, 6, 0, 9, 0},
	    /* if (data + SPORT_OFFSET + 2 <= data_end) write the port */
	    {BPF_LDX | BPF_MEM | BPF_W, 4, 1, 0, 0},
	    {BPF_LDX | BPF_MEM | BPF_W, 5, 1, 4, 0},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 0, 4, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, SPORT_OFFSET + 2},
	    {BPF_JMP | BPF_JGT | BPF_X, 0, 5, 4, 0},
	    {BPF_ALU64 | BPF_AND | BPF_K, 3, 0, 0, (int)flows - 1},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, FIRST_SPORT},
	    {BPF_ALU | BPF_END | BPF_TO_BE, 3, 0, 0, 16},
	    {BPF_STX | BPF_MEM | BPF_H, 4, 3, SPORT_OFFSET, 0},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_TX},
	    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	const size_t n_insns = sizeof(insns) / sizeof(insns[0]);
	char log[4096] = "";
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log,
		    .log_size = sizeof(log), .log_level = 1);
	const int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "livegen",
				     "Dual BSD/GPL", insns, n_insns, &opts);

	if (fd < 0)
		errx(1, "program refused: %s\n%s", strerror(-fd), log);
	return fd;
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

static void make_frame(const struct options *opt, uint8_t *frame)
{
	struct ether_header eth = {.ether_type = htons(opt->ethertype)};
	struct iphdr ip = {
	    .version = 4,
	    .ihl = 5,
	    .tot_len = htons((uint16_t)(opt->size_bytes - ETH_HLEN)),
	    .ttl = 64,
	    .protocol = IPPROTO_UDP,
	    .saddr = htonl(0xc6120001), /* 198.18.0.1, RFC 2544 */
	    .daddr = htonl(0xc6120101),
	};
	const struct udphdr udp = {
	    .source = htons(FIRST_SPORT),
	    .dest = htons(9), /* discard */
	    .len = htons((uint16_t)(opt->size_bytes - ETH_HLEN - sizeof(ip))),
	};
	uint16_t words[sizeof(ip) / 2];
	uint32_t sum = 0;

	memcpy(eth.ether_dhost, opt->dst, 6);
	memcpy(eth.ether_shost, opt->src, 6);
	memcpy(words, &ip, sizeof(ip));
	for (size_t i = 0; i < sizeof(ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip.check = (uint16_t) ~(sum + (sum >> 16));

	memset(frame, 0, opt->size_bytes);
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
	memcpy(frame + SPORT_OFFSET, &udp, sizeof(udp));
}

static void usage(void)
{
	fprintf(stderr,
		"usage: livegen --dev IFNAME [--size BYTES] [--flows N]\n"
		"               [--count FRAMES] [--seconds S] [--core N]\n"
		"               [--dst MAC] [--src MAC] [--ethertype NUMBER]\n"
		"Sends until the count, the time, or SIGINT or SIGTERM;\n"
		"then prints one line of JSON. FLOWS is a power of two.\n");
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
	if (optind != argc || opt.dev == NULL ||
	    (opt.flows & (opt.flows - 1)) != 0)
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

static void run(const struct options *opt, int prog_fd, int ifindex,
		const uint64_t *counter)
{
	uint8_t frame[MAX_BYTES];
	struct xdp_md ctx = {.data_end = opt->size_bytes,
			     .ingress_ifindex = (uint32_t)ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = opt->size_bytes, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .flags = TEST_XDP_LIVE_FRAMES);

	make_frame(opt, frame);
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
	prog_fd = load_program(map_fd, opt.flows);
	catch_signals(opt.seconds);

	begin = now_s();
	run(&opt, prog_fd, ifindex, counter);
	end = now_s();
	printf("{\"sent\":%" PRIu64 ",\"seconds\":%.6f,\"mpps\":%.4f,"
	       "\"size\":%u,\"flows\":%u}\n",
	       *counter, end - begin, *counter / (end - begin) / 1e6,
	       opt.size_bytes, opt.flows);
	close(prog_fd);
	close(map_fd);
	return 0;
}
