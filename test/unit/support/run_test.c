/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support: run.c, run_ports.c, background.c and signals.c. */
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "capture.h"

#include "support/run.h"
#include "support/signals.h"
#include "support/text.h"

/* Far from the 20 that a run may take; more than one where the machine stalls.
 */
enum { MAX_SECONDS = 9 };

static const char *const drop_names[] = { "taken" };

struct app {
	struct dataplane plane;
	uint64_t n_frames; /* by the worker */
	uint64_t kept_addr;
	const char *spec; /* NULL: null: */
	bool is_keeping, is_freeing, is_losing, is_sending;
	int end_fd;
	int signals[2];   /* sent in the first and the second call */
	int stdout_fd;    /* > 0: stdout and stderr */
	bool is_widening; /* the pipe stdout_fd, in the second call */
	uint32_t n_seconds, n_polled, n_hang_ups, n_given_up;
	uint32_t stall_us; /* of the first second */
	uint32_t n_stuck;  /* seconds in which the worker does no round */
};

static void take_snapshot(struct snapshot *snapshot, void *opaque)
{
	const struct app *app = opaque;

	snapshot_copy_counters(&snapshot->workers[0].drops[0], &app->n_frames,
			       1);
	snapshot->workers[0].counts[0] = app->is_sending;
}

static const struct worker_row worker_rows[] = { { "made", INVARIANT_MADE } };

static const struct app_counters counters = { .program = "test",
					      .drop_names = drop_names,
					      .n_drops = 1,
					      .worker_rows = worker_rows,
					      .n_worker_rows = 1,
					      .take = take_snapshot };

/* Drop all that comes; a page is kept, or a frame not counted, if asked for. */
static int run_worker(struct mr_worker *worker, void *opaque)
{
	struct app *app = opaque;
	struct mr_frame frames[4];
	uint64_t addr;
	uint32_t n;

	while (__atomic_load_n(&app->n_seconds, __ATOMIC_RELAXED) <
	       app->n_stuck)
		usleep(1000);
	if (app->is_keeping)
		mr_frag_alloc_bulk(worker->cache, &app->kept_addr, 1, 4096);
	if (app->is_sending) {
		mr_frag_alloc_bulk(worker->cache, &addr, 1, 4096);
		frames[0] = (struct mr_frame){ addr, 60, 0 };
		mr_worker_send(worker, 0, frames, 1);
	}
	do {
		n = mr_rx_burst(worker->rxqs[0].rxq, worker->cache, frames, 4);
		mr_frame_free_bulk(worker->cache, frames, n);
		__atomic_fetch_add(&app->n_frames, n - (app->is_losing ? 1 : 0),
				   __ATOMIC_RELAXED);
	} while (mr_worker_wait(worker, n));
	return 0;
}

/* The first call comes at 1 s. */
static void each_second(void *opaque)
{
	struct app *app = opaque;

	if (app->n_seconds == 1 && app->is_widening)
		assert_true(fcntl(app->stdout_fd, F_SETPIPE_SZ, 1 << 16) > 0);
	if (app->n_seconds < 2 && app->signals[app->n_seconds] != 0)
		kill(getpid(), app->signals[app->n_seconds]);
	if (__atomic_fetch_add(&app->n_seconds, 1, __ATOMIC_RELAXED) == 0 &&
	    app->stall_us > 0)
		usleep(app->stall_us);
	/* On a machine that stalls a second may go by without any event. */
	if (app->end_fd > 0 && app->n_polled >= 3 &&
	    (app->n_stuck == 0 || app->n_seconds > app->n_stuck + 1))
		eventfd_write(app->end_fd, 1);
}

static void polled(void *opaque)
{
	((struct app *)opaque)->n_polled++;
}

static void hang_up(void *opaque)
{
	((struct app *)opaque)->n_hang_ups++;
}

static void give_up_run(void *opaque)
{
	struct app *app = opaque;
	const struct mr_frame frame = { app->kept_addr, 60, 0 };

	app->n_given_up++;
	if (app->is_freeing)
		mr_frame_free_bulk(mr_workers_get(app->plane.workers, 0)->cache,
				   &frame, 1);
}

static bool end_run(void *opaque)
{
	(void)opaque;
	return true;
}

static struct capture capture;

/* What was kept in spite of all: the pool could not go otherwise. */
static void give_back(struct app *app)
{
	struct mr_cache *cache;
	struct mr_reason why;

	assert_int_equal(mr_cache_create(app->plane.pool, &cache, &why), 0);
	mr_frag_free_bulk(cache, &app->kept_addr, 1);
	mr_cache_destroy(cache);
}

