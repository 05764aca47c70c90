/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads and runs the sender in the kernel. */
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "live/live.h"
#include "support/specs.h"

#include "live.skel.h" /* has the structs of the above */

enum {
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

struct live {
	char ifname[IF_NAMESIZE];
	uint32_t ifindex, netns, max_bytes;
	struct live_bpf *skeleton;
	bool is_stopped;
	uint64_t stopped_ns; /* when; CLOCK_MONOTONIC */
	bool has_timer;
	timer_t timer;
	pid_t timer_thread; /* that its signals go to */
};

static int print_nothing(enum libbpf_print_level level, const char *format,
			 va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Quantiles of the exponential distribution, with mean 1; the program has no
 * room for the last 4 bits of each. */
static void fill_gaps(__u32 *ret_gaps)
{
	double values[LIVE_GAPS], sum = 0;

	for (int i = 0; i < LIVE_GAPS; i++) {
		values[i] = -log((i + 0.5) / LIVE_GAPS);
		sum += values[i];
	}
	for (int i = 0; i < LIVE_GAPS; i++)
		ret_gaps[i] =
			(__u32)lround(values[i] / sum * LIVE_GAPS * (1 << 12))
			<< 4;
}

static int load_program(struct live *live, const struct live_shape *shape)
{
	struct live_bpf *skeleton = live_bpf__open();
	struct live_shape *own;
	int err;

	if (skeleton == NULL)
		return -errno;
	memcpy((void *)&skeleton->rodata->shape, shape, sizeof(*shape));
	own = (struct live_shape *)&skeleton->rodata->shape;
	own->ifindex = live->ifindex;
	own->netns = live->netns;
	fill_gaps((__u32 *)skeleton->rodata->gaps);
	err = live_bpf__load(skeleton);
	if (err == 0)
		err = live_bpf__attach(skeleton);
	if (err < 0) {
		live_bpf__destroy(skeleton);
		return err;
	}
	live->skeleton = skeleton;
	return 0;
}

static int load_or_say(struct live *live, const struct live_shape *shape,
		       struct mr_reason *ret_why)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int err;

	/* For the whole process: we report failures ourselves. */
	libbpf_set_print(print_nothing);
	/* Kernels before 5.11 count maps here; failing to raise it does not
	 * matter. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	err = load_program(live, shape);
	if (err == 0)
		return 0;
	/* The verifier returns EINVAL or EACCES if a capability is missing,
	 * libbpf ESRCH if there is no BTF. */
	return fail_with(
		ret_why, err == -EPERM ? -EPERM : -ENOTSUP,
		"live:%s: the kernel does not load the program for live "
		"frames (%s): it needs root, or CAP_BPF, CAP_PERFMON and "
		"CAP_NET_ADMIN, and a kernel with BTF",
		live->ifname, mr_strerror(-err));
}

/* 0: not known, and then nothing is counted. */
static uint32_t current_netns(void)
{
	struct stat found;

	return stat("/proc/thread-self/ns/net", &found) == 0 ?
		       (uint32_t)found.st_ino :
		       0;
}

int live_open(const char *ifname, const struct live_shape *shape,
	      struct live **ret, struct mr_reason *ret_why)
{
	struct live *live;
	int err;

	live = calloc(1, sizeof(*live));
	if (live == NULL)
		return fail_with(ret_why, -ENOMEM, "live:%s: no memory",
				 ifname);
	snprintf(live->ifname, sizeof(live->ifname), "%s", ifname);
	live->max_bytes = shape->max_bytes;
	live->ifindex = if_nametoindex(ifname);
	live->netns = current_netns();
	if (live->ifindex == 0)
		err = fail_with(ret_why, -ENODEV,
				"live:%s: no such network interface here",
				ifname);
	else
		err = load_or_say(live, shape, ret_why);
	if (err < 0) {
		free(live);
		return err;
	}
	*ret = live;
	return 0;
}

void live_close(struct live *live)
{
	if (live == NULL)
		return;
	if (live->has_timer)
		timer_delete(live->timer);
	live_bpf__destroy(live->skeleton);
	free(live);
}

static void on_alarm(int sig)
{
	(void)sig; /* that the kernel's loop ends is all it is for */
}

static void arm_timer(struct live *live, uint64_t first_ns)
{
	const struct itimerspec times = {
		.it_value = { (time_t)(first_ns / NSEC_PER_SEC),
			      (long)(first_ns % NSEC_PER_SEC) },
		.it_interval = { 0, AGAIN_NS },
	};

	timer_settime(live->timer, 0, &times, NULL);
}

static void disarm_timer(struct live *live)
{
	const struct itimerspec none = { .it_value = { 0, 0 } };

	timer_settime(live->timer, 0, &none, NULL);
}

/* A timer for this thread. It stays, so that live_stop() can always use it. */
static int take_timer(struct live *live, struct mr_reason *ret_why)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGALRM };
	const pid_t thread = (pid_t)syscall(SYS_gettid);
	timer_t timer;

	if (live->has_timer && live->timer_thread == thread)
		return 0;
	event._sigev_un._tid = thread;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return fail_with(ret_why, -errno, "live:%s: timer_create: %s",
				 live->ifname, mr_strerror(errno));
	if (live->has_timer)
		timer_delete(live->timer);
	live->timer = timer;
	live->timer_thread = thread;
	__atomic_store_n(&live->has_timer, true, __ATOMIC_RELEASE);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* How long the kernel may run without a signal; 0: until live_stop(). */
