/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscount: counts the system calls of a process for a while.
 *
 *     syscount --pid PID [--seconds S]
 *
 * A BPF program on the tracepoint sys_enter counts by number in an array map;
 * strace would slow a forwarder to a tenth of its rate. It costs some 100 ns
 * per system call, so this is a run of its own beside the timed ones.
 *
 * Prints {"seconds":S,"total":N,"calls":{"44":N,...}}; the numbers are those
 * of <asm/unistd.h>.
 */
#include <err.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

enum { MAX_NR = 512, MAP_BYTES = MAX_NR * sizeof(uint64_t) };

/*
 * args[1] of sys_enter is the number. Add one to counts[number] if the calling
 * thread belongs to @p pid.
 */
static int load_program(int map_fd, int pid)
{
	const struct bpf_insn insns[] = {
	    {BPF_LDX | BPF_MEM | BPF_DW, 6, 1, 8, 0},
	    {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid},
	    {BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 32},
	    {BPF_JMP | BPF_JNE | BPF_K, 0, 0, 7, pid},
	    {BPF_JMP | BPF_JGE | BPF_K, 6, 0, 6, MAX_NR},
	    {BPF_ALU64 | BPF_LSH | BPF_K, 6, 0, 0, 3},
	    {BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_VALUE, 0, map_fd},
	    {0, 0, 0, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_X, 2, 6, 0, 0},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 1},
	    {BPF_STX | BPF_ATOMIC | BPF_DW, 2, 3, 0, BPF_ADD},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
	    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	const size_t n_insns = sizeof(insns) / sizeof(insns[0]);
	char log[4096] = "";
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log,
		    .log_size = sizeof(log), .log_level = 1);
	const int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "syscount",
				     "Dual BSD/GPL", insns, n_insns, &opts);

	if (fd < 0)
		errx(1, "program refused: %s\n%s", strerror(-fd), log);
	return fd;
}

static void print_counts(const uint64_t *counts, const uint64_t *before,
			 double seconds)
{
	const char *separator = "";
	uint64_t total = 0;

	for (int i = 0; i < MAX_NR; i++)
		total += counts[i] - before[i];
	printf("{\"seconds\":%.3f,\"total\":%" PRIu64 ",\"calls\":{", seconds,
	       total);
	for (int i = 0; i < MAX_NR; i++) {
		if (counts[i] == before[i])
			continue;
		printf("%s\"%d\":%" PRIu64, separator, i,
		       counts[i] - before[i]);
		separator = ",";
	}
	printf("}}\n");
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const double seconds = argc == 5 ? strtod(argv[4], NULL) : 3;
	const int pid = argc >= 3 ? (int)strtol(argv[2], NULL, 10) : 0;
	struct timespec ts = {(time_t)seconds,
			      (long)((seconds - (time_t)seconds) * 1e9)};
	uint64_t before[MAX_NR], after[MAX_NR];
	struct timespec begin, end;
	int map_fd, prog_fd, link_fd;
	void *counts;

	if (pid <= 0 || seconds <= 0 || strcmp(argv[1], "--pid") != 0)
		errx(2, "usage: syscount --pid PID [--seconds S]");
	if (kill(pid, 0) < 0)
		err(1, "process %d", pid);
	map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "syscount", 4, MAP_BYTES, 1,
				&opts);
	if (map_fd < 0)
		errx(1, "counter map: %s", strerror(-map_fd));
	counts = mmap(NULL, MAP_BYTES, PROT_READ, MAP_SHARED, map_fd, 0);
	if (counts == MAP_FAILED)
		err(1, "counter map: mmap");
	prog_fd = load_program(map_fd, pid);
	link_fd = bpf_raw_tracepoint_open("sys_enter", prog_fd);
	if (link_fd < 0)
		errx(1, "tracepoint sys_enter: %s", strerror(-link_fd));

	clock_gettime(CLOCK_MONOTONIC, &begin);
	memcpy(before, counts, MAP_BYTES);
	nanosleep(&ts, NULL);
	memcpy(after, counts, MAP_BYTES);
	clock_gettime(CLOCK_MONOTONIC, &end);
	print_counts(after, before,
		     (double)(end.tv_sec - begin.tv_sec) +
			     (end.tv_nsec - begin.tv_nsec) * 1e-9);
	close(link_fd);
	return 0;
}
