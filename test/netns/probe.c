/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe: the library's interface, worked by commands.
 *
 * One command per line on standard input, one JSON object per line as its
 * answer; "ok" in it says whether the call succeeded, "reason" why not. The
 * tests in Python decide what to call and what must come of it. Commands are
 * in the table at the end; counts and times are decimal.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>
#include <millrace/experimental/offload.h>
#include <millrace/experimental/page.h>
#include <millrace/experimental/port_queues.h>
#include <millrace/millrace.h>

#include "probe.h"

enum { MAX_MACS = 8, MAX_STATS = 1024 };

static void on_log(void *opaque, enum mr_log_level level, const char *line)
{
	(void)opaque;
	fprintf(stderr, "%d %s\n", (int)level, line);
}

json_t *answer(struct probe *probe, int err)
{
	return err < 0 ? json_pack("{s:b, s:i, s:s}", "ok", 0, "errno", -err,
				   "reason", probe->reason.text) :
			 json_pack("{s:b}", "ok", 1);
}

json_t *answer_number(const char *name, uint64_t n)
{
	return json_pack("{s:b, s:I}", "ok", 1, name, (json_int_t)n);
}

struct mr_port *port_of(const struct probe *probe)
{
	return probe->ports[number(probe, 1, 0)];
}

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint32_t number(const struct probe *probe, uint32_t i, uint32_t otherwise)
{
	return i < probe->n_words ?
		       (uint32_t)strtoul(probe->words[i], NULL, 10) :
		       otherwise;
}

static json_t *do_region(struct probe *probe)
{
	struct mr_region_config config = {
		.size = sizeof(config),
		.os_pages = (enum mr_os_pages)number(probe, 1, 0),
	};

	return answer(probe, mr_region_create(probe->ctx, &config,
					      &probe->region, &probe->reason));
}

/*
 * pool N_PAGES [PAGE_BYTES [HEADROOM [MAX_PAGES]]]: in the one region of the
 * program.
 */
static json_t *do_pool(struct probe *probe)
{
	const uint32_t i = probe->n_pools;
	struct mr_pool_config config = {
		.size = sizeof(config),
		.n_pages = number(probe, 1, 8192),
		.page_bytes = number(probe, 2, 4096),
		.headroom_bytes = number(probe, 3, 0),
		.max_pages = number(probe, 4, 0),
		.region = probe->region,
	};
	int err = -ENOSPC;

	if (i < MAX_POOLS)
		err = mr_pool_create(probe->ctx, &config, &probe->pools[i],
				     &probe->reason);
	if (err == 0)
		err = mr_cache_create(probe->pools[i], &probe->caches[i],
				      &probe->reason);
	if (err < 0)
		return answer(probe, err);
	probe->region = mr_pool_region(probe->pools[i]);
	probe->n_pools++;
	return answer_number("pool", i);
}

/* grow POOL N_PAGES */
static json_t *do_grow(struct probe *probe)
{
	return answer(probe, mr_pool_grow(probe->pools[number(probe, 1, 0)],
					  number(probe, 2, 0), &probe->reason));
}

/* shrink POOL N_KEEP */
static json_t *do_shrink(struct probe *probe)
{
	uint64_t n_pages = 0;
	const int err =
		mr_pool_shrink(probe->pools[number(probe, 1, 0)],
			       number(probe, 2, 0), &n_pages, &probe->reason);

	return err < 0 ? answer(probe, err) : answer_number("n", n_pages);
}

/*
 * Caches hold pages of other pools too, in open magazines; a pool cannot go
 * before they are at home.
 */
static void flush_caches(struct probe *probe)
{
	for (uint32_t i = 0; i < probe->n_pools; i++)
		if (probe->caches[i] != NULL)
			mr_cache_flush(probe->caches[i]);
}

/* destroy-pool POOL */
static json_t *do_destroy_pool(struct probe *probe)
{
	const uint64_t i = number(probe, 1, 0);
	int err;

	flush_caches(probe);
	mr_cache_destroy(probe->caches[i]);
	probe->caches[i] = NULL;
	err = mr_pool_destroy(probe->pools[i], &probe->reason);
	if (err == 0)
		probe->pools[i] = NULL;
	else
		(void)mr_cache_create(probe->pools[i], &probe->caches[i], NULL);
	return answer(probe, err);
}

