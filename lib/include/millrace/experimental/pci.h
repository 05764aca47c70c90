/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PCI_H
#define MILLRACE_EXPERIMENTAL_PCI_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>
#include <millrace/experimental/pci_bar.h>
#include <millrace/experimental/pci_info.h>
#include <millrace/region.h>

MR_BEGIN_DECLS

/**
 * @file
 * PCI devices, for authors of drivers that own one: config space, registers,
 * DMA, interrupts. The backend is the kernel's vfio or a device in software;
 * drivers cannot tell them apart.
 */

struct mr_pci;

/** How to reach the device. */
enum mr_pci_access {
	MR_PCI_AUTO = 0,    /**< IOMMUFD if the kernel has it, else GROUP */
	MR_PCI_IOMMUFD = 1, /**< /dev/vfio/devices/vfioX and /dev/iommu */
	MR_PCI_GROUP = 2,   /**< /dev/vfio/N and /dev/vfio/vfio */
	MR_PCI_NOIOMMU = 3, /**< the device reaches all memory; warns */
};

struct mr_pci_config {
	uint32_t size;            /**< sizeof(struct mr_pci_config) */
	uint32_t access;          /**< enum mr_pci_access */
	struct mr_region *region; /**< the device can access it; NULL: none */
	const char *holder;       /**< the port's name; copied */
};

/**
 * Open a device: memory decoding on, bus mastering off, the region mapped. vfio
 * resets a function on open, if the function can be reset.
 *
 * @param      bdf      as mr_pci_info()
 * @param      config   copied
 * @param[out] ret_pci  set on success
 *
 * @return 0, or, with nothing left open or mapped,
 *   -EINVAL   a value of @p config
 *   -ENODEV   there is no such device, or it is not bound to vfio-pci
 *   -EBUSY    another port or process has it, or its group is not viable
 *   -EPERM, -EACCES  the user may not open the device nodes
 *   -ENOTSUP  no IOMMU, or this kernel lacks that access
 *   -ENOMEM   no memory, or the limit on locked memory is below the region's
 *             size
 *   -ENOSPC   no IOVA range is long enough, or the region has 64 holders
 *   -EIO      the device or the kernel failed in another way
 *
 * Owner:  the caller, of the device; the region stays pinned until it is
 *         closed.
 * Thread: as mr_port_open().
 */
MR_API int mr_pci_open(struct mr_ctx *ctx, const char *bdf,
		       const struct mr_pci_config *config,
		       struct mr_pci **ret_pci,
		       struct mr_reason *reterr_reason);

/**
 * Close the device; NULL is allowed. Turns bus mastering off, then releases
 * interrupts, mappings of the region, BARs, ring memory and fds.
 *
 * Owner: nobody. Thread: as mr_pci_open().
 */
MR_API void mr_pci_close(struct mr_pci *pci);

/** @return the open device's description. Owner: @p pci. Thread: any. */
MR_API const struct mr_pci_info *mr_pci_device(const struct mr_pci *pci);

/**
 * The access mode, for mr_port_info.mode.
 *
 * @return "iommufd", "type1v2", "type1", "noiommu" or a backend's own name, a
 *         constant string
 *
 * Thread: any.
 */
MR_API const char *mr_pci_mode(const struct mr_pci *pci);

/**
 * Read config space.
 *
 * @param offset   in bytes, below 4096
 * @param n_bytes  any; an aligned 1, 2 or 4 is one access
 *
 * @return 0, or -EIO: the device is gone, or has no such byte
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_read_config(struct mr_pci *pci, uint32_t offset, void *ret,
			      uint32_t n_bytes);

/**
 * Write config space.
 *
 * @return as mr_pci_read_config()
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_write_config(struct mr_pci *pci, uint32_t offset,
			       const void *bytes, uint32_t n_bytes);

/**
 * Find a capability. The search ends at a list that loops or leaves config
 * space.
 *
 * @param id     PCI_CAP_ID_*
 * @param after  0: the first one of this id; or a returned offset: the next one
 *
 * @return 0, -ENOENT after the last one, or -EIO
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_find_cap(struct mr_pci *pci, uint8_t id, uint32_t after,
			   uint32_t *ret_offset);

/**
 * Allow or stop transfers by the device, interrupts included. Turn on only
 * while all of its rings are valid.
 *
 * @return 0, or -EIO
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_set_bus_master(struct mr_pci *pci, bool on);

/**
 * Map a BAR; mapping it again returns the same mapping. A hole in it (the MSI-X
 * table, on kernels that reserve it) reads as all ones.
 *
 * @param idx  0 to 5
 *
 * @return 0, or
 *   -EINVAL   no such BAR, or it is empty
 *   -ENOTSUP  it has I/O ports, or the kernel does not allow mapping it
 *   -ENOMEM   no address range
 *
 * Owner: @p pci, until mr_pci_close(). Thread: as mr_pci_open().
 */
MR_API int mr_pci_map_bar(struct mr_pci *pci, uint32_t idx,
			  struct mr_bar *ret_bar,
			  struct mr_reason *reterr_reason);

/**
 * Poll a register until it has a value, for little more than @p timeout_us.
 *
 * @param mask   bits to compare
 * @param value  what they should be
 *
 * @return 0, -ETIMEDOUT, or -ENODEV: it read all ones, the device is gone
 *
 * Thread: any.
 */
