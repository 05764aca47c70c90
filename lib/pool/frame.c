/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a frame's owner: extend, shorten, share, unshare. */
#include <errno.h>
#include <string.h>

#include "mem/mem.h"
#include "pool/pool.h"

static bool is_exclusive(const struct mr_pool *pool, uint64_t addr)
{
	const uint8_t owners = __atomic_load_n(
		&pool->owners[mri_page_of(pool, addr)], __ATOMIC_ACQUIRE);

	return owners == MRI_OWNER_BLOCK ?
		       mri_block_is_exclusive(mri_block_of(pool, addr)) :
		       owners == 0;
}

/*
 * The size of the buffer that contains an address: a page, or a block that was
 * allocated whole. 0 if only its first owner knows: a frag of a block.
 */
static uint32_t buffer_bytes_at(const struct mr_pool *pool, uint64_t addr)
{
	if (mri_is_block(pool, addr)) {
		const struct mri_block *block = mri_block_of(pool, addr);

		return block->is_whole ? pool->page_bytes << block->order : 0;
	}
	return pool->page_bytes;
}

/* Buffers are aligned to their size in the pool. */
static uint32_t offset_in_buffer(const struct mr_pool *pool, uint64_t addr,
				 uint32_t n_buffer)
{
	return (uint32_t)(addr - pool->addr) & (n_buffer - 1);
}

int mr_frame_room(const struct mr_cache *cache, const struct mr_frame *frame,
		  struct mr_room *ret_room)
{
	const struct mr_pool *pool = cache->pool;
	uint32_t n_buffer, at;

	*ret_room = (struct mr_room){ 0 };
	if (!mri_pool_has(pool, frame->addr))
		return -EINVAL;
	if (!is_exclusive(pool, frame->addr))
		return -EROFS;
	n_buffer = buffer_bytes_at(pool, frame->addr);
	if (n_buffer == 0)
		return 0;
	at = offset_in_buffer(pool, frame->addr, n_buffer);
	ret_room->front_bytes = at;
	if (frame->len < n_buffer - at)
		ret_room->back_bytes = n_buffer - at - frame->len;
	return 0;
}

int mr_frame_push(struct mr_cache *cache, struct mr_frame *frame,
		  uint32_t n_bytes)
{
	struct mr_room room;
	const int err = mr_frame_room(cache, frame, &room);

	if (err < 0)
		return err;
	if (n_bytes > room.front_bytes)
		return -ENOSPC;
	frame->addr -= n_bytes;
	frame->len += n_bytes;
	return 0;
}

int mr_frame_put(struct mr_cache *cache, struct mr_frame *frame,
		 uint32_t n_bytes)
{
	struct mr_room room;
	const int err = mr_frame_room(cache, frame, &room);

	if (err < 0)
		return err;
	if (n_bytes > room.back_bytes)
		return -ENOSPC;
	frame->len += n_bytes;
	return 0;
}

int mr_frame_pull(struct mr_frame *frame, uint32_t n_bytes)
{
	if (frame->len <= n_bytes)
		return -ENOSPC;
	frame->addr += n_bytes;
	frame->len -= n_bytes;
	return 0;
}

int mr_frame_trim(struct mr_frame *frame, uint32_t n_bytes)
{
	if (frame->len <= n_bytes)
		return -ENOSPC;
	frame->len -= n_bytes;
	return 0;
}

