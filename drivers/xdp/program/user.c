/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of others. They redirect frames to sockets in an XSKMAP. The port
 * adds its own sockets to the map, with the queue number as key.
 *
 *     prog=FILE[:SECTION]  the user's program, which we load, attach and detach
 *                          like our own; its map is "xsks_map"
 *     map=PATH             the pinned map of a program that somebody else has
 *                          attached, and that stays attached
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "socket/socket.h"
#include "xdp.h"

enum { LOG_BYTES = 1 << 18, LIBBPF_ERRORS = 4000 /* LIBBPF_ERRNO__START */ };

static const char map_name[] = "xsks_map";

/* Whether the user means this program: by its section or its function. */
static bool is_meant(const struct bpf_program *program, const char *section)
{
	return section == NULL ?
		       bpf_program__type(program) == BPF_PROG_TYPE_XDP :
		       strcmp(bpf_program__section_name(program), section) ==
				       0 ||
			       strcmp(bpf_program__name(program), section) == 0;
}

static int choose_program(struct xdp_port *port, const char *file,
			  const char *section, struct bpf_program **ret_program,
			  struct mr_reason *reason)
{
	struct bpf_program *program;
	char names[128] = "";
	uint32_t n_meant = 0;

	bpf_object__for_each_program(program, port->prog.user)
	{
		const size_t n = strlen(names);

		snprintf(names + n, sizeof(names) - n, " %s",
			 bpf_program__section_name(program));
		(void)bpf_program__set_autoload(program, false);
		if (!is_meant(program, section))
			continue;
		*ret_program = program;
		n_meant++;
	}
	if (n_meant == 1)
		return 0;
	return mr_fail(reason, -EINVAL,
		       "%s: prog: %s has %s '%s'; append the section or "
		       "function, FILE:SECTION; it has:%s",
		       port->base.info->name, file,
		       n_meant == 0 ? "no program" : "several programs",
		       section != NULL ? section : "xdp",
		       names[0] != '\0' ? names : " none");
}

const char *mri_xdp_verdict(char *log)
{
	char *end, *line;

	end = strstr(log, "\nprocessed ");
	if (end == NULL)
		return "";
	*end = '\0';
	line = strrchr(log, '\n');
	return line != NULL ? line + 1 : log;
}

int mri_xdp_refuse_user_prog(const struct xdp_port *port, int err,
			     struct mr_reason *reterr_reason)
{
	const char *line = mri_xdp_verdict(port->prog.log);

	/* Without a verdict, the cause is a capability or the kernel. */
	if (line[0] == '\0')
		return mri_xdp_refuse_load(port, err, true, reterr_reason);
	return mr_fail(reterr_reason, -EINVAL,
		       "%s: prog: the kernel's verifier refuses %s: %s",
		       port->base.info->name, port->options.prog, line);
}

static int open_object(struct xdp_port *port, const char *file,
		       const char *section, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	struct xdp_prog *prog = &port->prog;
	LIBBPF_OPTS(bpf_object_open_opts, options, .kernel_log_buf = prog->log,
		    .kernel_log_size = LOG_BYTES);
	int err;

	prog->object = prog->user = bpf_object__open_file(file, &options);
	if (prog->user == NULL)
		return mr_fail(reason, errno < LIBBPF_ERRORS ? -errno : -EINVAL,
			       "%s: prog: cannot use %s: %s", name, file,
			       errno < LIBBPF_ERRORS && errno != EINVAL ?
				       mr_strerror(errno) :
				       "it is not a BPF object ('clang -target "
				       "bpf' makes one)");
	err = choose_program(port, file, section, &prog->program, reason);
	if (err < 0)
		return err;
	prog->map = bpf_object__find_map_by_name(prog->user, map_name);
	if (prog->map == NULL ||
	    bpf_map__type(prog->map) != BPF_MAP_TYPE_XSKMAP)
		return mr_fail(reason, -EINVAL,
			       "%s: prog: %s has no map '%s' of type "
			       "BPF_MAP_TYPE_XSKMAP, through which the port "
			       "receives",
			       name, file, map_name);
	(void)bpf_map__set_max_entries(prog->map, port->lease.first_queue +
							  port->lease.n_queues);
	(void)bpf_program__set_autoload(prog->program, true);
	(void)bpf_program__set_type(prog->program, BPF_PROG_TYPE_XDP);
	port->lease.has_frags =
		strncmp(bpf_program__section_name(prog->program), "xdp.frags",
			9) == 0;
	snprintf(prog->name, sizeof(prog->name), "%.15s",
		 bpf_program__name(prog->program));
	return 0;
}

