/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port's filter: which frames it takes; all others stay with the kernel.
 *
 *     xdp_expr.c     libpcap compiles an expression to classic BPF
 *     xdp_cbpf.c     translated to eBPF, which goes in front of a program
 *     xdp_filter.c   its options; program and filter loaded as one
 *     xdp_session.c  whether it may take frames of a login session
 *     xdp_maybe.c    whether it may take a frame known in part
 */
#ifndef XDP_FILTER_H
#define XDP_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_insn;
struct bpf_program;
struct mr_ctx;
struct mr_reason;
struct mr_rx_stats;
struct mr_spec;
struct sock_filter;
struct xdp_port;

enum {
	XDP_FILTER_TEXT_BYTES = 8192, /* of an expression, with its end */
	XDP_FILTER_MAX = 4096, /* instructions of classic BPF: BPF_MAXINSNS */
	XDP_FILTER_COUNT_BYTES = 64, /* one counter per cache line */
};

/* An expression as classic BPF. */
struct xdp_cbpf {
	struct sock_filter *insns; /* of mr_alloc() */
	uint32_t n;
};

enum { XDP_SHAPE_BYTES = 128 };

/* Frames of some kind: the bits that all have, the rest is anything. */
struct xdp_shape {
	uint8_t bytes[XDP_SHAPE_BYTES]; /* 0 where it is not known */
	uint8_t known[XDP_SHAPE_BYTES]; /* a mask */
};

/* Where the program counts the frames that it passes to the kernel. */
struct xdp_filter_count {
	int map_fd; /* of an array with one entry: a counter per queue */
	uint32_t first_queue, n_queues;
};

/* The filter of a port. */
struct xdp_filter {
	struct xdp_cbpf cbpf;
	struct xdp_filter_count count;
	uint64_t (*passed)[XDP_FILTER_COUNT_BYTES / sizeof(uint64_t)];
};

/* The filter that the options ask for, in port->filter; NULL: none. */
int mri_xdp_filter_read(struct xdp_port *port, const struct mr_spec *spec,
			struct mr_reason *reterr_reason);
/* Make the counters; before programs are loaded. */
int mri_xdp_filter_open(struct xdp_port *port, struct mr_reason *reterr_reason);
void mri_xdp_filter_close(struct xdp_port *port);
/*
 * Load a copy of a loaded program that runs only for frames that the filter
 * takes, if there is one, and leaves the others to the kernel; and that calls
 * prog.vlan_kfunc. An fd, or a negative errno.
 */
int mri_xdp_filter_load(const struct xdp_port *port,
			const struct bpf_program *program, bool has_frags,
			struct mr_reason *reterr_reason);
/* Add the frames of the queue that were left to the kernel. */
void mri_xdp_filter_stats(const struct xdp_port *port, uint32_t queue,
			  struct mr_rx_stats *stats);

/*
 * Compile a pcap-filter(7) expression for Ethernet.
 * -EINVAL: a message says where it is wrong, and why; -ENOTSUP, -ENOMEM
 */
int mri_xdp_expr_compile(const struct mr_ctx *ctx, const char *port,
			 const char *expression, struct xdp_cbpf *ret,
			 struct mr_reason *reterr_reason);

/*
 * Translate to eBPF that begins a program: frames that match run what follows
 * it, with the context in r1; the others are counted and passed to the kernel.
 * With insns == NULL only *ret_n is set.
 *
 * 0, or -ENOTSUP: an instruction that has no translation, a loop, no frame that
 * matches, or too many instructions
 */
int mri_xdp_cbpf_translate(const struct xdp_cbpf *cbpf,
			   const struct xdp_filter_count *count,
			   struct bpf_insn *insns, uint32_t *ret_n);

/* Whether it may match a frame of that shape; of a translatable program. */
bool mri_xdp_cbpf_may_match(const struct xdp_cbpf *cbpf,
			    const struct xdp_shape *shape);

/*
 * Whether the filter leaves alone all frames that keep this machine reachable
 * through the interface. 0, or -EBUSY: a message names one that it may take
 */
int mri_xdp_session_check(const struct xdp_port *port,
			  struct mr_reason *reterr_reason);

#endif
