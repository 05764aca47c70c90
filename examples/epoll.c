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

static uint32_t forward(struct mr_worker *worker)
{
	struct mr_frame frames[BURST];
	uint32_t n = 0;

	for (uint32_t i = 0; i < worker->n_rxqs; i++) {
		const uint32_t n_rx = mr_rx_burst(worker->rxqs[i].rxq,
						  worker->cache, frames, BURST);
		const uint32_t n_tx = mr_worker_send(
			worker, !worker->rxqs[i].port_idx, frames, n_rx);

		mr_frame_free_bulk(worker->cache, frames + n_tx, n_rx - n_tx);
		n += n_rx;
	}
	return n;
}

static void watch(int loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll");
}

static void loop(struct mr_worker *worker)
{
	const struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	const int epoll = epoll_create1(EPOLL_CLOEXEC),
		  timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t n_moved = 0, n_ticks;
	struct epoll_event event;
	sigset_t signals;
	uint32_t n;
	int ms;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	timerfd_settime(timer, 0, &second, NULL);
	watch(epoll, mr_worker_fd(worker, NULL));
	watch(epoll, signalfd(-1, &signals, SFD_CLOEXEC));
	watch(epoll, timer);
	while ((ms = mr_worker_pause(worker, n = forward(worker))) >= 0) {
		n_moved += n;
		event.data.fd = -1;
		epoll_wait(epoll, &event, 1, ms);
		if (ms > 0)
			mr_worker_resume(worker);
		if (event.data.fd == timer &&
		    read(timer, &n_ticks, sizeof(n_ticks)) > 0) {
			printf("%" PRIu64 " frames/s\n", n_moved / n_ticks);
			n_moved = 0;
		} else if (event.data.fd >= 0 &&
			   event.data.fd != mr_worker_fd(worker, NULL)) {
			return;
		}
	}
}

int main(int argc, char **argv)
{
	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_port *ports[2];
	struct mr_workers_config workers = { .size = sizeof(workers),
					     .n_workers = 1,
					     .ports = ports,
					     .n_ports = 2 };
	struct mr_workers *all;
	struct mr_reason why;
	struct mr_ctx *ctx;

	if (argc != 3)
		errx(2, "usage: %s PORT PORT, for example xdp:eth0", argv[0]);
	setlinebuf(stdout);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 2, 1, 1, &pool,
			     &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &config, &ports[0], &why) < 0 ||
	    mr_port_open(ctx, argv[2], &config, &ports[1], &why) < 0)
		errx(1, "%s", why.text);
	workers.pool = config.pool;
	if (mr_workers_create(ctx, &workers, &all, &why) < 0 ||
	    mr_worker_attach(mr_workers_get(all, 0), &why) < 0)
		errx(1, "%s", why.text);

	loop(mr_workers_get(all, 0));

	mr_worker_detach(mr_workers_get(all, 0));
	mr_port_close(ports[0]);
	mr_port_close(ports[1]);
	mr_workers_destroy(all);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}
