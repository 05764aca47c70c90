/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of workloads: rows, and variants that compete in a row.
 *
 * A row is one task with all its parameters. Its variants do the same task in
 * different ways. They are measured in turn, sample by sample, so that
 * disturbances of the machine affect all of them. A variant of a pool's row
 * combines an allocator of the table in alloc.c with a loop of the workload.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <millrace/millrace.h>

enum {
	MAX_PLAYERS = 48, /* in one row */
	MAX_COUNTS = 24,  /* of one variant */
	MAX_THREADS = 64,
};

/* Whose code a variant runs. */
enum side {
	SIDE_OURS,
	SIDE_DPDK,
	SIDE_KERNEL, /* a model of the kernel's algorithm, in user space */
	SIDE_PLAIN,  /* a floor: the least possible work */
	SIDE_MALLOC,
};

/* The allocators; alloc.c has the table. */
enum alloc {
	A_OURS,      /* pools of pages, one cache per thread */
	A_FRAGS,     /* a pool of pages with a frag cache */
	A_OBJECTS,   /* a pool of objects */
	A_MEMPOOL,   /* rte_mempool */
	A_MBUFS,     /* rte_mempool with DPDK's frames */
	A_PAGE_POOL, /* models of the kernel's allocators */
	A_QMEMPOOL,
	A_PAGE_FRAG,
	A_PLAIN, /* a stack per thread */
	A_ROUND, /* a few objects in a cycle */
	A_MALLOC,
	A_NOTHING, /* no allocation: a floor */
};

/* Named figures beside the time. */
struct counts {
	uint32_t n;
	struct {
		const char *name; /* a constant string */
		double value;
	} of[MAX_COUNTS];
};

struct bench;
struct dpdk_kind;
struct variant;
struct row;

/* One cache per thread; two per thread; two, the second one to free to. */
enum caches { CACHES_ONE, CACHES_OTHERS, CACHES_AWAY };

/* What a variant's harness should contain. 0 selects the default. */
struct wish {
	uint32_t n_objects;         /* in each pool; default 16 Ki */
	uint32_t n_bytes;           /* of an object; default 2048 */
	uint32_t frag_bytes;        /* of an allocation; default n_bytes */
	uint32_t align;             /* of a frag; default 1 */
	uint32_t frags_mib;         /* frags: memory, in place of n_objects */
	uint32_t n_pools;           /* default 1; all in one region */
	enum caches caches;         /* for each thread */
	bool has_owners;            /* ours: a page had two owners once */
	bool is_owned;              /* DPDK: caches of the caller */
	uint32_t n_hops, hop_words; /* rings, and their size, a power of two */
	size_t n_extra;             /* bytes for the workload's own data */
	const struct dpdk_kind *kind; /* DPDK */
	struct mr_pool_config ours;   /* ours: further configuration */
};

/*
 * Do about n operations; return how many were done. Called at the same time on
 * each thread of the row; threads have the numbers 0 to n_threads - 1.
 */
typedef uint64_t variant_run_fn(struct variant *variant, uint32_t thread,
				uint64_t n);

struct variant {
	char name[64];
	enum side side;
	enum alloc alloc;
	struct wish wish;
	/*
	 * Make in `state` what run() needs. Runs on thread 0. A negative result
	 * leaves the variant out; the report then gives the reason.
	 */
	int (*setup)(struct variant *variant, struct mr_reason *why);
	variant_run_fn *run;
	/*
	 * Called after the harness was made, and before it is freed; or NULL.
	 */
	int (*begin)(struct variant *variant, struct mr_reason *why);
	void (*end)(struct variant *variant);
	/* Add figures, after the last sample; or NULL. */
	void (*count)(struct variant *variant, struct counts *counts);
	void (*teardown)(
		struct variant *variant); /* or NULL; after a setup() */
	uint64_t param[8];                /* the workload's */
	void *state;                      /* of the variant */
	struct bench *bench; /* set by the harness, like the rest */
	const struct row *row;
	uint64_t n_done;   /* operations so far, of all threads */
	uint64_t n_sample; /* operations of one thread in one sample */
};

