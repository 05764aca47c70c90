/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pci/vfio.c, vfio_group.c, vfio_iommufd.c and vfio_noiommu.c, on
 * a vfio of our own.
 */
#include "support/vfio_unit.h"

#include <sys/wait.h>

static uint16_t read_command(const struct mr_pci *pci)
{
	uint16_t command = 0;

	assert_int_equal(pread(pci->vfio->fd, &command, 2,
			       ((off_t)VFIO_PCI_CONFIG_REGION_INDEX << 40) + 4),
			 2);
	return command;
}

/* All that a driver does with a device. */
static void use(void)
{
	struct fake_device *const d = &fake.devices[0];
	uint8_t *const base = mr_region_base(f.region);
	struct mr_dma dma;
	int fds[3];

	assert_int_equal(read_command(f.pci), 1 << 1 | 1 << 10);
	assert_ptr_equal(fake_reach(mr_pci_region_iova(f.pci) + 5), base + 5);
	assert_int_equal(fake_n_maps(), 1);
	assert_int_equal(vfio_grow(f.region, NULL), 0);
	assert_int_equal(fake_n_maps(), 2);
	assert_ptr_equal(fake_reach(mr_pci_region_iova(f.pci) + 70000),
			 base + 70000);
	assert_int_equal(mr_pci_dma_alloc(f.pci, 4096, &dma, NULL), 0);
	assert_ptr_equal(fake_reach(dma.iova), dma.memory);
	assert_int_equal(mr_pci_set_irqs(f.pci, 3, fds, NULL), 3);
	assert_int_equal(d->n_armed[VFIO_PCI_MSIX_IRQ_INDEX], 3);
	assert_memory_equal(d->fds[VFIO_PCI_MSIX_IRQ_INDEX], fds, sizeof(fds));
	assert_int_equal(d->n_armed[VFIO_PCI_ERR_IRQ_INDEX], 1);
	assert_int_equal(d->n_armed[VFIO_PCI_REQ_IRQ_INDEX], 1);
	assert_int_equal(d->fds[VFIO_PCI_REQ_IRQ_INDEX][0], f.pci->req_fd);
	assert_int_equal(mr_pci_set_bus_master(f.pci, true), 0);
	assert_int_equal(read_command(f.pci), 1 << 1 | 1 << 2 | 1 << 10);
}

TEST(each_interface_of_vfio_works_and_leaves_nothing)
{
	static const struct {
		enum mr_pci_access access;
		bool has_cdev;
		int type;
		const char *mode;
	} ways[] = {
		{ MR_PCI_AUTO, false, VFIO_TYPE1v2_IOMMU, "type1v2" },
		{ MR_PCI_AUTO, true, VFIO_TYPE1v2_IOMMU, "iommufd" },
		{ MR_PCI_GROUP, true, VFIO_TYPE1v2_IOMMU, "type1v2" },
		{ MR_PCI_GROUP, false, 0, "type1" },
		{ MR_PCI_IOMMUFD, true, VFIO_TYPE1v2_IOMMU, "iommufd" },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		vfio_prepare();
		fake.types[1] = ways[i].type;
		if (ways[i].has_cdev)
			vfio_add_cdev();
		assert_int_equal(
			vfio_try("03:00.0", ways[i].access, &f.pci, NULL), 0);
		assert_string_equal(mr_pci_mode(f.pci), ways[i].mode);
		use();
		vfio_finish();
		for (int k = 0; k < 5; k++)
			assert_int_equal(fake.devices[0].n_armed[k], 0);
	}
}

VFIO_TEST(auto_uses_a_node_that_the_user_may_open)
{
	vfio_add_cdev();
	fake.open_errno[FAKE_IOMMUFD] = EACCES;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_string_equal(mr_pci_mode(f.pci), "type1v2");
}

