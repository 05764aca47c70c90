/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the data plane: a table for command lines and files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataplane_keys.h"
#include "json_text.h"
#include "values.h"
#include "yaml_show.h"

enum {
	MAX_QUEUES = 64,
	MIN_RING = 64,
	MAX_RING = 32768,
	MAX_PAGES = 1 << 26,
	MIN_PAGE_BYTES = 2048,
	MAX_PAGE_BYTES = 32768,
	MIN_MTU = 68, /* RFC 791 */
	MAX_MTU = 65535,
	MAX_CORES_TEXT = 6 * MR_WORKERS_MAX,
};

const char *const dataplane_log_words[] = {
	[0] = "none",
	[MR_LOG_ERROR] = "error",
	[MR_LOG_WARNING] = "warning",
	[MR_LOG_INFO] = "info",
	[MR_LOG_DEBUG] = "debug",
	NULL,
};
const char *const dataplane_idle_words[] = { "adaptive", "poll", "interrupt",
					     NULL };
static const char *const safety_words[] = { "counts", "states", "poison",
					    NULL };
static const char *const promisc_words[] = { "auto", "on", "off", NULL };

static bool read_cores(const char *text, void *to, struct mr_reason *why)
{
	struct dataplane_config *c = to;

	return value_cores(text, c->cores, &c->n_cores, why);
}

static json_t *show_cores(const struct yaml_key *key, const void *from)
{
	const struct dataplane_config *c = from;
	char text[MAX_CORES_TEXT] = "";
	size_t n = 0;

	(void)key;
	for (uint32_t i = 0; i < c->n_cores && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u",
				      i > 0 ? "," : "", c->cores[i]);
	return json_text(c->n_cores > 0 ? text : "auto");
}

bool dataplane_read_metrics(const char *text, void *to, struct mr_reason *why)
{
	if (!value_place(text, why))
		return false;
	if (strlen(text) >= MAX_METRICS_BYTES)
		return value_wrong(why, "longer than %d bytes",
				   MAX_METRICS_BYTES - 1);
	snprintf(to, MAX_METRICS_BYTES, "%s", text);
	return true;
}

void dataplane_write_metrics(const void *from, char *ret_text, size_t n_bytes)
{
	snprintf(ret_text, n_bytes, "%s", (const char *)from);
}

/* Fixed: ports, pool and workers are created with it. */
#define FIXED .is_fixed = true

const struct yaml_key dataplane_keys[] = {
	YAML_NUMBER("workers", dataplane_config, n_workers, 1, MR_WORKERS_MAX,
		    FIXED, .letter = 'w', .group = DATAPLANE_WORKERS,
		    YAML_OPTION("N", "threads (default: one per queue of a "
				     "port; mr-nat 1)")),
	{ .name = "cores",
	  .take = yaml_take_value,
	  .read = read_cores,
	  .show = show_cores,
	  .letter = 'c',
	  FIXED,
	  YAML_OPTION("LIST",
		      "cores to use, such as 1,3-5, or auto (default)") },
	YAML_NUMBER(
		"burst", dataplane_config, burst, 1, MR_BURST_MAX, FIXED,
		YAML_OPTION("N", "entries per burst, 1 to 256 (default 256, "
				 "mr-bench 64)")),
	YAML_WORD("idle", dataplane_config, idle, dataplane_idle_words,
		  .preset = "adaptive", .group = DATAPLANE_IDLE,
		  YAML_OPTION("HOW", "without work: poll, adaptive (default), "
				     "interrupt")),
	YAML_WORD("log_level", dataplane_config, log_level, dataplane_log_words,
		  .preset = "warning"),
	YAML_NUMBER(
		"queues", dataplane_config, port.n_queues, 1, MAX_QUEUES, FIXED,
		YAML_OPTION("N", "queues per port (default: the port's own)")),
	YAML_NUMBER(
		"ring", dataplane_config, port.n_ring, MIN_RING, MAX_RING,
		FIXED,
		YAML_OPTION("N",
			    "entries per device ring (default: the port's)")),
	YAML_NUMBER("mtu", dataplane_config, port.mtu_bytes, MIN_MTU, MAX_MTU,
		    FIXED, .group = DATAPLANE_MTU,
		    YAML_OPTION("N",
				"set the ports' MTU; restored at exit")),
	YAML_WORD("promisc", dataplane_config, port.promisc, promisc_words,
		  FIXED, .preset = "auto", .group = DATAPLANE_PROMISC,
		  YAML_OPTION("auto|on|off",
			      "promiscuous mode (auto: if mr-l2fwd patches "
			      "or learns)")),
	YAML_NUMBER(
		"pool_pages", dataplane_config, n_pages, 1, MAX_PAGES, FIXED,
		YAML_OPTION("N",
			    "pages in the pool (default: as many as needed)")),
	YAML_NUMBER(
		"page_bytes", dataplane_config, page_bytes, MIN_PAGE_BYTES,
		MAX_PAGE_BYTES, FIXED, .preset = "4096",
		YAML_OPTION("N", "page size, 2048 to 32768 (default 4096)")),
	YAML_WORD("safety", dataplane_config, safety, safety_words, FIXED,
		  .preset = "counts",
		  YAML_OPTION("LEVEL",
			      "pool checks: counts (default), states, poison")),
	YAML_END,
};

int dataplane_check(const struct dataplane_config *c,
		    struct objections *objections)
{
	static const char s[] = "dataplane";
	int err = 0;

	if ((c->page_bytes & (c->page_bytes - 1)) != 0)
		err = object(objections, s, "page_bytes", OBJECTION_WHOLE,
			     "%u is not a power of two", c->page_bytes);
	if ((c->port.n_ring & (c->port.n_ring - 1)) != 0)
		err = object(objections, s, "ring", OBJECTION_WHOLE,
			     "%u is not a power of two", c->port.n_ring);
	if (c->n_cores > 0 && c->n_workers > c->n_cores)
		err = object(objections, s, "workers", OBJECTION_WHOLE,
			     "%u, but only %u cores are listed; each worker "
			     "needs one",
			     c->n_workers, c->n_cores);
	return err;
}

enum parse_result dataplane_check_options(const struct dataplane_config *config,
					  struct mr_reason *ret_error)
{
	struct objections objections = { .n = 0 };

	if (dataplane_check(config, &objections) == 0)
		return PARSE_RUN;
	return objection_of_option(&objections.list[0], ret_error);
}
