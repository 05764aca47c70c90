/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP with libmicrohttpd, in the caller's loop. We accept connections
 * ourselves, so that a new one can replace the oldest, and end those whose
 * request takes too long: slow or silent clients do not keep others out.
 *
 * Source: microhttpd.h (MHD_run(), MHD_get_timeout(), MHD_add_connection()).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "control.h"
#include "listen.h"
#include "metrics.h"
#include "text.h"

enum {
	MAX_CONNECTIONS = 32,
	MAX_ACCEPTED = 16, /* per call */
	MAX_RUNS = 64,     /* of the library, per call */
	REQUEST_S = 5,     /* limit from connection or answer to answer */
};

static const char openmetrics[] =
	"application/openmetrics-text; version=1.0.0; charset=utf-8";
static const char plain_text[] = "text/plain; version=0.0.4; charset=utf-8";

struct connection {
	int fd; /* owned by the library; -1: none */
	uint64_t since_ns; /* when it began, or had its last answer */
};

struct metrics {
	struct control *control;
	struct MHD_Daemon *daemon;
	char path[LISTEN_MAX_PATH]; /* "": none */
	int listen_fd, epoll_fd;
	bool has_work; /* more than one call of metrics_serve() does */
	struct connection connections[MAX_CONNECTIONS];
};

static enum MHD_Result send_reply(struct MHD_Connection *to, unsigned status,
				  struct MHD_Response *response,
				  const char *type)
{
	enum MHD_Result result = MHD_NO;

	if (response == NULL)
		return MHD_NO;
	if (MHD_add_response_header(response, "Content-Type", type) == MHD_YES)
		result = MHD_queue_response(to, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse_request(struct MHD_Connection *to,
				      unsigned status, const char *why)
{
	return send_reply(
		to, status,
		MHD_create_response_from_buffer(strlen(why), (void *)why,
						MHD_RESPMEM_PERSISTENT),
		plain_text);
}

static enum MHD_Result answer_request(void *opaque, struct MHD_Connection *to,
				      const char *url, const char *method,
				      const char *version, const char *upload,
				      size_t *n_upload, void **state)
{
	const struct metrics *m = opaque;
	const char *wanted;
	bool is_open;
	char *text;
	size_t n;

	(void)version;
	(void)upload;
	(void)state;
	*n_upload = 0;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return refuse_request(to, MHD_HTTP_METHOD_NOT_ALLOWED,
				      "GET only\n");
	if (strcmp(url, "/metrics") != 0)
		return refuse_request(to, MHD_HTTP_NOT_FOUND, "see /metrics\n");
	wanted = MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Accept");
	is_open = wanted != NULL &&
		  strstr(wanted, "application/openmetrics-text") != NULL;
	text = metrics_text(control_snapshot(m->control),
			    control_name(m->control), is_open, &n);
	if (text == NULL)
		return MHD_NO;
	return send_reply(
		to, MHD_HTTP_OK,
		MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE),
		is_open ? openmetrics : plain_text);
}

static uint64_t now_ns(const struct metrics *m)
{
	return mr_ctx_now_ns(control_view_of(m->control)->plane->ctx);
}

/* Called when the library adds or closes a connection. */
static void note_connection(void *opaque, struct MHD_Connection *connection,
			    void **slot, enum MHD_ConnectionNotificationCode code)
{
	struct metrics *m = opaque;
	uint32_t i = 0;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED && *slot != NULL)
		((struct connection *)*slot)->fd = -1;
	if (code != MHD_CONNECTION_NOTIFY_STARTED)
		return;
	while (i < MAX_CONNECTIONS - 1 && m->connections[i].fd >= 0)
		i++;
	m->connections[i] = (struct connection){
		.fd = MHD_get_connection_info(connection,
					      MHD_CONNECTION_INFO_CONNECTION_FD)
			      ->connect_fd,
		.since_ns = now_ns(m),
	};
	*slot = &m->connections[i];
}

