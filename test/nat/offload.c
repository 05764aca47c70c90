/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of the harness: offload.h. */
#include <errno.h>
#include <netinet/in.h>

#include <millrace/driver_base.h>

#include "datapath/neighbours.h"
#include "harness.h"
#include "mapping/session.h"
#include "offload.h"
#include "simulated.h"

static void link_sides(const struct offload *offload,
		       const struct nat_path_config *path)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		struct mr_rules_link link = {
			.vlan = path->config->sides[s].vlan,
			.mtu_bytes = path->mtus[s]
		};

		memcpy(link.mac, path->macs[s], sizeof(link.mac));
		mr_rules_link(offload->rules, s, &link);
	}
}

int offload_open(struct offload *offload, struct nat_path_config *path,
		 struct mr_reason *reterr_why)
{
	/* Each worker has a queue of each port. */
	const uint32_t n_owners = path->n_workers * (1 + NAT_SIDES);
	const uint32_t first_id =
		path->n_workers + NAT_SIDES * path->worker_idx;
	int err;

	if (offload->lag == 0)
		return 0;
	if (simulated_open == NULL)
		return mr_fail(reterr_why, -ENOTSUP, "built without XDP");
	err = simulated_open(path->ctx, offload->n_max, NAT_NEIGHBOUR_SLOTS,
			     (uint16_t)first_id, nat_id_step(n_owners),
			     &offload->rules, reterr_why);
	if (err < 0)
		return err;
	offload->maps = path->maps;
	path->rules = offload->rules;
	path->n_id_owners = n_owners;
	link_sides(offload, path);
	nat_neighbours_share(path->neighbours, offload->rules);
	return nat_rules_create(path->maps, offload->rules, offload->n_max, -1,
				1, reterr_why);
}

void offload_tick(struct offload *offload, uint64_t now_ns)
{
	if (offload->rules != NULL)
		simulated_tick(offload->rules, now_ns);
}

/* Whether to do now what is done sooner or later. */
static bool is_time(struct offload *offload)
{
	offload->random = offload->random * 1664525 + 1013904223;
	return (offload->random >> 16) % offload->lag == 0;
}

void offload_serve(struct offload *offload, struct nat_path *path)
{
	static const struct mr_txq sent; /* all */

	if (offload->rules == NULL)
		return;
	for (uint32_t s = 0; s < NAT_SIDES; s++)
		if (is_time(offload))
			nat_path_sent(path, s, &sent);
	if (is_time(offload))
		nat_rules_tick(offload->maps);
	if (is_time(offload) && nat_rules_serve(offload->maps->rules))
		nat_rules_make_room(offload->maps->rules);
	if (is_time(offload))
		nat_rules_tick(offload->maps);
}

void offload_end(const struct offload *offload)
{
	if (offload->rules == NULL)
		return;
	mr_rules_flush(offload->rules);
	nat_rules_end_all(offload->maps);
}

static void fill_row(const struct nat_maps *maps, uint32_t id,
		     struct nat_end remote, uint32_t session, uint32_t *row)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_window *window;

	nat_rule_take(maps, id, remote);
	window = nat_tracked_at(maps, id, session).window;
	*row++ = map->inside.addr;
	*row++ = map->inside.port;
	*row++ = remote.addr;
	*row++ = remote.port;
	for (uint32_t e = 0; e < 2; e++) {
		const struct nat_window_end *end = &window->ends[e];

		*row++ = end->ack;
		*row++ = end->end;
		*row++ = end->window;
		*row++ = end->shift;
		*row++ = end->seen;
		*row++ = end->seen & NAT_END_STRAY ? end->stray : 0;
	}
}

uint32_t offload_windows(const struct nat_maps *maps, uint32_t *numbers,
			 uint32_t n_max)
{
	uint32_t n = 0;

	for (uint32_t id = mr_flow_next(maps->table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE && n < n_max;
	     id = mr_flow_next(maps->table, id)) {
		const struct nat_map *map = nat_map_at(maps, id);

		nat_rule_take(maps, id, map->remote);
		if (map->inside.proto == IPPROTO_TCP &&
		    nat_first_is_live(maps, map, maps->now_s))
			fill_row(maps, id, map->remote, 0,
				 numbers + n++ * HARNESS_WINDOW_NUMBERS);
	}
	for (uint32_t id = mr_flow_next(maps->sessions, MR_FLOW_NONE);
	     id != MR_FLOW_NONE && n < n_max;
	     id = mr_flow_next(maps->sessions, id)) {
		const struct nat_further_key *key =
			&nat_further_at(maps, id)->key;

		if (key->kind == NAT_KIND_SESSION &&
		    nat_map_at(maps, key->map_id)->inside.proto == IPPROTO_TCP)
			fill_row(maps, key->map_id,
				 (struct nat_end){ key->addr, key->port },
				 id + 1,
				 numbers + n++ * HARNESS_WINDOW_NUMBERS);
	}
	return n;
}
