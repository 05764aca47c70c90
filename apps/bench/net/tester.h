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

#include "net/away.h"
#include "net/device.h"
#include "net/drops.h"
#include "net/receiver.h"
#include "net/sender.h"
#include "support/dataplane.h"

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
	bool is_unstamped; /* sent as they are: no trial recognizes them */
	bool has_unstamped; /* the command has an option for that */
	uint64_t seed;
	uint8_t dst_mac[6];
	bool has_dst_mac;     /* else: of the receiving port, or broadcast */
	uint32_t frame_bytes; /* of streams that do not say it; 0: 60 */
	/* Program, log level, workers, cores, burst, pool and port options. The
	 * tester sets its specs. */
	struct dataplane_config plane;
};

/* Called by tester_run() on its thread, every 100 ms at most, with the counters
 * so far. Histograms are only in the final result. */
typedef void tester_progress_fn(void *opaque,
				const struct trial_result *so_far);

enum {
	MAX_SENDERS = 64,
	MAX_RECEIVERS = 256,
	MAX_DROP_ROWS = 512, /* counters of losses of all ports */
	DEFAULT_BURST = 64,
	MAX_PLACES = 8,
};

/* A place to send to that is not a port. */
struct sending_place {
	const struct place_ops *ops;
	struct place *place;
	uint32_t t;       /* place in tx */
	uint32_t is_done; /* set by its thread */
	int err;          /* of its end, like why; valid if is_done */
	struct mr_reason why;
};

/* A direction through the simulated device. */
struct crossing {
	struct device *device;
	struct mr_rxq *from;
	struct mr_txq *to;
};

/* The work of a thread of the tester, in rounds. */
struct seat {
	_Alignas(64) struct tester *tester;
	struct sender *senders[MAX_SENDERS];
	struct receiver *receivers[MAX_RECEIVERS];
	uint32_t n_senders, n_receivers;
	struct sending_place *place; /* has the thread to itself; NULL: none */
	bool has_device;
	uint64_t busy_ns, all_ns; /* of the trial; it writes them */
	uint64_t user_ns, system_ns;
	struct away away;
};

struct tester {
	struct tester_config config; /* without its lists */
	struct dataplane plane;
	struct clock clock;
	const char *specs[MAX_PORTS];
	uint32_t n_ports; /* that the user named; the device's are behind */
	/* Numbers of ports; those of places begin at n_ports. */
	uint32_t tx[MAX_PORTS], rx[MAX_PORTS];
	uint32_t n_tx, n_rx;
	uint64_t macs[MAX_PORTS]; /* by port; see mac.h */
	void *base;
	uint32_t page_bytes, headroom_bytes;

	struct seat *seats; /* by worker */
	struct sender *senders;
	uint32_t sender_port[MAX_SENDERS]; /* place in tx */
	uint32_t n_senders;
	struct sending_place places[MAX_PLACES];
	uint32_t n_places;
	uint32_t n_sources; /* senders, then places: who has lanes */
	struct receiver *receivers;
	uint32_t receiver_port[MAX_RECEIVERS]; /* place in rx */
	uint32_t n_receivers;
	struct device_config device;
	struct crossing crossings[2];
	uint32_t n_crossings;

	/* Of the trial. */
	uint32_t n_trials;
	uint32_t magic;
	uint16_t run; /* for another program to receive; 0: none */
	struct streams *streams[MAX_PORTS]; /* by place in tx */
	struct builder *builders[MAX_SENDERS];
	struct tracker tracker;
	struct runs *runs; /* where nothing is sent here */
	struct send_orders orders;
	uint32_t n_lanes;
	struct hist *lateness[MAX_SENDERS], *latency[MAX_RECEIVERS];
	struct trial_drop drops_before[MAX_DROP_ROWS];
	uint64_t tx_bytes_before, rx_bytes_before;
	uint32_t is_cut;      /* senders end, receivers go on */
	uint32_t is_stopping; /* threads end their rounds */
	bool is_ended;        /* by progress(), as by a signal */
	bool is_hung;         /* a thread did not end and uses all this */

	struct trial_result *so_far;
	tester_progress_fn *progress; /* NULL: none */
	void *progress_opaque;
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

/* Print ports and threads on stderr. */
void tester_print_map(const struct tester *tester);

/* For progress(): add the latencies measured since the last call to ret.
 * before is the caller's: zeros at first, one per receiver. */
void tester_latency_since(const struct tester *tester, struct hist *before,
			  struct hist *ret);

/* The rest is for the tester's own files. */

/* tester.c: signals that end the program. 0 or -errno. */
int ending_open(struct mr_reason *ret_why);
/* Set up the streams, with their stamps. 0 or an exit status. */
int tester_set_streams(struct tester *tester, uint32_t frame_bytes,
		       bool is_stamped, struct mr_reason *why);
void tester_free(struct tester *tester);
/* Follow changes of the ports' devices. */
mr_port_event_fn tester_port_event;
/* Read the ports' MAC addresses before a trial. */
void tester_read_macs(struct tester *tester);
/* The MAC addresses for frames of the sending port t; see struct sender. */
void tester_choose_macs(const struct tester *tester, uint32_t t,
			const uint64_t *ret[2]);

/* tester_seats.c: the work of a thread in a trial; opaque is the tester. */
mr_worker_fn tester_sit;
/* One round of it. Returns how many frames it moved. */
uint32_t seat_step(struct seat *seat, struct mr_cache *cache, uint64_t now_ns);
/* Frames that are due and have not left are unsent. */
void seat_end_senders(struct seat *seat, uint64_t now_ns);
/* Wait until queues have returned frames, which counts those they dropped:
 * some devices return them late. */
void seat_await_completions(struct seat *seat);
/* Which part of the latencies the tester caused. */
void tester_explain_tail(const struct tester *tester, struct trial_result *ret);

/* tester_count.c: the counters of the trial, histograms apart. */
void tester_count_before(struct tester *tester);
void tester_count_so_far(const struct tester *tester, struct trial_result *ret);
/* Count everything, after the threads have ended and is_cut_short and
 * why_stopped are set. 0 or -ENOMEM. */
int tester_count_all(struct tester *tester, struct trial_result *ret);
/* How many of the trial's frames arrived at least once. */
uint64_t tester_n_unique(const struct tester *tester);
uint64_t tester_n_sent(const struct tester *tester);
bool tester_is_sending(const struct tester *tester);
/* The sum of all places. */
struct send_counts places_counts(const struct tester *tester);

#endif
