/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_PCI_H
#define MILLRACE_PCI_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>
#include <millrace/pci_bar.h>
#include <millrace/pci_info.h>
#include <millrace/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * PCI devices, for authors of drivers that own one: config space, registers,
 * DMA, interrupts. Behind it is the kernel's vfio, or a device in software,
 * which drivers cannot tell apart.
 */

struct mr_pci;

/** How to reach the device. */
enum mr_pci_access {
	MR_PCI_AUTO = 0,    /**< IOMMUFD if the kernel has it, else GROUP */
	MR_PCI_IOMMUFD = 1, /**< /dev/vfio/devices/vfioX and /dev/iommu */
	MR_PCI_GROUP = 2,   /**< /dev/vfio/N and /dev/vfio/vfio */
	MR_PCI_NOIOMMU = 3, /**< the device reaches all memory: a warning */
};

struct mr_pci_config {
	uint32_t size;            /**< sizeof(struct mr_pci_config) */
	uint32_t access;          /**< enum mr_pci_access */
	struct mr_region *region; /**< the device reaches it; NULL: none */
	const char *holder;       /**< the port's name; copied */
};

/**
 * Take a device: memory decoding on, bus mastering off, the region mapped.
 * The kernel resets a function when vfio opens it, if the function can.
 *
 * @param      bdf      as mr_pci_info()
 * @param      config   copied
 * @param[out] ret_pci  set on success
 *
 * @return 0, or, with nothing left open or mapped,
 *   -EINVAL   a value of @p config
 *   -ENODEV   there is no such device, or it is not bound to vfio-pci
 *   -EBUSY    another port or process has it, or its group is not viable
 *   -EPERM, -EACCES  the user may not open the nodes
 *   -ENOTSUP  no IOMMU, or this kernel has not that access; or the region has a
 *             pool of MR_SAFETY_GUARD
 *   -ENOMEM   no memory, or less may be locked than the region has
 *   -ENOSPC   no IOVA range is long enough, or the region has 64 holders
 *   -EIO      the device or the kernel failed in another way
 *
 * Owner: the caller, of the device; the region stays pinned until it is closed.
 * Thread: as mr_port_open().
 */
MR_API int mr_pci_open(struct mr_ctx *ctx, const char *bdf,
		       const struct mr_pci_config *config,
		       struct mr_pci **ret_pci,
		       struct mr_reason *reterr_reason);

/**
 * Give the device back; NULL is allowed. First bus mastering goes off, then
 * interrupts, mappings of the region, BARs, ring memory and fds go.
 *
 * Owner: nobody.
 * Thread: as mr_pci_open().
 */
MR_API void mr_pci_close(struct mr_pci *pci);

/** @return what was opened. Owner: @p pci. Thread: any. */
MR_API const struct mr_pci_info *mr_pci_device(const struct mr_pci *pci);

/**
 * How it was opened, for mr_port_info.mode.
 *
 * @return "iommufd", "type1v2", "type1", "noiommu" or what a backend calls
 *         itself, a constant string
 *
 * Thread: any.
 */
MR_API const char *mr_pci_mode(const struct mr_pci *pci);

/**
 * Read config space.
 *
 * @param offset   in bytes, below 4096
 * @param n_bytes  any; 1, 2 and 4 at a multiple of themselves are one access
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
 * Find a capability. A list that loops, or leaves config space, ends.
 *
 * @param id     PCI_CAP_ID_*
 * @param after  0: the first one of this id; or an offset that this function
 *               gave: the next one behind it
 *
 * @return 0, -ENOENT behind the last one, or -EIO
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_find_cap(struct mr_pci *pci, uint8_t id, uint32_t after,
			   uint32_t *ret_offset);

/**
 * Let the device begin transfers of its own, interrupts included, or stop it.
 * On only while all of its rings are valid.
 *
 * @return 0, or -EIO
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_set_bus_master(struct mr_pci *pci, int on);

/**
 * Reset the function. Bus mastering is off afterwards, interrupts and events
 * are armed again, mappings stay.
 *
 * @return 0, -ENOTSUP if it cannot be reset alone, or -EIO
 *
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_reset(struct mr_pci *pci, struct mr_reason *reterr_reason);

/**
 * Map a BAR; mapping it again gives the same one. Where it has a hole (the
 * MSI-X table on kernels that keep it), the hole reads as all ones.
 *
 * @param idx  0 to 5
 *
 * @return 0, or
 *   -EINVAL   no such BAR, or it is empty
 *   -ENOTSUP  it is of I/O ports, or the kernel does not let it be mapped
 *   -ENOMEM   no address range
 *
 * Owner: @p pci; it goes with mr_pci_close().
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_map_bar(struct mr_pci *pci, uint32_t idx,
			  struct mr_bar *ret_bar,
			  struct mr_reason *reterr_reason);

/**
 * Read a register until it has a value, or not much longer than @p timeout_us.
 *
 * @param mask   bits to look at
 * @param value  what they are to be
 *
 * @return 0, -ETIMEDOUT, or -ENODEV: it read all ones, the device is gone
 *
 * Thread: any.
 */
MR_API int mr_pci_wait32(struct mr_pci *pci, const struct mr_bar *bar,
			 uint64_t offset, uint32_t mask, uint32_t value,
			 uint32_t timeout_us);

