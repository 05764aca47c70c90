/* SPDX-License-Identifier: BSD-3-Clause */
/* Open context, pool, ports and workers in this order; close in reverse. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include <millrace/port.h>
#include <millrace/port_device.h>

#include "dataplane/dataplane.h"
#include "pool/hand_over.h"
#include "port/hand_over.h"

enum {
	MAX_WORKERS = 16, /* more only on request: each costs pages */
	CLOSE_MS = 1000,  /* for draining */
};

int mri_dataplane_fail_port(int err, const char *spec,
			    const struct mr_reason *why,
			    struct mr_reason *reterr_reason)
{
	const size_t n = strcspn(spec, ",");

	if (memmem(why->text, strlen(why->text), spec, n) != NULL)
		return mr_fail(reterr_reason, err, "%s", why->text);
	return mr_fail(reterr_reason, err, "%.*s: %s", (int)n, spec, why->text);
}

/* Count the specs, and refuse what would fail only after ports are open. */
static int check_config(struct mr_dataplane_config *config,
			struct mr_reason *reterr_reason)
{
	const uint32_t n_specs = config->n_specs;
	uint32_t n = 0;

	while (config->specs != NULL && n <= MRI_MAX_PORTS &&
	       (n_specs == 0 || n < n_specs) && config->specs[n] != NULL)
		n++;
	if (n == 0)
		return mr_fail(reterr_reason, -EINVAL,
			       "no ports: mr_dataplane_config.specs names 1 to "
			       "%d, such as xdp:eth0",
			       MRI_MAX_PORTS);
	if (n > MRI_MAX_PORTS)
		return mr_fail(reterr_reason, -EINVAL,
			       "more than %d ports; open several data planes",
			       MRI_MAX_PORTS);
	if (n < n_specs)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_dataplane_config.specs[%u] is NULL, but "
			       "n_specs is %u",
			       n, n_specs);
	if (config->n_workers > MR_WORKERS_MAX ||
	    config->n_cores > MR_WORKERS_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u workers: at most %d are supported",
			       config->n_workers > 0 ? config->n_workers :
						       config->n_cores,
			       MR_WORKERS_MAX);
	config->n_specs = n;
	return 0;
}

/* The most workers, as far as known before the ports are open. */
static uint32_t most_workers(const struct mr_dataplane_config *config)
{
	cpu_set_t set;
	uint32_t n = 1;

	if (config->n_workers > 0)
		return config->n_workers;
	if (config->n_cores > 0)
		return config->n_cores;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = (uint32_t)CPU_COUNT(&set);
	return mri_min_u32(mri_min_u32(n, MR_WORKERS_MAX),
			   config->max_workers > 0 ? config->max_workers :
						     MAX_WORKERS);
}

static int make_pool(struct mri_dataplane *dp,
		     const struct mr_dataplane_config *config,
		     uint32_t n_workers, struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason)
{
	struct mr_pool_config pool = { .size = sizeof(pool),
				       .page_bytes = config->page_bytes,
				       .headroom_bytes = config->headroom_bytes,
				       .tailroom_bytes = config->tailroom_bytes,
				       .safety = config->safety,
				       .name = config->name };
	struct mr_reason why = { "" };
	int err = mri_dataplane_size(dp->base.ctx, config, n_workers, &pool,
				     reterr_reason);

	if (err < 0)
		return err;
	if (parcel != NULL) {
		err = mri_pool_take(dp->base.ctx, &pool, parcel, &dp->base.pool,
				    reterr_reason);
		if (err == 0)
			dp->base.n_pages = mri_pool_population(dp->base.pool);
		return err;
	}
	dp->base.n_pages = pool.n_pages;
	err = mr_pool_create(dp->base.ctx, &pool, &dp->base.pool, &why);
	if (err < 0)
		return mr_fail(reterr_reason, err, "%u pages: %s", pool.n_pages,
			       why.text);
	return 0;
}

static int open_ports(struct mri_dataplane *dp,
		      const struct mr_dataplane_config *config,
		      uint32_t n_workers, struct mr_parcel *parcel,
		      struct mr_reason *reterr_reason)
{
	const struct mr_port_config port = { .size = sizeof(port),
					     .n_workers = n_workers,
					     .pool = dp->base.pool };

	for (uint32_t p = 0; p < config->n_specs; p++) {
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_reason why;
		const int err =
			parcel == NULL ?
				mr_port_open(dp->base.ctx, config->specs[p],
					     &port, &dp->ports[p], &why) :
				mri_port_take(dp->base.ctx, config->specs[p],
					      &port, p, parcel, &dp->ports[p],
					      &why);

		if (err < 0)
			return mri_dataplane_fail_port(err, config->specs[p],
						       &why, reterr_reason);
		dp->base.n_ports++;
		mr_port_info(dp->ports[p], &info);
		if (info.offloads & MR_OFFLOAD_LRO && !config->takes_meta)
			return mr_fail(reterr_reason, -EINVAL,
				       "%s merges received segments, which "
				       "this program does not support; open "
				       "the port without tso",
				       info.name);
		if (info.offloads & (MR_OFFLOAD_LRO | MR_OFFLOAD_VLAN_RX) &&
		    config->takes_meta)
			dp->base.has_meta = 1;
	}
	return 0;
}

/* Refuse a worker with nothing to do: it would take a core. */
static int check_worker(const struct mri_dataplane *dp,
			const struct mr_worker *worker,
			struct mr_reason *reterr_reason)
{
	uint32_t n_queues = worker->n_rxqs;

