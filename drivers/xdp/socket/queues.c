/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the port's queues, and adding queues later. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

static void free_queue(struct xdp_port *port, uint32_t i)
{
	const struct mr_ctx *ctx = port->base.ctx;

	mr_free(ctx, port->txqs[i].left);
	mr_free(ctx, port->txqs[i].times.ring);
}

/* A byte per chunk and queue. */
static uint64_t n_mark_bytes(const struct xdp_port *port)
{
	const uint64_t n = port->lease.n_bytes / port->lease.chunk_bytes *
			   port->lease.n_queues_max;

	return (n + 7) & ~UINT64_C(7);
}

/* And a word per queue. */
static uint64_t n_posted_bytes(const struct xdp_port *port)
{
	return n_mark_bytes(port) +
	       port->lease.n_queues_max * sizeof(uint64_t);
}

void mri_xdp_queues_free(struct xdp_port *port)
{
	for (uint32_t i = 0; i < port->lease.n_queues; i++)
		free_queue(port, i);
	if (port->posted != NULL)
		munmap(port->posted, n_posted_bytes(port));
}

/* How many queues the port may have at most, after channels were added. */
static uint32_t most_queues(const struct xdp_port *port)
{
	const struct xdp_options *o = &port->options;
	const uint32_t n = o->n_queues, n_most = port->dev.n_most_rx_channels;

	if (o->partial || o->prog != NULL || o->map != NULL || n_most < n)
		return n;
	return n_most < XDP_MAX_QUEUES ? n_most : XDP_MAX_QUEUES;
}

static int alloc_queue(struct xdp_port *port, uint32_t i)
{
	struct mr_port *base = &port->base;
	const struct xdp_lease *lease = &port->lease;
	const uint32_t chunk_shift =
		(uint32_t)__builtin_ctz(lease->chunk_bytes);
	struct xdp_rxq *rxq = &port->rxqs[i];
	struct xdp_txq *txq = &port->txqs[i];

	rxq->port = txq->port = port;
	rxq->chunk_shift = txq->chunk_shift = chunk_shift;
	txq->chunk_mask = lease->chunk_bytes - 1;
	rxq->tailroom_bytes = base->tailroom_bytes;
	rxq->has_partial_csums = mri_xdp_has_partial_csums(port);
	rxq->base.burst = mri_xdp_rx_burst;
	rxq->base.queue.arm = mri_xdp_rx_arm;
	txq->base.burst = mri_xdp_tx_burst;
	txq->base.queue.arm = mri_xdp_tx_arm;
	txq->unknown = (uint64_t *)(port->posted + n_mark_bytes(port)) + i;
	rxq->posted = port->posted + i * (lease->n_bytes >> chunk_shift);
	txq->left = mr_alloc(base->ctx, 0, lease->n_entries * sizeof(uint64_t));
	return txq->left == NULL ? -ENOMEM : 0;
}

/* The number of tx queues: queue i sends by the device's tx channel i. */
static uint32_t count_txqs(const struct xdp_port *port,
			   const struct xdp_netdev *dev)
{
	const uint32_t first = port->lease.first_queue;
	const uint32_t n =
		dev->n_tx_channels > first ? dev->n_tx_channels - first : 0;

	return n < port->lease.n_queues ? n : port->lease.n_queues;
}

/* What is known before the sockets are there; the segments are those from the
 * region's start that are in one piece. */
static void fill_lease(struct xdp_port *port)
{
	const struct mr_region *region = port->base.region;
	struct xdp_lease *lease = &port->lease;
	struct mr_segment_info info;
	uint64_t end = 0;

	mri_xdp_lease_sizes(port);
	/* Looked up once: tables and registration must agree. */
	lease->n_bytes = mr_region_n_contiguous_bytes(region);
	while (lease->n_segments < XDP_MAX_SEGMENTS && end < lease->n_bytes &&
	       mr_region_segment(region, lease->n_segments, &info) == 0) {
		lease->segment_bytes[lease->n_segments++] = info.n_bytes;
		end += info.n_bytes;
	}
}

