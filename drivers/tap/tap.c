/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: a tap interface of the kernel, with this program at the other end.
 *
 * Source: linux/Documentation/networking/tuntap.rst, linux/if_tun.h,
 * linux/virtio_net.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum {
	CAN_CSUM = 0x01, /* TUN_F_*: unfinished work we accept */
	CAN_TSO = 0x02 | 0x04,
	CAN_USO = 0x20 | 0x40, /* Linux 6.2 */
};

enum { PAUSE_NS = 1000000, MAX_PAUSES = 300 };

struct tap_options {
	const char *name;
	uint32_t n_queues;
	bool has_sg, has_tso;
};

static int read_options(const struct mr_spec *spec, struct tap_options *o,
			struct mr_reason *reason)
{
	int err;

	*o = (struct tap_options){ .name = mr_spec_device(spec) };
	/* The kernel would take a '%' for the place of a number. */
	if (o->name[0] == '\0' || strlen(o->name) >= IFNAMSIZ ||
	    strchr(o->name, '%') != NULL)
		return mr_fail(reason, -EINVAL,
			       "tap: needs the name of an interface, of at "
			       "most %d characters, without '%%'",
			       IFNAMSIZ - 1);
	err = mr_spec_get_u32(spec, "queues", 1, 1, TAP_MAX_QUEUES,
			      &o->n_queues, reason);
	if (err == 0)
		err = mr_spec_get_bool(spec, "sg", &o->has_sg, reason);
	if (err == 0)
		err = mr_spec_get_bool(spec, "tso", &o->has_tso, reason);
	o->has_sg |= o->has_tso;
	return err;
}

static int explain_error(const struct tap_port *port, const char *what,
			 struct mr_reason *reason)
{
	const int error = errno;
	const char *name = port->base.info->name;

	if (error == EPERM)
		return mr_fail(reason, -EPERM,
			       "%s: not permitted: needs CAP_NET_ADMIN, or a "
			       "tap of this user's (ip tuntap add user)",
			       name);
	if (error == EBUSY)
		return mr_fail(reason, -EBUSY,
			       "%s: another program has the tap open", name);
	if (error == EINVAL)
		return mr_fail(reason, -ENODEV,
			       "%s: not a tap, or one with another number "
			       "of queues (multi_queue)",
			       name);
	return mr_fail(reason, error == ENOENT ? -ENODEV : -EIO, "%s: %s: %s",
		       name, what, mr_strerror(error));
}

/* A forked child keeps the fds of a closed port until exec: wait for it. */
static int attach_queue(int fd, const struct ifreq *request)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct ifreq copy;
	int err;

	for (int i = 0; i < MAX_PAUSES; i++) {
		copy = *request; /* the call writes to it */
		err = ioctl(fd, TUNSETIFF, &copy);
		if (err == 0 || errno != EBUSY)
			break;
		nanosleep(&pause, NULL);
		errno = EBUSY;
	}
	return err;
}

/* Add a queue to the device, which the first one creates. */
static int add_queue(struct tap_port *port, const struct tap_options *o,
		     struct mr_reason *reason)
{
	struct ifreq request = { .ifr_flags =
					 IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	const int fd = mr_fd_guard(
		open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));

	if (fd < 0)
		return explain_error(port, "/dev/net/tun", reason);
	port->fds[port->n_fds++] = fd;
	if (o->n_queues > 1)
		request.ifr_flags |= IFF_MULTI_QUEUE;
	memcpy(request.ifr_name, o->name, strlen(o->name));
	return attach_queue(fd, &request) < 0 ?
		       explain_error(port, "TUNSETIFF", reason) :
		       0;
}

/* Tell the kernel what we accept, and find out what it supports. */
static int set_offloads(struct tap_port *port, const struct tap_options *o,
			struct mr_reason *reason)
{
	const int fd = port->fds[0];
	const unsigned long tso = CAN_CSUM | CAN_TSO;
	const bool has_uso = ioctl(fd, TUNSETOFFLOAD, tso | CAN_USO) == 0;
	const unsigned long wanted = !o->has_tso ? CAN_CSUM :
				     has_uso     ? tso | CAN_USO :
						   tso;

