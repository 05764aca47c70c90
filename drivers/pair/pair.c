/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair: two ends in memory.
 *
 *     end 0                       lanes                        end 1
 *     tx queue i --> [ ring of entries, by address ] --> rx queue i
 *     rx queue i <-- [ ring of entries, by address ] <-- tx queue i
 *
 * Two ports opened with one name in one context are the two ends. Frames move
 * with their references; nothing is copied. What both ends share, the link, is
 * in the driver's slot of the context.
 *
 * The producer owns a lane's entries until the consumer takes them, so closing
 * an end empties the rings that it filled, while the consumer may be in a
 * burst. See mri_pair_claim().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

enum {
	DEFAULT_RING_ENTRIES = 1024,
	MIN_RING_ENTRIES = 2,
	MIN_SG_RING_ENTRIES = 32, /* the longest frame fits */
	MAX_RING_ENTRIES = 65536,
	MAX_QUEUES = 64,
};

struct pair_options {
	uint32_t n_queues;
	uint32_t n_ring_entries;
	uint32_t has_sg;
};

extern const struct mr_driver mr_driver_pair;

/* Read pulls that were made. One whose write is pending stays owed. */
static void settle_bell(struct pair_bell *bell)
{
	uint64_t n;

	if (bell->is_set &&
	    __atomic_load_n(&bell->is_armed, __ATOMIC_ACQUIRE) == 0) {
		bell->is_set = false;
		bell->n_owed++;
	}
	if (bell->n_owed > 0 && read(bell->fd, &n, sizeof(n)) == sizeof(n))
		bell->n_owed -= (uint32_t)n;
}

void mri_pair_bell_arm(struct pair_bell *bell)
{
	settle_bell(bell);
	bell->is_set = true;
	__atomic_store_n(&bell->is_armed, 1, __ATOMIC_SEQ_CST);
}

void mri_pair_bell_disarm(struct pair_bell *bell)
{
	if (__atomic_exchange_n(&bell->is_armed, 0, __ATOMIC_SEQ_CST) == 0)
		bell->n_owed++;
	bell->is_set = false;
}

void mri_pair_bell_pull_armed(struct pair_bell *bell)
{
	const uint64_t one = 1;

	/* It fails only if 2^64 pulls were never read. */
	if (__atomic_exchange_n(&bell->is_armed, 0, __ATOMIC_SEQ_CST) != 0 &&
	    write(bell->fd, &one, sizeof(one)) < 0)
		return;
}

/* Free the entries of a ring to a cache, or without one to the pool. */
static void drain_lane(struct pair_lane *lane, struct mr_cache *cache,
		       struct mr_pool *pool)
{
	struct mr_frame frames[64];
	uint32_t n;

	while ((n = mr_ring_spsc_dequeue_burst(lane->ring, frames, 64)) > 0) {
		for (uint32_t i = 0; cache == NULL && i < n; i++)
			mr_pool_frag_free_bulk(pool, &frames[i].addr, 1);
		if (cache != NULL)
			mr_frame_free_bulk(cache, frames, n);
		__atomic_store_n(&lane->n_taken, lane->n_taken + n,
				 __ATOMIC_RELAXED);
	}
}

void mri_pair_adopt_orphan(struct pair_lane *lane, struct mr_cache *cache)
{
	drain_lane(lane, cache, NULL);
	/* Release: pairs with the acquire in wait_for_orphans(). */
	__atomic_store_n(&lane->claim, PAIR_ORPHANED, __ATOMIC_RELEASE);
}

static struct pair_link *find_link(struct mr_ctx *ctx, const char *name)
{
	struct pair_link **slot =
		(struct pair_link **)mr_ctx_driver_slot(ctx, &mr_driver_pair);
	struct pair_link *link = *slot;

	while (link != NULL && strcmp(link->name, name) != 0)
		link = link->next;
	return link;
}

/* The other end's value is the default, and the only value allowed. */
static int match_option(const char *name, const char *key, uint32_t ours,
			uint32_t theirs, struct mr_reason *reterr_reason)
{
	if (ours == theirs)
		return 0;
	return mr_fail(reterr_reason, -EINVAL,
		       "pair:%s: the other end was opened with %s=%u; use the "
		       "same value, or omit the option",
		       name, key, theirs);
}

static int read_options(const struct mr_spec *spec,
			const struct pair_link *link, struct pair_options *o,
			struct mr_reason *reterr_reason)
{
	static const char *const on_off[] = { "off", "on", NULL };
	const char *name = mr_spec_device(spec);
	int err;

