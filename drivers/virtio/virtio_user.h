/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of virtio-user: the transport to a vhost-user back end. */
#ifndef VIRTIO_VIRTIO_USER_H
#define VIRTIO_VIRTIO_USER_H

#include <pthread.h>
#include <sys/un.h>

#include "vhost_listen.h"
#include "vhost_user.h"
#include "virtio.h"

enum {
	VIRTIO_USER_TIMEOUT_MS = 2000, /* of an operation: all its messages */
	/* In mr_port_poll(), for the first answers of a new back end. */
	VIRTIO_USER_RETURN_MS = 100,
	/* A server's mr_port_open(), for the first back end. */
	VIRTIO_USER_WAIT_MS = 30 * 1000,
};

struct virtio_user {
	struct sockaddr_un addr;
	struct vhost_listener listener; /* fd -1: a client */
	/* Of the socket, which a growing region uses, too. */
	pthread_mutex_t lock;
	int fd; /* -1: the back end is away */
	/* The kernel as back end: a device and a tap for each pair. */
	int devices[VIRTIO_MAX_PAIRS], taps[VIRTIO_MAX_PAIRS];
	uint32_t n_devices; /* 0: it is another process */
	uint64_t kernel_features;
	int kernel_errno; /* of the last request that failed */
	uint64_t offered, protocol;
	uint32_t max_pairs;
	uint32_t max_regions; /* that it takes */
	bool has_memory;      /* it has the table */
	/* The memory: first the rings', then the region's segments. The
	 * addresses are those of the process that opened the port. */
	struct vhost_region regions[VHOST_MAX_SLOTS];
	int region_fds[VHOST_MAX_SLOTS];
	uint32_t n_regions;
	uint64_t region_iova;
	uint8_t *rings;        /* the first, mapped; NULL: not yet */
	uint64_t n_used_bytes; /* of it */
	bool is_pinned;
	/* By queue. */
	int kick_fds[2 * VIRTIO_MAX_PAIRS];
	bool is_started[2 * VIRTIO_MAX_PAIRS];
	uint32_t generation; /* changes when it leaves or returns */
	uint64_t retry_tick;
	uint64_t until_ns;   /* the deadline of messages */
	bool is_open;        /* a back end may leave and return */
	bool has_complained; /* about one that cannot be used */
	bool can_return;     /* else a lost back end is gone */
};

/* virtio_user.c */
/* Features that need neither a control queue nor registers. */
extern const uint64_t mri_user_features;
/* Make port->user, which is not connected. */
int mri_user_create(struct virtio_port *port, const char *path,
		    struct mr_reason *reason);

/* virtio_user_link.c */
/* The reason of a request that failed with err. */
int mri_user_refuse(const struct virtio_port *port, int err,
		    struct mr_reason *reason);
/* Send a request and receive its reply, in msg. -EPIPE, -ETIMEDOUT, -EPROTO. */
int mri_user_ask(struct virtio_user *user, struct vhost_msg *msg,
		 uint32_t n_reply_bytes);
int mri_user_ask_u64(struct virtio_user *user, uint32_t request,
		     uint64_t *ret_value);
/*
 * Send a request with fds. With REPLY_ACK, wait until it is done. Also
 * -EREMOTEIO: the back end refuses.
 */
int mri_user_tell(struct virtio_user *user, struct vhost_msg *msg,
		  const int *fds, uint32_t n_fds);
int mri_user_tell_u64(struct virtio_user *user, uint32_t request,
		      uint64_t value);
/* Whether the protocol feature was negotiated. */
static inline bool virtio_user_has(const struct virtio_user *user,
				   uint32_t feature)
{
	return user->protocol & virtio_bit(feature);
}

/*
 * Connect to the back end. A server accepts one: while the port is not yet
 * open it waits for it. -ENODEV: there is none.
 */
int mri_user_connect(const struct virtio_port *port, int timeout_ms,
		     struct mr_reason *reason);
/* Set the deadline of all messages from here on. */
void mri_user_allow(struct virtio_user *user, int timeout_ms);
/* Negotiate what both sides can do. */
int mri_user_exchange(struct virtio_user *user);
/* Close the socket. All memory stays mapped. */
void mri_user_disconnect(struct virtio_user *user);

/* virtio_user_kernel.c */
/* Open devices and taps for all queues. close() follows, also after an error.
 */
int mri_user_kernel_open(const struct virtio_port *port,
			 struct mr_reason *reason);
void mri_user_kernel_close(struct virtio_user *user);
/* Do what a message requests, and put the answer there. -EREMOTEIO. */
int mri_user_kernel_call(struct virtio_user *user, struct vhost_msg *msg,
			 const int *fds);

/* virtio_user_memory.c */
/* Begin to follow the region's segments, and make memory for all rings, or map
 * that of another process, in region_fds[0]. */
int mri_user_memory_open(struct virtio_port *port, struct mr_reason *reason);
void mri_user_memory_close(struct virtio_port *port);
/* Tell a back end that has no memory yet about all of it. */
int mri_user_tell_memory(struct virtio_user *user);
/* A piece of the rings' memory, which lasts until the port closes. */
int mri_user_alloc_dma(struct virtio_port *port, uint64_t n_bytes,
		       struct mr_dma *ret_dma, struct mr_reason *reason);
void mri_user_free_dma(struct virtio_port *port, struct mr_dma *dma);

#endif
