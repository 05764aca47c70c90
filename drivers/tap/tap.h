/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions shared by the driver's files. */
#ifndef TAP_TAP_H
#define TAP_TAP_H

#include <sys/uio.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>

enum {
	TAP_MAX_QUEUES = 64,
	TAP_MIN_FRAME_BYTES = 14,
	TAP_MAX_FRAME_BYTES = 65535 + 14 + 4, /* IP, Ethernet, a tag */
};

/* In front of each frame, in host byte order (linux/virtio_net.h). */
struct tap_header {
	uint8_t flags;
	uint8_t gso_type; /* MR_GSO_* */
	uint16_t header_bytes;
	uint16_t gso_bytes;
	uint16_t csum_start;
	uint16_t csum_offset;
};

enum { TAP_NEEDS_CSUM = 1, TAP_DATA_VALID = 2 }; /* flags */

struct tap_rxq {
	_Alignas(64) struct mr_rxq base;
	int fd;
	uint32_t room_bytes; /* of a buffer */
	uint32_t n_segs;     /* buffers of the longest frame */
	uint32_t n_used;     /* of them, from the first on: to be replaced */
	struct tap_header header;
	uint64_t addrs[MR_MAX_SEGS]; /* where their data begins */
	uint8_t excess; /* behind the buffers: what is read there was cut off */
	struct iovec pieces[2 + MR_MAX_SEGS];
};

struct tap_txq {
	_Alignas(64) struct mr_txq base;
	int fd;
};

struct tap_port {
	struct mr_port base;
	int fds[TAP_MAX_QUEUES];
	uint32_t n_fds;
	uint32_t is_gone; /* atomic: the device was deleted */
};

mr_rx_burst_fn mri_tap_rx_burst;
mr_tx_burst_fn mri_tap_tx_burst;
int mri_tap_rx_arm(struct mr_queue *queue);
int mri_tap_tx_arm(struct mr_queue *queue);

/* After a system call failed: whether the device was deleted. */
bool mri_tap_is_gone(struct mr_port *port, int error);

#endif
