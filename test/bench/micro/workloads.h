/* SPDX-License-Identifier: BSD-3-Clause */
/* The workloads there are; each is a line here and in workloads.c. */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include "bench.h"

/* By number; ends with one without a name. */
extern const struct workload workloads[];

typedef void rows_fn(struct bench *bench);

rows_fn rows_b01, rows_b02, rows_b03, rows_b04, rows_b05, rows_b06, rows_b07;
rows_fn rows_b08, rows_b09, rows_b10, rows_b11, rows_b12, rows_b13, rows_b14;
rows_fn rows_b15, rows_b16, rows_b17, rows_b18, rows_b19, rows_b20, rows_b21;
rows_fn rows_b22, rows_b23, rows_f01, rows_f02, rows_f03, rows_f04, rows_f05;
rows_fn rows_w01, rows_w02;

#endif
