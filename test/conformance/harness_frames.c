/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the harness that moves frames between the peer and the port. */
#include <string.h>

#include "harness.h"

/*
 * The most frames in progress from the peer. A veth's ring has 256 places; more
 * frames are dropped before the port sees them.
 */
enum { WINDOW_FRAMES = 128 };

void harness_pump(struct harness *harness)
{
	uint8_t bytes[HARNESS_MAX_BYTES];
	int64_t n_under_way;

	if (harness->n_injected == harness->wish.n_in)
		return;
	n_under_way = (int64_t)harness->n_injected -
		      (int64_t)harness_rx_stats(harness).received;
	while (harness->n_injected < harness->wish.n_in &&
	       n_under_way < WINDOW_FRAMES) {
		const uint32_t id = harness->n_injected;
		const uint32_t len = harness->wish.len_of != NULL ?
					     harness->wish.len_of(id) :
					     60;

		traffic_make(bytes, len, id);
		if (!harness->fixture->inject(harness, bytes, len))
			return;
		harness->n_injected++;
		n_under_way++;
	}
}

uint32_t harness_rx(struct harness *harness, struct mr_frame *frames,
		    uint32_t n)
{
	const uint64_t until_ns = harness_deadline_ns();

	for (;;) {
		uint32_t n_rx;

		harness_pump(harness);
		n_rx = mr_rx_burst(harness->rxq, harness->cache, frames, n);
		/* Here, so that every test of the suite asserts it. */
		assert_true(n_rx <= n);
		if (n_rx > 0) {
			assert_false(frames[n_rx - 1].flags & MR_FRAME_MORE);
			return n_rx;
		}
		if (harness_rx_is_done(harness))
			return 0;
		if (harness_now_ns() > until_ns)
			fail_msg("nothing was received for %u ms; %u of %u "
				 "frames sent, %llu received",
				 harness_deadline_ms(), harness->n_injected,
				 harness->wish.n_in,
				 (unsigned long long)harness_rx_stats(harness)
					 .received);
		harness_nap();
	}
}

bool harness_rx_is_done(struct harness *harness)
{
	return harness->n_injected == harness->wish.n_in &&
	       harness_rx_stats(harness).received >= harness->wish.n_in;
}

void harness_tx(struct harness *harness, const struct mr_frame *frames,
		uint32_t n)
{
	harness_tx_meta(harness, frames, NULL, n);
}

void harness_tx_meta(struct harness *harness, const struct mr_frame *frames,
		     const struct mr_meta *meta, uint32_t n)
{
	const uint64_t until_ns = harness_deadline_ns();
	uint32_t n_sent = 0;

	while (n_sent < n) {
		const uint32_t n_tx = mr_tx_burst_meta(
			harness->txq, harness->cache, frames + n_sent,
			meta != NULL ? meta + n_sent : NULL, n - n_sent);

		assert_true(n_tx <= n - n_sent);
		n_sent += n_tx;
		if (n_tx > 0)
			continue;
		if (harness_now_ns() > until_ns)
			fail_msg("no room to send for %u ms",
				 harness_deadline_ms());
		harness_nap();
	}
}

uint32_t harness_collect_bytes(struct harness *harness, uint8_t *bytes)
{
	const uint64_t until_ns = harness_deadline_ns();
	uint32_t n_bytes;

	while ((n_bytes = harness->fixture->collect(harness, bytes,
						    HARNESS_MAX_BYTES)) == 0) {
		if (harness_now_ns() > until_ns)
			fail_msg("nothing arrived for %u ms",
				 harness_deadline_ms());
		if (harness->txq != NULL)
			mr_tx_burst(harness->txq, harness->cache, NULL, 0);
		harness_nap();
	}
	return n_bytes;
}

int64_t harness_collect(struct harness *harness, uint32_t *ret_n_bytes)
{
	uint8_t bytes[HARNESS_MAX_BYTES];

	*ret_n_bytes = harness_collect_bytes(harness, bytes);
	return traffic_check(bytes, *ret_n_bytes);
}

uint32_t harness_collect_rest(struct harness *harness)
{
	uint8_t bytes[HARNESS_MAX_BYTES];
	uint32_t n_bytes, n = 0;

	/* Quiet for about 20 ms. */
	for (int n_quiet = 0; n_quiet < 200; n_quiet++) {
		if (harness->txq != NULL)
			mr_tx_burst(harness->txq, harness->cache, NULL, 0);
		while ((n_bytes = harness->fixture->collect(
				harness, bytes, sizeof(bytes))) > 0) {
			assert_true(traffic_check(bytes, n_bytes) >= 0);
			n++;
			n_quiet = 0;
		}
		if (!(harness->fixture->traits & FIXTURE_LIVE))
			return n;
		harness_nap();
	}
	return n;
}

void harness_collect_last(struct harness *harness, uint64_t n_sent,
			  uint64_t n_collected)
{
	assert_true(n_collected <= n_sent); /* none came twice */
	for (uint64_t i = n_collected; i < n_sent; i++) {
		uint32_t n_bytes;

		assert_true(harness_collect(harness, &n_bytes) >= 0);
	}
	assert_int_equal(harness_collect_rest(harness), 0);
}

void harness_write_frame(struct harness *harness, uint64_t addr,
			 uint32_t n_bytes, uint32_t id)
{
	traffic_make(harness->base + addr, n_bytes, id);
}

void harness_make_frame(struct harness *harness, struct mr_frame *frames,
			uint32_t n_segs, uint32_t offset, uint32_t n_bytes,
			uint32_t id)
{
	uint8_t bytes[HARNESS_MAX_BYTES];
	uint64_t addrs[MR_MAX_SEGS];
	uint32_t n_done = 0;

	assert_true(n_segs <= MR_MAX_SEGS && n_bytes >= n_segs);
	assert_int_equal(mr_frag_alloc_bulk(harness->cache, addrs, n_segs,
					    harness->wish.page_bytes),
			 n_segs);
	traffic_make(bytes, n_bytes, id);
	for (uint32_t i = 0; i < n_segs; i++) {
		const uint32_t len = (n_bytes - n_done) / (n_segs - i);

		assert_true(offset + len <= harness->wish.page_bytes);
		frames[i] = (struct mr_frame){
			.addr = addrs[i] + offset,
			.len = len,
			.flags = i + 1 < n_segs ? MR_FRAME_MORE : 0,
		};
		memcpy(harness->base + frames[i].addr, bytes + n_done, len);
		n_done += len;
	}
}

int64_t harness_check_frame(const struct harness *harness,
			    const struct mr_frame *frames, uint32_t *ret_n_segs,
			    uint32_t *ret_n_bytes)
{
	uint8_t bytes[HARNESS_MAX_BYTES];
	uint32_t n = 0, n_bytes = 0;

	do {
		assert_true(n < MR_MAX_SEGS);
		assert_true(n_bytes + frames[n].len <= sizeof(bytes));
		memcpy(bytes + n_bytes, harness->base + frames[n].addr,
		       frames[n].len);
		n_bytes += frames[n].len;
	} while (frames[n++].flags & MR_FRAME_MORE);
	*ret_n_segs = n;
	*ret_n_bytes = n_bytes;
	return traffic_check(bytes, n_bytes);
}

void harness_free(struct harness *harness, const struct mr_frame *frames,
		  uint32_t n)
{
	mr_frame_free_bulk(harness->cache, frames, n);
}
