/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "workloads.h"

/* By number. A file of mem/ adds its line here. */
static const struct workload *const mem_workloads[] = {
	&b01_baseline,  &b02_pp_fast,  &b03_pp_ring,      &b04_pp_slow,
	&b05_pp_cross,  &b06_bulk,     &b07_sunrpc,       &b08_xdp_drop,
	&b09_frag_pp,   &b10_frag_mix, &b11_frag_abort,   &b12_qmempool,
	&b13_dpdk_perf, &b14_pipeline, &b15_pipeline_qos, &b16_fwd_shared,
	&b17_txcompl,   &b18_recycle,  &b19_preempt,      &b20_cost_of_safety,
	&b21_policy,    &b22_shrink,   &b23_ring,         NULL,
};

/* Those of flow/. */
static const struct workload *const flow_workloads[] = {
	&f01_hit, &f02_miss, &f03_replace, &f04_fill, &f05_wheel, NULL,
};

/* Those of fwd/. */
static const struct workload *const fwd_workloads[] = {
	&w01_forward,
	&w02_build,
	NULL,
};

const struct workload *const *workloads_of(const char *command)
{
	return strcmp(command, "mem") == 0  ? mem_workloads :
	       strcmp(command, "flow") == 0 ? flow_workloads :
	       strcmp(command, "fwd") == 0  ? fwd_workloads :
					      NULL;
}
