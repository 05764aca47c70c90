/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-micro COMMAND [OPTION...] [WORKLOAD/ROW...]: measure rows and print each
 * as a line of JSON, with all samples. ./mr bench computes figures from them.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "harness.h"
#include "peer_dpdk.h"
#include "support/options.h"
#include "support/text.h"
#include "support/values.h"

/* Indexed by number. */
static const struct workload workloads[] = {
	{ "B01", "baseline", "loop, atomic, memcpy",
	  "prototype-kernel, bench_page_pool_simple", rows_b01 },
	{ "B02", "pp_fast", "one page, back to the same cache",
	  "prototype-kernel, bench_page_pool_simple 01", rows_b02 },
	{ "B03", "pp_ring", "one page, back through what threads share",
	  "prototype-kernel, bench_page_pool_simple 02", rows_b03 },
	{ "B04", "pp_slow", "one page, from and to the backing store",
	  "prototype-kernel, bench_page_pool_simple 03", rows_b04 },
	{ "B05", "pp_cross",
	  "one core takes, others give back, 1 and 32 at a time",
	  "prototype-kernel, bench_page_pool_cross_cpu", rows_b05 },
	{ "B06", "bulk", "single, array and list of 1 to 128 pages",
	  "prototype-kernel, page_bench04_bulk", rows_b06 },
	{ "B07", "sunrpc", "fill the holes of an array of 259 slots",
	  "founding document 2, svc_alloc_arg()", rows_b07 },
	{ "B08", "xdp_drop",
	  "receive and drop; recycling on and off in a forward",
	  "founding documents 2, 3 and 5", rows_b08 },
	{ "B09", "frag_pp",
	  "frags through a ring of 512 from one core to another",
	  "Linux, selftests/mm/page_frag/page_frag_test.c", rows_b09 },
	{ "B10", "frag_mix", "frags of mixed sizes, freed in another order",
	  "sizes of the simple Internet mix", rows_b10 },
	{ "B11", "frag_abort", "undo the last cut, or free it",
	  "netdev, page_frag_cache part 2: tun, XDP_DROP", rows_b11 },
	{ "B12", "qm_fast, qm_N",
	  "objects through a local cache and a shared queue",
	  "prototype-kernel, qmempool_bench", rows_b12 },
	{ "B13", "dpdk_perf", "the loops of DPDK's mempool_perf_autotest",
	  "DPDK, app/test/test_mempool_perf.c", rows_b13 },
	{ "B14", "pipeline",
	  "one core takes pages, another one touches and frees them",
	  "DPDK 57faf30b07; netdev, order-0 frees (ring sizes)", rows_b14 },
	{ "B16", "fwd_shared",
	  "threads take from one pool, and free in part for each other",
	  "netdev, qmempool: flows that share a pool", rows_b16 },
	{ "B17", "txcompl",
	  "completed frames of several pools go back on another core",
	  "netdev, order-0 frees; page_pool_put_netmem_bulk", rows_b17 },
	{ "B18", "recycle",
	  "completion ring to fill ring: straight, or through the pool",
	  "DPDK rte_eth_recycle_mbufs(), e43d2b89dd", rows_b18 },
	{ "B19", "preempt", "more threads than cores share a pool",
	  "DPDK, test_ring_stress: over committed", rows_b19 },
	{ "B20", "cost_of_safety", "drop and pipeline at each level of checks",
	  "DPDK 203dcc9cfe", rows_b20 },
	{ "F01", "hit", "lookups of keys that are there",
	  "DPDK, app/test/test_hash_perf.c", rows_f01 },
	{ "F02", "miss", "lookups of keys that are not there",
	  "DPDK, app/test/test_hash_perf.c", rows_f02 },
	{ "F03", "replace", "the oldest record goes, a new one comes",
	  "DPDK, app/test/test_hash_perf.c", rows_f03 },
	{ "F04", "fill",
	  "a table filled and emptied; single adds while it grows",
	  "growth without a pause", rows_f04 },
	{ "F05", "routes", "longest prefix match, IPv4 and IPv6",
	  "DPDK, app/test/test_lpm_perf.c, app/test-fib", rows_f05 },
	{ "W02", "build", "frames of a stream, built and sent to null:",
	  "100 Mpps with one field, 40 with four", rows_w02 },
	{ NULL },
};

/* In the order of enum side. */
static const char *const sides[] = { "ours",  "dpdk",   "kernel",
				     "plain", "malloc", NULL };

