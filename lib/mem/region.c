/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions: reserved address ranges, filled in segments.
 *
 * Segments are in address order. A new one takes the lowest gap that it fits,
 * so that the range that a device registers, from address 0 to the first gap,
 * is as long as possible. A tenant that may grow reserves a range and fills it
 * from the start.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "mem/mem.h"

static const uint64_t DEFAULT_MAX_BYTES = UINT64_C(64) << 30;
static const uint64_t BASE_ALIGN_BYTES = UINT64_C(1) << 30;
/* Tenants need at most 32 KiB in one piece, naturally aligned. */
static const uint64_t SEGMENT_ALIGN_BYTES = 65536;

int mr_region_create(struct mr_ctx *ctx, const struct mr_region_config *config,
		     struct mr_region **ret_region,
		     struct mr_reason *reterr_reason)
{
	struct mr_region_config c;
	struct mr_region *region;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_region_config",
			     reterr_reason);
	if (err < 0)
		return err;
	if (c.max_bytes == 0)
		c.max_bytes = DEFAULT_MAX_BYTES;
	if ((unsigned int)c.os_pages > MR_OS_PAGES_4K)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_region_config.os_pages: no such value: %d",
			       (int)c.os_pages);
	if (c.max_bytes > UINT64_C(1) << 46)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_region_config.max_bytes: more than 64 TiB");
	if (c.numa_node_plus_1 > MRI_MAX_NUMA_NODES)
		return mr_fail(
			reterr_reason, -EINVAL,
			"mr_region_config.numa_node_plus_1: no NUMA node %u",
			c.numa_node_plus_1 - 1);

	region = mr_alloc(ctx, 0, sizeof(*region));
	if (region == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a region");
	pthread_mutex_init(&region->lock, NULL);
	region->ctx = ctx;
	region->os_pages = c.os_pages;
	region->numa_node_plus_1 = c.numa_node_plus_1;
	region->max_bytes = mri_round_up(c.max_bytes, BASE_ALIGN_BYTES);
	snprintf(region->name, sizeof(region->name), "%s",
		 c.name != NULL ? c.name : "millrace");

	/* One alignment more than needed, so that 1 GiB pages fit. */
	region->map_bytes = region->max_bytes + BASE_ALIGN_BYTES;
	region->map = mmap(NULL, region->map_bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region->map == MAP_FAILED) {
		err = mr_fail(reterr_reason, -ENOMEM,
			      "cannot reserve %llu GiB of addresses: %s "
			      "(ulimit -v?)",
			      (unsigned long long)(region->max_bytes >> 30),
			      mr_strerror(errno));
		pthread_mutex_destroy(&region->lock);
		mr_free(ctx, region);
		return err;
	}
	region->base = (uint8_t *)mri_round_up((uintptr_t)region->map,
					       BASE_ALIGN_BYTES);
	*ret_region = region;
	return 0;
}

static int refuse_pinned(const struct mr_region *region, uint64_t addr,
			 struct mr_reason *reterr_reason)
{
	for (uint32_t i = 0; i < MRI_MAX_PINS; i++)
		if (addr < region->pins[i].n_bytes)
			return mr_fail(reterr_reason, -EBUSY,
				       "the segment at 0x%llx is registered by "
				       "%s; close that port first",
				       (unsigned long long)addr,
				       region->pins[i].holder);
	return 0;
}

int mr_region_destroy(struct mr_region *region, struct mr_reason *reterr_reason)
{
	int err;

	if (region == NULL)
		return 0;
	err = refuse_pinned(region, 0, reterr_reason);
	if (err < 0)
		return err;
	if (mri_region_n_tenants(region) > 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "the region has a pool; destroy it first");
	for (uint32_t i = 0; i < region->n_segments; i++)
		mr_fd_close(region->segments[i].fd);
	munmap(region->map, region->map_bytes);
	pthread_mutex_destroy(&region->lock);
	mr_free(region->ctx, region);
	return 0;
}

void *mr_region_base(const struct mr_region *region)
{
	return region->base;
}

