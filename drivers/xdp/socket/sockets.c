/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets and their rings.
 *
 * The first socket of a port registers the region's memory, from address 0 to
 * the first gap, so that descriptors have addresses of the region; the others
 * share this registration. Another port registers the memory again: the kernel
 * does not share memory between zero-copy and copy sockets, and a second
 * registration costs little (drivers/xdp/README.md, Limits).
 *
 * A queue stays bound while its fd or a mapping of its rings exists, even in a
 * forked child: hence mr_fd_guard(), MADV_DONTFORK, and munmap() before
 * close(). The kernel releases it later: until then, bind() fails with EBUSY,
 * and is retried.
 *
 * Source: linux/Documentation/networking/af_xdp.rst; net/xdp/xsk.c,
 * xdp_umem.c (bind flags are forbidden with XDP_SHARED_UMEM).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

enum {
	FAMILY_XDP = 44, /* AF_XDP */
	BIND_WAIT_MS = 1000,
	BIND_STEP_MS = 2,
	CLOSE_WAIT_MS = 1000,
};

static int set_option(int fd, int option, const void *value, socklen_t n_bytes)
{
	return setsockopt(fd, SOL_XSK, option, value, n_bytes) < 0 ? -errno : 0;
}

static int map_ring(struct xring *ring, int fd, uint64_t page_offset,
		    const struct xsk_ring_offsets *offsets, uint32_t n_entries,
		    size_t entry_bytes)
{
	const size_t n_bytes = offsets->desc + n_entries * entry_bytes;
	uint8_t *map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, fd, (off_t)page_offset);

	if (map == MAP_FAILED)
		return -errno;
	*ring = (struct xring){
		.producer = (uint32_t *)(map + offsets->producer),
		.consumer = (uint32_t *)(map + offsets->consumer),
		.flags = (uint32_t *)(map + offsets->flags),
		.entries = map + offsets->desc,
		.n_entries = n_entries,
		.mask = n_entries - 1,
		.map = map,
		.map_bytes = n_bytes,
	};
	if (madvise(map, n_bytes, MADV_DONTFORK) < 0)
		return -errno;
	return 0;
}

static void unmap_ring(struct xring *ring)
{
	if (ring->map != NULL)
		munmap(ring->map, ring->map_bytes);
	ring->map = NULL;
}

/* A zero-copy device has its own ring, filled from the fill ring. */
static uint32_t n_fill_entries(const struct xdp_port *port)
{
	return 2 * port->lease.n_entries;
}

static int size_rings(const struct xdp_port *port, int fd)
{
	const uint32_t n = port->lease.n_entries;
	const uint32_t n_fill = n_fill_entries(port);
	int err;

	if ((err = set_option(fd, XSK_FILL_RING, &n_fill, sizeof(n_fill))) <
		    0 ||
	    (err = set_option(fd, XSK_COMP_RING, &n, sizeof(n))) < 0 ||
	    (err = set_option(fd, XSK_RX_RING, &n, sizeof(n))) < 0)
		return err;
	return port->lease.is_mute ? 0 :
				     set_option(fd, XSK_TX_RING, &n, sizeof(n));
}

static int map_rings(const struct xdp_port *port, int fd, struct xdp_rxq *rxq,
		     struct xdp_txq *txq)
{
	const uint32_t n = port->lease.n_entries;
	struct xsk_offsets offsets;
	socklen_t n_bytes = sizeof(offsets);
	int err;

	if (getsockopt(fd, SOL_XSK, XSK_MMAP_OFFSETS, &offsets, &n_bytes) < 0)
		return -errno;
	if ((err = map_ring(&rxq->rx, fd, XSK_PGOFF_RX, &offsets.rx, n,
			    sizeof(struct mr_frame))) < 0 ||
	    (err = map_ring(&rxq->fill, fd, XSK_PGOFF_FILL, &offsets.fill,
			    n_fill_entries(port), sizeof(uint64_t))) < 0 ||
	    (!port->lease.is_mute &&
	     (err = map_ring(&txq->tx, fd, XSK_PGOFF_TX, &offsets.tx, n,
			     sizeof(struct mr_frame))) < 0) ||
	    (err = map_ring(&txq->comp, fd, XSK_PGOFF_COMP, &offsets.comp, n,
			    sizeof(uint64_t))) < 0)
		return err;
	return 0;
}

