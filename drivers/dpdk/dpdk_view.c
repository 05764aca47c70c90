/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mempool that is a view of our pool.
 *
 *     rte_mempool_get:   pages of the pool  --> the headers of their places
 *     rte_mempool_put:   headers            --> their pages, to the pool
 *
 * The objects are headers with a pinned external buffer each: the page of the
 * region at the header's place. The mempool holds none of them: its free
 * objects are the pool's free pages. So a device's receive ring is filled from
 * our pages, and what it has sent is free for any other port.
 *
 * A burst takes pages from, and returns them to, its own cache; other threads,
 * and calls that open or close, use the pool itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_errno.h>

#include "dpdk.h"

enum {
	HEADER_BYTES = sizeof(struct rte_mbuf) +
		       sizeof(struct rte_mbuf_ext_shared_info),
	MEMPOOL_FLAGS = RTE_MEMPOOL_F_NO_SPREAD,
};

static int ops_index; /* set when the module is loaded */

__thread struct dpdk_call *mri_dpdk_call
	__attribute__((tls_model("initial-exec")));

/* Of all contexts, under the lock of mri_dpdk_enter(). */
static struct dpdk_view *views;

int mri_dpdk_ops_alloc(struct rte_mempool *mempool)
{
	mempool->pool_data = mempool->pool_config;
	return 0;
}

void mri_dpdk_ops_free(struct rte_mempool *mempool)
{
	(void)mempool;
}

static uint32_t alloc(const struct dpdk_view *view, struct dpdk_call *call,
		      uint64_t *addrs, uint32_t n)
{
	const uint32_t page_bytes = 1u << view->page_shift;
	uint64_t n_bytes = dpdk_n_registered(view);

	if (unlikely(n_bytes == 0))
		return 0; /* rte_mempool_free() expects all of them */
	uint32_t n_got =
		call != NULL ?
			mr_frag_alloc_bulk(call->cache, addrs, n, page_bytes) :
			mr_pool_frag_alloc_bulk(view->pool, addrs, n);

	n_bytes = dpdk_n_registered(view); /* the pool may have grown */
	if (likely(mr_addrs_are_below(addrs, n_got, n_bytes)))
		return n_got;
	/* Retry once; the page allocator prefers low segments. */
	n_got = mr_pool_keep_below(view->pool, addrs, n_got, n_bytes);
	n = mr_pool_frag_alloc_bulk(view->pool, addrs + n_got, n - n_got);
	return n_got +
	       mr_pool_keep_below(view->pool, addrs + n_got, n, n_bytes);
}

void mri_dpdk_give_back(const struct dpdk_view *view, uint64_t addr)
{
	struct dpdk_call *call = mri_dpdk_call;

	if (call != NULL && call->view->base == view->base)
		mr_frag_free_bulk(call->cache, &addr, 1);
	else
		mr_pool_frag_free_bulk(view->pool, &addr, 1);
}

static int view_dequeue(struct rte_mempool *mempool, void **objs,
			unsigned int n)
{
	const struct dpdk_view *view = mempool->pool_data;
	struct dpdk_call *call = mri_dpdk_call;
	uint64_t addrs[MR_BURST_MAX];

	if (call != NULL && call->view != view)
		call = NULL;
	for (uint32_t n_done = 0, k; n_done < n; n_done += k) {
		k = RTE_MIN(n - n_done, (uint32_t)MR_BURST_MAX);
		const uint32_t n_got = alloc(view, call, addrs, k);

		for (uint32_t i = 0; i < n_got; i++) {
			struct rte_mbuf *mbuf = dpdk_header(view, addrs[i]);

			/* dpdk_tx.c may have changed it. */
			mbuf->ol_flags = RTE_MBUF_F_EXTERNAL;
			objs[n_done + i] = mbuf;
		}
		if (likely(n_got == k))
			continue;
		/* All or nothing. */
		for (uint32_t i = 0; i < n_done + n_got; i++)
			mri_dpdk_give_back(view, dpdk_addr(view, objs[i]));
		if (call != NULL)
			call->was_empty = true;
		return -ENOBUFS;
	}
	return 0;
}

