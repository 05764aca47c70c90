/* SPDX-License-Identifier: BSD-3-Clause */
/* The device: find, configure, start, stop and release. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>

#include <millrace/experimental/pci_info.h>

#include "dpdk.h"

static int refuse_device(const struct dpdk_port *port, int err,
			 const char *what, struct mr_reason *reason)
{
	switch (err) {
	case -EINVAL:
	case -ENODEV:
	case -EBUSY:
	case -EPERM:
	case -ENOMEM:
	case -ENOTSUP:
		break;
	default:
		err = -EIO;
	}
	return mr_fail(reason, err, "%s: %s: %s", port->base->info->name, what,
		       mri_dpdk_why(-err));
}

/*
 * Whether DPDK drives it through the kernel's vfio-pci or alongside another
 * kernel driver. Devices of other buses have no maps there, whatever their
 * driver is called (vfio-fsl-mc).
 */
static bool is_vfio(const struct dpdk_port *port)
{
	struct mr_pci_info info = { .size = sizeof(info) };

	return strcmp(rte_bus_name(rte_dev_bus(port->device)), "pci") == 0 &&
	       mr_pci_info(port->base->ctx, rte_dev_name(port->device), &info,
			   NULL) == 0 &&
	       strncmp(info.kernel_driver, "vfio", strlen("vfio")) == 0;
}

static bool is_bdf(const char *name)
{
	unsigned int domain, bus, device, function;
	int n = 0;

	return sscanf(name, "%x:%x:%x.%x%n", &domain, &bus, &device, &function,
		      &n) == 4 &&
	       name[n] == '\0';
}

/* DPDK did not accept the device: report why, or a better reason of ours. */
static int refuse_unprobed(const struct dpdk_port *port, const char *name,
			   int err, struct mr_reason *reason)
{
	const char *port_name = port->base->info->name;
	struct mr_pci_info info = { .size = sizeof(info) };
	const char *driver = info.kernel_driver;

	if (!is_bdf(name))
		return mr_fail(reason, -ENODEV,
			       "%s: DPDK has no such device, or rejects its "
			       "arguments: %s",
			       port_name, mri_dpdk_why(-err));
	if (mr_pci_info(port->base->ctx, name, &info, NULL) < 0)
		return mr_fail(reason, -ENODEV, "%s: no such PCI device: %s",
			       port_name, mri_dpdk_why(-err));
	if (strcmp(driver, "vfio-pci") != 0 && strncmp(driver, "uio", 3) != 0 &&
	    strcmp(driver, "igb_uio") != 0)
		return mr_fail(
			reason, driver[0] == '\0' ? -ENODEV : -EBUSY,
			"%s: the device is %s%s%s: bind it to vfio-pci, unless "
			"its DPDK driver works alongside the kernel's: %s",
			port_name,
			driver[0] == '\0' ? "bound to no driver" :
					    "bound to the kernel's '",
			driver, driver[0] == '\0' ? "" : "'",
			mri_dpdk_why(-err));
	return mr_fail(reason, -ENODEV,
		       "%s: no DPDK driver supports the device: %s", port_name,
		       mri_dpdk_why(-err));
}

/* Undo the probe of a device that is not an Ethernet port. */
static void unprobe(const char *devargs)
{
	struct rte_devargs parsed = { 0 };

	if (rte_devargs_parse(&parsed, devargs) < 0)
		return;
	(void)rte_eal_hotplug_remove(rte_bus_name(parsed.bus), parsed.name);
	rte_devargs_reset(&parsed);
}

/* Claim the device's first free port. */
static int own_port(struct dpdk_port *port, const char *devargs,
		    struct mr_reason *reason)
{
	struct rte_eth_dev_owner owner = { .name = "millrace" };
	struct rte_dev_iterator iterator;
	bool has_any = false;
	uint16_t id;

	rte_eth_dev_owner_new(&owner.id);
	RTE_ETH_FOREACH_MATCHING_DEV(id, devargs, &iterator)
	{
		has_any = true;
		if (rte_eth_dev_owner_set(id, &owner) < 0)
			continue;
		rte_eth_iterator_cleanup(&iterator);
		port->port_id = id;
		port->owner_id = owner.id;
		return 0;
	}
	if (has_any)
		return mr_fail(reason, -EBUSY,
			       "%s: the device is in use by another port of "
			       "this process",
			       port->base->info->name);
	(void)mr_fail(reason, -ENODEV,
		      "%s: DPDK accepted the device, but created no Ethernet "
		      "port: %s",
		      port->base->info->name, mri_dpdk_why(ENODEV));
	if (port->did_probe)
		unprobe(devargs);
	return -ENODEV;
}

