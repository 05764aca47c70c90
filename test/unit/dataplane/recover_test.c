/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/dataplane/recover.c. A child opens a data plane, and is killed;
 * this process is the keeper, and the next one. What drivers do then is in
 * test/unit/xdp/recover_test.c and test/netns/test_crash.py.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <millrace/driver.h>
#include <millrace/experimental/hand_over.h>
#include <millrace/experimental/port_queues.h>

#include "fixture.h"

extern const struct mr_driver mr_driver_null;

static const char *const nulls[] = { "null:", "null:", NULL };

/* The copy of an fd that a keeper has. */
static void send_fd(int socket_fd, int fd)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec part = { &(char){ 0 }, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(control), &fd, sizeof(fd));
	if (sendmsg(socket_fd, &message, 0) != 1)
		_exit(1);
}

static int receive_fd(int socket_fd)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))];
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	int fd;

	assert_int_equal(recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* What the child does after it has kept all; then it waits to be killed. */
enum deed { NOTHING, REOPEN, KEEP_AGAIN, CLOSE };

static void live(int socket_fd, enum deed deed)
{
	const struct mr_dataplane_config config = config_of(nulls);
	struct mr_dataplane *plane;
	struct mr_cache *own;
	struct mr_frame frames[4];
	int fd, again;

	if (mr_dataplane_open(&config, &plane, NULL) < 0 ||
	    mr_cache_create(plane->pool, &own, NULL) < 0 ||
	    mr_dataplane_keep(plane, &fd, NULL) < 0)
		_exit(1);
	take_frames(own, frames, 4); /* lost with it */
	send_fd(socket_fd, fd);
	if ((deed == REOPEN || deed == KEEP_AGAIN) &&
	    mr_port_reopen(plane->ports[0], NULL) < 0)
		_exit(1);
	if (deed == KEEP_AGAIN &&
	    (mr_dataplane_keep(plane, &again, NULL) < 0 || again != fd))
		_exit(1);
	if (deed == CLOSE) {
		mr_frame_free_bulk(own, frames, 4);
		mr_cache_destroy(own);
		(void)mr_dataplane_close(plane, NULL);
	}
	send_fd(socket_fd, 0);
	pause();
}

static pid_t child;

/* The fd that the keeper has. */
static int begin_life(enum deed deed)
{
	int fds[2], kept;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		live(fds[1], deed);
	}
	close(fds[1]);
	kept = receive_fd(fds[0]);
	close(receive_fd(fds[0])); /* it has done its deed */
	close(fds[0]);
	return kept;
}

static void end_life(void)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static int recover(int fd, struct mr_reason *why)
{
	const struct mr_dataplane_config config = config_of(nulls);
	const int err = mr_dataplane_recover(fd, &config, &dp, why);

	close(fd);
	return err;
}

