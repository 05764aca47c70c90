/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of the broker: a port for a process without capabilities.
 *
 * One connection per port, open as long as the port. What the client received
 * (sockets, the program's link, counters) works without the broker; if the
 * broker ends, only settings can no longer be changed.
 */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "device/events.h"
#include "device/stats.h"
#include "lease/client.h"
#include "lease/wire.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

enum { ANSWER_WAIT_S = 30, CLOSE_WAIT_MS = 3000 };

struct received {
	struct xdp_wire_answer answer;
	uint32_t n_fds, n_taken;
	int fds[XDP_BROKER_MAX_FDS];
};

static const char *path_of(const struct xdp_options *o)
{
	return o->broker != NULL ? o->broker : XDP_BROKER_PATH;
}

/* A connection, or -errno. */
static int dial(const char *path)
{
	const struct timeval wait = { .tv_sec = ANSWER_WAIT_S };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path)) {
		close(fd);
		return -ENAMETOOLONG;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) == 0 &&
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return mr_fd_guard(fd);
	err = -errno;
	close(fd);
	return err;
}

static int refuse_path(const char *interface, const char *path, int err,
		       struct mr_reason *reason)
{
	return mr_fail(reason, err == -EPERM ? -EACCES : err,
		       "xdp:%s: no broker at %s: %s; start mr-brokerd, or set "
		       "its socket with broker=",
		       interface, path, mr_strerror(-err));
}

/* The first capability that this process lacks for opening a port itself, or
 * NULL. */
static const char *lacks(void)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} needed[] = { { 12, "CAP_NET_ADMIN" },
		       { 13, "CAP_NET_RAW" },
		       { 39, "CAP_BPF" } };
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, words) < 0 ||
	    (words[0].effective >> 21 & 1)) /* CAP_SYS_ADMIN implies BPF */
		return NULL;
	for (uint32_t i = 0; i < 3; i++)
		if (!(words[needed[i].bit / 32].effective >>
			      needed[i].bit % 32 &
		      1))
			return needed[i].name;
	return NULL;
}

int mri_xdp_choose_role(const char *interface, const struct xdp_options *o,
			enum xdp_role *ret_role, struct mr_reason *reason)
{
	const char *const path = path_of(o);
	int fd;

	*ret_role = XDP_ALONE;
	if (o->via == XDP_VIA_BROKER &&
	    (o->prog != NULL || o->map != NULL))
		return mr_fail(reason, -EINVAL,
			       "xdp:%s: the broker loads its own program: omit "
			       "'prog' and 'map', or 'via'",
			       interface);
	if (o->via == XDP_VIA_SELF || o->prog != NULL || o->map != NULL ||
	    (o->via == XDP_VIA_AUTO && lacks() == NULL))
		return 0;
	fd = dial(path);
	if (fd < 0 && o->via == XDP_VIA_BROKER)
		return refuse_path(interface, path, fd, reason);
	if (fd >= 0)
		*ret_role = XDP_CLIENT;
	mr_fd_close(fd);
	return 0;
}

static void close_rest(struct received *r)
{
	while (r->n_taken < r->n_fds)
		close(r->fds[r->n_taken++]);
}

/* The caller owns the fds in it. */
static int receive(int fd, struct received *r)
{
	const ssize_t n = mri_xdp_receive(fd, &r->answer, sizeof(r->answer),
					  r->fds, &r->n_fds);

	r->n_taken = 0;
	if (n < 0)
		return n == -EAGAIN ? -ETIMEDOUT : (int)n;
	if (n == (ssize_t)sizeof(r->answer) &&
	    r->answer.head.version == XDP_WIRE_VERSION) {
		r->answer.dev.query_fd_plus_1 = 0;
		return 0;
	}
	close_rest(r);
	/* 1: an answer has room here, so it was the fds that had none. */
	return n == 0 ? -ECONNRESET : n == 1 ? -EMFILE : -EPROTO;
}

