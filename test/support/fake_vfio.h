/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kernel's vfio and iommufd, in the test process: the linker redirects the
 * library's calls to this (-Wl,--wrap=open64,ioctl,close,access). Here are its
 * nodes and fds; fake_vfio_calls.h has the ioctls.
 *
 * A device is a sparse memfd, so the real calls read its config space and map
 * its BARs. Calls in an order that a kernel would reject end the test.
 */
#ifndef SUPPORT_FAKE_VFIO_H
#define SUPPORT_FAKE_VFIO_H

#include "support/unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pci/vfio.h"

enum { FAKE_FDS = 16, FAKE_DEVICES = 2, FAKE_MAPS = 64, FAKE_IRQS = 8 };

enum fake_kind {
	FAKE_NONE,
	FAKE_CONTAINER,
	FAKE_GROUP,
	FAKE_DEVICE,
	FAKE_IOMMUFD,
};

struct fake_fd {
	enum fake_kind kind;
	int fd;
	uint32_t number; /* of the group or the device */
	int parent;      /* a group's container, a device's group or iommufd */
	int type;        /* a container's IOMMU */
	bool is_attached;
};

struct fake_bar {
	uint64_t size;
	bool can_mmap;
	bool is_msix_mappable;
	uint32_t n_areas;
	struct vfio_region_sparse_mmap_area areas[2];
};

struct fake_device {
	char bdf[16];
	uint32_t group;
	uint32_t flags;
	uint32_t n_vectors[5]; /* by index */
	uint32_t n_armed[5];
	int fds[5][FAKE_IRQS];
	uint32_t n_free_vectors; /* in the machine */
	struct fake_bar bars[6];
	uint8_t config[256];
};

struct fake_map {
	int fd; /* of the container */
	uint64_t vaddr, iova, size;
};

/* The fake kernel; set by fake_vfio_init(), changed by tests. */
static struct {
	int open_errno[5]; /* by kind */
	bool has_no_nodes; /* ENOENT for all */
	bool has_noiommu;
	bool has_cdev;
	bool is_not_viable;
	int types[3]; /* known to VFIO_CHECK_EXTENSION, 0 at the end */
	uint32_t n_ranges;
	struct vfio_iova_range ranges[4];
	bool says_no_ranges;
	bool chain_loops;
	uint64_t locked_limit;
	bool is_left_mapped; /* closing unmaps: an unmap was made to fail */
	struct fake_device devices[FAKE_DEVICES];
	struct fake_fd fds[FAKE_FDS];
	struct fake_map maps[FAKE_MAPS];
	int pagemap; /* an fd instead of /proc/self/pagemap; -1 */
	uint32_t n_not_cloexec;
	pid_t pid;
} fake;

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

static inline int fake_error(int error)
{
	errno = error;
	return -1;
}

static inline struct fake_fd *fake_find(int fd, enum fake_kind kind)
{
	for (int i = 0; i < FAKE_FDS; i++)
		if (fake.fds[i].kind == kind && fake.fds[i].fd == fd)
			return &fake.fds[i];
	fail_msg("a call on an fd that is not of kind %d", (int)kind);
	return NULL;
}

