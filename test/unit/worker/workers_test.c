/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/worker/workers.c, thread.c, topology.c and pollers.c: made,
 * pinned, run, stopped, joined; and frames through real threads, in every idle
 * mode.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

enum { N_FRAMES = 4000 };

static uint64_t real_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A round. Frames go on to the next port, so that hand-offs are needed. */
static uint32_t pass_on(struct mr_worker *worker)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < worker->n_rxqs; i++) {
		const uint32_t to =
			(worker->rxqs[i].port_idx + 1) % FIXTURE_PORTS;
		const uint32_t k = mr_rx_burst(worker->rxqs[i].rxq,
					       worker->cache, frames, 64);
		const uint32_t n_sent = mr_worker_send(worker, to, frames, k);

		mr_frame_free_bulk(worker->cache, frames + n_sent, k - n_sent);
		n += k;
	}
	return n + mr_worker_serve(worker);
}

static int forward_to_next(struct mr_worker *worker, void *opaque)
{
	uint32_t n;

	(void)opaque;
	do {
		n = pass_on(worker);
	} while (mr_worker_wait(worker, n));
	return 0;
}

/* The same on a thread of the program's, in a loop around poll(). */
static void *forward_in_own_loop(void *opaque)
{
	struct mr_worker *worker = opaque;
	struct pollfd fd = { .events = POLLIN };
	int timeout_ms;

	assert_int_equal(mr_worker_attach(worker, NULL), 0);
	fd.fd = mr_worker_fd(worker, NULL);
	assert_true(fd.fd >= 0);
	while ((timeout_ms = mr_worker_pause(worker, pass_on(worker))) >= 0) {
		if (timeout_ms == 0)
			continue;
		poll(&fd, 1, timeout_ms);
		mr_worker_resume(worker);
	}
	assert_int_equal(timeout_ms, -ECANCELED);
	mr_worker_detach(worker);
	return NULL;
}

/* Send n numbered frames into each far end, never more than fit on the way. */
static void send_numbered(uint32_t n)
{
	uint64_t next_in[FIXTURE_PORTS] = { 0 },
		 next_out[FIXTURE_PORTS] = { 0 };
	const uint64_t end_ns =
		real_now_ns() + test_limit_ms(20000) * UINT64_C(1000000);
	uint32_t n_left = FIXTURE_PORTS;

	while (n_left > 0) {
		n_left = 0;
		assert_true(real_now_ns() < end_ns);
		for (uint32_t p = 0; p < FIXTURE_PORTS; p++) {
			const uint32_t to = (p + 1) % FIXTURE_PORTS;
			struct mr_frame frames[64];
			uint32_t k = 0;

			/* In flight at most 32: no ring can be full. */
			if (next_in[p] < n && next_in[p] < next_out[to] + 32) {
				fixture_frames(fixture.cache, frames, 1);
				*fixture_number(&frames[0]) = next_in[p]++;
				k = mr_tx_burst(mr_port_txq(fixture.far[p], 0),
						fixture.cache, frames, 1);
				assert_int_equal(k, 1);
			}
			k = mr_rx_burst(mr_port_rxq(fixture.far[to], 0),
					fixture.cache, frames, 64);
			for (uint32_t i = 0; i < k; i++)
				assert_int_equal(*fixture_number(&frames[i]),
						 next_out[to]++);
			mr_frame_free_bulk(fixture.cache, frames, k);
			n_left += next_out[to] < n;
		}
	}
}

FIXTURE_TEST(frames_pass_in_order_in_each_idle_mode)
{
	static const enum mr_idle_mode modes[] = { MR_IDLE_POLL,
						   MR_IDLE_ADAPTIVE,
						   MR_IDLE_INTERRUPT };

	fixture_need_two_cores();
	for (uint32_t i = 0; i < 3; i++) {
		fixture_open(NULL, 2, modes[i]);
		fixture_start(forward_to_next, NULL);
		send_numbered(N_FRAMES);
		assert_int_equal(mr_workers_join(fixture.workers, 0, NULL),
				 -ETIMEDOUT);
		mr_workers_stop(fixture.workers);
		fixture_join();
		fixture_close();
	}
}

