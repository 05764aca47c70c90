/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables that may be much larger than what is used: zeroed memory that costs
 * nothing until it is used. mr_alloc() would touch all of it.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"

/* Before the table, which begins on a pair of cache lines. */
struct head {
	_Alignas(2 * MRI_CACHE_LINE) size_t map_bytes;
};

void *mri_table_alloc(size_t n_bytes, size_t n_used_bytes)
{
	const size_t map_bytes = sizeof(struct head) + n_bytes;
	struct head *head =
		mmap(NULL, map_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (head == MAP_FAILED)
		return NULL;
	head->map_bytes = map_bytes;
	/* Avoid page faults later in the part that is used from the start. */
	memset(head + 1, 0, n_used_bytes);
	return head + 1;
}

void mri_table_free(void *table)
{
	struct head *head = table;

	if (table == NULL)
		return;
	head--;
	munmap(head, head->map_bytes);
}
