/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/config.c and bar.c, on a device in software. */
#include "support/pci_unit.h"

static void set_cap(struct soft_pci *nic, uint8_t at, uint8_t id, uint8_t next)
{
	nic->config[at] = id;
	nic->config[at + 1] = next;
}

PCI_TEST(capabilities_are_found_in_order)
{
	uint32_t at = 0;

	set_cap(&f.nic, 0x40, 0x11, 0x53); /* two low bits are reserved */
	set_cap(&f.nic, 0x50, 0x09, 0x60);
	set_cap(&f.nic, 0x60, 0x09, 0xfc);
	set_cap(&f.nic, 0xfc, 0x10, 0);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, 0, &at), 0);
	assert_int_equal(at, 0x50);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, at, &at), 0);
	assert_int_equal(at, 0x60);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, at, &at), -ENOENT);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x10, 0, &at), 0);
	assert_int_equal(at, 0xfc);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0, &at), -ENOENT);
	f.nic.config[6] = 0; /* no list, says the status */
	assert_int_equal(mr_pci_find_cap(f.pci, 0x11, 0, &at), -ENOENT);
}

PCI_TEST(an_endless_list_of_capabilities_ends)
{
	uint32_t at = 0;

	set_cap(&f.nic, 0x40, 0x11, 0x40);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0, &at), -ENOENT);
	set_cap(&f.nic, 0x40, 0x11, 0x50);
	set_cap(&f.nic, 0x50, 0x11, 0x40);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0, &at), -ENOENT);
	/* For one who asks for the next one again and again, too. */
	set_cap(&f.nic, 0x40, 0x09, 0x50);
	set_cap(&f.nic, 0x50, 0x09, 0x40);
	at = 0;
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, at, &at), 0);
	assert_int_equal(at, 0x40);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, at, &at), 0);
	assert_int_equal(at, 0x50);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, at, &at), -ENOENT);
	/* Behind what is in no list there is nothing. */
	assert_int_equal(mr_pci_find_cap(f.pci, 0x09, 0x60, &at), -ENOENT);
	/* Into the header: what is there is no capability. */
	set_cap(&f.nic, 0x40, 0x11, 0x08);
	f.nic.config[8] = 0x05;
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0, &at), -ENOENT);
	f.nic.is_gone = true;
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0, &at), -ENOENT);
	f.nic.config_err = -EIO;
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0, &at), -EIO);
	assert_int_equal(mr_pci_find_cap(f.pci, 0x05, 0x40, &at), -EIO);
	f.nic.config_err = 0;
	f.nic.is_gone = false;
}

PCI_TEST(config_space_is_read_and_written)
{
	const uint32_t value = 0x12345678;
	uint32_t read = 0;

	assert_int_equal(mr_pci_write_config(f.pci, 0x80, &value, 4), 0);
	assert_int_equal(mr_pci_read_config(f.pci, 0x80, &read, 4), 0);
	assert_int_equal(read, value);
	assert_int_equal(mr_pci_read_config(f.pci, 254, &read, 4), -EIO);
	assert_int_equal(mr_pci_write_config(f.pci, 254, &read, 4), -EIO);
	/* One that is gone is not written all ones to. */
	f.nic.is_gone = true;
	assert_int_equal(mr_pci_set_bus_master(f.pci, true), -EIO);
	assert_int_equal(soft_command(&f.nic) & SOFT_MASTER, 0);
	f.nic.is_gone = false;
}

PCI_TEST(registers_are_accessed_by_calls)
{
	struct mr_bar bar, again;

	assert_int_equal(mr_pci_map_bar(f.pci, 0, &bar, NULL), 0);
	assert_int_equal(bar.idx, 0);
	assert_int_equal(bar.n_bytes, sizeof(f.nic.regs));
	mr_bar_write32(&bar, 0, 0x11223344);
	assert_int_equal(mr_bar_read32(&bar, 0), 0x11223344);
	assert_int_equal(mr_bar_read16(&bar, 2), 0x1122);
	assert_int_equal(mr_bar_read8(&bar, 1), 0x33);
	mr_bar_write16(&bar, 4, 0xabcd);
	mr_bar_write8(&bar, 6, 0xef);
	assert_int_equal(f.nic.regs[1], 0x00efabcd);
	mr_bar_write64(&bar, 8, 0x0102030405060708);
	assert_int_equal(f.nic.regs[2], 0x05060708);
	assert_int_equal(f.nic.regs[3], 0x01020304);
	assert_int_equal(mr_pci_map_bar(f.pci, 0, &again, NULL), 0);
	assert_memory_equal(&bar, &again, sizeof(bar));
	assert_int_equal(mr_pci_map_bar(f.pci, 1, &bar, &f.why), -ENOTSUP);
	assert_failure(mr_pci_map_bar(f.pci, 2, &bar, &f.why), -EINVAL,
		       "BAR 2 is empty");
	assert_failure(mr_pci_map_bar(f.pci, 6, &bar, &f.why), -EINVAL,
		       "no BAR 6");
}

TEST(a_bar_may_be_mapped_memory)
{
	uint32_t memory[4] = { 0 };
	const struct mr_bar bar = { .base = (uint8_t *)memory,
				    .n_bytes = sizeof(memory) };

	mr_bar_write32(&bar, 0, 0x11223344);
	mr_bar_write16(&bar, 4, 0xabcd);
	mr_bar_write8(&bar, 6, 0xef);
	mr_bar_write64(&bar, 8, 0x0102030405060708);
	assert_int_equal(memory[0], 0x11223344);
	assert_int_equal(memory[1], 0x00efabcd);
	assert_int_equal(memory[2], 0x05060708);
	assert_int_equal(memory[3], 0x01020304);
	assert_int_equal(mr_bar_read32(&bar, 0), 0x11223344);
	assert_int_equal(mr_bar_read16(&bar, 2), 0x1122);
	assert_int_equal(mr_bar_read8(&bar, 1), 0x33);
}

PCI_TEST(a_wait_ends_at_its_limit)
{
	struct mr_bar bar;
	uint64_t begin_ns;

	assert_int_equal(mr_pci_map_bar(f.pci, 0, &bar, NULL), 0);
	f.nic.regs[1] = 0x80;
	f.nic.n_reads = 0;
	assert_int_equal(mr_pci_wait32(f.pci, &bar, 4, 0xf0, 0x80, 1000000), 0);
	assert_int_equal(f.nic.n_reads, 1);
	begin_ns = mr_ctx_now_ns(f.ctx);
	assert_int_equal(mr_pci_wait32(f.pci, &bar, 4, 0xf0, 0x70, 2000),
			 -ETIMEDOUT);
	assert_true(mr_ctx_now_ns(f.ctx) - begin_ns >= 2000000);
	assert_true(f.nic.n_reads > 2);
	/* Even where each bit that is waited for is set, as in all ones. */
	f.nic.is_gone = true;
	assert_int_equal(mr_pci_wait32(f.pci, &bar, 4, 0xf0, 0xf0, 1000000),
			 -ENODEV);
	f.nic.is_gone = false;
}

static uint64_t clock_that_stands(void *opaque)
{
	(void)opaque;
	return 7;
}

PCI_TEST(a_wait_ends_if_the_clock_stands_still)
{
	struct mr_bar bar;

	f.ctx->config.clock = clock_that_stands;
	assert_int_equal(mr_pci_map_bar(f.pci, 0, &bar, NULL), 0);
	assert_int_equal(mr_pci_wait32(f.pci, &bar, 4, 1, 1, 100), -ETIMEDOUT);
	assert_in_range(f.nic.n_reads, 100, 200);
}