static json_t *do_destroy_region(struct probe *probe)
{
	const int err = mr_region_destroy(probe->region, &probe->reason);

	if (err == 0)
		probe->region = NULL;
	return answer(probe, err);
}

static json_t *do_segments(struct probe *probe)
{
	struct mr_segment_info info;
	json_t *list = json_array();

	for (uint32_t i = 0; mr_region_segment(probe->region, i, &info) == 0;
	     i++)
		json_array_append_new(
			list, json_pack("{s:I, s:I, s:I, s:i, s:s}", "addr",
					(json_int_t)info.addr, "bytes",
					(json_int_t)info.n_bytes, "os_page",
					(json_int_t)info.os_page_bytes, "pins",
					(int)info.n_pins, "why", info.why));
	return json_pack("{s:b, s:o}", "ok", 1, "segments", list);
}

/* pool-stats POOL */
static json_t *do_pool_stats(struct probe *probe)
{
	struct mr_pool_stats s = { .size = sizeof(s) };

	mr_pool_stats(probe->pools[number(probe, 1, 0)], &s);
	return json_pack("{s:b, s:I, s:I, s:I, s:I}", "ok", 1, "population",
			 (json_int_t)s.n_pages, "free", (json_int_t)s.n_free,
			 "in_flight", (json_int_t)s.n_in_flight, "committed",
			 (json_int_t)s.n_committed);
}

static void note_events(void *opaque, struct mr_port *port, uint32_t events)
{
	uint32_t *all = opaque;

	(void)port;
	*all |= events;
}

/* open SPEC [POOL [N_WORKERS]] */
static json_t *do_open(struct probe *probe)
{
	const uint32_t pool = number(probe, 2, 0);
	const uint64_t start_ms = now_ms();
	struct mr_port_config config = {
		.size = sizeof(config),
		.n_workers = number(probe, 3, 0),
		.pool = probe->pools[pool],
	};
	struct mr_port *port;
	uint32_t i = 0;
	int err;

	err = mr_port_open(probe->ctx, probe->words[1], &config, &port,
			   &probe->reason);
	if (err < 0)
		return answer(probe, err);
	while (probe->ports[i] != NULL)
		i++;
	probe->ports[i] = port;
	probe->pool_of[i] = pool;
	(void)mr_port_subscribe(port, note_events, &probe->events[i]);
	return json_pack("{s:b, s:i, s:I}", "ok", 1, "port", (int)i, "ms",
			 (json_int_t)(now_ms() - start_ms));
}

/* add-queues PORT: how many there were to add. */
static json_t *do_add_queues(struct probe *probe)
{
	const int n = mr_port_add_queues(port_of(probe), &probe->reason);

	return n < 0 ? answer(probe, n) : answer_number("n", (uint64_t)n);
}

/* reopen PORT */
static json_t *do_reopen(struct probe *probe)
{
	return answer(probe, mr_port_reopen(port_of(probe), &probe->reason));
}

/* close PORT */
static json_t *do_close(struct probe *probe)
{
	const uint64_t i = number(probe, 1, 0);
	const uint64_t start_ms = now_ms();

	mr_port_close(probe->ports[i]);
	probe->ports[i] = NULL;
	return answer_number("ms", now_ms() - start_ms);
}

/* fork SECONDS: a child that holds what it inherited and does nothing. */
static json_t *do_fork(struct probe *probe)
{
	const pid_t pid = fork();

	if (pid == 0) {
		sleep(number(probe, 1, 10));
		_exit(0);
	}
	return json_pack("{s:b, s:i}", "ok", pid > 0, "pid", (int)pid);
}

/* open-kernel PORT */
static json_t *do_open_kernel(struct probe *probe)
{
	return answer(probe,
		      mr_port_open_kernel(port_of(probe), &probe->reason));
}

/* promisc PORT 0|1, allmulti PORT 0|1, mtu PORT BYTES */
static json_t *do_set(struct probe *probe)
{
	struct mr_port *port = port_of(probe);
	const uint32_t value = number(probe, 2, 0);
	const char *what = probe->words[0];

	return answer(
		probe,
		strcmp(what, "mtu") == 0 ?
			mr_port_set_mtu(port, value, &probe->reason) :
		strcmp(what, "promisc") == 0 ?
			mr_port_set_promisc(port, value, &probe->reason) :
			mr_port_set_allmulti(port, value, &probe->reason));
}

