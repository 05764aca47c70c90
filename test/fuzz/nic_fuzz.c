/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that does whatever the input says: it lies in registers, descriptors,
 * rings and heads, and changes faults, link and frames. The driver may lose
 * frames if it counts each one by reason. It must not lose a page, hand one out
 * twice, or hand out memory that is not a frame; and every call must return.
 *
 * The first byte selects the device, the second its features or options. Each
 * action then takes a byte, and the bytes that it needs.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"
#include "model/harness.h"
#include "model/intel.h"
#include "model/intel_regs.h"
#include "model/virtio.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Intel: frames in, frames out, bursts. */
	SEED("\x40\x00\x01\x08\x02\x02\x08\x10\x00\x20\x01\x20\x05\x00\x40\x02"
	     "\x10\x02\x00\x40"),
	SEED("\x41\x01\x01\x10\xff\x00\x20\x03\x04\x07\x01\x10\x50\x00\x20\x02"
	     "\x20\x18\x00\x20"),
	/* Overwritten descriptors, in both rings, and the head. */
	SEED("\x40\x00\x01\x08\x01\x04\x00\xff\x04\x01\x55\x00\x20\x05\x02\x01"
	     "\x00\x20\x02\x08\x08\x05\x03\xff\x00\x10"),
	SEED("\x42\x00\x02\x08\x08\x06\xff\xff\x00\x20\x02\x08\x08\x06\x00\x40"
	     "\x00\x10"),
	/* Registers that lie, a link that flaps, a device that disappears. */
	SEED("\x40\x00\x07\x20\xff\x00\x20\x08\x01\x00\x10\x08\x00\x00\x10\x01"
	     "\x08\x02\x00\x20\x09\x00\x00\x20"),
	SEED("\xc3\x01\x20\xff\xff\xff\xff\x00\x00\x00\x00\x01\x08\x00\x20"),
	/* virtio: frames in, frames out, and again. */
	SEED("\0\0\1\5\0\2\3\0\0\2\x0b\2\5\0\0\3\1\5\0\2\3\0\0\2\x0b\2\5\0"),
	SEED("\3\0\1\x20\3\2\3\0\0\2\x0b\2\5\0\1\5\0\2\3\0\0\2\x0b\2\5\0"),
	SEED("\5\3\3\1\1\1\5\0\2\3\0\0\2\x0b\2\5\0\1\5\0\2\3\0\0\2\x0b"),
	SEED("\1\1\1\5\0\4\2\1\0\x0b\2\2\1\0\3\x0b\2\5\0\x0a\0\0"),
	SEED("\2\2\1\x20\xff\2\x20\0\3\4\2\1\x20\x10\2\x20\0\x0b\0\0\2\1\0"),
	SEED("\7\0\3\x08\1\1\x20\3\2\3\0\x0b\1\5\0\1\5\0\2\3\0\5\0\2"),
	SEED("\4\5\1\5\0\x0a\2\3\0\0\2\x0b\x0a\1\5\0\2\3\0"),
	{ NULL, 0 },
};

/* The rest of the input; 0 after its end. */
static const uint8_t *input;
static size_t n_input;

static uint8_t take_byte(void)
{
	if (n_input == 0)
		return 0;
	n_input--;
	return *input++;
}

