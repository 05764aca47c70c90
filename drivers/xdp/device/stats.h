/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the kernel and of the device; frames for the kernel. */
#ifndef XDP_DEVICE_STATS_H
#define XDP_DEVICE_STATS_H

#include <millrace/driver.h>

struct xdp_port;

/* stats.c */
/* Map the program's counters. */
int mri_xdp_counters_map(struct xdp_port *port, struct mr_reason *reason);
/* Keep the map of a program's counter in the lease. It outlives the program;
 * one that replaces the program may use the same map. */
int mri_xdp_unserved_keep(struct xdp_port *port, int map_fd,
			  struct mr_reason *reason);
/* Frames that were dropped on queues without a socket. */
uint64_t mri_xdp_n_unserved(const struct xdp_port *port);
/* Reads the names of the driver's counters: they outlive a rename. */
int mri_xdp_stats_open(struct xdp_port *port, struct mr_reason *reterr_reason);
void mri_xdp_stats_close(struct xdp_port *port);
void mri_xdp_rxq_stats(const struct mr_rxq *base, struct mr_rx_stats *stats);
void mri_xdp_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats);
uint32_t mri_xdp_device_drops(const struct mr_port *base,
			      struct mr_named_count *ret_counts, uint32_t n);
uint32_t mri_xdp_device_stats(const struct mr_port *base,
			      struct mr_named_count *ret_counts, uint32_t n);

/* to_kernel.c */
int mri_xdp_open_kernel(struct mr_port *base, struct mr_reason *reterr_reason);
bool mri_xdp_to_kernel(struct mr_port *base, const struct mr_frame *frames,
		       uint32_t n);
/* Its counters. Returns how many there are. */
uint32_t mri_xdp_kernel_stats(const struct xdp_port *port,
			      struct mr_named_count *ret_counts, uint32_t n);
void mri_xdp_kernel_close(struct xdp_port *port);

#endif
