/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/space.c and dma.c, on a device in software. */
#include "support/pci_unit.h"

#include <sys/wait.h>

TEST(the_region_is_reached_at_base_and_address)
{
	struct pci_fixture f;
	uint8_t *base;

	pci_open(&f);
	base = mr_region_base(f.region);
	assert_int_equal(mr_pci_region_iova(f.pci) % (1 << 30), 0);
	assert_ptr_equal(soft_reach(&f.nic, mr_pci_region_iova(f.pci) + 5),
			 base + 5);
	/* A later segment is one more mapping, at the same base. */
	assert_int_equal(pci_grow(&f, NULL), 0);
	assert_int_equal(soft_n_mapped(&f.nic), 2);
	assert_ptr_equal(soft_reach(&f.nic, mr_pci_region_iova(f.pci) + 70000),
			 base + 70000);
	pci_finish(&f);
}

TEST(a_segment_that_cannot_be_mapped_is_refused)
{
	struct mr_reason why = { "" };
	struct mr_segment_info info;
	struct pci_fixture f;

	pci_open(&f);
	f.nic.map_err = -ENOMEM;
	assert_int_equal(pci_grow(&f, &why), -ENOMEM);
	assert_reason_has(&why, "soft: cannot map");
	assert_int_equal(mr_region_segment(f.region, 1, &info), -ENOENT);
	assert_false(mr_region_is_backed(f.region, 65536, 1));
	f.nic.map_err = 0;
	assert_int_equal(pci_grow(&f, NULL), 0);
	assert_int_equal(mr_region_segment(f.region, 1, &info), 0);
	assert_int_equal(info.addr, 65536);
	pci_finish(&f);
}

/* The second of three mappings fails: the first is taken back. */
TEST(a_region_is_mapped_whole_or_not)
{
	struct mr_reason why = { "" };
	struct pci_fixture f;

	pci_prepare(&f);
	assert_int_equal(pci_grow(&f, NULL), 0);
	assert_int_equal(pci_grow(&f, NULL), 0);
	f.nic.map_err = -ENOMEM;
	f.nic.map_fails_at = 2;
	assert_int_equal(pci_try(&f, "nic", &f.pci, &why), -ENOMEM);
	assert_int_equal(soft_n_mapped(&f.nic), 0);
	f.nic.map_err = 0;
	assert_int_equal(pci_try(&f, "nic", &f.pci, &why), 0);
	assert_int_equal(soft_n_mapped(&f.nic), 3);
	pci_finish(&f);
}

TEST(the_region_is_held_while_it_is_mapped)
{
	struct mr_reason why = { "" };
	struct pci_fixture f;

	pci_open(&f);
	assert_int_equal(mri_region_remove_segment(f.region, 0, &why), -EBUSY);
	assert_reason_has(&why, "vfio:nic");
	mr_pci_close(f.pci);
	f.pci = NULL;
	assert_int_equal(mri_region_remove_segment(f.region, 0, &why), 0);
	pci_finish(&f);
}

/* An IOMMU of 32 bits, whose upper part is taken by MSI. */
TEST(a_narrow_iommu_gets_a_part_of_the_region)
{
	struct mr_reason why = { "" };
	struct mri_segment_wish wish = { MRI_ADDR_ANY, 65536, 0 };
	struct mr_segment_info info;
	struct pci_fixture f;
	uint64_t addr;

	pci_prepare(&f);
	f.nic.ranges[0].last = 0xfedfffff;
	assert_int_equal(pci_try(&f, "nic", &f.pci, NULL), 0);
	/* Of 4 GiB there is room for 2, from 1 GiB on. */
	assert_int_equal(mr_pci_region_iova(f.pci), 1 << 30);
	assert_int_equal(mri_region_reserve(f.region, UINT64_C(3) << 30,
					    1 << 30, &addr, NULL),
			 0);
	wish.addr = addr + (UINT64_C(1) << 30);
	assert_int_equal(mri_region_add(f.region, &wish, &info, &why), -ENOSPC);
	assert_reason_has(&why, "nic: its IOMMU has room for 2 GiB");
	mr_pci_close(f.pci);
	f.pci = NULL;
	f.nic.ranges[0].last = (1 << 30) - 1;
	assert_int_equal(pci_try(&f, "nic", &f.pci, &why), -ENOSPC);
	assert_reason_has(&why, "as long as the region");
	pci_finish(&f);
}

