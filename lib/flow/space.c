/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses for the most that a table may need, memory for what it needs now.
 *
 * Memory must be made writable before use, so that if the kernel refuses
 * (RLIMIT_DATA, strict overcommit), a call can still return the error. The
 * first 2 MiB lie in small OS pages, so that a small table is small.
 *
 * Source: mmap(2), mprotect(2), madvise(2).
 */
#include <errno.h>
#include <sys/mman.h>

#include "flow/flow.h"

enum {
	SMALL_PAGE = 4096,
	POPULATE_WRITE = 23, /* MADV_POPULATE_WRITE, 5.14 */
};

static uint8_t *align_up(uint8_t *at)
{
	return at + (-(uintptr_t)at & (MRI_SPACE_STEP - 1));
}

int mri_space_reserve(struct mri_space *space, uint64_t max_bytes)
{
	uint8_t *got, *base;

	max_bytes = mri_round_up(max_bytes, MRI_SPACE_STEP);
	got = mmap(NULL, max_bytes + MRI_SPACE_STEP, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (got == MAP_FAILED)
		return -ENOMEM;
	base = align_up(got);
	if (base > got)
		munmap(got, (size_t)(base - got));
	munmap(base + max_bytes, (size_t)(got + MRI_SPACE_STEP - base));
	/* Optional: it is only slower without these. */
	(void)madvise(base, max_bytes, MADV_DONTFORK);
	(void)madvise(base, MRI_SPACE_STEP, MADV_NOHUGEPAGE);
	if (max_bytes > MRI_SPACE_STEP)
		(void)madvise(base + MRI_SPACE_STEP, max_bytes - MRI_SPACE_STEP,
			      MADV_HUGEPAGE);
	*space = (struct mri_space){ .base = base, .max_bytes = max_bytes };
	return 0;
}

void mri_space_free(struct mri_space *space)
{
	if (space->base != NULL)
		munmap(space->base, space->max_bytes);
	space->base = NULL;
}

bool mri_space_ready(struct mri_space *space, uint64_t end_bytes)
{
	const uint64_t end = mri_round_up(end_bytes, MRI_SPACE_STEP);

	if (end_bytes <= space->ready_bytes)
		return true;
	if (end > space->max_bytes ||
	    mprotect(space->base + space->ready_bytes, end - space->ready_bytes,
		     PROT_READ | PROT_WRITE) < 0)
		return false;
	space->ready_bytes = end;
	return true;
}

void mri_space_touch(struct mri_space *space, uint64_t end_bytes)
{
	const uint64_t end = mri_round_up(end_bytes, SMALL_PAGE);

	if (end == 0 || madvise(space->base, end, POPULATE_WRITE) == 0)
		return;
	for (uint64_t i = 0; i < end; i += SMALL_PAGE)
		space->base[i] = 0;
}

uint64_t mri_space_taken(uint64_t begin_bytes, uint64_t end_bytes)
{
	const uint64_t page =
		end_bytes <= MRI_SPACE_STEP ? SMALL_PAGE : MRI_SPACE_STEP;

	return end_bytes == begin_bytes ?
		       0 :
		       mri_round_up(end_bytes, page) - begin_bytes;
}

void mri_space_give_back(struct mri_space *space, uint64_t begin_bytes,
			 uint64_t end_bytes)
{
	const uint64_t end = mri_space_taken(0, end_bytes);

	(void)madvise(space->base + begin_bytes, end - begin_bytes,
		      MADV_DONTNEED);
}
