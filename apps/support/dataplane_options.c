/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the data plane. */
#include <stddef.h>

#include "dataplane.h"

enum {
	MAX_QUEUES = 64,
	MIN_RING = 64,
	MAX_RING = 32768,
	MAX_PAGES = 1 << 26,
	MIN_PAGE_BYTES = 2048,
	MAX_PAGE_BYTES = 32768,
	MIN_MTU = 68, /* RFC 791 */
	MAX_MTU = 65535,
};

#define AT(member) offsetof(struct dataplane_config, member)

/* Options with a numeric argument. */
static const struct {
	int id;
	uint32_t min, max;
	size_t offset;
} numbers[] = {
	{ OPTION_QUEUES, 1, MAX_QUEUES, AT(port.n_queues) },
	{ OPTION_RING, MIN_RING, MAX_RING, AT(port.n_ring) },
	{ OPTION_MTU, MIN_MTU, MAX_MTU, AT(port.mtu_bytes) },
	{ OPTION_WORKERS, 1, MR_WORKERS_MAX, AT(n_workers) },
	{ OPTION_MAX_CPU, 1, 100, AT(cpu_percent) },
	{ OPTION_BURST, 1, MR_BURST_MAX, AT(burst) },
	{ OPTION_POOL_PAGES, 1, MAX_PAGES, AT(n_pages) },
	{ OPTION_PAGE_BYTES, MIN_PAGE_BYTES, MAX_PAGE_BYTES, AT(page_bytes) },
};

const char *const dataplane_idle_words[N_IDLE_WORDS] = { "adaptive", "poll",
							 "interrupt" };
static const char *const safety_words[] = { "counts", "states", "poison",
					    "guard" };
static const char *const promisc_words[] = { "auto", "on", "off" };

/* Options whose argument is one of a few words, in enum order. */
static const struct {
	int id;
	const char *const *words;
	uint32_t n;
	size_t offset;
} choices[] = {
	{ OPTION_IDLE, dataplane_idle_words, 3, AT(idle) },
	{ OPTION_SAFETY, safety_words, 4, AT(safety) },
	{ OPTION_PROMISC, promisc_words, 3, AT(port.promisc) },
};

enum parse_result dataplane_take_option(const struct option_row *row,
					const char *arg,
					struct dataplane_config *c,
					struct mr_reason *ret_error)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].id == row->id)
			return parse_u32(
				row->name, arg, numbers[i].min, numbers[i].max,
				(void *)((char *)c + numbers[i].offset),
				ret_error);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (choices[i].id == row->id)
			return parse_word(
				row->name, arg, choices[i].words, choices[i].n,
				(void *)((char *)c + choices[i].offset),
				ret_error);
	return parse_cores(row->name, arg, true, c->cores, &c->n_cores,
			   ret_error);
}

enum parse_result dataplane_check_options(const struct dataplane_config *c,
					  struct mr_reason *ret_error)
{
	if ((c->page_bytes & (c->page_bytes - 1)) != 0)
		return parse_wrong(ret_error,
				   "--page-bytes: %u is not a power of two",
				   c->page_bytes);
	if ((c->port.n_ring & (c->port.n_ring - 1)) != 0)
		return parse_wrong(ret_error,
				   "--ring: %u is not a power of two",
				   c->port.n_ring);
	if (c->cpu_percent > 0 && c->idle != MR_IDLE_ADAPTIVE)
		return parse_wrong(ret_error,
				   "--max-cpu requires --idle adaptive");
	if (c->n_cores > 0 && c->n_workers > c->n_cores)
		return parse_wrong(ret_error,
				   "--workers %u: --cores lists only %u cores; "
				   "each worker needs one",
				   c->n_workers, c->n_cores);
	return PARSE_RUN;
}
