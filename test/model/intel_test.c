/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver does wrong with an Intel NIC, and what the models say of it,
 * under the smallest driver. That they do what the NICs do is shown by our
 * driver, which runs the same tests over them and over QEMU's NICs.
 */
#include "model/mini.h"

static const struct intel_chip *chip;

static void pass_the_head(struct mini *d)
{
	/* 31 are given; one more makes head and tail equal. */
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

/* Sums in place that are no partial ones are wrong on the wire. */
static void sum_what_is_not_partial(struct mini *d)
{
	const uint32_t n = packet_make(d->arena + MINI_OUT, mini_mac, 4, 6, 77);

	mini_put_tcp_context(d);
	mini_put_data(d, 0, n, n, TXD_EOP | TXD_RS, TXD_TXSM);
	mini_kick(d);
	assert_int_equal(d->nic->n_bad_sums, 1);
}

enum chips { ALL, NOT_82574, ONLY_82574 };

/* Wrong while it is started, by flaws, or once it runs. "": that is none. */
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
