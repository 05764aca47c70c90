/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Config space: capabilities, the command register.
 *
 * Source: PCI Local Bus Specification 3.0, 6.2.2 (command), 6.7 (list).
 */
#include <errno.h>

#include "pci/pci.h"

enum {
	COMMAND = 0x04,
	COMMAND_MEMORY = 1 << 1,
	COMMAND_MASTER = 1 << 2,
	COMMAND_NO_INTX = 1 << 10,
	STATUS = 0x06,
	STATUS_HAS_LIST = 1 << 4,
	LIST = 0x34,
	FIRST_CAP = 0x40, /* after the header */
};

int mr_pci_read_config(struct mr_pci *pci, uint32_t offset, void *ret,
		       uint32_t n_bytes)
{
	return pci->backend->read_config(pci->device, offset, ret, n_bytes) <
			       0 ?
		       -EIO :
		       0;
}

int mr_pci_write_config(struct mr_pci *pci, uint32_t offset, const void *bytes,
			uint32_t n_bytes)
{
	return pci->backend->write_config(pci->device, offset, bytes, n_bytes) <
			       0 ?
		       -EIO :
		       0;
}

/*
 * Visits each place at most once, from the start, so a list that loops ends,
 * even for a caller that keeps asking for the next one.
 */
int mri_find_cap(const struct mr_pci_backend *backend, void *device, uint8_t id,
		 uint32_t after, uint32_t *ret_offset)
{
	uint8_t head[2] = { 0, 0 }; /* id, next */
	uint64_t seen = 0;          /* a bit per 4 bytes */
	bool is_behind = after == 0;
	uint16_t status = 0;
	uint32_t offset;

	if (backend->read_config(device, STATUS, &status, 2) < 0 ||
	    backend->read_config(device, LIST, &head[1], 1) < 0)
		return -EIO;
	if ((status & STATUS_HAS_LIST) == 0)
		return -ENOENT;
	for (;;) {
		offset = head[1] & 0xfcu;
		if (offset < FIRST_CAP || (seen & UINT64_C(1) << offset / 4))
			return -ENOENT;
		seen |= UINT64_C(1) << offset / 4;
		if (backend->read_config(device, offset, head, 2) < 0)
			return -EIO;
		if (is_behind && head[0] == id) {
			*ret_offset = offset;
			return 0;
		}
		is_behind |= offset == after;
	}
}

int mr_pci_find_cap(struct mr_pci *pci, uint8_t id, uint32_t after,
		    uint32_t *ret_offset)
{
	return mri_find_cap(pci->backend, pci->device, id, after, ret_offset);
}

static int set_command(struct mr_pci *pci, uint32_t set, uint32_t clear)
{
	uint16_t command;
	int err = mr_pci_read_config(pci, COMMAND, &command, 2);

	if (err < 0)
		return err;
	if (command == UINT16_MAX)
		return -EIO; /* gone: reserved bits are never 1 */
	command = (uint16_t)((command | set) & ~clear);
	return mr_pci_write_config(pci, COMMAND, &command, 2);
}

int mri_pci_quiesce(struct mr_pci *pci)
{
	return set_command(pci, COMMAND_MEMORY | COMMAND_NO_INTX,
			   COMMAND_MASTER);
}

int mr_pci_set_bus_master(struct mr_pci *pci, bool on)
{
	return on ? set_command(pci, COMMAND_MASTER, 0) :
		    set_command(pci, 0, COMMAND_MASTER);
}
