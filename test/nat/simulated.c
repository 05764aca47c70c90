/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules without ports: simulated.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>

#include "program/rule_set.h"
#include "simulated.h"
#include "socket/queue.h"
#include "xdp.h"

enum {
	N_PORTS = 2,
	LOOPBACK = 1,     /* ifindex: nothing is sent there */
	MIN_FRAME = 14,   /* BPF_PROG_TEST_RUN takes no shorter ones... */
	MAX_FRAME = 3072, /* ...and longer ones in pieces */
};

static int simulated_caps(const struct mr_port *port,
			  struct mr_offload_caps *caps,
			  struct mr_reason *reterr_reason)
{
	(void)port;
	(void)reterr_reason;
	caps->matches = 1u << MR_RULE_FLOW;
	return 0;
}

static void close_set(struct mr_rules *base)
{
	mri_xdp_rules_unload((struct xdp_rules *)base);
}

static int open_set(struct mr_rules *base, struct mr_reason *reterr_reason)
{
	struct xdp_rules *rules = (struct xdp_rules *)base;
	const uint32_t ifindex = LOOPBACK;
	int err;

	mri_xdp_quiet_begin();
	rules->is_simulated = true;
	err = mri_xdp_rules_load(rules);
	for (uint32_t i = 0; i < N_PORTS && err == 0; i++) {
		rules->ports[i].max_bytes = UINT16_MAX;
		err = bpf_map_update_elem(
			bpf_map__fd(rules->programs[0]->maps.targets), &i,
			&ifindex, BPF_ANY);
	}
	if (err < 0)
		close_set(base);
	mri_xdp_quiet_end();
	return err < 0 ? mr_fail(reterr_reason, err,
				 "the XDP program with rules cannot be "
				 "loaded: %s",
				 mr_strerror(-err)) :
			 0;
}

static void stop_set(struct mr_rules *base)
{
	(void)base;
}

static uint32_t poll_set(struct mr_rules *base)
{
	(void)base;
	return 0;
}

static void count_sent(struct mr_rules *base, uint32_t i,
		       struct mr_rules_sent *sent)
{
	(void)base;
	(void)i;
	(void)sent;
}

/* No frame is on its way: none can be overtaken, and rules apply at once. */
static uint32_t add_rules(struct mr_rules *base, const uint32_t *ids,
			  uint32_t n)
{
	const uint32_t n_added = mri_xdp_rules_add(base, ids, n);

	for (uint32_t i = 0; i < n_added; i++)
		for (uint32_t w = 0; w < MR_FLOW_WAYS; w++)
			mr_rules_ways(base, ids[i])[w].confirmed = 0;
	return n_added;
}

static const struct mr_rules_ops simulated_ops = {
	.rules_bytes = sizeof(struct xdp_rules),
	.caps = simulated_caps,
	.open = open_set,
	.close = close_set,
	.stop = stop_set,
	.add = add_rules,
	.remove = mri_xdp_rules_remove,
	.set = mri_xdp_rules_set,
	.read = mri_xdp_rules_read,
	.link = mri_xdp_rules_link,
	.hop = mri_xdp_rules_hop,
	.flush = mri_xdp_rules_flush,
	.poll = poll_set,
	.sent = count_sent,
};

static const struct mr_driver simulated_driver = {
	.name = "simulated",
	.rules = &simulated_ops,
};

/* As much of it as loading looks at. */
static struct xdp_port *make_port(struct mr_ctx *ctx)
{
	struct xdp_port *port = calloc(1, sizeof(*port));
	struct xdp_rxq *rxq = aligned_alloc(64, sizeof(*rxq));

	if (port == NULL || rxq == NULL) {
		free(port);
		free(rxq);
		return NULL;
	}
	memset(rxq, 0, sizeof(*rxq));
	rxq->has_partial_csums = true;
	port->rxqs = rxq;
	port->lease.n_queues = 1;
	port->base.driver = &simulated_driver;
	port->base.ctx = ctx;
	return port;
}

static void free_port(struct mr_port *base)
{
	struct xdp_port *port = (struct xdp_port *)base;

	if (port != NULL)
		free(port->rxqs);
	free(port);
}

