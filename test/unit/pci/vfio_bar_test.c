/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/vfio_bar.c, on a vfio of our own. */
#include "support/vfio_unit.h"

#include <sys/wait.h>

/* What is in the memfd behind a BAR. */
static uint32_t behind(const struct vfio_fixture *f, uint32_t idx,
		       uint64_t offset)
{
	uint32_t value = 0;

	assert_int_equal(pread(f->pci->vfio->fd, &value, 4,
			       (off_t)(((uint64_t)idx << 40) + offset)),
			 4);
	return value;
}

/* Bytes of the process's memory that are a device's. */
static uint64_t n_device_bytes(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	uint64_t n_bytes = 0;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		if (strstr(line, "/memfd:fake") != NULL &&
		    sscanf(line, "%lx-%lx", &begin, &end) == 2)
			n_bytes += end - begin;
	assert_int_equal(fclose(file), 0);
	return n_bytes;
}

static void open_with(struct vfio_fixture *f, uint32_t idx, struct fake_bar bar)
{
	vfio_prepare(f);
	fake.devices[0].bars[idx] = bar;
	assert_int_equal(vfio_try(f, NIC_0, MR_PCI_AUTO, &f->pci, NULL), 0);
}

/* A MSI-X capability at 0x40: 8 vectors, the table at an offset of a BAR. */
static void put_table(uint32_t idx, uint32_t offset)
{
	const uint32_t where = offset | idx;

	memcpy(fake.devices[0].config + 0x44, &where, 4);
}

TEST(a_bar_is_the_device_s)
{
	struct vfio_fixture f;
	struct mr_bar bar;

	open_with(&f, 0,
		  (struct fake_bar){ .size = 131072,
				     .can_mmap = true,
				     .is_msix_mappable = true });
	assert_int_equal(mr_pci_map_bar(f.pci, 0, &bar, NULL), 0);
	assert_int_equal(bar.n_bytes, 131072);
	mr_bar_write32(&bar, 0x3818, 0x12345678);
	assert_int_equal(behind(&f, 0, 0x3818), 0x12345678);
	assert_int_equal(mr_bar_read32(&bar, 131068), 0);
	vfio_finish(&f);
}

TEST(the_areas_of_the_kernel_are_mapped)
{
	struct vfio_fixture f;
	struct mr_bar bar;

	open_with(&f, 4,
		  (struct fake_bar){
			  .size = 32768,
			  .can_mmap = true,
			  .is_msix_mappable = true,
			  .n_areas = 2,
			  .areas = { { 4096, 4096 }, { 16384, 8192 } } });
	assert_int_equal(mr_pci_map_bar(f.pci, 4, &bar, NULL), 0);
	assert_int_equal(bar.n_bytes, 32768);
	mr_bar_write32(&bar, 4096, 1);
	mr_bar_write32(&bar, 24572, 2);
	assert_int_equal(behind(&f, 4, 4096), 1);
	assert_int_equal(behind(&f, 4, 24572), 2);
	/* The rest is as without a device. */
	assert_int_equal(mr_bar_read32(&bar, 0), UINT32_MAX);
	assert_int_equal(mr_bar_read32(&bar, 8192), UINT32_MAX);
	assert_int_equal(mr_bar_read32(&bar, 32764), UINT32_MAX);
	mr_bar_write32(&bar, 8192, 3);
	assert_int_equal(behind(&f, 4, 8192), 0);
	vfio_finish(&f);
}

/* Not in order, and one within another. */
TEST(areas_may_come_in_any_order)
{
	static const struct vfio_area lists[][2] = {
		{ { 16384, 8192 }, { 4096, 4096 } },
		{ { 4096, 16384 }, { 8192, 4096 } },
	};
	struct vfio_fixture f;
	struct mr_bar bar;

	for (int i = 0; i < 2; i++) {
		struct fake_bar parts = { .size = 32768,
					  .can_mmap = true,
					  .n_areas = 2 };

		memcpy(parts.areas, lists[i], sizeof(parts.areas));
		open_with(&f, 4, parts);
		assert_int_equal(mr_pci_map_bar(f.pci, 4, &bar, NULL), 0);
		/* Nothing was written to the device on the way. */
		assert_int_equal(mr_bar_read32(&bar, 4096), 0);
		assert_int_equal(mr_bar_read32(&bar, 16384), 0);
		assert_int_equal(behind(&f, 4, 16384), 0);
		assert_int_equal(mr_bar_read32(&bar, 0), UINT32_MAX);
		assert_int_equal(mr_bar_read32(&bar, 24576), UINT32_MAX);
		vfio_finish(&f);
	}
}

TEST(areas_outside_of_the_bar_are_not)
{
	struct vfio_fixture f;
	struct mr_bar bar;

	open_with(&f, 4,
		  (struct fake_bar){
			  .size = 16384,
			  .can_mmap = true,
			  .n_areas = 2,
			  .areas = { { 8192, 16384 }, { 32768, 4096 } } });
	assert_int_equal(mr_pci_map_bar(f.pci, 4, &bar, NULL), 0);
	assert_int_equal(mr_bar_read32(&bar, 8192), UINT32_MAX);
	vfio_finish(&f);
}

