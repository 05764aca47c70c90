/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: clients, and their requests to workers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app.h"
#include "control.h"
#include "keep.h"

enum {
	MAX_CLIENTS = 8,
	MAX_LINE = 512,
	/* Stop requesting more for a client that does not read. */
	MAX_PENDING = 1 << 16,
	/* Timeouts for a client to send its line, and to read an answer. */
	LINE_S = 5,
	READ_S = 60,
	SAVE_S = 5, /* for the disk to store what was cleared */
};

struct client {
	int fd;        /* -1: none, or it left before the request was done */
	bool is_asked; /* a worker has its request */
	bool is_busy;  /* its request is not done */
	bool has_line;
	enum nat_question question;
	struct nat_filter filter;
	bool is_now;     /* clear also empties hold-down */
	uint32_t worker; /* next worker to ask */
	uint64_t cursor;
	uint64_t n;        /* sessions, for the last line */
	uint64_t snapshot; /* that lacks them; 0: not yet known */
	char line[MAX_LINE];
	size_t n_line;
	uint64_t since_ns; /* of its connection, request, or last read */
	struct nat_answer answer;
};

struct nat_control {
	struct app *app;
	int epoll_fd, listen_fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct client clients[MAX_CLIENTS];
};

bool nat_control_path(const char *instance, char *ret_path, size_t n_bytes)
{
	const char *folder = getenv("RUNTIME_DIRECTORY"); /* set by systemd */
	int n;

	if (folder == NULL)
		folder = geteuid() == 0 ? "/run/millrace" :
					  getenv("XDG_RUNTIME_DIR");
	n = snprintf(ret_path, n_bytes, "%s/nat-%s.sock",
		     folder != NULL ? folder : "/tmp", instance);
	return n > 0 && (size_t)n < n_bytes;
}

static int fail(struct mr_reason *ret_why, const char *path)
{
	const int err = errno;

	snprintf(ret_why->text, sizeof(ret_why->text), "control socket %s: %s",
		 path, strerror(err));
	return -err;
}

/*
 * The lock owns the name, so a socket left behind by a killed instance can be
 * told from one in use. The file stays: if it were unlinked, somebody who
 * opened it before could hold a lock that no one else checks.
 */
int nat_control_lock(const char *instance, struct mr_reason *ret_why)
{
	char folder[sizeof(((struct nat_control *)0)->path)];
	char path[sizeof(folder) + 8];
	bool is_taken;
	int fd;

	errno = ENAMETOOLONG;
	if (!nat_control_path(instance, folder, sizeof(folder)))
		return fail(ret_why, instance);
	snprintf(path, sizeof(path), "%s.lock", folder);
	*strrchr(folder, '/') = '\0';
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return fail(ret_why, folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(ret_why, path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	is_taken = errno == EWOULDBLOCK;
	if (!is_taken)
		fail(ret_why, path);
	close(fd);
	if (!is_taken)
		return -EIO;
	snprintf(ret_why->text, sizeof(ret_why->text),
		 "an instance '%s' is running; give this one another name with "
		 "--instance",
		 instance);
	return -EADDRINUSE;
}

static int watch(const struct nat_control *c, int fd, uint32_t events,
		 uint64_t what, int how)
{
	struct epoll_event event = { .events = events, .data.u64 = what };

	return epoll_ctl(c->epoll_fd, how, fd, &event);
}

enum { WHAT_LISTEN = MAX_CLIENTS, WHAT_ANSWERED };

static int listen_at(struct nat_control *c, struct mr_reason *ret_why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask;
	int err;

	memcpy(addr.sun_path, c->path, sizeof(c->path));
	c->listen_fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->listen_fd < 0 || c->epoll_fd < 0)
		return fail(ret_why, c->path);
	unlink(c->path);
	mask = umask(0177); /* only the process's owner may connect */
	err = bind(c->listen_fd, (struct sockaddr *)&addr, sizeof(addr));
	umask(mask);
	if (err < 0 || listen(c->listen_fd, MAX_CLIENTS) < 0 ||
	    watch(c, c->listen_fd, EPOLLIN, WHAT_LISTEN, EPOLL_CTL_ADD) < 0 ||
	    watch(c, c->app->answered_fd, EPOLLIN, WHAT_ANSWERED,
		  EPOLL_CTL_ADD) < 0)
		return fail(ret_why, c->path);
	return 0;
}

int nat_control_create(struct app *app, const char *instance,
		       struct nat_control **ret_control,
		       struct mr_reason *ret_why)
{
	struct nat_control *c = calloc(1, sizeof(*c));
	int err;

	if (c == NULL) {
		errno = ENOMEM;
		return fail(ret_why, instance);
	}
	c->app = app;
	c->epoll_fd = c->listen_fd = -1;
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		c->clients[i].fd = -1;
	errno = ENAMETOOLONG;
	if (!nat_control_path(instance, c->path, sizeof(c->path))) {
		free(c);
		return fail(ret_why, instance);
	}
	err = listen_at(c, ret_why);
	if (err < 0) {
		nat_control_destroy(c);
		return err;
	}
	*ret_control = c;
	return 0;
}

void nat_control_destroy(struct nat_control *c)
{
	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		nat_answer_free(&c->clients[i].answer);
		if (c->clients[i].fd >= 0)
			close(c->clients[i].fd);
	}
	if (c->listen_fd >= 0) {
		unlink(c->path);
		close(c->listen_fd);
	}
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	free(c);
}

