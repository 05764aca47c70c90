/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtio device that does what the input says, whatever the specification
 * does: no page is lost, none is handed out twice, the counters add up, and
 * every call returns.
 *
 * The first byte chooses the port's options, the second what the device is,
 * then there are three bytes for each step.
 */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "model/harness.h"
#include "model/virtio.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Frames in, frames out, and again. */
	SEED("\0\0\0\5\0\1\3\0\2\5\0\3\0\0\0\5\0\1\3\0\2\5\0\3\0\0"),
	SEED("\3\0\0\x20\3\1\3\0\2\5\0\3\0\0\0\5\0\1\3\0\2\5\0\3\0\0"),
	SEED("\5\3\5\1\1\0\5\0\1\3\0\2\5\0\3\0\0\0\5\0\1\3\0\2\5\0\3\0\0"),
	SEED("\1\1\0\5\0\6\1\2\0\7\2\1\3\0\2\5\0\3\0\0\4\0\0"),
	SEED("\2\2\0\x20\xff\1\x20\0\5\4\2\0\x20\x10\1\x20\0\4\0\0\1\1\0"),
	SEED("\7\0\5\x08\1\0\x20\3\1\3\0\4\0\0\5\0\0\0\5\0\1\3\0\6\0\2"),
	SEED("\4\5\0\5\0\7\0\1\3\0\2\4\0\0\7\1\0\4\0\0\0\5\0\1\3\0"),
	{ NULL, 0 },
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

enum { MAX_STEPS = 400 };

static struct model_faults faults;
static struct vnet_faults more;

static void inject(struct harness *harness, uint32_t n, uint32_t len)
{
	static uint8_t bytes[9018];

	for (uint32_t i = 0; i < n % 40; i++)
		model_wire_send(harness->wire, 1, bytes, 14 + len * 36 % 9000);
}

static void receive(struct harness *harness)
{
	struct mr_frame frames[HARNESS_BURST];
	struct mr_meta meta[HARNESS_BURST];
	const uint32_t n = mr_rx_burst_meta(harness->rxq, harness->cache,
					    frames, meta, HARNESS_BURST);
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	FUZZ_CHECK(n <= HARNESS_BURST);
	FUZZ_CHECK(mr_frame_n_whole(frames, n) == n);
	for (uint32_t i = 0; i < n; i++) {
		FUZZ_CHECK(frames[i].len > 0 && frames[i].len <= 4096);
		for (uint32_t k = 0; k < i; k++)
			FUZZ_CHECK(frames[k].addr != frames[i].addr);
	}
	mr_frame_free_bulk(harness->cache, frames, n);
	mr_rxq_stats(harness->rxq, &stats);
	FUZZ_CHECK(invariants_of_rx_hold(&stats));
}

static void send(struct harness *harness, uint32_t n, uint32_t n_segs)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	struct mr_frame frames[HARNESS_BURST];
	uint64_t addrs[HARNESS_BURST];
	uint32_t n_tx;

	n = mr_frag_alloc_bulk(harness->cache, addrs, n % (HARNESS_BURST + 1),
			       4096);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){
			.addr = addrs[i] + 256,
			.len = 60,
			.flags = i % (n_segs % 19 + 1) != 0 && i + 1 < n ?
					 MR_FRAME_MORE :
					 0,
		};
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, n);
	FUZZ_CHECK(n_tx <= n);
	mr_frame_free_bulk(harness->cache, frames + n_tx, n - n_tx);
	mr_txq_stats(harness->txq, &stats);
	FUZZ_CHECK(invariants_of_tx_hold(&stats));
}

static void collect(struct harness *harness)
{
	uint8_t bytes[WIRE_MAX_BYTES];

	while (model_wire_receive(harness->wire, 1, bytes, sizeof(bytes)) > 0)
		;
	model_step(vnet_model(harness->v));
}

/* Another thing goes wrong, one time in n; or ceases to. */
static void set_fault(struct harness *harness, uint32_t which, uint32_t n)
{
	uint32_t *const numbers[] = {
		&faults.late_completions,
		&faults.wrong_completion,
		&faults.lost_irqs,
		&faults.spurious_irqs,
		&faults.bad_length,
		&faults.bad_id,
		&faults.bad_count,
		&faults.bad_hash,
		&faults.dma_unmapped,
		&faults.link_down,
		&more.needs_reset,
		&more.reordered,
		&more.doubled,
		&more.idx_jumps,
		&more.bad_header,
	};

	*numbers[which % (sizeof(numbers) / sizeof(numbers[0]))] = n % 16;
	vnet_set_faults(harness->v, &more);
	model_set_faults(vnet_model(harness->v), &faults);
}

static void step(struct harness *harness, const uint8_t *bytes)
{
	switch (bytes[0] % 8) {
	case 0:
		inject(harness, bytes[1], bytes[2]);
		break;
	case 1:
		send(harness, bytes[1], bytes[2]);
		break;
	case 2:
		receive(harness);
		break;
	case 3:
		collect(harness);
		break;
	case 4:
		mr_port_poll(harness->port);
		break;
	case 5:
		set_fault(harness, bytes[1], bytes[2]);
		break;
	case 6:
		vnet_scribble(harness->v, bytes[1] & 3, bytes[1] >> 2 & 3,
			      (bytes[1] >> 4) * 2u,
			      (uint16_t)(bytes[2] * 0x101));
		break;
	default:
		mr_queue_arm(&harness->rxq->queue);
		mr_queue_arm(&harness->txq->queue);
	}
}

/* The device of an input: its features, and whether it is sound. */
static struct vnet *make_device(uint8_t byte)
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_reason why = { .text = "" };
	struct harness harness;
	struct vnet *v;

	if (n_bytes < 2)
		return 0;
	faults = (struct model_faults){ 0 };
	more = (struct vnet_faults){ 0 };
	v = make_device(bytes[1]);
	harness_begin(&harness, v != NULL ? vnet_model(v) : NULL,
		      (struct mr_pool_config){ .n_pages = 2048 }, NULL);
	harness.v = v;
	if (harness_try_open(&harness, options[bytes[0] % 8], &why) == 0) {
		for (size_t i = 2, n = 0; i + 3 <= n_bytes && n < MAX_STEPS;
		     i += 3, n++)
			step(&harness, bytes + i);
		mr_port_close(harness.port);
		harness.port = NULL;
	} else {
		FUZZ_CHECK(why.text[0] != '\0');
	}
	/* A driver may repeat what the device wrote. */
	model_forgive(harness.m);
	harness_close(&harness);
	vnet_destroy(v);
	model_wire_destroy(harness.wire);
	return 0;
}
