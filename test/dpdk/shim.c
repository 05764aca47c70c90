/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into the distribution's dpdk-test, whose mempool_perf_autotest has
 * 720 rows of 5 s each, an hour in all, and measures rte_mempool's own cache
 * on the handler "ring_mp_mc" only.
 *
 *   MR_SHIM_ROW_MS   rows last this long: the program is told that its clock
 *                    ticks so much slower. The rates that it prints are then
 *                    too low by 5000 / MR_SHIM_ROW_MS.
 *   MR_SHIM_HANDLER  the handler of mempools that ask for "ring_mp_mc".
 *
 * The code that is measured stays the distribution's. A program that is not
 * asked for either does what it did.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MS = 5000 };

struct rte_mempool;

uint64_t rte_get_tsc_hz(void);
int rte_mempool_set_ops_byname(struct rte_mempool *mp, const char *name,
			       void *config);

static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (function == NULL)
		abort();
	return function;
}

uint64_t rte_get_tsc_hz(void)
{
	static uint64_t (*real)(void);
	static uint64_t row_ms;

	if (real == NULL) {
		const char *wanted = getenv("MR_SHIM_ROW_MS");

		row_ms = wanted == NULL ? ROW_MS : strtoul(wanted, NULL, 10);
		*(void **)&real = next("rte_get_tsc_hz");
	}
	return real() * row_ms / ROW_MS;
}

int rte_mempool_set_ops_byname(struct rte_mempool *mp, const char *name,
			       void *config)
{
	static int (*real)(struct rte_mempool *, const char *, void *);
	const char *wanted = getenv("MR_SHIM_HANDLER");

	if (real == NULL)
		*(void **)&real = next("rte_mempool_set_ops_byname");
	if (wanted != NULL && strcmp(name, "ring_mp_mc") == 0)
		name = wanted;
	return real(mp, name, config);
}
