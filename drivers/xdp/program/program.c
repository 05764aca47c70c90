/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The XDP program: loaded from a skeleton inside the library, attached with a
 * bpf_link, which the kernel detaches when the process ends, however it ends.
 *
 * Native attach is tried before generic. A program that is already attached
 * stays: libxdp's dispatcher adds ours to its programs; with any other program,
 * the port is refused (owner.c). We never detach what we did not attach.
 *
 * Source: linux/kernel/bpf/syscall.c (BPF_LINK_CREATE), net/core/dev.c
 * (dev_xdp_attach); xdp-tools/lib/libxdp/protocol.org.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <xdp/libxdp.h>

#include "device/known.h"
#include "device/stats.h"
#include "lease/server.h"
#include "program/filter.h"
#include "xdp.h"
#include "xdp_prog.skel.h"

enum { ATTACH_WAIT_MS = 1000, ATTACH_STEP_MS = 2, N_LOAD_FDS = 12 };

/* is_plain: a program that cannot change frames, for a dispatcher. */
static struct bpf_program *choose_program(const struct xdp_prog_bpf *skeleton,
					  bool is_plain, bool has_frags)
{
	struct bpf_program *const programs[] = {
		skeleton->progs.millrace,
		skeleton->progs.millrace_frags,
		skeleton->progs.millrace_plain,
		skeleton->progs.millrace_plain_frags,
	};
	const uint32_t chosen = 2 * is_plain + has_frags;

	for (uint32_t i = 0; i < 4; i++)
		bpf_program__set_autoload(programs[i], i == chosen);
	return programs[chosen];
}

/* Open our program or the user's, without loading it. */
static int open_program(struct xdp_port *port, bool is_plain, bool has_frags,
			struct mr_reason *reterr_reason)
{
	struct xdp_prog *prog = &port->prog;
	struct xdp_prog_bpf *skeleton;

	if (port->options.prog != NULL)
		return mri_xdp_user_open(port, has_frags, reterr_reason);
	skeleton = prog->skeleton = xdp_prog_bpf__open();
	if (skeleton == NULL)
		return mri_xdp_refuse_load(port, -ENOMEM, false, reterr_reason);
	bpf_map__set_max_entries(skeleton->maps.sockets,
				 port->lease.first_queue +
					 port->lease.n_queues_max);
	/* A dispatcher keeps the program of a port that was killed. */
	skeleton->rodata->passes_unserved = port->options.partial || is_plain;
	if (port->lease.fds[XDP_LEASE_UNSERVED] >= 0)
		(void)bpf_map__reuse_fd(skeleton->maps.unserved,
					port->lease.fds[XDP_LEASE_UNSERVED]);
	/* With a filter, the code in front of it has inserted the tag. */
	skeleton->rodata->has_tags =
		port->lease.kfuncs[XDP_KFUNC_TAG] != 0 && port->filter.n == 0;
	skeleton->rodata->has_tags_in =
		port->lease.kfuncs[XDP_KFUNC_TAG] != 0 && port->filter.n > 0;
	skeleton->rodata->meta_magic = port->lease.meta_magic;
	prog->object = skeleton->obj;
	prog->program = choose_program(skeleton, is_plain, has_frags);
	prog->map = skeleton->maps.sockets;
	port->lease.has_frags = has_frags;
	snprintf(prog->name, sizeof(prog->name), "millrace");
	return 0;
}

/* Without free file descriptors, libbpf wrongly reports that the kernel has no
 * global variables, and that the program is invalid. */
static int check_files(const struct xdp_port *port)
{
	int fds[N_LOAD_FDS], n = 0, err = 0;

	while (n < N_LOAD_FDS && err == 0) {
		fds[n] = fcntl(port->lease.fds[XDP_LEASE_EVENTS],
			       F_DUPFD_CLOEXEC, 0);
		err = fds[n] < 0 ? -errno : 0;
		n += err == 0;
	}
	while (n > 0)
		close(fds[--n]);
	return err;
}

static int load_object(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	int err = check_files(port);

	if (err == 0)
		err = bpf_object__load(port->prog.object);
	if (err < 0)
		return port->prog.user != NULL ?
			       mri_xdp_refuse_user_prog(port, err,
							reterr_reason) :
			       mri_xdp_refuse_load(port, err, false,
						   reterr_reason);
	port->prog.fd = bpf_program__fd(port->prog.program);
	port->prog.map_fd = bpf_map__fd(port->prog.map);
	return port->prog.skeleton == NULL ?
		       0 :
		       mri_xdp_unserved_keep(
			       port,
			       bpf_map__fd(port->prog.skeleton->maps.unserved),
			       reterr_reason);
}

