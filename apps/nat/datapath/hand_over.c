/* SPDX-License-Identifier: BSD-3-Clause */
/* Put a worker's path into a parcel, and take it out: hand_over.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/experimental/posted.h>

#include "hand_over.h"
#include "ports/entry.h"
#include "support/counter.h"

enum { LAYOUT = 1 };

_Static_assert(sizeof(struct nat_datagram_image) == 1072 &&
		       sizeof(struct nat_meeting_image) == 24 &&
		       sizeof(struct nat_neighbour_image) == 24 &&
		       sizeof(struct mr_frame) == 16,
	       "another layout needs another number");

static const char *const frame_names[NAT_SIDES] = { "inside", "outside" };
static const char *const page_names[NAT_SIDES] = { "inside-pages",
						   "outside-pages" };

/* Without memory, the other process misses the entry, and refuses. */
static void put_records(struct mr_parcel *parcel, uint32_t worker_idx,
			const char *what, struct nat_records *records)
{
	if (!records->is_broken)
		mr_parcel_put(parcel, nat_entry_name(worker_idx, what).text,
			      LAYOUT, records->records,
			      records->n * records->record_bytes);
}

/* The references that they hold; put after the frames, which it changes. */
static void put_pages(const struct nat_path *path, struct mr_parcel *parcel,
		      uint32_t worker_idx, const char *what,
		      struct nat_records *frames)
{
	uint64_t *addrs = frames->records;

	for (uint32_t i = 0; i < frames->n; i++) {
		struct mr_frame frame;

		memcpy(&frame, (struct mr_frame *)frames->records + i,
		       sizeof(frame));
		addrs[i] = frame.addr;
	}
	if (!frames->is_broken)
		mr_pool_put_posted(mr_cache_pool(path->cache), parcel,
				   nat_entry_name(worker_idx, what).text, addrs,
				   frames->n);
}

/* At rest it still holds: received + made = sent + held + drops. */
static void put_image(const struct nat_path *path,
		      const struct nat_steer *steer,
		      const struct nat_path_parts *parts,
		      struct mr_parcel *parcel, uint32_t worker_idx)
{
	struct nat_path_image image = { .stats = path->stats,
					.next_id = path->next_id,
					.id_step = path->id_step };

	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		image.stats.received[s] -= parts->n_received[s];
		image.stats.held -= parts->n_received[s];
	}
	image.stats.held -= parts->n_dropped;
	image.stats.drops[NAT_DROP_UNSOLICITED_SYN] += parts->n_dropped;
	if (steer != NULL)
		image.handed_off = nat_steer_stats(steer)->handed_off;
	mr_parcel_put(parcel, nat_entry_name(worker_idx, "path").text, LAYOUT,
		      &image, sizeof(image));
}

void nat_path_put(const struct nat_path *path, const struct nat_steer *steer,
		  struct mr_parcel *parcel, uint32_t worker_idx)
{
	struct nat_path_parts parts = {
		.frames = { { .record_bytes = sizeof(struct mr_frame) },
			    { .record_bytes = sizeof(struct mr_frame) } },
		.datagrams.record_bytes = sizeof(struct nat_datagram_image),
		.meetings.record_bytes = sizeof(struct nat_meeting_image),
	};

	nat_fragments_copy(path, &parts);
	nat_resolver_copy(path, &parts);
	nat_syns_copy(path, &parts);
	if (steer != NULL)
		nat_steer_copy(steer, &parts);
	put_image(path, steer, &parts, parcel, worker_idx);
	put_records(parcel, worker_idx, "datagrams", &parts.datagrams);
	put_records(parcel, worker_idx, "meetings", &parts.meetings);
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		put_records(parcel, worker_idx, frame_names[s],
			    &parts.frames[s]);
		put_pages(path, parcel, worker_idx, page_names[s],
			  &parts.frames[s]);
		free(parts.frames[s].records);
	}
	free(parts.datagrams.records);
	free(parts.meetings.records);
}

/* ---- in the next process ---- */

static int find_frames(const struct mr_parcel *parcel, uint32_t worker_idx,
		       uint32_t side, struct nat_path_state *ret,
		       struct mr_reason *ret_why)
{
	const struct mr_frame *frames = NULL;
	uint32_t n = 0;
	int err = nat_entry_find(parcel, worker_idx, frame_names[side], LAYOUT,
				 sizeof(frames[0]), (const void **)&frames, &n,
				 ret_why);

	if (err == 0 && mr_frame_n_whole(frames, n) != n)
		err = nat_entry_is_damaged(worker_idx, frame_names[side], n - 1,
					   ret_why);
	ret->frames[side] = frames;
	ret->n_frames[side] = n;
	return err;
}

int nat_path_find(const struct mr_parcel *parcel, uint32_t worker_idx,
		  struct nat_path_state *ret, struct mr_reason *ret_why)
{
	uint32_t n_paths = 0;
	int err = nat_entry_find(parcel, worker_idx, "path", LAYOUT,
				 sizeof(*ret->path), (const void **)&ret->path,
				 &n_paths, ret_why);

	if (err == 0 && n_paths != 1)
		err = nat_entry_is_damaged(worker_idx, "path", n_paths,
					   ret_why);
	if (err == 0)
		err = nat_entry_find(parcel, worker_idx, "datagrams", LAYOUT,
				     sizeof(*ret->datagrams),
				     (const void **)&ret->datagrams,
				     &ret->n_datagrams, ret_why);
	if (err == 0)
		err = nat_entry_find(parcel, worker_idx, "meetings", LAYOUT,
				     sizeof(*ret->meetings),
				     (const void **)&ret->meetings,
				     &ret->n_meetings, ret_why);
	for (uint32_t i = 0; i < ret->n_datagrams && err == 0; i++)
		if (!nat_datagram_is_sound(&ret->datagrams[i]))
			err = nat_entry_is_damaged(worker_idx, "datagrams", i,
						   ret_why);
	for (uint32_t s = 0; s < NAT_SIDES && err == 0; s++)
		err = find_frames(parcel, worker_idx, s, ret, ret_why);
	return err;
}

int nat_path_claim(const struct nat_path *path, const struct mr_parcel *parcel,
		   uint32_t worker_idx, struct mr_reason *ret_why)
{
	int err = 0;

	for (uint32_t s = 0; s < NAT_SIDES && err == 0; s++)
		err = mr_pool_claim_posted(
			mr_cache_pool(path->cache), parcel,
			nat_entry_name(worker_idx, page_names[s]).text, NULL, 0,
			ret_why);
	return err;
}

void nat_path_take(struct nat_path *path, struct nat_steer *steer,
		   const struct nat_path_state *state, bool is_same)
{
	const uint64_t *from = (const uint64_t *)&state->path->stats;
	uint64_t *to = (uint64_t *)&path->stats;

	for (uint32_t i = 0; i < sizeof(path->stats) / sizeof(*to); i++)
		counter_add(&to[i], from[i]);
	if (is_same && state->path->id_step == path->id_step)
		path->next_id = (uint16_t)state->path->next_id;
	if (is_same)
		nat_fragments_paste(path, state->datagrams, state->n_datagrams);
	if (steer != NULL)
		nat_steer_paste(steer, state->meetings,
				is_same ? state->n_meetings : 0,
				state->path->handed_off);
}
