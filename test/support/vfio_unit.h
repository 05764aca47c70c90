/* SPDX-License-Identifier: BSD-3-Clause */
/* A context on a fake sysfs and a fake vfio: two functions of one group. */
#ifndef SUPPORT_VFIO_UNIT_H
#define SUPPORT_VFIO_UNIT_H

#include "support/fake_sysfs.h"
#include "support/fake_vfio_calls.h"
#include "support/soft_pci.h"

#include "base/base.h"
#include "mem/mem.h"

#define NIC_0 "0000:03:00.0"
#define NIC_1 "0000:03:00.1"

struct vfio_fixture {
	struct test_allocator allocator;
	struct fake_sysfs sysfs;
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pci *pci;
	uint32_t n_fds; /* open before the device was opened */
	struct mr_reason why;
};

/* Only one at a time. */
static struct vfio_fixture f;

static inline void vfio_set_device(struct fake_device *d, const char *bdf)
{
	struct soft_pci nic;

	soft_init(&nic);
	snprintf(d->bdf, sizeof(d->bdf), "%s", bdf);
	memcpy(d->config, nic.config, sizeof(d->config));
	d->group = 14;
	d->flags = VFIO_DEVICE_FLAGS_PCI;
	d->n_vectors[VFIO_PCI_MSIX_IRQ_INDEX] = FAKE_IRQS;
	d->n_vectors[VFIO_PCI_ERR_IRQ_INDEX] =
		d->n_vectors[VFIO_PCI_REQ_IRQ_INDEX] = 1;
	d->n_free_vectors = FAKE_IRQS;
	d->bars[0] = (struct fake_bar){ .size = 131072,
					.can_mmap = true,
					.is_msix_mappable = true };
}

static inline int vfio_grow(struct mr_region *region, struct mr_reason *reason)
{
	const struct mri_segment_wish wish = { MRI_ADDR_ANY, 65536, 0, 0 };
	struct mr_segment_info info;
	const int err = mri_region_add(region, &wish, &info, reason);

	f.n_fds += err == 0; /* the segment's memfd */
	return err;
}

static inline struct mr_region *vfio_region(struct mr_ctx *ctx)
{
	const struct mr_region_config config = { .size = sizeof(config),
						 .os_pages = MR_OS_PAGES_4K };
	struct mr_region *region = NULL;

	assert_int_equal(mr_region_create(ctx, &config, &region, NULL), 0);
	assert_int_equal(vfio_grow(region, NULL), 0);
	return region;
}

/* A kernel with type 1 version 2, of 39 bits, and no device nodes. */
static inline void vfio_prepare(void)
{
	memset(&f, 0, sizeof(f));
	memset(&fake, 0, sizeof(fake));
	for (int i = 0; i < FAKE_CALLS; i++)
		fake_calls[i].n_calls = fake_calls[i].fail_at = 0;
	fake.types[0] = VFIO_TYPE1_IOMMU;
	fake.types[1] = VFIO_TYPE1v2_IOMMU;
	fake.n_ranges = 2;
	fake.ranges[0] = (struct vfio_iova_range){ 0, 0xfedfffff };
	fake.ranges[1] =
		(struct vfio_iova_range){ 0xfef00000, (UINT64_C(1) << 39) - 1 };
	fake.locked_limit = UINT64_MAX;
	fake.pagemap = -1;
	fake.pid = getpid();
	vfio_set_device(&fake.devices[0], NIC_0);
	vfio_set_device(&fake.devices[1], NIC_1);
	fake_sysfs_open(&f.sysfs);
	fake_nic(&f.sysfs, NIC_0, "0x8086", "0x10c9", "vfio-pci", "14");
	fake_nic(&f.sysfs, NIC_1, "0x8086", "0x10c9", "vfio-pci", "14");
	f.ctx = test_ctx(&f.allocator);
	f.ctx->config.sysfs = f.sysfs.root;
	f.region = vfio_region(f.ctx);
	f.n_fds = n_open_fds();
}

/* 6.6 and later, with that option. */
static inline void vfio_add_cdev(void)
{
	fake.has_cdev = true;
	fake_file(&f.sysfs, NIC_0 "/vfio-dev/vfio0/dev", "511:0\n");
	fake_file(&f.sysfs, NIC_1 "/vfio-dev/vfio1/dev", "511:1\n");
}

static inline int vfio_try(const char *bdf, enum mr_pci_access access_kind,
			   struct mr_pci **ret_pci, struct mr_reason *reason)
{
	const struct mr_pci_config config = { .size = sizeof(config),
					      .access = access_kind,
					      .region = f.region,
					      .holder = bdf };

	return mr_pci_open(f.ctx, bdf, &config, ret_pci, reason);
}

/* Both functions: f.pci, and the other one. */
static inline struct mr_pci *vfio_open_both(void)
{
	struct mr_pci *second = NULL;

	assert_int_equal(vfio_try(NIC_0, MR_PCI_AUTO, &f.pci, NULL), 0);
	assert_int_equal(vfio_try(NIC_1, MR_PCI_AUTO, &second, NULL), 0);
	return second;
}

/* Nothing is open, mapped or armed. */
static inline void assert_vfio_clean(void)
{
	assert_int_equal(n_open_fds(), f.n_fds);
	assert_int_equal(fake_n_maps(), 0);
	for (int i = 0; i < FAKE_FDS; i++)
		assert_int_equal(fake.fds[i].kind, FAKE_NONE);
	assert_null(f.ctx->vfio_containers);
	assert_null(f.ctx->open_pcis);
	assert_int_equal(fake.n_not_cloexec, 0);
}

static inline void vfio_finish(void)
{
	mr_pci_close(f.pci);
	assert_vfio_clean();
	assert_int_equal(mr_region_destroy(f.region, NULL), 0);
	mr_ctx_destroy(f.ctx);
	assert_int_equal(f.allocator.n_out, 0);
	fake_sysfs_close(&f.sysfs);
}

/* The row of an ioctl. */
static inline struct fake_call *fake_call(const char *name)
{
	for (int i = 0; i < FAKE_CALLS; i++)
		if (strcmp(fake_calls[i].name, name) == 0)
			return &fake_calls[i];
	fail_msg("no call %s", name);
	return NULL;
}

/* Where the device would find memory, or NULL. */
static inline void *fake_reach(uint64_t iova)
{
	for (int i = 0; i < FAKE_MAPS; i++) {
		const struct fake_map *m = &fake.maps[i];

		if (iova >= m->iova && iova - m->iova < m->size)
			return (void *)(uintptr_t)(m->vaddr + (iova - m->iova));
	}
	return NULL;
}

/* A test whose devices are not open yet. */
#define VFIO_TEST(name)                                                        \
	static void name##_prepared(void);                                     \
	TEST(name)                                                             \
	{                                                                      \
		vfio_prepare();                                                \
		name##_prepared();                                             \
		vfio_finish();                                                 \
	}                                                                      \
	static void name##_prepared(void)

#endif
