/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings between workers, and the place where fragments meet: each waits with
 * its datagram until the first fragment reveals the owner. A fragment always
 * costs one lookup and displaces at most one older datagram.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datagrams.h"
#include "hand_over.h"
#include "steer.h"
#include "support/capture.h"
#include "support/counter.h"
#include "support/text.h"

enum {
	MAX_DATAGRAMS = 256, /* known at a time; new ones displace the oldest */
	MAX_WAITING = 64,    /* frames before their first fragment; likewise */
	MAX_EXPIRED = 16,    /* datagrams per call; the rest follows */
	NO_OWNER = UINT32_MAX,
	NONE = UINT32_MAX,
};

struct waiting {
	uint32_t next;     /* in its queue, or NONE */
	uint32_t owner;    /* NO_OWNER: in the queue of its... */
	uint32_t datagram; /* ...datagram; else in the queue of ready ones */
	uint32_t n;        /* entries; 0: free */
	struct mr_frame frames[MR_MAX_SEGS];
};

struct queue {
	uint32_t first, last; /* of waiting; NONE: empty */
};

struct datagram {
	uint32_t owner; /* NO_OWNER: the first fragment has not come */
	struct queue waiting;
};

/* Frames for a ring, enqueued once per burst. */
struct stage {
	uint32_t n;
	struct mr_frame frames[MR_BURST_MAX];
};

struct nat_steer {
	_Alignas(64) struct nat_steer_stats stats;
	_Alignas(64) struct nat_steering *steering;
	struct nat_routes routes;
	struct mr_worker *worker;
	uint8_t *base;
	uint64_t keep_ns;
	struct stage *stages; /* n_workers * NAT_LANES */
	uint32_t next_ring;   /* to poll next, for fairness */
	/* Where fragments meet. */
	struct nat_datagrams index;
	struct datagram datagrams[MAX_DATAGRAMS]; /* by slot of index */
	struct waiting waiting[MAX_WAITING];      /* a ring */
	uint32_t next_waiting, n_waiting_pages;
	struct recorder *const *recorder; /* the worker's slot */
	struct queue ready;
};

struct nat_steering {
	struct mr_workers *workers;
	uint32_t n_workers, n_entries;
	struct mr_ring_spsc **rings; /* by sender, receiver and lane */
	struct nat_steer *steers;
};

static struct mr_ring_spsc *ring_of(const struct nat_steering *steering,
				    uint32_t from, uint32_t to,
				    enum nat_lane lane)
{
	return steering
		->rings[(from * steering->n_workers + to) * NAT_LANES + lane];
}

static int make_rings(struct nat_steering *s, struct mr_ctx *ctx,
		      struct mr_reason *ret_why)
{
	for (uint32_t i = 0; i < s->n_workers * s->n_workers * NAT_LANES; i++) {
		const uint32_t pair = i / NAT_LANES;
		int err = 0;

		if (pair / s->n_workers != pair % s->n_workers)
			err = mr_ring_spsc_create(ctx, s->n_entries,
						  &s->rings[i], ret_why);
		if (err < 0)
			return err;
	}
	return 0;
}

static void append_waiting(struct nat_steer *steer, struct queue *queue,
			   uint32_t at)
{
	steer->waiting[at].next = NONE;
	if (queue->first == NONE)
		queue->first = at;
	else
		steer->waiting[queue->last].next = at;
	queue->last = at;
}

static uint32_t take_waiting(struct nat_steer *steer, struct queue *queue)
{
	const uint32_t at = queue->first;

	if (at != NONE)
		queue->first = steer->waiting[at].next;
	return at;
}

static int make_meeting_place(struct nat_steer *steer)
{
	struct nat_random random;

	steer->ready.first = NONE;
	if (nat_random_init(&random, 0) < 0)
		return -EIO;
	return nat_datagrams_init(&steer->index, MAX_DATAGRAMS, &random);
}

