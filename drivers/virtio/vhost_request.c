/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of the peer's messages. A handler checks the message, stops the
 * rings that it concerns, and starts them again if they can run.
 *
 * Source: QEMU, docs/interop/vhost-user.rst.
 */
#include <errno.h>
#include <stddef.h>

#include "vhost.h"

static const uint64_t our_protocol =
	UINT64_C(1) << VHOST_P_MQ | UINT64_C(1) << VHOST_P_REPLY_ACK |
	UINT64_C(1) << VHOST_P_MTU | UINT64_C(1) << VHOST_P_RESET_DEVICE |
	UINT64_C(1) << VHOST_P_CONFIGURE_MEM_SLOTS |
	UINT64_C(1) << VHOST_P_STATUS | UINT64_C(1) << VHOST_P_LOG_SHMFD |
	UINT64_C(1) << VHOST_P_RARP | UINT64_C(1) << VHOST_P_IN_FLIGHT_SHMFD;

static const char *name_of(const struct vhost_port *port)
{
	return port->base.info->name;
}

static int reject(const struct vhost_port *port, const char *what,
		  struct mr_reason *reason)
{
	return mr_fail(reason, -EINVAL, "%s: the peer sends an invalid %s",
		       name_of(port), what);
}

/* The ring that a message names; NULL: there is none. */
static struct vhost_ring *find_ring(struct vhost_port *port, uint64_t number)
{
	return number < 2 * port->options.n_queues ?
		       vhost_ring_of(port, (uint32_t)number) :
		       NULL;
}

static void reply_u64(struct vhost_msg *msg, uint64_t value)
{
	msg->n_bytes = sizeof(msg->u64);
	msg->u64 = value;
}

/* ---- features ---- */

/* Besides those of virtio. */
static const uint64_t our_features = UINT64_C(1) << VHOST_F_PROTOCOL_FEATURES |
				     UINT64_C(1) << VHOST_F_LOG_ALL;

static int get_features(struct vhost_port *port, struct vhost_msg *msg,
			struct mr_reason *reason)
{
	(void)reason;
	reply_u64(msg, port->offered | our_features);
	return 0;
}

static uint32_t offload_if(uint64_t features, uint32_t feature, uint32_t bits)
{
	return vhost_has(features, feature) ? bits : 0;
}

void mri_vhost_apply_features(struct vhost_port *port, uint64_t features)
{
	const uint32_t offloads =
		offload_if(features, VIRTIO_F_GUEST_CSUM, MR_OFFLOAD_CSUM_TX) |
		offload_if(features, VIRTIO_F_CSUM, MR_OFFLOAD_CSUM_RX) |
		offload_if(features, VIRTIO_F_GUEST_TSO4, MR_OFFLOAD_TSO4) |
		offload_if(features, VIRTIO_F_GUEST_TSO6, MR_OFFLOAD_TSO6) |
		offload_if(features, VIRTIO_F_GUEST_USO4, MR_OFFLOAD_USO) |
		/* Even without a peer: programs decide at the start whether
		 * they carry metadata. */
		offload_if(port->offered, VIRTIO_F_HOST_TSO4, MR_OFFLOAD_LRO);

	port->peer.features = features;
	for (uint32_t i = 0; i < port->options.n_queues; i++) {
		port->rxqs[i].features = features;
		port->txqs[i].features = features;
	}
	__atomic_store_n(&port->base.info->offloads, offloads,
			 __ATOMIC_RELAXED);
}

static int set_features(struct vhost_port *port, struct vhost_msg *msg,
			struct mr_reason *reason)
{
	const uint64_t offered = port->offered | our_features;

	if (msg->u64 & ~offered)
		return mr_fail(reason, -EINVAL,
			       "%s: the peer accepts features that were not "
			       "offered (%#llx)",
			       name_of(port),
			       (unsigned long long)(msg->u64 & ~offered));
	mri_vhost_rings_stop(port);
	mri_vhost_apply_features(port, msg->u64);
	mri_vhost_rings_start(port);
	return 0;
}

