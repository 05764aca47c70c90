/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests from the main thread to a worker. */
#include <stdio.h>
#include <unistd.h>

#include "mapping/session.h"
#include "request.h"

static void list_sessions(struct nat_request *request,
			  const struct nat_request_to *to)
{
	const uint32_t n_seen =
		request->question == NAT_ASK_SAVE ?
			nat_maps_save(to->maps, &request->cursor, to->now_s,
				      request->sessions, NAT_REQUEST_SAVED) :
			nat_maps_list(to->maps, &request->cursor, to->now_s,
				      request->sessions, NAT_REQUEST_SESSIONS);

	request->is_end = n_seen == 0;
	request->n = 0;
	for (uint32_t i = 0; i < n_seen; i++)
		if (nat_filter_has(&request->filter, &request->sessions[i]))
			request->sessions[request->n++] = request->sessions[i];
}

/* Static mappings stay, so one without sessions has nothing to end. */
static bool has_sessions(const struct nat_map *map)
{
	return (map->flags & NAT_MAP_STATIC) == 0 || map->remote.addr != 0 ||
	       map->n_sessions > 0;
}

/* The first session of a mapping ends all of it. */
static void clear_sessions(struct nat_request *request,
			   const struct nat_request_to *to)
{
	uint32_t n_ended = 0;

	list_sessions(request, to);
	for (uint32_t i = 0; i < request->n; i++) {
		uint32_t id;

		nat_maps_find_out(to->maps, &request->sessions[i].inside, 1,
				  &id);
		if (id == MR_FLOW_NONE ||
		    !has_sessions(nat_map_at(to->maps, id)))
			continue;
		nat_maps_close(to->maps, id, to->now_s);
		n_ended++;
	}
	request->n = n_ended;
	if (request->is_end && request->is_now)
		request->is_end =
			nat_ports_release_all(to->maps->ports, to->now_s,
					      NAT_REQUEST_PORTS) <
			NAT_REQUEST_PORTS;
}

static void reload_config(struct nat_request *request,
			  const struct nat_request_to *to)
{
	/* First: what rules forwarded was under the old configuration. */
	nat_rules_end_all(to->maps);
	request->err = nat_maps_reload(to->maps, request->config, to->now_s,
				       &request->why);
	if (request->err < 0)
		return;
	nat_path_reload(to->path, request->config);
	if (to->steer != NULL)
		nat_steer_follow(to->steer, to->maps, request->config);
}

void nat_request_answer(struct nat_request *request,
			const struct nat_request_to *to)
{
	const uint64_t one = 1;

	if (nat_request_state(request) != NAT_REQUEST_ASKED)
		return;
	switch (request->question) {
	case NAT_ASK_LIST:
	case NAT_ASK_SAVE:
		list_sessions(request, to);
		break;
	case NAT_ASK_CLEAR:
		clear_sessions(request, to);
		break;
	case NAT_ASK_RELOAD:
		reload_config(request, to);
		break;
	}
	nat_request_set(request, NAT_REQUEST_ANSWERED);
	/* It fails only if already readable, which is all we want. */
	if (write(request->answered_fd, &one, sizeof(one)) < 0)
		return;
}