TEST(a_guarded_region_is_refused)
{
	struct mr_reason why = { "" };
	struct pci_fixture f;

	pci_prepare(&f);
	f.region->n_guarded = 1;
	assert_int_equal(pci_try(&f, "nic", &f.pci, &why), -ENOTSUP);
	assert_reason_has(&why, "pool of level guard");
	f.region->n_guarded = 0;
	for (int i = 0; i < MRI_MAX_PINS; i++)
		assert_int_equal(mr_region_pin(f.region, "x", 1), 0);
	assert_int_equal(pci_try(&f, "nic", &f.pci, &why), -ENOSPC);
	assert_reason_has(&why, "too many ports");
	for (int i = 0; i < MRI_MAX_PINS; i++)
		mr_region_unpin(f.region, "x", 1);
	pci_finish(&f);
}

TEST(ring_memory_is_zeroed_and_reached)
{
	struct pci_fixture f;
	struct mr_dma a, b;

	pci_open(&f);
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
	pci_finish(&f);
}

TEST(ring_memory_that_is_not_to_be_had_is_undone)
{
	struct mr_reason why = { "" };
	struct pci_fixture f;
	struct mr_dma dma;
	int32_t n_out;

	pci_prepare(&f);
	/* Room for the region, and for two pages below 1 GiB. */
	f.nic.n_ranges = 2;
	f.nic.ranges[0] = (struct mr_pci_range){ 2 << 20, (2 << 20) + 8191 };
	f.nic.ranges[1] = (struct mr_pci_range){ 1 << 30, (2u << 30) - 1 };
	assert_int_equal(pci_try(&f, "nic", &f.pci, NULL), 0);
	n_out = f.allocator.n_out;
	assert_int_equal(mr_pci_dma_alloc(f.pci, 12288, &dma, &why), -ENOSPC);
	assert_reason_has(&why, "no 12 KiB are left");
	assert_int_equal(mr_pci_dma_alloc(f.pci, UINT64_C(1) << 62, &dma, &why),
			 -ENOMEM);
	f.nic.map_err = -ENOMEM;
	assert_int_equal(mr_pci_dma_alloc(f.pci, 8192, &dma, &why), -ENOMEM);
	assert_reason_has(&why, "soft: cannot map");
	f.nic.map_err = 0;
	f.allocator.fail_at = f.allocator.n_calls + 1;
	assert_int_equal(mr_pci_dma_alloc(f.pci, 8192, &dma, &why), -ENOMEM);
	assert_int_equal(f.allocator.n_out, n_out);
	/* The IOVAs came back: all of them are to be had. */
	assert_int_equal(mr_pci_dma_alloc(f.pci, 8192, &dma, &why), 0);
	assert_int_equal(dma.iova, 2 << 20);
	pci_finish(&f);
}

/* A child that shared it would make our next store go to a copy. */
TEST(ring_memory_is_in_no_child)
{
	struct pci_fixture f;
	struct mr_dma dma;
	int status;
	pid_t child;

	pci_open(&f);
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
	pci_finish(&f);
}

/* A device that reaches no region: ring memory alone. */
TEST(no_region_is_allowed)
{
	const struct mr_pci_config config = { .size = sizeof(config) };
	struct pci_fixture f;
	struct mr_dma dma;

	pci_prepare(&f);
	assert_int_equal(mr_pci_open(f.ctx, "nic", &config, &f.pci, NULL), 0);
	assert_int_equal(soft_n_mapped(&f.nic), 0);
	assert_int_equal(mr_pci_dma_alloc(f.pci, 4096, &dma, NULL), 0);
	pci_finish(&f);
}