/* Before 4.16: the pages of the table are left out, whatever else is there. */
TEST(the_table_is_mapped_around)
{
	struct vfio_fixture f;
	struct mr_bar bar;

	vfio_prepare(&f);
	put_table(3, 0x2800); /* in the page at 8192 */
	fake.devices[0].bars[3] =
		(struct fake_bar){ .size = 16384, .can_mmap = true };
	assert_int_equal(vfio_try(&f, NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(mr_pci_map_bar(f.pci, 3, &bar, NULL), 0);
	mr_bar_write32(&bar, 8188, 1);
	mr_bar_write32(&bar, 12288, 2);
	assert_int_equal(behind(&f, 3, 8188), 1);
	assert_int_equal(behind(&f, 3, 12288), 2);
	assert_int_equal(mr_bar_read32(&bar, 8192), UINT32_MAX);
	/* Another BAR is whole. */
	fake.devices[0].bars[2] =
		(struct fake_bar){ .size = 16384, .can_mmap = true };
	assert_int_equal(mr_pci_map_bar(f.pci, 2, &bar, NULL), 0);
	assert_int_equal(mr_bar_read32(&bar, 8192), 0);
	vfio_finish(&f);
}

TEST(a_table_on_each_page_leaves_nothing)
{
	struct vfio_fixture f;
	struct mr_bar bar;

	vfio_prepare(&f);
	put_table(3, 0);
	fake.devices[0].bars[3] =
		(struct fake_bar){ .size = 4096, .can_mmap = true };
	assert_int_equal(vfio_try(&f, NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(mr_pci_map_bar(f.pci, 3, &bar, NULL), 0);
	assert_int_equal(mr_bar_read32(&bar, 4092), UINT32_MAX);
	vfio_finish(&f);
}

/* What is behind the BAR in memory is not the device's to take. */
TEST(a_table_past_the_end_maps_no_more_than_the_bar)
{
	struct vfio_fixture f;
	struct mr_bar bar;

	vfio_prepare(&f);
	put_table(3, 0x100000);
	fake.devices[0].bars[3] =
		(struct fake_bar){ .size = 8192, .can_mmap = true };
	assert_int_equal(vfio_try(&f, NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(mr_pci_map_bar(f.pci, 3, &bar, NULL), 0);
	mr_bar_write32(&bar, 8188, 1);
	assert_int_equal(behind(&f, 3, 8188), 1);
	assert_int_equal(n_device_bytes(), 8192);
	vfio_finish(&f);
}

TEST(a_bar_that_cannot_be_mapped_says_why)
{
	struct mr_reason why = { "" };
	struct vfio_fixture f;
	struct mr_bar bar;

	open_with(&f, 2, (struct fake_bar){ .size = 256 });
	assert_int_equal(mr_pci_map_bar(f.pci, 1, &bar, &why), -EINVAL);
	assert_reason_has(&why, "BAR 1 is empty");
	assert_int_equal(mr_pci_map_bar(f.pci, 2, &bar, &why), -ENOTSUP);
	assert_reason_has(&why, NIC_0 ": the kernel does not let BAR 2 be "
				      "mapped");
	assert_int_equal(mr_pci_write_config(f.pci, 0x18, "\x01", 1), 0);
	assert_int_equal(mr_pci_map_bar(f.pci, 2, &bar, &why), -ENOTSUP);
	assert_reason_has(&why, "I/O ports");
	/* More than the memfd has: mmap() at an offset past its limit. */
	fake.devices[0].bars[5] = (struct fake_bar){ .size = UINT64_C(1) << 60,
						     .can_mmap = true };
	assert_int_equal(mr_pci_map_bar(f.pci, 5, &bar, &why), -ENOMEM);
	assert_reason_has(&why, "cannot map BAR 5");
	fake_call("GET_REGION_INFO")->fail_at =
		fake_call("GET_REGION_INFO")->n_calls + 1;
	fake_call("GET_REGION_INFO")->fail_errno = EIO;
	assert_int_equal(mr_pci_map_bar(f.pci, 0, &bar, &why), -EIO);
	assert_reason_has(&why, "VFIO_DEVICE_GET_REGION_INFO failed");
	vfio_finish(&f);
}

/* Registers of a device are not a child's. */
TEST(a_bar_is_in_no_child)
{
	struct vfio_fixture f;
	struct mr_bar bar;
	int status;
	pid_t child;

	open_with(&f, 0,
		  (struct fake_bar){ .size = 4096,
				     .can_mmap = true,
				     .is_msix_mappable = true });
	assert_int_equal(mr_pci_map_bar(f.pci, 0, &bar, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		mr_bar_write32(&bar, 0, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
	assert_int_equal(behind(&f, 0, 0), 0);
	vfio_finish(&f);
}
