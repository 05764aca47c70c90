/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Intel models under the smallest driver: order of initialisation, rings,
 * filters, statistics, interrupts, link. Each test runs on each chip.
 */
#include "model/mini.h"

static const struct intel_chip *chip;

TEST(right_order_is_no_violation)
{
	struct mini_rx rx;
	struct mini d;
	uint8_t bytes[200], got[200];

	mini_open(&d, chip);
	mini_start(&d,
		   MINI_RSS | MINI_IRQS | (chip->is_82574 ? 0 : MINI_HEADS));
	mini_packet(bytes, 4, 17, 158);
	assert_true(model_wire_send(d.wire, 1, bytes, 200));
	assert_true(mini_receive(&d, 1, &rx) || mini_receive(&d, 0, &rx));
	assert_int_equal(rx.n_bytes, 200);
	assert_memory_equal(rx.bytes, bytes, 200);
	mini_send(&d, bytes, 200);
	assert_int_equal(model_wire_receive(d.wire, 1, got, 200), 200);
	assert_memory_equal(got, bytes, 200);
	mini_close(&d);
}

TEST(every_flaw_is_told)
{
	static const struct {
		uint32_t flaws;
		const char *words;
		bool not_82574, only_82574;
	} table[] = {
		{ MINI_NO_RESET, "before a reset", false, false },
		{ MINI_NO_WAIT, "within 1 ms", false, false },
		{ MINI_NO_MTA, "128 words of MTA", false, false },
		{ MINI_ODD_BASE, "base 0x100040", false, false },
		{ MINI_SHORT_RING, "128 bytes", false, false },
		{ MINI_UNMAPPED_RING, "not all of it is mapped", false, false },
		{ MINI_NO_POLL, "before QUEUE_ENABLE", true, false },
		{ MINI_TAIL_FIRST, "while it is off", false, false },
		{ MINI_NO_MASTER, "bus master was not turned on", false,
		  false },
		{ MINI_LATE_MASTER, "bus master was not turned on", false,
		  false },
		{ MINI_LEGACY, "SRRCTL", true, false },
		{ MINI_LEGACY, "bit 15 of RFCTL", false, true },
		{ MINI_TAIL_OUTSIDE, "tail 32 of 32", false, false },
		{ MINI_NO_BIT22, "bit 22", false, true },
		{ MINI_NO_PCSD, "PCSD", false, false },
		{ MINI_SAME_BUFFER, "given twice", false, false },
		{ MINI_STALE, "old status", false, false },
	};
	struct mini d;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (chip->is_82574 ? table[i].not_82574 : table[i].only_82574)
			continue;
		mini_open(&d, chip);
		mini_start(&d, table[i].flaws);
		assert_violation(&d, table[i].words);
		mini_close(&d);
	}
}

/* The next time round a tail may not pass the head. */
TEST(full_ring_is_told)
{
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	/* 31 are given; one more makes head and tail equal. */
	mini_write(&d, REG_RX_RINGS + RING_TAIL, 0);
	assert_violation(&d, "passes head");
	mini_close(&d);
}

TEST(running_ring_is_left_alone)
{
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	mini_write(&d, REG_RX_RINGS + RING_BAL, MINI_IOVA);
	assert_violation(&d, "while it runs");
	mini_write(&d, REG_TX_RINGS + RING_HEAD, 0);
	assert_violation(&d, "while it runs");
	mini_write(&d, 0x1234, 5);
	assert_violation(&d, "does not have");
	if (chip->is_82574) {
		mini_write(&d, REG_TX_RINGS + RING_WBAL, 1);
		assert_violation(&d, "no head write-back");
	}
	mini_close(&d);
}

TEST(descriptor_that_changes_is_told)
{
	const uint8_t bytes[60] = { 2, 1, 2, 3, 4, 5 };
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	mini_desc(&d, false, 0, 0)->low += MINI_BUFFER;
	model_wire_send(d.wire, 1, bytes, 60);
	assert_violation(&d, "descriptor 0 changed");
	d.m->is_lazy = true;
	mini_send(&d, bytes, 60);
	mini_desc(&d, true, 0, 0)->high ^= 1;
	model_step(d.m);
	assert_violation(&d, "descriptor 0 changed");
	mini_close(&d);
}

