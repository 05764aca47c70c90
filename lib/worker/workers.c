/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: create from a core map, start, stop, join. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "worker/worker.h"

/* "0 1 2 5": the available cores. */
static void list_cores(const struct mri_core *allowed, uint32_t n, char *text,
		       size_t n_bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < n && at < n_bytes; i++)
		at += (size_t)snprintf(text + at, n_bytes - at, " %u",
				       allowed[i].id);
}

/* The caller's own list: each must be available, and listed once. */
static int take_cores(struct mri_core_map *map, const uint32_t *cores,
		      const struct mri_core *allowed, uint32_t n_allowed,
		      struct mr_reason *reterr_reason)
{
	for (uint32_t w = 0; w < map->n_workers; w++) {
		const struct mri_core *found = NULL;
		char text[200];

		for (uint32_t i = 0; i < n_allowed; i++)
			if (allowed[i].id == cores[w])
				found = &allowed[i];
		if (found == NULL) {
			list_cores(allowed, n_allowed, text, sizeof(text));
			return mr_fail(reterr_reason, -EINVAL,
				       "core %u does not exist or may not be "
				       "used; this process may use:%s",
				       cores[w], text);
		}
		for (uint32_t v = 0; v < w; v++)
			if (map->cores[v].id == cores[w])
				return mr_fail(
					reterr_reason, -EINVAL,
					"core %u is listed twice; two workers "
					"on one core would wait for each other",
					cores[w]);
		map->cores[w] = *found;
	}
	return 0;
}

/* Warn about processes that poll where a worker will run. */
static void warn_of_pollers(const struct mr_workers *workers,
			    const struct mri_poller *pollers, uint32_t n)
{
	for (uint32_t w = 0; w < workers->n_workers; w++) {
		const uint32_t core = workers->map.cores[w].id;
		int32_t last_pid = 0; /* one line per process */

		for (uint32_t i = 0; i < n; i++) {
			if (pollers[i].core != core ||
			    pollers[i].pid == last_pid)
				continue;
			last_pid = pollers[i].pid;
			mr_log(workers->ctx, MR_LOG_WARNING,
			       "worker %u shares core %u with %s (process %d), "
			       "which polls there: frames wait for "
			       "milliseconds; give each its own core",
			       w, core, pollers[i].name, last_pid);
		}
	}
}

/* One per listed core, else one per rx queue of the port with the most. */
static uint32_t count_workers(const struct mr_workers *workers,
			      const struct mr_workers_config *config,
			      uint32_t n_cores, uint32_t n_free)
{
	uint32_t n = 1; /* if ports only send */

	if (config->n_workers > n_free && config->n_cores == 0 &&
	    config->may_be_fewer)
		return n_free > 0 ? n_free : 1;
	if (config->n_workers > 0)
		return config->n_workers;
	if (config->n_cores > 0)
		return config->n_cores;
	for (uint32_t p = 0; p < workers->n_ports; p++)
		if (workers->map_ports[p].n_rxqs > n)
			n = mri_min_u32(workers->map_ports[p].n_rxqs,
					mri_min_u32(n_cores, MR_WORKERS_MAX));
	return n;
}

/* Choose how many workers, and where. */
static int place_workers(struct mr_workers *workers,
			 const struct mr_workers_config *config,
			 struct mr_reason *reterr_reason)
{
	struct mri_core_map *map = &workers->map;
	struct mri_core allowed[MRI_MAX_CORES];
	struct mri_poller pollers[MRI_MAX_POLLERS];
	const uint32_t n_allowed = mri_cores_allowed(allowed, MRI_MAX_CORES);
	const uint32_t n_cores =
		config->n_cores > 0 ? config->n_cores : n_allowed;
	uint32_t n, n_pollers, n_free = 0;
	int err = 0;

