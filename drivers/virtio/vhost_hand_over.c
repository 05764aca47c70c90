/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand over a port with its peer to another process. The peer notices nothing:
 * what it sends meanwhile waits in the socket.
 *
 * Until the workers stop, the old process handles the peer's messages, which
 * may change everything. So all but the listener is handed over at the end, as
 * the messages that lead to this state, with their fds. The new process handles
 * them as the peer's, so nothing is trusted more: memory is mapped only if it
 * may be. What messages cannot say, such as positions, is beside them.
 *
 * Bursts finish all that they take, so no buffer is in flight.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "vhost.h"
#include "virtio_parcel.h"

enum {
	MESSAGE_LAYOUT = 1, /* of struct vhost_msg, as far as it has bytes */
	RING_LAYOUT = 1,    /* of struct ring_state */
	PEER_LAYOUT = 1,    /* of struct peer_state */
};

struct ring_state {
	uint32_t position;
	uint16_t n_avail, n_used;
	uint8_t has_position, must_resume, is_running;
	uint8_t is_broken, is_reported; /* that it is */
	uint8_t reserved[3];
};

struct peer_state {
	uint32_t n_messages;
	uint32_t n_fds; /* of the message that is being received */
	uint32_t max_bytes;
	uint8_t has_worked, has_erred, has_complained, is_up;
};

/* ---- the old process ---- */

int mri_vhost_offer(struct mr_port *base, struct mr_parcel *parcel,
		    struct mr_reason *reason)
{
	const struct vhost_port *port = (const struct vhost_port *)base;

	(void)reason;
	mri_vhost_listener_put(&port->listener, parcel);
	return 0;
}

struct messages {
	struct mr_parcel *parcel;
	uint32_t n;
};

/* Put a message with its payload; fd -1: it has none. */
static void put(struct messages *all, uint32_t request, const void *payload,
		uint32_t n_bytes, int fd)
{
	struct vhost_msg msg = { request, VHOST_VERSION, n_bytes, { 0 } };
	char name[MR_PARCEL_NAME_BYTES];

	memcpy((char *)&msg + VHOST_HEADER_BYTES, payload, n_bytes);
	mr_parcel_put(all->parcel, mr_parcel_name(name, "message", all->n),
		      MESSAGE_LAYOUT, &msg, VHOST_HEADER_BYTES + n_bytes);
	put_numbered_fd(all->parcel, "message-fd", all->n++, fd);
}

static void put_u64(struct messages *all, uint32_t request, uint64_t value)
{
	put(all, request, &value, sizeof(value), -1);
}

static void put_vring(struct messages *all, uint32_t request, uint32_t number,
		      uint32_t value)
{
	const struct vhost_vring vring = { number, value };

	put(all, request, &vring, sizeof(vring), -1);
}

static void put_eventfd(struct messages *all, uint32_t request, uint32_t number,
			int fd)
{
	const uint64_t value = number | (fd < 0 ? (uint64_t)VHOST_NO_FD : 0);

	put(all, request, &value, sizeof(value), fd);
}

static void put_memory(struct messages *all, const struct vhost_peer *peer)
{
	const struct vhost_log *log = &peer->log;
	const struct vhost_records *records = &peer->records;

	for (uint32_t i = 0; i < peer->memory.n; i++) {
		const struct vhost_area *area = &peer->memory.areas[i];
		const uint64_t slot[] = { 0, area->guest_addr, area->n_bytes,
					  area->user_addr,
					  area->mapping.offset };

		put(all, VHOST_ADD_MEM_REG, slot, sizeof(slot),
		    area->mapping.fd);
	}
	if (log->mapping.start != NULL) {
		const uint64_t place[] = { log->n_bytes, log->mapping.offset };

		put(all, VHOST_SET_LOG_BASE, place, sizeof(place),
		    log->mapping.fd);
	}
	if (records->mapping.start != NULL) {
		const struct vhost_in_flight place = {
			records->n_bytes, records->mapping.offset,
			(uint16_t)records->n_queues,
			(uint16_t)records->queue_size, 0
		};

		put(all, VHOST_SET_IN_FLIGHT, &place, sizeof(place),
		    records->mapping.fd);
	}
}

