/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand an open port to another process: the part that all drivers share. The
 * entries of port i are in the folder "port/i".
 */
#ifndef PORT_HAND_OVER_H
#define PORT_HAND_OVER_H

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>

/* -ENOTSUP: the driver cannot hand over ports, or not this one. */
int mri_port_offer(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		   struct mr_reason *reterr_reason);
/* Open a port from an offer. -EINVAL: the offer has another spec. */
int mri_port_take(struct mr_ctx *ctx, const char *text,
		  const struct mr_port_config *config, uint32_t i,
		  struct mr_parcel *parcel, struct mr_port **ret_port,
		  struct mr_reason *reterr_reason);
/* This process owns the device now. */
void mri_port_own(struct mr_port *port);
/* Enter the folder of a port that is being taken over. */
void mri_port_enter(const struct mr_port *port, struct mr_parcel *parcel);

/* rules_hand_over.c, in the folder of the set's first port. The set has the
 * configuration; -EINVAL: the other process's has another, or none. */
int mri_rules_offer(struct mr_rules *rules, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason);
int mri_rules_take(struct mr_rules *rules, struct mr_reason *reterr_reason);
void mri_rules_give(const struct mr_rules *rules, struct mr_parcel *parcel);
/* Of any port. -EINVAL: there are rules, and the port has no set. */
int mri_rules_resume(struct mr_port *port, const struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason);

/* The workers have stopped. */
int mri_port_give(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		  struct mr_reason *reterr_reason);
int mri_port_resume(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason);

/* The driver, to change the device. What mr_dataplane_keep() left is taken back
 * first: it does not have the change. */
const struct mr_driver *mri_port_change(struct mr_port *port);
/* The same for a port whose process may be killed: -ENOTSUP, if it has rules, or
 * its driver cannot recover it. */
int mri_port_keep(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		  struct mr_reason *reterr_reason);
/* After mri_port_take(): its process was killed. */
int mri_port_recover(struct mr_port *port, uint32_t i, struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason);

#endif