/* Receive an answer; errors and reasons are the broker's. */
static int hear(int fd, const char *port, struct received *r,
		struct mr_reason *reason)
{
	const int err = receive(fd, r);

	if (err == -EMFILE)
		return mr_fail(reason, err,
			       "%s: too many open files for what the broker "
			       "sends; raise the limit (ulimit -n)",
			       port);
	if (err < 0)
		return mr_fail(reason, err == -EPROTO ? err : -EIO,
			       "%s: the broker does not answer: %s%s", port,
			       mr_strerror(-err),
			       err == -EPROTO ? " (another release?)" : "");
	if (r->answer.err == 0)
		return 0;
	close_rest(r);
	r->answer.reason.text[sizeof(r->answer.reason.text) - 1] = '\0';
	return mr_fail(reason, r->answer.err < 0 ? r->answer.err : -EPROTO,
		       "%.380s", r->answer.reason.text);
}

/* Send a request and get the answer. */
static int ask(int fd, const char *port, const void *request, size_t n_bytes,
	       const int *fds, uint32_t n_fds, struct received *r,
	       struct mr_reason *reason)
{
	const int err = mri_xdp_send(fd, request, n_bytes, fds, n_fds);

	if (err < 0)
		return mr_fail(reason, -EIO,
			       "%s: the broker does not answer: %s", port,
			       mr_strerror(-err));
	return hear(fd, port, r, reason);
}

/* Connect to the broker: an fd, or -errno, also if it refuses this user. */
static int call(const char *interface, const struct xdp_options *o,
		struct mr_reason *reason)
{
	const int fd = dial(path_of(o));
	struct received r;
	char port[64];
	int err;

	if (fd < 0)
		return refuse_path(interface, path_of(o), fd, reason);
	snprintf(port, sizeof(port), "xdp:%.32s", interface);
	err = hear(fd, port, &r, reason);
	if (err == 0) {
		close_rest(&r);
		return fd;
	}
	mr_fd_close(fd);
	return err;
}

static struct xdp_wire_head head_of(enum xdp_wire_type type, size_t n_bytes)
{
	return (struct xdp_wire_head){ (uint32_t)n_bytes, XDP_WIRE_VERSION,
				       (uint16_t)type };
}

int mri_xdp_broker_find(const char *interface, const struct xdp_options *o,
			struct xdp_netdev *ret_dev, struct mr_reason *reason)
{
	struct xdp_wire_find f = { .head = head_of(XDP_WIRE_FIND, sizeof(f)) };
	char port[64];
	struct received r;
	int err, fd;

	if (interface[0] == '\0' || strlen(interface) >= IFNAMSIZ)
		return mr_fail(reason, -ENODEV,
			       "xdp:%.64s: no such network interface",
			       interface);
	fd = call(interface, o, reason);
	if (fd < 0)
		return fd;
	snprintf(f.interface, sizeof(f.interface), "%s", interface);
	snprintf(port, sizeof(port), "xdp:%s", interface);
	err = ask(fd, port, &f, sizeof(f), NULL, 0, &r, reason);
	mr_fd_close(fd);
	if (err < 0)
		return err;
	close_rest(&r);
	*ret_dev = r.answer.dev;
	return 0;
}

/* The request, from mr_alloc(); NULL: no memory. */
static struct xdp_wire_open *make_request(const struct xdp_port *port,
					  size_t *ret_n_bytes)
{
	const struct xdp_cbpf *filter =
		port->filter != NULL ? &port->filter->cbpf : NULL;
	const uint32_t n_insns = filter != NULL ? filter->n : 0;
	const size_t n_bytes = sizeof(struct xdp_wire_open) +
			       n_insns * sizeof(struct sock_filter);
	struct xdp_wire_open *request = mr_alloc(port->base.ctx, 0, n_bytes);

	if (request == NULL)
		return NULL;
	*request = (struct xdp_wire_open){
		.head = head_of(XDP_WIRE_OPEN, n_bytes),
		.chunk_bytes = port->base.chunk_bytes,
		.headroom_bytes = port->base.headroom_bytes,
		.tailroom_bytes = port->base.tailroom_bytes,
		.n_insns = n_insns,
	};
	memcpy(request->options, &port->options, sizeof(request->options));
	memcpy(request->interface, port->dev.name, IFNAMSIZ);
	(void)mri_xdp_netns_cookie(&request->netns);
	if (n_insns > 0)
		memcpy(request->insns, filter->insns,
		       n_insns * sizeof(filter->insns[0]));
	*ret_n_bytes = n_bytes;
	return request;
}

