/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of rules between two ports that are not there: the driver's real maps
 * and XDP program, run on one frame at a time by BPF_PROG_TEST_RUN. Its clock
 * is the test's. Needs CAP_BPF and CAP_NET_ADMIN.
 */
#ifndef NAT_SIMULATED_H
#define NAT_SIMULATED_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/experimental/offload.h>

enum { SIMULATED_FRAME = 4096 }; /* bytes of a buffer for simulated_run() */

/* What becomes of a frame. */
enum simulated {
	SIMULATED_UP,     /* user space receives it */
	SIMULATED_SENT,   /* it leaves from the other port */
	SIMULATED_FAILED, /* neither, which must not happen */
};

/* Weak: programs without simulated.c have none of these functions. */
#pragma weak simulated_open
#pragma weak simulated_close
#pragma weak simulated_tick
#pragma weak simulated_run
#pragma weak simulated_n_sent

/* Two ports, and a set of rules between them. Its memory is ctx's. */
int simulated_open(struct mr_ctx *ctx, uint32_t n_rules, uint32_t n_hops,
		   uint16_t first_id, uint16_t id_step,
		   struct mr_rules **ret_rules, struct mr_reason *reterr_why);
void simulated_close(struct mr_rules *rules);

void simulated_tick(struct mr_rules *rules, uint64_t now_ns);

/*
 * A frame is received on a port. bytes, *n_bytes: what comes out. *ret_ticket:
 * what is before it in memory; zeros: nothing.
 */
enum simulated simulated_run(const struct mr_rules *rules, uint32_t from,
			     uint8_t *bytes, uint32_t *n_bytes,
			     struct mr_flow_ticket *ret_ticket);

/* Frames that were received on a port, and sent from the other one. */
uint64_t simulated_n_sent(const struct mr_rules *rules, uint32_t from);

#endif