int nat_control_fd(const struct nat_control *c)
{
	return c->epoll_fd;
}

/* Its request is still carried out, but its answer is no longer needed. */
static void drop_client(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd); /* also removes it from the epoll set */
	client->fd = -1;
	if (client->question != NAT_ASK_CLEAR)
		client->is_busy = false;
	nat_answer_free(&client->answer);
}

/* The only line for a rejected client. */
static void turn_away(int fd, const char *why)
{
	struct nat_answer answer = { 0 };

	nat_answer_error(&answer, why);
	nat_answer_send(&answer, fd);
	nat_answer_free(&answer);
}

static uint64_t now_ns(const struct nat_control *c)
{
	return mr_ctx_now_ns(c->app->plane.ctx);
}

void nat_control_drop_idle(struct nat_control *c)
{
	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &c->clients[i];
		const uint64_t idle_s =
			(now_ns(c) - client->since_ns) / 1000000000;

		if (client->fd < 0)
			continue;
		if (!client->has_line && idle_s >= LINE_S) {
			turn_away(client->fd, "no request within 5 seconds");
			drop_client(client);
		} else if (client->answer.n > 0 && idle_s >= READ_S) {
			drop_client(client);
		}
	}
}

static void accept_client(struct nat_control *c)
{
	const int fd =
		accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &c->clients[i];

		if (client->fd >= 0 || client->is_busy || client->is_asked)
			continue;
		*client = (struct client){ .fd = fd, .since_ns = now_ns(c) };
		if (watch(c, fd, EPOLLIN, i, EPOLL_CTL_ADD) < 0)
			drop_client(client);
		return;
	}
	turn_away(fd, "too many clients; idle ones are disconnected after "
		      "5 seconds: try again");
	close(fd);
}

/* Wait for the snapshot: cleared sessions must not return after a crash. */
static bool is_saved(struct nat_control *c, struct client *client)
{
	if (client->question != NAT_ASK_CLEAR)
		return true;
	if (client->snapshot == 0) {
		client->snapshot = nat_keep_want(c->app->keep);
		client->since_ns = now_ns(c);
	}
	return nat_keep_has(c->app->keep, client->snapshot) ||
	       now_ns(c) - client->since_ns >= SAVE_S * 1000000000ull;
}

static void end_answer(struct nat_control *c, struct client *client)
{
	nat_answer_end(&client->answer,
		       client->question == NAT_ASK_CLEAR ? "cleared" : "listed",
		       client->n,
		       client->question != NAT_ASK_CLEAR ||
			       nat_keep_saved(c->app->keep, client->snapshot));
	client->is_busy = false;
}

/* A client's request. */
static void take_line(struct nat_control *c, struct client *client)
{
	char *rest = client->line + strcspn(client->line, " ");
	struct mr_reason why;

	if (*rest != '\0')
		*rest++ = '\0';
	client->is_now = strncmp(rest, "--now ", 6) == 0;
	if (client->is_now)
		rest += 6;
	client->n = client->snapshot = 0;
	client->worker = 0;
	client->cursor = 0;
	if (strcmp(client->line, "stats") == 0) {
		nat_answer_stats(&client->answer, c->app);
		return;
	}
	client->question = strcmp(client->line, "clear") == 0 ? NAT_ASK_CLEAR :
								NAT_ASK_LIST;
	if (client->question == NAT_ASK_LIST &&
	    strcmp(client->line, "sessions") != 0)
		nat_answer_error(&client->answer,
				 "unknown request; known ones: sessions, "
				 "clear, stats");
	else if (client->question == NAT_ASK_CLEAR && *rest == '\0')
		nat_answer_error(&client->answer,
				 "clear: give a filter, or all");
	else if (!nat_filter_parse(rest, &client->filter, &why))
		nat_answer_error(&client->answer, why.text);
	else
		client->is_busy = true;
}

