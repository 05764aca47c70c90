/* SPDX-License-Identifier: BSD-3-Clause */
/* For every module of the library. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/ctx.h>
#include <millrace/driver_base.h>
#include <millrace/error.h>

struct mr_driver;
struct mr_pci;
struct mr_pci_backend;
struct mri_container;

enum { MRI_CACHE_LINE = 64, MRI_MAX_DRIVERS = 32, MRI_MAX_SOFT_DEVICES = 16 };

/* A software PCI device, and its name in this context. */
struct mri_soft_device {
	char name[32];
	const struct mr_pci_backend *backend;
	void *device;
};

struct mr_ctx {
	struct mr_ctx_config config;
	/* lib/port's: */
	uint32_t n_added_drivers; /* to the built-in ones */
	struct mr_driver *added_drivers[MRI_MAX_DRIVERS]; /* copies */
	void *driver_slots[MRI_MAX_DRIVERS];
	/* Of lib/pci: */
	uint32_t n_soft_devices;
	struct mri_soft_device soft_devices[MRI_MAX_SOFT_DEVICES];
	struct mr_pci *open_pcis;              /* a list */
	struct mri_container *vfio_containers; /* a list */
};

/*
 * Copy a config or statistics struct that begins with its size, as the caller
 * was compiled with: members unknown to the caller stay zero. -EINVAL if the
 * size is 0, unknown to us, or smaller than its own member.
 */
int mri_copy_sized(void *to, const void *from, uint32_t n_known_bytes,
		   const char *what, struct mr_reason *reterr_reason);

/* The other direction, for statistics: fills to->size bytes, keeps to->size. */
int mri_fill_sized(void *to, const void *from, uint32_t n_known_bytes);

/*
 * Zeroed memory for a table, aligned to two cache lines. Pages after the first
 * n_used_bytes take no memory until they are used. NULL: no memory.
 * lib/base/table.c
 */
void *mri_table_alloc(size_t n_bytes, size_t n_used_bytes);
void mri_table_free(void *table); /* NULL is allowed */

static inline int mri_is_power_of_two(uint64_t x)
{
	return x != 0 && (x & (x - 1)) == 0;
}

static inline uint64_t mri_round_up(uint64_t x, uint64_t to_power_of_two)
{
	return (x + to_power_of_two - 1) & ~(to_power_of_two - 1);
}

/*
 * Fetch a cache line that is about to be written from the core that has it.
 * Compilers turn this into a prefetch for reading if the target CPU is older
 * than the instruction; 64-bit CPUs without it ignore it.
 */
static inline void mri_prefetch_to_write(const void *line)
{
#ifdef __x86_64__
	__asm__("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

static inline uint32_t mri_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * By how much one sum of counters is ahead of another. Sums of counters that
 * change while being read may be slightly inconsistent: then 0. They may wrap
 * at 2^64; their distance does not.
 */
static inline uint64_t mri_distance(uint64_t from, uint64_t to)
{
	return (to - from) >> 63 == 0 ? to - from : 0;
}

#endif
