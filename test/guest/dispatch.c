/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dispatch IFNAME OBJECT: attach the program of section "xdp" with libxdp's
 * dispatcher, like other users of libxdp, and leave it attached.
 */
#include <err.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <xdp/libxdp.h>

int main(int argc, char **argv)
{
	struct xdp_program *program;
	struct xdp_multiprog *all;
	int error;

	if (argc != 3)
		errx(2, "usage: dispatch IFNAME OBJECT");
	program = xdp_program__open_file(argv[2], "xdp", NULL);
	if (libxdp_get_error(program) != 0)
		errx(1, "%s: %ld", argv[2], libxdp_get_error(program));
	error = xdp_program__attach(program, (int)if_nametoindex(argv[1]),
				    XDP_MODE_NATIVE, 0);
	if (error < 0)
		errx(1, "%s: %s", argv[1], strerror(-error));
	all = xdp_multiprog__get_from_ifindex((int)if_nametoindex(argv[1]));
	if (libxdp_get_error(all) != 0 || xdp_multiprog__is_legacy(all))
		errx(1, "%s: no dispatcher", argv[1]);
	xdp_multiprog__close(all);
	xdp_program__close(program);
	return 0;
}