int mri_dpdk_device_find(struct dpdk_port *port, const char *devargs,
			 struct mr_reason *reason)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t id;
	int err;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(devargs, ","),
		 devargs);
	if (rte_eth_dev_get_port_by_name(name, &id) < 0) {
		err = mri_dpdk_memory_probe(devargs);
		if (err < 0)
			return refuse_unprobed(port, name, err, reason);
		port->did_probe = true;
	}
	err = own_port(port, devargs, reason);
	if (err < 0)
		return err;
	err = rte_eth_dev_info_get(port->port_id, &port->info);
	if (err < 0)
		return refuse_device(port, err,
				     "the device does not describe itself",
				     reason);
	port->device = port->info.device;
	port->is_vfio = is_vfio(port);
	return mri_dpdk_netdev_open(port, reason);
}

/* Bytes of a frame that an rx buffer has room for. */
static uint32_t buffer_room(const struct dpdk_port *port)
{
	return rte_pktmbuf_data_room_size(port->view->mempool) -
	       RTE_PKTMBUF_HEADROOM;
}

/* Whether frames have several buffers. -EINVAL: they need to, but may not. */
static int choose_sg(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port_info *info = port->base->info;
	const uint32_t max_bytes = port->mtu_bytes + DPDK_LINK_BYTES;
	const uint32_t room = buffer_room(port);

	info->has_sg = port->options.sg == DPDK_ON ||
		       (port->options.sg == DPDK_AUTO && max_bytes > room);
	if (!info->has_sg && max_bytes > room)
		return mr_fail(reason, -EINVAL,
			       "%s: frames have up to %u bytes (MTU %u), but "
			       "rx buffers only %u: use sg=on, a smaller mtu=, "
			       "or a pool with larger pages",
			       info->name, max_bytes, port->mtu_bytes, room);
	if ((max_bytes + room - 1) / room > MR_MAX_SEGS)
		return mr_fail(
			reason, -EINVAL,
			"%s: frames of %u bytes do not fit in %d buffers of %u",
			info->name, max_bytes, MR_MAX_SEGS, room);
	return 0;
}

/* What we request, limited to what the device supports. */
static struct rte_eth_conf conf_of(const struct dpdk_port *port, bool has_irqs)
{
	const uint64_t sums = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM |
			      RTE_ETH_RX_OFFLOAD_TCP_CKSUM |
			      RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	const uint64_t tx_sums =
		RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
		RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_TSO;
	const uint32_t flags = *port->info.dev_flags;
	const bool is_many = port->options.n_queues > 1;
	struct rte_eth_conf conf = { 0 };

	conf.rxmode.mtu = port->mtu_bytes;
	if (port->base->info->has_sg)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (port->options.csum != DPDK_OFF)
		conf.rxmode.offloads |= sums;
	if (port->options.strip_vlan)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	if (is_many) {
		conf.rx_adv_conf.rss_conf.rss_hf = dpdk_rss_kinds(port);
		if (conf.rx_adv_conf.rss_conf.rss_hf != 0) {
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
			conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_RSS_HASH;
		}
	}
	conf.rxmode.offloads &= port->info.rx_offload_capa;
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (port->options.csum != DPDK_OFF)
		conf.txmode.offloads |= tx_sums;
	/* It uses librte_gso, which marks the headers of segments as external,
	 * like ours, and crashes when it frees them (22.11). */
	if (strcmp(port->info.driver_name, "net_tap") == 0)
		conf.txmode.offloads &= ~RTE_ETH_TX_OFFLOAD_TCP_TSO;
	conf.txmode.offloads &= port->info.tx_offload_capa;
	conf.intr_conf.lsc = (flags & RTE_ETH_DEV_INTR_LSC) != 0;
	conf.intr_conf.rmv = (flags & RTE_ETH_DEV_INTR_RMV) != 0;
	conf.intr_conf.rxq = has_irqs;
	return conf;
}

