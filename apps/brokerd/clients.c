/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections. A process per connection serves it, so that this process never
 * receives or closes what a client sends: closing an fd can block on the
 * client. If there are too many, clients without a port end first.
 *
 * Source: unix(7), prctl(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/text.h"

#include "clients.h"
#include "passrights.h"

enum { ACCEPT_AT_ONCE = 64 };

int clients_open(struct clients *clients, int listener)
{
	sigset_t set;

	clients->listener = listener;
	clients->pid = getpid();
	passrights_set(listener, false);
	clients->shared =
		mmap(NULL, sizeof(*clients->shared), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (clients->shared == MAP_FAILED)
		return -errno;
	/* Ignored, as a parent can have it, it would not report processes. */
	(void)signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	clients->lock_fd = memfd_create("mr-brokerd", MFD_CLOEXEC);
	if (clients->lock_fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	clients->child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return clients->child_fd < 0 ? -errno : 0;
}

static bool is_idle(const struct clients *clients, uint32_t i)
{
	return clients->clients[i].pid > 0 &&
	       atomic_load(&clients->shared->of[i].n_bytes) == 0;
}

static uint32_t n_idle_of(const struct clients *clients, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		n += is_idle(clients, i) && clients->shared->of[i].uid == uid;
	return n;
}

/* Make room: end the oldest client without a port, of one user or of all. */
static void end_oldest(struct clients *clients, const uid_t *uid)
{
	struct client *oldest = NULL;

	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &clients->clients[i];

		if (is_idle(clients, i) && !client->is_ending &&
		    (uid == NULL || client->peer.uid == *uid) &&
		    (oldest == NULL || client->since_ns < oldest->since_ns))
			oldest = client;
	}
	if (oldest == NULL)
		return;
	oldest->is_ending = true;
	(void)kill(oldest->pid, SIGTERM);
}

static int identify_peer(int fd, struct peer *ret_peer)
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

/* In the new process: wait until the broker has closed its copy of fd. */
static void run_session(struct clients *clients, uint32_t i, int fd,
			const int gate[2], int err, const struct mr_reason *why)
{
	char byte;

	close(clients->listener);
	close(gate[1]);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
	if (getppid() == clients->pid && err < 0)
		(void)session_greet(fd, err, why);
	else if (getppid() == clients->pid)
		session_run(clients, i, fd);
	_exit(0);
}

/* Serve fd, or refuse it, in a new process. */
static void start_session(struct clients *clients, int fd,
			  const struct peer *peer, int err,
			  const struct mr_reason *why)
{
	struct client *client;
	uint32_t i = 0;
	int gate[2];

	while (clients->clients[i].pid > 0)
		i++;
	client = &clients->clients[i];
	*client = (struct client){ .peer = *peer,
				   .since_ns = mr_ctx_now_ns(clients->ctx) };
	clients->shared->of[i].uid = peer->uid;
	if (pipe2(gate, O_CLOEXEC) == 0) {
		client->pid = fork();
		if (client->pid == 0)
			run_session(clients, i, fd, gate, err, why);
		close(fd);
		close(gate[0]);
		close(gate[1]);
	} else {
		client->pid = -1;
		close(fd);
	}
	if (client->pid > 0) {
		clients->n++;
		return;
	}
	print_error("mr-brokerd: no process for user %u: %s", peer->uid,
		    mr_strerror(errno));
	client->pid = 0;
}

static void admit_client(struct clients *clients, int fd)
{
	struct mr_reason why = { .text = "" };
	struct peer peer;
	uint32_t n_idle;
	int err = identify_peer(fd, &peer);

	if (err < 0) {
		close(fd);
		return;
	}
	n_idle = n_idle_of(clients, peer.uid);
	err = rules_check_user(&clients->rules, &peer, &why);
	if (err == 0 && n_idle >= CLIENTS_MAX_STUCK)
		err = mr_fail(&why, -EAGAIN,
			      "xdp: user %u has %u connections to the broker "
			      "without a port; end them",
			      peer.uid, n_idle);
	else if (err == 0 && n_idle >= CLIENTS_MAX_IDLE)
		end_oldest(clients, &peer.uid);
	if (err == 0 || passrights_may(fd)) {
		start_session(clients, fd, &peer, err, &why);
		return;
	}
	(void)session_greet(fd, err, &why);
	close(fd);
}

bool clients_accept(struct clients *clients)
{
	for (uint32_t i = 0; i < ACCEPT_AT_ONCE; i++) {
		int fd;

		if (clients->n == CLIENTS_MAX) {
			end_oldest(clients, NULL);
			return false;
		}
		fd = accept4(clients->listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return errno != EMFILE && errno != ENFILE;
		admit_client(clients, fd);
	}
	return true;
}

void clients_reap(struct clients *clients)
{
	struct signalfd_siginfo info;
	pid_t pid;

	while (read(clients->child_fd, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		uint32_t i = 0;

		while (i < CLIENTS_MAX && clients->clients[i].pid != pid)
			i++;
		if (i == CLIENTS_MAX)
			continue;
		clients->clients[i].pid = 0;
		atomic_store(&clients->shared->of[i].n_bytes, 0);
		clients->n--;
	}
}

void clients_reload(struct clients *clients)
{
	struct rules now;
	struct mr_reason why;

	if (rules_read(clients->ctx, clients->rules_path, &now, &why) < 0) {
		print_error("mr-brokerd: %s; keeping the old rules", why.text);
		return;
	}
	rules_free(&clients->rules);
	clients->rules = now;
	atomic_store(&clients->shared->n_reloads, ++clients->n_reloads);
}