	if (name[0] == '\0' || strlen(name) >= PAIR_NAME_BYTES)
		return mr_fail(reterr_reason, -EINVAL,
			       "pair: give both ends the same name of 1 to %d "
			       "characters, such as pair:a",
			       PAIR_NAME_BYTES - 1);
	err = mr_spec_get_u32(spec, "queues", link != NULL ? link->n_queues : 1,
			      1, MAX_QUEUES, &o->n_queues, reterr_reason);
	if (err == 0)
		err = mr_spec_get_word(spec, "sg", on_off, &o->has_sg,
				       reterr_reason);
	if (err < 0)
		return err;
	if (link != NULL && mr_spec_get(spec, "sg") == NULL)
		o->has_sg = link->has_sg;
	err = mr_spec_get_pow2(
		spec, "ring",
		link != NULL ? link->n_ring_entries : DEFAULT_RING_ENTRIES,
		o->has_sg ? MIN_SG_RING_ENTRIES : MIN_RING_ENTRIES,
		MAX_RING_ENTRIES, &o->n_ring_entries, reterr_reason);
	if (err < 0)
		return err;
	if (link == NULL)
		return 0;
	err = match_option(name, "queues", o->n_queues, link->n_queues,
			   reterr_reason);
	if (err == 0)
		err = match_option(name, "ring", o->n_ring_entries,
				   link->n_ring_entries, reterr_reason);
	if (err == 0 && o->has_sg != link->has_sg)
		err = mr_fail(reterr_reason, -EINVAL,
			      "pair:%s: the other end was opened with sg=%s; "
			      "give the same, or leave it out",
			      name, on_off[link->has_sg]);
	return err;
}

static int pair_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		     uint32_t page_bytes, uint32_t *ret_n_pages,
		     struct mr_reason *reterr_reason)
{
	struct pair_options o;
	int err = read_options(spec, find_link(ctx, mr_spec_device(spec)), &o,
			       reterr_reason);

	(void)page_bytes;
	if (err == 0)
		*ret_n_pages = o.n_queues * o.n_ring_entries;
	return err;
}

static void close_bell(struct pair_bell *bell)
{
	if (bell->fd >= 0)
		close(bell->fd);
}

static void destroy_link(struct mr_ctx *ctx, struct pair_link *link)
{
	struct pair_link **at =
		(struct pair_link **)mr_ctx_driver_slot(ctx, &mr_driver_pair);

	while (*at != link && *at != NULL)
		at = &(*at)->next;
	if (*at == link)
		*at = link->next;
	for (uint32_t i = 0; link->lanes != NULL && i < 2 * link->n_queues;
	     i++) {
		struct pair_lane *lane = &link->lanes[i];

		mr_ring_spsc_destroy(lane->ring);
		close_bell(&lane->rx_bell);
		close_bell(&lane->tx_bell);
	}
	mr_free(ctx, link->lanes);
	mr_free(ctx, link);
}

static int make_lane(struct mr_ctx *ctx, struct pair_lane *lane,
		     uint32_t n_entries, struct mr_reason *reterr_reason)
{
	lane->rx_bell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lane->tx_bell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->rx_bell.fd < 0 || lane->tx_bell.fd < 0)
		return mr_fail(reterr_reason, -EIO, "pair: no eventfd: %s",
			       mr_strerror(errno));
	return mr_ring_spsc_create(ctx, n_entries, &lane->ring, reterr_reason);
}

static int make_link(struct mr_port *base, const char *name,
		     const struct pair_options *o, struct pair_link **ret_link,
		     struct mr_reason *reterr_reason)
{
	struct pair_link **slot = (struct pair_link **)mr_ctx_driver_slot(
		base->ctx, &mr_driver_pair);
	struct pair_link *link = mr_alloc(base->ctx, 0, sizeof(*link));
	int err = 0;

	if (link == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a pair");
	snprintf(link->name, sizeof(link->name), "%s", name);
	link->region = base->region;
	link->n_queues = o->n_queues;
	link->n_ring_entries = o->n_ring_entries;
	link->has_sg = o->has_sg;
	link->lanes = mr_alloc(base->ctx, 0,
			       2 * o->n_queues * sizeof(link->lanes[0]));
	if (link->lanes == NULL)
		err = mr_fail(reterr_reason, -ENOMEM,
			      "no memory for the %u queues of a pair",
			      o->n_queues);
	for (uint32_t i = 0; link->lanes != NULL && i < 2 * o->n_queues; i++)
		link->lanes[i].rx_bell.fd = link->lanes[i].tx_bell.fd = -1;
	for (uint32_t i = 0; err == 0 && i < 2 * o->n_queues; i++)
		err = make_lane(base->ctx, &link->lanes[i], o->n_ring_entries,
				reterr_reason);
	if (err < 0) {
		destroy_link(base->ctx, link);
		return err;
	}
	link->next = *slot;
	*slot = link;
	*ret_link = link;
	return 0;
}

/*
 * A lane of ours whose previous owner closed during a burst of the other end
 * becomes empty when that burst ends: soon, unless its thread is not running.
 */
static int wait_for_orphans(struct pair_lane *lanes, uint32_t n,
			    struct mr_reason *reterr_reason)
{
	const struct timespec tick = { .tv_nsec = 100 * 1000 };

