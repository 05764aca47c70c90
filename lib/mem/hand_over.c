/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A region in the process that takes over. The segments are the same, at the
 * same addresses in the region. Only the base differs, and addresses do not
 * depend on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/parcel.h"
#include "mem/mem.h"

enum {
	LAYOUT = 1, /* of struct image */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW,
	ALIGN_BYTES = 4096,
};

struct image {
	uint64_t max_bytes;
	uint32_t os_pages, numa_node_plus_1;
	uint32_t n_segments, reserved;
	struct {
		uint64_t addr, n_bytes, os_page_bytes;
		int64_t numa_node;
	} segments[MRI_MAX_SEGMENTS];
	struct {
		uint64_t begin, end, is_soft;
	} ranges[MRI_MAX_TENANTS];
};

void mri_region_put(const struct mr_region *region, struct mr_parcel *parcel)
{
	struct image image = { .max_bytes = region->max_bytes,
			       .os_pages = region->os_pages,
			       .numa_node_plus_1 = region->numa_node_plus_1,
			       .n_segments = region->n_segments };
	char name[MR_PARCEL_NAME_BYTES];

	for (uint32_t i = 0; i < region->n_segments; i++) {
		const struct mr_segment_info *s = &region->segments[i];

		image.segments[i].addr = s->addr;
		image.segments[i].n_bytes = s->n_bytes;
		image.segments[i].os_page_bytes = s->os_page_bytes;
		image.segments[i].numa_node = s->numa_node;
		mr_parcel_put_fd(parcel, mr_parcel_name(name, "segment", i),
				 s->fd);
	}
	for (uint32_t i = 0; i < MRI_MAX_TENANTS; i++) {
		image.ranges[i].begin = region->reserved[i].begin;
		image.ranges[i].end = region->reserved[i].end;
		image.ranges[i].is_soft = region->reserved[i].is_soft;
	}
	mr_parcel_put(parcel, "region", LAYOUT, &image, sizeof(image));
}

/* Map segment i, which begins at `end` or later. */
static int take_segment(struct mr_region *region, const struct image *image,
			uint32_t i, uint64_t end, struct mr_parcel *parcel)
{
	struct mr_segment_info info = {
		.addr = image->segments[i].addr,
		.n_bytes = image->segments[i].n_bytes,
		.os_page_bytes = image->segments[i].os_page_bytes,
		.numa_node = (int32_t)image->segments[i].numa_node,
	};
	char name[MR_PARCEL_NAME_BYTES];
	struct stat found;
	int err;

	info.fd = mr_parcel_take_fd(parcel, mr_parcel_name(name, "segment", i));
	if (info.fd < 0 || fstat(info.fd, &found) < 0 ||
	    !mri_is_sealed(info.fd, SEALS) ||
	    (uint64_t)found.st_size != info.n_bytes || info.n_bytes == 0 ||
	    info.addr < end || info.addr % ALIGN_BYTES != 0 ||
	    info.addr > region->max_bytes ||
	    info.n_bytes > region->max_bytes - info.addr) {
		mr_fd_close(info.fd);
		return -EPROTO;
	}
	err = mri_segment_take(region->base + info.addr, info.n_bytes,
			       info.os_page_bytes, info.fd);
	if (err < 0) {
		mr_fd_close(info.fd);
		return err;
	}
	mri_region_insert(region, &info);
	return 0;
}

int mri_region_take(struct mr_ctx *ctx, const char *name,
		    struct mr_parcel *parcel, struct mr_region **ret_region,
		    struct mr_reason *reterr_reason)
{
	struct mr_region_config config = { .size = sizeof(config),
					   .name = name };
	struct mr_region *region;
	struct image image;
	uint64_t end = 0;
	int err = mr_parcel_get(parcel, "region", LAYOUT, &image, sizeof(image),
				reterr_reason);

	if (err < 0)
		return err;
	config.max_bytes = image.max_bytes;
	config.os_pages = (enum mr_os_pages)image.os_pages;
	config.numa_node_plus_1 = image.numa_node_plus_1;
	err = mr_region_create(ctx, &config, &region, reterr_reason);
	if (err < 0)
		return err;
	if (image.n_segments > MRI_MAX_SEGMENTS)
		err = -EPROTO;
	for (uint32_t i = 0; i < image.n_segments && err == 0; i++) {
		err = take_segment(region, &image, i, end, parcel);
		end = image.segments[i].addr + image.segments[i].n_bytes;
	}
	for (uint32_t i = 0; i < MRI_MAX_TENANTS; i++)
		region->reserved[i] = (struct mri_reservation){
			image.ranges[i].begin, image.ranges[i].end,
			image.ranges[i].is_soft != 0
		};
	if (err == 0) {
		*ret_region = region;
		return 0;
	}
	(void)mr_region_destroy(region, NULL);
	return mr_fail(reterr_reason, err,
		       "a segment of the state cannot be mapped: %s",
		       mr_strerror(-err));
}
