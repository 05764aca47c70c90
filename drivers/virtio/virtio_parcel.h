/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbered entries of parcels. */
#ifndef VIRTIO_VIRTIO_PARCEL_H
#define VIRTIO_VIRTIO_PARCEL_H

#include <stdio.h>

#include <millrace/experimental/parcel.h>

static inline const char *numbered(char name[MR_PARCEL_NAME_BYTES],
				   const char *what, uint32_t i)
{
	snprintf(name, MR_PARCEL_NAME_BYTES, "%s/%u", what, i);
	return name;
}

static inline void put_numbered_fd(struct mr_parcel *parcel, const char *what,
				   uint32_t i, int fd)
{
	char name[MR_PARCEL_NAME_BYTES];

	mr_parcel_put_fd(parcel, numbered(name, what, i), fd);
}

/* -1: there is none. */
static inline int take_numbered_fd(struct mr_parcel *parcel, const char *what,
				   uint32_t i)
{
	char name[MR_PARCEL_NAME_BYTES];
	const int fd = mr_parcel_take_fd(parcel, numbered(name, what, i));

	return fd >= 0 ? fd : -1;
}

#endif
