/* SPDX-License-Identifier: BSD-3-Clause */
/* What the figures were measured on. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct machine {
	char cpu[96], kernel[96], load[32];
	char governor[96]; /* of the cores: each that one of them has */
	char microcode[32];
	char kernel_words[1024];    /* its command line */
	char isolated[64];          /* cores, as "2-7"; "" if none are */
	char nohz_full[64];         /* cores without a tick, likewise */
	char clock_source[32];      /* of the kernel */
	char thp[32];               /* transparent huge pages: "madvise" */
	char guest[96];             /* what runs it; "" if nothing that shows */
	char vulnerabilities[2048]; /* "name: state\n" of what affects it */
	uint32_t n_cores;           /* online */
	uint32_t n_numa_nodes;      /* with memory; 0: unknown */
	bool has_smt;               /* two threads share a core */
	uint64_t n_huge_pages;      /* of 2 MiB: in all, and free */
	uint64_t n_huge_free;
	char compiler[96], flags[128];
	char millrace[32], dpdk[64];
	char command[512];
	char date[32];
};

/* command: as typed, before getopt() sorts the words. The governor is that of
 * all cores that this thread may run on. */
void machine_look(struct machine *machine, const char *command);

/* Of the cores that work: "performance", "performance, powersave" where they do
 * not agree. sys: "/sys", or what stands for it. */
void machine_governor(const char *sys, const uint32_t *cores, uint32_t n,
		      char *ret, size_t n_bytes);

/* "machine" of the documents. Owner: the caller. */
json_t *machine_json(const struct machine *machine);

void machine_command(int argc, char *const *argv, char *ret, size_t n_bytes);

#endif