static int setup_queues(struct dpdk_port *port, const struct rte_eth_conf *conf)
{
	const int socket = rte_eth_dev_socket_id(port->port_id);
	struct rte_eth_rxconf rxconf = port->info.default_rxconf;
	struct rte_eth_txconf txconf = port->info.default_txconf;
	uint16_t n_rx = (uint16_t)port->options.ring_entries;
	uint16_t n_tx = n_rx;
	int err;

	rxconf.offloads = conf->rxmode.offloads;
	txconf.offloads = conf->txmode.offloads;
	err = rte_eth_dev_adjust_nb_rx_tx_desc(port->port_id, &n_rx, &n_tx);
	/* The pages for larger rings were not counted. */
	if (err == 0 && (n_rx > port->options.ring_entries ||
			 n_tx > port->options.ring_entries))
		err = -E2BIG;
	for (uint16_t i = 0; i < port->n_queues && err == 0; i++) {
		err = rte_eth_rx_queue_setup(port->port_id, i, n_rx,
					     (unsigned int)socket, &rxconf,
					     port->view->mempool);
		if (err == 0)
			err = rte_eth_tx_queue_setup(port->port_id, i, n_tx,
						     (unsigned int)socket,
						     &txconf);
	}
	return err;
}

static int start_with(struct dpdk_port *port, bool has_irqs,
		      struct mr_reason *reason)
{
	const struct rte_eth_conf conf = conf_of(port, has_irqs);
	int err;

	mri_dpdk_ask(false);
	err = rte_eth_dev_configure(port->port_id, (uint16_t)port->n_queues,
				    (uint16_t)port->n_queues, &conf);
	if (err < 0)
		return refuse_device(port, err, "cannot configure the device",
				     reason);
	port->is_configured = true;
	if (port->options.mtu_bytes != 0) {
		err = rte_eth_dev_set_mtu(port->port_id,
					  (uint16_t)port->mtu_bytes);
		if (err < 0 && err != -ENOTSUP)
			return mr_fail(reason, -EINVAL,
				       "%s: the device does not take an MTU "
				       "of %u: %s",
				       port->base->info->name, port->mtu_bytes,
				       mri_dpdk_why(-err));
		if (err == 0)
			port->set_mtu_bytes = port->mtu_bytes;
	}
	err = setup_queues(port, &conf);
	if (err == -E2BIG)
		return mr_fail(reason, -EINVAL,
			       "%s: ring=%u: the device needs rings of at "
			       "least %u (rx) and %u (tx)",
			       port->base->info->name,
			       port->options.ring_entries,
			       port->info.rx_desc_lim.nb_min,
			       port->info.tx_desc_lim.nb_min);
	if (err < 0)
		return refuse_device(port, err, "cannot set up its queues",
				     reason);
	err = rte_eth_dev_start(port->port_id);
	if (err < 0)
		return refuse_device(port, err, "cannot start the device",
				     reason);
	port->is_started = true;
	for (uint32_t i = 0; i < port->n_queues; i++)
		port->txqs[i].offloads = conf.txmode.offloads;
	return 0;
}

static bool is_eventfd(int fd)
{
	char path[40], target[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	return strstr(target, "[eventfd]") != NULL;
}

/*
 * The fd of an rx queue; -1: it has none that signals frames. A file that is
 * not an eventfd needs no arming: it is readable while there are frames.
 */
static int fd_of(const struct dpdk_port *port, uint32_t i, bool *ret_is_eventfd)
{
	const uint16_t id = (uint16_t)i;
	int fd;

	mri_dpdk_ask(true);
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->port_id, id);
	*ret_is_eventfd = fd >= 0 && is_eventfd(fd);
	if (*ret_is_eventfd &&
	    (rte_eth_dev_rx_intr_enable(port->port_id, id) < 0 ||
	     rte_eth_dev_rx_intr_disable(port->port_id, id) < 0))
		fd = -1;
	mri_dpdk_ask(false);
	return fd < 0 ? -1 : fd;
}

/*
 * Some devices use only part of a buffer (igb: whole KiB), and scatter frames
 * that do not fit, requested or not.
 */