void mri_dpdk_call_flush(struct dpdk_call *call)
{
	const uint32_t n = call->n_freed;
	uint64_t addrs[DPDK_CALL_ROOM];
	uint16_t tags[DPDK_CALL_ROOM]; /* of other queues */
	uint32_t n_tags = 0, n_done = 0, n_inner = 0;

	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *mbuf = call->freed[i];
		const uint16_t tag = dpdk_take_tag(mbuf);

		addrs[i] = dpdk_addr(call->view, mbuf);
		if (likely(tag == call->tag))
			n_done++;
		else if (tag == (call->tag | DPDK_INNER))
			n_inner++;
		else
			tags[n_tags++] = tag;
	}
	mr_frag_free_bulk(call->cache, addrs, n);
	call->n_done += n_done;
	call->n_inner += n_inner;
	call->n_freed = 0;
	for (uint32_t i = 0; i < n_tags; i++)
		mri_dpdk_completed(tags[i]);
}

/* Free one of a view that is not the call's. */
static void free_one(const struct dpdk_view *view, struct rte_mbuf *mbuf)
{
	const uint16_t tag = dpdk_take_tag(mbuf);

	mri_dpdk_give_back(view, dpdk_addr(view, mbuf));
	/* After the last tag is counted, the view may be gone. */
	mri_dpdk_completed(tag);
}

static __rte_noinline int enqueue_odd(struct rte_mempool *mempool,
				      void *const *objs, uint32_t n)
{
	const struct dpdk_view *view = mempool->pool_data;
	struct dpdk_call *call = mri_dpdk_call;
	const bool is_ours = call != NULL && call->mempool == mempool;

	for (uint32_t i = 0; i < n; i++) {
		if (!is_ours) {
			free_one(view, objs[i]);
			continue;
		}
		if (call->n_freed == DPDK_CALL_ROOM)
			mri_dpdk_call_flush(call);
		call->freed[call->n_freed++] = objs[i];
	}
	return 0;
}

static int view_enqueue(struct rte_mempool *mempool, void *const *objs,
			unsigned int n)
{
	struct dpdk_call *call = mri_dpdk_call;

	if (unlikely(call == NULL || call->mempool != mempool || n != 1 ||
		     call->n_freed == DPDK_CALL_ROOM))
		return enqueue_odd(mempool, objs, n);
	call->freed[call->n_freed++] = objs[0];
	return 0;
}

static unsigned int view_get_count(const struct rte_mempool *mempool)
{
	const struct dpdk_view *view = mempool->pool_data;
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	if (view == NULL || mr_pool_stats(view->pool, &stats) < 0)
		return 0;
	return (unsigned int)RTE_MIN(stats.n_free, (uint64_t)mempool->size);
}

/* Objects follow each other without gaps: their numbers are places. */
int mri_dpdk_populate(struct rte_mempool *mempool, unsigned int max_objs,
		      void *vaddr, rte_iova_t iova, size_t len,
		      rte_mempool_populate_obj_cb_t *obj_cb, void *obj_cb_arg)
{
	const size_t stride = dpdk_stride(mempool);
	uint32_t i;

	for (i = 0; i < max_objs && (i + 1) * stride <= len; i++) {
		const size_t at = i * stride + mempool->header_size;

		obj_cb(mempool, obj_cb_arg, (uint8_t *)vaddr + at, iova + at);
	}
	return (int)i;
}

static const struct rte_mempool_ops view_ops = {
	.name = "millrace_pages",
	.alloc = mri_dpdk_ops_alloc,
	.free = mri_dpdk_ops_free,
	.enqueue = view_enqueue,
	.dequeue = view_dequeue,
	.get_count = view_get_count,
	.populate = mri_dpdk_populate,
};

RTE_INIT(register_view_ops)
{
	ops_index = rte_mempool_register_ops(&view_ops);
}

const struct dpdk_view *mri_dpdk_view_of(const struct rte_mbuf *mbuf)
{
	return mbuf->pool->ops_index == ops_index ? mbuf->pool->pool_data :
						    NULL;
}

/*
 * A clone of a header's buffer was freed last, after the header: like DPDK's
 * own callback for such pools.
 */
static void free_pinned(void *addr, void *opaque)
{
	struct rte_mbuf *mbuf = opaque;

	(void)addr;
	rte_mbuf_ext_refcnt_set(mbuf->shinfo, 1);
	mbuf->ol_flags = RTE_MBUF_F_EXTERNAL;
	mbuf->next = NULL;
	mbuf->nb_segs = 1;
	rte_mbuf_raw_free(mbuf);
}

