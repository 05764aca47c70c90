/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/vfio_refuse.c: what a person is told. */
#include "support/vfio_unit.h"

#include <sys/resource.h>

/* It is refused so, and nothing is left. */
static void assert_refused(enum mr_pci_access kind, int err, const char *words)
{
	struct mr_reason why = { "" };
	struct mr_pci *pci = NULL;

	assert_int_equal(vfio_try(NIC_0, kind, &pci, &why), err);
	assert_null(pci);
	assert_reason_has(&why, NIC_0);
	assert_reason_has(&why, words);
	assert_vfio_clean();
}

VFIO_TEST(a_kernel_driver_is_named_with_the_command)
{
	fake_bind(&f.sysfs, NIC_0, "igb");
	assert_refused(MR_PCI_AUTO, -ENODEV,
		       "is bound to the kernel driver igb; bind it to "
		       "vfio-pci: mr-devices bind " NIC_0);
	fake_file(&f.sysfs, NIC_0 "/net/eth3/mtu", "1500\n");
	assert_refused(MR_PCI_AUTO, -ENODEV, "igb as interface eth3;");
	fake_bind(&f.sysfs, NIC_0, NULL);
	assert_refused(MR_PCI_AUTO, -ENODEV,
		       "has no kernel driver; bind it to vfio-pci: mr-devices "
		       "bind " NIC_0);
}

VFIO_TEST(other_members_of_the_group_are_named)
{
	fake.is_not_viable = true;
	assert_refused(MR_PCI_AUTO, -EBUSY,
		       "another process or a kernel driver uses");
	fake_bind(&f.sysfs, NIC_1, "igb");
	fake_nic(&f.sysfs, "0000:00:1c.0", "0x8086", "0x9d10", "shpchp", "14");
	fake_file(&f.sysfs, "0000:00:1c.0/config", "..............\x01");
	fake_nic(&f.sysfs, "0000:00:1d.0", "0x8086", "0x9d11", "pci-stub",
		 "14");
	assert_refused(MR_PCI_AUTO, -EBUSY,
		       "its IOMMU group 14 has other functions with kernel "
		       "drivers, " NIC_1
		       " (igb); bind network devices as well");
	fake.is_not_viable = false;
	/* The same in the words of iommufd. */
	vfio_add_cdev();
	fake_call("BIND_IOMMUFD")->fail_at = 1;
	fake_call("BIND_IOMMUFD")->fail_errno = EPERM;
	assert_refused(MR_PCI_AUTO, -EBUSY, NIC_1 " (igb)");
}

VFIO_TEST(no_iommu_error_names_the_setting)
{
	fake_nic(&f.sysfs, "0000:04:00.0", "0x8086", "0x10c9", "vfio-pci",
		 NULL);
	f.pci = NULL;
	{
		struct mr_reason why = { "" };

		assert_int_equal(
			vfio_try("0000:04:00.0", MR_PCI_AUTO, &f.pci, &why),
			-ENOTSUP);
		assert_reason_has(&why, "0000:04:00.0 has no IOMMU group");
		assert_reason_has(&why, "intel_iommu=on");
	}
}

