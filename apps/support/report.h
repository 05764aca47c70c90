/* SPDX-License-Identifier: BSD-3-Clause */
/* What is shown each second, and at the end: one of four formats. */
#ifndef SUPPORT_REPORT_H
#define SUPPORT_REPORT_H

#include <stdbool.h>

#include "snapshot.h"

enum output { OUTPUT_AUTO, OUTPUT_JSON, OUTPUT_CSV };

/*
 * An output format. now and before are a second apart, or more if reports in
 * between were skipped; before is NULL in the first and the final report, which
 * begins at t_s 0. Each returns false, with errno, if stdout fails.
 */
struct report {
	bool (*begin)(void);
	bool (*show)(const struct snapshot *now, const struct snapshot *before);
	bool (*end)(const struct snapshot *final);
	/* Whether a key that ends the program was pressed; any thread, or
	 * NULL. */
	bool (*is_quit)(void);
};

extern const struct report report_text;
extern const struct report report_json;
extern const struct report report_csv;
extern const struct report report_live;

/* OUTPUT_AUTO: live on a terminal, unless quiet; else text. */
const struct report *report_choose(enum output output, bool is_quiet);

/* What report_json prints. The caller owns it; NULL: no memory. */
struct json_t *report_json_object(const struct snapshot *snapshot);

/* The summary for people, at the end of the text and live formats. */
bool report_summary(const struct snapshot *final);

/* Rates between two snapshots, per second. */
struct rates {
	double rx_pps, rx_bps, tx_pps, tx_bps;
	double drops;                      /* for all reasons */
	double rx_offloaded, tx_offloaded; /* frames; not in rx_pps, tx_pps */
	double offloaded_bps;
};
struct rates report_rates(const struct totals *now, const struct totals *before,
			  double seconds);

/* All drops of ports and workers, per second. */
double report_drop_rate(const struct snapshot *now,
			const struct snapshot *before);

/*
 * A row of the live display, or its heading if rates is NULL. The name gets the
 * columns that the rates leave, at least enough for vfio:BDF. A row must be
 * shorter than the terminal, or it wraps: the minimum fits 70 columns.
 */
enum { REPORT_MIN_COLUMNS = 69, REPORT_MAX_COLUMNS = 88 };
void report_rates_row(const char *name, const struct rates *rates,
		      int n_columns, char *text, size_t n_bytes);

/* How much of a text fits a line: up to a blank, if it has one there. */
size_t report_fitting(const char *text, size_t width);

/* "12.3 M" for 12300000, in a buffer of the caller. */
const char *report_scaled(double value, char *text, size_t n_bytes);

/* Share of time without work and awake, 0 to 100, and frames per burst. */
double report_idle_percent(const struct worker_snapshot *now,
			   const struct worker_snapshot *before);
double report_awake_percent(const struct worker_snapshot *now,
			    const struct worker_snapshot *before);
double report_mean_burst(const struct worker_snapshot *now,
			 const struct worker_snapshot *before);

/* Calls fn for each nonzero named drop, of ports and workers. */
typedef void report_drop_fn(void *opaque, const char *where, const char *name,
			    uint64_t n_frames);
void report_each_drop(const struct snapshot *snapshot, report_drop_fn *fn,
		      void *opaque);

/*
 * The line of a group, without its end: "addresses: 2 known, 1 learned". With
 * is_live, the part for the live display, with rates between before and now.
 * False: nothing.
 */
bool report_group(const struct snapshot *now, const struct snapshot *before,
		  uint32_t group, bool is_live, char *text, size_t n_bytes);

#endif