static int make_steers(struct nat_steering *s)
{
	int err = 0;

	for (uint32_t w = 0; w < s->n_workers && err == 0; w++) {
		struct nat_steer *steer = &s->steers[w];
		struct mr_worker *worker = mr_workers_get(s->workers, w);

		steer->steering = s;
		steer->worker = worker;
		steer->recorder = &capture_none;
		steer->base = mr_region_base(
			mr_pool_region(mr_cache_pool(worker->cache)));
		steer->stages = calloc((size_t)s->n_workers * NAT_LANES,
				       sizeof(steer->stages[0]));
		err = steer->stages == NULL ? -ENOMEM :
					      make_meeting_place(steer);
	}
	return err;
}

int nat_steering_create(struct mr_ctx *ctx, struct mr_workers *workers,
			uint32_t n_workers, uint32_t n_entries,
			struct nat_steering **ret_steering,
			struct mr_reason *ret_why)
{
	struct nat_steering *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (s != NULL) {
		s->workers = workers;
		s->n_workers = n_workers;
		s->n_entries = n_entries;
		s->rings = calloc((size_t)n_workers * n_workers * NAT_LANES,
				  sizeof(s->rings[0]));
		s->steers = aligned_alloc(64, n_workers * sizeof(s->steers[0]));
		if (s->steers != NULL)
			memset(s->steers, 0, n_workers * sizeof(s->steers[0]));
	}
	fail_with(ret_why, 0,
		  "no memory or random numbers for rings between %u workers",
		  n_workers);
	if (s != NULL && s->rings != NULL && s->steers != NULL)
		err = make_rings(s, ctx, ret_why);
	if (err == 0)
		err = make_steers(s);
	if (err < 0) {
		nat_steering_destroy(s);
		return err;
	}
	*ret_steering = s;
	return 0;
}

void nat_steering_destroy(struct nat_steering *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0;
	     s->rings && i < s->n_workers * s->n_workers * NAT_LANES; i++)
		mr_ring_spsc_destroy(s->rings[i]);
	for (uint32_t w = 0; s->steers && w < s->n_workers; w++) {
		nat_datagrams_end(&s->steers[w].index);
		free(s->steers[w].stages);
	}
	free(s->steers);
	free(s->rings);
	free(s);
}

struct nat_steer *nat_steer_of(struct nat_steering *steering, uint32_t idx)
{
	return &steering->steers[idx];
}

void nat_steer_follow(struct nat_steer *steer, const struct nat_maps *maps,
		      const struct nat_config *config)
{
	steer->routes = (struct nat_routes){ maps, config->addrs,
					     steer->steering->n_workers };
	steer->keep_ns = config->timeouts.fragment_s * UINT64_C(1000000000);
}

void nat_steer_record(struct nat_steer *steer, struct recorder *const *recorder)
{
	steer->recorder = recorder;
}

const struct nat_steer_stats *nat_steer_stats(const struct nat_steer *steer)
{
	return &steer->stats;
}

/* Received and dropped at once, without reaching the path. */
static void drop_frames(struct nat_steer *steer, struct nat_stats *stats,
			enum nat_side from, enum nat_drop drop,
			const struct mr_frame *frames, uint32_t n)
{
	const uint32_t n_frames = mr_frame_n_frames(frames, n);

	capture_drop(steer->recorder, from, frames, n, nat_drop_names[drop]);
	counter_add(&stats->received[from], n_frames);
	counter_add(&stats->drops[drop], n_frames);
	mr_frame_free_bulk(steer->worker->cache, frames, n);
}

static enum nat_side side_of(enum nat_lane lane)
{
	return lane == NAT_LANE_INSIDE ? NAT_INSIDE : NAT_OUTSIDE;
}

