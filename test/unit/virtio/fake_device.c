/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's side is written from the specification, not from the driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rings.h"
#include "support/test.h"

enum { DOORBELLS_AT = 0x1000, DEVICE_AT = 0x800, BAR_BYTES = 0x2000 };

int __wrap_mr_pci_dma_alloc(struct mr_pci *pci, uint64_t n_bytes,
			    struct mr_dma *ret_dma, struct mr_reason *reason);
void __wrap_mr_pci_dma_free(struct mr_pci *pci, struct mr_dma *dma);
uint64_t __wrap_mr_pci_region_iova(const struct mr_pci *pci);
uint32_t __wrap_mr_pci_events(struct mr_pci *pci);
int __wrap_mr_pci_event_fd(const struct mr_pci *pci);

/* The port's pci is the fake itself. */
int __wrap_mr_pci_dma_alloc(struct mr_pci *pci, uint64_t n_bytes,
			    struct mr_dma *ret_dma, struct mr_reason *reason)
{
	void *memory = NULL;

	(void)pci, (void)reason;
	assert_int_equal(posix_memalign(&memory, 4096, n_bytes), 0);
	memset(memory, 0, n_bytes);
	*ret_dma = (struct mr_dma){ memory, (uintptr_t)memory, n_bytes };
	return 0;
}

void __wrap_mr_pci_dma_free(struct mr_pci *pci, struct mr_dma *dma)
{
	(void)pci;
	free(dma->memory);
	*dma = (struct mr_dma){ 0 };
}

uint64_t __wrap_mr_pci_region_iova(const struct mr_pci *pci)
{
	const struct fake *fake = (const struct fake *)pci;

	return (uintptr_t)fake->port->base.base;
}

uint32_t __wrap_mr_pci_events(struct mr_pci *pci)
{
	(void)pci;
	return 0;
}

int __wrap_mr_pci_event_fd(const struct mr_pci *pci)
{
	(void)pci;
	return -1;
}

/* ---- registers ---- */

static uint64_t all_ones(uint32_t n_bytes)
{
	return UINT64_MAX >> (64 - 8 * n_bytes);
}

static uint64_t read_register(void *device, uint32_t bar, uint64_t offset,
			      uint32_t n_bytes)
{
	struct fake *fake = device;
	const struct fake_queue *q = &fake->queues[fake->selected];

	(void)bar;
	if (fake->is_gone)
		return all_ones(n_bytes);
	switch (offset) {
	case VIRTIO_NUM_QUEUES:
		return FAKE_QUEUES;
	case VIRTIO_STATUS:
		return fake->status;
	case VIRTIO_QUEUE_SIZE:
		return q->size;
	case VIRTIO_QUEUE_VECTOR:
		return q->vector;
	case VIRTIO_QUEUE_NOTIFY_OFF:
		return fake->selected;
	case VIRTIO_QUEUE_RESET:
		return fake->does_not_reset ? 1 : q->reset;
	default:
		return 0;
	}
}

static void set_half(uint64_t *value, uint32_t half, uint64_t bits)
{
	memcpy((uint8_t *)value + 4 * half, &bits, 4);
}

static void ring_bell(struct fake *fake, uint64_t offset, uint32_t n_bytes,
		      uint64_t value)
{
	struct fake_queue *q = &fake->queues[(offset - DOORBELLS_AT) / 4];

	assert_int_equal(
		n_bytes,
		virtio_has(fake->port, VIRTIO_F_NOTIFICATION_DATA) ? 4 : 2);
	assert_int_equal(q->enable, 1);
	q->n_bells++;
	q->last_bell = (uint32_t)value;
	if (fake->polls_at_bells)
		assert_int_equal(mri_virtio_poll(&fake->port->base), 0);
}

