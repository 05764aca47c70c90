/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mistakes of a driver with a PCI function or an Intel NIC, and the violations
 * that the models record. The driver is ours; each mistake changes what it
 * writes, or does something besides. Our driver shows that the models behave
 * like the NICs: it passes the same tests on them and on QEMU's NICs.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "model/devices.h"
#include "model/intel_regs.h"

enum { OS_PAGE = 4096, N_BYTES = 100, ON_IGB = ON_82576 | ON_I210 | ON_I350 };

/* Changes to what the driver does with some registers. */
enum tampering {
	NOTHING,
	CHANGE, /* of what is written: clear bits, then set some */
	LOSE,   /* what is written */
	HIDE,   /* reads from the model: they return the bits to set */
	DESC,   /* as CHANGE, of the descriptor behind a tail */
	WRITE,  /* and READ: one more access, with bits to set, to a BAR whose
		 * number is in the bits to clear */
	READ,
};

struct mistake {
	const char *words; /* of the violation; "": none */
	uint32_t on;       /* devices */
	enum tampering how;
	uint32_t first, n_bytes; /* registers */
	uint64_t clear, set;
	/* Then, once the port is open. NULL: nothing. */
	void (*make)(struct harness *harness);
};

static const struct mistake *mistake; /* NULL: none any more */
static const struct model_ops *honest;
static void (*before_tail)(struct harness *harness);
static struct harness *current;

static bool is_meant(enum tampering how, uint64_t offset)
{
	return mistake != NULL && mistake->how == how &&
	       offset - mistake->first < mistake->n_bytes;
}

static struct intel_desc *desc_at(struct harness *harness, bool is_tx,
				  uint32_t i)
{
	struct intel *nic = harness->nic;

	return intel_desc_at(nic, is_tx ? &nic->tx[0] : &nic->rx[0], i);
}

static void write_register(struct model *m, uint32_t bar, uint64_t offset,
			   uint32_t n_bytes, uint64_t value)
{
	struct intel *nic = (struct intel *)m;

	if (is_meant(LOSE, offset))
		return;
	if (is_meant(CHANGE, offset))
		value = (value & ~mistake->clear) | mistake->set;
	if (is_meant(DESC, offset) && value != 0) {
		const bool is_tx = offset == nic->tx[0].base + RING_TAIL;
		const uint32_t i = is_tx ? nic->tx[0].tail : 1;
		struct intel_desc *desc = desc_at(current, is_tx, i);

		desc->high = (desc->high & ~mistake->clear) | mistake->set;
		if (!is_tx && mistake->set == 0) /* given twice */
			desc->low = desc_at(current, false, 0)->low;
	}
	if (before_tail != NULL && offset == nic->tx[0].base + RING_TAIL)
		before_tail(current);
	honest->write(m, bar, offset, n_bytes, value);
}

static uint64_t read_register(struct model *m, uint32_t bar, uint64_t offset,
			      uint32_t n_bytes)
{
	return is_meant(HIDE, offset) ? mistake->set :
					honest->read(m, bar, offset, n_bytes);
}

/* ---- what a driver may do while it runs ---- */

static void receive_one(struct harness *harness)
{
	harness_inject(harness, 1);
}

static void receive_tcp(struct harness *harness)
{
	const struct packet_kind kind = { .n_payload = 9 };
	uint8_t bytes[200];

	model_wire_send(harness->wire, 1, bytes,
			packet_of(bytes, &kind, false));
}

static void give_while_off(struct harness *harness)
{
	model_write(harness->m, 0, REG_RCTL, 4, 0);
	model_write(harness->m, 0, REG_RX_RINGS + RING_TAIL, 4, 5);
}

static void change_a_posted_buffer(struct harness *harness)
{
	desc_at(harness, false, harness->nic->rx[0].head)->low += 2048;
	harness_inject(harness, 1);
}

static void send_frame(struct harness *harness)
{
	uint8_t bytes[N_BYTES] = { 2 };
	struct mr_frame frame;

	harness_frame(harness, bytes, N_BYTES, &frame);
	assert_int_equal(mr_tx_burst(harness->txq, harness->cache, &frame, 1),
			 1);
}

static void change_a_frame_under_way(struct harness *harness)
{
	const uint32_t i = harness->nic->tx[0].tail;

	harness->m->is_lazy = true;
	send_frame(harness);
	desc_at(harness, true, i)->high ^= 1;
	model_step(harness->m);
}