static void put_into_ring(struct nat_steer *steer, struct nat_stats *stats,
			  uint32_t to, enum nat_lane lane)
{
	struct nat_steering *s = steer->steering;
	struct stage *stage = &steer->stages[to * NAT_LANES + lane];
	struct mr_ring_spsc *ring = ring_of(s, steer->worker->idx, to, lane);
	/* Room can only grow meanwhile: nobody else adds frames. */
	const uint32_t n_room = s->n_entries - mr_ring_spsc_count(ring);
	const uint32_t n_fit = stage->n <= n_room ?
				       stage->n :
				       mr_frame_n_whole(stage->frames, n_room);

	mr_ring_spsc_enqueue_burst(ring, stage->frames, n_fit);
	counter_add(&steer->stats.handed_off,
		    mr_frame_n_frames(stage->frames, n_fit));
	if (n_fit > 0)
		mr_worker_wake(mr_workers_get(s->workers, to));
	if (n_fit < stage->n)
		drop_frames(steer, stats, side_of(lane), NAT_DROP_HANDOFF_FULL,
			    stage->frames + n_fit, stage->n - n_fit);
	stage->n = 0;
}

static void flush_stages(struct nat_steer *steer, struct nat_stats *stats)
{
	for (uint32_t i = 0; i < steer->steering->n_workers * NAT_LANES; i++)
		if (steer->stages[i].n > 0)
			put_into_ring(steer, stats, i / NAT_LANES,
				      (enum nat_lane)(i % NAT_LANES));
}

static void hand_over(struct nat_steer *steer, struct nat_stats *stats,
		      uint32_t to, enum nat_lane lane,
		      const struct mr_frame *frames, uint32_t n)
{
	struct stage *stage = &steer->stages[to * NAT_LANES + lane];

	if (stage->n + n > MR_BURST_MAX)
		put_into_ring(steer, stats, to, lane);
	memcpy(stage->frames + stage->n, frames, n * sizeof(frames[0]));
	stage->n += n;
}

static struct nat_datagram_key key_of(const uint8_t *bytes, bool *ret_is_first)
{
	const uint8_t *ip = bytes + MR_ETH_BYTES;
	struct nat_datagram_key key = { .from = NAT_OUTSIDE };

	if (bytes[12] == 0x81 && bytes[13] == 0)
		ip += MR_VLAN_BYTES;
	memcpy(&key.src, ip + 12, 4);
	memcpy(&key.dst, ip + 16, 4);
	memcpy(&key.id, ip + 4, 2);
	key.proto = ip[9];
	*ret_is_first = (ip[6] & 0x1f) == 0 && ip[7] == 0;
	return key;
}

static void drop_waiting(struct nat_steer *steer, struct nat_stats *stats,
			 enum nat_drop drop, uint32_t at)
{
	struct waiting *w = &steer->waiting[at];

	if (w->n > 0)
		drop_frames(steer, stats, NAT_OUTSIDE, drop, w->frames, w->n);
	steer->n_waiting_pages -= w->n;
	w->n = 0;
}

/* Drop fragments that waited too long for the first one, or are displaced. */
static void forget_oldest(struct nat_steer *steer, struct nat_stats *stats)
{
	struct datagram *d =
		&steer->datagrams[nat_datagrams_forget(&steer->index)];
	uint32_t at;

	while ((at = take_waiting(steer, &d->waiting)) != NONE)
		drop_waiting(steer, stats, NAT_DROP_FRAGMENT_OLD, at);
}

static struct datagram *find_datagram(struct nat_steer *steer,
				      const struct nat_datagram_key *key,
				      uint64_t now_ns, struct nat_stats *stats)
{
	uint32_t at = nat_datagrams_find(&steer->index, key);

	if (at == NAT_DATAGRAM_NONE) {
		if (nat_datagrams_is_full(&steer->index) ||
		    nat_datagrams_is_due(&steer->index, now_ns))
			forget_oldest(steer, stats);
		at = nat_datagrams_add(&steer->index, key,
				       now_ns + steer->keep_ns);
		steer->datagrams[at] =
			(struct datagram){ .owner = NO_OWNER,
					   .waiting.first = NONE };
	}
	return &steer->datagrams[at];
}

