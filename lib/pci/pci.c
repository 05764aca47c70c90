/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing PCI devices, with any backend. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pci/vfio.h"

static int check_config(const struct mr_pci_config *config,
			struct mr_pci_config *ret_config,
			struct mr_reason *reterr_reason)
{
	const int err = mri_copy_sized(ret_config, config, sizeof(*ret_config),
				       "mr_pci_config", reterr_reason);

	if (err < 0)
		return err;
	if (ret_config->access > MR_PCI_NOIOMMU)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_pci_config.access: no such value: %u",
			       ret_config->access);
	if (ret_config->holder == NULL)
		ret_config->holder = "a program";
	return 0;
}

/* It is already open in this context: name the holder. */
static int refuse_second(const struct mr_pci *pci,
			 struct mr_reason *reterr_reason)
{
	for (const struct mr_pci *p = pci->ctx->open_pcis; p != NULL;
	     p = p->next)
		if (strcmp(p->info.bdf, pci->info.bdf) == 0)
			return mr_fail(reterr_reason, -EBUSY,
				       "%s is in use by %s; close that first",
				       pci->info.bdf, p->holder);
	return 0;
}

/* Use a substitute for hardware, or the hardware. */
static int find_backend(struct mr_pci *pci, const struct mr_pci_config *config,
			struct mr_reason *reterr_reason)
{
	const struct mri_soft_device *soft =
		mri_soft_find(pci->ctx, pci->info.bdf);
	int err;

	if (soft != NULL) {
		pci->backend = soft->backend;
		pci->device = soft->device;
		pci->domain = soft->device;
		return 0;
	}
	err = mri_vfio_create(pci, config, &pci->vfio, reterr_reason);
	if (err < 0)
		return err;
	pci->backend = &pci->vfio->backend;
	pci->device = pci->vfio;
	pci->is_physical = pci->vfio->way == &mri_vfio_noiommu;
	return 0;
}

static int start_device(struct mr_pci *pci, const struct mr_pci_config *config,
			struct mr_reason *reterr_reason)
{
	int err = 0;

	if (pci->backend->open != NULL)
		err = pci->backend->open(pci->device, reterr_reason);
	if (err < 0)
		return err;
	if (pci->vfio != NULL)
		pci->domain = pci->vfio->container;
	err = mri_pci_quiesce(pci);
	if (err < 0)
		mr_fail(reterr_reason, err,
			"%s: its config space reads as all ones, or cannot be "
			"read: unplugged, or suspended?",
			pci->info.bdf);
	else
		err = mri_space_join(pci, config->region, reterr_reason);
	if (err < 0 && pci->backend->close != NULL)
		pci->backend->close(pci->device);
	return err;
}

int mr_pci_open(struct mr_ctx *ctx, const char *bdf,
		const struct mr_pci_config *config, struct mr_pci **ret_pci,
		struct mr_reason *reterr_reason)
{
	struct mr_pci_config c;
	struct mr_pci *pci;
	int err = check_config(config, &c, reterr_reason);

	if (err < 0)
		return err;
	pci = mr_alloc(ctx, 0, sizeof(*pci));
	if (pci == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a PCI device");
	pci->ctx = ctx;
	pci->info.size = sizeof(pci->info);
	pci->req_fd = pci->err_fd = pci->event_fd = -1;
	snprintf(pci->holder, sizeof(pci->holder), "%s", c.holder);
	err = mr_pci_info(ctx, bdf, &pci->info, reterr_reason);
	if (err == 0)
		err = refuse_second(pci, reterr_reason);
	if (err == 0)
		err = find_backend(pci, &c, reterr_reason);
	if (err == 0)
		err = start_device(pci, &c, reterr_reason);
	if (err < 0) {
		mr_free(ctx, pci->vfio);
		mr_free(ctx, pci);
		return err;
	}
	mri_pci_open_events(pci);
	pci->next = ctx->open_pcis;
	ctx->open_pcis = pci;
	*ret_pci = pci;
	return 0;
}

void mr_pci_close(struct mr_pci *pci)
{
	struct mr_pci **place;

	if (pci == NULL)
		return;
	/* A device that is gone does no DMA either. */
	(void)mr_pci_set_bus_master(pci, false);
	(void)mr_pci_set_irqs(pci, 0, NULL, NULL);
	mri_pci_close_events(pci);
	mri_dma_free_all(pci);
	mri_space_leave(pci);
	if (pci->backend->close != NULL)
		pci->backend->close(pci->device);
	place = &pci->ctx->open_pcis;
	while (*place != pci)
		place = &(*place)->next;
	*place = pci->next;
	mr_free(pci->ctx, pci->vfio);
	mr_free(pci->ctx, pci);
}

const struct mr_pci_info *mr_pci_device(const struct mr_pci *pci)
{
	return &pci->info;
}

const char *mr_pci_mode(const struct mr_pci *pci)
{
	return pci->backend->mode;
}
