/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of the report. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "machine.h"
#include "result.h"

/* For people: head, one row, end. */
void report_text_head(const struct machine *machine, uint32_t n_cores,
		      const char *why_no_dpdk);
void report_text_row(const struct row_result *row);
void report_text_end(const struct results *results);

/* What this number of cores cannot show; "" if it is enough. */
const char *report_limits(uint32_t n_cores);

/* How either side came by its instructions. */
const char *report_builds(void);

/* JSON, version 1: mr-micro.schema.json. */
bool report_print_json(const struct results *results,
		       const struct machine *machine, uint32_t n_cores,
		       const char *why_no_dpdk, FILE *to);

/* A table in Markdown. */
bool report_md(const struct results *results, const struct machine *machine,
	       uint32_t n_cores, const char *why_no_dpdk, FILE *to);

/* report.json, report.md and a plot per chart, in a folder that is made. */
int report_write(const struct results *results, const struct machine *machine,
		 uint32_t n_cores, const char *why_no_dpdk, const char *folder,
		 struct mr_reason *why);

#endif
