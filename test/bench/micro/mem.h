/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_H
#define MEM_H

#include "options.h"

/* mr-bench mem or flow. command: what was typed. Returns the exit status. */
int mem_main(const struct options *options, const char *command);

#endif
