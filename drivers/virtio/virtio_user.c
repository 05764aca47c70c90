/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport to a vhost-user back end: another process plays the device.
 *
 *     region's segments --+
 *     rings' memory ------+-- memfds --> the back end maps them
 *     kick, call ------------ eventfds
 *
 * In rings and descriptors an address is one of this process: as in DPDK, the
 * back end finds it in the table of regions that it was sent.
 *
 * There is no control queue, and no configuration space. The back end may go at
 * any time. Then all queues are broken, as if it had written invalid entries;
 * mr_port_poll() connects again once it is back, and starts them afresh.
 *
 * Source: QEMU, docs/interop/vhost-user.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <millrace/driver_mem.h>

#include "vhost_user.h"
#include "virtio.h"

enum {
	TIMEOUT_MS = 2000,
	/* In mr_port_poll(), until a returned one has answered. */
	RETURN_TIMEOUT_MS = 100,
	RETRY_TICKS = 100 * 1000 * 1000 / VIRTIO_TICK_NS,
	FAILED_TICKS = 10 * RETRY_TICKS, /* after one that did not answer */
	MAX_ENTRIES = 32768,
	OS_PAGE_BYTES = 4096,
	/* Of a ring's entry: descriptor, avail, used, header slot. */
	ENTRY_BYTES = 16 + 2 + 8 + VIRTIO_HEADER_SLOT_BYTES,
};

/* What needs neither a control queue nor registers. */
static const uint64_t our_features =
	UINT64_C(1) << VIRTIO_F_CSUM | UINT64_C(1) << VIRTIO_F_GUEST_CSUM |
	UINT64_C(1) << VIRTIO_F_GUEST_TSO4 |
	UINT64_C(1) << VIRTIO_F_GUEST_TSO6 | UINT64_C(1) << VIRTIO_F_HOST_TSO4 |
	UINT64_C(1) << VIRTIO_F_HOST_TSO6 | UINT64_C(1) << VIRTIO_F_MRG_RXBUF |
	UINT64_C(1) << VIRTIO_F_EVENT_IDX | UINT64_C(1) << VIRTIO_F_VERSION_1 |
	UINT64_C(1) << VIRTIO_F_RING_PACKED | UINT64_C(1) << VIRTIO_F_IN_ORDER |
	UINT64_C(1) << VIRTIO_F_GUEST_USO4 |
	UINT64_C(1) << VIRTIO_F_GUEST_USO6 | UINT64_C(1) << VIRTIO_F_HOST_USO;

static const uint64_t our_protocol = UINT64_C(1) << VHOST_P_MQ |
				     UINT64_C(1) << VHOST_P_REPLY_ACK |
				     UINT64_C(1) << VHOST_P_CONFIGURE_MEM_SLOTS;

struct virtio_user {
	struct sockaddr_un addr;
	/* Of the socket, which a growing region uses, too. */
	pthread_mutex_t lock;
	int fd; /* -1: the back end is away */
	uint64_t offered, protocol;
	uint32_t max_pairs;
	uint32_t max_regions; /* that it takes */
	bool has_memory;      /* it has the table */
	/* The memory: first the rings', then the region's segments. */
	struct vhost_region regions[VHOST_MAX_SLOTS];
	int region_fds[VHOST_MAX_SLOTS];
	uint32_t n_regions;
	uint64_t n_used_bytes; /* of the first */
	/* By queue. */
	int kick_fds[2 * VIRTIO_MAX_PAIRS];
	bool is_started[2 * VIRTIO_MAX_PAIRS];
	uint32_t generation; /* changes when it goes or comes */
	uint64_t retry_tick;
	int timeout_ms;      /* of a message */
	bool has_complained; /* of one that came, but cannot be used */
	bool can_return;     /* else a lost back end is gone */
	bool is_pinned;
};

static bool has_protocol(const struct virtio_user *user, uint32_t feature)
{
	return user->protocol & virtio_bit(feature);
}

/* ---- messages ---- */

