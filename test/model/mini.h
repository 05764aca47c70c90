/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A minimal driver for Intel models, for the models' own tests: straight
 * register writes, in the order of reference/drivers.md 6.6. It shares nothing
 * with drivers/intel.
 */
#ifndef MODEL_MINI_H
#define MODEL_MINI_H

#include <sys/mman.h>

#include "model/intel.h"
#include "model/intel_regs.h"
#include "support/unit.h"

enum {
	MINI_RING = 32,
	MINI_BUFFER = 2048,
	MINI_ARENA = 4 << 20,
	MINI_IOVA = 0x100000,
	MINI_RX = 0, /* rings, from the start of the arena */
	MINI_TX = 0x10000,
	MINI_DATA = 0x100000, /* receive buffers of queue 0, 1, ... */
	MINI_OUT = 0x200000,  /* frames to send */
};

struct mini {
	struct intel *nic;
	struct model *m;
	struct model_wire *wire; /* the test is at end 1 */
	uint8_t *arena;
	uint32_t n_queues;
	uint32_t tx_tail; /* of queue 0 */
	uint64_t now_ns;
};

/* Steps to omit or to do wrong. */
enum {
	MINI_NO_RESET = 1 << 0,
	MINI_NO_WAIT = 1 << 1, /* 1 ms after the reset */
	MINI_NO_MTA = 1 << 2,
	MINI_ODD_BASE = 1 << 3,
	MINI_SHORT_RING = 1 << 4,
	MINI_UNMAPPED_RING = 1 << 5,
	MINI_NO_POLL = 1 << 6,    /* of QUEUE_ENABLE */
	MINI_TAIL_FIRST = 1 << 7, /* before RCTL.EN */
	MINI_NO_MASTER = 1 << 8,
	MINI_LATE_MASTER = 1 << 9,
	MINI_LEGACY = 1 << 10, /* receive descriptors */
	MINI_TAIL_OUTSIDE = 1 << 11,
	MINI_NO_BIT22 = 1 << 12,
	MINI_RSS = 1 << 13, /* not wrong: two queues */
	MINI_NO_PCSD = 1 << 14,
	MINI_BAD_RETA = 1 << 15,
	MINI_SAME_BUFFER = 1 << 16,
	MINI_STALE = 1 << 17, /* a status left in a descriptor */
};

static const uint8_t mini_mac[6] = { 0x02, 1, 2, 3, 4, 5 };
/* For it; with an unknown EtherType. */
static const uint8_t mini_frame[60] = { 2, 1, 2, 3, 4, 5,    0,
					0, 0, 0, 0, 0, 0x88, 0xb5 };

static inline uint64_t mini_clock(void *arg)
{
	return ((const struct mini *)arg)->now_ns;
}

static inline void mini_write(struct mini *d, uint32_t offset, uint32_t value)
{
	model_write(d->m, 0, offset, 4, value);
}

static inline uint32_t mini_read(struct mini *d, uint32_t offset)
{
	return (uint32_t)model_read(d->m, 0, offset, 4);
}

static inline void mini_command(struct mini *d, uint16_t bits)
{
	model_write_config(d->m, 4, &bits, 2);
}

static inline bool is_82574(const struct mini *d)
{
	return d->nic->chip->is_82574;
}

static inline void mini_reset(struct mini *d, uint32_t flaws)
{
	mini_write(d, REG_IMC, ~0u);
	mini_write(d, REG_RCTL, 0);
	mini_write(d, REG_TCTL, TCTL_PSP);
	if (!(flaws & MINI_NO_RESET))
		mini_write(d, REG_CTRL, CTRL_RST);
	if (!(flaws & MINI_NO_WAIT))
		d->now_ns += 1000000;
	assert_int_equal(mini_read(d, REG_CTRL) & CTRL_RST, 0);
	mini_write(d, REG_IMC, ~0u);
	mini_read(d, REG_ICR);
	mini_write(d, REG_CTRL, CTRL_SLU);
	for (uint32_t i = 0; i < 128 && !(flaws & MINI_NO_MTA); i++) {
		mini_write(d, REG_MTA + 4 * i, 0);
		mini_write(d, REG_VFTA + 4 * i, 0);
	}
}

