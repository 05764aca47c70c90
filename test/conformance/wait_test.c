/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping and waking, and more than one thread. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "suite.h"

enum { BURST = 32, SHORT_MS = 50 };

static struct mr_queue *queue_of(struct mr_rxq *rxq)
{
	return &rxq->queue;
}

/*
 * Sleep until the queue's fd is readable. False: it never was. For each frame,
 * a DPDK tap sends this process a signal, which also ends a sleep.
 */
static bool sleep_on(const struct mr_queue *queue, int timeout_ms)
{
	const uint64_t until_ns =
		harness_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
	struct pollfd fd = { .fd = mr_queue_fd(queue), .events = POLLIN };
	int n;

	do
		n = poll(&fd, 1, timeout_ms);
	while (n < 0 && errno == EINTR && harness_now_ns() < until_ns);
	return n == 1;
}

/* ThreadSanitizer needs far fewer rounds to see a race, and is slow. */
#ifdef __SANITIZE_THREAD__
enum { SLEEPS_SHARE = 20 };
#else
enum { SLEEPS_SHARE = 1 };
#endif

/* The peer in the rounds below, in a separate thread. */
struct sender {
	struct harness *harness;
	uint32_t n;
	uint32_t n_received; /* by the other thread; atomic */
	bool failed;
};

/* Let the other side run. False: the sender timed out, and failed. */
static bool may_wait(struct sender *sender, uint64_t until_ns)
{
	sender->failed = harness_now_ns() > until_ns;
	sched_yield();
	return !sender->failed;
}

/* Sends frame i as soon as frame i - 1 was received, or a little later. */
static void *send_one_by_one(void *opaque)
{
	struct sender *sender = opaque;
	uint8_t bytes[60];
	uint32_t seed = 11;

	for (uint32_t i = 0; i < sender->n; i++) {
		const uint64_t until_ns = harness_deadline_ns();

		while (__atomic_load_n(&sender->n_received, __ATOMIC_ACQUIRE) <
		       i)
			if (!may_wait(sender, until_ns))
				return NULL;
		/* At each point of the other side's path into sleep. */
		for (uint32_t k = traffic_random(&seed) % 256; k > 0; k--)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		traffic_make(bytes, sizeof(bytes), i);
		while (!sender->harness->fixture->inject(sender->harness, bytes,
							 sizeof(bytes)))
			if (!may_wait(sender, until_ns))
				return NULL;
	}
	return NULL;
}

/*
 * n rounds: nothing there, arm, sleep, wake, receive. A wake-up lost between
 * arming and sleeping shows as an endless sleep.
 */
HARNESS_TEST_MT(armed_fd_wakes)
{
	const struct wish wish = { .n_in = 0 };
	struct mr_frame frames[BURST];
	struct sender sender = { .n = harness_fixture()->n_sleeps /
				      SLEEPS_SHARE };
	uint32_t n_sleeps = 0, n = 0;
	pthread_t thread;
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_LIVE,
		     "its far side sends nothing later");
	harness_lack(FIXTURE_POLLED, "nothing wakes");
	harness = harness_make(&wish);
	sender.harness = harness;
	assert_int_equal(
		pthread_create(&thread, NULL, send_one_by_one, &sender), 0);
	while (n < sender.n) {
		const uint32_t n_rx = mr_rx_burst(harness->rxq, harness->cache,
						  frames, BURST);

		harness_free(harness, frames, n_rx);
		n += n_rx;
		__atomic_store_n(&sender.n_received, n, __ATOMIC_RELEASE);
		if (n_rx > 0 || n == sender.n ||
		    mr_queue_arm(queue_of(harness->rxq)) == 1)
			continue;
		n_sleeps++;
		if (!sleep_on(queue_of(harness->rxq),
			      (int)harness_deadline_ms()))
			break;
	}
	pthread_join(thread, NULL);
	print_message("%u rounds, %u of them asleep\n", n, n_sleeps);
	assert_int_equal(n, sender.n);
	assert_false(sender.failed);
	/* Otherwise nothing was tested. */
	assert_true(n_sleeps > sender.n / 100);
	harness_end(harness);
}

/*
 * A device that moderates interrupts may be late with one for a frame that a
 * poll has already taken. Then there is no work, and the next sleep counts.
 */
