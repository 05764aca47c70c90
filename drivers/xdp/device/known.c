/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known limits of drivers and kernels. Edit the table when a driver gains a
 * feature, or when a feature turns out not to work.
 *
 * A row applies to kernels from the first version up to, but excluding, the
 * second; 0 means no limit. Kernels before 6.1, that of Debian 12, are not
 * listed. The driver is as 'ethtool -i' prints it.
 *
 *     ABSENT  the driver lacks the feature, and the kernel reports this when we
 *             try it: the row only explains it
 *     BROKEN  the driver offers the feature, but it does not work: mode=auto
 *             and attach=auto avoid it; mode=zc and attach=native try it
 *             anyway
 *
 * Each row cites its source: a commit of torvalds/linux, a CVE record (of
 * CVEProject/cvelistV5; it lists the stable kernels with the fix), or a page.
 * Distributions backport drivers and fixes without changing the kernel's
 * version.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "device/known.h"
#include "xdp.h"

/* clang-format off */
static const struct xdp_known rows[] = {
	/* Zero-copy. */
	{ "ena", XDP_ZC, XDP_ABSENT, 0, 0,
	  "Amazon's own driver has it since 2.7.0", "amzn/amzn-drivers #173" },
	{ "gve", XDP_ZC, XDP_ABSENT, 0, XDP_LINUX(6, 4, 0),
	  "", "fd8e40321a12" },
	{ "igb", XDP_ZC, XDP_ABSENT, 0, XDP_LINUX(6, 14, 0),
	  "", "80f6ccf9f116" },
	{ "igb", XDP_ZC, XDP_BROKEN, XDP_LINUX(6, 14, 0), XDP_LINUX(6, 18, 23),
	  "the NIC stops sending for good when the program is killed",
	  "CVE-2026-31691" },
	{ "igb", XDP_ZC, XDP_BROKEN, XDP_LINUX(6, 19, 0), XDP_LINUX(6, 19, 13),
	  "the NIC stops sending for good when the program is killed",
	  "CVE-2026-31691" },
	{ "mlx5_core", XDP_ZC, XDP_BROKEN, XDP_LINUX(6, 4, 5),
	  XDP_LINUX(6, 4, 10),
	  "the kernel crashes when frames arrive with rx_striding_rq off",
	  "CVE-2023-54223" },
	{ "tsnep", XDP_ZC, XDP_ABSENT, 0, XDP_LINUX(6, 4, 0),
	  "", "3fc2333933fd" },
	/* The rx side appeared in 6.11, but bind fails (6.12.117). */
	{ "virtio_net", XDP_ZC, XDP_ABSENT, 0, XDP_LINUX(6, 13, 0),
	  "", "89f86675cb03" },

	/* Native XDP. */
	{ "gve", XDP_DRV, XDP_ABSENT, 0, XDP_LINUX(6, 4, 0),
	  "", "75eaae158b1b" },
	{ "ionic", XDP_DRV, XDP_ABSENT, 0, XDP_LINUX(6, 9, 0),
	  "", "180e35cdf035" },
	{ "tsnep", XDP_DRV, XDP_ABSENT, 0, XDP_LINUX(6, 3, 0),
	  "", "f0f6460f9130" },
	{ "vmxnet3", XDP_DRV, XDP_ABSENT, 0, XDP_LINUX(6, 6, 0),
	  "", "54f00cce1178" },
};
/* clang-format on */

static const char *const feature_names[] = {
	[XDP_ZC] = "zero-copy",
	[XDP_DRV] = "native XDP",
};

const struct xdp_known *mri_xdp_known_row(uint32_t i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

static bool row_holds(const struct xdp_known *row, const char *driver,
		      enum xdp_feature feature, uint32_t kernel)
{
	return row->feature == feature && kernel >= row->since &&
	       (row->until == 0 || kernel < row->until) &&
	       strcmp(row->driver, driver) == 0;
}

/*
 * On Debian and Ubuntu, the release always ends in .0. The real version is
 * elsewhere: "Debian 6.1.119-1" in the build, "Ubuntu 5.15.0-91.101-generic
 * 5.15.131" in a file.
 */
uint32_t mri_xdp_kernel(const char *release, const char *build,
			const char *signature)
{
	const char *debian = strstr(build, "Debian ");
	unsigned int a = 0, b = 0, c = 0;

	if (debian == NULL || sscanf(debian, "Debian %u.%u.%u", &a, &b, &c) < 2)
		if (sscanf(signature, "Ubuntu %*s %u.%u.%u", &a, &b, &c) != 3)
			sscanf(release, "%u.%u.%u", &a, &b, &c);
	return XDP_LINUX(a, b, c);
}

static uint32_t kernel_now(void)
{
	struct utsname name = { 0 };
	char signature[128] = "";
	FILE *file = NULL;

	(void)uname(&name);
	if (strstr(name.version, "Ubuntu") != NULL)
		file = fopen("/proc/version_signature", "re");
	if (file != NULL) {
		if (fgets(signature, sizeof(signature), file) == NULL)
			signature[0] = '\0';
		fclose(file);
	}
	return mri_xdp_kernel(name.release, name.version, signature);
}

static void print_version(uint32_t kernel, char text[16])
{
	snprintf(text, 16, kernel & UINT16_MAX ? "%u.%u.%u" : "%u.%u",
		 kernel >> 24, kernel >> 16 & UINT8_MAX, kernel & UINT16_MAX);
}

/* NULL: the table has no such row. */
static const struct xdp_known *find_row(const char *driver,
					enum xdp_feature feature,
					enum xdp_verdict verdict,
					uint32_t kernel)
{
	const struct xdp_known *row;

	if (kernel == 0) /* version unknown */
		return NULL;
	for (uint32_t i = 0; (row = mri_xdp_known_row(i)) != NULL; i++)
		if (row->verdict == verdict &&
		    row_holds(row, driver, feature, kernel))
			break;
	return row;
}

static void quote_row(const struct xdp_known *row, uint32_t kernel,
		      struct mr_reason *why)
{
	const char *const feature = feature_names[row->feature];
	const bool is_fixed = row->until != 0;
	char now[16], until[16];

	print_version(kernel, now);
	print_version(row->until, until);
	if (row->verdict == XDP_BROKEN)
		(void)mr_fail(why, 0,
			      "driver '%s': %s is broken in Linux %s%s%s: %s "
			      "(%s)",
			      row->driver, feature, now,
			      is_fixed ? ", fixed in " : "",
			      is_fixed ? until : "", row->what, row->source);
	else if (is_fixed)
		(void)mr_fail(why, 0,
			      "driver '%s' has %s since Linux %s; this is %s "
			      "(%s)",
			      row->driver, feature, until, now, row->source);
	else
		(void)mr_fail(why, 0, "driver '%s' has no %s: %s (%s)",
			      row->driver, feature, row->what, row->source);
}

bool mri_xdp_known(const struct xdp_port *port, enum xdp_feature feature,
		   enum xdp_verdict verdict, struct mr_reason *ret_why)
{
	const uint32_t kernel = kernel_now();
	const struct xdp_known *row =
		find_row(port->dev.driver, feature, verdict, kernel);

	if (row != NULL)
		quote_row(row, kernel, ret_why);
	return row != NULL;
}
