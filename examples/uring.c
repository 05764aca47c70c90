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

static struct mr_dataplane *dp;
static uint64_t n_frames;

static uint32_t receive(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	struct mr_frame frames[BURST];
	uint32_t n = mr_rx_burst(rx->rxq, worker->cache, frames, BURST);

	(void)opaque;
	n_frames += mr_frame_n_frames(frames, n);
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

static void loop(struct io_uring *ring, int fd, int signals)
{
	bool is_watched = false; /* fd */
	struct io_uring_cqe *cqe;
	uintptr_t what;
	int ms;

	wait_for(ring, signals, SIGNAL);
	while ((ms = mr_dataplane_step(dp, receive, NULL)) >= 0) {
		struct __kernel_timespec limit = { .tv_nsec = ms * 1000000 };

		if (ms > 0 && !is_watched)
			wait_for(ring, fd, FRAMES);
		is_watched |= ms > 0;
		io_uring_submit(ring);
		if ((ms > 0 ? io_uring_wait_cqe_timeout(ring, &cqe, &limit) :
			      io_uring_peek_cqe(ring, &cqe)) != 0)
			continue;
		what = cqe->user_data;
		io_uring_cqe_seen(ring, cqe);
		if (what == SIGNAL)
			return;
		is_watched = false;
	}
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
	struct mr_dataplane_config config = { .size = sizeof(config),
					      .n_workers = 1 };
	struct io_uring ring;
	struct mr_reason why;
	int fd;

	if (argc != 2)
		errx(2, "usage: %s PORT, for example xdp:eth0", argv[0]);
	if (io_uring_queue_init(8, &ring, 0) < 0)
		errx(1, "io_uring is not available");
	config.specs = (const char *const *)argv + 1;
	if (mr_dataplane_open(&config, &dp, &why) < 0 ||
	    (fd = mr_dataplane_fd(dp, &why)) < 0)
		errx(1, "%s", why.text);
	loop(&ring, fd, ctrl_c_fd());
	printf("%" PRIu64 " frames\n", n_frames);
	io_uring_queue_exit(&ring);
	mr_dataplane_close(dp, NULL);
	return 0;
}
