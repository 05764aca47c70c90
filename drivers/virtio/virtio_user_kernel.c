/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel as the back end of virtio-user: /dev/vhost-net moves frames
 * between rings and a tap. It takes the requests of vhost-user as ioctls, one
 * device for each pair of queues; to the rest of the driver it is one back end
 * with many queues.
 *
 * Source: Linux, include/uapi/linux/vhost.h, if_tun.h. The first cannot be
 * included: its requests have the same names as ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

#include "virtio_user.h"

/* Of a ring: a number or an fd. */
struct kernel_ring {
	uint32_t index;
	int32_t value;
};

/* In struct vhost_msg: its number of regions, padding, regions. */
struct kernel_memory {
	uint32_t n, padding;
};

#define KERNEL_GET_FEATURES _IOR(0xaf, 0x00, uint64_t)
#define KERNEL_SET_FEATURES _IOW(0xaf, 0x00, uint64_t)
#define KERNEL_SET_OWNER _IO(0xaf, 0x01)
#define KERNEL_SET_MEM_TABLE _IOW(0xaf, 0x03, struct kernel_memory)
#define KERNEL_SET_RING_NUM _IOW(0xaf, 0x10, struct kernel_ring)
#define KERNEL_SET_RING_ADDR _IOW(0xaf, 0x11, struct vhost_vring_addr)
#define KERNEL_SET_RING_BASE _IOW(0xaf, 0x12, struct kernel_ring)
#define KERNEL_GET_RING_BASE _IOWR(0xaf, 0x12, struct kernel_ring)
#define KERNEL_SET_RING_KICK _IOW(0xaf, 0x20, struct kernel_ring)
#define KERNEL_SET_RING_CALL _IOW(0xaf, 0x21, struct kernel_ring)
#define KERNEL_SET_BACKEND _IOW(0xaf, 0x30, struct kernel_ring)

enum { NO_FD = -1 };

/* The tap does these, not the device. */
static const uint64_t tap_features =
	UINT64_C(1) << VIRTIO_F_CSUM | UINT64_C(1) << VIRTIO_F_GUEST_CSUM |
	UINT64_C(1) << VIRTIO_F_GUEST_TSO4 |
	UINT64_C(1) << VIRTIO_F_GUEST_TSO6 | UINT64_C(1) << VIRTIO_F_HOST_TSO4 |
	UINT64_C(1) << VIRTIO_F_HOST_TSO6;

/* ---- requests ---- */

/* The same for each device. */
static int call_all(const struct virtio_user *user, unsigned long call,
		    const void *arg)
{
	int err = 0;

	for (uint32_t i = 0; i < user->n_devices && err == 0; i++)
		err = ioctl(user->devices[i], call, arg);
	return err;
}

/* Each device has two rings: 0 receives. */
static int call_ring(const struct virtio_user *user, unsigned long call,
		     uint32_t number, uint32_t value)
{
	struct kernel_ring ring = { number % 2, (int32_t)value };

	return ioctl(user->devices[number / 2], call, &ring);
}

static int set_addr(const struct virtio_user *user, const struct vhost_msg *msg)
{
	struct vhost_vring_addr addr = msg->addr;
	const uint32_t number = addr.number;

	addr.number = number % 2;
	return ioctl(user->devices[number / 2], KERNEL_SET_RING_ADDR, &addr);
}

static int set_features(const struct virtio_user *user, uint64_t features)
{
	const uint64_t theirs = features & user->kernel_features;
	const unsigned long tap =
		(features & virtio_bit(VIRTIO_F_GUEST_CSUM) ? TUN_F_CSUM : 0u) |
		(features & virtio_bit(VIRTIO_F_GUEST_TSO4) ? TUN_F_TSO4 : 0u) |
		(features & virtio_bit(VIRTIO_F_GUEST_TSO6) ? TUN_F_TSO6 : 0u);
	int err = call_all(user, KERNEL_SET_FEATURES, &theirs);

	for (uint32_t i = 0; i < user->n_devices && err == 0; i++)
		err = ioctl(user->taps[i], TUNSETOFFLOAD, tap);
	return err;
}

/* Afterwards the kernel does not use the ring. */
static int stop_ring(const struct virtio_user *user, uint32_t number)
{
	return call_ring(user, KERNEL_SET_BACKEND, number, (uint32_t)NO_FD);
}