static void write_register(void *device, uint32_t bar, uint64_t offset,
			   uint32_t n_bytes, uint64_t value)
{
	struct fake *fake = device;
	struct fake_queue *q = &fake->queues[fake->selected];

	(void)bar;
	if (fake->is_gone)
		return;
	if (offset >= DOORBELLS_AT) {
		ring_bell(fake, offset, n_bytes, value);
		return;
	}
	switch (offset) {
	case VIRTIO_STATUS:
		fake->status = (uint32_t)value;
		break;
	case VIRTIO_QUEUE_SELECT:
		fake->selected = (uint32_t)value;
		break;
	case VIRTIO_QUEUE_SIZE:
		q->size = (uint16_t)value;
		break;
	case VIRTIO_QUEUE_VECTOR:
		q->vector = (uint16_t)value;
		break;
	case VIRTIO_QUEUE_ENABLE:
		q->enable = (uint16_t)value;
		break;
	case VIRTIO_QUEUE_RESET:
		q->enable = 0;
		q->n_avail = q->n_used = 0;
		break;
	case VIRTIO_QUEUE_DESC:
	case VIRTIO_QUEUE_DESC + 4:
		set_half(&q->desc, offset != VIRTIO_QUEUE_DESC, value);
		break;
	case VIRTIO_QUEUE_DRIVER:
	case VIRTIO_QUEUE_DRIVER + 4:
		set_half(&q->driver, offset != VIRTIO_QUEUE_DRIVER, value);
		break;
	case VIRTIO_QUEUE_DEVICE:
	case VIRTIO_QUEUE_DEVICE + 4:
		set_half(&q->device, offset != VIRTIO_QUEUE_DEVICE, value);
		break;
	default:
		break;
	}
}

static const struct mr_bar_ops bar_ops = { read_register, write_register };

/* ---- rings ---- */

static bool is_packed(const struct fake *fake)
{
	return virtio_has(fake->port, VIRTIO_F_RING_PACKED);
}

static bool has_event_idx(const struct fake *fake)
{
	return virtio_has(fake->port, VIRTIO_F_EVENT_IDX);
}

static uint16_t load16(uint64_t addr)
{
	uint16_t value;

	memcpy(&value, (const void *)(uintptr_t)addr, sizeof(value));
	return value;
}

static void store16(uint64_t addr, uint32_t value)
{
	const uint16_t value16 = (uint16_t)value;

	memcpy((void *)(uintptr_t)addr, &value16, sizeof(value16));
}

struct plain_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t a, b; /* split: flags, next; packed: id, flags */
};

static struct plain_desc *desc_at(const struct fake_queue *q, uint32_t number)
{
	return (struct plain_desc *)(uintptr_t)q->desc + number % q->size;
}

/* The wrap counter in the lap of a running number: 1 in the first. */
static bool wrap_of(const struct fake_queue *q, uint32_t number)
{
	return number / q->size % 2 == 0;
}

static struct fake_chain take_split(struct fake_queue *q)
{
	struct fake_chain chain = { 0 };
	uint32_t place;

	if (load16(q->driver + 2) == q->n_avail)
		return chain;
	chain.id = load16(q->driver + 4 + 2ull * (q->n_avail++ % q->size));
	place = chain.id;
	for (;;) {
		const struct plain_desc *desc = desc_at(q, place);

		assert_true(place < q->size);
		assert_true(chain.n < 20);
		chain.parts[chain.n].addr = desc->addr;
		chain.parts[chain.n].len = desc->len;
		chain.parts[chain.n++].flags = desc->a;
		if (!(desc->a & 1))
			return chain;
		place = desc->b;
	}
}

static struct fake_chain take_packed(struct fake_queue *q)
{
	struct fake_chain chain = { 0 };

	for (;;) {
		const struct plain_desc *desc = desc_at(q, q->n_avail);
		const bool wrap = wrap_of(q, q->n_avail);
		const bool avail = desc->b >> 7 & 1, used = desc->b >> 15;

		if (avail != wrap || used == wrap) {
			assert_int_equal(chain.n, 0); /* seen in part */
			return chain;
		}
		assert_true(chain.n < 20);
		chain.parts[chain.n].addr = desc->addr;
		chain.parts[chain.n].len = desc->len;
		chain.parts[chain.n++].flags = desc->b & 0x7f;
		chain.id = desc->a;
		q->n_avail++;
		if (!(desc->b & 1))
			return chain;
	}
}

struct fake_chain fake_take(struct fake *fake, uint32_t queue)
{
	struct fake_queue *q = &fake->queues[queue];

	return is_packed(fake) ? take_packed(q) : take_split(q);
}