/* Load the program again, with the port's filter and bound to the device. */
static int add_parts(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	const int fd = mri_xdp_filter_load(
		port, port->prog.program, port->lease.has_frags, reterr_reason);

	if (fd < 0)
		return fd;
	port->prog.fd = port->prog.copy_fd = fd;
	return 0;
}

static int load_all(struct xdp_port *port, bool has_frags,
		    struct mr_reason *reterr_reason)
{
	int err = open_program(port, false, has_frags, reterr_reason);

	if (err == 0)
		err = load_object(port, reterr_reason);
	if (err == 0 && (port->filter.n > 0 || xdp_is_bound(port)))
		err = add_parts(port, reterr_reason);
	return err;
}

int mri_xdp_refuse_load(const struct xdp_port *port, int err, bool has_rules,
			struct mr_reason *reterr_reason)
{
	/* The verifier requires CAP_PERFMON for packet pointer arithmetic. */
	const char *missing = mri_xdp_missing_capability(
		XDP_CAP_BPF | (has_rules ? XDP_CAP_PERFMON : 0) |
		XDP_CAP_NET_ADMIN);

	if ((err == -EPERM || err == -EACCES) && missing != NULL)
		return mr_fail(
			reterr_reason, -EPERM,
			"%s: capability %s is missing, which loading "
			"the XDP program needs: run as root, or " XDP_SETCAP,
			port->base.info->name, missing);
	return mr_fail(reterr_reason, -EIO,
		       "%s: the kernel does not load the XDP program: %s",
		       port->base.info->name, mr_strerror(-err));
}

/*
 * Read which program is attached. True: its name begins with wanted; or
 * is_unnamed and its name cannot be read; or it has just gone.
 */
static bool is_attached(struct xdp_port *port, const char *wanted,
			bool is_unnamed)
{
	/* A copy: port->dev is the interface as it was, to be given back so. */
	struct xdp_netdev now = port->dev;
	char name[BPF_OBJ_NAME_LEN];

	if (mri_xdp_netdev_read(port->dev.ifindex, &now) < 0)
		return false;
	port->dev.xdp_prog_id = now.xdp_prog_id;
	port->dev.xdp_attached = now.xdp_attached;
	return port->dev.xdp_prog_id == 0 ||
	       mri_xdp_prog_name(port->dev.xdp_prog_id, name) ||
	       (is_unnamed && name[0] == '\0') ||
	       strncmp(name, wanted, strlen(wanted)) == 0;
}

/* A link fd, or -errno. */
static int attach_once(const struct xdp_port *port, uint32_t mode_flag)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = mode_flag);
	const int fd = bpf_link_create(port->prog.fd, (int)port->dev.ifindex,
				       BPF_XDP, &options);

	return fd < 0 ? -errno : mr_fd_guard(fd);
}

/*
 * A process that was killed takes its program with it, but not at once: wait
 * for one of ours to go, and not for anybody else's. Without CAP_SYS_ADMIN, as
 * in the broker, its name cannot be read: then it may be one of ours.
 */
static int attach_patiently(struct xdp_port *port, uint32_t mode_flag)
{
	const struct timespec step = { .tv_nsec = ATTACH_STEP_MS * 1000000 };
	int fd = attach_once(port, mode_flag);

	for (int i = 0; i < ATTACH_WAIT_MS / ATTACH_STEP_MS; i++) {
		if ((fd != -EBUSY && fd != -EEXIST) ||
		    !is_attached(port, port->prog.name, true))
			return fd;
		nanosleep(&step, NULL);
		fd = attach_once(port, mode_flag);
	}
	return fd;
}

static void forget_metadata(struct xdp_port *port)
{
	memset(port->lease.kfuncs, 0, sizeof(port->lease.kfuncs));
	port->lease.meta_magic = 0;
}

/*
 * Join the programs of libxdp's dispatcher. It loads ours as an extension of
 * its own program, so ours must not be loaded yet.
 */
static int join_dispatcher(struct xdp_port *port,
			   struct mr_reason *reterr_reason)
{
	const int ifindex = (int)port->dev.ifindex;
	struct xdp_multiprog *others = xdp_multiprog__get_from_ifindex(ifindex);
	DECLARE_LIBXDP_OPTS(xdp_program_opts, options, );
	const bool has_frags = port->lease.has_frags;
	enum xdp_attach_mode mode;
	struct xdp_program *program;
	int err;

