/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the start of the workers to the last report.
 *
 * The workers forward; the calling thread waits for signals, link events and
 * the next report, and never touches a frame before the workers have ended. It
 * never waits for stdout, to which a separate thread writes, nor for stderr:
 * messages go through print_error().
 */
#ifndef SUPPORT_RUN_H
#define SUPPORT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "dataplane.h"
#include "report.h"
#include "snapshot.h"

enum { MAX_RUN_FDS = 8 };

/*
 * An fd for the calling thread to watch. For more than a few, or a changing
 * set, use an epoll fd.
 */
struct run_fd {
	int fd;
	bool (*ready)(void *app); /* readable; true: stop */
};

/* Options of the user. */
struct run_options {
	bool is_json;            /* not text for people */
	bool is_quiet;           /* only the final report */
	uint32_t n_verbose;      /* number of -v options */
	uint64_t duration_ms;    /* 0: unlimited */
	bool is_ending_on_loss;  /* on loss of a port's link or device */
	const char *config_path; /* NULL: all is on the command line */
	bool is_check;           /* check the configuration and exit */
	bool is_schema;          /* print the schema of the file and exit */
	struct control_options control;
};

/* NULL or 0: absent. */
struct run_config {
	struct dataplane *plane;
	struct control *control; /* opened before; the caller's */
	struct capture *capture; /* the same */
	const struct app_counters *counters;
	struct run_options options;
	int signal_fd;      /* from signals_open() */
	mr_worker_fn *work; /* the loop of each worker */
	mr_dataplane_drop_fn *drop;
	void *workers; /* opaque argument of work() and drop() */
	/* The calling thread calls the rest, with app. */
	void *app;
	void (*each_second)(void *app);
	/* The device of a port changed: MR_PORT_EVENT_* bits. */
	void (*port_event)(void *app, uint32_t port_idx, uint32_t events);
	/*
	 * Called before and after a port is opened again, while the workers are
	 * stopped: release what belongs to it, such as rules; set it up again.
	 */
	void (*port_closing)(void *app, uint32_t port_idx);
	void (*port_opened)(void *app, uint32_t port_idx);
	/* After all ports were polled: 10 times a second and at each event. */
	void (*polled)(void *app);
	void (*hang_up)(void *app); /* SIGHUP: reload the configuration */
	/* The workers have ended: drop the frames held in queues. */
	void (*give_up)(void *app);
	/*
	 * `mrctl upgrade`: about how many bytes the program's state will have,
	 * and a text that upgrade_sizes() returns in the new process.
	 */
	uint64_t (*expect_state)(void *app, char *sizes, size_t n);
	/*
	 * `mrctl upgrade`: put the program's state into the parcel's folder,
	 * while the workers are stopped; in the new process, take it from there
	 * before they start. take_state() returns 0, or -errno with a reason.
	 */
	void (*put_state)(void *app, struct mr_parcel *parcel);
	int (*take_state)(void *app, struct mr_parcel *parcel,
			  struct mr_reason *ret_why);
	/* It owns everything now; the workers are about to start. */
	void (*own)(void *app);
	/* The new process has everything: leave its frames and files alone. */
	void (*leave)(void *app);
	const struct run_fd *fds;
	uint32_t n_fds; /* at most MAX_RUN_FDS */
	/* One of fds ends the program; captures that were read do not: their
	 * last frames may be due much later. work() runs once, so ports stay as
	 * they were opened. */
	bool ends_by_fd;
};

/*
 * Start the workers, report, wait for the end; then stop, drain, close ports
 * and workers, and check that everything adds up. Returns the exit status: 1 if
 * --exit-on-port-loss ended it, a worker failed, the last report could not be
 * written, counters do not add up or a page did not come back; stderr has a
 * line for each. Earlier reports that cannot be written are skipped and counted
 * in the next one. If a worker does not end within five seconds, the process
 * exits, since nothing that the worker uses may be freed.
 */
int run(const struct run_config *config);

/* Options that fill in struct run_options; the first ones are of applications
 * with a control socket and a configuration file. */
extern const struct yaml_key run_control_keys[], run_keys[];

/* After all options: sets the log level. PARSE_WRONG: they contradict. */
enum parse_result run_complete_options(const struct run_options *run,
				       struct dataplane_config *plane,
				       struct mr_reason *ret_error);

/* The same for a data plane from a file; options override it. *plane must stay
 * where it is while run is used. */
enum parse_result run_complete_file(struct run_options *run,
				    struct dataplane_config *plane,
				    struct mr_reason *ret_error);

#endif