static void put_ring(struct messages *all, const struct vhost_ring *ring)
{
	const struct ring_state state = {
		.position = ring->position,
		.n_avail = ring->vq.n_avail,
		.n_used = ring->vq.n_used,
		.has_position = ring->has_position,
		.must_resume = ring->must_resume,
		.is_running = ring->is_running,
		.is_broken = ring->is_broken ||
			     __atomic_load_n(&ring->state, __ATOMIC_RELAXED) ==
				     VHOST_BROKEN,
		.is_reported = ring->is_broken,
	};
	char name[MR_PARCEL_NAME_BYTES];

	if (ring->vq.n_entries > 0)
		put_vring(all, VHOST_SET_VRING_NUM, ring->number,
			  ring->vq.n_entries);
	if (ring->has_addr)
		put(all, VHOST_SET_VRING_ADDR, &ring->addr, sizeof(ring->addr),
		    -1);
	put_eventfd(all, VHOST_SET_VRING_CALL, ring->number, ring->vq.kick_fd);
	put_eventfd(all, VHOST_SET_VRING_ERR, ring->number, ring->error_fd);
	if (ring->has_kick)
		put_eventfd(all, VHOST_SET_VRING_KICK, ring->number,
			    ring->driver_fd);
	put_vring(all, VHOST_SET_VRING_ENABLE, ring->number, ring->is_enabled);
	mr_parcel_put(all->parcel, mr_parcel_name(name, "ring", ring->number),
		      RING_LAYOUT, &state, sizeof(state));
}

/* The part of a message that has arrived. */
static void put_partial(const struct vhost_peer *peer, struct mr_parcel *parcel)
{
	mr_parcel_put(parcel, "partial", MESSAGE_LAYOUT, &peer->msg,
		      peer->n_received);
	for (uint32_t i = 0; i < peer->n_fds; i++)
		put_numbered_fd(parcel, "partial-fd", i, peer->fds[i]);
}

int mri_vhost_give(struct mr_port *base, struct mr_parcel *parcel,
		   struct mr_reason *reason)
{
	struct vhost_port *port = (struct vhost_port *)base;
	const struct vhost_peer *peer = &port->peer;
	const uint64_t mac =
		__atomic_load_n(&port->rxqs[0].rarp_mac, __ATOMIC_RELAXED);
	struct messages all = { parcel, 0 };
	struct peer_state state = {
		.n_fds = peer->n_fds,
		.max_bytes = port->txqs[0].max_bytes,
		.has_worked = peer->has_worked,
		.has_erred = peer->has_erred,
		.has_complained = port->has_complained,
		.is_up = port->is_up != 0,
	};

	(void)reason;
	put_u64(&all, VHOST_SET_PROTOCOL_FEATURES, peer->protocol);
	put_u64(&all, VHOST_SET_FEATURES, peer->features);
	put_memory(&all, peer);
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++)
		put_ring(&all, vhost_ring_of(port, i));
	if (mac != 0)
		put_u64(&all, VHOST_SEND_RARP, mac);
	put_partial(peer, parcel);
	state.n_messages = all.n;
	mr_parcel_put(parcel, "peer", PEER_LAYOUT, &state, sizeof(state));
	mr_parcel_put(parcel, "status", PEER_LAYOUT, &peer->status,
		      sizeof(peer->status));
	mr_parcel_put_fd(parcel, "peer-fd", peer->fd);
	return 0;
}

/* ---- the new process ---- */

/* Find bytes of a message, with all before its payload. */
static int get_message(struct vhost_port *port, const struct mr_parcel *parcel,
		       const char *name, struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	const void *bytes;
	size_t n;
	const int err = mr_parcel_find(parcel, name, MESSAGE_LAYOUT, &bytes, &n,
				       reason);

	if (err < 0)
		return err;
	if (n > sizeof(peer->msg))
		return mr_fail(reason, -EPROTO,
			       "%s: the state has a message that is too long",
			       port->base.info->name);
	peer->msg = (struct vhost_msg){ 0 };
	memcpy(&peer->msg, bytes, n);
	peer->n_received = (uint32_t)n;
	return 0;
}

