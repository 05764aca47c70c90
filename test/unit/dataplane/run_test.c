/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/dataplane/run.c: rounds, stopping, event loops, draining. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <millrace/driver.h>
#include <millrace/ring.h>
#include <millrace/worker_loop.h>

#include "fixture.h"

enum { N_SENT = 200, RING = 64 };

static const char *const pairs[] = { "pair:0", "pair:1", NULL };
static const char *const queues[] = { "pair:0,queues=2", "pair:1,queues=2",
				      NULL };

/* What forward() has done, and when it is to stop; all atomic. */
static struct {
	uint32_t n_calls;
	uint32_t n_frames;
	uint32_t n_until_stop; /* frames; 0: never */
	uint32_t n_by_queue[2];
	uint32_t core_by_worker[2];
	uint32_t has_wrong_queue; /* of another worker */
} done;

static uint32_t forward(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n =
		mr_rx_burst(rx->rxq, worker->cache, frames, MR_BURST_MAX);
	const uint32_t n_sent =
		mr_worker_send(worker, !rx->port_idx, frames, n);

	assert_ptr_equal(opaque, &done);
	mr_frame_free_bulk(worker->cache, frames + n_sent, n - n_sent);
	__atomic_add_fetch(&done.n_calls, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&done.n_by_queue[rx->queue_idx], n,
			   __ATOMIC_RELAXED);
	__atomic_store_n(&done.core_by_worker[worker->idx],
			 (uint32_t)sched_getcpu(), __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&done.n_frames, n, __ATOMIC_RELAXED) >=
		    done.n_until_stop &&
	    done.n_until_stop > 0)
		mr_dataplane_stop(dp);
	return n;
}

static void open_to_run(const char *const *specs, uint32_t n_workers,
			enum mr_idle_mode idle)
{
	struct mr_dataplane_config config = config_of(specs);

	memset(&done, 0, sizeof(done));
	config.n_workers = n_workers;
	config.idle = idle;
	config.takes_meta = 1; /* for "merge:" */
	open_plane(&config);
}

static void run_plane(void)
{
	struct mr_reason why = { "" };

	if (mr_dataplane_run(dp, forward, &done, &why) < 0)
		fail_msg("%s", why.text);
}

PLANE_TEST(frames_go_from_one_port_to_the_other)
{
	open_to_run(pairs, 1, MR_IDLE_ADAPTIVE);
	for (int i = 0; i < 3; i++) { /* it can be run again */
		send_to(0, 0, 100);
		send_to(1, 0, 50);
		done.n_frames = 0;
		done.n_until_stop = 150;
		run_plane();
		assert_int_equal(receive_from(0), 50);
		assert_int_equal(receive_from(1), 100);
	}
}

PLANE_TEST_MT(each_worker_has_a_queue_and_a_core)
{
	need_two_cores();
	open_to_run(queues, 2, MR_IDLE_ADAPTIVE);
	send_to(0, 0, 100);
	send_to(0, 1, 70);
	done.n_until_stop = 170;
	run_plane();
	assert_int_equal(done.n_by_queue[0], 100);
	assert_int_equal(done.n_by_queue[1], 70);
	for (uint32_t w = 0; w < 2; w++)
		assert_int_equal(done.core_by_worker[w],
				 mr_workers_get(dp->workers, w)->core);
	assert_int_equal(receive_from(1), 170);
}

PLANE_TEST(the_calling_thread_is_bound_only_while_it_runs)
{
	cpu_set_t before, after;

	open_to_run(pairs, 1, MR_IDLE_ADAPTIVE);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	done.n_until_stop = 1;
	send_to(0, 0, 1);
	run_plane();
	assert_int_equal(done.core_by_worker[0],
			 mr_workers_get(dp->workers, 0)->core);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

/* When the workers run, stop them. */
static void *stop_when_running(void *opaque)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	while (__atomic_load_n(&done.n_calls, __ATOMIC_RELAXED) == 0)
		nanosleep(&pause, NULL);
	mr_dataplane_stop(dp);
	return opaque;
}

PLANE_TEST_MT(another_thread_stops_it)
{
	static const enum mr_idle_mode idles[] = { MR_IDLE_ADAPTIVE,
						   MR_IDLE_POLL,
						   MR_IDLE_INTERRUPT };
	pthread_t thread;

	need_two_cores();
	for (uint32_t i = 0; i < 3; i++) {
		open_to_run(queues, 2, idles[i]);
		assert_int_equal(
			pthread_create(&thread, NULL, stop_when_running, NULL),
			0);
		run_plane();
		pthread_join(thread, NULL);
		close_plane();
	}
}

static void on_alarm(int number)
{
	(void)number;
	errno = 77;
	mr_dataplane_stop(dp);
	if (errno != 77)
		__atomic_store_n(&done.n_until_stop, UINT32_MAX,
				 __ATOMIC_RELAXED);
}

