/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software PCI device that records what is done to it. For unit tests, and
 * for a fuzz target that defines SOFT_CHECK() first.
 */
#ifndef SUPPORT_SOFT_PCI_H
#define SUPPORT_SOFT_PCI_H

#ifndef SOFT_CHECK
#include "support/unit.h"
#define SOFT_CHECK(promise) assert_true(promise)
#endif

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <millrace/experimental/pci.h>

enum {
	SOFT_CONFIG_BYTES = 256,
	SOFT_MAX_MAPS = 64,
	SOFT_MAX_IRQS = 40,
	SOFT_COMMAND = 4,
	SOFT_MASTER = 1 << 2,
};

struct soft_map {
	uint8_t *memory;
	uint64_t iova;
	uint64_t n_bytes; /* 0: none */
};

struct soft_pci {
	uint8_t config[SOFT_CONFIG_BYTES];
	uint32_t regs[16];
	struct soft_map maps[SOFT_MAX_MAPS];
	uint32_t n_maps;
	uint32_t n_irqs, most_irqs;
	int irq_fds[SOFT_MAX_IRQS];
	int req_fd, err_fd;
	uint32_t n_ranges;
	struct mr_pci_range ranges[4];
	uint32_t n_opens, n_closes, n_reads;
	/* Errors to return. */
	int open_err, config_err, map_err, irq_err, events_err;
	int ranges_err;
	uint32_t dead_config;  /* the place that cannot be read; 0: none */
	uint32_t map_fails_at; /* the map from 1 that does; 0: each, or none */
	bool is_gone;
};

static inline int soft_open(void *device, struct mr_reason *reterr_reason)
{
	struct soft_pci *d = device;

	(void)reterr_reason;
	if (d->open_err == 0)
		d->n_opens++;
	else
		snprintf(reterr_reason->text, sizeof(reterr_reason->text),
			 "soft: cannot open");
	return d->open_err;
}

static inline void soft_close(void *device)
{
	((struct soft_pci *)device)->n_closes++;
}

static inline int soft_read_config(void *device, uint32_t offset, void *ret,
				   uint32_t n_bytes)
{
	struct soft_pci *d = device;

	if (d->config_err < 0 || offset + n_bytes > SOFT_CONFIG_BYTES ||
	    (d->dead_config != 0 && offset == d->dead_config))
		return -EIO;
	if (d->is_gone)
		memset(ret, 0xff, n_bytes);
	else
		memcpy(ret, d->config + offset, n_bytes);
	return 0;
}

static inline int soft_write_config(void *device, uint32_t offset,
				    const void *bytes, uint32_t n_bytes)
{
	struct soft_pci *d = device;

	if (d->config_err < 0 || offset + n_bytes > SOFT_CONFIG_BYTES)
		return -EIO;
	memcpy(d->config + offset, bytes, n_bytes);
	return 0;
}

static inline uint64_t soft_reg_read(void *device, uint32_t bar,
				     uint64_t offset, uint32_t n_bytes)
{
	struct soft_pci *d = device;
	uint64_t value = 0;

	SOFT_CHECK(bar == 0);
	d->n_reads++;
	memcpy(&value, (uint8_t *)d->regs + offset, n_bytes);
	return d->is_gone ? UINT64_MAX : value;
}

static inline void soft_reg_write(void *device, uint32_t bar, uint64_t offset,
				  uint32_t n_bytes, uint64_t value)
{
	struct soft_pci *d = device;

	SOFT_CHECK(bar == 0);
	memcpy((uint8_t *)d->regs + offset, &value, n_bytes);
}

static inline int soft_map_bar(void *device, uint32_t idx,
			       struct mr_bar *ret_bar,
			       struct mr_reason *reterr_reason)
{
	static const struct mr_bar_ops ops = { soft_reg_read, soft_reg_write };
	struct soft_pci *d = device;

	(void)reterr_reason;
	if (idx == 0)
		*ret_bar = (struct mr_bar){ .n_bytes = sizeof(d->regs),
					    .ops = &ops,
					    .device = d };
	return idx == 1 ? -ENOTSUP : 0;
}

/* Whether the device can use these IOVAs. */
static inline bool soft_is_usable(const struct soft_pci *d, uint64_t first,
				  uint64_t last)
{
	for (uint32_t i = 0; i < d->n_ranges; i++)
		if (first >= d->ranges[i].first && last <= d->ranges[i].last)
			return true;
	return d->ranges_err < 0 || d->n_ranges == 0;
}

static inline int soft_map_dma(void *device, void *memory, uint64_t iova,
			       uint64_t n_bytes,
			       struct mr_reason *reterr_reason)
{
	struct soft_pci *d = device;
	const uint64_t last = iova + (n_bytes - 1);
	struct soft_map *place = NULL;