static int refuse(const struct virtio_port *port, int err,
		  struct mr_reason *reason)
{
	return mr_fail(
		reason, err == -EPROTO ? -EPROTO : -EIO,
		err == -EPROTO    ? "%s: does not answer like a vhost-user "
				    "back end" :
		err == -ETIMEDOUT ? "%s: the back end does not answer "
				    "within 2 s" :
		err == -EREMOTEIO ? "%s: the back end refuses a request; "
				    "its log says why" :
				    "%s: the back end closes the connection",
		port->base.info->name);
}

static int ask(const struct virtio_user *user, struct vhost_msg *msg,
	       uint32_t n_reply_bytes)
{
	const uint32_t request = msg->request;
	int err;

	msg->flags = VHOST_VERSION;
	err = mri_vhost_send(user->fd, msg, NULL, 0);
	if (err == 0)
		err = mri_vhost_receive_reply(user->fd, msg, request,
					      n_reply_bytes, user->timeout_ms);
	return err;
}

static int ask_u64(const struct virtio_user *user, uint32_t request,
		   uint64_t *ret_value)
{
	struct vhost_msg msg = { .request = request };
	const int err = ask(user, &msg, sizeof(msg.u64));

	if (err == 0)
		*ret_value = msg.u64;
	return err;
}

/* Tell it something, with fds, and wait until it has done it, if it says so. */
static int tell(const struct virtio_user *user, struct vhost_msg *msg,
		const int *fds, uint32_t n_fds)
{
	const uint32_t request = msg->request;
	int err;

	msg->flags = VHOST_VERSION;
	if (has_protocol(user, VHOST_P_REPLY_ACK))
		msg->flags |= VHOST_NEED_REPLY;
	err = mri_vhost_send(user->fd, msg, fds, n_fds);
	if (err < 0 || !has_protocol(user, VHOST_P_REPLY_ACK))
		return err;
	err = mri_vhost_receive_reply(user->fd, msg, request, sizeof(msg->u64),
				      user->timeout_ms);
	return err < 0 ? err : msg->u64 != 0 ? -EREMOTEIO : 0;
}

static int tell_u64(const struct virtio_user *user, uint32_t request,
		    uint64_t value)
{
	struct vhost_msg msg = { .request = request,
				 .n_bytes = sizeof(msg.u64),
				 .u64 = value };

	return tell(user, &msg, NULL, 0);
}

static int tell_vring(const struct virtio_user *user, uint32_t request,
		      uint32_t number, uint32_t value)
{
	struct vhost_msg msg = { .request = request,
				 .n_bytes = sizeof(msg.vring),
				 .vring = { number, value } };

	return tell(user, &msg, NULL, 0);
}

/* Pass the eventfd of a queue. */
static int tell_fd(const struct virtio_user *user, uint32_t request,
		   uint32_t number, int fd)
{
	struct vhost_msg msg = { .request = request,
				 .n_bytes = sizeof(msg.u64),
				 .u64 = number | (fd < 0 ? VHOST_NO_FD : 0) };

	return tell(user, &msg, &fd, fd < 0 ? 0 : 1);
}

/* ---- memory ---- */

static int tell_region(const struct virtio_user *user, uint32_t i)
{
	struct vhost_msg msg = { .request = VHOST_ADD_MEM_REG,
				 .n_bytes = sizeof(msg.slot),
				 .slot.region = user->regions[i] };

	return tell(user, &msg, &user->region_fds[i], 1);
}

static int tell_table(const struct virtio_user *user)
{
	struct vhost_msg msg = { .request = VHOST_SET_MEM_TABLE,
				 .n_bytes = 8, /* its number, padding */
				 .table.n = user->n_regions };

	for (uint32_t i = 0; i < user->n_regions; i++)
		msg.table.regions[i] = user->regions[i];
	msg.n_bytes += user->n_regions * (uint32_t)sizeof(user->regions[0]);
	return tell(user, &msg, user->region_fds, user->n_regions);
}

/* Wait until it has mapped what it was told of. */
static int await_memory(const struct virtio_user *user)
{
	uint64_t features;

	if (has_protocol(user, VHOST_P_REPLY_ACK))
		return 0; /* tell() has waited */
	return ask_u64(user, VHOST_GET_FEATURES, &features);
}

