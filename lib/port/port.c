/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports: from a spec to a driver, and what all drivers have in common. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <millrace/driver.h>

#include "base/base.h"
#include "pool/pool.h"
#include "pool/hand_over.h"
#include "port/driver_list.h"
#include "port/events.h"
#include "port/hand_over.h"
#include "port/offload.h"
#include "port/open.h"
#include "port/spec.h"

enum { MAX_WORKERS = 4096 }; /* as many as a pool may have caches */

static int find_driver(struct mr_ctx *ctx, const struct mr_spec *spec,
		       const struct mr_driver **ret_driver,
		       struct mr_reason *reterr_reason)
{
	const char *const name = spec->driver;
	const struct mr_driver *driver;
	char known[200] = "";

	/* No driver, but all that drive a PCI device. */
	if (strcmp(name, "vfio") == 0)
		return mri_pci_match(ctx, spec->device, ret_driver,
				     reterr_reason);
	for (uint32_t i = 0; (driver = mri_driver_at(ctx, i)) != NULL; i++) {
		const size_t n = strlen(known);

		if (strcmp(driver->name, name) == 0) {
			*ret_driver = driver;
			return 0;
		}
		snprintf(known + n, sizeof(known) - n, " %s", driver->name);
	}
	return mr_fail(reterr_reason, -ENODEV,
		       "no driver '%s'; this build has:%s", name, known);
}

/* Parse and look up: what opening and asking for the need begin with. */
static int read_spec(struct mr_ctx *ctx, const char *text, struct mr_spec *spec,
		     const struct mr_driver **ret_driver,
		     struct mr_reason *reterr_reason)
{
	int err = mri_spec_parse(spec, text, reterr_reason);

	if (err == 0)
		err = find_driver(ctx, spec, ret_driver, reterr_reason);
	if (err == 0)
		err = mri_spec_check_keys(spec, (*ret_driver)->keys,
					  reterr_reason);
	return err;
}

static int ask_need(struct mr_ctx *ctx, const struct mr_driver *driver,
		    const struct mr_spec *spec, uint32_t page_bytes,
		    uint32_t *ret_n_pages, struct mr_reason *reterr_reason)
{
	if (driver->need != NULL)
		return driver->need(ctx, spec, page_bytes, ret_n_pages,
				    reterr_reason);
	*ret_n_pages = 0;
	return 0;
}

/* The pages that a port holds at most, plus those reserved for its workers. */
static uint64_t n_port_pages(uint32_t n_need, uint32_t n_workers)
{
	return n_need +
	       (uint64_t)(n_workers > 0 ? n_workers : 1) * MR_BURST_MAX;
}

/* Sum up the pages of all ports. */
static int sum_pages(struct mr_ctx *ctx, const char *const *specs,
		     uint32_t n_specs, uint32_t n_workers, uint32_t page_bytes,
		     uint64_t *ret_n, struct mr_reason *reterr_reason)
{
	const struct mr_driver *driver;
	struct mr_spec spec;
	uint32_t n_need;
	int err;

	*ret_n = 0;
	for (uint32_t i = 0; i < n_specs; i++) {
		err = read_spec(ctx, specs[i], &spec, &driver, reterr_reason);
		if (err == 0)
			err = ask_need(ctx, driver, &spec, page_bytes, &n_need,
				       reterr_reason);
		if (err < 0)
			return err;
		*ret_n += n_port_pages(n_need, n_workers);
	}
	return 0;
}

int mr_pool_size_for(struct mr_ctx *ctx, const char *const *specs,
		     uint32_t n_specs, uint32_t n_workers, uint32_t n_caches,
		     struct mr_pool_config *config,
		     struct mr_reason *reterr_reason)
{
	struct mr_pool_config c;
	uint64_t n_pages;
	int err;

	if (config == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_pool_size_for(): no config");
	err = mri_copy_sized(&c, config, sizeof(c), "mr_pool_config",
			     reterr_reason);
	if (err < 0)
		return err;
	if (n_workers > MAX_WORKERS || n_caches > MAX_WORKERS)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u workers and %u caches: at most %d",
			       n_workers, n_caches, MAX_WORKERS);
	if (c.page_bytes == 0)
		c.page_bytes = MRI_POOL_PAGE_BYTES;
	err = sum_pages(ctx, specs, n_specs, n_workers, c.page_bytes, &n_pages,
			reterr_reason);
	if (err < 0)
		return err;
	n_pages = mri_pool_with_caches(c.n_pages + n_pages, n_caches, &c);
	if (n_pages > MRI_POOL_MAX_PAGES)
		return mr_fail(reterr_reason, -EINVAL,
			       "%llu pages: a pool has at most %u",
			       (unsigned long long)n_pages, MRI_POOL_MAX_PAGES);
	config->n_pages = (uint32_t)n_pages;
	return 0;
}

