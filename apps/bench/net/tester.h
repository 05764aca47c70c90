/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tester: ports, threads that send and receive on their queues, one trial
 * after the other.
 *
 *     pacer --> builder --> tx queue  ...  rx queue --> tracker, histogram
 *
 * Sending is open loop: when frames are due does not depend on how fast they
 * go. What a port does not take in time is counted as unsent, never left out.
 */
#ifndef NET_TESTER_H
#define NET_TESTER_H

#include <jansson.h>
#include <millrace/millrace.h>

#include "net/clock.h"
#include "net/trial.h"
#include "support/dataplane.h"

struct device_config;
struct tester;

/* Zero is the default of each member, but of the ports and of plane. */
struct tester_config {
	/* Port specs that send, or "live:IFACE"; and those that receive. A port
	 * may be in both lists, under the same words. */
	const char *const *tx;
	uint32_t n_tx;
	const char *const *rx;
	uint32_t n_rx;
	/* Known device in place of a cable between two pair: ports; or NULL. */
	const struct device_config *device;
	/* One thread and a virtual clock: memory ports only. */
	bool is_virtual;
	const json_t *streams; /* see streams_make(); outlives the tester */
	bool is_unstamped; /* frames as they are: nothing can be told of them */
	bool has_unstamped; /* the command has an option for that */
	uint64_t seed;
	uint8_t dst_mac[6];
	bool has_dst_mac;     /* else: of the receiving port, or broadcast */
	uint32_t frame_bytes; /* of streams that do not say it; 0: 60 */
	/* Program, log level, workers, cores, burst, pool, port options. Its
	 * specs are set here. */
	struct dataplane_config plane;
};

/*
 * Open ports, pool and threads. Returns 0, or the exit status (2: the command
 * line is wrong), with a line that says why and nothing left open.
 */
int tester_open(const struct tester_config *config, struct tester **ret,
		struct mr_reason *why);

/*
 * One trial, again and again: each has sequence numbers of its own; frames of
 * an earlier one are foreign to it. Prints nothing but changes of the ports'
 * MAC addresses. If a signal or the loss of a port ends the trial, it has its
 * figures so far. Returns 0, or the exit status; ret then needs no freeing.
 */
int tester_run(struct tester *tester, const struct trial_config *config,
	       struct trial_result *ret, struct mr_reason *why);

/*
 * Drain, close, and look whether pages and invariants add up: returns 0 or 1,
 * with a line on stderr for what does not. Where a thread did not end, which
 * tester_run() has told, it ends the process with 1.
 */
int tester_close(struct tester *tester);

/* A signal came that ends the program: see support/signals.h. */
bool tester_is_ending(void);

/* End the trial that runs, as a signal would: for tester_on_progress(). */
void tester_end(struct tester *tester);

/* Frames that were given to the queues and did not leave them. */
uint64_t tester_n_pending(const struct tester *tester);

/*
 * Total rate of all sending links, in bits per second with preamble, FCS and
 * gap, at which the first of them is full; 0: unknown.
 */
double tester_line_bps(const struct tester *tester);

/* Ports, then places. A link is up that has no state. */
uint32_t tester_n_ports(const struct tester *tester);
void tester_port(const struct tester *tester, uint32_t i,
		 struct mr_port_info *ret_info, struct mr_link *ret_link);
/* Cores of its threads, room at most; returns how many there are. */
uint32_t tester_cores(const struct tester *tester, uint32_t *ret_cores,
		      uint32_t room);

/*
 * What the simulated DUT did in the last trial, on the way from the first port
 * to the second (0) or back (1). False: there is none.
 */
struct device_counts;
bool tester_device_counts(const struct tester *tester, uint32_t direction,
			  struct device_counts *ret);

/* The map of ports and threads, for people, on stderr. */
void tester_print_map(const struct tester *tester);

/*
 * Called on the calling thread of tester_run(), each 100 ms at most, with the
 * counters so far. Its histograms are empty but for the final result.
 */
typedef void tester_progress_fn(void *opaque,
				const struct trial_result *so_far);
void tester_on_progress(struct tester *tester, tester_progress_fn *fn,
			void *opaque);

/*
 * For that function: the latencies that were measured since the last call,
 * added to ret. before is the caller's, of zeros at first, one per receiver.
 */
void tester_latency_since(const struct tester *tester, struct hist *before,
			  struct hist *ret);

#endif
