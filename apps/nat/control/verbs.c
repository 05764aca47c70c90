/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions are listed and ended by the workers, a part at a time. */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "config/values.h"
#include "keep.h"
#include "mapping/tcp.h"
#include "reload.h"
#include "support/text.h"
#include "verbs.h"

enum { SAVE_S = 5 }; /* for the disk to store what was cleared */

/* A request of a client. */
struct nat_ask {
	struct control_request *request;
	enum nat_question question;
	struct nat_filter filter;
	bool is_now; /* clear also empties hold-down */
	bool has_begun;
	bool is_asked;   /* a worker has it */
	uint32_t worker; /* next worker to ask */
	uint64_t cursor;
	uint64_t n;        /* sessions, for the last line */
	uint64_t snapshot; /* the snapshot without them; 0: not yet known */
	uint64_t since_ns; /* the snapshot was wanted */
};

static json_t *proto_of(uint8_t proto)
{
	const char *name = nat_proto_name(proto);

	return name != NULL ? json_string(name) : json_integer(proto);
}

static json_t *session_object(const struct nat_session *s)
{
	json_t *object = json_pack(
		"{s:o, s:s, s:s}", "proto", proto_of(s->inside.proto), "inside",
		nat_end_text(s->inside.addr, s->inside.port).text, "outside",
		nat_end_text(s->outside.addr, s->outside.port).text);

	if (s->remote.addr != 0)
		json_object_set_new(
			object, "remote",
			json_string(nat_end_text(s->remote.addr, s->remote.port)
					    .text));
	if (s->inside.proto == IPPROTO_TCP &&
	    nat_tcp_name(s->tcp_state) != NULL)
		json_object_set_new(object, "state",
				    json_string(nat_tcp_name(s->tcp_state)));
	if (s->flags & NAT_MAP_STATIC)
		json_object_set_new(object, "static", json_true());
	else
		json_object_set_new(object, "left_s", json_integer(s->left_s));
	json_object_set_new(object, "age_s", json_integer(s->age_s));
	json_object_set_new(object, "out", json_integer(s->n_out));
	json_object_set_new(object, "in", json_integer(s->n_in));
	return object;
}

/* Wait for the snapshot: cleared sessions must not return after a crash. */
static bool is_saved(struct nat_ask *ask, const struct app *app)
{
	uint64_t now_ns;

	if (ask->question != NAT_ASK_CLEAR)
		return true;
	now_ns = mr_ctx_now_ns(app->plane.ctx);
	if (ask->snapshot == 0) {
		ask->snapshot = nat_keep_want(app->keep);
		ask->since_ns = now_ns;
	}
	return nat_keep_has(app->keep, ask->snapshot) ||
	       now_ns - ask->since_ns >= SAVE_S * 1000000000ull;
}

static bool end_answer(const struct nat_ask *ask, const struct app *app)
{
	const bool is_clear = ask->question == NAT_ASK_CLEAR;
	json_t *end = json_pack("{s:I}", is_clear ? "cleared" : "listed",
				(json_int_t)ask->n);

	if (is_clear && !nat_keep_saved(app->keep, ask->snapshot))
		json_object_set_new(end, "saved", json_false());
	return control_end(ask->request, end);
}

/* Request the next part of an answer; true: that was the last. */
static bool ask_more(struct nat_ask *ask, const struct app *app)
{
	struct nat_worker *w;

	if (ask->is_asked)
		return false;
	/* Nobody reads it; a worker no longer has it. */
	if (ask->request->is_gone && ask->question != NAT_ASK_CLEAR)
		return true;
	if (ask->worker == app->n_workers)
		return is_saved(ask, app) && end_answer(ask, app);
	w = &app->workers[ask->worker];
	if (nat_request_state(&w->request) != NAT_REQUEST_FREE)
		return false; /* another client's; its answer wakes us */
	w->request.question = ask->question;
	w->request.filter = ask->filter;
	w->request.is_now = ask->is_now;
	w->request.cursor = ask->cursor;
	w->request.ask = ask;
	ask->is_asked = true;
	nat_request_set(&w->request, NAT_REQUEST_ASKED);
	mr_worker_wake(w->worker);
	return false;
}

void nat_ask_answered(struct nat_ask *ask, const struct nat_request *request)
{
	ask->is_asked = false;
	ask->cursor = request->cursor;
	ask->n += request->n;
	for (uint32_t s = 0; s < request->n && ask->question == NAT_ASK_LIST;
	     s++)
		control_add(ask->request,
			    session_object(&request->sessions[s]));
	if (request->is_end) {
		ask->worker++;
		ask->cursor = 0;
	}
}

/* False: the answer says why not. */
static bool begin_request(struct nat_ask *ask, struct control_request *request,
			  enum nat_question question)
{
	const bool is_clear = question == NAT_ASK_CLEAR;
	const char *filter = is_clear ? "" : NULL;
	struct mr_reason why;
	int is_now = 0;