	if (libxdp_get_error(others) != 0)
		return (int)libxdp_get_error(others);
	mode = xdp_multiprog__attach_mode(others);
	xdp_multiprog__close(others);
	mri_xdp_prog_close(port);
	forget_metadata(port);
	err = open_program(port, true, has_frags, reterr_reason);
	if (err < 0)
		return err;
	options.obj = port->prog.object;
	options.prog_name = bpf_program__name(port->prog.program);
	program = xdp_program__create(&options);
	if (libxdp_get_error(program) != 0)
		return (int)libxdp_get_error(program);
	err = xdp_program__attach(program, ifindex, mode, 0);
	if (err < 0) {
		xdp_program__close(program);
		return err;
	}
	port->prog.dispatched = program;
	port->lease.is_native = mode == XDP_MODE_NATIVE;
	port->prog.map_fd = bpf_map__fd(port->prog.map);
	return 0;
}

/* Another program is attached: join it if it is libxdp's dispatcher. */
static int join_others(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	char why[96] = "";
	int err = -EBUSY;

	if (port->lessor->why_alone != NULL)
		return mri_xdp_refuse_occupied(port, port->lessor->why_alone,
					       reterr_reason);
	/* Do not ask libxdp about other programs: 1.3.1 leaks an fd then. */
	if (!is_attached(port, "xdp_dispatcher", false))
		return mri_xdp_refuse_occupied(port, "", reterr_reason);
	if (port->filter.n == 0)
		err = join_dispatcher(port, reterr_reason);
	if (err == 0)
		return 0;
	if (port->filter.n > 0)
		snprintf(why, sizeof(why),
			 "it accepts no program with a filter");
	else
		snprintf(why, sizeof(why), "it rejected our program: %s",
			 mr_strerror(-err));
	return mri_xdp_refuse_occupied(port, why, reterr_reason);
}

static int refuse_mode(const struct xdp_port *port, int err, bool is_generic,
		       struct mr_reason *reason)
{
	const char *const name = port->base.info->name;

	if (err == -ERANGE)
		return mr_fail(reason, -ERANGE,
			       "%s: the MTU of this interface or of its peer "
			       "is too large for XDP with one buffer per "
			       "frame: lower it, or leave sg=off out",
			       name);
	if (err == -ENOSPC)
		return mr_fail(reason, -ENOTSUP,
			       "%s: it has fewer rx queues than its peer has "
			       "tx queues: 'ethtool -L' on one of them",
			       name);
	if (err == -EPERM)
		return mr_fail(reason, -EPERM,
			       "%s: capability CAP_NET_ADMIN is missing, which "
			       "attaching the XDP program needs: run as root, "
			       "or " XDP_SETCAP,
			       name);
	return mr_fail(reason, err == -EOPNOTSUPP ? -ENOTSUP : -EIO,
		       "%s: the XDP program cannot be attached in %s mode: "
		       "%s%s",
		       name, is_generic ? "generic" : "native",
		       mr_strerror(-err),
		       err == -EINVAL ? " (driver: MTU too large for XDP, or "
					"too few queues)" :
					"");
}

/* Load again without binding to the device, and so without metadata. */
static int load_unbound(struct xdp_port *port, bool has_frags,
			struct mr_reason *reterr_reason)
{
	mri_xdp_prog_close(port);
	forget_metadata(port);
	return load_all(port, has_frags, reterr_reason);
}

/*
 * Load the program for the device. If the kernel refuses that, a port without a
 * filter does without tags and metadata, and keeps the reason. A filter needs
 * the tags: without them it would select other frames.
 */
static int load_for_device(struct xdp_port *port, bool has_frags,
			   struct mr_reason *reterr_reason)
{
	struct mr_reason why = { "" };
	const int err = load_all(port, has_frags, &why);

	if (err == 0)
		return 0;
	if (err == -ENOMEM || !xdp_is_bound(port) ||
	    (port->filter.n > 0 && port->lease.kfuncs[XDP_KFUNC_TAG] != 0))
		return mr_fail(reterr_reason, err, "%s", why.text);
	snprintf(port->prog.unbound_why, sizeof(port->prog.unbound_why),
		 "%.127s", why.text);
	return load_unbound(port, has_frags, reterr_reason);
}