	if (n_allowed == 0)
		return mr_fail(reterr_reason, -EIO, "sched_getaffinity: %s",
			       mr_strerror(errno));
	for (uint32_t p = 0; p < workers->n_ports; p++)
		mri_mark_irq_cores("", workers->map_ports[p].name, allowed,
				   n_allowed);
	n_pollers = mri_find_pollers(pollers, MRI_MAX_POLLERS);
	for (uint32_t i = 0; i < n_allowed; i++) {
		for (uint32_t k = 0; k < n_pollers; k++)
			allowed[i].n_pollers +=
				pollers[k].core == allowed[i].id;
		n_free += allowed[i].n_pollers == 0;
	}
	n = count_workers(workers, config, n_cores, n_free);
	if (n > n_cores)
		return mr_fail(
			reterr_reason, -EINVAL,
			"%u workers need %u cores, but only %u are available",
			n, n, n_cores);
	if (n > MR_WORKERS_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u workers: at most %d are supported", n,
			       MR_WORKERS_MAX);
	workers->n_workers = map->n_workers = n;
	if (config->n_cores > 0)
		err = take_cores(map, config->cores, allowed, n_allowed,
				 reterr_reason);
	else
		mri_pick_cores(allowed, n_allowed, map->ports, map->n_ports,
			       map->cores, n);
	if (err == 0)
		warn_of_pollers(workers, pollers, n_pollers);
	return err;
}

static int check_config(const struct mr_workers_config *config,
			struct mr_reason *reterr_reason)
{
	if (config->pool == NULL || config->ports == NULL ||
	    config->n_ports == 0 || config->n_ports > MRI_MAX_PORTS)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_workers_config: needs a pool and 1 to %d "
			       "ports",
			       MRI_MAX_PORTS);
	if ((config->cores == NULL) != (config->n_cores == 0))
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_workers_config: set both cores and n_cores, "
			       "or neither");
	if (config->idle > MR_IDLE_INTERRUPT)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_workers_config: no such idle mode: %d",
			       (int)config->idle);
	for (uint32_t p = 0; p < config->n_ports && config->sends_to; p++)
		if (config->sends_to[p] >= config->n_ports &&
		    config->sends_to[p] != MR_SENDS_TO_ANY)
			return mr_fail(reterr_reason, -EINVAL,
				       "mr_workers_config: sends_to[%u] is %u, "
				       "but there are %u ports",
				       p, config->sends_to[p], config->n_ports);
	return 0;
}

/* Read what may change while the ports are open. */
static void read_ports(struct mr_workers *workers)
{
	for (uint32_t p = 0; p < workers->n_ports; p++) {
		struct mr_port_info *info = &workers->infos[p];
		struct mri_map_port *map = &workers->map_ports[p];

		info->size = sizeof(*info);
		mr_port_info(workers->ports[p], info);
		map->name = info->name;
		map->n_rxqs = info->n_rxqs;
		map->n_txqs = info->n_txqs;
		map->numa_node = info->numa_node;
	}
}

/* Describe the ports for the map. */
static int describe_ports(struct mr_workers *workers,
			  const struct mr_workers_config *config)
{
	const uint32_t n = config->n_ports;
	struct mr_ctx *ctx = workers->ctx;

	workers->n_ports = workers->map.n_ports = n;
	workers->ports = mr_alloc(ctx, 0, n * sizeof(workers->ports[0]));
	workers->infos = mr_alloc(ctx, 0, n * sizeof(workers->infos[0]));
	workers->map_ports =
		mr_alloc(ctx, 0, n * sizeof(workers->map_ports[0]));
	if (workers->ports == NULL || workers->infos == NULL ||
	    workers->map_ports == NULL)
		return -ENOMEM;
	for (uint32_t p = 0; p < n; p++) {
		workers->ports[p] = config->ports[p];
		workers->map_ports[p].sends_to = config->sends_to != NULL ?
							 config->sends_to[p] :
							 MR_SENDS_TO_ANY;
	}
	workers->map.ports = workers->map_ports;
	read_ports(workers);
	return 0;
}

