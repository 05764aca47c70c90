/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-nat can be asked on its control socket. */
#ifndef NAT_VERBS_H
#define NAT_VERBS_H

#include "support/control.h"

/*
 * nat sessions: "filter"; an object per session, then their number as "listed".
 * nat clear: "filter", "now"; ends sessions, and then says how many as
 * "cleared", and "saved": false if the state file was not written within 5 s.
 * It is carried out even if the client leaves.
 * nat neighbours: an object per neighbour, then "listed".
 * nat neighbours flush: "address" (none: all); forgets neighbours that are
 * neither static nor being queried, and answers with their number as "cleared".
 */
enum { N_NAT_VERBS = 4 };
extern const struct control_verb nat_verbs[N_NAT_VERBS];

struct nat_ask;
struct nat_request;

/* A worker has answered a request of one of them. */
void nat_ask_answered(struct nat_ask *ask, const struct nat_request *request);

/* For run(): the workers' answers are there; app is the struct app. */
bool nat_answers_ready(void *app);

#endif