	for (uint32_t p = 0; p < worker->n_ports; p++)
		n_queues += worker->routes[p].txq != NULL;
	if (n_queues > 0)
		return 0;
	return mr_fail(
		reterr_reason, -EINVAL,
		"worker %u of %u would have no queue; use fewer workers, "
		"or open the ports with more queues",
		worker->idx, dp->base.n_workers);
}

static int make_workers(struct mri_dataplane *dp,
			const struct mr_dataplane_config *config,
			uint32_t n_most, struct mr_reason *reterr_reason)
{
	struct mr_workers_config workers = {
		.size = sizeof(workers),
		.n_workers = config->n_workers,
		.pool = dp->base.pool,
		.ports = dp->ports,
		.n_ports = dp->base.n_ports,
		.sends_to = config->sends_to,
		.cores = config->cores,
		.n_cores = config->n_cores,
		.handoff_entries = config->handoff_entries,
		.idle = config->idle,
		.has_meta = dp->base.has_meta,
		.may_be_fewer = config->may_be_fewer,
	};
	uint32_t n_queues = 1;
	int err;

	for (uint32_t p = 0; p < dp->base.n_ports; p++) {
		struct mr_port_info info = { .size = sizeof(info) };

		mr_port_info(dp->ports[p], &info);
		if (info.n_rxqs > n_queues)
			n_queues = info.n_rxqs;
	}
	if (workers.n_workers == 0 && config->n_cores == 0)
		workers.n_workers = mri_min_u32(n_queues, n_most);
	err = mr_workers_create(dp->base.ctx, &workers, &dp->base.workers,
				reterr_reason);
	if (err < 0)
		return err;
	while (mr_workers_get(dp->base.workers, dp->base.n_workers) != NULL)
		dp->base.n_workers++;
	for (uint32_t w = 0; w < dp->base.n_workers && err == 0; w++)
		if (!config->may_idle)
			err = check_worker(dp,
					   mr_workers_get(dp->base.workers, w),
					   reterr_reason);
	return err;
}

int mri_dataplane_make(const struct mr_dataplane_config *caller_config,
		       struct mr_parcel *parcel, struct mr_dataplane **ret_dp,
		       struct mr_reason *reterr_reason)
{
	struct mr_dataplane_config config;
	struct mri_dataplane *dp;
	struct mr_ctx *ctx;
	uint32_t n_most;
	int err;

	err = mri_copy_sized(&config, caller_config, sizeof(config),
			     "mr_dataplane_config", reterr_reason);
	if (err == 0)
		err = check_config(&config, reterr_reason);
	ctx = config.ctx;
	if (err == 0 && ctx == NULL)
		err = mr_ctx_create(NULL, &ctx, reterr_reason);
	if (err < 0)
		return err;
	dp = mr_alloc(ctx, 0, sizeof(*dp));
	if (dp == NULL) {
		if (config.ctx == NULL)
			mr_ctx_destroy(ctx);
		return mr_fail(reterr_reason, -ENOMEM, "no memory");
	}
	dp->base.ctx = ctx;
	dp->owns_ctx = config.ctx == NULL;
	dp->base.ports = dp->ports;
	dp->hand = (struct mri_hand_over){ .socket_fd = -1, .owner_fd = -1 };
	n_most = most_workers(&config);
	err = make_pool(dp, &config, n_most, parcel, reterr_reason);
	if (err == 0)
		err = open_ports(dp, &config, n_most, parcel, reterr_reason);
	if (err == 0)
		err = make_workers(dp, &config, n_most, reterr_reason);
	if (err < 0)
		(void)mr_dataplane_close(&dp->base, NULL);
	else
		*ret_dp = &dp->base;
	return err;
}

int mr_dataplane_open(const struct mr_dataplane_config *config,
		      struct mr_dataplane **ret_dp,
		      struct mr_reason *reterr_reason)
{
	return mri_dataplane_make(config, NULL, ret_dp, reterr_reason);
}

void mr_dataplane_close_ports(struct mr_dataplane *base)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_workers *workers = base->workers;

	(void)mri_dataplane_end_threads(dp);
	if (dp->is_attached)
		mr_worker_detach(mr_workers_get(workers, 0));
	dp->is_attached = false;
	for (uint32_t p = 0; p < base->n_ports; p++)
		mr_port_close(dp->ports[p]);
	/* First: a signal handler may call mr_dataplane_stop(). */
	__atomic_store_n(&base->workers, NULL, __ATOMIC_SEQ_CST);
	base->n_ports = base->n_workers = 0;
	mr_workers_destroy(workers);
}

int mr_dataplane_close(struct mr_dataplane *base,
		       struct mr_reason *reterr_reason)
{
	struct mri_dataplane *dp = (struct mri_dataplane *)base;
	struct mr_ctx *ctx;
	bool owns_ctx;
	int err;

	if (dp == NULL)
		return 0;
	if (base->workers != NULL)
		(void)mri_dataplane_end_threads(dp);
	if (base->workers != NULL && !base->pool->is_away)
		mr_dataplane_drain(base, CLOSE_MS, NULL, NULL);
	if (base->pool != NULL)
		mri_dataplane_end_keep(dp);
	mr_dataplane_close_ports(base);
	mri_hand_close(&dp->hand);
	err = mr_pool_destroy(base->pool, reterr_reason);
	if (err < 0)
		return err;
	ctx = base->ctx;
	owns_ctx = dp->owns_ctx;
	mr_free(ctx, dp);
	if (owns_ctx)
		mr_ctx_destroy(ctx);
	return 0;
}