TEST(long_frame_fills_several_buffers)
{
	static uint8_t bytes[9000];
	static struct mini_rx rx;
	struct mini d;

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 + i / 256);
	memcpy(bytes, mini_mac, 6);
	mini_open(&d, chip);
	mini_start(&d, 0);
	/* Too long, unless it is said. */
	model_wire_send(d.wire, 1, bytes, sizeof(bytes));
	assert_false(mini_receive(&d, 0, &rx));
	assert_int_equal(mini_read(&d, STAT_ROC), 1);
	if (!chip->is_82574)
		mini_write(&d, REG_RLPML, 9004);
	mini_write(&d, REG_RCTL, RCTL_EN | RCTL_LPE | RCTL_SECRC);
	for (uint32_t round = 0; round < 20; round++) {
		bytes[20] = (uint8_t)round;
		assert_true(model_wire_send(d.wire, 1, bytes, sizeof(bytes)));
		assert_true(mini_receive(&d, 0, &rx));
		assert_int_equal(rx.n_descs, 5);
		assert_int_equal(rx.n_bytes, sizeof(bytes));
		assert_memory_equal(rx.bytes, bytes, sizeof(bytes));
	}
	/* Without SECRC its FCS comes along. */
	mini_write(&d, REG_RCTL, RCTL_EN);
	model_wire_send(d.wire, 1, bytes, 100);
	assert_true(mini_receive(&d, 0, &rx));
	assert_int_equal(rx.n_bytes, 104);
	/* CRC-32 over a frame and its FCS leaves this residue. */
	assert_int_equal(~packet_fcs(rx.bytes, 104), 0xdebb20e3);
	mini_close(&d);
}

TEST(frames_wait_for_buffers)
{
	const uint8_t bytes[60] = { 2, 1, 2, 3, 4, 5 };
	struct mini_rx rx;
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	for (int i = 0; i < 40; i++)
		assert_true(model_wire_send(d.wire, 1, bytes, 60));
	assert_int_equal(d.nic->n_rx, 31);
	assert_int_equal(model_wire_n(d.wire, 0), 9);
	for (int i = 0; i < 40; i++)
		assert_true(mini_receive(&d, 0, &rx));
	assert_false(mini_receive(&d, 0, &rx));
	assert_int_equal(mini_read(&d, STAT_GPRC), 40);
	assert_true(mini_read(&d, STAT_RNBC) > 0);
	mini_close(&d);
}

/* Of the 82574L: though IMS has no RXO. */
TEST(an_overrun_is_told_by_other)
{
	const uint8_t bytes[60] = { 2, 1, 2, 3, 4, 5 };
	struct mini d;

	if (!chip->is_82574)
		return;
	mini_open(&d, chip);
	mini_start(&d, MINI_IRQS);
	mini_count(d.fds[4]);
	for (int i = 0; i < 31; i++)
		assert_true(model_wire_send(d.wire, 1, bytes, 60));
	assert_int_equal(mini_count(d.fds[4]), 0);
	assert_true(model_wire_send(d.wire, 1, bytes, 60));
	assert_int_equal(mini_count(d.fds[4]), 1);
	assert_true(mini_read(&d, REG_ICR) & CAUSE_RXO);
	mini_close(&d);
}

TEST(filters_let_in_what_they_should)
{
	/* MO 0: bits 47:36 of the address; here 0x563. */
	static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0x30, 0x56 };
	static const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };
	static const uint8_t everyone[6] = { 255, 255, 255, 255, 255, 255 };
	const uint32_t on = RCTL_EN | RCTL_SECRC;
	uint8_t bytes[64] = { 0 };
	struct mini d;
	const struct {
		const uint8_t *mac;
		uint32_t rctl, mta, vfta;
		bool tagged, wanted;
	} table[] = {
		{ mini_mac, 0, 0, 0, false, true },
		{ stranger, 0, 0, 0, false, false },
		{ stranger, RCTL_UPE, 0, 0, false, true },
		{ everyone, 0, 0, 0, false, false },
		{ everyone, RCTL_BAM, 0, 0, false, true },
		{ group, RCTL_UPE, 0, 0, false, false },
		{ group, RCTL_MPE, 0, 0, false, true },
		{ group, 0, 1u << 3, 0, false, true },
		{ group, 0, 1u << 4, 0, false, false },
		{ mini_mac, RCTL_VFE, 0, 0, true, false },
		{ mini_mac, RCTL_VFE, 0, 1u << 5, true, true },
		{ mini_mac, 0, 0, 0, true, true },
	};

	mini_open(&d, chip);
	mini_start(&d, 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const uint64_t n_before = d.nic->n_rx;

		mini_write(&d, REG_RCTL, on | table[i].rctl);
		mini_write(&d, REG_MTA + 4 * (0x563 >> 5), table[i].mta);
		mini_write(&d, REG_VFTA, table[i].vfta);
		memcpy(bytes, table[i].mac, 6);
		packet_put16(bytes + 12, table[i].tagged ? 0x8100 : 0x88b5);
		packet_put16(bytes + 14, 0xe005);
		model_wire_send(d.wire, 1, bytes, 64);
		if ((d.nic->n_rx > n_before) != table[i].wanted)
			fail_msg("case %zu", i);
	}
	mini_close(&d);
}

