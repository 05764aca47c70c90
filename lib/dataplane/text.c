/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a data plane by name, as text or as JSON: those of its ports
 * are mr_port_stats_text()'s.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <millrace/port_device.h>

#include "dataplane/dataplane.h"

struct counter {
	const char *name;
	size_t at; /* in its struct; a uint64_t */
};

#define WORKER(name)                                                           \
	{                                                                      \
#name, offsetof(struct mr_worker_stats, name)                  \
	}
static const struct counter worker_counters[] = {
	WORKER(busy_ns),    WORKER(idle_ns),      WORKER(asleep_ns),
	WORKER(rounds),     WORKER(empty_rounds), WORKER(sleeps),
	WORKER(handed_off), WORKER(handoff_full), { 0 },
};

#define POOL(name)                                                             \
	{                                                                      \
#name, offsetof(struct mr_pool_stats, name)                    \
	}
static const struct counter pool_counters[] = {
	POOL(n_pages),
	POOL(n_free),
	POOL(n_in_flight),
	POOL(n_cached),
	POOL(n_depot),
	POOL(n_open),
	POOL(n_committed),
	POOL(alloc_fast),
	POOL(alloc_refill),
	POOL(alloc_slow),
	POOL(alloc_slow_high_order),
	POOL(alloc_empty),
	POOL(alloc_waive),
	POOL(recycle_cached),
	POOL(recycle_cache_full),
	POOL(recycle_ring),
	POOL(recycle_ring_full),
	POOL(recycle_released_refcnt),
	POOL(free_invalid),
	POOL(free_double),
	POOL(free_over),
	POOL(poison_broken),
	POOL(depot_cas_failed),
	{ 0 },
};

struct writer {
	char *text;
	size_t n_bytes; /* room */
	size_t n;       /* of the whole text, including what does not fit */
	bool is_json;
};

static char *room(const struct writer *w, size_t *ret_n)
{
	*ret_n = w->n < w->n_bytes ? w->n_bytes - w->n : 0;
	return *ret_n > 0 ? w->text + w->n : NULL;
}

__attribute__((format(printf, 2, 3))) static void put(struct writer *w,
						      const char *format, ...)
{
	va_list args;
	size_t n_left;
	char *to = room(w, &n_left);
	int n;

	va_start(args, format);
	n = vsnprintf(to, n_left, format, args);
	va_end(args);
	w->n += n > 0 ? (size_t)n : 0;
}

static void put_counters(struct writer *w, const char *path,
			 const struct counter *counters, const void *stats)
{
	for (const struct counter *c = counters; c->name != NULL; c++) {
		const unsigned long long value =
			*(const uint64_t *)((const char *)stats + c->at);

		if (w->is_json)
			put(w, "%s\"%s\": %llu", c == counters ? "{" : ", ",
			    c->name, value);
		else
			put(w, "%s %s %llu\n", path, c->name, value);
	}
	if (w->is_json)
		put(w, "}");
}

static void put_ports(struct writer *w, const struct mr_dataplane *dp)
{
	for (uint32_t p = 0; p < dp->n_ports; p++) {
		size_t n_left;
		char *to;

		if (w->is_json && p > 0)
			put(w, ", ");
		to = room(w, &n_left);
		w->n += w->is_json ?
				mr_port_stats_json(dp->ports[p], to, n_left) :
				mr_port_stats_text(dp->ports[p], to, n_left);
	}
}

static void put_workers(struct writer *w, const struct mr_dataplane *dp)
{
	char path[32];

	for (uint32_t i = 0; i < dp->n_workers; i++) {
		struct mr_worker_stats stats = { .size = sizeof(stats) };

		mr_worker_stats(mr_workers_get(dp->workers, i), &stats);
		if (w->is_json && i > 0)
			put(w, ", ");
		snprintf(path, sizeof(path), "worker %u", i);
		put_counters(w, path, worker_counters, &stats);
	}
}

static size_t put_all(struct writer *w, const struct mr_dataplane *dp)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };

	mr_pool_stats(dp->pool, &pool);
	put(w, "%s", w->is_json ? "{\"ports\": [" : "");
	put_ports(w, dp);
	put(w, "%s", w->is_json ? "], \"workers\": [" : "");
	put_workers(w, dp);
	put(w, "%s", w->is_json ? "], \"pool\": " : "");
	put_counters(w, "pool", pool_counters, &pool);
	put(w, "%s", w->is_json ? "}" : "");
	return w->n;
}

size_t mr_dataplane_text(const struct mr_dataplane *dp, char *ret_text,
			 size_t n_bytes)
{
	struct writer w = { .text = ret_text, .n_bytes = n_bytes };

	return put_all(&w, dp);
}

size_t mr_dataplane_json(const struct mr_dataplane *dp, char *ret_text,
			 size_t n_bytes)
{
	struct writer w = { .text = ret_text,
			    .n_bytes = n_bytes,
			    .is_json = true };

	return put_all(&w, dp);
}
