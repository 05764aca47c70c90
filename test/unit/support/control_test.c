/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support: control.c, control_request.c, control_verbs.c and
 * listen.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"

#include "support/control.h"
#include "support/listen.h"
#include "support/settings.h"

static void take_snapshot(struct snapshot *snapshot, void *opaque)
{
	(void)snapshot;
	(void)opaque;
}

static const struct app_counters counters = { .program = "test",
					      .take = take_snapshot };

/* The app of the verbs below. */
struct app {
	bool may_end;
	uint32_t n_ended, n_lines;
	bool is_applying;
	const char *wrong; /* with the last apply; NULL: nothing */
};

/* Waits until the app lets it end, whether or not anybody still reads. */
static bool answer_wait(struct control_request *r, void *opaque)
{
	struct app *app = opaque;

	if (!app->may_end)
		return false;
	app->n_ended++;
	return control_end(r, NULL);
}

/* Never ends by itself. */
static bool answer_flood(struct control_request *r, void *opaque)
{
	struct app *app = opaque;

	if (r->is_gone)
		return true;
	app->n_lines++;
	control_add(r, json_pack("{s:i}", "n", (int)app->n_lines));
	return false;
}

/* A number, which is 0. */
static const struct yaml_key one_key[] = {
	{ .name = "n", .take = yaml_take_number, .n_bytes = 4, .max = 9 },
	{ .name = NULL },
};

static void *parse_file(void *opaque, const char *name, const char *bytes,
			size_t n_bytes, struct yaml_errors *ret_errors)
{
	uint32_t *next = calloc(1, sizeof(*next));

	(void)opaque;
	(void)name;
	assert_int_equal(n_bytes, 1);
	ret_errors->n = 0;
	*next = (uint32_t)(bytes[0] - '0');
	return next;
}

static const void *current(void *opaque)
{
	static const uint32_t zero;

	(void)opaque;
	return &zero;
}

static int apply_settings(void *opaque, void *next, struct mr_reason *ret_why)
{
	struct app *app = opaque;

	free(next);
	if (app->is_applying)
		return fail_with(ret_why, -EBUSY, "busy");
	app->is_applying = true;
	return 1;
}

static int result(void *opaque, struct mr_reason *ret_why)
{
	const struct app *app = opaque;

	if (app->is_applying)
		return 1;
	return app->wrong != NULL ? fail_with(ret_why, -EIO, "%s", app->wrong) :
				    0;
}

static const struct settings_ops settings = {
	.keys = one_key,
	.parse = parse_file,
	.destroy = free,
	.current = current,
	.apply = apply_settings,
	.result = result,
};

static const struct control_verb verbs[] = {
	{ "wait", 0, answer_wait },
	{ "flood", 0, answer_flood },
};

struct bed {
	char folder[32];
	struct dataplane plane;
	struct control_options options;
	struct control_config config;
	struct control *control;
	struct app app;
};

static void open_bed(struct bed *bed)
{
	static const char *const specs[] = { "null:" };
	const struct dataplane_config plane = { .program = "test",
						.specs = specs,
						.n_ports = 1,
						.n_workers = 1,
						.log_level = MR_LOG_ERROR,
						.burst = MR_BURST_MAX,
						.page_bytes = 4096 };
	struct mr_reason why;

	*bed = (struct bed){ .folder = "/tmp/mr-control-XXXXXX" };
	assert_non_null(mkdtemp(bed->folder));
	setenv("RUNTIME_DIRECTORY", bed->folder, 1);
	bed->config = (struct control_config){ .options = &bed->options,
					       .program = "mr-test",
					       .name = "test",
					       .verbs = verbs,
					       .n_verbs = 2,
					       .settings = &settings };
	assert_int_equal(dataplane_open(&bed->plane, &plane, &why), 0);
	assert_int_equal(control_open(&bed->config, &bed->control, &why), 0);
	assert_true(control_begin(bed->control,
				  &(struct control_view){ .plane = &bed->plane,
							  .counters = &counters,
							  .app = &bed->app }));
}

/* Nothing is left in its folder. */
static void close_bed(struct bed *bed)
{
	control_close(bed->control);
	assert_int_equal(dataplane_close(&bed->plane, NULL), 0);
	assert_int_equal(rmdir(bed->folder), 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	return fd;
}

static int client(const struct bed *bed)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/test.sock", bed->folder);
	return connect_to(path);
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL),
			 strlen(text));
}

