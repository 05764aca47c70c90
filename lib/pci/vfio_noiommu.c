/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Physical addresses, for a device without an IOMMU.
 *
 * Only huge pages: the kernel may move small ones, even locked ones, without
 * telling the device.
 *
 * Source: linux/Documentation/admin-guide/mm/pagemap.rst (bit 63: present; bits
 * 0 to 54: the frame number, 0 without CAP_SYS_ADMIN).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "pci/vfio.h"

static const uint64_t PRESENT = UINT64_C(1) << 63;
static const uint64_t FRAME = (UINT64_C(1) << 55) - 1;

static int read_address(int fd, uintptr_t at, uint64_t os_page,
			uint64_t *ret_address)
{
	uint64_t entry;

	if (pread(fd, &entry, sizeof(entry),
		  (off_t)(at / os_page * sizeof(entry))) != sizeof(entry) ||
	    (entry & PRESENT) == 0 || (entry & FRAME) == 0)
		return -EPERM;
	*ret_address = (entry & FRAME) * os_page + at % os_page;
	return 0;
}

int mri_physical(const void *memory, uint64_t n_bytes, uint64_t *ret_address)
{
	const uint64_t os_page = (uint64_t)sysconf(_SC_PAGESIZE);
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t address = 0;
	int err;

	if (fd < 0)
		return -EPERM;
	err = read_address(fd, (uintptr_t)memory, os_page, ret_address);
	for (uint64_t at = MRI_HUGE_BYTES; err == 0 && at < n_bytes;
	     at += MRI_HUGE_BYTES) {
		err = read_address(fd, (uintptr_t)memory + at, os_page,
				   &address);
		if (err == 0 && address != *ret_address + at)
			err = -ENXIO;
	}
	close(fd);
	return err;
}