/* Read from a client, up to the end of its line. */
static void read_client(struct nat_control *c, struct client *client)
{
	char *end;
	ssize_t n;

	n = read(client->fd, client->line + client->n_line,
		 MAX_LINE - 1 - client->n_line);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* It may have sent its request and shut down its side. */
		if (!client->is_busy && client->answer.n == 0)
			drop_client(client);
		else
			client->has_line = true;
		return;
	}
	client->n_line += (size_t)n;
	client->line[client->n_line] = '\0';
	end = strchr(client->line, '\n');
	if (end == NULL && client->n_line < MAX_LINE - 1)
		return;
	if (end != NULL)
		*end = '\0';
	client->has_line = true; /* one per connection */
	client->since_ns = now_ns(c);
	take_line(c, client);
}

/* Request the next part of an answer. */
static void ask_more(struct nat_control *c, struct client *client)
{
	struct app *app = c->app;

	while (client->is_busy && !client->is_asked &&
	       client->answer.n < MAX_PENDING) {
		struct nat_worker *w;

		if (client->worker == app->n_workers) {
			if (is_saved(c, client))
				end_answer(c, client);
			return;
		}
		w = &app->workers[client->worker];
		if (nat_request_state(&w->request) != NAT_REQUEST_FREE)
			return; /* another client's; its answer wakes us */
		w->request.question = client->question;
		w->request.filter = client->filter;
		w->request.is_now = client->is_now;
		w->request.cursor = client->cursor;
		client->is_asked = true;
		nat_request_set(&w->request, NAT_REQUEST_ASKED);
		mr_worker_wake(w->worker);
	}
}

static void take_answer(struct nat_control *c, uint32_t worker_idx)
{
	struct nat_request *request = &c->app->workers[worker_idx].request;

	for (uint32_t i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &c->clients[i];

		if (!client->is_asked || client->worker != worker_idx)
			continue;
		client->is_asked = false;
		client->cursor = request->cursor;
		client->n += request->n;
		for (uint32_t s = 0; s < request->n && client->fd >= 0 &&
				     client->question == NAT_ASK_LIST;
		     s++)
			nat_answer_session(&client->answer,
					   &request->sessions[s]);
		if (request->is_end) {
			client->worker++;
			client->cursor = 0;
		}
	}
	nat_request_set(request, NAT_REQUEST_FREE);
}

static void take_answers(struct nat_control *c)
{
	struct app *app = c->app;
	uint64_t n;

	/* It may be empty: each request shows whether it was answered. */
	if (read(app->answered_fd, &n, sizeof(n)) < 0)
		n = 0;
	for (uint32_t w = 0; w < app->n_workers; w++) {
		if (nat_request_state(&app->workers[w].request) !=
		    NAT_REQUEST_ANSWERED)
			continue;
		if (app->workers[w].request.question == NAT_ASK_RELOAD)
			app_reload_answered(app, w);
		else if (app->workers[w].request.question == NAT_ASK_SAVE)
			nat_keep_answered(app->keep, w);
		else
			take_answer(c, w);
	}
	nat_offload_serve(app);
	app_ask_reload(app); /* before clients: waits for one request */
}

/* Send what there is; the connection ends with the answer. */
static void serve(struct nat_control *c, uint32_t i)
{
	struct client *client = &c->clients[i];
	const size_t n_before = client->answer.n;
	uint32_t events;

	ask_more(c, client);
	if (client->fd < 0) {
		nat_answer_free(&client->answer);
		return;
	}
	if (nat_answer_send(&client->answer, client->fd) < 0 ||
	    (client->has_line && !client->is_busy && client->answer.n == 0)) {
		drop_client(client);
		return;
	}
	if (client->answer.n < n_before)
		client->since_ns = now_ns(c);
	ask_more(c, client);
	events = client->answer.n > 0 ? EPOLLOUT : 0;
	if (!client->has_line)
		events |= EPOLLIN;
	watch(c, client->fd, events, i, EPOLL_CTL_MOD);
}

bool nat_control_ready(void *opaque)
{
	struct app *app = opaque;
	struct nat_control *c = app->control;
	struct epoll_event events[MAX_CLIENTS + 2];
	const int n = epoll_wait(c->epoll_fd, events, MAX_CLIENTS + 2, 0);

	for (int i = 0; i < n; i++) {
		const uint64_t what = events[i].data.u64;

		if (what == WHAT_LISTEN)
			accept_client(c);
		else if (what == WHAT_ANSWERED)
			take_answers(c);
		else if (c->clients[what].fd >= 0 && !c->clients[what].has_line)
			read_client(c, &c->clients[what]);
		else if (c->clients[what].fd >= 0 &&
			 (events[i].events & (EPOLLERR | EPOLLHUP)))
			drop_client(&c->clients[what]);
	}
	for (uint32_t i = 0; i < MAX_CLIENTS; i++)
		serve(c, i);
	nat_keep_advance(app->keep); /* clients' requests first */
	return false;
}