static int call(const struct virtio_user *user, struct vhost_msg *msg,
		const int *fds)
{
	const uint32_t number = (uint8_t)msg->u64; /* of a ring */
	const uint32_t fd =
		msg->u64 & VHOST_NO_FD || fds == NULL ? NO_FD : fds[0];

	switch (msg->request) {
	case VHOST_GET_FEATURES:
		msg->u64 = user->kernel_features | tap_features |
			   virtio_bit(VHOST_F_PROTOCOL_FEATURES);
		return 0;
	case VHOST_SET_FEATURES:
		return set_features(user, msg->u64);
	case VHOST_SET_OWNER:
		return call_all(user, KERNEL_SET_OWNER, NULL);
	case VHOST_GET_PROTOCOL_FEATURES:
		msg->u64 = virtio_bit(VHOST_P_MQ);
		return 0;
	case VHOST_GET_QUEUE_NUM:
		msg->u64 = user->n_devices;
		return 0;
	case VHOST_SET_MEM_TABLE:
		return call_all(user, KERNEL_SET_MEM_TABLE,
				(char *)msg + VHOST_HEADER_BYTES);
	case VHOST_SET_VRING_NUM:
		return call_ring(user, KERNEL_SET_RING_NUM, number,
				 msg->vring.value);
	case VHOST_SET_VRING_BASE:
		return call_ring(user, KERNEL_SET_RING_BASE, number,
				 msg->vring.value);
	case VHOST_SET_VRING_ADDR:
		return set_addr(user, msg);
	case VHOST_SET_VRING_KICK:
		return call_ring(user, KERNEL_SET_RING_KICK, number, fd);
	case VHOST_SET_VRING_CALL:
		return call_ring(user, KERNEL_SET_RING_CALL, number, fd);
	case VHOST_SET_VRING_ENABLE:
		return call_ring(user, KERNEL_SET_BACKEND, number,
				 (uint32_t)user->taps[number / 2]);
	case VHOST_GET_VRING_BASE:
		return stop_ring(user, number);
	default:
		return 0; /* SET_PROTOCOL_FEATURES */
	}
}

int mri_user_kernel_call(struct virtio_user *user, struct vhost_msg *msg,
			 const int *fds)
{
	if (call(user, msg, fds) == 0)
		return 0;
	user->kernel_errno = errno;
	return -EREMOTEIO;
}

/* ---- open and close ---- */

static int fail(const struct virtio_port *port, const char *what,
		struct mr_reason *reason)
{
	const char *const name = port->base.info->name;

	if (errno == ENOENT)
		return mr_fail(reason, -ENODEV,
			       "%s: there is no %s: modprobe vhost_net tun",
			       name, what);
	if (errno == EPERM || errno == EACCES)
		return mr_fail(reason, -EPERM,
			       "%s: %s: not permitted: needs CAP_NET_ADMIN, or "
			       "a tap of this user's and read and write rights "
			       "to /dev/vhost-net and /dev/net/tun",
			       name, what);
	if (errno == EINVAL)
		return mr_fail(reason, -ENODEV,
			       "%s: %s: not a tap, or one with another number "
			       "of queues (multi_queue)",
			       name, what);
	if (errno == ENOTTY)
		return mr_fail(reason, -ENODEV,
			       "%s: tap= goes with /dev/vhost-net", name);
	return mr_fail(reason, errno == EBUSY ? -EBUSY : -EIO, "%s: %s: %s",
		       name, what, mr_strerror(errno));
}

static int open_tap(const struct virtio_port *port, int *ret_fd,
		    struct mr_reason *reason)
{
	const int header_bytes = VIRTIO_HEADER_BYTES;
	struct ifreq request = {
		.ifr_flags =
			(short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR |
				(port->options.n_queues > 1 ? IFF_MULTI_QUEUE :
							      0)),
	};

	memcpy(request.ifr_name, port->options.tap, IFNAMSIZ);
	*ret_fd = mr_fd_guard(
		open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
	if (*ret_fd < 0)
		return fail(port, "/dev/net/tun", reason);
	if (ioctl(*ret_fd, TUNSETIFF, &request) < 0 ||
	    ioctl(*ret_fd, TUNSETVNETHDRSZ, &header_bytes) < 0)
		return fail(port, port->options.tap, reason);
	return 0;
}

int mri_user_kernel_open(const struct virtio_port *port,
			 struct mr_reason *reason)
{
	struct virtio_user *user = port->user;
	const char *const path = user->addr.sun_path;
	int err;

	while (user->n_devices < port->options.n_queues) {
		const uint32_t i = user->n_devices++;

		user->taps[i] = NO_FD;
		user->devices[i] = mr_fd_guard(open(path, O_RDWR | O_CLOEXEC));
		if (user->devices[i] < 0 ||
		    ioctl(user->devices[i], KERNEL_GET_FEATURES,
			  &user->kernel_features) < 0)
			return fail(port, path, reason);
		err = open_tap(port, &user->taps[i], reason);
		if (err < 0)
			return err;
	}
	return 0;
}

void mri_user_kernel_close(struct virtio_user *user)
{
	for (uint32_t i = 0; i < user->n_devices; i++) {
		mr_fd_close(user->devices[i]);
		mr_fd_close(user->taps[i]);
	}
	user->n_devices = 0;
}