static void read_causes_that_clear_themselves(struct harness *harness)
{
	model_write(harness->m, 0, REG_EIAC, 4, 0x1f);
	model_read(harness->m, 0, REG_EICR, 4);
}

static uint64_t tcp_sum_at;

static void spoil_sum(struct harness *harness)
{
	harness->base[tcp_sum_at] ^= 1;
}

/* Checksum fields without a partial checksum are wrong on the wire. */
static void sum_what_is_not_partial(struct harness *harness)
{
	const struct packet_kind kind = { .n_payload = 77 };
	uint8_t bytes[200];
	const uint32_t n = packet_of(bytes, &kind, true);
	struct mr_frame frame;

	harness_frame(harness, bytes, n, &frame);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	tcp_sum_at = frame.addr + 50;
	before_tail = spoil_sum;
	mr_tx_burst(harness->txq, harness->cache, &frame, 1);
	assert_int_equal(harness->nic->n_bad_sums, 1);
}

static void reach_nowhere(struct harness *harness)
{
	model_lock(harness->m);
	assert_null(model_dma(harness->m, 0x90000000, 60));
	model_unlock(harness->m);
}

static void set_command(struct harness *harness, uint16_t bits)
{
	model_write_config(harness->m, 4, &bits, 2);
}

static void read_with_memory_off(struct harness *harness)
{
	set_command(harness, 4);
	model_read(harness->m, 0, REG_STATUS, 4);
	set_command(harness, 6);
}

/* Clearing it first stops a device: no violation. */
static void send_with_master_off(struct harness *harness)
{
	set_command(harness, 2);
	send_frame(harness);
	assert_true(harness->m->n_dma_refused > 0);
	set_command(harness, 6);
}

static void interrupt_beyond(struct harness *harness)
{
	model_lock(harness->m);
	model_irq(harness->m, harness->m->n_irqs);
	model_unlock(harness->m);
}

static void close_as_master(struct harness *harness)
{
	model_close(harness->m);
	assert_int_equal(model_open(harness->m), 0);
}

#define RX(reg) REG_RX_RINGS + (reg), 4
#define TX(reg) REG_TX_RINGS + (reg), 4

/* On start, in what it sends, and besides. */
static const struct mistake mistakes[] = {
	{ "before a reset", ON_ALL, CHANGE, REG_CTRL, 4, CTRL_RST, 0, NULL },
	{ "1 words of MTA", ON_ALL, LOSE, REG_MTA + 20, 4, 0, 0, NULL },
	{ "base 0x100040", ON_ALL, CHANGE, RX(RING_BAL), 0, 64, NULL },
	{ "128 bytes", ON_ALL, CHANGE, RX(RING_LEN), ~0u, 128, NULL },
	{ "not all of it is mapped", ON_ALL, CHANGE, RX(RING_BAL), ~0u,
	  0x90000000, NULL },
	{ "before QUEUE_ENABLE", ON_IGB, HIDE, RX(RING_CONTROL), 0,
	  QUEUE_ENABLE, NULL },
	{ "SRRCTL", ON_IGB, CHANGE, RX(RING_SRRCTL), SRRCTL_ONEBUF, 0, NULL },
	{ "bit 15 of RFCTL", ON_82574, CHANGE, REG_RFCTL, 4, RFCTL_EXTEN, 0,
	  NULL },
	{ "bit 22", ON_82574, CHANGE, TX(RING_CONTROL), TXDCTL_COUNT_DESC, 0,
	  NULL },
	{ "PCSD", ON_ALL, CHANGE, REG_RXCSUM, 4, RXCSUM_PCSD, 0, receive_tcp },
	/* A byte per hash: queue 15. */
	{ "RETA sends to queue 15", ON_I210 | ON_I350, CHANGE, REG_RETA, 128,
	  ~0u, 0x0f0f0f0f, receive_tcp },
	{ "given twice", ON_ALL, DESC, RX(RING_TAIL), 0, 0, NULL },
	{ "old status", ON_ALL, DESC, RX(RING_TAIL), 0, 1, NULL },
	/* Length, type, context, tag. */
	{ "a frame of 16000 bytes", ON_ALL, DESC, TX(RING_TAIL), 0xffff, 16000,
	  send_frame },
	{ "a frame of 10 bytes", ON_ALL, DESC, TX(RING_TAIL), 0xffff, 10,
	  send_frame },
	{ "a descriptor of 0 bytes", ON_ALL, DESC, TX(RING_TAIL), 0xffff, 0,
	  send_frame },
	{ "unknown type", ON_ALL, DESC, TX(RING_TAIL), TXD_DEXT, 0,
	  send_frame },
	{ "context", ON_ALL, DESC, TX(RING_TAIL), 0, (uint64_t)TXD_TXSM << 40,
	  send_frame },
	{ "PAYLEN 90 of 100", ON_IGB, DESC, TX(RING_TAIL), 0x3ffffull << 46,
	  90ull << 46, send_frame },
	{ "context", ON_IGB, DESC, TX(RING_TAIL), 0, TXD_VLE, send_frame },
	{ "CTRL.VME", ON_82574, DESC, TX(RING_TAIL), 0, TXD_VLE, send_frame },
	/* Accesses while it runs. */
	{ "tail 512 of 512", ON_ALL, WRITE, RX(RING_TAIL), 0, 512, NULL },
	{ "passes head", ON_ALL, WRITE, RX(RING_TAIL), 0, 0, NULL },
	{ "while it runs", ON_ALL, WRITE, RX(RING_BAL), 0, 0x100000, NULL },
	{ "while it runs", ON_ALL, WRITE, TX(RING_HEAD), 0, 0, NULL },
	{ "does not have", ON_ALL, WRITE, 0x1234, 4, 0, 5, NULL },
	{ "no head write-back", ON_82574, WRITE, TX(RING_WBAL), 0, 1, NULL },
	{ "before its low half", ON_ALL, READ, STAT_GOTCH, 4, 0, 0, NULL },
	{ "0x20000 of BAR 0", ON_ALL, READ, INTEL_BAR_BYTES, 4, 0, UINT32_MAX,
	  NULL },
	{ "BAR 1", ON_ALL, READ, 0, 4, 1, UINT32_MAX, NULL },
	{ "0x2 of BAR 0", ON_ALL, WRITE, 2, 4, 0, 0, NULL },
};

