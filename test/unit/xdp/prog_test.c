/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/xdp/program/program.c: who is attached already,
 * and what then.
 *
 * Loading, attaching and libxdp are the test's own functions here: this shows
 * what the driver does with each of their results. test/guest has the real
 * ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "device/stats.h"
#include "program/filter.h"
#include "socket/socket.h"
#include "support/test.h"
#include "xdp.h"

/* What the kernel and libxdp answer. */
static int attach_native_errno, attach_generic_errno; /* 0: it works */
static int n_busy_attaches;       /* this many EBUSY before that */
static const char *attached_name; /* the program there, NULL: none */
static int join_errno;
static uint32_t n_attaches, n_joins, n_detaches, n_updates;
static uint32_t last_flags;
static uint32_t kfunc; /* of the device, 0: none */
static int bind_errno;
static int last_prog_fd; /* attached */

enum { UNBOUND_FD = 1000 };

static struct xdp_lessor lessor;

static struct xdp_port *make_port(uint32_t attach)
{
	static struct mr_port_info info = { .name = "xdp:test0" };
	struct xdp_port *port = test_calloc(1, sizeof(*port));

	port->base.info = &info;
	port->lessor = &lessor;
	strcpy(port->dev.name, "test0");
	port->dev.ifindex = 7;
	port->options.attach = attach;
	port->lease.n_queues = 1;
	port->lease.fds[XDP_LEASE_UNSERVED] = -1;
	n_attaches = n_joins = n_detaches = 0;
	return port;
}

libxdp_print_fn_t libxdp_set_print(libxdp_print_fn_t fn)
{
	return fn;
}

/* libbpf: a skeleton that always loads. */
int bpf_object__open_skeleton(struct bpf_object_skeleton *s,
			      const struct bpf_object_open_opts *opts)
{
	static uint8_t rodata[64];

	(void)opts;
	for (int i = 0; i < s->map_cnt; i++)
		if (s->maps[i].mmaped != NULL)
			*s->maps[i].mmaped = rodata;
	return 0;
}

int bpf_object__load(struct bpf_object *object)
{
	(void)object;
	return 0;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	free(s->maps);
	free(s->progs);
	free(s);
}

int bpf_program__set_autoload(struct bpf_program *prog, bool autoload)
{
	(void)prog, (void)autoload;
	return 0;
}

const char *bpf_program__name(const struct bpf_program *prog)
{
	(void)prog;
	return "millrace";
}

int bpf_program__fd(const struct bpf_program *prog)
{
	(void)prog;
	return UNBOUND_FD;
}

int bpf_map__set_max_entries(struct bpf_map *map, __u32 n)
{
	(void)map, (void)n;
	return 0;
}

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return 1001;
}

/* The kernel. */
int bpf_link_create(int prog_fd, int target_fd, enum bpf_attach_type type,
		    const struct bpf_link_create_opts *opts)
{
	const bool is_generic = opts->flags & XDP_FLAGS_SKB_MODE;

	(void)target_fd, (void)type;
	n_attaches++;
	last_prog_fd = prog_fd;
	last_flags = opts->flags;
	errno = is_generic ? attach_generic_errno : attach_native_errno;
	if (is_generic && prog_fd != UNBOUND_FD)
		errno = EINVAL; /* as dev_xdp_attach() */
	if (n_busy_attaches > 0) {
		n_busy_attaches--;
		errno = EBUSY;
	}
	return errno != 0 ? -1 : dup(0);
}

/* The second one in a row fails. */
int bpf_link_update(int link_fd, int new_prog_fd,
		    const struct bpf_link_update_opts *opts)
{
	(void)link_fd, (void)new_prog_fd, (void)opts;
	errno = EIO;
	return n_updates++ == 0 ? 0 : -1;
}

int bpf_link_get_next_id(__u32 id, __u32 *next)
{
	(void)id, (void)next;
	errno = ENOENT;
	return -1;
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	(void)id;
	return dup(0);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *n_bytes)
{
	(void)fd, (void)n_bytes;
	strcpy(((struct bpf_prog_info *)info)->name, attached_name);
	return 0;
}

const char *mri_xdp_sg_cause(const struct xdp_port *port)
{
	(void)port;
	return "sg=on";
}

int mri_xdp_netdev_read(uint32_t ifindex, struct xdp_netdev *dev)
{
	(void)ifindex;
	dev->xdp_prog_id = attached_name != NULL ? 42 : 0;
	return 0;
}

