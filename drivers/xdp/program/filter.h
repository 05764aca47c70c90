/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port's filter: which frames it takes; all others stay with the kernel.
 */
#ifndef XDP_PROGRAM_FILTER_H
#define XDP_PROGRAM_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_insn;
struct bpf_program;
struct mr_ctx;
struct mr_port;
struct mr_reason;
struct mr_rx_stats;
struct mr_spec;
struct sock_filter;
struct xdp_port;

enum {
	XDP_FILTER_TEXT_BYTES = 8192, /* of an expression, with NUL */
	XDP_FILTER_MAX = 4096, /* instructions of classic BPF: BPF_MAXINSNS */
	XDP_FILTER_COUNT_BYTES = 64, /* one counter per cache line */
};

/* An expression as classic BPF. */
struct xdp_filter {
	struct sock_filter *insns; /* from mr_alloc() */
	uint32_t n;
};

/* The options that mri_xdp_filter_read() reads. */
#define XDP_FILTER_KEYS                                                        \
	"filter", "vlan", "ethertype", "dst", "ports", "fragments"

enum { XDP_SHAPE_BYTES = 128 };

/* A kind of frames: bits that all of them have in common. */
struct xdp_shape {
	uint8_t bytes[XDP_SHAPE_BYTES]; /* 0 where unknown */
	uint8_t known[XDP_SHAPE_BYTES]; /* a mask */
};

/* Counters of the frames that the program passes to the kernel. */
struct xdp_filter_count {
	int map_fd; /* array with one entry: a counter per queue */
	uint32_t first_queue, n_queues;
};

/* Set port->filter from the options. */
int mri_xdp_filter_read(struct xdp_port *port, const struct mr_spec *spec,
			struct mr_reason *reterr_reason);
/* Create the counters. Call it before programs are loaded. */
int mri_xdp_filter_open(struct xdp_port *port, struct mr_reason *reterr_reason);
/* Free port->filter. */
void mri_xdp_filter_close(struct xdp_port *port);
/* Load a program with port->filter, and replace the current one. */
int mri_xdp_filter_reload(struct xdp_port *port,
			  struct mr_reason *reterr_reason);
/* Replace the filter of an open port, and its program. */
int mri_xdp_set_filter(struct mr_port *base, const char *expression,
		       struct mr_reason *reterr_reason);
/*
 * Load a copy of a loaded program that calls prog.kfuncs and runs only for
 * frames that match the filter, if any; other frames go to the kernel. An fd,
 * or a negative errno.
 */
int mri_xdp_filter_load(const struct xdp_port *port,
			const struct bpf_program *program, bool has_frags,
			struct mr_reason *reterr_reason);
/* Add the queue's frames that the filter passed to the kernel. */
void mri_xdp_filter_stats(const struct xdp_port *port, uint32_t queue,
			  struct mr_rx_stats *stats);

/*
 * Compile a pcap-filter(7) expression for Ethernet.
 * -EINVAL: the reason says where it is wrong, and why; -ENOTSUP, -ENOMEM
 */
int mri_xdp_filter_compile(const struct mr_ctx *ctx, const char *port,
			   const char *expression, struct xdp_filter *ret,
			   struct mr_reason *reterr_reason);

/*
 * Translate to eBPF for the start of a program. Matching frames run the code
 * after it, with the context in r1; others are counted and passed to the
 * kernel. If insns is NULL, only *ret_n is set.
 *
 * 0, or -ENOTSUP: an instruction that has no translation, a loop, no frame that
 * matches, or too many instructions
 */
int mri_xdp_filter_translate(const struct xdp_filter *filter,
			     const struct xdp_filter_count *count,
			     struct bpf_insn *insns, uint32_t *ret_n);

/* Whether a translatable program may match a frame of that shape. */
bool mri_xdp_filter_may_match(const struct xdp_filter *filter,
			      const struct xdp_shape *shape);

/*
 * Check that the filter takes no frame that keeps this machine reachable
 * through the interface. 0, or -EBUSY: the reason names a frame that it may
 * take
 */
int mri_xdp_filter_check_sessions(const struct xdp_port *port,
				  struct mr_reason *reterr_reason);
/* Refuse (-EBUSY) an interface that this machine uses, unless the option force
 * is set or the filter leaves it those frames. */
int mri_xdp_refuse_used(const struct xdp_port *port,
			struct mr_reason *reterr_reason);

#endif
