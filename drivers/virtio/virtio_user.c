/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport to a vhost-user back end: another process plays the device.
 *
 *     region's segments --+
 *     rings' memory ------+-- memfds --> the back end maps them
 *     kick, call ------------ eventfds
 *
 * Rings and descriptors hold addresses of the process that opened the port: as
 * in DPDK, the back end finds them in the table of regions that it was sent.
 *
 * There is no control queue and no configuration space. The back end may leave
 * at any time. Then all queues are broken, as if it had written invalid
 * entries; mr_port_poll() connects again once it is back, and starts them
 * afresh.
 *
 * Source: QEMU, docs/interop/vhost-user.rst.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "virtio_user.h"

enum {
	RETRY_TICKS = 100 * 1000 * 1000 / VIRTIO_TICK_NS,
	FAILED_TICKS = 10 * RETRY_TICKS, /* after one that did not answer */
	MAX_ENTRIES = 32768,
};

const uint64_t mri_user_features =
	UINT64_C(1) << VIRTIO_F_CSUM | UINT64_C(1) << VIRTIO_F_GUEST_CSUM |
	UINT64_C(1) << VIRTIO_F_GUEST_TSO4 |
	UINT64_C(1) << VIRTIO_F_GUEST_TSO6 | UINT64_C(1) << VIRTIO_F_HOST_TSO4 |
	UINT64_C(1) << VIRTIO_F_HOST_TSO6 | UINT64_C(1) << VIRTIO_F_MRG_RXBUF |
	UINT64_C(1) << VIRTIO_F_EVENT_IDX | UINT64_C(1) << VIRTIO_F_VERSION_1 |
	UINT64_C(1) << VIRTIO_F_RING_PACKED | UINT64_C(1) << VIRTIO_F_IN_ORDER |
	UINT64_C(1) << VIRTIO_F_GUEST_USO4 |
	UINT64_C(1) << VIRTIO_F_GUEST_USO6 | UINT64_C(1) << VIRTIO_F_HOST_USO |
	UINT64_C(1) << VIRTIO_F_MTU;

static int tell_vring(struct virtio_user *user, uint32_t request,
		      uint32_t number, uint32_t value)
{
	struct vhost_msg msg = { .request = request,
				 .n_bytes = sizeof(msg.vring),
				 .vring = { number, value } };

	return mri_user_tell(user, &msg, NULL, 0);
}

/* Pass the eventfd of a queue. */
static int tell_fd(struct virtio_user *user, uint32_t request, uint32_t number,
		   int fd)
{
	struct vhost_msg msg = { .request = request,
				 .n_bytes = sizeof(msg.u64),
				 .u64 = number | (fd < 0 ? VHOST_NO_FD : 0) };

	return mri_user_tell(user, &msg, &fd, fd < 0 ? 0 : 1);
}

static int begin(struct virtio_port *port, struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	int err = mri_user_connect(port, VIRTIO_USER_TIMEOUT_MS, reason);

	if (err < 0)
		return err;
	mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	err = mri_user_exchange(user);
	if (err < 0)
		return mri_user_refuse(port, err, reason);
	port->offered = user->offered & mri_user_features;
	return 0;
}

static int tell_features(struct virtio_user *user, uint64_t features)
{
	return mri_user_tell_u64(
		user, VHOST_SET_FEATURES,
		features | (user->offered &
			    virtio_bit(VHOST_F_PROTOCOL_FEATURES)));
}

/* Unlike a device, a back end is told the port's MTU. */
static int tell_mtu(const struct virtio_port *port)
{
	if (!virtio_has(port, VIRTIO_F_MTU) ||
	    !virtio_user_has(port->user, VHOST_P_MTU))
		return 0;
	return mri_user_tell_u64(port->user, VHOST_SET_MTU,
				 port->base.info->mtu_bytes);
}

static int accept_features(struct virtio_port *port, uint64_t features,
			   struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	int err;

	mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	port->features = features;
	err = tell_features(user, features);
	if (err < 0)
		return mri_user_refuse(port, err, reason);
	err = tell_mtu(port);
	if (err == -EREMOTEIO)
		return mr_fail(
			reason, -EINVAL, "%s: mtu=%u: the back end refuses it",
			port->base.info->name, port->base.info->mtu_bytes);
	if (err < 0)
		return mri_user_refuse(port, err, reason);
	err = mri_user_memory_open(port, reason);
	if (err < 0)
		return err;
	pthread_mutex_lock(&user->lock);
	err = mri_user_tell_memory(user);
	pthread_mutex_unlock(&user->lock);
	return err < 0 ? mri_user_refuse(port, err, reason) : 0;
}

