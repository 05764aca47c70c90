/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts over a model of a NIC, for callgrind to count: what our driver does,
 * and nothing of what the model does.
 *
 *     nic_cost NIC rx|tx BURST N_FRAMES
 *
 * Prints "frames N". What is to be counted lies in measured_rx() and
 * measured_tx(); a register write in there goes through trapped(), which is to
 * be left out: on hardware it is one store. The model runs between the bursts
 * alone (is_lazy). test/bench/nic_bench.py runs it.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/millrace.h>
#include <millrace/pci.h>

#include "measured.h"
#include "model/intel.h"
#include "model/virtio.h"

enum { FRAME_BYTES = 60, MAX_BURST = 64, WIRE_FRAMES = 256, PAGES = 8192 };

struct fixture {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct mr_port *port;
	const struct nic *nic;
	struct model *m;
	struct model_wire *wire;
	uint8_t *base;
};

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

static struct model *create_82576(void)
{
	return &intel_create(&chip_82576, mac)->m;
}

static struct model *create_82574l(void)
{
	return &intel_create(&chip_82574l, mac)->m;
}

static void destroy_intel(struct model *m)
{
	intel_destroy((struct intel *)m);
}

static struct model *create_virtio(void)
{
	return vnet_model(vnet_create(&(struct vnet_config){ .n_pairs = 1 }));
}

static void destroy_virtio(struct model *m)
{
	vnet_destroy(vnet_of(m));
}

/* A NIC, and how its port is opened. */
static const struct nic {
	const char *name, *options;
	struct model *(*create)(void);
	void (*destroy)(struct model *m);
} nics[] = {
	{ "igb", "", create_82576, destroy_intel },
	{ "e1000e", "", create_82574l, destroy_intel },
	{ "virtio-split", ",packed=off,in-order=off", create_virtio,
	  destroy_virtio },
	{ "virtio-split-in-order", ",packed=off,in-order=on", create_virtio,
	  destroy_virtio },
	{ "virtio-packed", ",packed=on,in-order=off", create_virtio,
	  destroy_virtio },
	{ "virtio-packed-in-order", ",packed=on,in-order=on", create_virtio,
	  destroy_virtio },
};

static const struct nic *find_nic(const char *name)
{
	for (size_t i = 0; i < sizeof(nics) / sizeof(nics[0]); i++)
		if (strcmp(nics[i].name, name) == 0)
			return &nics[i];
	errx(2, "%s: no such NIC", name);
}

/* Not inlined, under its name: callgrind leaves it out by it. */
__attribute__((noinline)) void trapped(struct model *m, uint32_t bar,
				       uint64_t offset, uint32_t n_bytes,
				       uint64_t value);

void trapped(struct model *m, uint32_t bar, uint64_t offset, uint32_t n_bytes,
	     uint64_t value)
{
	model_write(m, bar, offset, n_bytes, value);
}

/* Whether a burst runs; outside of one trapped() would turn counting on. */
static bool is_measured;

static uint64_t read_bar(void *device, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes)
{
	return model_read(device, bar, offset, n_bytes);
}

static void write_bar(void *device, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value)
{
	if (is_measured)
		trapped(device, bar, offset, n_bytes, value);
	else
		model_write(device, bar, offset, n_bytes, value);
}

static int map_bar(void *device, uint32_t idx, struct mr_bar *ret_bar,
		   struct mr_reason *reterr_reason)
{
	static const struct mr_bar_ops ops = { .read = read_bar,
					       .write = write_bar };
	const int err =
		model_backend()->map_bar(device, idx, ret_bar, reterr_reason);

	ret_bar->ops = &ops;
	return err;
}

static void wait_for_link(struct fixture *fixture)
{
	struct mr_link link = { .is_up = 0 };

	for (int i = 0; i < 1000 && !link.is_up; i++) {
		model_step(fixture->m);
		mr_port_poll(fixture->port);
		mr_port_link(fixture->port, &link);
	}
	if (!link.is_up)
		errx(1, "no link");
}