static inline int fake_new(enum fake_kind kind, uint32_t number)
{
	const int fd = memfd_create("fake", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (int i = 0; i < FAKE_FDS; i++)
		if (fake.fds[i].kind == FAKE_NONE) {
			fake.fds[i] = (struct fake_fd){ .kind = kind,
							.fd = fd,
							.number = number,
							.parent = -1 };
			return fd;
		}
	fail_msg("more fds than a test has");
	return -1;
}

/* Regions are at vfio's offsets: their index in bits 40 and up. */
static inline int fake_new_device(uint32_t number)
{
	const struct fake_device *d = &fake.devices[number];
	const int fd = fake_new(FAKE_DEVICE, number);

	assert_int_equal(ftruncate(fd, (off_t)8 << 40), 0);
	assert_int_equal(pwrite(fd, d->config, sizeof(d->config),
				(off_t)VFIO_PCI_CONFIG_REGION_INDEX << 40),
			 sizeof(d->config));
	return fd;
}

static inline bool fake_is_open(enum fake_kind kind, uint32_t number)
{
	for (int i = 0; i < FAKE_FDS; i++)
		if (fake.fds[i].kind == kind && fake.fds[i].number == number)
			return true;
	return false;
}

/* The kind of a path; FAKE_NONE: not one of ours, or missing. */
static inline enum fake_kind fake_node(const char *path, uint32_t *ret_number)
{
	unsigned int number = 0;

	*ret_number = 0;
	if (fake.has_no_nodes)
		return FAKE_NONE;
	if (strcmp(path, "/dev/vfio/vfio") == 0)
		return FAKE_CONTAINER;
	if (strcmp(path, "/dev/iommu") == 0)
		return fake.has_cdev ? FAKE_IOMMUFD : FAKE_NONE;
	if (sscanf(path, "/dev/vfio/devices/vfio%u", &number) == 1) {
		*ret_number = number;
		return fake.has_cdev ? FAKE_DEVICE : FAKE_NONE;
	}
	if (sscanf(path,
		   fake.has_noiommu ? "/dev/vfio/noiommu-%u" : "/dev/vfio/%u",
		   &number) == 1) {
		*ret_number = number;
		return FAKE_GROUP;
	}
	return FAKE_NONE;
}

int __wrap_open64(const char *path, int flags, ...)
{
	uint32_t number;
	enum fake_kind kind;

	if (strcmp(path, "/proc/self/pagemap") == 0 && fake.pagemap >= 0)
		return fcntl(fake.pagemap, F_DUPFD_CLOEXEC, 0);
	if (strncmp(path, "/dev/vfio", 9) != 0 &&
	    strcmp(path, "/dev/iommu") != 0)
		return __real_open64(path, flags);
	fake.n_not_cloexec += (flags & O_CLOEXEC) == 0;
	kind = fake_node(path, &number);
	if (kind == FAKE_NONE)
		return fake_error(ENOENT);
	if (fake.open_errno[kind] != 0)
		return fake_error(fake.open_errno[kind]);
	if ((kind == FAKE_GROUP || kind == FAKE_DEVICE) &&
	    fake_is_open(kind, number))
		return fake_error(EBUSY);
	return kind == FAKE_DEVICE ? fake_new_device(number) :
				     fake_new(kind, number);
}

int __wrap_access(const char *path, int mode)
{
	uint32_t number;
	enum fake_kind kind;

	if (strncmp(path, "/dev/", 5) != 0)
		return __real_access(path, mode);
	kind = fake_node(path, &number);
	if (kind == FAKE_NONE)
		return fake_error(ENOENT);
	return mode != F_OK && fake.open_errno[kind] != 0 ?
		       fake_error(fake.open_errno[kind]) :
		       0;
}

static inline uint32_t fake_n_maps(void)
{
	uint32_t n = 0;

	for (int i = 0; i < FAKE_MAPS; i++)
		n += fake.maps[i].size != 0;
	return n;
}

int __wrap_close(int fd)
{
	for (int i = 0; i < FAKE_FDS; i++) {
		struct fake_fd *f = &fake.fds[i];

		/* A child may close in any order: its parent keeps them. */
		if (f->kind == FAKE_NONE || f->fd != fd || fake.pid != getpid())
			continue;
		for (int k = 0; k < FAKE_FDS; k++)
			if (fake.fds[k].kind != FAKE_NONE &&
			    fake.fds[k].parent == fd)
				fail_msg("closed while a device or group is "
					 "in it");
		for (int k = 0; k < FAKE_MAPS; k++)
			if (fake.maps[k].size != 0 && fake.maps[k].fd == fd) {
				if (!fake.is_left_mapped)
					fail_msg("closed with memory mapped");
				fake.maps[k].size = 0;
			}
		f->kind = FAKE_NONE;
	}
	return __real_close(fd);
}

#endif
