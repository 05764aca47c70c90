/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters that others keep: the socket's, the interface's (rtnetlink), and
 * those that the interface's driver has besides (ethtool -S).
 *
 * Source: linux/include/uapi/linux/if_link.h (struct rtnl_link_stats64),
 * ethtool.h (struct ethtool_stats), linux/net/ethtool/ioctl.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "device/stats.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "xdp.h"

/*
 * The kernel writes as many values as the device has, whatever the buffer
 * holds, and channels may be added between the two questions.
 */
enum { SPARE_STATS = 4096, MAX_STATS = 65536 };

static const char *const link_names[XDP_N_LINK_COUNTS] = {
	"rx_packets",       "tx_packets",          "rx_bytes",
	"tx_bytes",         "rx_errors",           "tx_errors",
	"rx_dropped",       "tx_dropped",          "multicast",
	"collisions",       "rx_length_errors",    "rx_over_errors",
	"rx_crc_errors",    "rx_frame_errors",     "rx_fifo_errors",
	"rx_missed_errors", "tx_aborted_errors",   "tx_carrier_errors",
	"tx_fifo_errors",   "tx_heartbeat_errors", "tx_window_errors",
	"rx_compressed",    "tx_compressed",       "rx_nohandler",
};

static uint32_t count_own_stats(const char *name)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t n;
	} request = { .info = { .cmd = ETHTOOL_GSSET_INFO,
				.sset_mask = 1u << ETH_SS_STATS } };

	if (mri_xdp_netdev_ethtool(name, &request) < 0 ||
	    request.info.sset_mask == 0 || request.n > MAX_STATS)
		return 0;
	return request.n;
}

int mri_xdp_stats_open(struct xdp_port *port, struct mr_reason *reason)
{
	const struct mr_ctx *ctx = port->base.ctx;
	const char *const name = xdp_netdev_local_name(&port->dev);
	const uint32_t n = count_own_stats(name);
	struct ethtool_gstrings *strings;

	if (n == 0)
		return 0;
	port->stat_names = mr_alloc(ctx, 0, n * sizeof(port->stat_names[0]));
	strings = mr_alloc(
		ctx, 0, sizeof(*strings) + (n + SPARE_STATS) * ETH_GSTRING_LEN);
	if (strings == NULL || port->stat_names == NULL) {
		mr_free(ctx, strings);
		return mr_fail(reason, -ENOMEM,
			       "%s: no memory for the names of %u counters",
			       port->base.info->name, n);
	}
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_STATS;
	strings->len = n;
	if (mri_xdp_netdev_ethtool(name, strings) == 0 && strings->len == n)
		port->n_stats = n;
	for (uint32_t i = 0; i < port->n_stats; i++)
		memcpy(port->stat_names[i], &strings->data[i * ETH_GSTRING_LEN],
		       ETH_GSTRING_LEN);
	mr_free(ctx, strings);
	return 0;
}

/* NULL: no memory. */
static void *map_counters(int fd, size_t n_bytes)
{
	void *memory = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return NULL;
	(void)madvise(memory, n_bytes, MADV_DONTFORK);
	return memory;
}

static size_t n_passed_bytes(const struct xdp_port *port)
{
	return port->lease.n_queues * XDP_FILTER_COUNT_BYTES;
}

int mri_xdp_counters_map(struct xdp_port *port, struct mr_reason *reason)
{
	const int *fds = port->lease.fds;

	if (fds[XDP_LEASE_PASSED] >= 0)
		port->passed = map_counters(fds[XDP_LEASE_PASSED],
					    n_passed_bytes(port));
	if (fds[XDP_LEASE_UNSERVED] >= 0)
		port->unserved = map_counters(fds[XDP_LEASE_UNSERVED],
					      sizeof(*port->unserved));
	if ((fds[XDP_LEASE_PASSED] >= 0 && port->passed == NULL) ||
	    (fds[XDP_LEASE_UNSERVED] >= 0 && port->unserved == NULL))
		return mr_fail(reason, -ENOMEM,
			       "%s: no memory for the program's counters: %s",
			       port->base.info->name, mr_strerror(errno));
	return 0;
}

