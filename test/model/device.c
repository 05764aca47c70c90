/* SPDX-License-Identifier: BSD-3-Clause */
/* The function as the host sees it: config space, BARs, mappings, fds. */
#include <errno.h>
#include <string.h>

#include "device.h"

/* PCI 3.0 section 6.1 and its appendix H; PCIe 3.0 section 7.8. */
enum {
	PCI_COMMAND = 0x4,
	PCI_COMMAND_MEMORY = 0x2,
	PCI_COMMAND_MASTER = 0x4,
	PCI_COMMAND_NO_INTX = 0x400,
	PCI_STATUS = 0x6,
	PCI_STATUS_CAPS = 0x10,
	PCI_BAR0 = 0x10,
	PCI_CAP_POINTER = 0x34,
	PCI_FIRST_CAP = 0x40,
	PCI_CAP_MSIX = 0x11,
	PCI_CAP_EXPRESS = 0x10,
	OS_PAGE_BYTES = 4096,
};

static void set_bytes(struct model *m, uint32_t offset, uint64_t value,
		      uint32_t n_bytes)
{
	for (uint32_t i = 0; i < n_bytes; i++)
		m->config[offset + i] = (uint8_t)(value >> (8 * i));
}

void model_init(struct model *m, const struct model_ops *ops,
		const struct model_id *id)
{
	pthread_condattr_t monotonic;

	memset(m, 0, sizeof(*m));
	m->ops = ops;
	m->random = 88172645463325252u; /* any but 0 */
	m->max_maps = MODEL_MAX_MAPS;
	m->req_fd = -1;
	m->err_fd = -1;
	m->n_vectors = 1; /* INTx */
	/* Like an IOMMU of 48 bits: without the interrupt window. */
	m->ranges[0] = (struct model_range){ 0, 0xfedfffff };
	m->ranges[1] = (struct model_range){ 0xfef00000, (1ull << 48) - 1 };
	m->n_ranges = 2;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);

	set_bytes(m, 0x0, id->vendor_id, 2);
	set_bytes(m, 0x2, id->device_id, 2);
	set_bytes(m, 0x8, id->revision | id->class_code << 8, 4);
	set_bytes(m, 0x2c, id->subsystem_vendor_id, 2);
	set_bytes(m, 0x2e, id->subsystem_id, 2);
	m->config[0x3d] = 1; /* INTA */
	m->config_writable[PCI_COMMAND] =
		PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	m->config_writable[PCI_COMMAND + 1] = PCI_COMMAND_NO_INTX >> 8;
}

void model_deinit(struct model *m)
{
	if (m->stop != NULL)
		m->stop(m);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
}

void model_add_bar(struct model *m, uint32_t idx, uint64_t n_bytes)
{
	m->bar_bytes[idx] = n_bytes;
	set_bytes(m, PCI_BAR0 + 4 * idx, 0xf0000000u + (idx << 24), 4);
}

uint32_t model_add_cap(struct model *m, uint8_t id, const void *body,
		       uint32_t n_bytes)
{
	uint32_t at = PCI_FIRST_CAP;

	/* The length of the last one is not recorded: find its end. */
	for (uint32_t i = PCI_FIRST_CAP; i < 256; i++)
		if (m->config[i] != 0 || m->config_writable[i] != 0)
			at = i + 1;
	if (m->last_cap != 0 && at < m->last_cap + 0x10)
		at = m->last_cap + 0x10;
	at = (at + 3) & ~3u;
	set_bytes(m, m->last_cap != 0 ? m->last_cap + 1 : PCI_CAP_POINTER, at,
		  1);
	m->config[PCI_STATUS] |= PCI_STATUS_CAPS;
	m->config[at] = id;
	memcpy(&m->config[at + 2], body, n_bytes);
	m->last_cap = at;
	return at;
}

void model_add_msix(struct model *m, uint32_t n_vectors, uint32_t bar)
{
	uint8_t body[10] = { (uint8_t)(n_vectors - 1),
			     0,
			     (uint8_t)bar,
			     0,
			     0,
			     0,
			     (uint8_t)bar,
			     0x20 };
	const uint32_t at = model_add_cap(m, PCI_CAP_MSIX, body, sizeof(body));

	m->config_writable[at + 3] = 0xc0; /* enable, mask all */
	m->n_vectors = n_vectors;
}