/* The memfds of the memory that the port registers. */
static void add_segments(const struct xdp_port *port,
			 struct xdp_wire_open *request,
			 int fds[XDP_WIRE_SEGMENTS])
{
	const struct mr_region *region = port->base.region;
	struct mr_segment_info info;
	uint64_t end = 0;

	while (request->n_segments < XDP_WIRE_SEGMENTS &&
	       end < port->n_registered_bytes &&
	       mr_region_segment(region, request->n_segments, &info) == 0) {
		const uint32_t i = request->n_segments++;

		fds[i] = mr_region_segment_fd(region, i);
		request->segment_bytes[i] = info.n_bytes;
		end += info.n_bytes;
	}
}

/* The next fd if the answer has one of that kind, else -1. */
static int take_fd(struct received *r, uint32_t kind)
{
	const bool has =
		(kind == 0 || r->answer.fds & kind) && r->n_taken < r->n_fds;

	return has ? mr_fd_guard(r->fds[r->n_taken++]) : -1;
}

static int use_passed(struct xdp_port *port, int fd)
{
	struct xdp_filter *filter = port->filter;
	const size_t n_bytes = port->n_queues * XDP_FILTER_COUNT_BYTES;
	void *memory;

	if (filter == NULL) {
		/* A filter of the broker's rule. */
		filter = mr_alloc(port->base.ctx, 0, sizeof(*filter));
		if (filter == NULL) {
			mr_fd_close(fd);
			return -ENOMEM;
		}
		port->filter = filter;
	}
	filter->count.map_fd = fd;
	memory = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	(void)madvise(memory, n_bytes, MADV_DONTFORK);
	filter->passed = memory;
	return 0;
}

/* Ask the broker to bind the sockets, after their rings were mapped and
 * filled. */
static int ask_bind(const struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_wire_head head = head_of(XDP_WIRE_BIND, sizeof(head));
	struct received r;
	const int err = ask(port->broker_fd, port->base.info->name, &head,
			    sizeof(head), NULL, 0, &r, reason);

	if (err == 0)
		close_rest(&r);
	return err;
}

/* The port owns the received fds, and closes them even if this fails. */
static int use_answer(struct xdp_port *port, struct received *r,
		      struct mr_reason *reason)
{
	const struct xdp_wire_answer *a = &r->answer;
	struct mr_port_info *info = port->base.info;
	const char *const missing = lacks();
	const struct xdp_bind_mode bind_mode = { a->is_zc, a->max_segs };
	bool is_final;
	int fd, err = 0;

