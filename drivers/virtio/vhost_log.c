/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of written guest pages, while a guest migrates: a bitmap in the VMM's
 * memory, with a bit per page of 4 KiB of guest addresses. The VMM copies those
 * pages again.
 *
 * Bursts log the bytes that they write into buffers. They log a ring as a
 * whole: only a migration pays for that.
 *
 * Source: QEMU, docs/interop/vhost-user.rst, "Migration".
 */
#include <errno.h>

#include "vhost.h"

enum { PAGE_SHIFT = 12 };

void mri_vhost_log_clear(struct vhost_log *log)
{
	mri_vhost_unmap(&log->mapping);
	*log = (struct vhost_log){ 0 };
}

int mri_vhost_log_set(struct vhost_port *port, int fd, uint64_t n_bytes,
		      uint64_t offset, struct mr_reason *reason)
{
	struct vhost_log *log = &port->peer.log;
	int err;

	mri_vhost_log_clear(log);
	if (n_bytes == 0 || offset + n_bytes < offset)
		return mr_fail(reason, -EINVAL,
			       "%s: the peer's log of pages is invalid",
			       port->base.info->name);
	log->bits = mri_vhost_map(port, fd, offset, n_bytes, &log->mapping,
				  &err, reason);
	log->n_bytes = err == 0 ? n_bytes : 0;
	return err;
}

/* Find the guest address of mapped bytes; false: there is none. */
static bool find_guest_addr(const struct vhost_memory *memory,
			    const uint8_t *bytes, uint64_t *ret_addr)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_area *area = &memory->areas[i];
		const uint64_t offset =
			(uintptr_t)bytes - (uintptr_t)area->bytes;

		if (offset >= area->n_bytes)
			continue;
		*ret_addr = area->guest_addr + offset;
		return true;
	}
	return false;
}

void mri_vhost_log_bytes(const struct vhost_ring *ring, const void *bytes,
			 uint64_t n_bytes)
{
	const struct vhost_log *log = ring->log;
	uint64_t addr;

	if (n_bytes == 0 || !find_guest_addr(ring->memory, bytes, &addr))
		return;
	for (uint64_t page = addr >> PAGE_SHIFT;
	     page <= (addr + n_bytes - 1) >> PAGE_SHIFT; page++)
		if (page / 8 < log->n_bytes)
			__atomic_fetch_or(&log->bits[page / 8],
					  (uint8_t)(1u << page % 8),
					  __ATOMIC_RELAXED);
}

void mri_vhost_log_ring(const struct vhost_ring *ring)
{
	const struct virtio_vq *vq = &ring->vq;
	const uint64_t n = vq->n_entries;

	if (vq->is_packed) {
		mri_vhost_log_bytes(ring, vq->packed,
				    n * sizeof(vq->packed[0]));
		mri_vhost_log_bytes(ring, vq->device_event,
				    sizeof(*vq->device_event));
		return;
	}
	mri_vhost_log_bytes(ring, vq->used,
			    4 + n * sizeof(struct virtio_used_entry) + 2);
}
