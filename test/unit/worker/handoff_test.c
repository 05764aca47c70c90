/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/worker/handoff.c, on one thread: rings between workers. */
#include "fixture.h"

static uint64_t handoff_full_of(const struct mr_worker *worker)
{
	struct mr_worker_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_worker_stats(worker, &stats), 0);
	return stats.handoff_full;
}

FIXTURE_TEST(handed_over_frames_leave_through_the_owners_queue)
{
	struct mr_frame frames[20], got[32];
	struct mr_worker *from, *owner;
	uint32_t port;

	from = fixture_open_handoff(NULL, MR_IDLE_POLL, &port);
	owner = mr_workers_get(fixture.workers, from->routes[port].owner_idx);
	assert_ptr_not_equal(owner, from);
	fixture_frames(from->cache, frames, 20);
	for (uint32_t i = 0; i < 20; i++)
		*fixture_number(&frames[i]) = i;

	assert_int_equal(mr_worker_send(from, port, frames, 20), 20);
	assert_int_equal(mr_rx_burst(mr_port_rxq(fixture.far[port], 0),
				     fixture.cache, got, 32),
			 0);
	assert_int_equal(mr_worker_serve(owner), 20);
	assert_int_equal(mr_worker_serve(owner), 0);
	assert_int_equal(mr_rx_burst(mr_port_rxq(fixture.far[port], 0),
				     fixture.cache, got, 32),
			 20);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(*fixture_number(&got[i]), i);
	mr_frame_free_bulk(fixture.cache, got, 20);
}

/* A tag that is in the metadata leaves in the frame: pair: has none beside it.
 */
FIXTURE_TEST(metadata_is_handed_over_with_its_frame)
{
	enum { N = 100, N_ENTRIES = 2 };
	struct mr_frame frames[N_ENTRIES], got[MR_BURST_MAX];
	struct mr_meta metas[N_ENTRIES] = { 0 };
	struct mr_worker *from, *owner;
	uint32_t port;

	fixture_has_meta = true;
	from = fixture_open_handoff(NULL, MR_IDLE_POLL, &port);
	fixture_has_meta = false;
	owner = mr_workers_get(fixture.workers, from->routes[port].owner_idx);
	for (uint32_t i = 0; i < N; i++) { /* more than fit: rings wrap */
		const bool has_tag = i % 3 != 0;
		const uint8_t *bytes;
		uint16_t tci;

		fixture_frames(from->cache, frames, N_ENTRIES);
		frames[0].flags = MR_FRAME_MORE;
		metas[0].valid = has_tag ? MR_META_VLAN : 0;
		metas[0].vlan_tci = (uint16_t)i;
		assert_int_equal(mr_worker_send_meta(from, port, frames,
						     i == 0 ? NULL : metas,
						     N_ENTRIES),
				 N_ENTRIES);
		assert_int_equal(mr_worker_serve(owner), N_ENTRIES);
		assert_int_equal(mr_rx_burst(mr_port_rxq(fixture.far[port], 0),
					     fixture.cache, got, 32),
				 N_ENTRIES);
		assert_int_equal(got[0].len,
				 frames[0].len + (has_tag ? MR_VLAN_BYTES : 0));
		bytes = mr_frame_data(
			mr_region_base(mr_pool_region(fixture.pool)), &got[0]);
		tci = (uint16_t)(bytes[14] << 8 | bytes[15]);
		assert_true(!has_tag || tci == i);
		mr_frame_free_bulk(fixture.cache, got, N_ENTRIES);
	}
}

