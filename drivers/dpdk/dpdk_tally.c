/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a tx queue has posted, counted by its tag until it returns.
 *
 * Most devices return everything when closed, but not rings in memory, whose
 * other end may free a header at any later time. The headers and the view wait
 * for that. Their memory belongs to the process, since the context may end
 * before.
 */
#include <stdlib.h>

#include "dpdk.h"

/* By tag: atomic, since completions read it. The lock guards the rest. */
static struct dpdk_tally *tagged[DPDK_MAX_TXQS];
static struct dpdk_tally *closed;

void mri_dpdk_completed(uint16_t tag)
{
	struct dpdk_tally *tally;

	if (!dpdk_is_tag(tag))
		return;
	tally = __atomic_load_n(&tagged[(tag - DPDK_FIRST_TAG) % DPDK_MAX_TXQS],
				__ATOMIC_ACQUIRE);

	/* Pairs with the loads in is_complete(): everything is back. */
	if (tally != NULL)
		__atomic_fetch_add(tag & DPDK_INNER ?
					   &tally->n_inner_elsewhere :
					   &tally->n_elsewhere,
				   1, __ATOMIC_RELEASE);
}

static bool is_complete(const struct dpdk_tally *tally)
{
	return __atomic_load_n(&tally->n_elsewhere, __ATOMIC_ACQUIRE) >=
		       tally->n_awaited &&
	       __atomic_load_n(&tally->n_inner_elsewhere, __ATOMIC_ACQUIRE) >=
		       tally->n_inner_awaited;
}

static void end_tally(struct dpdk_tally *tally)
{
	__atomic_store_n(&tagged[tally->tag - DPDK_FIRST_TAG], NULL,
			 __ATOMIC_RELEASE);
	mri_dpdk_extras_close(&tally->extras);
	mri_dpdk_view_put(tally->view);
	free(tally);
}

static bool take_tag(struct dpdk_tally *tally)
{
	for (uint32_t i = 0; i < DPDK_MAX_TXQS; i++)
		if (tagged[i] == NULL) {
			tally->tag = (uint16_t)(DPDK_FIRST_TAG + i);
			__atomic_store_n(&tagged[i], tally, __ATOMIC_RELEASE);
			return true;
		}
	return false;
}

struct dpdk_tally *mri_dpdk_tally_open(struct dpdk_view *view,
				       uint32_t n_extras)
{
	struct dpdk_tally *tally = calloc(1, sizeof(*tally));

	if (tally == NULL || !take_tag(tally)) {
		free(tally);
		return NULL;
	}
	view->n_users++;
	tally->view = view;
	if (mri_dpdk_extras_open(&tally->extras, view, n_extras) == 0)
		return tally;
	end_tally(tally);
	return NULL;
}

void mri_dpdk_tally_close(struct dpdk_tally *tally, uint64_t n_frames,
			  uint64_t n_inner)
{
	if (tally == NULL)
		return;
	tally->n_awaited = n_frames;
	tally->n_inner_awaited = n_inner;
	tally->next = closed;
	closed = tally;
	mri_dpdk_tally_sweep();
}

void mri_dpdk_tally_sweep(void)
{
	struct dpdk_tally **at = &closed;

	while (*at != NULL) {
		struct dpdk_tally *tally = *at;

		if (!is_complete(tally)) {
			at = &tally->next;
			continue;
		}
		*at = tally->next;
		end_tally(tally);
	}
}
