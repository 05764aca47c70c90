/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that does whatever the input says: lies in registers, descriptors and
 * heads, faults, link, frames. Our driver may lose frames, each under a name;
 * it may not lose a page, nor hand out memory that is no frame.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"
#include "model/harness.h"
#include "model/intel.h"
#include "model/intel_regs.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Chip and options, then frames in, frames out, bursts. */
	SEED("\x00\x00\x01\x08\x02\x08\x00\x20\x01\x20\x00\x40\x02\x10\x00"
	     "\x40"),
	SEED("\x01\x01\x01\x10\x00\x20\x03\x07\x01\x10\x00\x20\x00\x20\x02"
	     "\x20"),
	/* Descriptors that are written over, in both rings. */
	SEED("\x00\x00\x01\x08\x04\x00\xff\x04\x01\x55\x00\x20\x05\x02\x01\x00"
	     "\x20\x02\x08\x05\x03\xff\x00\x10"),
	SEED("\x01\x00\x02\x08\x06\xff\xff\x00\x20\x02\x08\x06\x00\x40\x00"
	     "\x10"),
	/* Registers that lie, a link that flaps, a device that goes. */
	SEED("\x00\x02\x07\x20\xff\x00\x20\x08\x01\x00\x10\x08\x00\x00\x10\x01"
	     "\x08\x00\x20\x09\x00\x00\x20"),
	SEED("\x81\x20\xff\xff\xff\xff\x00\x00\x00\x00\x01\x08\x00\x20"),
	{ NULL, 0 },
};

/* What is left of the input; 0 behind its end. */
static const uint8_t *input;
static size_t n_input;

static uint8_t take(void)
{
	if (n_input == 0)
		return 0;
	n_input--;
	return *input++;
}

static uint32_t take32(void)
{
	uint32_t value = take();

	value |= (uint32_t)take() << 8;
	value |= (uint32_t)take() << 16;
	return value | (uint32_t)take() << 24;
}

/* The model's own functions, and how many reads are answered by the input. */
static const struct model_ops *honest;
static uint32_t n_lies;

static uint64_t lying_read(struct model *m, uint32_t bar, uint64_t offset,
			   uint32_t n_bytes)
{
	const uint64_t value = honest->read(m, bar, offset, n_bytes);

	if (n_lies == 0)
		return value;
	n_lies--;
	return value ^ take32();
}

/* Waits end at once: each look at the clock is 100 us later. */
static uint64_t now_ns = 1000000000;

static uint64_t fast_clock(void *arg)
{
	(void)arg;
	return now_ns += 100000;
}

/* Instead of libc's, for the library as well: no input takes real time. */
int nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	(void)ret_rest;
	now_ns +=
		(uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
	return 0;
}

static void set_faults(struct model *m)
{
	struct model_faults faults = { 0 };
	uint32_t *which[] = {
		&faults.late_completions, &faults.wrong_completion,
		&faults.error_bits,       &faults.bad_length,
		&faults.bad_id,           &faults.bad_count,
		&faults.bad_hash,         &faults.dma_unmapped
	};

	for (uint32_t bits = take(), i = 0; i < 8; i++)
		if (bits >> i & 1)
			*which[i] = 1 + take() % 8;
	model_set_faults(m, &faults);
}

/* Write over one word of a ring that the driver has set up. */
static void poke_ring(struct intel *nic, bool is_tx)
{
	const uint32_t base = intel_ring_base(is_tx, 0);
	const uint64_t iova = *intel_reg(nic, base + RING_BAL) |
			      (uint64_t)*intel_reg(nic, base + RING_BAH) << 32;
	const uint32_t n_bytes = *intel_reg(nic, base + RING_LEN);
	const uint32_t at = take() * 8u;
	uint64_t *memory = NULL;

	model_lock(&nic->m);
	if (at + 8 <= n_bytes && model_is_mapped(&nic->m, iova, n_bytes))
		memory = model_dma(&nic->m, iova + at, 8);
	if (memory != NULL)
		*memory = take32() | (uint64_t)take32() << 32;
	model_unlock(&nic->m);
}

static void poke_head(struct intel *nic)
{
	const uint32_t base = intel_ring_base(true, 0);
	const uint64_t iova = (*intel_reg(nic, base + RING_WBAL) & ~3u) |
			      (uint64_t)*intel_reg(nic, base + RING_WBAH) << 32;
	uint32_t *memory = NULL;

	model_lock(&nic->m);
	if (model_is_mapped(&nic->m, iova, 4))
		memory = model_dma(&nic->m, iova, 4);
	if (memory != NULL)
		*memory = take() | (uint32_t)take() << 8;
	model_unlock(&nic->m);
}

