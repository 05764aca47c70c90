/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of the broker: a port for a process without capabilities.
 *
 * One connection per port, open as long as the port. What the client received
 * (sockets, the program's link, counters) works without the broker; if the
 * broker ends, only settings can no longer be changed.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "device/events.h"
#include "device/stats.h"
#include "lease/wire.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

enum { ANSWER_WAIT_S = 30, CLOSE_WAIT_MS = 3000 };

static const char *path_of(const struct xdp_options *o)
{
	return o->broker != NULL ? o->broker : XDP_BROKER_PATH;
}

/* A connection, or -errno. */
static int dial_broker(const char *path)
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

enum {
	CAPS_OF_A_PORT = XDP_CAP_NET_ADMIN | XDP_CAP_NET_RAW | XDP_CAP_BPF,
};

int mri_xdp_choose_lessor(const char *interface, const struct xdp_options *o,
			  const struct xdp_lessor **ret_lessor,
			  struct mr_reason *reason)
{
	const char *const path = path_of(o);
	int fd;

	*ret_lessor = &mri_xdp_self;
	if (o->via == XDP_VIA_BROKER && (o->prog != NULL || o->map != NULL))
		return mr_fail(reason, -EINVAL,
			       "xdp:%s: the broker loads its own program: omit "
			       "'prog' and 'map', or 'via'",
			       interface);
	if (o->via == XDP_VIA_SELF || o->prog != NULL || o->map != NULL ||
	    (o->via == XDP_VIA_AUTO &&
	     mri_xdp_missing_capability(CAPS_OF_A_PORT) == NULL))
		return 0;
	fd = dial_broker(path);
	if (fd < 0 && o->via == XDP_VIA_BROKER)
		return refuse_path(interface, path, fd, reason);
	if (fd >= 0)
		*ret_lessor = &mri_xdp_broker;
	mr_fd_close(fd);
	return 0;
}

/* The caller owns the fds in the answer's lease. */
static int receive_lease(int fd, struct xdp_wire_answer *a)
{
	int fds[XDP_BROKER_MAX_FDS];
	uint32_t n_fds;
	const ssize_t n = mri_xdp_receive(fd, a, sizeof(*a), fds, &n_fds);

	if (n < 0)
		return n == -EAGAIN ? -ETIMEDOUT : (int)n;
	if (n == (ssize_t)sizeof(*a) && a->head.version == XDP_WIRE_VERSION &&
	    mri_xdp_lease_unpack(&a->lease, fds, n_fds) == 0) {
		a->dev.query_fd_plus_1 = 0;
		return 0;
	}
	for (uint32_t i = 0; i < n_fds; i++)
		close(fds[i]);
	/* 1: an answer has room here, so it was the fds that had none. */
	return n == 0 ? -ECONNRESET : n == 1 ? -EMFILE : -EPROTO;
}

/* Receive an answer; errors and reasons are the broker's. */
static int receive_answer(int fd, const char *port, struct xdp_wire_answer *a,
			  struct mr_reason *reason)
{
	const int err = receive_lease(fd, a);

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
	if (a->err == 0)
		return 0;
	mri_xdp_lease_close(&a->lease);
	a->reason.text[sizeof(a->reason.text) - 1] = '\0';
	return mr_fail(reason, a->err < 0 ? a->err : -EPROTO, "%.380s",
		       a->reason.text);
}

/* Send a request and get the answer. */
static int ask_broker(int fd, const char *port, const void *request,
		      size_t n_bytes, const int *fds, uint32_t n_fds,
		      struct xdp_wire_answer *a, struct mr_reason *reason)
{
	const int err = mri_xdp_send(fd, request, n_bytes, fds, n_fds);

	if (err < 0)
		return mr_fail(reason, -EIO,
			       "%s: the broker does not answer: %s", port,
			       mr_strerror(-err));
	return receive_answer(fd, port, a, reason);
}

/* Connect to the broker: an fd, or -errno, also if it refuses this user. */
static int call_broker(const char *interface, const struct xdp_options *o,
		       struct mr_reason *reason)
{
	const int fd = dial_broker(path_of(o));
	struct xdp_wire_answer greeting;
	char port[64];
	int err;

	if (fd < 0)
		return refuse_path(interface, path_of(o), fd, reason);
	snprintf(port, sizeof(port), "xdp:%.32s", interface);
	err = receive_answer(fd, port, &greeting, reason);
	if (err == 0) {
		mri_xdp_lease_close(&greeting.lease);
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

static int find_there(const char *interface, const struct xdp_options *o,
		      struct xdp_netdev *ret_dev, struct mr_reason *reason)
{
	struct xdp_wire_find f = { .head = head_of(XDP_WIRE_FIND, sizeof(f)) };
	char port[64];
	struct xdp_wire_answer a;
	int err, fd;

	if (interface[0] == '\0' || strlen(interface) >= IFNAMSIZ)
		return mr_fail(reason, -ENODEV,
			       "xdp:%.64s: no such network interface",
			       interface);
	fd = call_broker(interface, o, reason);
	if (fd < 0)
		return fd;
	snprintf(f.interface, sizeof(f.interface), "%s", interface);
	snprintf(port, sizeof(port), "xdp:%s", interface);
	err = ask_broker(fd, port, &f, sizeof(f), NULL, 0, &a, reason);
	mr_fd_close(fd);
	if (err < 0)
		return err;
	mri_xdp_lease_close(&a.lease);
	*ret_dev = a.dev;
	/* No queues can be added. */
	ret_dev->n_most_rx_channels = ret_dev->n_rx_channels;
	return 0;
}

/* The request, from mr_alloc(); NULL: no memory. */
static struct xdp_wire_open *make_request(const struct xdp_port *port,
					  size_t *ret_n_bytes)
{
	const struct xdp_filter *filter = &port->filter;
	const struct xdp_lease *lease = &port->lease;
	const size_t n_bytes = sizeof(struct xdp_wire_open) +
			       filter->n * sizeof(filter->insns[0]);
	struct xdp_wire_open *request = mr_alloc(port->base.ctx, 0, n_bytes);

	if (request == NULL)
		return NULL;
	*request = (struct xdp_wire_open){
		.head = head_of(XDP_WIRE_OPEN, n_bytes),
		.chunk_bytes = lease->chunk_bytes,
		.headroom_bytes = port->base.headroom_bytes,
		.tailroom_bytes = port->base.tailroom_bytes,
		.n_segments = lease->n_segments,
		.n_insns = filter->n,
	};
	memcpy(request->options, &port->options, sizeof(request->options));
	memcpy(request->interface, port->dev.name, IFNAMSIZ);
	memcpy(request->segment_bytes, lease->segment_bytes,
	       sizeof(request->segment_bytes));
	(void)mri_xdp_netns_cookie(&request->netns);
	if (filter->n > 0)
		memcpy(request->insns, filter->insns,
		       filter->n * sizeof(filter->insns[0]));
	*ret_n_bytes = n_bytes;
	return request;
}

/* Ask the broker to bind the sockets, whose rings are mapped and filled. */
static int ask_bind(const struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_wire_head head = head_of(XDP_WIRE_BIND, sizeof(head));
	struct xdp_wire_answer a;
	const int err = ask_broker(port->lease.fds[XDP_LEASE_BROKER],
				   port->base.info->name, &head, sizeof(head),
				   NULL, 0, &a, reason);

	if (err == 0)
		mri_xdp_lease_close(&a.lease);
	return err;
}

/* Whether a lease is one that this port can use. */
static bool is_for_port(const struct xdp_lease *lease,
			const struct xdp_port *port)
{
	const struct xdp_lease *wanted = &port->lease;

	return lease->n_queues == wanted->n_queues &&
	       lease->first_queue == wanted->first_queue &&
	       lease->n_entries == wanted->n_entries &&
	       lease->chunk_bytes == wanted->chunk_bytes &&
	       lease->n_bytes == wanted->n_bytes && lease->max_segs >= 1 &&
	       lease->max_segs <= MR_MAX_SEGS &&
	       lease->fds[XDP_LEASE_LINK] >= 0 &&
	       lease->fds[XDP_LEASE_POSTED] < 0 &&
	       lease->fds[XDP_LEASE_BROKER] < 0;
}

/* Make the received lease the port's. */
static int take_lease(struct xdp_port *port, struct xdp_wire_answer *a,
		      struct mr_reason *reason)
{
	struct xdp_lease *lease = &a->lease;

	if (!is_for_port(lease, port)) {
		mri_xdp_lease_close(lease);
		return mr_fail(reason, -EPROTO,
			       "%s: the broker's lease is for another port",
			       port->base.info->name);
	}
	lease->fds[XDP_LEASE_POSTED] = port->lease.fds[XDP_LEASE_POSTED];
	lease->fds[XDP_LEASE_BROKER] = port->lease.fds[XDP_LEASE_BROKER];
	lease->n_queues_max = port->lease.n_queues_max;
	port->lease = *lease;
	port->dev = a->dev;
	port->dev.name[IFNAMSIZ - 1] = port->dev.driver[31] = '\0';
	port->dev.query_fd_plus_1 = lease->fds[XDP_LEASE_QUERY] + 1;
	for (uint32_t i = 0; i < lease->n_queues; i++)
		port->rxqs[i].is_busy = port->txqs[i].is_busy = lease->is_busy;
	return 0;
}

static void tell_broker(const struct xdp_port *port,
			const struct xdp_wire_answer *a)
{
	struct mr_port_info *info = port->base.info;
	const char *const path = path_of(&port->options);
	const char *const missing = mri_xdp_missing_capability(CAPS_OF_A_PORT);

	info->mtu_bytes = a->mtu_bytes;
	if (port->lease.is_mute)
		info->n_txqs = 0;
	snprintf(info->mode, sizeof(info->mode),
		 port->lease.n_zc_queues > 0 ? "zc" : "copy");
	snprintf(info->why, sizeof(info->why), "%.150s%sby the broker at %.60s",
		 a->why, a->why[0] != '\0' ? "; " : "", path);
	if (port->options.via == XDP_VIA_AUTO && missing != NULL)
		mr_log(port->base.ctx, MR_LOG_INFO,
		       "%s: opened by the broker at %s, since this process "
		       "lacks %s",
		       info->name, path, missing);
}

static int ask_lease(struct xdp_port *port, struct xdp_wire_answer *ret_answer,
		     struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	int *fd = &port->lease.fds[XDP_LEASE_BROKER];
	struct xdp_wire_open *request;
	int fds[XDP_MAX_SEGMENTS];
	size_t n_bytes;
	int err;

	*fd = call_broker(port->dev.name, &port->options, reason);
	if (*fd < 0)
		return *fd;
	request = make_request(port, &n_bytes);
	if (request == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory", name);
	for (uint32_t i = 0; i < request->n_segments; i++) {
		struct mr_segment_info segment = { .fd = -1 };

		(void)mr_region_segment(port->base.region, i, &segment);
		fds[i] = segment.fd;
	}
	err = ask_broker(*fd, name, request, n_bytes, fds, request->n_segments,
			 ret_answer, reason);
	mr_free(port->base.ctx, request);
	return err;
}

static int open_there(struct xdp_port *port, struct mr_reason *reason)
{
	struct xdp_wire_answer a;
	int err;

	if ((err = ask_lease(port, &a, reason)) < 0 ||
	    (err = take_lease(port, &a, reason)) < 0)
		return err;
	tell_broker(port, &a);
	if ((err = mri_xdp_events_watch(port, reason)) < 0 ||
	    (err = mri_xdp_sockets_use(port, reason)) < 0)
		return err;
	if (!port->lease.is_unbound)
		return 0;
	port->lease.is_unbound = false;
	return ask_bind(port, reason);
}

/* Ask for a change of the port, which may begin its record. */
static int ask_change(struct xdp_port *port, const void *request,
		      size_t n_bytes, const int *fds, uint32_t n_fds,
		      uint32_t *ret_id, struct mr_reason *reason)
{
	int *record_fd = &port->lease.fds[XDP_LEASE_RECORD];
	struct xdp_wire_answer a;
	const int err = ask_broker(port->lease.fds[XDP_LEASE_BROKER],
				   port->base.info->name, request, n_bytes, fds,
				   n_fds, &a, reason);

	if (err < 0)
		return err;
	if (ret_id != NULL)
		*ret_id = a.id;
	if (*record_fd < 0) {
		*record_fd = a.lease.fds[XDP_LEASE_RECORD];
		a.lease.fds[XDP_LEASE_RECORD] = -1;
	}
	mri_xdp_lease_close(&a.lease);
	return 0;
}

static int set_there(struct xdp_port *port, enum xdp_setting setting,
		     uint64_t value, struct mr_reason *reason)
{
	const struct xdp_wire_set s = { .head = head_of(XDP_WIRE_SET,
							sizeof(s)),
					.setting = setting,
					.value = value };

	return ask_change(port, &s, sizeof(s), NULL, 0, NULL, reason);
}

int mri_xdp_set_rss_there(struct mr_port *base, const struct mr_rss_config *c,
			  struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
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
	err = ask_change(port, request, n_bytes, NULL, 0, NULL, reason);
	mr_free(port->base.ctx, request);
	return err;
}

int mri_xdp_steer_there(struct mr_port *base, const struct mr_steer_rule *rule,
			uint32_t *ret_id, struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	struct xdp_wire_steer s = { .head = head_of(XDP_WIRE_STEER, sizeof(s)),
				    .rule = *rule };

	s.rule.size = sizeof(s.rule);
	return ask_change(port, &s, sizeof(s), NULL, 0, ret_id, reason);
}

int mri_xdp_unsteer_there(struct mr_port *base, uint32_t id,
			  struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const struct xdp_wire_unsteer u = {
		.head = head_of(XDP_WIRE_UNSTEER, sizeof(u)), .id = id
	};

	return ask_change(port, &u, sizeof(u), NULL, 0, NULL, reason);
}

static int set_filter_there(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_filter *filter = &port->filter;
	const size_t n_bytes = sizeof(struct xdp_wire_filter) +
			       filter->n * sizeof(filter->insns[0]);
	struct xdp_wire_filter *request = mr_alloc(port->base.ctx, 0, n_bytes);
	int fds[XDP_BROKER_MAX_FDS] = { port->lease.fds[XDP_LEASE_LINK],
					port->lease.fds[XDP_LEASE_PASSED] };
	int err;

	if (request == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory",
			       port->base.info->name);
	*request = (struct xdp_wire_filter){
		.head = head_of(XDP_WIRE_FILTER, n_bytes), .n_insns = filter->n
	};
	memcpy(request->insns, filter->insns,
	       filter->n * sizeof(filter->insns[0]));
	memcpy(fds + XDP_WIRE_FILTER_FDS, port->lease.sockets,
	       port->lease.n_queues * sizeof(port->lease.sockets[0]));
	err = ask_change(port, request, n_bytes, fds,
			 XDP_WIRE_FILTER_FDS + port->lease.n_queues, NULL,
			 reason);
	mr_free(port->base.ctx, request);
	return err;
}

static int refuse_there(const struct mr_port *base, const char *what,
			struct mr_reason *reason)
{
	return mr_fail(reason, -ENOTSUP,
		       "%s: not supported through the broker: %s",
		       base->info->name, what);
}

int mri_xdp_set_mac_filter_there(struct mr_port *base, const uint8_t (*macs)[6],
				 uint32_t n, struct mr_reason *reason)
{
	(void)macs;
	(void)n;
	return refuse_there(base, "MAC filters (use promiscuous mode)", reason);
}

int mri_xdp_open_kernel_there(struct mr_port *base, struct mr_reason *reason)
{
	return refuse_there(base, "handing frames to the kernel", reason);
}

static int rules_caps_there(const struct xdp_port *port,
			    struct mr_offload_caps *caps,
			    struct mr_reason *reason)
{
	(void)caps;
	return refuse_there(&port->base, "rules", reason);
}

/* Have the broker restore the interface, and wait until it has. */
static void hang_up(struct xdp_port *port)
{
	int *fds = port->lease.fds;
	struct pollfd end = { .fd = fds[XDP_LEASE_BROKER], .events = POLLIN };

	if (end.fd < 0)
		return;
	/* The broker needs this lock. */
	mr_fd_close(fds[XDP_LEASE_RECORD]);
	fds[XDP_LEASE_RECORD] = -1;
	if (shutdown(end.fd, SHUT_WR) == 0 && poll(&end, 1, CLOSE_WAIT_MS) == 0)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: the broker has not restored the interface within "
		       "%d s",
		       port->base.info->name, CLOSE_WAIT_MS / 1000);
	mr_fd_close(end.fd);
	fds[XDP_LEASE_BROKER] = -1;
}

/* The sockets go before the broker restores the rest. */
static void close_there(struct xdp_port *port)
{
	mri_xdp_prog_close(port);
	mri_xdp_sockets_close(port);
	hang_up(port);
	mri_xdp_sockets_take_back(port);
}

const struct xdp_lessor mri_xdp_broker = {
	.driver = &mri_xdp_driver_there,
	.find = find_there,
	.open = open_there,
	.close = close_there,
	.set = set_there,
	.set_filter = set_filter_there,
	.rules_caps = rules_caps_there,
};