int mri_xdp_unserved_keep(struct xdp_port *port, int map_fd,
			  struct mr_reason *reason)
{
	(void)port, (void)map_fd, (void)reason;
	return 0;
}

void mri_xdp_find_kfuncs(struct xdp_port *port)
{
	port->lease.kfuncs[XDP_KFUNC_HASH] = kfunc;
	port->lease.kfuncs[XDP_KFUNC_TAG] = kfunc;
	port->lease.meta_magic = kfunc;
}

int mri_xdp_filter_load(const struct xdp_port *port,
			const struct bpf_program *prog, bool has_frags,
			struct mr_reason *reason)
{
	(void)prog, (void)has_frags;
	assert_true(xdp_is_bound(port) || port->filter.n > 0);
	if (bind_errno != 0 && xdp_is_bound(port))
		return mr_fail(reason, -bind_errno, "the verifier's words");
	return dup(0);
}

/* libxdp. */
static char multiprog, program;

struct xdp_multiprog *xdp_multiprog__get_from_ifindex(int ifindex)
{
	(void)ifindex;
	return (struct xdp_multiprog *)&multiprog;
}

long libxdp_get_error(const void *pointer)
{
	return (long)pointer < 0 ? (long)pointer : 0;
}

enum xdp_attach_mode xdp_multiprog__attach_mode(const struct xdp_multiprog *mp)
{
	(void)mp;
	return XDP_MODE_SKB;
}

void xdp_multiprog__close(struct xdp_multiprog *mp)
{
	(void)mp;
}

struct xdp_program *xdp_program__create(struct xdp_program_opts *opts)
{
	assert_string_equal(opts->prog_name, "millrace");
	return (struct xdp_program *)&program;
}

int xdp_program__attach(struct xdp_program *p, int ifindex,
			enum xdp_attach_mode mode, unsigned int flags)
{
	(void)p, (void)ifindex, (void)mode, (void)flags;
	n_joins++;
	return -join_errno;
}

int xdp_program__detach(struct xdp_program *p, int ifindex,
			enum xdp_attach_mode mode, unsigned int flags)
{
	(void)p, (void)ifindex, (void)flags;
	assert_int_equal(mode, XDP_MODE_SKB);
	n_detaches++;
	return 0;
}

void xdp_program__close(struct xdp_program *p)
{
	(void)p;
}

struct prog_case {
	const char *name;
	uint32_t attach;
	int native_errno, generic_errno, n_busy;
	const char *attached_name;
	int join_errno;
	uint32_t kfunc;
	int bind_errno;
	bool has_filter;
	const char *why_alone;

	int result;
	bool is_native, is_bound;
	uint32_t n_joins;
	const char *reason; /* a part of it */
};

