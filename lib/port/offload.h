/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device lacks, done in front of its driver: lib/port/offload.c. */
#ifndef PORT_OFFLOAD_H
#define PORT_OFFLOAD_H

#include <millrace/driver.h>

/* Behind the driver's open(), and in front of its close(). 0 or -ENOMEM. */
int mri_offload_open(struct mr_port *port, struct mr_reason *reterr_reason);
void mri_offload_close(struct mr_port *port);
/* Enter the tx queues that the driver has added and nobody uses.
 * mri_offload_open() does it for the others. */
void mri_offload_enter(struct mr_port *port);
/* Whether it may be used. Any thread. */
bool mri_offload_has_entered(const struct mr_txq *txq);

/* Frames, 0 or 1, that wait in front of the driver. Any thread. */
uint32_t mri_offload_n_held(const struct mr_txq *txq);

/* The MR_OFFLOAD_* that cuts segments of an enum mr_gso_type; 0: none. */
uint32_t mri_offload_cuts(uint16_t gso_type);

#endif