/* While it runs. */
static const struct {
	void (*make)(struct harness *harness);
	const char *words;
	uint32_t on;
} deeds[] = {
	{ receive_one, "", ON_ALL },
	{ receive_tcp, "", ON_ALL },
	{ change_a_posted_buffer, "descriptor 0 changed", ON_ALL },
	{ change_a_frame_under_way, "descriptor 0 changed", ON_ALL },
	{ give_while_off, "while it is off", ON_ALL },
	{ read_causes_that_clear_themselves, "EICR is read", ON_IGB },
	{ sum_what_is_not_partial, "", ON_ALL },
	/* Recorded by all models. */
	{ reach_nowhere, "DMA of 60 bytes at 0x90000000: not mapped", ON_ALL },
	{ read_with_memory_off, "memory space is off", ON_ALL },
	{ send_with_master_off, "", ON_ALL },
	{ interrupt_beyond, "interrupt on vector", ON_ALL },
	{ close_as_master, "closed while bus master is on", ON_ALL },
};

static void open_port(struct harness *harness)
{
	static struct model_ops ops;

	device_make(harness, NULL);
	current = harness;
	honest = harness->m->ops;
	ops = *honest;
	ops.read = read_register;
	ops.write = write_register;
	harness->m->ops = &ops;
}

/* The model recorded it. A driver that was misled may do more, as it ends. */
static void check_mistake(struct harness *harness, const char *words)
{
	const char *violations = model_violations(harness->m);

	if (words[0] != '\0' ? strstr(violations, words) == NULL :
			       violations[0] != '\0')
		fail_msg("%s: '%s' is not '%s'", device->name, violations,
			 words);
	mistake = NULL;
	before_tail = NULL;
	mr_port_close(harness->port);
	harness->port = NULL;
	model_forgive(harness->m);
	device_end(harness);
}

/* Open the port, make the mistake, and look. */
static void try_mistake(const struct mistake *m)
{
	struct harness harness;

	open_port(&harness);
	mistake = m;
	if (device_try_open(&harness, "queues=2", NULL) == 0) {
		model_step(harness.m); /* the link is up */
		if (m->how == WRITE)
			model_write(harness.m, m->clear, m->first, m->n_bytes,
				    m->set);
		if (m->how == READ)
			assert_int_equal(model_read(harness.m, m->clear,
						    m->first, m->n_bytes),
					 m->set);
		if (m->make != NULL)
			m->make(&harness);
	}
	check_mistake(&harness, m->words);
}

