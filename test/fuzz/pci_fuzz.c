/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile device: its config space, the IOVAs that it says can be used, and
 * the interrupts that it says it has, are any bytes. lib/pci ends each walk,
 * gives no IOVA twice, and leaves nothing mapped.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <millrace/pci.h>
#include <millrace/pool.h>

#include "fuzz.h"

enum { CONFIG_BYTES = 256, MAX_MAPS = 32, MAX_DMAS = 8, MAX_RANGES = 4 };

/* Memory decoding, MSI-X of 8 vectors, two vendor capabilities; one range. */
#define HEAD "\x86\x80\xc9\x10\x00\x00\x10\x00\x01\x00\x00\x02"
#define SEED_CONFIG                                                            \
	HEAD "0123456789abcdef0123456789abcdef01234567"                        \
	     "\x40"                                                            \
	     "abcdefghijk"                                                     \
	     "\x11\x50\x07\x00"                                                \
	     "abcdefghijkl"                                                    \
	     "\x09\x60\x10\x01"                                                \
	     "abcdefghijkl"                                                    \
	     "\x09\x00\x10\x02"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(SEED_CONFIG),
	SEED(HEAD),
	{ NULL, 0 },
};

struct device {
	uint8_t config[CONFIG_BYTES];
	struct {
		uint64_t first, n_bytes; /* n_bytes 0: none */
	} maps[MAX_MAPS];
	struct mr_pci_range ranges[MAX_RANGES];
	uint32_t n_ranges;
	uint8_t vectors; /* that it says could be had */
};

static int read_config(void *device, uint32_t offset, void *ret,
		       uint32_t n_bytes)
{
	struct device *d = device;

	if (offset > CONFIG_BYTES || n_bytes > CONFIG_BYTES - offset)
		return -EIO;
	memcpy(ret, d->config + offset, n_bytes);
	return 0;
}

/* It keeps nothing. */
static int write_config(void *device, uint32_t offset, const void *bytes,
			uint32_t n_bytes)
{
	(void)device;
	(void)offset;
	(void)bytes;
	(void)n_bytes;
	return 0;
}

static int map_bar(void *device, uint32_t idx, struct mr_bar *ret_bar,
		   struct mr_reason *reterr_reason)
{
	(void)device;
	(void)idx;
	(void)ret_bar;
	(void)reterr_reason;
	return 0;
}

static bool is_usable(const struct device *d, uint64_t first, uint64_t last)
{
	for (uint32_t i = 0; i < d->n_ranges; i++)
		if (first >= d->ranges[i].first && last <= d->ranges[i].last)
			return true;
	return false;
}

static int map_dma(void *device, void *memory, uint64_t iova, uint64_t n_bytes,
		   struct mr_reason *reterr_reason)
{
	struct device *d = device;
	uint32_t place = MAX_MAPS;

	(void)memory;
	(void)reterr_reason;
	FUZZ_CHECK(n_bytes != 0 && iova + (n_bytes - 1) >= iova);
	FUZZ_CHECK(is_usable(d, iova, iova + (n_bytes - 1)));
	for (uint32_t i = 0; i < MAX_MAPS; i++) {
		const uint64_t first = d->maps[i].first;

		if (d->maps[i].n_bytes == 0)
			place = i;
		else
			FUZZ_CHECK(iova + (n_bytes - 1) < first ||
				   iova > first + (d->maps[i].n_bytes - 1));
	}
	FUZZ_CHECK(place < MAX_MAPS);
	d->maps[place].first = iova;
	d->maps[place].n_bytes = n_bytes;
	return 0;
}

static int unmap_dma(void *device, uint64_t iova, uint64_t n_bytes)
{
	struct device *d = device;

	for (uint32_t i = 0; i < MAX_MAPS; i++)
		if (d->maps[i].first == iova && d->maps[i].n_bytes == n_bytes) {
			d->maps[i].n_bytes = 0;
			return 0;
		}
	FUZZ_CHECK(!"what is unmapped was mapped");
	return -EINVAL;
}

