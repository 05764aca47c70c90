/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our NIC drivers over their models (measured.h). Only the driver's
 * instructions count. The model works between the bursts (is_lazy). A register
 * write calls trapped(), which nic_bench.py leaves out: on hardware it is a
 * store.
 */
#include <err.h>
#include <string.h>

#include "measured.h"
#include "model/devices.h"

enum { PAGES = 8192 };

static struct harness nic;

/* Not inlined, so that callgrind can leave it out by name. */
__attribute__((noinline)) void trapped(struct model *m, uint32_t bar,
				       uint64_t offset, uint32_t n_bytes,
				       uint64_t value);

void trapped(struct model *m, uint32_t bar, uint64_t offset, uint32_t n_bytes,
	     uint64_t value)
{
	model_write(m, bar, offset, n_bytes, value);
}

/* Set while a burst runs: trapped() before that would start the counting. */
static bool is_open;

static uint64_t read_bar(void *opaque, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes)
{
	return model_read(opaque, bar, offset, n_bytes);
}

static void write_bar(void *opaque, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value)
{
	if (is_open)
		trapped(opaque, bar, offset, n_bytes, value);
	else
		model_write(opaque, bar, offset, n_bytes, value);
}

static int map_bar(void *opaque, uint32_t idx, struct mr_bar *ret_bar,
		   struct mr_reason *reterr_reason)
{
	static const struct mr_bar_ops ops = { .read = read_bar,
					       .write = write_bar };
	const int err =
		model_backend()->map_bar(opaque, idx, ret_bar, reterr_reason);

	ret_bar->ops = &ops;
	return err;
}

static const struct device *find_device(const char *name)
{
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (strcmp(devices[i].name, name) == 0)
			return &devices[i];
	errx(2, "%s: no such NIC", name);
}

void port_open(const char *name, struct measured_port *ret)
{
	static const struct vnet_config config = { .n_pairs = 1 };
	static const struct mr_pool_config pool = { .n_pages = PAGES };
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	static struct mr_pci_backend backend;
	char options[64] = "promisc";
	struct mr_reason why;

	device = find_device(name);
	harness_begin(&nic,
		      device->chip != NULL ?
			      &intel_create(device->chip, mac)->m :
			      vnet_model(vnet_create(&config)),
		      pool, NULL);
	backend = *model_backend();
	backend.map_bar = map_bar;
	if (device->ring[0] != '\0')
		snprintf(options, sizeof(options), "promisc,%s", device->ring);
	if (mr_ctx_add_pci_device(nic.ctx, "measured", &backend, nic.m) < 0 ||
	    harness_try_open_as(&nic, "measured", options, &why) < 0)
		errx(1, "%s", why.text);
	for (int i = 0; i < 1000 && !harness_is_up(&nic); i++) {
		model_step(nic.m);
		mr_port_poll(nic.port);
	}
	nic.m->is_lazy = is_open = true;
	*ret = (struct measured_port){ nic.rxq, nic.txq, nic.cache,
				       false };
}

void port_close(void)
{
	is_open = false;
	harness_close(&nic);
}

void port_inject(uint32_t n)
{
	harness_inject(&nic, n);
	model_step(nic.m);
}

void port_make(struct mr_frame *frames, uint32_t n)
{
	static const uint8_t bytes[MEASURED_BYTES] = { 2, 0, 0, 0, 0, 9, 2 };

	for (uint32_t i = 0; i < n; i++)
		harness_frame(&nic, bytes, sizeof(bytes), &frames[i]);
}

void port_drain(void)
{
	model_step(nic.m);
	harness_collect(&nic);
}
