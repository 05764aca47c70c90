/* SPDX-License-Identifier: BSD-3-Clause */
/* live:IFACE as a place of the tester: a sender in the kernel. live_load.c
 * loads its program. */
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "live/live.h"
#include "stream/compiled.h"
#include "support/specs.h"

#include "live.skel.h" /* uses the structs of the headers above */

enum {
	PREFIX_CHARS = sizeof("live:") - 1,
	/* What the kernel allows above the MTU: an Ethernet header and a VLAN
	 * tag (xdp_ok_fwd_dev()). */
	MORE_THAN_MTU = 18,
	MOST_GAP_S = 60, /* a lower rate is a mistake in the unit */
	/* The longest gap of a Poisson process is 7.6 times that; it is kept in
	 * 64 bits, in units of 2^-12 ns. */
	MOST_MEAN_GAP_S = 8,
	MOST_LAG_S = 86400, /* the longest that live_due_before() handles */
	/*
	 * Runs of the program in a call. A signal ends it long before that: a
	 * run takes at least 20 ns, so this many take 85 s. A call that ends by
	 * itself is repeated, which costs 20 ms.
	 */
	RUNS_PER_CALL = UINT32_MAX,
	NSEC_PER_SEC = 1000000000,
	AGAIN_NS = 1000000, /* a signal may come before the call begins */
	FRAME_NS = 200,     /* about, at full speed */
	SETUP_NS = 50000000,
};

struct place {
	char name[PREFIX_CHARS + IF_NAMESIZE];
	int socket_fd;             /* for questions about the interface */
	struct live_bpf *skeleton; /* NULL: before the first trial */
	struct live_shape *shape;  /* that it was loaded with */
	struct live_orders orders;
	bool is_stopped;
	uint64_t stopped_ns; /* when; CLOCK_MONOTONIC */
	bool has_timer;
	timer_t timer;
	pid_t timer_thread; /* that its signals go to */
};

static const char *ifname_of(const struct place *place)
{
	return place->name + PREFIX_CHARS;
}

static int ask_interface(const struct place *place, unsigned long what,
			 struct ifreq *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->ifr_name, ifname_of(place), strlen(ifname_of(place)));
	return ioctl(place->socket_fd, what, ret) < 0 ? -errno : 0;
}

static void place_close(struct place *place)
{
	if (place == NULL)
		return;
	if (place->has_timer)
		timer_delete(place->timer);
	live_bpf__destroy(place->skeleton);
	if (place->socket_fd >= 0)
		close(place->socket_fd);
	free(place->shape);
	free(place);
}

static int fail_place(struct mr_reason *why, int err, const char *spec,
		      const char *text)
{
	snprintf(why->text, sizeof(why->text), "%.60s: %s", spec, text);
	return err;
}

static int place_open(struct mr_ctx *ctx, const char *spec, struct place **ret,
		      struct mr_reason *why)
{
	const char *ifname = spec + PREFIX_CHARS;
	struct place *place;

	(void)ctx;
	if (ifname[0] == '\0' || strlen(ifname) >= IF_NAMESIZE)
		return fail_place(
			why, -EINVAL, spec,
			"give the name of an interface, such as live:eth0");
	if (if_nametoindex(ifname) == 0)
		return fail_place(why, -ENODEV, spec,
				  "no such network interface here");
	place = calloc(1, sizeof(*place));
	if (place == NULL)
		return fail_place(why, -ENOMEM, spec, "no memory");
	snprintf(place->name, sizeof(place->name), "%s", spec);
	place->socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (place->socket_fd < 0) {
		place_close(place);
		return fail_place(why, -errno, spec, "no socket");
	}
	*ret = place;
	return 0;
}

/* Streams are fixed when the program is loaded. */
static int load_streams(struct place *place, const struct streams *streams,
			const struct send_orders *orders, struct mr_reason *why)
{
	struct live_shape *shape = calloc(1, sizeof(*shape));
	int err;

	if (shape == NULL)
		return fail_place(why, -ENOMEM, place->name, "no memory");
	err = live_shape_of(streams, orders->sender, orders->n_senders,
			    orders->seed, shape, why);
	if (err == 0 && place->skeleton != NULL &&
	    memcmp(shape, place->shape, sizeof(*shape)) == 0) {
		free(shape); /* as the last trial's */
		return 0;
	}
	if (err == 0)
		err = live_load(place->name, shape, &place->skeleton, why);
	if (err < 0) {
		free(shape);
		return err;
	}
	free(place->shape);
	place->shape = shape;
	return 0;
}