FIXTURE_TEST(workers_take_their_queues_anew_between_two_runs)
{
	struct mr_worker_stats stats = { .size = sizeof(stats) };
	struct mr_reason why = { "" };
	struct mr_worker *worker;
	struct mr_cache *cache;

	fixture_need_two_cores();
	fixture_open(NULL, 2, MR_IDLE_ADAPTIVE);
	worker = mr_workers_get(fixture.workers, 0);
	cache = worker->cache;
	fixture_start(forward_to_next, NULL);
	assert_int_equal(mr_workers_reassign(fixture.workers, &why), -EBUSY);
	assert_reason_has(&why, "worker 0 has a thread");
	send_numbered(100);
	mr_workers_stop(fixture.workers);
	fixture_join();
	assert_int_equal(mr_workers_reassign(fixture.workers, NULL), 0);
	assert_ptr_equal(mr_workers_get(fixture.workers, 0), worker);
	assert_ptr_equal(worker->cache, cache);
	mr_worker_stats(worker, &stats);
	assert_true(stats.rounds > 0);
	fixture_start(forward_to_next, NULL);
	send_numbered(100);
	mr_workers_stop(fixture.workers);
	fixture_join();
	fixture_close();
}

/* Worker 0 has a thread of the test's, one after another; 1 the library's. */
FIXTURE_TEST(a_thread_of_the_program_can_be_a_worker)
{
	static const enum mr_idle_mode modes[] = { MR_IDLE_POLL,
						   MR_IDLE_ADAPTIVE,
						   MR_IDLE_INTERRUPT };
	struct mr_worker_stats stats = { .size = sizeof(stats) };
	struct mr_reason why;
	struct mr_worker *worker;
	pthread_t thread;

	fixture_need_two_cores();
	for (uint32_t i = 0; i < 3; i++) {
		fixture_open(NULL, 2, modes[i]);
		worker = mr_workers_get(fixture.workers, 0);
		assert_int_equal(mr_worker_attach(worker, NULL), 0);
		assert_int_equal(mr_worker_attach(worker, &why), -EBUSY);
		assert_reason_has(&why, "worker 0 already has a thread");
		fixture_start(forward_to_next, NULL);
		mr_worker_detach(worker);
		assert_int_equal(pthread_create(&thread, NULL,
						forward_in_own_loop, worker),
				 0);
		send_numbered(N_FRAMES);
		assert_int_equal(
			mr_worker_attach(mr_workers_get(fixture.workers, 1),
					 &why),
			-EBUSY);
		mr_workers_stop(fixture.workers);
		assert_int_equal(pthread_join(thread, NULL), 0);
		fixture_join();
		assert_int_equal(mr_worker_stats(worker, &stats), 0);
		assert_true(stats.busy_ns > 0);
		fixture_close();
	}
}

/* A process that polls on a core; ended by closing the pipe to it. */
struct other {
	pid_t pid;
	int fd;
};