void mri_dpdk_init_header(struct rte_mempool *mempool, struct rte_mbuf *mbuf)
{
	memset(mbuf, 0, mempool->elt_size);
	mbuf->shinfo = (struct rte_mbuf_ext_shared_info *)(mbuf + 1);
	mbuf->shinfo->free_cb = free_pinned;
	mbuf->shinfo->fcb_opaque = mbuf;
	rte_mbuf_ext_refcnt_set(mbuf->shinfo, 1);
	mbuf->pool = mempool;
	mbuf->ol_flags = RTE_MBUF_F_EXTERNAL;
	mbuf->nb_segs = 1;
	mbuf->port = DPDK_NO_TAG;
	rte_mbuf_refcnt_set(mbuf, 1);
}

void mri_dpdk_mempool_free(struct rte_mempool *mempool,
			   struct dpdk_headers *headers)
{
	rte_mempool_free(mempool);
	if (headers->memory != NULL)
		munmap(headers->memory, headers->n_reserved_bytes);
	headers->memory = NULL;
}

/*
 * Reserve address space: a process that locks its memory (mlockall) or whose
 * memory is limited (vm.overcommit_memory) pays only for what is made usable.
 */
static void reserve(struct dpdk_headers *headers, size_t n_bytes)
{
	void *memory = mmap(NULL, n_bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	headers->memory = memory == MAP_FAILED ? NULL : memory;
	headers->n_reserved_bytes = n_bytes;
	headers->n_bytes = 0;
}

/* Make at least that much usable, from the start. */
static int make_usable(struct dpdk_headers *headers, size_t n_bytes)
{
	const size_t at = headers->n_bytes;

	n_bytes = RTE_ALIGN_CEIL(n_bytes, (size_t)sysconf(_SC_PAGESIZE));
	if (n_bytes <= at)
		return 0;
	if (mprotect(headers->memory + at, n_bytes - at,
		     PROT_READ | PROT_WRITE) < 0)
		return -ENOMEM;
	headers->n_bytes = n_bytes;
	return 0;
}

struct rte_mempool *mri_dpdk_mempool(const char *ops, void *data, uint32_t n,
				     uint64_t n_reserved, uint16_t room_bytes,
				     struct dpdk_headers *ret_headers)
{
	static uint32_t n_made; /* names are global */
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = room_bytes,
		.flags = RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF,
	};
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mempool;

	snprintf(name, sizeof(name), "%s_%u", ops, n_made++);
	mempool = rte_mempool_create_empty(name, n, HEADER_BYTES, 0,
					   sizeof(private), SOCKET_ID_ANY,
					   MEMPOOL_FLAGS);
	if (mempool == NULL)
		return NULL;
	rte_pktmbuf_pool_init(mempool, &private);
	reserve(ret_headers, n_reserved * dpdk_stride(mempool));
	/*
	 * No device reads a header. It has an IOVA only because DPDK assumes
	 * that devices may not use the buffers of a mempool without one.
	 */
	if (ret_headers->memory != NULL &&
	    make_usable(ret_headers, n * dpdk_stride(mempool)) == 0 &&
	    rte_mempool_set_ops_byname(mempool, ops, data) == 0 &&
	    rte_mempool_populate_iova(
		    mempool, (char *)ret_headers->memory,
		    (rte_iova_t)(uintptr_t)ret_headers->memory,
		    n * dpdk_stride(mempool), NULL, NULL) == (int)n)
		return mempool;
	mri_dpdk_mempool_free(mempool, ret_headers);
	return NULL;
}

/* The device address of a buffer; RTE_BAD_IOVA if it has none. */
static rte_iova_t iova_of(const void *buffer)
{
	return rte_eal_iova_mode() == RTE_IOVA_VA ?
		       (rte_iova_t)(uintptr_t)buffer :
		       rte_mem_virt2iova(buffer);
}

/* For a segment added later, which the mempool did not have at creation. */
static void write_object(struct rte_mempool *mempool, struct rte_mbuf *mbuf)
{
	struct rte_mempool_objhdr *object =
		(void *)((uint8_t *)mbuf - sizeof(*object));

	object->mp = mempool;
	object->iova = (rte_iova_t)(uintptr_t)mbuf;
}

/*
 * Headers written before may be with a device, and stay; but the device
 * addresses of their buffers may have changed since a port was open.
 */
