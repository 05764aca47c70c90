/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One client, in a process of its own: a client may send any fd, and closing
 * one can block (forever, if it is a file of a FUSE server that hangs).
 *
 * Source: unix(7), fcntl(2); linux/fs/open.c (filp_flush).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/text.h"

#include "clients.h"
#include "passrights.h"

struct session {
	struct clients *clients;
	const struct peer *peer;
	_Atomic uint64_t *n_bytes;
	struct xdp_served *served;
	int fd;
};

static uint64_t bytes_of_user(const struct session *session)
{
	const struct clients_shared *shared = session->clients->shared;
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		if (shared->of[i].uid == session->peer->uid)
			n_bytes += atomic_load(&shared->of[i].n_bytes);
	return n_bytes;
}

/* Read the rules again if the broker has. The client is not told what is wrong
 * with them. */
static int follow_rules(struct session *session, struct mr_reason *reason)
{
	struct clients *clients = session->clients;
	const uint32_t n = atomic_load(&clients->shared->n_reloads);
	struct mr_reason why;
	struct rules now;

	if (n == clients->n_reloads)
		return 0;
	if (rules_read(clients->ctx, clients->rules_path, &now, &why) < 0) {
		print_error("mr-brokerd: %s; refusing user %u", why.text,
			    session->peer->uid);
		return mr_fail(reason, -EPERM,
			       "the broker cannot read its rules; tell its "
			       "administrator");
	}
	rules_free(&clients->rules);
	clients->rules = now;
	clients->n_reloads = n;
	return 0;
}

static int allow_interface(void *opaque, const char *interface,
			   struct xdp_grant *ret_grant,
			   struct mr_reason *reason)
{
	struct session *session = opaque;
	const struct rule *rule;
	const int err = follow_rules(session, reason);

	if (err < 0)
		return err;
	rule = rules_find(&session->clients->rules, session->peer, interface,
			  reason);
	if (rule == NULL)
		return -EPERM;
	*ret_grant = rule_grant(rule, bytes_of_user(session));
	return 0;
}

/* Serve one request per user at a time, so that checking a limit and using it
 * is atomic. The lock ends with the process. */
static void lock_user(const struct session *session, short type)
{
	struct flock lock = { .l_type = type,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)session->peer->uid,
			      .l_len = 1 };

	while (fcntl(session->clients->lock_fd, F_SETLKW, &lock) < 0 &&
	       errno == EINTR)
		;
}

/* Account for the memory, and log a change. */
static void account_memory(const struct session *session)
{
	const uint64_t n_before = atomic_load(session->n_bytes);
	const uint64_t n_bytes = mri_xdp_served_bytes(session->served);

	atomic_store(session->n_bytes, n_bytes);
	if (n_bytes > n_before)
		print_error("mr-brokerd: user %u, process %d: %llu KiB "
			    "registered, %llu KiB for this user",
			    session->peer->uid, (int)session->peer->pid,
			    (unsigned long long)(n_bytes >> 10),
			    (unsigned long long)(bytes_of_user(session) >> 10));
}

/* False: end the connection. */
static bool serve_request(struct session *session)
{
	static _Alignas(8) uint8_t request[XDP_BROKER_MAX_BYTES];
	static struct xdp_answer a;
	int fds[XDP_BROKER_MAX_FDS];
	uint32_t n_fds;
	const ssize_t n = mri_xdp_receive(session->fd, request, sizeof(request),
					  fds, &n_fds);
	bool is_alive = n > 0;

	if (n == -EAGAIN || n == -EINTR)
		return true;
	if (n > 0) {
		lock_user(session, F_WRLCK);
		is_alive = mri_xdp_serve(session->served, request, (size_t)n,
					 fds, n_fds, &a) == 0;
		account_memory(session);
		lock_user(session, F_UNLCK);
		if (mri_xdp_send(session->fd, a.bytes, a.n_bytes, a.fds,
				 a.n_fds) < 0)
			is_alive = false;
		for (uint32_t i = 0; i < a.n_fds; i++)
			mr_fd_close(a.fds[i]);
	}
	for (uint32_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return is_alive;
}

/* Wait for a request. SIGTERM ends the process here and nowhere else, and only
 * without a port: then it has nothing to restore. */
static bool await_request(const struct session *session)
{
	const struct timespec idle = { .tv_sec = CLIENTS_IDLE_MS / 1000 };
	const bool is_idle = atomic_load(session->n_bytes) == 0;
	struct pollfd fd = { .fd = session->fd, .events = POLLIN };
	sigset_t mask;
	int n;

	(void)sigprocmask(SIG_BLOCK, NULL, &mask);
	if (is_idle)
		(void)sigdelset(&mask, SIGTERM);
	do
		n = ppoll(&fd, 1, is_idle ? &idle : NULL, &mask);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

static void end_session(struct session *session)
{
	const uint64_t n_bytes = atomic_load(session->n_bytes);

	mri_xdp_served_destroy(session->served);
	atomic_store(session->n_bytes, 0);
	if (n_bytes > 0)
		print_error("mr-brokerd: user %u, process %d has ended: %llu "
			    "KiB released, %llu KiB left",
			    session->peer->uid, (int)session->peer->pid,
			    (unsigned long long)(n_bytes >> 10),
			    (unsigned long long)(bytes_of_user(session) >> 10));
}

int session_greet(int fd, int err, const struct mr_reason *why)
{
	static struct xdp_answer a;

	mri_xdp_answer_error(&a, err, why);
	return mri_xdp_send(fd, a.bytes, a.n_bytes, NULL, 0);
}

void session_run(struct clients *clients, uint32_t i, int fd)
{
	struct session session = {
		.clients = clients,
		.peer = &clients->clients[i].peer,
		.n_bytes = &clients->shared->of[i].n_bytes,
		.fd = fd,
	};

	session.served =
		mri_xdp_served_create(clients->ctx, allow_interface, &session);
	if (session.served == NULL)
		return;
	passrights_set(fd, true);
	/* A client waits for the greeting, so end if it cannot be sent. */
	if (session_greet(fd, 0, NULL) == 0)
		while (await_request(&session) && serve_request(&session))
			;
	end_session(&session);
}
