/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of lib/pci. */
#ifndef SUPPORT_PCI_UNIT_H
#define SUPPORT_PCI_UNIT_H

#include "support/soft_pci.h"

#include "base/base.h"
#include "mem/mem.h"
#include "pci/pci.h"

/* A context with the software device "nic", and a region of one segment. */
struct pci_fixture {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct soft_pci nic;
	struct mr_pci *pci;
	uint32_t n_fds; /* open before the device was opened */
	struct mr_reason why;
};

/* Only one at a time. */
static struct pci_fixture f;

static inline int pci_grow(struct mr_reason *reason)
{
	const struct mri_segment_wish wish = { MRI_ADDR_ANY, 65536, 0, 0 };
	struct mr_segment_info info;
	const int err = mri_region_add(f.region, &wish, &info, reason);

	f.n_fds += err == 0; /* the segment's memfd */
	return err;
}

static inline void pci_prepare(void)
{
	const struct mr_region_config config = { .size = sizeof(config),
						 .os_pages = MR_OS_PAGES_4K,
						 .max_bytes = UINT64_C(4)
							      << 30 };

	memset(&f, 0, sizeof(f));
	soft_init(&f.nic);
	f.ctx = test_ctx(&f.allocator);
	assert_int_equal(mr_region_create(f.ctx, &config, &f.region, NULL), 0);
	assert_int_equal(pci_grow(NULL), 0);
	assert_int_equal(
		mr_ctx_add_pci_device(f.ctx, "nic", &soft_backend, &f.nic), 0);
	f.n_fds = n_open_fds();
}

static inline int pci_try(const char *name, struct mr_pci **ret_pci,
			  struct mr_reason *reason)
{
	const struct mr_pci_config config = { .size = sizeof(config),
					      .region = f.region,
					      .holder = "vfio:nic" };

	return mr_pci_open(f.ctx, name, &config, ret_pci, reason);
}

static inline void pci_open(void)
{
	pci_prepare();
	assert_int_equal(pci_try("nic", &f.pci, NULL), 0);
}

/* Check that nothing is left. */
static inline void pci_finish(void)
{
	mr_pci_close(f.pci);
	assert_int_equal(soft_n_mapped(&f.nic), 0);
	assert_int_equal(f.nic.n_opens, f.nic.n_closes);
	assert_int_equal(f.nic.n_irqs, 0);
	assert_int_equal(f.nic.req_fd, -1);
	assert_int_equal(f.nic.err_fd, -1);
	assert_int_equal(n_open_fds(), f.n_fds);
	assert_int_equal(mr_region_destroy(f.region, NULL), 0);
	mr_ctx_destroy(f.ctx);
	assert_int_equal(f.allocator.n_out, 0);
}

/* Tests with an open device, and with one that is not open yet. */
#define PCI_TEST(name)                                                         \
	static void name##_prepared(void);                                     \
	TEST(name)                                                             \
	{                                                                      \
		pci_open();                                                    \
		name##_prepared();                                             \
		pci_finish();                                                  \
	}                                                                      \
	static void name##_prepared(void)

#define PCI_CLOSED_TEST(name)                                                  \
	static void name##_prepared(void);                                     \
	TEST(name)                                                             \
	{                                                                      \
		pci_prepare();                                                 \
		name##_prepared();                                             \
		pci_finish();                                                  \
	}                                                                      \
	static void name##_prepared(void)

#endif
