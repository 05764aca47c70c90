/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/xdp/socket/busy.c on a kernel whose NAPIs have no settings of their
 * own: files of /sys, which are in a temporary folder here. /run is not
 * writable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/fake_kernel.h"
#include "socket/socket.h"
#include "support/test.h"

enum { LO = 1 }; /* its ifindex, in every network namespace */

static char folder[] = "/tmp/mr-busy-XXXXXX";

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open64(const char *path, int flags, ...)
{
	static const char sysfs[] = "/sys/class/net/lo/";
	char other[128];

	if (strncmp(path, "/run/millrace/", 14) == 0) {
		errno = EACCES;
		return -1;
	}
	if (strncmp(path, sysfs, sizeof(sysfs) - 1) == 0) {
		snprintf(other, sizeof(other), "%s/%s", folder,
			 path + sizeof(sysfs) - 1);
		path = other;
	}
	return __real_open64(path, flags, 0600);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_file(const char *name, const char *wanted)
{
	char path[128], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, wanted);
}

static void open_busy(const char *ifindex)
{
	fake_open((struct fake_config){ 0 });
	fake.zc_max_segs = 0; /* no family "netdev" */
	write_file("ifindex", ifindex);
	write_file("napi_defer_hard_irqs", "1\n");
	write_file("gro_flush_timeout", "0\n");
	fake.port->dev.ifindex = LO;
	fake.port->lease.fds[XDP_LEASE_RECORD] = -1;
	fake.port->options.busy = 64;
	fake.port->lease.is_native = true;
	fake.port->lease.n_queues = 1;
	fake.port->rxqs = fake.rxq;
	fake.port->txqs = fake.txq;
	fake.port->lease.sockets[0] = -1;
	mri_xdp_busy_open(fake.port);
	assert_true(fake.rxq->is_busy && fake.txq->is_busy);
}

TEST(an_older_kernel_is_configured_by_sysfs)
{
	open_busy("1\n");
	assert_file("napi_defer_hard_irqs", "2\n");
	assert_file("gro_flush_timeout", "200000\n");
	/* What someone else has changed since stays. */
	write_file("gro_flush_timeout", "300000\n");
	mri_xdp_record_undo(fake.port, XDP_SETTING_DEFER);
	assert_file("napi_defer_hard_irqs", "1\n");
	assert_file("gro_flush_timeout", "300000\n");
	fake_close();
}

/* It may have an interface of the same name. */
TEST(sysfs_of_another_namespace_is_left_alone)
{
	open_busy("7\n");
	assert_file("napi_defer_hard_irqs", "1\n");
	assert_file("gro_flush_timeout", "0\n");
	mri_xdp_record_undo(fake.port, XDP_SETTING_DEFER);
	fake_close();
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "ifindex", "napi_defer_hard_irqs",
					     "gro_flush_timeout" };
	char path[128];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	/* Else it is another open() that would have to be wrapped. */
	if (open("/run/millrace/", O_RDONLY | O_CLOEXEC) >= 0 ||
	    errno != EACCES || mkdtemp(folder) == NULL)
		return 1;
	return test_run(NULL, NULL, remove_folder);
}
