/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of the peer: where they are, when they run, and how to sleep until
 * the driver makes a buffer available.
 *
 * A queue's fd stays the same while peers come and go: it is an epoll of the
 * driver's eventfd and of one of ours. Both are edge-triggered and never read,
 * because a peer could make a read block.
 *
 * Source: virtio 1.2, 2.7, 2.8; QEMU, docs/interop/vhost-user.rst, "Ring
 * states".
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vhost.h"

/* ---- sleeping ---- */

static int watch(struct vhost_ring *ring, int operation, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	return epoll_ctl(ring->epoll_fd, operation, fd, &event);
}

int mri_vhost_ring_set_driver_fd(struct vhost_ring *ring, int fd)
{
	if (ring->driver_fd >= 0) {
		/* The peer has the file, too: closing does not remove it. */
		(void)watch(ring, EPOLL_CTL_DEL, ring->driver_fd);
		mr_fd_close(ring->driver_fd);
	}
	ring->driver_fd = fd;
	if (fd < 0 || watch(ring, EPOLL_CTL_ADD, fd) == 0)
		return 0;
	mr_fd_close(fd);
	ring->driver_fd = -1;
	return -EINVAL;
}

/* Discard old wake-ups: the caller looks at the ring next. */
static void drain(const struct vhost_ring *ring)
{
	struct epoll_event events[2];

	(void)epoll_wait(ring->epoll_fd, events, 2, 0);
}

/* Whether the driver has made something available. Asks for a kick. */
static bool enable_kicks(struct virtio_vq *vq)
{
	if (vq->is_packed)
		__atomic_store_n(vq->device_event, VIRTIO_EVENT_ENABLE << 16,
				 __ATOMIC_SEQ_CST);
	else if (vq->has_event_idx)
		__atomic_store_n(vq->avail_event, vq->n_avail,
				 __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&vq->used->flags, 0, __ATOMIC_SEQ_CST);
	return !vhost_is_empty(vq, vq->is_packed);
}

void mri_vhost_ring_disarm(struct vhost_ring *ring)
{
	struct virtio_vq *vq = &ring->vq;

	ring->is_armed = false;
	if (vq->is_packed)
		__atomic_store_n(vq->device_event, VIRTIO_EVENT_DISABLE << 16,
				 __ATOMIC_RELAXED);
	else if (vq->has_event_idx) /* just behind: 65535 entries away */
		__atomic_store_n(vq->avail_event, (uint16_t)(vq->n_avail - 1),
				 __ATOMIC_RELAXED);
	else
		__atomic_store_n(&vq->used->flags, VIRTIO_USED_NO_NOTIFY,
				 __ATOMIC_RELAXED);
}

/* 1: there is work; 0: wait for the fd. */
static int arm(struct vhost_ring *ring)
{
	int has_work = 0;

	drain(ring);
	if (!vhost_enter(ring))
		return 0; /* its start wakes the thread */
	ring->is_armed = true;
	has_work = ring->driver_fd < 0 || enable_kicks(&ring->vq);
	virtio_leave(&ring->vq);
	return has_work;
}

int mri_vhost_rx_arm(struct mr_queue *queue)
{
	return arm(&((struct vhost_rxq *)queue)->ring);
}

/*
 * Frames never stay pending, so only a burst that found too little room has to
 * wait. A driver's kick wakes only the queue of its ring, so a queue that uses
 * another one's ring polls.
 */
int mri_vhost_tx_arm(struct mr_queue *queue)
{
	struct vhost_txq *txq = (struct vhost_txq *)queue;

	if (!txq->is_short)
		return 0;
	if (__atomic_load_n(&txq->ring.state, __ATOMIC_RELAXED) == VHOST_SHARES)
		return 1;
	return arm(&txq->ring);
}

/* ---- where a ring resumes ---- */

uint32_t mri_vhost_ring_position(const struct vhost_ring *ring)
{
	const struct virtio_vq *vq = &ring->vq;

	if (ring->has_position)
		return ring->position;
	if (!vq->is_packed)
		return vq->n_avail;
	return virtio_packed_next(vq, vq->n_avail) |
	       virtio_packed_next(vq, vq->n_used) << 16;
}

