/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of a port: their rings, and the bursts. */
#ifndef XDP_SOCKET_QUEUE_H
#define XDP_SOCKET_QUEUE_H

#include <millrace/driver.h>

#include "socket/ring.h"
#include "socket/times.h"
#include "uapi.h"

struct xdp_port;

_Static_assert((int)XSK_PKT_CONTD == (int)MR_FRAME_MORE,
	       "an rx descriptor is a struct mr_frame");

enum {
	/*
	 * Least time between two busy polls that find nothing: a NAPI that is
	 * polled without a pause has no time for its other work.
	 */
	XDP_BUSY_INTERVAL_NS = 5000,
};

struct xdp_rxq {
	_Alignas(64) struct mr_rxq base;
	/* Hot. */
	struct xring rx;
	struct xring fill;
	struct xdp_port *port;
	uint8_t *posted; /* per chunk: with the kernel, or in a ring */
	uint32_t chunk_shift;
	uint32_t n_bufs; /* always with us and the kernel: see socket/rx.c */
	uint32_t tailroom_bytes;
	uint32_t meta_magic; /* of metadata in front of frames; 0: none */
	bool has_partial_csums;
	bool in_long_frame; /* its first part was dropped, the rest follows */
	bool is_busy;       /* our calls run the device's NAPI */
	int fd;
	/* Idle. */
	uint32_t n_idle_polls;
	uint64_t idle_since_ns;
	uint64_t polled_ns; /* the end of the last busy poll */
};

struct xdp_txq {
	_Alignas(64) struct mr_txq base;
	/* Hot. */
	struct xring tx;
	struct xring comp;
	struct xdp_port *port;
	uint64_t n_registered_bytes; /* entries lie in [0, that) */
	uint32_t chunk_shift;
	uint32_t chunk_mask;
	uint32_t n_front_bytes; /* in its chunk, before each entry */
	uint32_t n_reaped;    /* entries completed; counts freely, as tx does */
	uint64_t *unknown;    /* completions of no entry; shared, like posted[] */
	uint32_t n_lost;      /* frames the device lost, not yet reaped */
	uint32_t n_before;    /* frames of a killed process, not yet reaped */
	uint32_t n_woken_for; /* of tx, when a zero-copy driver was woken */
	uint32_t n_patient;   /* bursts since then that did not wake it */
	uint32_t n_left_before; /* in the ring, when it was */
	uint64_t woken_ns;    /* when that was */
	bool is_busy;         /* busy polling works */
	uint32_t max_segs;    /* descriptors of a frame */
	bool has_csum;   /* the kernel finishes partial sums */
	struct xdp_times times;
	bool is_stalled; /* the last kick moved nothing and will not */
	int fd;
	uint64_t n_told; /* completed, as in the last statistics; atomic */
	/* Room for those outstanding when the rings are unmapped. */
	uint64_t *left;
	uint32_t n_left;
};

static inline struct xdp_rxq *xdp_rxq_of(struct mr_rxq *base)
{
	return (struct xdp_rxq *)base;
}

static inline struct xdp_txq *xdp_txq_of(struct mr_txq *base)
{
	return (struct xdp_txq *)base;
}

/* rx.c */
mr_rx_burst_fn mri_xdp_rx_burst;
int mri_xdp_rx_arm(struct mr_queue *queue);
/* Give the kernel its n_bufs buffers, -ENOMEM if the pool has fewer. */
int mri_xdp_rx_fill(struct xdp_rxq *rxq);
/* Take back what the kernel has; its socket is closed, the device done. */
void mri_xdp_rx_take_back(struct xdp_rxq *rxq);

/* tx.c */
mr_tx_burst_fn mri_xdp_tx_burst;
int mri_xdp_tx_arm(struct mr_queue *queue);
/*
 * Wait until the kernel has completed all that it took from the ring, or until
 * deadline_ns of the context's clock. Returns how many buffers it still holds.
 */
uint32_t mri_xdp_tx_wait(struct xdp_txq *txq, uint64_t deadline_ns);
/* If the process was killed while it exchanged two entries, the older one is
 * there twice: put the other one back. Call it once positions are known. */
void mri_xdp_tx_mend(struct xdp_txq *txq);
/* Note which entries are outstanding, before the rings are unmapped. */
void mri_xdp_tx_note_left(struct xdp_txq *txq);
/* Free those; the socket is closed, the device done. */
void mri_xdp_tx_take_back(struct xdp_txq *txq);

/* meta.c */
/* Set the metadata of n received entries. */
void mri_xdp_read_meta(const struct xdp_rxq *rxq, const struct mr_frame *frames,
		       struct mr_meta *ret_meta, uint32_t n);
/* Which metadata the port gets: MR_OFFLOAD_*. */
uint32_t mri_xdp_meta_offloads(const struct xdp_port *port);
/* Whether some requested metadata is missing; if so, why. */
bool mri_xdp_lacks_meta(const struct xdp_port *port, char *ret_why,
			size_t n_bytes);

/* csum.c */
/* Mark those of n entries that begin a frame with a partial sum; how many. */
uint32_t mri_xdp_csum_mark(const struct mr_port *port, struct mr_frame *frames,
			   uint32_t n);
/* Have the kernel finish the partial sum of a writable frame, or do so here. */
void mri_xdp_csum_send(struct xdp_txq *txq, const struct mr_frame *frames,
		       const struct mr_meta *meta, struct xsk_tx_meta *request);

/* copy.c */
/*
 * Make a frame that the kernel would refuse into one that it takes: split
 * entries at chunk edges where that is enough, else copy. Consumes the n
 * entries at in, whatever it returns: the entries at out, 0 if the frame was
 * dropped, and counted.
 */
uint32_t mri_xdp_reshape(struct xdp_txq *txq, struct mr_cache *cache,
			 const struct mr_frame *in, uint32_t n,
			 struct mr_frame out[MR_MAX_SEGS]);

#endif