	d->n_maps++;
	if (d->map_err < 0 &&
	    (d->map_fails_at == 0 || d->map_fails_at == d->n_maps)) {
		snprintf(reterr_reason->text, sizeof(reterr_reason->text),
			 "soft: cannot map");
		return d->map_err;
	}
	SOFT_CHECK(n_bytes != 0 && last >= iova);
	SOFT_CHECK(soft_is_usable(d, iova, last));
	for (uint32_t i = 0; i < SOFT_MAX_MAPS; i++) {
		const struct soft_map *m = &d->maps[i];

		if (m->n_bytes == 0)
			place = &d->maps[i];
		else
			SOFT_CHECK(last < m->iova ||
				   iova > m->iova + (m->n_bytes - 1));
	}
	SOFT_CHECK(place != NULL);
	*place = (struct soft_map){ memory, iova, n_bytes };
	return 0;
}

static inline int soft_unmap_dma(void *device, uint64_t iova, uint64_t n_bytes)
{
	struct soft_pci *d = device;

	for (uint32_t i = 0; i < SOFT_MAX_MAPS; i++)
		if (d->maps[i].iova == iova && d->maps[i].n_bytes == n_bytes) {
			d->maps[i].n_bytes = 0;
			return 0;
		}
	SOFT_CHECK(!"what is unmapped was mapped");
	return -EINVAL;
}

static inline int soft_set_irqs(void *device, uint32_t n, const int *fds)
{
	struct soft_pci *d = device;

	if (n > 0 && d->irq_err < 0)
		return d->irq_err;
	if (n > d->most_irqs)
		return (int)d->most_irqs;
	d->n_irqs = n;
	if (n > 0)
		memcpy(d->irq_fds, fds, n * sizeof(fds[0]));
	return 0;
}

static inline int soft_set_events(void *device, int req_fd, int err_fd)
{
	struct soft_pci *d = device;

	if (req_fd >= 0 && d->events_err < 0)
		return d->events_err;
	d->req_fd = req_fd;
	d->err_fd = err_fd;
	return 0;
}

static inline int soft_iova_ranges(void *device, struct mr_pci_range *ret,
				   uint32_t n)
{
	struct soft_pci *d = device;

	SOFT_CHECK(d->n_ranges <= n);
	memcpy(ret, d->ranges, d->n_ranges * sizeof(ret[0]));
	return d->ranges_err < 0 ? d->ranges_err : (int)d->n_ranges;
}

static const struct mr_pci_backend soft_backend = {
	.size = sizeof(struct mr_pci_backend),
	.mode = "soft",
	.open = soft_open,
	.close = soft_close,
	.read_config = soft_read_config,
	.write_config = soft_write_config,
	.map_bar = soft_map_bar,
	.map_dma = soft_map_dma,
	.unmap_dma = soft_unmap_dma,
	.set_irqs = soft_set_irqs,
	.set_events = soft_set_events,
	.iova_ranges = soft_iova_ranges,
};

static inline uint32_t soft_n_mapped(const struct soft_pci *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SOFT_MAX_MAPS; i++)
		n += d->maps[i].n_bytes != 0;
	return n;
}

static inline uint16_t soft_command(const struct soft_pci *d)
{
	uint16_t command;

	memcpy(&command, d->config + SOFT_COMMAND, 2);
	return command;
}

/* Where the device would find memory that the driver mapped at an IOVA. */
static inline void *soft_reach(const struct soft_pci *d, uint64_t iova)
{
	for (uint32_t i = 0; i < SOFT_MAX_MAPS; i++) {
		const struct soft_map *m = &d->maps[i];

		if (iova >= m->iova && iova - m->iova < m->n_bytes)
			return m->memory + (iova - m->iova);
	}
	return NULL;
}

/* 8086:10c9, a network controller with MSI-X of 8 vectors at 0x40. */
static inline void soft_init(struct soft_pci *d)
{
	static const uint8_t head[] = { 0x86, 0x80, 0xc9, 0x10, 0, 0,
					0x10, 0,    1,    0,    0, 2 };

	memset(d, 0, sizeof(*d));
	memcpy(d->config, head, sizeof(head));
	memcpy(d->config + 0x2c, (uint8_t[]){ 0xf4, 0x1a, 0, 0x11 }, 4);
	d->config[0x34] = 0x40;
	memcpy(d->config + 0x40, (uint8_t[]){ 0x11, 0, SOFT_MAX_IRQS - 1, 0 },
	       4);
	d->most_irqs = SOFT_MAX_IRQS;
	d->req_fd = d->err_fd = -1;
	d->n_ranges = 1;
	d->ranges[0] = (struct mr_pci_range){ 0, (UINT64_C(1) << 39) - 1 };
}

/* Assert that a call on fixture f failed so, with these words in f.why. */
#define assert_failure(result, err, words)                                     \
	do {                                                                   \
		assert_int_equal(result, err);                                 \
		assert_reason_has(&f.why, words);                              \
	} while (0)

/* How many fds this process has open. */
static inline uint32_t n_open_fds(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
	return n;
}

#endif
