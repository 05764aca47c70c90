/* SPDX-License-Identifier: BSD-3-Clause */
/* A model behind lib/pci: struct mr_pci_backend, call by call. */
#include <errno.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/pci.h>

#include "device.h"

static int open_model(void *device, struct mr_reason *reterr_reason)
{
	const int err = model_open(device);

	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "the model is in use by another port");
	return 0;
}

static void close_model(void *device)
{
	model_close(device);
}

static int read_config(void *device, uint32_t offset, void *ret,
		       uint32_t n_bytes)
{
	return model_read_config(device, offset, ret, n_bytes);
}

static int write_config(void *device, uint32_t offset, const void *bytes,
			uint32_t n_bytes)
{
	return model_write_config(device, offset, bytes, n_bytes);
}

static uint64_t read_bar(void *device, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes)
{
	return model_read(device, bar, offset, n_bytes);
}

static void write_bar(void *device, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value)
{
	model_write(device, bar, offset, n_bytes, value);
}

static const struct mr_bar_ops bar_ops = { .read = read_bar,
					   .write = write_bar };

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

static int unmap_dma(void *device, uint64_t iova, uint64_t n_bytes)
{
	return model_unmap_dma(device, iova, n_bytes);
}

static int set_irqs(void *device, uint32_t n, const int *fds)
{
	return model_set_irqs(device, n, fds);
}

static int set_events(void *device, int req_fd, int err_fd)
{
	return model_set_events(device, req_fd, err_fd);
}

static int reset(void *device)
{
	return model_reset(device);
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
		.mode = "software",
		.open = open_model,
		.close = close_model,
		.read_config = read_config,
		.write_config = write_config,
		.map_bar = map_bar,
		.map_dma = map_dma,
		.unmap_dma = unmap_dma,
		.set_irqs = set_irqs,
		.set_events = set_events,
		.reset = reset,
		.iova_ranges = iova_ranges,
	};

	return &backend;
}