static int set_irqs(void *device, uint32_t n, const int *fds)
{
	const struct device *d = device;

	(void)fds;
	return n == 0 ? 0 : (int8_t)d->vectors;
}

static int iova_ranges(void *device, struct mr_pci_range *ret, uint32_t n)
{
	const struct device *d = device;

	FUZZ_CHECK(n >= MAX_RANGES);
	memcpy(ret, d->ranges, d->n_ranges * sizeof(ret[0]));
	return (int)d->n_ranges;
}

static const struct mr_pci_backend backend = {
	.mode = "hostile",
	.read_config = read_config,
	.write_config = write_config,
	.map_bar = map_bar,
	.map_dma = map_dma,
	.unmap_dma = unmap_dma,
	.set_irqs = set_irqs,
	.iova_ranges = iova_ranges,
};

static struct device device;
static struct mr_ctx *ctx;
static struct mr_region *region;

/* Once: a pool, for a region with memory in it. */
static void begin(void)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 256 };
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.os_pages = MR_OS_PAGES_4K,
		.max_bytes = 1 << 30
	};
	struct mr_pool *pool;

	FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	FUZZ_CHECK(mr_region_create(ctx, &region_config, &region, NULL) == 0);
	config.region = region;
	FUZZ_CHECK(mr_pool_create(ctx, &config, &pool, NULL) == 0);
	FUZZ_CHECK(mr_ctx_add_pci_device(ctx, "x", &backend, &device) == 0);
}

/* The bytes: config space, then ranges, then what is left. */
static void read_device(const uint8_t *bytes, size_t n_bytes)
{
	size_t n = n_bytes < CONFIG_BYTES ? n_bytes : CONFIG_BYTES;

	memset(&device, 0, sizeof(device));
	memcpy(device.config, bytes, n);
	bytes += n;
	n_bytes -= n;
	n = n_bytes / sizeof(device.ranges[0]);
	device.n_ranges = n < MAX_RANGES ? (uint32_t)n : MAX_RANGES;
	memcpy(device.ranges, bytes,
	       device.n_ranges * sizeof(device.ranges[0]));
	if (device.n_ranges == 0) {
		device.n_ranges = 1;
		device.ranges[0].last = (UINT64_C(1) << 39) - 1;
	}
	device.vectors = device.config[CONFIG_BYTES - 1];
}

/* Who asks for one after the other comes to an end, and sees none twice. */
static void walk(struct mr_pci *pci, uint8_t id)
{
	uint8_t seen[CONFIG_BYTES] = { 0 };
	uint32_t at = 0, n = 0;

	while (mr_pci_find_cap(pci, id, at, &at) == 0) {
		FUZZ_CHECK(at >= 64 && at < CONFIG_BYTES && at % 4 == 0);
		FUZZ_CHECK(device.config[at] == id);
		FUZZ_CHECK(!seen[at]);
		seen[at] = 1;
		FUZZ_CHECK(++n <= 48);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_pci_config config = { .size = sizeof(config) };
	struct mr_reason why = { "" };
	struct mr_dma dmas[MAX_DMAS];
	int fds[8];
	struct mr_pci *pci = NULL;

	if (ctx == NULL)
		begin();
	read_device(bytes, n_bytes);
	config.region = region;
	if (mr_pci_open(ctx, "x", &config, &pci, &why) < 0) {
		FUZZ_CHECK(why.text[0] != '\0');
	} else {
		for (uint32_t id = 0; id < 256; id++)
			walk(pci, (uint8_t)id);
		for (uint32_t i = 0; i < MAX_DMAS; i++)
			if (mr_pci_dma_alloc(pci, 4096u * (i + 1), &dmas[i],
					     NULL) == 0 &&
			    i % 2 == 1)
				mr_pci_dma_free(pci, &dmas[i]);
		FUZZ_CHECK(mr_pci_set_irqs(pci, 8, fds, NULL) <= 8);
		mr_pci_close(pci);
	}
	for (uint32_t i = 0; i < MAX_MAPS; i++)
		FUZZ_CHECK(device.maps[i].n_bytes == 0);
	return 0;
}
