/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections. Serving one request at a time makes checking a limit and using
 * it atomic. Clients that connect and send nothing are closed first.
 *
 * close() of what is no memory can wait for whoever made it: for the server of
 * a FUSE file, without end. So a thread closes it, and until it has, the user
 * is not heard. Those whom no rule names are not heard at all.
 *
 * Source: unix(7), cmsg(3); linux/fs/open.c (filp_flush).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/text.h"

#include "clients.h"

enum { ACCEPT_AT_ONCE = 64 };

struct client {
	struct clients *all;
	struct peer peer;
	struct xdp_served *served;
	uint64_t since_ns;
	int fd;
	bool is_heard; /* no: it has its answer, and is not read from */
};

/* One is served at a time. */
static _Alignas(8) uint8_t request[XDP_BROKER_MAX_BYTES];

static bool is_idle(const struct client *client)
{
	return mri_xdp_served_bytes(client->served) == 0;
}

static uint64_t bytes_of(const struct clients *clients, uid_t uid)
{
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < clients->n; i++)
		if (clients->clients[i]->peer.uid == uid)
			n_bytes += mri_xdp_served_bytes(
				clients->clients[i]->served);
	return n_bytes;
}

static int allow(void *opaque, const char *interface,
		 struct xdp_grant *ret_grant, struct mr_reason *reason)
{
	const struct client *client = opaque;
	const struct rule *rule = rules_find(client->all->rules, &client->peer,
					     interface, reason);

	if (rule == NULL)
		return -EPERM;
	*ret_grant = rule_grant(rule, bytes_of(client->all, client->peer.uid));
	return 0;
}

static void *close_all(void *opaque)
{
	struct closing *closing = opaque;

	for (uint32_t i = 0; i < closing->n; i++)
		close(closing->fds[i]);
	atomic_store(&closing->is_busy, false);
	return NULL;
}

/* Whether fds of the user are still being closed. */
static bool is_closing(const struct clients *clients, uid_t uid)
{
	for (uint32_t i = 0; i < CLIENTS_MAX_CLOSINGS; i++)
		if (clients->closings[i].uid == uid &&
		    atomic_load(&clients->closings[i].is_busy))
			return true;
	return false;
}

static bool is_memory(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/* Close the fds of a request. */
static void close_received(struct clients *clients, uid_t uid, const int *fds,
			   uint32_t n)
{
	struct closing *closing = NULL;
	pthread_t thread;
	uint32_t n_bad = 0;

	for (uint32_t i = 0; i < CLIENTS_MAX_CLOSINGS && closing == NULL; i++)
		if (!atomic_load(&clients->closings[i].is_busy))
			closing = &clients->closings[i];
	for (uint32_t i = 0; i < n; i++) {
		if (closing != NULL && !is_memory(fds[i]))
			closing->fds[n_bad++] = fds[i];
		else
			close(fds[i]);
	}
	if (n_bad == 0)
		return;
	closing->n = n_bad;
	closing->uid = uid;
	atomic_store(&closing->is_busy, true);
	if (pthread_create(&thread, NULL, close_all, closing) == 0)
		(void)pthread_detach(thread);
	else
		(void)close_all(closing);
}

/* Discard what a client has sent: close() would close the fds in it. */
static void drain(struct client *client)
{
	int fds[XDP_BROKER_MAX_FDS];
	uint32_t n_fds;
	ssize_t n;

	(void)shutdown(client->fd, SHUT_RD);
	do {
		n = mri_xdp_receive(client->fd, request, sizeof(request), fds,
				    &n_fds);
		close_received(client->all, client->peer.uid, fds, n_fds);
	} while (n > 0 || n_fds > 0);
}

static void end(struct clients *clients, uint32_t i)
{
	struct client *client = clients->clients[i];
	const uint64_t n_bytes = mri_xdp_served_bytes(client->served);
	const uid_t uid = client->peer.uid;
	const pid_t pid = client->peer.pid;

	mri_xdp_served_destroy(client->served);
	drain(client);
	/* Tells the client that the interface is restored. */
	close(client->fd);
	free(client);
	clients->clients[i] = clients->clients[--clients->n];
	if (n_bytes > 0)
		print_error("mr-brokerd: user %u, process %d has ended: %llu "
			    "KiB released, %llu KiB left",
			    uid, (int)pid, (unsigned long long)(n_bytes >> 10),
			    (unsigned long long)(bytes_of(clients, uid) >> 10));
}

/* Make room: close the oldest client without a port, of one user or of all. */
static bool evict(struct clients *clients, const uid_t *uid)
{
	uint32_t oldest = clients->n;

	for (uint32_t i = 0; i < clients->n; i++) {
		const struct client *client = clients->clients[i];

		if (is_idle(client) &&
		    (uid == NULL || client->peer.uid == *uid) &&
		    (oldest == clients->n ||
		     client->since_ns < clients->clients[oldest]->since_ns))
			oldest = i;
	}
	if (oldest == clients->n)
		return false;
	end(clients, oldest);
	return true;
}

static int identify(int fd, struct peer *ret_peer)
{
	struct ucred cred;
	socklen_t n_bytes = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n_bytes) < 0)
		return -errno;
	*ret_peer = (struct peer){ .uid = cred.uid, .pid = cred.pid };
	n_bytes = (PEER_GROUPS_MAX - 1) * sizeof(gid_t);
	/* With more groups than that, only the primary one counts. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret_peer->groups,
		       &n_bytes) == 0)
		ret_peer->n_groups = n_bytes / sizeof(gid_t);
	ret_peer->groups[ret_peer->n_groups++] = cred.gid;
	return 0;
}

/* Answer the request that it will make. */
static void refuse(const struct client *client)
{
	static struct xdp_answer a;
	struct mr_reason why;

	mr_fail(&why, -EPERM,
		"xdp: no rule of the broker allows user %u an interface",
		client->peer.uid);
	mri_xdp_answer_error(&a, -EPERM, &why);
	(void)mri_xdp_send(client->fd, a.bytes, a.n_bytes, NULL, 0);
}

