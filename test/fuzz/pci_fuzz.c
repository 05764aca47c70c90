/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile device: its config space, the IOVAs that it says can be used, and
 * the interrupts that it says it has, are any bytes. lib/pci ends each walk,
 * gives no IOVA twice, and leaves nothing mapped.
 */
#include <millrace/pool.h>

#include "fuzz.h"

#define SOFT_CHECK(promise) FUZZ_CHECK(promise)
#include "support/soft_pci.h"

enum { MAX_DMAS = 8, MAX_RANGES = 4 };

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

static struct soft_pci device;
static int8_t n_vectors; /* that the device says it has; or an error */
static struct mr_ctx *ctx;
static struct mr_region *region;

static int set_irqs(void *opaque, uint32_t n, const int *fds)
{
	(void)opaque;
	(void)fds;
	return n == 0 ? 0 : n_vectors;
}

/* Once: a pool, for a region with memory in it. */
static void make_pool(void)
{
	static struct mr_pci_backend backend;
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
	backend = soft_backend;
	backend.set_irqs = set_irqs;
	FUZZ_CHECK(mr_ctx_add_pci_device(ctx, "x", &backend, &device) == 0);
}

/* The bytes: config space, then ranges, then what is left. */
static void read_device(const uint8_t *bytes, size_t n_bytes)
{
	size_t n = n_bytes < SOFT_CONFIG_BYTES ? n_bytes : SOFT_CONFIG_BYTES;

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
	n_vectors = (int8_t)device.config[SOFT_CONFIG_BYTES - 1];
	device.req_fd = device.err_fd = -1;
}

/* Who asks for one after the other comes to an end, and sees none twice. */
static void walk(struct mr_pci *pci, uint8_t id)
{
	uint8_t seen[SOFT_CONFIG_BYTES] = { 0 };
	uint32_t at = 0, n = 0;

	while (mr_pci_find_cap(pci, id, at, &at) == 0) {
		FUZZ_CHECK(at >= 64 && at < SOFT_CONFIG_BYTES && at % 4 == 0);
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
		make_pool();
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
	FUZZ_CHECK(soft_n_mapped(&device) == 0);
	return 0;
}
