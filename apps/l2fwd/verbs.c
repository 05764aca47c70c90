/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs.h"
#include "session.h"
#include "support/json_text.h"
#include "support/text.h"

/* NULL: the place is free. */
static json_t *describe_entry(const void *app, uint32_t place)
{
	const struct session *session = app;
	const uint64_t word = fdb_word(session->fdb, place);
	struct mr_port_info info = { .size = sizeof(info) };
	uint8_t mac[6];
	int32_t age_s;

	if (word == 0)
		return NULL;
	age_s = (int32_t)(dataplane_now_s(&session->plane) -
			  fdb_seen_s(session->fdb, place));
	mr_port_info(session->plane.ports[fdb_word_port(word)], &info);
	fdb_mac_bytes(fdb_word_mac(word), mac);
	/* A worker may have read the clock after us. */
	return json_pack("{s:s, s:o, s:i}", "mac", text_of_mac(mac).text,
			 "port", json_text(info.name), "age_s",
			 age_s > 0 ? age_s : 0);
}

static bool answer_fdb(struct control_request *r, void *app)
{
	const struct session *session = app;

	if (session->fdb == NULL)
		return control_fail(r, "l2 fdb: only --mode learn has a table");
	return control_list(r, app, fdb_n_places(session->fdb), describe_entry);
}

const struct control_verb l2fwd_verbs[N_L2FWD_VERBS] = {
	{ "l2 fdb", CONTROL_LISTING_BYTES, answer_fdb },
};