/* Bytes of the region that other ports have locked. */
static uint64_t locked_by_others(const struct xdp_port *port)
{
	const struct mr_region *region = port->base.region;
	struct mr_segment_info info;
	uint64_t n_bytes = 0;

	if (region == NULL) /* in the broker, which has no limit */
		return 0;
	for (uint32_t i = 0; mr_region_segment(region, i, &info) == 0; i++)
		n_bytes += info.n_bytes * info.n_pins;
	return n_bytes - port->lease.n_bytes; /* pinned, not yet locked */
}

static int refuse_umem(const struct xdp_port *port, int err, uint64_t n_bytes,
		       struct mr_reason *reason)
{
	const uint64_t n_others = locked_by_others(port);
	struct rlimit limit = { 0 };

	if (err != -ENOBUFS)
		return mr_fail(reason, err == -EINVAL ? -ENOTSUP : err,
			       "%s: the kernel refuses to register %llu KiB in "
			       "chunks of %u with headroom %u: %s%s",
			       port->base.info->name,
			       (unsigned long long)(n_bytes >> 10),
			       port->lease.chunk_bytes,
			       port->lease.headroom_bytes, mr_strerror(-err),
			       err == -EINVAL ? " (headroom at most the chunk "
						"less 704 bytes)" :
						"");
	getrlimit(RLIMIT_MEMLOCK, &limit);
	return mr_fail(reason, -ENOMEM,
		       "%s: cannot lock %llu KiB of memory beside the %llu "
		       "KiB of other ports, the limit is %llu KiB: raise it "
		       "(ulimit -l %llu), or grant CAP_IPC_LOCK: " XDP_SETCAP,
		       port->base.info->name,
		       (unsigned long long)(n_bytes >> 10),
		       (unsigned long long)(n_others >> 10),
		       (unsigned long long)(limit.rlim_cur >> 10),
		       (unsigned long long)((n_bytes + n_others) >> 10));
}

/* Retries while the kernel may still count memory that is being released: of
 * the bind mode tried before, or of a program that has ended. */
static int register_patiently(int fd, const struct xsk_umem_config *config,
			      socklen_t n_bytes)
{
	const struct timespec step = { .tv_nsec = BIND_STEP_MS * 1000000 };
	int err = 0;

	for (int i = 0; i < BIND_WAIT_MS / BIND_STEP_MS; i++) {
		err = set_option(fd, XSK_UMEM_REG, config, n_bytes);
		if (err != -ENOBUFS)
			break;
		nanosleep(&step, NULL);
	}
	return err;
}

static int register_memory(struct xdp_port *port, int fd, bool is_zc,
			   struct mr_reason *reterr_reason)
{
	const uint64_t n_bytes = port->lease.n_bytes;
	uint32_t n_tx_metadata = 0;
	struct xsk_umem_config config = {
		.addr = (uintptr_t)port->base.base,
		.len = n_bytes,
		.chunk_size = port->lease.chunk_bytes,
		.headroom = port->lease.headroom_bytes,
	};
	uint64_t features;
	int err = -EINVAL;

	port->lease.tx_metadata_bytes = 0;
	if (mri_xdp_request_bytes(port, is_zc, UINT64_MAX) > 0 &&
	    mri_xdp_tx_metadata(port->dev.ifindex, &features) == 0)
		n_tx_metadata = mri_xdp_request_bytes(port, is_zc, features);
	/* Linux 6.11 requires the flag, 6.8 knows only the length. Earlier ones
	 * accept it, but then each frame with metadata is invalid. */
	if (n_tx_metadata > 0) {
		config.tx_metadata_len = n_tx_metadata;
		config.flags = XSK_UMEM_TX_METADATA_LEN;
		err = register_patiently(fd, &config, sizeof(config));
		if (err == -EINVAL) {
			config.flags = 0;
			err = register_patiently(fd, &config, sizeof(config));
		}
		port->lease.tx_metadata_bytes = err == 0 ? n_tx_metadata : 0;
		config.tx_metadata_len = 0;
		config.flags = 0;
	}
	if (err == -EINVAL) /* without the last member, as before 6.8 */
		err = register_patiently(
			fd, &config,
			offsetof(struct xsk_umem_config, tx_metadata_len));
	if (err < 0)
		return refuse_umem(port, err, n_bytes, reterr_reason);
	return 0;
}

/* Retries while the last owner's release is under way. */
static int bind_patiently(int fd, const struct xsk_address *address)
{
	const struct timespec step = { .tv_nsec = BIND_STEP_MS * 1000000 };

	for (int i = 0; i < BIND_WAIT_MS / BIND_STEP_MS; i++) {
		if (bind(fd, (const struct sockaddr *)address,
			 sizeof(*address)) == 0)
			return 0;
		if (errno != EBUSY)
			return -errno;
		nanosleep(&step, NULL);
	}
	return -EBUSY;
}

