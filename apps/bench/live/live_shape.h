/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the program in the kernel and its loader share: what is sent (struct
 * live_shape, fixed when it is loaded), when (struct live_orders, of each run),
 * and the result (struct live_counts).
 */
#ifndef LIVE_SHAPE_H
#define LIVE_SHAPE_H

#include <linux/types.h>

#include "live/live_due.h"

enum {
	LIVE_MAX_STREAMS = 64,
	LIVE_MAX_TURNS = 4096, /* dealt to the streams by their weights */
	LIVE_MAX_FIELDS = 8,
	LIVE_MAX_VALUES = 4096, /* of all sets together */
	LIVE_MAX_FRAMES = 64,
	LIVE_MAX_SIZES = 1024, /* turns of all mixes together */
	LIVE_MAX_STAMPS = 8,   /* places of stamps: lengths of stamped frames */
	LIVE_HEADER_BYTES = 96, /* what is written anew of each frame */
	LIVE_SHORT_BYTES = 56,  /* how much of it the shortest frame has */
	LIVE_MIN_BYTES = 60,
	LIVE_MAX_BYTES = 3000, /* the kernel keeps the rest of an OS page */
	LIVE_STAMP_BYTES = 18, /* stream/stamp.h */
	LIVE_NO_SET = 0xffff,
	LIVE_LATENESS =
		1 << 15,  /* buckets, as net/hist.h has them, and a rest */
	LIVE_GAPS = 1024, /* quantiles of the gaps of a Poisson process */
};

enum live_sum { LIVE_SUM_IP = 1, LIVE_SUM_L4 = 2 };

/*
 * A value that changes from frame to frame, in host order. Its index among n
 * values is random, or (turn / every) % n: every = 1 takes the next value in
 * each frame, and the product of the n of other fields the next one after these
 * have taken all of theirs.
 */
struct live_field {
	__u16 offset; /* even, if it has more than one byte */
	__u8 n_bytes; /* 1, 2 or 4 */
	__u8 sums;    /* of which it is a part: bits of enum live_sum */
	__u16 set_at; /* in values[]; LIVE_NO_SET: a range from first on */
	__u16 is_random;
	__u32 first, step;
	__u32 fixed; /* bits beside the value; in the header and its sums */
	__u32 reserved;
	__u64 n, every;
};

/*
 * A frame of one size: its headers, with 0 in each value that changes and in
 * the checksums, and the sums of their 16-bit words, pseudo header included.
 * The bytes between headers and stamp are 0.
 */
struct live_frame {
	__u8 header[LIVE_HEADER_BYTES];
	__u32 n_bytes;
	__u16 ip_sum_at, l4_sum_at; /* 0: has none */
	__u32 ip_sum, l4_sum;
	__u8 is_udp;       /* a sum of 0 is sent as 0xffff */
	__u8 is_stamp_odd; /* it begins at an odd byte of the sum */
	__u16 reserved;
};

struct live_stream {
	__u32 n_fields;
	__u16 sizes_at, n_sizes; /* frame k is frames[sizes[k % n_sizes]] */
	struct live_field fields[LIVE_MAX_FIELDS];
};

struct live_shape {
	__u32 n_streams, n_turns, n_frames, max_bytes;
	__u32 sender, n_senders;    /* turns are dealt to the senders */
	__u32 is_stamped, has_long; /* more than LIVE_SHORT_BYTES of headers */
	__u64 seed;
	__u32 ifindex, netns; /* inode number of the namespace */
	__u32 n_stamps, reserved;
	/* Where a page may still have stamps of other frames. */
	__u16 stamps_at[LIVE_MAX_STAMPS];
	__u8 turns[LIVE_MAX_TURNS];
	__u8 sizes[LIVE_MAX_SIZES];
	__u32 values[LIVE_MAX_VALUES];
	struct live_frame frames[LIVE_MAX_FRAMES];
	struct live_stream streams[LIVE_MAX_STREAMS];
};

enum live_pace { LIVE_CONSTANT, LIVE_POISSON };

/* Times are in ns since origin_ns of CLOCK_MONOTONIC. */
struct live_orders {
	__u64 origin_ns;
	__u64 begin_ns, end_ns; /* end 0: none */
	__u64 n_frames;         /* 0: no limit */
	__u64 gap; /* between bursts, see live_due.h; 0: full speed */
	__u64 max_lag_ns;
	__u32 burst_frames, pace;
	__u32 magic, is_stopped;
	__u32 run, reserved; /* see stream/stamp.h */
};

/* Written by one thread: in the kernel, and before and after its calls. */
struct live_counts {
	__u64 n_passed;  /* handed to the interface */
	__u64 n_refused; /* of them: what its driver had no room for */
	__u64 n_no_way;  /* of them: what it cannot send at all */
	__u64 n_unsent;  /* given up, because they were late */
	__u64 n_set_up;  /* of them: while a call was set up */
	__u64 n_bytes;   /* of frames passed, without those of n_no_way */
	__u64 last_ns;   /* when the last was passed */
	__u64 late_max_ns;
	__u64 by_stream[LIVE_MAX_STREAMS]; /* as n_bytes */
	struct live_due due;
	__u32 has_begun, is_done;
	__u32 is_set_up; /* no frame was due in this call so far */
	__u32 reserved;
};

#endif
