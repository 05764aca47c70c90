/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the models share: device.c, device_run.c and wire.c, under a NIC of
 * four registers that copies what it receives to memory, and back.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/device.h"
#include "support/unit.h"

enum {
	REG_ADDRESS = 0,
	REG_SEND = 8,      /* bytes at the address leave as a frame */
	REG_RECEIVED = 12, /* bytes of the last frame, 0: none */
	REG_TIMER = 16,    /* interrupt 1 after so many us */
	PAGE = 4096,
};

/* Counts what it is asked; the model is first. */
struct toy {
	struct model m;
	uint64_t address, due_ns;
	uint32_t n_send, n_received, n_resets;
};

static uint64_t toy_read(struct model *m, uint32_t bar, uint64_t offset,
			 uint32_t n_bytes)
{
	const struct toy *toy = (const struct toy *)m;

	assert_int_equal(bar, 0);
	assert_int_equal(n_bytes, 4);
	return offset == REG_RECEIVED ? toy->n_received : 0;
}

static void toy_write(struct model *m, uint32_t bar, uint64_t offset,
		      uint32_t n_bytes, uint64_t value)
{
	struct toy *toy = (struct toy *)m;

	(void)bar;
	(void)n_bytes;
	if (offset == REG_ADDRESS)
		toy->address = value;
	else if (offset == REG_SEND)
		toy->n_send = (uint32_t)value;
	else if (offset == REG_TIMER)
		toy->due_ns = model_now_ns(m) + value * 1000;
}

static void toy_step(struct model *m)
{
	struct toy *toy = (struct toy *)m;
	uint32_t n_bytes;
	const uint8_t *bytes;
	void *memory;

	if (toy->n_send > 0) {
		memory = model_dma(m, toy->address, toy->n_send);
		if (memory != NULL && model_tx(m, memory, toy->n_send))
			toy->n_send = 0;
	}
	bytes = model_rx_peek(m, &n_bytes);
	if (bytes != NULL && toy->address != 0) {
		memory = model_dma(m, toy->address, n_bytes);
		if (memory != NULL) {
			memcpy(memory, bytes, n_bytes);
			toy->n_received = n_bytes;
			model_rx_pop(m);
			model_irq(m, 0);
		}
	}
	if (toy->due_ns != 0 && model_now_ns(m) >= toy->due_ns) {
		toy->due_ns = 0;
		model_irq(m, 1);
	}
	if (toy->due_ns != 0)
		model_wake_at(m, toy->due_ns);
}

static void toy_reset(struct model *m)
{
	struct toy *toy = (struct toy *)m;

	toy->address = 0;
	toy->due_ns = 0;
	toy->n_send = 0;
	toy->n_received = 0;
	toy->n_resets++;
}

static const struct model_ops toy_ops = {
	.read = toy_read,
	.write = toy_write,
	.step = toy_step,
	.reset = toy_reset,
};

static const struct model_id toy_id = {
	.vendor_id = 0x1234,
	.device_id = 0x5678,
	.subsystem_vendor_id = 0x9abc,
	.subsystem_id = 0xdef0,
	.class_code = 0x020000,
	.revision = 7,
};

/* A toy that is open, with a page mapped, master and memory on. */
struct stand {
	struct toy toy;
	struct model_wire *wire;
	uint8_t *page;
	int fds[2];
};

static void command(struct model *m, uint16_t bits)
{
	assert_int_equal(model_write_config(m, 4, &bits, 2), 0);
}

static struct stand *stand_up(bool is_lossy)
{
	static struct stand stand;
	struct model *m = &stand.toy.m;

	memset(&stand, 0, sizeof(stand));
	model_init(m, &toy_ops, &toy_id);
	model_add_bar(m, 0, 4096);
	model_add_pcie(m, true);
	model_add_msix(m, 2, 3);
	stand.wire = model_wire_create(4, is_lossy);
	assert_non_null(stand.wire);
	model_wire_attach(stand.wire, 0, m);
	stand.page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stand.page, MAP_FAILED);
	for (int i = 0; i < 2; i++)
		stand.fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(model_open(m), 0);
	assert_int_equal(model_map_dma(m, stand.page, 0x10000, PAGE), 0);
	assert_int_equal(model_set_irqs(m, 2, stand.fds), 0);
	command(m, 6);
	return &stand;
}

