/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mrctl capture and trace cost a worker while they are not used, counted
 * by callgrind: docs/performance.md has the command. plain() and prepared()
 * forward a burst each way between null: ports, as mr-l2fwd does in a round;
 * prepared() also checks whether a capture runs.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/capture.h"
#include "support/counter.h"

enum { BURST = 32, REGION_BYTES = 1 << 28 };

struct loop {
	struct mr_worker *worker;
	struct recorder *recorder;
	uint64_t bursts, entries, lost;
	struct mr_frame frames[BURST];
};

__attribute__((noinline)) static void plain(struct loop *loop);
__attribute__((noinline)) static void prepared(struct loop *loop);
__attribute__((noinline)) static void recorded(struct loop *loop);

static inline void forward_burst(struct loop *loop, struct recorder *recorder,
				 const struct mr_worker_rxq *rxq)
{
	const uint32_t to = rxq->port_idx ^ 1;
	uint32_t n =
		mr_rx_burst(rxq->rxq, loop->worker->cache, loop->frames, BURST);

	counter_add(&loop->bursts, 1);
	counter_add(&loop->entries, n);
	if (recorder != NULL)
		recorder_rx(recorder, rxq->port_idx, rxq->queue_idx,
			    loop->frames, NULL, n);
	n -= recorder != NULL ?
		     recorder_send(recorder, loop->worker, to, loop->frames,
				   NULL, n) :
		     mr_worker_send(loop->worker, to, loop->frames, n);
	if (n > 0)
		counter_add(&loop->lost, n);
}

static inline __attribute__((always_inline)) void
forward_round(struct loop *loop, struct recorder *recorder)
{
	for (uint32_t i = 0; i < loop->worker->n_rxqs; i++)
		forward_burst(loop, recorder, &loop->worker->rxqs[i]);
}

static void plain(struct loop *loop)
{
	forward_round(loop, NULL);
}

static void recorded(struct loop *loop)
{
	forward_round(loop, loop->recorder);
}

static void prepared(struct loop *loop)
{
	if (capture_is_on(&loop->recorder))
		recorded(loop);
	else
		forward_round(loop, NULL);
}

int main(int argc, char **argv)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config), .max_bytes = REGION_BYTES
	};
	const uint64_t n_rounds = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct mr_pool_config pool_config = { .size = sizeof(pool_config) };
	struct mr_workers_config config = { .size = sizeof(config),
					    .n_workers = 1,
					    .n_ports = 2 };
	struct loop loop = { .recorder = NULL };
	struct mr_workers *workers;
	struct mr_port *ports[2];
	struct mr_reason why;
	struct mr_ctx *ctx;

	if (n_rounds == 0)
		errx(2, "usage: %s N_ROUNDS", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_region_create(ctx, &region_config, &pool_config.region, &why) <
		    0 ||
	    mr_pool_create(ctx, &pool_config, &config.pool, &why) < 0)
		errx(1, "%s", why.text);
	port_config.pool = config.pool;
	for (uint32_t p = 0; p < 2; p++)
		if (mr_port_open(ctx, "null:", &port_config, &ports[p], &why) <
		    0)
			errx(1, "%s", why.text);
	config.ports = ports;
	if (mr_workers_create(ctx, &config, &workers, &why) < 0)
		errx(1, "%s", why.text);
	loop.worker = mr_workers_get(workers, 0);
	for (uint64_t i = 0; i < n_rounds; i++) {
		plain(&loop);
		prepared(&loop);
	}
	if (loop.entries != 4 * BURST * n_rounds || loop.lost > 0)
		errx(1, "a burst was not complete");
	printf("bursts %" PRIu64 "\n", loop.bursts / 2);
	mr_workers_destroy(workers);
	for (uint32_t p = 0; p < 2; p++)
		mr_port_close(ports[p]);
	if (mr_pool_destroy(config.pool, &why) < 0 ||
	    mr_region_destroy(pool_config.region, &why) < 0)
		errx(1, "%s", why.text);
	mr_ctx_destroy(ctx);
	return 0;
}