static void read_mac(const char *text, uint8_t mac[6])
{
	unsigned int b[6] = { 0 };

	sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3],
	       &b[4], &b[5]);
	for (uint32_t i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
}

/* mac PORT ADDRESS */
static json_t *do_mac(struct probe *probe)
{
	uint8_t mac[6];

	read_mac(probe->words[2], mac);
	return answer(probe,
		      mr_port_set_mac(port_of(probe), mac, &probe->reason));
}

/* filter PORT [ADDRESS ...] */
static json_t *do_filter(struct probe *probe)
{
	uint8_t macs[MAX_MACS][6];
	uint32_t n = 0;

	for (; n < MAX_MACS && n + 2 < probe->n_words; n++)
		read_mac(probe->words[n + 2], macs[n]);
	return answer(probe, mr_port_set_mac_filter(port_of(probe), macs, n,
						    &probe->reason));
}

/* take PORT EXPRESSION: what its filter is from now on */
static json_t *do_take(struct probe *probe)
{
	char text[512] = "";

	for (uint32_t i = 2; i < probe->n_words; i++) {
		const size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%s", n > 0 ? " " : "",
			 probe->words[i]);
	}
	return answer(probe,
		      mr_port_set_filter(port_of(probe), text, &probe->reason));
}

/* rss PORT [KEEP [FIELDS [QUEUE ...]]]: with these as the table */
static json_t *do_rss(struct probe *probe)
{
	uint32_t table[MAX_WORDS];
	struct mr_rss_config config = {
		.size = sizeof(config),
		.keep = number(probe, 2, 0),
		.fields = number(probe, 3, 0),
		.table = probe->n_words > 4 ? table : NULL,
		.n_entries = probe->n_words > 4 ? probe->n_words - 4 : 0,
	};

	for (uint32_t i = 0; i < config.n_entries; i++)
		table[i] = number(probe, i + 4, 0);
	return answer(probe,
		      mr_port_set_rss(port_of(probe), &config, &probe->reason));
}

/* steer PORT QUEUE ETHERTYPE [PROTOCOL [DST_PORT MASK]] */
static json_t *do_steer(struct probe *probe)
{
	const struct mr_steer_rule rule = {
		.size = sizeof(rule),
		.queue = number(probe, 2, 0),
		.ethertype = (uint16_t)number(probe, 3, 0),
		.protocol = (uint8_t)number(probe, 4, 0),
		.dst_port = (uint16_t)number(probe, 5, 0),
		.dst_port_mask = (uint16_t)number(probe, 6, 0),
	};
	uint32_t id = 0;
	const int err =
		mr_port_steer(port_of(probe), &rule, &id, &probe->reason);

	return err < 0 ? answer(probe, err) : answer_number("id", id);
}

/* unsteer PORT ID */
static json_t *do_unsteer(struct probe *probe)
{
	return answer(probe,
		      mr_port_unsteer(port_of(probe), number(probe, 2, 0),
				      &probe->reason));
}

/* rules PORT: open a set of rules for it alone, until the end */
static json_t *do_rules(struct probe *probe)
{
	struct mr_port *port = port_of(probe);
	const struct mr_rules_config config = {
		.size = sizeof(config),
		.ports = &port,
		.n_ports = 1,
	};

	return answer(probe,
		      mr_rules_open(&config, &probe->rules, &probe->reason));
}

/* device-stats PORT: as a list, for a name may come twice. */
static json_t *do_device_stats(struct probe *probe)
{
	static struct mr_named_count counts[MAX_STATS];
	const uint32_t n =
		mr_port_device_stats(port_of(probe), counts, MAX_STATS);
	json_t *list = json_array();

	for (uint32_t i = 0; i < n && i < MAX_STATS; i++)
		json_array_append_new(list,
				      json_pack("[s, I]", counts[i].name,
						(json_int_t)counts[i].value));
	return json_pack("{s:b, s:o}", "ok", 1, "stats", list);
}

/* drop-capabilities: all of them, for good. */
static json_t *do_drop_capabilities(struct probe *probe)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	const struct __user_cap_data_struct none[2] = { { 0 } };

	(void)probe;
	return json_pack("{s:b}", "ok", syscall(SYS_capset, &head, none) == 0);
}

