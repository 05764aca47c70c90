/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/sysfs.c, and of the list in info.c, on a tree of our own. */
#include "support/fake_sysfs.h"
#include "support/unit.h"

#include <millrace/experimental/pci.h>

static struct {
	struct fake_sysfs sysfs;
	struct mr_ctx *ctx;
} f;

static void make_folder(void)
{
	struct mr_ctx_config config = { .size = sizeof(config) };

	fake_sysfs_open(&f.sysfs);
	config.sysfs = f.sysfs.root;
	assert_int_equal(mr_ctx_create(&config, &f.ctx, NULL), 0);
}

static void delete_folder(void)
{
	mr_ctx_destroy(f.ctx);
	fake_sysfs_close(&f.sysfs);
}

#define SYSFS_TEST(name)                                                       \
	static void name##_in_a_tree(void);                                    \
	TEST(name)                                                             \
	{                                                                      \
		make_folder();                                                 \
		name##_in_a_tree();                                            \
		delete_folder();                                               \
	}                                                                      \
	static void name##_in_a_tree(void)

SYSFS_TEST(a_function_is_described)
{
	struct mr_pci_info info = { .size = sizeof(info) };
	struct mr_reason why;

	fake_nic(&f.sysfs, "0000:03:00.0", "0x8086", "0x10c9", "igb", "14");
	fake_file(&f.sysfs, "0000:03:00.0/subsystem_vendor", "0x1af4\n");
	fake_file(&f.sysfs, "0000:03:00.0/subsystem_device", "0x1100\n");
	fake_file(&f.sysfs, "0000:03:00.0/numa_node", "1\n");
	fake_file(&f.sysfs, "0000:03:00.0/sriov_numvfs", "2\n");
	fake_file(&f.sysfs, "0000:03:00.0/net/enp3s0f0/mtu", "1500\n");
	assert_int_equal(mr_pci_info(f.ctx, "03:00.0", &info, NULL), 0);
	assert_string_equal(info.bdf, "0000:03:00.0");
	assert_int_equal(info.vendor_id, 0x8086);
	assert_int_equal(info.device_id, 0x10c9);
	assert_int_equal(info.subsystem_vendor_id, 0x1af4);
	assert_int_equal(info.subsystem_id, 0x1100);
	assert_int_equal(info.class_code, 0x020000);
	assert_int_equal(info.numa_node, 1);
	assert_int_equal(info.iommu_group, 14);
	assert_int_equal(info.n_vfs, 2);
	assert_string_equal(info.kernel_driver, "igb");
	assert_string_equal(info.netdev, "enp3s0f0");
	assert_string_equal(info.vfio_cdev, "");
	info.size = 0;
	assert_int_equal(mr_pci_info(f.ctx, "03:00.0", &info, &why), -EINVAL);
	assert_reason_has(&why, "mr_pci_info.size");
}

SYSFS_TEST(facts_missing_in_sysfs_are_left_out)
{
	struct mr_pci_info info = { .size = sizeof(info) };

	fake_nic(&f.sysfs, "10000:e1:00.7", "0x1af4", "0x1041", NULL, NULL);
	fake_file(&f.sysfs, "10000:e1:00.7/numa_node", "\n");
	assert_int_equal(mr_pci_info(f.ctx, "10000:E1:00.7", &info, NULL), 0);
	assert_string_equal(info.bdf, "10000:e1:00.7");
	assert_int_equal(info.iommu_group, -1);
	assert_int_equal(info.numa_node, -1);
	assert_int_equal(info.n_vfs, 0);
	assert_string_equal(info.kernel_driver, "");
	assert_string_equal(info.netdev, "");
}

SYSFS_TEST(the_interface_may_be_below_virtio)
{
	struct mr_pci_info info = { .size = sizeof(info) };

	fake_nic(&f.sysfs, "0000:00:02.0", "0x1af4", "0x1041", "virtio-pci",
		 "3");
	fake_file(&f.sysfs, "0000:00:02.0/virtio0/net/eth0/mtu", "1500\n");
	assert_int_equal(mr_pci_info(f.ctx, "0000:00:02.0", &info, NULL), 0);
	assert_string_equal(info.netdev, "eth0");
}

/* Two ports on one function: the same one each time, whatever came first. */
SYSFS_TEST(the_first_of_several_interfaces_is_named)
{
	static const char *const names[] = { "eth3", "eth1", "eth2" };
	struct mr_pci_info info = { .size = sizeof(info) };
	char path[FAKE_PATH_BYTES];

	fake_nic(&f.sysfs, "0000:03:00.0", "0x15b3", "0x1007", "mlx4_core",
		 NULL);
	for (int i = 0; i < 3; i++) {
		fake_path(path, "0000:03:00.0/net/%s/mtu", names[i]);
		fake_file(&f.sysfs, path, "1500\n");
		assert_int_equal(
			mr_pci_info(f.ctx, "0000:03:00.0", &info, NULL), 0);
		assert_string_equal(info.netdev, i == 0 ? "eth3" : "eth1");
	}
}

SYSFS_TEST(the_cdev_of_vfio_is_found)
{
	struct mr_pci_info info = { .size = sizeof(info) };

	fake_nic(&f.sysfs, "0000:00:02.0", "0x1af4", "0x1041", "vfio-pci", "3");
	fake_file(&f.sysfs, "0000:00:02.0/vfio-dev/vfio7/power", "on\n");
	assert_int_equal(mr_pci_info(f.ctx, "0000:00:02.0", &info, NULL), 0);
	assert_string_equal(info.vfio_cdev, ""); /* no node */
	fake_file(&f.sysfs, "0000:00:02.0/vfio-dev/vfio7/dev", "511:7\n");
	assert_int_equal(mr_pci_info(f.ctx, "0000:00:02.0", &info, NULL), 0);
	assert_string_equal(info.vfio_cdev, "vfio7");
}

SYSFS_TEST(an_invalid_address_is_refused)
{
	static const char *const odd[] = {
		"",
		"eth0",
		"03:00",
		"03:00.",
		"3:00.0",
		"003:03:00.0",
		"03:00.00",
		"0000:03:00.0x",
		"../../class",
		"0000:03:00/",
		"0000:0g:00.0",
		"000000000:03:00.0",
	};
	struct mr_pci_info info = { .size = sizeof(info) };
	struct mr_reason why = { "" };

	fake_nic(&f.sysfs, "0000:03:00.0", "0x8086", "0x10c9", NULL, NULL);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		assert_int_equal(mr_pci_info(f.ctx, odd[i], &info, &why),
				 -ENODEV);
		assert_reason_has(&why, "is neither a PCI address");
	}
	assert_int_equal(mr_pci_info(f.ctx, "0000:03:00.1", &info, &why),
			 -ENODEV);
	assert_reason_has(&why, "no PCI device 0000:03:00.1");
}
