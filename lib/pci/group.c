/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What keeps a program from using an IOMMU group.
 *
 * Source: linux/drivers/vfio/vfio.c, vfio_dev_driver_allowed() of 5.15: no
 * driver, vfio's, pci-stub, or a bridge whatever drives it. Later kernels ask
 * each driver (driver_managed_dma), with the same result.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pci/pci.h"

enum {
	/* Config space: PCI Local Bus 3.0, 6.1 */
	HEADER_TYPE = 0x0e,
	HEADER_TYPE_MASK = 0x7f, /* top bit: multifunction */
	BRIDGE_HEADER = 1,
};

/* Vendor drivers are called mlx5_vfio_pci, hisi-acc-vfio-pci. */
static bool is_vfio(const char *driver)
{
	return strstr(driver, "vfio-pci") != NULL ||
	       strstr(driver, "vfio_pci") != NULL;
}

static bool is_bridge(const struct mr_ctx *ctx, const char *bdf)
{
	char path[MRI_PATH_BYTES];
	int type = EOF;
	FILE *file;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/config",
		 ctx->config.sysfs, bdf);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fseek(file, HEADER_TYPE, SEEK_SET) == 0)
		type = fgetc(file);
	(void)fclose(file);
	return type != EOF && (type & HEADER_TYPE_MASK) == BRIDGE_HEADER;
}

enum mr_pci_use mr_pci_use(const struct mr_ctx *ctx,
			   const struct mr_pci_info *info)
{
	const char *const driver = info->kernel_driver;

	if (is_vfio(driver))
		return MR_PCI_USE_VFIO;
	if (driver[0] == '\0' || strcmp(driver, "pci-stub") == 0 ||
	    is_bridge(ctx, info->bdf))
		return MR_PCI_USE_NONE;
	return MR_PCI_USE_KERNEL;
}
