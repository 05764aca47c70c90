/* SPDX-License-Identifier: BSD-3-Clause */
/* Open pool, ports and workers in this order, close them in reverse. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "dataplane.h"
#include "text.h"

enum {
	HANDOFF_ENTRIES = 1024, /* unless configured */
	MAX_AUTO_WORKERS = 16,  /* more only on request: each costs pages */
};

static void print_log(void *opaque, enum mr_log_level level, const char *line)
{
	const struct dataplane *plane = opaque;
	static const char *const names[] = { "", "error", "warning", "info",
					     "debug" };

	/* mrctl sets it while other threads log. */
	if (level <= __atomic_load_n(&plane->log_level, __ATOMIC_RELAXED))
		print_error("%s: %s: %s", plane->program, names[level], line);
}

/* An error in a spec is a usage error. */
static int status_of(int err)
{
	return err == -EINVAL ? 2 : 1;
}

/* The most workers, as far as known before the ports are open. */
static uint32_t most_workers(const struct dataplane_config *config)
{
	cpu_set_t set;
	uint32_t n = 1;

	if (config->n_workers > 0)
		return config->n_workers;
	if (config->n_cores > 0)
		return config->n_cores;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = (uint32_t)CPU_COUNT(&set);
	if (config->port.n_queues > 0 && n > config->port.n_queues)
		n = config->port.n_queues;
	return n < MAX_AUTO_WORKERS ? n : MAX_AUTO_WORKERS;
}

static uint32_t handoff_entries(const struct dataplane_config *config)
{
	return config->handoff_entries > 0 ? config->handoff_entries :
					     HANDOFF_ENTRIES;
}

/*
 * Pages per magazine: the default for such a pool, if what its caches may hold
 * then leaves n_others.
 */
static uint32_t fit_magazines(uint32_t n_pages, uint64_t n_others,
			      uint32_t n_workers)
{
	uint32_t n = mr_magazine_default_pages(n_pages, n_workers);

	while (n > MR_MAGAZINE_PAGES &&
	       n_others + (uint64_t)n_workers * mr_cache_max_pages(n) > n_pages)
		n /= 2;
	return n;
}

/* Count the pages that ports and caches need with the smallest magazines. */
static int count_pages(struct dataplane *plane,
		       const struct dataplane_config *config,
		       char (*specs)[MAX_SPEC_BYTES], uint32_t n_workers,
		       uint32_t *ret_n, struct mr_reason *ret_error)
{
	struct mr_pool_config pool = { .size = sizeof(pool),
				       .n_pages = config->n_kept_pages,
				       .page_bytes = config->page_bytes,
				       .magazine_pages = MR_MAGAZINE_PAGES };
	struct mr_reason why;

	/* One port at a time, so that an error names the port. */
	for (uint32_t p = 0; p < config->n_ports; p++) {
		const char *spec = specs[p];
		const int err = mr_pool_size_for(plane->ctx, &spec, 1,
						 n_workers,
						 p == 0 ? n_workers : 0, &pool,
						 &why);

		if (err < 0)
			return fail_port(ret_error, status_of(err),
					 config->specs[p], &why);
	}
	*ret_n = pool.n_pages;
	return 0;
}

static int make_pool(struct dataplane *plane,
		     const struct dataplane_config *config,
		     char (*specs)[MAX_SPEC_BYTES], uint32_t n_workers,
		     struct mr_reason *ret_error)
{
	struct mr_pool_config pool = { .size = sizeof(pool),
				       .n_pages = config->n_pages,
				       .page_bytes = config->page_bytes,
				       .safety = config->safety,
				       .name = config->program,
				       /* For queues that are added later. */
				       .is_elastic = config->n_pages == 0 };
	const uint32_t n_caches =
		n_workers * mr_cache_max_pages(MR_MAGAZINE_PAGES);
	uint64_t n_rings = 0, n_others;
	struct mr_reason why;
	uint32_t n_least = 0;
	int err;

