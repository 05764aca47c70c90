/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP with libmicrohttpd, in the caller's loop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "control.h"
#include "listen.h"
#include "metrics.h"

enum {
	MAX_CONNECTIONS = 32,
	IDLE_S = 5, /* then a connection is closed */
};

static const char openmetrics[] =
	"application/openmetrics-text; version=1.0.0; charset=utf-8";
static const char text_format[] = "text/plain; version=0.0.4; charset=utf-8";

struct metrics {
	struct control *control;
	struct MHD_Daemon *daemon;
	char path[LISTEN_MAX_PATH]; /* "": none */
	int fd;
};

static enum MHD_Result reply(struct MHD_Connection *to, unsigned status,
			     struct MHD_Response *response, const char *type)
{
	enum MHD_Result result = MHD_NO;

	if (response == NULL)
		return MHD_NO;
	if (MHD_add_response_header(response, "Content-Type", type) == MHD_YES)
		result = MHD_queue_response(to, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *to, unsigned status,
			      const char *why)
{
	return reply(to, status,
		     MHD_create_response_from_buffer(strlen(why), (void *)why,
						     MHD_RESPMEM_PERSISTENT),
		     text_format);
}

static enum MHD_Result answer(void *opaque, struct MHD_Connection *to,
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
		return refuse(to, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	if (strcmp(url, "/metrics") != 0)
		return refuse(to, MHD_HTTP_NOT_FOUND, "see /metrics\n");
	wanted = MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Accept");
	is_open = wanted != NULL &&
		  strstr(wanted, "application/openmetrics-text") != NULL;
	text = metrics_text(control_snapshot(m->control),
			    control_name(m->control), is_open, &n);
	if (text == NULL)
		return MHD_NO;
	return reply(
		to, MHD_HTTP_OK,
		MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE),
		is_open ? openmetrics : text_format);
}

static int listen_at(struct metrics *m, const char *where,
		     struct mr_reason *ret_why)
{
	if (strncmp(where, "tcp:", 4) == 0)
		return listen_tcp(where + 4, ret_why);
	snprintf(m->path, sizeof(m->path), "%s", where + 5);
	return listen_unix(where + 5, SOCK_STREAM, 0600, ret_why);
}

int metrics_open(const char *where, struct control *control,
		 struct metrics **ret_metrics, struct mr_reason *ret_why)
{
	struct metrics *m = calloc(1, sizeof(*m));

	*ret_metrics = NULL;
	if (m == NULL) {
		snprintf(ret_why->text, sizeof(ret_why->text), "no memory");
		return -ENOMEM;
	}
	m->control = control;
	m->fd = listen_at(m, where, ret_why);
	if (m->fd < 0) {
		const int err = m->fd;

		free(m);
		return err;
	}
	m->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, answer, m,
		MHD_OPTION_LISTEN_SOCKET, m->fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)IDLE_S, MHD_OPTION_END);
	if (m->daemon == NULL) {
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "libmicrohttpd does not start: %s",
			 mr_strerror(errno));
		metrics_close(m);
		return -EIO;
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
		MHD_stop_daemon(m->daemon); /* closes the fd */
	else
		close(m->fd);
	free(m);
}

int metrics_fd(const struct metrics *m)
{
	return MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD)
		->epoll_fd;
}

void metrics_serve(struct metrics *m)
{
	MHD_run(m->daemon);
}