static void inject(struct harness *harness, uint32_t n)
{
	uint8_t bytes[3000];
	const uint32_t n_bytes = n % 7 == 6 ? sizeof(bytes) : 60 + n;

	memset(bytes, (int)n, sizeof(bytes));
	memset(bytes, 0xff, 6);
	for (uint32_t i = 0; i < n % 64; i++)
		model_wire_send(harness->wire, 1, bytes, n_bytes);
}

static void receive(struct harness *harness, uint32_t n)
{
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	static uint8_t bytes[1 << 17];

	n = mr_rx_burst_meta(harness->rxq, harness->cache, frames, meta,
			     18 + n % (HARNESS_BURST - 18));
	FUZZ_CHECK(n <= HARNESS_BURST);
	FUZZ_CHECK(mr_frame_n_whole(frames, n) == n);
	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&frames[i])) {
		FUZZ_CHECK(frames[i].len > 0);
		FUZZ_CHECK(frames[i].addr % 4096 + frames[i].len <= 4096);
		/* ASan sees what is read outside of the region. */
		harness_copy(harness, &frames[i], bytes);
	}
	mr_frame_free_bulk(harness->cache, frames, n);
}

static void transmit(struct harness *harness, uint32_t n)
{
	struct mr_frame frames[MR_MAX_SEGS];
	uint8_t bytes[5000] = { 0 };
	uint8_t out[WIRE_MAX_BYTES];

	for (uint32_t i = 0; i < n % 64; i++) {
		const uint32_t n_bytes = n % 5 == 4 ? 1000 + n * 2 : 60 + n;
		const uint32_t k =
			harness_frame(harness, bytes, n_bytes, frames);
		const uint32_t n_tx =
			mr_tx_burst(harness->txq, harness->cache, frames, k);

		FUZZ_CHECK(n_tx == 0 || n_tx == k);
		mr_frame_free_bulk(harness->cache, frames + n_tx, k - n_tx);
	}
	while (model_wire_receive(harness->wire, 1, out, sizeof(out)) > 0)
		;
}

static void act(struct harness *harness)
{
	struct intel *nic = harness->nic;
	struct model_faults faults = { 0 };
	struct mr_named_count counts[8];
	struct mr_link link;

	switch (take() % 11) {
	case 1:
		inject(harness, take());
		break;
	case 2:
		transmit(harness, take());
		break;
	case 3:
		set_faults(&nic->m);
		break;
	case 4:
		poke_ring(nic, false);
		break;
	case 5:
		poke_ring(nic, true);
		break;
	case 6:
		poke_head(nic);
		break;
	case 7:
		n_lies = take();
		break;
	case 8:
		faults.link_down = take() & 1;
		model_set_faults(&nic->m, &faults);
		mr_port_poll(harness->port);
		break;
	case 9:
		faults.all_ones = take() == 0;
		model_set_faults(&nic->m, &faults);
		mr_port_poll(harness->port);
		mr_port_link(harness->port, &link);
		break;
	case 10:
		mr_port_device_stats(harness->port, counts, 8);
		mr_queue_arm(&harness->rxq->queue);
		mr_queue_arm(&harness->txq->queue);
		break;
	default:
		receive(harness, take());
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static const struct intel_chip *const chips[] = { &chip_82576,
							  &chip_82574l };
	static const char *const options[] = {
		"rx-ring=64,tx-ring=64", "rx-ring=64,tx-ring=64,sg=on,mtu=9000"
	};
	static const uint8_t mac[6] = { 2, 0x4d, 0x52, 0, 0, 0 };
	static struct model_ops lying;
	struct mr_reason why = { .text = "" };
	struct harness harness;
	struct intel *nic;
	uint8_t first;

	input = bytes;
	n_input = n_bytes;
	first = take();
	nic = intel_create(chips[first & 1], mac);
	FUZZ_CHECK(nic != NULL);
	nic->m.now = fast_clock;
	harness_begin(&harness, &nic->m, (struct mr_pool_config){ 0 },
		      fast_clock);
	harness.nic = nic;
	honest = nic->m.ops;
	lying = *honest;
	lying.read = lying_read;
	nic->m.ops = &lying;
	/* From its first register on, or once it is open. */
	n_lies = first & 0x80 ? take() : 0;
	if (harness_try_open(&harness, options[take() & 1], &why) == 0) {
		n_lies = 0;
		for (int i = 0; i < 400 && n_input > 0; i++)
			act(&harness);
		harness_check_invariants(&harness);
	} else {
		FUZZ_CHECK(why.text[0] != '\0');
	}
	n_lies = 0;
	/* A driver may repeat what the device wrote. */
	mr_port_close(harness.port);
	harness.port = NULL;
	model_forgive(harness.m);
	harness_close(&harness);
	intel_destroy(nic);
	model_wire_destroy(harness.wire);
	return 0;
}
