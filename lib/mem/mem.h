/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, for the layers above: segments, and their users. */
#ifndef MEM_MEM_H
#define MEM_MEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <millrace/driver_mem.h>
#include <millrace/region.h>

struct mr_parcel;

enum {
	MRI_MAX_SEGMENTS = 64,
	MRI_MAX_PINS = 64,
	MRI_MAX_TENANTS = 16, /* of one region */
	MRI_MAX_LISTENERS = 64,
	MRI_HOLDER_BYTES = 64,
	MRI_MAX_NUMA_NODES = 256,
};

struct mri_pin {
	char holder[MRI_HOLDER_BYTES];
	uint64_t n_bytes; /* 0: free */
};

/* A segment's addresses, for bursts, which take no lock. Both are atomic. */
struct mri_extent {
	uint64_t begin;
	uint64_t end; /* 0: free */
};

/* Addresses that one tenant fills with segments. */
struct mri_reservation {
	uint64_t begin;
	uint64_t end; /* 0: none */
	bool is_soft; /* others may take the part without segments */
};

/* A device that is told of each segment. */
struct mri_listener {
	mr_segment_add_fn *add; /* NULL: this place is free */
	mr_segment_remove_fn *remove;
	void *opaque;
};

/* Who has which addresses, for bursts, which take no lock. All are atomic. */
struct mri_tenant {
	uint64_t begin;
	uint64_t end; /* 0: this place is free */
	void *owner;
};

struct mr_region {
	struct mr_ctx *ctx;
	uint8_t *base;
	void *map; /* what mmap() gave; base is aligned in it */
	uint64_t map_bytes;
	uint64_t max_bytes;
	enum mr_os_pages os_pages;
	uint32_t numa_node_plus_1;
	char name[32];
	/*
	 * What is below changes while frames are on their way and statistics
	 * are read. No burst takes the lock.
	 */
	pthread_mutex_t lock;
	uint32_t n_segments; /* in order of address */
	struct mr_segment_info segments[MRI_MAX_SEGMENTS];
	struct mri_extent extents[MRI_MAX_SEGMENTS]; /* in no order */
	struct mri_reservation reserved[MRI_MAX_TENANTS];
	struct mri_pin pins[MRI_MAX_PINS];
	struct mri_listener listeners[MRI_MAX_LISTENERS];
	struct mri_tenant tenants[MRI_MAX_TENANTS];
};

/*
 * [begin, begin + n_bytes) now belongs to owner. Returns its index, or -ENOMEM:
 * there are MRI_MAX_TENANTS. lib/mem/tenant.c
 */
int mri_region_join(struct mr_region *region, uint64_t begin, uint64_t n_bytes,
		    void *owner);
/* Returns how many bytes the tenant had, so that it can join again. */
uint64_t mri_region_leave(struct mr_region *region, int place);
/*
 * End a soft reservation that contains addr, and its tenant, at addr, where
 * another reservation begins. Under the region's lock.
 */
void mri_region_cut(struct mr_region *region, uint64_t addr);
uint32_t mri_region_n_tenants(struct mr_region *region);
/* The owner of addr, or NULL. No lock. */
void *mri_region_tenant(const struct mr_region *region, uint64_t addr);

/* Add a segment that is mapped, under the region's lock. */
void mri_region_insert(struct mr_region *region,
		       const struct mr_segment_info *info);

/*
 * For the process that takes over: put the segments and reservations into a
 * parcel; make a region of them at the same addresses. -EPROTO, -ENOMEM.
 * lib/mem/hand_over.c
 */
void mri_region_put(const struct mr_region *region, struct mr_parcel *parcel);
int mri_region_take(struct mr_ctx *ctx, const char *name,
		    struct mr_parcel *parcel, struct mr_region **ret_region,
		    struct mr_reason *reterr_reason);

struct mri_segment_wish {
	uint64_t addr; /* in a reservation; or MRI_ADDR_ANY: the lowest gap */
	uint64_t n_bytes;          /* at least */
	uint32_t numa_node_plus_1; /* preferred; 0: none */
	uint64_t reserved_addr;    /* of the reservation that addr is in */
};

#define MRI_ADDR_ANY UINT64_MAX

/*
 * Add a segment. -ENOMEM with a reason if there is no memory or address range.
 */
int mri_region_add(struct mr_region *region,
		   const struct mri_segment_wish *wish,
		   struct mr_segment_info *ret_info,
		   struct mr_reason *reterr_reason);

/*
 * Reserve the lowest gap of n_bytes for segments to be added in it. -ENOMEM: no
 * such gap, or too many reservations. A soft reservation keeps only the part
 * with segments: a later reservation takes the rest if that is its lowest gap,
 * and the tenant loses it as well.
 */
int mri_region_reserve(struct mr_region *region, uint64_t n_bytes,
		       uint64_t align, bool is_soft, uint64_t *ret_addr,
		       struct mr_reason *reterr_reason);
void mri_region_release(struct mr_region *region, uint64_t addr);

/*
 * Remove the segment at addr. -EBUSY, with the holder's name, while a port has
 * registered it: the kernel would allow it and deliver zeros.
 */
int mri_region_remove_segment(struct mr_region *region, uint64_t addr,
			      struct mr_reason *reterr_reason);

/*
 * Name the ports that have registered less than n_bytes of the region. Returns
 * the length of the text; 0: there are none.
 */
size_t mri_region_name_short_pins(struct mr_region *region, uint64_t n_bytes,
				  char *ret_text, size_t n_text);

/*
 * Announce a new segment to all listeners, or undo that; under the region's
 * lock. lib/mem/listen.c
 */
int mri_listeners_add(struct mr_region *region,
		      const struct mr_segment_info *segment,
		      struct mr_reason *reterr_reason);

/*
 * Map [at, at + n_bytes), multiples of the OS page, to memory on OS pages of
 * one size: all of it, or none. Of a NUMA node; if it is only preferred,
 * another node may be used. *ret_fd is its memfd, guarded; the caller's.
 * lib/mem/segment.c
 */
int mri_segment_map(const char *name, uint8_t *at, uint64_t n_bytes,
		    enum mr_os_pages os_pages, uint32_t numa_node_plus_1,
		    bool is_bound, int *ret_fd);

/* Map a sealed memfd that another process made so: 0 or -errno. */
int mri_segment_take(uint8_t *at, uint64_t n_bytes, uint64_t os_page_bytes,
		     int fd);

/* The NUMA node of the memory at an address; -1: unknown. */
int32_t mri_segment_node(const uint8_t *at);

/* Replace the segment with the reservation again. */
int mri_segment_unmap(uint8_t *at, uint64_t n_bytes);

/* OS pages to try first for a segment of n_bytes, and their size. */
enum mr_os_pages mri_segment_best(uint64_t n_bytes, enum mr_os_pages wanted);
uint64_t mri_os_page_bytes(enum mr_os_pages os_pages);

#endif
