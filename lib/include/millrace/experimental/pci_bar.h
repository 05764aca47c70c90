/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PCI_BAR_H
#define MILLRACE_EXPERIMENTAL_PCI_BAR_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>

MR_BEGIN_DECLS

/**
 * @file
 * Registers of a PCI device. pci.h maps them.
 */

/** Registers accessed by calls: those of a device in software. */
struct mr_bar_ops {
	uint64_t (*read)(void *device, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes);
	void (*write)(void *device, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value);
};

/** A BAR. Access registers only with the functions below. */
struct mr_bar {
	/* style: volatile, since each is an access to a register. */
	volatile uint8_t *base; /**< NULL if there are ops */
	uint64_t n_bytes;
	const struct mr_bar_ops *ops; /**< NULL: base */
	void *device;                 /**< of ops */
	uint32_t idx;
	uint32_t reserved;
};

/**
 * Order earlier stores to memory before the next register write. Thread: any.
 */
static inline void mr_bar_order_stores(void)
{
#if defined(__x86_64__)
	/* style: volatile. Only the compiler would reorder stores. */
	__asm__ volatile("" : : : "memory");
#elif defined(__aarch64__)
	/* style: volatile */
	__asm__ volatile("dmb oshst" : : : "memory");
#else
#error "how are stores to memory and to a device ordered here?"
#endif
}

/** Order later loads of memory after the register just read. Thread: any. */
static inline void mr_bar_order_loads(void)
{
#if defined(__x86_64__)
	/* style: volatile. Only the compiler would reorder loads. */
	__asm__ volatile("" : : : "memory");
#elif defined(__aarch64__)
	/* style: volatile */
	__asm__ volatile("dmb oshld" : : : "memory");
#else
#error "how are loads from a device and from memory ordered here?"
#endif
}

/**
 * Read a register, before all later loads of memory.
 *
 * @param offset  in bytes, a multiple of the register's size, inside the BAR
 *
 * @return its value; all ones if the device is gone
 *
 * Thread: any. Cost: a round trip to the device, 1 us.
 */
static inline uint32_t mr_bar_read32(const struct mr_bar *bar, uint64_t offset)
{
	uint32_t value;

	if (bar->ops != NULL)
		return (uint32_t)bar->ops->read(bar->device, bar->idx, offset,
						4);
	/* style: volatile */
	value = *(const volatile uint32_t *)(bar->base + offset);
	mr_bar_order_loads();
	return value;
}

/** As mr_bar_read32(), of 2 bytes. Thread: any. */
static inline uint16_t mr_bar_read16(const struct mr_bar *bar, uint64_t offset)
{
	uint16_t value;

	if (bar->ops != NULL)
		return (uint16_t)bar->ops->read(bar->device, bar->idx, offset,
						2);
	/* style: volatile */
	value = *(const volatile uint16_t *)(bar->base + offset);
	mr_bar_order_loads();
	return value;
}

/** As mr_bar_read32(), of 1 byte. Thread: any. */
static inline uint8_t mr_bar_read8(const struct mr_bar *bar, uint64_t offset)
{
	uint8_t value;

	if (bar->ops != NULL)
		return (uint8_t)bar->ops->read(bar->device, bar->idx, offset,
					       1);
	value = bar->base[offset];
	mr_bar_order_loads();
	return value;
}

/**
 * Write a register, after all earlier stores to memory.
 *
 * @param offset  as mr_bar_read32()
 *
 * Thread: any. Cost: a store, which reaches the device later.
 */
static inline void mr_bar_write32(const struct mr_bar *bar, uint64_t offset,
				  uint32_t value)
{
	mr_bar_order_stores();
	if (bar->ops != NULL)
		bar->ops->write(bar->device, bar->idx, offset, 4, value);
	else
		/* style: volatile */
		*(volatile uint32_t *)(bar->base + offset) = value;
}

/** As mr_bar_write32(), of 2 bytes. Thread: any. */
static inline void mr_bar_write16(const struct mr_bar *bar, uint64_t offset,
				  uint16_t value)
{
	mr_bar_order_stores();
	if (bar->ops != NULL)
		bar->ops->write(bar->device, bar->idx, offset, 2, value);
	else
		/* style: volatile */
		*(volatile uint16_t *)(bar->base + offset) = value;
}

/** As mr_bar_write32(), of 1 byte. Thread: any. */
static inline void mr_bar_write8(const struct mr_bar *bar, uint64_t offset,
				 uint8_t value)
{
	mr_bar_order_stores();
	if (bar->ops != NULL)
		bar->ops->write(bar->device, bar->idx, offset, 1, value);
	else
		bar->base[offset] = value;
}

/** Write two registers of 4 bytes, the low one first. Thread: any. */
static inline void mr_bar_write64(const struct mr_bar *bar, uint64_t offset,
				  uint64_t value)
{
	mr_bar_write32(bar, offset, (uint32_t)value);
	mr_bar_write32(bar, offset + 4, (uint32_t)(value >> 32));
}

MR_END_DECLS

#endif