static int load_and_attach(struct xdp_port *port, bool has_frags,
			   struct mr_reason *reterr_reason)
{
	const bool is_generic =
		port->options.attach == XDP_ATTACH_GENERIC ||
		(port->options.attach == XDP_ATTACH_AUTO &&
		 port->options.mode != XDP_MODE_ZC &&
		 mri_xdp_known(port, XDP_DRV, XDP_BROKEN, NULL));
	int fd, err;

	forget_metadata(port);
	port->prog.unbound_why[0] = '\0';
	if (!is_generic && port->options.prog == NULL)
		mri_xdp_find_kfuncs(port);
	err = load_for_device(port, has_frags, reterr_reason);
	if (err < 0)
		return err;
	fd = attach_patiently(port, is_generic ? XDP_FLAGS_SKB_MODE :
						 XDP_FLAGS_DRV_MODE);
	port->lease.is_native = !is_generic;
	if (fd == -EOPNOTSUPP && port->options.attach == XDP_ATTACH_AUTO) {
		/* Generic mode rejects programs bound to a device. */
		if (xdp_is_bound(port))
			err = load_unbound(port, has_frags, reterr_reason);
		if (err < 0)
			return err;
		fd = attach_patiently(port, XDP_FLAGS_SKB_MODE);
		port->lease.is_native = false;
	}
	if (fd >= 0) {
		port->lease.fds[XDP_LEASE_LINK] = fd;
		port->prog.attached_fd = port->prog.fd;
		return 0;
	}
	if (fd == -EBUSY || fd == -EEXIST)
		return join_others(port, reterr_reason);
	return refuse_mode(port, fd, is_generic, reterr_reason);
}

int mri_xdp_prog_open(struct xdp_port *port, bool has_frags,
		      struct mr_reason *reterr_reason)
{
	int err;

	mri_xdp_quiet_begin();
	port->lease.fds[XDP_LEASE_LINK] = -1;
	port->prog.copy_fd = port->prog.taken_fd = -1;
	err = port->options.map != NULL ?
		      mri_xdp_map_open(port, has_frags, reterr_reason) :
		      load_and_attach(port, has_frags, reterr_reason);
	if (err < 0)
		mri_xdp_prog_close(port);
	mri_xdp_quiet_end();
	return err;
}

/* Load the program once more, for what replaces the attached one later. */
static int load_spare(struct xdp_port *port, int map_fd,
		      struct mr_reason *reterr_reason)
{
	const int err = open_program(port, false, port->lease.has_frags,
				     reterr_reason);

	if (err < 0)
		return err;
	if (bpf_map__reuse_fd(port->prog.skeleton->maps.sockets, map_fd) < 0)
		return mr_fail(reterr_reason, -EIO,
			       "%s: the program's map cannot be used: %s",
			       port->base.info->name, mr_strerror(errno));
	return load_object(port, reterr_reason);
}

int mri_xdp_prog_take(struct xdp_port *port, int prog_fd, int map_fd,
		      bool has_rules, struct mr_reason *reterr_reason)
{
	int err;

	port->prog.attached_fd = port->prog.taken_fd = prog_fd;
	port->prog.n_steered = port->lease.n_queues;
	mri_xdp_quiet_begin();
	err = load_spare(port, map_fd, reterr_reason);
	if (err == 0 && has_rules &&
	    (port->filter.n > 0 || xdp_is_bound(port)))
		err = add_parts(port, reterr_reason);
	mri_xdp_quiet_end();
	if (!has_rules)
		port->prog.fd = prog_fd;
	return err;
}

bool mri_xdp_prog_is_detached(const struct xdp_port *port)
{
	struct bpf_link_info info = { 0 };
	uint32_t n_bytes = sizeof(info);

	/* The link outlives its place, and names no interface then. */
	return port->lease.fds[XDP_LEASE_LINK] >= 0 &&
	       bpf_obj_get_info_by_fd(port->lease.fds[XDP_LEASE_LINK], &info,
				      &n_bytes) == 0 &&
	       info.xdp.ifindex == 0;
}

int mri_xdp_prog_replace(struct xdp_port *port, int old_fd, int new_fd)
{
	LIBBPF_OPTS(bpf_link_update_opts, options, .flags = BPF_F_REPLACE,
		    .old_prog_fd = (uint32_t)old_fd);

	if (port->is_loss_known) /* there is no link any more */
		return -ENOLINK;
	if (bpf_link_update(port->lease.fds[XDP_LEASE_LINK], new_fd, &options) <
	    0)
		return -errno;
	port->prog.attached_fd = new_fd;
	return 0;
}