static struct other poll_on(uint32_t core)
{
	struct other other;
	int to[2], from[2];
	cpu_set_t set;
	char byte = 0;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	assert_int_equal(pipe2(to, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	other.pid = fork();
	if (other.pid == 0) {
		close(to[1]);
		if (sched_setaffinity(0, sizeof(set), &set) < 0 ||
		    write(from[1], &byte, 1) != 1)
			_exit(1);
		while (read(to[0], &byte, 1) < 0)
			;
		_exit(0);
	}
	assert_true(other.pid > 0);
	assert_int_equal(read(from[0], &byte, 1), 1);
	close(from[0]);
	close(from[1]);
	close(to[0]);
	other.fd = to[1];
	return other;
}

static void end_other(const struct other *other)
{
	int status;

	close(other->fd);
	assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
	assert_int_equal(status, 0);
}

static const struct mri_poller *find_poller(const struct mri_poller *pollers,
					    uint32_t n, pid_t pid)
{
	for (uint32_t i = 0; i < n; i++)
		if (pollers[i].pid == pid)
			return &pollers[i];
	return NULL;
}

/* Its name is in the warning where all cores are like that. */
FIXTURE_TEST(a_thread_polling_on_a_core_is_found)
{
	struct mri_poller pollers[MRI_MAX_POLLERS];
	const struct mri_poller *found;
	struct other other;
	char who[64];
	uint32_t n, core;

	fixture_open(NULL, mri_min_u32(fixture_n_cores(), MR_WORKERS_MAX),
		     MR_IDLE_INTERRUPT);
	core = mr_workers_get(fixture.workers, 0)->core;
	n = mri_find_pollers(pollers, MRI_MAX_POLLERS);
	assert_null(find_poller(pollers, n, getpid()));
	/* Workers count while they sleep, too. */
	fixture_start(forward_to_next, NULL);
	n = mri_find_pollers(pollers, MRI_MAX_POLLERS);
	assert_non_null(find_poller(pollers, n, getpid()));
	mr_workers_stop(fixture.workers);
	fixture_join();
	fixture_close();

	other = poll_on(core);
	fixture_open(NULL, mri_min_u32(fixture_n_cores(), MR_WORKERS_MAX),
		     MR_IDLE_INTERRUPT);
	n = mri_find_pollers(pollers, MRI_MAX_POLLERS);
	found = find_poller(pollers, n, other.pid);
	assert_non_null(found);
	assert_int_equal(found->core, core);
	snprintf(who, sizeof(who), "core %u with %s (process %d)", core,
		 found->name, other.pid);
	if (strstr(fixture.warnings, who) == NULL)
		fail_msg("no \"%s\" in \"%s\"", who, fixture.warnings);
	fixture_close();
	end_other(&other);
}

FIXTURE_TEST(fewer_workers_run_rather_than_beside_a_poller)
{
	const uint32_t n_cores = mri_min_u32(fixture_n_cores(), MR_WORKERS_MAX);
	struct mr_workers_config config = { .size = sizeof(config),
					    .n_workers = n_cores,
					    .n_ports = FIXTURE_PORTS,
					    .may_be_fewer = 1 };
	struct mr_workers *workers;
	struct other other;

	fixture_need_two_cores();
	fixture_open(NULL, n_cores, MR_IDLE_INTERRUPT);
	other = poll_on(mr_workers_get(fixture.workers, 0)->core);
	config.pool = fixture.pool;
	config.ports = fixture.near;
	assert_int_equal(
		mr_workers_create(fixture.ctx, &config, &workers, NULL), 0);
	assert_non_null(mr_workers_get(workers, 0));
	assert_null(mr_workers_get(workers, n_cores - 1));
	mr_workers_destroy(workers);
	end_other(&other);
}

static int note_core(struct mr_worker *worker, void *opaque)
{
	int *cores = opaque;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return -errno;
	cores[worker->idx] = CPU_COUNT(&set) == 1 ? sched_getcpu() : -1;
	return 0;
}

FIXTURE_TEST(each_worker_runs_only_on_its_core)
{
	int cores[2] = { -2, -2 };

	fixture_need_two_cores();
	fixture_open(NULL, 2, MR_IDLE_POLL);
	fixture_start(note_core, cores);
	fixture_join();
	for (uint32_t w = 0; w < 2; w++)
		assert_int_equal(cores[w],
				 mr_workers_get(fixture.workers, w)->core);
	assert_int_not_equal(cores[0], cores[1]);
}

static int fail_or_wait(struct mr_worker *worker, void *opaque)
{
	(void)opaque;
	if (worker->idx == 0)
		return -ENODEV;
	while (mr_worker_wait(worker, 0))
		;
	return 0;
}

FIXTURE_TEST(an_error_ends_all_workers_and_is_returned)
{
	struct mr_reason why = { "" };

	fixture_open(NULL, fixture_n_cores() < 2 ? 1 : 2, MR_IDLE_INTERRUPT);
	fixture_start(fail_or_wait, NULL);
	assert_int_equal(
		mr_workers_start(fixture.workers, fail_or_wait, NULL, &why),
		-EBUSY);
	assert_int_equal(
		mr_workers_join(fixture.workers, test_limit_ms(5000), &why),
		-ENODEV);
	assert_reason_has(&why, "worker 0 failed: No such device");
}

static int count_itself(struct mr_worker *worker, void *opaque)
{
	uint32_t *n = opaque;

	(void)worker;
	__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
	return 0;
}

/* The second one's core is gone: the first, whose thread is there, must not
 * have begun. Once it is back all run. */
FIXTURE_TEST(no_worker_runs_if_one_cannot_start)
{
	struct mr_reason why = { "" };
	struct mr_worker *second;
	uint32_t n = 0, core;

	fixture_need_two_cores();
	fixture_open(NULL, 2, MR_IDLE_POLL);
	second = mr_workers_get(fixture.workers, 1);
	core = second->core;
	second->core = CPU_SETSIZE - 1;
	assert_int_equal(
		mr_workers_start(fixture.workers, count_itself, &n, &why),
		-EINVAL);
	assert_reason_has(&why, "worker 1 cannot start on core 1023");
	assert_int_equal(n, 0);
	second->core = core;
	fixture_start(count_itself, &n);
	fixture_join();
	assert_int_equal(n, 2);
}

static int wait_only(struct mr_worker *worker, void *opaque)
{
	(void)opaque;
	while (mr_worker_wait(worker, 0))
		;
	return 0;
}

static uint64_t n_sleeps(void)
{
	struct mr_worker_stats stats = { .size = sizeof(stats) };

	mr_worker_stats(mr_workers_get(fixture.workers, 0), &stats);
	return stats.sleeps;
}

/* Until worker 0 has slept 1 + 2 + ... + 64 ms: then it sleeps for 100 ms. */
static void await_long_sleep(void)
{
	const uint64_t n = n_sleeps() + 7;

	for (uint32_t ms = 0; n_sleeps() < n; ms++) {
		assert_true(ms < test_limit_ms(5000));
		usleep(1000);
	}
}

/* The wake-up must be what ends its sleep. */
FIXTURE_TEST(stop_wakes_a_sleeper_at_once)
{
	uint64_t fastest_ns = UINT64_MAX;

	fixture_open(NULL, 1, MR_IDLE_INTERRUPT);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t start_ns;

		fixture_start(wait_only, NULL);
		await_long_sleep();
		start_ns = real_now_ns();
		mr_workers_stop(fixture.workers);
		fixture_join();
		start_ns = real_now_ns() - start_ns;
		if (start_ns < fastest_ns)
			fastest_ns = start_ns;
	}
	assert_true(fastest_ns < 20000000);
}

FIXTURE_TEST(wrong_configurations_are_refused_with_a_reason)
{
	const uint32_t no_core[] = { 1023 }, twice[] = { 0, 0 };
	struct mr_workers_config config = { .size = sizeof(config) };
	struct mr_workers_config c;
	struct mr_workers *workers = NULL;
	struct mr_reason why = { "" };

	fixture_open(NULL, 1, MR_IDLE_POLL);
	assert_int_equal(
		mr_workers_create(fixture.ctx, &config, &workers, &why),
		-EINVAL);
	assert_reason_has(&why, "needs a pool and 1 to 64 ports");
	config.pool = fixture.pool;
	config.ports = fixture.near;
	config.n_ports = FIXTURE_PORTS;

	c = config;
	c.cores = no_core;
	c.n_cores = 1;
	assert_int_equal(mr_workers_create(fixture.ctx, &c, &workers, &why),
			 -EINVAL);
	assert_reason_has(&why, "core 1023 does not exist or may not be used");
	c.cores = twice;
	c.n_cores = 2;
	assert_int_equal(mr_workers_create(fixture.ctx, &c, &workers, &why),
			 -EINVAL);
	assert_reason_has(&why, "core 0 is listed twice");
	c = config;
	c.n_workers = fixture_n_cores() + 1;
	assert_int_equal(mr_workers_create(fixture.ctx, &c, &workers, &why),
			 -EINVAL);
	assert_reason_has(&why, "are available");
	c = config;
	c.handoff_entries = 100;
	c.n_workers = 2;
	if (fixture_n_cores() >= 2)
		assert_int_equal(
			mr_workers_create(fixture.ctx, &c, &workers, &why),
			-EINVAL);
	assert_null(workers);
}

/* Allocation k fails, k = 1, 2, ...: an error each time, and nothing is lost */
FIXTURE_TEST(create_fails_cleanly_at_every_allocation)
{
	struct test_allocator allocator = { 0 };
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 4096 };
	struct mr_ctx *ctx = test_ctx(&allocator);
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct mr_port *ports[2];
	struct mr_workers_config config = { .size = sizeof(config),
					    .ports = ports,
					    .n_ports = 2 };
	struct mr_workers *workers = NULL;
	struct mr_reason why;
	uint32_t n_failed = 0;
	int err = -1;