/* Called when a request has ended. */
static void note_answer(void *opaque, struct MHD_Connection *connection,
			void **state, enum MHD_RequestTerminationCode code)
{
	struct connection *c =
		MHD_get_connection_info(connection,
					MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			->socket_context;

	(void)state;
	if (c != NULL && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
		c->since_ns = now_ns(opaque);
}

/* Run the library, which does one step per call, until it has no work. */
static void run_some(struct metrics *m)
{
	MHD_UNSIGNED_LONG_LONG ms = 0;

	for (uint32_t i = 0; i < MAX_RUNS; i++) {
		MHD_run(m->daemon);
		m->has_work = MHD_get_timeout(m->daemon, &ms) == MHD_YES &&
			      ms == 0;
		if (!m->has_work)
			return;
	}
}

/* Shut down connections that are this old; the library then closes them. */
static void end_before(struct metrics *m, uint64_t since_ns)
{
	bool has_ended = false;

	for (uint32_t i = 0; i < MAX_CONNECTIONS; i++) {
		const struct connection *c = &m->connections[i];

		if (c->fd < 0 || c->since_ns > since_ns)
			continue;
		(void)shutdown(c->fd, SHUT_RDWR);
		has_ended = true;
	}
	if (has_ended)
		run_some(m);
}

/* Make sure that a place is free, by ending the oldest connection if needed. */
static bool make_place(struct metrics *m)
{
	for (uint32_t n = 0; n < 2; n++) {
		uint64_t oldest_ns = UINT64_MAX;

		for (uint32_t i = 0; i < MAX_CONNECTIONS; i++) {
			const struct connection *c = &m->connections[i];

			if (c->fd < 0)
				return true;
			if (c->since_ns < oldest_ns)
				oldest_ns = c->since_ns;
		}
		end_before(m, oldest_ns);
	}
	return false;
}

static void watch_listener(const struct metrics *m, uint32_t events)
{
	struct epoll_event event = { .events = events };

	(void)epoll_ctl(m->epoll_fd, EPOLL_CTL_MOD, m->listen_fd, &event);
}

/* Accept a connection. False: none is waiting. */
static bool accept_one(struct metrics *m)
{
	struct sockaddr_storage peer;
	socklen_t n_bytes = sizeof(peer);
	const int fd = accept4(m->listen_fd, (struct sockaddr *)&peer, &n_bytes,
			       SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno != EAGAIN) /* no fd: the event would repeat */
		watch_listener(m, 0);
	if (fd < 0)
		return false;
	if (make_place(m)) /* takes the fd, even if it fails */
		(void)MHD_add_connection(m->daemon, fd,
					 (struct sockaddr *)&peer, n_bytes);
	else
		close(fd);
	return true;
}

/* listen_fd: it listens already; -1: not yet. */
static int listen_at(struct metrics *m, const char *where, int listen_fd,
		     struct mr_reason *ret_why)
{
	const bool is_tcp = strncmp(where, "tcp:", 4) == 0;

	if (!is_tcp)
		snprintf(m->path, sizeof(m->path), "%s", where + 5);
	if (listen_fd >= 0)
		return listen_fd;
	if (is_tcp)
		return listen_tcp(where + 4, ret_why);
	return listen_unix(where + 5, SOCK_STREAM, 0600, ret_why);
}

/* Start the library, and watch it and the socket. 0 or -errno. */
static int start_daemon(struct metrics *m)
{
	struct epoll_event event = { .events = EPOLLIN };

	m->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
		answer_request, m, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)REQUEST_S, MHD_OPTION_NOTIFY_CONNECTION,
		note_connection, m, MHD_OPTION_NOTIFY_COMPLETED, note_answer, m,
		MHD_OPTION_END);
	if (m->daemon == NULL)
		return errno != 0 ? -errno : -EIO;
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll_fd < 0 ||
	    epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, m->listen_fd, &event) < 0 ||
	    epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD,
		      MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD)
			      ->epoll_fd,
		      &event) < 0)
		return -errno;
	return 0;
}

int metrics_open(const char *where, int listen_fd, struct control *control,
		 struct metrics **ret_metrics, struct mr_reason *ret_why)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int err;

	*ret_metrics = NULL;
	if (m == NULL) {
		return fail_with(ret_why, -ENOMEM, "no memory");
	}
	m->control = control;
	m->epoll_fd = -1;
	for (uint32_t i = 0; i < MAX_CONNECTIONS; i++)
		m->connections[i].fd = -1;
	m->listen_fd = listen_at(m, where, listen_fd, ret_why);
	if (m->listen_fd < 0) {
		err = m->listen_fd;
		free(m);
		return err;
	}
	errno = 0;
	err = start_daemon(m);
	if (err < 0) {
		fail_with(ret_why, 0, "libmicrohttpd does not start: %s",
			  mr_strerror(-err));
		if (listen_fd >= 0)
			metrics_leave(m);
		metrics_close(m);
		return err;
	}
	*ret_metrics = m;
	return 0;
}

void metrics_close(struct metrics *m)
{
	if (m == NULL)
		return;
	if (m->path[0] != '\0')
		unlink(m->path);
	if (m->daemon != NULL)
		MHD_stop_daemon(m->daemon);
	close(m->listen_fd);
	if (m->epoll_fd >= 0)
		close(m->epoll_fd);
	free(m);
}

int metrics_listen_fd(const struct metrics *m)
{
	return m->listen_fd;
}

void metrics_leave(struct metrics *m)
{
	m->path[0] = '\0';
}

int metrics_fd(const struct metrics *m)
{
	return m->epoll_fd;
}

bool metrics_has_work(const struct metrics *m)
{
	return m->has_work;
}

void metrics_serve(struct metrics *m)
{
	const uint64_t now = now_ns(m);

	for (uint32_t i = 0; i < MAX_ACCEPTED && accept_one(m); i++)
		;
	run_some(m);
	if (now >= REQUEST_S * UINT64_C(1000000000))
		end_before(m, now - REQUEST_S * UINT64_C(1000000000));
}

void metrics_tick(struct metrics *m)
{
	watch_listener(m, EPOLLIN);
	metrics_serve(m);
}