/* Tell a back end, which has none yet, of all memory. */
static int tell_memory(struct virtio_user *user)
{
	int err = 0;

	if (user->n_regions > user->max_regions)
		return -EREMOTEIO; /* another one, which takes fewer */
	if (!has_protocol(user, VHOST_P_CONFIGURE_MEM_SLOTS))
		err = tell_table(user);
	else
		for (uint32_t i = 0; i < user->n_regions && err == 0; i++)
			err = tell_region(user, i);
	if (err == 0)
		err = await_memory(user);
	user->has_memory = err == 0;
	return err;
}

/* Tell it of the last piece, unless it is away: it gets all when it returns. */
static int tell_last_region(struct virtio_user *user)
{
	int err;

	if (!user->has_memory)
		return 0;
	if (has_protocol(user, VHOST_P_CONFIGURE_MEM_SLOTS))
		err = tell_region(user, user->n_regions - 1);
	else
		err = tell_table(user);
	if (err == 0)
		err = await_memory(user);
	if (err == 0 || err == -EREMOTEIO)
		return err;
	(void)shutdown(user->fd, SHUT_RDWR); /* take_events() starts over */
	return 0;
}

/* The region has another segment. */
static int add_segment(void *opaque, const struct mr_segment_info *segment,
		       struct mr_reason *reason)
{
	const struct virtio_port *port = opaque;
	struct virtio_user *user = port->user;
	const uint64_t addr = (uintptr_t)port->base.base + segment->addr;
	int err = 0;

	pthread_mutex_lock(&user->lock);
	if (user->n_regions == user->max_regions) {
		err = mr_fail(reason, -ENOSPC,
			      "%s: the back end takes %u pieces of memory, all "
			      "in use: give the pool its full size at once",
			      port->base.info->name, user->max_regions);
	} else {
		user->regions[user->n_regions] =
			(struct vhost_region){ addr, segment->n_bytes, addr,
					       0 };
		user->region_fds[user->n_regions++] = segment->fd;
		err = tell_last_region(user);
		if (err < 0) {
			user->n_regions--;
			err = refuse(port, err, reason);
		}
	}
	pthread_mutex_unlock(&user->lock);
	return err;
}

/* Pinned: none goes before the port closes. */
static void remove_segment(void *opaque, const struct mr_segment_info *segment)
{
	(void)opaque;
	(void)segment;
}

