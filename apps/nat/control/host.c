/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A translator that shares its addresses with this host's kernel (local:
 * kernel) must not allocate a port that the kernel uses: one of
 * ip_local_port_range, or one that a host program listens on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "support/specs.h"

enum { LISTENS = 0x0a, UNCONNECTED = 0x07 }; /* states in /proc/net */

/* The sockets of the calling thread's network namespace. */
static const struct table {
	const char *path, *proto;
	uint32_t state;
} tables[] = {
	{ "/proc/thread-self/net/tcp", "TCP", LISTENS },
	{ "/proc/thread-self/net/tcp6", "TCP", LISTENS },
	{ "/proc/thread-self/net/udp", "UDP", UNCONNECTED },
	{ "/proc/thread-self/net/udp6", "UDP", UNCONNECTED },
};

static bool is_given_out(const struct nat_config *config, uint32_t port)
{
	return port >= config->ports.first && port <= config->ports.last;
}

/* Whether an address in the kernel's tables is any, or an outside one. */
static bool may_be_external(const struct nat_config *config, const char *hex)
{
	const struct nat_side_config *side = &config->sides[NAT_OUTSIDE];
	uint32_t addr;

	if (strspn(hex, "0") == strlen(hex))
		return true;
	if (strlen(hex) != 8 || sscanf(hex, "%8x", &addr) != 1)
		return false;
	for (uint32_t i = 0; i < side->n_addrs; i++)
		if (side->addrs[i] == ntohl(addr))
			return true;
	return false;
}

static int check_sockets(const struct nat_config *config,
			 const struct table *table, struct mr_reason *ret_error)
{
	FILE *const file = fopen(table->path, "re");
	char line[512], addr[33];
	uint32_t port, state;
	int err = 0;

	while (file != NULL && err == 0 &&
	       fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, " %*u: %32[0-9A-F]:%x %*32[0-9A-F]:%*x %x",
			   addr, &port, &state) == 3 &&
		    state == table->state && is_given_out(config, port) &&
		    may_be_external(config, addr))
			err = fail_with(ret_error, 2,
					"local: kernel: a program of this host "
					"uses %s port %u: end it, or leave the "
					"port out of 'range' of 'ports'",
					table->proto, port);
	if (file != NULL)
		fclose(file);
	return err;
}

int nat_host_check(const struct nat_config *config, struct mr_reason *ret_error)
{
	FILE *const file =
		fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	uint32_t first = 0, last = 0;
	int err = 0;

	if (file == NULL || fscanf(file, "%u %u", &first, &last) != 2)
		err = fail_with(ret_error, 1,
				"local: kernel: ip_local_port_range: %s",
				strerror(errno));
	if (file != NULL)
		fclose(file);
	if (err == 0 && first <= config->ports.last &&
	    last >= config->ports.first)
		err = fail_with(ret_error, 2,
				"local: kernel: this host uses ports %u to %u "
				"(ip_local_port_range): leave them out of "
				"'range' of 'ports', as 1024-%u",
				first, last, first - 1);
	for (uint32_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && err == 0;
	     i++)
		err = check_sockets(config, &tables[i], ret_error);
	return err;
}
