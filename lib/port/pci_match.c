/* SPDX-License-Identifier: BSD-3-Clause */
/* From a PCI device to the driver that drives it, by its ids. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <millrace/pci_info.h>

#include "base/base.h"
#include "port/pci_match.h"

static bool drives(const struct mr_driver *driver,
		   const struct mr_pci_info *info)
{
	const struct mr_pci_id *id = driver->pci_ids;

	while (id->vendor_id != 0 && (id->vendor_id != info->vendor_id ||
				      id->device_id != info->device_id))
		id++;
	return id->vendor_id != 0;
}

static const struct mr_driver *find(const struct mr_ctx *ctx,
				    const struct mr_pci_info *info)
{
	for (uint32_t i = 0; i < ctx->n_drivers; i++)
		if (ctx->drivers[i]->pci_ids != NULL &&
		    drives(ctx->drivers[i], info))
			return ctx->drivers[i];
	return NULL;
}

const char *mr_pci_driver_name(const struct mr_ctx *ctx,
			       const struct mr_pci_info *info)
{
	const struct mr_driver *driver = find(ctx, info);

	return driver != NULL ? driver->name : NULL;
}

int mri_pci_match(struct mr_ctx *ctx, const char *bdf,
		  const struct mr_driver **ret_driver,
		  struct mr_reason *reterr_reason)
{
	struct mr_pci_info info = { .size = sizeof(info) };
	char known[200] = "";
	const int err = mr_pci_info(ctx, bdf, &info, reterr_reason);

	if (err < 0)
		return err;
	*ret_driver = find(ctx, &info);
	if (*ret_driver != NULL)
		return 0;
	for (uint32_t i = 0; i < ctx->n_drivers; i++) {
		const size_t n = strlen(known);

		if (ctx->drivers[i]->pci_ids != NULL)
			snprintf(known + n, sizeof(known) - n, " %s",
				 ctx->drivers[i]->name);
	}
	return mr_fail(reterr_reason, -ENODEV,
		       "vfio:%s is %04x:%04x, which no driver of this build "
		       "drives; it has:%s",
		       info.bdf, info.vendor_id, info.device_id,
		       known[0] != '\0' ? known : " none for PCI devices");
}