static bool add(struct clients *clients, int fd)
{
	struct client *client = calloc(1, sizeof(*client));
	uint32_t n_idle = 0;

	if (client == NULL || identify(fd, &client->peer) < 0) {
		free(client);
		return false;
	}
	for (uint32_t i = 0; i < clients->n; i++)
		n_idle += clients->clients[i]->peer.uid == client->peer.uid &&
			  is_idle(clients->clients[i]);
	if ((n_idle >= CLIENTS_MAX_IDLE &&
	     !evict(clients, &client->peer.uid)) ||
	    (clients->n == CLIENTS_MAX && !evict(clients, NULL))) {
		free(client);
		return false;
	}
	client->all = clients;
	client->is_heard = rules_name(clients->rules, &client->peer);
	client->fd = fd;
	client->since_ns = mr_ctx_now_ns(clients->ctx);
	client->served = mri_xdp_served_create(clients->ctx, allow, client);
	if (client->served == NULL) {
		free(client);
		return false;
	}
	clients->clients[clients->n++] = client;
	if (!client->is_heard)
		refuse(client);
	return true;
}

bool clients_accept(struct clients *clients, int listener)
{
	for (uint32_t i = 0; i < ACCEPT_AT_ONCE; i++) {
		const int fd = accept4(listener, NULL, NULL,
				       SOCK_CLOEXEC | SOCK_NONBLOCK);

		/* Out of fds: the connection stays queued until some are
		 * freed. */
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			return evict(clients, NULL);
		if (fd < 0)
			break;
		if (!add(clients, fd))
			close(fd);
	}
	return true;
}

int clients_poll(const struct clients *clients, struct pollfd *fds)
{
	int timeout_ms = -1;
	bool is_short = false;

	for (uint32_t i = 0; i < clients->n; i++) {
		const struct client *client = clients->clients[i];
		const bool waits = is_closing(clients, client->peer.uid);

		/* Without POLLIN, its end alone is reported. */
		fds[i] = (struct pollfd){ .fd = client->fd };
		if (client->is_heard && !waits)
			fds[i].events = POLLIN;
		if (waits)
			is_short = true;
		if (is_idle(client))
			timeout_ms = CLIENTS_IDLE_MS / 4;
	}
	if (is_short)
		return CLIENTS_CLOSING_MS;
	return timeout_ms;
}

static void report(const struct client *client, uint64_t n_before)
{
	const uint64_t n_bytes = mri_xdp_served_bytes(client->served);

	if (n_bytes != n_before)
		print_error("mr-brokerd: user %u, process %d: %llu KiB "
			    "registered, %llu KiB for this user",
			    client->peer.uid, (int)client->peer.pid,
			    (unsigned long long)(n_bytes >> 10),
			    (unsigned long long)(bytes_of(client->all,
							  client->peer.uid) >>
						 10));
}

/* False: end the connection. */
static bool serve(struct client *client)
{
	static struct xdp_answer a;
	const uint64_t n_before = mri_xdp_served_bytes(client->served);
	int fds[XDP_BROKER_MAX_FDS];
	uint32_t n_fds;
	const ssize_t n = mri_xdp_receive(client->fd, request, sizeof(request),
					  fds, &n_fds);
	bool is_alive = n > 0;

	if (n == -EAGAIN || n == -EINTR)
		return true;
	if (n > 0 && mri_xdp_serve(client->served, request, (size_t)n, fds,
				   n_fds, &a) < 0)
		is_alive = false;
	close_received(client->all, client->peer.uid, fds, n_fds);
	if (n <= 0)
		return false;
	if (mri_xdp_send(client->fd, a.bytes, a.n_bytes, a.fds, a.n_fds) < 0)
		is_alive = false;
	for (uint32_t i = 0; i < a.n_fds; i++)
		mr_fd_close(a.fds[i]);
	report(client, n_before);
	return is_alive;
}

void clients_serve(struct clients *clients, const struct pollfd *fds)
{
	const uint64_t now_ns = mr_ctx_now_ns(clients->ctx);

	/* Backwards, since the last client moves to a removed one's place. */
	for (uint32_t i = clients->n; i-- > 0;) {
		struct client *client = clients->clients[i];
		bool is_alive = true;

		if (fds[i].revents & POLLIN)
			is_alive = !is_closing(clients, client->peer.uid) ?
					   serve(client) :
					   true;
		else if (fds[i].revents != 0)
			is_alive = false;
		else if (is_idle(client))
			is_alive = now_ns - client->since_ns <
				   CLIENTS_IDLE_MS * UINT64_C(1000000);
		if (!is_alive)
			end(clients, i);
	}
}