static bool sleep_until_work(struct mr_queue *queue)
{
	for (uint32_t i = 0; i < 3; i++) {
		if (!sleep_on(queue, (int)harness_deadline_ms()))
			return false;
		if (mr_queue_arm(queue) == 1)
			return true;
	}
	return false;
}

/* Arming returns 1 exactly if there is something to receive. */
HARNESS_TEST(arm_returns_whether_there_is_work)
{
	const struct wish wish = { .n_in = 0 };
	struct mr_frame frames[BURST];
	uint8_t bytes[60];
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_LIVE,
		     "its far side sends nothing later");
	harness_lack(FIXTURE_POLLED, "it always says that there is");
	harness = harness_make(&wish);
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(mr_queue_arm(queue_of(harness->rxq)), 0);
		assert_int_equal(mr_queue_arm(queue_of(harness->rxq)), 0);
		traffic_make(bytes, sizeof(bytes), i);
		assert_true(harness->fixture->inject(harness, bytes,
						     sizeof(bytes)));
		assert_true(sleep_until_work(queue_of(harness->rxq)));
		assert_int_equal(mr_rx_burst(harness->rxq, harness->cache,
					     frames, BURST),
				 1);
		harness_free(harness, frames, 1);
	}
	harness_end(harness);
}

/* Nothing will come: a sleeper is not woken without reason. */
HARNESS_TEST(armed_queue_without_work_stays_quiet)
{
	const struct wish wish = {
		.n_in = harness_fixture()->traits & FIXTURE_IN ? 100 : 0,
	};
	struct mr_frame frames[BURST];
	struct harness *harness;
	uint32_t n_rx;

	if (harness_fixture()->traits & FIXTURE_ENDLESS)
		harness_need(FIXTURE_IN, "there is always work");
	harness_lack(FIXTURE_POLLED, "it always says that there is work");
	harness = harness_make(&wish);
	while ((n_rx = harness_rx(harness, frames, BURST)) > 0)
		harness_free(harness, frames, n_rx);
	assert_int_equal(
		mr_rx_burst(harness->rxq, harness->cache, frames, BURST), 0);
	assert_int_equal(mr_queue_arm(queue_of(harness->rxq)), 0);
	assert_true(queue_of(harness->rxq)->fd >= 0);
	if (harness_fixture()->traits & FIXTURE_LATE &&
	    sleep_on(queue_of(harness->rxq), SHORT_MS))
		assert_int_equal(mr_queue_arm(queue_of(harness->rxq)), 0);
	assert_false(sleep_on(queue_of(harness->rxq), SHORT_MS));
	harness_end(harness);
}

HARNESS_TEST(source_that_cannot_wake_always_has_work)
{
	const struct wish wish = { .n_in = 0 };
	struct harness *harness;

	if (!(harness_fixture()->traits & FIXTURE_POLLED))
		harness_need(FIXTURE_ENDLESS, "it is not endless");
	harness = harness_make(&wish);
	for (int i = 0; i < 10; i++)
		assert_int_equal(mr_queue_arm(queue_of(harness->rxq)), 1);
	harness_end(harness);
}

struct collector {
	struct harness *harness;
	uint32_t n;
	uint32_t n_damaged;
	uint32_t n_collected;
};

static void *collect_slowly(void *opaque)
{
	struct collector *c = opaque;
	const uint64_t until_ns = harness_now_ns() +
				  3 * harness_deadline_ms() * UINT64_C(1000000);
	uint8_t bytes[HARNESS_MAX_BYTES];

	while (c->n_collected < c->n && harness_now_ns() < until_ns) {
		const uint32_t len = c->harness->fixture->collect(
			c->harness, bytes, sizeof(bytes));

		if (len == 0) {
			sched_yield();
			continue;
		}
		c->n_damaged += traffic_check(bytes, len) != c->n_collected;
		c->n_collected++;
	}
	return NULL;
}