void fake_use_batch(struct fake *fake, uint32_t queue, uint32_t id,
		    uint32_t n_bytes, uint32_t n_chains, uint32_t n_descs)
{
	struct fake_queue *q = &fake->queues[queue];
	uint8_t *entry;

	if (is_packed(fake)) {
		struct plain_desc *desc = desc_at(q, q->n_used);

		desc->len = n_bytes;
		desc->a = (uint16_t)id;
		desc->b = wrap_of(q, q->n_used) ? 0x8080 : 0;
		q->n_used = (uint16_t)(q->n_used + n_descs);
		return;
	}
	entry = (uint8_t *)(uintptr_t)q->device + 4 + 8 * (q->n_used % q->size);
	memcpy(entry, &id, 4);
	memcpy(entry + 4, &n_bytes, 4);
	q->n_used = (uint16_t)(q->n_used + n_chains);
	store16(q->device + 2, q->n_used);
}

void fake_use(struct fake *fake, uint32_t queue, uint32_t id, uint32_t n_bytes,
	      uint32_t n_descs)
{
	fake_use_batch(fake, queue, id, n_bytes, 1, n_descs);
}

void fake_suppress(struct fake *fake, uint32_t queue, bool is_suppressed)
{
	const struct fake_queue *q = &fake->queues[queue];

	if (is_packed(fake))
		store16(q->device + 2, is_suppressed);
	else
		store16(q->device, is_suppressed);
}

void fake_want_event(struct fake *fake, uint32_t queue, uint16_t number)
{
	const struct fake_queue *q = &fake->queues[queue];

	if (!is_packed(fake)) {
		store16(q->device + 4 + 8ull * q->size, number);
		return;
	}
	store16(q->device, number % q->size | wrap_of(q, number) << 15);
	store16(q->device + 2, 2);
}

bool fake_wants_interrupt(const struct fake *fake, uint32_t queue)
{
	const struct fake_queue *q = &fake->queues[queue];

	if (is_packed(fake))
		return load16(q->driver + 2) == 0;
	if (has_event_idx(fake))
		return load16(q->driver + 4 + 2ull * q->size) == q->n_used;
	return load16(q->driver) == 0;
}

/* ---- the port ---- */

static void make_port(struct fake *fake, struct fake_config config)
{
	struct virtio_port *port = test_calloc(1, sizeof(*port));
	struct mr_port *base = &port->base;

	fake->port = port;
	base->ctx = fake->ctx;
	base->pool = fake->pool;
	base->region = mr_pool_region(fake->pool);
	base->base = mr_region_base(base->region);
	base->chunk_bytes = config.page_bytes < 4096 ? config.page_bytes : 4096;
	base->page_bytes = config.page_bytes;
	base->headroom_bytes = 128;
	base->tailroom_bytes = config.tailroom_bytes;
	base->fd = -1;
	base->info.mtu_bytes = 1500;
	port->features = config.features | virtio_bit(VIRTIO_F_VERSION_1);
	base->info.has_sg = virtio_has(port, VIRTIO_F_MRG_RXBUF);
	port->header_bytes = virtio_has(port, VIRTIO_F_HASH_REPORT) ? 20 : 12;
	port->options = (struct virtio_options){ .n_queues = 1,
						 .n_rx_entries = FAKE_RING,
						 .n_tx_entries = FAKE_RING };
	port->pci = (struct mr_pci *)fake;
	port->common = (struct virtio_block){ &fake->bar, 0, 0x3c };
	port->device = (struct virtio_block){ &fake->bar, DEVICE_AT, 24 };
	port->notify = (struct virtio_block){ &fake->bar, DOORBELLS_AT, 64 };
	port->notify_multiplier = 4;
}