static int get_protocol(struct vhost_port *port, struct vhost_msg *msg,
			struct mr_reason *reason)
{
	(void)port;
	(void)reason;
	reply_u64(msg, our_protocol);
	return 0;
}

static int set_protocol(struct vhost_port *port, struct vhost_msg *msg,
			struct mr_reason *reason)
{
	if (msg->u64 & ~our_protocol)
		return reject(port, "set of protocol features", reason);
	port->peer.protocol = msg->u64;
	return 0;
}

static int get_queue_num(struct vhost_port *port, struct vhost_msg *msg,
			 struct mr_reason *reason)
{
	(void)reason;
	reply_u64(msg, port->options.n_queues);
	return 0;
}

static int do_nothing(struct vhost_port *port, struct vhost_msg *msg,
		      struct mr_reason *reason)
{
	(void)port;
	(void)msg;
	(void)reason;
	return 0;
}

static int set_mtu(struct vhost_port *port, struct vhost_msg *msg,
		   struct mr_reason *reason)
{
	if (msg->u64 > port->options.mtu_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: the peer's MTU is %llu, and the port's %u: "
			       "set mtu=",
			       name_of(port), (unsigned long long)msg->u64,
			       port->options.mtu_bytes);
	return 0;
}

/* ---- the device as a whole ---- */

/* Until the peer starts them again. */
static void reset_rings(struct vhost_port *port)
{
	mri_vhost_rings_stop(port);
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++) {
		struct vhost_ring *ring = vhost_ring_of(port, i);

		ring->has_kick = ring->is_broken = false;
		mri_vhost_record_end(ring);
	}
}

static int reset_device(struct vhost_port *port, struct vhost_msg *msg,
			struct mr_reason *reason)
{
	(void)msg;
	(void)reason;
	reset_rings(port);
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++)
		vhost_ring_of(port, i)->is_enabled = false;
	port->peer.status = 0;
	return 0;
}

static int set_status(struct vhost_port *port, struct vhost_msg *msg,
		      struct mr_reason *reason)
{
	if (msg->u64 > UINT8_MAX)
		return reject(port, "status", reason);
	port->peer.status = (uint8_t)msg->u64;
	if (msg->u64 == 0)
		reset_rings(port);
	return 0;
}

static int get_status(struct vhost_port *port, struct vhost_msg *msg,
		      struct mr_reason *reason)
{
	(void)reason;
	reply_u64(msg, port->peer.status);
	return 0;
}

/* ---- memory ---- */

static int get_slots(struct vhost_port *port, struct vhost_msg *msg,
		     struct mr_reason *reason)
{
	(void)port;
	(void)reason;
	reply_u64(msg, VHOST_MAX_SLOTS);
	return 0;
}

static int set_table(struct vhost_port *port, struct vhost_msg *msg,
		     struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	const uint32_t n = msg->table.n;
	int err = 0;

	if (n != peer->n_fds ||
	    msg->n_bytes != 8 + n * sizeof(msg->table.regions[0]))
		return reject(port, "memory table", reason);
	mri_vhost_rings_stop(port);
	mri_vhost_memory_clear(&peer->memory);
	for (uint32_t i = 0; i < n && err == 0; i++) {
		const struct vhost_region region = msg->table.regions[i];

		err = mri_vhost_memory_add(port, &region, peer->fds[i], reason);
	}
	if (err == 0)
		mri_vhost_rings_start(port);
	return err;
}

static int add_region(struct vhost_port *port, struct vhost_msg *msg,
		      struct mr_reason *reason)
{
	const struct vhost_region region = msg->slot.region;
	int err;

	mri_vhost_rings_stop(port);
	err = mri_vhost_memory_add(port, &region, port->peer.fds[0], reason);
	mri_vhost_rings_start(port);
	return err;
}

static int remove_region(struct vhost_port *port, struct vhost_msg *msg,
			 struct mr_reason *reason)
{
	const struct vhost_region region = msg->slot.region;
	int err;

