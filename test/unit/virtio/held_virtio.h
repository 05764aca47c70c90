/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on a model that does nothing with rx and tx queues by
 * itself: the test plays the device, ring entry by ring entry, and may lie. It
 * may look into the driver.
 */
#ifndef HELD_VIRTIO_H
#define HELD_VIRTIO_H

#include "virtio.h"

#include "model/harness.h"
#include "model/virtio_core.h"

enum { FAKE_RING = 64, FAKE_PAGES = 1024 };

struct fake_config {
	uint64_t features; /* besides what each one and the ring have */
	uint32_t page_bytes;
	uint32_t n_pages;
	uint32_t tailroom_bytes;
};

struct fake {
	struct harness harness;
	struct vnet *v;
	struct mr_cache *cache; /* of harness */
	struct virtio_port *port;
	struct virtio_rxq *rxq;
	struct virtio_txq *txq;
	uint32_t n_invalid;  /* addresses of no page, given to the pool */
	bool polls_at_bells; /* as a thread on another core might */
};

/* There is one at a time. */
extern struct fake fake;

/* What the driver made available, as the device reads it. */
struct fake_chain {
	uint32_t id;
	uint32_t n;
	struct {
		uint8_t *bytes;
		uint32_t len;
		bool is_written;
	} parts[20];
};

void fake_open(struct fake_config config);
/* Every page must have come back. */
void fake_close(void);

/* The device's end of a queue. */
static inline struct vnet_queue *fake_queue(uint32_t queue)
{
	return &fake.v->queues[queue];
}

/* Doorbells of a queue so far. */
static inline uint64_t fake_n_bells(uint32_t queue)
{
	return fake.v->counts[queue].n_doorbells;
}

/* The next chain of a queue; n 0: there is none. */
struct fake_chain fake_take(uint32_t queue);
/* Mark a chain of n_descs as used; the next used entry. */
void fake_use(uint32_t queue, uint32_t id, uint32_t n_bytes, uint32_t n_descs);
/* The same with one entry for a batch whose last chain is this one. */
void fake_use_batch(uint32_t queue, uint32_t id, uint32_t n_bytes,
		    uint32_t n_chains, uint32_t n_descs);
/* Do not tell me; or do, at this running number (EVENT_IDX). */
void fake_suppress(uint32_t queue, bool is_suppressed);
void fake_want_event(uint32_t queue, uint16_t number);
/* Whether the driver asks for an interrupt at its next used entry. */
bool fake_wants_interrupt(uint32_t queue);
/* Gone, it reads all ones. */
void fake_set_gone(void);
void fake_set_link(bool is_up);

/* A frame of n_bytes into the next rx buffer: filled with seed, its header. */
struct fake_chain fake_receive(uint32_t n_bytes, uint8_t seed,
			       const struct virtio_header *header);

/* A frame of one entry, offset bytes into a page of its own. */
struct mr_frame fake_frame(uint32_t offset, uint32_t n_bytes, uint8_t seed);

static inline struct mr_tx_stats fake_tx_stats(void)
{
	return harness_tx_stats(&fake.harness);
}

static inline struct mr_rx_stats fake_rx_stats(void)
{
	return harness_rx_stats(&fake.harness);
}

#endif
