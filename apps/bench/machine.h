/* SPDX-License-Identifier: BSD-3-Clause */
/* What the figures were measured on. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct machine {
	char cpu[96], kernel[96], governor[32], load[32];
	uint32_t n_cores;      /* online */
	uint64_t n_huge_pages; /* of 2 MiB: in all, and free */
	uint64_t n_huge_free;
	char compiler[96], flags[128];
	char millrace[32], dpdk[64];
	char command[512];
	char date[32];
};

/* command: as typed, before getopt() sorts the words. */
void machine_look(struct machine *machine, const char *command);

void machine_command(int argc, char *const *argv, char *ret, size_t n_bytes);

#endif