	for (uint32_t i = 0; i < port->n_queues; i++)
		port->fds[i] = take_fd(r, 0);
	port->prog.link_fd = take_fd(r, XDP_WIRE_LINK);
	fd = take_fd(r, XDP_WIRE_PASSED);
	if (fd >= 0)
		err = use_passed(port, fd);
	port->record.fd = take_fd(r, XDP_WIRE_RECORD);
	port->events_fd = take_fd(r, XDP_WIRE_EVENTS);
	port->dev = a->dev;
	port->dev.name[IFNAMSIZ - 1] = port->dev.driver[31] = '\0';
	port->dev.query_fd_plus_1 = take_fd(r, XDP_WIRE_QUERY) + 1;
	port->unserved_fd = take_fd(r, XDP_WIRE_UNSERVED);
	if (err == 0 && port->unserved_fd >= 0)
		err = mri_xdp_unserved_open(port, reason);
	if (err < 0 || port->prog.link_fd < 0 ||
	    a->n_sockets != port->n_queues || a->max_segs < 1 ||
	    a->max_segs > MR_MAX_SEGS)
		return mr_fail(reason, -EPROTO,
			       "%s: the broker's answer lacks fds", info->name);
	port->prog.is_native = a->is_native;
	port->prog.has_frags = a->has_frags;
	port->prog.meta_magic = a->meta_magic;
	memcpy(port->prog.kfuncs, a->kfuncs, sizeof(a->kfuncs));
	port->tx_metadata_bytes = a->tx_metadata_bytes;
	port->is_mute = a->is_mute;
	info->mtu_bytes = a->mtu_bytes;
	snprintf(info->mode, sizeof(info->mode), a->is_zc ? "zc" : "copy");
	snprintf(info->why, sizeof(info->why), "%.150s%sby the broker at %.60s",
		 a->why, a->why[0] != '\0' ? "; " : "",
		 path_of(&port->options));
	if (port->options.via == XDP_VIA_AUTO && missing != NULL)
		mr_log(port->base.ctx, MR_LOG_INFO,
		       "%s: opened by the broker at %s, since this process "
		       "lacks %s",
		       info->name, path_of(&port->options), missing);
	if (port->is_mute)
		info->n_txqs = 0;
	for (uint32_t i = 0; i < port->n_queues; i++)
		port->rxqs[i].is_busy = port->txqs[i].is_busy = a->is_busy;
	err = mri_xdp_events_watch(port, reason);
	if (err == 0)
		err = mri_xdp_sockets_open(port, bind_mode, &is_final, reason);
	return err == 0 && a->is_unbound ? ask_bind(port, reason) : err;
}