/* Serve until nothing is to be done. */
static void serve(struct bed *bed)
{
	struct pollfd at = { .fd = control_fd(bed->control), .events = POLLIN };

	for (int i = 0; i < 1000 && poll(&at, 1, 0) == 1; i++)
		control_serve(bed->control);
}

/* What has come by now; "" if nothing, or at the end. */
static const char *heard(int fd)
{
	static char text[4096];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void assert_ended(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
}

static void assert_says(const char *text, const char *words)
{
	if (strstr(text, words) == NULL)
		fail_msg("'%s' lacks '%s'", text, words);
}

TEST(requests_are_answered_in_order)
{
	struct bed bed;
	int fd;

	open_bed(&bed);
	fd = client(&bed);
	send_text(fd, "{\"verb\":\"hello\"}\n{\"v\":1,\"verb\":\"set\","
		      "\"log_level\":\"debug\"}\n{\"verb\":\"conf");
	serve(&bed);
	assert_string_equal(strchr(heard(fd), '\n') + 1,
			    "{\"end\":true}\n{\"end\":true}\n");
	assert_int_equal(bed.plane.log_level, MR_LOG_DEBUG);
	send_text(fd, "ig\"}\n{\"verb\":\"stats\"}\n");
	serve(&bed);
	assert_says(heard(fd), "\"log_level\":\"debug\"");
	/* Its side may be closed before the answer. */
	send_text(fd, "{\"verb\":\"hello\"}\n");
	shutdown(fd, SHUT_WR);
	serve(&bed);
	assert_says(heard(fd), "\"verbs\":[\"hello\",\"stats\",\"config\","
			       "\"set\",\"capture\",\"trace\",\"plan\","
			       "\"apply\",\"dump\",\"upgrade\",\"wait\","
			       "\"flood\"]");
	assert_ended(fd);
	close_bed(&bed);
}

TEST(an_unknown_request_is_refused_by_name)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "stats", "a request is a JSON object" },
		{ "", "a request is a JSON object" },
		{ "[]", "Expected object" },
		{ "{}", "verb" },
		{ "{\"verb\":1}", "Expected string" },
		{ "{\"verb\":\"hello\",\"verb\":\"set\"}", "duplicate" },
		{ "{\"verb\":\"hello\",\"v\":2}",
		  "protocol version 2 is not supported" },
		{ "{\"verb\":\"hello\",\"x\":1}", "x" },
		{ "{\"verb\":\"nope\"}", "unknown verb 'nope'" },
		{ "{\"verb\":\"set\"}", "give log_level or idle" },
		{ "{\"verb\":\"trace\"}", "this program cannot capture" },
		{ "{\"verb\":\"set\",\"log_level\":\"info\",\"idle\":\"\"}",
		  "idle: '' is not one of: adaptive" },
		{ "{\"verb\":\"set\",\"log_level\":\"x\\u0007\"}",
		  "is not one of: none, error" },
		{ "\xff{}", "error" },
	};
	struct bed bed;
	int fd;

	open_bed(&bed);
	fd = client(&bed);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text;

		send_text(fd, cases[i].line);
		send_text(fd, "\n");
		serve(&bed);
		text = heard(fd);
		assert_says(text, "{\"error\":\"");
		assert_says(text, cases[i].words);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	}
	close(fd);
	close_bed(&bed);
}

TEST(a_line_that_is_too_long_is_refused)
{
	char part[4097] = "";
	struct bed bed;
	int fd, other;

	open_bed(&bed);
	fd = client(&bed);
	other = client(&bed);
	memset(part, ' ', sizeof(part) - 1);
	for (uint32_t n = 0; n < CONTROL_MAX_LINE; n += sizeof(part) - 1) {
		if (n < CONTROL_MAX_LINE / 2)
			send_text(other, part);
		send_text(fd, part);
		serve(&bed);
	}
	send_text(other, "{\"verb\":\"hello\"}\n");
	serve(&bed);
	assert_says(heard(fd), "shorter than 4 MiB");
	assert_ended(fd);
	assert_says(heard(other), "\"program\":\"mr-test\"");
	close(other);
	close_bed(&bed);
}