TEST(counters_clear_when_they_are_read)
{
	uint8_t bytes[100] = { 2, 1, 2, 3, 4, 5 }, got[100];
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	for (int i = 0; i < 3; i++)
		model_wire_send(d.wire, 1, bytes, 100);
	memset(bytes, 0xff, 6);
	model_wire_send(d.wire, 1, bytes, 100);
	mini_send(&d, bytes, 80);
	assert_int_equal(model_wire_receive(d.wire, 1, got, 100), 80);
	assert_int_equal(mini_read(&d, STAT_GPRC), 4);
	assert_int_equal(mini_read(&d, STAT_GPRC), 0);
	assert_int_equal(mini_read(&d, STAT_BPRC), 1);
	assert_int_equal(mini_read(&d, STAT_MPRC), 0);
	assert_int_equal(mini_read(&d, STAT_GPTC), 1);
	assert_int_equal(mini_read(&d, STAT_GORCL), 4 * 104);
	assert_int_equal(mini_read(&d, STAT_GORCL), 4 * 104);
	assert_int_equal(mini_read(&d, STAT_GORCH), 0);
	assert_int_equal(mini_read(&d, STAT_GORCL), 0);
	assert_int_equal(mini_read(&d, STAT_GOTCL), 84);
	mini_read(&d, STAT_GOTCH);
	mini_read(&d, STAT_GOTCH);
	assert_violation(&d, "before its low half");
	mini_close(&d);
}

TEST(short_frame_is_padded_and_long_one_refused)
{
	static uint8_t bytes[16000] = { 2, 1, 2, 3, 4, 5 };
	uint8_t got[64];
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	mini_send(&d, bytes, 20);
	assert_int_equal(model_wire_receive(d.wire, 1, got, 64), 60);
	mini_send(&d, bytes, 16000);
	assert_violation(&d, "a frame of 16000 bytes");
	mini_send(&d, bytes, 10);
	assert_violation(&d, "a frame of 10 bytes");
	mini_put(&d, MINI_IOVA + MINI_OUT, 60 | TXD_EOP | TXD_IFCS);
	mini_kick(&d);
	assert_violation(&d, "unknown type");
	assert_int_equal(model_wire_n(d.wire, 1), 0);
	mini_close(&d);
}

TEST(sender_hears_of_what_it_asked_for)
{
	const uint8_t bytes[60] = { 2, 1, 2, 3, 4, 5 };
	uint32_t *head;
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, chip->is_82574 ? 0 : MINI_HEADS);
	head = (uint32_t *)(d.arena + MINI_WB);
	memcpy(d.arena + MINI_OUT, bytes, 60);
	for (int i = 0; i < 3; i++)
		mini_put_data(&d, 0, 60, 60, TXD_EOP, 0);
	mini_kick(&d);
	assert_int_equal(model_wire_n(d.wire, 1), 3);
	assert_int_equal(*head, 0);
	assert_int_equal(mini_desc(&d, true, 0, 2)->high >> 32 & 1, 0);
	mini_put_data(&d, 0, 60, 60, TXD_EOP | TXD_RS, 0);
	mini_kick(&d);
	assert_int_equal(*head, chip->is_82574 ? 0 : 4);
	assert_int_equal(mini_desc(&d, true, 0, 3)->high >> 32 & 1,
			 chip->is_82574);
	assert_int_equal(mini_desc(&d, true, 0, 2)->high >> 32 & 1, 0);
	mini_close(&d);
}

