/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a running translator. */
#ifndef NAT_APP_H
#define NAT_APP_H

#include "support/capture.h"
#include "support/control.h"
#include "support/dataplane.h"
#include "support/run.h"
#include "support/snapshot.h"

#include "datapath/neighbours.h"
#include "log.h"
#include "offload.h"
#include "options.h"
#include "work.h"

struct app {
	const struct options *options;
	struct nat_config *config;      /* the current one */
	struct nat_config *next;        /* being applied; NULL: none */
	const struct nat_config *asked; /* what workers are to apply: next, or
					 * again config if one could not */
	struct nat_config *kept;        /* others that a worker still uses */
	struct mr_reason not_reloaded; /* why a worker could not; "": all did */
	struct dataplane plane;
	struct nat_neighbours *neighbours;
	struct nat_steering *steering; /* NULL: one worker */
	struct mr_reason not_steered; /* why the outside port does not; or "" */
	struct nat_log *log;
	struct nat_keep *keep;
	struct mr_rules *rules;               /* NULL: none */
	bool owns_rules; /* not another process */
	struct offload_counts offload_counts; /* when they ended */
	uint32_t n_id_owners; /* workers, and rx queues of rules; 0: workers */
	struct nat_worker *workers; /* by index */
	struct capture *capture;
	uint32_t n_workers;
	struct run_fd fds[2];    /* for run(): answered_fd, that of rules */
	int answered_fd;         /* readable after a request was answered */
	struct control *control; /* from main(), for its events */
	uint32_t n_reloads, n_refused; /* configurations */
};

/*
 * Open everything, and restore saved sessions unless another process has them.
 * The app owns config from now on, even on failure. Returns 0, or an exit status with a message.
 */
int app_open(struct app *app, const struct options *options,
	     const struct nat_config *config, struct mr_reason *ret_error);
void app_close(struct app *app);

/* Print how frames reach their workers, and why. */
void app_print_steering(const struct app *app);

/* For run(). */
void app_give_up(void *app);
void app_drop(struct mr_worker *worker, const struct mr_frame *frames,
	      uint32_t n, void *workers);
void app_each_second(void *app);
void app_port_event(void *app, uint32_t port_idx, uint32_t events);
/* Called before and after a port is opened again, with the workers stopped. */
void app_port_closing(void *app, uint32_t port_idx);
void app_port_opened(void *app, uint32_t port_idx);
/* counters.c */
const struct app_counters *app_counters(const struct app *app);

#endif
