/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RFC 9693: how fast a NAT sets connections up and takes them down, and how
 * many it holds. Only what is seen from outside counts: a connection is there
 * if what the server sends to it reaches the client.
 */
#ifndef SEARCH_NAT_SEARCH_H
#define SEARCH_NAT_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

struct nat_counts {
	uint64_t sent;
	uint64_t arrived; /* connections seen on the far side */
	/* Frames that reached the tester's ports and that those dropped, by
	 * their own account: so many were not lost by the NAT. */
	uint64_t n_dropped_here;
	bool is_unsent; /* not at the rate: says nothing of the NAT */
};

/* What can be done to a NAT. 0, or -errno with the reason. */
struct nat_ops {
	/* n new connections, behind those that were made since reset(). */
	int (*establish)(void *opaque, double pps, uint32_t n,
			 struct nat_counts *ret, struct mr_reason *why);
	/* Ask all connections but the first n_skipped, from outside. */
	int (*validate)(void *opaque, double pps, uint32_t n_skipped,
			struct nat_counts *ret, struct mr_reason *why);
	/* Resend the frames of the last of these two that have not arrived,
	 * and count those that now do. */
	int (*again)(void *opaque, double pps, struct nat_counts *ret,
		     struct mr_reason *why);
	/* Empty its table; how long that took. NULL: nobody can. */
	int (*reset)(void *opaque, double *ret_seconds, struct mr_reason *why);
};

struct nat_search {
	const struct nat_ops *ops;
	void *opaque;
	double max_pps;    /* of setting up */
	double resolution; /* share of the rate */
	uint32_t n;        /* connections of a trial of the rate */
	uint32_t n_max;    /* that are ever made: room for their tuples */
	uint32_t n_made;   /* since the last reset */
	uint32_t n_trials;
	/* Is called before each trial: what is tried, and how many more like it
	 * there are at most; 0: not known. NULL: nobody listens. */
	void (*on_trial)(void *observer, const char *what, double value,
			 uint32_t n_left);
	void *observer;
};

struct nat_rate {
	double pps;       /* 0: none */
	double low, high; /* held, did not hold; 0: there was none */
	bool is_by_sender;
	/* Most of what was missing at high was dropped by the tester's ports.
	 */
	bool is_by_receiver;
	uint64_t n_lost_above;   /* at high: never seen outside */
	uint64_t n_stale_above;  /* at high: seen, and gone again */
	uint64_t n_dropped_here; /* at high, by the tester's ports */
};

/*
 * RFC 9693, 4.5: binary search for the rate at which n new connections are all
 * seen outside, and all of them answer from there afterwards.
 */
int search_nat_rate(struct nat_search *s, struct nat_rate *ret,
		    struct mr_reason *why);

struct nat_capacity {
	uint64_t n;          /* connections that were there at once */
	uint64_t n_made;     /* that it was asked to hold */
	bool is_full;        /* false: (almost) all were there */
	bool is_by_receiver; /* the tester dropped most of what is missing */
};

/*
 * RFC 9693, 4.8, from outside: the number of connections doubles until more
 * than 1 % no longer answer. Those that do are the table's capacity, whether it
 * refuses new ones or drops old ones. Before that, frames that do not arrive
 * are resent: the path may have lost them. If nothing empties the table, it
 * begins with those of earlier trials that answer.
 */
int search_nat_capacity(struct nat_search *s, double pps,
			struct nat_capacity *ret, struct mr_reason *why);

struct nat_tear_down {
	double pps, seconds;
	double empty_seconds; /* the same command on an empty table, */
	double high_pps;      /* and without that; 0: it was as long */
	uint64_t n;           /* connections that were there before */
	uint64_t n_after;     /* and after: 0, or the table was not emptied */
};

/*
 * RFC 9693, 4.7: n connections by the time that emptying the table takes. What
 * the command takes of it for itself is not the NAT's, so that the rate lies
 * between pps and high_pps.
 */
int search_nat_tear_down(struct nat_search *s, double pps,
			 struct nat_tear_down *ret, struct mr_reason *why);

#endif
