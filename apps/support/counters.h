/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers that --json, mrctl and the metrics have in common. A new one
 * needs a row in counters.c and its name in report.schema.json. An application
 * adds its own: struct app_counters.
 */
#ifndef SUPPORT_COUNTERS_H
#define SUPPORT_COUNTERS_H

#include <stdint.h>

enum counter_kind { COUNTER, GAUGE, SECONDS }; /* SECONDS: a counter, of ns */

struct counter_row {
	const char *name;   /* in JSON */
	const char *metric; /* without millrace_ and _total; NULL: none */
	const char *help;   /* of the metric */
	enum counter_kind kind;
	uint32_t offset, n_bytes; /* in the object */
};

struct counter_table {
	const struct counter_row *rows;
	uint32_t n;
};

extern const struct counter_table rx_counters;     /* struct mr_rx_stats */
extern const struct counter_table tx_counters;     /* struct mr_tx_stats */
extern const struct counter_table port_counters;   /* struct port_snapshot */
extern const struct counter_table worker_counters; /* struct worker_snapshot */
extern const struct counter_table pool_counters;   /* struct mr_pool_stats */

/* The value of a row in an object of the table's type. */
uint64_t counter_row_value(const struct counter_row *row, const void *object);

#endif
