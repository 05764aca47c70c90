/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mistakes of a driver with a PCI function or an Intel NIC, and the violations
 * that the models report, with a minimal driver. Our driver shows that the
 * models behave like the NICs: it passes the same tests on them and on QEMU's
 * NICs.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "model/mini.h"

enum { PAGE = 4096 };

static const struct intel_chip *chip;

static void pass_the_head(struct mini *d)
{
	/* 31 are posted; one more makes head and tail equal. */
	mini_write(d, REG_RX_RINGS + RING_TAIL, 0);
}

static void move_a_running_ring(struct mini *d)
{
	mini_write(d, REG_RX_RINGS + RING_BAL, MINI_IOVA);
}

static void set_a_running_head(struct mini *d)
{
	mini_write(d, REG_TX_RINGS + RING_HEAD, 0);
}

static void write_nowhere(struct mini *d)
{
	mini_write(d, 0x1234, 5);
}

static void write_back_heads(struct mini *d)
{
	mini_write(d, REG_TX_RINGS + RING_WBAL, 1);
}

static void receive_60(struct mini *d)
{
	model_wire_send(d->wire, 1, mini_frame, 60);
}

static void change_a_posted_buffer(struct mini *d)
{
	mini_desc(d, false, 0, 0)->low += MINI_BUFFER;
	receive_60(d);
}

static void change_a_frame_under_way(struct mini *d)
{
	d->m->is_lazy = true;
	mini_send(d, 60);
	mini_desc(d, true, 0, 0)->high ^= 1;
	model_step(d->m);
}

static void read_half_a_counter(struct mini *d)
{
	mini_read(d, STAT_GOTCH);
}

static void send_16000(struct mini *d)
{
	mini_send(d, 16000);
}

static void send_10(struct mini *d)
{
	mini_send(d, 10);
}

static void send_nothing(struct mini *d)
{
	mini_send(d, 0);
}

static void send_of_no_type(struct mini *d)
{
	mini_put(d, MINI_IOVA + MINI_OUT, 60 | TXD_EOP | TXD_IFCS);
	mini_kick(d);
}

static void send_without_context(struct mini *d)
{
	mini_put_data(d, 0, 100, 100, TXD_EOP | TXD_RS, TXD_TXSM);
	mini_kick(d);
}

static void send_with_wrong_paylen(struct mini *d)
{
	mini_put_data(d, 0, 100, 90, TXD_EOP | TXD_RS, 0);
	mini_kick(d);
}

static void tag_a_frame(struct mini *d)
{
	mini_put_data(d, 0, 100, 100, TXD_EOP | TXD_RS | TXD_VLE, 0);
	mini_kick(d);
}

static void read_causes_that_clear_themselves(struct mini *d)
{
	mini_write(d, REG_EIAC, 0x1f);
	mini_read(d, REG_EICR);
}

/* Checksum fields without a partial checksum are wrong on the wire. */
static void sum_what_is_not_partial(struct mini *d)
{
	const uint32_t n = packet_make(d->arena + MINI_OUT, mini_mac, 4, 6, 77);

	mini_put_tcp_context(d);
	mini_put_data(d, 0, n, n, TXD_EOP | TXD_RS, TXD_TXSM);
	mini_kick(d);
	assert_int_equal(d->nic->n_bad_sums, 1);
}

static void reach_nowhere(struct mini *d)
{
	model_lock(d->m);
	assert_null(model_dma(d->m, 0x90000000, 60));
	model_unlock(d->m);
}

static void read_behind_a_bar(struct mini *d)
{
	assert_int_equal(model_read(d->m, 0, INTEL_BAR_BYTES, 4), UINT32_MAX);
}

static void read_no_bar(struct mini *d)
{
	model_read(d->m, 1, 0, 4);
}

static void write_unaligned(struct mini *d)
{
	model_write(d->m, 0, 2, 4, 0);
}

static void read_with_memory_off(struct mini *d)
{
	mini_command(d, 4);
	mini_read(d, REG_STATUS);
	mini_command(d, 6);
}

/* Clearing it first stops a device: no violation. */
static void send_with_master_off(struct mini *d)
{
	mini_command(d, 2);
	mini_send(d, 60);
	assert_true(d->m->n_dma_refused > 0);
	mini_command(d, 6);
}

static void interrupt_beyond(struct mini *d)
{
	const int fd = -1;

	assert_int_equal(model_set_irqs(d->m, 1, &fd), 0);
	model_lock(d->m);
	model_irq(d->m, 1);
	model_unlock(d->m);
}

static void close_as_master(struct mini *d)
{
	model_close(d->m);
	assert_int_equal(model_open(d->m), 0);
}

enum chips { ALL, NOT_82574, ONLY_82574 };