/* Displace what has waited longest: the first frame of its datagram, and more
 * while all together have too many pages. */
static void wait_for_first(struct nat_steer *steer, struct datagram *d,
			   const struct mr_frame *frames, uint32_t n,
			   struct nat_stats *stats)
{
	struct waiting *w;
	uint32_t at;

	do {
		at = steer->next_waiting % MAX_WAITING;
		w = &steer->waiting[at];
		if (w->n > 0 && w->owner != NO_OWNER) { /* ready to leave */
			drop_frames(steer, stats, NAT_OUTSIDE,
				    NAT_DROP_FRAGMENT_FULL, frames, n);
			return;
		}
		if (w->n > 0)
			take_waiting(steer,
				     &steer->datagrams[w->datagram].waiting);
		drop_waiting(steer, stats, NAT_DROP_FRAGMENT_FULL, at);
		steer->next_waiting++;
	} while (n > NAT_STEER_PAGES - steer->n_waiting_pages);
	steer->n_waiting_pages += n;
	w->owner = NO_OWNER;
	w->datagram = (uint32_t)(d - steer->datagrams);
	w->n = n;
	memcpy(w->frames, frames, n * sizeof(frames[0]));
	append_waiting(steer, &d->waiting, at);
}

/* Its owner is known: waiting fragments can go there. */
static void make_ready(struct nat_steer *steer, struct datagram *d)
{
	uint32_t at;

	while ((at = take_waiting(steer, &d->waiting)) != NONE) {
		steer->waiting[at].owner = d->owner;
		append_waiting(steer, &steer->ready, at);
	}
}

/*
 * A fragment from outside has reached the worker where its datagram's fragments
 * meet. Returns its owner, or NO_OWNER: it was kept or dropped.
 */
static uint32_t meet_fragment(struct nat_steer *steer,
			      const struct mr_frame *frames, uint32_t n,
			      uint64_t now_ns, struct nat_stats *stats)
{
	const uint8_t *bytes = mr_frame_data(steer->base, frames);
	enum nat_lane lane = NAT_LANE_FRAGMENT;
	bool is_first;
	const struct nat_datagram_key key = key_of(bytes, &is_first);
	struct datagram *d = find_datagram(steer, &key, now_ns, stats);

	if (is_first) {
		const uint32_t owner = nat_routes_owner(
			&steer->routes, NAT_OUTSIDE, bytes, frames->len,
			steer->worker->idx, &lane);

		/* A second first fragment does not move the datagram. */
		if (d->owner != NO_OWNER && d->owner != owner) {
			drop_frames(steer, stats, NAT_OUTSIDE,
				    NAT_DROP_FRAGMENT_WRONG, frames, n);
			return NO_OWNER;
		}
		d->owner = owner;
		make_ready(steer, d);
	}
	if (d->owner == NO_OWNER)
		wait_for_first(steer, d, frames, n, stats);
	return d->owner;
}

/* A frame that belongs to this worker; others are handed over. */
static bool is_own(struct nat_steer *steer, struct nat_stats *stats,
		   uint32_t owner, enum nat_lane lane,
		   const struct mr_frame *frames, uint32_t n)
{
	if (owner == steer->worker->idx)
		return true;
	if (owner != NO_OWNER)
		hand_over(steer, stats, owner, lane, frames, n);
	return false;
}

/* Keep this worker's frames, at the front, and hand over the others. meets:
 * they are fragments that others sent here to meet. */