/* Asserts that nothing was broken. */
static void tear_down(struct stand *stand)
{
	struct model *m = &stand->toy.m;

	command(m, 2);
	model_close(m);
	assert_string_equal(model_violations(m), "");
	model_deinit(m);
	model_wire_destroy(stand->wire);
	munmap(stand->page, 2 * PAGE);
	close(stand->fds[0]);
	close(stand->fds[1]);
}

static uint64_t count(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

/* What was done is forbidden, and the text says so. */
static void assert_violation(struct model *m, const char *words)
{
	if (strstr(model_violations(m), words) == NULL)
		fail_msg("'%s' is not in '%s'", words, model_violations(m));
	model_forgive(m);
	assert_string_equal(model_violations(m), "");
}

TEST(mappings_are_whole_pages_that_do_not_overlap)
{
	struct stand *stand = stand_up(false);
	struct model *m = &stand->toy.m;
	uint8_t *page = stand->page;

	assert_int_equal(model_map_dma(m, page, 0x20000, 100), -EINVAL);
	assert_int_equal(model_map_dma(m, page, 0x20010, PAGE), -EINVAL);
	assert_int_equal(model_map_dma(m, page, 0x20000, 0), -EINVAL);
	assert_int_equal(model_map_dma(m, page, 0xfee00000, PAGE), -EINVAL);
	assert_int_equal(model_map_dma(m, page, 1ull << 48, PAGE), -EINVAL);
	assert_int_equal(model_map_dma(m, page, 0x10000, PAGE), -EEXIST);
	m->max_maps = 1;
	assert_int_equal(model_map_dma(m, page, 0x20000, PAGE), -ENOSPC);
	m->max_maps = 2;
	/* Neighbours here and there: one transfer may go over both. */
	assert_false(model_is_mapped(m, 0x10ff0, 32));
	assert_int_equal(model_map_dma(m, page + PAGE, 0x11000, PAGE), 0);
	assert_true(model_is_mapped(m, 0x10ff0, 32));
	assert_false(model_is_mapped(m, 0x11ff0, 32));
	assert_false(model_is_mapped(m, 0x10000, 0));
	assert_int_equal(model_unmap_dma(m, 0x11000, 2 * PAGE), -EINVAL);
	assert_int_equal(model_unmap_dma(m, 0x11000, PAGE), 0);
	assert_int_equal(model_unmap_dma(m, 0x11000, PAGE), -EINVAL);
	assert_false(model_is_mapped(m, 0x10ff0, 32));
	tear_down(stand);
}

TEST(lossy_wire_counts_what_it_drops)
{
	struct stand *stand = stand_up(true);
	const uint8_t bytes[60] = { 0 };

	for (int i = 0; i < 7; i++)
		assert_true(model_wire_send(stand->wire, 1, bytes, 60));
	assert_int_equal(model_wire_n(stand->wire, 0), 4);
	assert_int_equal(wire_take_lost(stand->wire, 0), 3);
	assert_int_equal(wire_take_lost(stand->wire, 0), 0);
	tear_down(stand);
}

TEST(what_is_forbidden_is_told)
{
	struct stand *stand = stand_up(false);
	struct model *m = &stand->toy.m;

	model_write(m, 0, REG_ADDRESS, 4, 0x20000);
	model_write(m, 0, REG_SEND, 4, 60);
	assert_violation(m, "DMA of 60 bytes at 0x20000: not mapped");
	model_write(m, 0, REG_ADDRESS, 4, 0x10000);
	model_forgive(m);
	assert_int_equal(model_read(m, 0, 4096, 4), 0xffffffff);
	assert_violation(m, "0x1000 of BAR 0");
	model_read(m, 1, 0, 4);
	assert_violation(m, "BAR 1");
	model_write(m, 0, 2, 4, 0);
	assert_violation(m, "0x2");
	command(m, 4);
	model_read(m, 0, REG_RECEIVED, 4);
	assert_violation(m, "memory space is off");
	command(m, 2);
	model_forgive(m);
	/* Off first is how a driver stops a device: quiet. */
	model_write(m, 0, REG_SEND, 4, 60);
	assert_string_equal(model_violations(m), "");
	assert_true(m->n_dma_refused > 0);
	assert_int_equal(model_reset(m), 0);
	model_write(m, 0, REG_SEND, 4, 60);
	assert_violation(m, "bus master was not turned on");
	model_set_irqs(m, 1, stand->fds);
	command(m, 6);
	model_write(m, 0, REG_TIMER, 4, 0);
	assert_violation(m, "vector 1 of 1");
	model_close(m);
	assert_violation(m, "closed while bus master is on");
	assert_int_equal(model_open(m), 0);
	tear_down(stand);
}

TEST(only_the_first_violations_are_kept)
{
	struct stand *stand = stand_up(false);
	struct model *m = &stand->toy.m;

	for (int i = 0; i < 1000; i++)
		model_read(m, 1, 0, 4);
	assert_int_equal(m->n_violations, 1000);
	assert_true(strlen(model_violations(m)) < sizeof(m->violations));
	assert_int_equal(strncmp(model_violations(m), "read of 4", 9), 0);
	assert_int_equal(m->violations[strlen(model_violations(m)) - 1], '\n');
	model_forgive(m);
	tear_down(stand);
}

TEST(reset_is_the_functions_own)
{
	struct stand *stand = stand_up(false);
	struct model *m = &stand->toy.m;

	assert_int_equal(model_reset(m), 0);
	assert_int_equal(stand->toy.n_resets, 1);
	assert_int_equal(m->n_irqs, 0); /* to be armed anew */
	assert_int_equal(m->n_maps, 1);
	m->has_flr = false;
	assert_int_equal(model_reset(m), -ENOTTY);
	assert_int_equal(model_set_irqs(m, 3, stand->fds), 2);
	tear_down(stand);
}

TEST(interrupts_get_lost_and_come_for_nothing)
{
	struct stand *stand = stand_up(false);
	struct model_faults faults = { .lost_irqs = 1 };
	struct model *m = &stand->toy.m;

	model_set_faults(m, &faults);
	model_write(m, 0, REG_TIMER, 4, 0);
	assert_int_equal(count(stand->fds[1]), 0);
	faults = (struct model_faults){ .spurious_irqs = 1 };
	model_set_faults(m, &faults);
	for (int i = 0; i < 30; i++)
		model_step(m);
	assert_true(count(stand->fds[0]) > 0);
	assert_true(count(stand->fds[1]) > 0);
	/* One time in N is about one time in N. */
	m->n_irqs_sent = 0;
	faults.spurious_irqs = 10;
	model_set_faults(m, &faults);
	for (int i = 0; i < 10000; i++)
		model_step(m);
	assert_in_range(m->n_irqs_sent, 800, 1200);
	faults.spurious_irqs = 0;
	model_set_faults(m, &faults);
	tear_down(stand);
}

/* Nobody writes a register, and the time comes all the same. */
TEST(thread_steps_what_is_due)
{
	struct stand *stand = stand_up(false);
	struct pollfd fd = { .fd = stand->fds[1], .events = POLLIN };
	struct model *m = &stand->toy.m;

	assert_int_equal(model_start(m), 0);
	for (int i = 0; i < 3; i++) {
		model_write(m, 0, REG_TIMER, 4, 2000);
		assert_int_equal(poll(&fd, 1, 10000), 1);
		assert_int_equal(count(fd.fd), 1);
	}
	model_stop(m);
	tear_down(stand);
}