	if (ioctl(fd, TUNSETOFFLOAD, wanted) < 0)
		return explain_error(port, "TUNSETOFFLOAD", reason);
	port->base.info->offloads = MR_OFFLOAD_CSUM_TX | MR_OFFLOAD_TSO4 |
				    MR_OFFLOAD_TSO6 |
				    (has_uso ? MR_OFFLOAD_USO : 0u) |
				    (o->has_tso ? MR_OFFLOAD_LRO : 0u);
	return 0;
}

/* The interface's MTU. 0: unknown, because the interface is in another network
 * namespace; an interface with the same name here is not ours. */
static uint32_t mtu_of(const struct tap_port *port)
{
	struct ifreq request = { 0 }, mac = { 0 }, mac_here;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t mtu_bytes = 0;

	/* It may have been renamed. */
	if (fd >= 0 && ioctl(port->fds[0], TUNGETIFF, &request) == 0 &&
	    ioctl(port->fds[0], SIOCGIFHWADDR, &mac) == 0) {
		mac_here = request;
		if (ioctl(fd, SIOCGIFHWADDR, &mac_here) == 0 &&
		    memcmp(&mac_here.ifr_hwaddr, &mac.ifr_hwaddr,
			   sizeof(mac.ifr_hwaddr)) == 0 &&
		    ioctl(fd, SIOCGIFMTU, &request) == 0)
			mtu_bytes = (uint32_t)request.ifr_mtu;
	}
	if (fd >= 0)
		close(fd);
	return mtu_bytes;
}

static uint32_t tap_poll(struct mr_port *base)
{
	const uint32_t mtu_bytes = mtu_of((struct tap_port *)base);

	if (mtu_bytes == 0 || mtu_bytes == base->info->mtu_bytes)
		return 0;
	__atomic_store_n(&base->info->mtu_bytes, mtu_bytes, __ATOMIC_RELAXED);
	return 1;
}

/* The queue of another process. */
static int take_queue(struct tap_port *port, uint32_t i,
		      struct mr_parcel *parcel, struct mr_reason *reason)
{
	char name[MR_PARCEL_NAME_BYTES];
	const int fd =
		mr_parcel_take_fd(parcel, mr_parcel_name(name, "queue", i));
	struct ifreq request;

	if (fd >= 0)
		port->fds[port->n_fds++] = fd;
	if (fd >= 0 && ioctl(fd, TUNGETIFF, &request) == 0)
		return 0;
	return mr_fail(reason, -EPROTO, "%s: the state lacks queue %u",
		       port->base.info->name, i);
}

/* From a parcel, unless it is NULL. */
static int make_queues(struct tap_port *port, const struct tap_options *o,
		       struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	int err = mr_port_make_queues(base, o->n_queues, sizeof(struct tap_rxq),
				      sizeof(struct tap_txq), reason);

	for (uint32_t i = 0; err == 0 && i < o->n_queues; i++) {
		struct tap_rxq *rxq = (struct tap_rxq *)base->rxqs[i];
		struct tap_txq *txq = (struct tap_txq *)base->txqs[i];

		err = parcel == NULL ? add_queue(port, o, reason) :
				       take_queue(port, i, parcel, reason);
		rxq->fd = txq->fd = rxq->base.queue.fd = port->fds[i];
		rxq->base.queue.arm = mri_tap_rx_arm;
		rxq->base.burst = mri_tap_rx_burst;
		rxq->n_segs = rxq->n_used = rxq->base.n_min =
			o->has_sg ? MR_MAX_SEGS : 1;
		rxq->room_bytes = mr_port_room_bytes(base);
		rxq->pieces[0] =
			(struct iovec){ &rxq->header, sizeof(rxq->header) };
		rxq->pieces[1 + rxq->n_segs] =
			(struct iovec){ &rxq->excess, sizeof(rxq->excess) };
		txq->base.burst = mri_tap_tx_burst;
		txq->base.queue.arm = mri_tap_tx_arm;
	}
	return err;
}

static void tap_close(struct mr_port *base)
{
	struct tap_port *port = (struct tap_port *)base;

	for (uint32_t i = 0; i < port->n_fds; i++) {
		const struct tap_rxq *rxq =
			(const struct tap_rxq *)base->rxqs[i];

		mr_fd_close(port->fds[i]);
		if (rxq->n_used < rxq->n_segs)
			mr_pool_frag_free_bulk(base->pool,
					       rxq->addrs + rxq->n_used,
					       rxq->n_segs - rxq->n_used);
	}
}