	mri_vhost_rings_stop(port);
	err = mri_vhost_memory_remove(&port->peer.memory, &region);
	mri_vhost_rings_start(port);
	return err < 0 ? reject(port, "memory region to remove", reason) : 0;
}

/* ---- migration ---- */

static int set_log(struct vhost_port *port, struct vhost_msg *msg,
		   struct mr_reason *reason)
{
	int err;

	mri_vhost_rings_stop(port);
	err = mri_vhost_log_set(port, port->peer.fds[0], msg->log.n_bytes,
				msg->log.offset, reason);
	mri_vhost_rings_start(port);
	reply_u64(msg, 0);
	return err;
}

/* The guest has arrived: a frame is to tell its switch. */
static int send_rarp(struct vhost_port *port, struct vhost_msg *msg,
		     struct mr_reason *reason)
{
	(void)reason;
	__atomic_store_n(&port->rxqs[0].rarp_mac, msg->u64, __ATOMIC_RELAXED);
	mri_vhost_ring_wake(&port->rxqs[0].ring);
	return 0;
}

/* ---- what was in flight ---- */

static int set_records(struct vhost_port *port, struct vhost_msg *msg,
		       struct mr_reason *reason)
{
	const bool is_new = msg->request == VHOST_GET_IN_FLIGHT;
	struct vhost_in_flight sent = msg->in_flight;
	int err;

	if (msg->n_bytes != sizeof(msg->in_flight) &&
	    msg->n_bytes != offsetof(struct vhost_in_flight, padding))
		return reject(port, "record of buffers in flight", reason);
	mri_vhost_rings_stop(port);
	err = is_new ? mri_vhost_records_make(port, &sent, reason) :
		       mri_vhost_records_set(port, port->peer.fds[0], &sent,
					     reason);
	mri_vhost_rings_start(port);
	msg->in_flight = sent;
	return err;
}

/* ---- rings ---- */

/* Start a ring after a message about it. The peer sends its memory first. */
static void start_ring(struct vhost_port *port, struct vhost_ring *ring)
{
	if (ring->has_addr && ring->has_kick && ring->is_enabled &&
	    port->peer.memory.n == 0)
		mri_vhost_say_no_memory(port);
	mri_vhost_ring_start(port, ring);
}

static int set_vring_num(struct vhost_port *port, struct vhost_msg *msg,
			 struct mr_reason *reason)
{
	struct vhost_ring *ring = find_ring(port, msg->vring.number);
	const uint32_t n = msg->vring.value;

	if (ring == NULL || n == 0 || n > VIRTIO_MAX_QUEUE_SIZE ||
	    (n & (n - 1)) != 0)
		return reject(port, "ring size", reason);
	mri_vhost_ring_stop(ring);
	ring->vq.n_entries = n;
	ring->vq.mask = (uint16_t)(n - 1);
	return 0;
}

static int set_vring_addr(struct vhost_port *port, struct vhost_msg *msg,
			  struct mr_reason *reason)
{
	struct vhost_ring *ring = find_ring(port, msg->addr.number);

	if (ring == NULL)
		return reject(port, "ring address", reason);
	mri_vhost_ring_stop(ring);
	ring->addr = msg->addr;
	ring->has_addr = true;
	start_ring(port, ring);
	return 0;
}

static int set_vring_base(struct vhost_port *port, struct vhost_msg *msg,
			  struct mr_reason *reason)
{
	struct vhost_ring *ring = find_ring(port, msg->vring.number);

	if (ring == NULL)
		return reject(port, "ring position", reason);
	mri_vhost_ring_stop(ring);
	ring->position = msg->vring.value;
	ring->has_position = true;
	start_ring(port, ring);
	return 0;
}

/* Stop the ring, and reply where it would resume. */
static int get_vring_base(struct vhost_port *port, struct vhost_msg *msg,
			  struct mr_reason *reason)
{
	struct vhost_ring *ring = find_ring(port, msg->vring.number);