/* It comes while the worker sleeps, or before it does. */
PLANE_TEST(a_signal_handler_stops_it)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	void (*const before)(int) = signal(SIGALRM, on_alarm);

	open_to_run(pairs, 1, MR_IDLE_INTERRUPT);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	run_plane();
	assert_int_equal(done.n_until_stop, 0); /* errno was kept */
	signal(SIGALRM, before);
}

PLANE_TEST(a_stop_before_the_start_ends_it_after_one_round)
{
	mr_dataplane_stop(NULL);
	open_to_run(pairs, 1, MR_IDLE_POLL);
	mr_dataplane_stop(dp);
	run_plane();
	assert_int_equal(done.n_calls, 2); /* for each rx queue */
}

PLANE_TEST(no_function_is_refused)
{
	struct mr_reason why;

	open_to_run(pairs, 1, MR_IDLE_POLL);
	assert_int_equal(mr_dataplane_run(dp, NULL, NULL, &why), -EINVAL);
	assert_reason_has(&why, "fn is NULL");
}

PLANE_TEST(a_worker_with_a_thread_is_refused)
{
	struct mr_worker *worker;
	struct mr_reason why;

	open_to_run(pairs, 1, MR_IDLE_POLL);
	worker = mr_workers_get(dp->workers, 0);
	assert_int_equal(mr_worker_attach(worker, NULL), 0);
	assert_int_equal(mr_dataplane_run(dp, forward, &done, &why), -EBUSY);
	assert_reason_has(&why, "worker 0 already has a thread");
	assert_int_equal(mr_dataplane_fd(dp, &why), -EBUSY);
	assert_int_equal(done.n_calls, 0);
	mr_worker_detach(worker);
}

/* Sleeps until a frame comes, and ends with a stop. */
PLANE_TEST(an_event_loop_runs_the_worker)
{
	struct pollfd wait = { .events = POLLIN };
	uint32_t n_received = 0;
	int ms;

	open_to_run(pairs, 1, MR_IDLE_INTERRUPT);
	wait.fd = mr_dataplane_fd(dp, NULL);
	assert_true(wait.fd >= 0);
	assert_int_equal(mr_dataplane_fd(dp, NULL), wait.fd);
	for (uint32_t i = 1; i <= 20; i++) {
		while ((ms = mr_dataplane_step(dp, forward, &done)) == 0)
			;
		assert_in_range(ms, 1, 100);
		assert_int_equal(poll(&wait, 1, 0), 0);
		send_to(0, 0, i);
		assert_int_equal(poll(&wait, 1, 0), 1);
		while (mr_dataplane_step(dp, forward, &done) == 0)
			n_received += receive_from(1);
		n_received += receive_from(1);
	}
	assert_int_equal(n_received, 20 * 21 / 2);
	mr_dataplane_stop(dp);
	assert_int_equal(poll(&wait, 1, 0), 1);
	assert_int_equal(mr_dataplane_step(dp, forward, &done), -ECANCELED);
	send_to(0, 0, 10); /* what nobody receives */
}

static uint32_t n_of_queue(uint32_t i)
{
	return __atomic_load_n(&done.n_by_queue[i], __ATOMIC_RELAXED);
}

PLANE_TEST_MT(an_event_loop_runs_worker_0_beside_the_others)
{
	need_two_cores();
	open_to_run(queues, 2, MR_IDLE_ADAPTIVE);
	assert_true(mr_dataplane_fd(dp, NULL) >= 0);
	send_to(0, 0, 100);
	send_to(0, 1, 70);
	while (n_of_queue(0) < 100 || n_of_queue(1) < 70)
		assert_true(mr_dataplane_step(dp, forward, &done) >= 0);
	mr_dataplane_stop(dp);
	assert_int_equal(mr_dataplane_step(dp, forward, &done), -ECANCELED);
	assert_int_equal(mr_workers_join(dp->workers, 0, NULL), 0);
	assert_int_equal(mr_dataplane_step(dp, forward, &done), -ECANCELED);
	assert_int_equal(receive_from(1), 170);
}

PLANE_TEST_MT(workers_of_an_event_loop_end_when_it_is_closed)
{
	need_two_cores();
	open_to_run(queues, 2, MR_IDLE_ADAPTIVE);
	assert_true(mr_dataplane_fd(dp, NULL) >= 0);
	send_to(0, 1, 1);
	while (n_of_queue(1) == 0)
		assert_true(mr_dataplane_step(dp, forward, &done) >= 0);
}