/* One mapping for two ports, which outlives each of them. */
TEST(ports_of_a_region_share_its_mapping)
{
	struct mr_pci *second;

	for (int has_cdev = 0; has_cdev < 2; has_cdev++) {
		vfio_prepare();
		if (has_cdev)
			vfio_add_cdev();
		second = vfio_open_both();
		assert_int_equal(fake_n_maps(), 1);
		assert_int_equal(mr_pci_region_iova(f.pci),
				 mr_pci_region_iova(second));
		mr_pci_close(f.pci);
		f.pci = NULL;
		assert_int_equal(fake_n_maps(), 1);
		assert_int_equal(vfio_grow(f.region, NULL), 0);
		assert_int_equal(fake_n_maps(), 2);
		mr_pci_close(second);
		vfio_finish();
	}
}

VFIO_TEST(ring_memory_of_two_ports_never_meets)
{
	struct mr_pci *second;
	struct mr_dma a, b;

	second = vfio_open_both();
	assert_int_equal(mr_pci_dma_alloc(f.pci, 8192, &a, NULL), 0);
	assert_int_equal(mr_pci_dma_alloc(second, 4096, &b, NULL), 0);
	assert_int_equal(b.iova, a.iova + 8192);
	mr_pci_close(second);
	assert_null(fake_reach(b.iova));
	assert_ptr_equal(fake_reach(a.iova), a.memory);
}

VFIO_TEST(a_group_takes_memory_of_one_region_only)
{
	struct mr_pci *second = NULL;
	struct mr_region *first;

	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	first = f.region;
	f.region = vfio_region(f.ctx);
	assert_failure(vfio_try(NIC_1, MR_PCI_AUTO, &second, &f.why), -EBUSY,
		       NIC_1 ": another port of its IOMMU group 14");
	assert_int_equal(mr_region_destroy(f.region, NULL), 0);
	f.n_fds--; /* its memfd */
	f.region = first;
}

/* With a group of its own, another region has a container of its own. */
VFIO_TEST(two_regions_have_two_containers)
{
	struct mr_region *first;
	struct mr_pci *second = NULL;

	fake_nic(&f.sysfs, NIC_1, "0x8086", "0x10c9", "vfio-pci", "15");
	fake.devices[1].group = 15;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	first = f.region;
	f.region = vfio_region(f.ctx);
	assert_int_equal(vfio_try(NIC_1, MR_PCI_AUTO, &second, NULL), 0);
	assert_int_equal(fake_n_maps(), 2);
	assert_ptr_not_equal(f.pci->vfio->container, second->vfio->container);
	mr_pci_close(second);
	assert_int_equal(mr_region_destroy(f.region, NULL), 0);
	f.n_fds--;
	f.region = first;
}

