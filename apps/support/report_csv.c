/* SPDX-License-Identifier: BSD-3-Clause */
/* CSV (RFC 4180): a line per queue and second; counters from the start. */
#include <inttypes.h>
#include <stdio.h>

#include "report.h"

static bool csv_begin(void)
{
	printf("t,port,queue,rx_received,rx_delivered,rx_offloaded,"
	       "rx_passed_to_kernel,rx_bytes");
	for (uint32_t i = 0; mr_rx_drop_name(i) != NULL; i++)
		printf(",rx_drop_%s", mr_rx_drop_name(i));
	printf(",tx_accepted,tx_completed,tx_pending,tx_bytes");
	for (uint32_t i = 0; mr_tx_drop_name(i) != NULL; i++)
		printf(",tx_drop_%s", mr_tx_drop_name(i));
	printf("\r\n");
	return fflush(stdout) == 0;
}

/* A spec may hold quotes and commas. */
static void print_quoted(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static bool csv_show(const struct snapshot *now, const struct snapshot *before)
{
	(void)before;
	for (uint32_t p = 0; p < now->n_ports; p++) {
		const struct port_snapshot *port = &now->ports[p];

		for (uint32_t q = 0; q < port->n_queues; q++) {
			const struct mr_rx_stats *rx = &port->queues[q].rx;
			const struct mr_tx_stats *tx = &port->queues[q].tx;

			printf("%.6f,", now->t_s);
			print_quoted(port->info.name);
			printf(",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			       ",%" PRIu64 ",%" PRIu64,
			       q, rx->received, rx->delivered, rx->offloaded,
			       rx->passed_to_kernel, rx->bytes);
			for (uint32_t i = 0; mr_rx_drop_name(i) != NULL; i++)
				printf(",%" PRIu64, rx->drops[i]);
			printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
			       tx->accepted, tx->completed, tx->pending,
			       tx->bytes);
			for (uint32_t i = 0; mr_tx_drop_name(i) != NULL; i++)
				printf(",%" PRIu64, tx->drops[i]);
			printf("\r\n");
		}
	}
	return fflush(stdout) == 0;
}

static bool csv_end(const struct snapshot *final)
{
	return csv_show(final, NULL);
}

const struct report report_csv = {
	.begin = csv_begin,
	.show = csv_show,
	.end = csv_end,
};
