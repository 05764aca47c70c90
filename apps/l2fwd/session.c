/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing, in this order and back: pool, ports, workers. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "session.h"
#include "specs.h"

enum {
	HANDOFF_ENTRIES = 1024,
	MAX_AUTO_WORKERS = 16, /* more must be asked for: each costs pages */
	DRAIN_MS = 1000,
};

static void print_log(void *opaque, enum mr_log_level level, const char *line)
{
	const struct options *options = opaque;
	static const char *const names[] = { "", "error", "warning", "info",
					     "debug" };

	if (level <= options->log_level)
		fprintf(stderr, "mr-l2fwd: %s: %s\n", names[level], line);
}

/* An error in a spec is one of the command line. */
static int status_of(int err)
{
	return err == -EINVAL ? 2 : 1;
}

/* Workers at most, as far as it is known before the ports are open. */
static uint32_t most_workers(const struct options *options)
{
	cpu_set_t set;
	uint32_t n = 1;

	if (options->n_workers > 0)
		return options->n_workers;
	if (options->n_cores > 0)
		return options->n_cores;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = (uint32_t)CPU_COUNT(&set);
	if (options->n_queues > 0 && n > options->n_queues)
		n = options->n_queues;
	return n < MAX_AUTO_WORKERS ? n : MAX_AUTO_WORKERS;
}

static int make_pool(struct session *session, char (*specs)[MAX_SPEC_BYTES],
		     uint32_t n_workers, struct mr_reason *ret_error)
{
	const struct options *options = session->options;
	struct mr_pool_config config = { .size = sizeof(config),
					 .page_bytes = options->page_bytes,
					 .safety = options->safety,
					 .name = "mr-l2fwd" };
	/* Each port sets a burst per worker aside, each worker a cache. */
	uint64_t n_least = (uint64_t)n_workers *
			   (MR_CACHE_MAX_PAGES + options->n_ports * MR_BURST_MAX);
	uint64_t n_rings = 0;
	struct mr_reason why;
	int err;

	for (uint32_t p = 0; p < options->n_ports; p++) {
		uint32_t n_pages;

		err = mr_port_need_pages(session->ctx, specs[p],
					 options->page_bytes, &n_pages, &why);
		if (err < 0)
			return fail_port(ret_error, status_of(err),
					 options->specs[p], &why);
		n_least += n_pages;
	}
	if (n_workers > 1)
		n_rings = (uint64_t)n_workers * options->n_ports *
			  HANDOFF_ENTRIES;
	if (options->n_pages > 0 && options->n_pages < n_least)
		return fail(ret_error, 2,
			    "--pool-pages %u is too small: the ports' rings, "
			    "%u caches and bursts need %llu",
			    options->n_pages, n_workers,
			    (unsigned long long)n_least);
	if (n_least + n_rings > UINT32_MAX)
		return fail(ret_error, 2, "%llu pages are too many",
			    (unsigned long long)(n_least + n_rings));
	config.n_pages = options->n_pages > 0 ? options->n_pages :
						(uint32_t)(n_least + n_rings);
	session->n_pages = config.n_pages;
	err = mr_pool_create(session->ctx, &config, &session->pool, &why);
	if (err < 0)
		return fail(ret_error, status_of(err), "%u pages: %s",
			    config.n_pages, why.text);
	return 0;
}

static int open_ports(struct session *session, char (*specs)[MAX_SPEC_BYTES],
		      uint32_t n_workers, struct mr_reason *ret_error)
{
	const struct options *options = session->options;
	const struct mr_port_config config = { .size = sizeof(config),
					       .n_workers = n_workers,
					       .pool = session->pool };

	for (uint32_t p = 0; p < options->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_reason why;
		int err = mr_port_open(session->ctx, specs[p], &config,
				       &session->ports[p], &why);

		if (err < 0)
			return fail_port(ret_error, status_of(err),
					 options->specs[p], &why);
		session->n_ports++;
		mr_port_info(session->ports[p], &info);
		if (info.has_sg && options->burst < MR_MAX_SEGS)
			return fail(ret_error, 2,
				    "--burst %u: %s has frames of several "
				    "entries, a burst needs %d at least",
				    options->burst, info.name, MR_MAX_SEGS);
	}
	return 0;
}

static int make_workers(struct session *session, uint32_t n_most,
			struct mr_reason *ret_error)
{
	const struct options *options = session->options;
	uint32_t sends_to[MAX_PORTS], n_queues = 1;
	struct mr_workers_config config = {
		.size = sizeof(config),
		.pool = session->pool,
		.ports = session->ports,
		.n_ports = session->n_ports,
		.sends_to = sends_to,
		.cores = options->n_cores > 0 ? options->cores : NULL,
		.n_cores = options->n_cores,
		.handoff_entries = HANDOFF_ENTRIES,
		.idle = options->idle,
	};
	struct mr_reason why;
	int err;

