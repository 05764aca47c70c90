/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket of an application, which mrctl uses.
 *
 * A stream socket, mode 0600. A request is a line of JSON, an object with
 * "verb" and the verb's own members; an answer is lines of JSON, of which the
 * last has "end" or "error". docs/operations.md describes verbs and limits,
 * control.schema.json the lines.
 *
 * The thread that calls run() serves it between other events and never waits
 * for a client. There are 32 connections; a new one replaces the one without
 * progress for the longest time.
 */
#ifndef SUPPORT_CONTROL_H
#define SUPPORT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>
#include <millrace/experimental/parcel.h>
#include <millrace/millrace.h>

#include "snapshot.h"

enum {
	CONTROL_PROTOCOL = 1,
	CONTROL_MAX_LINE = 4 << 20, /* of a request: a file of yaml_keys.h */
	CONTROL_MAX_NAME = 32,      /* of an instance */
};

struct capture;
struct control;

/* A request that is being answered. */
struct control_request {
	uid_t uid;    /* of the client */
	json_t *args; /* its members, without "v" and "verb" */
	void *state;  /* n_state bytes of the verb, 0 at first */
	bool is_gone; /* the client no longer reads the answer */
	/* Of control.c: what the client has yet to read. */
	char *bytes;
	size_t n, n_max;
	bool is_broken; /* no memory: the connection ends */
};

/*
 * Add lines to the answer. Returns true if it is complete, after control_end()
 * or control_fail(). Otherwise it is called again when the client has read
 * them, or by control_advance(). opaque is run()'s app, or the struct control
 * for verbs of every application.
 */
typedef bool control_answer_fn(struct control_request *request, void *opaque);

struct control_verb {
	const char *name; /* "nat sessions" */
	size_t n_state;
	control_answer_fn *answer;
};

/* The options of the user: see run.h. */
struct control_options {
	const char *name; /* of the instance; NULL: the program's */
	const char *path; /* NULL: NAME.sock in listen_folder() */
	/* NULL: none; else as for metrics_open(). */
	const char *metrics;
};

struct control_config {
	const struct control_options *options;
	const char *program; /* "mr-nat" */
	const char *name;    /* unless an option says otherwise */
	/* If the default name is taken, use NAME-2, NAME-3...; without a
	 * socket, warn and continue. */
	bool is_optional;
	const struct control_verb *verbs;
	uint32_t n_verbs;
	const struct settings_ops *settings; /* settings.h; NULL: none */
};

/*
 * Listen. Requests wait until control_begin(). 0, or -errno with a message.
 */
int control_open(const struct control_config *config,
		 struct control **ret_control, struct mr_reason *ret_why);
/* Removes the socket; NULL is fine. */
void control_close(struct control *control);

/* For the process that takes over: the sockets, in a parcel. */
void control_put(const struct control *control, struct mr_parcel *parcel);
/* Serve them; control_open() made none, because upgrade_fd() is one. */
int control_take(struct control *control, struct mr_parcel *parcel,
		 struct mr_reason *ret_why);
/* Close the control, but not the sockets: another process has them. */
void control_leave(struct control *control);

/* The running program: the plane is open, workers have started. */
struct control_view {
	struct dataplane *plane;
	struct capture *capture; /* NULL: none */
	const struct app_counters *counters;
	void *app;
	uint64_t start_ns;
	const _Atomic uint64_t *n_skipped; /* reports; NULL: none */
	struct upgrade *upgrade;
};
/* False with errno: no memory or no epoll fd. */
bool control_begin(struct control *control, const struct control_view *view);

/* Readable when there is work: then call control_serve(), and as long as
 * control_has_work(). */
int control_fd(const struct control *control);
bool control_has_work(const struct control *control);
void control_serve(struct control *control);
/* Each second, for timeouts. */
void control_tick(struct control *control);
/* What a verb waited for has happened. */
void control_advance(struct control *control);

/* For verbs: add a line to the answer; takes ownership of it. */
void control_add(struct control_request *request, json_t *line);
/* The last line; more, if not NULL, becomes part of it. Returns true. */
bool control_end(struct control_request *request, json_t *more);
bool control_fail(struct control_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Unpack the request's members as json_unpack() does; others are an error.
 * False: the answer reports it. */
bool control_args(struct control_request *request, const char *format, ...);

/*
 * Parse a client's line: returns its verb and, in *ret_args, the other members,
 * which the caller owns; or NULL with a message. The line need not be
 * terminated.
 */
const struct control_verb *control_parse(const char *line, size_t n,
					 const struct control_verb *verbs,
					 uint32_t n_verbs, json_t **ret_args,
					 struct mr_reason *ret_why);

/*
 * Answer with an object per used slot of a table, then their number as
 * "listed". describe returns NULL for a free slot. The verb's n_state is
 * CONTROL_LISTING_BYTES.
 */
enum { CONTROL_LISTING_BYTES = 8 };
typedef json_t *control_describe_fn(const void *app, uint32_t slot);
bool control_list(struct control_request *request, const void *app,
		  uint32_t n_slots, control_describe_fn *describe);

/* control_verbs.c: those of every application; opaque is the control. */
enum { N_CONTROL_VERBS = 10 };
extern const struct control_verb control_verbs[N_CONTROL_VERBS];

/* control_capture.c: two of the verbs, and their requests. False: the answer
 * says what is wrong. */
enum { CONTROL_CAPTURE_STATE = 64 }; /* bytes */
control_answer_fn control_answer_capture, control_answer_trace;
struct capture_request;
bool control_take_capture(struct control_request *request,
			  struct capture_request *ret);
bool control_take_trace(struct control_request *request,
			struct capture_request *ret);

/* For them. */
const struct control_config *control_config_of(const struct control *control);
const char *control_name(const struct control *control);
const struct control_view *control_view_of(const struct control *control);
/* Taken now. */
const struct snapshot *control_snapshot(struct control *control);

#endif
