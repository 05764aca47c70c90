/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the data plane: the section "dataplane" of a configuration file,
 * options with the same names, and the key "metrics". */
#ifndef SUPPORT_DATAPLANE_KEYS_H
#define SUPPORT_DATAPLANE_KEYS_H

#include "dataplane.h"
#include "objections.h"

/* Groups of options that only some programs have. */
enum {
	DATAPLANE_WORKERS = 1 << 0,
	DATAPLANE_IDLE = 1 << 1,
	DATAPLANE_MTU = 1 << 2,
	DATAPLANE_PROMISC = 1 << 3,
};

/* Of struct dataplane_config. */
extern const struct yaml_key dataplane_keys[];

/* For dataplane_config.metrics. */
yaml_read_fn dataplane_read_metrics;
yaml_write_fn dataplane_write_metrics;

/* Whether they are consistent: 0, or -EINVAL with objections added. */
int dataplane_check(const struct dataplane_config *config,
		    struct objections *objections);

#endif