/* A sender that found no room sleeps until there is some. */
HARNESS_TEST_MT(refused_sender_is_woken_when_there_is_room)
{
	enum { N = 100000 };
	const struct wish wish = { .ring_entries = 64 };
	struct collector collector = { .n = N };
	struct mr_frame frames[BURST];
	uint32_t n_sent = 0, n_made = 0, n_sleeps = 0;
	pthread_t thread;
	struct harness *harness;

	harness_need(FIXTURE_STALLS, "its far side takes all");
	harness = harness_make(&wish);
	collector.harness = harness;
	assert_int_equal(
		pthread_create(&thread, NULL, collect_slowly, &collector), 0);
	while (n_sent < N) {
		struct mr_queue *queue = &harness->txq->queue;
		uint32_t n_tx;

		for (; n_made - n_sent < BURST && n_made < N; n_made++)
			harness_make_frame(harness, &frames[n_made - n_sent], 1,
					   128, 60, n_made);
		n_tx = mr_tx_burst(harness->txq, harness->cache, frames,
				   n_made - n_sent);
		memmove(frames, frames + n_tx,
			(n_made - n_sent - n_tx) * sizeof(frames[0]));
		n_sent += n_tx;
		if (n_sent == n_made || mr_queue_arm(queue) == 1)
			continue;
		n_sleeps++;
		if (!sleep_on(queue, (int)harness_deadline_ms()))
			break;
	}
	pthread_join(thread, NULL);
	print_message("%u frames sent, %u sleeps\n", n_sent, n_sleeps);
	harness_free(harness, frames, n_made - n_sent);
	assert_int_equal(n_sent, N);
	assert_int_equal(collector.n_collected, N);
	assert_int_equal(collector.n_damaged, 0);
	harness_end(harness);
}

/* Used by one thread after another on the queues, each with its own cache. */
static void *use_queues(void *opaque)
{
	struct harness *harness = opaque;
	struct mr_frame frames[BURST];
	struct mr_cache *cache;

	if (mr_cache_create(harness->pool, &cache, NULL) < 0)
		return opaque; /* anything but NULL means failure */
	for (int i = 0; i < 20; i++) {
		const uint32_t n_rx =
			mr_rx_burst(harness->rxq, cache, frames, BURST);
		const uint32_t n_tx =
			mr_tx_burst(harness->txq, cache, frames, n_rx / 2);

		mr_frame_free_bulk(cache, frames + n_tx, n_rx - n_tx);
	}
	mr_cache_destroy(cache);
	return NULL;
}

HARNESS_TEST_MT(queue_moves_to_another_thread_and_cache)
{
	const struct wish wish = {
		.n_in = harness_fixture()->traits & FIXTURE_IN ? 3000 : 0,
	};
	struct harness *harness = harness_make(&wish);
	struct mr_frame frames[BURST];
	uint32_t n_rx;

	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *failed;

		harness_pump(harness);
		assert_int_equal(
			pthread_create(&thread, NULL, use_queues, harness), 0);
		pthread_join(thread, &failed);
		assert_null(failed);
		if (harness->fixture->traits & FIXTURE_OUT)
			harness_collect_rest(harness);
	}
	while (wish.n_in > 0 && (n_rx = harness_rx(harness, frames, BURST)) > 0)
		harness_free(harness, frames, n_rx);
	if (wish.n_in > 0)
		assert_int_equal(harness_rx_stats(harness).received, wish.n_in);
	harness_end(harness);
}

/* A thread with its own queue pair. */
struct worker {
	struct harness *harness;
	uint32_t i;      /* of the queues */
	uint64_t n_sent; /* frames accepted by the tx queue */
	uint64_t n_received;
	bool failed;
};

static void *run_worker(void *opaque)
{
	struct worker *worker = opaque;
	struct harness *harness = worker->harness;
	struct mr_txq *txq = mr_port_txq(harness->port, worker->i);
	struct mr_rxq *rxq = mr_port_rxq(harness->port, worker->i);
	const uint64_t until_ns = harness_deadline_ns();
	struct mr_frame frames[BURST];
	struct mr_cache *cache;

	worker->failed = mr_cache_create(harness->pool, &cache, NULL) < 0;
	while (!worker->failed && worker->n_sent < 2000) {
		uint64_t addrs[BURST];
		uint32_t n = mr_frag_alloc_bulk(cache, addrs, BURST,
						harness->wish.page_bytes);
		uint32_t n_tx;

		for (uint32_t i = 0; i < n; i++) {
			frames[i] = (struct mr_frame){ addrs[i] + 128, 60, 0 };
			traffic_make(harness->base + frames[i].addr, 60, i);
		}
		n_tx = mr_tx_burst(txq, cache, frames, n);
		worker->n_sent += n_tx;
		mr_frame_free_bulk(cache, frames + n_tx, n - n_tx);
		n = mr_rx_burst(rxq, cache, frames, BURST);
		worker->n_received += n;
		mr_frame_free_bulk(cache, frames, n);
		if (n_tx == 0)
			sched_yield();
		worker->failed = harness_now_ns() > until_ns;
	}
	mr_cache_destroy(cache);
	return NULL;
}

