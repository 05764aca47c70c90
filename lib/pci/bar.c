/* SPDX-License-Identifier: BSD-3-Clause */
/* BARs, and waiting for a register. */
#include <errno.h>
#include <time.h>

#include "base/base.h"
#include "pci/pci.h"

enum { N_QUICK_READS = 16 };

int mr_pci_map_bar(struct mr_pci *pci, uint32_t idx, struct mr_bar *ret_bar,
		   struct mr_reason *reterr_reason)
{
	struct mr_bar bar = { 0 };
	int err;

	if (idx >= MRI_PCI_BARS)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: no BAR %u; BARs are 0 to 5", pci->info.bdf,
			       idx);
	if (pci->bars[idx].n_bytes == 0) {
		err = pci->backend->map_bar(pci->device, idx, &bar,
					    reterr_reason);
		if (err < 0)
			return err;
		if (bar.n_bytes == 0 || (bar.base == NULL && bar.ops == NULL))
			return mr_fail(reterr_reason, -EINVAL,
				       "%s: BAR %u is empty", pci->info.bdf,
				       idx);
		bar.idx = idx;
		pci->bars[idx] = bar;
	}
	*ret_bar = pci->bars[idx];
	return 0;
}

/*
 * Each read after the first few takes at least 1 us, so the number of reads
 * limits the time even if the context's clock stands still.
 */
int mr_pci_wait32(struct mr_pci *pci, const struct mr_bar *bar, uint64_t offset,
		  uint32_t mask, uint32_t value, uint32_t timeout_us)
{
	const struct timespec step = { .tv_nsec = 1000 };
	const uint64_t begin_ns = mr_ctx_now_ns(pci->ctx);
	const uint64_t n_reads = (uint64_t)timeout_us + N_QUICK_READS;
	uint32_t last;

	for (uint64_t i = 0; i <= n_reads; i++) {
		const bool is_late = mr_ctx_now_ns(pci->ctx) - begin_ns >
				     timeout_us * UINT64_C(1000);

		last = mr_bar_read32(bar, offset);
		if (last == UINT32_MAX)
			return -ENODEV; /* whatever bits it waits for */
		if ((last & mask) == value)
			return 0;
		if (is_late) /* it was read once more after the deadline */
			break;
		if (i >= N_QUICK_READS)
			nanosleep(&step, NULL);
	}
	return -ETIMEDOUT;
}
