/* SPDX-License-Identifier: BSD-3-Clause */
/* Software devices, by their names in a context. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pci/pci.h"

const struct mri_soft_device *mri_soft_find(const struct mr_ctx *ctx,
					    const char *name)
{
	for (uint32_t i = 0; i < ctx->n_soft_devices; i++)
		if (strcmp(ctx->soft_devices[i].name, name) == 0)
			return &ctx->soft_devices[i];
	return NULL;
}

int mr_ctx_add_pci_device(struct mr_ctx *ctx, const char *name,
			  const struct mr_pci_backend *backend, void *device)
{
	struct mri_soft_device *soft;

	if (name[0] == '\0' || strlen(name) >= sizeof(soft->name) ||
	    backend->size != sizeof(*backend) || backend->mode == NULL ||
	    backend->read_config == NULL || backend->write_config == NULL ||
	    backend->map_bar == NULL || backend->map_dma == NULL ||
	    backend->unmap_dma == NULL)
		return -EINVAL;
	if (mri_soft_find(ctx, name) != NULL)
		return -EEXIST;
	if (ctx->n_soft_devices == MRI_MAX_SOFT_DEVICES)
		return -ENOSPC;
	soft = &ctx->soft_devices[ctx->n_soft_devices++];
	snprintf(soft->name, sizeof(soft->name), "%s", name);
	soft->backend = backend;
	soft->device = device;
	return 0;
}