int mr_port_takes_option(struct mr_ctx *ctx, const char *text, const char *key,
			 struct mr_reason *reterr_reason)
{
	const struct mr_driver *driver;
	struct mr_spec spec;
	int err = read_spec(ctx, text, &spec, &driver, reterr_reason);

	if (err < 0)
		return err;
	if (driver->keys == NULL || mr_spec_get(&spec, key) != NULL)
		return 0;
	for (uint32_t i = 0; driver->keys[i] != NULL; i++)
		if (strcmp(driver->keys[i], key) == 0)
			return 1;
	return 0;
}

/* The driver's struct, and behind it ours, which may grow. */
static struct mr_port *alloc_port(struct mr_ctx *ctx,
				  const struct mr_driver *driver)
{
	const size_t n_bytes = mri_round_up(driver->port_bytes, MRI_CACHE_LINE);
	struct mr_port *port =
		mr_alloc(ctx, 0, n_bytes + sizeof(struct mri_events));

	if (port != NULL)
		mri_events_begin(port, (void *)((uint8_t *)port + n_bytes));
	return port;
}

/* The head of the driver's port struct. */
void mri_port_fill_head(struct mr_port *port, struct mr_ctx *ctx,
			const struct mr_driver *driver,
			const struct mr_port_config *config,
			const struct mr_spec *spec, const char *text)
{
	/* mr_port_link() reads it while a port is opened again. */
	__atomic_store_n(&port->driver, driver, __ATOMIC_RELAXED);
	port->ctx = ctx;
	port->pool = config->pool;
	port->region = mr_pool_region(config->pool);
	port->base = mr_region_base(port->region);
	port->page_bytes = config->pool->page_bytes;
	port->headroom_bytes = config->pool->headroom_bytes;
	port->tailroom_bytes = config->pool->tailroom_bytes;
	port->n_workers = config->n_workers != 0 ? config->n_workers : 1;
	port->fd = -1;
	snprintf(((struct mri_events *)port->events)->kept.spec,
		 MRI_SPEC_MAX_BYTES, "%s", text);
	port->info->size = sizeof(*port->info);
	port->info->numa_node = -1;
	/* Where there is no device, the options are what tells ports apart. */
	if (spec->device[0] == '\0')
		snprintf(port->info->name, sizeof(port->info->name), "%s",
			 text);
	else
		snprintf(port->info->name, sizeof(port->info->name), "%s:%s",
			 spec->driver, spec->device);
}

int mri_port_make(struct mr_ctx *ctx, const struct mr_driver *driver,
		  const struct mr_port_config *config,
		  const struct mr_spec *spec, const char *text,
		  struct mr_port **ret_port, struct mr_reason *reterr_reason)
{
	struct mr_port *port = alloc_port(ctx, driver);

	if (port == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a port");
	mri_port_fill_head(port, ctx, driver, config, spec, text);
	*ret_port = port;
	return 0;
}

int mr_port_make_queues(struct mr_port *port, uint32_t n, size_t rxq_bytes,
			size_t txq_bytes, struct mr_reason *reterr_reason)
{
	const size_t rxqs_bytes = mri_round_up(n * rxq_bytes, MRI_CACHE_LINE);
	const size_t txqs_bytes = mri_round_up(n * txq_bytes, MRI_CACHE_LINE);
	uint8_t *at =
		mr_alloc(port->ctx, MRI_CACHE_LINE,
			 rxqs_bytes + txqs_bytes + 2 * n * sizeof(void *));

	if (at == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s: no memory for %u queues", port->info->name,
			       n);
	port->queue_memory = at;
	port->n_queues_made = n;
	port->rxqs = (void *)(at + rxqs_bytes + txqs_bytes);
	port->txqs = (struct mr_txq **)port->rxqs + n;
	for (uint32_t i = 0; i < n; i++) {
		const struct mr_queue queue = { .port = port,
						.fd = -1,
						.idx = i };

		port->rxqs[i] = (void *)(at + i * rxq_bytes);
		port->txqs[i] = (void *)(at + rxqs_bytes + i * txq_bytes);
		port->rxqs[i]->queue = port->txqs[i]->queue = queue;
	}
	port->info->n_rxqs = port->info->n_txqs = n;
	return 0;
}

void mri_port_free(struct mr_port *port)
{
	mri_settings_free(port);
	mri_events_end(port);
	mr_free(port->ctx, port);
}

static int open_device(struct mr_port *port, const struct mr_spec *spec,
		       struct mr_parcel *parcel,
		       struct mr_reason *reterr_reason)
{
	const struct mr_port_info *info = port->info;
	int err = parcel == NULL ?
			  port->driver->open(port, spec, reterr_reason) :
			  port->driver->hand_over->take(port, spec, parcel,
							reterr_reason);

