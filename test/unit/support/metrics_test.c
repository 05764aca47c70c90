/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support: metrics_text.c, and metrics.c or metrics_none.c,
 * whichever the build has. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/unit.h"

#include "nat.h"
#include "support/control.h"
#include "support/counters.h"
#include "support/metrics.h"

static const char *const gauges[] = { "held", NULL };
static const struct worker_row rows[] = { { "made", INVARIANT_MADE },
					  { "held", INVARIANT_KEPT } };

static const struct app_counters app = {
	.program = "mr-test",
	.drop_names = nat_drops,
	.n_drops = 2,
	.worker_rows = rows,
	.n_worker_rows = 2,
	.groups = nat_groups,
	.n_groups = 2,
	.gauges = gauges,
};

static void assert_says(const char *text, const char *line)
{
	if (strstr(text, line) == NULL)
		fail_msg("no '%s' in\n%s", line, text);
}

static char *text_of(const struct snapshot *snapshot, bool is_openmetrics)
{
	size_t n;
	char *text = metrics_text(snapshot, "one", is_openmetrics, &n);

	assert_non_null(text);
	assert_int_equal(strlen(text), n);
	return text;
}

TEST(labels_are_escaped_and_unique)
{
	static struct queue_snapshot queues[3];
	static struct snapshot s = { .app = &app, .n_ports = 3 };
	char *text;

	for (uint32_t p = 0; p < 3; p++) {
		s.ports[p].n_queues = 1;
		s.ports[p].queues = &queues[p];
		queues[p].has_rx = true;
		queues[p].rx.delivered = p + 1;
	}
	strcpy(s.ports[0].info.name, "null:");
	strcpy(s.ports[1].info.name, "pcap:a\"\\b\nc\xff");
	strcpy(s.ports[2].info.name, "null:");
	text = text_of(&s, false);
	assert_says(text, "\nmillrace_rx_frames_total{port=\"null:\","
			  "queue=\"0\"} 1\n");
	assert_says(text, "{port=\"pcap:a\\\"\\\\b\\\\nc\\\\xff\",queue=\"0\"} "
			  "2\n");
	assert_says(text, "{port=\"null:#2\",queue=\"0\"} 3\n");
	free(text);
}

TEST(each_statistic_of_the_pool_has_its_own_help)
{
	for (uint32_t i = 0; i < pool_counters.n; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(pool_counters.rows[i].help,
						pool_counters.rows[j].help);
}

TEST(counters_and_gauges_have_their_names)
{
	static struct snapshot s = { .app = &app, .n_workers = 1 };
	char *text;

	s.workers[0].core = 7;
	s.workers[0].stats.busy_ns = 1500000001;
	s.workers[0].counts[1] = 4;
	s.workers[0].drops[1] = 9;
	s.pool.page_bytes = 4096;
	s.pool.alloc_fast = 1ull << 40;
	text = text_of(&s, false);
	assert_says(text, "# TYPE millrace_worker_busy_seconds_total counter\n"
			  "millrace_worker_busy_seconds_total{worker=\"0\","
			  "core=\"7\"} 1.500000001\n");
	assert_says(text, "\nmillrace_worker_held_frames{worker=\"0\","
			  "core=\"7\"} 4\n");
	assert_says(text, "\nmillrace_worker_made_frames_total{");
	assert_says(text, "# HELP millrace_pool_page_bytes Size of a page.\n");
	assert_says(text, "\nmillrace_pool_page_bytes 4096\n");
	assert_says(text, "\nmillrace_pool_alloc_fast_total 1099511627776\n");
	assert_says(text, nat_drops[1]);
	free(text);
	text = text_of(&s, true);
	assert_says(text, "# TYPE millrace_pool_alloc_fast counter\n"
			  "millrace_pool_alloc_fast_total 1099511627776\n");
	assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
	free(text);
}

static void take_snapshot(struct snapshot *snapshot, void *opaque)
{
	(void)snapshot;
	(void)opaque;
}

/* What the program answers by the end of the connection. */
static void ask_http(struct control *control, const char *path,
		     const char *request, char *ret, size_t n_bytes)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd fds[2] = { { .fd = control_fd(control),
				   .events = POLLIN },
				 { .fd = fd, .events = POLLIN } };
	size_t n = 0;
	ssize_t n_got = 1;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	assert_int_equal(send(fd, request, strlen(request), 0),
			 strlen(request));
	while (n_got > 0 && n < n_bytes - 1) {
		assert_true(poll(fds, 2, 10000) > 0);
		if (fds[0].revents != 0)
			control_serve(control);
		if (fds[1].revents == 0)
			continue;
		n_got = recv(fd, ret + n, n_bytes - 1 - n, 0);
		n += n_got > 0 ? (size_t)n_got : 0;
	}
	ret[n] = '\0';
	close(fd);
}

TEST(metrics_are_served_in_the_control_sockets_loop)
{
	static const char *const specs[] = { "null:" };
	const struct app_counters none = { .program = "mr-test",
					   .take = take_snapshot };
	const struct dataplane_config config = { .program = "test",
						 .specs = specs,
						 .n_ports = 1,
						 .n_workers = 1,
						 .burst = MR_BURST_MAX,
						 .page_bytes = 4096 };
	char folder[] = "/tmp/mr-metrics-XXXXXX", where[64], path[64];
	static char text[1 << 16];
	struct control_options options = { .path = path, .metrics = where };
	const struct control_config at = { .options = &options,
					   .program = "mr-test",
					   .name = "test" };
	struct dataplane plane;
	struct control *control;
	struct mr_reason why;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/c", folder);
	snprintf(where, sizeof(where), "unix:%s/m", folder);
	if (control_open(&at, &control, &why) == -ENOTSUP) {
		assert_says(why.text, "no libmicrohttpd; install");
		assert_int_equal(rmdir(folder), 0);
		return;
	}
	assert_int_equal(dataplane_open(&plane, &config, &why), 0);
	assert_true(control_begin(
		control,
		&(struct control_view){ .plane = &plane, .counters = &none }));
	ask_http(control, where + 5, "GET /metrics HTTP/1.0\r\n\r\n", text,
		 sizeof(text));
	assert_says(text, " 200 OK\r\n");
	assert_says(text, "\nmillrace_build_info{program=\"mr-test\",");
	assert_says(text, "Content-Type: text/plain; version=0.0.4");
	ask_http(control, where + 5,
		 "GET /metrics HTTP/1.0\r\nAccept: "
		 "application/openmetrics-text\r\n"
		 "\r\n",
		 text, sizeof(text));
	assert_says(text, "\n# EOF\n");
	ask_http(control, where + 5, "GET / HTTP/1.0\r\n\r\n", text,
		 sizeof(text));
	assert_says(text, " 404 ");
	ask_http(control, where + 5, "PUT /metrics HTTP/1.0\r\n\r\n", text,
		 sizeof(text));
	assert_says(text, " 405 ");
	ask_http(control, where + 5, "\r\n\r\nnonsense\r\n\r\n", text,
		 sizeof(text));
	assert_null(strstr(text, "millrace_")); /* it ends, by whatever */
	ask_http(control, where + 5, "GET /metrics HTTP/1.0\r\n\r\n", text,
		 sizeof(text));
	assert_says(text, " 200 OK\r\n");
	control_close(control);
	assert_int_equal(dataplane_close(&plane, NULL), 0);
	assert_int_equal(rmdir(folder), 0);
}