	assert_int_equal(
		mr_pool_create(ctx, &pool_config, &port_config.pool, NULL), 0);
	config.pool = port_config.pool;
	config.n_workers = fixture_n_cores() < 2 ? 1 : 2;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(mr_port_open(ctx, "null:", &port_config,
					      &ports[i], NULL),
				 0);
	for (uint32_t k = 1; err != 0; k++) {
		const int32_t n_out = allocator.n_out;

		assert_true(k < 1000);
		allocator.n_calls = 0;
		allocator.fail_at = k;
		err = mr_workers_create(ctx, &config, &workers, &why);
		if (err == 0)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_reason_has(&why, "memory");
		assert_int_equal(allocator.n_out, n_out);
		n_failed++;
	}
	assert_true(n_failed > 5);
	mr_workers_destroy(workers);
	mr_workers_destroy(NULL);
	for (uint32_t i = 0; i < 2; i++)
		mr_port_close(ports[i]);
	assert_int_equal(mr_pool_destroy(config.pool, NULL), 0);
	mr_ctx_destroy(ctx);
	assert_int_equal(allocator.n_out, 0);
}

TEST(allowed_cores_are_those_of_the_thread)
{
	struct mri_core cores[MRI_MAX_CORES];
	cpu_set_t set;
	const uint32_t n = mri_cores_allowed(cores, MRI_MAX_CORES);

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(n, CPU_COUNT(&set));
	for (uint32_t i = 0; i < n; i++) {
		assert_true(CPU_ISSET(cores[i].id, &set));
		assert_true(i == 0 || cores[i].id > cores[i - 1].id);
	}
	assert_int_equal(cores[0].sibling_rank, 0);
}
