/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of bind modes: zero-copy before copy, each without SG where MTU,
 * headroom and tailroom fit a chunk, and with SG otherwise. What was reached,
 * and why not more, is in the port's info.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device/known.h"
#include "socket/socket.h"
#include "xdp.h"

enum { MIN_MTU_BYTES = 68 }; /* RFC 791: the least that IPv4 works with */

/* Longest frame that one buffer holds when the kernel leaves SG out. */
static uint32_t room_without_sg(const struct xdp_port *port)
{
	const uint32_t n_taken = XSK_PACKET_HEADROOM +
				 port->lease.headroom_bytes +
				 port->base.tailroom_bytes;

	return n_taken < port->lease.chunk_bytes ?
		       port->lease.chunk_bytes - n_taken :
		       0;
}

int mri_xdp_choose_sg(const struct xdp_port *port, bool *ret_has_sg,
		      struct mr_reason *reason)
{
	const uint32_t longest = port->base.info->mtu_bytes + XDP_LINK_BYTES;
	const uint32_t room = room_without_sg(port);

	if (room < XDP_LINK_BYTES + MIN_MTU_BYTES)
		return mr_fail(reason, -ENOTSUP,
			       "%s: headroom %u and tailroom %u leave no room "
			       "for a frame in a chunk of %u, of which the "
			       "kernel takes %d",
			       port->base.info->name, port->base.headroom_bytes,
			       port->base.tailroom_bytes,
			       port->lease.chunk_bytes, XSK_PACKET_HEADROOM);
	*ret_has_sg = port->options.sg == XDP_ON || longest > room;
	if (*ret_has_sg && port->options.sg == XDP_OFF)
		return mr_fail(
			reason, -EINVAL,
			"%s: MTU %u is too large for one chunk of %u "
			"bytes: %u with headroom %u and tailroom %u; "
			"lower it, or leave sg=off out",
			port->base.info->name, port->base.info->mtu_bytes,
			port->lease.chunk_bytes, room - XDP_LINK_BYTES,
			port->base.headroom_bytes, port->base.tailroom_bytes);
	if (*ret_has_sg && port->base.tailroom_bytes > 0)
		return mr_fail(reason, -ENOTSUP,
			       "%s: frames of several buffers have no tailroom "
			       "on AF_XDP: MTU at most %u here, or a pool with "
			       "tailroom 0",
			       port->base.info->name, room - XDP_LINK_BYTES);
	return 0;
}

const char *mri_xdp_sg_cause(const struct xdp_port *port)
{
	if (port->options.sg == XDP_ON)
		return "sg=on";
	if (port->base.info->mtu_bytes + XDP_LINK_BYTES > room_without_sg(port))
		return "this MTU";
	return "the peer's larger MTU";
}

/*
 * What a frame may have so that a zero-copy NIC puts it in one buffer. NICs
 * count the bytes of a buffer in steps, and the kernel tells no one which: a
 * frame that is longer than the last whole step comes in pieces that look like
 * frames. Sources: xsk_pool_get_rx_frame_size() for most; igb, igc and ixgbe
 * (82599) round down to SRRCTL.BSIZEPKT's 1 KiB (measured on igb, Linux 7.2).
 */
static uint32_t room_of_zc(const struct xdp_port *port)
{
	static const char *const with_kib_steps[] = { "igb", "igc", "ixgbe" };
	uint32_t room = port->lease.chunk_bytes - XSK_PACKET_HEADROOM -
			port->lease.headroom_bytes;
	uint32_t step = 128;

	for (uint32_t i = 0; i < 3; i++)
		if (strcmp(port->dev.driver, with_kib_steps[i]) == 0)
			step = 1024;
	room -= room % step;
	return room < room_without_sg(port) ? room : room_without_sg(port);
}

/* The longest frame that one way to bind takes, in both directions. */
static uint32_t max_bytes(const struct xdp_port *port,
			  struct xdp_bind_mode bind_mode)
{
	uint32_t room = port->lease.chunk_bytes - XSK_PACKET_HEADROOM -
			port->lease.headroom_bytes;

	if (bind_mode.max_segs == 1)
		return bind_mode.is_zc ? room_of_zc(port) :
					 room_without_sg(port);
	if (bind_mode
		    .is_zc) /* xsk_pool_get_rx_frame_size() of a pool with SG */
		room = (room - XSK_SG_TAILROOM) / 128 * 128;
	return bind_mode.max_segs * room;
}

