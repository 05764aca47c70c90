/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of opening a port, also again. */
#ifndef MRI_PORT_OPEN_H
#define MRI_PORT_OPEN_H

#include <millrace/driver.h>
#include <millrace/experimental/parcel.h>

#include "port/spec.h"

/* Parse a spec, and find its driver and the pages needed. Opens nothing. */
int mri_port_read(struct mr_ctx *ctx, const char *text, uint32_t page_bytes,
		  struct mr_spec *spec, const struct mr_driver **ret_driver,
		  uint32_t *ret_n_pages, struct mr_reason *reterr_reason);
/* Fill in the members of a port in zeroed memory. Its driver then opens it. */
void mri_port_fill_head(struct mr_port *port, struct mr_ctx *ctx,
			const struct mr_driver *driver,
			const struct mr_port_config *config,
			const struct mr_spec *spec, const char *text);
/* A port that its driver has yet to open. -ENOMEM. */
int mri_port_make(struct mr_ctx *ctx, const struct mr_driver *driver,
		  const struct mr_port_config *config,
		  const struct mr_spec *spec, const char *text,
		  struct mr_port **ret_port, struct mr_reason *reterr_reason);
void mri_port_free(struct mr_port *port);
/*
 * Commit the pages and open the device, from a parcel if it is not NULL; undone
 * on failure.
 */
int mri_port_start(struct mr_port *port, const struct mr_spec *spec,
		   uint32_t n_pages, struct mr_parcel *parcel,
		   struct mr_reason *reterr_reason);
/* Close the device, and free what start and the driver have made. */
void mri_port_end(struct mr_port *port);

#endif
