/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of simulated.c, where the XDP program is not built. */
#include <errno.h>

#include <millrace/driver_base.h>

#include "simulated.h"

int simulated_open(struct mr_ctx *ctx, uint32_t n_rules, uint32_t n_hops,
		   uint16_t first_id, uint16_t id_step,
		   struct mr_rules **ret_rules, struct mr_reason *reterr_why)
{
	(void)ctx;
	(void)n_rules;
	(void)n_hops;
	(void)first_id;
	(void)id_step;
	(void)ret_rules;
	return mr_fail(reterr_why, -ENOTSUP, "built without XDP");
}

void simulated_close(struct mr_rules *rules)
{
	(void)rules;
}

void simulated_tick(struct mr_rules *rules, uint64_t now_ns)
{
	(void)rules;
	(void)now_ns;
}

enum simulated simulated_run(const struct mr_rules *rules, uint32_t from,
			     uint8_t *bytes, uint32_t *n_bytes,
			     struct mr_flow_ticket *ret_ticket)
{
	(void)rules;
	(void)from;
	(void)bytes;
	(void)n_bytes;
	(void)ret_ticket;
	return SIMULATED_FAILED;
}

uint64_t simulated_n_sent(const struct mr_rules *rules, uint32_t from)
{
	(void)rules;
	(void)from;
	return 0;
}