int mri_xdp_broker_open(struct xdp_port *port, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	struct xdp_wire_open *request;
	int fds[XDP_WIRE_SEGMENTS];
	struct received r;
	size_t n_bytes;
	int err;

	port->broker_fd = call(port->dev.name, &port->options, reason);
	if (port->broker_fd < 0)
		return port->broker_fd;
	request = make_request(port, &n_bytes);
	if (request == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory", name);
	add_segments(port, request, fds);
	err = ask(port->broker_fd, name, request, n_bytes, fds,
		  request->n_segments, &r, reason);
	mr_free(port->base.ctx, request);
	if (err < 0)
		return err;
	err = use_answer(port, &r, reason);
	close_rest(&r);
	return err;
}

/* Ask for a change of the port, which may begin its record. */
static int change(struct xdp_port *port, const void *request, size_t n_bytes,
		  const int *fds, uint32_t n_fds, uint32_t *ret_id,
		  struct mr_reason *reason)
{
	struct received r;
	int fd;
	const int err = ask(port->broker_fd, port->base.info->name, request,
			    n_bytes, fds, n_fds, &r, reason);

	if (err < 0)
		return err;
	if (ret_id != NULL)
		*ret_id = r.answer.id;
	fd = take_fd(&r, XDP_WIRE_RECORD);
	if (fd >= 0 && port->record.fd < 0)
		port->record.fd = fd;
	else
		mr_fd_close(fd);
	close_rest(&r);
	return 0;
}

int mri_xdp_broker_set(struct xdp_port *port, enum xdp_setting setting,
		       uint64_t value, struct mr_reason *reason)
{
	const struct xdp_wire_set s = { .head = head_of(XDP_WIRE_SET,
							sizeof(s)),
					.setting = setting,
					.value = value };

	return change(port, &s, sizeof(s), NULL, 0, NULL, reason);
}

int mri_xdp_broker_rss(struct xdp_port *port, const struct mr_rss_config *c,
		       struct mr_reason *reason)
{
	const size_t n_bytes = sizeof(struct xdp_wire_rss) +
			       c->n_entries * sizeof(c->table[0]);
	struct xdp_wire_rss *request;
	int err;

	if (c->n_entries > XDP_MAX_TABLE)
		return mr_fail(reason, -EINVAL,
			       "%s: an RSS table of %u entries: at most %d",
			       port->base.info->name, c->n_entries,
			       XDP_MAX_TABLE);
	request = mr_alloc(port->base.ctx, 0, n_bytes);
	if (request == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory",
			       port->base.info->name);
	*request = (struct xdp_wire_rss){
		.head = head_of(XDP_WIRE_RSS, n_bytes),
		.keep = c->keep,
		.fields = c->fields,
		.n_key_bytes = c->n_key_bytes,
		.n_entries = c->n_entries,
	};
	if (c->n_key_bytes > 0)
		memcpy(request->key, c->key, c->n_key_bytes);
	if (c->n_entries > 0)
		memcpy(request->table, c->table,
		       c->n_entries * sizeof(c->table[0]));
	err = change(port, request, n_bytes, NULL, 0, NULL, reason);
	mr_free(port->base.ctx, request);
	return err;
}

int mri_xdp_broker_steer(struct xdp_port *port,
			 const struct mr_steer_rule *rule, uint32_t *ret_id,
			 struct mr_reason *reason)
{
	struct xdp_wire_steer s = { .head = head_of(XDP_WIRE_STEER, sizeof(s)),
				    .rule = *rule };

	s.rule.size = sizeof(s.rule);
	return change(port, &s, sizeof(s), NULL, 0, ret_id, reason);
}

int mri_xdp_broker_unsteer(struct xdp_port *port, uint32_t id,
			   struct mr_reason *reason)
{
	const struct xdp_wire_unsteer u = {
		.head = head_of(XDP_WIRE_UNSTEER, sizeof(u)), .id = id
	};

	return change(port, &u, sizeof(u), NULL, 0, NULL, reason);
}

int mri_xdp_broker_filter(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_cbpf *cbpf = &port->filter->cbpf;
	const size_t n_bytes = sizeof(struct xdp_wire_filter) +
			       cbpf->n * sizeof(cbpf->insns[0]);
	struct xdp_wire_filter *request = mr_alloc(port->base.ctx, 0, n_bytes);
	int fds[XDP_BROKER_MAX_FDS] = { port->prog.link_fd,
					port->filter->count.map_fd };
	int err;

	if (request == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory",
			       port->base.info->name);
	*request = (struct xdp_wire_filter){
		.head = head_of(XDP_WIRE_FILTER, n_bytes), .n_insns = cbpf->n
	};
	memcpy(request->insns, cbpf->insns, cbpf->n * sizeof(cbpf->insns[0]));
	memcpy(fds + XDP_WIRE_FILTER_FDS, port->fds,
	       port->n_queues * sizeof(port->fds[0]));
	err = change(port, request, n_bytes, fds,
		     XDP_WIRE_FILTER_FDS + port->n_queues, NULL, reason);
	mr_free(port->base.ctx, request);
	return err;
}

int mri_xdp_broker_refuse(const struct xdp_port *port, const char *what,
			  struct mr_reason *reason)
{
	return mr_fail(reason, -ENOTSUP,
		       "%s: not supported through the broker: %s",
		       port->base.info->name, what);
}

void mri_xdp_broker_close(struct xdp_port *port)
{
	struct pollfd end = { .fd = port->broker_fd, .events = POLLIN };

	if (port->broker_fd < 0)
		return;
	/* The broker needs this lock. */
	mr_fd_close(port->record.fd);
	port->record.fd = -1;
	if (shutdown(port->broker_fd, SHUT_WR) == 0 &&
	    poll(&end, 1, CLOSE_WAIT_MS) == 0)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: the broker has not restored the interface within "
		       "%d s",
		       port->base.info->name, CLOSE_WAIT_MS / 1000);
	mr_fd_close(port->broker_fd);
	port->broker_fd = -1;
}
