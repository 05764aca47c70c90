/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC for unit tests of drivers/intel: registers that keep what is written,
 * and a test that plays the device, descriptor by descriptor. What a device is
 * to be, test/model knows; here it does what the test says, lies included.
 */
#ifndef FAKE_NIC_H
#define FAKE_NIC_H

#include "support/pool_unit.h"
#include "support/soft_pci.h"

#include <millrace/port.h>
#include <millrace/port_device.h>

#include "intel.h"

enum {
	FAKE_BAR_BYTES = 0x20000,
	FAKE_RING = 64,
	FAKE_PAGES = 2048,
	FAKE_MAX_SENT = 4096,
	FAKE_MAX_WRITES = 4096,
	FAKE_82576 = 0x10c9,
	FAKE_82574 = 0x10d3,
	FAKE_I210 = 0x1533,
};

struct fake_nic {
	struct soft_pci pci; /* first: its calls are ours */
	uint32_t regs[FAKE_BAR_BYTES / 4];
	uint32_t rx_head[INTEL_MAX_QUEUES], tx_head[INTEL_MAX_QUEUES];
	bool has_reset; /* CTRL.RST clears itself */
	bool has_link;
	bool has_queues;         /* QUEUE_ENABLE reads as written */
	uint32_t n_mdio_refused; /* so often firmware keeps the PHY (82574) */
	bool takes_writes; /* when it is gone, too: then nobody is to write */
	/* What was written, in order: offset and value. */
	uint32_t offsets[FAKE_MAX_WRITES], values[FAKE_MAX_WRITES];
	uint32_t n_writes;
	/* Called behind the write, or reading, of a register; 0: none. */
	uint32_t hook_offset, read_hook_offset;
	void (*hook)(void *opaque);
	void *hook_opaque;
};

struct fake_config {
	uint16_t device_id;  /* 0: 82576 */
	const char *options; /* behind "intel:nic,..."; NULL: none */
	uint32_t page_bytes, chunk_bytes, headroom_bytes, tailroom_bytes;
};

struct fake {
	struct pool_fixture f;
	struct fake_nic nic;
	struct mr_port *port;
	struct intel_port *intel;
	struct mr_rxq *rxq; /* queue 0 */
	struct mr_txq *txq;
	struct mr_cache *cache;
	/* What the device was given to send. */
	struct intel_desc sent[FAKE_MAX_SENT];
	uint32_t n_sent;
};

/* Context, pool and device, and no port yet. */
void fake_prepare(struct fake *fake, struct fake_config config);
/* 0, or what opening fails with. */
int fake_try(struct fake *fake, const char *options, struct mr_reason *reason);
void fake_open(struct fake *fake, struct fake_config config);
/* Close what is open; nothing is left of it. */
void fake_close(struct fake *fake);

/* Rx: the device writes the next descriptor of queue q; status without DD. */
void fake_receive_on(struct fake *fake, uint32_t q, uint64_t low,
		     uint32_t status, uint32_t n_bytes, uint16_t vlan);
static inline void fake_receive(struct fake *fake, uint32_t n_bytes)
{
	fake_receive_on(fake, 0, 0, INTEL_RX_EOP, n_bytes, 0);
}
/* Tx: the device sends what it was given, and reports it. How many. */
uint32_t fake_send(struct fake *fake);
/* The same for n descriptors at most, without a report. */
uint32_t fake_take(struct fake *fake, uint32_t n);

/* Since the program began. */
uint64_t fake_slept_ms(void);

/* The place in writes of the first one of offset from i on; fails if none. */
uint32_t fake_find_write(const struct fake *fake, uint32_t i, uint32_t offset);

static inline uint32_t *fake_reg(struct fake *fake, uint32_t offset)
{
	return &fake->nic.regs[offset / 4];
}

static inline struct mr_rx_stats fake_rx_stats(const struct fake *fake)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(fake->rxq, &stats), 0);
	return stats;
}

static inline struct mr_tx_stats fake_tx_stats(const struct fake *fake)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(fake->txq, &stats), 0);
	return stats;
}

/* A frame of n_bytes in a page of its own. */
static inline struct mr_frame fake_frame(struct fake *fake, uint32_t n_bytes)
{
	return (struct mr_frame){
		.addr = alloc_one(fake->cache, fake->f.pool->page_bytes) + 128,
		.len = n_bytes,
	};
}

static inline uint8_t *fake_bytes(struct fake *fake,
				  const struct mr_frame *frame)
{
	return fake->f.base + frame->addr;
}

#endif