TEST(a_client_that_does_not_read_is_not_waited_for)
{
	const int bytes = 4096;
	struct bed bed;
	uint32_t n_lines;
	int fd, other;

	open_bed(&bed);
	fd = client(&bed);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	send_text(fd, "{\"verb\":\"flood\"}\n");
	for (int i = 0; i < 100000; i++)
		control_serve(bed.control);
	/* What is pending has a bound. */
	n_lines = bed.app.n_lines;
	for (int i = 0; i < 1000; i++)
		control_serve(bed.control);
	assert_int_equal(bed.app.n_lines, n_lines);
	other = client(&bed);
	send_text(other, "{\"verb\":\"hello\"}\n");
	serve(&bed);
	assert_says(heard(other), "\"program\":\"mr-test\"");
	close(other);
	close(fd);
	serve(&bed);
	close_bed(&bed);
}

TEST(a_new_client_replaces_the_one_idle_longest)
{
	struct bed bed;
	int fds[200], waits;

	open_bed(&bed);
	waits = client(&bed);
	send_text(waits, "{\"verb\":\"wait\"}\n");
	serve(&bed);
	for (int i = 0; i < 200; i++) {
		fds[i] = client(&bed);
		if (i % 50 == 49)
			serve(&bed);
	}
	assert_says(heard(fds[0]), "too many clients");
	assert_ended(fds[0]);
	send_text(fds[199], "{\"verb\":\"hello\"}\n");
	serve(&bed);
	assert_says(heard(fds[199]), "\"program\":\"mr-test\"");
	/* What the program owes an answer stays. */
	bed.app.may_end = true;
	control_advance(bed.control);
	assert_string_equal(heard(waits), "{\"end\":true}\n");
	for (int i = 1; i < 200; i++)
		close(fds[i]);
	close(waits);
	serve(&bed);
	close_bed(&bed);
}

TEST(a_verb_ends_if_its_client_is_gone)
{
	struct bed bed;
	int fd;

	open_bed(&bed);
	fd = client(&bed);
	send_text(fd, "{\"verb\":\"wait\"}\n");
	serve(&bed);
	close(fd);
	serve(&bed);
	assert_int_equal(bed.app.n_ended, 0);
	bed.app.may_end = true;
	control_advance(bed.control);
	control_advance(bed.control);
	assert_int_equal(bed.app.n_ended, 1);
	close_bed(&bed);
}

/* It is that of its own apply, even if the next one is already waiting. */
TEST(each_apply_gets_its_result)
{
	static const char one[] = "{\"verb\":\"apply\",\"text\":\"1\"}\n";
	struct bed bed;
	int first, second;

	open_bed(&bed);
	second = client(&bed);
	serve(&bed);
	first = client(&bed);
	send_text(first, one);
	serve(&bed);
	send_text(second, one);
	send_text(second, one);
	control_serve(bed.control);
	assert_says(heard(second), "busy; nothing has changed");
	bed.app.is_applying = false;
	bed.app.wrong = "no memory";
	control_advance(bed.control);
	assert_says(heard(first), "no memory; nothing has changed");
	assert_true(bed.app.is_applying);
	bed.app.is_applying = false;
	bed.app.wrong = NULL;
	control_advance(bed.control);
	assert_string_equal(heard(second), "{\"end\":true,\"changes\":1}\n");
	close(first);
	close(second);
	close_bed(&bed);
}