	err = count_pages(plane, config, specs, n_workers, &n_least, ret_error);
	if (err != 0)
		return err;
	if (n_workers > 1)
		n_rings = (uint64_t)n_workers * config->n_ports *
			  handoff_entries(config);
	if (config->n_pages > 0 && config->n_pages < n_least)
		return fail_with(
			ret_error, 2,
			"--pool-pages %u is too small: the ports' rings, "
			"%u caches and bursts need %u",
			config->n_pages, n_workers, n_least);
	if (n_least + n_rings > UINT32_MAX)
		return fail_with(ret_error, 2, "%llu pages are too many",
				 (unsigned long long)(n_least + n_rings));
	n_others = n_least - n_caches + n_rings;
	if (pool.n_pages == 0) {
		/* An eighth more at most, if larger magazines need it. */
		pool.n_pages = (uint32_t)(n_least + n_rings);
		pool.magazine_pages =
			fit_magazines(pool.n_pages + pool.n_pages / 8, n_others,
				      n_workers);
		pool.n_pages = (uint32_t)n_others +
			       n_workers *
				       mr_cache_max_pages(pool.magazine_pages);
	} else {
		pool.magazine_pages =
			fit_magazines(pool.n_pages, n_others, n_workers);
	}
	plane->n_pages = pool.n_pages;
	err = mr_pool_create(plane->ctx, &pool, &plane->pool, &why);
	if (err < 0)
		return fail_with(ret_error, status_of(err), "%u pages: %s",
				 pool.n_pages, why.text);
	return 0;
}

static int open_ports(struct dataplane *plane,
		      const struct dataplane_config *config,
		      char (*specs)[MAX_SPEC_BYTES], uint32_t n_workers,
		      struct mr_reason *ret_error)
{
	const struct mr_port_config port = { .size = sizeof(port),
					     .n_workers = n_workers,
					     .pool = plane->pool };

	for (uint32_t p = 0; p < config->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_reason why;
		int err = mr_port_open(plane->ctx, specs[p], &port,
				       &plane->ports[p], &why);

		if (err < 0)
			return fail_port(ret_error, status_of(err),
					 config->specs[p], &why);
		plane->n_ports++;
		memcpy(plane->specs[p], specs[p], sizeof(plane->specs[p]));
		mr_port_info(plane->ports[p], &info);
		if (info.has_sg && config->burst < MR_MAX_SEGS)
			return fail_with(
				ret_error, 2,
				"--burst %u: frames of %s have several "
				"entries, so a burst needs at least %d",
				config->burst, info.name, MR_MAX_SEGS);
		if (info.offloads & MR_OFFLOAD_LRO && !config->takes_meta)
			return fail_with(ret_error, 2,
					 "%s merges received segments, which "
					 "%s does not support; open the port "
					 "without tso",
					 info.name, config->program);
		plane->has_meta |=
			config->takes_meta &&
			info.offloads & (MR_OFFLOAD_LRO | MR_OFFLOAD_VLAN_RX);
	}
	return 0;
}

static int make_workers(struct dataplane *plane,
			const struct dataplane_config *config, uint32_t n_most,
			struct mr_reason *ret_error)
{
	uint32_t n_queues = 1;
	struct mr_workers_config workers = {
		.size = sizeof(workers),
		.n_workers = config->n_workers,
		.pool = plane->pool,
		.ports = plane->ports,
		.n_ports = plane->n_ports,
		.sends_to = config->sends_to,
		.cores = config->n_cores > 0 ? config->cores : NULL,
		.n_cores = config->n_cores,
		.handoff_entries = handoff_entries(config),
		.idle = config->idle,
		.has_meta = plane->has_meta,
		.may_be_fewer = config->may_be_fewer,
	};
	struct mr_reason why;
	int err;

	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(plane->ports[p], &info);
		if (info.n_rxqs > n_queues)
			n_queues = info.n_rxqs;
	}
	if (workers.n_workers == 0 && config->n_cores == 0)
		workers.n_workers = n_queues < n_most ? n_queues : n_most;
	err = mr_workers_create(plane->ctx, &workers, &plane->workers, &why);
	if (err < 0)
		return fail_with(ret_error, status_of(err), "%s%s",
				 config->n_cores > 0 ? "--cores: " : "",
				 why.text);
	while (mr_workers_get(plane->workers, plane->n_workers) != NULL)
		plane->n_workers++;
	return 0;
}

