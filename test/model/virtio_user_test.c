/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio-user: what it says to a back end, and a back end that misbehaves. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/back_end.h"
#include "model/harness.h"

enum { DEADLINE_MS = 20000, F_MTU = 3 };

static char path[64];

/* One trick for one request; 0: for all that tell of memory or rings. */
struct plan {
	uint32_t request;
	enum back_end_trick trick;
};

static enum back_end_trick follow(void *arg, uint32_t request)
{
	const struct plan *plan = arg;
	const bool is_late_one = request == BACK_END_SET_FEATURES ||
				 request == BACK_END_ADD_MEM_REG ||
				 (request >= BACK_END_SET_VRING_NUM &&
				  request <= BACK_END_SET_VRING_CALL) ||
				 request == BACK_END_SET_VRING_ENABLE;

	if (plan->request == 0 ? is_late_one : plan->request == request)
		return plan->trick;
	return BACK_END_HONEST;
}

static struct back_end *start(struct plan *plan, bool connects)
{
	const struct back_end_config config = {
		.path = path,
		.connects = connects,
		.features = UINT64_C(1) << F_MTU,
		.late_ms = 700,
		.choose = plan != NULL ? follow : NULL,
		.arg = plan,
	};

	return back_end_start(&config);
}

static void begin(struct harness *harness)
{
	snprintf(path, sizeof(path), "/tmp/virtio-user-%d.sock", (int)getpid());
	harness_begin(harness, NULL, (struct mr_pool_config){ 0 }, NULL);
}

static void end(struct harness *harness)
{
	harness_close(harness);
	model_wire_destroy(harness->wire);
}

static int try_open(struct harness *harness, const char *options,
		    struct mr_reason *why)
{
	char spec[128];

	snprintf(spec, sizeof(spec), "virtio-user:%s%s", path, options);
	return harness_try_open_spec(harness, spec, why);
}

static void must_open(struct harness *harness, const char *options)
{
	struct mr_reason why = { "" };

	if (try_open(harness, options, &why) < 0)
		fail_msg("%s", why.text);
}

static void close_port(struct harness *harness)
{
	mr_port_close(harness->port);
	harness->port = NULL;
}

/* Poll until the link is as wanted. Returns the longest call's time. */
static uint64_t poll_until_link(struct harness *harness, bool is_up)
{
	const uint64_t until_ms = harness_now_ms() + test_limit_ms(DEADLINE_MS);
	uint64_t longest_ms = 0;

	while (harness_is_up(harness) != is_up) {
		const uint64_t start_ms = harness_now_ms();

		mr_port_poll(harness->port);
		if (harness_now_ms() - start_ms > longest_ms)
			longest_ms = harness_now_ms() - start_ms;
		assert_true(harness_now_ms() < until_ms);
	}
	return longest_ms;
}

static void receive_some(struct harness *harness, struct back_end *b)
{
	const uint64_t until_ms = harness_now_ms() + test_limit_ms(DEADLINE_MS);
	uint32_t n = 0;

	while (n < 8) {
		mr_port_poll(harness->port); /* restarts the ring */
		back_end_use(b, 0, 8, 12 + 60);
		n += harness_drain(harness);
		assert_true(harness_now_ms() < until_ms);
	}
}

TEST(back_end_is_told_the_mtu)
{
	struct harness harness;
	struct back_end *b;

	begin(&harness);
	b = start(NULL, false);
	must_open(&harness, ",mtu=1400");
	assert_int_equal(back_end_last(b, BACK_END_SET_MTU), 1400);
	close_port(&harness);
	back_end_stop(b);
	end(&harness);
}

TEST(refused_mtu_is_named)
{
	struct plan plan = { BACK_END_SET_MTU, BACK_END_REFUSES };
	struct mr_reason why = { "" };
	struct harness harness;
	struct back_end *b;

	begin(&harness);
	b = start(&plan, false);
	assert_int_equal(try_open(&harness, ",mtu=1400", &why), -EINVAL);
	assert_non_null(strstr(why.text, "mtu=1400"));
	back_end_stop(b);
	end(&harness);
}