/*
 * A back end has returned: tell it what the last one knew. It may accept the
 * connection and never answer, so its first answers must come soon; mapping the
 * memory takes longer.
 */
static int resume(const struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	int err;

	mri_user_allow(user, VIRTIO_USER_RETURN_MS);
	err = mri_user_exchange(user);
	if (err < 0)
		return err;
	if (port->features & ~user->offered ||
	    user->max_pairs < port->options.n_queues)
		return -ENOTSUP;
	mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	if ((err = tell_features(user, port->features)) < 0 ||
	    (err = tell_mtu(port)) < 0)
		return err;
	return mri_user_tell_memory(user);
}

static void try_to_return(struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	struct mr_reason why;
	int err;

	err = mri_user_connect(port, VIRTIO_USER_RETURN_MS, &why);
	user->retry_tick =
		port->n_ticks + (err == -ENODEV ? RETRY_TICKS : FAILED_TICKS);
	if (err == 0)
		err = resume(port);
	if (user->fd < 0)
		return;
	if (err == 0)
		err = mri_virtio_watch(port, user->fd);
	if (err == 0) {
		user->has_complained = false;
		user->generation++;
		return;
	}
	if (err != -EPIPE && !user->has_complained) {
		user->has_complained = true;
		mr_log(port->base.ctx, MR_LOG_ERROR,
		       err == -ENOTSUP ?
			       "%s: the back end has returned without features "
			       "or queues that the port uses" :
			       "%s: the back end has returned, but answers "
			       "incorrectly",
		       port->base.info->name);
	}
	mri_user_disconnect(user);
}

static void lose_back_end(struct virtio_port *port)
{
	struct virtio_user *user = port->user;

	mri_user_disconnect(user);
	user->retry_tick = port->n_ticks + RETRY_TICKS;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       user->can_return ?
		       "%s: the back end is gone; waiting for it to return" :
		       "%s: the back end is gone, and membarrier(), which a "
		       "restart needs, is forbidden here",
	       port->base.info->name);
	if (user->can_return)
		mri_virtio_queues_break(port);
}

/* A back end sends nothing but replies: readable means closed. */
static bool has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 ||
	       (errno != EAGAIN && errno != EINTR);
}

/* The restarts of queues that follow share this call's deadline. */
static uint32_t take_events(struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	bool is_gone;

	if (user->n_devices > 0)
		return 0; /* the kernel stays */
	pthread_mutex_lock(&user->lock);
	mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	if (user->fd >= 0 && has_ended(user->fd))
		lose_back_end(port);
	if (user->fd < 0 && user->can_return &&
	    port->n_ticks >= user->retry_tick)
		try_to_return(port);
	is_gone = user->fd < 0 && !user->can_return;
	pthread_mutex_unlock(&user->lock);
	return is_gone ? MR_PCI_EVENT_REQ : 0;
}

/* ---- queues ---- */

static uint32_t max_entries(const struct virtio_port *port, uint32_t number)
{
	return number < 2 * port->user->max_pairs ? MAX_ENTRIES : 0;
}

static int make_kick(struct virtio_user *user, struct virtio_vq *vq)
{
	int *fd = &user->kick_fds[vq->number];

	if (*fd < 0)
		*fd = mr_fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	vq->kick_fd = *fd;
	return *fd < 0 ? -errno : 0;
}

static int tell_queue(const struct virtio_port *port, struct virtio_vq *vq)
{
	struct virtio_user *user = port->user;
	const uint32_t number = vq->number;
	const bool has_protocol_features =
		user->offered & virtio_bit(VHOST_F_PROTOCOL_FEATURES);
	struct vhost_msg addr = {
		.request = VHOST_SET_VRING_ADDR,
		.n_bytes = sizeof(addr.addr),
		.addr = { .number = number,
			  .desc = vq->desc_iova,
			  .used = vq->device_iova,
			  .avail = vq->driver_iova },
	};
	int err;

	/* Both positions of a packed ring have a wrap counter of 1. */
	if ((err = tell_vring(user, VHOST_SET_VRING_NUM, number,
			      vq->n_entries)) < 0 ||
	    (err = tell_vring(user, VHOST_SET_VRING_BASE, number,
			      vq->is_packed ? 0x80008000u : 0)) < 0 ||
	    (err = mri_user_tell(user, &addr, NULL, 0)) < 0 ||
	    (err = tell_fd(user, VHOST_SET_VRING_CALL, number,
			   vq->vector < port->n_irqs ?
				   port->irq_fds[vq->vector] :
				   -1)) < 0 ||
	    (err = tell_fd(user, VHOST_SET_VRING_KICK, number, vq->kick_fd)) <
		    0)
		return err;
	return has_protocol_features ?
		       tell_vring(user, VHOST_SET_VRING_ENABLE, number, 1) :
		       0;
}