/* Calls that opening can do without, or that come later: vfio_late_test.c. */
static bool is_needless(const char *name)
{
	static const char *const names[] = {
		"CHECK_EXTENSION", "GET_IRQ_INFO", "SET_IRQS",
		"UNMAP_DMA",       "IOAS_UNMAP",   "UNSET_CONTAINER",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

TEST(each_call_that_fails_is_undone_and_has_its_reason)
{
	uint32_t n_failed = 0;

	for (int i = 0; i < 2 * FAKE_CALLS; i++) {
		struct fake_call *call = &fake_calls[i / 2];
		struct mr_reason why = { "" };
		int32_t n_out;

		if (is_needless(call->name))
			continue;
		vfio_prepare();
		if (i % 2 == 1)
			vfio_add_cdev();
		n_out = f.allocator.n_out;
		call->fail_at = 1;
		call->fail_errno = EIO;
		if (vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, &why) < 0) {
			assert_reason_has(&why, NIC_0);
			assert_int_equal(f.allocator.n_out, n_out);
			assert_null(f.pci);
			assert_vfio_clean();
			n_failed++;
			/* And it can be had as if nothing had been. */
			assert_int_equal(
				vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
		} else {
			assert_int_equal(call->n_calls, 0); /* the other way */
		}
		vfio_finish();
	}
	/* 7 calls of a group, 5 of iommufd, 2 of a device in either way. */
	assert_int_equal(n_failed, 7 + 5 + 2 * 2);
}

TEST(no_memory_is_an_error)
{
	for (int has_cdev = 0; has_cdev < 2; has_cdev++) {
		uint32_t n_failed = 0;

		vfio_prepare();
		if (has_cdev)
			vfio_add_cdev();
		for (;;) {
			const int32_t n_out = f.allocator.n_out;
			int err;

			f.allocator.fail_at =
				f.allocator.n_calls + 1 + n_failed;
			err = vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL);
			if (err == 0)
				break;
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(f.allocator.n_out, n_out);
			assert_vfio_clean();
			n_failed++;
		}
		assert_int_equal(n_failed, has_cdev ? 4 : 5);
		vfio_finish();
	}
}

VFIO_TEST(without_ranges_from_the_kernel_iova_has_39_bits)
{
	fake.says_no_ranges = true;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(f.pci->space->iova.n_ranges, 2);
	assert_int_equal(f.pci->space->iova.ranges[1].last,
			 (UINT64_C(1) << 39) - 1);
}

/* Behind a capability of 12 bytes, without padding. */
VFIO_TEST(ranges_are_found_where_the_kernel_does_not_align_them)
{
	fake.ranges[1].end = (UINT64_C(1) << 48) - 1;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(f.pci->space->iova.ranges[1].last,
			 (UINT64_C(1) << 48) - 1);
}

VFIO_TEST(a_chain_that_loops_has_no_ranges)
{
	fake.chain_loops = true;
	fake.ranges[1].end = UINT64_MAX;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(f.pci->space->iova.ranges[1].last,
			 (UINT64_C(1) << 39) - 1);
}

TEST(no_more_ranges_are_returned_than_fit)
{
	struct mr_pci_range range;

	for (int has_cdev = 0; has_cdev < 2; has_cdev++) {
		vfio_prepare();
		if (has_cdev)
			vfio_add_cdev();
		assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
		assert_int_equal(f.pci->vfio->way->ranges(
					 f.pci->vfio->container, &range, 1),
				 1);
		assert_int_equal(range.last, 0xfedfffff);
		vfio_finish();
	}
}

VFIO_TEST(an_irq_may_be_msi_alone_or_fewer)
{
	int fds[4];

	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	fake.devices[0].n_free_vectors = 2;
	assert_int_equal(mr_pci_set_irqs(f.pci, 4, fds, NULL), 2);
	assert_int_equal(fake.devices[0].n_armed[VFIO_PCI_MSIX_IRQ_INDEX], 2);
	fake.devices[0].n_vectors[VFIO_PCI_MSIX_IRQ_INDEX] = 0;
	fake.devices[0].n_vectors[VFIO_PCI_MSI_IRQ_INDEX] = 1;
	assert_int_equal(mr_pci_set_irqs(f.pci, 4, fds, NULL), 1);
	assert_int_equal(fake.devices[0].n_armed[VFIO_PCI_MSI_IRQ_INDEX], 1);
	fake.devices[0].n_vectors[VFIO_PCI_MSI_IRQ_INDEX] = 0;
	assert_int_equal(mr_pci_set_irqs(f.pci, 4, fds, NULL), -EIO);
}

/* No PCI Express, so no ERR; REQ all the same. */
TEST(only_events_of_the_device_are_reported)
{
	vfio_prepare();
	fake.devices[0].n_vectors[VFIO_PCI_ERR_IRQ_INDEX] = 0;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_true(mr_pci_event_fd(f.pci) >= 0);
	assert_int_equal(fake.devices[0].n_armed[VFIO_PCI_REQ_IRQ_INDEX], 1);
	assert_int_equal(fake.devices[0].n_armed[VFIO_PCI_ERR_IRQ_INDEX], 0);
	vfio_finish();
	vfio_prepare();
	fake_call("SET_IRQS")->fail_at = 1;
	fake_call("SET_IRQS")->fail_errno = EINVAL;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(mr_pci_event_fd(f.pci), -1);
	vfio_finish();
}

VFIO_TEST(a_name_of_no_pci_device_is_refused)
{
	fake.devices[0].flags = 0;
	assert_failure(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, &f.why), -EIO,
		       "not a PCI device");
}

