/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's packet path for the process that takes its place: counters,
 * datagrams whose first fragment was seen, and the frames that wait, which go
 * through the new path as if they had just been received.
 */
#ifndef NAT_DATAPATH_HAND_OVER_H
#define NAT_DATAPATH_HAND_OVER_H

#include <millrace/experimental/parcel.h>

#include "datagrams.h"
#include "steer.h"
#include "state.h"

/* Entry "0/path": of worker 0. */
struct nat_path_image {
	struct nat_stats stats; /* without the frames that wait */
	uint64_t handed_off;
	uint32_t next_id, id_step;
};

/* "0/datagrams". */
struct nat_datagram_image {
	struct nat_datagram_key key;
	uint8_t state, drop; /* of fragment.c */
	uint8_t reserved[2];
	struct nat_verdict verdict;
	uint64_t end_ns;
	uint64_t seen[128];
};

/* "0/meetings": datagrams whose owner is known. */
struct nat_meeting_image {
	struct nat_datagram_key key;
	uint32_t owner;
	uint64_t end_ns;
};

/* "neighbours": a slot that was ever used; and "neighbour-seed", which says
 * where addresses may be. */
struct nat_neighbour_image {
	uint64_t key, mac;
	uint32_t slot, confirmed_s;
};

struct nat_neighbour_images {
	const struct nat_neighbour_image *list;
	uint32_t n;
	uint64_t seed;
};

/* "0/inside", "0/outside": struct mr_frame that came from there; and
 * "0/inside-pages", "0/outside-pages": the references that they hold. */

/* Copies of records; grows. */
struct nat_records {
	void *records;
	size_t record_bytes;
	uint32_t n, n_max;
	bool is_broken; /* no memory */
};

/* Of a worker, on the way. */
struct nat_path_parts {
	struct nat_records frames[NAT_SIDES];
	struct nat_records datagrams, meetings;
	uint32_t n_received[NAT_SIDES]; /* frames among these that
					 * stats.received has counted */
	uint32_t n_dropped; /* frames that wait to be dropped: answered SYNs */
};

/* parts.c: a new record, zeroed; NULL: no memory. */
void *nat_records_add(struct nat_records *records);
/* The frames in a queue; datagrams will not have seen them. */
void nat_fifo_copy(const struct nat_hold *hold, const struct nat_fifo *fifo,
		   struct nat_path_parts *parts);
void nat_packet_copy(const struct nat_packet *packet,
		     struct nat_path_parts *parts);

/* What each part has; nothing changes. Fragments come first. */
void nat_fragments_copy(const struct nat_path *path,
			struct nat_path_parts *parts);
void nat_resolver_copy(const struct nat_path *path,
		       struct nat_path_parts *parts);
void nat_syns_copy(const struct nat_path *path, struct nat_path_parts *parts);
void nat_steer_copy(const struct nat_steer *steer,
		    struct nat_path_parts *parts);
void nat_fragments_paste(struct nat_path *path,
			 const struct nat_datagram_image *images, uint32_t n);
bool nat_datagram_is_sound(const struct nat_datagram_image *image);
void nat_steer_paste(struct nat_steer *steer,
		     const struct nat_meeting_image *images, uint32_t n,
		     uint64_t handed_off);

/* steer: NULL if there is only one worker. */
void nat_path_put(const struct nat_path *path, const struct nat_steer *steer,
		  struct mr_parcel *parcel, uint32_t worker_idx);
void nat_neighbours_put(const struct nat_neighbours *neighbours,
			struct mr_parcel *parcel);

/* Frames of the old process that the new worker has yet to handle. */
struct nat_backlog {
	struct mr_frame *frames[NAT_SIDES];
	uint32_t n[NAT_SIDES]; /* entries */
};

/* A worker's entries, found and checked. */
struct nat_path_state {
	const struct nat_path_image *path;
	const struct nat_datagram_image *datagrams;
	const struct nat_meeting_image *meetings;
	const struct mr_frame *frames[NAT_SIDES];
	uint32_t n_frames[NAT_SIDES]; /* entries */
	uint32_t n_datagrams, n_meetings;
};

/* 0, -ENOENT, or -EPROTO: an entry is damaged; with a reason. */
int nat_path_find(const struct mr_parcel *parcel, uint32_t worker_idx,
		  struct nat_path_state *ret_state, struct mr_reason *ret_why);
int nat_neighbours_find_images(const struct mr_parcel *parcel,
			       struct nat_neighbour_images *ret_images,
			       struct mr_reason *ret_why);

/* The path's worker owns the frames from now on. 0, or -EPROTO. */
int nat_path_claim(const struct nat_path *path, const struct mr_parcel *parcel,
		   uint32_t worker_idx, struct mr_reason *ret_why);
/* Enter what was found, except the frames. is_same: of the same worker, of as
 * many; otherwise only its counters. */
void nat_path_take(struct nat_path *path, struct nat_steer *steer,
		   const struct nat_path_state *state, bool is_same);
/* In the same slots: rules name their next hops by these. Static neighbours are
 * those of config. */
void nat_neighbours_take(struct nat_neighbours *neighbours,
			 const struct nat_neighbour_images *images,
			 const struct nat_config *config, uint32_t now_s);

#endif
