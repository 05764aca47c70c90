/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks before ports are opened; see check.h.
 *
 * A translator that shares its addresses with this host's kernel (local:
 * kernel) must not allocate a port that the kernel uses: one of
 * ip_local_port_range, or one of an open socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "config/addrs.h"
#include "support/text.h"

static bool may_write(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* Check that files can be created in the folder of path. */
static int check_folder(const char *key, const char *path,
			struct mr_reason *ret_error)
{
	char copy[sizeof(((struct nat_config *)0)->state_path)];
	const char *folder;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (may_write(folder, W_OK | X_OK))
		return 0;
	if (errno == ENOENT)
		return fail_with(ret_error, 1,
				 "%s: %s: there is no folder %s; create it, or "
				 "name another",
				 key, path, folder);
	return fail_with(ret_error, 1,
			 "%s: %s: cannot create files in %s: %s; make it "
			 "writable, or name another",
			 key, path, folder, mr_strerror(errno));
}

/* Check that the log can be written. If it exists, its folder may be
 * read-only. */
static int check_log(const char *path, struct mr_reason *ret_error)
{
	struct stat file;

	if (stat(path, &file) < 0 && errno == ENOENT)
		return check_folder("log", path, ret_error);
	if (may_write(path, W_OK)) {
		if (!S_ISDIR(file.st_mode))
			return 0;
		errno = EISDIR;
	}
	return fail_with(ret_error, 1,
			 "log: %s: %s; make it writable, or name another file",
			 path, mr_strerror(errno));
}

enum { TIME_WAIT = 6 }; /* a state in /proc/net */

/* The sockets of the calling thread's network namespace. */
static const struct table {
	const char *path, *proto;
} tables[] = {
	{ "/proc/thread-self/net/tcp", "TCP" },
	{ "/proc/thread-self/net/tcp6", "TCP" },
	{ "/proc/thread-self/net/udp", "UDP" },
	{ "/proc/thread-self/net/udp6", "UDP" },
};

/* Whether mappings have ports of an address. */
static bool is_given(const struct nat_config *config, uint32_t addr)
{
	return nat_addrs_of(config->addrs, htonl(addr)) &
	       (NAT_ADDR_GIVEN | NAT_ADDR_FIXED);
}

/* Whether a mapping may have that port of an address. */
static bool is_given_out(const struct nat_config *config, uint32_t addr,
			 uint32_t port)
{
	return is_given(config, addr) &&
	       nat_config_has_port(config, addr, (uint16_t)port);
}

/* Whether the same holds of an address of the kernel's tables, which may be any
 * address. */
static bool is_taken(const struct nat_config *config, const char *hex,
		     uint32_t port)
{
	static const char mapped[] = "0000000000000000FFFF0000";
	const struct nat_side_config *side = &config->sides[NAT_OUTSIDE];
	const bool is_any = strspn(hex, "0") == strlen(hex);
	uint32_t addr = 0;

	if (strncmp(hex, mapped, sizeof(mapped) - 1) == 0)
		hex += sizeof(mapped) - 1;
	if (!is_any && (strlen(hex) != 8 || sscanf(hex, "%8x", &addr) != 1))
		return false;
	for (uint32_t i = 0; i < side->n_addrs; i++)
		if ((is_any || addr == 0 || side->addrs[i] == ntohl(addr)) &&
		    is_given_out(config, side->addrs[i], port))
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
		    state != TIME_WAIT && is_taken(config, addr, port))
			err = fail_with(ret_error, 1,
					"local: kernel: a program of this host "
					"uses %s port %u: end it, or leave the "
					"port out of 'range' of 'ports' and of "
					"'forwards'",
					table->proto, port);
	if (file != NULL)
		fclose(file);
	return err;
}

/* Ports of the host's own connections. */
static int check_range(const struct nat_config *config,
		       struct mr_reason *ret_error)
{
	FILE *const file =
		fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	uint32_t first = 0, last = 0;
	char example[40] = "";
	int err = 0;

	if (file == NULL || fscanf(file, "%u %u", &first, &last) != 2)
		err = fail_with(ret_error, 1,
				"local: kernel: ip_local_port_range: %s",
				mr_strerror(errno));
	if (file != NULL)
		fclose(file);
	if (err != 0 || first > config->ports.last ||
	    last < config->ports.first)
		return err;
	if (first > 1024)
		snprintf(example, sizeof(example),
			 "; for example, 'range: 1024-%u'", first - 1);
	return fail_with(ret_error, 2,
			 "local: kernel: this host uses ports %u to %u "
			 "(ip_local_port_range); set another 'range' in "
			 "'ports'%s",
			 first, last, example);
}

/* Whether the NAT and this host's kernel use different ports now, if they share
 * addresses: 0, or an exit status with a message. */
static int check_host_ports(const struct nat_config *config,
			    struct mr_reason *ret_error)
{
	const struct nat_side_config *side = &config->sides[NAT_OUTSIDE];
	bool shares_ports = false;
	int err;

	for (uint32_t i = 0; i < side->n_addrs && config->is_shared; i++)
		shares_ports |= is_given(config, side->addrs[i]);
	if (!shares_ports)
		return 0;
	err = check_range(config, ret_error);
	for (uint32_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && err == 0;
	     i++)
		err = check_sockets(config, &tables[i], ret_error);
	return err;
}

int nat_check(struct nat_config *config, struct mr_reason *ret_error)
{
	int status;

	if (nat_addrs_create(config) < 0)
		return fail_with(ret_error, 1, "no memory");
	status = check_host_ports(config, ret_error);
	if (status == 0 && config->log_path[0] != '\0')
		status = check_log(config->log_path, ret_error);
	if (status == 0 && config->state_path[0] != '\0')
		status = check_folder("state", config->state_path, ret_error);
	return status;
}