/* The peer while the workers run. Returns frames that it collected. */
static uint64_t attend(struct harness *harness, const pthread_t *threads,
		       uint32_t n)
{
	uint8_t bytes[HARNESS_MAX_BYTES];
	uint64_t n_collected = 0;

	for (uint32_t i = 0; i < n; i++) {
		while (pthread_tryjoin_np(threads[i], NULL) != 0) {
			if (!(harness->fixture->traits & FIXTURE_OUT)) {
				harness_nap();
				continue;
			}
			traffic_make(bytes, 60, 0);
			harness->fixture->inject(harness, bytes, 60);
			while (harness->fixture->collect(harness, bytes,
							 sizeof(bytes)) > 0)
				n_collected++;
		}
	}
	return n_collected;
}

/* Nothing is shared or locked: each has its own queues and cache. */
HARNESS_TEST_MT(two_queues_are_used_by_two_threads)
{
	const struct wish wish = { .n_queues = 2 };
	struct worker workers[2] = { { .i = 0 }, { .i = 1 } };
	pthread_t threads[2];
	uint64_t n_collected;
	struct harness *harness;

	harness_need(FIXTURE_QUEUES, "it has one queue each way");
	harness = harness_make(&wish);
	for (int i = 0; i < 2; i++) {
		workers[i].harness = harness;
		assert_int_equal(pthread_create(&threads[i], NULL, run_worker,
						&workers[i]),
				 0);
	}
	n_collected = attend(harness, threads, 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct mr_tx_stats tx = { .size = sizeof(tx) };
		struct mr_rx_stats rx = { .size = sizeof(rx) };

		assert_false(workers[i].failed);
		mr_txq_stats(mr_port_txq(harness->port, i), &tx);
		mr_rxq_stats(mr_port_rxq(harness->port, i), &rx);
		assert_int_equal(tx.accepted, workers[i].n_sent);
		assert_int_equal(rx.delivered, workers[i].n_received);
	}
	if (harness->fixture->traits & FIXTURE_OUT)
		harness_collect_last(harness,
				     workers[0].n_sent + workers[1].n_sent,
				     n_collected);
	harness_end(harness);
}

struct busy_far {
	struct harness *harness;
	bool stop; /* atomic */
	uint32_t n_damaged;
};

/* A peer that never rests, whatever the port does. */
static void *send_and_collect(void *opaque)
{
	struct busy_far *far = opaque;
	uint8_t bytes[HARNESS_MAX_BYTES];

	for (uint32_t i = 0; !__atomic_load_n(&far->stop, __ATOMIC_ACQUIRE);
	     i++) {
		uint32_t len;

		traffic_make(bytes, 60, i);
		far->harness->fixture->inject(far->harness, bytes, 60);
		while ((len = far->harness->fixture->collect(
				far->harness, bytes, sizeof(bytes))) > 0)
			far->n_damaged += traffic_check(bytes, len) < 0;
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

/* Close and open while the peer is in the middle of bursts. */
HARNESS_TEST_MT(port_closes_beside_a_busy_far_side)
{
	const struct wish wish = { .n_in = 0 };
	struct busy_far far = { .stop = false };
	struct mr_frame frames[BURST];
	pthread_t thread;
	struct harness *harness;

	harness_need(FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE,
		     "its far side is not alive");
	harness = harness_make(&wish);
	far.harness = harness;
	assert_int_equal(pthread_create(&thread, NULL, send_and_collect, &far),
			 0);
	for (uint32_t round = 0; round < harness->fixture->n_reopens; round++) {
		for (int i = 0; i < 20; i++) {
			uint32_t n = mr_rx_burst(harness->rxq, harness->cache,
						 frames, BURST);
			uint32_t n_tx;

			harness_free(harness, frames, n);
			for (n = 0; n < BURST; n++)
				harness_make_frame(harness, &frames[n], 1, 128,
						   60, n);
			n_tx = mr_tx_burst(harness->txq, harness->cache, frames,
					   n);
			harness_free(harness, frames + n_tx, n - n_tx);
		}
		harness_close(harness);
		harness_open(harness);
	}
	__atomic_store_n(&far.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(far.n_damaged, 0);
	harness_end(harness);
}