static uint64_t until_end(const struct live *live,
			  const struct live_orders *orders)
{
	const struct live_counts *counts = &live->skeleton->bss->counts;
	const uint64_t now = now_ns() - orders->origin_ns;
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

static int send_all(struct live *live, struct mr_reason *ret_why)
{
	static const uint8_t zeros[LIVE_MAX_BYTES];
	const struct live_orders *orders = &live->skeleton->bss->orders;
	struct live_counts *counts = &live->skeleton->bss->counts;
	struct xdp_md ctx = { .data_end = live->max_bytes,
			      .ingress_ifindex = live->ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = zeros,
		    .data_size_in = live->max_bytes, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx),
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	const int fd = bpf_program__fd(live->skeleton->progs.live_send);

	while (!__atomic_load_n(&counts->is_done, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&orders->is_stopped, __ATOMIC_RELAXED)) {
		int err;

		if (orders->n_frames != 0 &&
		    counts->n_passed + counts->n_unsent >= orders->n_frames)
			break;
		arm_timer(live, until_end(live, orders));
		/* After arming: live_stop() may have armed it just before. */
		if (__atomic_load_n(&live->is_stopped, __ATOMIC_SEQ_CST))
			break;
		counts->is_set_up = 1;
		opts.repeat = (int)RUNS_PER_CALL;
		err = bpf_prog_test_run_opts(fd, &opts);
		if (err == -EINVAL && counts->n_passed == 0)
			return fail_with(ret_why, -ENOTSUP,
					 "live:%s: this kernel has no live XDP "
					 "frames (Linux 5.18 and later do)",
					 live->ifname);
		if (err < 0 && err != -EINTR)
			return fail_with(ret_why, err,
					 "live:%s: BPF_PROG_RUN: %s",
					 live->ifname, mr_strerror(-err));
	}
	return 0;
}

/* Count frames as unsent that were due before the end or live_stop() and have
 * not left. */
static void count_rest(struct live *live)
{
	const struct live_orders *orders = &live->skeleton->bss->orders;
	struct live_counts *counts = &live->skeleton->bss->counts;
	const uint64_t n_gone = counts->n_passed + counts->n_unsent;
	uint64_t until_ns = (live->is_stopped ? live->stopped_ns : now_ns()) -
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

int live_run(struct live *live, const struct live_orders *orders,
	     struct mr_reason *ret_why)
{
	/* No SA_RESTART: a signal must end the kernel's loop with EINTR. */
	const struct sigaction action = { .sa_handler = on_alarm };
	sigset_t alarm, before;
	int err;

	live->skeleton->bss->counts =
		(struct live_counts){ .due = { .ns = orders->begin_ns } };
	memset(live->skeleton->bss->lateness, 0,
	       sizeof(live->skeleton->bss->lateness));
	err = take_timer(live, ret_why);
	if (err < 0)
		return err;
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm, &before);

	live->skeleton->bss->orders = *orders;
	if (__atomic_load_n(&live->is_stopped, __ATOMIC_RELAXED))
		live->skeleton->bss->orders.is_stopped = 1;
	err = send_all(live, ret_why);
	disarm_timer(live);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	count_rest(live);
	return err;
}

void live_ready(struct live *live)
{
	__atomic_store_n(&live->is_stopped, false, __ATOMIC_RELAXED);
}

void live_stop(struct live *live)
{
	if (!__atomic_load_n(&live->is_stopped, __ATOMIC_RELAXED))
		live->stopped_ns = now_ns();
	__atomic_store_n(&live->is_stopped, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&live->skeleton->bss->orders.is_stopped, 1,
			 __ATOMIC_RELAXED);
	if (__atomic_load_n(&live->has_timer, __ATOMIC_ACQUIRE))
		arm_timer(live, 1);
}

const uint64_t *live_lateness(const struct live *live)
{
	return (const uint64_t *)live->skeleton->bss->lateness;
}

void live_read(const struct live *live, struct live_counts *ret)
{
	const struct live_counts *counts = &live->skeleton->bss->counts;

	/* The kernel writes each word at once. */
	memcpy(ret, (const void *)counts, sizeof(*ret));
}