static int bind_queue(struct xdp_port *port, uint32_t i,
		      struct xdp_bind_mode bind_mode)
{
	struct xsk_address address = {
		.family = FAMILY_XDP,
		.ifindex = port->dev.ifindex,
		.queue_id = port->lease.first_queue + i,
	};

	if (i > 0) {
		address.flags = XSK_SHARED_UMEM;
		address.shared_umem_fd = (uint32_t)port->lease.sockets[0];
	} else {
		address.flags =
			(uint16_t)(XSK_NEED_WAKEUP |
				   (bind_mode.is_zc ? XSK_ZEROCOPY : XSK_COPY) |
				   (bind_mode.max_segs > 1 ? XSK_USE_SG : 0));
	}
	return bind_patiently(port->lease.sockets[i], &address);
}

/* Optional: it only makes sending faster. */
static void set_budget(const struct xdp_port *port, int fd)
{
	const uint32_t budget = port->options.budget != 0 ?
					port->options.budget :
					port->lease.n_entries;

	(void)set_option(fd, XSK_MAX_TX_BUDGET, &budget, sizeof(budget));
}

static int refuse_bind(const struct xdp_port *port, uint32_t i, int err,
		       struct xdp_bind_mode bind_mode, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	const uint32_t queue = port->lease.first_queue + i;

	if (err == -EBUSY)
		return mr_fail(reason, err,
			       "%s: queue %u is in use by another AF_XDP "
			       "socket; end that program, or take another "
			       "queue (start=)",
			       name, queue);
	if (err == -EOPNOTSUPP && bind_mode.is_zc)
		return mr_fail(reason, -ENOTSUP,
			       "%s: driver '%s' has no zero-copy here", name,
			       port->dev.driver);
	if (err == -EINVAL || err == -EOPNOTSUPP)
		return mr_fail(reason, -ENOTSUP,
			       "%s: queue %u: the kernel or the driver '%s' "
			       "refuses this mode: %s",
			       name, queue, port->dev.driver,
			       mr_strerror(-err));
	return mr_fail(reason, err == -EPERM ? -EPERM : -EIO,
		       "%s: cannot bind to queue %u: %s", name, queue,
		       mr_strerror(-err));
}

static int open_socket(struct xdp_port *port, uint32_t i,
		       struct mr_reason *reason)
{
	const int fd =
		mr_fd_guard(socket(FAMILY_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));

	if (fd >= 0) {
		port->lease.sockets[i] = fd;
		return 0;
	}
	if (errno == EPERM)
		return mr_fail(reason, -EPERM,
			       "%s: capability CAP_NET_RAW is missing: run as "
			       "root, or " XDP_SETCAP,
			       port->base.info->name);
	if (errno == EAFNOSUPPORT)
		return mr_fail(reason, -ENOTSUP,
			       "%s: this kernel has no AF_XDP "
			       "(CONFIG_XDP_SOCKETS)",
			       port->base.info->name);
	return mr_fail(reason, -EIO, "%s: cannot make an AF_XDP socket: %s",
		       port->base.info->name, mr_strerror(errno));
}

static void set_queue(struct xdp_port *port, uint32_t i,
		      struct xdp_bind_mode bind_mode)
{
	struct xdp_rxq *rxq = &port->rxqs[i];
	struct xdp_txq *txq = &port->txqs[i];

	rxq->fd = txq->fd = port->lease.sockets[i];
	rxq->base.queue.fd = txq->base.queue.fd = port->lease.sockets[i];
	rxq->base.n_min = bind_mode.max_segs > 1 ? MR_MAX_SEGS : 1;
	/* A zero-copy device holds buffers between the two rings. */
	rxq->n_bufs = port->lease.n_entries * (bind_mode.is_zc ? 2 : 1);
	rxq->meta_magic = port->lease.meta_magic;
	txq->n_reaped = txq->tx.cached; /* nothing is outstanding */
	txq->n_registered_bytes = port->lease.n_bytes;
	txq->n_front_bytes = port->lease.tx_metadata_bytes;
	txq->max_segs = bind_mode.max_segs;
	txq->has_csum = port->lease.tx_metadata_bytes > 0 &&
			port->is_software && port->rxqs[0].has_partial_csums;
}

