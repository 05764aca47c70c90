/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the control socket, and the lines between them and the verbs. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture.h"
#include "control.h"
#include "listen.h"
#include "metrics.h"
#include "text.h"
#include "upgrade.h"

enum {
	MAX_CLIENTS = 32,
	MAX_ACCEPTED = 16, /* per call, so that the caller's events go on */
	/* An answer grows only while its client reads. */
	MAX_PENDING = 1 << 16,
	IDLE_S = 60, /* without a request, or without reading the answer */
	MAX_NAMES = 99,
	MIN_LINE = 4096, /* of memory for a request */
	WHAT_LISTEN = MAX_CLIENTS,
	WHAT_METRICS,
	WHAT_CAPTURE,
};

struct client {
	int fd;                          /* -1: none */
	bool is_at_end;                  /* the client sends no more */
	const struct control_verb *verb; /* being answered; NULL: none */
	struct control_request request;
	uint64_t since_ns; /* of its connection, or last progress */
	uint32_t events;   /* it is watched for */
	size_t n_line, n_max_line;
	size_t n_first; /* of the first whole line in it; 0: there is none */
	char *line;
};

struct control {
	struct control_config config;
	struct control_view view;
	struct snapshot *now;
	struct metrics *metrics; /* NULL: none */
	int epoll_fd, listen_fd;
	char name[CONTROL_MAX_NAME + 4];
	char path[LISTEN_MAX_PATH];
	struct client clients[MAX_CLIENTS];
};

/* control_open() */

static int try_name(struct control *c, uint32_t number,
		    struct mr_reason *ret_why)
{
	const struct control_options *options = c->config.options;
	const char *name =
		options->name != NULL ? options->name : c->config.name;
	char folder[LISTEN_MAX_PATH];
	int n, err;

	snprintf(c->name, sizeof(c->name), number > 1 ? "%s-%u" : "%s", name,
		 number);
	if (options->path != NULL) {
		n = snprintf(c->path, sizeof(c->path), "%s", options->path);
	} else {
		err = listen_folder(folder, sizeof(folder), ret_why);
		if (err < 0)
			return err;
		n = snprintf(c->path, sizeof(c->path), "%s/%s.sock", folder,
			     c->name);
	}
	if ((size_t)n >= sizeof(c->path)) {
		return fail_with(ret_why, -ENAMETOOLONG,
				 "%.100s...: the path is too long", c->path);
	}
	return listen_unix(c->path, SOCK_STREAM, 0600, ret_why);
}

/* The name of the user, or the first free one of the program. */
static int listen_somewhere(struct control *c, struct mr_reason *ret_why)
{
	const struct control_options *options = c->config.options;
	const bool is_chosen = options->name != NULL || options->path != NULL;
	struct mr_reason why;
	int err;

	for (uint32_t i = 1; i <= MAX_NAMES; i++) {
		err = try_name(c, i, &why);
		if (err != -EADDRINUSE || is_chosen || !c->config.is_optional)
			break;
	}
	c->listen_fd = err;
	if (err >= 0)
		return 0;
	if (err == -EADDRINUSE && options->path == NULL)
		return fail_with(ret_why, err,
				 "an instance '%s' is running; give this one "
				 "another name with --instance",
				 c->name);
	return fail_with(ret_why, err, "control socket: %s", why.text);
}

static int watch_fd(const struct control *c, int fd, uint32_t events,
		    uint32_t i, int how)
{
	struct epoll_event event = { .events = events, .data.u32 = i };

	return epoll_ctl(c->epoll_fd, how, fd, &event);
}

static int open_metrics(struct control *c, int listen_fd,
			struct mr_reason *ret_why)
{
	const char *where = c->config.options->metrics;
	struct mr_reason why;
	int err;

	if (where == NULL)
		return 0;
	err = metrics_open(where, listen_fd, c, &c->metrics, &why);
	return err < 0 ? fail_with(ret_why, err, "metrics: %s", why.text) : 0;
}

static int fail_epoll(struct mr_reason *ret_why)
{
	const int err = errno;

	return fail_with(ret_why, -err, "control socket: epoll: %s",
			 mr_strerror(err));
}