	for (uint32_t i = 0, n_ticks = 0; i < n; i++) {
		while (__atomic_load_n(&lanes[i].claim, __ATOMIC_ACQUIRE) &
		       PAIR_CLAIMED) {
			if (n_ticks++ == 10000)
				return mr_fail(
					reterr_reason, -EBUSY,
					"the other end has been in a burst for "
					"a second and holds frames of the "
					"previous port here");
			nanosleep(&tick, NULL);
		}
		__atomic_store_n(&lanes[i].claim, 0, __ATOMIC_RELEASE);
	}
	return 0;
}

static int join_link(struct pair_port *port, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	const char *name = mr_spec_device(spec);
	struct pair_link *link = find_link(port->base.ctx, name);
	struct pair_options o;
	int err = read_options(spec, link, &o, reterr_reason);

	if (err < 0)
		return err;
	if (link == NULL) {
		err = make_link(&port->base, name, &o, &link, reterr_reason);
		if (err < 0)
			return err;
	}
	if (link->is_open[0] && link->is_open[1])
		return mr_fail(reterr_reason, -EBUSY,
			       "pair:%s already has both ends", name);
	if (link->region != port->base.region)
		return mr_fail(reterr_reason, -EINVAL,
			       "pair:%s: the other end uses another region; "
			       "open both on pools of the same region",
			       name);
	port->end = link->is_open[0] ? 1 : 0;
	err = wait_for_orphans(&link->lanes[port->end * link->n_queues],
			       link->n_queues, reterr_reason);
	if (err == 0)
		port->link = link;
	return err;
}

static void make_queues(struct pair_port *port)
{
	struct mr_port *base = &port->base;
	const struct pair_link *link = port->link;
	const uint32_t n = link->n_queues;
	const uint32_t max_segs = link->has_sg ? MR_MAX_SEGS : 1;

	port->rxqs = (struct pair_rxq *)base->rxqs[0];
	port->txqs = (struct pair_txq *)base->txqs[0];
	for (uint32_t i = 0; i < n; i++) {
		struct pair_lane *to = &link->lanes[port->end * n + i];
		struct pair_lane *from = &link->lanes[!port->end * n + i];

		struct pair_rxq *rxq = &port->rxqs[i];
		struct pair_txq *txq = &port->txqs[i];

		rxq->base.queue.arm = mri_pair_rx_arm;
		rxq->base.queue.fd = from->rx_bell.fd;
		rxq->base.burst = mri_pair_rx_burst;
		rxq->base.n_min = max_segs;
		rxq->lane = from;
		txq->base.queue.arm = mri_pair_tx_arm;
		txq->base.queue.fd = to->tx_bell.fd;
		txq->base.burst = mri_pair_tx_burst;
		txq->lane = to;
		txq->region = base->region;
		txq->first_taken_frames = mr_counter_get(&to->n_taken_frames);
		txq->n_ring_entries = link->n_ring_entries;
		txq->max_segs = max_segs;
	}
	base->info->has_sg = link->has_sg;
	snprintf(base->info->mode, sizeof(base->info->mode), "memory");
}

static void leave_link(struct pair_port *port)
{
	struct mr_ctx *ctx = port->base.ctx;
	struct pair_link *link = port->link;

	if (link != NULL && !link->is_open[0] && !link->is_open[1])
		destroy_link(ctx, link);
}

int mri_pair_open(struct mr_port *base, const struct mr_spec *spec,
		  struct mr_reason *reterr_reason)
{
	struct pair_port *port = (struct pair_port *)base;
	int err = join_link(port, spec, reterr_reason);

	if (err < 0)
		return err;
	err = mr_port_make_queues(base, port->link->n_queues,
				  sizeof(port->rxqs[0]), sizeof(port->txqs[0]),
				  reterr_reason);
	if (err < 0) {
		leave_link(port);
		return err;
	}
	make_queues(port);
	__atomic_store_n(&port->link->is_open[port->end], 1, __ATOMIC_RELEASE);
	return 0;
}

static void pair_close(struct mr_port *base)
{
	struct pair_port *port = (struct pair_port *)base;
	struct pair_link *link = port->link;

	for (uint32_t i = 0; i < link->n_queues; i++) {
		struct pair_lane *lane = port->txqs[i].lane;
		const uint32_t claim = __atomic_fetch_or(
			&lane->claim, PAIR_ORPHANED, __ATOMIC_ACQ_REL);

		if (!(claim & PAIR_CLAIMED))
			drain_lane(lane, NULL, base->pool);
	}
	__atomic_store_n(&link->is_open[port->end], 0, __ATOMIC_RELEASE);
	leave_link(port);
}

/* Carrier: the other end is open. */
static int pair_link_state(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct pair_port *port = (const struct pair_port *)base;

	*ret_link = (struct mr_link){
		.is_up = __atomic_load_n(&port->link->is_open[!port->end],
					 __ATOMIC_ACQUIRE),
	};
	return 0;
}

static const char *const pair_keys[] = { "queues", "ring", "sg", NULL };

const struct mr_driver mr_driver_pair = {
	.name = "pair",
	.keys = pair_keys,
	.port_bytes = sizeof(struct pair_port),
	.need = pair_need,
	.open = mri_pair_open,
	.close = pair_close,
	.link = pair_link_state,
	.txq_stats = mri_pair_txq_stats,
	.hand_over = &mri_pair_hand_over,
};
