/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the vhost driver: the device side of virtio-net. The driver
 * runs in a virtual machine or in another process.
 *
 *     guest's tx ring --> rx queue: copies each frame into our pages
 *     guest's rx ring <-- tx queue: copies each frame out of them
 *
 * mr_port_poll() owns the socket, the table of the peer's memory, and the state
 * of the queues; a burst owns its ring. Before poll changes anything that
 * bursts read, it stops the queue: it changes the state and waits until no
 * burst is inside.
 *
 * Everything that the peer and its guest write is untrusted input: a descriptor
 * is loaded once, and checked before it is used.
 */
#ifndef VIRTIO_VHOST_H
#define VIRTIO_VHOST_H

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>

#include "vhost_listen.h"
#include "vhost_user.h"
#include "virtio_ring.h"

/* Before virtio 1.0, without merging. */
enum { VHOST_OLD_HEADER_BYTES = 10 };

/* A piece of a peer's file. */
struct vhost_mapping {
	void *start; /* of the blocks that have the piece; NULL: none */
	uint64_t n_bytes;
	/* For a process to which the port is handed over. */
	int fd;
	uint64_t offset; /* of the piece */
};

/* A piece of the peer's memory, mapped here. */
struct vhost_area {
	uint64_t guest_addr; /* in descriptors */
	uint64_t n_bytes;
	uint8_t *bytes;     /* at guest_addr */
	uint64_t user_addr; /* in messages */
	struct vhost_mapping mapping;
};

struct vhost_memory {
	uint32_t n;
	struct vhost_area areas[VHOST_MAX_SLOTS];
};

/*
 * Translate a guest address. *n_bytes shrinks to what is contiguous. NULL: the
 * address is not mapped.
 */
static inline uint8_t *vhost_find(const struct vhost_memory *memory,
				  uint64_t addr, uint32_t *n_bytes)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_area *area = &memory->areas[i];
		const uint64_t offset = addr - area->guest_addr;

		if (offset >= area->n_bytes)
			continue;
		if (*n_bytes > area->n_bytes - offset)
			*n_bytes = (uint32_t)(area->n_bytes - offset);
		return area->bytes + offset;
	}
	return NULL;
}

/* The bitmap of written pages, while the guest migrates. */
struct vhost_log {
	uint8_t *bits;
	uint64_t n_bytes;             /* of them */
	struct vhost_mapping mapping; /* none: no migration */
};

/* How to signal eventfds of peers; of all ports of a context. */
struct vhost_signal {
	struct completions *completions; /* NULL: by write() */
	int fd;                          /* a file of a byte */
	uint32_t n_ports;
};

/*
 * What a queue has in flight, in memory that the VMM keeps for the next back
 * end if this one dies. Descriptors' states follow, at `places` if split.
 */
struct vhost_record {
	uint64_t features;
	uint16_t version;   /* 0: says nothing; 1 */
	uint16_t n_entries; /* of the descriptors' states */
	uint16_t first;     /* of the last batch; packed: free state */
	union {
		uint16_t n_used;    /* split */
		uint16_t old_first; /* packed */
	};
	/* Packed: where buffers are used next, and where the last ones are
	 * while these are being shown; one store changes it. */
	uint64_t places;
	uint64_t padding;
};

/* Of all queues. */
struct vhost_records {
	uint8_t *bytes; /* the first one */
	uint64_t n_bytes;
	uint32_t n_queues, queue_size;
	struct vhost_mapping mapping;
};

enum vhost_state {
	VHOST_STOPPED, /* the ring belongs to mr_port_poll() */
	VHOST_RUNS,
	VHOST_BROKEN, /* after invalid descriptors, until the peer stops it */
	VHOST_SHARES, /* tx: bursts use the ring at `shared`, under its lock */
};

struct vhost_port;

