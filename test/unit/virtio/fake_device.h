/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of the virtio driver without PCI: its registers are called, I/O
 * addresses are pointers, and a test plays the device, ring entry by ring
 * entry. What lib/pci has to do with it ends here (--wrap).
 */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "virtio.h"

enum { FAKE_RING = 64, FAKE_PAGES = 1024, FAKE_QUEUES = 5 };

struct fake_config {
	uint64_t features; /* besides VERSION_1 */
	uint32_t page_bytes;
	uint32_t n_pages;
	uint32_t tailroom_bytes;
	mr_clock_fn *clock;
};

/* The registers of one queue, and where the device is in its ring. */
struct fake_queue {
	uint16_t size, vector, enable, reset;
	uint64_t desc, driver, device;
	uint16_t n_avail,
		n_used; /* running numbers, of descriptors if packed */
	uint32_t n_bells, last_bell;
};

struct fake {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct virtio_port *port;
	struct virtio_rxq *rxq;
	struct virtio_txq *txq;
	struct mr_bar bar;
	uint32_t selected, status;
	struct fake_queue queues[FAKE_QUEUES];
	bool is_gone, does_not_reset;
	bool polls_at_bells; /* as who polls the port on another core may */
};

/* What the driver made available, as the device reads it. */
struct fake_chain {
	uint32_t id;
	uint32_t n;
	struct {
		uint64_t addr; /* a pointer */
		uint32_t len, flags;
	} parts[20];
};

void fake_open(struct fake *fake, struct fake_config config);
/* As the driver closes; every page must have come back. */
void fake_close(struct fake *fake);
/* The part of it that ends the port. */
void fake_free_port(struct fake *fake);

/* The next chain of a queue; n 0: there is none. */
struct fake_chain fake_take(struct fake *fake, uint32_t queue);
/* Mark a chain of n_descs as used; the next used entry. */
void fake_use(struct fake *fake, uint32_t queue, uint32_t id, uint32_t n_bytes,
	      uint32_t n_descs);
/* The same with one entry for a batch whose last chain is this one. */
void fake_use_batch(struct fake *fake, uint32_t queue, uint32_t id,
		    uint32_t n_bytes, uint32_t n_chains, uint32_t n_descs);
/* Do not tell me; or do, at this running number (EVENT_IDX). */
void fake_suppress(struct fake *fake, uint32_t queue, bool is_suppressed);
void fake_want_event(struct fake *fake, uint32_t queue, uint16_t number);
/* Whether the driver asks for an interrupt at its next used entry. */
bool fake_wants_interrupt(const struct fake *fake, uint32_t queue);

/* A frame of n_bytes into the next rx buffer: filled with seed, its header. */
struct fake_chain fake_receive(struct fake *fake, uint32_t n_bytes,
			       uint8_t seed,
			       const struct virtio_header *header);

/* A frame of one entry, offset bytes into a page of its own. */
struct mr_frame fake_frame(struct fake *fake, uint32_t offset, uint32_t n_bytes,
			   uint8_t seed);
struct mr_tx_stats fake_tx_stats(const struct fake *fake);
struct mr_rx_stats fake_rx_stats(const struct fake *fake);
/* accepted = completed + pending + drops. */
void fake_check_laws(const struct fake *fake);

#endif
