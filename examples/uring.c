/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uring: count the frames of a port, in an io_uring loop that Ctrl-C ends.
 *
 *     sudo ./uring xdp:eth0
 */
#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include <liburing.h>
#include <millrace/millrace.h>

enum { BURST = 64 };
enum { FRAMES = 1, SIGNAL }; /* what an event is about */

static uint32_t receive(struct mr_worker *worker)
{
	struct mr_frame frames[BURST];
	const uint32_t n =
		mr_rx_burst(worker->rxqs[0].rxq, worker->cache, frames, BURST);

	mr_frame_free_bulk(worker->cache, frames, n);
	return n;
}

/* Polls are one-shot, so a new one also sees what is still unread. */
static void wait_for(struct io_uring *ring, int fd, uintptr_t what)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_poll_add(sqe, fd, POLLIN);
	io_uring_sqe_set_data(sqe, (void *)what);
}

static uint64_t loop(struct mr_worker *worker, struct io_uring *ring,
		     int signals)
{
	uint64_t n_frames = 0;
	struct io_uring_cqe *cqe;
	bool is_watched = false; /* the worker's fd */
	uint32_t n;
	int ms;

	wait_for(ring, signals, SIGNAL);
	while ((ms = mr_worker_pause(worker, n = receive(worker))) >= 0) {
		struct __kernel_timespec limit = { .tv_nsec = ms * 1000000 };

		n_frames += n;
		if (ms > 0 && !is_watched)
			wait_for(ring, mr_worker_fd(worker, NULL), FRAMES);
		is_watched |= ms > 0;
		io_uring_submit(ring);
		if ((ms > 0 ? io_uring_wait_cqe_timeout(ring, &cqe, &limit) :
			      io_uring_peek_cqe(ring, &cqe)) == 0) {
			const uintptr_t what = cqe->user_data;

			io_uring_cqe_seen(ring, cqe);
			if (what == SIGNAL)
				return n_frames;
			is_watched = false;
		}
		if (ms > 0)
			mr_worker_resume(worker);
	}
	return n_frames;
}

static int ctrl_c_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_port *port;
	struct mr_workers_config one = { .size = sizeof(one),
					 .n_workers = 1,
					 .ports = &port,
					 .n_ports = 1 };
	struct mr_workers *workers;
	struct io_uring ring;
	struct mr_reason why;
	struct mr_ctx *ctx;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example xdp:eth0", argv[0]);
	if (io_uring_queue_init(8, &ring, 0) < 0)
		errx(1, "io_uring is not available");
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 1, 1, 1, &pool,
			     &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &config, &port, &why) < 0)
		errx(1, "%s", why.text);
	one.pool = config.pool;
	if (mr_workers_create(ctx, &one, &workers, &why) < 0 ||
	    mr_worker_attach(mr_workers_get(workers, 0), &why) < 0)
		errx(1, "%s", why.text);

	printf("%" PRIu64 " frames\n",
	       loop(mr_workers_get(workers, 0), &ring, ctrl_c_fd()));

	mr_worker_detach(mr_workers_get(workers, 0));
	io_uring_queue_exit(&ring);
	mr_port_close(port);
	mr_workers_destroy(workers);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}
