/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of drivers and kernels: what is missing or broken. */
#ifndef XDP_DEVICE_KNOWN_H
#define XDP_DEVICE_KNOWN_H

#include "xdp.h"

enum xdp_feature { XDP_ZC, XDP_DRV };
enum xdp_verdict { XDP_ABSENT, XDP_BROKEN };

/* A kernel's version, as KERNEL_VERSION() has it. */
#define XDP_LINUX(major, minor, patch)                                         \
	((uint32_t)(major) << 24 | (uint32_t)(minor) << 16 | (uint32_t)(patch))

struct xdp_known {
	const char *driver;
	enum xdp_feature feature;
	enum xdp_verdict verdict;
	uint32_t since, until; /* holds from since, not at until; 0: no limit */
	const char *what;      /* the fault, or the remedy */
	const char *source;
};

/* The table, for tests; NULL after the last row. */
const struct xdp_known *mri_xdp_known_row(uint32_t i);
/* The kernel's version, from uname(2) and /proc/version_signature; 0: unknown.
 */
uint32_t mri_xdp_kernel(const char *release, const char *build,
			const char *signature);
/* Whether the table has this verdict for the port's driver and kernel; *ret_why
 * quotes the row, unless NULL. */
bool mri_xdp_known(const struct xdp_port *port, enum xdp_feature feature,
		   enum xdp_verdict verdict, struct mr_reason *ret_why);

#endif
