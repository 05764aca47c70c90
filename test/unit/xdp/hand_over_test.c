/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test of drivers/xdp/lease/hand_over.c above a fake kernel: counters that
 * wrap at 2^32 while the rings are handed over. test/netns has the rest.
 */
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/experimental/driver_hand_over.h>

#include "base/parcel.h"
#include "model/fake_kernel.h"

enum { N_BEFORE = 120, N_HELD = 16, N_READY = 20 };

/* As if it had been used that often; the places in the ring stay. */
static void advance(struct xring *ring, uint32_t n)
{
	*ring->producer += n;
	*ring->consumer += n;
	ring->cached += n;
	ring->seen += n;
}

static void receive(uint32_t n)
{
	struct mr_frame frames[MR_BURST_MAX];

	assert_int_equal(mr_rx_burst(&fake.rxq->base, fake.cache, frames, n),
			 n);
	mr_frame_free_bulk(fake.cache, frames, n);
}

static void send_one(void)
{
	const struct mr_frame frame = fake_frame(60, 0);

	assert_int_equal(transmit(&frame, 1), 1);
}

/* Counters up to 8 before 2^32, then frames in the rings that go beyond. */
static void fill_rings(void)
{
	const uint32_t n = UINT32_MAX - 127; /* a multiple of their sizes */

	advance(&fake.rxq->rx, n);
	advance(&fake.rxq->fill, n);
	advance(&fake.txq->tx, n);
	advance(&fake.txq->comp, n);
	fake.txq->n_reaped += n;
	for (uint32_t i = 0; i < N_BEFORE; i++) {
		(void)fake_receive(100, 0);
		receive(1);
		send_one();
	}
	/* The kernel takes these, and completes none. */
	fake.n_sendto = 0;
	fake.n_answers = N_HELD;
	for (uint32_t i = 0; i < N_HELD; i++)
		fake.answers[i] = (struct fake_answer){ 0, 0, 1 };
	for (uint32_t i = 0; i < N_HELD; i++)
		send_one();
	for (uint32_t i = 0; i < N_READY; i++)
		(void)fake_receive(100, 0);
	assert_true(*fake.rxq->rx.producer < *fake.rxq->rx.consumer);
	assert_true(fake.txq->tx.cached < fake.txq->n_reaped);
}

/* What give() puts, as another process gets it. */
static struct mr_parcel *give(void)
{
	struct mr_parcel *sent = mri_parcel_create(fake.ctx), *parcel;
	int fds[2];

	assert_int_equal(mri_xdp_hand_over.give(&fake.port->base, sent, NULL),
			 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(mri_parcel_send(sent, fds[0], NULL), 0);
	assert_int_equal(
		mri_parcel_receive(fake.ctx, fds[1], 1000, &parcel, NULL), 0);
	mri_parcel_destroy(sent);
	close(fds[0]);
	close(fds[1]);
	return parcel;
}

/* Free what the device has, in the pool of the new process. */
static void free_claimed(struct mr_pool *pool)
{
	const uint32_t shift = fake.rxq->chunk_shift;
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_reason why = { "" };
	uint64_t addr;

	assert_int_equal(mr_pool_stats(pool, &stats), 0);
	assert_int_equal(stats.n_in_flight, FAKE_RING + N_HELD);
	for (addr = 0; addr < fake.port->lease.n_bytes; addr += 1u << shift)
		if (fake.rxq->posted[addr >> shift] != 0)
			mr_pool_frag_free_bulk(pool, &addr, 1);
	for (uint32_t at = fake.txq->n_reaped; at != fake.txq->tx.cached; at++)
		mr_pool_frag_free_bulk(
			pool, &xring_frame_at(&fake.txq->tx, at)->addr, 1);
	if (mr_pool_destroy(pool, &why) < 0)
		fail_msg("%s", why.text);
}

FAKE_TEST(counters_wrap)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = FAKE_PAGES };
	const uint64_t n_bytes = fake.port->lease.n_bytes;
	struct mr_reason why = { "" };
	struct mr_parcel *parcel;
	struct mr_pool *pool;

	mri_xdp_port_init(fake.port);
	fake.port->lease.n_bytes = n_bytes;
	fake.port->rxqs = fake.rxq;
	fake.port->txqs = fake.txq;
	fake.port->lease.n_queues = 1;
	fake.txq->tx.map = fake.txq->tx.entries; /* there is a ring */
	fill_rings();
	parcel = give();

	/* A process that knows nothing yet, with a pool of its own. */
	fake.rxq->rx.cached = fake.rxq->rx.seen = 0;
	fake.rxq->fill.cached = fake.rxq->fill.seen = 0;
	fake.txq->tx.cached = fake.txq->tx.seen = 0;
	fake.txq->comp.cached = fake.txq->comp.seen = 0;
	fake.txq->n_reaped = 0;
	assert_int_equal(mr_pool_create(fake.ctx, &config, &pool, NULL), 0);
	fake.port->base.pool = pool;
	if (mri_xdp_hand_over.resume(&fake.port->base, parcel, &why) < 0)
		fail_msg("%s", why.text);
	mri_parcel_destroy(parcel);
	free_claimed(pool);

	/* It goes on where the other one stopped. */
	fake.port->base.pool = fake.pool;
	receive(N_READY);
	fake_complete(N_HELD);
	transmit(NULL, 0);
	assert_int_equal(fake_tx_stats().pending, 0);
	assert_int_equal(fake_tx_stats().completed, N_BEFORE + N_HELD);
}
