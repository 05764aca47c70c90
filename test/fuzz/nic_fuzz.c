/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that does whatever the input says: it lies in registers, descriptors,
 * rings and heads, and changes faults, link and frames. The driver may lose
 * frames if it counts each one by reason. It must not lose a page, hand one out
 * twice, or hand out memory that is not a frame; and every call must return.
 *
 * Or it is a vhost-user back end behind a socket, which answers as it likes and
 * goes and comes.
 *
 * The first byte selects the device, the second its features or options. Each
 * action then takes a byte, and the bytes that it needs.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <unistd.h>

#include "fuzz.h"
#include "model/back_end.h"
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
	/* vhost-user: frames in, frames out; rings overwritten; a restart. */
	SEED("\x20\0\1\5\0\0\x20\2\3\0\x0b\2\5\0\1\5\0\0\x20"),
	SEED("\x21\x0f\1\5\0\4\2\1\x20\0\x20\x0a\2\1\0\x0a\4\1\3\x0a"),
	SEED("\xa0\x07\4\1\1\5\0\0\x20"),
	SEED("\xa1\x07\7\2\1\5\0\0\x20"),
	SEED("\x22\x07\2\5\0\x08\1\x0a\1\5\0\0\x20\2\5\0\x0b"),
	SEED("\x23\x0f\3\4\2\7\3\x08\1\x0a\5\2\3\4"),
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

/* ---- a back end ---- */

static struct back_end *back_end;
static struct back_end_config back_end_config;
static char back_end_path[64];
/* Atomic: how the next requests are answered, and how many. */
static uint32_t trick, n_tricks;
static bool has_restarted;

/* Silence would take seconds: test/model/virtio_user_test.c has it. */
static enum back_end_trick choose_trick(void *arg, uint32_t request)
{
	(void)arg;
	(void)request;
	if (__atomic_load_n(&n_tricks, __ATOMIC_RELAXED) == 0)
		return BACK_END_HONEST;
	__atomic_fetch_sub(&n_tricks, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&trick, __ATOMIC_RELAXED) % BACK_END_LATE;
}

static void be_tricky(uint32_t which, uint32_t n)
{
	__atomic_store_n(&trick, which, __ATOMIC_RELAXED);
	__atomic_store_n(&n_tricks, n % 4, __ATOMIC_RELAXED);
}

static void start_back_end(uint8_t byte)
{
	const uint64_t offered = UINT64_C(1) | 1 << 1 | 1 << 3 | 1 << 7 |
				 1 << 8 | 1 << 11 | 1 << 12 | 1 << 15 |
				 (byte & 1 ? 1 << 29 : 0) |
				 (byte & 2 ? UINT64_C(1) << 34 : 0) |
				 (byte & 4 ? UINT64_C(1) << 35 : 0);

	snprintf(back_end_path, sizeof(back_end_path), "/tmp/nic-fuzz-%d.sock",
		 (int)getpid());
	back_end_config = (struct back_end_config){
		.path = back_end_path,
		.features = offered,
		.choose = choose_trick,
	};
	has_restarted = false;
	be_tricky(0, 0);
	back_end = back_end_start(&back_end_config);
}

/* The link, within the time that a driver takes to connect again. */
static void restart_back_end(struct harness *harness)
{
	const uint64_t until_ms = harness_now_ms() + 150;

	if (has_restarted)
		return;
	has_restarted = true;
	back_end_stop(back_end);
	mr_port_poll(harness->port);
	back_end = back_end_start(&back_end_config);
	while (!harness_is_up(harness) && harness_now_ms() < until_ms)
		mr_port_poll(harness->port);
}

static int open_on_back_end(struct harness *harness, uint8_t byte,
			    struct mr_reason *why)
{
	static const char *const options[] = { "", ",packed=off,in-order=off",
					       ",sg=on,mtu=9000,csum=on",
					       ",tso=on,packed=off" };
	char spec[128];

	snprintf(spec, sizeof(spec), "virtio-user:%s,ring=64%s", back_end_path,
		 options[byte & 3]);
	return harness_try_open_spec(harness, spec, why);
}

/* ---- faults ---- */

static struct model_faults faults;
static struct vnet_faults more;

static void apply_faults(struct harness *harness)
{
	if (harness->m == NULL)
		return;
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

	if (back_end != NULL)
		be_tricky(which, n);
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

	if (back_end != NULL) {
		where = take_byte();
		back_end_scribble(back_end, where & 1, where >> 1 & 3,
				  (where >> 3) * 2u,
				  (uint16_t)(take_byte() * 0x101));
		return;
	}
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

	if (back_end != NULL) {
		back_end_use(back_end, 0, n % 64, 12 + 14 + len * 36 % 9000);
		return;
	}
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
		if (back_end != NULL && what == 8 && n % 4 == 1)
			restart_back_end(harness);
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
		if (back_end != NULL) {
			back_end_use(back_end, 1, 64, 0);
			break;
		}
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

/* A NIC that lies, from its first register on, or once it is open. */
static void play_nic(struct harness *harness, uint8_t first)
{
	static struct model_ops lying;
	struct mr_reason why = { .text = "" };
	const char *options;
	struct intel *nic;
	struct vnet *v;
	struct model *m;

	options = make_device(first, take_byte(), &nic, &v);
	FUZZ_CHECK(nic != NULL || v != NULL);
	m = nic != NULL ? &nic->m : vnet_model(v);
	m->now = fast_clock;
	harness_begin(harness, m, (struct mr_pool_config){ 0 }, fast_clock);
	harness->nic = nic;
	harness->v = v;
	honest = m->ops;
	lying = *honest;
	lying.read = lying_read;
	m->ops = &lying;
	n_lies = first & 0x80 ? take_byte() : 0;
	if (harness_try_open(harness, options, &why) < 0)
		FUZZ_CHECK(why.text[0] != '\0');
	n_lies = 0;
}

static void play_back_end(struct harness *harness, uint8_t first)
{
	struct mr_reason why = { .text = "" };
	uint32_t which;

	start_back_end(take_byte());
	harness_begin(harness, NULL, (struct mr_pool_config){ 0 }, fast_clock);
	if (first & 0x80) {
		which = take_byte();
		be_tricky(which, take_byte());
	}
	if (open_on_back_end(harness, first, &why) < 0)
		FUZZ_CHECK(why.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct harness harness;
	uint8_t first;

	input = bytes;
	n_input = n_bytes;
	faults = (struct model_faults){ 0 };
	more = (struct vnet_faults){ 0 };
	first = take_byte();
	if ((first & 0x60) == 0x20)
		play_back_end(&harness, first);
	else
		play_nic(&harness, first);
	for (int i = 0; harness.port != NULL && i < 400 && n_input > 0; i++)
		act(&harness);
	n_lies = 0;
	/* A driver may repeat what the device wrote. */
	mr_port_close(harness.port);
	harness.port = NULL;
	if (harness.m != NULL)
		model_forgive(harness.m);
	harness_close(&harness);
	if (harness.nic != NULL)
		intel_destroy(harness.nic);
	if (harness.v != NULL)
		vnet_destroy(harness.v);
	back_end_stop(back_end);
	back_end = NULL;
	model_wire_destroy(harness.wire);
	return 0;
}
