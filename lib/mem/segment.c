/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One segment of a region: a memfd, mapped over the reservation.
 *
 * region.c tries the page sizes in order: 1 GiB huge pages, 2 MiB huge pages,
 * transparent huge pages, 4 KiB. mmap() itself reserves hugetlb memory, so an
 * unavailable page size fails there and not on first access.
 *
 * A memfd frees everything when the process ends, however it ends; files in a
 * mounted hugetlbfs do not. The fd stays open and its length is sealed: a
 * driver may hand it to a process that registers the memory for it.
 *
 * Source: memfd_create(2), mmap(2), madvise(2), mbind(2);
 * linux/Documentation/admin-guide/mm/{hugetlbpage,transhuge}.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "mem/mem.h"

/* Own copies of uapi constants: headers may be older than the kernel. */
enum {
	HUGE_SHIFT = 26,     /* MFD_HUGE_SHIFT */
	POPULATE_WRITE = 23, /* MADV_POPULATE_WRITE, 5.14 */
	MPOL_PREFERRED_MODE = 1,
	MPOL_BIND_MODE = 2,
	MPOL_NODE_OF_ADDR = 3, /* MPOL_F_NODE | MPOL_F_ADDR */
};

uint64_t mri_os_page_bytes(enum mr_os_pages os_pages)
{
	switch (os_pages) {
	case MR_OS_PAGES_1G:
		return UINT64_C(1) << 30;
	case MR_OS_PAGES_2M:
	case MR_OS_PAGES_THP:
		return UINT64_C(1) << 21;
	default:
		return 4096;
	}
}

enum mr_os_pages mri_segment_best(uint64_t n_bytes, enum mr_os_pages wanted)
{
	if (wanted != MR_OS_PAGES_AUTO)
		return wanted;
	/* Rounding up to the OS page must not waste more than it holds. */
	for (int os_pages = MR_OS_PAGES_1G; os_pages < MR_OS_PAGES_4K;
	     os_pages++)
		if (2 * n_bytes > mri_os_page_bytes(os_pages))
			return os_pages;
	return MR_OS_PAGES_4K;
}

static int touch_all(uint8_t *at, uint64_t n_bytes, uint64_t step)
{
	if (madvise(at, n_bytes, POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* Before 5.14: rewrite one byte per OS page. */
	for (uint64_t i = 0; i < n_bytes; i += step)
		__atomic_store_n(at + i, 0, __ATOMIC_RELAXED);
	return 0;
}

static int bind_to_node(uint8_t *at, uint64_t n_bytes, uint32_t node,
			bool is_bound)
{
	unsigned long mask[MRI_MAX_NUMA_NODES / 64 + 1] = { 0 };

	mask[node / 64] = 1ul << (node % 64);
	/* Treat a node that does not exist like one that is full. */
	if (syscall(SYS_mbind, at, n_bytes,
		    is_bound ? MPOL_BIND_MODE : MPOL_PREFERRED_MODE, mask,
		    sizeof(mask) * 8, 0) < 0 &&
	    is_bound)
		return -errno;
	return 0;
}

int32_t mri_segment_node(const uint8_t *at)
{
	int node;

	if (syscall(SYS_get_mempolicy, &node, NULL, 0, at, MPOL_NODE_OF_ADDR) <
	    0)
		return -1;
	return node;
}

int mri_segment_map(const char *name, uint8_t *at, uint64_t n_bytes,
		    enum mr_os_pages os_pages, uint32_t numa_node_plus_1,
		    bool is_bound, int *ret_fd)
{
	const uint64_t step = mri_os_page_bytes(os_pages);
	unsigned int flags = 0;
	int fd, err = 0;

	if (os_pages == MR_OS_PAGES_1G)
		flags |= MFD_HUGETLB | 30u << HUGE_SHIFT;
	else if (os_pages == MR_OS_PAGES_2M)
		flags |= MFD_HUGETLB | 21u << HUGE_SHIFT;
	fd = mr_memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)n_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
		    0 ||
	    mmap(at, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0) == MAP_FAILED) {
		err = -errno;
		mr_fd_close(fd);
		(void)mri_segment_unmap(at, n_bytes);
		return err;
	}
	if (os_pages == MR_OS_PAGES_THP &&
	    madvise(at, n_bytes, MADV_HUGEPAGE) < 0)
		err = -errno;
	if (err == 0 && numa_node_plus_1 != 0)
		err = bind_to_node(at, n_bytes, numa_node_plus_1 - 1, is_bound);
	if (err == 0)
		err = touch_all(at, n_bytes,
				os_pages == MR_OS_PAGES_THP ? 4096 : step);
	/* A forked child would keep registered memory and its queue busy. */
	if (err == 0 && madvise(at, n_bytes, MADV_DONTFORK) < 0)
		err = -errno;
	if (err < 0) {
		(void)mri_segment_unmap(at, n_bytes);
		mr_fd_close(fd);
	}
	*ret_fd = fd;
	return err;
}

int mri_segment_take(uint8_t *at, uint64_t n_bytes, uint64_t os_page_bytes,
		     int fd)
{
	int err = 0;

	if (mmap(at, n_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
		return -errno;
	if (os_page_bytes == 4096) /* optional: it is only slower without */
		(void)madvise(at, n_bytes, MADV_HUGEPAGE);
	if (madvise(at, n_bytes, MADV_DONTFORK) == 0)
		return 0;
	err = -errno;
	(void)mri_segment_unmap(at, n_bytes);
	return err;
}

int mri_segment_unmap(uint8_t *at, uint64_t n_bytes)
{
	/* Mapping over it frees the memory and keeps the range reserved. */
	if (mmap(at, n_bytes, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return -errno;
	return 0;
}