/* After the deed, the next process has all pages, and works. */
static void check_recovery_after(enum deed deed)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	struct mr_frame frames[32];
	struct mr_reason why = { "" };
	const int fd = begin_life(deed);

	end_life();
	if (recover(fd, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(mr_pool_stats(dp->pool, &pool), 0);
	assert_int_equal(pool.n_free, pool.n_pages);
	assert_int_equal(mr_cache_create(dp->pool, &cache, NULL), 0);
	assert_int_equal(
		mr_rx_burst(mr_port_rxq(dp->ports[0], 0), cache, frames, 32),
		32);
	assert_int_equal(mr_tx_burst(mr_port_txq(dp->ports[1], 0), cache,
				     frames, 32),
			 32);
}

PLANE_TEST(the_next_process_has_all_pages)
{
	check_recovery_after(NOTHING);
}

PLANE_TEST(a_change_is_kept_anew)
{
	check_recovery_after(KEEP_AGAIN);
}

PLANE_TEST(nothing_is_left_after_a_change_or_an_end)
{
	struct mr_reason why;

	for (uint32_t i = 0; i < 2; i++) {
		const int fd = begin_life(i == 0 ? REOPEN : CLOSE);

		end_life();
		assert_int_equal(recover(fd, &why), -ENOENT);
		assert_non_null(strstr(why.text, "nothing was left"));
	}
}

PLANE_TEST(a_process_that_runs_keeps_its_ports)
{
	struct mr_reason why;
	const int fd = begin_life(NOTHING);

	assert_int_equal(recover(fd, &why), -EBUSY);
	assert_non_null(strstr(why.text, "still runs"));
	end_life();
}

PLANE_TEST(another_configuration_is_refused)
{
	static const char *const others[] = { "null:", "null:len=100", NULL };
	struct mr_dataplane_config config = config_of(others);
	struct mr_reason why;
	const int fd = begin_life(NOTHING);

	end_life();
	assert_int_equal(mr_dataplane_recover(fd, &config, &dp, &why), -EINVAL);
	close(fd);
}

/* ---- changes of a port ---- */

static int kept_fd;
static uint32_t n_changes;

static bool is_kept(void)
{
	char byte;

	return recv(kept_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Killed here, the process must leave nothing. */
static int note_change(void)
{
	assert_false(is_kept());
	n_changes++;
	return 0;
}

static int change_switch(struct mr_port *port, bool on,
			 struct mr_reason *reason)
{
	(void)port, (void)on, (void)reason;
	return note_change();
}

static int change_mtu(struct mr_port *port, uint32_t n_bytes,
		      struct mr_reason *reason)
{
	(void)port, (void)n_bytes, (void)reason;
	return note_change();
}

static int change_mac(struct mr_port *port, const uint8_t mac[6],
		      struct mr_reason *reason)
{
	(void)port, (void)mac, (void)reason;
	return note_change();
}

static int change_macs(struct mr_port *port, const uint8_t (*macs)[6],
		       uint32_t n, struct mr_reason *reason)
{
	(void)port, (void)macs, (void)n, (void)reason;
	return note_change();
}

static int change_filter(struct mr_port *port, const char *expression,
			 struct mr_reason *reason)
{
	(void)port, (void)expression, (void)reason;
	return note_change();
}

static int change_rss(struct mr_port *port, const struct mr_rss_config *config,
		      struct mr_reason *reason)
{
	(void)port, (void)config, (void)reason;
	return note_change();
}

static int change_steering(struct mr_port *port,
			   const struct mr_steer_rule *rule, uint32_t *ret_id,
			   struct mr_reason *reason)
{
	(void)port, (void)rule, (void)reason;
	*ret_id = 0;
	return note_change();
}

static int change_number(struct mr_port *port, uint32_t number,
			 struct mr_reason *reason)
{
	(void)port, (void)number, (void)reason;
	return note_change();
}

static int change_kernel(struct mr_port *port, struct mr_reason *reason)
{
	(void)port, (void)reason;
	return note_change();
}

static int change(struct mr_port *port, uint32_t which)
{
	static const uint8_t mac[6] = { 2 };
	const struct mr_rss_config rss = { .size = sizeof(rss) };
	const struct mr_steer_rule rule = { .size = sizeof(rule),
					    .ethertype = 0x88b5 };
	uint32_t id;

	switch (which) {
	case 0:
		return mr_port_set_promisc(port, true, NULL);
	case 1:
		return mr_port_set_allmulti(port, true, NULL);
	case 2:
		return mr_port_set_mtu(port, 1400, NULL);
	case 3:
		return mr_port_set_mac(port, mac, NULL);
	case 4:
		return mr_port_set_mac_filter(port, &mac, 1, NULL);
	case 5:
		return mr_port_set_filter(port, "tcp", NULL);
	case 6:
		return mr_port_set_rss(port, &rss, NULL);
	case 7:
		return mr_port_steer(port, &rule, &id, NULL);
	case 8:
		return mr_port_unsteer(port, 0, NULL);
	case 9:
		return mr_port_open_kernel(port, NULL);
	case 10: /* it has one, and could have two */
		port->info->n_channels = 2;
		return mr_port_add_queues(port, NULL) < 0;
	default:
		return -ENOENT;
	}
}

PLANE_TEST(nothing_is_left_while_a_port_changes)
{
	static const char *const changing[] = { "changing:", NULL };
	struct mr_dataplane_config config = config_of(changing);
	struct mr_driver driver = mr_driver_null;
	uint32_t n = 0;

	config.kept_pages = 4096; /* for another queue */
	driver.name = "changing";
	driver.version = MR_DRIVER_VERSION;
	driver.size = sizeof(driver);
	driver.set_promisc = driver.set_allmulti = change_switch;
	driver.set_mtu = change_mtu;
	driver.set_mac = change_mac;
	driver.set_mac_filter = change_macs;
	driver.set_filter = change_filter;
	driver.set_rss = change_rss;
	driver.steer = change_steering;
	driver.unsteer = driver.add_queues = change_number;
	driver.open_kernel = change_kernel;
	assert_int_equal(mr_ctx_add_driver(ctx, &driver, NULL), 0);
	open_plane(&config);
	for (int err = 0; err == 0; n++) {
		assert_int_equal(mr_dataplane_keep(dp, &kept_fd, NULL), 0);
		assert_true(is_kept());
		err = change(dp->ports[0], n);
		assert_int_equal(err, n_changes == n + 1 ? 0 : -ENOENT);
	}
	assert_int_equal(n_changes, 11);
}

PLANE_TEST(a_port_that_cannot_be_recovered_is_named)
{
	static const char *const forgetful[] = { "forgetful:", NULL };
	struct mr_dataplane_config config = config_of(forgetful);
	struct mr_driver driver = mr_driver_null;
	struct mr_reason why;
	int fd;

	driver.name = "forgetful";
	driver.version = MR_DRIVER_VERSION;
	driver.size = sizeof(driver);
	driver.hand_over = NULL;
	assert_int_equal(mr_ctx_add_driver(ctx, &driver, NULL), 0);
	open_plane(&config);
	assert_int_equal(mr_dataplane_keep(dp, &fd, &why), -ENOTSUP);
	assert_non_null(strstr(why.text, "forgetful:"));
}
