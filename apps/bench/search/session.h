/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the commands that search have in common: their options, a tester, the
 * document, the table for people, progress, and what the tester itself can do.
 */
#ifndef SEARCH_SESSION_H
#define SEARCH_SESSION_H

#include "net/options.h"
#include "result/document.h"
#include "search/progress.h"
#include "search/search.h"

enum { MAX_SIZES = 32, MAX_SHARES = 16 };

enum method { METHOD_BINARY, METHOD_TST009, METHOD_MLR };

/* Shares are of 1. Times in ns; 0: as long as a trial, or none. */
struct search_options {
	struct traffic_options traffic;
	enum method method;
	uint32_t sizes[MAX_SIZES]; /* without FCS */
	uint32_t n_sizes;          /* 0: as the streams are */
	bool is_rfc2544;           /* they are those of that word */
	double loss_tolerance, partial_tolerance;
	double resolution, unsent_tolerance, exceed_ratio, step;
	uint64_t trial_ns, confirm_ns, duration_sum_ns, interval_ns;
	uint64_t max_burst_ns;
	uint32_t n_verify, n_tests;
	double shares[MAX_SHARES];
	uint32_t n_shares;
	const char *ceiling; /* a rate, or a document of selftest */
	uint32_t pid;        /* of the device; 0: none */
	uint32_t given;      /* a bit for each that the command line has */
};

/* Groups of options: a command has some of them. */
enum {
	OPTIONS_SEARCH = 1, /* method and what belongs to it */
	OPTIONS_SIZES = 2,
	OPTIONS_TRIAL = 4,
	OPTIONS_STEP = 8,
	OPTIONS_BURSTS = 16,
	OPTIONS_SHARES = 32,
	OPTIONS_INTERVAL = 64,
	OPTIONS_CEILING = 128,
};

struct session;

struct search_command {
	const char *name;
	const char *usage; /* in front of the options */
	uint32_t groups;
	/* Once for each size. 0, 1 if the goal was missed, or -errno. */
	int (*run)(struct session *session, struct mr_reason *why);
	/* Before ports are opened, with a document: 0, or the exit status.
	 * NULL: nothing. */
	int (*before)(struct session *session);
	bool needs_no_ports; /* without any, before() is all there is */
	bool is_mix;         /* imix: streams are mixes */
};

struct session {
	const struct search_command *command;
	struct search_options options;
	struct tester *tester;
	struct document *document;
	struct search search; /* of the size at hand */
	uint32_t frame_bytes; /* of it, without FCS; 0: a mix */
	double mean_bytes;
	double ceiling_pps;   /* of the tester for it; 0: not known */
	bool is_own_ceiling;  /* the highest rate is what the sender can do */
	struct hist *latency; /* of the last trial */
	struct trial_tail tail;
	uint32_t n_rows;
	bool has_no_result; /* no port could be opened: no document */
	struct progress progress;
	uint32_t n_done;      /* sizes */
	char size_text[16];   /* "64 B" */
	char raised[120];     /* why it is not what the list has; "" */
	char streams[8][256]; /* of imix, where "size=imix" was added */
};

/* The whole of a command. Returns the exit status. */
int search_command_main(const struct search_command *command, int argc,
			char **argv);

/* Read the command line: as traffic_options_main(). */
int search_options_main(const struct search_command *command, int argc,
			char **argv, struct search_options *ret);

/* "64,128" or "rfc2544"; "10,50,90"; "0.5%". */
enum parse_result parse_sizes(const char *name, const char *text, uint32_t *ret,
			      uint32_t *ret_n, struct mr_reason *why);
enum parse_result parse_shares(const char *name, const char *text, double *ret,
			       uint32_t *ret_n, struct mr_reason *why);
enum parse_result parse_percent(const char *name, const char *text, double max,
				double *ret, struct mr_reason *why);

/*
 * The ceiling for frames of a size: text is a rate, or the path of a document
 * whose selftest has the size, made by a tester as ours, whose document is
 * given. -EINVAL: neither, or of another tester; -ENOENT: not of this size.
 */
int ceiling_read(const char *text, const json_t *ours, uint32_t frame_bytes,
		 double mean_bytes, double *ret, struct mr_reason *why);

/* Search for the rates that hold, by the method asked for. */
enum { MAX_FOUND = 2 };

int session_throughput(struct session *session, struct found *ret,
		       uint32_t *ret_n, struct mr_reason *why);

/*
 * Whether the figure is the tester's rather than the device's. One above the
 * ceiling is refused: false, and nothing of it may be reported.
 */
bool session_judge(const struct session *session, double pps, enum limit limit,
		   bool *ret_is_limited, char *note, size_t n_bytes);

/* Whether a load is close to the ceiling, or above it; the note says so. */
bool session_is_near_ceiling(const struct session *session, double pps,
			     char *note, size_t n_bytes);

/* A row of the document, and a line of the table. */
void session_row(struct session *session, const struct document_row *row);

/* Text for people, as printf(), unless the output is JSON. */
void session_print(const struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "1.234 M" with three digits behind the point. */
void print_rate(double pps, char *ret, size_t n_bytes);

#endif
