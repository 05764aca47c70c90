/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/stats.c: names of counters, and copies of them. */
#include "support/unit.h"

#include <ctype.h>

#include <millrace/driver.h>

typedef const char *name_fn(uint32_t i);

TEST(all_counters_have_different_names)
{
	static const struct {
		name_fn *name;
		uint32_t last;
	} cases[] = {
		{ mr_rx_drop_name, MR_RX_DROP_INVALID },
		{ mr_rx_event_name, MR_RX_EVENT_CSUM_PARTIAL },
		{ mr_tx_drop_name, MR_TX_DROP_NO_BUFFER },
		{ mr_tx_event_name, MR_TX_EVENT_AGAIN },
	};

	for (size_t c = 0; c < 4; c++) {
		uint32_t n = 0;

		for (; cases[c].name(n) != NULL; n++) {
			const char *name = cases[c].name(n);

			for (uint32_t i = 0; i < n; i++)
				assert_string_not_equal(name, cases[c].name(i));
			/* Readers put the direction in front of it. */
			assert_true(strncmp(name, "rx_", 3) != 0 &&
				    strncmp(name, "tx_", 3) != 0);
			for (; *name != '\0'; name++) /* JSON keys */
				assert_true(islower((unsigned char)*name) ||
					    *name == '_');
		}
		assert_true(n > cases[c].last && n <= MR_STATS_SLOTS);
		assert_null(cases[c].name(MR_STATS_SLOTS));
		assert_null(cases[c].name(UINT32_MAX));
	}
	assert_string_equal(mr_rx_drop_name(MR_RX_DROP_TOO_LONG), "too_long");
	assert_string_equal(mr_tx_event_name(MR_TX_EVENT_AGAIN), "again");
}

static void more_rx(const struct mr_rxq *rxq, struct mr_rx_stats *stats)
{
	(void)rxq;
	stats->received += 1000; /* what the kernel knows */
}

static void more_tx(const struct mr_txq *txq, struct mr_tx_stats *stats)
{
	(void)txq;
	stats->pending += 1000;
}

/* All members, by the driver completed, as far as the caller knows them. */
TEST(copies_of_counters_are_complete)
{
	struct mr_driver driver = { .name = "fake" };
	struct mr_port port = { .driver = &driver };
	struct mr_rxq rxq = { .queue.port = &port };
	struct mr_txq txq = { .queue.port = &port };
	struct mr_rx_stats rx = { .size = sizeof(rx) };
	struct mr_tx_stats tx = { .size = sizeof(tx) };
	uint64_t *r = &rxq.stats.received, *t = &txq.stats.accepted;
	const uint32_t n_rx = (sizeof(rx) - 8) / 8, n_tx = (sizeof(tx) - 8) / 8;

	for (uint32_t i = 0; i < n_rx; i++)
		r[i] = i + 1;
	for (uint32_t i = 0; i < n_tx; i++)
		t[i] = i + 1;
	assert_int_equal(mr_rxq_stats(&rxq, &rx), 0);
	assert_int_equal(mr_txq_stats(&txq, &tx), 0);
	assert_int_equal(rx.size, sizeof(rx));
	assert_memory_equal(&rx.received, r, n_rx * 8);
	assert_memory_equal(&tx.accepted, t, n_tx * 8);

	driver.rxq_stats = more_rx;
	driver.txq_stats = more_tx;
	rx.size = tx.size = 40;
	rx.drops[1] = tx.bytes = 77;
	assert_int_equal(mr_rxq_stats(&rxq, &rx), 0);
	assert_int_equal(mr_txq_stats(&txq, &tx), 0);
	assert_int_equal(rx.received, 1001);
	assert_int_equal(tx.pending, 1003);
	assert_int_equal(rxq.stats.received, 1); /* the queue's stay */
	assert_int_equal(rx.drops[1], 77);       /* behind size */
	rx.size = tx.size = 0;
	assert_int_equal(mr_rxq_stats(&rxq, &rx), -EINVAL);
	assert_int_equal(mr_txq_stats(&txq, &tx), -EINVAL);
}