	if (ring == NULL)
		return reject(port, "ring number", reason);
	mri_vhost_ring_stop(ring);
	mri_vhost_record_end(ring);
	msg->vring.value = mri_vhost_ring_position(ring);
	(void)mri_vhost_ring_set_driver_fd(ring, -1);
	mr_fd_close(ring->vq.kick_fd);
	ring->vq.kick_fd = -1;
	ring->has_kick = ring->is_broken = false;
	return 0;
}

static int set_vring_enable(struct vhost_port *port, struct vhost_msg *msg,
			    struct mr_reason *reason)
{
	struct vhost_ring *ring = find_ring(port, msg->vring.number);

	if (ring == NULL || msg->vring.value > 1)
		return reject(port, "enable flag of a ring", reason);
	ring->is_enabled = msg->vring.value == 1;
	if (ring->is_enabled)
		start_ring(port, ring);
	else
		mri_vhost_ring_stop(ring);
	return 0;
}

/* Take the eventfd of a message about a ring; -1: it has none. */
static int take_eventfd(struct vhost_port *port, const struct vhost_msg *msg,
			int *ret_fd, struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	const bool has_fd = !(msg->u64 & VHOST_NO_FD);

	if (peer->n_fds != (has_fd ? 1 : 0))
		return reject(port, "number of eventfds", reason);
	*ret_fd = -1;
	if (!has_fd)
		return 0;
	if (!mri_vhost_is_eventfd(peer->fds[0]))
		return reject(port, "eventfd", reason);
	*ret_fd = peer->fds[0];
	peer->n_fds = 0; /* it is the ring's */
	return 0;
}

static int find_ring_of_fd(struct vhost_port *port, const struct vhost_msg *msg,
			   struct vhost_ring **ret_ring, int *ret_fd,
			   struct mr_reason *reason)
{
	*ret_ring = find_ring(port, msg->u64 & UINT8_MAX);
	if (*ret_ring == NULL)
		return reject(port, "ring number", reason);
	return take_eventfd(port, msg, ret_fd, reason);
}

static int set_vring_kick(struct vhost_port *port, struct vhost_msg *msg,
			  struct mr_reason *reason)
{
	struct vhost_ring *ring;
	int fd, err = find_ring_of_fd(port, msg, &ring, &fd, reason);

	if (err < 0)
		return err;
	mri_vhost_ring_stop(ring);
	ring->has_kick = mri_vhost_ring_set_driver_fd(ring, fd) == 0;
	if (!ring->has_kick)
		return reject(port, "eventfd", reason);
	start_ring(port, ring);
	return 0;
}

static int set_vring_call(struct vhost_port *port, struct vhost_msg *msg,
			  struct mr_reason *reason)
{
	struct vhost_ring *ring;
	int fd, err = find_ring_of_fd(port, msg, &ring, &fd, reason);

	if (err < 0)
		return err;
	mri_vhost_ring_stop(ring);
	mr_fd_close(ring->vq.kick_fd);
	ring->vq.kick_fd = fd;
	start_ring(port, ring);
	if (!port->base.is_away)
		/* Earlier calls went to the old eventfd. */
		mri_vhost_signal(port->signal, fd);
	return 0;
}

static int set_vring_err(struct vhost_port *port, struct vhost_msg *msg,
			 struct mr_reason *reason)
{
	struct vhost_ring *ring;
	int fd, err = find_ring_of_fd(port, msg, &ring, &fd, reason);

	if (err < 0)
		return err;
	mr_fd_close(ring->error_fd);
	ring->error_fd = fd;
	return 0;
}

/* ---- all of them ---- */

struct request {
	int (*handle)(struct vhost_port *port, struct vhost_msg *msg,
		      struct mr_reason *reason);
	uint32_t n_bytes; /* of the payload; ANY_BYTES: handle() checks */
	uint32_t n_fds;   /* ANY_FDS */
	bool has_reply;
};

enum { ANY_BYTES = UINT16_MAX, ANY_FDS = UINT8_MAX };