/* One ring of the peer. */
struct vhost_ring {
	/* Hot. */
	struct virtio_vq vq; /* kick_fd calls the driver */
	uint32_t state;      /* atomic, enum vhost_state */
	uint32_t lock;       /* atomic: of bursts that share it */
	struct vhost_ring *shared;
	const struct vhost_signal *signal;
	bool has_fences; /* the kernel has no membarrier() for us */
	bool is_armed;
	uint32_t header_bytes;
	const struct vhost_memory *memory;
	const struct vhost_log *log; /* NULL: no migration */
	struct vhost_record *record; /* NULL: none */
	/* Cold: set by messages. */
	struct vhost_vring_addr addr;
	struct vhost_port *port;
	uint32_t number;
	uint32_t position; /* where the next start resumes */
	bool has_addr, has_kick, has_position, is_enabled;
	bool must_resume; /* where the record says */
	/* As mr_port_poll() sees it. */
	bool is_running, is_broken;
	int driver_fd; /* the driver kicks; -1: none, it is polled */
	int error_fd;  /* reports a broken ring; -1: none */
	int wake_fd;   /* wakes the sleeping thread */
	int epoll_fd;  /* of driver_fd and wake_fd */
};

struct vhost_rxq {
	_Alignas(64) struct mr_rxq base;
	struct vhost_ring ring;
	uint64_t features; /* negotiated */
	uint8_t *memory;   /* the region */
	uint32_t page_bytes, headroom_bytes, room_bytes;
	uint32_t n_segs;   /* at most, in a frame */
	uint64_t rarp_mac; /* atomic: to be announced; 0: none */
};

struct vhost_txq {
	_Alignas(64) struct mr_txq base;
	struct vhost_ring ring;
	uint64_t features;  /* negotiated */
	uint8_t *memory;    /* the region */
	bool is_short;      /* the last burst found too few buffers */
	uint32_t max_bytes; /* atomic: of an unsegmented frame */
};

struct vhost_options {
	uint32_t n_queues;
	uint32_t packed, in_order, sg, csum, tso; /* words */
	uint32_t mtu_bytes;
	uint32_t memory_mib; /* of a peer, at most */
	bool is_client;
	bool is_unsealed; /* accept tmpfs and hugetlbfs */
};

/* The connection. */
struct vhost_peer {
	int fd; /* -1: no peer */
	uint64_t features, protocol;
	uint8_t status;  /* VIRTIO_STATUS_* */
	bool has_worked; /* both rings of its first pair ran */
	bool has_erred;  /* one of its errors was logged */
	struct vhost_memory memory;
	struct vhost_log log;
	struct vhost_records records;
	struct vhost_msg msg; /* being received */
	uint32_t n_received;
	int fds[VHOST_MAX_REGIONS]; /* that came with it */
	uint32_t n_fds;
};

struct vhost_port {
	struct mr_port base;
	struct vhost_options options;
	struct sockaddr_un addr;
	struct vhost_listener listener; /* server only */
	int timer_fd;                   /* client only: when to retry */
	int break_fd;                   /* a burst broke its ring */
	struct vhost_signal *signal;
	uint64_t offered;
	struct vhost_peer peer;
	bool has_complained;
	struct vhost_rxq *rxqs;
	struct vhost_txq *txqs;
	uint64_t running; /* bits: tx rings, as shared now */
	uint32_t is_up;   /* atomic */
};

static inline bool vhost_has(uint64_t features, uint32_t feature)
{
	return features & virtio_bit(feature);
}

/* The ring of a virtqueue. Even numbers: the driver's rx. */
static inline struct vhost_ring *vhost_ring_of(struct vhost_port *port,
					       uint32_t number)
{
	return number % 2 == 0 ? &port->txqs[number / 2].ring :
				 &port->rxqs[number / 2].ring;
}

/* vhost_ring.c: wait for the lock of the ring that this one shares. */
struct vhost_ring *mri_vhost_enter_shared(struct vhost_ring *ring);

/* A burst marks the ring as busy. Returns what the burst may do there. */
static inline enum vhost_state vhost_mark(struct vhost_ring *ring)
{
	virtio_enter(&ring->vq);
	if (ring->has_fences)
		__atomic_store_n(&ring->vq.is_busy, 1, __ATOMIC_SEQ_CST);
	return (enum vhost_state)__atomic_load_n(&ring->state,
						 __ATOMIC_SEQ_CST);
}

/*
 * Enter the ring for a burst; virtio_leave() leaves it. False: the ring does
 * not run, and the burst must not touch it.
 */
static inline bool vhost_enter(struct vhost_ring *ring)
{
	if (vhost_mark(ring) == VHOST_RUNS)
		return true;
	virtio_leave(&ring->vq);
	return false;
}

