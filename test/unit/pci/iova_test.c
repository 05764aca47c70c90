/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pci/iova.c. */
#include "support/pci_unit.h"

/* x86: the range of MSI is not there. */
static const struct mr_pci_range x86[] = {
	{ 0, 0xfedfffff },
	{ 0xfef00000, (UINT64_C(1) << 39) - 1 },
};

TEST(the_lowest_gap_is_taken)
{
	struct mri_iova iova = { 0 };
	struct mri_iova_span a, b, c, d;

	mri_iova_set_ranges(&iova, x86, 2);
	assert_int_equal(mri_iova_take(&iova, &a, 4096, 4096, 1 << 20), 0);
	assert_int_equal(a.first, 1 << 20);
	assert_int_equal(a.last, (1 << 20) + 4095);
	assert_int_equal(mri_iova_take(&iova, &b, 8192, 4096, 1 << 20), 0);
	assert_int_equal(b.first, (1 << 20) + 4096);
	mri_iova_give(&iova, &a);
	assert_int_equal(mri_iova_take(&iova, &c, 8192, 4096, 1 << 20), 0);
	assert_int_equal(c.first, (1 << 20) + 3 * 4096);
	assert_int_equal(mri_iova_take(&iova, &d, 4096, 4096, 1 << 20), 0);
	assert_int_equal(d.first, 1 << 20);
}

TEST(reserved_ranges_are_skipped)
{
	struct mri_iova iova = { 0 };
	struct mri_iova_span low, high;

	mri_iova_set_ranges(&iova, x86, 2);
	assert_int_equal(
		mri_iova_take(&iova, &low, 0x100000, 0x100000, 0xfed00000), 0);
	assert_int_equal(low.first, 0xfed00000);
	assert_int_equal(
		mri_iova_take(&iova, &high, 0x100000, 0x100000, 0xfed00000), 0);
	assert_int_equal(high.first, 0xfef00000);
	mri_iova_give(&iova, &high);
	/* 4 GiB do not fit below, and begin at a multiple of 1 GiB. */
	assert_int_equal(mri_iova_take(&iova, &high, UINT64_C(4) << 30, 1 << 30,
				       1 << 30),
			 0);
	assert_int_equal(high.first, UINT64_C(4) << 30);
}

TEST(iova_ends_at_the_width_of_the_iommu)
{
	const struct mr_pci_range all = { 0, UINT64_MAX };
	struct mri_iova iova = { 0 };
	struct mri_iova_span a, b;

	mri_iova_set_ranges(&iova, x86, 2);
	assert_int_equal(mri_iova_take(&iova, &a, UINT64_C(1) << 39, 4096, 0),
			 -ENOSPC);
	assert_int_equal(mri_iova_take(&iova, &a, 4096, 4096,
				       (UINT64_C(1) << 39) - 4096),
			 0);
	assert_int_equal(a.last, (UINT64_C(1) << 39) - 1);
	assert_int_equal(mri_iova_take(&iova, &b, 4096, 4096,
				       (UINT64_C(1) << 39) - 4096),
			 -ENOSPC);
	/* Nothing wraps at the end of 64 bits. */
	iova = (struct mri_iova){ 0 };
	mri_iova_set_ranges(&iova, &all, 1);
	assert_int_equal(mri_iova_take(&iova, &a, 4096, 4096, -UINT64_C(4096)),
			 0);
	assert_int_equal(a.last, UINT64_MAX);
	assert_int_equal(mri_iova_take(&iova, &b, 1, 1, -UINT64_C(4096)),
			 -ENOSPC);
	assert_int_equal(
		mri_iova_take(&iova, &b, 8192, 1 << 20, -UINT64_C(4095)),
		-ENOSPC);
}

TEST(invalid_ranges_are_ignored)
{
	const struct mr_pci_range odd[] = { { 5, 4 }, { 4096, 8191 } };
	struct mr_pci_range many[MRI_PCI_MAX_RANGES + 1] = { { 0, 0 } };
	struct mri_iova iova = { 0 };
	struct mri_iova_span span, again;

	mri_iova_set_ranges(&iova, odd, 2);
	assert_int_equal(iova.n_ranges, 1);
	assert_int_equal(mri_iova_take(&iova, &span, 4096, 4096, 0), 0);
	assert_int_equal(span.first, 4096);
	/* What is in use stays so. */
	mri_iova_set_ranges(&iova, odd, 2);
	assert_int_equal(mri_iova_take(&iova, &again, 1, 1, 0), -ENOSPC);
	mri_iova_set_ranges(&iova, many, MRI_PCI_MAX_RANGES + 1);
	assert_int_equal(iova.n_ranges, MRI_PCI_MAX_RANGES);
	mri_iova_set_ranges(&iova, odd, 0);
	assert_int_equal(mri_iova_take(&iova, &again, 1, 1, 0), -ENOSPC);
}

/* Against a map of 64 pages, by a walk that is always the same. */
TEST(allocated_iova_ranges_never_overlap)
{
	const struct mr_pci_range range = { 0, 64 * 4096 - 1 };
	struct mri_iova_span spans[64] = { { 0 } };
	uint64_t busy = 0, x = 1;
	struct mri_iova iova = { 0 };

	mri_iova_set_ranges(&iova, &range, 1);
	for (int i = 0; i < 20000; i++) {
		struct mri_iova_span *s;
		uint64_t n, mask;

		x = x * 6364136223846793005u + 1442695040888963407u;
		s = &spans[x >> 58];
		n = (x >> 40 & 7) + 1;
		if (s->last != 0) {
			mask = ((UINT64_C(1)
				 << ((s->last + 1 - s->first) / 4096)) -
				1)
			       << s->first / 4096;
			busy &= ~mask;
			mri_iova_give(&iova, s);
			s->last = 0;
		} else if (mri_iova_take(&iova, s, n * 4096, 4096, 0) == 0) {
			mask = ((UINT64_C(1) << n) - 1) << s->first / 4096;
			assert_int_equal(busy & mask, 0);
			busy |= mask;
		} else {
			s->last = 0;
			/* No n free pages in a row: that was true. */
			for (uint64_t at = 0; at + n <= 64; at++)
				assert_true(busy &
					    (((UINT64_C(1) << n) - 1) << at));
		}
	}
}
