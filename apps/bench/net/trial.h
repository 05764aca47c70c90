/* SPDX-License-Identifier: BSD-3-Clause */
/* A trial: its configuration and its result. */
#ifndef NET_TRIAL_H
#define NET_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "net/hist.h"

struct mr_port;

enum pace { PACE_CONSTANT, PACE_POISSON, PACE_BURSTS };

enum { DEFAULT_PACE_FRAMES = 32, DEFAULT_LAG_MS = 10 };

/* How long to wait for the links of all ports. Opening resets many NICs, and
 * frames sent before the link is back are lost. */
enum { LINK_WAIT_MS = 10000 };

/* Overhead of a frame on the wire (IEEE 802.3, clause 4.2):
 * preamble 8, FCS 4, gap 12. */
enum { WIRE_BYTES = 24 };

/* Zero is the default of each member: full speed, until a signal. */
struct trial_config {
	double pps;
	enum pace pace;
	uint32_t burst_frames; /* PACE_BURSTS; 0: 32 */
	uint64_t duration_ns;  /* of sending; 0: until n_frames, or forever */
	uint64_t n_frames;     /* 0: no limit */
	uint64_t settle_ns;    /* wait for late frames after it; 0: 100 ms */
	uint64_t max_lag_ns;   /* give up frames due longer ago; 0: 10 ms */
	uint32_t frame_bytes;  /* of streams that do not say their size, without
				* FCS; 0: as opened */
};

/* A stream, summed over its senders; or a lane (stamp.h) of another program. */
struct trial_lane {
	uint32_t stream;
	uint32_t run; /* of another program, from 1 on; 0: of this one */
	uint64_t sent, received, unique, duplicates, reordered, too_old, lost;
	/* The longest gap in the sequence numbers; 0 with several receivers,
	 * because none of them receives all. */
	uint64_t longest_gap;
};

/* A loss counter of a port that changed during the trial. */
struct trial_drop {
	char port[64];
	char side[4]; /* "rx", "tx": of queues, here; "dev": before them */
	char name[40];
	uint64_t n;
	bool is_receivers; /* its port is one of those that receive */
	bool is_departure; /* counts frames that the port was to send */
	const struct mr_port *from; /* NULL: a place */
};

/* One direction of several pairs of ports, or of both ways of one pair: what a
 * port sent, wherever it arrived. Latencies are those of all frames that
 * arrived at the other port. */
struct trial_direction {
	char from[64], to[64];
	struct trial_lane sum; /* of all of its streams */
	uint64_t unsent;
	uint64_t n_latencies;
	uint64_t latency_p50_ns, latency_p99_ns, latency_max_ns;
};

/*
 * What late frames waited for in the tester. late_ns is the sum of the
 * latencies of the first frames of bursts at or above the 99.9th percentile.
 * The others are parts of it during which a thread of the tester waited for its
 * core, was stopped, or was in calls that send and receive (away.h). The rest
 * belongs to the device and to the kernel in between.
 */
struct trial_tail {
	uint64_t late_ns, waited_ns, still_ns, called_ns;
	uint64_t least_ns; /* latencies below this are not in late_ns */
	/* The longest time between two polls of a sender and of a receiver. */
	uint64_t tx_away_ns, rx_away_ns;
	/* Sums over all threads and the whole trial. */
	uint64_t all_waited_ns, all_still_ns;
};

/* due = sent + unsent; sent = all.unique + all.lost; received = foreign +
 * frames with a stamp of this trial, which are all.received. */
struct trial_result {
	double asked_pps; /* 0: full speed */
	/* From the first frame that could be due to the last frame sent; and to
	 * the end of settling. */
	uint64_t sending_ns, whole_ns;
	uint64_t due, sent, unsent, tx_bytes;
	uint64_t received, foreign, rx_bytes;
	struct trial_lane all;  /* lanes; its stream and run are 0 */
	double tx_pps;          /* over sending_ns */
	double rx_pps;          /* unique ones, first to last arrival */
	struct hist lateness;   /* departure - due: the pacing error */
	struct hist latency;    /* arrival - due */
	struct trial_tail tail; /* of latency */
	uint32_t n_runs;        /* of other programs whose frames arrived */
	struct trial_lane *streams;
	uint32_t n_streams;
	struct trial_direction *directions; /* 0 if there is only one */
	uint32_t n_directions;
	struct trial_drop *drops;
	uint32_t n_drops;
	double cpu_share; /* of the tester's threads: in rounds with frames */
	/* The error of a time: of a reading, plus the drift since the trial
	 * began, plus that of comparing the clock with a device's. */
	uint64_t clock_error_ns;
	/* The CPU time of its threads in user space and in the kernel. */
	uint64_t user_ns, system_ns;
	bool is_cut_short;     /* by a signal, or by why_stopped */
	char why_stopped[160]; /* link down, port gone, ...; "" */
	/* Set by trial_judge(): unsent frames that the sending ports dropped,
	 * and why the trial is incomplete, or "". */
	uint64_t n_dropped;
	char why_incomplete[256];
};

/*
 * Judge a trial of any kind: it is complete if all requested frames left. On
 * entry, sent is what the ports accepted, and unsent what was given up before;
 * on return, sent is what left, and unsent the rest. n_kept frames were
 * accepted but not sent; n_no_room of them were due only because there seemed
 * to be room. is_bounded: a number of frames or a time was requested, so frames
 * that were given up make the trial incomplete.
 */
void trial_judge(struct trial_result *result, uint64_t n_kept,
		 uint64_t n_no_room, bool is_bounded);

void trial_result_free(struct trial_result *result);

#endif