MR_API int mr_pci_wait32(struct mr_pci *pci, const struct mr_bar *bar,
			 uint64_t offset, uint32_t mask, uint32_t value,
			 uint32_t timeout_us);

/**
 * The address that the device uses for address 0 of the region. Address A is at
 * this plus A, in present and future segments: a new segment is mapped before
 * its pages are handed out.
 *
 * @return an IOVA; it never changes
 *
 * Thread: any.
 */
MR_API uint64_t mr_pci_region_iova(const struct mr_pci *pci);

/** Memory outside the region that a device and its driver share. */
struct mr_dma {
	void *memory;
	uint64_t iova;
	uint64_t n_bytes;
};

/**
 * Allocate memory for rings: zeroed, 4 KiB-aligned for CPU and device, not
 * inherited by forked children.
 *
 * @param n_bytes  rounded up to 4 KiB
 *
 * @return 0, -ENOMEM with the limit to raise, -ENOSPC: no IOVA, or -EIO
 *
 * Owner:  the caller, until mr_pci_dma_free() or mr_pci_close().
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_dma_alloc(struct mr_pci *pci, uint64_t n_bytes,
			    struct mr_dma *ret_dma,
			    struct mr_reason *reterr_reason);

/**
 * Free it and zero @p dma; memory NULL is allowed. Owner: nobody.
 * Thread: as mr_pci_open().
 */
MR_API void mr_pci_dma_free(struct mr_pci *pci, struct mr_dma *dma);

/**
 * Receive interrupts as eventfds, non-blocking and CLOEXEC. They replace those
 * of the previous call.
 *
 * @param      n        vectors wanted, 1 to 2048; 0: none
 * @param[out] ret_fds  room for @p n
 *
 * @return vectors of MSI-X, 1 to @p n, or one of MSI; or
 *   -EINVAL   n is more than 2048; the previous vectors stay, but after any
 *             other error there are none
 *   -ENOTSUP  the device has neither
 *   -EMFILE   no more fds
 *   -EIO      the kernel refuses
 *
 * Owner:  @p pci, of the fds; the next call or mr_pci_close() closes them.
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_set_irqs(struct mr_pci *pci, uint32_t n, int *ret_fds,
			   struct mr_reason *reterr_reason);

/** Bits of mr_pci_events(). */
enum {
	MR_PCI_EVENT_REQ = 1, /**< it will be unplugged: close it */
	MR_PCI_EVENT_ERR = 2, /**< a bus error: do not use it, close it; opening
			       *   it again resets it */
};

/**
 * @return an fd, readable while there are events; -1: none. Owner: @p pci.
 * Thread: any.
 */
MR_API int mr_pci_event_fd(const struct mr_pci *pci);

/** Take the events. @return MR_PCI_EVENT_* since the last call. Thread: any. */
MR_API uint32_t mr_pci_events(struct mr_pci *pci);

/** Usable IOVAs, both ends included. */
struct mr_pci_range {
	uint64_t first;
	uint64_t last;
};

/**
 * A device backend: the kernel's access modes, or a model in a test. Calls
 * return 0 or -errno unless stated otherwise.
 */
struct mr_pci_backend {
	uint32_t size;    /**< sizeof(struct mr_pci_backend) */
	uint32_t reserved;
	const char *mode; /**< for mr_pci_mode() */
	int (*open)(void *device,
		    struct mr_reason *reterr_reason); /**< or NULL */
	void (*close)(void *device);                  /**< or NULL */
	/** These two also before open(). */
	int (*read_config)(void *device, uint32_t offset, void *ret,
			   uint32_t n_bytes);
	int (*write_config)(void *device, uint32_t offset, const void *bytes,
			    uint32_t n_bytes);
	/** Sets all of ret_bar but idx. */
	int (*map_bar)(void *device, uint32_t idx, struct mr_bar *ret_bar,
		       struct mr_reason *reterr_reason);
	int (*map_dma)(void *device, void *memory, uint64_t iova,
		       uint64_t n_bytes, struct mr_reason *reterr_reason);
	/** Unmaps exactly what map_dma() mapped. */
	int (*unmap_dma)(void *device, uint64_t iova, uint64_t n_bytes);
	/**
	 * The device adds 1 to its eventfd. n is 0: turn off. Returns 0, or how
	 * many (fewer than n) are available. NULL: no interrupts.
	 */
	int (*set_irqs)(void *device, uint32_t n, const int *fds);
	/** Sets eventfds, -1: turn off. NULL: no events. */
	int (*set_events)(void *device, int req_fd, int err_fd);
	/** Ascending. Returns how many. NULL: all of 48 bits. */
	int (*iova_ranges)(void *device, struct mr_pci_range *ret, uint32_t n);
};

/**
 * Make "vfio:NAME" of this context a device in software, with the ids in its
 * config space.
 *
 * @param name  at most 31 characters
 *
 * @return 0, -EINVAL: the name, the size, or a call is missing; -EEXIST;
 *         -ENOSPC (16)
 *
 * Owner:  the caller, of all three, which must outlive the context's ports.
 * Thread: as mr_ctx_add_driver().
 */
MR_API int mr_ctx_add_pci_device(struct mr_ctx *ctx, const char *name,
				 const struct mr_pci_backend *backend,
				 void *device);

MR_END_DECLS

#endif