void model_add_pcie(struct model *m)
{
	uint8_t body[0x3a] = { 2 };
	const uint32_t at =
		model_add_cap(m, PCI_CAP_EXPRESS, body, sizeof(body));

	m->config_writable[at + 8] = 0xff; /* Device Control */
	m->config_writable[at + 9] = 0x7f;
}

int model_open(struct model *m)
{
	int err = 0;

	model_lock(m);
	if (m->is_open)
		err = -EBUSY;
	m->is_open = true;
	model_unlock(m);
	return err;
}

static bool is_master(const struct model *m)
{
	return m->config[PCI_COMMAND] & PCI_COMMAND_MASTER;
}

/* Like the kernel on close: reset the function. */
void model_close(void *device)
{
	struct model *m = device;

	model_lock(m);
	if (is_master(m))
		model_violation(m, "closed while bus master is on");
	m->config[PCI_COMMAND] = 0;
	m->config[PCI_COMMAND + 1] = 0;
	m->n_maps = 0;
	m->n_irqs = 0;
	m->req_fd = -1;
	m->err_fd = -1;
	m->was_master = false;
	m->is_open = false;
	m->ops->reset(m);
	model_unlock(m);
}

int model_read_config(void *device, uint32_t offset, void *ret,
		      uint32_t n_bytes)
{
	struct model *m = device;

	if (offset > MODEL_CONFIG_BYTES ||
	    n_bytes > MODEL_CONFIG_BYTES - offset)
		return -EINVAL;
	model_lock(m);
	if (m->faults.all_ones)
		memset(ret, 0xff, n_bytes);
	else
		memcpy(ret, &m->config[offset], n_bytes);
	model_unlock(m);
	return 0;
}

int model_write_config(void *device, uint32_t offset, const void *bytes,
		       uint32_t n_bytes)
{
	struct model *m = device;
	const uint8_t *from = bytes;

	if (offset > MODEL_CONFIG_BYTES ||
	    n_bytes > MODEL_CONFIG_BYTES - offset)
		return -EINVAL;
	model_lock(m);
	for (uint32_t i = 0; i < n_bytes && !m->faults.all_ones; i++) {
		const uint8_t mask = m->config_writable[offset + i];
		uint8_t *at = &m->config[offset + i];

		*at = (uint8_t)((*at & ~mask) | (from[i] & mask));
	}
	m->was_master |= is_master(m);
	model_unlock(m);
	model_poke(m);
	return 0;
}

static bool is_register(struct model *m, uint32_t bar, uint64_t offset,
			uint32_t n_bytes, const char *what)
{
	if (bar >= MODEL_MAX_BARS || n_bytes > m->bar_bytes[bar] ||
	    offset > m->bar_bytes[bar] - n_bytes || offset % n_bytes != 0) {
		model_violation(m, "%s of %u bytes at 0x%llx of BAR %u", what,
				n_bytes, (unsigned long long)offset, bar);
		return false;
	}
	if (!(m->config[PCI_COMMAND] & PCI_COMMAND_MEMORY))
		model_violation(m, "%s of 0x%llx while memory space is off",
				what, (unsigned long long)offset);
	return true;
}

uint64_t model_read(void *device, uint32_t bar, uint64_t offset,
		    uint32_t n_bytes)
{
	struct model *m = device;
	uint64_t value = UINT64_MAX;

	model_lock(m);
	m->n_bar_reads++;
	if (is_register(m, bar, offset, n_bytes, "read") && !m->faults.all_ones)
		value = m->ops->read(m, bar, offset, n_bytes);
	model_unlock(m);
	return n_bytes < 8 ? value & ((1ull << (8 * n_bytes)) - 1) : value;
}

void model_write(void *device, uint32_t bar, uint64_t offset, uint32_t n_bytes,
		 uint64_t value)
{
	struct model *m = device;

	model_lock(m);
	m->n_bar_writes++;
	if (is_register(m, bar, offset, n_bytes, "write") &&
	    !m->faults.all_ones)
		m->ops->write(m, bar, offset, n_bytes, value);
	model_unlock(m);
	model_poke(m);
}

