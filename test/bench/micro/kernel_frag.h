/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of the kernel's page_frag_cache in user space, from a description of
 * its algorithm: 32 KiB blocks. A block's count starts with a bias from which
 * the cache pays references, so a cut needs no atomic operation and each free
 * needs one. A block goes to the list of the thread that frees its last frag,
 * and from there, a few at a time, to a shared list under a lock.
 */
#ifndef KERNEL_FRAG_H
#define KERNEL_FRAG_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_frags;

/* align: a power of two. */
struct kernel_frags *kernel_frags_make(uint32_t n_blocks, uint32_t n_bytes,
				       uint32_t align);
void kernel_frags_free(void *frags);

/* Bytes of blocks that are not free. Call it while no thread runs. */
uint64_t kernel_frags_pinned(const struct kernel_frags *frags);

/* Only thread 0 may call this: the cache is its own. NULL: no block. */
void *kernel_frag_alloc(struct kernel_frags *frags);
/* The same with another size. */
void *kernel_frag_cut(struct kernel_frags *frags, uint32_t n_bytes,
		      uint32_t align);
/*
 * Like kernel_frag_alloc(), but the frag is used up by commit() only; probe()
 * returns NULL if the current block has no room.
 */
void *kernel_frag_prepare(struct kernel_frags *frags);
void *kernel_frag_probe(struct kernel_frags *frags);
void kernel_frag_commit(struct kernel_frags *frags, const void *data);
/* Undo the last cut. False: data is not the last cut. */
bool kernel_frag_abort(struct kernel_frags *frags, const void *data,
		       uint32_t n_bytes);

/* Any of 2 threads may call this. */
void kernel_frag_free(struct kernel_frags *frags, uint32_t thread, void *data);

#endif
