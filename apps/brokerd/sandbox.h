/* SPDX-License-Identifier: BSD-3-Clause */
/* Privileges that mr-brokerd drops before it reads a request. */
#ifndef BROKERD_SANDBOX_H
#define BROKERD_SANDBOX_H

#include <millrace/millrace.h>

/*
 * Permanently drop all capabilities except those that ports need, then allow
 * only the system calls that serving needs. -EPERM: a needed capability is
 * missing.
 */
int sandbox_enter(struct mr_reason *ret_why);

#endif
