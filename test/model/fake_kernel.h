/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of the AF_XDP driver without a socket: rings in ordinary memory, and a
 * kernel played by the test. sendto(), recvfrom(), setsockopt() and others are
 * redirected here (--wrap); send() and recv() are its netlink.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include "socket/queue.h"
#include "support/test.h"
#include "xdp.h"

enum { FAKE_RING = 64, FAKE_PAGES = 1024 };

/* The kernel's behaviour in sendto(). */
struct fake_answer {
	int error;        /* 0, or the errno of -1 */
	uint32_t n_taken; /* descriptors taken and completed before it */
	uint32_t n_held;  /* after them: taken, but not completed */
};

struct fake {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct xdp_port *port;
	struct mr_port_info info; /* of port */
	struct xdp_rxq *rxq;
	struct xdp_txq *txq;
	uint64_t now_ns; /* the clock of ctx */
	uint32_t n_clock_reads;

	/* A script for sendto(); after its end: everything, returning 0. */
	struct fake_answer answers[16];
	uint32_t n_answers;
	uint32_t n_sendto, n_recvfrom;
	bool is_in_kernel; /* sendto() runs */
	uint32_t n_invalid_descs; /* in XDP_STATISTICS */
	/* Reported by the family "netdev" for each interface; 0: none. */
	uint32_t zc_max_segs;
	int dump_error; /* at the end of its dumps: 0 or -errno */
	/* Completed by the kernel while the driver sleeps. */
	uint32_t n_completed_per_sleep;
	int refused_option; /* refused by the kernel; 0: none */
};

/* Only one at a time. */
extern struct fake fake;

struct fake_config {
	uint32_t page_bytes;
	uint32_t max_segs; /* 0: 1, without SG */
	bool has_csum;     /* tx metadata is registered */
};

void fake_open(struct fake_config config);
/* Closes like the driver, and checks that every page was freed. */
void fake_close(void);

static inline uint32_t transmit(const struct mr_frame *frames, uint32_t n)
{
	return mr_tx_burst(&fake.txq->base, fake.cache, frames, n);
}

/* A frame of one entry, filled with bytes that depend on seed. */
struct mr_frame fake_frame(uint32_t n_bytes, uint8_t seed);
/* The kernel receives: takes a buffer from fill, puts an entry on rx. Returns
 * its address. */
uint64_t fake_receive(uint32_t n_bytes, uint32_t flags);
/* The descriptor at place i of the tx ring, from the first one ever. */
struct mr_frame fake_sent(uint32_t i);
/* The kernel completes what it held. */
void fake_complete(uint32_t n);
/* The kernel completes an address that it was not given. */
void fake_complete_addr(uint64_t addr);
struct mr_tx_stats fake_tx_stats(void);
struct mr_rx_stats fake_rx_stats(void);
/* accepted = completed + pending + drops; received = delivered + drops. */
void fake_check_invariants(void);

/*
 * A test of an open port; fields of its struct fake_config may follow. At the
 * end, the invariants of its counters hold, and every page is free.
 */
#define FAKE_TEST(name, ...)                                                   \
	static void name##_when_open(void);                                    \
	TEST(name)                                                             \
	{                                                                      \
		fake_open((struct fake_config){ __VA_ARGS__ });                \
		name##_when_open();                                            \
		fake_check_invariants();                                       \
		fake_close();                                                  \
	}                                                                      \
	static void name##_when_open(void)

#endif
