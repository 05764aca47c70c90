/* SPDX-License-Identifier: BSD-3-Clause */
/* Information about a PCI function, from a software device or sysfs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pci/pci.h"

enum {
	/* Config space: PCI Local Bus 3.0, 6.1 */
	VENDOR = 0x00,
	REVISION_AND_CLASS = 0x08,
	SUBSYSTEM = 0x2c,
};

static int ask_soft(const struct mri_soft_device *soft,
		    struct mr_pci_info *info, struct mr_reason *reterr_reason)
{
	uint16_t ids[2] = { 0 }, subsystem[2] = { 0 };
	uint32_t class_code = 0;

	if (soft->backend->read_config(soft->device, VENDOR, ids, 4) < 0 ||
	    soft->backend->read_config(soft->device, REVISION_AND_CLASS,
				       &class_code, 4) < 0 ||
	    soft->backend->read_config(soft->device, SUBSYSTEM, subsystem, 4) <
		    0)
		return mr_fail(
			reterr_reason, -EIO,
			"%s: the software device does not report its IDs",
			soft->name);
	snprintf(info->bdf, sizeof(info->bdf), "%s", soft->name);
	info->vendor_id = ids[0];
	info->device_id = ids[1];
	info->subsystem_vendor_id = subsystem[0];
	info->subsystem_id = subsystem[1];
	info->class_code = class_code >> 8;
	info->numa_node = -1;
	info->iommu_group = -1;
	return 0;
}

static int fill_info(struct mr_pci_info *info, uint32_t n_bytes,
		     const struct mr_pci_info *known,
		     struct mr_reason *reterr_reason)
{
	info->size = n_bytes;
	if (mri_fill_sized(info, known, sizeof(*known)) == 0)
		return 0;
	return mr_fail(reterr_reason, -EINVAL,
		       "mr_pci_info.size is %u, must be "
		       "sizeof(struct mr_pci_info)",
		       n_bytes);
}

int mr_pci_info(struct mr_ctx *ctx, const char *bdf, struct mr_pci_info *info,
		struct mr_reason *reterr_reason)
{
	const struct mri_soft_device *soft = mri_soft_find(ctx, bdf);
	struct mr_pci_info known = { .size = sizeof(known) };
	const int err = soft != NULL ?
				ask_soft(soft, &known, reterr_reason) :
				mri_sysfs_info(ctx, bdf, &known, reterr_reason);

	return err == 0 ? fill_info(info, info->size, &known, reterr_reason) :
			  err;
}