static int check_scatter(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port_info *info = port->base->info;
	const uint32_t max_bytes = port->mtu_bytes + DPDK_LINK_BYTES;
	struct rte_eth_rxq_info queue = { 0 };

	port->rx_room_bytes = buffer_room(port);
	if (rte_eth_rx_queue_info_get(port->port_id, 0, &queue) < 0 ||
	    queue.rx_buf_size == 0 || queue.rx_buf_size >= port->rx_room_bytes)
		return 0;
	port->rx_room_bytes = queue.rx_buf_size;
	if (!queue.scattered_rx || info->has_sg)
		return 0;
	if (port->options.sg == DPDK_OFF)
		return mr_fail(
			reason, -EINVAL,
			"%s: frames have up to %u bytes, but the device uses "
			"only %u of an rx buffer: use sg=on, or a smaller mtu=",
			info->name, max_bytes, queue.rx_buf_size);
	if ((max_bytes + queue.rx_buf_size - 1) / queue.rx_buf_size >
	    MR_MAX_SEGS)
		return mr_fail(
			reason, -EINVAL,
			"%s: frames of %u bytes do not fit in %d buffers of %u",
			info->name, max_bytes, MR_MAX_SEGS, queue.rx_buf_size);
	info->has_sg = 1;
	return 0;
}

/*
 * Whether only the device sees the headers it sends: it is ours alone, and
 * either hardware, which reads only the bytes, or software that copies or drops
 * them. Others pass headers on: rings to programs, bonds to the devices they
 * contain.
 */
static bool keeps_headers_to_itself(const struct dpdk_port *port)
{
	static const char *const drivers[] = { "net_null", "net_tap",
					       "net_pcap", "net_af_packet" };

	/* A program that created the port, or runs EAL, may have callbacks. */
	if (!port->did_probe || !mri_dpdk_eal_is_ours())
		return false;
	for (size_t i = 0; i < RTE_DIM(drivers); i++)
		if (strcmp(port->info.driver_name, drivers[i]) == 0)
			return true;
	/* A representor belongs to another port, which sends for it. */
	return strcmp(rte_bus_name(rte_dev_bus(port->device)), "pci") == 0 &&
	       !(*port->info.dev_flags & RTE_ETH_DEV_REPRESENTOR);
}

/* What is known only once the queue runs. */
static void finish_queue(struct dpdk_port *port, uint32_t i, bool has_irqs)
{
	struct dpdk_rxq *rxq = &port->rxqs[i];
	struct dpdk_txq *txq = &port->txqs[i];
	const uint32_t room = port->rx_room_bytes;
	const uint16_t id = (uint16_t)i;

	rxq->has_sg = port->base->info->has_sg;
	rxq->base.n_min = rxq->has_sg ? MR_MAX_SEGS : 1;
	rxq->max_segs =
		rxq->has_sg ?
			(port->mtu_bytes + DPDK_LINK_BYTES + room - 1) / room :
			1;
	txq->plain_flags =
		keeps_headers_to_itself(port) ? 0 : RTE_MBUF_F_EXTERNAL;
	if (!port->options.strip_vlan)
		rxq->keep_vlan = RTE_MBUF_F_RX_VLAN_STRIPPED;
	txq->has_cleanup = rte_eth_tx_done_cleanup(port->port_id, id, 0) >= 0;
	if (has_irqs)
		rxq->base.queue.fd = fd_of(port, i, &rxq->has_eventfd);
}

int mri_dpdk_device_start(struct dpdk_port *port, struct mr_reason *reason)
{
	bool has_irqs = port->options.irq != DPDK_OFF;
	uint16_t mtu_bytes = RTE_ETHER_MTU;
	int err;

	(void)rte_eth_dev_get_mtu(port->port_id, &mtu_bytes);
	port->mtu_bytes = port->options.mtu_bytes != 0 ?
				  port->options.mtu_bytes :
				  mtu_bytes;
	if ((err = mri_dpdk_check(port, reason)) < 0 ||
	    (err = choose_sg(port, reason)) < 0)
		return err;
	err = start_with(port, has_irqs, reason);
	if (err < 0 && err != -EINVAL && port->options.irq == DPDK_AUTO) {
		/* Some devices have none in some environments, and refuse. */
		has_irqs = false;
		err = start_with(port, has_irqs, reason);
	}
	if (err == 0)
		err = check_scatter(port, reason);
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < port->n_queues; i++)
		finish_queue(port, i, has_irqs);
	if (port->options.irq == DPDK_ON && port->rxqs[0].base.queue.fd < 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: irq=on: the device (driver %s) has no rx "
			       "interrupts",
			       port->base->info->name, port->info.driver_name);
	return 0;
}