uint32_t mri_xdp_max_mtu(const struct xdp_port *port)
{
	const struct xdp_bind_mode bind_mode = {
		.is_zc = port->lease.n_zc_queues > 0,
		.max_segs = port->lease.max_segs
	};

	return max_bytes(port, bind_mode) - XDP_LINK_BYTES;
}

/* *ret_is_final: the next bind mode would fail as well. */
static int climb_zc(struct xdp_port *port, bool has_sg, bool *ret_is_final,
		    struct mr_reason *why)
{
	struct xdp_bind_mode bind_mode = { .is_zc = true, .max_segs = 1 };

	*ret_is_final = false;
	if (port->options.mode == XDP_MODE_COPY)
		return mr_fail(why, -ENOTSUP, "mode=copy was asked for");
	if (!port->lease.is_native)
		return mr_fail(why, -ENOTSUP,
			       "the XDP program is attached in generic mode; "
			       "zero-copy needs native mode");
	if (port->options.mode == XDP_MODE_AUTO &&
	    mri_xdp_known(port, XDP_ZC, XDP_BROKEN, why))
		return -ENOTSUP;
	if (has_sg)
		bind_mode.max_segs = mri_xdp_zc_max_segs(port->dev.ifindex);
	if (has_sg && bind_mode.max_segs == 1)
		return mr_fail(why, -ENOTSUP,
			       "driver '%s' has no zero-copy here, or none "
			       "with several buffers per frame, which %s "
			       "requires",
			       port->dev.driver, mri_xdp_sg_cause(port));
	if (xdp_max_bytes(port) > max_bytes(port, bind_mode))
		return mr_fail(why, -ENOTSUP,
			       "without copies, driver '%s' receives at most "
			       "%u bytes in %u chunks of %u, too few for MTU "
			       "%u: use larger pages or a smaller MTU",
			       port->dev.driver, max_bytes(port, bind_mode),
			       bind_mode.max_segs, port->lease.chunk_bytes,
			       port->base.info->mtu_bytes);
	return mri_xdp_sockets_open(port, bind_mode, ret_is_final, why);
}

/* Why climb_zc() failed, if the table of known drivers has a cause. */
static void find_cause(const struct xdp_port *port, struct mr_reason *why)
{
	if (port->lease.is_native)
		(void)mri_xdp_known(port, XDP_ZC, XDP_ABSENT, why);
	else if (port->options.attach == XDP_ATTACH_AUTO &&
		 !mri_xdp_known(port, XDP_DRV, XDP_BROKEN, why))
		(void)mri_xdp_known(port, XDP_DRV, XDP_ABSENT, why);
}

/* Reasons begin with the port's name; where it has been said, not again. */
static const char *without_name(const struct xdp_port *port,
				const struct mr_reason *why)
{
	const char *const name = port->base.info->name;
	const size_t n = strlen(name);

	return strncmp(why->text, name, n) == 0 && why->text[n] == ':' ?
		       why->text + n + 2 :
		       why->text;
}

int mri_xdp_climb(struct xdp_port *port, bool has_sg, struct mr_reason *reason)
{
	struct mr_port_info *info = port->base.info;
	struct mr_reason why = { "" };
	const struct xdp_bind_mode copy = { .max_segs =
						    has_sg ? MR_MAX_SEGS : 1 };
	bool is_final;
	int err = climb_zc(port, has_sg, &is_final, &why);

	if (err == 0) {
		snprintf(info->mode, sizeof(info->mode), "zc");
		return 0;
	}
	if (port->options.mode != XDP_MODE_COPY && !is_final)
		find_cause(port, &why);
	if (port->options.mode == XDP_MODE_ZC)
		return mr_fail(reason, err, "%s: mode=zc: %s", info->name,
			       without_name(port, &why));
	if (is_final) {
		*reason = why;
		return err;
	}
	err = mri_xdp_sockets_open(port, copy, &is_final, reason);
	if (err < 0)
		return err;
	snprintf(info->mode, sizeof(info->mode), "copy");
	snprintf(info->why, sizeof(info->why), "%.255s",
		 without_name(port, &why));
	return 0;
}