static uint32_t keep_own(struct nat_steer *steer, enum nat_side from,
			 bool meets, struct mr_frame *frames, uint32_t n,
			 uint64_t now_ns, struct nat_stats *stats)
{
	uint32_t n_own = 0, n_entries;

	for (uint32_t i = 0; i < n; i += n_entries) {
		enum nat_lane lane =
			meets ? NAT_LANE_FRAGMENT : (enum nat_lane)from;
		uint32_t owner = steer->worker->idx;

		n_entries = mr_frame_n_entries(&frames[i]);
		if (!meets)
			owner = nat_routes_owner(
				&steer->routes, from,
				mr_frame_data(steer->base, &frames[i]),
				frames[i].len, steer->worker->idx, &lane);
		if (lane == NAT_LANE_FRAGMENT && owner == steer->worker->idx) {
			lane = NAT_LANE_OUTSIDE;
			owner = meet_fragment(steer, &frames[i], n_entries,
					      now_ns, stats);
		}
		if (!is_own(steer, stats, owner, lane, &frames[i], n_entries))
			continue;
		memmove(&frames[n_own], &frames[i],
			n_entries * sizeof(frames[0]));
		n_own += n_entries;
	}
	flush_stages(steer, stats);
	return n_own;
}

uint32_t nat_steer_split(struct nat_steer *steer, enum nat_side from,
			 struct mr_frame *frames, uint32_t n, uint64_t now_ns,
			 struct nat_stats *stats)
{
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(mr_frame_data(steer->base, &frames[i]));
	return keep_own(steer, from, false, frames, n, now_ns, stats);
}

/* Waiting frames whose owner is now known. */
static uint32_t release_ready(struct nat_steer *steer, struct mr_frame *frames,
			      uint32_t n, struct nat_stats *stats)
{
	uint32_t n_own = 0, at;

	while ((at = steer->ready.first) != NONE &&
	       n_own + steer->waiting[at].n <= n) {
		struct waiting *w = &steer->waiting[at];

		take_waiting(steer, &steer->ready);
		if (is_own(steer, stats, w->owner, NAT_LANE_OUTSIDE, w->frames,
			   w->n)) {
			memcpy(frames + n_own, w->frames,
			       w->n * sizeof(frames[0]));
			n_own += w->n;
		}
		steer->n_waiting_pages -= w->n;
		w->n = 0;
	}
	flush_stages(steer, stats);
	return n_own;
}

static void expire_datagrams(struct nat_steer *steer, uint64_t now_ns,
			     struct nat_stats *stats)
{
	for (uint32_t i = 0; i < MAX_EXPIRED; i++) {
		if (!nat_datagrams_is_due(&steer->index, now_ns))
			return;
		forget_oldest(steer, stats);
	}
}

uint32_t nat_steer_receive(struct nat_steer *steer, enum nat_side *ret_from,
			   struct mr_frame *frames, uint32_t n, uint64_t now_ns,
			   struct nat_stats *stats)
{
	const struct nat_steering *s = steer->steering;
	const uint32_t n_rings = s->n_workers * NAT_LANES;

	expire_datagrams(steer, now_ns, stats);
	if (steer->ready.first != NONE) {
		const uint32_t n_own = release_ready(steer, frames, n, stats);

		*ret_from = NAT_OUTSIDE;
		if (n_own > 0)
			return n_own;
	}
	for (uint32_t i = 0; i < n_rings; i++) {
		const uint32_t r = steer->next_ring++ % n_rings;
		const enum nat_lane lane = (enum nat_lane)(r % NAT_LANES);
		struct mr_ring_spsc *ring =
			ring_of(s, r / NAT_LANES, steer->worker->idx, lane);
		uint32_t n_got;

		if (ring == NULL)
			continue; /* from itself */
		n_got = mr_frame_n_whole(
			frames, mr_ring_spsc_peek_burst(ring, frames, n));
		mr_ring_spsc_release(ring, n_got);
		if (lane == NAT_LANE_FRAGMENT)
			n_got = keep_own(steer, NAT_OUTSIDE, true, frames,
					 n_got, now_ns, stats);
		*ret_from = side_of(lane);
		if (n_got > 0)
			return n_got;
	}
	return 0;
}