	ask->has_begun = true;
	ask->request = request;
	ask->question = question;
	if (!(is_clear ? control_args(request, "{s?s, s?b}", "filter", &filter,
				      "now", &is_now) :
			 control_args(request, "{s?s}", "filter", &filter)))
		return false;
	ask->is_now = is_now;
	if (is_clear && filter[0] == '\0')
		return !control_fail(request, "clear: give a filter, or all");
	if (!nat_filter_parse(filter, &ask->filter, &why))
		return !control_fail(request, "%s", why.text);
	return true;
}

static bool answer_request(struct control_request *request, void *app,
			   enum nat_question question)
{
	struct nat_ask *ask = request->state;

	if (!ask->has_begun && !begin_request(ask, request, question))
		return true;
	return ask_more(ask, app);
}

static bool answer_sessions(struct control_request *request, void *app)
{
	return answer_request(request, app, NAT_ASK_LIST);
}

static bool answer_clear(struct control_request *request, void *app)
{
	return answer_request(request, app, NAT_ASK_CLEAR);
}

static const char *const state_names[] = {
	[NAT_NEIGHBOUR_INCOMPLETE] = "incomplete",
	[NAT_NEIGHBOUR_FAILED] = "failed",
	[NAT_NEIGHBOUR_PROBE] = "probe",
	[NAT_NEIGHBOUR_REACHABLE] = "reachable",
	[NAT_NEIGHBOUR_FIXED] = "static",
	[NAT_NEIGHBOUR_DOUBTFUL] = "doubtful",
};

/* NULL: the slot is free. */
static json_t *describe_neighbour(const void *opaque, uint32_t slot)
{
	const struct app *app = opaque;
	const struct nat_neighbour_info is =
		nat_neighbours_at(app->neighbours, slot);
	json_t *object;
	int32_t age_s;

	if (is.state == NAT_NEIGHBOUR_NONE)
		return NULL;
	age_s = nat_neighbour_age_s(&app->neighbours->slots[slot],
				    dataplane_now_s(&app->plane));
	object = json_pack("{s:s, s:s, s:s}", "side",
			   is.side == NAT_INSIDE ? "inside" : "outside",
			   "address", nat_end_text(is.addr, 0).text, "state",
			   is.state == NAT_NEIGHBOUR_REACHABLE &&
					   age_s > NAT_REACHABLE_S ?
				   "stale" :
				   state_names[is.state]);
	if (is.mac != 0)
		json_object_set_new(
			object, "mac",
			json_string(
				text_of_mac((const uint8_t *)&is.mac).text));
	/* A worker may have read the clock after us. */
	if (is.state != NAT_NEIGHBOUR_FIXED)
		json_object_set_new(object, "age_s",
				    json_integer(age_s > 0 ? age_s : 0));
	return object;
}

/* It needs no lock, so workers continue. */
static bool answer_neighbours(struct control_request *r, void *app)
{
	return control_list(r, app, NAT_NEIGHBOUR_SLOTS, describe_neighbour);
}

static bool answer_flush(struct control_request *r, void *opaque)
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
	for (uint32_t slot = 0; slot < NAT_NEIGHBOUR_SLOTS; slot++)
		if (address == NULL ||
		    nat_neighbours_at(app->neighbours, slot).addr == wanted)
			n += nat_neighbours_forget(
				app->neighbours, slot,
				dataplane_now_s(&app->plane));
	return control_end(r, json_pack("{s:i}", "cleared", n));
}

const struct control_verb nat_verbs[N_NAT_VERBS] = {
	{ "nat sessions", sizeof(struct nat_ask), answer_sessions },
	{ "nat clear", sizeof(struct nat_ask), answer_clear },
	{ "nat neighbours", CONTROL_LISTING_BYTES, answer_neighbours },
	{ "nat neighbours flush", 0, answer_flush },
};

bool nat_answers_ready(void *opaque)
{
	struct app *app = opaque;
	uint64_t n;

	/* Perhaps nothing to read: each request shows if it was answered. */
	if (read(app->answered_fd, &n, sizeof(n)) < 0)
		n = 0;
	for (uint32_t w = 0; w < app->n_workers; w++) {
		struct nat_request *request = &app->workers[w].request;

		if (nat_request_state(request) != NAT_REQUEST_ANSWERED)
			continue;
		if (request->question == NAT_ASK_RELOAD) {
			nat_reload_answered(app, w);
		} else if (request->question == NAT_ASK_SAVE) {
			nat_keep_answered(app->keep, w);
		} else {
			nat_ask_answered(request->ask, request);
			nat_request_set(request, NAT_REQUEST_FREE);
		}
	}
	nat_offload_serve(app);
	nat_reload_ask(app); /* before clients: it waits for one request */
	control_advance(app->control);
	nat_keep_advance(app->keep); /* clients' requests first */
	return false;
}
