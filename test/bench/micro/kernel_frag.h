/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of the kernel's page_frag_cache in user space, from the description
 * of its algorithm: 32 KiB blocks; each block's count starts with a bias that
 * the cache pays references from, so a cut costs no atomic and each free costs
 * one; a block goes to the list of the thread that frees its last frag, and
 * from there, a few at a time, to a shared list under a lock.
 */
#ifndef KERNEL_FRAG_H
#define KERNEL_FRAG_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_frags;

/* Frags of n_bytes. align: a power of two. */
struct kernel_frags *kernel_frags_make(uint32_t n_blocks, uint32_t n_bytes,
				       uint32_t align);
void kernel_frags_free(void *frags);

/* Bytes in blocks that are not free. At rest. */
uint64_t kernel_frags_pinned(const struct kernel_frags *frags);

/* By thread 0, whose cache it is. NULL: no block. */
void *kernel_frag_alloc(struct kernel_frags *frags);
/* The same, of another size. */
void *kernel_frag_cut(struct kernel_frags *frags, uint32_t n_bytes,
		      uint32_t align);
/*
 * As kernel_frag_alloc(), but the frag is not taken until it is committed; with
 * probe, none where the block in hand has no room.
 */
void *kernel_frag_prepare(struct kernel_frags *frags);
void *kernel_frag_probe(struct kernel_frags *frags);
void kernel_frag_commit(struct kernel_frags *frags, const void *data);
/* Undo the last cut. False: it is not that one. */
bool kernel_frag_abort(struct kernel_frags *frags, const void *data,
		       uint32_t n_bytes);

/* By any of 2 threads. */
void kernel_frag_free(struct kernel_frags *frags, uint32_t thread, void *data);

#endif