/* A burst uses everything that it takes, so one position is enough. */
static void go_to_position(struct vhost_ring *ring)
{
	struct virtio_vq *vq = &ring->vq;
	const uint32_t lap = ring->position & 1u << 15 ? 0 : vq->n_entries;

	vq->n_avail = (uint16_t)ring->position;
	if (vq->is_packed)
		vq->n_avail = (uint16_t)((ring->position & vq->mask) | lap);
	vq->n_used = vq->n_avail;
	ring->has_position = false;
}

/* ---- running ---- */

/* Translate a part of the ring. NULL: not in the peer's memory or unaligned. */
static void *map_part(const struct vhost_ring *ring, uint64_t user_addr,
		      uint64_t n_bytes, uint32_t align_bytes)
{
	void *part = mri_vhost_memory_at(ring->memory, user_addr, n_bytes);

	return (uintptr_t)part % align_bytes == 0 ? part : NULL;
}

static bool map_packed(struct vhost_ring *ring)
{
	struct virtio_vq *vq = &ring->vq;

	vq->packed = map_part(ring, ring->addr.desc,
			      (uint64_t)vq->n_entries * sizeof(vq->packed[0]),
			      sizeof(vq->packed[0]));
	vq->driver_event = map_part(ring, ring->addr.avail, 4, 4);
	vq->device_event = map_part(ring, ring->addr.used, 4, 4);
	return vq->packed != NULL && vq->driver_event != NULL &&
	       vq->device_event != NULL;
}

static bool map_split(struct vhost_ring *ring)
{
	struct virtio_vq *vq = &ring->vq;
	const uint64_t n = vq->n_entries;

	vq->desc = map_part(ring, ring->addr.desc, n * sizeof(vq->desc[0]),
			    sizeof(vq->desc[0]));
	/* flags, idx, n entries, the event. */
	vq->avail = map_part(ring, ring->addr.avail, (3 + n) * 2, 2);
	vq->used = map_part(ring, ring->addr.used,
			    4 + n * sizeof(struct virtio_used_entry) + 2, 4);
	if (vq->desc == NULL || vq->avail == NULL || vq->used == NULL)
		return false;
	vq->used_event = &vq->avail->ring[n];
	vq->avail_event = (void *)((uint8_t *)(vq->used + 1) +
				   n * sizeof(struct virtio_used_entry));
	return true;
}

void mri_vhost_ring_wake(const struct vhost_ring *ring)
{
	mri_virtio_kick(ring->wake_fd);
}

static void set_state(struct vhost_ring *ring, enum vhost_state state)
{
	__atomic_store_n(&ring->state, state, __ATOMIC_RELEASE);
	mri_vhost_ring_wake(ring);
}

static bool map_ring(struct vhost_ring *ring)
{
	return ring->vq.is_packed ? map_packed(ring) : map_split(ring);
}

/* All but its positions. False: something is missing. */
static bool prepare(struct vhost_port *port, struct vhost_ring *ring)
{
	const uint64_t features = port->peer.features;
	struct virtio_vq *vq = &ring->vq;

	if (ring->is_running || ring->is_broken || !ring->has_addr ||
	    !ring->has_kick || vq->n_entries == 0 ||
	    (vhost_has(features, VHOST_F_PROTOCOL_FEATURES) &&
	     !ring->is_enabled))
		return false;
	vq->is_packed = vhost_has(features, VIRTIO_F_RING_PACKED);
	vq->has_event_idx = vhost_has(features, VIRTIO_F_EVENT_IDX);
	if (!map_ring(ring))
		return false; /* the table of memory may come later */
	ring->header_bytes = features & (virtio_bit(VIRTIO_F_VERSION_1) |
					 virtio_bit(VIRTIO_F_MRG_RXBUF)) ?
				     VIRTIO_HEADER_BYTES :
				     VHOST_OLD_HEADER_BYTES;
	ring->log = vhost_has(features, VHOST_F_LOG_ALL) &&
				    port->peer.log.mapping.start != NULL ?
			    &port->peer.log :
			    NULL;
	return true;
}

static void run(struct vhost_ring *ring)
{
	ring->is_running = true;
	set_state(ring, VHOST_RUNS);
}

void mri_vhost_ring_start(struct vhost_port *port, struct vhost_ring *ring)
{
	struct virtio_vq *vq = &ring->vq;

	if (port->base.is_away || !prepare(port, ring))
		return;
	if (ring->has_position)
		go_to_position(ring);
	if (!vq->is_packed)
		vq->n_used = __atomic_load_n(&vq->used->idx, __ATOMIC_RELAXED);
	mri_vhost_record_start(ring);
	mri_vhost_ring_disarm(ring);
	run(ring);
}