TEST(interrupts_keep_their_distance)
{
	const uint32_t itr = chip->is_82574 ? REG_EITR_82574 : REG_EITR;
	const uint8_t bytes[60] = { 2, 1, 2, 3, 4, 5 };
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, MINI_IRQS);
	mini_count(d.fds[0]);
	/* 100 us: of 256 ns, or of 1 us from bit 2 on. */
	mini_write(&d, itr, chip->is_82574 ? 390 : 100 << 2);
	d.now_ns += 1000000;
	for (int i = 0; i < 4; i++)
		model_wire_send(d.wire, 1, bytes, 60);
	assert_int_equal(mini_count(d.fds[0]), 1);
	d.now_ns += 99000;
	model_step(d.m);
	assert_int_equal(mini_count(d.fds[0]), 0);
	assert_true(d.m->wake_ns > d.now_ns);
	d.now_ns += 1100;
	model_step(d.m);
	assert_int_equal(mini_count(d.fds[0]), 1);
	d.now_ns += 1000000;
	model_step(d.m);
	assert_int_equal(mini_count(d.fds[0]), 0);
	/* Masked it is kept, and comes when it is unmasked. */
	mini_write(&d, chip->is_82574 ? REG_IMC : REG_EIMC, ~0u);
	model_wire_send(d.wire, 1, bytes, 60);
	assert_int_equal(mini_count(d.fds[0]), 0);
	mini_write(&d, chip->is_82574 ? REG_IMS : REG_EIMS,
		   chip->is_82574 ? CAUSE_RXQ0 : 1);
	assert_int_equal(mini_count(d.fds[0]), 1);
	mini_close(&d);
}

TEST(queues_have_vectors_of_their_own)
{
	const uint8_t bytes[60] = { 2, 1, 2, 3, 4, 5 };
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, MINI_IRQS | MINI_RSS);
	for (int i = 0; i < 5; i++)
		mini_count(d.fds[i]);
	mini_send(&d, bytes, 60);
	assert_int_equal(mini_count(d.fds[2]), 1);
	assert_int_equal(mini_count(d.fds[0]), 0);
	model_wire_send(d.wire, 1, bytes, 60);
	assert_int_equal(mini_count(d.fds[0]), 1);
	assert_int_equal(mini_count(d.fds[2]), 0);
	if (!chip->is_82574) {
		mini_read(&d, REG_EICR);
		assert_violation(&d, "EICR is read");
	}
	mini_close(&d);
}

TEST(link_takes_its_time_and_interrupts)
{
	const struct model_faults cut = { .link_down = 1 }, whole = { 0 };
	struct mini d;

	mini_open(&d, chip);
	d.nic->link_delay_ns = 5000000;
	mini_start(&d, MINI_IRQS);
	assert_int_equal(mini_read(&d, REG_STATUS) & STATUS_LU, 0);
	d.now_ns += 5000000;
	model_step(d.m);
	assert_int_equal(mini_read(&d, REG_STATUS) & STATUS_LU, STATUS_LU);
	assert_int_equal(mini_count(d.fds[4]), 1);
	assert_true(mini_read(&d, REG_ICR) & CAUSE_LSC);
	assert_int_equal(mini_read(&d, REG_ICR), 0);
	model_set_faults(d.m, &cut);
	assert_int_equal(mini_read(&d, REG_STATUS) & STATUS_LU, 0);
	assert_int_equal(mini_count(d.fds[4]), 1);
	model_set_faults(d.m, &whole);
	assert_int_equal(mini_count(d.fds[4]), 1);
	/* The PHY begins anew when it is told to. */
	mini_write(&d, REG_MDIC, MDIC_WRITE | 1 << 21 | 0x1200);
	assert_true(mini_read(&d, REG_MDIC) & MDIC_READY);
	assert_int_equal(mini_read(&d, REG_STATUS) & STATUS_LU, 0);
	mini_write(&d, REG_MDIC, MDIC_READ | 1 << 21 | 1 << 16);
	assert_int_equal(mini_read(&d, REG_MDIC) & 0x24, 0);
	d.now_ns += 5000000;
	mini_write(&d, REG_MDIC, MDIC_READ | 1 << 21 | 1 << 16);
	assert_int_equal(mini_read(&d, REG_MDIC) & 0x24, 0x24);
	mini_write(&d, REG_MDIC, MDIC_READ | 2 << 21 | 1 << 16);
	assert_true(mini_read(&d, REG_MDIC) & MDIC_ERROR);
	mini_close(&d);
}

TEST(address_is_in_the_nvm)
{
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	assert_int_equal(mini_read(&d, REG_RAL), 0x03020102);
	assert_int_equal(mini_read(&d, REG_RAL + 4), 0x80000504);
	mini_write(&d, REG_EERD, 1 | 1 << 2);
	assert_int_equal(mini_read(&d, REG_EERD), 0x03020000 | 2 | 1 << 2);
	assert_true(mini_read(&d, REG_EECD) & EECD_AUTO_RD);
	mini_close(&d);
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