void fake_open(struct fake *fake, struct fake_config config)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .clock = config.clock };
	struct mr_pool_config pool_config = { .size = sizeof(pool_config) };
	struct mr_reason why;

	config.page_bytes = config.page_bytes != 0 ? config.page_bytes : 4096;
	pool_config.n_pages = config.n_pages != 0 ? config.n_pages : FAKE_PAGES;
	pool_config.page_bytes = config.page_bytes;
	pool_config.tailroom_bytes = config.tailroom_bytes;
	*fake = (struct fake){
		.bar = { .n_bytes = BAR_BYTES, .ops = &bar_ops, .device = fake }
	};
	for (uint32_t i = 0; i < FAKE_QUEUES; i++)
		fake->queues[i].size = 256;
	assert_int_equal(mr_ctx_create(&ctx_config, &fake->ctx, NULL), 0);
	assert_int_equal(
		mr_pool_create(fake->ctx, &pool_config, &fake->pool, NULL), 0);
	assert_int_equal(mr_cache_create(fake->pool, &fake->cache, NULL), 0);
	make_port(fake, config);
	fake->port->is_up = 1;
	if (mri_virtio_events_open(fake->port, &why) < 0 ||
	    mri_virtio_queues_alloc(fake->port, &why) < 0 ||
	    mri_virtio_queues_start(fake->port, &why) < 0)
		fail_msg("%s", why.text);
	mri_virtio_queues_fill(fake->port);
	fake->rxq = &fake->port->rxqs[0];
	fake->txq = &fake->port->txqs[0];
}

void fake_free_port(struct fake *fake)
{
	mri_virtio_events_close(fake->port);
	mri_virtio_queues_free(fake->port);
	mr_free(fake->ctx, fake->port->base.queue_memory);
	test_free(fake->port);
}

void fake_close(struct fake *fake)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	fake_check_laws(fake);
	fake_free_port(fake);
	mr_cache_flush(fake->cache);
	mr_cache_destroy(fake->cache);
	mr_pool_stats(fake->pool, &stats);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	assert_int_equal(
		stats.free_invalid + stats.free_double + stats.free_over, 0);
	assert_int_equal(mr_pool_destroy(fake->pool, NULL), 0);
	mr_ctx_destroy(fake->ctx);
}

struct fake_chain fake_receive(struct fake *fake, uint32_t n_bytes,
			       uint8_t seed, const struct virtio_header *header)
{
	const uint32_t n_header = fake->port->header_bytes;
	const struct virtio_header plain = { .n_buffers = 1 };
	const struct fake_chain chain = fake_take(fake, 0);
	uint8_t *bytes = (void *)(uintptr_t)chain.parts[0].addr;

	assert_int_equal(chain.n, 1);
	assert_int_equal(chain.parts[0].flags, VIRTIO_DESC_WRITE);
	assert_true(chain.parts[0].len >= n_header + n_bytes);
	memcpy(bytes, header != NULL ? header : &plain, n_header);
	for (uint32_t i = 0; i < n_bytes; i++)
		bytes[n_header + i] = (uint8_t)(seed + i);
	return chain;
}

struct mr_frame fake_frame(struct fake *fake, uint32_t offset, uint32_t n_bytes,
			   uint8_t seed)
{
	struct mr_frame frame = { .len = n_bytes };
	uint8_t *bytes;

	assert_int_equal(mr_frag_alloc_bulk(fake->cache, &frame.addr, 1,
					    fake->port->base.chunk_bytes),
			 1);
	memset(mr_frame_data(fake->port->base.base, &frame), 0xee,
	       fake->port->base.chunk_bytes);
	frame.addr += offset;
	bytes = mr_frame_data(fake->port->base.base, &frame);
	for (uint32_t i = 0; i < n_bytes; i++)
		bytes[i] = (uint8_t)(seed + i);
	return frame;
}

struct mr_tx_stats fake_tx_stats(const struct fake *fake)
{
	struct mr_tx_stats stats = fake->txq->base.stats;
	uint64_t n_gone = stats.completed;

	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_gone += stats.drops[i];
	assert_true(stats.accepted >= n_gone);
	stats.pending = stats.accepted - n_gone;
	return stats;
}

struct mr_rx_stats fake_rx_stats(const struct fake *fake)
{
	return fake->rxq->base.stats;
}

void fake_check_laws(const struct fake *fake)
{
	assert_int_equal(fake_tx_stats(fake).pending, fake->txq->n_frames);
}

uint32_t ring_kind;

int main(void)
{
	int n_failed = 0;

	for (ring_kind = 0; ring_kind < N_RINGS; ring_kind++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s%s",
			 ring_kind & F_PACKED ? "packed" : "split",
			 ring_kind & F_IN_ORDER ? ", in order" : "",
			 ring_kind & F_EVENT_IDX ? ", event idx" : "");
		n_failed += test_run(name, NULL, NULL);
	}
	return n_failed;
}