/* Frames and metadata stay side by side where a tx queue takes only some. */
FIXTURE_TEST(metadata_waits_with_its_frame)
{
	struct mr_meta metas[64] = { 0 };
	struct mr_frame frames[64], got[MR_BURST_MAX];
	struct mr_worker *from, *owner;
	uint32_t port, n_seen = 0;

	fixture_has_meta = true;
	from = fixture_open_handoff(NULL, MR_IDLE_POLL, &port);
	fixture_has_meta = false;
	owner = mr_workers_get(fixture.workers, from->routes[port].owner_idx);
	for (uint32_t i = 0; i < 64; i++)
		metas[i] = (struct mr_meta){ .valid = MR_META_VLAN,
					     .vlan_tci = (uint16_t)i };
	for (uint32_t k = 0; k < FIXTURE_RING / 64 + 1; k++) {
		fixture_frames(from->cache, frames, 64);
		assert_int_equal(
			mr_worker_send_meta(from, port, frames, metas, 64), 64);
		mr_worker_serve(owner); /* the last time takes none */
	}
	for (uint32_t n = 1; n > 0;) {
		n = mr_rx_burst(mr_port_rxq(fixture.far[port], 0),
				fixture.cache, got, 50);
		for (uint32_t i = 0; i < n; i++, n_seen++)
			assert_int_equal(
				mr_frame_data(mr_region_base(mr_pool_region(
						      fixture.pool)),
					      &got[i])[15],
				n_seen % 64);
		mr_frame_free_bulk(fixture.cache, got, n);
		mr_worker_serve(owner);
	}
	assert_int_equal(n_seen, FIXTURE_RING + 64);
}

/* The ring of the fixture has 64 places. */
FIXTURE_TEST(frames_that_do_not_fit_stay_with_the_caller)
{
	struct mr_frame frames[100];
	struct mr_worker *from;
	uint32_t port;

	from = fixture_open_handoff(NULL, MR_IDLE_POLL, &port);
	fixture_frames(from->cache, frames, 100);
	assert_int_equal(mr_worker_send(from, port, frames, 100), 64);
	assert_int_equal(handoff_full_of(from), 36);
	assert_int_equal(mr_worker_send(from, port, frames + 64, 36), 0);
	assert_int_equal(handoff_full_of(from), 72);
	mr_frame_free_bulk(from->cache, frames + 64, 36);
	/* What is in the ring comes back with the workers: see fixture_close().
	 */
}

FIXTURE_TEST(a_frame_is_never_cut_by_a_full_ring)
{
	struct mr_frame frames[100];
	struct mr_worker *from;
	uint32_t port;

	from = fixture_open_handoff(NULL, MR_IDLE_POLL, &port);
	fixture_frames(from->cache, frames, 100);
	for (uint32_t i = 0; i < 100; i++) /* frames of 5 entries */
		frames[i].flags = i % 5 != 4 ? MR_FRAME_MORE : 0;
	assert_int_equal(mr_worker_send(from, port, frames, 100), 60);
	assert_int_equal(handoff_full_of(from), 8); /* frames, not entries */
	assert_int_equal(mr_worker_send(from, port, frames + 60, 40), 0);
	mr_frame_free_bulk(from->cache, frames + 60, 40);
}

/* A tx queue that takes nothing: its frames wait in the ring, in order. */
FIXTURE_TEST(a_stalled_port_keeps_its_ring_and_no_other)
{
	struct mr_frame frames[FIXTURE_RING], got[MR_BURST_MAX];
	struct mr_worker *from, *owner;
	uint32_t port, n;

	from = fixture_open_handoff(NULL, MR_IDLE_POLL, &port);
	owner = mr_workers_get(fixture.workers, from->routes[port].owner_idx);
	fixture_frames(owner->cache, frames, FIXTURE_RING);
	n = mr_worker_send(owner, port, frames,
			   FIXTURE_RING); /* fills the port */
	mr_frame_free_bulk(owner->cache, frames + n, FIXTURE_RING - n);
	fixture_frames(from->cache, frames, 10);
	for (uint32_t i = 0; i < 10; i++)
		*fixture_number(&frames[i]) = 100 + i;
	assert_int_equal(mr_worker_send(from, port, frames, 10), 10);
	assert_int_equal(mr_worker_serve(owner), 0);

	/* The far end reads again, and what waited follows. */
	assert_int_equal(mr_rx_burst(mr_port_rxq(fixture.far[port], 0),
				     fixture.cache, got, MR_BURST_MAX),
			 n);
	mr_frame_free_bulk(fixture.cache, got, n);
	mr_tx_burst(owner->routes[port].txq, owner->cache, NULL, 0);
	assert_int_equal(mr_worker_serve(owner), 10);
	assert_int_equal(mr_rx_burst(mr_port_rxq(fixture.far[port], 0),
				     fixture.cache, got, MR_BURST_MAX),
			 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(*fixture_number(&got[i]), 100 + i);
	mr_frame_free_bulk(fixture.cache, got, 10);
}