/* Mistakes on start, given by flaws, or at run time. "": no violation. */
static const struct {
	uint32_t flaws;
	void (*make)(struct mini *d);
	const char *words;
	enum chips chips;
} mistakes[] = {
	{ 0, receive_60, "", ALL },
	{ MINI_RSS, receive_60, "", ALL },
	{ MINI_NO_RESET, NULL, "before a reset", ALL },
	{ MINI_NO_WAIT, NULL, "within 1 ms", ALL },
	{ MINI_NO_MTA, NULL, "128 words of MTA", ALL },
	{ MINI_ODD_BASE, NULL, "base 0x100040", ALL },
	{ MINI_SHORT_RING, NULL, "128 bytes", ALL },
	{ MINI_UNMAPPED_RING, NULL, "not all of it is mapped", ALL },
	{ MINI_NO_POLL, NULL, "before QUEUE_ENABLE", NOT_82574 },
	{ MINI_TAIL_FIRST, NULL, "while it is off", ALL },
	{ MINI_NO_MASTER, NULL, "bus master was not turned on", ALL },
	{ MINI_LATE_MASTER, NULL, "bus master was not turned on", ALL },
	{ MINI_LEGACY, NULL, "SRRCTL", NOT_82574 },
	{ MINI_LEGACY, NULL, "bit 15 of RFCTL", ONLY_82574 },
	{ MINI_TAIL_OUTSIDE, NULL, "tail 32 of 32", ALL },
	{ MINI_NO_BIT22, NULL, "bit 22", ONLY_82574 },
	{ MINI_NO_PCSD, NULL, "PCSD", ALL },
	{ MINI_SAME_BUFFER, NULL, "given twice", ALL },
	{ MINI_STALE, NULL, "old status", ALL },
	{ 0, pass_the_head, "passes head", ALL },
	{ 0, move_a_running_ring, "while it runs", ALL },
	{ 0, set_a_running_head, "while it runs", ALL },
	{ 0, write_nowhere, "does not have", ALL },
	{ 0, write_back_heads, "no head write-back", ONLY_82574 },
	{ 0, change_a_posted_buffer, "descriptor 0 changed", ALL },
	{ 0, change_a_frame_under_way, "descriptor 0 changed", ALL },
	{ 0, read_half_a_counter, "before its low half", ALL },
	{ 0, send_16000, "a frame of 16000 bytes", ALL },
	{ 0, send_10, "a frame of 10 bytes", ALL },
	{ 0, send_nothing, "a descriptor of 0 bytes", ALL },
	{ 0, send_of_no_type, "unknown type", ALL },
	{ 0, send_without_context, "context", ALL },
	{ 0, send_with_wrong_paylen, "PAYLEN 90 of 100", NOT_82574 },
	{ 0, tag_a_frame, "context", NOT_82574 },
	{ 0, tag_a_frame, "CTRL.VME", ONLY_82574 },
	{ 0, sum_what_is_not_partial, "", ALL },
	{ 0, read_causes_that_clear_themselves, "EICR is read", NOT_82574 },
	/* Reported by all models. */
	{ 0, reach_nowhere, "DMA of 60 bytes at 0x90000000: not mapped", ALL },
	{ 0, read_behind_a_bar, "0x20000 of BAR 0", ALL },
	{ 0, read_no_bar, "BAR 1", ALL },
	{ 0, write_unaligned, "0x2 of BAR 0", ALL },
	{ 0, read_with_memory_off, "memory space is off", ALL },
	{ 0, send_with_master_off, "", ALL },
	{ 0, interrupt_beyond, "vector 1 of 1", ALL },
	{ 0, close_as_master, "closed while bus master is on", ALL },
};

TEST(each_mistake_is_told)
{
	struct mini d;

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		if (mistakes[i].chips ==
		    (chip->is_82574 ? NOT_82574 : ONLY_82574))
			continue;
		mini_open(&d, chip);
		mini_start(&d, mistakes[i].flaws);
		if (mistakes[i].make != NULL)
			mistakes[i].make(&d);
		if (mistakes[i].words[0] != '\0')
			assert_violation(&d, mistakes[i].words);
		mini_close(&d);
	}
}

TEST(a_table_that_names_no_queue_is_told)
{
	uint8_t bytes[200];
	struct mini d;

	if (chip->is_82574 || chip->n_queues >= 16)
		return;
	mini_open(&d, chip);
	mini_start(&d, MINI_RSS | MINI_BAD_RETA);
	model_wire_send(d.wire, 1, bytes,
			packet_make(bytes, mini_mac, 4, 6, 9));
	assert_violation(&d, "RETA sends to queue 15");
	mini_close(&d);
}