/* The end of the last used part of [addr, addr + n_bytes), or 0. */
static uint64_t end_of_taken(const struct mr_region *region, uint64_t addr,
			     uint64_t n_bytes)
{
	for (uint32_t i = 0; i < region->n_segments; i++) {
		const struct mr_segment_info *s = &region->segments[i];

		if (addr < s->addr + s->n_bytes && s->addr < addr + n_bytes)
			return s->addr + s->n_bytes;
	}
	for (uint32_t i = 0; i < MRI_MAX_TENANTS; i++) {
		const struct mri_reservation *r = &region->reserved[i];

		if (!r->is_soft && addr < r->end && r->begin < addr + n_bytes)
			return r->end;
	}
	return 0;
}

/* The lowest gap of n_bytes between segments and reservations. */
static bool find_gap(const struct mr_region *region, uint64_t n_bytes,
		     uint64_t align, uint64_t *ret_addr)
{
	uint64_t addr = 0, end;

	while ((end = end_of_taken(region, addr, n_bytes)) != 0)
		addr = mri_round_up(end, align);
	*ret_addr = addr;
	return addr + n_bytes <= region->max_bytes;
}

/*
 * Whether n_bytes fit at wish->addr: aligned, and before the end of the
 * reservation. The caller, its owner, knows that no segment is there.
 */
static bool fits_at(const struct mr_region *region,
		    const struct mri_segment_wish *wish, uint64_t n_bytes,
		    uint64_t align)
{
	for (uint32_t i = 0; i < MRI_MAX_TENANTS; i++) {
		const struct mri_reservation *r = &region->reserved[i];

		if (wish->reserved_addr == r->begin && wish->addr >= r->begin &&
		    wish->addr < r->end)
			return wish->addr % align == 0 &&
			       n_bytes <= r->end - wish->addr;
	}
	return false;
}

/* Add memory on OS pages of this size, where requested or where it fits. */
static int add_on_os_pages(struct mr_region *region, enum mr_os_pages os_pages,
			   const struct mri_segment_wish *wish,
			   struct mr_segment_info *ret_info)
{
	const uint64_t align =
		mri_os_page_bytes(os_pages) > SEGMENT_ALIGN_BYTES ?
			mri_os_page_bytes(os_pages) :
			SEGMENT_ALIGN_BYTES;
	const uint64_t n_bytes = mri_round_up(wish->n_bytes, align);
	const bool is_bound = region->numa_node_plus_1 != 0;
	const uint32_t node_plus_1 =
		is_bound ? region->numa_node_plus_1 : wish->numa_node_plus_1;
	uint64_t addr = wish->addr;
	int err;

	if (addr == MRI_ADDR_ANY ? !find_gap(region, n_bytes, align, &addr) :
				   !fits_at(region, wish, n_bytes, align))
		return -ENOSPC;
	err = mri_segment_map(region->name, region->base + addr, n_bytes,
			      os_pages, node_plus_1, is_bound, &ret_info->fd);
	if (err < 0)
		return err;
	if (wish->addr == MRI_ADDR_ANY)
		mri_region_cut(region, addr);
	ret_info->addr = addr;
	ret_info->n_bytes = n_bytes;
	ret_info->numa_node = (int32_t)node_plus_1 - 1;
	/* It was only a preference: ask the kernel where the memory is. */
	if (node_plus_1 != 0 && !is_bound)
		ret_info->numa_node = mri_segment_node(region->base + addr);
	/* Whether a memfd gets transparent huge pages is unknown. */
	ret_info->os_page_bytes = os_pages == MR_OS_PAGES_THP ?
					  4096 :
					  mri_os_page_bytes(os_pages);
	return 0;
}

/* Why a page size failed, and what would help. */
static void say_why(char *why, size_t n, enum mr_os_pages os_pages, int err)
{
	static const char *const names[] = {
		[MR_OS_PAGES_1G] = "1 GiB huge pages",
		[MR_OS_PAGES_2M] = "2 MiB huge pages",
		[MR_OS_PAGES_THP] = "transparent huge pages",
		[MR_OS_PAGES_4K] = "4 KiB pages",
	};
	const char *cure = "";

	if (err == -ENOSPC)
		cure = " in the region (mr_region_config.max_bytes)";
	else if (os_pages == MR_OS_PAGES_2M)
		cure = " (set vm.nr_hugepages)";
	snprintf(why, n, "no %s: %s%s", names[os_pages],
		 err == -ENOSPC ? "no gap" : mr_strerror(-err), cure);
}

