/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device lacks, done in front of its driver: lib/port/offload.c. */
#ifndef PORT_OFFLOAD_H
#define PORT_OFFLOAD_H

#include <millrace/driver.h>

/* Behind the driver's open(), and in front of its close(). 0 or -ENOMEM. */
int mri_offload_open(struct mr_port *port, struct mr_reason *reterr_reason);
void mri_offload_close(struct mr_port *port);

/* The driver's functions that a tx queue calls. */
struct mri_tx_calls {
	mr_tx_burst_fn *burst;
	int (*arm)(struct mr_queue *queue);
};
/* Replace the driver's functions and return the former ones. Offloads still run
 * in front of them. The queue is not in use. */
struct mri_tx_calls mri_offload_replace(struct mr_txq *txq,
					struct mri_tx_calls calls);

/* What rules in software sent from a tx queue. */
struct mri_by_rules {
	uint64_t frames, bytes;
	uint64_t completed; /* highest count known for other frames */
};
struct mri_by_rules *mri_offload_by_rules(const struct mr_txq *txq);
/* Subtract what rules sent. Pending frames may all be theirs. */
void mri_offload_discount(const struct mr_txq *txq, struct mr_tx_stats *stats);
/* Frames, 0 or 1, that wait in front of the driver. Any thread. */
uint32_t mri_offload_n_held(const struct mr_txq *txq);

/* The MR_OFFLOAD_* that cuts segments of an enum mr_gso_type; 0: none. */
uint32_t mri_offload_cuts(uint16_t gso_type);
/* The sum over n_bytes of a frame from start on: lib/port/partial.c. */
uint64_t mri_partial_sum(void *base, const struct mr_frame *frames,
			 uint32_t start, uint32_t n_bytes);

#endif