/* Memory for all rings, in one piece, because pieces are few. */
static int make_ring_memory(struct virtio_port *port, struct mr_reason *reason)
{
	const struct virtio_options *o = &port->options;
	struct virtio_user *user = port->user;
	uint64_t n_bytes = 0;
	void *memory;

	n_bytes +=
		o->n_rx_entries != 0 ? o->n_rx_entries : VIRTIO_DEFAULT_ENTRIES;
	n_bytes +=
		o->n_tx_entries != 0 ? o->n_tx_entries : VIRTIO_DEFAULT_ENTRIES;
	/* Three pieces per pair, each on OS pages of its own. */
	n_bytes = o->n_queues * (n_bytes * ENTRY_BYTES + 6 * OS_PAGE_BYTES);
	n_bytes =
		(n_bytes + OS_PAGE_BYTES - 1) & ~(uint64_t)(OS_PAGE_BYTES - 1);
	user->region_fds[0] = mr_fd_guard(
		memfd_create("virtio-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (user->region_fds[0] < 0 ||
	    ftruncate(user->region_fds[0], (off_t)n_bytes) < 0 ||
	    fcntl(user->region_fds[0], F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return mr_fail(reason, -ENOMEM, "%s: no memory for rings: %s",
			       port->base.info->name, mr_strerror(errno));
	memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      user->region_fds[0], 0);
	if (memory == MAP_FAILED)
		return mr_fail(reason, -ENOMEM, "%s: no memory for rings: %s",
			       port->base.info->name, mr_strerror(errno));
	(void)madvise(memory, n_bytes, MADV_DONTFORK);
	user->regions[0] = (struct vhost_region){ (uintptr_t)memory, n_bytes,
						  (uintptr_t)memory, 0 };
	user->n_regions = 1;
	return 0;
}

static int alloc_dma(struct virtio_port *port, uint64_t n_bytes,
		     struct mr_dma *ret_dma, struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	const uint64_t at = user->n_used_bytes;

	n_bytes =
		(n_bytes + OS_PAGE_BYTES - 1) & ~(uint64_t)(OS_PAGE_BYTES - 1);
	if (at + n_bytes > user->regions[0].n_bytes)
		return mr_fail(reason, -ENOMEM, "%s: no memory for rings",
			       port->base.info->name);
	user->n_used_bytes += n_bytes;
	*ret_dma = (struct mr_dma){
		(void *)(uintptr_t)(user->regions[0].user_addr + at),
		user->regions[0].guest_addr + at, n_bytes
	};
	return 0;
}

/* All of it goes when the port closes. */
static void free_dma(struct virtio_port *port, struct mr_dma *dma)
{
	(void)port;
	*dma = (struct mr_dma){ 0 };
}

static uint64_t region_iova(const struct virtio_port *port)
{
	return (uintptr_t)port->base.base;
}

/* ---- the connection ---- */

/* How long messages may take; connect() and sendmsg(), too, wait for room. */
static int set_timeout(struct virtio_user *user, int timeout_ms)
{
	const struct timeval limit = { timeout_ms / 1000,
				       timeout_ms % 1000 * 1000 };

	user->timeout_ms = timeout_ms;
	return setsockopt(user->fd, SOL_SOCKET, SO_SNDTIMEO, &limit,
			  sizeof(limit));
}

static int connect_to(const struct virtio_port *port, int timeout_ms,
		      struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	const char *const path = user->addr.sun_path;
	struct stat status;
	int err;

	user->fd = mr_fd_guard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (user->fd < 0)
		return mr_fail(reason, -EIO, "%s: no socket: %s",
			       port->base.info->name, mr_strerror(errno));
	if (set_timeout(user, timeout_ms) == 0 &&
	    connect(user->fd, (const struct sockaddr *)&user->addr,
		    sizeof(user->addr)) == 0)
		return 0;
	err = errno;
	mr_fd_close(user->fd);
	user->fd = -1;
	if (err == ECONNREFUSED && stat(path, &status) == 0 &&
	    !S_ISSOCK(status.st_mode))
		return mr_fail(reason, -ENOTSOCK, "%s: %s is not a socket",
			       port->base.info->name, path);
	if (err == ENOENT || err == ECONNREFUSED)
		return mr_fail(reason, -ENODEV,
			       "%s: nobody listens there: start the vhost-user "
			       "back end first",
			       port->base.info->name);
	if (err == EAGAIN)
		return refuse(port, -ETIMEDOUT, reason);
	return mr_fail(reason, err == EACCES ? -EACCES : -EIO,
		       "%s: cannot connect: %s", port->base.info->name,
		       mr_strerror(err));
}

/* What both sides can do. */
static int exchange_features(struct virtio_user *user)
{
	uint64_t n = 0;
	int err;

	user->protocol = 0;
	user->max_pairs = 1;
	user->max_regions = VHOST_MAX_REGIONS;
	if ((err = tell(user, &(struct vhost_msg){ .request = VHOST_SET_OWNER },
			NULL, 0)) < 0 ||
	    (err = ask_u64(user, VHOST_GET_FEATURES, &user->offered)) < 0 ||
	    !(user->offered & virtio_bit(VHOST_F_PROTOCOL_FEATURES)))
		return err;
	err = ask_u64(user, VHOST_GET_PROTOCOL_FEATURES, &n);
	n &= our_protocol;
	if (err == 0)
		err = tell_u64(user, VHOST_SET_PROTOCOL_FEATURES, n);
	if (err < 0)
		return err;
	user->protocol = n;
	if (has_protocol(user, VHOST_P_MQ) &&
	    (err = ask_u64(user, VHOST_GET_QUEUE_NUM, &n)) == 0)
		user->max_pairs =
			n < VIRTIO_MAX_PAIRS ? (uint32_t)n : VIRTIO_MAX_PAIRS;
	if (err == 0 && has_protocol(user, VHOST_P_CONFIGURE_MEM_SLOTS) &&
	    (err = ask_u64(user, VHOST_GET_MAX_MEM_SLOTS, &n)) == 0)
		user->max_regions =
			n < VHOST_MAX_SLOTS ? (uint32_t)n : VHOST_MAX_SLOTS;
	return err;
}

/* The socket is closed; every piece of memory is still ours. */
static void disconnect(struct virtio_user *user)
{
	mr_fd_close(user->fd);
	user->fd = -1;
	user->has_memory = false;
	memset(user->is_started, 0, sizeof(user->is_started));
	user->generation++;
}

static int begin(struct virtio_port *port, struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	int err = connect_to(port, TIMEOUT_MS, reason);

	if (err < 0)
		return err;
	err = exchange_features(user);
	if (err < 0)
		return refuse(port, err, reason);
	port->offered = user->offered & our_features;
	return 0;
}

static int tell_features(const struct virtio_user *user, uint64_t features)
{
	return tell_u64(user, VHOST_SET_FEATURES,
			features | (user->offered &
				    virtio_bit(VHOST_F_PROTOCOL_FEATURES)));
}

static int accept_features(struct virtio_port *port, uint64_t features,
			   struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	int err = tell_features(user, features);

	port->features = features;
	if (err == 0)
		err = mr_region_pin(port->base.region, port->base.info->name,
				    UINT64_MAX);
	if (err < 0)
		return refuse(port, err, reason);
	user->is_pinned = true;
	err = make_ring_memory(port, reason);
	if (err == 0)
		err = mr_region_listen(port->base.region, add_segment,
				       remove_segment, port, reason);
	if (err < 0)
		return err;
	pthread_mutex_lock(&user->lock);
	err = tell_memory(user);
	pthread_mutex_unlock(&user->lock);
	return err < 0 ? refuse(port, err, reason) : 0;
}

/* A back end is there again: make it know what the last one knew. */
static int resume(const struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	int err = exchange_features(user);

	if (err == 0 && set_timeout(user, TIMEOUT_MS) < 0)
		err = -errno;
	if (err < 0)
		return err;
	if (port->features & ~user->offered ||
	    user->max_pairs < port->options.n_queues)
		return -ENOTSUP;
	err = tell_features(user, port->features);
	return err < 0 ? err : tell_memory(user);
}

static void try_to_return(struct virtio_port *port)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct virtio_user *user = port->user;
	struct mr_reason why;
	int err;

	err = connect_to(port, RETURN_TIMEOUT_MS, &why);
	user->retry_tick =
		port->n_ticks + (err == -ENODEV ? RETRY_TICKS : FAILED_TICKS);
	if (err == 0)
		err = resume(port);
	if (user->fd < 0)
		return;
	event.data.fd = user->fd;
	if (err == 0 &&
	    epoll_ctl(port->base.fd, EPOLL_CTL_ADD, user->fd, &event) < 0)
		err = -errno;
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
			       "%s: the back end has returned, but does not "
			       "answer as it must",
		       port->base.info->name);
	}
	disconnect(user);
}