TEST(a_path_is_taken_over_only_from_a_dead_program)
{
	struct mr_reason why;
	struct control *other;
	struct stat stat_of;
	struct bed bed;
	char path[64];
	int fd;

	open_bed(&bed);
	snprintf(path, sizeof(path), "%s/test.sock", bed.folder);
	assert_int_equal(stat(path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
	assert_int_equal(control_open(&bed.config, &other, &why), -EADDRINUSE);
	assert_says(why.text, "an instance 'test' is running");
	/* A name that nobody chose may have a number. */
	bed.config.is_optional = true;
	assert_int_equal(control_open(&bed.config, &other, &why), 0);
	assert_string_equal(control_name(other), "test-2");
	control_close(other);
	bed.options.name = "test";
	assert_int_equal(control_open(&bed.config, &other, &why), -EADDRINUSE);
	bed.options = (struct control_options){ .path = path };
	assert_int_equal(control_open(&bed.config, &other, &why), -EADDRINUSE);
	assert_says(why.text, "another process serves it");
	control_close(bed.control);
	/* As after SIGKILL. */
	fd = listen_unix(path, SOCK_STREAM, 0600, &why);
	close(fd);
	assert_int_equal(control_open(&bed.config, &bed.control, &why), 0);
	control_close(bed.control);
	assert_int_equal(access(path, F_OK), -1);
	/* Not a socket: it stays. */
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(control_open(&bed.config, &bed.control, &why),
			 -EEXIST);
	assert_says(why.text, "is not a socket");
	assert_int_equal(unlink(path), 0);
	close_bed(&bed);
}

/* Listen in a process of its own, which ends when the pipe is closed. */
static pid_t start_beside(const char *path, int ready_fd, const int end[2])
{
	const pid_t pid = fork();
	struct mr_reason why;
	char byte;

	if (pid != 0)
		return pid;
	close(end[1]);
	byte = listen_unix(path, SOCK_STREAM, 0600, &why) >= 0;
	_exit(write(ready_fd, &byte, 1) == 1 && read(end[0], &byte, 1) == 0 ?
		      0 :
		      1);
}

/* Each finds the dead socket, and one of them replaces it. Whoever has locked
 * the folder delays none. */
TEST(of_programs_that_start_at_once_one_gets_the_path)
{
	enum { N_PROGRAMS = 8, N_ROUNDS = 20 };
	pid_t pids[N_PROGRAMS];
	struct mr_reason why;
	int ready[2], end[2];
	struct bed bed;
	char path[64];
	int fd;

	open_bed(&bed);
	fd = open(bed.folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	snprintf(path, sizeof(path), "%s/other.sock", bed.folder);
	close(listen_unix(path, SOCK_STREAM, 0600, &why));
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		uint32_t n_served = 0;
		char byte;

		assert_int_equal(pipe(ready) | pipe(end), 0);
		for (uint32_t i = 0; i < N_PROGRAMS; i++)
			pids[i] = start_beside(path, ready[1], end);
		close(end[0]);
		for (uint32_t i = 0; i < N_PROGRAMS; i++) {
			assert_int_equal(read(ready[0], &byte, 1), 1);
			n_served += (uint32_t)byte;
		}
		assert_int_equal(n_served, 1);
		assert_int_equal(listen_unix(path, SOCK_STREAM, 0600, &why),
				 -EADDRINUSE);
		close(end[1]);
		for (uint32_t i = 0; i < N_PROGRAMS; i++)
			assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		close(ready[0]);
		close(ready[1]);
	}
	assert_int_equal(unlink(path), 0);
	close(fd);
	close_bed(&bed);
}

static int has_event(const struct control *control)
{
	struct pollfd fd = { .fd = control_fd(control), .events = POLLIN };

	return poll(&fd, 1, 0);
}

/* A connection that cannot be accepted does not wake the caller for ever. */
TEST(clients_without_an_fd_are_accepted_a_second_later)
{
	struct rlimit was, none;
	struct bed bed;
	char path[64];
	int fd;

	open_bed(&bed);
	snprintf(path, sizeof(path), "%s/test.sock", bed.folder);
	fd = connect_to(path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)dup(fd);
	assert_int_equal(close((int)none.rlim_cur), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(has_event(bed.control), 1);
	control_serve(bed.control);
	assert_int_equal(has_event(bed.control), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	control_tick(bed.control);
	assert_int_equal(has_event(bed.control), 1);
	control_serve(bed.control);
	assert_int_equal(has_event(bed.control), 0);
	close(fd);
	assert_int_equal(has_event(bed.control), 1);
	control_serve(bed.control);
	close_bed(&bed);
}

TEST(a_port_in_use_is_named_with_the_remedy)
{
	struct mr_reason why;
	struct sockaddr_in at;
	socklen_t n = sizeof(at);
	char where[32];
	const int fd = listen_tcp("127.0.0.1:0", &why);

	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(where, sizeof(where), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(listen_tcp(where, &why), -EADDRINUSE);
	assert_says(why.text, "another program uses this port; choose another");
	assert_int_equal(listen_tcp("9100", &why), -EINVAL);
	assert_int_equal(listen_tcp("localhost:x", &why), -EINVAL);
	close(fd);
}