/*
 * Try OS page sizes in order. Each rounds to its own size, so that falling back
 * to small pages does not waste what a huge one would have.
 */
static int go_down(struct mr_region *region,
		   const struct mri_segment_wish *wish,
		   struct mr_segment_info *info)
{
	int err = -ENOMEM;

	for (int os_pages = mri_segment_best(wish->n_bytes, region->os_pages);
	     os_pages <= MR_OS_PAGES_4K; os_pages++) {
		err = add_on_os_pages(region, os_pages, wish, info);
		if (err == 0 && os_pages == MR_OS_PAGES_THP &&
		    info->why[0] == '\0')
			snprintf(info->why, sizeof(info->why),
				 "transparent huge pages are a request; the "
				 "kernel may have used small pages");
		if (err == 0)
			return 0;
		/* Keep the first reason, which a person can act on. */
		if (info->why[0] == '\0')
			say_why(info->why, sizeof(info->why), os_pages, err);
	}
	return err;
}

static int refuse_segment(const struct mr_region *region, uint64_t addr,
			  uint64_t n_bytes, int err,
			  struct mr_reason *reterr_reason)
{
	if (err == -ENOSPC && addr != MRI_ADDR_ANY)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no room for %llu KiB more at 0x%llx: another "
			       "pool of the region begins there",
			       (unsigned long long)(n_bytes >> 10),
			       (unsigned long long)addr);
	if (err == -ENOSPC)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no room for %llu KiB more in a region of %llu "
			       "MiB (mr_region_config.max_bytes)",
			       (unsigned long long)(n_bytes >> 10),
			       (unsigned long long)(region->max_bytes >> 20));
	if (err == -EINVAL && region->numa_node_plus_1 != 0)
		return mr_fail(reterr_reason, -ENOMEM,
			       "cannot bind memory to NUMA node %u: does it "
			       "exist? (mr_region_config.numa_node_plus_1)",
			       region->numa_node_plus_1 - 1);
	return mr_fail(reterr_reason, -ENOMEM,
		       "cannot get %llu KiB of memory for a segment: %s",
		       (unsigned long long)(n_bytes >> 10), mr_strerror(-err));
}

/*
 * Order: the release of end pairs with the acquire in mr_region_find(). Nobody
 * looks up a segment that is being removed: its tenant has nothing in flight.
 */
static void publish(struct mr_region *region, uint64_t begin, uint64_t end)
{
	for (uint32_t i = 0; i < MRI_MAX_SEGMENTS; i++) {
		struct mri_extent *extent = &region->extents[i];

		if (extent->end != 0)
			continue;
		__atomic_store_n(&extent->begin, begin, __ATOMIC_RELAXED);
		__atomic_store_n(&extent->end, end, __ATOMIC_RELEASE);
		return;
	}
}

static void retract(struct mr_region *region, uint64_t begin)
{
	for (uint32_t i = 0; i < MRI_MAX_SEGMENTS; i++)
		if (region->extents[i].end != 0 &&
		    region->extents[i].begin == begin)
			__atomic_store_n(&region->extents[i].end, 0,
					 __ATOMIC_RELEASE);
}

bool mr_region_find(const struct mr_region *region, uint64_t addr,
		    uint64_t n_bytes, uint64_t *ret_begin, uint64_t *ret_end)
{
	for (uint32_t i = 0; i < MRI_MAX_SEGMENTS; i++) {
		const struct mri_extent *extent = &region->extents[i];
		const uint64_t end =
			__atomic_load_n(&extent->end, __ATOMIC_ACQUIRE);
		const uint64_t begin =
			__atomic_load_n(&extent->begin, __ATOMIC_RELAXED);

		if (addr < begin || addr >= end || n_bytes > end - addr)
			continue;
		*ret_begin = begin;
		*ret_end = end;
		return true;
	}
	return false;
}

bool mr_region_is_backed(const struct mr_region *region, uint64_t addr,
			 uint64_t n_bytes)
{
	uint64_t begin, end;

	return mr_region_find(region, addr, n_bytes, &begin, &end);
}