/* Not with libxdp, which would detach by the interface's number: it may be
 * another's now. */
void mri_xdp_prog_detach(struct xdp_port *port)
{
	mr_fd_close(port->lease.fds[XDP_LEASE_LINK]);
	port->lease.fds[XDP_LEASE_LINK] = -1;
}

/* Replacing a program by itself has no effect: a copy stands in briefly. */
int mri_xdp_prog_spread(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	struct xdp_prog *prog = &port->prog;
	const int fd = prog->attached_fd;
	int err, copy_fd;

	if (prog->skeleton == NULL || port->lease.fds[XDP_LEASE_LINK] < 0)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: the XDP program is not the port's own",
			       port->base.info->name);
	copy_fd = mri_xdp_filter_load(port, prog->program,
				      port->lease.has_frags, reterr_reason);
	if (copy_fd < 0)
		return copy_fd;
	err = mri_xdp_prog_replace(port, fd, copy_fd);
	if (err == 0 && (err = mri_xdp_prog_replace(port, copy_fd, fd)) < 0) {
		/* It stays attached. */
		mr_fd_close(prog->copy_fd);
		prog->fd = prog->copy_fd = copy_fd;
		copy_fd = -1;
	}
	mr_fd_close(copy_fd);
	return err == 0 ? 0 :
			  mr_fail(reterr_reason, err, "%s: %s",
				  port->base.info->name, mr_strerror(-err));
}

int mri_xdp_prog_renew(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	int err;

	mri_xdp_quiet_begin();
	err = load_all(port, port->lease.has_frags, reterr_reason);
	mri_xdp_quiet_end();
	if (err == 0)
		err = mri_xdp_prog_steer(port, reterr_reason);
	if (err == 0 && bpf_link_update(port->lease.fds[XDP_LEASE_LINK],
					port->prog.fd, NULL) < 0)
		err = mr_fail(reterr_reason, -EIO,
			      "%s: the program with the new filter cannot "
			      "replace the old one: %s",
			      port->base.info->name, mr_strerror(errno));
	return err;
}

int mri_xdp_prog_steer(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	/* Do not replace sockets of others. */
	const uint64_t flags = port->prog.is_foreign ? BPF_NOEXIST : BPF_ANY;

	for (uint32_t i = port->prog.n_steered; i < port->lease.n_queues; i++) {
		const uint32_t queue = port->lease.first_queue + i;

		if (bpf_map_update_elem(port->prog.map_fd, &queue,
					&port->lease.sockets[i], flags) == 0)
			port->prog.n_steered++;
		else if (errno == EEXIST)
			return mr_fail(reterr_reason, -EBUSY,
				       "%s: queue %u: the map already has a "
				       "socket for it",
				       port->base.info->name, queue);
		else
			return mr_fail(reterr_reason, -EIO,
				       "%s: queue %u: cannot enter its socket "
				       "into the XDP program's map: %s",
				       port->base.info->name, queue,
				       mr_strerror(errno));
	}
	return 0;
}

void mri_xdp_prog_unsteer(struct xdp_port *port)
{
	for (uint32_t i = 0; i < port->prog.n_steered; i++) {
		const uint32_t queue = port->lease.first_queue + i;

		(void)bpf_map_delete_elem(port->prog.map_fd, &queue);
	}
}

void mri_xdp_prog_close(struct xdp_port *port)
{
	struct xdp_program *program = port->prog.dispatched;

	if (program != NULL) {
		mri_xdp_quiet_begin();
		(void)xdp_program__detach(
			program, (int)port->dev.ifindex,
			port->lease.is_native ? XDP_MODE_NATIVE : XDP_MODE_SKB,
			0);
		xdp_program__close(program);
		mri_xdp_quiet_end();
	}
	port->prog.dispatched = NULL;
	mr_fd_close(port->lease.fds[XDP_LEASE_LINK]);
	mr_fd_close(port->prog.copy_fd);
	mr_fd_close(port->prog.taken_fd);
	port->lease.fds[XDP_LEASE_LINK] = -1;
	port->prog.copy_fd = port->prog.taken_fd = -1;
	if (port->prog.skeleton != NULL)
		xdp_prog_bpf__destroy(port->prog.skeleton);
	port->prog.skeleton = NULL;
	mri_xdp_user_close(port);
	if (port->prog.is_foreign)
		mr_fd_close(port->prog.map_fd);
	port->prog.is_foreign = false;
}