static int watch_listeners(const struct control *c, struct mr_reason *ret_why)
{
	if ((c->listen_fd >= 0 && watch_fd(c, c->listen_fd, EPOLLIN,
					   WHAT_LISTEN, EPOLL_CTL_ADD) < 0) ||
	    (c->metrics != NULL && watch_fd(c, metrics_fd(c->metrics), EPOLLIN,
					    WHAT_METRICS, EPOLL_CTL_ADD) < 0))
		return fail_epoll(ret_why);
	return 0;
}

static int open_all(struct control *c, struct mr_reason *ret_why)
{
	const struct control_options *options = c->config.options;
	int err;

	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		c->clients[i].fd = -1;
	c->listen_fd = -1;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0)
		return fail_epoll(ret_why);
	if (upgrade_fd() >= 0)
		return 0; /* control_take() */
	err = listen_somewhere(c, ret_why);
	if (err < 0 && c->config.is_optional && options->name == NULL &&
	    options->path == NULL) {
		print_error("%s: %s; mrctl cannot reach it", c->config.program,
			    ret_why->text);
		err = 0;
	}
	if (err == 0)
		err = open_metrics(c, -1, ret_why);
	return err == 0 ? watch_listeners(c, ret_why) : err;
}

void control_put(const struct control *c, struct mr_parcel *parcel)
{
	mr_parcel_enter(parcel, "control");
	mr_parcel_put(parcel, "name", 0, c->name, sizeof(c->name));
	mr_parcel_put(parcel, "path", 0, c->path, sizeof(c->path));
	mr_parcel_put_fd(parcel, "listen", c->listen_fd);
	if (c->metrics != NULL)
		mr_parcel_put_fd(parcel, "metrics",
				 metrics_listen_fd(c->metrics));
}

int control_take(struct control *c, struct mr_parcel *parcel,
		 struct mr_reason *ret_why)
{
	int err, fd = -1;

	mr_parcel_enter(parcel, "control");
	err = mr_parcel_get(parcel, "name", 0, c->name, sizeof(c->name),
			    ret_why);
	if (err == 0)
		err = mr_parcel_get(parcel, "path", 0, c->path, sizeof(c->path),
				    ret_why);
	if (err < 0)
		return err;
	c->listen_fd = mr_parcel_take_fd(parcel, "listen");
	/* If it is not wanted any more, nobody shall listen. */
	if (c->config.options->metrics != NULL)
		fd = mr_parcel_take_fd(parcel, "metrics");
	err = open_metrics(c, fd, ret_why);
	return err == 0 ? watch_listeners(c, ret_why) : err;
}

void control_leave(struct control *c)
{
	c->path[0] = '\0';
	if (c->metrics != NULL)
		metrics_leave(c->metrics);
}

int control_open(const struct control_config *config,
		 struct control **ret_control, struct mr_reason *ret_why)
{
	struct control *c = calloc(1, sizeof(*c));
	int err;

	*ret_control = NULL;
	if (c == NULL) {
		return fail_with(ret_why, -ENOMEM, "control socket: no memory");
	}
	c->config = *config;
	err = open_all(c, ret_why);
	if (err < 0)
		control_close(c);
	else
		*ret_control = c;
	return err;
}

static void free_line(struct client *client)
{
	free(client->line);
	client->line = NULL;
	client->n_line = client->n_max_line = client->n_first = 0;
}

static void forget_request(struct client *client)
{
	json_decref(client->request.args);
	free(client->request.state);
	free(client->request.bytes);
	client->request =
		(struct control_request){ .uid = client->request.uid };
	client->verb = NULL;
}

void control_close(struct control *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		if (c->clients[i].fd >= 0)
			close(c->clients[i].fd);
		free_line(&c->clients[i]);
		forget_request(&c->clients[i]);
	}
	metrics_close(c->metrics);
	listen_close(c->path, c->listen_fd);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	snapshot_destroy(c->now);
	free(c);
}

bool control_begin(struct control *c, const struct control_view *view)
{
	c->view = *view;
	c->now = snapshot_create(view->plane, view->counters);
	return c->now != NULL &&
	       (view->capture == NULL ||
		watch_fd(c, capture_fd(view->capture), EPOLLIN, WHAT_CAPTURE,
			 EPOLL_CTL_ADD) == 0);
}

int control_fd(const struct control *c)
{
	return c->epoll_fd;
}

bool control_has_work(const struct control *c)
{
	return c->metrics != NULL && metrics_has_work(c->metrics);
}

const struct control_config *control_config_of(const struct control *c)
{
	return &c->config;
}

const char *control_name(const struct control *c)
{
	return c->name;
}