PLANE_TEST_MT(a_stop_before_the_first_step_starts_no_worker)
{
	need_two_cores();
	open_to_run(queues, 2, MR_IDLE_ADAPTIVE);
	assert_true(mr_dataplane_fd(dp, NULL) >= 0);
	mr_dataplane_stop(dp);
	assert_int_equal(mr_dataplane_step(dp, forward, &done), -ECANCELED);
	assert_int_equal(n_of_queue(1), 0);
}

static uint64_t later_ns; /* atomic: what the clock is ahead */
static bool is_stuck;     /* atomic */

static uint64_t test_clock(void *opaque)
{
	struct timespec now;

	(void)opaque;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec +
	       __atomic_load_n(&later_ns, __ATOMIC_RELAXED);
}

/* Worker 1 hangs, and time passes quickly from then on. */
static uint32_t hang(struct mr_worker *worker, const struct mr_worker_rxq *rx,
		     void *opaque)
{
	(void)rx;
	(void)opaque;
	if (worker->idx == 1)
		mr_dataplane_stop(dp);
	while (worker->idx == 1 &&
	       __atomic_load_n(&is_stuck, __ATOMIC_ACQUIRE)) {
		__atomic_add_fetch(&later_ns, 1000000000, __ATOMIC_RELAXED);
		poll(NULL, 0, 1);
	}
	return 0;
}

PLANE_TEST_MT(a_worker_that_hangs_is_reported)
{
	struct mr_reason why;

	need_two_cores();
	mr_ctx_destroy(ctx);
	ctx = test_ctx_with(&allocator, test_clock);
	open_to_run(queues, 2, MR_IDLE_POLL);
	__atomic_store_n(&is_stuck, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) { /* nor can it be run again */
		assert_int_equal(mr_dataplane_run(dp, hang, NULL, &why),
				 -ETIMEDOUT);
		assert_reason_has(&why, "worker 1 on core ");
	}
	__atomic_store_n(&is_stuck, false, __ATOMIC_RELEASE);
	assert_int_equal(mr_workers_join(dp->workers, UINT32_MAX, NULL), 0);
	mr_dataplane_stop(dp);
	run_plane();
}

/* A port whose poll() stops the data plane. */
static uint32_t stop_poll(struct mr_port *port)
{
	(void)port;
	done.n_by_queue[1]++;
	mr_dataplane_stop(dp);
	return 0;
}

static uint32_t no_burst(struct mr_rxq *rxq, struct mr_cache *of,
			 struct mr_frame *frames, struct mr_meta *metas,
			 uint32_t n)
{
	(void)rxq, (void)of, (void)frames, (void)metas, (void)n;
	return 0;
}

static int arm_no_queue(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}

static int stop_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	const int err =
		mr_port_make_queues(base, 1, sizeof(struct mr_rxq),
				    sizeof(struct mr_txq), reterr_reason);

	(void)spec;
	if (err < 0)
		return err;
	base->info->n_txqs = 0;
	base->rxqs[0]->burst = no_burst;
	base->rxqs[0]->queue.arm = arm_no_queue;
	return 0;
}

static void stop_close(struct mr_port *base)
{
	(void)base;
}

static const struct mr_driver stop_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "stop",
	.port_bytes = sizeof(struct mr_port),
	.open = stop_open,
	.close = stop_close,
	.poll = stop_poll,
};

static uint32_t receive(struct mr_worker *worker,
			const struct mr_worker_rxq *rx, void *opaque)
{
	struct mr_frame frames[MR_BURST_MAX];

	(void)opaque;
	return mr_rx_burst(rx->rxq, worker->cache, frames, MR_BURST_MAX);
}

/* Events of ports reach their subscribers in both forms. */
PLANE_TEST(ports_are_polled_meanwhile)
{
	static const char *const specs[] = { "stop:", NULL };

	assert_int_equal(mr_ctx_add_driver(ctx, &stop_driver, NULL), 0);
	open_to_run(specs, 1, MR_IDLE_ADAPTIVE);
	assert_int_equal(mr_dataplane_run(dp, receive, NULL, NULL), 0);
	assert_int_equal(done.n_by_queue[1], 1);
	close_plane();

	open_to_run(specs, 1, MR_IDLE_ADAPTIVE);
	assert_true(mr_dataplane_fd(dp, NULL) >= 0);
	while (mr_dataplane_step(dp, receive, NULL) >= 0)
		;
	assert_int_equal(done.n_by_queue[1], 1);
}

/* A busy round that takes a millisecond. */
static uint32_t work_slowly(struct mr_worker *worker,
			    const struct mr_worker_rxq *rx, void *opaque)
{
	(void)worker;
	(void)rx;
	(void)opaque;
	done.n_calls++;
	__atomic_add_fetch(&later_ns, 1000000, __ATOMIC_RELAXED);
	return 1;
}