int simulated_open(struct mr_ctx *ctx, uint32_t n_rules, uint32_t n_hops,
		   uint16_t first_id, uint16_t id_step,
		   struct mr_rules **ret_rules, struct mr_reason *reterr_why)
{
	struct mr_port *ports[N_PORTS];
	const struct mr_rules_config config = {
		.size = sizeof(config),
		.n_ports = N_PORTS,
		.ports = ports,
		.n_max = n_rules,
		.n_hops = n_hops,
		.first_id = first_id,
		.id_step = id_step,
	};
	int err = -ENOMEM;

	for (uint32_t i = 0; i < N_PORTS; i++)
		ports[i] = (struct mr_port *)make_port(ctx);
	if (ports[0] != NULL && ports[1] != NULL)
		err = mr_rules_open(&config, ret_rules, reterr_why);
	for (uint32_t i = 0; i < N_PORTS && err < 0; i++)
		free_port(ports[i]);
	return err;
}

void simulated_close(struct mr_rules *rules)
{
	struct mr_port *ports[N_PORTS];

	memcpy(ports, rules->ports, sizeof(ports));
	mr_rules_close(rules);
	for (uint32_t i = 0; i < N_PORTS; i++)
		free_port(ports[i]);
}

void simulated_tick(struct mr_rules *rules, uint64_t now_ns)
{
	for (uint32_t i = 0; i < N_PORTS; i++)
		((struct xdp_rules *)rules)->ports[i].now_ns = now_ns;
}

/* Half of the frames have their tag outside, as the kernel may hold it. */
static void take_tag_out(struct xdp_rules_bpf *program, uint8_t *bytes,
			 uint32_t *n_bytes)
{
	enum { AT = 12, TAG_BYTES = 4 };
	uint16_t tag[2];

	program->bss->simulated_tag.proto = 0;
	if (*n_bytes < MIN_FRAME + TAG_BYTES || bytes[*n_bytes - 1] % 2 != 0)
		return;
	memcpy(tag, bytes + AT, TAG_BYTES);
	if (tag[0] != htons(ETH_P_8021Q) && tag[0] != htons(ETH_P_8021AD))
		return;
	program->bss->simulated_tag.proto = tag[0];
	program->bss->simulated_tag.tci = ntohs(tag[1]);
	*n_bytes -= TAG_BYTES;
	memmove(bytes + AT, bytes + AT + TAG_BYTES, *n_bytes - AT);
}

enum simulated simulated_run(const struct mr_rules *base, uint32_t from,
			     uint8_t *bytes, uint32_t *n_bytes,
			     struct mr_flow_ticket *ret_ticket)
{
	const struct xdp_rules *rules = (const struct xdp_rules *)base;
	struct xdp_rules_bpf *program = rules->programs[from];
	uint8_t out[SIMULATED_FRAME];
	struct xdp_md ctx = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = bytes,
		    .data_out = out, .data_size_out = sizeof(out),
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .ctx_out = &ctx,
		    .ctx_size_out = sizeof(ctx));

	memset(ret_ticket, 0, sizeof(*ret_ticket));
	if (*n_bytes < MIN_FRAME || *n_bytes > MAX_FRAME)
		return SIMULATED_UP;
	take_tag_out(program, bytes, n_bytes);
	ctx.data_end = options.data_size_in = *n_bytes;
	if (bpf_prog_test_run_opts(
		    bpf_program__fd(program->progs.millrace_rules), &options) <
		    0 ||
	    (ctx.data != 0 && ctx.data != sizeof(*ret_ticket)))
		return SIMULATED_FAILED;
	if (ctx.data != 0)
		memcpy(ret_ticket, out, sizeof(*ret_ticket));
	*n_bytes = options.data_size_out - ctx.data;
	memcpy(bytes, out + ctx.data, *n_bytes);
	return options.retval == XDP_PASS     ? SIMULATED_UP :
	       options.retval == XDP_REDIRECT ? SIMULATED_SENT :
						SIMULATED_FAILED;
}

uint64_t simulated_n_sent(const struct mr_rules *base, uint32_t from)
{
	const struct xdp_rules *rules = (const struct xdp_rules *)base;

	return xdp_rules_get(
		&rules->cells[rules->queue_base[from] * N_PORTS + (from ^ 1)]
			 .frames);
}
