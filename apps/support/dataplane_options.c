/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that say how the data plane is made. */
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

/* An option whose argument is one of a few words. */
static enum parse_result take_word(const struct option_row *row,
				   const char *arg, struct dataplane_config *c,
				   struct mr_reason *ret_error)
{
	static const char *const idle_words[] = { "adaptive", "poll",
						  "interrupt" };
	static const char *const safety_words[] = { "counts", "states",
						    "poison", "guard" };
	static const char *const promisc_words[] = { "auto", "on", "off" };
	uint32_t word = 0;
	enum parse_result r;

	switch (row->id) {
	case OPTION_IDLE:
		r = parse_word(row->name, arg, idle_words, 3, &word, ret_error);
		c->idle = (enum mr_idle_mode)word;
		return r;
	case OPTION_SAFETY:
		r = parse_word(row->name, arg, safety_words, 4, &word,
			       ret_error);
		c->safety = (enum mr_safety)word;
		return r;
	default: /* OPTION_PROMISC */
		r = parse_word(row->name, arg, promisc_words, 3, &word,
			       ret_error);
		c->port.promisc = (enum promisc)word;
		return r;
	}
}

enum parse_result dataplane_take_option(const struct option_row *row,
					const char *arg,
					struct dataplane_config *c,
					struct mr_reason *ret_error)
{
	const char *const name = row->name;

	switch (row->id) {
	case OPTION_QUEUES:
		return parse_u32(name, arg, 1, MAX_QUEUES, &c->port.n_queues,
				 ret_error);
	case OPTION_RING:
		return parse_u32(name, arg, MIN_RING, MAX_RING, &c->port.n_ring,
				 ret_error);
	case OPTION_MTU:
		return parse_u32(name, arg, MIN_MTU, MAX_MTU,
				 &c->port.mtu_bytes, ret_error);
	case OPTION_WORKERS:
		return parse_u32(name, arg, 1, MR_WORKERS_MAX, &c->n_workers,
				 ret_error);
	case OPTION_CORES:
		return parse_cores(name, arg, true, c->cores, &c->n_cores,
				   ret_error);
	case OPTION_MAX_CPU:
		return parse_u32(name, arg, 1, 100, &c->cpu_percent, ret_error);
	case OPTION_BURST:
		return parse_u32(name, arg, 1, MR_BURST_MAX, &c->burst,
				 ret_error);
	case OPTION_POOL_PAGES:
		return parse_u32(name, arg, 1, MAX_PAGES, &c->n_pages,
				 ret_error);
	case OPTION_PAGE_BYTES:
		return parse_u32(name, arg, MIN_PAGE_BYTES, MAX_PAGE_BYTES,
				 &c->page_bytes, ret_error);
	default:
		return take_word(row, arg, c, ret_error);
	}
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
				   "--max-cpu goes with --idle adaptive only");
	if (c->n_cores > 0 && c->n_workers > c->n_cores)
		return parse_wrong(ret_error,
				   "--workers %u: --cores has %u; one for each",
				   c->n_workers, c->n_cores);
	return PARSE_RUN;
}
