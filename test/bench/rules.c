/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules IF IF N: add and remove N rules for flows between two interfaces, in
 * batches of 256 as mr-nat does, and print the rate.
 */
#include <stdio.h>
#include <stdlib.h>

#include <millrace/experimental/offload.h>
#include <millrace/millrace.h>

enum { BATCH = 256, FIRST_ADDR = 0x0a000000 };

static struct mr_rule rule_of(uint32_t i)
{
	return (struct mr_rule){
		.match = MR_RULE_FLOW,
		.to = 1,
		.proto = 17,
		.from = { FIRST_ADDR + i, 1, 1024, 53 },
		.as = { 2, 1, (uint16_t)i, (uint16_t)(i >> 16) },
	};
}

static double seconds_since(const struct mr_ctx *ctx, uint64_t begin_ns)
{
	return (double)(mr_ctx_now_ns(ctx) - begin_ns) / 1e9;
}

/* Returns how many rules there was room for. */
static uint32_t add_all(struct mr_rules *rules, uint32_t *ids, uint32_t n)
{
	struct mr_rule batch[BATCH];
	uint32_t n_added = 0, n_now = BATCH;

	while (n_added < n && n_now == BATCH) {
		for (uint32_t i = 0; i < BATCH; i++)
			batch[i] = rule_of(n_added + i);
		n_now = mr_rules_add(rules, batch, BATCH, ids + n_added);
		n_added += n_now;
	}
	return n_added;
}

static int measure_rules(const struct mr_ctx *ctx, struct mr_port **ports,
			 uint32_t n, struct mr_reason *why)
{
	const struct mr_rules_config config = { .size = sizeof(config),
						.n_ports = 2,
						.ports = ports,
						.n_max = n,
						.n_hops = 1,
						.id_step = 1 };
	uint32_t *ids = calloc(n + BATCH, sizeof(*ids));
	struct mr_rules *rules;
	uint32_t n_added;
	uint64_t begin_ns;
	double add_s, remove_s;

	if (ids == NULL || mr_rules_open(&config, &rules, why) < 0) {
		free(ids);
		return -1;
	}
	begin_ns = mr_ctx_now_ns(ctx);
	n_added = add_all(rules, ids, n);
	add_s = seconds_since(ctx, begin_ns);
	begin_ns = mr_ctx_now_ns(ctx);
	mr_rules_remove(rules, ids, n_added);
	remove_s = seconds_since(ctx, begin_ns);
	printf("{\"rules\": %u, \"added_per_s\": %.0f, "
	       "\"removed_per_s\": %.0f}\n",
	       n_added, n_added / add_s, n_added / remove_s);
	mr_rules_close(rules);
	free(ids);
	return 0;
}

int main(int argc, char **argv)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config) };
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 16384 };
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct mr_port *ports[2] = { NULL };
	struct mr_reason why = { "usage: rules IF IF N" };
	struct mr_ctx *ctx = NULL;
	char spec[64];
	int status = 1;

	if (argc == 4 && mr_ctx_create(&ctx_config, &ctx, &why) == 0 &&
	    mr_pool_create(ctx, &pool_config, &port_config.pool, &why) == 0) {
		status = 0;
		for (int i = 0; i < 2 && status == 0; i++) {
			snprintf(spec, sizeof(spec), "xdp:%s", argv[1 + i]);
			status = mr_port_open(ctx, spec, &port_config,
					      &ports[i], &why) < 0;
		}
	}
	if (status == 0)
		status = measure_rules(ctx, ports,
				       (uint32_t)strtoul(argv[3], NULL, 10),
				       &why) < 0;
	if (status != 0)
		fprintf(stderr, "rules: %s\n", why.text);
	for (int i = 0; i < 2; i++)
		if (ports[i] != NULL)
			mr_port_close(ports[i]);
	if (port_config.pool != NULL)
		(void)mr_pool_destroy(port_config.pool, NULL);
	if (ctx != NULL)
		mr_ctx_destroy(ctx);
	return status;
}
