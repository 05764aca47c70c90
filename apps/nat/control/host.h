/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAT_HOST_H
#define NAT_HOST_H

#include "config/config.h"

/* Whether the NAT and this host's kernel use different ports now, if they share
 * addresses: 0, or an exit status with a message. config has its addrs. */
int nat_host_check(const struct nat_config *config,
		   struct mr_reason *ret_error);

#endif