/* Opening fails with a reason, or the port works and closes. */
TEST(any_answer_to_any_request_leaves_all_pages)
{
	struct harness harness;

	begin(&harness);
	for (uint32_t request = 1; request < BACK_END_N_REQUESTS; request++)
		for (int trick = 1; trick < BACK_END_LATE; trick++) {
			struct plan plan = { request, trick };
			struct back_end *b = start(&plan, false);
			struct mr_reason why = { "" };

			if (try_open(&harness, "", &why) < 0) {
				assert_string_not_equal(why.text, "");
			} else {
				harness_send(&harness, 4);
				harness_drain(&harness);
				mr_port_poll(harness.port);
				close_port(&harness);
			}
			back_end_stop(b);
			if (request > 20 && request < 35)
				break; /* unused ones */
		}
	end(&harness);
}

TEST(open_ends_although_each_answer_comes)
{
	struct plan plan = { 0, BACK_END_LATE };
	const uint64_t start_ms = harness_now_ms();
	struct mr_reason why = { "" };
	struct harness harness;
	struct back_end *b;

	begin(&harness);
	b = start(&plan, false);
	assert_int_equal(try_open(&harness, "", &why), -EIO);
	assert_non_null(strstr(why.text, "does not answer"));
	assert_true(harness_now_ms() - start_ms < test_limit_ms(6000));
	back_end_stop(b);
	end(&harness);
}

TEST(poll_ends_although_a_returned_back_end_is_late)
{
	struct plan plan = { 0, BACK_END_LATE };
	uint64_t longest_ms, until_ms;
	struct harness harness;
	struct back_end *b;

	begin(&harness);
	b = start(NULL, false);
	must_open(&harness, "");
	back_end_stop(b);
	poll_until_link(&harness, false);
	b = start(&plan, false);
	until_ms = harness_now_ms() + test_limit_ms(DEADLINE_MS);
	while (back_end_count(b, BACK_END_ADD_MEM_REG) < 2) {
		const uint64_t start_ms = harness_now_ms();

		mr_port_poll(harness.port);
		assert_true(harness_now_ms() - start_ms < test_limit_ms(3000));
		assert_true(harness_now_ms() < until_ms);
	}
	back_end_stop(b);
	b = start(NULL, false);
	longest_ms = poll_until_link(&harness, true);
	assert_true(longest_ms < test_limit_ms(3000));
	receive_some(&harness, b);
	close_port(&harness);
	back_end_stop(b);
	end(&harness);
}

TEST(close_ends_although_the_back_end_is_silent)
{
	struct plan plan = { BACK_END_GET_VRING_BASE, BACK_END_SILENT };
	struct harness harness;
	struct back_end *b;
	uint64_t start_ms;

	begin(&harness);
	b = start(&plan, false);
	must_open(&harness, "");
	start_ms = harness_now_ms();
	close_port(&harness);
	assert_true(harness_now_ms() - start_ms < test_limit_ms(4000));
	back_end_stop(b);
	end(&harness);
}

/* ---- the server's side ---- */

TEST(server_takes_a_back_end_again_and_again)
{
	struct harness harness;
	struct back_end *b;
	struct stat status;

	begin(&harness);
	b = start(NULL, true);
	must_open(&harness, ",server=on,packed=off");
	for (int i = 0; i < 3; i++) {
		receive_some(&harness, b);
		back_end_stop(b);
		poll_until_link(&harness, false);
		b = start(NULL, true);
		poll_until_link(&harness, true);
	}
	close_port(&harness);
	assert_int_equal(stat(path, &status), -1);
	back_end_stop(b);
	end(&harness);
}

/* A bound socket, as a process that listens has it. */
static int bind_at_path(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)),
			 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

TEST(server_replaces_the_socket_of_a_dead_process_alone)
{
	struct mr_reason why = { "" };
	struct harness harness;
	struct back_end *b;
	FILE *file;
	int fd;

	begin(&harness);
	fd = bind_at_path();
	assert_int_equal(try_open(&harness, ",server=on", &why), -EBUSY);
	assert_non_null(strstr(why.text, "without server=on"));
	close(fd);
	b = start(NULL, true);
	must_open(&harness, ",server=on");
	close_port(&harness);
	back_end_stop(b);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(try_open(&harness, ",server=on", &why), -ENOTSOCK);
	assert_non_null(strstr(why.text, "not a socket"));
	unlink(path);
	end(&harness);
}

static void ignore(int signal)
{
	(void)signal;
}

TEST(signal_ends_the_wait_for_a_back_end)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
	const struct sigaction action = { .sa_handler = ignore };
	struct mr_reason why = { "" };
	struct harness harness;
	struct stat status;

	begin(&harness);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(try_open(&harness, ",server=on", &why), -EINTR);
	assert_non_null(strstr(why.text, "no back end has connected"));
	assert_int_equal(stat(path, &status), -1);
	end(&harness);
}
