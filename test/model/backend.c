/* SPDX-License-Identifier: BSD-3-Clause */
/* A model behind lib/pci: what struct mr_pci_backend has besides device.c. */
#include <errno.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/experimental/pci.h>

#include "device.h"

static int open_model(void *device, struct mr_reason *reterr_reason)
{
	const int err = model_open(device);

	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "the model is in use by another port");
	return 0;
}

static const struct mr_bar_ops bar_ops = { .read = model_read,
					   .write = model_write };

static int map_bar(void *device, uint32_t idx, struct mr_bar *ret_bar,
		   struct mr_reason *reterr_reason)
{
	const struct model *m = device;

	if (idx >= MODEL_MAX_BARS || m->bar_bytes[idx] == 0)
		return mr_fail(reterr_reason, -EINVAL, "there is no BAR %u",
			       idx);
	*ret_bar = (struct mr_bar){ .n_bytes = m->bar_bytes[idx],
				    .ops = &bar_ops,
				    .device = device,
				    .idx = idx };
	return 0;
}

static int map_dma(void *device, void *memory, uint64_t iova, uint64_t n_bytes,
		   struct mr_reason *reterr_reason)
{
	const int err = model_map_dma(device, memory, iova, n_bytes);

	if (err < 0)
		return mr_fail(
			reterr_reason, err,
			"the model does not map %llu bytes at 0x%llx: %s",
			(unsigned long long)n_bytes, (unsigned long long)iova,
			strerror(-err));
	return 0;
}

static int iova_ranges(void *device, struct mr_pci_range *ret, uint32_t n)
{
	const struct model *m = device;

	for (uint32_t i = 0; i < m->n_ranges && i < n; i++)
		ret[i] = (struct mr_pci_range){ m->ranges[i].first,
						m->ranges[i].last };
	return (int)m->n_ranges;
}

const struct mr_pci_backend *model_backend(void)
{
	static const struct mr_pci_backend backend = {
		.size = sizeof(struct mr_pci_backend),
		.mode = "software",
		.open = open_model,
		.close = model_close,
		.read_config = model_read_config,
		.write_config = model_write_config,
		.map_bar = map_bar,
		.map_dma = map_dma,
		.unmap_dma = model_unmap_dma,
		.set_irqs = model_set_irqs,
		.set_events = model_set_events,
		.iova_ranges = iova_ranges,
	};

	return &backend;
}
