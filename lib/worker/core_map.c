/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core map: which worker runs on which core, reads which rx queues, and how
 * it reaches each port. No system calls: the same input gives the same map.
 *
 * Rx queues go to the worker with the fewest, on the port's NUMA node if
 * possible; so queue i of every port goes to the same worker. Tx queues go to
 * workers that receive what leaves there, first to those that receive nothing
 * else; workers without one hand off to one that has it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "worker/worker.h"

static const uint32_t none = UINT32_MAX;

/* Rx queues on a node; those of ports without one count for every node. */
static uint32_t demand_of(const struct mri_map_port *ports, uint32_t n_ports,
			  int32_t node)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < n_ports; p++)
		if (ports[p].numa_node == node || ports[p].numa_node < 0 ||
		    node < 0)
			n += ports[p].n_rxqs;
	return n;
}

/* Whether a is the better core on the same node. */
static bool is_better(const struct mri_core *a, const struct mri_core *b)
{
	if (a->sibling_rank != b->sibling_rank)
		return a->sibling_rank < b->sibling_rank;
	if (a->has_irqs != b->has_irqs)
		return b->has_irqs;
	if ((a->id == 0) != (b->id == 0))
		return b->id == 0;
	return a->id < b->id;
}

void mri_pick_cores(const struct mri_core *allowed, uint32_t n_allowed,
		    const struct mri_map_port *ports, uint32_t n_ports,
		    struct mri_core *picked, uint32_t n)
{
	bool is_taken[MRI_MAX_CORES] = { false };

	for (uint32_t k = 0; k < n; k++) {
		uint32_t best = none, best_demand = 0, best_n = 1;

		for (uint32_t i = 0; i < n_allowed; i++) {
			const int32_t node = allowed[i].numa_node;
			const uint32_t demand = demand_of(ports, n_ports, node);
			uint32_t n_on_node = 1; /* including this one */
			int64_t more;

			if (is_taken[i])
				continue;
			for (uint32_t j = 0; j < k; j++)
				n_on_node += picked[j].numa_node == node;
			/* compares demand / n_on_node, in integers */
			more = (int64_t)demand * best_n -
			       (int64_t)best_demand * n_on_node;
			if (best == none ||
			    allowed[i].n_pollers < allowed[best].n_pollers ||
			    (allowed[i].n_pollers == allowed[best].n_pollers &&
			     (more > 0 ||
			      (more == 0 &&
			       is_better(&allowed[i], &allowed[best]))))) {
				best = i;
				best_demand = demand;
				best_n = n_on_node;
			}
		}
		is_taken[best] = true;
		picked[k] = allowed[best];
	}
}

/* Assign the rx queues of one port; load is each worker's count so far. */
static void assign_rx(struct mri_core_map *map, uint32_t p, uint32_t *load)
{
	const struct mri_map_port *port = &map->ports[p];
	bool has_local = false;

	for (uint32_t w = 0; w < map->n_workers; w++)
		has_local |= port->numa_node >= 0 &&
			     map->cores[w].numa_node == port->numa_node;
	for (uint32_t q = 0; q < port->n_rxqs; q++) {
		uint32_t best = none;

		for (uint32_t w = 0; w < map->n_workers; w++) {
			if (has_local &&
			    map->cores[w].numa_node != port->numa_node)
				continue;
			if (best == none || load[w] < load[best])
				best = w;
		}
		map->rx_owner[map->first_rxq[p] + q] = best;
		load[best]++;
	}
}

/*
 * How much a worker needs a tx queue of port p: 0 not at all, 2 if it receives
 * only frames for it, else 1.
 */
static uint32_t need_of(const struct mri_core_map *map, uint32_t worker,
			uint32_t p)
{
	bool sends_here = false, sends_elsewhere = false;

	for (uint32_t from = 0; from < map->n_ports; from++) {
		const uint32_t to = map->ports[from].sends_to;

		for (uint32_t i = map->first_rxq[from];
		     i < map->first_rxq[from + 1]; i++) {
			if (map->rx_owner[i] != worker)
				continue;
			sends_here |= to == p || to == MR_SENDS_TO_ANY;
			sends_elsewhere |= to != p;
		}
	}
	if (!sends_here)
		return 0;
	return sends_elsewhere ? 1 : 2;
}

/* Whether the worker reads a queue of the port, so that its tx side is near. */
static bool reads(const struct mri_core_map *map, uint32_t worker, uint32_t p)
{
	for (uint32_t i = map->first_rxq[p]; i < map->first_rxq[p + 1]; i++)
		if (map->rx_owner[i] == worker)
			return true;
	return false;
}

