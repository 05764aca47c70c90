/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/group.c, on a tree of our own. */
#include "support/fake_sysfs.h"

#include <millrace/experimental/pci.h>

TEST(a_group_is_in_use_as_the_kernel_says)
{
	/* Config space up to the header type: of a function, of a bridge, of
	 * one with several functions. */
	static const char device[] = "..............\x80";
	static const char bridge[] = "..............\x01";
	static const char bridges[] = "..............\x81";
	static const struct {
		const char *driver, *config;
		enum mr_pci_use use;
	} cases[] = {
		{ "igb", device, MR_PCI_USE_KERNEL },
		{ NULL, device, MR_PCI_USE_NONE },
		{ "vfio-pci", device, MR_PCI_USE_VFIO },
		{ "mlx5_vfio_pci", device, MR_PCI_USE_VFIO },
		{ "vfio-platform", device, MR_PCI_USE_KERNEL },
		{ "pci-stub", device, MR_PCI_USE_NONE },
		{ "pcieport", bridge, MR_PCI_USE_NONE },
		{ "shpchp", bridges, MR_PCI_USE_NONE },
		{ "pcieport", device, MR_PCI_USE_KERNEL },
		{ "pcieport", "short", MR_PCI_USE_KERNEL },
	};
	struct mr_ctx_config config = { .size = sizeof(config) };
	struct mr_pci_info info = { .size = sizeof(info) };
	struct fake_sysfs sysfs;
	struct mr_ctx *ctx;

	fake_sysfs_open(&sysfs);
	config.sysfs = sysfs.root;
	assert_int_equal(mr_ctx_create(&config, &ctx, NULL), 0);
	fake_nic(&sysfs, "0000:03:00.0", "0x8086", "0x10c9", "igb", "14");
	/* Without its config space it is no bridge. */
	assert_int_equal(mr_pci_info(ctx, "0000:03:00.0", &info, NULL), 0);
	assert_int_equal(mr_pci_use(ctx, &info), MR_PCI_USE_KERNEL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_bind(&sysfs, "0000:03:00.0", cases[i].driver);
		fake_file(&sysfs, "0000:03:00.0/config", cases[i].config);
		assert_int_equal(mr_pci_info(ctx, "0000:03:00.0", &info, NULL),
				 0);
		assert_int_equal(mr_pci_use(ctx, &info), cases[i].use);
	}
	mr_ctx_destroy(ctx);
	fake_sysfs_close(&sysfs);
}