static int refuse_rings(const struct xdp_port *port, int err,
			struct mr_reason *reason)
{
	return mr_fail(reason, err, "%s: cannot make rings of %u entries: %s",
		       port->base.info->name, port->lease.n_entries,
		       mr_strerror(-err));
}

/* What needs a capability. */
int mri_xdp_socket_make(struct xdp_port *port, uint32_t i, bool is_zc,
			struct mr_reason *reason)
{
	int err =
		port->lease.sockets[i] >= 0 ? 0 : open_socket(port, i, reason);

	if (err == 0 && i == 0)
		err = register_memory(port, port->lease.sockets[0], is_zc,
				      reason);
	if (err < 0)
		return err;
	err = size_rings(port, port->lease.sockets[i]);
	if (err < 0)
		return refuse_rings(port, err, reason);
	set_budget(port, port->lease.sockets[i]);
	return 0;
}

/* Done by the process that has the pool. */
static int use_socket(struct xdp_port *port, uint32_t i,
		      struct xdp_bind_mode bind_mode, struct mr_reason *reason)
{
	struct xdp_rxq *rxq = &port->rxqs[i];
	const int err =
		map_rings(port, port->lease.sockets[i], rxq, &port->txqs[i]);

	if (err < 0)
		return refuse_rings(port, err, reason);
	set_queue(port, i, bind_mode);
	if (mri_xdp_rx_fill(rxq) < 0)
		return mr_fail(reason, -ENOMEM,
			       "%s: the pool has not the %u pages that its "
			       "rings need: give it more pages",
			       port->base.info->name,
			       rxq->n_bufs * port->lease.n_queues);
	return 0;
}

int mri_xdp_sockets_take(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_bind_mode bind_mode = {
		.is_zc = port->lease.n_zc_queues > 0,
		.max_segs = port->lease.max_segs,
	};
	int err = 0;

	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++) {
		err = map_rings(port, port->lease.sockets[i], &port->rxqs[i],
				&port->txqs[i]);
		set_queue(port, i, bind_mode);
		port->rxqs[i].is_busy = port->txqs[i].is_busy =
			port->lease.is_busy;
	}
	return err < 0 ? refuse_rings(port, err, reason) : 0;
}

int mri_xdp_socket_bind(struct xdp_port *port, uint32_t i,
			struct xdp_bind_mode bind_mode, bool *ret_is_final,
			struct mr_reason *reason)
{
	const int err = bind_queue(port, i, bind_mode);

	if (err == 0) {
		port->lease.n_zc_queues = bind_mode.is_zc ? i + 1 : 0;
		return 0;
	}
	*ret_is_final = err == -EBUSY || err == -EPERM;
	return refuse_bind(port, i, err, bind_mode, reason);
}

int mri_xdp_sockets_use(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_bind_mode bind_mode = {
		.is_zc = port->lease.n_zc_queues > 0,
		.max_segs = port->lease.max_segs,
	};
	int err = 0;

	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++) {
		err = use_socket(port, i, bind_mode, reason);
		if (err == 0)
			(void)recvfrom(port->lease.sockets[i], NULL, 0,
				       MSG_DONTWAIT, NULL, NULL);
	}
	return err;
}

/*
 * Fill the ring before the bind, when a zero-copy device takes its first
 * buffers; it looks for more only when it is woken. With an empty ring, the
 * first frames were lost and not counted (igb, Linux 7.2). A broker binds
 * first, so its client wakes the device.
 */
int mri_xdp_socket_open(struct xdp_port *port, uint32_t i,
			struct xdp_bind_mode bind_mode, bool *ret_is_final,
			struct mr_reason *reason)
{
	int err = mri_xdp_socket_make(port, i, bind_mode.is_zc, reason);

	*ret_is_final = true;
	if (err == 0 && port->base.pool != NULL)
		err = use_socket(port, i, bind_mode, reason);
	if (err == 0)
		err = mri_xdp_socket_bind(port, i, bind_mode, ret_is_final,
					  reason);
	return err;
}

int mri_xdp_sockets_open(struct xdp_port *port, struct xdp_bind_mode bind_mode,
			 bool *ret_is_final, struct mr_reason *reterr_reason)
{
	int err = 0;

	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++)
		err = mri_xdp_socket_open(port, i, bind_mode, ret_is_final,
					  reterr_reason);
	if (err < 0) {
		mri_xdp_sockets_close(port);
		mri_xdp_sockets_wait(port);
		mri_xdp_sockets_take_back(port);
		return err;
	}
	port->lease.max_segs = bind_mode.max_segs;
	return 0;
}

