/* SPDX-License-Identifier: BSD-3-Clause */
/* The workloads there are; each is a line here and in workloads.c. */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include "bench.h"

/* By number; ends with one without a name. */
extern const struct workload workloads[];

void rows_b01(struct bench *bench);
void rows_b02(struct bench *bench);
void rows_b03(struct bench *bench);
void rows_b04(struct bench *bench);
void rows_b05(struct bench *bench);
void rows_b06(struct bench *bench);
void rows_b07(struct bench *bench);
void rows_b08(struct bench *bench);
void rows_b09(struct bench *bench);
void rows_b10(struct bench *bench);
void rows_b11(struct bench *bench);
void rows_b12(struct bench *bench);
void rows_b13(struct bench *bench);
void rows_b14(struct bench *bench);
void rows_b15(struct bench *bench);
void rows_b16(struct bench *bench);
void rows_b17(struct bench *bench);
void rows_b18(struct bench *bench);
void rows_b19(struct bench *bench);
void rows_b20(struct bench *bench);
void rows_b21(struct bench *bench);
void rows_b22(struct bench *bench);
void rows_b23(struct bench *bench);
void rows_f01(struct bench *bench);
void rows_f02(struct bench *bench);
void rows_f03(struct bench *bench);
void rows_f04(struct bench *bench);
void rows_f05(struct bench *bench);
void rows_w01(struct bench *bench);
void rows_w02(struct bench *bench);

#endif
