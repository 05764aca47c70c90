/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The least driver of virtio-net there can be, by hand: one descriptor per
 * buffer, ids in a circle. For tests of the model itself, which must not lean
 * on the driver that the model is there to test.
 */
#ifndef UNIT_MODEL_VIRTIO_HAND_H
#define UNIT_MODEL_VIRTIO_HAND_H

#include <sys/eventfd.h>
#include <unistd.h>

#include "model/virtio.h"
#include "support/unit.h"

enum {
	/* Where the model has its registers. */
	HAND_BAR = 4,
	HAND_DEVICE = 0x2000,
	HAND_NOTIFY_BAR = 2,
	HAND_NOTIFY = 0x100,
	/* DMA memory: an area for each ring, then buffers. */
	HAND_IOVA = 0x100000,
	HAND_RING_BYTES = 0x10000,
	HAND_BUFFERS = 4 * HAND_RING_BYTES,
	HAND_BUFFER_BYTES = 2048,
	HAND_BYTES = HAND_BUFFERS + 512 * HAND_BUFFER_BYTES,
	HAND_QUEUE_SIZE = 64,
	HAND_RX = 0,
	HAND_TX = 1,
	HAND_CTRL = 2,

	DESC_NEXT = 1,
	DESC_WRITE = 2,
	DESC_INDIRECT = 4,
};

struct hand_queue {
	uint64_t n_avail, n_used; /* descriptors; they run free */
	uint16_t size, doorbell;
	uint8_t *desc, *driver, *device;
};

struct hand {
	struct vnet *v;
	struct model *m;
	struct model_wire *wire;
	uint8_t *memory;
	bool is_packed;
	int irq_fds[4];
	struct hand_queue queues[3];
};

/* Features of a plain device that is driven by hand. */
#define HAND_PLAIN (VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM))

/* And all that it has, but for what makes doorbells another thing. */
#define HAND_ALL                                                               \
	(vnet_all_features() & ~(VNET_BIT(VNET_NOTIFICATION_DATA) |            \
				 VNET_BIT(VNET_NOTIF_CONFIG_DATA)))

static inline uint32_t hand_read(struct hand *h, uint64_t offset, uint32_t n)
{
	return (uint32_t)model_read(h->m, HAND_BAR, offset, n);
}

static inline void hand_write(struct hand *h, uint64_t offset, uint32_t n,
			      uint32_t value)
{
	model_write(h->m, HAND_BAR, offset, n, value);
}

static inline uint64_t hand_iova(const struct hand *h, const void *at)
{
	return HAND_IOVA + (uint64_t)((const uint8_t *)at - h->memory);
}

static inline uint8_t *hand_buffer(struct hand *h, uint32_t i)
{
	return h->memory + HAND_BUFFERS + (size_t)i * HAND_BUFFER_BYTES;
}

static inline void hand_put16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t hand_get16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline void hand_master(struct hand *h, bool is_on)
{
	const uint8_t command = is_on ? 6 : 2;

	model_write_config(h->m, 4, &command, 1);
}

static inline struct hand hand_make(const struct vnet_config *config)
{
	struct hand h = { .v = vnet_create(config) };
	void *memory = NULL;

	assert_non_null(h.v);
	h.m = vnet_model(h.v);
	h.wire = model_wire_create(128);
	assert_non_null(h.wire);
	model_wire_attach(h.wire, 0, h.m);
	assert_int_equal(posix_memalign(&memory, 4096, HAND_BYTES), 0);
	h.memory = memset(memory, 0, HAND_BYTES);
	assert_int_equal(model_open(h.m), 0);
	hand_master(&h, false);
	assert_int_equal(model_map_dma(h.m, memory, HAND_IOVA, HAND_BYTES), 0);
	for (int i = 0; i < 4; i++)
		h.irq_fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	model_set_irqs(h.m, 4, h.irq_fds);
	return h;
}

static inline void hand_end(struct hand *h)
{
	hand_master(h, false);
	model_close(h->m);
	assert_string_equal(model_violations(h->m), "");
	vnet_destroy(h->v);
	model_wire_destroy(h->wire);
	free(h->memory);
	for (int i = 0; i < 4; i++)
		close(h->irq_fds[i]);
}