/* Add an owner, unless the count is at its limit. */
static bool add_owner(struct mr_pool *pool, uint64_t addr)
{
	uint8_t *owners = &pool->owners[mri_page_of(pool, addr)];
	uint8_t seen = __atomic_load_n(owners, __ATOMIC_RELAXED);

	if (seen == MRI_OWNER_BLOCK)
		return mri_block_ref(mri_block_of(pool, addr));
	mri_pool_use_owners(pool);
	do {
		if (seen == MRI_OWNER_MAX)
			return false;
	} while (!__atomic_compare_exchange_n(owners, &seen, seen + 1, true,
					      __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return true;
}

int mr_frame_ref(struct mr_cache *cache, const struct mr_frame *frames,
		 uint32_t n)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < n && err == 0; i++) {
		struct mr_pool *pool =
			mri_pool_has(cache->pool, frames[i].addr) ?
				cache->pool :
				mri_pool_of(cache->pool->region,
					    frames[i].addr);

		if (pool == NULL || !mri_pool_has(pool, frames[i].addr))
			err = -EINVAL;
		else if (!add_owner(pool, frames[i].addr))
			err = -EOVERFLOW;
	}
	if (err < 0)
		mr_frame_free_bulk(cache, frames, i - 1);
	return err;
}

static bool is_frame_exclusive(const struct mr_cache *cache,
			       const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_exclusive(cache->pool, frames[i].addr))
			return false;
	return true;
}

/* A buffer for a copy of one entry, and where the copy begins in it. */
struct place {
	uint32_t n_buffer, at;
};

/*
 * The same place in a buffer of the same size, so that the copy keeps its room.
 * A frag has none to keep; its copy gets the pool's headroom, if that fits.
 * n_buffer is 0 if the entry is longer than its buffer.
 */
static struct place place_of_copy(const struct mr_pool *pool,
				  const struct mr_frame *frame)
{
	struct place place = { buffer_bytes_at(pool, frame->addr), 0 };
	const bool is_frag = place.n_buffer == 0;

	if (is_frag)
		place.n_buffer = pool->page_bytes
				 << mri_block_of(pool, frame->addr)->order;
	else
		place.at = offset_in_buffer(pool, frame->addr, place.n_buffer);
	if (frame->len > place.n_buffer - place.at)
		return (struct place){ 0 };
	if (is_frag && frame->len <= pool->page_bytes) {
		place.n_buffer = pool->page_bytes;
		place.at = mri_min_u32(pool->headroom_bytes,
				       place.n_buffer - frame->len);
	}
	return place;
}

int mr_frame_unshare(struct mr_cache *cache, struct mr_frame *frames,
		     uint32_t n)
{
	const struct mr_pool *pool = cache->pool;
	uint8_t *base = pool->region->base;
	struct mr_frame copy[MR_MAX_SEGS];
	struct place places[MR_MAX_SEGS];

	if (n == 0 || n > MR_MAX_SEGS)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (!mri_pool_has(pool, frames[i].addr))
			return -EINVAL;
		places[i] = place_of_copy(pool, &frames[i]);
		if (places[i].n_buffer == 0)
			return -EINVAL;
	}
	if (is_frame_exclusive(cache, frames, n))
		return 0;

	for (uint32_t i = 0; i < n; i++) {
		copy[i] = frames[i];
		/* Nothing exceeds a page. */
		if (mr_frag_alloc_bulk(cache, &copy[i].addr, 1,
				       places[i].n_buffer) == 0) {
			mr_frame_free_bulk(cache, copy, i);
			return -ENOMEM;
		}
		copy[i].addr += places[i].at;
		memcpy(base + copy[i].addr, base + frames[i].addr,
		       frames[i].len);
	}
	mr_frame_free_bulk(cache, frames, n);
	memcpy(frames, copy, n * sizeof(copy[0]));
	return 0;
}

void mr_frame_copy_bytes(void *base, const struct mr_frame *frames, uint32_t at,
			 void *to, uint32_t n_bytes)
{
	uint8_t *bytes = to;

	for (; n_bytes > 0; frames++) {
		uint32_t n;

		if (at >= frames->len) {
			at -= frames->len;
			continue;
		}
		n = frames->len - at;
		n = n < n_bytes ? n : n_bytes;
		memcpy(bytes, mr_frame_data(base, frames) + at, n);
		bytes += n;
		n_bytes -= n;
		at = 0;
	}
}
