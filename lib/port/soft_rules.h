/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules in software: lib/port/soft_rules.c. */
#ifndef PORT_SOFT_RULES_H
#define PORT_SOFT_RULES_H

#include <millrace/experimental/driver_offload.h>

/* For drivers with has_soft_rules. */
extern const struct mr_rules_ops mri_soft_rules_ops;

/* A burst counts a frame before a rule takes or sends it. Between these two
 * calls, the port's counters are consistent. Any thread. */
void mri_soft_rules_lock(const struct mr_port *port);
void mri_soft_rules_unlock(const struct mr_port *port);

#endif
