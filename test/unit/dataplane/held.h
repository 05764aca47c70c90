/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port "held:", whose device keeps what is sent, in memory that goes along
 * when the port is handed over.
 */
#ifndef DATAPLANE_HELD_H
#define DATAPLANE_HELD_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>
#include <millrace/experimental/frag.h>

#include "fixture.h"

enum { N_HELD = 64, HELD_BYTES = 4096 };

/* What the device of a port "held:" has. */
struct held {
	uint32_t n;
	uint64_t addrs[N_HELD];
};

struct held_port {
	struct mr_port base;
	struct held *held;
	int fd;
};

static uint32_t n_closed; /* devices that were closed */
static bool is_refusing;

static uint32_t held_rx(struct mr_rxq *rxq, struct mr_cache *from,
			struct mr_frame *frames, struct mr_meta *meta,
			uint32_t n)
{
	(void)rxq, (void)from, (void)frames, (void)meta, (void)n;
	return 0;
}

static uint32_t held_tx(struct mr_txq *txq, struct mr_cache *to,
			const struct mr_frame *frames,
			const struct mr_meta *meta, uint32_t n)
{
	struct held *held = ((struct held_port *)txq->queue.port)->held;

	(void)to, (void)meta;
	for (uint32_t i = 0; i < n; i++)
		held->addrs[held->n++] = frames[i].addr;
	txq->stats.accepted += n;
	txq->stats.pending += n;
	return n;
}

static int map_held(struct held_port *port)
{
	port->held = mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  port->fd, 0);
	port->base.rxqs[0]->burst = held_rx;
	port->base.rxqs[0]->n_min = 1;
	port->base.txqs[0]->burst = held_tx;
	return port->held == MAP_FAILED ? -ENOMEM : 0;
}

static int held_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reason)
{
	struct held_port *port = (struct held_port *)base;

	(void)spec;
	assert_int_equal(mr_port_make_queues(base, 1, sizeof(struct mr_rxq),
					     sizeof(struct mr_txq), reason),
			 0);
	port->fd = memfd_create("held", MFD_CLOEXEC);
	assert_int_equal(ftruncate(port->fd, HELD_BYTES), 0);
	return map_held(port);
}

static void held_close(struct mr_port *base)
{
	struct held_port *port = (struct held_port *)base;

	if (!base->is_away) {
		n_closed++;
		mr_pool_frag_free_bulk(base->pool, port->held->addrs,
				       port->held->n);
	}
	munmap(port->held, HELD_BYTES);
	close(port->fd);
}

static int held_offer(struct mr_port *base, struct mr_parcel *parcel,
		      struct mr_reason *reason)
{
	if (is_refusing)
		return mr_fail(reason, -ENOTSUP, "%s: not today",
			       base->info->name);
	mr_parcel_put_fd(parcel, "held", ((struct held_port *)base)->fd);
	return 0;
}

static int held_take(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct held_port *port = (struct held_port *)base;

	(void)spec;
	port->fd = mr_parcel_take_fd(parcel, "held");
	assert_true(port->fd >= 0);
	assert_int_equal(fcntl(port->fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(mr_port_make_queues(base, 1, sizeof(struct mr_rxq),
					     sizeof(struct mr_txq), reason),
			 0);
	return map_held(port);
}

static int held_give(struct mr_port *base, struct mr_parcel *parcel,
		     struct mr_reason *reason)
{
	const struct held *held = ((struct held_port *)base)->held;

	(void)reason;
	mr_pool_put_posted(base->pool, parcel, "posted", held->addrs, held->n);
	return 0;
}

static int held_resume(struct mr_port *base, struct mr_parcel *parcel,
		       struct mr_reason *reason)
{
	return mr_pool_claim_posted(base->pool, parcel, "posted", NULL, 0,
				    reason);
}

static const struct mr_hand_over_ops held_ops = {
	.offer = held_offer,
	.take = held_take,
	.give = held_give,
	.resume = held_resume,
};

static const struct mr_driver held_driver = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "held",
	.port_bytes = sizeof(struct held_port),
	.open = held_open,
	.close = held_close,
	.hand_over = &held_ops,
};

static const char *const helds[] = { "held:", "null:", NULL };

static inline struct mr_txq *txq_of(const struct mr_dataplane *plane)
{
	return mr_port_txq(plane->ports[0], 0);
}

static inline uint64_t n_in_flight(const struct mr_dataplane *plane)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };

	assert_int_equal(mr_pool_stats(plane->pool, &pool), 0);
	assert_int_equal(pool.n_free + pool.n_in_flight, pool.n_pages);
	return pool.n_in_flight;
}

static inline uint8_t *bytes_at(const struct mr_dataplane *plane, uint64_t addr)
{
	return (uint8_t *)mr_region_base(mr_pool_region(plane->pool)) + addr;
}

/* Send three pages, one of them twice, and five frags of a block. */
static inline void send_all_kinds(struct mr_frame *frames, uint32_t *ret_n)
{
	struct mr_frag_cache *frags;
	uint32_t n = 3;

	take_frames(cache, frames, 3);
	assert_int_equal(mr_frame_ref(cache, &frames[2], 1), 0);
	frames[n++] = frames[2];
	assert_int_equal(mr_frag_cache_create(cache, &frags, NULL), 0);
	for (; n < 9; n++) {
		frames[n] = (struct mr_frame){ .len = 600 };
		assert_int_equal(
			mr_frag_cache_alloc(frags, 600, 1, &frames[n].addr), 0);
	}
	mr_frag_cache_destroy(frags);
	for (uint32_t i = 0; i < n; i++)
		bytes_at(dp, frames[i].addr)[5] = (uint8_t)(i + 1);
	assert_int_equal(mr_tx_burst(txq_of(dp), cache, frames, n), n);
	*ret_n = n;
}

#endif
