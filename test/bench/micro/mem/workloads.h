/* SPDX-License-Identifier: BSD-3-Clause */
/* The workloads there are; a file of mem/, flow/ or fwd/ adds a line. */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include "bench.h"

/* Of mem, flow or fwd; ends with NULL. NULL: no such command. */
const struct workload *const *workloads_of(const char *command);

extern const struct workload b01_baseline;
extern const struct workload b02_pp_fast;
extern const struct workload b03_pp_ring;
extern const struct workload b04_pp_slow;
extern const struct workload b05_pp_cross;
extern const struct workload b06_bulk;
extern const struct workload b07_sunrpc;
extern const struct workload b08_xdp_drop;
extern const struct workload b09_frag_pp;
extern const struct workload b10_frag_mix;
extern const struct workload b11_frag_abort;
extern const struct workload b12_qmempool;
extern const struct workload b13_dpdk_perf;
extern const struct workload b14_pipeline;
extern const struct workload b15_pipeline_qos;
extern const struct workload b16_fwd_shared;
extern const struct workload b17_txcompl;
extern const struct workload b18_recycle;
extern const struct workload b19_preempt;
extern const struct workload b20_cost_of_safety;
extern const struct workload b21_policy;
extern const struct workload b22_shrink;
extern const struct workload b23_ring;

/* Rows of B08 that have a file of their own. */
void b08_rows_of_frames(struct bench *bench);
void b08_rows_of_ladder(struct bench *bench);

extern const struct workload f01_hit;
extern const struct workload f02_miss;
extern const struct workload f03_replace;
extern const struct workload f04_fill;
extern const struct workload f05_wheel;

extern const struct workload w01_forward;
extern const struct workload w02_build;

#endif
