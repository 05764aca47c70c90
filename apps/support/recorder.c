/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's recorder.
 *
 * is_busy and wanted are sequentially consistent: either the worker sees that
 * nothing is wanted any more, or the main thread sees that the worker is busy
 * and does not touch what it uses. The same holds for published and is_told, so
 * that no record has to wait for the next one.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "counter.h"
#include "recorder.h"

enum { ALIGN = 8 };

_Static_assert(sizeof(struct entry) % ALIGN == 0, "entries follow each other");

static struct wanted *begin_record(struct recorder *r)
{
	__atomic_store_n(&r->is_busy, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->wanted, __ATOMIC_SEQ_CST);
}

/* Publish what was written. If nothing was wanted, the ring is not ours. */
static void end_record(struct recorder *r, const struct wanted *wanted)
{
	const bool has_news = wanted != NULL && r->head != r->published;
	const uint64_t one = 1;

	if (has_news)
		__atomic_store_n(&r->published, r->head, __ATOMIC_SEQ_CST);
	__atomic_store_n(&r->is_busy, 0, __ATOMIC_RELEASE);
	/* write() fails only if it is readable already, which is enough. */
	if (has_news &&
	    __atomic_exchange_n(r->is_told, 1, __ATOMIC_SEQ_CST) == 0 &&
	    write(r->fd, &one, sizeof(one)) < 0)
		return;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The first bytes of a frame, in one piece. */
static const uint8_t *bytes_of(struct recorder *r,
			       const struct mr_frame *frames, uint32_t n,
			       uint32_t *ret_n_bytes)
{
	uint32_t n_bytes = 0;

	if (n == 1) {
		*ret_n_bytes = frames->len < CAPTURE_MAX_BYTES ?
				       frames->len :
				       CAPTURE_MAX_BYTES;
		return mr_frame_data(r->base, frames);
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t room = CAPTURE_MAX_BYTES - n_bytes;
		const uint32_t n_now =
			frames[i].len < room ? frames[i].len : room;

		memcpy(r->linear + n_bytes, mr_frame_data(r->base, &frames[i]),
		       n_now);
		n_bytes += n_now;
	}
	*ret_n_bytes = n_bytes;
	return r->linear;
}

/* Bytes of an entry that n_after bytes follow. */
static uint32_t n_bytes_of(uint32_t n_after)
{
	return (uint32_t)(sizeof(struct entry) + n_after + (ALIGN - 1)) &
	       ~(uint32_t)(ALIGN - 1);
}

/* Bytes left until the end of the ring. */
static uint32_t n_to_end(const struct recorder *r)
{
	return RECORDER_RING_BYTES - (r->head & (RECORDER_RING_BYTES - 1));
}

/* Whether there is contiguous room for an entry of n bytes. */
static bool has_room(const struct recorder *r, uint32_t n)
{
	const uint32_t n_hole = n_to_end(r) < n ? n_to_end(r) : 0;

	return r->head + n_hole + n -
		       __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) <=
	       RECORDER_RING_BYTES;
}

/* An entry of n bytes, for which there is room. */
static struct entry *take_room(struct recorder *r, uint32_t n)
{
	const uint32_t n_left = n_to_end(r);
	struct entry *entry =
		(void *)(r->ring + (RECORDER_RING_BYTES - n_left));

	if (n_left < n) {
		/* Its first members fit: all lengths are multiples. */
		entry->n_bytes = n_left;
		entry->is_hole = 1;
		r->head += n_left;
		entry = (void *)r->ring;
	}
	*entry = (struct entry){ .n_bytes = n };
	r->head += n;
	return entry;
}

struct recorder *const capture_none = NULL;

/* Of a burst, or a part of it. */
struct place {
	enum capture_event event;
	uint32_t port_idx, queue_idx;
	uint64_t ns;
	const char *why, *text;
};

