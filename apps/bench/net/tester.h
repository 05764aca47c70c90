/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tester: ports, and threads that send and receive on their queues, one
 * trial after another.
 *
 *     pacer --> builder --> tx queue  ...  rx queue --> tracker, histogram
 *
 * Sending is open loop: when frames are due does not depend on the speed of
 * sending. Frames that a port does not accept in time count as unsent.
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

/* Zero is the default of each member except the ports and plane. */
struct tester_config {
	/* Ports that send, or "live:IFACE", and ports that receive. A port may
	 * be in both lists if it has the same spec in both. */
	const char *const *tx;
	uint32_t n_tx;
	const char *const *rx;
	uint32_t n_rx;
	/* A simulated device instead of a cable between two pair: ports, or
	 * NULL. */
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
	/* Program, log level, workers, cores, burst, pool and port options. The
	 * tester sets its specs. */
	struct dataplane_config plane;
};

/* Open ports, pool and threads. Returns 0, or the exit status (2: the command
 * line is wrong) with a reason and nothing left open. */
int tester_open(const struct tester_config *config, struct tester **ret,
		struct mr_reason *why);

/*
 * Run a trial. Each has sequence numbers of its own, and frames of an earlier
 * one are foreign to it. Prints nothing except changes of the ports' MAC
 * addresses. If a signal or the loss of a port ends the trial, it has its
 * figures so far. Returns 0, or the exit status; then ret needs no freeing.
 */
int tester_run(struct tester *tester, const struct trial_config *config,
	       struct trial_result *ret, struct mr_reason *why);

/*
 * Drain and close, and check that pages and invariants add up. Returns 0 or 1,
 * with a line on stderr for what does not add up. If a thread did not end,
 * which tester_run() has reported, it ends the process with status 1.
 */
int tester_close(struct tester *tester);

/* A signal that ends the program has come; see support/signals.h. */
bool tester_is_ending(void);

/* Frames that were given to the queues and did not leave them. */
uint64_t tester_n_pending(const struct tester *tester);

/* The total rate of all sending links at which the first of them is full: bits
 * per second with preamble, FCS and gap; 0: unknown. */
double tester_line_bps(const struct tester *tester);

/* Ports, then places. A link without a known state counts as up. */
uint32_t tester_n_ports(const struct tester *tester);
void tester_port(const struct tester *tester, uint32_t i,
		 struct mr_port_info *ret_info, struct mr_link *ret_link);
/* Cores of its threads, at most room of them; returns how many there are. */
uint32_t tester_cores(const struct tester *tester, uint32_t *ret_cores,
		      uint32_t room);

/* What the simulated device did in the last trial, on the way from the first
 * port to the second (0) or back (1). False: there is none. */
struct device_counts;
bool tester_device_counts(const struct tester *tester, uint32_t direction,
			  struct device_counts *ret);

/* Print ports and threads on stderr. */
void tester_print_map(const struct tester *tester);

/* Called by tester_run() on its thread, every 100 ms at most, with the counters
 * so far. Histograms are only in the final result. */
typedef void tester_progress_fn(void *opaque,
				const struct trial_result *so_far);

/* For that function: add the latencies measured since the last call to ret.
 * before is the caller's: zeros at first, one per receiver. */
void tester_latency_since(const struct tester *tester, struct hist *before,
			  struct hist *ret);

#endif