void mri_region_insert(struct mr_region *region,
		       const struct mr_segment_info *info)
{
	uint32_t place = region->n_segments;

	while (place > 0 && region->segments[place - 1].addr > info->addr)
		place--;
	memmove(&region->segments[place + 1], &region->segments[place],
		(region->n_segments - place) * sizeof(region->segments[0]));
	region->segments[place] = *info;
	region->n_segments++;
	publish(region, info->addr, info->addr + info->n_bytes);
}

static int add_locked(struct mr_region *region,
		      const struct mri_segment_wish *wish,
		      struct mr_segment_info *ret_info,
		      struct mr_reason *reterr_reason)
{
	struct mr_segment_info info = { 0 };
	int err;

	if (region->n_segments == MRI_MAX_SEGMENTS)
		return mr_fail(reterr_reason, -ENOMEM,
			       "a region has room for %d segments, all in use",
			       MRI_MAX_SEGMENTS);
	err = go_down(region, wish, &info);
	if (err < 0)
		return refuse_segment(region, wish->addr, wish->n_bytes, err,
				      reterr_reason);
	err = mri_listeners_add(region, &info, reterr_reason);
	if (err < 0) {
		(void)mri_segment_unmap(region->base + info.addr, info.n_bytes);
		mr_fd_close(info.fd);
		return err;
	}
	mri_region_insert(region, &info);
	mr_log(region->ctx, info.why[0] != '\0' ? MR_LOG_WARNING : MR_LOG_INFO,
	       "segment of %llu KiB on OS pages of %llu KiB%s%s",
	       (unsigned long long)(info.n_bytes >> 10),
	       (unsigned long long)(info.os_page_bytes >> 10),
	       info.why[0] != '\0' ? ": " : "", info.why);
	*ret_info = info;
	return 0;
}

int mri_region_add(struct mr_region *region,
		   const struct mri_segment_wish *wish,
		   struct mr_segment_info *ret_info,
		   struct mr_reason *reterr_reason)
{
	int err;

	pthread_mutex_lock(&region->lock);
	err = add_locked(region, wish, ret_info, reterr_reason);
	pthread_mutex_unlock(&region->lock);
	return err;
}

int mri_region_reserve(struct mr_region *region, uint64_t n_bytes,
		       uint64_t align, bool is_soft, uint64_t *ret_addr,
		       struct mr_reason *reterr_reason)
{
	struct mri_reservation *place = NULL;
	int err = 0;

	if (align < SEGMENT_ALIGN_BYTES)
		align = SEGMENT_ALIGN_BYTES;
	n_bytes = mri_round_up(n_bytes, SEGMENT_ALIGN_BYTES);
	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_TENANTS && place == NULL; i++)
		if (region->reserved[i].end == 0)
			place = &region->reserved[i];
	if (place == NULL) {
		err = mr_fail(reterr_reason, -ENOMEM,
			      "a region has room for %d pools, all in use",
			      MRI_MAX_TENANTS);
	} else if (!find_gap(region, n_bytes, align, ret_addr)) {
		err = refuse_segment(region, MRI_ADDR_ANY, n_bytes, -ENOSPC,
				     reterr_reason);
	} else {
		mri_region_cut(region, *ret_addr);
		*place = (struct mri_reservation){ *ret_addr,
						   *ret_addr + n_bytes,
						   is_soft };
	}
	pthread_mutex_unlock(&region->lock);
	return err;
}

void mri_region_release(struct mr_region *region, uint64_t addr)
{
	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_TENANTS; i++)
		if (region->reserved[i].begin == addr)
			region->reserved[i] = (struct mri_reservation){ 0 };
	pthread_mutex_unlock(&region->lock);
}

static int remove_locked(struct mr_region *region, uint64_t addr,
			 struct mr_reason *reterr_reason)
{
	int err;