/* Of a tag that is not among the frame's bytes. */
static void say_tag(const struct mr_meta *meta, char text[CAPTURE_MAX_TEXT])
{
	const size_t n = strlen(text);

	snprintf(text + n, CAPTURE_MAX_TEXT - n, "%sVLAN %u, in metadata",
		 n > 0 ? "; " : "", meta->vlan_tci & 0xfffu);
}

/* False: there is no room. */
static bool put_entry(struct recorder *r, const struct wanted *wanted,
		      const struct place *place, const struct mr_frame *frames,
		      uint32_t n, const struct mr_meta *meta)
{
	char text[CAPTURE_MAX_TEXT] = "";
	const char *say = place->text != NULL ? place->text : text;
	uint32_t n_bytes, n_data;
	const uint8_t *bytes = bytes_of(r, frames, n, &n_bytes);
	struct entry *entry;
	size_t n_text;

	if (place->event == CAPTURE_NOTE)
		n_bytes = 0;
	n_data = n_bytes < wanted->request.n_bytes ? n_bytes :
						     wanted->request.n_bytes;
	/* Before the text: whether it is missed must not depend on it. */
	if (!has_room(r, n_bytes_of(CAPTURE_MAX_TEXT + n_data))) {
		counter_add(&r->missed, 1);
		return false;
	}
	if (place->text == NULL && r->explain != NULL)
		r->explain(r->worker, place->port_idx,
			   place->event == CAPTURE_TX, bytes, n_bytes, text);
	if (meta != NULL && meta->valid & MR_META_VLAN)
		say_tag(meta, text);
	n_text = strlen(say) + 1;
	entry = take_room(r, n_bytes_of((uint32_t)n_text + n_data));
	entry->event = (uint8_t)place->event;
	entry->port_idx = (uint16_t)place->port_idx;
	entry->queue_idx = (uint16_t)place->queue_idx;
	entry->n_text = (uint16_t)n_text;
	entry->n_frame = (uint32_t)mr_frame_n_bytes(frames, n);
	entry->n_data = n_data;
	entry->ns = place->ns;
	entry->id = frames->addr / r->page_bytes;
	entry->burst = r->n_bursts;
	entry->why = place->why;
	memcpy(entry + 1, say, n_text);
	memcpy((uint8_t *)(entry + 1) + n_text, bytes, n_data);
	return true;
}

static bool matches_filter(struct recorder *r, const struct wanted *wanted,
			   const struct mr_frame *frames, uint32_t n)
{
	uint32_t n_bytes;
	const uint8_t *bytes;

	if (wanted->filter.program == NULL)
		return true;
	bytes = bytes_of(r, frames, n, &n_bytes);
	return capture_filter_matches(&wanted->filter, bytes, n_bytes,
				      (uint32_t)mr_frame_n_bytes(frames, n));
}

