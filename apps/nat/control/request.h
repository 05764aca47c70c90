/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the main thread asks of a worker: one question at a time, answered
 * between two bursts, in parts that are bounded. No lock: the question is the
 * main thread's until it is asked, then the worker's, then the main thread's
 * again.
 */
#ifndef NAT_REQUEST_H
#define NAT_REQUEST_H

#include "datapath/path.h"
#include "datapath/steer.h"
#include "mapping/filter.h"
#include "mapping/map.h"

enum {
	NAT_REQUEST_SESSIONS = 64, /* that are looked at per round... */
	NAT_REQUEST_SAVED = 512,   /* ...or only copied: 55 ns each */
	NAT_REQUEST_PORTS = 1024,  /* that leave hold-down per round */
};

enum nat_question {
	NAT_ASK_LIST,   /* the next sessions behind cursor that filter has */
	NAT_ASK_SAVE,   /* the same, for keep.h */
	NAT_ASK_CLEAR,  /* end them */
	NAT_ASK_RELOAD, /* config is new */
};

/* Stores are releases, loads acquires: who sees a state sees what the other
 * thread wrote before it. */
enum nat_request_state {
	NAT_REQUEST_FREE,
	NAT_REQUEST_ASKED,
	NAT_REQUEST_ANSWERED
};

struct nat_request {
	uint32_t state;  /* atomic: enum nat_request_state */
	int answered_fd; /* an eventfd of the main thread */
	enum nat_question question;
	struct nat_filter filter;
	const struct nat_config *config;
	uint64_t cursor; /* of nat_maps_list() */
	bool is_now;     /* to clear: ports leave hold-down as well */
	/* The answer. */
	bool is_end; /* of the list */
	int err;
	struct mr_reason why;
	uint32_t n; /* sessions; or how many ended */
	struct nat_session sessions[NAT_REQUEST_SAVED];
};

/* Main thread. The worker has to be woken then. */
void nat_request_ask(struct nat_request *request);
bool nat_request_is_answered(struct nat_request *request);
/* Whether another question may be asked. */
bool nat_request_is_free(const struct nat_request *request);
/* The answer has been read. */
void nat_request_done(struct nat_request *request);

/* Worker: what answers are made from. */
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

/* Once per round, if it was asked. */
void nat_request_answer(struct nat_request *request,
			const struct nat_request_to *to);

#endif