static void on_alarm(int sig)
{
	(void)sig; /* it only has to end the kernel's loop */
}

static void arm_timer(struct place *place, uint64_t first_ns)
{
	const struct itimerspec times = {
		.it_value = { (time_t)(first_ns / NSEC_PER_SEC),
			      (long)(first_ns % NSEC_PER_SEC) },
		.it_interval = { 0, AGAIN_NS },
	};

	timer_settime(place->timer, 0, &times, NULL);
}

static void disarm_timer(struct place *place)
{
	const struct itimerspec none = { .it_value = { 0, 0 } };

	timer_settime(place->timer, 0, &none, NULL);
}

/* A timer for this thread. It stays, so that place_stop() can always use it. */
static int take_timer(struct place *place, struct mr_reason *why)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGALRM };
	const pid_t thread = (pid_t)syscall(SYS_gettid);
	timer_t timer;

	if (place->has_timer && place->timer_thread == thread)
		return 0;
	event._sigev_un._tid = thread;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return fail_with(why, -errno, "%s: timer_create: %s",
				 place->name, mr_strerror(errno));
	if (place->has_timer)
		timer_delete(place->timer);
	place->timer = timer;
	place->timer_thread = thread;
	__atomic_store_n(&place->has_timer, true, __ATOMIC_RELEASE);
	return 0;
}

/* How long the kernel may run without a signal; 0: until place_stop(). */
static uint64_t until_end(const struct place *place,
			  const struct live_orders *orders)
{
	const struct live_counts *counts = &place->skeleton->bss->counts;
	const uint64_t now = clock_monotonic_ns() - orders->origin_ns;
	uint64_t end_ns = orders->end_ns;

	if (orders->n_frames != 0) {
		const uint64_t n_left =
			orders->n_frames - counts->n_passed - counts->n_unsent;
		const double ns_each = orders->gap == 0 ?
					       FRAME_NS :
					       (double)orders->gap / (1 << 16) /
						       orders->burst_frames;
		const uint64_t begin_ns =
			now > orders->begin_ns ? now : orders->begin_ns;
		const uint64_t likely_ns =
			begin_ns + (uint64_t)((double)n_left * ns_each) +
			SETUP_NS;

		if (end_ns == 0 || likely_ns < end_ns)
			end_ns = likely_ns;
	}
	if (end_ns == 0)
		return 0;
	return end_ns > now ? end_ns - now : 1;
}

static int send_all(struct place *place, struct mr_reason *why)
{
	static const uint8_t zeros[LIVE_MAX_BYTES];
	const struct live_orders *orders = &place->skeleton->bss->orders;
	struct live_counts *counts = &place->skeleton->bss->counts;
	const uint32_t n_bytes = place->shape->max_bytes;
	struct xdp_md ctx = {
		.data_end = n_bytes,
		.ingress_ifindex = place->skeleton->rodata->shape.ifindex,
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = zeros,
		    .data_size_in = n_bytes, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx),
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	const int fd = bpf_program__fd(place->skeleton->progs.live_send);

	while (!__atomic_load_n(&counts->is_done, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&orders->is_stopped, __ATOMIC_RELAXED)) {
		int err;

		if (orders->n_frames != 0 &&
		    counts->n_passed + counts->n_unsent >= orders->n_frames)
			break;
		arm_timer(place, until_end(place, orders));
		/* After arming: place_stop() may have armed it just before. */
		if (__atomic_load_n(&place->is_stopped, __ATOMIC_SEQ_CST))
			break;
		counts->is_set_up = 1;
		opts.repeat = (int)RUNS_PER_CALL;
		err = bpf_prog_test_run_opts(fd, &opts);
		if (err == -EINVAL && counts->n_passed == 0)
			return fail_with(why, -ENOTSUP,
					 "%s: this kernel has no live XDP "
					 "frames (Linux 5.18 and later do)",
					 place->name);
		if (err < 0 && err != -EINTR)
			return fail_with(why, err, "%s: BPF_PROG_RUN: %s",
					 place->name, mr_strerror(-err));
	}
	return 0;
}

/* Count frames as unsent that were due before the end or place_stop() and have
 * not left. */
