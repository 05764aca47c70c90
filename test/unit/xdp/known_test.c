/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/xdp/device/known.c, for each row of its table, and of how
 * socket/bind_modes.c uses them. The test replaces sockets and uname(2).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "device/known.h"
#include "socket/socket.h"
#include "support/test.h"
#include "xdp.h"

static uint32_t kernel; /* reported by uname() */
static bool has_zc;     /* whether the kernel binds without copies */
static uint32_t n_zc_tries;

int __wrap_uname(struct utsname *name);

int __wrap_uname(struct utsname *name)
{
	snprintf(name->release, sizeof(name->release), "%u.%u.%u-test",
		 kernel >> 24, kernel >> 16 & UINT8_MAX, kernel & UINT16_MAX);
	strcpy(name->version, "#1 SMP");
	return 0;
}

uint32_t mri_xdp_zc_max_segs(uint32_t ifindex)
{
	(void)ifindex;
	return 1;
}

int mri_xdp_sockets_open(struct xdp_port *port, struct xdp_bind_mode bind_mode,
			 bool *ret_is_final, struct mr_reason *reason)
{
	*ret_is_final = false;
	port->lease.max_segs = bind_mode.max_segs;
	if (!bind_mode.is_zc)
		return 0;
	n_zc_tries++;
	return has_zc ? 0 :
			mr_fail(reason, -ENOTSUP, "xdp:test0: not supported");
}

/* Open a port up to the choice of its mode; 0 or -errno. */
static int climb(struct xdp_port *port, const char *driver, uint32_t mode,
		 bool is_native, struct mr_reason *reason)
{
	static struct mr_port_info info;

	info = (struct mr_port_info){ .mtu_bytes = 1500, .name = "xdp:test0" };
	*port = (struct xdp_port){ .options.mode = mode,
				   .lease.is_native = is_native,
				   .lease.chunk_bytes = 4096,
				   .base.info = &info };
	strcpy(port->dev.driver, driver);
	n_zc_tries = 0;
	return mri_xdp_climb(port, false, reason);
}

/* The first kernel that a row holds for. */
static uint32_t first(const struct xdp_known *row)
{
	return row->since != 0 ? row->since : XDP_LINUX(6, 1, 0);
}

/* Whether the table gives this row for the kernel. */
static bool is_found(const struct xdp_known *row, uint32_t k)
{
	static struct xdp_port port;
	struct mr_reason why = { "" };

	kernel = k;
	strcpy(port.dev.driver, row->driver);
	return mri_xdp_known(&port, row->feature, row->verdict, &why) &&
	       strstr(why.text, row->source) != NULL &&
	       strstr(why.text, row->what) != NULL;
}

TEST(each_row_ends_at_its_version)
{
	const struct xdp_known *row;

	for (uint32_t i = 0; (row = mri_xdp_known_row(i)) != NULL; i++) {
		print_message("row %u: %s\n", i, row->driver);
		assert_true(is_found(row, first(row)));
		if (row->since != 0)
			assert_false(is_found(row, row->since - 1));
		if (row->until == 0)
			continue;
		assert_true(is_found(row, row->until - 1));
		assert_false(is_found(row, row->until));
	}
}

/* info.why has 256 bytes: the quotation fits. */
TEST(each_row_has_a_source_and_fits)
{
	const struct xdp_known *row;

	for (uint32_t i = 0; (row = mri_xdp_known_row(i)) != NULL; i++) {
		assert_true(strlen(row->source) > 0);
		assert_true(strlen(row->what) > 0 ||
			    (row->verdict == XDP_ABSENT && row->until != 0));
		assert_true(strlen(row->driver) + strlen(row->what) +
				    strlen(row->source) <
			    160);
	}
}