/* Memory that another process can map. */
static int make_posted(struct xdp_port *port)
{
	int *fd = &port->lease.fds[XDP_LEASE_POSTED];

	*fd = mr_memfd_create("millrace-posted", 0);
	if (*fd < 0 || ftruncate(*fd, (off_t)n_posted_bytes(port)) < 0 ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	return 0;
}

static int map_posted(struct xdp_port *port)
{
	const uint64_t n_bytes = n_posted_bytes(port);
	const int fd = port->lease.fds[XDP_LEASE_POSTED];
	struct stat found;
	void *memory;

	if (fd < 0 || fstat(fd, &found) < 0 ||
	    (uint64_t)found.st_size != n_bytes ||
	    !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
		return -EPROTO;
	memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	port->posted = memory;
	return madvise(memory, n_bytes, MADV_DONTFORK) < 0 ? -errno : 0;
}

int mri_xdp_queues_take(struct xdp_port *port, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const uint32_t n = port->lease.n_queues;
	int err;

	/* Until there are queues, mri_xdp_release() must find none. */
	port->lease.n_queues = 0;
	err = mr_port_make_queues(base, port->lease.n_queues_max,
				  sizeof(port->rxqs[0]), sizeof(port->txqs[0]),
				  reason);
	if (err < 0)
		return err;
	base->info->n_rxqs = n;
	port->rxqs = (struct xdp_rxq *)base->rxqs[0];
	port->txqs = (struct xdp_txq *)base->txqs[0];
	port->lease.n_queues = n;
	err = map_posted(port);
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = alloc_queue(port, i);
	if (err < 0)
		return mr_fail(reason, err, "%s: no memory for %u queues",
			       base->info->name, n);
	base->info->n_txqs = count_txqs(port, &port->dev);
	return 0;
}

int mri_xdp_queues_alloc(struct xdp_port *port, struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	int err;

	fill_lease(port);
	if (!mr_pool_is_below(port->base.pool, port->lease.n_bytes))
		return mr_fail(reason, -EINVAL,
			       "%s: its pool lies behind a gap of its region, "
			       "and a device can only register what is in one "
			       "piece from the region's start: make that pool "
			       "the first of the region, or give it a region",
			       name);
	port->lease.n_queues_max = most_queues(port);
	err = make_posted(port);
	if (err < 0)
		return mr_fail(reason, err, "%s: no memory for %u queues", name,
			       port->options.n_queues);
	port->lease.n_queues = port->options.n_queues;
	return mri_xdp_queues_take(port, reason);
}

/* Close an unused queue, also one that was opened in part. */
static void drop_queue(struct xdp_port *port, uint32_t i)
{
	mri_xdp_socket_close(port, i);
	free_queue(port, i);
	/* It may be added again. */
	memset((uint8_t *)&port->rxqs[i] + sizeof(struct mr_rxq), 0,
	       sizeof(port->rxqs[i]) - sizeof(struct mr_rxq));
	memset((uint8_t *)&port->txqs[i] + sizeof(struct mr_txq), 0,
	       sizeof(port->txqs[i]) - sizeof(struct mr_txq));
	/* Places in the map end with their sockets. */
	if (port->prog.n_steered > i)
		port->prog.n_steered = i;
}

/* Add a queue while the sockets of the others are in use. */
static int add_queue(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_bind_mode bind_mode = {
		.is_zc = port->lease.n_zc_queues > 0,
		.max_segs = port->lease.max_segs
	};
	const uint32_t i = port->lease.n_queues;
	bool is_final;
	int err = alloc_queue(port, i);

	if (err < 0)
		mr_fail(reason, err, "%s: no memory for queue %u",
			port->base.info->name, i);
	if (err == 0)
		err = mri_xdp_times_open_queue(port, i, reason);
	if (err == 0)
		err = mri_xdp_socket_open(port, i, bind_mode, &is_final,
					  reason);
	if (err < 0) {
		drop_queue(port, i);
		return err;
	}
	if (port->rxqs[0].is_busy &&
	    mri_xdp_busy_poll(port, port->lease.sockets[i]))
		port->rxqs[i].is_busy = port->txqs[i].is_busy = true;
	port->lease.n_queues++;
	return 0;
}

int mri_xdp_add_queues(struct mr_port *base, uint32_t n,
		       struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const uint32_t n_before = port->lease.n_queues;
	struct xdp_netdev dev = port->dev;
	int err = 0;

	if (n_before + n > port->lease.n_queues_max)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: cannot add %u queues: the port was opened "
			       "for at most %u (none can be added if a broker "
			       "opened it, or with 'prog', 'map' or "
			       "'partial')",
			       base->info->name, n, port->lease.n_queues_max);
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = add_queue(port, reterr_reason);
	if (err == 0)
		err = mri_xdp_prog_steer(port, reterr_reason);
	if (err < 0) {
		while (port->lease.n_queues > n_before)
			drop_queue(port, --port->lease.n_queues);
		return err;
	}
	mri_xdp_netdev_channels(&dev);
	__atomic_store_n(&base->info->n_txqs, count_txqs(port, &dev),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&base->info->n_rxqs, port->lease.n_queues,
			 __ATOMIC_RELEASE);
	return 0;
}