struct row {
	char name[96];    /* parameters, as "from=depot bulk=64" */
	const char *unit; /* what an operation is: "page" */
	uint32_t
		n_threads; /* 0: 1; each on a core of its own while there are */
	/*
	 * How to state the time of a row of several threads. False: wall time
	 * by operation, for pipelines. True: time of one core by operation, for
	 * threads that all do the same.
	 */
	bool is_per_thread;
	char plot[80]; /* of rows that differ in one parameter; "": none */
	struct variant variants[MAX_PLAYERS];
	uint32_t n_variants;
};

/* Call bench_row() for each row, and do nothing else that is slow. */
typedef void rows_fn(struct bench *bench);

/* One per workload; main.c has the table. */
rows_fn rows_b01, rows_b02, rows_b03, rows_b04, rows_b05, rows_b06, rows_b07;
rows_fn rows_b08, rows_b09, rows_b10, rows_b11, rows_b12, rows_b13, rows_b14;
rows_fn rows_b16, rows_b17, rows_b18, rows_b19, rows_b20, rows_f01, rows_f02;
rows_fn rows_f03, rows_f04, rows_f05, rows_w02;

/* A family of rows: one entry of main.c's table. */
struct workload {
	const char *name;   /* "B06" */
	const char *title;  /* "bulk" */
	const char *what;   /* one line for --list and charts */
	const char *source; /* the source of the workload */
	rows_fn *rows;
};

/* Measure a row, or count it if only the number of rows is wanted. */
void bench_row(struct bench *bench, struct row *row);

/* Add a variant to the row, unless the command line leaves it out. */
void bench_add(struct bench *bench, struct row *row,
	       const struct variant *variant);

/* Sets of rte_mempool's handlers, by the size of their cache. */
enum { C512 = 1, C256 = 2, C0 = 4, C_ALL = 7, C_FIRST = 8 };

/* An entry in a workload's table of variants. */
struct contestant {
	const char
		*name; /* of handlers: what follows "rte_mempool ring c512" */
	enum alloc alloc;
	variant_run_fn *run;
	uint32_t kinds;          /* A_MEMPOOL, A_MBUFS: one variant for each */
	uint32_t magazine_pages; /* ours; 0: the pool's default */
	uint64_t how;            /* param[P_HOW]; alignment for frags */
};

enum { P_HOW = 7 };

/* Add a variant like `like` for each contestant, with a harness. */
void bench_add_all(struct bench *bench, struct row *row,
		   const struct variant *like, const struct contestant *list,
		   uint32_t n);

/* The context in which pools are made. */
struct mr_ctx *bench_ctx(struct bench *bench);

/* Cores that may be used; at least 1. */
uint32_t bench_n_cores(const struct bench *bench);

/* Thread counts of rows: 1, 2, 4, ... and finally most. */
static inline uint32_t next_n_threads(uint32_t n, uint32_t most)
{
	return n < most && 2 * n > most ? most : 2 * n;
}

/*
 * From count(): run one more sample of the variant on all threads, or a shorter
 * one, without a clock. Returns the number of operations.
 */
uint64_t bench_run_again(struct variant *variant, uint64_t n_most);

void count_add(struct counts *counts, const char *name, double value);

/* n per 1000 operations of the variant, over all its runs. */
void count_per_1000(struct counts *counts, const char *name, uint64_t n,
		    const struct variant *variant);

/* Set by a signal: end after this run and report what was measured. */
extern int bench_end_signal;

/*
 * For loops that may take longer than planned, as with more threads than cores:
 * return at once, the sample does not count.
 */
static inline bool bench_is_ending(void)
{
	return __atomic_load_n(&bench_end_signal, __ATOMIC_RELAXED) != 0;
}

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Print a name into an array. */
#define NAME(to, ...) print_name(to, sizeof(to), __VA_ARGS__)

void print_name(char *to, size_t n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Keep the compiler from removing the computation of a value. */
static inline void keep(const void *p)
{
	__asm__ __volatile__("" : : "r"(p) : "memory");
}

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* xorshift64 (G. Marsaglia, 2003): the same sequence for all variants. */
static inline uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