int mri_xdp_user_open(struct xdp_port *port, bool has_frags,
		      struct mr_reason *reterr_reason)
{
	const char *const name = port->base.info->name;
	char file[1024];
	char *section;
	int err;

	port->prog.log = mr_alloc(port->base.ctx, 0, LOG_BYTES);
	if (port->prog.log == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s: no memory for a program", name);
	snprintf(file, sizeof(file), "%s", port->options.prog);
	section = strrchr(file, ':');
	if (section != NULL)
		*section++ = '\0';
	err = open_object(port, file, section, reterr_reason);
	if (err == 0 && has_frags && !port->lease.has_frags)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: prog: frames of several buffers, which %s "
			       "requires, need a program in a section "
			       "'xdp.frags'",
			       name, mri_xdp_sg_cause(port));
	return err;
}

void mri_xdp_user_close(struct xdp_port *port)
{
	bpf_object__close(port->prog.user);
	mr_free(port->base.ctx, port->prog.log);
	port->prog.user = NULL;
	port->prog.log = NULL;
}

static int refuse_map(const struct xdp_port *port, int err, const char *why,
		      struct mr_reason *reason)
{
	return mr_fail(reason, err, "%s: map: %s %s", port->base.info->name,
		       port->options.map, why);
}

static bool is_xskmap(int fd, struct bpf_map_info *ret_info)
{
	uint32_t n_bytes = sizeof(*ret_info), key;

	/* Programs and links have a different info. */
	return (bpf_map_get_next_key(fd, NULL, &key) == 0 || errno == ENOENT) &&
	       bpf_obj_get_info_by_fd(fd, ret_info, &n_bytes) == 0 &&
	       ret_info->type == BPF_MAP_TYPE_XSKMAP;
}

/* Whether the map has an entry for each queue. */
static int check_places(const struct xdp_port *port,
			const struct bpf_map_info *info,
			struct mr_reason *reason)
{
	const uint32_t n_places =
		port->lease.first_queue + port->lease.n_queues;
	char why[64];

	if (info->max_entries >= n_places)
		return 0;
	snprintf(why, sizeof(why), "has %u entries, too few for queue %u",
		 info->max_entries, n_places - 1);
	return refuse_map(port, -EINVAL, why, reason);
}

/* A pinned XSKMAP that has a place for each queue; its fd, or -errno. */
static int open_map(const struct xdp_port *port, struct mr_reason *reason)
{
	struct bpf_map_info info = { 0 };
	struct statfs status;
	int err;
	int fd;

	if (statfs(port->options.map, &status) < 0)
		return refuse_map(port, -errno, mr_strerror(errno), reason);
	if ((uint32_t)status.f_type != BPF_FS_MAGIC)
		return refuse_map(port, -EINVAL,
				  "is not in a bpf file system: pin the map "
				  "below /sys/fs/bpf",
				  reason);
	fd = bpf_obj_get(port->options.map);
	if (fd < 0 && (errno == EPERM || errno == EACCES))
		return refuse_map(
			port, -EPERM,
			"cannot be opened: run as root, or " XDP_SETCAP
			" and give that user access to the file",
			reason);
	if (fd < 0)
		return refuse_map(port, -errno, mr_strerror(errno), reason);
	err = is_xskmap(fd, &info) ?
		      check_places(port, &info, reason) :
		      refuse_map(port, -EINVAL,
				 "is not a map of type BPF_MAP_TYPE_XSKMAP",
				 reason);
	if (err < 0) {
		close(fd);
		return err;
	}
	return mr_fd_guard(fd);
}

int mri_xdp_map_open(struct xdp_port *port, bool has_frags,
		     struct mr_reason *reterr_reason)
{
	struct xdp_netdev now = port->dev;
	int fd;

	if (mri_xdp_netdev_read(port->dev.ifindex, &now) == 0 &&
	    now.xdp_prog_id == 0)
		return mr_fail(reterr_reason, -ENOENT,
			       "%s: map: no XDP program is attached that could "
			       "use it: attach yours first, or let the port "
			       "do so with 'prog'",
			       port->base.info->name);
	fd = open_map(port, reterr_reason);
	if (fd < 0)
		return fd;
	port->prog.is_foreign = true;
	port->prog.map_fd = fd;
	port->lease.is_native = now.xdp_attached != XDP_ATTACHED_SKB;
	port->lease.has_frags = has_frags;
	return 0;
}
