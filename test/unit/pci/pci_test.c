/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/pci.c, soft.c and info.c, on a device in software. */
#include "support/pci_unit.h"

TEST(open_enables_the_device_and_close_restores_it)
{
	pci_open();
	assert_string_equal(mr_pci_mode(f.pci), "soft");
	assert_string_equal(mr_pci_device(f.pci)->bdf, "nic");
	assert_int_equal(mr_pci_device(f.pci)->vendor_id, 0x8086);
	assert_int_equal(mr_pci_device(f.pci)->device_id, 0x10c9);
	/* Memory decoding is on, bus mastering and INTx are not. */
	assert_int_equal(soft_command(&f.nic), 1 << 1 | 1 << 10);
	assert_int_equal(mr_pci_set_bus_master(f.pci, true), 0);
	assert_int_equal(soft_command(&f.nic), 1 << 1 | 1 << 2 | 1 << 10);
	pci_finish();
	assert_int_equal(soft_command(&f.nic), 1 << 1 | 1 << 10);
	mr_pci_close(NULL);
}

PCI_CLOSED_TEST(info_is_what_config_space_says)
{
	struct mr_pci_info info = { .size = sizeof(info) };

	assert_int_equal(mr_pci_info(f.ctx, "nic", &info, NULL), 0);
	assert_int_equal(info.size, sizeof(info));
	assert_int_equal(info.vendor_id, 0x8086);
	assert_int_equal(info.device_id, 0x10c9);
	assert_int_equal(info.subsystem_vendor_id, 0x1af4);
	assert_int_equal(info.subsystem_id, 0x1100);
	assert_int_equal(info.class_code, 0x020000);
	assert_int_equal(info.numa_node, -1);
	assert_int_equal(info.iommu_group, -1);
	assert_failure(mr_pci_info(f.ctx, "nik", &info, &f.why), -ENODEV,
		       "'nik' is neither a PCI address");
	info.size = 0;
	assert_failure(mr_pci_info(f.ctx, "nic", &info, &f.why), -EINVAL,
		       "mr_pci_info.size");
	info.size = sizeof(info);
	f.nic.config_err = -EIO;
	assert_failure(mr_pci_info(f.ctx, "nic", &info, &f.why), -EIO, "nic: ");
}

PCI_TEST(a_device_in_use_is_refused)
{
	struct mr_pci *second = NULL;

	assert_failure(pci_try("nic", &second, &f.why), -EBUSY,
		       "nic is in use by vfio:nic");
	assert_null(second);
}

PCI_CLOSED_TEST(failure_is_undone_and_has_its_reason)
{
	static const struct {
		int open_err, config_err, map_err, ranges_err;
		bool is_gone;
		int err;
		const char *words;
	} cases[] = {
		{ -EPERM, 0, 0, 0, false, -EPERM, "soft: cannot open" },
		{ 0, -EIO, 0, 0, false, -EIO, "does not report its IDs" },
		{ 0, 0, -ENOMEM, 0, false, -ENOMEM, "soft: cannot map" },
		{ 0, 0, 0, -EIO, false, -EIO,
		  "the address ranges of its IOMMU" },
		{ 0, 0, 0, 0, true, -EIO, "reads as all ones" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason why = { "" };
		struct mr_pci *pci = NULL;
		const int32_t n_out = f.allocator.n_out;

		f.nic.open_err = cases[i].open_err;
		f.nic.config_err = cases[i].config_err;
		f.nic.map_err = cases[i].map_err;
		f.nic.ranges_err = cases[i].ranges_err;
		f.nic.is_gone = cases[i].is_gone;
		assert_int_equal(pci_try("nic", &pci, &why), cases[i].err);
		assert_reason_has(&why, cases[i].words);
		assert_null(pci);
		assert_int_equal(f.allocator.n_out, n_out);
		assert_int_equal(f.nic.n_opens, f.nic.n_closes);
		assert_int_equal(soft_n_mapped(&f.nic), 0);
		assert_int_equal(n_open_fds(), f.n_fds);
	}
}

/* Whatever allocation fails, opening does, and leaves nothing. */
PCI_CLOSED_TEST(no_memory_is_an_error)
{
	uint32_t n_failed = 0;

	for (;;) {
		const int32_t n_out = f.allocator.n_out;
		int err;

		f.allocator.fail_at = f.allocator.n_calls + 1 + n_failed;
		err = pci_try("nic", &f.pci, NULL);
		if (err == 0)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(f.allocator.n_out, n_out);
		assert_int_equal(n_open_fds(), f.n_fds);
		n_failed++;
	}
	assert_in_range(n_failed, 2, 8);
}

PCI_CLOSED_TEST(wrong_values_are_refused)
{
	struct mr_pci_config config = { .size = sizeof(config) };

	config.access = 4;
	assert_failure(mr_pci_open(f.ctx, "nic", &config, &f.pci, &f.why),
		       -EINVAL, "mr_pci_config.access");
	config.size = 0;
	assert_failure(mr_pci_open(f.ctx, "nic", &config, &f.pci, &f.why),
		       -EINVAL, "mr_pci_config.size");
}

PCI_CLOSED_TEST(names_are_checked)
{
	struct mr_pci_backend half = soft_backend;
	char name[8];

	assert_int_equal(mr_ctx_add_pci_device(f.ctx, "", &soft_backend, &f),
			 -EINVAL);
	assert_int_equal(
		mr_ctx_add_pci_device(f.ctx, "a name of more than 31 letters..",
				      &soft_backend, &f),
		-EINVAL);
	half.map_bar = NULL;
	assert_int_equal(mr_ctx_add_pci_device(f.ctx, "x", &half, &f), -EINVAL);
	assert_int_equal(mr_ctx_add_pci_device(f.ctx, "nic", &soft_backend, &f),
			 -EEXIST);
	for (int i = 1; i < MRI_MAX_SOFT_DEVICES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(
			mr_ctx_add_pci_device(f.ctx, name, &soft_backend, &f),
			0);
	}
	assert_int_equal(mr_ctx_add_pci_device(f.ctx, "x", &soft_backend, &f),
			 -ENOSPC);
}

/* A device that needs none of the calls that may be missing. */
PCI_CLOSED_TEST(a_bare_backend_is_enough)
{
	static struct mr_pci_backend bare;
	int fd;

	bare = soft_backend;
	bare.open = NULL;
	bare.close = NULL;
	bare.set_irqs = NULL;
	bare.set_events = NULL;
	bare.iova_ranges = NULL;
	assert_int_equal(mr_ctx_add_pci_device(f.ctx, "bare", &bare, &f.nic),
			 0);
	assert_int_equal(pci_try("bare", &f.pci, NULL), 0);
	assert_int_equal(mr_pci_event_fd(f.pci), -1);
	assert_int_equal(mr_pci_events(f.pci), 0);
	assert_int_equal(mr_pci_set_irqs(f.pci, 1, &fd, &f.why), -ENOTSUP);
	assert_int_equal(soft_n_mapped(&f.nic), 1);
}