static const struct prog_case cases[] = {
	{ .name = "a free device: native", .is_native = true },
	{ .name = "no native mode: generic", .native_errno = EOPNOTSUPP },
	{ .name = "attach=native and none: refused",
	  .attach = XDP_ATTACH_NATIVE,
	  .native_errno = EOPNOTSUPP,
	  .result = -ENOTSUP,
	  .reason = "native mode" },
	{ .name = "attach=generic", .attach = XDP_ATTACH_GENERIC },
	{ .name = "a foreign program: refused, with its id",
	  .native_errno = EBUSY,
	  .attached_name = "firewall",
	  .result = -EBUSY,
	  .reason = "id 42" },
	{ .name = "libxdp's dispatcher: joined in its mode",
	  .native_errno = EBUSY,
	  .attached_name = "xdp_dispatcher",
	  .n_joins = 1 },
	{ .name = "a dispatcher that cannot take us in: refused",
	  .native_errno = EBUSY,
	  .attached_name = "xdp_dispatcher",
	  .join_errno = EOPNOTSUPP,
	  .result = -EBUSY,
	  .n_joins = 1,
	  .reason = "rejected our program" },
	{ .name = "a dispatcher, for a client of the broker: refused",
	  .native_errno = EBUSY,
	  .attached_name = "xdp_dispatcher",
	  .why_alone = "the broker does not join",
	  .result = -EBUSY,
	  .reason = "the broker does not join" },
	{ .name = "ours, of a process that is ending: waited for",
	  .n_busy = 5,
	  .attached_name = "millrace",
	  .is_native = true },
	{ .name = "a name that cannot be read, of one that ends: waited for",
	  .n_busy = 5,
	  .attached_name = "",
	  .is_native = true },
	{ .name = "ours, of a process that lives: refused",
	  .native_errno = EBUSY,
	  .attached_name = "millrace_frags",
	  .result = -EBUSY,
	  .reason = "another program that uses Millrace" },
	{ .name = "the peer's MTU: told apart",
	  .native_errno = ERANGE,
	  .result = -ERANGE,
	  .reason = "MTU" },
	{ .name = "veth with too few rx queues",
	  .native_errno = ENOSPC,
	  .result = -ENOTSUP,
	  .reason = "rx queues" },
	{ .name = "metadata: for this device",
	  .kfunc = 9,
	  .is_native = true,
	  .is_bound = true },
	{ .name = "the kernel refuses that: for any device",
	  .kfunc = 9,
	  .bind_errno = EINVAL,
	  .is_native = true,
	  .reason = "the verifier's words" },
	{ .name = "refused for a port with a filter, which needs the tags",
	  .kfunc = 9,
	  .bind_errno = EACCES,
	  .has_filter = true,
	  .result = -EACCES,
	  .reason = "the verifier's words" },
	{ .name = "attach=generic: for any device",
	  .attach = XDP_ATTACH_GENERIC,
	  .kfunc = 9 },
	{ .name = "no native mode after all: for any device, generic",
	  .native_errno = EOPNOTSUPP,
	  .kfunc = 9 },
	{ .name = "libxdp's dispatcher: for any device",
	  .native_errno = EBUSY,
	  .attached_name = "xdp_dispatcher",
	  .n_joins = 1,
	  .kfunc = 9 },
	{ .name = "no capability",
	  .native_errno = EPERM,
	  .result = -EPERM,
	  .reason = "CAP_NET_ADMIN" },
};

static void each_answer_has_its_result(void **state)
{
	const struct prog_case *c = *state;
	struct xdp_port *port = make_port(c->attach);
	struct mr_reason reason = { "" };

	port->filter.n = c->has_filter;
	attach_native_errno = c->native_errno;
	attach_generic_errno = c->generic_errno;
	n_busy_attaches = c->n_busy;
	attached_name = c->attached_name;
	join_errno = c->join_errno;
	kfunc = c->kfunc;
	bind_errno = c->bind_errno;
	lessor.why_alone = c->why_alone;

	assert_int_equal(mri_xdp_prog_open(port, false, &reason), c->result);
	assert_int_equal(n_joins, c->n_joins);
	if (c->result == 0) {
		assert_int_equal(port->lease.is_native, c->is_native);
		assert_int_equal(xdp_is_bound(port), c->is_bound);
		assert_int_equal(port->lease.meta_magic != 0, c->is_bound);
		assert_string_equal(port->prog.unbound_why,
				    c->reason != NULL ? c->reason : "");
		if (c->n_joins == 0)
			assert_int_equal(last_prog_fd != UNBOUND_FD,
					 c->is_bound);
		assert_int_equal(port->prog.dispatched != NULL,
				 c->n_joins == 1);
		mri_xdp_prog_close(port);
		assert_int_equal(n_detaches, c->n_joins);
	} else {
		assert_non_null(strstr(reason.text, c->reason));
		assert_null(port->prog.skeleton);
		assert_int_equal(n_detaches, 0);
	}
	assert_int_equal(port->lease.fds[XDP_LEASE_LINK], -1);
	test_free(port);
}

TEST(a_copy_that_stays_attached_stays_open)
{
	struct xdp_port *port = make_port(XDP_ATTACH_AUTO);
	struct mr_reason reason = { "" };

	kfunc = attach_native_errno = 0;
	attached_name = NULL;
	assert_int_equal(mri_xdp_prog_open(port, false, &reason), 0);
	n_updates = 0;
	bind_errno = 0;
	port->filter.n = 1;
	assert_int_equal(mri_xdp_prog_spread(port, &reason), -EIO);
	assert_int_equal(port->prog.attached_fd, port->prog.fd);
	assert_true(fcntl(port->prog.attached_fd, F_GETFD) >= 0);
	mri_xdp_prog_close(port);
	test_free(port);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		test_register((struct CMUnitTest){
			cases[i].name, each_answer_has_its_result, NULL, NULL,
			(void *)&cases[i] });
	return test_run(NULL, NULL, NULL);
}
