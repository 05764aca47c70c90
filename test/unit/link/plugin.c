/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <millrace/driver_base.h>
#include <millrace/millrace.h>

#include "plugin.h"
#include "support/limit.h"

enum { N_PORTS = 2, BURST = 64, WAIT_MS = 10000 };

static struct mr_ctx *ctx;
static struct mr_pool *pool;
static struct mr_port *ports[N_PORTS];
static struct mr_workers *workers;
static uint64_t n_forwarded; /* atomic */

static int open_all(const char *spec)
{
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_workers_config one = { .size = sizeof(one),
					 .n_workers = 1,
					 .ports = ports,
					 .n_ports = N_PORTS };
	int err = mr_ctx_create(NULL, &ctx, NULL);

	if (err == 0)
		err = mr_pool_create(ctx, NULL, &pool, NULL);
	config.pool = one.pool = pool;
	for (int i = 0; i < N_PORTS && err == 0; i++)
		err = mr_port_open(ctx, i == 0 ? "null:" : spec, &config,
				   &ports[i], NULL);
	return err < 0 ? err : mr_workers_create(ctx, &one, &workers, NULL);
}

static int forward_frames(struct mr_worker *worker, void *opaque)
{
	struct mr_frame frames[BURST];
	uint32_t n, n_sent;

	(void)opaque;
	do {
		n = mr_rx_burst(worker->rxqs[0].rxq, worker->cache, frames,
				BURST);
		n_sent = mr_worker_send(worker, 1, frames, n);
		mr_frame_free_bulk(worker->cache, frames + n_sent, n - n_sent);
		__atomic_fetch_add(&n_forwarded, n_sent, __ATOMIC_RELAXED);
	} while (mr_worker_wait(worker, n));
	return 0;
}

static int start_workers(void)
{
	return mr_workers_start(workers, forward_frames, NULL, NULL);
}

static int await_frames(void)
{
	const uint64_t before = __atomic_load_n(&n_forwarded, __ATOMIC_RELAXED);
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (uint32_t ms = 0; ms < test_limit_ms(WAIT_MS); ms++) {
		if (__atomic_load_n(&n_forwarded, __ATOMIC_RELAXED) > before)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

static int stop_workers(void)
{
	mr_workers_stop(workers);
	return mr_workers_join(workers, test_limit_ms(WAIT_MS), NULL);
}

static int close_all(void)
{
	int err;

	for (int i = 0; i < N_PORTS; i++)
		mr_port_close(ports[i]);
	mr_workers_destroy(workers);
	err = mr_pool_destroy(pool, NULL);
	if (err == 0)
		mr_ctx_destroy(ctx);
	return err;
}

static void *attach_thread(void *opaque)
{
	struct mr_worker *worker = opaque;
	struct mr_frame frames[BURST];
	uint32_t n;

	if (mr_worker_attach(worker, NULL) < 0)
		return NULL;
	n = mr_rx_burst(worker->rxqs[0].rxq, worker->cache, frames, BURST);
	mr_frame_free_bulk(worker->cache, frames, n);
	return worker;
}

static int abandon(void)
{
	struct mr_worker *worker = mr_workers_get(workers, 0);
	void *attached = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, attach_thread, worker) != 0 ||
	    pthread_join(thread, &attached) != 0 || attached == NULL)
		return -EIO;
	/* mr_worker_detach() was not called. */
	return mr_worker_attach(worker, NULL) == -EBUSY ? 0 : -EEXIST;
}

static void *exit_process(void *opaque)
{
	exit(*(const int *)opaque);
}

static int leave_with(int status)
{
	static int asked;
	pthread_t thread;

	asked = status;
	if (pthread_create(&thread, NULL, exit_process, &asked) != 0)
		return -EAGAIN;
	pthread_exit(NULL);
}

static int guard(int fd)
{
	return mr_fd_guard(fd) == fd ? 0 : -EMFILE;
}

static int release_fd(int fd)
{
	mr_fd_close(fd);
	return 0;
}

static const void *library(void)
{
	return (const void *)mr_ctx_create;
}

extern const struct plugin plugin;
__attribute__((visibility("default"))) const struct plugin plugin = {
	.open = open_all,
	.start = start_workers,
	.pass = await_frames,
	.end = stop_workers,
	.close = close_all,
	.abandon = abandon,
	.leave = leave_with,
	.guard = guard,
	.release = release_fd,
	.library = library,
};