/* The model complained, of that; the complaint is taken back. */
static inline void hand_blamed(struct hand *h, const char *words)
{
	if (strstr(model_violations(h->m), words) == NULL)
		fail_msg("'%s' is not in '%s'", words, model_violations(h->m));
	model_forgive(h->m);
}

static inline void hand_status(struct hand *h, uint8_t status)
{
	hand_write(h, 0x14, 1, status);
}

/* As far as FEATURES_OK. Whether it stays. */
static inline bool hand_negotiate(struct hand *h, uint64_t features)
{
	hand_status(h, 0);
	assert_int_equal(hand_read(h, 0x14, 1), 0);
	hand_status(h, 1);
	hand_status(h, 3);
	for (uint32_t i = 0; i < 2; i++) {
		hand_write(h, 0x08, 4, i);
		hand_write(h, 0x0c, 4, (uint32_t)(features >> 32 * i));
	}
	hand_status(h, 11);
	h->is_packed = features >> VNET_RING_PACKED & 1;
	return (hand_read(h, 0x14, 1) & 8) != 0;
}

static inline void hand_write64(struct hand *h, uint64_t offset, uint64_t value)
{
	hand_write(h, offset, 4, (uint32_t)value);
	hand_write(h, offset + 4, 4, (uint32_t)(value >> 32));
}

/* Queue @p i and its registers, all but enabling it. */
static inline void hand_set_queue(struct hand *h, uint16_t i, uint16_t size)
{
	struct hand_queue *q = &h->queues[i];

	*q = (struct hand_queue){ .size = size };
	q->desc = h->memory + (size_t)i * HAND_RING_BYTES;
	q->driver = q->desc + 0x8000;
	q->device = q->desc + 0xc000;
	memset(q->desc, 0, HAND_RING_BYTES);
	hand_write(h, 0x16, 2, i);
	hand_write(h, 0x18, 2, size);
	hand_write(h, 0x1a, 2, i + 1);
	hand_write64(h, 0x20, hand_iova(h, q->desc));
	hand_write64(h, 0x28, hand_iova(h, q->driver));
	hand_write64(h, 0x30, hand_iova(h, q->device));
	q->doorbell = (uint16_t)(HAND_NOTIFY + 4 * hand_read(h, 0x1e, 2));
}

/* All of it: the device runs. */
static inline void hand_start(struct hand *h, uint64_t features)
{
	assert_true(hand_negotiate(h, features));
	hand_write(h, 0x10, 2, 0);
	for (uint16_t i = 0; i < 3; i++) {
		hand_set_queue(h, i, HAND_QUEUE_SIZE);
		hand_write(h, 0x1c, 2, 1);
	}
	hand_master(h, true);
	hand_status(h, 15);
}

static inline void hand_kick(struct hand *h, uint16_t i)
{
	model_write(h->m, HAND_NOTIFY_BAR, h->queues[i].doorbell, 2, i);
}

/* One descriptor: its id is its place. Not available yet if split. */
static inline void hand_desc(struct hand *h, uint16_t i, const void *at,
			     uint32_t n_bytes, uint16_t flags)
{
	struct hand_queue *q = &h->queues[i];
	const uint16_t place = (uint16_t)(q->n_avail % q->size);
	const bool wrap = q->n_avail / q->size % 2 == 0;
	const uint64_t iova = hand_iova(h, at);
	uint8_t *desc = q->desc + 16 * place;

	memcpy(desc, &iova, 8);
	memcpy(desc + 8, &n_bytes, 4);
	if (h->is_packed) {
		hand_put16(desc + 12, place);
		hand_put16(desc + 14,
			   (uint16_t)(flags | (wrap ? 1 << 7 : 1 << 15)));
	} else {
		hand_put16(desc + 12, flags);
		hand_put16(desc + 14, (uint16_t)((place + 1) % q->size));
	}
	q->n_avail++;
}