int mri_xdp_unserved_keep(struct xdp_port *port, int map_fd,
			  struct mr_reason *reason)
{
	int *fd = &port->lease.fds[XDP_LEASE_UNSERVED];

	if (*fd < 0)
		*fd = mr_fd_guard(fcntl(map_fd, F_DUPFD_CLOEXEC, 0));
	if (*fd < 0)
		return mr_fail(reason, -EIO, "%s: no file for a counter: %s",
			       port->base.info->name, mr_strerror(errno));
	return 0;
}

uint64_t mri_xdp_n_unserved(const struct xdp_port *port)
{
	return port->unserved == NULL ?
		       0 :
		       __atomic_load_n(port->unserved, __ATOMIC_RELAXED) -
			       port->n_unserved_before;
}

void mri_xdp_stats_close(struct xdp_port *port)
{
	mr_free(port->base.ctx, port->stat_names);
	if (port->passed != NULL)
		munmap(port->passed, n_passed_bytes(port));
	if (port->unserved != NULL)
		munmap((void *)port->unserved, sizeof(*port->unserved));
}

static uint64_t count_above(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Those of a socket; 0 where the kernel does not say. */
static struct xsk_statistics read_socket(int fd)
{
	struct xsk_statistics kernel = { 0 };
	socklen_t n_bytes = sizeof(kernel);

	(void)getsockopt(fd, SOL_XSK, XSK_STATISTICS, &kernel, &n_bytes);
	return kernel;
}

/*
 * Adds what the kernel found invalid although we had checked it. Newer
 * kernels complete such descriptors, older ones never do. They are taken from
 * what was completed since the last call, so that completed never runs
 * backwards, else from pending.
 */
void mri_xdp_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats)
{
	struct xdp_txq *txq = (struct xdp_txq *)base;
	/* It counts descriptors, and we frames: there may be too many. */
	const uint64_t n = read_socket(txq->fd).tx_invalid_descs;
	uint64_t told = __atomic_load_n(&txq->n_told, __ATOMIC_RELAXED);
	const uint64_t n_new = count_above(stats->completed, told);
	const uint64_t n_completed = n < n_new ? n : n_new;
	const uint64_t n_pending = n - n_completed < stats->pending ?
					   n - n_completed :
					   stats->pending;

	stats->drops[MR_TX_DROP_INVALID] += n_completed + n_pending;
	stats->pending -= n_pending;
	stats->completed -= n_completed;
	while (told < stats->completed &&
	       !__atomic_compare_exchange_n(&txq->n_told, &told,
					    stats->completed, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void mri_xdp_rxq_stats(const struct mr_rxq *base, struct mr_rx_stats *stats)
{
	const int fd = ((const struct xdp_rxq *)base)->fd;
	const struct xsk_statistics kernel = read_socket(fd);

	stats->drops[MR_RX_DROP_NO_BUFFER] += kernel.rx_dropped;
	stats->drops[MR_RX_DROP_RING_FULL] += kernel.rx_ring_full;
	stats->received += kernel.rx_dropped + kernel.rx_ring_full;
	/* An event: each such frame is in rx_dropped already. */
	stats->events[MR_RX_EVENT_FILL_RING_EMPTY] += kernel.rx_fill_ring_empty;
	mri_xdp_rules_stats(base, stats);
	mri_xdp_filter_stats(((const struct xdp_rxq *)base)->port,
			     base->queue.idx, stats);
}

static uint64_t since_open(const struct xdp_port *port,
			   const struct xdp_netdev *now, uint32_t i)
{
	return count_above(now->counts[i], port->dev.counts[i]);
}

/* Frames that arrived since another program detached ours. */
static uint64_t count_detached(const struct xdp_port *port,
			       const struct xdp_netdev *now)
{
	if (!__atomic_load_n(&port->is_detached, __ATOMIC_ACQUIRE))
		return 0;
	return count_above(
		now->counts[XDP_LINK_RX_PACKETS],
		__atomic_load_n(&port->n_detached_at, __ATOMIC_RELAXED));
}

uint32_t mri_xdp_device_drops(const struct mr_port *base,
			      struct mr_named_count *ret_counts, uint32_t n)
{
	const struct xdp_port *port = (const struct xdp_port *)base;
	struct xdp_netdev now = port->dev;
	uint64_t n_in_queues = 0;

	(void)mri_xdp_netdev_read(port->dev.ifindex, &now);
	/* The device counts as dropped what a socket had no room for, too. */
	for (uint32_t i = 0; i < base->info->n_rxqs; i++) {
		const struct xsk_statistics kernel =
			read_socket(port->rxqs[i].fd);

		n_in_queues += kernel.rx_dropped + kernel.rx_ring_full;
	}
	const struct mr_named_count counts[] = {
		{ "rx_dropped",
		  count_above(since_open(port, &now, XDP_LINK_RX_DROPPED),
			      n_in_queues) },
		{ "rx_missed", since_open(port, &now, XDP_LINK_RX_MISSED) },
		{ "rx_errors", since_open(port, &now, XDP_LINK_RX_ERRORS) },
		{ "queue_without_socket", mri_xdp_n_unserved(port) },
		{ "program_detached", count_detached(port, &now) },
	};
	const uint32_t n_counts = sizeof(counts) / sizeof(counts[0]);

	for (uint32_t i = 0; i < n && i < n_counts; i++)
		ret_counts[i] = counts[i];
	return n_counts;
}

/* The driver's own, or NULL: the interface is gone, or has others by now. */
static struct ethtool_stats *read_own_stats(const struct xdp_port *port)
{
	const struct mr_ctx *ctx = port->base.ctx;
	struct ethtool_stats *stats;
	char name[IF_NAMESIZE];

	if (port->n_stats == 0 ||
	    if_indextoname(port->dev.ifindex, name) == NULL ||
	    count_own_stats(name) != port->n_stats)
		return NULL;
	stats = mr_alloc(ctx, 0,
			 sizeof(*stats) + (port->n_stats + SPARE_STATS) *
						  sizeof(stats->data[0]));
	if (stats == NULL)
		return NULL;
	stats->cmd = ETHTOOL_GSTATS;
	stats->n_stats = port->n_stats;
	if (mri_xdp_netdev_ethtool(name, stats) < 0 ||
	    stats->n_stats != port->n_stats) {
		mr_free(ctx, stats);
		return NULL;
	}
	return stats;
}

uint32_t mri_xdp_device_stats(const struct mr_port *base,
			      struct mr_named_count *ret_counts, uint32_t n)
{
	const struct xdp_port *port = (const struct xdp_port *)base;
	struct xdp_netdev now = port->dev;
	const uint32_t n_kernel = mri_xdp_kernel_stats(port, ret_counts, n);
	struct ethtool_stats *own;

	if (n <= n_kernel)
		return n_kernel + XDP_N_LINK_COUNTS + port->n_stats;
	ret_counts += n_kernel;
	n -= n_kernel;
	(void)mri_xdp_netdev_read(port->dev.ifindex, &now);
	for (uint32_t i = 0; i < XDP_N_LINK_COUNTS && i < n; i++)
		ret_counts[i] =
			(struct mr_named_count){ link_names[i], now.counts[i] };
	own = read_own_stats(port);
	if (own == NULL)
		return n_kernel + XDP_N_LINK_COUNTS;
	for (uint32_t i = 0; i < port->n_stats; i++)
		if (XDP_N_LINK_COUNTS + i < n)
			ret_counts[XDP_N_LINK_COUNTS + i] =
				(struct mr_named_count){ port->stat_names[i],
							 own->data[i] };
	mr_free(base->ctx, own);
	return n_kernel + XDP_N_LINK_COUNTS + port->n_stats;
}