/**
 * The address that the device uses for address 0 of the region; address A is
 * at this plus A, in segments of today and later. A later segment is mapped
 * before pages of it are given out.
 *
 * @return an IOVA
 *
 * Thread: any; it never changes.
 */
MR_API uint64_t mr_pci_region_iova(const struct mr_pci *pci);

/** Memory that a device and its driver share, beside the region. */
struct mr_dma {
	void *memory;
	uint64_t iova;
	uint64_t n_bytes;
};

/**
 * Memory for rings: zeroed, at a multiple of 4 KiB here and there, in no
 * forked child.
 *
 * @param n_bytes  rounded up to 4 KiB
 *
 * @return 0, -ENOMEM with what has to be raised, -ENOSPC: no IOVA, or -EIO
 *
 * Owner: the caller, until mr_pci_dma_free() or mr_pci_close().
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_dma_alloc(struct mr_pci *pci, uint64_t n_bytes,
			    struct mr_dma *ret_dma,
			    struct mr_reason *reterr_reason);

/** Give it back, and zero @p dma; memory NULL is allowed. Owner: nobody.
 * Thread: as mr_pci_open(). */
MR_API void mr_pci_dma_free(struct mr_pci *pci, struct mr_dma *dma);

/**
 * Have interrupts as fds that become readable (eventfd): non-blocking, CLOEXEC.
 * They replace those of a call before.
 *
 * @param      n        vectors wanted, 1 to 2048; 0: none from now on
 * @param[out] ret_fds  room for @p n
 *
 * @return vectors got, 1 to @p n: of MSI-X, else one of MSI; or
 *   -EINVAL   n is more than 2048; those of a call before stay, while behind
 *             any other error there are none
 *   -ENOTSUP  the device has neither
 *   -EMFILE   no more fds
 *   -EIO      the kernel refuses
 *
 * Owner: @p pci, of the fds; they are closed with the next call or the device.
 * Thread: as mr_pci_open().
 */
MR_API int mr_pci_set_irqs(struct mr_pci *pci, uint32_t n, int *ret_fds,
			   struct mr_reason *reterr_reason);

/** Bits of mr_pci_events(). */
enum {
	MR_PCI_EVENT_REQ = 1, /**< it is to be unplugged: close it */
	MR_PCI_EVENT_ERR = 2, /**< it had an error on the bus: use it no more,
			       * close it; opening it again resets it */
};

/** @return an fd, readable while there are events; -1: none. Owner: @p pci.
 * Thread: any. */
MR_API int mr_pci_event_fd(const struct mr_pci *pci);

/** Take the events. @return MR_PCI_EVENT_* since the last call. Thread: any. */
MR_API uint32_t mr_pci_events(struct mr_pci *pci);

/** IOVAs that may be used, both ends included. */
struct mr_pci_range {
	uint64_t first;
	uint64_t last;
};

/**
 * What is behind a device: a model in a test, say; the kernel's ways are of
 * this form too. Calls return 0 or -errno where nothing else is said.
 */
struct mr_pci_backend {
	const char *mode; /**< for mr_pci_mode() */
	int (*open)(void *device,
		    struct mr_reason *reterr_reason); /**< or NULL */
	void (*close)(void *device);                  /**< or NULL */
	/** These two before open(), too. */
	int (*read_config)(void *device, uint32_t offset, void *ret,
			   uint32_t n_bytes);
	int (*write_config)(void *device, uint32_t offset, const void *bytes,
			    uint32_t n_bytes);
	/** All of ret_bar but idx. */
	int (*map_bar)(void *device, uint32_t idx, struct mr_bar *ret_bar,
		       struct mr_reason *reterr_reason);
	int (*map_dma)(void *device, void *memory, uint64_t iova,
		       uint64_t n_bytes, struct mr_reason *reterr_reason);
	/** What map_dma() mapped, in the same pieces. */
	int (*unmap_dma)(void *device, uint64_t iova, uint64_t n_bytes);
	/** The device adds 1 to its eventfd. n is 0: no more. Returns 0, or how
	 *  many (fewer than n) it could have had; or NULL: it has none. */
	int (*set_irqs)(void *device, uint32_t n, const int *fds);
	/** Eventfds, -1: no more; or NULL: it has none. */
	int (*set_events)(void *device, int req_fd, int err_fd);
	int (*reset)(void *device); /**< or NULL */
	/** Ascending. Returns how many; or NULL: all of 48 bits. */
	int (*iova_ranges)(void *device, struct mr_pci_range *ret, uint32_t n);
};

/**
 * Make "vfio:NAME" of this context a device in software. Its ids are read from
 * its config space.
 *
 * @param name  31 characters at most
 *
 * @return 0, -EINVAL: the name, or a call is missing; -EEXIST, -ENOSPC (16)
 *
 * Owner: the caller, of all three; they outlive the context's ports.
 * Thread: as mr_ctx_add_driver().
 */
MR_API int mr_ctx_add_pci_device(struct mr_ctx *ctx, const char *name,
				 const struct mr_pci_backend *backend,
				 void *device);

#ifdef __cplusplus
}
#endif

#endif