/* Split: the chain that begins at descriptor @p head is available. */
static inline void hand_publish(struct hand *h, uint16_t i, uint16_t head)
{
	struct hand_queue *q = &h->queues[i];
	const uint16_t idx = hand_get16(q->driver + 2);

	hand_put16(q->driver + 4 + 2 * (idx % q->size), head);
	hand_put16(q->driver + 2, (uint16_t)(idx + 1));
}

/* A buffer of one descriptor, available. */
static inline void hand_post(struct hand *h, uint16_t i, const void *at,
			     uint32_t n_bytes, uint16_t flags)
{
	const struct hand_queue *q = &h->queues[i];
	const uint16_t head = (uint16_t)(q->n_avail % q->size);

	hand_desc(h, i, at, n_bytes, flags);
	if (!h->is_packed)
		hand_publish(h, i, head);
}

/* The next used buffer. False: none. */
static inline bool hand_poll(struct hand *h, uint16_t i, uint16_t *ret_id,
			     uint32_t *ret_n_bytes)
{
	struct hand_queue *q = &h->queues[i];
	const uint16_t place = (uint16_t)(q->n_used % q->size);
	const bool wrap = q->n_used / q->size % 2 == 0;
	uint16_t flags;

	if (h->is_packed) {
		flags = hand_get16(q->desc + 16 * place + 14);
		if ((flags >> 7 & 1) != wrap || (flags >> 15 & 1) != wrap)
			return false;
		memcpy(ret_n_bytes, q->desc + 16 * place + 8, 4);
		*ret_id = hand_get16(q->desc + 16 * place + 12);
	} else {
		if (hand_get16(q->device + 2) == (uint16_t)q->n_used)
			return false;
		*ret_id = hand_get16(q->device + 4 + 8 * place);
		memcpy(ret_n_bytes, q->device + 4 + 8 * place + 4, 4);
	}
	q->n_used++;
	return true;
}

/* A packet to be sent: header and bytes in one buffer. */
static inline void hand_send(struct hand *h, uint32_t buffer,
			     const void *header, const uint8_t *bytes,
			     uint32_t n_bytes)
{
	uint8_t *at = hand_buffer(h, buffer);

	memcpy(at, header, 12);
	memcpy(at + 12, bytes, n_bytes);
	hand_post(h, HAND_TX, at, 12 + n_bytes, 0);
}

/* A command; its acknowledgement. Uses the last buffers. */
static inline uint8_t hand_command(struct hand *h, uint8_t class,
				   uint8_t number, const void *bytes,
				   uint32_t n_bytes)
{
	struct hand_queue *q = &h->queues[HAND_CTRL];
	const uint16_t head = (uint16_t)(q->n_avail % q->size);
	uint8_t *header = hand_buffer(h, 500), *data = hand_buffer(h, 501);
	uint8_t *ack = hand_buffer(h, 502);
	uint16_t id;
	uint32_t n;

	header[0] = class;
	header[1] = number;
	memcpy(data, bytes, n_bytes);
	*ack = 0xee;
	hand_desc(h, HAND_CTRL, header, 2, DESC_NEXT);
	hand_desc(h, HAND_CTRL, data, n_bytes, DESC_NEXT);
	hand_desc(h, HAND_CTRL, ack, 1, DESC_WRITE);
	if (!h->is_packed)
		hand_publish(h, HAND_CTRL, head);
	hand_kick(h, HAND_CTRL);
	assert_true(hand_poll(h, HAND_CTRL, &id, &n));
	assert_int_equal(n, 1);
	q->n_used += h->is_packed ? 2 : 0;
	return *ack;
}

/* Each layout of a ring; EVENT_IDX comes on top. */
__attribute__((unused)) static const uint64_t hand_layouts[] = {
	0,
	VNET_BIT(VNET_IN_ORDER),
	VNET_BIT(VNET_RING_PACKED),
	VNET_BIT(VNET_RING_PACKED) | VNET_BIT(VNET_IN_ORDER),
};

enum { HAND_N_LAYOUTS = 4 };

/* Running, with these features beside the plain ones. */
static inline struct hand hand_run(uint64_t features)
{
	const struct vnet_config config = {
		.features = HAND_PLAIN | features,
	};
	struct hand h = hand_make(&config);

	hand_start(&h, HAND_PLAIN | features);
	return h;
}

#endif
