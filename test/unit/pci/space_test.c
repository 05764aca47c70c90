/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/space.c and dma.c, on a device in software. */
#include "support/pci_unit.h"

#include <sys/wait.h>

PCI_TEST(the_region_is_reached_at_base_and_address)
{
	uint8_t *base;

	base = mr_region_base(f.region);
	assert_int_equal(mr_pci_region_iova(f.pci) % (1 << 30), 0);
	assert_ptr_equal(soft_reach(&f.nic, mr_pci_region_iova(f.pci) + 5),
			 base + 5);
	/* A later segment is one more mapping, at the same base. */
	assert_int_equal(pci_grow(NULL), 0);
	assert_int_equal(soft_n_mapped(&f.nic), 2);
	assert_ptr_equal(soft_reach(&f.nic, mr_pci_region_iova(f.pci) + 70000),
			 base + 70000);
}

PCI_TEST(a_segment_that_cannot_be_mapped_is_refused)
{
	struct mr_segment_info info;

	f.nic.map_err = -ENOMEM;
	assert_failure(pci_grow(&f.why), -ENOMEM, "soft: cannot map");
	assert_int_equal(mr_region_segment(f.region, 1, &info), -ENOENT);
	assert_false(mr_region_is_backed(f.region, 65536, 1));
	f.nic.map_err = 0;
	assert_int_equal(pci_grow(NULL), 0);
	assert_int_equal(mr_region_segment(f.region, 1, &info), 0);
	assert_int_equal(info.addr, 65536);
}

/* The second of three mappings fails: the first is taken back. */
PCI_CLOSED_TEST(a_region_is_mapped_whole_or_not)
{
	assert_int_equal(pci_grow(NULL), 0);
	assert_int_equal(pci_grow(NULL), 0);
	f.nic.map_err = -ENOMEM;
	f.nic.map_fails_at = 2;
	assert_int_equal(pci_try("nic", &f.pci, &f.why), -ENOMEM);
	assert_int_equal(soft_n_mapped(&f.nic), 0);
	f.nic.map_err = 0;
	assert_int_equal(pci_try("nic", &f.pci, &f.why), 0);
	assert_int_equal(soft_n_mapped(&f.nic), 3);
}

PCI_TEST(the_region_is_held_while_it_is_mapped)
{
	assert_failure(mri_region_remove_segment(f.region, 0, &f.why), -EBUSY,
		       "vfio:nic");
	mr_pci_close(f.pci);
	f.pci = NULL;
	assert_int_equal(mri_region_remove_segment(f.region, 0, &f.why), 0);
	f.n_fds--; /* its memfd */
}

/* An IOMMU of 32 bits, whose upper part is taken by MSI. */
PCI_CLOSED_TEST(a_narrow_iommu_gets_a_part_of_the_region)
{
	struct mri_segment_wish wish = { MRI_ADDR_ANY, 65536, 0, 0 };
	struct mr_segment_info info;
	uint64_t addr;

	f.nic.ranges[0].last = 0xfedfffff;
	assert_int_equal(pci_try("nic", &f.pci, NULL), 0);
	/* Of 4 GiB there is room for 2, from 1 GiB on. */
	assert_int_equal(mr_pci_region_iova(f.pci), 1 << 30);
	assert_int_equal(mri_region_reserve(f.region, UINT64_C(3) << 30,
					    1 << 30, false, &addr, NULL),
			 0);
	wish.reserved_addr = addr;
	wish.addr = addr + (UINT64_C(1) << 30);
	assert_failure(mri_region_add(f.region, &wish, &info, &f.why), -ENOSPC,
		       "nic: its IOMMU has room for 2 GiB");
	mr_pci_close(f.pci);
	f.pci = NULL;
	f.nic.ranges[0].last = (1 << 30) - 1;
	assert_failure(pci_try("nic", &f.pci, &f.why), -ENOSPC,
		       "as large as the region");
}

