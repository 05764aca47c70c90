/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket of a running instance: a stream socket that takes a line
 * and answers with lines of JSON. People use mr-nat sessions, programs use the
 * socket.
 *
 *     sessions [FILTER]           an object per session
 *     clear [--now] FILTER|all    ends them
 *     stats                       counters
 *
 * The last line of an answer has "end" or "error"; that of clear also has
 * "saved": false if the state file could not be written within 5 s. At most 8
 * clients are served; one is disconnected if it sends no request for 5 s or
 * reads nothing for 60 s. The main thread serves them and sends requests
 * to the workers, which answer between bursts.
 */
#ifndef NAT_CONTROL_H
#define NAT_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include <millrace/millrace.h>

#include "mapping/map.h"
#include "options.h"

struct app;
struct nat_control;

/* client.c: ask a running instance, and print the answer. Returns the exit
 * status. */
int nat_client_ask(const struct options *options);

/* The socket of an instance; only its owner may connect. False: too long. */
bool nat_control_path(const char *instance, char *ret_path, size_t n_bytes);

/*
 * Lock the name of an instance until the returned fd is closed. Or -errno with
 * a message: -EADDRINUSE if the instance is already running.
 */
int nat_control_lock(const char *instance, struct mr_reason *ret_why);

/* answer.c: lines of JSON for a client, until it has read them. */
struct nat_answer {
	char *bytes;
	size_t n, n_max; /* bytes to send, and capacity */
	bool is_broken;  /* no memory: sending fails */
};

void nat_answer_free(struct nat_answer *answer);
void nat_answer_session(struct nat_answer *answer,
			const struct nat_session *session);
void nat_answer_stats(struct nat_answer *answer, struct app *app);
void nat_answer_error(struct nat_answer *answer, const char *text);
/* {"end":true,"listed":3} */
void nat_answer_end(struct nat_answer *answer, const char *what, uint64_t n,
		    bool is_saved);

/* Send as much as the socket takes: 0, or -1 if the connection is broken. */
int nat_answer_send(struct nat_answer *answer, int fd);

/* Listen; the caller holds the lock. 0, or -errno with a message. */
int nat_control_create(struct app *app, const char *instance,
		       struct nat_control **ret_control,
		       struct mr_reason *ret_why);
void nat_control_destroy(struct nat_control *control);

/* Readable when there is work; then call ready() with the app. */
int nat_control_fd(const struct nat_control *control);
bool nat_control_ready(void *app);

/* Call each second: disconnects clients that send or read nothing. */
void nat_control_drop_idle(struct nat_control *control);

#endif