/* Turn the map's entries for a worker into arrays of queues. */
static int give_queues(struct mr_workers *workers, struct mri_worker *worker)
{
	const struct mri_core_map *map = &workers->map;
	const uint32_t n_rxqs = map->first_rxq[map->n_ports];
	const uint32_t n_inbounds = workers->n_workers * map->n_ports;
	struct mr_worker_rxq *rxqs =
		mr_alloc(workers->ctx, 0, (n_rxqs + 1) * sizeof(rxqs[0]));
	struct mr_worker_route *routes =
		mr_alloc(workers->ctx, 0, map->n_ports * sizeof(routes[0]));

	worker->base.rxqs = rxqs;
	worker->base.routes = routes;
	worker->txqs = mr_alloc(workers->ctx, 0,
				map->n_ports * sizeof(worker->txqs[0]));
	worker->inbounds = mr_alloc(workers->ctx, 0,
				    n_inbounds * sizeof(worker->inbounds[0]));
	if (rxqs == NULL || routes == NULL || worker->txqs == NULL ||
	    worker->inbounds == NULL)
		return -ENOMEM;
	for (uint32_t p = 0; p < map->n_ports; p++) {
		const struct mri_map_route *route =
			mri_map_route(map, worker->base.idx, p);

		for (uint32_t i = map->first_rxq[p]; i < map->first_rxq[p + 1];
		     i++)
			if (map->rx_owner[i] == worker->base.idx)
				rxqs[worker->base.n_rxqs++] =
					(struct mr_worker_rxq){
						mr_port_rxq(
							workers->ports[p],
							i - map->first_rxq[p]),
						p, i - map->first_rxq[p]
					};
		routes[p].queue_idx = route->queue_idx;
		routes[p].owner_idx = route->owner;
		if (route->is_own) {
			routes[p].txq = mr_port_txq(workers->ports[p],
						    route->queue_idx);
			worker->txqs[worker->n_txqs++] = routes[p].txq;
		}
	}
	return 0;
}

static int make_workers(struct mr_workers *workers,
			const struct mr_workers_config *config,
			struct mr_reason *reterr_reason)
{
	int err;

	workers->workers =
		mr_alloc(workers->ctx, 0,
			 workers->n_workers * sizeof(workers->workers[0]));
	if (workers->workers == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < workers->n_workers; w++) {
		struct mri_worker *worker = &workers->workers[w];

		worker->wake_fd = worker->epoll_fd = -1;
		worker->base.workers = workers;
		worker->base.idx = w;
		worker->base.core = workers->map.cores[w].id;
		worker->base.numa_node = workers->map.cores[w].numa_node;
		worker->base.n_ports = workers->n_ports;
	}
	for (uint32_t w = 0; w < workers->n_workers; w++) {
		struct mri_worker *worker = &workers->workers[w];

		err = give_queues(workers, worker);
		if (err < 0)
			return err;
		err = mr_cache_create(config->pool, &worker->base.cache,
				      reterr_reason);
		if (err == 0)
			err = mri_idle_init(worker, reterr_reason);
		if (err < 0)
			return err;
	}
	return mri_handoff_init(workers, reterr_reason);
}

int mr_workers_create(struct mr_ctx *ctx,
		      const struct mr_workers_config *config,
		      struct mr_workers **ret_workers,
		      struct mr_reason *reterr_reason)
{
	struct mr_reason why = { "no memory for workers" };
	struct mr_workers_config c;
	struct mr_workers *workers;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_workers_config",
			     reterr_reason);
	if (err == 0)
		err = check_config(&c, reterr_reason);
	if (err < 0)
		return err;
	workers = mr_alloc(ctx, 0, sizeof(*workers));
	if (workers == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for workers");
	workers->ctx = ctx;
	pthread_mutex_init(&workers->starting, NULL);
	workers->idle = c.idle;
	workers->has_meta = c.has_meta != 0;
	workers->n_handoff_entries =
		c.handoff_entries > 0 ? c.handoff_entries : MRI_HANDOFF_ENTRIES;

	/* Steps that fail without a reason ran out of memory. */
	err = describe_ports(workers, &c);
	if (err == 0)
		err = place_workers(workers, &c, &why);
	if (err == 0)
		err = mri_core_map_init(&workers->map, ctx);
	if (err == 0)
		err = make_workers(workers, &c, &why);
	if (err < 0) {
		mr_workers_destroy(workers);
		return mr_fail(reterr_reason, err, "%s", why.text);
	}
	*ret_workers = workers;
	return 0;
}

static void take_queues(struct mri_worker *worker)
{
	const struct mr_ctx *ctx = worker->base.workers->ctx;

	mr_free(ctx, worker->inbounds);
	mr_free(ctx, worker->txqs);
	mr_free(ctx, (void *)worker->base.routes);
	mr_free(ctx, (void *)worker->base.rxqs);
	worker->inbounds = NULL;
	worker->txqs = NULL;
	worker->base.routes = NULL;
	worker->base.rxqs = NULL;
	worker->base.n_rxqs = worker->n_txqs = 0;
}

