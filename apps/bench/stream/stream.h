/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is sent: streams, as parsed by the front end, and the frames made from
 * them.
 *
 *     JSON --streams_make()--> streams --builder_open()--> a sender's builder
 *
 * A stream is a template, sizes, and fields that vary. A builder's frames
 * depend on nothing but their number, so frames can be taken back, and the same
 * seed makes the same frames. Lengths are without FCS. The grammar:
 * docs/streams.md.
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <millrace/millrace.h>

#include "stream/stamp.h"

enum { STREAMS_MAX = 1024 };

/* A compiled set (compiled.h); immutable, shared by threads. */
struct streams;

struct stream_defaults {
	uint8_t src_mac[6], dst_mac[6];
	/* Of streams without a size; 0: 60, or what their headers need. */
	uint32_t frame_bytes;
	bool is_stamped;    /* room at the end is the stamp's */
	bool has_unstamped; /* the command has an option for frames without */
	uint32_t magic;     /* of this run */
	uint16_t run;       /* for another program to receive; see stamp.h */
};

/*
 * Compile an array of streams, as in mr-bench-engine.schema.json; NULL or an
 * empty one is one stream, UDP from 198.18.0.1 port 1024 to 198.19.0.1 port 9.
 * Returns 0, -EINVAL (the reason says what is wrong, and the remedy), -ENOENT
 * (no such capture), -EIO, -ENOTSUP (built without libpcap) or -ENOMEM.
 */
int streams_make(const json_t *of, const struct stream_defaults *defaults,
		 struct streams **ret, struct mr_reason *why);
void streams_free(struct streams *streams); /* NULL is allowed */

/*
 * The share of one sender of n_senders, for one thread. The values of the field
 * with most of them, or the frames of a capture, are dealt out, so that the
 * flows do not depend on the number of senders; if there are fewer values than
 * senders, some share them. streams must outlive it. Returns 0 or -ENOMEM.
 */
struct builder;
int builder_open(const struct streams *streams, uint32_t sender,
		 uint32_t n_senders, uint64_t seed, struct builder **ret,
		 struct mr_reason *why);
void builder_free(struct builder *builder); /* NULL is allowed */

/*
 * Build n frames: frames[i].addr is a buffer with room for max_bytes of the
 * streams, all of which are written; len and flags are set. due_ns (NULL: 0) is
 * stamped: when the frame is due, not when it leaves, so that latencies include
 * delays of the sender (coordinated omission).
 */
void builder_fill(struct builder *builder, void *base, struct mr_frame *frames,
		  const uint64_t *due_ns, uint32_t n);

/* The newest n frames were not sent: the next builder_fill() makes them again,
 * so that no sequence number is missing. */
void builder_take_back(struct builder *builder, uint32_t n);

/* Replace a MAC address at this offset, 0 or 6, of frames that have it. Frames
 * of captures stay as they are. */
void builder_set_mac(struct builder *builder, uint32_t at, const void *from,
		     const void *to);

/* Frames made of a stream and not taken back; also its next sequence number. */
uint64_t builder_n_sent(const struct builder *builder, uint32_t stream);

#endif
