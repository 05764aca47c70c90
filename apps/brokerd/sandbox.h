/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-brokerd gives up before it reads a request. */
#ifndef BROKERD_SANDBOX_H
#define BROKERD_SANDBOX_H

#include <millrace/millrace.h>

/*
 * Keep the capabilities that ports need, and no others, for good; then only the
 * system calls that serving makes. -EPERM: one of the capabilities is missing.
 */
int sandbox_enter(struct mr_reason *ret_why);

#endif