TEST(auto_skips_broken_zero_copy_and_zc_does_not)
{
	const struct xdp_known *row;
	struct mr_reason reason;
	struct xdp_port port;

	has_zc = true;
	for (uint32_t i = 0; (row = mri_xdp_known_row(i)) != NULL; i++) {
		if (row->feature != XDP_ZC || row->verdict != XDP_BROKEN)
			continue;
		kernel = first(row);
		assert_int_equal(
			climb(&port, row->driver, XDP_MODE_AUTO, true, &reason),
			0);
		assert_int_equal(n_zc_tries, 0);
		assert_string_equal(port.base.info->mode, "copy");
		assert_non_null(strstr(port.base.info->why, row->what));
		assert_non_null(strstr(port.base.info->why, row->source));

		assert_int_equal(
			climb(&port, row->driver, XDP_MODE_ZC, true, &reason),
			0);
		assert_string_equal(port.base.info->mode, "zc");
		assert_string_equal(port.base.info->why, "");

		kernel = row->until;
		assert_int_equal(
			climb(&port, row->driver, XDP_MODE_AUTO, true, &reason),
			0);
		assert_string_equal(port.base.info->mode, "zc");
	}
}

/* A kernel may have what its version lacks. */
TEST(missing_features_are_tried_and_explained)
{
	const struct xdp_known *row;
	struct mr_reason reason;
	struct xdp_port port;

	for (uint32_t i = 0; (row = mri_xdp_known_row(i)) != NULL; i++) {
		if (row->verdict != XDP_ABSENT)
			continue;
		kernel = row->until != 0 ? row->until - 1 : XDP_LINUX(9, 0, 0);
		has_zc = row->feature == XDP_ZC;
		if (has_zc) {
			assert_int_equal(climb(&port, row->driver,
					       XDP_MODE_AUTO, true, &reason),
					 0);
			assert_string_equal(port.base.info->mode, "zc");
			has_zc = false;
		}
		assert_int_equal(climb(&port, row->driver, XDP_MODE_AUTO,
				       row->feature == XDP_ZC, &reason),
				 0);
		assert_non_null(strstr(port.base.info->why, row->source));
		assert_int_equal(climb(&port, row->driver, XDP_MODE_ZC,
				       row->feature == XDP_ZC, &reason),
				 -ENOTSUP);
		assert_non_null(strstr(reason.text, row->source));
		assert_non_null(strstr(reason.text, "xdp:test0: mode=zc: "));
	}
}

TEST(requested_copy_mode_is_not_explained)
{
	struct mr_reason reason;
	struct xdp_port port;

	kernel = XDP_LINUX(6, 1, 0);
	assert_int_equal(climb(&port, "igb", XDP_MODE_COPY, true, &reason), 0);
	assert_string_equal(port.base.info->why, "mode=copy was asked for");
}

TEST(the_version_is_read_as_distributions_write_it)
{
	static const struct {
		const char *release, *build, *signature;
		uint32_t kernel;
	} cases[] = {
		{ "6.18.44", "#1 SMP", "", XDP_LINUX(6, 18, 44) },
		{ "7.0-rc1+", "#1", "", XDP_LINUX(7, 0, 0) },
		{ "6.1.0-28-amd64", "#1 SMP Debian 6.1.119-1 (2024-11-22)", "",
		  XDP_LINUX(6, 1, 119) },
		{ "7.2.12+deb14-amd64", "#1 SMP Debian 7.2.12-1", "",
		  XDP_LINUX(7, 2, 12) },
		{ "7.2-amd64", "#1 SMP Debian 7.2-1", "", XDP_LINUX(7, 2, 0) },
		{ "5.15.0-91-generic", "#101-Ubuntu SMP",
		  "Ubuntu 5.15.0-91.101-generic 5.15.131\n",
		  XDP_LINUX(5, 15, 131) },
		{ "5.15.0-91-generic", "#101-Ubuntu SMP", "",
		  XDP_LINUX(5, 15, 0) },
		{ "strange", "", "", XDP_LINUX(0, 0, 0) },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mri_xdp_kernel(cases[i].release,
						cases[i].build,
						cases[i].signature),
				 cases[i].kernel);
}