static const struct {
	const char *name;
	uint32_t n_least; /* words, its name included */
	command_fn *run;
} commands[] = {
	{ "region", 1, do_region },
	{ "pool", 1, do_pool },
	{ "grow", 3, do_grow },
	{ "shrink", 3, do_shrink },
	{ "destroy-pool", 2, do_destroy_pool },
	{ "destroy-region", 1, do_destroy_region },
	{ "segments", 1, do_segments },
	{ "pool-stats", 1, do_pool_stats },
	{ "open", 2, do_open },
	{ "close", 2, do_close },
	{ "add-queues", 2, do_add_queues },
	{ "reopen", 2, do_reopen },
	{ "info", 2, probe_info },
	{ "link", 2, probe_link },
	{ "wake", 3, probe_wake },
	{ "stats", 2, probe_stats },
	{ "hold", 4, probe_hold },
	{ "release", 1, probe_release },
	{ "hashes", 4, probe_hashes },
	{ "metas", 4, probe_metas },
	{ "forward", 2, probe_forward },
	{ "send", 5, probe_send },
	{ "flush", 3, probe_flush },
	{ "fork", 2, do_fork },
	{ "open-kernel", 2, do_open_kernel },
	{ "promisc", 3, do_set },
	{ "allmulti", 3, do_set },
	{ "mtu", 3, do_set },
	{ "mac", 3, do_mac },
	{ "filter", 2, do_filter },
	{ "take", 2, do_take },
	{ "rules", 2, do_rules },
	{ "rss", 2, do_rss },
	{ "steer", 4, do_steer },
	{ "unsteer", 3, do_unsteer },
	{ "device-stats", 2, do_device_stats },
	{ "drop-capabilities", 1, do_drop_capabilities },
};

static json_t *obey(struct probe *probe, char *line)
{
	char *rest = NULL;

	probe->reason.text[0] = '\0';
	probe->n_words = 0;
	for (char *word = strtok_r(line, " \n", &rest);
	     word != NULL && probe->n_words < MAX_WORDS;
	     word = strtok_r(NULL, " \n", &rest))
		probe->words[probe->n_words++] = word;
	for (size_t i = 0;
	     probe->n_words > 0 && i < sizeof(commands) / sizeof(*commands);
	     i++)
		if (strcmp(probe->words[0], commands[i].name) == 0 &&
		    probe->n_words >= commands[i].n_least)
			return commands[i].run(probe);
	return json_pack("{s:b, s:s}", "ok", 0, "reason", "no such command");
}

/* Everything closed, what is left in flight is the last answer. */
static json_t *end_probe(struct probe *probe)
{
	struct mr_pool_stats s = { .size = sizeof(s) };
	json_int_t n_in_flight = 0;

	json_decref(probe_release(probe));
	mr_rules_close(probe->rules);
	for (uint32_t i = 0; i < MAX_PORTS; i++)
		mr_port_close(probe->ports[i]);
	flush_caches(probe);
	for (uint32_t i = 0; i < probe->n_pools; i++) {
		if (probe->pools[i] == NULL)
			continue;
		mr_cache_destroy(probe->caches[i]);
		mr_pool_stats(probe->pools[i], &s);
		n_in_flight += (json_int_t)s.n_in_flight;
		if (s.n_free != s.n_pages)
			n_in_flight += (json_int_t)(s.n_pages - s.n_free);
		(void)mr_pool_destroy(probe->pools[i], NULL);
	}
	mr_ctx_destroy(probe->ctx);
	return json_pack("{s:b, s:I}", "ok", n_in_flight == 0, "in_flight",
			 n_in_flight);
}

static void print_answer(json_t *answer)
{
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(answer);
}

int main(void)
{
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .log = on_log };
	struct probe *probe = calloc(1, sizeof(*probe));
	char line[512];

	if (probe == NULL ||
	    mr_ctx_create(&config, &probe->ctx, &probe->reason) < 0)
		return 1;
	/* Unbuffered, so that poll() on it tells the truth: see forward. */
	setvbuf(stdin, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin) != NULL)
		print_answer(obey(probe, line));
	print_answer(end_probe(probe));
	free(probe);
	return 0;
}
