/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/vfio_bar.c, on a vfio of our own. */
#include "support/vfio_unit.h"

#include <sys/wait.h>

/* What is in the memfd behind a BAR. */
static uint32_t behind(uint32_t idx, uint64_t offset)
{
	uint32_t value = 0;

	assert_int_equal(pread(f.pci->vfio->fd, &value, 4,
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

static void open_with(uint32_t idx, struct fake_bar bar)
{
	vfio_prepare();
	fake.devices[0].bars[idx] = bar;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
}

enum { NO_TABLE = UINT32_MAX, N_PROBES = 5 };

/* What the kernel says of a BAR, and what of it is the device's then. */
static const struct {
	uint32_t idx;
	struct fake_bar bar;
	uint32_t table; /* where the one of MSI-X begins */
	uint32_t there[N_PROBES], not_there[N_PROBES]; /* 0 behind the last */
	uint64_t n_bytes;                              /* that are mapped */
} cases[] = {
	{ 0,
	  { .size = 131072, .can_mmap = true, .is_msix_mappable = true },
	  NO_TABLE,
	  { 4, 0x3818, 131068 },
	  { 0 },
	  131072 },
	/* The areas of the kernel; the rest is as without a device. */
	{ 4,
	  { .size = 32768,
	    .can_mmap = true,
	    .is_msix_mappable = true,
	    .n_areas = 2,
	    .areas = { { 4096, 4096 }, { 16384, 8192 } } },
	  NO_TABLE,
	  { 4096, 8188, 16384, 24572 },
	  { 4, 8192, 16380, 24576, 32764 },
	  12288 },
	/* Not in order; one within another; outside of the BAR. */
	{ 4,
	  { .size = 32768,
	    .can_mmap = true,
	    .n_areas = 2,
	    .areas = { { 16384, 8192 }, { 4096, 4096 } } },
	  NO_TABLE,
	  { 4096, 16384 },
	  { 4, 8192, 24576 },
	  12288 },
	{ 4,
	  { .size = 32768,
	    .can_mmap = true,
	    .n_areas = 2,
	    .areas = { { 4096, 16384 }, { 8192, 4096 } } },
	  NO_TABLE,
	  { 4096, 16384 },
	  { 4, 24576 },
	  16384 },
	{ 4,
	  { .size = 16384,
	    .can_mmap = true,
	    .n_areas = 2,
	    .areas = { { 8192, 16384 }, { 32768, 4096 } } },
	  NO_TABLE,
	  { 0 },
	  { 8192 },
	  0 },
	/* Before 4.16: the pages of the table are left out, of its BAR. */
	{ 3,
	  { .size = 16384, .can_mmap = true },
	  0x2800 | 3,
	  { 8188, 12288 },
	  { 8192 },
	  12288 },
	{ 2,
	  { .size = 16384, .can_mmap = true },
	  0x2800 | 3,
	  { 8192 },
	  { 0 },
	  16384 },
	{ 3, { .size = 4096, .can_mmap = true }, 3, { 0 }, { 4092 }, 0 },
	/* What is behind the BAR in memory is not the device's to take. */
	{ 3,
	  { .size = 8192, .can_mmap = true },
	  0x100000 | 3,
	  { 8188 },
	  { 0 },
	  8192 },
};

TEST(only_mappable_ranges_of_a_bar_are_mapped)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t idx = cases[i].idx;
		struct mr_bar bar;

		vfio_prepare();
		fake.devices[0].bars[idx] = cases[i].bar;
		/* A MSI-X capability at 0x40. */
		if (cases[i].table != NO_TABLE)
			memcpy(fake.devices[0].config + 0x44, &cases[i].table,
			       4);
		assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
		assert_int_equal(mr_pci_map_bar(f.pci, idx, &bar, NULL), 0);
		assert_int_equal(bar.n_bytes, cases[i].bar.size);
		assert_int_equal(n_device_bytes(), cases[i].n_bytes);
		for (uint32_t k = 0; k < N_PROBES; k++) {
			const uint32_t there = cases[i].there[k];
			const uint32_t not_there = cases[i].not_there[k];

			if (there != 0) {
				/* Nothing was written to it on the way. */
				assert_int_equal(mr_bar_read32(&bar, there), 0);
				mr_bar_write32(&bar, there, k + 1);
				assert_int_equal(behind(idx, there), k + 1);
			}
			if (not_there != 0) {
				assert_int_equal(mr_bar_read32(&bar, not_there),
						 UINT32_MAX);
				mr_bar_write32(&bar, not_there, k + 1);
				assert_int_equal(behind(idx, not_there), 0);
			}
		}
		vfio_finish();
	}
}

TEST(unmappable_bar_is_refused_with_the_reason)
{
	struct mr_reason why = { "" };
	struct mr_bar bar;

	open_with(2, (struct fake_bar){ .size = 256 });
	assert_int_equal(mr_pci_map_bar(f.pci, 1, &bar, &why), -EINVAL);
	assert_reason_has(&why, "BAR 1 is empty");
	assert_int_equal(mr_pci_map_bar(f.pci, 2, &bar, &why), -ENOTSUP);
	assert_reason_has(&why, NIC_0 ": the kernel does not allow BAR 2 to be "
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
	vfio_finish();
}

/* Registers of a device are not a child's. */
TEST(a_bar_is_not_mapped_in_a_child)
{
	struct mr_bar bar;
	int status;
	pid_t child;

	open_with(0, (struct fake_bar){ .size = 4096,
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
	assert_int_equal(behind(0, 0), 0);
	vfio_finish();
}