/* A child that kept them would keep the device busy. */
VFIO_TEST(no_fd_is_open_in_a_child)
{
	int status;
	pid_t child;

	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const int fds[] = { f.pci->vfio->fd, f.pci->vfio->group->fd,
				    f.pci->vfio->container->fd };

		for (int i = 0; i < 3; i++)
			if (fcntl(fds[i], F_GETFD) >= 0)
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A pagemap in which the OS page at `at` is frame `frame`. */
static void set_frame(const void *at, uint64_t frame)
{
	const uint64_t entry = UINT64_C(1) << 63 | frame;

	assert_int_equal(pwrite(fake.pagemap, &entry, sizeof(entry),
				(off_t)((uintptr_t)at / 4096 * sizeof(entry))),
			 sizeof(entry));
}

static void open_pagemap(void)
{
	fake.has_noiommu = true;
	fake.types[0] = VFIO_NOIOMMU_IOMMU;
	fake.types[1] = 0;
	fake.pagemap = memfd_create("pagemap", MFD_CLOEXEC);
	assert_true(fake.pagemap >= 0);
	f.n_fds = n_open_fds();
	/* As if it were on huge pages, which the machine may not have. */
	f.region->segments[0].os_page_bytes = 2 << 20;
}

VFIO_TEST(without_an_iommu_addresses_are_physical)
{
	uint8_t *base;

	open_pagemap();
	base = mr_region_base(f.region);
	set_frame(base, 0x12300);
	assert_int_equal(vfio_try(NIC_0, MR_PCI_NOIOMMU, &f.pci, NULL), 0);
	assert_string_equal(mr_pci_mode(f.pci), "noiommu");
	assert_int_equal(mr_pci_region_iova(f.pci), 0x12300000);
	assert_int_equal(fake_n_maps(), 0);
	assert_non_null(strstr(f.allocator.last_line, "any memory"));
	/* A segment elsewhere is refused; one that goes on is not. */
	set_frame(base + 65536, 0x99900);
	assert_int_equal(vfio_grow(f.region, NULL), -ENOTSUP);
	set_frame(base + 65536, 0x12310);
	assert_int_equal(vfio_grow(f.region, NULL), 0);
	mr_pci_close(f.pci);
	f.pci = NULL;
	assert_vfio_clean();
	__real_close(fake.pagemap);
	f.n_fds--;
}

VFIO_TEST(without_an_iommu_unknown_memory_is_refused)
{
	open_pagemap();
	set_frame(mr_region_base(f.region), 0); /* no CAP_SYS_ADMIN */
	assert_failure(vfio_try(NIC_0, MR_PCI_NOIOMMU, &f.pci, &f.why), -EPERM,
		       "CAP_SYS_ADMIN");
	f.region->segments[0].os_page_bytes = 4096;
	assert_failure(vfio_try(NIC_0, MR_PCI_NOIOMMU, &f.pci, &f.why),
		       -ENOTSUP, "a single huge page of 1 GiB");
	fake.types[0] = VFIO_TYPE1_IOMMU;
	assert_failure(vfio_try(NIC_0, MR_PCI_NOIOMMU, &f.pci, &f.why),
		       -ENOTSUP, "enable_unsafe_noiommu_mode");
	/* Not without being asked for by name. */
	assert_failure(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, &f.why), -ENOTSUP,
		       "iommu=noiommu");
	__real_close(fake.pagemap);
	f.n_fds--;
}

VFIO_TEST(noncontiguous_memory_is_refused)
{
	const uint64_t huge = 2 << 20;
	uint64_t address = 0;
	uint8_t *const at = (uint8_t *)(uintptr_t)(UINT64_C(1) << 40);

	open_pagemap();
	set_frame(at, 512);
	set_frame(at + huge, 1024);
	set_frame(at + 2 * huge, 1537);
	assert_int_equal(mri_physical(at + 8, 2 * huge - 8, &address), 0);
	assert_int_equal(address, 512 * 4096 + 8);
	assert_int_equal(mri_physical(at, 2 * huge + 1, &address), -ENXIO);
	assert_int_equal(mri_physical(at, 4 * huge, &address), -ENXIO);
	set_frame(at + huge, 0);
	assert_int_equal(mri_physical(at, 2 * huge, &address), -EPERM);
	__real_close(fake.pagemap);
	f.n_fds--;
}
