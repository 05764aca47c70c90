/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The program on the interface. It sends each frame to the socket of the queue
 * on which it arrived. If there is none, it drops and counts the frame or, with
 * the option partial, leaves it to the kernel. Frames that the port's filter
 * does not match never come here: filter_program.c counts and passes them.
 *
 * Each program exists twice, with one body: only a program in a "frags" section
 * gets frames of several buffers, and a veth allows its peer an MTU above one
 * page only with such a program.
 */
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "program/steer.bpf.h"

SEC("xdp")
int millrace(struct xdp_md *ctx)
{
	return steer(ctx);
}

SEC("xdp.frags")
int millrace_frags(struct xdp_md *ctx)
{
	return steer(ctx);
}

/* For libxdp's dispatcher, whose programs must not be able to change frames. */
SEC("xdp")
int millrace_plain(struct xdp_md *ctx)
{
	return redirect_or_drop(ctx);
}

SEC("xdp.frags")
int millrace_plain_frags(struct xdp_md *ctx)
{
	return redirect_or_drop(ctx);
}

char licence_text[] SEC("license") = "Dual BSD/GPL";