PCI_CLOSED_TEST(region_with_too_many_ports_is_refused)
{
	for (int i = 0; i < MRI_MAX_PINS; i++)
		assert_int_equal(mr_region_pin(f.region, "x", 1), 0);
	assert_failure(pci_try("nic", &f.pci, &f.why), -ENOSPC,
		       "too many ports");
	for (int i = 0; i < MRI_MAX_PINS; i++)
		mr_region_unpin(f.region, "x", 1);
}

PCI_TEST(ring_memory_is_zeroed_and_reached)
{
	struct mr_dma a, b;

	assert_int_equal(mr_pci_dma_alloc(f.pci, 5000, &a, NULL), 0);
	assert_int_equal(mr_pci_dma_alloc(f.pci, 0, &b, NULL), 0);
	assert_int_equal(a.n_bytes, 8192);
	assert_int_equal(b.n_bytes, 4096);
	assert_int_equal((uintptr_t)a.memory % 4096, 0);
	assert_int_equal(a.iova % 4096, 0);
	assert_true(a.iova >= 1 << 20 && a.iova < UINT64_C(1) << 32);
	for (uint32_t i = 0; i < a.n_bytes; i++)
		assert_int_equal(((uint8_t *)a.memory)[i], 0);
	assert_ptr_equal(soft_reach(&f.nic, a.iova + 8191),
			 (uint8_t *)a.memory + 8191);
	assert_ptr_equal(soft_reach(&f.nic, b.iova), b.memory);
	mr_pci_dma_free(f.pci, &a);
	assert_null(a.memory);
	mr_pci_dma_free(f.pci, &a);
	assert_int_equal(soft_n_mapped(&f.nic), 2);
	/* What is still out goes with the device. */
}

PCI_CLOSED_TEST(ring_memory_is_undone_if_mapping_fails)
{
	struct mr_dma dma;
	int32_t n_out;

	/* Room for the region, and for two pages below 1 GiB. */
	f.nic.n_ranges = 2;
	f.nic.ranges[0] = (struct mr_pci_range){ 2 << 20, (2 << 20) + 8191 };
	f.nic.ranges[1] = (struct mr_pci_range){ 1 << 30, (2u << 30) - 1 };
	assert_int_equal(pci_try("nic", &f.pci, NULL), 0);
	n_out = f.allocator.n_out;
	assert_failure(mr_pci_dma_alloc(f.pci, 12288, &dma, &f.why), -ENOSPC,
		       "no 12 KiB left");
	assert_int_equal(
		mr_pci_dma_alloc(f.pci, UINT64_C(1) << 62, &dma, &f.why),
		-ENOMEM);
	f.nic.map_err = -ENOMEM;
	assert_failure(mr_pci_dma_alloc(f.pci, 8192, &dma, &f.why), -ENOMEM,
		       "soft: cannot map");
	f.nic.map_err = 0;
	f.allocator.fail_at = f.allocator.n_calls + 1;
	assert_int_equal(mr_pci_dma_alloc(f.pci, 8192, &dma, &f.why), -ENOMEM);
	assert_int_equal(f.allocator.n_out, n_out);
	/* The IOVAs came back: all of them are to be had. */
	assert_int_equal(mr_pci_dma_alloc(f.pci, 8192, &dma, &f.why), 0);
	assert_int_equal(dma.iova, 2 << 20);
}

/* A child that shared it would make our next store go to a copy. */
PCI_TEST(ring_memory_is_not_mapped_in_a_child)
{
	struct mr_dma dma;
	int status;
	pid_t child;

	assert_int_equal(mr_pci_dma_alloc(f.pci, 4096, &dma, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		*(uint8_t *)dma.memory = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

/* A device that reaches no region: ring memory alone. */
PCI_CLOSED_TEST(a_device_may_be_opened_without_a_region)
{
	const struct mr_pci_config config = { .size = sizeof(config) };
	struct mr_dma dma;

	assert_int_equal(mr_pci_open(f.ctx, "nic", &config, &f.pci, NULL), 0);
	assert_int_equal(soft_n_mapped(&f.nic), 0);
	assert_int_equal(mr_pci_dma_alloc(f.pci, 4096, &dma, NULL), 0);
}
