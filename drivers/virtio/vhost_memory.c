/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's memory. Each piece is a file that the peer could shrink, and an
 * access beyond its end would kill this process. So files must be sealed
 * against that, or be sealed here; others are accepted only with `unsealed`.
 *
 * Source: fcntl(2) on seals; QEMU, docs/interop/vhost-user.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vhost.h"

enum { MIB_SHIFT = 20 };

static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals >= 0 && !(seals & F_SEAL_SHRINK) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && seals & F_SEAL_SHRINK;
}

/* An access to a file of FUSE, for example, may never return. */
static bool is_memory(long type)
{
	return type == TMPFS_MAGIC || type == HUGETLBFS_MAGIC;
}

/* Whether no access to the file can kill this process. An access to a hole in
 * huge pages does, if no huge page is free. */
static bool is_safe(int fd, long type)
{
	return is_sealed(fd) && type != HUGETLBFS_MAGIC;
}

static bool overlap(uint64_t a, uint64_t n_a, uint64_t b, uint64_t n_b)
{
	return a < b + n_b && b < a + n_a;
}

/* Whether the region is not empty, does not wrap and overlaps no other. */
static bool is_valid(const struct vhost_memory *memory,
		     const struct vhost_region *r)
{
	if (r->n_bytes == 0 || r->guest_addr + r->n_bytes < r->guest_addr ||
	    r->user_addr + r->n_bytes < r->user_addr ||
	    r->offset + r->n_bytes < r->offset)
		return false;
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_area *area = &memory->areas[i];

		if (overlap(r->guest_addr, r->n_bytes, area->guest_addr,
			    area->n_bytes) ||
		    overlap(r->user_addr, r->n_bytes, area->user_addr,
			    area->n_bytes))
			return false;
	}
	return true;
}

static uint64_t count_bytes(const struct vhost_memory *memory)
{
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < memory->n; i++)
		n_bytes += memory->areas[i].n_bytes;
	return n_bytes;
}

static uint64_t limit_of(const struct vhost_port *port)
{
	return (uint64_t)port->options.memory_mib << MIB_SHIFT;
}

static int say_too_much(const struct vhost_port *port, struct mr_reason *reason)
{
	return mr_fail(reason, -ENOMEM,
		       "%s: the peer has more memory than %u MiB; memory= sets "
		       "the limit",
		       port->base.info->name, port->options.memory_mib);
}

/* Check a file of at least n_bytes. *ret_block_bytes: mmap()'s unit. */
static int check_file(const struct vhost_port *port, int fd, uint64_t n_bytes,
		      uint64_t *ret_block_bytes, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	struct stat status;
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 ||
	    (!is_safe(fd, (long)fs.f_type) &&
	     !(port->options.is_unsealed && is_memory((long)fs.f_type))))
		return mr_fail(reason, -EPERM,
			       "%s: the peer's memory can shrink, which would "
			       "kill this process: use a memfd of small pages "
			       "(QEMU: memory-backend-memfd,share=on), or "
			       "trust the peer: `unsealed` takes tmpfs and "
			       "hugetlbfs",
			       name);
	if (fstat(fd, &status) < 0 || status.st_size < 0 ||
	    (uint64_t)status.st_size < n_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: the peer's memory is larger than its file",
			       name);
	*ret_block_bytes = (uint64_t)status.st_blksize;
	return 0;
}

/* [offset, end) of a file that was checked. */
static int map_blocks(const struct vhost_port *port, int fd, uint64_t offset,
		      uint64_t end, struct vhost_mapping *mapping,
		      struct mr_reason *reason)
{
	mapping->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	mapping->n_bytes = end - offset;
	if (mapping->fd >= 0)
		mapping->start =
			mmap(NULL, mapping->n_bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, (off_t)offset);
	if (mapping->fd < 0 || mapping->start == MAP_FAILED) {
		mr_fail(reason, -ENOMEM, "%s: cannot map the peer's memory: %s",
			port->base.info->name, mr_strerror(errno));
		mr_fd_close(mapping->fd);
		mapping->start = NULL;
		return -ENOMEM;
	}
	(void)madvise(mapping->start, mapping->n_bytes, MADV_DONTFORK);
	(void)madvise(mapping->start, mapping->n_bytes, MADV_DONTDUMP);
	return 0;
}

uint8_t *mri_vhost_map(const struct vhost_port *port, int fd, uint64_t offset,
		       uint64_t n_bytes, struct vhost_mapping *ret_mapping,
		       int *ret_err, struct mr_reason *reason)
{
	uint64_t start, end = offset + n_bytes, block_bytes = 1;

	*ret_mapping = (struct vhost_mapping){ .offset = offset };
	*ret_err = check_file(port, fd, end, &block_bytes, reason);
	if (*ret_err == 0 && n_bytes > limit_of(port))
		*ret_err = say_too_much(port, reason);
	if (*ret_err < 0)
		return NULL;
	/* Whole blocks, as huge pages require. */
	start = offset / block_bytes * block_bytes;
	end = (end + block_bytes - 1) / block_bytes * block_bytes;
	*ret_err = map_blocks(port, fd, start, end, ret_mapping, reason);
	return *ret_err < 0 ? NULL :
			      (uint8_t *)ret_mapping->start + offset - start;
}

void mri_vhost_unmap(struct vhost_mapping *mapping)
{
	if (mapping->start == NULL)
		return;
	munmap(mapping->start, mapping->n_bytes);
	mr_fd_close(mapping->fd);
	mapping->start = NULL;
}

int mri_vhost_memory_add(struct vhost_port *port, const struct vhost_region *r,
			 int fd, struct mr_reason *reason)
{
	struct vhost_memory *memory = &port->peer.memory;
	const char *const name = port->base.info->name;
	struct vhost_area area = { .guest_addr = r->guest_addr,
				   .n_bytes = r->n_bytes,
				   .user_addr = r->user_addr };
	int err;

	if (memory->n == VHOST_MAX_SLOTS || !is_valid(memory, r))
		return mr_fail(reason, -EINVAL,
			       "%s: the peer's table of memory is invalid",
			       name);
	if (r->n_bytes > limit_of(port) - count_bytes(memory))
		return say_too_much(port, reason);
	area.bytes = mri_vhost_map(port, fd, r->offset, r->n_bytes,
				   &area.mapping, &err, reason);
	if (area.bytes != NULL)
		memory->areas[memory->n++] = area;
	return err;
}

int mri_vhost_memory_remove(struct vhost_memory *memory,
			    const struct vhost_region *r)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		struct vhost_area *area = &memory->areas[i];

		if (area->guest_addr != r->guest_addr ||
		    area->n_bytes != r->n_bytes)
			continue;
		mri_vhost_unmap(&area->mapping);
		*area = memory->areas[--memory->n];
		return 0;
	}
	return -ENOENT;
}

void mri_vhost_memory_clear(struct vhost_memory *memory)
{
	for (uint32_t i = 0; i < memory->n; i++)
		mri_vhost_unmap(&memory->areas[i].mapping);
	memory->n = 0;
}

void *mri_vhost_memory_at(const struct vhost_memory *memory, uint64_t user_addr,
			  uint64_t n_bytes)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_area *area = &memory->areas[i];
		const uint64_t offset = user_addr - area->user_addr;

		if (offset < area->n_bytes && n_bytes <= area->n_bytes - offset)
			return area->bytes + offset;
	}
	return NULL;
}