/*
 * A software device, such as a ring, may hold frames that come out only at its
 * other end: receive them while any of ours are outstanding.
 */
static void drain(struct dpdk_port *port)
{
	struct rte_mbuf *mbufs[MR_BURST_MAX];
	uint32_t n_left = 2 * mri_dpdk_need(&port->options);

	for (uint32_t i = 0; i < port->n_queues; i++) {
		uint16_t n = 1;

		while (n > 0 && n_left > 0 &&
		       mri_dpdk_tx_pending(&port->txqs[i]) > 0) {
			n = rte_eth_rx_burst(port->port_id, (uint16_t)i, mbufs,
					     MR_BURST_MAX);
			rte_pktmbuf_free_bulk(mbufs, n);
			n_left -= RTE_MIN(n_left, n);
		}
	}
}

/*
 * A mempool for rx queues of a program's own port after we close it: they must
 * not keep ours, which is about to go. Shared, and never freed.
 */
static struct rte_mempool *get_parking(void)
{
	static const char name[] = "millrace_parking";
	struct rte_mempool *parking = rte_mempool_lookup(name);

	return parking != NULL ?
		       parking :
		       rte_pktmbuf_pool_create(name, 1, 0, 0,
					       RTE_MBUF_DEFAULT_BUF_SIZE,
					       SOCKET_ID_ANY);
}

/*
 * Leave the program's port stopped, its queues without anything of ours.
 * Setting a queue up again ends its previous setup.
 */
static void park(struct dpdk_port *port)
{
	const int socket = rte_eth_dev_socket_id(port->port_id);
	struct rte_mempool *parking = get_parking();
	int err = parking == NULL ? -ENOMEM : 0;

	for (uint16_t i = 0; i < port->n_queues && err == 0; i++) {
		err = rte_eth_rx_queue_setup(port->port_id, i, 0,
					     (unsigned int)socket, NULL,
					     parking);
		if (err == 0)
			err = rte_eth_tx_queue_setup(port->port_id, i, 0,
						     (unsigned int)socket,
						     NULL);
	}
	if (err == 0)
		return;
	mr_log(port->base->ctx, MR_LOG_WARNING,
	       "%s: closing the program's port, since its queues cannot be set "
	       "up again: %s",
	       port->base->info->name, mri_dpdk_why(-err));
	(void)rte_eth_dev_close(port->port_id);
}

void mri_dpdk_device_stop(struct dpdk_port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++) {
		mri_dpdk_rx_free_stash(&port->rxqs[i]);
		rte_pktmbuf_free(port->txqs[i].held);
		port->txqs[i].held = NULL;
	}
	if (port->is_started)
		drain(port);
	if (port->port_id == RTE_MAX_ETHPORTS)
		return;
	if (port->is_started)
		(void)rte_eth_dev_stop(port->port_id);
	mri_dpdk_memory_unmap(port);
	if (!port->did_probe && port->is_configured)
		park(port);
	/* The program continues with its port: DPDK must know the MTU. */
	if (!port->did_probe && port->set_mtu_bytes != 0 &&
	    port->netdev_mtu_bytes != 0)
		(void)rte_eth_dev_set_mtu(port->port_id,
					  (uint16_t)port->netdev_mtu_bytes);
	(void)rte_eth_dev_owner_unset(port->port_id, port->owner_id);
	if (port->did_probe)
		(void)rte_eth_dev_close(port->port_id);
	mri_dpdk_netdev_close(port);
	port->is_started = false;
}

/* The last port on a device that we probed removes it. */
void mri_dpdk_device_give_back(struct dpdk_port *port)
{
	struct dpdk_port *other;

	if (!port->did_probe || port->device == NULL)
		return;
	other = mri_dpdk_port_on(port->device);
	if (other != NULL)
		other->did_probe = true;
	else if (rte_dev_remove(port->device) < 0)
		mr_log(port->base->ctx, MR_LOG_WARNING,
		       "%s: DPDK does not release the device: %s",
		       port->base->info->name, mri_dpdk_why(EIO));
}