static uint32_t take32(void)
{
	uint32_t value = take_byte();

	value |= (uint32_t)take_byte() << 8;
	value |= (uint32_t)take_byte() << 16;
	return value | (uint32_t)take_byte() << 24;
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

/* Waits end at once: each reading of the clock is 100 us later. */
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

static struct model_faults faults;
static struct vnet_faults more;

static void apply_faults(struct harness *harness)
{
	model_set_faults(harness->m, &faults);
	if (harness->v != NULL)
		vnet_set_faults(harness->v, &more);
}

/* One time in n, something else begins or ceases to go wrong. */
static void set_fault(struct harness *harness, uint32_t which, uint32_t n)
{
	uint32_t *const numbers[] = {
		&faults.late_completions, &faults.wrong_completion,
		&faults.lost_irqs,        &faults.spurious_irqs,
		&faults.error_bits,       &faults.bad_length,
		&faults.bad_id,           &faults.bad_count,
		&faults.bad_hash,         &faults.dma_unmapped,
		&faults.link_down,        &more.needs_reset,
		&more.reordered,          &more.doubled,
		&more.idx_jumps,          &more.bad_header,
	};

	*numbers[which % (sizeof(numbers) / sizeof(numbers[0]))] = n % 16;
	apply_faults(harness);
}

/* Overwrite a word of a ring that the driver has set up. */
static void poke_ring(struct intel *nic, bool is_tx)
{
	const uint32_t base = intel_ring_base(is_tx, 0);
	const uint64_t iova = *intel_reg(nic, base + RING_BAL) |
			      (uint64_t)*intel_reg(nic, base + RING_BAH) << 32;
	const uint32_t n_bytes = *intel_reg(nic, base + RING_LEN);
	const uint32_t at = take_byte() * 8u;
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
		*memory = take_byte() | (uint32_t)take_byte() << 8;
	model_unlock(&nic->m);
}

static void poke(struct harness *harness, uint32_t what)
{
	uint8_t where;

	if (harness->nic != NULL && what < 2) {
		poke_ring(harness->nic, what == 1);
	} else if (harness->nic != NULL) {
		poke_head(harness->nic);
	} else {
		where = take_byte();
		vnet_scribble(harness->v, where & 3, where >> 2 & 3,
			      (where >> 4) * 2u,
			      (uint16_t)(take_byte() * 0x101));
	}
}

static void inject(struct harness *harness, uint32_t n, uint32_t len)
{
	uint8_t bytes[9018];

	memset(bytes, (int)n, sizeof(bytes));
	memset(bytes, 0xff, 6);
	for (uint32_t i = 0; i < n % 64; i++)
		model_wire_send(harness->wire, 1, bytes, 14 + len * 36 % 9000);
}

static void receive_frames(struct harness *harness, uint32_t n)
{
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	static uint8_t bytes[1 << 17];

	n = mr_rx_burst_meta(harness->rxq, harness->cache, frames, meta,
			     18 + n % (HARNESS_BURST - 17));
	FUZZ_CHECK(n <= HARNESS_BURST);
	FUZZ_CHECK(mr_frame_n_whole(frames, n) == n);
	for (uint32_t i = 0; i < n; i++) {
		FUZZ_CHECK(frames[i].len > 0);
		FUZZ_CHECK(frames[i].addr % 4096 + frames[i].len <= 4096);
		for (uint32_t k = 0; k < i; k++)
			FUZZ_CHECK(frames[k].addr != frames[i].addr);
		/* ASan sees what is read outside of the region. */
		if (i == 0 || !(frames[i - 1].flags & MR_FRAME_MORE))
			harness_copy(harness, &frames[i], bytes);
	}
	mr_frame_free_bulk(harness->cache, frames, n);
}

/* Entries of frames of up to 19, one more than there may be. */
static void transmit(struct harness *harness, uint32_t n, uint32_t shape)
{
	struct mr_frame frames[HARNESS_BURST];
	uint64_t addrs[HARNESS_BURST];
	uint32_t n_tx;

	n = mr_frag_alloc_bulk(harness->cache, addrs, n % (HARNESS_BURST + 1),
			       4096);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){
			.addr = addrs[i] + HARNESS_OFFSET,
			.len = 14 + (shape & 7) * 500,
			.flags = i % ((shape >> 3) % 19 + 1) != 0 && i + 1 < n ?
					 MR_FRAME_MORE :
					 0,
		};
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, n);
	FUZZ_CHECK(n_tx <= n);
	mr_frame_free_bulk(harness->cache, frames + n_tx, n - n_tx);
}

static void act(struct harness *harness)
{
	const uint32_t what = take_byte() % 12;
	struct mr_named_count counts[8];
	struct mr_link link;
	uint32_t n;

	switch (what) {
	case 0:
		receive_frames(harness, take_byte());
		break;
	case 1:
		n = take_byte();
		inject(harness, n, take_byte());
		break;
	case 2:
		n = take_byte();
		transmit(harness, n, take_byte());
		break;
	case 3:
		n = take_byte();
		set_fault(harness, n, take_byte());
		break;
	case 4:
	case 5:
	case 6:
		poke(harness, what - 4);
		break;
	case 7:
		n_lies = take_byte();
		break;
	case 8:
	case 9:
		n = take_byte();
		faults.link_down = what == 8 && (n & 1);
		faults.all_ones = what == 9 && n == 0;
		apply_faults(harness);
		mr_port_poll(harness->port);
		mr_port_link(harness->port, &link);
		break;
	case 10:
		mr_port_device_stats(harness->port, counts, 8);
		mr_queue_arm(&harness->rxq->queue);
		mr_queue_arm(&harness->txq->queue);
		mr_port_poll(harness->port);
		break;
	default:
		harness_collect(harness);
		model_step(harness->m);
	}
	harness_check_invariants(harness);
}