/*
 * The same for tx, where bursts of several queues may have to share a ring.
 * Returns the ring, or NULL. vhost_leave_tx() gets both.
 */
static inline struct vhost_ring *vhost_enter_tx(struct vhost_ring *ring)
{
	return vhost_enter(ring) ? ring : mri_vhost_enter_shared(ring);
}

static inline void vhost_leave_tx(struct vhost_ring *ring,
				  struct vhost_ring *used)
{
	if (ring->shared != NULL)
		__atomic_store_n(&used->lock, 0, __ATOMIC_RELEASE);
	virtio_leave(&ring->vq);
}

/*
 * Whether the driver has made nothing more available. Sequentially consistent,
 * as is the store that asks for a kick before this.
 */
static inline bool vhost_is_empty(const struct virtio_vq *vq,
				  const bool is_packed)
{
	const uint32_t both = VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;
	uint64_t word;

	if (!is_packed)
		return __atomic_load_n(&vq->avail->idx, __ATOMIC_SEQ_CST) ==
		       vq->n_avail;
	word = __atomic_load_n(&vq->packed[vq->n_avail & vq->mask].word,
			       __ATOMIC_SEQ_CST);
	return ((uint32_t)(word >> 48) & both) !=
	       virtio_avail_flags(vq, vq->n_avail);
}

/*
 * Record that the buffers [old, now) are used; in a packed ring before these
 * are shown to the driver, and then that they are: [now, now). What counts is
 * the order of the stores in this thread, as it may be killed between them.
 */
static inline void vhost_record_used(const struct virtio_vq *vq,
				     struct vhost_record *record, uint32_t old,
				     uint32_t now, const bool is_packed)
{
	if (is_packed)
		__atomic_store_n(
			&record->places,
			(now & vq->mask) | (uint64_t)(old & vq->mask) << 16 |
				(uint64_t)!virtio_is_odd_lap(vq, now) << 32 |
				(uint64_t)!virtio_is_odd_lap(vq, old) << 40,
			__ATOMIC_RELEASE);
	else
		__atomic_store_n(&record->n_used, (uint16_t)now,
				 __ATOMIC_RELEASE);
}

/* vhost_memory.c */
/*
 * Map the memory that a message describes, and add it. The caller keeps fd. 0,
 * or -errno with a reason.
 */
int mri_vhost_memory_add(struct vhost_port *port,
			 const struct vhost_region *region, int fd,
			 struct mr_reason *reason);
/*
 * Map n_bytes at an offset of a file that cannot shrink. The caller keeps fd.
 * NULL, with *ret_err and a reason: it may not be mapped.
 */
uint8_t *mri_vhost_map(const struct vhost_port *port, int fd, uint64_t offset,
		       uint64_t n_bytes, struct vhost_mapping *ret_mapping,
		       int *ret_err, struct mr_reason *reason);
/* There may be none. */
void mri_vhost_unmap(struct vhost_mapping *mapping);
/* -ENOENT: there is no such region. */
int mri_vhost_memory_remove(struct vhost_memory *memory,
			    const struct vhost_region *region);
void mri_vhost_memory_clear(struct vhost_memory *memory);
/* Translate the user address of n_bytes; NULL: not in one piece. */
void *mri_vhost_memory_at(const struct vhost_memory *memory, uint64_t user_addr,
			  uint64_t n_bytes);

/* vhost_signal.c */
/* NULL: no memory. */
struct vhost_signal *mri_vhost_signal_get(struct vhost_port *port);
void mri_vhost_signal_put(struct vhost_port *port);
/* Add 1 to an eventfd of the peer; -1: it has none. Never waits. */
void mri_vhost_signal(const struct vhost_signal *signal, int event_fd);

/* vhost_log.c */
int mri_vhost_log_set(struct vhost_port *port, int fd, uint64_t n_bytes,
		      uint64_t offset, struct mr_reason *reason);
void mri_vhost_log_clear(struct vhost_log *log);
/* For a ring with a log: bytes of the guest, or of the ring, were written. */
void mri_vhost_log_bytes(const struct vhost_ring *ring, const void *bytes,
			 uint64_t n_bytes);
void mri_vhost_log_ring(const struct vhost_ring *ring);

/* vhost_in_flight.c */
/* Make records as the VMM asks; their fd goes into peer.fds. */
int mri_vhost_records_make(struct vhost_port *port,
			   struct vhost_in_flight *asked,
			   struct mr_reason *reason);
