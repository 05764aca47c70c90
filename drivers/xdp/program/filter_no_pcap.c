/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces program/filter_pcap.c if libpcap is missing. */
#include <errno.h>

#include <millrace/driver.h>

#include "program/filter.h"

int mri_xdp_filter_compile(const struct mr_ctx *ctx, const char *port,
			   const char *expression, struct xdp_filter *ret,
			   struct mr_reason *reterr_reason)
{
	(void)ctx, (void)expression, (void)ret;
	return mr_fail(reterr_reason, -ENOTSUP,
		       "%s: no filters: Millrace was built without libpcap: "
		       "install libpcap-dev and build it again",
		       port);
}