	for (uint32_t i = 0; i < region->n_segments; i++) {
		const struct mr_segment_info *info = &region->segments[i];

		if (info->addr != addr)
			continue;
		err = refuse_pinned(region, addr, reterr_reason);
		if (err < 0)
			return err;
		err = mri_segment_unmap(region->base + addr, info->n_bytes);
		if (err < 0)
			return mr_fail(reterr_reason, err,
				       "cannot unmap a segment: %s",
				       mr_strerror(-err));
		retract(region, addr);
		mr_fd_close(region->segments[i].fd);
		region->n_segments--;
		memmove(&region->segments[i], &region->segments[i + 1],
			(region->n_segments - i) * sizeof(region->segments[0]));
		return 0;
	}
	return mr_fail(reterr_reason, -ENOENT, "no segment at 0x%llx",
		       (unsigned long long)addr);
}

int mri_region_remove_segment(struct mr_region *region, uint64_t addr,
			      struct mr_reason *reterr_reason)
{
	int err;

	pthread_mutex_lock(&region->lock);
	err = remove_locked(region, addr, reterr_reason);
	pthread_mutex_unlock(&region->lock);
	return err;
}

int mr_region_pin(struct mr_region *region, const char *holder,
		  uint64_t n_bytes)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_PINS && err == -ENOSPC; i++) {
		struct mri_pin *pin = &region->pins[i];

		if (pin->n_bytes != 0)
			continue;
		snprintf(pin->holder, sizeof(pin->holder), "%s", holder);
		pin->n_bytes = n_bytes;
		err = 0;
	}
	pthread_mutex_unlock(&region->lock);
	return err;
}

void mr_region_unpin(struct mr_region *region, const char *holder,
		     uint64_t n_bytes)
{
	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_PINS; i++) {
		struct mri_pin *pin = &region->pins[i];

		if (pin->n_bytes != n_bytes ||
		    strncmp(pin->holder, holder, sizeof(pin->holder) - 1) != 0)
			continue;
		pin->n_bytes = 0;
		break;
	}
	pthread_mutex_unlock(&region->lock);
}

size_t mri_region_name_short_pins(struct mr_region *region, uint64_t n_bytes,
				  char *ret_text, size_t n_text)
{
	size_t n = 0;

	ret_text[0] = '\0';
	pthread_mutex_lock(&region->lock);
	for (uint32_t i = 0; i < MRI_MAX_PINS && n < n_text; i++)
		if (region->pins[i].n_bytes != 0 &&
		    region->pins[i].n_bytes < n_bytes)
			n += (size_t)snprintf(ret_text + n, n_text - n, "%s%s",
					      n > 0 ? ", " : "",
					      region->pins[i].holder);
	pthread_mutex_unlock(&region->lock);
	return n;
}

uint64_t mr_region_n_contiguous_bytes(const struct mr_region *region)
{
	struct mr_region *r = (struct mr_region *)region; /* for its lock */
	uint64_t end = 0;

	pthread_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < region->n_segments; i++) {
		if (region->segments[i].addr != end)
			break;
		end += region->segments[i].n_bytes;
	}
	pthread_mutex_unlock(&r->lock);
	return end;
}

int mr_region_stats(const struct mr_region *region,
		    struct mr_region_stats *stats)
{
	struct mr_region *r = (struct mr_region *)region; /* for its lock */
	struct mr_region_stats s = { .max_bytes = region->max_bytes };

	pthread_mutex_lock(&r->lock);
	s.n_segments = region->n_segments;
	for (uint32_t i = 0; i < region->n_segments; i++) {
		const struct mr_segment_info *info = &region->segments[i];

		s.n_bytes += info->n_bytes;
		if (info->os_page_bytes > 4096)
			s.n_huge_bytes += info->n_bytes;
	}
	pthread_mutex_unlock(&r->lock);
	return mri_fill_sized(stats, &s, sizeof(s));
}

int mr_region_segment(const struct mr_region *region, uint32_t i,
		      struct mr_segment_info *ret_info)
{
	struct mr_region *r = (struct mr_region *)region; /* for its lock */
	int err = -ENOENT;

	pthread_mutex_lock(&r->lock);
	if (i < region->n_segments) {
		*ret_info = region->segments[i];
		for (uint32_t p = 0; p < MRI_MAX_PINS; p++)
			ret_info->n_pins +=
				ret_info->addr < region->pins[p].n_bytes;
		err = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return err;
}