static int start_queue(const struct virtio_port *port, struct virtio_vq *vq,
		       struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	int err = make_kick(user, vq);

	pthread_mutex_lock(&user->lock);
	if (!user->is_open) /* else take_events() did */
		mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	if (err == 0)
		err = user->fd < 0 ? -EPIPE : tell_queue(port, vq);
	user->is_started[vq->number] = err == 0;
	pthread_mutex_unlock(&user->lock);
	if (err < 0 && user->is_open) {
		if (user->fd >= 0) /* take_events() starts over */
			(void)shutdown(user->fd, SHUT_RDWR);
		return -EAGAIN;
	}
	return err < 0 ? mri_user_refuse(port, err, reason) : 0;
}

/* After this the back end does not use the queue. */
static int stop_queue(struct virtio_user *user, uint32_t number)
{
	struct vhost_msg msg = { .request = VHOST_GET_VRING_BASE,
				 .n_bytes = sizeof(msg.vring),
				 .vring = { number, 0 } };
	int err = 0;

	if (user->fd >= 0 && user->is_started[number])
		err = mri_user_ask(user, &msg, sizeof(msg.vring));
	user->is_started[number] = false;
	return err;
}

static int reset_queue(struct virtio_port *port, struct virtio_vq *vq)
{
	struct virtio_user *user = port->user;
	int err = -EAGAIN;

	if (!user->can_return)
		return -ENOTSUP;
	if (vq->reset_until_tick != 0 &&
	    __atomic_load_n(&vq->is_busy, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	pthread_mutex_lock(&user->lock);
	if (user->fd >= 0)
		err = stop_queue(user, vq->number) < 0 ? -EAGAIN : 0;
	/* It may still use the queue: take_events() starts over. */
	if (user->fd >= 0 && err < 0)
		(void)shutdown(user->fd, SHUT_RDWR);
	pthread_mutex_unlock(&user->lock);
	if (err == 0 && vq->reset_until_tick != 0) {
		vq->reset_until_tick = 0;
		port->n_resets--;
	}
	return err;
}

static void stop_all(struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	int err = 0;

	if (user == NULL)
		return;
	pthread_mutex_lock(&user->lock);
	mri_user_allow(user, VIRTIO_USER_TIMEOUT_MS);
	for (uint32_t i = 0; i < 2 * port->options.n_queues && err == 0 &&
			     !port->base.is_away;
	     i++)
		err = stop_queue(user, i);
	if (user->fd >= 0)
		mri_user_disconnect(user);
	pthread_mutex_unlock(&user->lock);
}

/* ---- what else a device has ---- */

/* Nothing is left to do: start_queue() enabled each queue. */
static int start(struct virtio_port *port, struct mr_reason *reason)
{
	(void)reason;
	port->user->is_open = true;
	return 0;
}

/* A lost back end is no error: another one may connect. */
static int check(const struct virtio_port *port)
{
	(void)port;
	return 0;
}

static uint64_t region_iova(const struct virtio_port *port)
{
	return port->user->region_iova;
}

static uint32_t read_generation(const struct virtio_port *port)
{
	return port->user->generation;
}

static bool has_link(const struct virtio_port *port)
{
	return port->user->fd >= 0;
}

static uint32_t read_facts(const struct virtio_port *port,
			   struct virtio_facts *ret_facts)
{
	*ret_facts = (struct virtio_facts){
		.max_pairs = port->user->max_pairs,
		.status = has_link(port) ? VIRTIO_NET_STATUS_LINK_UP : 0,
		.has_mac = true,
	};
	memcpy(ret_facts->mac, port->options.mac, sizeof(ret_facts->mac));
	return read_generation(port);
}

static int set_irqs(struct virtio_port *port, uint32_t n, int *ret_fds,
		    struct mr_reason *reason)
{
	for (uint32_t i = 0; i < n; i++) {
		ret_fds[i] =
			mr_fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		if (ret_fds[i] < 0)
			return mr_fail(reason, -EIO, "%s: no eventfd: %s",
				       port->base.info->name,
				       mr_strerror(errno));
		port->n_irqs = i + 1; /* to close */
	}
	return (int)n;
}

static int event_fd(const struct virtio_port *port)
{
	return port->user->fd;
}

static void describe(const struct virtio_port *port, struct mr_port_info *info)
{
	info->numa_node = -1;
	snprintf(info->mode, sizeof(info->mode), "%s",
		 port->user->n_devices > 0 ? "vhost-net" : "vhost-user");
}

/* ---- open and close ---- */

/* Everything but the first connection. */
static int prepare(const struct virtio_port *port, struct mr_reason *reason)
{
	const struct virtio_options *o = &port->options;
	const char *const name = port->base.info->name;
	struct virtio_user *user = port->user;
	struct stat status;

	if (o->tap[0] != '\0' && o->is_server)
		return mr_fail(reason, -EINVAL,
			       "%s: tap=: the kernel does not connect; leave "
			       "server=on out",
			       name);
	if (o->tap[0] != '\0')
		return mri_user_kernel_open(port, reason);
	if (stat(user->addr.sun_path, &status) == 0 && S_ISCHR(status.st_mode))
		return mr_fail(reason, -EINVAL,
			       "%s: name the tap: "
			       "virtio-user:/dev/vhost-net,tap=tap0",
			       name);
	return o->is_server ?
		       mri_vhost_listen(name, &user->addr, "without server=on",
					&user->listener, reason) :
		       0;
}

int mri_user_create(struct virtio_port *port, const char *path,
		    struct mr_reason *reason)
{
	struct virtio_user *user = mr_alloc(port->base.ctx, 0, sizeof(*user));

	if (user == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory",
			       port->base.info->name);
	*user = (struct virtio_user){ .fd = -1,
				      .listener.fd = -1,
				      .addr.sun_family = AF_UNIX };
	pthread_mutex_init(&user->lock, NULL);
	for (uint32_t i = 0; i < 2 * VIRTIO_MAX_PAIRS; i++)
		user->kick_fds[i] = -1;
	user->region_fds[0] = -1;
	user->region_iova = (uintptr_t)port->base.base;
	user->can_return = mri_virtio_can_break();
	port->user = user;
	if (path == NULL || path[0] == '\0')
		return mr_fail(reason, -EINVAL,
			       "virtio-user: name the socket of a vhost-user "
			       "back end: virtio-user:/run/vm.sock");
	if (strlen(path) >= sizeof(user->addr.sun_path))
		return mr_fail(reason, -EINVAL,
			       "virtio-user: the path of a socket has at most "
			       "%zu bytes",
			       sizeof(user->addr.sun_path) - 1);
	snprintf(user->addr.sun_path, sizeof(user->addr.sun_path), "%s", path);
	return 0;
}

static int open_back_end(struct virtio_port *port, const char *path,
			 struct mr_reason *reason)
{
	const int err = mri_user_create(port, path, reason);

	return err < 0 ? err : prepare(port, reason);
}

static void close_back_end(struct virtio_port *port)
{
	struct virtio_user *user = port->user;

	for (uint32_t i = 0; i < port->n_irqs; i++)
		mr_fd_close(port->irq_fds[i]);
	if (user == NULL)
		return;
	mri_user_memory_close(port);
	mri_vhost_unlisten(&user->addr, &user->listener, port->base.is_away);
	mri_user_disconnect(user);
	mri_user_kernel_close(user);
	for (uint32_t i = 0; i < 2 * VIRTIO_MAX_PAIRS; i++)
		mr_fd_close(user->kick_fds[i]);
	pthread_mutex_destroy(&user->lock);
	mr_free(port->base.ctx, user);
	port->user = NULL;
}

const struct virtio_transport mri_virtio_user = {
	.is_user = true,
	.open = open_back_end,
	.close = close_back_end,
	.begin = begin,
	.accept = accept_features,
	.start = start,
	.stop = stop_all,
	.check = check,
	.generation = read_generation,
	.read_facts = read_facts,
	.has_link = has_link,
	.max_entries = max_entries,
	.set_irqs = set_irqs,
	.start_queue = start_queue,
	.reset_queue = reset_queue,
	.alloc_dma = mri_user_alloc_dma,
	.free_dma = mri_user_free_dma,
	.region_iova = region_iova,
	.event_fd = event_fd,
	.events = take_events,
	.describe = describe,
};
