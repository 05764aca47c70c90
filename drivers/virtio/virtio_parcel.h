/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbered fds of parcels. */
#ifndef VIRTIO_VIRTIO_PARCEL_H
#define VIRTIO_VIRTIO_PARCEL_H

#include <millrace/experimental/parcel.h>

static inline void put_numbered_fd(struct mr_parcel *parcel, const char *what,
				   uint32_t i, int fd)
{
	char name[MR_PARCEL_NAME_BYTES];

	mr_parcel_put_fd(parcel, mr_parcel_name(name, what, i), fd);
}

/* -1: there is none. */
static inline int take_numbered_fd(struct mr_parcel *parcel, const char *what,
				   uint32_t i)
{
	char name[MR_PARCEL_NAME_BYTES];

	return mr_parcel_take_fd(parcel, mr_parcel_name(name, what, i));
}

#endif
