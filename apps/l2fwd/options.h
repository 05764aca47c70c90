/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line asks for. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/millrace.h>

#include "support/options.h"

enum { MAX_PORTS = 32 };

enum mode { MODE_PATCH, MODE_MACSWAP, MODE_LEARN, MODE_DROP };
enum output { OUTPUT_AUTO, OUTPUT_JSON, OUTPUT_CSV };
enum promisc { PROMISC_AUTO, PROMISC_ON, PROMISC_OFF };

struct options {
	char *const *specs;
	uint32_t n_ports;
	enum mode mode;
	enum mr_idle_mode idle;
	enum output output;
	enum promisc promisc;
	bool is_quiet;
	uint32_t n_verbose; /* times that -v was given */
	enum mr_log_level log_level;
	/* 0: the default, which depends on the ports. */
	uint32_t n_queues, n_ring, mtu_bytes;
	uint32_t n_workers, n_pages;
	uint32_t n_cores;
	uint32_t cores[MR_WORKERS_MAX];
	uint32_t burst;
	uint32_t page_bytes;
	enum mr_safety safety;
	uint32_t age_s, fdb_limit;
	uint64_t n_frames;    /* 0: no end */
	uint64_t duration_ms; /* 0: no end */
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error);

void options_print_help(FILE *to);

const char *mode_name(enum mode mode);
const char *idle_name(enum mr_idle_mode idle);

#endif