static void open_fixture(struct fixture *fixture, const char *name)
{
	static struct mr_pci_backend backend;
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};
	struct mr_pool_config pool_config = { .size = sizeof(pool_config),
					      .n_pages = PAGES };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why;
	char spec[64];

	fixture->nic = find_nic(name);
	fixture->m = fixture->nic->create();
	if (fixture->m == NULL)
		errx(1, "no memory");
	fixture->wire = model_wire_create(WIRE_FRAMES);
	if (fixture->wire == NULL)
		errx(1, "no wire");
	model_wire_attach(fixture->wire, 0, fixture->m);
	backend = *model_backend();
	backend.map_bar = map_bar;
	if (mr_ctx_create(NULL, &fixture->ctx, &why) < 0 ||
	    mr_ctx_add_pci_device(fixture->ctx, "model", &backend, fixture->m) <
		    0 ||
	    mr_region_create(fixture->ctx, &region_config, &fixture->region,
			     &why) < 0)
		errx(1, "context or region");
	pool_config.region = fixture->region;
	if (mr_pool_create(fixture->ctx, &pool_config, &fixture->pool, &why) <
		    0 ||
	    mr_cache_create(fixture->pool, &fixture->cache, &why) < 0)
		errx(1, "%s", why.text);
	config.pool = fixture->pool;
	snprintf(spec, sizeof(spec), "vfio:model,promisc%s",
		 fixture->nic->options);
	if (mr_port_open(fixture->ctx, spec, &config, &fixture->port, &why) < 0)
		errx(1, "%s", why.text);
	fixture->base = mr_region_base(fixture->region);
	wait_for_link(fixture);
	fixture->m->is_lazy = true;
}

static void close_rig(struct fixture *fixture)
{
	mr_port_close(fixture->port);
	if (model_violations(fixture->m)[0] != '\0')
		errx(1, "%s", model_violations(fixture->m));
	mr_cache_destroy(fixture->cache);
	mr_pool_destroy(fixture->pool, NULL);
	mr_region_destroy(fixture->region, NULL);
	mr_ctx_destroy(fixture->ctx);
	fixture->nic->destroy(fixture->m);
	model_wire_destroy(fixture->wire);
}

/* A frame that a NIC receives, and that our driver says no more about. */
static void fill(uint8_t *bytes)
{
	memset(bytes, 0, FRAME_BYTES);
	memcpy(bytes, mac, 6);
	bytes[12] = 0x88;
	bytes[13] = 0xb5;
}

static uint64_t receive(struct fixture *fixture, uint32_t burst,
			uint64_t n_frames)
{
	struct mr_rxq *rxq = mr_port_rxq(fixture->port, 0);
	struct mr_frame frames[MAX_BURST];
	uint8_t bytes[FRAME_BYTES];
	uint64_t n_done = 0;
	uint32_t n;

	fill(bytes);
	while (n_done < n_frames) {
		for (uint32_t i = 0; i < burst; i++)
			if (!model_wire_send(fixture->wire, 1, bytes,
					     FRAME_BYTES))
				errx(1, "the wire is full");
		model_step(fixture->m);
		is_measured = true;
		n = measured_rx(rxq, fixture->cache, frames, burst);
		is_measured = false;
		if (n != burst)
			errx(1, "%u of %u frames received", n, burst);
		mr_frame_free_bulk(fixture->cache, frames, n);
		n_done += n;
	}
	return n_done;
}

static void make_frames(struct fixture *fixture, struct mr_frame *frames,
			uint32_t n)
{
	uint64_t addrs[MAX_BURST];

	if (mr_frag_alloc_bulk(fixture->cache, addrs, n, 4096) != n)
		errx(1, "the pool is empty");
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = (struct mr_frame){ .addr = addrs[i] + 128,
					       .len = FRAME_BYTES };
		fill(fixture->base + frames[i].addr);
	}
}

static uint64_t transmit(struct fixture *fixture, uint32_t burst,
			 uint64_t n_frames)
{
	struct mr_txq *txq = mr_port_txq(fixture->port, 0);
	struct mr_frame frames[MAX_BURST];
	uint8_t bytes[FRAME_BYTES];
	uint64_t n_done = 0;
	uint32_t n;

	while (n_done < n_frames) {
		make_frames(fixture, frames, burst);
		is_measured = true;
		n = measured_tx(txq, fixture->cache, frames, burst);
		is_measured = false;
		if (n != burst)
			errx(1, "%u of %u frames sent", n, burst);
		model_step(fixture->m);
		while (model_wire_receive(fixture->wire, 1, bytes,
					  FRAME_BYTES) > 0)
			;
		n_done += n;
	}
	return n_done;
}

int main(int argc, char **argv)
{
	const bool is_tx = argc == 5 && strcmp(argv[2], "tx") == 0;
	const unsigned long burst = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	const uint64_t n = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;
	struct fixture fixture = { .port = NULL };

	if (burst < 1 || burst > MAX_BURST || n == 0 ||
	    (!is_tx && strcmp(argv[2], "rx") != 0))
		errx(2, "usage: %s NIC rx|tx BURST N_FRAMES", argv[0]);
	open_fixture(&fixture, argv[1]);
	printf("frames %" PRIu64 "\n",
	       is_tx ? transmit(&fixture, (uint32_t)burst, n) :
		       receive(&fixture, (uint32_t)burst, n));
	close_rig(&fixture);
	return 0;
}
