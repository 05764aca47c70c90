/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-brokerd: opens xdp: ports for unprivileged programs.
 *
 * Ports survive its end: the client holds all that a port needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/listen.h"
#include "support/options.h"
#include "support/signals.h"
#include "support/text.h"

#include "clients.h"
#include "sandbox.h"

enum { FULL_MS = 100 };

struct options {
	const char *socket, *rules;
	bool is_check;
	uint32_t n_verbose;
};

static const struct yaml_key keys[] = {
	YAML_ROW("rules", option_take_string, options, rules,
		 YAML_OPTION("FILE", "rules file (default "
				     "/etc/millrace/broker.yaml)")),
	YAML_ROW("socket", option_take_string, options, socket,
		 YAML_OPTION("PATH", "where clients connect "
				     "(default " XDP_BROKER_PATH ")")),
	YAML_BOOL("check", options, is_check,
		  YAML_OPTION(NULL, "check the rules and exit")),
	YAML_ROW("verbose", option_take_count, options, n_verbose,
		 .letter = 'v', YAML_OPTION(NULL, "log each port")),
	YAML_END,
};

static const struct option_keys set = { keys, 0, false, 0 };

static const char usage[] =
	"usage: mr-brokerd [options]\n"
	"Open xdp: ports for unprivileged programs, according to rules.\n";

static const struct option_table table = {
	.program = "mr-brokerd",
	.usage = usage,
	.sets = &set,
	.n_sets = 1,
};

static int print_why(const char *text, int status)
{
	print_error("mr-brokerd: %s", text);
	return status;
}

static void write_log(void *opaque, enum mr_log_level level, const char *text)
{
	const struct options *options = opaque;

	if (level <= option_log_level(options->n_verbose, false))
		print_error("mr-brokerd: %s", text);
}

/* The socket that systemd has opened, or -1. */
static int activated_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	int type = 0;
	socklen_t n_bytes = sizeof(type);

	if (pid == NULL || n == NULL || strtol(pid, NULL, 10) != getpid() ||
	    strcmp(n, "1") != 0 ||
	    getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &n_bytes) < 0 ||
	    type != SOCK_SEQPACKET || fcntl(3, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(3, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	return 3;
}

/* Serve until a signal. */
static void serve_clients(struct clients *clients, int signal_fd)
{
	enum signals_what what = SIGNALS_NONE;
	bool is_full = false;

	while (what != SIGNALS_END) {
		struct pollfd fds[] = {
			{ .fd = is_full ? -1 : clients->listener,
			  .events = POLLIN },
			{ .fd = clients->child_fd, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN },
		};

		if (poll(fds, 3, is_full ? FULL_MS : -1) < 0)
			continue;
		if (fds[1].revents != 0)
			clients_reap(clients);
		is_full = fds[0].revents != 0 && !clients_accept(clients);
		what = fds[2].revents != 0 ? signals_take(signal_fd) :
					     SIGNALS_NONE;
		if (what == SIGNALS_RELOAD)
			clients_reload(clients);
	}
}

/* Serve clients of a listening socket. Returns the exit status. */
static int serve_on(struct clients *clients, const struct options *options,
		    int listener, bool is_activated)
{
	struct mr_reason why;
	const int signal_fd = signals_open(&why);
	int err;

	if (signal_fd < 0)
		return print_why(why.text, 1);
	err = clients_open(clients, listener);
	if (err < 0)
		return print_why(mr_strerror(-err), 1);
	if (sandbox_enter(&why) < 0)
		return print_why(why.text, 1);
	print_error("mr-brokerd: %u rules, listening on %s",
		    clients->rules.n_rules,
		    is_activated ? "systemd's socket" : options->socket);
	if (signals_ignore_hang_up())
		print_error("mr-brokerd: note: SIGHUP was ignored at the "
			    "start, so it does not reload the rules");
	serve_clients(clients, signal_fd);
	/* Settings stay as they are: the ports are in use. */
	return 0;
}

static int open_and_serve(struct clients *clients,
			  const struct options *options)
{
	int listener = activated_socket(), status;
	const bool is_activated = listener >= 0;
	struct mr_reason why;

	if (!is_activated && strcmp(options->socket, XDP_BROKER_PATH) == 0)
		(void)mkdir("/run/millrace", 0755);
	/* Everyone may connect; the rules decide. */
	if (!is_activated)
		listener = listen_unix(options->socket, SOCK_SEQPACKET, 0666,
				       &why);
	if (listener < 0)
		return print_why(why.text, 1);
	status = serve_on(clients, options, listener, is_activated);
	if (!is_activated)
		listen_close(options->socket, listener);
	return status;
}

int main(int argc, char **argv)
{
	struct options options = { .socket = XDP_BROKER_PATH,
				   .rules = "/etc/millrace/broker.yaml" };
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .opaque = &options,
					      .log = write_log };
	static struct clients clients;
	struct mr_reason why;
	int first;

	switch (option_table_parse(&table, argc, argv, &options, &first, NULL,
				   &why)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : print_why("cannot write", 1);
	case PARSE_WRONG:
		return print_why(why.text, 2);
	default:
		break;
	}
	if (first < argc)
		return print_why("takes options only; see mr-brokerd --help",
				 2);
	if (mr_ctx_create(&config, &clients.ctx, &why) < 0)
		return print_why(why.text, 1);
	clients.rules_path = options.rules;
	if (rules_read(clients.ctx, options.rules, &clients.rules, &why) < 0)
		return print_why(why.text, 2);
	if (!options.is_check)
		return open_and_serve(&clients, &options);
	printf("the rules are good\n");
	return fflush(stdout) == 0 ? 0 : print_why("cannot write", 1);
}