static int replay(struct vhost_port *port, uint32_t i, struct mr_parcel *parcel,
		  struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	char name[MR_PARCEL_NAME_BYTES];
	bool has_reply; /* which nobody waits for */
	int err = get_message(port, parcel, mr_parcel_name(name, "message", i),
			      reason);

	if (err < 0)
		return err;
	peer->fds[0] = take_numbered_fd(parcel, "message-fd", i);
	peer->n_fds = peer->fds[0] >= 0;
	err = mri_vhost_handle(port, &has_reply, reason);
	mri_vhost_peer_drop_fds(peer);
	return err;
}

static int resume_ring(struct vhost_ring *ring, const struct mr_parcel *parcel,
		       struct mr_reason *reason)
{
	struct ring_state state;
	char name[MR_PARCEL_NAME_BYTES];
	const int err = mr_parcel_get(
		parcel, mr_parcel_name(name, "ring", ring->number), RING_LAYOUT,
		&state, sizeof(state), reason);

	if (err < 0)
		return err;
	ring->position = state.position;
	ring->has_position = state.has_position != 0;
	ring->must_resume = state.must_resume != 0;
	ring->is_broken = state.is_reported != 0;
	ring->vq.n_avail = state.n_avail;
	ring->vq.n_used = state.n_used;
	if (state.is_running && !mri_vhost_ring_take(ring))
		return mr_fail(reason, -EPROTO,
			       "%s: the state lacks something of ring %u",
			       ring->port->base.info->name, ring->number);
	return state.is_broken && !state.is_reported;
}

static int resume_rings(struct vhost_port *port, const struct mr_parcel *parcel,
			struct mr_reason *reason)
{
	const uint32_t n = 2 * port->options.n_queues;
	bool is_broken[2 * VIRTIO_MAX_PAIRS];

	for (uint32_t i = 0; i < n; i++) {
		const int err =
			resume_ring(vhost_ring_of(port, i), parcel, reason);

		if (err < 0)
			return err;
		is_broken[i] = err > 0;
	}
	mri_vhost_rings_share(port);
	for (uint32_t i = 0; i < n; i++)
		if (is_broken[i]) /* mr_port_poll() will report it */
			mri_vhost_ring_break(vhost_ring_of(port, i));
	return 0;
}

static int take_partial(struct vhost_port *port, struct mr_parcel *parcel,
			uint32_t n_fds, struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	const int err = get_message(port, parcel, "partial", reason);

	for (uint32_t i = 0; i < n_fds && i < VHOST_MAX_REGIONS; i++) {
		peer->fds[i] = take_numbered_fd(parcel, "partial-fd", i);
		peer->n_fds = i + 1;
	}
	return err;
}

int mri_vhost_resume(struct mr_port *base, struct mr_parcel *parcel,
		     struct mr_reason *reason)
{
	struct vhost_port *port = (struct vhost_port *)base;
	struct vhost_peer *peer = &port->peer;
	struct peer_state state;
	int err;

	if ((err = mr_parcel_get(parcel, "peer", PEER_LAYOUT, &state,
				 sizeof(state), reason)) < 0 ||
	    (err = mr_parcel_get(parcel, "status", PEER_LAYOUT, &peer->status,
				 sizeof(peer->status), reason)) < 0)
		return err;
	if (mri_vhost_peer_take(port, mr_parcel_take_fd(parcel, "peer-fd")) < 0)
		return mr_fail(reason, -EIO, "%s: cannot wait for the peer",
			       base->info->name);
	peer->has_worked = state.has_worked != 0;
	peer->has_erred = state.has_erred != 0;
	port->has_complained = state.has_complained != 0;
	port->is_up = state.is_up;
	base->info->mtu_bytes = state.max_bytes - VIRTIO_LINK_BYTES;
	for (uint32_t i = 0; i < port->options.n_queues; i++)
		port->txqs[i].max_bytes = state.max_bytes;
	for (uint32_t i = 0; i < state.n_messages && err == 0; i++)
		err = replay(port, i, parcel, reason);
	if (err == 0)
		err = resume_rings(port, parcel, reason);
	if (err == 0)
		err = take_partial(port, parcel, state.n_fds, reason);
	return err;
}