TEST(nodes_that_cannot_be_opened_say_why)
{
	static const struct {
		enum fake_kind kind;
		enum mr_pci_access access;
		int open_errno, err;
		const char *words;
	} cases[] = {
		{ FAKE_GROUP, MR_PCI_AUTO, EACCES, -EACCES,
		  "may not open /dev/vfio/14: " },
		{ FAKE_GROUP, MR_PCI_AUTO, EPERM, -EPERM,
		  "may not open /dev/vfio/14" },
		{ FAKE_GROUP, MR_PCI_AUTO, EBUSY, -EBUSY,
		  "is in use by another process, which has /dev/vfio/14 open" },
		{ FAKE_GROUP, MR_PCI_AUTO, ENOENT, -ENOTSUP,
		  "there is no /dev/vfio/14: modprobe vfio-pci" },
		{ FAKE_GROUP, MR_PCI_AUTO, EMFILE, -EIO,
		  "cannot open /dev/vfio/14: " },
		{ FAKE_CONTAINER, MR_PCI_AUTO, EACCES, -EACCES,
		  "may not open /dev/vfio/vfio" },
		{ FAKE_CONTAINER, MR_PCI_AUTO, ENODEV, -ENOTSUP,
		  "there is no /dev/vfio/vfio" },
		{ FAKE_DEVICE, MR_PCI_IOMMUFD, EACCES, -EACCES,
		  "may not open /dev/vfio/devices/vfio0" },
		{ FAKE_DEVICE, MR_PCI_IOMMUFD, EBUSY, -EBUSY,
		  "is in use by another process" },
		{ FAKE_IOMMUFD, MR_PCI_IOMMUFD, EACCES, -EACCES,
		  "may not open /dev/iommu" },
		{ FAKE_IOMMUFD, MR_PCI_IOMMUFD, ENOENT, -ENOTSUP,
		  "there is no /dev/iommu" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		vfio_prepare();
		if (cases[i].access == MR_PCI_IOMMUFD)
			vfio_add_cdev();
		fake.open_errno[cases[i].kind] = cases[i].open_errno;
		assert_refused(cases[i].access, cases[i].err, cases[i].words);
		vfio_finish();
	}
	vfio_prepare();
	assert_refused(MR_PCI_IOMMUFD, -ENOTSUP,
		       "this kernel has no vfio device nodes");
	fake.has_no_nodes = true;
	assert_refused(MR_PCI_AUTO, -ENOTSUP, "modprobe vfio-pci");
	vfio_finish();
}

VFIO_TEST(a_node_without_permission_is_refused_with_the_remedy)
{
	fake.open_errno[FAKE_GROUP] = EACCES;
	assert_refused(MR_PCI_AUTO, -EACCES,
		       geteuid() == 0 ? "pass it to the container" :
					": as root, chown ");
	fake.has_noiommu = true;
	for (int i = 0; i < 2; i++) {
		const int refusal = i == 0 ? EPERM : EACCES;

		fake.open_errno[FAKE_GROUP] = refusal;
		assert_refused(MR_PCI_NOIOMMU, -refusal,
			       "may not open /dev/vfio/noiommu-14: without an "
			       "IOMMU, this requires CAP_SYS_RAWIO");
	}
}

TEST(calls_that_are_refused_say_why)
{
	static const struct {
		const char *call;
		int fail_errno, err;
		const char *words;
	} cases[] = {
		{ "GET_DEVICE_FD", EBUSY, -EBUSY, "in use by another process" },
		{ "GET_DEVICE_FD", ENODEV, -ENODEV, "is gone" },
		{ "GET_DEVICE_FD", EPERM, -EPERM, "does not allow" },
		{ "SET_CONTAINER", EBUSY, -EBUSY, "in use by another process" },
		{ "SET_IOMMU", EPERM, -EPERM, "does not remap interrupts" },
		{ "SET_IOMMU", ENODEV, -ENODEV, "VFIO_SET_IOMMU" },
		{ "GET_INFO", EINVAL, -EIO, "the address ranges of its IOMMU" },
		{ "MAP_DMA", ENOSPC, -ENOSPC, "dma_entry_limit" },
		{ "MAP_DMA", EFAULT, -EIO, "cannot map 64 KiB" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		vfio_prepare();
		fake_call(cases[i].call)->fail_at = 1;
		fake_call(cases[i].call)->fail_errno = cases[i].fail_errno;
		assert_refused(MR_PCI_AUTO, cases[i].err, cases[i].words);
		vfio_finish();
	}
	vfio_prepare();
	fake.types[0] = fake.types[1] = 0;
	assert_refused(MR_PCI_AUTO, -ENOTSUP, "modprobe vfio_iommu_type1");
	vfio_finish();
}

/* The number is the whole of it, though the first segment was refused. */
VFIO_TEST(locked_memory_is_printed_in_kib)
{
	struct rlimit limit, small;
	struct mr_dma dma;

	assert_int_equal(vfio_grow(f.region, NULL), 0);
	assert_int_equal(vfio_grow(f.region, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	small = limit;
	small.rlim_cur = 60 << 10;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &small), 0);
	fake.locked_limit = 60 << 10;
	assert_refused(
		MR_PCI_AUTO, -ENOMEM,
		"needs 192 KiB of locked memory and up to 1024 more for its "
		"rings, but the limit is 60 KiB; raise it (ulimit -l 1216)");
	fake.locked_limit = 192 << 10;
	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_failure(mr_pci_dma_alloc(f.pci, 8192, &dma, &f.why), -ENOMEM,
		       "needs 200 KiB of locked memory");
	assert_failure(vfio_grow(f.region, &f.why), -ENOMEM,
		       "needs 256 KiB of locked memory");
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}
