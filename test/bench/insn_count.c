/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug-in for QEMU that counts, exactly, the instructions that each virtual
 * CPU executes in user space.
 *
 *     qemu-system-x86_64 -plugin libinsn_count.so,counts=COUNTS ...
 *
 * COUNTS has a uint64_t per CPU, written when the CPU goes to sleep. If a CPU
 * runs only what is to be measured, its number is final when that has ended. A
 * block of instructions that a fault interrupts counts whole; polling loops
 * have none.
 *
 * Source: qemu/docs/devel/tcg-plugins.rst and include/qemu/qemu-plugin.h of
 * QEMU 9.0. Debian does not package this header, so the parts used are declared
 * here.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	API_VERSION = 2, /* QEMU 9.0: the first with scoreboards */
	OP_ADD = 0,      /* QEMU_PLUGIN_INLINE_ADD_U64 */
};

/* Linux on x86-64: the kernel has the upper half of the addresses. */
static const uint64_t KERNEL_BIT = UINT64_C(1) << 63;

struct qemu_plugin_tb; /* a block of translated instructions */
struct qemu_plugin_scoreboard;
struct place { /* qemu_plugin_u64 */
	struct qemu_plugin_scoreboard *board;
	size_t offset;
};
typedef void tb_fn(uint64_t id, struct qemu_plugin_tb *tb);
typedef void cpu_fn(uint64_t id, unsigned int cpu);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t n_bytes);
uint64_t qemu_plugin_u64_get(struct place place, unsigned int cpu);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, tb_fn *fn);
void qemu_plugin_register_vcpu_idle_cb(uint64_t id, cpu_fn *fn);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
	struct qemu_plugin_tb *tb, int op, struct place place, uint64_t n);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

__attribute__((visibility("default"))) int qemu_plugin_version = API_VERSION;
__attribute__((visibility("default"))) int
qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

static struct place counts;
static int file = -1;

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	if (qemu_plugin_tb_vaddr(tb) & KERNEL_BIT)
		return;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		tb, OP_ADD, counts, qemu_plugin_tb_n_insns(tb));
}

static void on_idle(uint64_t id, unsigned int cpu)
{
	const uint64_t n = qemu_plugin_u64_get(counts, cpu);

	(void)id;
	if (pwrite(file, &n, sizeof(n), (off_t)(cpu * sizeof(n))) < 0)
		perror("insn_count");
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "counts=", 7) == 0)
			file = open(argv[i] + 7, O_CREAT | O_WRONLY | O_CLOEXEC,
				    0600);
	if (file < 0) {
		fprintf(stderr, "insn_count: counts=FILE is missing, or cannot "
				"be written\n");
		return -1;
	}
	counts.board = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	return 0;
}
