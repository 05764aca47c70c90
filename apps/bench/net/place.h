/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places to send to that are not tx queues: they make and pace frames
 * themselves, as the kernel does with live XDP frames. During a trial, each has
 * a thread of the tester.
 */
#ifndef NET_PLACE_H
#define NET_PLACE_H

#include <millrace/millrace.h>

#include "net/clock.h"
#include "net/trial.h"

struct streams;

/* When to send: one sender's part of a trial. */
struct send_orders {
	const struct clock *clock;
	enum pace pace;
	double pps; /* of all senders together; 0: full speed */
	uint32_t burst_frames;
	uint64_t start_ns, end_ns; /* of the clock; end UINT64_MAX: none */
	uint64_t n_frames; /* of all senders together; UINT64_MAX: no limit */
	uint64_t max_lag_ns;
	uint32_t sender, n_senders;
	uint64_t seed;
};

/* due = sent + unsent, once it has ended. */
struct send_counts {
	uint64_t sent, unsent, bytes;
	uint64_t refused; /* of those sent: the device had no room for them */
	uint64_t last_ns; /* when the last one left */
};

struct place;

struct place_ops {
	const char *prefix; /* of the spec: "live:" */
	int (*open)(struct mr_ctx *ctx, const char *spec, struct place **ret,
		    struct mr_reason *why);
	void (*close)(struct place *place);
	/* Prepare a trial with these streams, which outlive it. 0 or -errno. */
	int (*begin)(struct place *place, const struct streams *streams,
		     const struct send_orders *orders, struct mr_reason *why);
	/* Send, on a thread of its own, until the end or stop(). Returns 0, or
	 * -errno with a reason. */
	int (*run)(struct place *place, struct mr_reason *why);
	void (*stop)(struct place *place); /* any thread */
	/* Any thread, also during run(); then lateness is NULL. */
	void (*counts)(const struct place *place, struct send_counts *ret,
		       struct hist *lateness);
	uint64_t (*n_sent)(const struct place *place, uint32_t stream);
	int (*info)(const struct place *place, struct mr_port_info *ret);
	int (*link)(const struct place *place, struct mr_link *ret);
	/* Frames that the device refused, by name, like a port's drops. */
	uint32_t (*drops)(const struct place *place, struct mr_named_count *ret,
			  uint32_t room);
};

#endif