/* Bind to a queue in copy mode, with a separate page, and close it again. */
static void wait_for_queue(const struct xdp_port *port, uint32_t i, void *page)
{
	const uint32_t n = 2;
	const int fd = socket(FAMILY_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	const struct xsk_address address = {
		.family = FAMILY_XDP,
		.flags = XSK_COPY,
		.ifindex = port->dev.ifindex,
		.queue_id = port->lease.first_queue + i,
	};
	const struct xsk_umem_config config = { .addr = (uintptr_t)page,
						.len = 4096,
						.chunk_size = 4096 };

	if (fd < 0)
		return;
	if (set_option(fd, XSK_UMEM_REG, &config,
		       offsetof(struct xsk_umem_config, tx_metadata_len)) ==
		    0 &&
	    set_option(fd, XSK_FILL_RING, &n, sizeof(n)) == 0 &&
	    set_option(fd, XSK_COMP_RING, &n, sizeof(n)) == 0 &&
	    set_option(fd, XSK_RX_RING, &n, sizeof(n)) == 0)
		(void)bind_patiently(fd, &address);
	close(fd);
}

/* A zero-copy device may write to our memory after close(), until the queue can
 * be bound again. */
static void wait_for_queues(const struct xdp_port *port, uint32_t first)
{
	void *page = MAP_FAILED;

	if (port->lease.n_zc_queues > first)
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	for (uint32_t i = first; i < port->lease.n_zc_queues; i++)
		wait_for_queue(port, i, page);
	munmap(page, 4096);
}

void mri_xdp_sockets_wait(struct xdp_port *port)
{
	wait_for_queues(port, 0);
	port->lease.n_zc_queues = 0;
}

/*
 * Copy mode does not copy on every device: with IFF_TX_SKB_NO_LINEAR
 * (virtio_net), skbs point to our pages, which must not change before they
 * leave. mri_xdp_sockets_wait() waits for zero-copy queues.
 */
static void wait_for_completions(struct xdp_port *port)
{
	const uint64_t deadline_ns = mr_ctx_now_ns(port->base.ctx) +
				     CLOSE_WAIT_MS * UINT64_C(1000000);
	uint32_t n = 0;

	if (port->lease.n_zc_queues > 0 || port->base.pool == NULL)
		return;
	for (uint32_t i = 0; i < port->lease.n_queues; i++)
		n += mri_xdp_tx_wait(&port->txqs[i], deadline_ns);
	if (n > 0)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: the kernel has not sent %u buffers within %d ms; "
		       "they are reused now, so what leaves may be damaged",
		       port->base.info->name, n, CLOSE_WAIT_MS);
}

static void unmap_rings(struct xdp_port *port, uint32_t i)
{
	unmap_ring(&port->rxqs[i].rx);
	unmap_ring(&port->rxqs[i].fill);
	unmap_ring(&port->txqs[i].tx);
	unmap_ring(&port->txqs[i].comp);
}

void mri_xdp_sockets_leave(struct xdp_port *port)
{
	for (uint32_t i = 0; i < port->lease.n_queues; i++)
		unmap_rings(port, i);
}

static void take_back(struct xdp_port *port, uint32_t i)
{
	/* NULL: the broker's queue, or opening failed. */
	if (port->rxqs[i].posted != NULL)
		mri_xdp_rx_take_back(&port->rxqs[i]);
	if (port->txqs[i].left != NULL)
		mri_xdp_tx_take_back(&port->txqs[i]);
}

void mri_xdp_sockets_close(struct xdp_port *port)
{
	wait_for_completions(port);
	for (uint32_t i = 0; i < port->lease.n_queues; i++) {
		mri_xdp_tx_note_left(&port->txqs[i]);
		unmap_rings(port, i);
	}
	/* The first one last: the others share its registration. */
	for (uint32_t i = port->lease.n_queues; i-- > 0;) {
		mr_fd_close(port->lease.sockets[i]);
		port->lease.sockets[i] = -1;
	}
}

void mri_xdp_sockets_take_back(struct xdp_port *port)
{
	for (uint32_t i = 0; i < port->lease.n_queues; i++)
		take_back(port, i);
}

void mri_xdp_socket_close(struct xdp_port *port, uint32_t i)
{
	mri_xdp_tx_note_left(&port->txqs[i]);
	unmap_rings(port, i);
	mr_fd_close(port->lease.sockets[i]);
	port->lease.sockets[i] = -1;
	wait_for_queues(port, i);
	if (port->lease.n_zc_queues > i)
		port->lease.n_zc_queues = i;
	take_back(port, i);
}