static int complain(const char *text, int status)
{
	print_error("mr bench: %s", text);
	return status;
}

static bool read_sides(const char *text, void *to, struct mr_reason *why)
{
	struct bench *bench = to;
	char words[64], *at = words, *word;
	uint32_t side;

	snprintf(words, sizeof(words), "%s", text);
	bench->sides = 0;
	while ((word = strsep(&at, ",")) != NULL) {
		if (!value_word(word, sides, &side, why))
			return false;
		bench->sides |= 1u << side;
	}
	return true;
}

static bool read_without(const char *text, void *to, struct mr_reason *why)
{
	struct bench *bench = to;

	if (bench->n_without == MAX_WITHOUT)
		return value_wrong(why, "more than %d", MAX_WITHOUT);
	bench->without[bench->n_without++] = text;
	return true;
}

static bool read_cores(const char *text, void *to, struct mr_reason *why)
{
	struct bench *bench = to;

	return value_cores(text, bench->cores, &bench->n_cores, why);
}

#define BENCH_VALUE(name_, read_, ...)                                         \
	{                                                                      \
		.name = name_, .take = yaml_take_value, .read = read_,         \
		YAML_OPTION(__VA_ARGS__)                                       \
	}

static const struct yaml_key keys[] = {
	YAML_BOOL("list", bench, is_listing,
		  YAML_OPTION(NULL, "list the rows, do not measure")),
	YAML_NUMBER("samples", bench, n_samples, 1, MAX_SAMPLES,
		    YAML_OPTION("N", "samples per variant (default 31)")),
	YAML_NUMBER("sample_ms", bench, sample_ms, 1, 10000,
		    YAML_OPTION("N", "length of a sample (default 50)")),
	YAML_NUMBER("limit", bench, limit_s, 1, 100000,
		    YAML_OPTION("S", "end after S seconds")),
	BENCH_VALUE("only", read_sides, "SIDES", "run only these sides"),
	BENCH_VALUE("without", read_without, "PATTERN",
		    "leave out variants; may be given again"),
	BENCH_VALUE("cores", read_cores, "LIST", "such as 1,3-5"),
	YAML_END,
};

static const struct option_keys key_set = { keys, 0, false, 0 };

static const struct option_table table = {
	.program = "mr-micro",
	.usage = "usage: mr-micro mem|flow|fwd [options] [WORKLOAD/ROW...]\n",
	.sets = &key_set,
	.n_sets = 1,
};

static void end_soon(int signal_number)
{
	__atomic_store_n(&bench_end_signal, signal_number, __ATOMIC_RELAXED);
}

static void catch_signals(void)
{
	/* A second signal ends the program at once. */
	struct sigaction action = { .sa_handler = end_soon,
				    .sa_flags = SA_RESETHAND | SA_RESTART };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL); /* the limit */
	/* A reader that went away is a write error, not a signal. */
	signal(SIGPIPE, SIG_IGN);
}

/*
 * The requested cores, which must be among those that this process may use; or
 * all of these.
 */
static int choose_cores(struct bench *bench, struct mr_reason *why)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) < 0) {
		snprintf(why->text, sizeof(why->text), "sched_getaffinity: %m");
		return -1;
	}
	for (uint32_t i = 0; i < bench->n_cores; i++) {
		if (CPU_ISSET(bench->cores[i], &set))
			continue;
		snprintf(why->text, sizeof(why->text),
			 "--cores: core %u is not there or may not be used",
			 bench->cores[i]);
		return -1;
	}
	for (uint32_t c = 0, is_all = bench->n_cores == 0;
	     is_all && c < CPU_SETSIZE && bench->n_cores < MAX_THREADS; c++)
		if (CPU_ISSET(c, &set))
			bench->cores[bench->n_cores++] = c;
	return 0;
}

static void print_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(8));
	json_decref(object);
	fputc('\n', stdout);
	fflush(stdout);
}

static json_t *variant_object(const struct variant *variant,
			      const struct book *book)
{
	json_t *ns = json_array(), *cycles = json_array();
	json_t *clean = json_array(), *counts = json_object();
	json_t *object;

	for (uint32_t i = 0; i < book->n; i++) {
		json_array_append_new(ns, json_real(book->ns[i]));
		json_array_append_new(cycles, json_real(book->cycles[i]));
		json_array_append_new(clean, json_boolean(book->is_clean[i]));
	}
	for (uint32_t i = 0; i < book->counts.n; i++)
		json_object_set_new(counts, book->counts.of[i].name,
				    json_real(book->counts.of[i].value));
	object = json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "name",
			   variant->name, "side", sides[variant->side],
			   "operations", (json_int_t)variant->n_done, "ns", ns,
			   "cycles", cycles, "clean", clean, "counts", counts);
	if (book->why_not[0] != '\0')
		json_object_set_new(object, "why_not",
				    json_string(book->why_not));
	return object;
}