bool mri_vhost_ring_take(struct vhost_ring *ring)
{
	if (!prepare(ring->port, ring))
		return false;
	mri_vhost_record_take(ring);
	ring->is_armed = true; /* the first burst disables kicks */
	run(ring);
	return true;
}

void mri_vhost_ring_break(struct vhost_ring *ring)
{
	uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_RELAXED);

	/* Unless it was stopped meanwhile. */
	while (state != VHOST_STOPPED && state != VHOST_BROKEN &&
	       !__atomic_compare_exchange_n(&ring->state, &state, VHOST_BROKEN,
					    false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	mri_virtio_kick(ring->port->break_fd);
}

/* Whether bursts of this queue may be in a ring; NULL: in any. */
static bool may_use(const struct vhost_ring *user,
		    const struct vhost_ring *ring)
{
	return ring == NULL || user == ring || user->shared == ring;
}

static void wait_until_left(const struct vhost_ring *ring)
{
	const struct timespec nap = { .tv_nsec = 10 * 1000 };

	while (__atomic_load_n(&ring->vq.is_busy, __ATOMIC_SEQ_CST))
		(void)nanosleep(&nap, NULL);
}

static void stop_bursts(struct vhost_port *port, const struct vhost_ring *ring)
{
	const uint32_t n = 2 * port->options.n_queues;

	for (uint32_t i = 0; i < n; i++)
		if (may_use(vhost_ring_of(port, i), ring))
			__atomic_store_n(&vhost_ring_of(port, i)->state,
					 VHOST_STOPPED, __ATOMIC_SEQ_CST);
	/* After this, each burst sees the state, or we see is_busy. */
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (uint32_t i = 0; i < n; i++) {
		struct vhost_ring *user = vhost_ring_of(port, i);

		if (!may_use(user, ring))
			continue;
		wait_until_left(user);
		user->shared = NULL;
	}
}

void mri_vhost_ring_stop(struct vhost_ring *ring)
{
	stop_bursts(ring->port, ring);
	ring->is_running = false;
	if (ring->number % 2 == 0)
		ring->port->running = 0;
}

void mri_vhost_rings_stop(struct vhost_port *port)
{
	stop_bursts(port, NULL);
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++)
		vhost_ring_of(port, i)->is_running = false;
	port->running = 0;
}

void mri_vhost_rings_start(struct vhost_port *port)
{
	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++)
		mri_vhost_ring_start(port, vhost_ring_of(port, i));
}

/* ---- fewer rings than queues ---- */

struct vhost_ring *mri_vhost_enter_shared(struct vhost_ring *ring)
{
	if (vhost_mark(ring) != VHOST_SHARES) {
		virtio_leave(&ring->vq);
		return NULL;
	}
	while (__atomic_exchange_n(&ring->shared->lock, 1, __ATOMIC_ACQUIRE))
		;
	if (__atomic_load_n(&ring->shared->state, __ATOMIC_RELAXED) ==
	    VHOST_SHARES)
		return ring->shared;
	vhost_leave_tx(ring, ring->shared); /* it is broken */
	return NULL;
}

/* The tx queues that run, as bits. */
static uint64_t find_running(const struct vhost_port *port)
{
	uint64_t running = 0;

	for (uint32_t i = 0; i < port->options.n_queues; i++)
		running |= (uint64_t)port->txqs[i].ring.is_running << i;
	return running;
}

/* Let each tx queue use a running ring, under that ring's lock. */
static void share_all(struct vhost_port *port)
{
	const uint32_t n = port->options.n_queues;
	struct vhost_ring *targets[VIRTIO_MAX_PAIRS];
	uint32_t n_targets = 0;

	for (uint32_t i = 0; i < n; i++)
		if (port->txqs[i].ring.is_running)
			targets[n_targets++] = &port->txqs[i].ring;
	for (uint32_t i = 0; i < n && n_targets > 0; i++) {
		struct vhost_ring *ring = &port->txqs[i].ring;

		ring->shared = ring->is_running ? ring : targets[i % n_targets];
		set_state(ring, VHOST_SHARES);
	}
}

