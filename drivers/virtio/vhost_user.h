/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of vhost-user, between the driver of a virtio device (front end)
 * and the process that plays the device (back end), on a Unix socket.
 *
 * Source: QEMU, docs/interop/vhost-user.rst.
 */
#ifndef VIRTIO_VHOST_USER_H
#define VIRTIO_VHOST_USER_H

#include <stdbool.h>
#include <stdint.h>

enum vhost_request {
	VHOST_GET_FEATURES = 1,
	VHOST_SET_FEATURES = 2,
	VHOST_SET_OWNER = 3,
	VHOST_RESET_OWNER = 4, /* obsolete */
	VHOST_SET_MEM_TABLE = 5,
	VHOST_SET_LOG_BASE = 6,
	VHOST_SET_LOG_FD = 7,
	VHOST_SET_VRING_NUM = 8,
	VHOST_SET_VRING_ADDR = 9,
	VHOST_SET_VRING_BASE = 10,
	VHOST_GET_VRING_BASE = 11,
	VHOST_SET_VRING_KICK = 12,
	VHOST_SET_VRING_CALL = 13,
	VHOST_SET_VRING_ERR = 14,
	VHOST_GET_PROTOCOL_FEATURES = 15,
	VHOST_SET_PROTOCOL_FEATURES = 16,
	VHOST_GET_QUEUE_NUM = 17,
	VHOST_SET_VRING_ENABLE = 18,
	VHOST_SEND_RARP = 19,
	VHOST_SET_MTU = 20,
	VHOST_GET_IN_FLIGHT = 31,
	VHOST_SET_IN_FLIGHT = 32,
	VHOST_RESET_DEVICE = 34,
	VHOST_GET_MAX_MEM_SLOTS = 36,
	VHOST_ADD_MEM_REG = 37,
	VHOST_REM_MEM_REG = 38,
	VHOST_SET_STATUS = 39,
	VHOST_GET_STATUS = 40,
	VHOST_N_REQUESTS,
};

enum {
	VHOST_VERSION = 1,         /* in flags, */
	VHOST_REPLY = 1 << 2,      /* it is one */
	VHOST_NEED_REPLY = 1 << 3, /* with VHOST_P_REPLY_ACK */

	/* Among the virtio features: written pages are logged; there are
	 * protocol features. */
	VHOST_F_LOG_ALL = 26,
	VHOST_F_PROTOCOL_FEATURES = 30,
	/* Protocol features. */
	VHOST_P_MQ = 0,
	VHOST_P_LOG_SHMFD = 1,
	VHOST_P_RARP = 2,
	VHOST_P_REPLY_ACK = 3,
	VHOST_P_MTU = 4,
	VHOST_P_IN_FLIGHT_SHMFD = 12,
	VHOST_P_RESET_DEVICE = 13,
	VHOST_P_CONFIGURE_MEM_SLOTS = 15,
	VHOST_P_STATUS = 16,

	VHOST_NO_FD = 1 << 8,  /* instead of an eventfd: poll */
	VHOST_MAX_REGIONS = 8, /* that every back end takes */
	VHOST_MAX_SLOTS = 32,  /* our limit, where it takes more */
	VHOST_HEADER_BYTES = 12,
};

/* Memory of the front end: its addresses, and its place in the fd. */
struct vhost_region {
	uint64_t guest_addr; /* in descriptors */
	uint64_t n_bytes;
	uint64_t user_addr; /* of rings */
	uint64_t offset;    /* in the fd */
};

struct vhost_vring {
	uint32_t number;
	uint32_t value;
};

struct vhost_vring_addr {
	uint32_t number;
	uint32_t flags;
	uint64_t desc, used, avail;
	uint64_t log;
};

/* Where queues record what they have in flight. */
struct vhost_in_flight {
	uint64_t n_bytes;
	uint64_t offset; /* in the fd */
	uint16_t n_queues;
	uint16_t queue_size; /* of the longest */
	uint32_t padding;    /* most front ends send it, too */
};

struct vhost_msg {
	uint32_t request; /* enum vhost_request */
	uint32_t flags;
	uint32_t n_bytes; /* of the payload */
	union {
		uint64_t u64;
		struct vhost_vring vring;
		struct vhost_vring_addr addr;
		struct {
			uint32_t n;
			uint32_t padding;
			struct vhost_region regions[VHOST_MAX_REGIONS];
		} table;
		struct {
			uint64_t padding;
			struct vhost_region region;
		} slot;
		struct {
			uint64_t n_bytes;
			uint64_t offset;
		} log;
		struct vhost_in_flight in_flight;
	};
} __attribute__((packed));

/*
 * Send a message with fds. 0, -EPIPE: the peer is gone, -ETIMEDOUT: it takes
 * nothing within the socket's SO_SNDTIMEO, or another -errno.
 */
int mri_vhost_send(int fd, const struct vhost_msg *msg, const int *fds,
		   uint32_t n_fds);

/*
 * Receive the reply to a request within timeout_ms. 0, or -EPIPE, -ETIMEDOUT,
 * -EPROTO: not that reply, or not of n_bytes.
 */
int mri_vhost_receive_reply(int fd, struct vhost_msg *msg, uint32_t request,
			    uint32_t n_bytes, int timeout_ms);

/* Whether it is an eventfd, which then does not block: a write to any other
 * file could, or worse. */
bool mri_vhost_is_eventfd(int fd);

#endif