TEST(only_the_first_violations_are_kept)
{
	struct mini d;

	mini_open(&d, chip);
	for (int i = 0; i < 1000; i++)
		read_no_bar(&d);
	assert_int_equal(d.m->n_violations, 1000);
	assert_true(strlen(model_violations(d.m)) < sizeof(d.m->violations));
	assert_int_equal(strncmp(model_violations(d.m), "read of 4", 9), 0);
	assert_int_equal(d.m->violations[strlen(model_violations(d.m)) - 1],
			 '\n');
	model_forgive(d.m);
	mini_close(&d);
}

/* What is mapped where, and the result; 0 bytes of memory: unmapped. */
TEST(mappings_are_whole_pages_that_do_not_overlap)
{
	static const struct {
		uint32_t max_maps;
		bool is_unmapped;
		uint64_t iova, n_bytes;
		int err;
		bool is_joined; /* then one transfer may span both */
	} cases[] = {
		{ 9, false, 0x20000, 100, -EINVAL, false },
		{ 9, false, 0x20010, PAGE, -EINVAL, false },
		{ 9, false, 0x20000, 0, -EINVAL, false },
		{ 9, false, 0xfee00000, PAGE, -EINVAL, false },
		{ 9, false, 1ull << 48, PAGE, -EINVAL, false },
		{ 9, false, 0x10000, PAGE, -EEXIST, false },
		{ 1, false, 0x11000, PAGE, -ENOSPC, false },
		{ 2, false, 0x11000, PAGE, 0, true },
		{ 2, true, 0x11000, 2 * PAGE, -EINVAL, true },
		{ 2, true, 0x11000, PAGE, 0, false },
		{ 2, true, 0x11000, PAGE, -EINVAL, false },
	};
	struct mini d;

	mini_open(&d, chip);
	assert_int_equal(model_unmap_dma(d.m, MINI_IOVA, MINI_ARENA), 0);
	assert_int_equal(model_map_dma(d.m, d.arena, 0x10000, PAGE), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t iova = cases[i].iova;
		const uint64_t n = cases[i].n_bytes;

		d.m->max_maps = cases[i].max_maps;
		assert_int_equal(
			cases[i].is_unmapped ?
				model_unmap_dma(d.m, iova, n) :
				model_map_dma(d.m, d.arena + PAGE, iova, n),
			cases[i].err);
		assert_int_equal(model_is_mapped(d.m, 0x10ff0, 32),
				 cases[i].is_joined);
	}
	assert_false(model_is_mapped(d.m, 0x10ff0, 32));
	assert_false(model_is_mapped(d.m, 0x10000, 0));
	mini_close(&d);
}

TEST(reset_is_the_functions_own)
{
	const int fds[2] = { -1, -1 };
	struct mini d;

	mini_open(&d, chip);
	assert_int_equal(model_set_irqs(d.m, 2, fds), 0);
	mini_write(&d, REG_RETA, 7);
	assert_int_equal(model_reset(d.m), chip->has_flr ? 0 : -ENOTTY);
	/* Triggers must be armed again. */
	assert_int_equal(d.m->n_irqs, chip->has_flr ? 0 : 2);
	assert_int_equal(*intel_reg(d.nic, REG_RETA), chip->has_flr ? 0 : 7);
	assert_int_equal(d.m->n_maps, 1);
	assert_int_equal(model_set_irqs(d.m, chip->n_vectors + 1, fds),
			 chip->n_vectors);
	model_forgive(d.m); /* RETA before a reset */
	mini_close(&d);
}

/* One in N happens about every N times. */
TEST(interrupts_get_lost_and_come_for_nothing)
{
	static const struct {
		struct model_faults faults;
		uint32_t least, most; /* of 10000 steps */
	} cases[] = {
		{ { .lost_irqs = 1, .spurious_irqs = 1 }, 0, 0 },
		{ { .spurious_irqs = 1 }, 10000, 10000 },
		{ { .spurious_irqs = 10 }, 800, 1200 },
		{ { .spurious_irqs = 1, .lost_irqs = 10 }, 8800, 9200 },
	};
	const int fds[2] = { eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			     eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	const struct model_faults none = { 0 };
	struct mini d;

	mini_open(&d, chip);
	assert_int_equal(model_set_irqs(d.m, 2, fds), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		model_set_faults(d.m, &cases[i].faults);
		d.m->n_irqs_sent = 0;
		for (int k = 0; k < 10000; k++)
			model_step(d.m);
		assert_in_range(d.m->n_irqs_sent, cases[i].least,
				cases[i].most);
		for (int k = 0; k < 2; k++) {
			uint64_t n;

			assert_int_equal(read(fds[k], &n, sizeof(n)),
					 cases[i].most == 0 ? -1 : 8);
		}
	}
	model_set_faults(d.m, &none);
	mini_close(&d);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	static const struct intel_chip *const chips[] = {
		&chip_82574l, &chip_82576, &chip_i210, &chip_i350
	};
	int n_failed = 0;

	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		chip = chips[i];
		n_failed += test_run(chip->name, NULL, NULL);
	}
	return n_failed;
}
