/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand-off: bounded rings from a worker without a tx queue of a port to the
 * worker that owns one.
 *
 *     worker 1 --[ring of (worker 1, port)]--> worker 0 --> tx queue
 *
 * One ring per worker and port, so each has one producer and one consumer, and
 * a stalled port fills only its own rings.
 *
 * Metadata has a second ring, with META_ENTRIES for each entry of the first. It
 * is filled and emptied before the first, so it has the metadata of all entries
 * that the consumer sees, and room for those that the producer has room for.
 */
#include <string.h>

#include "worker/worker.h"

/* A struct mr_meta, in entries of a ring. */
enum { META_ENTRIES = sizeof(struct mr_meta) / sizeof(struct mr_frame) };

static int make_rings(struct mr_workers *workers, struct mri_worker *from,
		      struct mr_reason *reterr_reason)
{
	struct mr_worker_route *routes =
		(struct mr_worker_route *)from->base.routes;

	for (uint32_t p = 0; p < workers->n_ports; p++) {
		struct mr_worker_route *route = &routes[p];
		struct mri_worker *owner;
		int err;

		if (route->txq != NULL || route->owner_idx == UINT32_MAX)
			continue;
		err = mr_ring_spsc_create(workers->ctx,
					  workers->n_handoff_entries,
					  &route->handoff, reterr_reason);
		if (err == 0 && workers->has_meta)
			err = mr_ring_spsc_create(
				workers->ctx,
				META_ENTRIES * workers->n_handoff_entries,
				&route->handoff_meta, reterr_reason);
		if (err < 0) {
			mr_ring_spsc_destroy(route->handoff);
			route->handoff = NULL;
			return err;
		}
		owner = &workers->workers[route->owner_idx];
		owner->inbounds[owner->n_inbounds++] = (struct mri_inbound){
			.ring = route->handoff,
			.metas = route->handoff_meta,
			.txq = mr_port_txq(workers->ports[p], route->queue_idx),
		};
	}
	return 0;
}

int mri_handoff_init(struct mr_workers *workers,
		     struct mr_reason *reterr_reason)
{
	int err = 0;

	for (uint32_t w = 0; w < workers->n_workers && err == 0; w++)
		err = make_rings(workers, &workers->workers[w], reterr_reason);
	return err;
}

/* Also after a partial init. Frees what is left in rings to the pool. */
void mri_handoff_fini(struct mr_workers *workers)
{
	for (uint32_t w = 0; w < workers->n_workers; w++) {
		struct mri_worker *owner = &workers->workers[w];

		for (uint32_t i = 0; i < owner->n_inbounds; i++) {
			struct mr_frame frames[MR_BURST_MAX];
			uint32_t n;

			while ((n = mr_ring_spsc_dequeue_burst(
					owner->inbounds[i].ring, frames,
					MR_BURST_MAX)) > 0)
				mr_frame_free_bulk(owner->base.cache, frames,
						   n);
			mr_ring_spsc_destroy(owner->inbounds[i].ring);
			mr_ring_spsc_destroy(owner->inbounds[i].metas);
		}
		owner->n_inbounds = 0;
	}
}

bool mri_handoff_is_empty(const struct mri_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_inbounds; i++)
		if (mr_ring_spsc_count(worker->inbounds[i].ring) > 0)
			return false;
	return true;
}

/* There is room: there is for the entries, of which there may be any number. */
static void put_metas(struct mr_ring_spsc *ring, const struct mr_meta *meta,
		      uint32_t n)
{
	enum { AT_ONCE = 32 };
	struct mr_frame entries[AT_ONCE * META_ENTRIES] = { 0 };

	for (uint32_t i = 0, k; i < n; i += k) {
		k = n - i < AT_ONCE ? n - i : AT_ONCE;
		if (meta != NULL)
			memcpy(entries, meta + i, k * sizeof(*meta));
		mr_ring_spsc_enqueue_burst(ring, entries, k * META_ENTRIES);
	}
}

uint32_t mr_worker_hand_off(struct mr_worker *base, uint32_t port_idx,
			    const struct mr_frame *frames,
			    const struct mr_meta *meta, uint32_t n)
{
	struct mri_worker *worker = mri_worker_of(base);
	const struct mr_worker_route *route = &base->routes[port_idx];
	uint32_t n_room, n_fit = n;

	if (route->handoff == NULL || n == 0)
		return 0;
	/* Room can only grow meanwhile: the consumer takes, only we put. */
	n_room = base->workers->n_handoff_entries -
		 mr_ring_spsc_count(route->handoff);
	if (n > n_room)
		n_fit = mr_frame_n_whole(frames, n_room);
	if (route->handoff_meta != NULL)
		put_metas(route->handoff_meta, meta, n_fit);
	n_fit = mr_ring_spsc_enqueue_burst(route->handoff, frames, n_fit);
	mr_counter_add(&worker->stats.handed_off,
		       mr_frame_n_frames(frames, n_fit));
	mr_counter_add(&worker->stats.handoff_full,
		       mr_frame_n_frames(frames + n_fit, n - n_fit));
	if (n_fit > 0)
		mri_idle_wake(&base->workers->workers[route->owner_idx]);
	return n_fit;
}

/* Returns the entries that the tx queue took; *ret_n: of how many. */
static uint32_t serve(struct mri_inbound *inbound, struct mr_cache *cache,
		      uint32_t *ret_n)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n_seen =
		mr_ring_spsc_peek_burst(inbound->ring, frames, MR_BURST_MAX);
	const uint32_t n = mr_frame_n_whole(frames, n_seen);
	uint32_t n_taken;

	*ret_n = n;
	if (n == 0)
		return 0;
	if (inbound->metas == NULL) {
		n_taken = mr_tx_burst(inbound->txq, cache, frames, n);
	} else {
		union {
			struct mr_frame entries[MR_BURST_MAX * META_ENTRIES];
			struct mr_meta metas[MR_BURST_MAX];
		} u;

		mr_ring_spsc_peek_burst(inbound->metas, u.entries,
					n * META_ENTRIES);
		n_taken = mr_tx_burst_meta(inbound->txq, cache, frames, u.metas,
					   n);
		mr_ring_spsc_release(inbound->metas, n_taken * META_ENTRIES);
	}
	mr_ring_spsc_release(inbound->ring, n_taken);
	return n_taken;
}

uint32_t mr_worker_serve(struct mr_worker *base)
{
	struct mri_worker *worker = mri_worker_of(base);
	uint32_t n_sent = 0;

	worker->is_stuck = false;
	for (uint32_t i = 0; i < worker->n_inbounds; i++) {
		uint32_t n, n_taken;

		n_taken = serve(&worker->inbounds[i], base->cache, &n);
		worker->is_stuck |= n_taken < n;
		n_sent += n_taken;
	}
	return n_sent;
}
