/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extra headers, for entries that cannot use the header of their place: another
 * owner of the same page uses it, or the entry spans places.
 *
 * Each tx queue has as many as its ring has entries. The thread that uses the
 * queue takes one, which returns when the device is done with it: usually on
 * that thread, to a stack, else to a list that the thread takes over as a whole
 * when the stack is empty. They are objects of a mempool, since DPDK returns
 * headers to their mempool; only we take from it.
 */
#include <errno.h>
#include <stdlib.h>

#include "dpdk.h"

static int ops_index; /* set when the module is loaded */

static struct rte_mbuf *header(const struct dpdk_extras *extras, uint32_t i)
{
	const struct rte_mempool *mempool = extras->mempool;

	return (struct rte_mbuf *)(void *)(extras->headers.memory +
					   mempool->header_size +
					   i * dpdk_stride(mempool));
}

static uint32_t number(const struct dpdk_extras *extras,
		       const struct rte_mbuf *mbuf)
{
	return (uint32_t)((size_t)((const uint8_t *)mbuf -
				   extras->headers.memory) /
			  dpdk_stride(extras->mempool));
}

struct dpdk_extras *mri_dpdk_extras_of(const struct rte_mbuf *mbuf)
{
	return mbuf->pool->ops_index == ops_index ? mbuf->pool->pool_data :
						    NULL;
}

void mri_dpdk_extra_put(struct rte_mbuf *mbuf)
{
	struct dpdk_extras *extras = mbuf->pool->pool_data;
	const struct dpdk_call *call = mri_dpdk_call;
	const uint32_t i = number(extras, mbuf);
	uint32_t first;

	mbuf->port = DPDK_NO_TAG;
	if (likely(call != NULL && call->extras == extras)) {
		extras->stack[extras->n++] = mbuf;
		return;
	}
	first = __atomic_load_n(&extras->foreign, __ATOMIC_RELAXED);
	do {
		extras->next[i] = first;
		/* Pairs with the exchange in take_foreign(). */
	} while (!__atomic_compare_exchange_n(&extras->foreign, &first, i + 1,
					      true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

/* All at once, so that no header can be taken and put back meanwhile. */
static void take_foreign(struct dpdk_extras *extras)
{
	uint32_t i_plus_1 =
		__atomic_exchange_n(&extras->foreign, 0, __ATOMIC_ACQUIRE);

	for (; i_plus_1 != 0; i_plus_1 = extras->next[i_plus_1 - 1])
		extras->stack[extras->n++] = header(extras, i_plus_1 - 1);
}

struct rte_mbuf *mri_dpdk_extra_get(struct dpdk_extras *extras)
{
	if (extras->n == 0)
		take_foreign(extras);
	return extras->n == 0 ? NULL : extras->stack[--extras->n];
}

/* DPDK is done with a header and the entry that it was lent to. */
static int extras_enqueue(struct rte_mempool *mempool, void *const *objs,
			  unsigned int n)
{
	const struct dpdk_extras *extras = mempool->pool_data;
	struct dpdk_call *call = mri_dpdk_call;

	/* Count last: after the last one, this memory may be freed. */
	for (uint32_t i = 0; i < n; i++) {
		const struct dpdk_view *view = extras->view;
		const uint64_t addr = dpdk_addr(view, objs[i]);
		const uint16_t tag = dpdk_take_tag(objs[i]);
		const bool is_here =
			call != NULL && call->view->base == view->base;

		mri_dpdk_give_back(view, addr);
		mri_dpdk_extra_put(objs[i]);
		if (is_here)
			dpdk_count_done(call, tag);
		else
			mri_dpdk_completed(tag);
	}
	return 0;
}

static int extras_dequeue(struct rte_mempool *mempool, void **objs,
			  unsigned int n)
{
	(void)mempool;
	(void)objs;
	(void)n;
	return -ENOBUFS;
}

static unsigned int extras_get_count(const struct rte_mempool *mempool)
{
	(void)mempool;
	return 0;
}

static const struct rte_mempool_ops extras_ops = {
	.name = "millrace_spares",
	.alloc = mri_dpdk_ops_alloc,
	.free = mri_dpdk_ops_free,
	.enqueue = extras_enqueue,
	.dequeue = extras_dequeue,
	.get_count = extras_get_count,
	.populate = mri_dpdk_populate,
};

RTE_INIT(register_spares_ops)
{
	ops_index = rte_mempool_register_ops(&extras_ops);
}

int mri_dpdk_extras_open(struct dpdk_extras *extras,
			 const struct dpdk_view *view, uint32_t n)
{
	extras->view = view;
	extras->n_all = n;
	extras->stack = calloc(n, sizeof(extras->stack[0]));
	extras->next = calloc(n, sizeof(extras->next[0]));
	if (extras->stack == NULL || extras->next == NULL)
		return -ENOMEM;
	extras->mempool = mri_dpdk_mempool(extras_ops.name, extras, n, n, 0,
					   &extras->headers);
	if (extras->mempool == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		extras->stack[i] = header(extras, i);
		mri_dpdk_init_header(extras->mempool, extras->stack[i]);
	}
	extras->n = n;
	return 0;
}

void mri_dpdk_extras_close(struct dpdk_extras *extras)
{
	mri_dpdk_mempool_free(extras->mempool, &extras->headers);
	free(extras->next);
	free(extras->stack);
}
