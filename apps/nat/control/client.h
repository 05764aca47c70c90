/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a running instance, from the command line. */
#ifndef NAT_CLIENT_H
#define NAT_CLIENT_H

#include "options.h"

/* Ask, and print the answer. Returns the exit status. */
int nat_client_ask(const struct options *options);

#endif