static void show_row(const struct bench *bench, const struct row *row,
		     const struct book *books)
{
	const struct workload *w = bench->workload;
	json_t *variants = json_array();
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:o}", "workload", w->name,
		"title", w->title, "what", w->what, "name", row->name, "unit",
		row->unit, "threads", (int)row->n_threads, "per_thread",
		row->is_per_thread, "players", variants);

	for (uint32_t i = 0; i < row->n_variants; i++)
		json_array_append_new(
			variants, variant_object(&row->variants[i], &books[i]));
	if (row->plot[0] != '\0')
		json_object_set_new(object, "plot", json_string(row->plot));
	print_json(object);
}

static void list_row(const struct bench *bench, const struct row *row,
		     const struct book *books)
{
	const struct workload *w = bench->workload;

	(void)books;
	print_json(json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "workload",
			     w->name, "title", w->title, "what", w->what,
			     "source", w->source, "name", row->name, "players",
			     (int)row->n_variants));
}

static void start_dpdk(struct bench *bench)
{
	struct mr_reason why = { .text = "" };

	if ((bench->sides & 1u << SIDE_DPDK) == 0)
		snprintf(why.text, sizeof(why.text), "left out by --only");
	else if (dpdk_start(bench->cores[0], &why) == 0)
		bench->has_dpdk = true;
	snprintf(bench->why_no_dpdk, sizeof(bench->why_no_dpdk), "%.150s",
		 why.text);
}

/* The first letter of a command's workloads; 0: unknown command. */
static char letter_of(const char *command)
{
	return strcmp(command, "mem") == 0  ? 'B' :
	       strcmp(command, "flow") == 0 ? 'F' :
	       strcmp(command, "fwd") == 0  ? 'W' :
					      0;
}

static void run_workloads(struct bench *bench, char letter)
{
	for (const struct workload *w = workloads; w->name != NULL; w++)
		if (w->name[0] == letter)
			bench_run(bench, w);
}

static void measure_rows(struct bench *bench, char letter)
{
	json_t *cores = json_array();

	for (uint32_t i = 0; i < bench->n_cores; i++)
		json_array_append_new(cores, json_integer(bench->cores[i]));
	print_json(json_pack("{s:{s:s, s:s, s:s, s:s}, s:o, s:s}", "built",
			     "compiler", __VERSION__, "flags", BENCH_FLAGS,
			     "millrace", mr_version(), "dpdk", dpdk_version(),
			     "cores", cores, "why_no_dpdk",
			     bench->why_no_dpdk));
	run_workloads(bench, letter); /* only counts them */
	bench->is_counting = false;
	alarm(bench->limit_s);
	bench->show = show_row;
	run_workloads(bench, letter);
	print_json(json_pack("{s:b}", "complete", !bench_is_ending()));
}

int main(int argc, char **argv)
{
	struct bench bench = { .sides = UINT32_MAX,
			       .n_samples = 31,
			       .sample_ms = 50,
			       .is_counting = true };
	struct mr_reason why = { .text = "" };
	char letter = 0;
	int first;

	switch (option_table_parse(&table, argc, argv, &bench, &first, NULL,
				   &why)) {
	case PARSE_DONE:
		return 0;
	case PARSE_WRONG:
		return complain(why.text, 2);
	case PARSE_RUN:
		break;
	}
	if (first < argc)
		letter = letter_of(argv[first]);
	if (letter == 0)
		return complain("it takes mem, flow or fwd", 2);
	bench.names = argv + first + 1;
	bench.n_names = (uint32_t)(argc - first - 1);
	catch_signals();
	if (choose_cores(&bench, &why) < 0)
		return complain(why.text, 2);
	if (mr_ctx_create(NULL, &bench.ctx, &why) < 0)
		return complain(why.text, 1);
	start_dpdk(&bench);
	pin_to_core(bench.cores[0]);
	if (bench.is_listing) {
		bench.show = list_row;
		run_workloads(&bench, letter);
	} else {
		measure_rows(&bench, letter);
	}
	mr_ctx_destroy(bench.ctx);
	return ferror(stdout) ? complain("cannot write to stdout", 1) : 0;
}