int mri_dpdk_view_resize(struct dpdk_view *view, uint64_t n_bytes)
{
	const uint64_t page_bytes = UINT64_C(1) << view->page_shift;
	const uint64_t n_headers = n_bytes >> view->page_shift;
	const int err =
		make_usable(&view->headers, n_headers * view->header_stride);

	if (err < 0)
		return err;
	for (uint64_t at = view->n_registered_bytes; at < n_bytes;
	     at += page_bytes) {
		struct rte_mbuf *mbuf = dpdk_header(view, at);

		if (at >= view->n_written_bytes) {
			write_object(view->mempool, mbuf);
			mri_dpdk_init_header(view->mempool, mbuf);
			mbuf->buf_addr = view->base + at + view->shift_bytes;
			mbuf->buf_len =
				rte_pktmbuf_data_room_size(view->mempool);
		}
		rte_mbuf_iova_set(mbuf, iova_of(mbuf->buf_addr));
	}
	view->n_written_bytes = RTE_MAX(view->n_written_bytes, n_bytes);
	__atomic_store_n(&view->n_registered_bytes, n_bytes, __ATOMIC_RELEASE);
	return 0;
}

static int fill_view(struct dpdk_view *view, const struct mr_port *base,
		     uint64_t n_region_bytes)
{
	const uint64_t n_all = n_region_bytes >> view->page_shift;
	const uint64_t n_now =
		mr_region_n_contiguous_bytes(base->region) >> view->page_shift;

	if (n_now > UINT32_MAX)
		return -E2BIG;
	if (base->headroom_bytes > RTE_PKTMBUF_HEADROOM)
		view->shift_bytes = base->headroom_bytes - RTE_PKTMBUF_HEADROOM;
	view->mempool = mri_dpdk_mempool(
		view_ops.name, view, (uint32_t)n_now, n_all,
		(uint16_t)(base->page_bytes - view->shift_bytes -
			   base->tailroom_bytes),
		&view->headers);
	if (view->mempool == NULL)
		return -ENOMEM;
	view->first = view->headers.memory + view->mempool->header_size;
	view->header_stride = (uint32_t)dpdk_stride(view->mempool);
	view->n_header_bytes = n_all * view->header_stride;
	return 0;
}

static void no_headers(const struct mr_port *base, uint64_t n_region_bytes,
		       struct mr_reason *reason)
{
	const uint64_t n_now = mr_region_n_contiguous_bytes(base->region);
	const uint64_t stride =
		rte_mempool_calc_obj_size(HEADER_BYTES, MEMPOOL_FLAGS, NULL);

	mr_fail(reason, -ENOMEM,
		"%s: no memory for headers of the pool's buffers, %llu KiB, or "
		"no address space for those of a region of %llu MiB, %llu MiB "
		"(%s)",
		base->info->name,
		(unsigned long long)((n_now / base->page_bytes * stride) >>
				     10),
		(unsigned long long)(n_region_bytes >> 20),
		(unsigned long long)((n_region_bytes / base->page_bytes *
				      stride) >>
				     20),
		mri_dpdk_why(ENOMEM));
}

struct dpdk_view *mri_dpdk_view_get(struct dpdk_port *port,
				    uint64_t n_region_bytes,
				    struct mr_reason *reason)
{
	struct mr_port *base = port->base;
	struct dpdk_view *view;
	int err;

	for (view = views; view != NULL; view = view->next)
		if (view->pool == base->pool) {
			view->n_users++;
			return view;
		}
	view = calloc(1, sizeof(*view));
	if (view != NULL) {
		view->pool = base->pool;
		view->base = base->base;
		view->page_shift = (uint32_t)__builtin_ctz(base->page_bytes);
		err = fill_view(view, base, n_region_bytes);
		if (err == 0) {
			view->n_users = 1;
			view->next = views;
			views = view;
			return view;
		}
		free(view);
	}
	no_headers(base, n_region_bytes, reason);
	return NULL;
}

void mri_dpdk_view_put(struct dpdk_view *view)
{
	struct dpdk_view **at = &views;

	if (view == NULL || --view->n_users > 0)
		return;
	while (*at != view)
		at = &(*at)->next;
	*at = view->next;
	mri_dpdk_mempool_free(view->mempool, &view->headers);
	free(view);
}