/* Whether another frame may be traced. */
static bool take_one(struct wanted *wanted)
{
	int64_t n = __atomic_load_n(&wanted->n_left, __ATOMIC_RELAXED);

	if (wanted->request.n_frames == 0)
		return true;
	/* Not below 0, because another worker may still undo its decrement. */
	while (n > 0)
		if (__atomic_compare_exchange_n(&wanted->n_left, &n, n - 1,
						true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

void recorder_rx(struct recorder *r, uint32_t port_idx, uint32_t queue_idx,
		 struct mr_frame *frames, const struct mr_meta *metas,
		 uint32_t n)
{
	struct wanted *wanted = begin_record(r);
	const struct place place = { .event = CAPTURE_RX,
				     .port_idx = port_idx,
				     .queue_idx = queue_idx,
				     .ns = now_ns() };
	const bool is_here = wanted != NULL &&
			     wanted->request.what != CAPTURE_DROPS &&
			     (wanted->port_idx == UINT32_MAX ||
			      wanted->port_idx == port_idx);

	r->n_bursts++;
	r->last_port_idx = port_idx;
	r->last_queue_idx = queue_idx;
	for (uint32_t i = 0, n_now; is_here && i < n; i += n_now) {
		n_now = mr_frame_n_entries(frames + i);
		/* Of an earlier trace, if the other end was ours, too. */
		frames[i].flags &= ~(uint32_t)CAPTURE_TRACED;
		if (!matches_filter(r, wanted, frames + i, n_now))
			continue;
		if (wanted->request.what == CAPTURE_TRACE && !take_one(wanted))
			continue;
		if (!put_entry(r, wanted, &place, frames + i, n_now,
			       metas != NULL ? metas + i : NULL))
			__atomic_fetch_add(&wanted->n_left, 1,
					   __ATOMIC_RELAXED);
		else if (wanted->request.what == CAPTURE_TRACE)
			frames[i].flags |= CAPTURE_TRACED;
	}
	end_record(r, wanted);
}

static bool is_wanted(struct recorder *r, const struct wanted *wanted,
		      const struct mr_frame *frames, uint32_t n)
{
	return wanted->request.what == CAPTURE_TRACE ?
		       frames->flags & CAPTURE_TRACED :
		       matches_filter(r, wanted, frames, n);
}

uint32_t recorder_send(struct recorder *r, struct mr_worker *worker,
		       uint32_t port_idx, const struct mr_frame *frames,
		       const struct mr_meta *metas, uint32_t n)
{
	const struct mr_worker_route *route = &worker->routes[port_idx];
	const struct wanted *wanted = begin_record(r);
	const struct place place = { .event = CAPTURE_TX,
				     .port_idx = port_idx,
				     .queue_idx = route->queue_idx,
				     .ns = now_ns() };
	const bool is_here =
		wanted != NULL && (wanted->request.what == CAPTURE_TRACE ||
				   wanted->port_idx == port_idx);
	uint64_t heads[MR_BURST_MAX]; /* before each frame */
	uint32_t n_sent;

	/* Before the queue gets them; after that, they are not ours. */
	for (uint32_t i = 0, n_now; is_here && i < n; i += n_now) {
		n_now = mr_frame_n_entries(frames + i);
		heads[i] = r->head;
		if (is_wanted(r, wanted, frames + i, n_now))
			put_entry(r, wanted, &place, frames + i, n_now,
				  metas != NULL ? metas + i : NULL);
	}
	n_sent = mr_worker_send_meta(worker, port_idx, frames, metas, n);
	if (is_here && n_sent < n)
		r->head = heads[n_sent];
	end_record(r, wanted);
	return n_sent;
}

void recorder_drop(struct recorder *r, uint32_t port_idx,
		   const struct mr_frame *frames, uint32_t n, const char *why)
{
	const bool is_last =
		port_idx == CAPTURE_LAST_PORT || port_idx == r->last_port_idx;
	const struct wanted *wanted = begin_record(r);
	const struct place place = {
		.event = CAPTURE_DROP,
		.port_idx = is_last ? r->last_port_idx : port_idx,
		.queue_idx = is_last ? r->last_queue_idx : 0,
		.ns = now_ns(),
		.why = why
	};
	const bool is_here =
		wanted != NULL && wanted->request.what != CAPTURE_PORT;

	for (uint32_t i = 0, n_now; is_here && i < n; i += n_now) {
		n_now = mr_frame_n_entries(frames + i);
		if (is_wanted(r, wanted, frames + i, n_now))
			put_entry(r, wanted, &place, frames + i, n_now, NULL);
	}
	end_record(r, wanted);
}

void recorder_note(struct recorder *r, const struct mr_frame *frame,
		   const char *text)
{
	const struct wanted *wanted = begin_record(r);
	const struct place place = { .event = CAPTURE_NOTE,
				     .port_idx = r->last_port_idx,
				     .queue_idx = r->last_queue_idx,
				     .ns = now_ns(),
				     .text = text };

	if (wanted != NULL && wanted->request.what == CAPTURE_TRACE &&
	    frame->flags & CAPTURE_TRACED)
		put_entry(r, wanted, &place, frame, 1, NULL);
	end_record(r, wanted);
}
