/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests from the main thread to a worker: one at a time, answered between
 * two bursts, in bounded parts. No lock: a request belongs to the main thread
 * until sent, then to the worker, then to the main thread again.
 */
#ifndef NAT_REQUEST_H
#define NAT_REQUEST_H

#include "datapath/path.h"
#include "datapath/steer.h"
#include "mapping/filter.h"
#include "mapping/map.h"

enum {
	NAT_REQUEST_SESSIONS = 64, /* examined per round... */
	NAT_REQUEST_SAVED = 512,   /* ...or only copied: 55 ns each */
	NAT_REQUEST_PORTS = 1024,  /* released from hold-down per round */
};

enum nat_question {
	NAT_ASK_LIST,   /* the next matching sessions after cursor */
	NAT_ASK_SAVE,   /* all sessions and ports in hold-down, for keep.h */
	NAT_ASK_CLEAR,  /* end matching sessions */
	NAT_ASK_RELOAD, /* apply config */
};

enum nat_request_state {
	NAT_REQUEST_FREE,    /* another one may be sent */
	NAT_REQUEST_ASKED,   /* by the main thread, which wakes the worker */
	NAT_REQUEST_ANSWERED /* by the worker; FREE once that has been read */
};

struct nat_ask; /* verbs.c */

struct nat_request {
	uint32_t state;  /* atomic: enum nat_request_state */
	int answered_fd; /* an eventfd of the main thread */
	enum nat_question question;
	struct nat_filter filter;
	const struct nat_config *config;
	uint64_t cursor;     /* of nat_maps_list() or nat_maps_save() */
	bool is_now;         /* clear: also release ports from hold-down */
	struct nat_ask *ask; /* whose list or clear it is */
	/* The answer. */
	bool is_end; /* of the list */
	int err;
	struct mr_reason why;
	uint32_t n; /* sessions, or how many were ended */
	struct nat_session sessions[NAT_REQUEST_SAVED];
};

/* Seeing a state implies seeing what the other thread wrote before it. */
static inline enum nat_request_state
nat_request_state(const struct nat_request *request)
{
	return (enum nat_request_state)__atomic_load_n(&request->state,
						       __ATOMIC_ACQUIRE);
}

static inline void nat_request_set(struct nat_request *request,
				   enum nat_request_state state)
{
	__atomic_store_n(&request->state, state, __ATOMIC_RELEASE);
}

/* What the worker needs to answer. */
struct nat_request_to {
	struct nat_maps *maps;
	struct nat_path *path;
	struct nat_steer *steer; /* NULL: one worker */
	uint32_t now_s;
};

static inline bool nat_request_is_asked(const struct nat_request *request)
{
	return __atomic_load_n(&request->state, __ATOMIC_RELAXED) ==
	       NAT_REQUEST_ASKED;
}

/* Call once per round. */
void nat_request_answer(struct nat_request *request,
			const struct nat_request_to *to);

#endif