static bool is_usable(const struct model *m, uint64_t iova, uint64_t n_bytes)
{
	for (uint32_t i = 0; i < m->n_ranges; i++)
		if (iova >= m->ranges[i].first && iova <= m->ranges[i].last &&
		    n_bytes - 1 <= m->ranges[i].last - iova)
			return true;
	return false;
}

/* Like the kernel: -EINVAL unless whole OS pages that are addressable. */
int model_map_dma(struct model *m, void *memory, uint64_t iova,
		  uint64_t n_bytes)
{
	const struct model_map map = { iova, n_bytes, memory };
	int err = 0;

	model_lock(m);
	if (n_bytes == 0 ||
	    (iova | n_bytes | (uintptr_t)memory) % OS_PAGE_BYTES != 0 ||
	    !is_usable(m, iova, n_bytes))
		err = -EINVAL;
	for (uint32_t i = 0; i < m->n_maps && err == 0; i++)
		if (iova < m->maps[i].iova + m->maps[i].n_bytes &&
		    m->maps[i].iova < iova + n_bytes)
			err = -EEXIST;
	if (err == 0 && m->n_maps >= m->max_maps)
		err = -ENOSPC;
	if (err == 0)
		m->maps[m->n_maps++] = map;
	model_unlock(m);
	return err;
}

/* Only whole mappings, like type1 v2. */
int model_unmap_dma(void *device, uint64_t iova, uint64_t n_bytes)
{
	struct model *m = device;
	int err = -EINVAL;

	model_lock(m);
	for (uint32_t i = 0; i < m->n_maps; i++)
		if (m->maps[i].iova == iova && m->maps[i].n_bytes == n_bytes) {
			m->maps[i] = m->maps[--m->n_maps];
			err = 0;
			break;
		}
	model_unlock(m);
	return err;
}

int model_set_irqs(void *device, uint32_t n, const int *fds)
{
	struct model *m = device;

	if (n > m->n_vectors)
		return (int)m->n_vectors;
	model_lock(m);
	for (uint32_t i = 0; i < n; i++)
		m->irq_fds[i] = fds[i];
	m->n_irqs = n;
	model_unlock(m);
	return 0;
}

int model_set_events(void *device, int req_fd, int err_fd)
{
	struct model *m = device;

	model_lock(m);
	m->req_fd = req_fd;
	m->err_fd = err_fd;
	model_unlock(m);
	return 0;
}

/* The part of [iova, ...) within one mapping. */
static uint8_t *find_mapping(const struct model *m, uint64_t iova,
			     uint64_t *ret_n)
{
	for (uint32_t i = 0; i < m->n_maps; i++) {
		const struct model_map *map = &m->maps[i];

		if (iova >= map->iova && iova - map->iova < map->n_bytes) {
			*ret_n = map->n_bytes - (iova - map->iova);
			return map->memory + (iova - map->iova);
		}
	}
	return NULL;
}

/* It may span two mappings, as segments of a region do. */
static uint8_t *find_all(const struct model *m, uint64_t iova, uint64_t n_bytes)
{
	uint8_t *first = NULL;
	uint64_t n_done = 0, n = 0;

	if (n_bytes == 0 || iova + n_bytes < iova)
		return NULL;
	while (n_done < n_bytes) {
		uint8_t *memory = find_mapping(m, iova + n_done, &n);

		if (memory == NULL ||
		    (first != NULL && memory != first + n_done))
			return NULL;
		if (first == NULL)
			first = memory;
		n_done += n;
	}
	return first;
}

bool model_is_mapped(const struct model *m, uint64_t iova, uint64_t n_bytes)
{
	return find_all(m, iova, n_bytes) != NULL;
}

void *model_dma(struct model *m, uint64_t iova, uint64_t n_bytes)
{
	uint8_t *memory;

	if (!is_master(m)) {
		/* Clearing it first stops the device; never setting it is a
		 * mistake. */
		m->n_dma_refused++;
		if (!m->was_master)
			model_violation(m, "it has work, and bus master was "
					   "not turned on");
		return NULL;
	}
	memory = find_all(m, iova, n_bytes);
	if (memory == NULL)
		model_violation(m, "DMA of %llu bytes at 0x%llx: not mapped",
				(unsigned long long)n_bytes,
				(unsigned long long)iova);
	return memory;
}