static inline void mini_ring(struct mini *d, bool is_tx, uint32_t q,
			     uint32_t flaws)
{
	const uint32_t base = intel_ring_base(is_tx, q);
	uint32_t iova = MINI_IOVA + (is_tx ? MINI_TX : MINI_RX) + q * 0x1000;

	if (flaws & MINI_ODD_BASE)
		iova += 64;
	if (flaws & MINI_UNMAPPED_RING)
		iova = 0x80000000;
	mini_write(d, base + RING_BAL, iova);
	mini_write(d, base + RING_BAH, 0);
	mini_write(d, base + RING_LEN,
		   flaws & MINI_SHORT_RING ? 128 : MINI_RING * 16);
	mini_write(d, base + RING_HEAD, 0);
	mini_write(d, base + RING_TAIL, 0);
	if (is_82574(d)) {
		if (is_tx)
			mini_write(d, base + RING_CONTROL,
				   flaws & MINI_NO_BIT22 ? 0 :
							   TXDCTL_COUNT_DESC);
		return;
	}
	if (!is_tx)
		mini_write(d, base + RING_SRRCTL,
			   2 | (flaws & MINI_LEGACY ? 0 : SRRCTL_ONEBUF) |
				   (flaws & MINI_RSS ? SRRCTL_DROP_EN : 0));
	mini_write(d, base + RING_CONTROL, QUEUE_ENABLE);
}

/* Hash ports too; odd entries of the table select queue 1. */
static inline void mini_rss(struct mini *d, uint32_t flaws)
{
	static const uint8_t key[40] = {
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
		0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
		0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
		0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
	};
	const uint32_t one = is_82574(d) ? 0x80 : 1;

	for (uint32_t i = 0; i < 10; i++)
		mini_write(d, REG_RSSRK + 4 * i,
			   key[4 * i] | key[4 * i + 1] << 8 |
				   key[4 * i + 2] << 16 |
				   (uint32_t)key[4 * i + 3] << 24);
	for (uint32_t i = 0; i < 32; i++)
		mini_write(d, REG_RETA + 4 * i,
			   flaws & MINI_BAD_RETA ? 0x0f0f0f0f :
						   one << 8 | one << 24);
	mini_write(d, REG_MRQC,
		   d->nic->chip->rss_mode | MRQC_IPV4 | MRQC_TCPV4 | MRQC_IPV6 |
			   MRQC_TCPV6 | MRQC_UDPV4 | MRQC_UDPV6);
}

static inline struct intel_desc *mini_desc(struct mini *d, bool is_tx,
					   uint32_t q, uint32_t i)
{
	return (struct intel_desc *)(d->arena + (is_tx ? MINI_TX : MINI_RX) +
				     q * 0x1000) +
	       i;
}

/* Offset in the arena of the buffer of receive descriptor i. */
static inline uint32_t mini_buffer(uint32_t q, uint32_t i)
{
	return MINI_DATA + (q * MINI_RING + i) * MINI_BUFFER;
}

static inline void mini_give(struct mini *d, uint32_t q, uint32_t flaws)
{
	for (uint32_t i = 0; i < MINI_RING; i++) {
		const uint32_t k = flaws & MINI_SAME_BUFFER ? i / 2 : i;

		*mini_desc(d, false, q, i) = (struct intel_desc){
			.low = MINI_IOVA + mini_buffer(q, k),
			.high = flaws & MINI_STALE ? 1 : 0,
		};
	}
	mini_write(d, intel_ring_base(false, q) + RING_TAIL,
		   flaws & MINI_TAIL_OUTSIDE ? MINI_RING : MINI_RING - 1);
}

static inline void mini_wait_enabled(struct mini *d, bool is_tx, uint32_t q)
{
	const uint32_t at = intel_ring_base(is_tx, q) + RING_CONTROL;

	for (int i = 0; i < 10 && !is_82574(d); i++)
		if (mini_read(d, at) & QUEUE_ENABLE)
			return;
	assert_true(is_82574(d));
}

