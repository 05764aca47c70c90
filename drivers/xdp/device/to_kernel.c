/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand frames back to the kernel, as if they had arrived on the interface:
 *
 *     write() --> tap --> tc program: bpf_redirect() --> interface's ingress
 *
 * The kernel thus sees the right input interface for routing, rp_filter, ARP
 * and sockets bound to a device. The tap has no carrier, so the kernel sends
 * nothing through it, and it disappears with its fd. Native XDP runs before
 * this point; generic XDP runs after it, and would give it back to the port.
 *
 * Source: linux/net/core/filter.c, __bpf_rx_skb(); drivers/net/tun.c;
 * linux/virtio_net.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "device/stats.h"
#include "xdp.h"

/* Create the tap, up and without a carrier. Returns its fd, or -errno. */
static int make_tap(char ret_name[IFNAMSIZ])
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	const int fd = mr_fd_guard(
		open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
	int err, off = 0;

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "mrk%%d");
	if (ioctl(fd, TUNSETIFF, &ifr) < 0) {
		err = -errno;
		mr_fd_close(fd);
		return err;
	}
	memcpy(ret_name, ifr.ifr_name, IFNAMSIZ);
	(void)ioctl(fd, TUNSETCARRIER, &off); /* Linux 5.0 */
	ifr.ifr_flags = IFF_UP | IFF_NOARP;
	err = mri_xdp_netdev_control(ret_name, SIOCSIFFLAGS, &ifr);
	if (err == 0)
		return fd;
	mr_fd_close(fd);
	return err;
}

/* Attach the program that redirects what the tap receives. */
static int attach_redirect(const char *tap, uint32_t ifindex)
{
	const struct bpf_insn insns[] = {
		{ BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, (int32_t)ifindex },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, BPF_F_INGRESS },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	const int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "mr_to_kernel",
				     "Dual BSD/GPL", insns,
				     sizeof(insns) / sizeof(insns[0]), NULL);
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_INGRESS,
			    .ifindex = (int)if_nametoindex(tap));
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = fd);
	int err = fd < 0 ? fd : bpf_tc_hook_create(&hook);

	if (err == 0)
		err = bpf_tc_attach(&hook, &options);
	if (fd >= 0)
		close(fd); /* the hook holds the program */
	return err;
}

int mri_xdp_open_kernel(struct mr_port *base, struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const char *const name = port->base.info->name;
	char tap[IFNAMSIZ];
	int err, fd;

	if (port->kernel.fd >= 0)
		return 0;
	if (!port->lease.is_native)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: frames cannot be handed to the kernel with "
			       "generic attach: it would hand them back",
			       name);
	fd = make_tap(tap);
	if (fd < 0)
		return mri_xdp_refuse_request(name, fd,
					      "create a tap (/dev/net/tun)",
					      "CAP_NET_ADMIN", reterr_reason);
	mri_xdp_quiet_begin();
	err = attach_redirect(tap, port->dev.ifindex);
	mri_xdp_quiet_end();
	if (err < 0) {
		mr_fd_close(fd);
		return mri_xdp_refuse_request(
			name, err, "attach a tc program to a tap",
			"CAP_BPF or CAP_NET_ADMIN", reterr_reason);
	}
	port->kernel.fd = fd;
	return 0;
}

/* What the kernel must know about a frame's checksum. */
static struct virtio_net_hdr header_of(const struct mr_port *port,
				       const struct mr_frame *frames)
{
	struct virtio_net_hdr header = { 0 };
	struct mr_partial partial;

	if (frames->flags & MR_FRAME_CSUM_VALID)
		header.flags = VIRTIO_NET_HDR_F_DATA_VALID;
	if (!(frames->flags & MR_FRAME_CSUM_PARTIAL) ||
	    mr_partial_find(port->base, frames, NULL, &partial) < 0)
		return header;
	header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	header.csum_start = (uint16_t)partial.start_bytes;
	header.csum_offset =
		(uint16_t)(partial.field_bytes - partial.start_bytes);
	return header;
}

bool mri_xdp_to_kernel(struct mr_port *base, const struct mr_frame *frames,
		       uint32_t n)
{
	struct xdp_port *port = (struct xdp_port *)base;
	struct virtio_net_hdr header = header_of(base, frames);
	struct iovec parts[1 + MR_MAX_SEGS] = { { &header, sizeof(header) } };
	ssize_t n_bytes = sizeof(header);
	bool is_handed;

	for (uint32_t i = 0; i < n; i++) {
		parts[1 + i].iov_base = mr_frame_data(base->base, &frames[i]);
		parts[1 + i].iov_len = frames[i].len;
		n_bytes += frames[i].len;
	}
	is_handed = writev(port->kernel.fd, parts, 1 + (int)n) == n_bytes;
	__atomic_fetch_add(is_handed ? &port->kernel.handed :
				       &port->kernel.lost,
			   1, __ATOMIC_RELAXED);
	return is_handed;
}

uint32_t mri_xdp_kernel_stats(const struct xdp_port *port,
			      struct mr_named_count *ret_counts, uint32_t n)
{
	const struct mr_named_count counts[] = {
		{ "to_kernel",
		  __atomic_load_n(&port->kernel.handed, __ATOMIC_RELAXED) },
		{ "to_kernel_lost",
		  __atomic_load_n(&port->kernel.lost, __ATOMIC_RELAXED) },
	};

	for (uint32_t i = 0; i < n && i < 2; i++)
		ret_counts[i] = counts[i];
	return 2;
}

void mri_xdp_kernel_close(struct xdp_port *port)
{
	mr_fd_close(port->kernel.fd);
	port->kernel.fd = -1;
}