int mr_workers_reassign(struct mr_workers *workers,
			struct mr_reason *reterr_reason)
{
	int err;

	for (uint32_t w = 0; w < workers->n_workers; w++)
		if (__atomic_load_n(&workers->workers[w].is_taken,
				    __ATOMIC_RELAXED))
			return mr_fail(reterr_reason, -EBUSY,
				       "worker %u has a thread", w);
	mri_handoff_fini(workers);
	mri_core_map_fini(&workers->map, workers->ctx);
	read_ports(workers);
	err = mri_core_map_init(&workers->map, workers->ctx);
	for (uint32_t w = 0; w < workers->n_workers && err == 0; w++) {
		struct mri_worker *worker = &workers->workers[w];

		take_queues(worker);
		mri_idle_fini(worker);
		err = give_queues(workers, worker);
		if (err == 0)
			err = mri_idle_init(worker, NULL);
	}
	if (err == 0)
		err = mri_handoff_init(workers, NULL);
	return err == 0 ? 0 :
			  mr_fail(reterr_reason, err,
				  "no memory or file descriptors for the "
				  "workers' new queues");
}

void mr_workers_destroy(struct mr_workers *workers)
{
	if (workers == NULL)
		return;
	/* The last user may have been another thread. */
	for (uint32_t w = 0; workers->workers && w < workers->n_workers; w++) {
		struct mr_worker *worker = &workers->workers[w].base;

		if (worker->cache != NULL)
			worker->cache = mr_cache_adopt(worker->cache);
	}
	if (workers->workers != NULL)
		mri_handoff_fini(workers);
	for (uint32_t w = 0; workers->workers && w < workers->n_workers; w++) {
		struct mri_worker *worker = &workers->workers[w];

		mri_idle_fini(worker);
		mr_cache_destroy(worker->base.cache);
		take_queues(worker);
	}
	mri_core_map_fini(&workers->map, workers->ctx);
	mr_free(workers->ctx, workers->workers);
	mr_free(workers->ctx, workers->map_ports);
	mr_free(workers->ctx, workers->infos);
	mr_free(workers->ctx, workers->ports);
	pthread_mutex_destroy(&workers->starting);
	mr_free(workers->ctx, workers);
}

struct mr_worker *mr_workers_get(struct mr_workers *workers, uint32_t i)
{
	return i < workers->n_workers ? &workers->workers[i].base : NULL;
}

int mr_workers_line(const struct mr_workers *workers, uint32_t i,
		    char *ret_text, uint32_t n_bytes)
{
	if (i >= workers->n_workers)
		return -ENOENT;
	mri_core_map_line(&workers->map, i, ret_text, n_bytes);
	return 0;
}

int mr_worker_stats(const struct mr_worker *base, struct mr_worker_stats *stats)
{
	const struct mr_worker_stats *s = &mri_worker_of(base)->stats;
	const struct mr_worker_stats copy = {
		.busy_ns = mr_counter_get(&s->busy_ns),
		.idle_ns = mr_counter_get(&s->idle_ns),
		.rounds = mr_counter_get(&s->rounds),
		.empty_rounds = mr_counter_get(&s->empty_rounds),
		.sleeps = mr_counter_get(&s->sleeps),
		.asleep_ns = mr_counter_get(&s->asleep_ns),
		.handed_off = mr_counter_get(&s->handed_off),
		.handoff_full = mr_counter_get(&s->handoff_full),
	};

	return mri_fill_sized(stats, &copy, sizeof(copy));
}

void mri_worker_add_stats(struct mri_worker *worker,
			  const struct mr_worker_stats *stats)
{
	struct mr_worker_stats *to = &worker->stats;

	to->busy_ns += stats->busy_ns;
	to->idle_ns += stats->idle_ns;
	to->rounds += stats->rounds;
	to->empty_rounds += stats->empty_rounds;
	to->sleeps += stats->sleeps;
	to->handed_off += stats->handed_off;
	to->handoff_full += stats->handoff_full;
	to->asleep_ns += stats->asleep_ns;
}