/* A queue has several fds, and the soft limit is low because of select(). */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int dataplane_open(struct dataplane *plane,
		   const struct dataplane_config *config,
		   struct mr_reason *ret_error)
{
	const struct mr_ctx_config ctx = { .size = sizeof(ctx),
					   .opaque = plane,
					   .log = print_log };
	const uint32_t n_most = most_workers(config);
	char specs[MAX_PORTS][MAX_SPEC_BYTES];
	int status;

	*plane = (struct dataplane){ .program = config->program,
				     .log_level = config->log_level,
				     .idle = config->idle,
				     .has_filter =
					     config->port.punt[0] != '\0' };
	if (config->n_ports > MAX_PORTS)
		return fail_with(ret_error, 2, "%u ports are more than %d",
				 config->n_ports, MAX_PORTS);
	raise_file_limit();
	status = mr_ctx_create(&ctx, &plane->ctx, ret_error) < 0;
	if (status == 0)
		status = specs_make(plane->ctx, config->specs, config->n_ports,
				    &config->port, specs, ret_error);
	if (status == 0)
		status = make_pool(plane, config, specs, n_most, ret_error);
	if (status == 0)
		status = open_ports(plane, config, specs, n_most, ret_error);
	if (status == 0)
		status = make_workers(plane, config, n_most, ret_error);
	if (status != 0)
		dataplane_close(plane);
	return status;
}

void dataplane_close_ports(struct dataplane *plane)
{
	for (uint32_t p = 0; p < plane->n_ports; p++)
		mr_port_close(plane->ports[p]);
	plane->n_ports = 0;
	mr_workers_destroy(plane->workers);
	plane->workers = NULL;
}

void dataplane_close(struct dataplane *plane)
{
	dataplane_close_ports(plane);
	mr_pool_destroy(plane->pool, NULL);
	mr_ctx_destroy(plane->ctx);
	*plane = (struct dataplane){ 0 };
}

void dataplane_set_idle(struct dataplane *plane, enum mr_idle_mode idle)
{
	plane->idle = idle;
	mr_workers_set_idle(plane->workers, idle);
}

void dataplane_set_log(struct dataplane *plane, enum mr_log_level level)
{
	__atomic_store_n(&plane->log_level, level, __ATOMIC_RELAXED);
}

int dataplane_set_port_punt(struct dataplane *plane, uint32_t p,
			    const char *spec, const char *filter,
			    struct mr_reason *ret_error)
{
	char expression[MAX_PUNT_BYTES + sizeof("not ()")] = "greater 0";

	/* The others were opened without a filter. */
	if (mr_port_takes_option(plane->ctx, spec, "filter", ret_error) <= 0)
		return 0;
	if (filter[0] != '\0')
		snprintf(expression, sizeof(expression), "not (%s)", filter);
	return mr_port_set_filter(plane->ports[p], expression, ret_error);
}

int dataplane_set_punt(struct dataplane *plane, const char *const *specs,
		       const char *before, const char *next,
		       struct mr_reason *ret_error)
{
	struct mr_reason unused;
	uint32_t p = 0;
	int err = 0;

	for (; p < plane->n_ports && err == 0; p++)
		err = dataplane_set_port_punt(plane, p, specs[p], next,
					      ret_error);
	for (p = err < 0 ? p - 1 : 0; p > 0; p--)
		(void)dataplane_set_port_punt(plane, p - 1, specs[p - 1],
					      before, &unused);
	return err;
}

void dataplane_print_port(const struct mr_port_info *info)
{
	print_error("port %s  mode %s%s%s%s, %u rx, %u tx queues", info->name,
		    info->mode, info->why[0] ? " (" : "", info->why,
		    info->why[0] ? ")" : "", info->n_rxqs, info->n_txqs);
}

void dataplane_print_map(const struct dataplane *plane)
{
	char line[1024];

	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(plane->ports[p], &info);
		dataplane_print_port(&info);
	}
	for (uint32_t i = 0;
	     mr_workers_line(plane->workers, i, line, sizeof(line)) == 0; i++)
		print_error("%s", line);
}
