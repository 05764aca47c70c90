/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAT_CHECK_H
#define NAT_CHECK_H

#include "config/config.h"

/*
 * What --check, a start and a reload check of a valid configuration on this
 * host: ports that its kernel uses, and where files will be written. Creates
 * config->addrs, and nothing else. 0, or an exit status with a message.
 */
int nat_check(struct nat_config *config, struct mr_reason *ret_error);

#endif