static void lose_back_end(struct virtio_port *port)
{
	struct virtio_user *user = port->user;

	disconnect(user);
	user->retry_tick = port->n_ticks + RETRY_TICKS;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: the back end is gone; waiting for it to return",
	       port->base.info->name);
	mri_virtio_queues_break(port);
}

/* It says nothing unless asked: the socket is readable at its end. */
static uint32_t take_events(struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	char byte;

	pthread_mutex_lock(&user->lock);
	if (user->fd >= 0 &&
	    (recv(user->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 ||
	     (errno != EAGAIN && errno != EINTR)))
		lose_back_end(port);
	if (user->fd < 0 && port->n_ticks >= user->retry_tick)
		try_to_return(port);
	pthread_mutex_unlock(&user->lock);
	return 0;
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
	const struct virtio_user *user = port->user;
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
	    (err = tell(user, &addr, NULL, 0)) < 0 ||
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
	if (err == 0)
		err = user->fd < 0 ? -EPIPE : tell_queue(port, vq);
	user->is_started[vq->number] = err == 0;
	pthread_mutex_unlock(&user->lock);
	if (err < 0 && reason == NULL) { /* of a port that is open */
		if (user->fd >= 0)       /* take_events() starts over */
			(void)shutdown(user->fd, SHUT_RDWR);
		return -EAGAIN;
	}
	return err < 0 ? refuse(port, err, reason) : 0;
}

/* After this the back end does not use the queue. */
static int stop_queue(struct virtio_user *user, uint32_t number)
{
	struct vhost_msg msg = { .request = VHOST_GET_VRING_BASE,
				 .n_bytes = sizeof(msg.vring),
				 .vring = { number, 0 } };
	int err = 0;

	if (user->fd >= 0 && user->is_started[number])
		err = ask(user, &msg, sizeof(msg.vring));
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

static int reset_device(struct virtio_port *port)
{
	struct virtio_user *user = port->user;
	int err = 0;

	if (user == NULL)
		return 0;
	pthread_mutex_lock(&user->lock);
	for (uint32_t i = 0; i < 2 * port->options.n_queues && err == 0; i++)
		err = stop_queue(user, i);
	if (user->fd >= 0)
		disconnect(user);
	pthread_mutex_unlock(&user->lock);
	return err;
}

/* ---- what else a device has ---- */

static uint32_t read_status(const struct virtio_port *port)
{
	(void)port;
	return VIRTIO_STATUS_DRIVER_OK;
}

static void add_status(struct virtio_port *port, uint32_t bits)
{
	(void)port;
	(void)bits;
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

static int set_config_vector(const struct virtio_port *port, uint32_t vector)
{
	(void)port;
	(void)vector;
	return 0;
}

static int set_master(struct virtio_port *port, bool is_on)
{
	(void)port;
	(void)is_on;
	return 0;
}

static int event_fd(const struct virtio_port *port)
{
	return port->user->fd;
}

static void describe(const struct virtio_port *port, struct mr_port_info *info)
{
	(void)port;
	info->numa_node = -1;
	snprintf(info->mode, sizeof(info->mode), "vhost-user");
}

/* ---- open and close ---- */

static int open_back_end(struct virtio_port *port, const char *path,
			 struct mr_reason *reason)
{
	struct virtio_user *user = mr_alloc(port->base.ctx, 0, sizeof(*user));

	if (user == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory",
			       port->base.info->name);
	*user = (struct virtio_user){ .fd = -1, .addr.sun_family = AF_UNIX };
	pthread_mutex_init(&user->lock, NULL);
	for (uint32_t i = 0; i < 2 * VIRTIO_MAX_PAIRS; i++)
		user->kick_fds[i] = -1;
	user->region_fds[0] = -1;
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

static void close_back_end(struct virtio_port *port)
{
	struct virtio_user *user = port->user;

	for (uint32_t i = 0; i < port->n_irqs; i++)
		mr_fd_close(port->irq_fds[i]);
	if (user == NULL)
		return;
	mr_region_unlisten(port->base.region, port);
	if (user->is_pinned)
		mr_region_unpin(port->base.region, port->base.info->name,
				UINT64_MAX);
	mr_fd_close(user->fd);
	for (uint32_t i = 0; i < 2 * VIRTIO_MAX_PAIRS; i++)
		mr_fd_close(user->kick_fds[i]);
	if (user->n_regions > 0)
		munmap((void *)(uintptr_t)user->regions[0].user_addr,
		       user->regions[0].n_bytes);
	mr_fd_close(user->region_fds[0]);
	pthread_mutex_destroy(&user->lock);
	mr_free(port->base.ctx, user);
	port->user = NULL;
}

const struct virtio_transport mri_virtio_user = {
	.is_user = true,
	.open = open_back_end,
	.close = close_back_end,
	.reset = reset_device,
	.begin = begin,
	.accept = accept_features,
	.status = read_status,
	.add_status = add_status,
	.generation = read_generation,
	.read_facts = read_facts,
	.has_link = has_link,
	.max_entries = max_entries,
	.set_irqs = set_irqs,
	.set_config_vector = set_config_vector,
	.start_queue = start_queue,
	.reset_queue = reset_queue,
	.set_master = set_master,
	.alloc_dma = alloc_dma,
	.free_dma = free_dma,
	.region_iova = region_iova,
	.event_fd = event_fd,
	.events = take_events,
	.describe = describe,
};
