/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAT_CHECK_H
#define NAT_CHECK_H

#include "config/config.h"

/*
 * Check a valid configuration against this host, for --check, a start and a
 * reload: ports that its kernel uses, and folders of files to be written.
 * Creates only config->addrs. 0, or an exit status with a message.
 */
int nat_check(struct nat_config *config, struct mr_reason *ret_error);

#endif
