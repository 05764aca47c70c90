/* SPDX-License-Identifier: BSD-3-Clause */
/* live:IFACE as a place to send to; see net/place.h. */
#ifndef LIVE_PLACE_H
#define LIVE_PLACE_H

#include "net/place.h"

/* Without libbpf, clang and bpftool at build time its open() says so. */
extern const struct place_ops live_place;

#endif
