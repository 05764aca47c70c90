/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libmillrace-ffi: the inline functions of <millrace/millrace.h> as symbols,
 * for languages that cannot compile C. The headers provide the definitions:
 * here, "static inline" is replaced by MR_API.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define static MR_API
#define inline
#define MR_NO_INLINE_BURSTS /* libmillrace exports what these stand for */
#include <millrace/millrace.h>