void nat_steer_give_up(struct nat_steer *steer, struct nat_stats *stats)
{
	const struct nat_steering *s = steer->steering;
	struct mr_frame frames[MR_BURST_MAX];

	for (uint32_t i = 0; i < MAX_WAITING; i++)
		drop_waiting(steer, stats, NAT_DROP_SHUTDOWN, i);
	for (uint32_t r = 0; r < s->n_workers * NAT_LANES; r++) {
		const enum nat_lane lane = (enum nat_lane)(r % NAT_LANES);
		struct mr_ring_spsc *ring =
			ring_of(s, r / NAT_LANES, steer->worker->idx, lane);
		uint32_t n;

		while (ring != NULL &&
		       (n = mr_ring_spsc_dequeue_burst(ring, frames,
						       MR_BURST_MAX)) > 0)
			drop_frames(steer, stats, side_of(lane),
				    NAT_DROP_SHUTDOWN, frames, n);
	}
}

/* ---- for another process: hand_over.h ---- */

/* Of frames that no path has counted. */
static void copy_frames(struct nat_path_parts *parts, enum nat_side from,
			const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mr_frame *frame = nat_records_add(&parts->frames[from]);

		if (frame != NULL)
			*frame = frames[i];
	}
}

static void copy_queue(const struct nat_steer *steer,
		       const struct queue *queue, struct nat_path_parts *parts)
{
	for (uint32_t at = queue->first; at != NONE;
	     at = steer->waiting[at].next)
		copy_frames(parts, NAT_OUTSIDE, steer->waiting[at].frames,
			    steer->waiting[at].n);
}

static void copy_rings(const struct nat_steer *steer,
		       struct nat_path_parts *parts)
{
	const struct nat_steering *s = steer->steering;
	struct mr_frame *frames = calloc(s->n_entries, sizeof(frames[0]));

	parts->frames[NAT_OUTSIDE].is_broken |= frames == NULL;
	for (uint32_t r = 0; r < s->n_workers * NAT_LANES && frames != NULL;
	     r++) {
		const enum nat_lane lane = (enum nat_lane)(r % NAT_LANES);
		struct mr_ring_spsc *ring =
			ring_of(s, r / NAT_LANES, steer->worker->idx, lane);

		if (ring != NULL)
			copy_frames(parts, side_of(lane), frames,
				    mr_ring_spsc_peek_burst(ring, frames,
							    s->n_entries));
	}
	free(frames);
}

void nat_steer_copy(const struct nat_steer *steer, struct nat_path_parts *parts)
{
	copy_queue(steer, &steer->ready, parts);
	for (uint32_t i = steer->index.tail; i != steer->index.head; i++) {
		const uint32_t at = i & (steer->index.n - 1);
		const struct nat_datagram_slot *slot = &steer->index.slots[at];
		struct nat_meeting_image *image;

		copy_queue(steer, &steer->datagrams[at].waiting, parts);
		if (steer->datagrams[at].owner == NO_OWNER)
			continue; /* these frames make it again */
		image = nat_records_add(&parts->meetings);
		if (image == NULL)
			return;
		image->key = slot->key;
		image->owner = steer->datagrams[at].owner;
		image->end_ns = slot->end_ns;
	}
	copy_rings(steer, parts);
}

void nat_steer_paste(struct nat_steer *steer,
		     const struct nat_meeting_image *images, uint32_t n,
		     uint64_t handed_off)
{
	counter_add(&steer->stats.handed_off, handed_off);
	for (uint32_t i = 0; i < n; i++) {
		if (images[i].owner >= steer->steering->n_workers ||
		    nat_datagrams_is_full(&steer->index) ||
		    nat_datagrams_find(&steer->index, &images[i].key) !=
			    NAT_DATAGRAM_NONE)
			continue;
		steer->datagrams[nat_datagrams_add(&steer->index,
						   &images[i].key,
						   images[i].end_ns)] =
			(struct datagram){ .owner = images[i].owner,
					   .waiting.first = NONE };
	}
}