static void count_rest(struct place *place)
{
	const struct live_orders *orders = &place->skeleton->bss->orders;
	struct live_counts *counts = &place->skeleton->bss->counts;
	const uint64_t n_gone = counts->n_passed + counts->n_unsent;
	uint64_t until_ns =
		(place->is_stopped ? place->stopped_ns : clock_monotonic_ns()) -
		orders->origin_ns;
	uint64_t n_bursts, n;

	if (orders->gap == 0)
		return;
	if (orders->end_ns != 0 && orders->end_ns < until_ns)
		until_ns = orders->end_ns;
	n_bursts = live_due_before(&counts->due, until_ns, orders->gap);
	if (n_bursts == 0)
		return;
	n = n_bursts * orders->burst_frames - counts->due.in_burst;
	if (orders->n_frames != 0 && n > orders->n_frames - n_gone)
		n = orders->n_frames - n_gone;
	counts->n_unsent += n;
}

/* An equal part of what all senders do; the first senders do the rest. */
static uint64_t share_of(uint64_t n, const struct send_orders *orders)
{
	return n / orders->n_senders + (orders->sender < n % orders->n_senders);
}

static int place_info(const struct place *place, struct mr_port_info *ret)
{
	struct ifreq request;
	struct mr_port_info info = { .size = sizeof(info),
				     .n_txqs = 1,
				     .numa_node = -1,
				     .mode = "live" };

	snprintf(info.name, sizeof(info.name), "%s", place->name);
	if (ask_interface(place, SIOCGIFMTU, &request) == 0)
		info.mtu_bytes = (uint32_t)request.ifr_mtu;
	if (ask_interface(place, SIOCGIFHWADDR, &request) == 0) {
		memcpy(info.mac, request.ifr_hwaddr.sa_data, 6);
		info.has_mac = 1;
	}
	*ret = info;
	return 0;
}

/* The gap is that of one sender, because all share the rate. */
static int check_gap(const struct place *place,
		     const struct send_orders *orders, double gap_ns,
		     struct mr_reason *why)
{
	const int most_s =
		orders->pace == PACE_POISSON ? MOST_MEAN_GAP_S : MOST_GAP_S;

	if (gap_ns < 1e9 * most_s)
		return 0;
	return fail_with(
		why, -EINVAL,
		"%s: frames of a sender are due %d seconds or more "
		"apart: give a higher --rate%s",
		place->name, most_s,
		orders->pace == PACE_BURSTS ? ", or fewer --pace-frames" : "");
}

static int place_begin(struct place *place, const struct streams *streams,
		       const struct send_orders *orders, struct mr_reason *why)
{
	const uint32_t burst =
		orders->pace == PACE_BURSTS ? orders->burst_frames : 1;
	const double gap_ns = orders->pps > 0 ? orders->n_senders * burst *
							1e9 / orders->pps :
						0;
	struct mr_port_info info;
	int err = check_gap(place, orders, gap_ns, why);

	if (err < 0)
		return err;
	if (orders->max_lag_ns > 1000000000ull * MOST_LAG_S)
		return fail_place(why, -EINVAL, place->name,
				  "--max-lag of more than a day");
	place->orders = (struct live_orders){
		.origin_ns = orders->clock->start_ns,
		/* Senders take turns. */
		.begin_ns =
			orders->start_ns +
			(uint64_t)(gap_ns * orders->sender / orders->n_senders),
		.end_ns = orders->end_ns == UINT64_MAX ? 0 : orders->end_ns,
		.n_frames = orders->n_frames == UINT64_MAX ?
				    0 :
				    share_of(orders->n_frames, orders),
		.gap = (uint64_t)llround(gap_ns * (1 << 16)),
		.max_lag_ns = orders->max_lag_ns,
		.burst_frames = burst,
		.pace = orders->pace == PACE_POISSON ? LIVE_POISSON :
						       LIVE_CONSTANT,
		.magic = streams->magic,
		.run = streams->run,
	};
	err = load_streams(place, streams, orders, why);
	if (err < 0)
		return err;
	place_info(place, &info);
	if (info.mtu_bytes > 0 &&
	    streams->max_bytes > info.mtu_bytes + MORE_THAN_MTU)
		return fail_place(why, -EINVAL, place->name,
				  "frames are longer than its MTU allows");
	__atomic_store_n(&place->is_stopped, false, __ATOMIC_RELAXED);
	return 0;
}

/* Meanwhile the thread is in the kernel, where set-up takes the first 10 to 30
 * ms; SIGALRM ends that. */