static inline void mini_start(struct mini *d, uint32_t flaws)
{
	mini_reset(d, flaws);
	d->n_queues = flaws & MINI_RSS ? 2 : 1;
	d->tx_tail = 0;
	for (uint32_t q = 0; q < d->n_queues; q++) {
		mini_ring(d, false, q, flaws);
		mini_ring(d, true, q, flaws);
	}
	if (is_82574(d)) {
		mini_write(d, REG_TARC0, TARC0_BIT_26);
		mini_write(d, REG_RFCTL, flaws & MINI_LEGACY ? 0 : RFCTL_EXTEN);
	}
	mini_write(d, REG_RXCSUM,
		   RXCSUM_IPOFL | RXCSUM_TUOFL |
			   (flaws & MINI_NO_PCSD ? 0 : RXCSUM_PCSD));
	if (flaws & (MINI_RSS | MINI_NO_PCSD))
		mini_rss(d, flaws);
	if (!(flaws & (MINI_NO_MASTER | MINI_LATE_MASTER)))
		mini_command(d, 6);
	if (flaws & MINI_TAIL_FIRST)
		mini_give(d, 0, flaws);
	mini_write(d, REG_RCTL, RCTL_EN | RCTL_BAM | RCTL_SECRC);
	mini_write(d, REG_TCTL, TCTL_EN | TCTL_PSP);
	for (uint32_t q = 0; q < d->n_queues; q++) {
		if (!(flaws & MINI_NO_POLL)) {
			mini_wait_enabled(d, false, q);
			mini_wait_enabled(d, true, q);
		}
		mini_give(d, q, flaws);
	}
	if (flaws & MINI_LATE_MASTER)
		mini_command(d, 6);
}

/* Open and map the device; then call mini_start(). */
static inline void mini_open(struct mini *d, const struct intel_chip *chip)
{
	memset(d, 0, sizeof(*d));
	d->now_ns = 1000000000;
	d->nic = intel_create(chip, mini_mac);
	assert_non_null(d->nic);
	d->m = &d->nic->m;
	d->m->now = mini_clock;
	d->m->now_arg = d;
	d->wire = model_wire_create(64);
	assert_non_null(d->wire);
	model_wire_attach(d->wire, 0, d->m);
	d->arena = mmap(NULL, MINI_ARENA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(d->arena, MAP_FAILED);
	assert_int_equal(model_open(d->m), 0);
	assert_int_equal(model_map_dma(d->m, d->arena, MINI_IOVA, MINI_ARENA),
			 0);
	mini_command(d, 2);
}

/* Close it, and assert that the driver violated nothing. */
static inline void mini_close(struct mini *d)
{
	mini_command(d, 2);
	model_close(d->m);
	assert_string_equal(model_violations(d->m), "");
	munmap(d->arena, MINI_ARENA);
	intel_destroy(d->nic);
	model_wire_destroy(d->wire);
}

static inline void assert_violation(struct mini *d, const char *words)
{
	if (strstr(model_violations(d->m), words) == NULL)
		fail_msg("%s: '%s' is not in '%s'", d->nic->chip->name, words,
			 model_violations(d->m));
	model_forgive(d->m);
}

/* Put a descriptor into transmit ring 0; mini_kick() moves the tail. */
static inline void mini_put(struct mini *d, uint64_t low, uint64_t high)
{
	*mini_desc(d, true, 0, d->tx_tail) = (struct intel_desc){ low, high };
	d->tx_tail = (d->tx_tail + 1) % MINI_RING;
}

static inline void mini_kick(struct mini *d)
{
	mini_write(d, intel_ring_base(true, 0) + RING_TAIL, d->tx_tail);
}

/* A data descriptor of n bytes of MINI_OUT; more: chip-specific bits. */
static inline void mini_put_data(struct mini *d, uint32_t at, uint32_t n,
				 uint32_t paylen, uint32_t command,
				 uint32_t options)
{
	uint64_t high = n | TXD_DEXT | TXD_IFCS | command;

	if (is_82574(d))
		high |= TXD_82574_DATA | (uint64_t)options << 40;
	else
		high |= TXD_82576_DATA | (uint64_t)options << 40 |
			(uint64_t)paylen << 46;
	mini_put(d, MINI_IOVA + MINI_OUT + at, high);
}

/* A frame of one descriptor, with the content of MINI_OUT. */
static inline void mini_send(struct mini *d, uint32_t n)
{
	mini_put_data(d, 0, n, n, TXD_EOP | TXD_RS, 0);
	mini_kick(d);
}

/* A context for the checksum of a TCP packet over IPv4. */
static inline void mini_put_tcp_context(struct mini *d)
{
	if (is_82574(d))
		mini_put(d, 14 | 24 << 8 | 33 << 16 | 34ull << 32 | 50ull << 40,
			 TXD_DEXT | TXD_82574_TCP | TXD_82574_IP);
	else
		mini_put(d, 20 | 14 << 9,
			 TXD_DEXT | TXD_82576_CONTEXT | TUCMD_TCP | TUCMD_IPV4 |
				 20ull << 40);
}

#endif