static const struct request requests[VHOST_N_REQUESTS] = {
	[VHOST_GET_FEATURES] = { get_features, 0, 0, true },
	[VHOST_SET_FEATURES] = { set_features, 8, 0, false },
	[VHOST_SET_OWNER] = { do_nothing, 0, 0, false },
	[VHOST_RESET_OWNER] = { do_nothing, 0, 0, false },
	[VHOST_SET_MEM_TABLE] = { set_table, ANY_BYTES, ANY_FDS, false },
	[VHOST_SET_LOG_BASE] = { set_log, 16, 1, true },
	[VHOST_SET_LOG_FD] = { do_nothing, 8, ANY_FDS, false },
	[VHOST_SEND_RARP] = { send_rarp, 8, 0, false },
	[VHOST_SET_VRING_NUM] = { set_vring_num, 8, 0, false },
	[VHOST_SET_VRING_ADDR] = { set_vring_addr,
				   sizeof(struct vhost_vring_addr), 0, false },
	[VHOST_SET_VRING_BASE] = { set_vring_base, 8, 0, false },
	[VHOST_GET_VRING_BASE] = { get_vring_base, 8, 0, true },
	[VHOST_SET_VRING_KICK] = { set_vring_kick, 8, ANY_FDS, false },
	[VHOST_SET_VRING_CALL] = { set_vring_call, 8, ANY_FDS, false },
	[VHOST_SET_VRING_ERR] = { set_vring_err, 8, ANY_FDS, false },
	[VHOST_GET_PROTOCOL_FEATURES] = { get_protocol, 0, 0, true },
	[VHOST_SET_PROTOCOL_FEATURES] = { set_protocol, 8, 0, false },
	[VHOST_GET_QUEUE_NUM] = { get_queue_num, 0, 0, true },
	[VHOST_SET_VRING_ENABLE] = { set_vring_enable, 8, 0, false },
	[VHOST_SET_MTU] = { set_mtu, 8, 0, false },
	[VHOST_GET_IN_FLIGHT] = { set_records, ANY_BYTES, 0, true },
	[VHOST_SET_IN_FLIGHT] = { set_records, ANY_BYTES, 1, false },
	[VHOST_RESET_DEVICE] = { reset_device, 0, 0, false },
	[VHOST_GET_MAX_MEM_SLOTS] = { get_slots, 0, 0, true },
	[VHOST_ADD_MEM_REG] = { add_region, 40, 1, false },
	[VHOST_REM_MEM_REG] = { remove_region, 40, ANY_FDS, false },
	[VHOST_SET_STATUS] = { set_status, 8, 0, false },
	[VHOST_GET_STATUS] = { get_status, 0, 0, true },
};

static const struct request *find_request(const struct vhost_peer *peer)
{
	const struct vhost_msg *msg = &peer->msg;
	const struct request *request = msg->request < VHOST_N_REQUESTS ?
						&requests[msg->request] :
						NULL;

	if (request == NULL || request->handle == NULL ||
	    (request->n_bytes != ANY_BYTES &&
	     request->n_bytes != msg->n_bytes) ||
	    (request->n_fds != ANY_FDS && request->n_fds != peer->n_fds))
		return NULL;
	return request;
}

int mri_vhost_handle(struct vhost_port *port, bool *has_reply,
		     struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	struct vhost_msg *msg = &peer->msg;
	const struct request *request = find_request(peer);
	const bool needs_ack = msg->flags & VHOST_NEED_REPLY &&
			       peer->protocol & virtio_bit(VHOST_P_REPLY_ACK);
	int err;

	if (request == NULL)
		return mr_fail(reason, -EPROTO,
			       "%s: the peer's message %u is unknown or has a "
			       "wrong size",
			       name_of(port), msg->request);
	err = request->handle(port, msg, reason);
	if (err < 0 && (request->has_reply || !needs_ack))
		return err;
	if (!request->has_reply && needs_ack) {
		if (err < 0)
			mri_vhost_complain(port, reason->text);
		reply_u64(msg, err < 0);
	}
	msg->flags = VHOST_VERSION | VHOST_REPLY;
	*has_reply = request->has_reply || needs_ack;
	return 0;
}
