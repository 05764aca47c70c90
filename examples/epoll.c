/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoll: forward between two ports in a loop that also serves other fds: here,
 * a timer that prints the rate, and signals that end the program.
 *
 *     sudo ./epoll xdp:eth0 xdp:eth1
 */
#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <millrace/millrace.h>

enum { BURST = 64 };

static struct mr_dataplane *dp;
static uint64_t n_moved;

static uint32_t forward(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, BURST);
	uint32_t n_sent = mr_worker_send(worker, !rx->port_idx, frames, n);

	(void)opaque;
	mr_frame_free_bulk(worker->cache, frames + n_sent, n - n_sent);
	n_moved += n;
	return n;
}

static void watch(int loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll");
}

static void print_rate(int timer)
{
	uint64_t n_ticks;

	if (read(timer, &n_ticks, sizeof(n_ticks)) < 0)
		return;
	printf("%" PRIu64 " frames/s\n", n_moved / n_ticks);
	n_moved = 0;
}

static void loop(int frames)
{
	const struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	const int epoll = epoll_create1(EPOLL_CLOEXEC),
		  timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct epoll_event event;
	sigset_t ctrl_c;
	int signals, ms;

	sigemptyset(&ctrl_c);
	sigaddset(&ctrl_c, SIGINT);
	sigprocmask(SIG_BLOCK, &ctrl_c, NULL);
	signals = signalfd(-1, &ctrl_c, SFD_CLOEXEC);
	timerfd_settime(timer, 0, &second, NULL);
	watch(epoll, frames);
	watch(epoll, signals);
	watch(epoll, timer);
	while ((ms = mr_dataplane_step(dp, forward, NULL)) >= 0) {
		if (epoll_wait(epoll, &event, 1, ms) < 1)
			continue;
		if (event.data.fd == signals)
			return;
		if (event.data.fd == timer)
			print_rate(timer);
	}
}

int main(int argc, char **argv)
{
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1 };
	struct mr_reason why;
	int frames;

	if (argc != 3)
		errx(2, "usage: %s PORT PORT, for example xdp:eth0", argv[0]);
	setlinebuf(stdout);
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0 ||
	    (frames = mr_dataplane_fd(dp, &why)) < 0)
		errx(1, "%s", why.text);
	loop(frames);
	mr_dataplane_close(dp, NULL);
	return 0;
}
