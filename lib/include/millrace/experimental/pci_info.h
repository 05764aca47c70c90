/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_PCI_INFO_H
#define MILLRACE_EXPERIMENTAL_PCI_INFO_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * Which PCI devices exist, and who uses them. Opens none of them.
 */

/** A PCI function, as sysfs describes it. */
struct mr_pci_info {
	uint32_t size; /**< sizeof(struct mr_pci_info) */
	char bdf[32];  /**< "0000:03:00.0", or a software device */
	uint16_t vendor_id;
	uint16_t device_id;
	uint16_t subsystem_vendor_id;
	uint16_t subsystem_id;
	uint32_t class_code;    /**< 24 bits; network: 0x02xxxx */
	int32_t numa_node;      /**< -1: unknown */
	int32_t iommu_group;    /**< -1: no IOMMU, or it is disabled */
	uint32_t n_vfs;         /**< enabled virtual functions */
	char kernel_driver[32]; /**< "vfio-pci", "igb"; "": none bound */
	char netdev[16];        /**< first interface of kernel_driver, or "" */
	char vfio_cdev[32];     /**< "vfio0": /dev/vfio/devices/vfio0; or "" */
};

/**
 * Describe one function.
 *
 * @param         bdf   "0000:03:00.0", "03:00.0", or the name of a software
 *                      device of @p ctx, which is preferred to one in sysfs
 * @param[in,out] info  size set by the caller
 *
 * @return 0, or
 *   -EINVAL  info->size is 0
 *   -ENODEV  there is no such function
 *   -EIO     its ids cannot be read
 *
 * Owner:  the caller, of a copy.
 * Thread: any; not while software devices are being added.
 * Cost:   some reads of sysfs.
 */
MR_API int mr_pci_info(struct mr_ctx *ctx, const char *bdf,
		       struct mr_pci_info *info,
		       struct mr_reason *reterr_reason);

/** Who uses a function in sysfs. */
enum mr_pci_use {
	/** Nobody who does DMA: no driver, pci-stub, or a bridge. */
	MR_PCI_USE_NONE = 0,
	MR_PCI_USE_VFIO = 1,   /**< vfio-pci, or a driver built on it */
	MR_PCI_USE_KERNEL = 2, /**< another driver: its group is not viable */
};

/**
 * Who uses a function, by the kernel's rule for IOMMU groups: a program can
 * open a function only while the kernel uses none of its group.
 *
 * @param info  from mr_pci_info()
 *
 * @return enum mr_pci_use
 *
 * Thread: any. Cost: at most one read of sysfs.
 */
MR_API enum mr_pci_use mr_pci_use(const struct mr_ctx *ctx,
				  const struct mr_pci_info *info);

/**
 * The driver of @p ctx that "vfio:BDF" would select, by the device's ids.
 *
 * @return its name, a constant string; NULL: there is none
 *
 * Thread: any; not while drivers are being added.
 */
MR_API const char *mr_pci_driver_name(const struct mr_ctx *ctx,
				      const struct mr_pci_info *info);

MR_END_DECLS

#endif