static int open_port(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct tap_port *port = (struct tap_port *)base;
	struct tap_options o;
	int err = read_options(spec, &o, reason);

	if (err < 0)
		return err;
	if (o.has_tso &&
	    mr_port_room_bytes(base) * MR_MAX_SEGS < TAP_MAX_FRAME_BYTES)
		return mr_fail(reason, -ENOTSUP,
			       "%s: tso=on needs pages with room for %d bytes "
			       "beside headroom and tailroom; use larger pages",
			       base->info->name,
			       TAP_MAX_FRAME_BYTES / MR_MAX_SEGS + 1);
	err = make_queues(port, &o, parcel, reason);
	if (err == 0)
		err = set_offloads(port, &o, reason);
	if (err < 0) {
		tap_close(base);
		return err;
	}
	base->info->mtu_bytes = mtu_of(port);
	base->info->has_sg = o.has_sg;
	snprintf(base->info->mode, sizeof(base->info->mode), "copy");
	return 0;
}

static int tap_open(struct mr_port *base, const struct mr_spec *spec,
		    struct mr_reason *reason)
{
	return open_port(base, spec, NULL, reason);
}

static int tap_take(struct mr_port *base, const struct mr_spec *spec,
		    struct mr_parcel *parcel, struct mr_reason *reason)
{
	return open_port(base, spec, parcel, reason);
}

static int tap_offer(struct mr_port *base, struct mr_parcel *parcel,
		     struct mr_reason *reason)
{
	const struct tap_port *port = (const struct tap_port *)base;
	char name[MR_PARCEL_NAME_BYTES];

	if (__atomic_load_n(&port->is_gone, __ATOMIC_RELAXED))
		return mr_fail(reason, -ENODEV, "%s: the device is gone",
			       base->info->name);
	for (uint32_t i = 0; i < port->n_fds; i++)
		mr_parcel_put_fd(parcel, mr_parcel_name(name, "queue", i),
				 port->fds[i]);
	return 0;
}

/* The kernel has all frames, and copies them. */
static const struct mr_hand_over_ops tap_hand_over = {
	.offer = tap_offer,
	.take = tap_take,
	.give = mr_hand_over_nothing,
	.resume = mr_hand_over_nothing,
	.recover = mr_hand_over_nothing,
};

static int tap_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		    uint32_t page_bytes, uint32_t *ret_n_pages,
		    struct mr_reason *reason)
{
	struct tap_options o;
	const int err = read_options(spec, &o, reason);

	(void)ctx;
	(void)page_bytes;
	if (err == 0)
		*ret_n_pages = o.n_queues * (o.has_sg ? MR_MAX_SEGS : 1);
	return err;
}

/*
 * The fd of a deleted device always wakes its waiters at once (EPOLLERR). So
 * replace the fds by those of a timer that never expires.
 */
static void silence_fds(const struct tap_port *port)
{
	const int fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	for (uint32_t i = 0; fd >= 0 && i < port->n_fds; i++)
		(void)dup3(fd, port->fds[i], O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

bool mri_tap_is_gone(struct mr_port *base, int error)
{
	struct tap_port *port = (struct tap_port *)base;

	if (error == EBADFD) {
		__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
		silence_fds(port);
	}
	return __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED);
}

/* The interface's state is not known: it may be in another namespace. */
static int tap_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct tap_port *port = (const struct tap_port *)base;
	const uint32_t is_gone =
		__atomic_load_n(&port->is_gone, __ATOMIC_RELAXED);

	*ret_link = (struct mr_link){ .is_up = !is_gone, .is_gone = is_gone };
	return 0;
}

static const char *const tap_keys[] = { "queues", "sg", "tso", NULL };

extern const struct mr_driver mr_driver_tap;
const struct mr_driver mr_driver_tap = {
	.name = "tap",
	.keys = tap_keys,
	.port_bytes = sizeof(struct tap_port),
	.need = tap_need,
	.open = tap_open,
	.close = tap_close,
	.poll = tap_poll,
	.link = tap_link,
	.hand_over = &tap_hand_over,
};