TEST(each_mistake_is_recorded)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		if (mistakes[i].on & device->bit)
			try_mistake(&mistakes[i]);
	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++)
		if (deeds[i].on & device->bit)
			try_mistake(
				&(struct mistake){ .make = deeds[i].make,
						   .words = deeds[i].words });
}

/* A driver that never becomes bus master. */
TEST(work_without_bus_mastering_is_recorded)
{
	struct harness harness;

	open_port(&harness);
	harness.m->config_writable[4] &= (uint8_t)~4;
	device_try_open(&harness, "", NULL);
	check_mistake(&harness, "bus master was not turned on");
}

static uint64_t stopped_clock(void *arg)
{
	(void)arg;
	return 1000000000;
}

TEST(registers_within_1_ms_of_a_reset_are_recorded)
{
	struct harness harness;

	open_port(&harness);
	harness.m->now = stopped_clock;
	device_try_open(&harness, "", NULL);
	check_mistake(&harness, "within 1 ms");
}

TEST(only_the_first_violations_are_kept)
{
	struct harness harness;
	const char *text;

	open_port(&harness);
	assert_int_equal(model_open(harness.m), 0);
	for (int i = 0; i < 1000; i++)
		model_read(harness.m, 1, 0, 4);
	text = model_violations(harness.m);
	assert_int_equal(harness.m->n_violations, 1000);
	assert_true(strlen(text) < sizeof(harness.m->violations));
	assert_int_equal(strncmp(text, "read of 4", 9), 0);
	assert_int_equal(text[strlen(text) - 1], '\n');
	model_close(harness.m);
	check_mistake(&harness, "BAR 1");
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
		{ 9, false, 0x20010, OS_PAGE, -EINVAL, false },
		{ 9, false, 0x20000, 0, -EINVAL, false },
		{ 9, false, 0xfee00000, OS_PAGE, -EINVAL, false },
		{ 9, false, 1ull << 48, OS_PAGE, -EINVAL, false },
		{ 9, false, 0x10000, OS_PAGE, -EEXIST, false },
		{ 1, false, 0x11000, OS_PAGE, -ENOSPC, false },
		{ 2, false, 0x11000, OS_PAGE, 0, true },
		{ 2, true, 0x11000, 2 * OS_PAGE, -EINVAL, true },
		{ 2, true, 0x11000, OS_PAGE, 0, false },
		{ 2, true, 0x11000, OS_PAGE, -EINVAL, false },
	};
	struct harness harness;
	struct model *m;
	uint8_t *memory;

	open_port(&harness);
	m = harness.m;
	memory = harness.base;
	assert_int_equal(model_open(m), 0);
	assert_int_equal(model_map_dma(m, memory, 0x10000, OS_PAGE), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t iova = cases[i].iova;
		const uint64_t n = cases[i].n_bytes;

		m->max_maps = cases[i].max_maps;
		assert_int_equal(
			cases[i].is_unmapped ?
				model_unmap_dma(m, iova, n) :
				model_map_dma(m, memory + OS_PAGE, iova, n),
			cases[i].err);
		assert_int_equal(model_is_mapped(m, 0x10ff0, 32),
				 cases[i].is_joined);
	}
	assert_false(model_is_mapped(m, 0x10ff0, 32));
	assert_false(model_is_mapped(m, 0x10000, 0));
	model_close(m);
	check_mistake(&harness, "");
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
	struct harness harness;

	open_port(&harness);
	assert_int_equal(model_open(harness.m), 0);
	assert_int_equal(
		model_set_irqs(harness.m, device->chip->n_vectors + 1, fds),
		device->chip->n_vectors);
	assert_int_equal(model_set_irqs(harness.m, 2, fds), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		model_set_faults(harness.m, &cases[i].faults);
		harness.m->n_irqs_sent = 0;
		for (int k = 0; k < 10000; k++)
			model_step(harness.m);
		assert_in_range(harness.m->n_irqs_sent, cases[i].least,
				cases[i].most);
		for (int k = 0; k < 2; k++) {
			uint64_t n;

			assert_int_equal(read(fds[k], &n, sizeof(n)),
					 cases[i].most == 0 ? -1 : 8);
		}
	}
	device_heal(&harness);
	model_close(harness.m);
	check_mistake(&harness, "");
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	return devices_run(ON_INTEL);
}
