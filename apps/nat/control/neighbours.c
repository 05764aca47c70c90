/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table, for mrctl. It needs no lock, so workers continue. */
#include <arpa/inet.h>
#include <stdio.h>

#include "app.h"
#include "verbs.h"

enum { ENTRIES = 256 }; /* listed per call */

static const char *const state_names[] = {
	[NAT_NEIGHBOUR_INCOMPLETE] = "incomplete",
	[NAT_NEIGHBOUR_FAILED] = "failed",
	[NAT_NEIGHBOUR_PROBE] = "probe",
	[NAT_NEIGHBOUR_REACHABLE] = "reachable",
	[NAT_NEIGHBOUR_FIXED] = "static",
	[NAT_NEIGHBOUR_DOUBTFUL] = "doubtful",
};

/* Describe the neighbour in a slot. NULL: the slot is free. */
static json_t *describe_entry(const struct app *app, uint32_t slot)
{
	const struct nat_neighbours *neighbours = app->neighbours;
	const int32_t age_s =
		nat_neighbour_age_s(&neighbours->slots[slot], dataplane_now_s(&app->plane));
	char addr_text[INET_ADDRSTRLEN], mac_text[18];
	enum nat_neighbour_state state;
	enum nat_side side;
	uint32_t addr;
	uint64_t mac;
	json_t *object;

	state = nat_neighbours_at(neighbours, slot, &side, &addr, &mac);
	if (state == NAT_NEIGHBOUR_NONE)
		return NULL;
	inet_ntop(AF_INET, &addr, addr_text, sizeof(addr_text));
	object = json_pack("{s:s, s:s, s:s}", "side",
			   side == NAT_INSIDE ? "inside" : "outside", "address",
			   addr_text, "state",
			   state == NAT_NEIGHBOUR_REACHABLE &&
					   age_s > NAT_REACHABLE_S ?
				   "stale" :
				   state_names[state]);
	snprintf(mac_text, sizeof(mac_text), "%02x:%02x:%02x:%02x:%02x:%02x",
		 (unsigned)mac & 0xff, (unsigned)(mac >> 8) & 0xff,
		 (unsigned)(mac >> 16) & 0xff, (unsigned)(mac >> 24) & 0xff,
		 (unsigned)(mac >> 32) & 0xff, (unsigned)(mac >> 40) & 0xff);
	if (mac != 0)
		json_object_set_new(object, "mac", json_string(mac_text));
	/* A worker may have read the clock after us. */
	if (state != NAT_NEIGHBOUR_FIXED)
		json_object_set_new(object, "age_s",
				    json_integer(age_s > 0 ? age_s : 0));
	return object;
}

bool nat_neighbours_answer(struct control_request *r, void *opaque)
{
	struct nat_listing *at = r->state;
	const uint32_t end = at->n + ENTRIES;
	const struct app *app = opaque;

	if (r->is_gone || (at->slot == 0 && !control_args(r, "{}")))
		return true;
	for (; at->slot < NAT_NEIGHBOUR_SLOTS && at->n < end; at->slot++) {
		json_t *object = describe_entry(app, at->slot);

		if (object == NULL)
			continue;
		control_add(r, object);
		at->n++;
	}
	return at->slot == NAT_NEIGHBOUR_SLOTS &&
	       control_end(r, json_pack("{s:i}", "listed", (int)at->n));
}

bool nat_neighbours_answer_flush(struct control_request *r, void *opaque)
{
	const struct app *app = opaque;
	const char *address = NULL;
	uint32_t wanted = 0;
	int n = 0;

	if (!control_args(r, "{s?s}", "address", &address))
		return true;
	if (address != NULL && inet_pton(AF_INET, address, &wanted) != 1)
		return control_fail(r, "'%.40s' is not an IPv4 address",
				    address);
	for (uint32_t slot = 0; slot < NAT_NEIGHBOUR_SLOTS; slot++) {
		enum nat_side side;
		uint32_t addr;
		uint64_t mac;

		(void)nat_neighbours_at(app->neighbours, slot, &side, &addr,
					&mac);
		if (address == NULL || addr == wanted)
			n += nat_neighbours_forget(app->neighbours, slot,
						   dataplane_now_s(&app->plane));
	}
	return control_end(r, json_pack("{s:i}", "cleared", n));
}