	for (uint32_t p = 0; p < session->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(session->ports[p], &info);
		if (info.n_rxqs > n_queues)
			n_queues = info.n_rxqs;
		sends_to[p] = options->mode == MODE_LEARN ? MR_SENDS_TO_ANY :
			      options->mode == MODE_DROP  ? p :
							    forward_peer(p);
	}
	config.n_workers = options->n_workers;
	if (config.n_workers == 0 && options->n_cores == 0)
		config.n_workers = n_queues < n_most ? n_queues : n_most;
	err = mr_workers_create(session->ctx, &config, &session->workers, &why);
	if (err < 0)
		return fail(ret_error, status_of(err), "%s%s",
			    options->n_cores > 0 ? "--cores: " : "", why.text);
	while (mr_workers_get(session->workers, session->n_workers) != NULL)
		session->n_workers++;
	return 0;
}

static int make_forwarders(struct session *session, struct mr_reason *ret_error)
{
	const struct options *options = session->options;
	uint64_t seed = (uintptr_t)session; /* without getrandom: some */

	if (options->mode == MODE_LEARN) {
		if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
			seed ^= mr_ctx_now_ns(session->ctx);
		session->fdb =
			fdb_create(options->fdb_limit, options->age_s, seed);
		if (session->fdb == NULL)
			return fail(ret_error, 1, "no memory for %u addresses",
				    options->fdb_limit);
	}
	session->shared = (struct forward_shared){
		.options = options,
		.ctx = session->ctx,
		.base = mr_region_base(mr_pool_region(session->pool)),
		.fdb = session->fdb,
		.done_fd = session->done_fd,
	};
	session->forwarders = forward_create(&session->shared, session->workers,
					     session->n_workers);
	if (session->forwarders == NULL)
		return fail(ret_error, 1, "no memory for %u workers",
			    session->n_workers);
	return 0;
}

int session_open(struct session *session, const struct options *options,
		 struct mr_reason *ret_error)
{
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .opaque = (void *)options,
					      .log = print_log };
	const uint32_t n_most = most_workers(options);
	char specs[MAX_PORTS][MAX_SPEC_BYTES];
	int status;

	*session = (struct session){ .options = options };
	session->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->done_fd < 0)
		return fail(ret_error, 1, "eventfd: %s", strerror(errno));
	status = mr_ctx_create(&config, &session->ctx, ret_error) < 0;
	if (status == 0)
		status = specs_make(session->ctx, options, specs, ret_error);
	if (status == 0)
		status = make_pool(session, specs, n_most, ret_error);
	if (status == 0)
		status = open_ports(session, specs, n_most, ret_error);
	if (status == 0)
		status = make_workers(session, n_most, ret_error);
	if (status == 0)
		status = make_forwarders(session, ret_error);
	if (status != 0)
		session_close(session);
	return status;
}

/* True if a tx queue of the worker still has frames, or a ring to it. */
static bool flush(struct session *session, uint32_t w)
{
	struct mr_worker *worker = mr_workers_get(session->workers, w);
	bool has_left = mr_worker_serve(worker) > 0;

	for (uint32_t p = 0; p < session->n_ports; p++) {
		const struct mr_worker_route *route = &worker->routes[p];
		struct mr_tx_stats stats = { .size = sizeof(stats) };

		if (route->handoff != NULL)
			has_left |= mr_ring_spsc_count(route->handoff) > 0;
		if (route->txq == NULL)
			continue;
		mr_tx_burst(route->txq, worker->cache, NULL, 0);
		mr_txq_stats(route->txq, &stats);
		has_left |= stats.pending > 0;
	}
	return has_left;
}

/* What no tx queue took in time. */
static void drop_handed_off(struct session *session, uint32_t w)
{
	struct mr_worker *worker = mr_workers_get(session->workers, w);

	for (uint32_t p = 0; p < session->n_ports; p++) {
		struct mr_ring_spsc *ring = worker->routes[p].handoff;
		struct mr_frame frames[MR_BURST_MAX];
		uint32_t n;

		while (ring != NULL &&
		       (n = mr_ring_spsc_dequeue_burst(ring, frames,
						       MR_BURST_MAX)) > 0)
			forward_drop_at_end(&session->forwarders[w], frames, n);
	}
}

void session_drain(struct session *session)
{
	const uint64_t end_ns =
		mr_ctx_now_ns(session->ctx) + DRAIN_MS * 1000000ull;
	const struct timespec pause = { .tv_nsec = 1000000 };
	bool has_left = true;

	while (has_left && mr_ctx_now_ns(session->ctx) < end_ns) {
		has_left = false;
		for (uint32_t w = 0; w < session->n_workers; w++)
			has_left |= flush(session, w);
		if (has_left)
			nanosleep(&pause, NULL);
	}
	for (uint32_t w = 0; w < session->n_workers; w++)
		drop_handed_off(session, w);
}

void session_close_ports(struct session *session)
{
	for (uint32_t p = 0; p < session->n_ports; p++)
		mr_port_close(session->ports[p]);
	session->n_ports = 0;
	mr_workers_destroy(session->workers);
	session->workers = NULL;
}

void session_close(struct session *session)
{
	session_close_ports(session);
	forward_destroy(session->forwarders, session->n_workers);
	fdb_destroy(session->fdb);
	mr_pool_destroy(session->pool, NULL);
	mr_ctx_destroy(session->ctx);
	close(session->done_fd);
	*session = (struct session){ 0 };
}
