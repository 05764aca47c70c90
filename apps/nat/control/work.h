/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of a worker: queues, rings, requests; path.h handles frames. */
#ifndef NAT_WORK_H
#define NAT_WORK_H

#include <millrace/millrace.h>

#include "datapath/hand_over.h"
#include "datapath/path.h"
#include "datapath/steer.h"
#include "mapping/map.h"
#include "request.h"

/* Written by the worker, read by any thread. */
struct nat_work_stats {
	uint64_t bursts, entries;   /* received */
	struct nat_maps_stats maps; /* when last published */
};

struct nat_worker {
	_Alignas(64) struct nat_work_stats stats;
	_Alignas(64) struct mr_ctx *ctx;
	struct mr_worker *worker;
	struct nat_maps *maps;
	struct nat_path *path;
	struct recorder *recorder; /* atomic: see capture.h */
	struct nat_steer *steer;   /* NULL: it is the only worker */
	uint32_t n_burst;
	uint64_t publish_ns; /* when the statistics of maps are due */
	_Alignas(64) struct nat_request request;
	/* Of the main thread: a reload not yet applied, and the configuration
	 * that the worker uses. */
	bool has_news;
	const struct nat_config *config;
	struct mr_frame frames[MR_BURST_MAX];
	struct nat_backlog backlog;    /* its frames are of malloc() */
	uint32_t n_done[NAT_SIDES];    /* entries of it */
};

/* mr_worker_fn; opaque is the array of workers, by index. */
int nat_work(struct mr_worker *worker, void *opaque);

/* Drop what is left of the backlog, as NAT_DROP_SHUTDOWN; or only forget it. */
void nat_work_drop_backlog(struct nat_worker *w);
void nat_work_forget_backlog(struct nat_worker *w);

/* Copy the maps' statistics to stats, for other threads. */
void nat_work_publish(struct nat_worker *w);

#endif
