/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Intel driver on a model that does nothing by itself: the test plays the
 * NIC, descriptor by descriptor, and may lie. It may look into the driver,
 * whose "intel.h" must not meet the model's.
 */
#ifndef MODEL_HELD_NIC_H
#define MODEL_HELD_NIC_H

#include "model/harness.h"
#include "support/test.h"

struct intel_port;

enum {
	HELD_RING = 64,
	HELD_MAX_WRITES = 4096,
	HELD_82576 = 0x10c9,
	HELD_82574 = 0x10d3,
	HELD_I210 = 0x1533,
};

struct held_config {
	uint16_t device_id;  /* 0: 82576 */
	const char *options; /* NULL: none */
	uint32_t page_bytes, tailroom_bytes;
	uint32_t n_pages; /* 0: HARNESS_PAGES */
};

struct held {
	struct harness harness;
	struct intel_port *intel;
	struct mr_pci_backend backend; /* change it before held_try() */
	/* Writes since preparation, in order. */
	uint32_t offsets[HELD_MAX_WRITES], values[HELD_MAX_WRITES], n_writes;
	/* Called after a write or read of a register; 0: none. */
	uint32_t hook_offset, read_hook_offset;
	void (*hook)(void);
	uint32_t n_mdio_refused; /* how often firmware keeps the PHY (82574) */
};

/* Only one at a time. */
extern struct held held;

/* Everything but opening the port. */
void held_prepare(struct held_config config);
/* 0, or the error of opening. */
int held_try(const char *options, struct mr_reason *reason);
void held_open(struct held_config config);
/* Like harness_close(): nothing is left. The driver violated nothing. */
void held_close(void);

/* A register as it is, without side effects. */
uint32_t *held_reg(uint32_t offset);
/* The device reports that it has n vectors. */
void held_set_vectors(uint32_t n);
/* In its NVM, from the next reset on. */
void held_set_mac(const uint8_t mac[6]);
/* QUEUE_ENABLE never reads 1. */
void held_stop_queues(void);
/* A device that is gone reads all ones. */
void held_set_gone(bool is_gone);
void held_set_link(bool is_up);
/* Rx: the device writes the next descriptor of queue 0; status without DD. */
void held_receive(uint64_t low, uint32_t status, uint32_t n_bytes,
		  uint16_t vlan);
/* Frames that queue q dropped when full. */
void held_set_drops(uint32_t q, uint32_t n);
/* Bytes counted by GORC. */
void held_set_bytes(uint64_t n);

/* A frame of n_bytes in its own page, with headroom. */
static inline struct mr_frame held_frame(uint32_t n_bytes)
{
	struct mr_frame frame = { .len = n_bytes };

	assert_int_equal(
		mr_frag_alloc_bulk(held.harness.cache, &frame.addr, 1, 4096),
		1);
	frame.addr += 128;
	return frame;
}

static inline uint8_t *held_bytes(const struct mr_frame *frame)
{
	return held.harness.base + frame->addr;
}

static inline uint64_t held_in_flight(void)
{
	return held.harness.n_pages - harness_free_pages(&held.harness);
}

/* A test of an open port; fields of its struct held_config may follow. */
#define HELD_TEST(name, ...)                                                   \
	static void name##_when_open(void);                                    \
	TEST(name)                                                             \
	{                                                                      \
		held_open((struct held_config){ __VA_ARGS__ });                \
		name##_when_open();                                            \
		held_close();                                                  \
	}                                                                      \
	static void name##_when_open(void)

#endif