const struct control_view *control_view_of(const struct control *c)
{
	return &c->view;
}

static uint64_t now_ns(const struct control *c)
{
	return mr_ctx_now_ns(c->view.plane->ctx);
}

const struct snapshot *control_snapshot(struct control *c)
{
	snapshot_take(c->now, c->view.plane,
		      (double)(now_ns(c) - c->view.start_ns) / 1e9,
		      c->view.app);
	if (c->view.n_skipped != NULL)
		c->now->n_skipped = atomic_load(c->view.n_skipped);
	return c->now;
}

static void begin_answer(struct control *c, struct client *client, size_t n)
{
	struct control_request *r = &client->request;
	struct mr_reason why;
	json_t *args;

	client->verb = control_parse(client->line, n, control_verbs,
				     N_CONTROL_VERBS, &args, &why);
	if (client->verb == NULL)
		client->verb = control_parse(client->line, n, c->config.verbs,
					     c->config.n_verbs, &args, &why);
	r->args = args;
	if (client->verb == NULL) {
		control_fail(r, "%s", why.text);
		return;
	}
	r->state = calloc(1, client->verb->n_state + 1);
	if (r->state == NULL) {
		r->is_broken = true;
		client->verb = NULL;
	}
}

static void go_on(struct control *c, struct client *client)
{
	const struct control_verb *verb = client->verb;
	const bool is_common =
		verb >= control_verbs && verb < control_verbs + N_CONTROL_VERBS;
	struct control_request *r = &client->request;

	if (verb == NULL || r->n >= MAX_PENDING ||
	    !verb->answer(r, is_common ? c : c->view.app))
		return;
	json_decref(r->args);
	free(r->state);
	r->args = NULL;
	r->state = NULL;
	client->verb = NULL;
}

/* A verb in progress ends without the client. */
static void drop_client(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd); /* also removes it from the epoll set */
	client->fd = -1;
	free_line(client);
	client->request.is_gone = true;
	client->request.n = 0;
	if (client->verb == NULL)
		forget_request(client);
}