/* Assign the tx queues of one port; load is each worker's count so far. */
static void assign_tx(struct mri_core_map *map, uint32_t p, uint32_t *load)
{
	const struct mri_map_port *port = &map->ports[p];
	uint32_t owners[MR_WORKERS_MAX];
	uint32_t n_owners = 0;

	while (n_owners < port->n_txqs) {
		uint32_t best = none, best_score = 0;

		for (uint32_t w = 0; w < map->n_workers; w++) {
			const uint32_t need = need_of(map, w, p);
			const uint32_t score = 4 * need +
					       2 * (map->cores[w].numa_node ==
						    port->numa_node) +
					       reads(map, w, p);

			if (need == 0 || mri_map_route(map, w, p)->is_own ||
			    score < best_score ||
			    (score == best_score && best != none &&
			     load[w] >= load[best]))
				continue;
			best = w;
			best_score = score;
		}
		if (best == none)
			break;
		*mri_map_route(map, best, p) = (struct mri_map_route){
			.is_own = true, .owner = best, .queue_idx = n_owners
		};
		owners[n_owners++] = best;
		load[best]++;
	}
	for (uint32_t w = 0, next = 0; w < map->n_workers; w++) {
		struct mri_map_route *route = mri_map_route(map, w, p);

		if (route->is_own)
			continue;
		route->owner = route->queue_idx = none;
		if (n_owners == 0 || need_of(map, w, p) == 0)
			continue;
		route->queue_idx = next++ % n_owners;
		route->owner = owners[route->queue_idx];
	}
}

int mri_core_map_init(struct mri_core_map *map, const struct mr_ctx *ctx)
{
	uint32_t load[MR_WORKERS_MAX] = { 0 };
	uint32_t n_rxqs = 0;

	map->first_rxq = mr_alloc(
		ctx, 0, (map->n_ports + 1) * sizeof(map->first_rxq[0]));
	if (map->first_rxq == NULL)
		return -ENOMEM;
	for (uint32_t p = 0; p < map->n_ports; p++) {
		map->first_rxq[p] = n_rxqs;
		n_rxqs += map->ports[p].n_rxqs;
	}
	map->first_rxq[map->n_ports] = n_rxqs;
	map->rx_owner =
		mr_alloc(ctx, 0, (n_rxqs + 1) * sizeof(map->rx_owner[0]));
	map->routes = mr_alloc(
		ctx, 0, map->n_workers * map->n_ports * sizeof(map->routes[0]));
	if (map->rx_owner == NULL || map->routes == NULL) {
		mri_core_map_fini(map, ctx);
		return -ENOMEM;
	}
	for (uint32_t p = 0; p < map->n_ports; p++)
		assign_rx(map, p, load);
	for (uint32_t w = 0; w < map->n_workers; w++)
		load[w] = 0;
	for (uint32_t p = 0; p < map->n_ports; p++)
		assign_tx(map, p, load);
	return 0;
}

void mri_core_map_fini(struct mri_core_map *map, const struct mr_ctx *ctx)
{
	mr_free(ctx, map->routes);
	mr_free(ctx, map->rx_owner);
	mr_free(ctx, map->first_rxq);
	map->first_rxq = map->rx_owner = NULL;
	map->routes = NULL;
}

/* Append to a text, which may be full. */
__attribute__((format(printf, 3, 4))) static void
append(char **text, uint32_t *n_left, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(*text, *n_left, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((uint32_t)n >= *n_left) /* a full text keeps its last NUL */
		n = (int)*n_left - 1;
	*text += n;
	*n_left -= (uint32_t)n;
}

void mri_core_map_line(const struct mri_core_map *map, uint32_t worker,
		       char *text, uint32_t n_bytes)
{
	const struct mri_core *core = &map->cores[worker];

	append(&text, &n_bytes, "worker %u: core %u", worker, core->id);
	if (core->numa_node >= 0)
		append(&text, &n_bytes, " (node %d)", core->numa_node);
	append(&text, &n_bytes, ", rx");
	for (uint32_t p = 0; p < map->n_ports; p++)
		for (uint32_t i = map->first_rxq[p]; i < map->first_rxq[p + 1];
		     i++)
			if (map->rx_owner[i] == worker)
				append(&text, &n_bytes, " %s/%u%s",
				       map->ports[p].name,
				       i - map->first_rxq[p],
				       map->ports[p].numa_node >= 0 &&
						       core->numa_node >= 0 &&
						       map->ports[p].numa_node !=
							       core->numa_node ?
					       " (other node)" :
					       "");
	append(&text, &n_bytes, ", tx");
	for (uint32_t p = 0; p < map->n_ports; p++) {
		const struct mri_map_route *route =
			mri_map_route(map, worker, p);

		if (route->is_own)
			append(&text, &n_bytes, " %s/%u", map->ports[p].name,
			       route->queue_idx);
	}
	for (uint32_t p = 0; p < map->n_ports; p++) {
		const struct mri_map_route *route =
			mri_map_route(map, worker, p);

		if (!route->is_own && route->owner != none)
			append(&text, &n_bytes, ", hands %s/%u to worker %u",
			       map->ports[p].name, route->queue_idx,
			       route->owner);
	}
}
