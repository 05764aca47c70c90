/* SPDX-License-Identifier: BSD-3-Clause */
/* live:IFACE in a build without libbpf, clang and bpftool. */
#include <errno.h>
#include <stdio.h>

#include "live/live.h"

static int none_open(struct mr_ctx *ctx, const char *spec, struct place **ret,
		     struct mr_reason *why)
{
	(void)ctx;
	(void)ret;
	snprintf(why->text, sizeof(why->text),
		 "%.60s: built without live frames; libbpf, clang and bpftool "
		 "were missing when this was built",
		 spec);
	return -ENOTSUP;
}

const struct place_ops live_place = {
	.prefix = "live:",
	.open = none_open,
};