/* Run for duration_ms at most; the exit status, and the output in capture. */
static int run_app(struct app *app, uint64_t duration_ms)
{
	const char *const specs[] = { app->spec != NULL ? app->spec : "null:" };
	const struct dataplane_config plane = { .program = "test",
						.specs = specs,
						.n_ports = 1,
						.n_workers = 1,
						.n_kept_pages = 8,
						.burst = MR_BURST_MAX,
						.page_bytes = 4096 };
	const struct run_fd fds[] = { { app->end_fd, end_run } };
	struct mr_reason error;
	const struct run_config config = {
		.plane = &app->plane,
		.counters = &counters,
		.options = { .is_json = true, .duration_ms = duration_ms },
		.signal_fd = signals_open(&error),
		.work = run_worker,
		.workers = app,
		.app = app,
		.each_second = each_second,
		.polled = polled,
		.hang_up = hang_up,
		.give_up = give_up_run,
		.fds = fds,
		.n_fds = app->end_fd > 0,
	};
	const int stderr_fd = dup(STDERR_FILENO);
	uint64_t start_ns;
	int status;

	assert_true(config.signal_fd >= 0);
	if (dataplane_open(&app->plane, &plane, &error) != 0)
		fail_msg("%s", error.text);
	start_ns = mr_ctx_now_ns(app->plane.ctx);
	capture_begin(&capture);
	if (app->stdout_fd > 0) {
		dup2(app->stdout_fd, STDOUT_FILENO);
		dup2(app->stdout_fd, STDERR_FILENO);
	}
	status = run(&config);
	capture_end(&capture);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	assert_true(app->n_seconds * 1000000000ull <=
		    mr_ctx_now_ns(app->plane.ctx) - start_ns);
	if (app->is_keeping && !app->is_freeing)
		give_back(app);
	assert_int_equal(dataplane_close(&app->plane, NULL), 0);
	close(config.signal_fd);
	return status;
}

TEST(a_line_is_printed_each_second)
{
	struct app app = { .end_fd = eventfd(0, EFD_CLOEXEC) };

	assert_int_equal(run_app(&app, 20000), 0);
	assert_true(app.n_frames > 0);
	assert_in_range(app.n_seconds, 1, MAX_SECONDS);
	assert_int_equal(app.n_given_up, 1);
	/* A line at 1 s, and the final one. */
	assert_has(capture.text, "\n{\"v\":1");
	assert_has(capture.text, "\"invariants_hold\":true,\"conserved\":true}\n");
	close(app.end_fd);
}

TEST(after_a_stall_one_line_is_printed)
{
	struct app app = { .stall_us = 2100000 };

	assert_int_equal(run_app(&app, 3500), 0);
	assert_in_range(app.n_seconds, 1, 2); /* at 1 s and 3.1 s */
}

/* Bound at an abstract address that NOTIFY_SOCKET names. */
static int open_service(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	char name[64];

	snprintf(name, sizeof(name), "@mr-run-%d", (int)getpid());
	memcpy(at.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(
		bind(fd, (struct sockaddr *)&at,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				 strlen(name))),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

TEST(a_watchdog_gets_nothing_while_a_worker_is_stuck)
{
	struct app app = { .end_fd = eventfd(0, EFD_CLOEXEC), .n_stuck = 3 };
	const int service = open_service();
	uint32_t n_fed = 0;
	char said[64];
	ssize_t n;

	assert_int_equal(run_app(&app, 20000), 0);
	unsetenv("NOTIFY_SOCKET");
	while ((n = recv(service, said, sizeof(said), 0)) > 0)
		n_fed += n == 10 && memcmp(said, "WATCHDOG=1", 10) == 0;
	assert_in_range(n_fed, 1, app.n_seconds - app.n_stuck);
	close(service);
	close(app.end_fd);
}

TEST(an_fd_of_the_application_may_end_it)
{
	struct app app = { .end_fd = eventfd(1, EFD_CLOEXEC) };

	assert_int_equal(run_app(&app, 20000), 0);
	assert_int_equal(app.n_seconds, 0);
	close(app.end_fd);
}

TEST(an_uncounted_frame_is_reported)
{
	struct app app = { .is_losing = true };

	assert_int_equal(run_app(&app, 100), 1);
	assert_has(capture.text, "\"invariants_hold\":false,\"conserved\":true}\n");
}

TEST(a_lost_page_is_reported)
{
	struct app keeps = { .is_keeping = true };
	struct app frees = { .is_keeping = true, .is_freeing = true };

	assert_int_equal(run_app(&frees, 100), 0);
	assert_int_equal(run_app(&keeps, 100), 1);
	assert_has(capture.text, "\"invariants_hold\":true,\"conserved\":false}\n");
}

/* What a port holds comes back when it is closed, and is looked for then. */
TEST(a_page_in_a_queue_is_not_lost)
{
	struct app app = { .spec = "pair:alone", .is_sending = true };

	assert_int_equal(run_app(&app, 100), 0);
	assert_has(capture.text, "\"pending\":1");
	assert_has(capture.text, "\"invariants_hold\":true,\"conserved\":true}\n");
}

/* What must go on whatever becomes of stdout: seconds and signals. */
static int run_with_stdout(struct app *app, int fd)
{
	int status;

	app->stdout_fd = fd;
	app->signals[0] = SIGHUP;
	app->signals[1] = SIGTERM;
	status = run_app(app, 20000);
	assert_in_range(app->n_seconds, 2, MAX_SECONDS);
	assert_int_equal(app->n_hang_ups, 1);
	return status;
}

/* The write end of a pipe of one page that is full. */
static int open_full_pipe(int *ret_read_fd)
{
	static const char page[4096];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETPIPE_SZ, sizeof(page)),
			 sizeof(page));
	assert_int_equal(write(fds[1], page, sizeof(page)), sizeof(page));
	*ret_read_fd = fds[0];
	return fds[1];
}

