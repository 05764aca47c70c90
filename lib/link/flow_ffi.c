/* SPDX-License-Identifier: BSD-3-Clause */
/* The inline functions of <millrace/flow.h> as symbols: see ffi.c. */
#include <stdint.h>

#define static MR_API
#define inline
#include <millrace/flow.h>
