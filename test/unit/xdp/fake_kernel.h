/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of the AF_XDP driver without a socket: rings in ordinary memory, and a
 * kernel that a test plays. sendto(), recvfrom(), setsockopt() and others end
 * here (--wrap); send() and recv() are its netlink.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include "xdp.h"

enum { FAKE_RING = 64, FAKE_PAGES = 1024 };

struct fake {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct xdp_port *port;
	struct xdp_rxq *rxq;
	struct xdp_txq *txq;
	uint64_t now_ns; /* the clock of ctx */
	uint32_t n_clock_reads;
};

struct fake_config {
	uint32_t page_bytes;
	uint32_t max_segs; /* 0: 1, without SG */
	bool has_csum; /* tx metadata is registered */
};

/* What the fake kernel does in sendto(): a script of up to 16 answers. */
struct fake_answer {
	int error;        /* 0, or the errno of -1 */
	uint32_t n_taken; /* descriptors taken and completed before it */
	uint32_t n_held;  /* behind them: taken, but not completed */
};

extern struct fake_answer fake_answers[16];
extern uint32_t fake_n_answers; /* behind the last: all, with 0 */
extern uint32_t fake_n_sendto, fake_n_recvfrom;
extern uint32_t fake_n_invalid_descs; /* of XDP_STATISTICS */
/* The family "netdev" has it of each interface; 0: there is no such family. */
extern uint32_t fake_zc_max_segs;
extern int fake_dump_error; /* at the end of its dumps: 0 or -errno */
/* What the kernel completes while the driver sleeps. */
extern uint32_t fake_n_completed_per_sleep;
/* The socket option that the kernel refuses; 0: none. */
extern int fake_refused_option;

void fake_open(struct fake *fake, struct fake_config config);
/* Closes as the driver does, and checks that every page came back. */
void fake_close(struct fake *fake);

/* A frame of one entry, filled with bytes that depend on seed. */
struct mr_frame fake_frame(struct fake *fake, uint32_t n_bytes, uint8_t seed);
/* The kernel receives: takes a buffer from fill, puts an entry on rx. */
void fake_receive(struct fake *fake, uint32_t n_bytes, uint32_t flags);
/* The descriptor at place i of the tx ring, from the first one ever. */
struct mr_frame fake_sent(const struct fake *fake, uint32_t i);
/* The kernel completes what it held. */
void fake_complete(struct fake *fake, uint32_t n);
/* The kernel completes an address that it was not given. */
void fake_complete_addr(struct fake *fake, uint64_t addr);
struct mr_tx_stats fake_tx_stats(const struct fake *fake);
struct mr_rx_stats fake_rx_stats(const struct fake *fake);
/* accepted = completed + pending + drops; received = delivered + drops. */
void fake_check_laws(const struct fake *fake);

#endif
