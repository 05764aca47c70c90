/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "session.h"
#include "support/json_text.h"
#include "verbs.h"

enum { ENTRIES = 256 }; /* listed per call */

struct listing {
	uint32_t place; /* next */
	uint32_t n;
};

static json_t *describe_entry(const struct session *session, uint32_t place,
			      uint64_t word, uint32_t now_s)
{
	const uint64_t mac = fdb_word_mac(word);
	const struct mr_port *port = session->plane.ports[fdb_word_port(word)];
	const int32_t age_s =
		(int32_t)(now_s - fdb_seen_s(session->fdb, place));
	struct mr_port_info info = { .size = sizeof(info) };
	char text[18];

	mr_port_info(port, &info);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x",
		 (unsigned)(mac >> 40) & 0xff, (unsigned)(mac >> 32) & 0xff,
		 (unsigned)(mac >> 24) & 0xff, (unsigned)(mac >> 16) & 0xff,
		 (unsigned)(mac >> 8) & 0xff, (unsigned)mac & 0xff);
	/* A worker may have read the clock after us. */
	return json_pack("{s:s, s:o, s:i}", "mac", text, "port",
			 json_text(info.name), "age_s", age_s > 0 ? age_s : 0);
}

static bool answer_fdb(struct control_request *r, void *app)
{
	const struct session *session = app;
	struct listing *at = r->state;
	const uint32_t end = at->n + ENTRIES;
	uint32_t now_s;

	if (r->is_gone || (at->place == 0 && !control_args(r, "{}")))
		return true;
	if (session->fdb == NULL)
		return control_fail(r, "l2 fdb: only --mode learn has a table");
	now_s = (uint32_t)(mr_ctx_now_ns(session->plane.ctx) / 1000000000u);
	for (; at->place < fdb_n_places(session->fdb); at->place++) {
		const uint64_t word = fdb_word(session->fdb, at->place);

		if (word == 0)
			continue;
		if (at->n == end)
			return false;
		control_add(r, describe_entry(session, at->place, word, now_s));
		at->n++;
	}
	return control_end(r, json_pack("{s:i}", "listed", (int)at->n));
}

const struct control_verb l2fwd_verbs[N_L2FWD_VERBS] = {
	{ "l2 fdb", sizeof(struct listing), answer_fdb },
};