/* The last line, if it can be sent at once. */
static void turn_away(struct client *client, const char *why)
{
	if (client->request.n == 0 && client->verb == NULL && client->fd >= 0) {
		control_fail(&client->request, "%s", why);
		send(client->fd, client->request.bytes, client->request.n,
		     MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	drop_client(client);
}

/* False: the connection is broken. */
static bool send_some(struct control *c, struct client *client)
{
	struct control_request *r = &client->request;
	ssize_t n;

	if (r->n == 0)
		return true;
	n = send(client->fd, r->bytes, r->n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->since_ns = now_ns(c);
	r->n -= (size_t)n;
	memmove(r->bytes, r->bytes + n, r->n);
	return true;
}

/* A line that ends at or after the n-th byte. */
static void find_line(struct client *client, size_t n)
{
	const char *end = NULL;

	if (client->n_line > n)
		end = memchr(client->line + n, '\n', client->n_line - n);
	if (end != NULL)
		client->n_first = (size_t)(end + 1 - client->line);
}

/* One request at most, so that others get their turn. */
static void take_line(struct control *c, struct client *client)
{
	const size_t n = client->n_first;

	if (client->verb != NULL || client->request.n > 0 || n == 0)
		return;
	client->since_ns = now_ns(c);
	begin_answer(c, client, n - 1);
	client->n_line -= n;
	client->n_first = 0;
	memmove(client->line, client->line + n, client->n_line);
	find_line(client, 0);
	if (client->n_line == 0)
		free_line(client);
}

static void serve_client(struct control *c, uint32_t i)
{
	struct client *client = &c->clients[i];
	uint32_t events = 0;
	bool is_waiting;

	take_line(c, client);
	go_on(c, client);
	if (client->request.is_broken)
		drop_client(client);
	if (client->fd < 0) {
		if (client->verb == NULL)
			forget_request(client);
		return;
	}
	is_waiting = client->verb != NULL && client->request.n == 0;
	if (!send_some(c, client) ||
	    now_ns(c) - client->since_ns >= IDLE_S * 1000000000ull) {
		if (is_waiting)
			return;
		turn_away(client, "no request within 60 seconds");
		return;
	}
	if (client->request.n > 0 ||
	    (client->verb == NULL && client->n_first > 0) ||
	    (client->verb != NULL && !is_waiting))
		events = EPOLLOUT;
	else if (client->verb == NULL && client->is_at_end)
		drop_client(client);
	else if (client->verb == NULL)
		events = EPOLLIN;
	if (client->fd >= 0 && events != client->events)
		watch_fd(c, client->fd, events, i, EPOLL_CTL_MOD);
	client->events = events;
}

/* Room for more of a line. */
static bool grow_line(struct client *client)
{
	size_t n_max =
		client->n_max_line > 0 ? 2 * client->n_max_line : MIN_LINE;
	char *longer;

	if (client->n_line < client->n_max_line)
		return true;
	longer = realloc(client->line, n_max);
	if (longer == NULL)
		return false;
	client->line = longer;
	client->n_max_line = n_max;
	return true;
}

static void read_client(struct client *client)
{
	ssize_t n;

	if (!grow_line(client)) {
		drop_client(client);
		return;
	}
	n = read(client->fd, client->line + client->n_line,
		 client->n_max_line - client->n_line);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client->is_at_end = true;
		return;
	}
	client->n_line += (size_t)n;
	if (client->n_first == 0)
		find_line(client, client->n_line - (size_t)n);
	if (client->n_line == CONTROL_MAX_LINE && client->n_first == 0)
		turn_away(client, "a request must be shorter than 4 MiB");
}

/* A free slot, or that of the client without progress for longest. */
static struct client *find_place(struct control *c)
{
	struct client *oldest = NULL;

	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &c->clients[i];

		if (client->fd < 0 && client->verb == NULL)
			return client;
		if (client->verb != NULL && client->request.n == 0)
			continue; /* the program keeps it waiting */
		if (oldest == NULL || client->since_ns < oldest->since_ns)
			oldest = client;
	}
	if (oldest != NULL)
		turn_away(oldest, "too many clients; this one was idle for "
				  "longest");
	return oldest != NULL && oldest->verb == NULL ? oldest : NULL;
}

/* The user of a client; if the kernel does not say, nobody's. */
static uid_t uid_of(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 ?
		       peer.uid :
		       (uid_t)-1;
}

static bool accept_client(struct control *c)
{
	const int fd =
		accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	if (fd < 0 && errno != EAGAIN) /* out of fds: it would come again */
		(void)watch_fd(c, c->listen_fd, 0, WHAT_LISTEN, EPOLL_CTL_MOD);
	if (fd < 0)
		return false;
	client = find_place(c);
	if (client == NULL) {
		close(fd);
		return true;
	}
	client->fd = fd;
	client->request.uid = uid_of(fd);
	client->is_at_end = false;
	client->since_ns = now_ns(c);
	client->events = EPOLLIN;
	if (watch_fd(c, fd, EPOLLIN, (uint32_t)(client - c->clients),
		     EPOLL_CTL_ADD) < 0)
		drop_client(client);
	return true;
}

void control_serve(struct control *c)
{
	enum { N_EVENTS = MAX_CLIENTS + 3 };
	struct epoll_event events[N_EVENTS];
	const int n = epoll_wait(c->epoll_fd, events, N_EVENTS, 0);

	for (int i = 0; i < n; i++) {
		const uint32_t what = events[i].data.u32;
		struct client *client = &c->clients[what % MAX_CLIENTS];

		if (what == WHAT_METRICS)
			metrics_serve(c->metrics);
		if (what == WHAT_CAPTURE)
			capture_heard(c->view.capture);
		if (what >= MAX_CLIENTS || client->fd < 0)
			continue;
		if (client->events & EPOLLIN)
			read_client(client);
		else if (events[i].events & (EPOLLERR | EPOLLHUP))
			drop_client(client);
	}
	if (control_has_work(c))
		metrics_serve(c->metrics);
	for (uint32_t i = 0; i < MAX_ACCEPTED && accept_client(c); i++)
		;
	control_advance(c);
}

void control_tick(struct control *c)
{
	(void)watch_fd(c, c->listen_fd, EPOLLIN, WHAT_LISTEN, EPOLL_CTL_MOD);
	if (c->metrics != NULL)
		metrics_tick(c->metrics);
	control_advance(c);
}

void control_advance(struct control *c)
{
	/* Results first: the next request may replace them. */
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		if (c->clients[i].verb != NULL)
			serve_client(c, i);
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		if (c->clients[i].verb == NULL && c->clients[i].fd >= 0)
			serve_client(c, i);
}