/* As the journal's, when it has stopped reading. */
static int open_full_socket(int *ret_read_fd)
{
	static const char page[4096];
	int fds[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	for (size_t n = sizeof(page); n > 0; n /= 2)
		while (send(fds[1], page, n, MSG_DONTWAIT) > 0)
			;
	*ret_read_fd = fds[0];
	return fds[1];
}

enum { FULL_DISK, CLOSED_PIPE, FULL_PIPE, FULL_SOCKET, N_KINDS };

static int open_kind(int kind, int *ret_read_fd)
{
	int fd = kind == FULL_DISK   ? open("/dev/full", O_WRONLY) :
		 kind == FULL_SOCKET ? open_full_socket(ret_read_fd) :
				       open_full_pipe(ret_read_fd);

	assert_true(fd > 0);
	if (kind == CLOSED_PIPE)
		close(*ret_read_fd);
	return fd;
}

TEST(a_failing_or_blocked_stdout_ends_nothing)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		struct app app = { 0 };
		int read_fd = -1;
		const int fd = open_kind(kind, &read_fd);

		assert_int_equal(run_with_stdout(&app, fd), 1);
		assert_string_equal(capture.text, "");
		close(fd);
		if (kind >= FULL_PIPE)
			close(read_fd);
	}
}

/* Where stderr cannot be opened again, too. */
TEST(a_message_does_not_wait_for_its_reader)
{
	const int stderr_fd = dup(STDERR_FILENO);

	for (int kind = FULL_PIPE; kind < N_KINDS; kind++) {
		int read_fd;
		const int fd = open_kind(kind, &read_fd);

		dup2(fd, STDERR_FILENO);
		print_error("lost");
		dup2(stderr_fd, STDERR_FILENO);
		close(fd);
		close(read_fd);
	}
	close(stderr_fd);
}

TEST(reports_that_stdout_did_not_take_are_counted)
{
	struct app app = { .is_widening = true };
	static char text[1 << 16];
	int read_fd;
	const int fd = open_full_pipe(&read_fd);
	char *last;
	ssize_t n;

	assert_int_equal(run_with_stdout(&app, fd), 0);
	close(fd);
	n = read(read_fd, text, sizeof(text) - 1);
	close(read_fd);
	assert_true(n > 4096);
	/* The first line is written once there is room, the others are not. */
	last = strstr(text + 4096, "\n{\"v\":1");
	if (last == NULL) { /* a sanitizer's compiler wants to see it */
		fail_msg("no line in '%s'", text + 4096);
		return;
	}
	assert_null(strstr(last + 1, "\n{"));
	assert_has(last, "\"skipped\":");
	assert_null(strstr(last, "\"skipped\":0"));
	assert_has(last, "\"invariants_hold\":true,\"conserved\":true}\n");
}

int main(void)
{
	signal(SIGHUP, SIG_DFL); /* nohup ignores it */
	return test_run(NULL, NULL, NULL);
}