void mri_vhost_rings_share(struct vhost_port *port)
{
	const uint32_t n = port->options.n_queues;
	const uint64_t running = find_running(port);
	const bool is_shared = running != UINT64_MAX >> (64 - n);

	if (running == port->running)
		return;
	stop_bursts(port, NULL);
	port->running = running;
	for (uint32_t i = is_shared; i < 2 * n; i += 1 + is_shared)
		if (vhost_ring_of(port, i)->is_running)
			set_state(vhost_ring_of(port, i), VHOST_RUNS);
	if (is_shared)
		share_all(port);
}

/* ---- open and close ---- */

void mri_vhost_ring_reset(struct vhost_ring *ring)
{
	(void)mri_vhost_ring_set_driver_fd(ring, -1);
	mr_fd_close(ring->vq.kick_fd);
	mr_fd_close(ring->error_fd);
	ring->vq.kick_fd = ring->error_fd = -1;
	ring->vq.n_entries = 0;
	ring->vq.n_avail = ring->vq.n_used = 0;
	ring->has_addr = ring->has_kick = ring->is_enabled = false;
	ring->has_position = ring->is_broken = false;
}

static int open_ring(struct vhost_port *port, uint32_t number,
		     struct mr_queue *queue, struct mr_reason *reason)
{
	struct vhost_ring *ring = vhost_ring_of(port, number);

	ring->port = port;
	ring->number = number;
	ring->memory = &port->peer.memory;
	ring->signal = port->signal;
	ring->epoll_fd = mr_fd_guard(epoll_create1(EPOLL_CLOEXEC));
	ring->wake_fd = mr_fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	queue->fd = ring->epoll_fd;
	if (ring->epoll_fd < 0 || ring->wake_fd < 0 ||
	    watch(ring, EPOLL_CTL_ADD, ring->wake_fd) < 0)
		return mr_fail(reason, -EIO, "%s: no epoll or eventfd: %s",
			       port->base.info->name, mr_strerror(errno));
	return 0;
}

static void open_rxq(struct vhost_port *port, struct vhost_rxq *rxq)
{
	const struct mr_port *base = &port->base;

	rxq->base.queue.arm = mri_vhost_rx_arm;
	rxq->base.burst = mri_vhost_rx_burst;
	rxq->memory = base->base;
	rxq->page_bytes = base->page_bytes;
	rxq->headroom_bytes = base->headroom_bytes;
	rxq->room_bytes = mr_port_room_bytes(base);
	rxq->n_segs = rxq->base.n_min = base->info->has_sg ? MR_MAX_SEGS : 1;
}

int mri_vhost_rings_open(struct vhost_port *port, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const uint32_t n = port->options.n_queues;
	/* A seccomp filter may forbid it. */
	const bool can_barrier =
		syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
	int err;

	err = mr_port_make_queues(base, n, sizeof(port->rxqs[0]),
				  sizeof(port->txqs[0]), reason);
	if (err < 0)
		return err;
	port->rxqs = (struct vhost_rxq *)base->rxqs[0];
	port->txqs = (struct vhost_txq *)base->txqs[0];
	for (uint32_t i = 0; i < 2 * n; i++) {
		struct vhost_ring *ring = vhost_ring_of(port, i);

		ring->vq.kick_fd = ring->driver_fd = ring->error_fd = -1;
		ring->epoll_fd = ring->wake_fd = -1;
		ring->has_fences = !can_barrier;
	}
	for (uint32_t i = 0; i < n && err == 0; i++) {
		struct vhost_txq *txq = &port->txqs[i];

		open_rxq(port, &port->rxqs[i]);
		txq->base.queue.arm = mri_vhost_tx_arm;
		txq->base.burst = mri_vhost_tx_burst;
		txq->memory = base->base;
		txq->max_bytes = base->info->mtu_bytes + VIRTIO_LINK_BYTES;
		err = open_ring(port, 2 * i, &txq->base.queue, reason);
		if (err == 0)
			err = open_ring(port, 2 * i + 1,
					&port->rxqs[i].base.queue, reason);
	}
	return err;
}

void mri_vhost_rings_close(struct vhost_port *port)
{
	const uint32_t n = port->rxqs != NULL ? port->options.n_queues : 0;

	for (uint32_t i = 0; i < 2 * n; i++) {
		struct vhost_ring *ring = vhost_ring_of(port, i);

		mri_vhost_ring_reset(ring);
		mr_fd_close(ring->epoll_fd);
		mr_fd_close(ring->wake_fd);
	}
}