/* Use the records in a file; rings resume where these say. Rings are stopped.
 */
int mri_vhost_records_set(struct vhost_port *port, int fd,
			  const struct vhost_in_flight *sent,
			  struct mr_reason *reason);
void mri_vhost_records_clear(struct vhost_port *port);
/* A ring starts: resume it, and record from there on. */
void mri_vhost_record_start(struct vhost_ring *ring);
/* Record on, where another process did. */
void mri_vhost_record_take(struct vhost_ring *ring);
/* The ring has ended well: the next start goes by its messages. */
void mri_vhost_record_end(struct vhost_ring *ring);

/* vhost_ring.c */
int mri_vhost_rings_open(struct vhost_port *port, struct mr_reason *reason);
void mri_vhost_rings_close(struct vhost_port *port);
/* Stop it, wait until no burst is inside. */
void mri_vhost_ring_stop(struct vhost_ring *ring);
/* Start it if everything that it needs has been set, and the port is ours. */
void mri_vhost_ring_start(struct vhost_port *port, struct vhost_ring *ring);
/*
 * Run from here on, where another process has stopped, and leave what the
 * driver sees as it is. False: it cannot run.
 */
bool mri_vhost_ring_take(struct vhost_ring *ring);
void mri_vhost_rings_stop(struct vhost_port *port);
void mri_vhost_rings_start(struct vhost_port *port);
/*
 * After rings were started or stopped: a driver may have enabled fewer than the
 * port has queues. Then all tx queues share those that run.
 */
void mri_vhost_rings_share(struct vhost_port *port);
/* Break the ring: a burst found an invalid descriptor, and leaves it. */
void mri_vhost_ring_break(struct vhost_ring *ring);
/* Forget what the last peer set. The ring is stopped. */
void mri_vhost_ring_reset(struct vhost_ring *ring);
/* -EINVAL: the thread could not wait for this fd, which is closed then. */
int mri_vhost_ring_set_driver_fd(struct vhost_ring *ring, int fd);
/* Where it would resume, as in messages. The ring is stopped. */
uint32_t mri_vhost_ring_position(const struct vhost_ring *ring);
/* Wake the thread that sleeps on it. */
void mri_vhost_ring_wake(const struct vhost_ring *ring);
/* A burst runs: disable kicks. */
void mri_vhost_ring_disarm(struct vhost_ring *ring);
int mri_vhost_rx_arm(struct mr_queue *queue);
int mri_vhost_tx_arm(struct mr_queue *queue);

/* vhost_request.c */
/*
 * Handle the received message. 0, or -errno with a reason: disconnect the peer.
 * *has_reply: the message is now the reply.
 */
int mri_vhost_handle(struct vhost_port *port, bool *has_reply,
		     struct mr_reason *reason);
/* Set the port's offloads and limits after a change of features. */
void mri_vhost_apply_features(struct vhost_port *port, uint64_t features);

/* vhost_peer.c */
int mri_vhost_peer_open(struct vhost_port *port, const char *path,
			struct mr_reason *reason);
void mri_vhost_peer_close(struct vhost_port *port);
/* Go on with another process's peer; -1: it had none. -errno. */
int mri_vhost_peer_take(struct vhost_port *port, int fd);
/* Close the fds of the message. */
void mri_vhost_peer_drop_fds(struct vhost_peer *peer);
void mri_vhost_say_no_memory(struct vhost_port *port);
/* Log an error of the peer that does not end the connection: the first one. */
void mri_vhost_complain(struct vhost_port *port, const char *text);
uint32_t mri_vhost_poll(struct mr_port *base);

/* vhost_hand_over.c: as in struct mr_hand_over_ops. */
int mri_vhost_offer(struct mr_port *base, struct mr_parcel *parcel,
		    struct mr_reason *reason);
int mri_vhost_give(struct mr_port *base, struct mr_parcel *parcel,
		   struct mr_reason *reason);
int mri_vhost_resume(struct mr_port *base, struct mr_parcel *parcel,
		     struct mr_reason *reason);

/* vhost_rx.c, vhost_tx.c */
mr_rx_burst_fn mri_vhost_rx_burst;
mr_tx_burst_fn mri_vhost_tx_burst;

#endif