PLANE_TEST(ports_are_polled_while_rounds_are_busy_and_slow)
{
	static const char *const specs[] = { "stop:", NULL };
	uint32_t n_before;

	mr_ctx_destroy(ctx);
	ctx = test_ctx_with(&allocator, test_clock);
	assert_int_equal(mr_ctx_add_driver(ctx, &stop_driver, NULL), 0);
	open_to_run(specs, 1, MR_IDLE_POLL);
	for (int i = 0; i < 2; i++) {
		n_before = done.n_calls;
		assert_int_equal(mr_dataplane_run(dp, work_slowly, NULL, NULL),
				 0);
		assert_in_range(done.n_calls - n_before, 1, 200);
	}
}

/* A worker without a tx queue of port 1. Hands off N_SENT frames for it. */
static struct mr_worker *hand_off(const char *const *specs)
{
	struct mr_frame frames[N_SENT];
	struct mr_worker *worker = NULL;

	need_two_cores();
	open_to_run(specs, 2, MR_IDLE_ADAPTIVE);
	for (uint32_t w = 0; w < 2; w++)
		if (mr_workers_get(dp->workers, w)->routes[1].txq == NULL)
			worker = mr_workers_get(dp->workers, w);
	assert_non_null(worker);
	for (uint32_t i = 0; i < N_SENT; i += N_SENT / 2)
		take_frames(worker->cache, frames + i, N_SENT / 2);
	assert_int_equal(mr_worker_hand_off(worker, 1, frames, NULL, N_SENT),
			 N_SENT);
	return worker;
}

static const char *const narrow[] = { "pair:0,queues=2", "pair:1,ring=64",
				      NULL };

static void count_and_free(struct mr_worker *worker,
			   const struct mr_frame *frames, uint32_t n,
			   void *opaque)
{
	*(uint32_t *)opaque += n;
	mr_frame_free_bulk(worker->cache, frames, n);
}

static uint64_t n_accepted(void)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	mr_txq_stats(mr_port_txq(dp->ports[1], 0), &stats);
	return stats.accepted;
}

/* The peer of the port takes nothing: its ring fills up. */
PLANE_TEST(frames_left_at_the_end_are_sent_or_dropped)
{
	uint32_t n_dropped = 0;

	hand_off(narrow);
	mr_dataplane_drain(dp, 10, count_and_free, &n_dropped);
	assert_int_equal(n_accepted() + n_dropped, N_SENT);
	assert_in_range(n_accepted(), RING / 2, RING);
}

PLANE_TEST(draining_without_waiting_tries_once)
{
	hand_off(narrow);
	mr_dataplane_drain(dp, 0, NULL, NULL);
	assert_in_range(n_accepted(), RING / 2, RING);
}

/* As stop:, but its frames need their metadata. */
static int merge_open(struct mr_port *base, const struct mr_spec *spec,
		      struct mr_reason *reterr_reason)
{
	const int err = stop_open(base, spec, reterr_reason);

	base->info->offloads = MR_OFFLOAD_LRO;
	return err;
}

/* Else the frames of the next run would get it. */
PLANE_TEST(draining_drops_the_metadata_of_dropped_frames)
{
	static const char *const specs[] = { "pair:0,queues=2",
					     "pair:1,ring=64", "merge:", NULL };
	static struct mr_driver driver;
	const struct mr_worker *worker;

	driver = stop_driver;
	driver.name = "merge";
	driver.open = merge_open;
	assert_int_equal(mr_ctx_add_driver(ctx, &driver, NULL), 0);
	worker = hand_off(specs);
	assert_int_equal(dp->has_meta, 1);
	mr_dataplane_drain(dp, 0, NULL, NULL);
	assert_int_equal(mr_ring_spsc_count(worker->routes[1].handoff), 0);
	assert_int_equal(mr_ring_spsc_count(worker->routes[1].handoff_meta), 0);
}

/* Rings of all kinds are full; all pages come back, as close_plane() checks. */
PLANE_TEST(closing_ports_frees_the_frames_in_flight)
{
	hand_off(narrow);
	send_to(0, 0, 100);
	send_to(0, 1, 100);
	send_to(1, 0, RING / 2);
}

static bool is_over; /* atomic */

/* What the other end of port 1 receives. */
static void *receive_until_over(void *opaque)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		*(uint32_t *)opaque += receive_from(1);
		sched_yield();
	}
	*(uint32_t *)opaque += receive_from(1);
	return NULL;
}

PLANE_TEST_MT(draining_sends_what_was_handed_off)
{
	uint32_t n_received = 0, n_dropped = 0;
	pthread_t thread;

	hand_off(narrow);
	is_over = false;
	assert_int_equal(
		pthread_create(&thread, NULL, receive_until_over, &n_received),
		0);
	mr_dataplane_drain(dp, test_limit_ms(5000), count_and_free, &n_dropped);
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(n_dropped, 0);
	assert_int_equal(n_received, N_SENT);
}