	if (err < 0)
		return err;
	if (port->n_queues_made < info->n_txqs) /* the driver made them */
		port->n_queues_made = info->n_txqs;
	err = mri_offload_open(port, reterr_reason);
	if (err < 0) {
		port->driver->close(port);
		return err;
	}
	(void)mri_events_publish(port);
	mr_log(port->ctx, MR_LOG_INFO,
	       "%s: mode %s%s%s%s, %u rx and %u tx queues", info->name,
	       info->mode, info->why[0] != '\0' ? " (" : "", info->why,
	       info->why[0] != '\0' ? ")" : "", info->n_rxqs, info->n_txqs);
	return 0;
}

static void give_back(struct mr_port *port)
{
	mri_pool_uncommit(port->pool, port->n_committed_pages);
	mr_free(port->ctx, port->queue_memory);
	port->queue_memory = NULL;
}

int mri_port_start(struct mr_port *port, const struct mr_spec *spec,
		   uint32_t n_pages, struct mr_parcel *parcel,
		   struct mr_reason *reterr_reason)
{
	const uint64_t n_committed = n_port_pages(n_pages, port->n_workers);
	int err = mri_pool_commit(port->pool, port->info->name, n_committed,
				  port->n_workers, reterr_reason);

	if (err < 0)
		return err;
	port->n_committed_pages = (uint32_t)n_committed; /* a pool has fewer */
	err = open_device(port, spec, parcel, reterr_reason);
	if (err == 0)
		return 0;
	give_back(port);
	return err;
}

void mri_port_end(struct mr_port *port)
{
	mri_pool_forget_kept(port->pool);
	mri_offload_close(port);
	port->driver->close(port);
	give_back(port);
}

int mri_port_read(struct mr_ctx *ctx, const char *text, uint32_t page_bytes,
		  struct mr_spec *spec, const struct mr_driver **ret_driver,
		  uint32_t *ret_n_pages, struct mr_reason *reterr_reason)
{
	const int err = read_spec(ctx, text, spec, ret_driver, reterr_reason);

	return err < 0 ? err :
			 ask_need(ctx, *ret_driver, spec, page_bytes,
				  ret_n_pages, reterr_reason);
}

int mr_port_open(struct mr_ctx *ctx, const char *text,
		 const struct mr_port_config *config, struct mr_port **ret_port,
		 struct mr_reason *reterr_reason)
{
	const struct mr_driver *driver;
	struct mr_port_config c;
	struct mr_spec spec;
	struct mr_port *port = NULL;
	uint32_t n_pages;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_port_config",
			     reterr_reason);
	if (err < 0)
		return err;
	if (c.pool == NULL)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_port_config.pool: a port needs a pool");
	if (c.n_workers > MAX_WORKERS)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_port_config.n_workers is %u, at most %d",
			       c.n_workers, MAX_WORKERS);
	err = mri_port_read(ctx, text, c.pool->page_bytes, &spec, &driver,
			    &n_pages, reterr_reason);
	if (err < 0)
		return err;
	err = mri_port_make(ctx, driver, &c, &spec, text, &port, reterr_reason);
	if (err < 0)
		return err;
	err = mri_port_start(port, &spec, n_pages, NULL, reterr_reason);
	if (err < 0) {
		mri_port_free(port);
		return err;
	}
	*ret_port = port;
	return 0;
}

void mr_port_close(struct mr_port *port)
{
	if (port == NULL)
		return;
	mri_port_end(port);
	mri_port_free(port);
}

struct mr_rxq *mr_port_rxq(struct mr_port *port, uint32_t i)
{
	return i < __atomic_load_n(&port->info->n_rxqs, __ATOMIC_ACQUIRE) ?
		       port->rxqs[i] :
		       NULL;
}

struct mr_txq *mr_port_txq(struct mr_port *port, uint32_t i)
{
	/* The driver shows those that it adds before they are entered. */
	return i < __atomic_load_n(&port->info->n_txqs, __ATOMIC_ACQUIRE) &&
			       mri_offload_has_entered(port->txqs[i]) ?
		       port->txqs[i] :
		       NULL;
}

uint32_t mr_port_poll(struct mr_port *port)
{
	const uint32_t n =
		port->driver->poll != NULL ? port->driver->poll(port) : 0;

	return mri_events_tell(port) && n == 0 ? 1 : n;
}

int mr_port_fd(const struct mr_port *port)
{
	return port->fd;
}