/* The device of an input: its features, and whether it is sound. */
static struct vnet *make_virtio(uint8_t byte)
{
	const uint64_t must =
		VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM) |
		VNET_BIT(VNET_RING_PACKED) | VNET_BIT(VNET_IN_ORDER);
	const uint64_t all = vnet_all_features();
	const struct vnet_config config = {
		.features = (byte & 1) != 0 ? all & ~VNET_BIT(VNET_EVENT_IDX) :
			    (byte & 2) != 0 ? must | (all & 0x1f0ff) :
					      all,
		.mtu_bytes = 9000,
		.queue_size = 64,
		.polls_tx = byte >> 2 & 1,
		.caps = byte >= 128 ? byte % VNET_N_CAPS : VNET_CAPS_GOOD,
	};

	return vnet_create(&config);
}

/* Its model and its options. */
static const char *make_device(uint8_t first, uint8_t second,
			       struct intel **ret_nic, struct vnet **ret_v)
{
	static const struct intel_chip *const chips[] = {
		&chip_82576, &chip_82574l, &chip_i210, &chip_i350
	};
	static const char *const options[] = {
		"packed=off,in-order=off",
		"packed=off,in-order=on",
		"packed=on,in-order=off",
		"packed=on,in-order=on",
		"packed=off,in-order=off,mtu=9000,csum=on,hash=on",
		"packed=off,in-order=on,mtu=9000,tso=on",
		"packed=on,in-order=off,mtu=9000,tso=on,hash=on",
		"packed=on,in-order=on,mtu=9000,csum=on",
	};
	static const uint8_t mac[6] = { 2, 0x4d, 0x52, 0, 0, 0 };

	*ret_nic = first & 0x40 ? intel_create(chips[first & 3], mac) : NULL;
	*ret_v = *ret_nic == NULL ? make_virtio(second) : NULL;
	if (*ret_nic == NULL)
		return options[first & 7];
	return second & 1 ? "rx-ring=64,tx-ring=64,sg=on,mtu=9000" :
			    "rx-ring=64,tx-ring=64";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct model_ops lying;
	struct mr_reason why = { .text = "" };
	struct harness harness;
	const char *options;
	struct intel *nic;
	struct vnet *v;
	struct model *m;
	uint8_t first;

	input = bytes;
	n_input = n_bytes;
	first = take_byte();
	options = make_device(first, take_byte(), &nic, &v);
	FUZZ_CHECK(nic != NULL || v != NULL);
	m = nic != NULL ? &nic->m : vnet_model(v);
	m->now = fast_clock;
	harness_begin(&harness, m, (struct mr_pool_config){ 0 }, fast_clock);
	harness.nic = nic;
	harness.v = v;
	faults = (struct model_faults){ 0 };
	more = (struct vnet_faults){ 0 };
	honest = m->ops;
	lying = *honest;
	lying.read = lying_read;
	m->ops = &lying;
	/* From its first register on, or once it is open. */
	n_lies = first & 0x80 ? take_byte() : 0;
	if (harness_try_open(&harness, options, &why) == 0) {
		n_lies = 0;
		for (int i = 0; i < 400 && n_input > 0; i++)
			act(&harness);
	} else {
		FUZZ_CHECK(why.text[0] != '\0');
	}
	n_lies = 0;
	/* A driver may repeat what the device wrote. */
	mr_port_close(harness.port);
	harness.port = NULL;
	model_forgive(harness.m);
	harness_close(&harness);
	if (nic != NULL)
		intel_destroy(nic);
	else
		vnet_destroy(v);
	model_wire_destroy(harness.wire);
	return 0;
}