static int place_run(struct place *place, struct mr_reason *why)
{
	/* No SA_RESTART: a signal must end the kernel's loop with EINTR. */
	const struct sigaction action = { .sa_handler = on_alarm };
	sigset_t alarm, before;
	int err;

	place->skeleton->bss->counts =
		(struct live_counts){ .due = { .ns = place->orders.begin_ns } };
	memset(place->skeleton->bss->lateness, 0,
	       sizeof(place->skeleton->bss->lateness));
	err = take_timer(place, why);
	if (err < 0)
		return err;
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm, &before);

	place->skeleton->bss->orders = place->orders;
	if (__atomic_load_n(&place->is_stopped, __ATOMIC_RELAXED))
		place->skeleton->bss->orders.is_stopped = 1;
	err = send_all(place, why);
	disarm_timer(place);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	count_rest(place);
	return err;
}

/* From another thread or a signal handler. */
static void place_stop(struct place *place)
{
	if (!__atomic_load_n(&place->is_stopped, __ATOMIC_RELAXED))
		place->stopped_ns = clock_monotonic_ns();
	__atomic_store_n(&place->is_stopped, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&place->skeleton->bss->orders.is_stopped, 1,
			 __ATOMIC_RELAXED);
	if (__atomic_load_n(&place->has_timer, __ATOMIC_ACQUIRE))
		arm_timer(place, 1);
}

static void fill_lateness(const struct place *place,
			  const struct live_counts *counts, struct hist *hist)
{
	const uint64_t *from = (const uint64_t *)place->skeleton->bss->lateness;

	*hist = (struct hist){ .max = counts->late_max_ns };
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		const double ns = (double)hist_low(i);

		if (from[i] == 0)
			continue;
		if (hist->n == 0)
			hist->min = hist_low(i);
		hist->counts[i] = from[i];
		hist->n += from[i];
		hist->sum += ns * (double)from[i];
		hist->sum_sq += ns * ns * (double)from[i];
	}
	if (counts->late_max_ns >> HIST_VALUE_BITS != 0)
		hist->n_over = hist->counts[HIST_BUCKETS - 1];
}

/* Also during place_run(): the kernel writes each word at once. */
static void read_counts(const struct place *place, struct live_counts *ret)
{
	memcpy(ret, (const void *)&place->skeleton->bss->counts, sizeof(*ret));
}

static void place_counts(const struct place *place, struct send_counts *ret,
			 struct hist *lateness)
{
	struct live_counts counts;

	*ret = (struct send_counts){ .sent = 0 };
	if (place->skeleton == NULL)
		return;
	read_counts(place, &counts);
	/* Frames that the device cannot send at all have not left. */
	ret->sent = counts.n_passed - counts.n_no_way;
	ret->unsent = counts.n_unsent + counts.n_no_way;
	ret->refused = counts.n_refused;
	ret->bytes = counts.n_bytes;
	ret->last_ns = counts.last_ns;
	if (lateness != NULL)
		fill_lateness(place, &counts, lateness);
}

static uint64_t place_n_sent(const struct place *place, uint32_t stream)
{
	struct live_counts counts;

	if (place->skeleton == NULL || stream >= LIVE_MAX_STREAMS)
		return 0;
	read_counts(place, &counts);
	return counts.by_stream[stream];
}

static int place_link(const struct place *place, struct mr_link *ret)
{
	struct ifreq request;
	const int err = ask_interface(place, SIOCGIFFLAGS, &request);

	*ret = (struct mr_link){ .is_gone = err == -ENODEV };
	if (err == 0)
		ret->is_up = (request.ifr_flags & IFF_UP) &&
			     (request.ifr_flags & IFF_RUNNING);
	return 0;
}

static uint32_t place_drops(const struct place *place,
			    struct mr_named_count *ret, uint32_t room)
{
	struct live_counts counts;

	if (place->skeleton == NULL || room < 3)
		return 0;
	read_counts(place, &counts);
	ret[0] = (struct mr_named_count){ "kernel_set_up", counts.n_set_up };
	ret[1] = (struct mr_named_count){ "refused", counts.n_refused };
	ret[2] = (struct mr_named_count){ "no_xdp_xmit", counts.n_no_way };
	return 3;
}

const struct place_ops live_place = {
	.prefix = "live:",
	.open = place_open,
	.close = place_close,
	.begin = place_begin,
	.run = place_run,
	.stop = place_stop,
	.counts = place_counts,
	.n_sent = place_n_sent,
	.info = place_info,
	.link = place_link,
	.drops = place_drops,
};
