/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mistakes of a driver with a virtio device, and the violations that the model
 * records. Some are accesses to registers; for the others our driver works, and
 * the test changes what it wrote. That the model behaves like a device is shown
 * by our driver, which passes the same tests over it and over QEMU's.
 */
#include "devices.h"
#include "virtio_core.h"

enum {
	BAR = 4,
	DEVICE = 0x2000,
	NOTIFY_BAR = 2,
	NOTIFY = 0x100,
	IOVA = 0x100000,
	MAPPED_BYTES = 0x10000,
	RX = 0,
	TX = 1,
	CTRL = 2,
};

static const uint64_t plain_features =
	VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM);

static struct vnet_config plain_config(uint64_t more)
{
	return (struct vnet_config){
		.features = plain_features | VNET_BIT(VNET_RING_PACKED) |
			    VNET_BIT(VNET_IN_ORDER) | more,
	};
}

/* The model recorded it; it is forgiven. */
static void assert_recorded(struct harness *harness, const char *words)
{
	if (strstr(model_violations(harness->m), words) == NULL)
		fail_msg("'%s' is not in '%s'", words,
			 model_violations(harness->m));
	model_forgive(harness->m);
}

static void check_mistake(struct harness *harness, const char *words)
{
	assert_recorded(harness, words);
	mr_port_close(harness->port);
	harness->port = NULL;
	model_forgive(harness->m);
	device_end(harness);
}

/* ---- registers ---- */

static void put(struct harness *harness, uint64_t offset, uint32_t n,
		uint32_t value)
{
	model_write(harness->m, BAR, offset, n, value);
}

static void set_command(struct harness *harness, uint8_t bits)
{
	model_write_config(harness->m, 4, &bits, 1);
}

/* Up to FEATURES_OK. Whether it stays. */
static bool negotiate(struct harness *harness, uint64_t features)
{
	static const uint8_t steps[] = { 0, 1, 3 };

	for (size_t i = 0; i < sizeof(steps); i++)
		put(harness, 0x14, 1, steps[i]);
	for (uint32_t i = 0; i < 2; i++) {
		put(harness, 0x08, 4, i);
		put(harness, 0x0c, 4, (uint32_t)(features >> 32 * i));
	}
	put(harness, 0x14, 1, 11);
	return (model_read(harness->m, BAR, 0x14, 1) & 8) != 0;
}

enum state { FRESH, NEGOTIATED, ENABLED, RUNNING };

/* A split queue of 64 entries. */
static void set_queue(struct harness *harness, uint16_t i)
{
	put(harness, 0x16, 2, i);
	put(harness, 0x18, 2, 64);
	for (uint32_t area = 0; area < 3; area++)
		put(harness, 0x20 + 8 * area, 4,
		    IOVA + 0x4000 * i + 0x1000 * area);
}

/* A device in some state, up to RUNNING without a driver. */
static void make_device(struct harness *harness, enum state state,
			const struct vnet_config *config)
{
	device_make(harness, config);
	if (state == RUNNING) {
		device_open(harness, "ring=64");
		return;
	}
	assert_int_equal(model_open(harness->m), 0);
	set_command(harness, 2);
	assert_int_equal(
		model_map_dma(harness->m, harness->base, IOVA, MAPPED_BYTES),
		0);
	if (state == FRESH)
		return;
	assert_true(negotiate(harness, plain_features));
	set_queue(harness, RX);
	if (state == ENABLED)
		put(harness, 0x1c, 2, 1);
}

static void check_stopped(struct harness *harness, const char *words)
{
	if (harness->port == NULL) {
		set_command(harness, 2);
		model_close(harness->m);
	}
	check_mistake(harness, words);
}

/* One access to a register. */
static const struct {
	enum state state;
	enum { READ, WRITE, BELL } what;
	uint32_t n_bytes;
	uint64_t offset;
	uint64_t value;
	const char *words;
} accesses[] = {
	{ FRESH, WRITE, 1, 0x14, 2, "status 0x2 follows 0" },
	{ FRESH, WRITE, 1, 0x14, 7, "status 0x7 follows 0" },
	{ FRESH, WRITE, 2, 0x18, 64, "wrong time" },
	{ FRESH, READ, 2, 0x00, 0, "read of 2 bytes" },
	{ FRESH, READ, 4, 0x14, 0, "read of 4 bytes" },
	{ FRESH, READ, 8, 0x20, 0, "read of 8 bytes" },
	{ FRESH, WRITE, 1, 0x18, 0, "write of 1 bytes" },
	{ FRESH, WRITE, 2, 0x12, 1, "read-only" },
	{ FRESH, READ, 4, DEVICE + 24, 0, "device configuration" },
	{ FRESH, BELL, 2, NOTIFY, 0, "before DRIVER_OK" },
	{ NEGOTIATED, WRITE, 1, 0x14, 1, "clears bits" },
	{ NEGOTIATED, WRITE, 4, 0x0c, 0, "features are written" },
	/* Areas of a ring: aligned to 16, 2 and 4 bytes, and mapped. */
	{ NEGOTIATED, WRITE, 4, 0x20, IOVA + 8, "aligned" },
	{ NEGOTIATED, WRITE, 4, 0x28, IOVA + 1, "aligned" },
	{ NEGOTIATED, WRITE, 4, 0x30, IOVA + 2, "aligned" },
	{ NEGOTIATED, WRITE, 4, 0x20, IOVA - 0x1000, "not mapped" },
	{ NEGOTIATED, WRITE, 4, 0x28, IOVA + MAPPED_BYTES - 16, "not mapped" },
	{ NEGOTIATED, WRITE, 4, 0x30, 0, "not mapped" },
	{ NEGOTIATED, WRITE, 2, 0x18, 65, "power of two" },
	{ NEGOTIATED, WRITE, 2, 0x18, 512, "out of range" },
	{ ENABLED, WRITE, 4, 0x20, 0, "wrong time" },
	{ ENABLED, WRITE, 2, 0x1c, 0, "enable 0" },
	{ RUNNING, WRITE, 2, 0x3a, 1, "cannot be reset" },
	/* Of another queue, of one that there is not, too wide. */
	{ RUNNING, BELL, 2, NOTIFY, 1, "queue 1: doorbell" },
	{ RUNNING, BELL, 2, NOTIFY, 9, "not enabled" },
	{ RUNNING, BELL, 4, NOTIFY + 4, 1, "doorbell of 4 bytes" },
};

DEVICE_TEST(ON_SPLIT, wrong_accesses_are_recorded)
{
	const struct vnet_config config = plain_config(0);
	struct harness harness;

	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		const uint32_t bar =
			accesses[i].what == BELL ? NOTIFY_BAR : BAR;

		make_device(&harness, accesses[i].state, &config);
		assert_string_equal(model_violations(harness.m), "");
		if (accesses[i].what == READ)
			model_read(harness.m, bar, accesses[i].offset,
				   accesses[i].n_bytes);
		else
			model_write(harness.m, bar, accesses[i].offset,
				    accesses[i].n_bytes, accesses[i].value);
		/* The model looks at a ring when it is enabled. */
		if (accesses[i].state == NEGOTIATED &&
		    accesses[i].offset > 0x14) {
			put(&harness, 0x1c, 2, 1);
			assert_int_equal(model_read(harness.m, BAR, 0x1c, 2),
					 0);
		}
		check_stopped(&harness, accesses[i].words);
	}
}

DEVICE_TEST(ON_SPLIT, features_are_refused_without_those_they_depend_on)
{
	static const struct {
		uint64_t taken;
		const char *words;
		bool is_plain; /* nothing more is offered */
	} cases[] = {
		{ VNET_BIT(VNET_CTRL_RX), "need others", false },
		{ VNET_BIT(VNET_MQ), "need others", false },
		{ VNET_BIT(VNET_RSS), "need others", false },
		{ VNET_BIT(VNET_NOTF_COAL), "need others", false },
		{ VNET_BIT(VNET_HOST_TSO4), "need others", false },
		{ VNET_BIT(VNET_HOST_USO), "need others", false },
		{ VNET_BIT(VNET_GUEST_TSO6), "need others", false },
		{ VNET_BIT(VNET_CSUM), "not offered", true },
		/* These are needed themselves. */
		{ VNET_BIT(VNET_VERSION_1), "VERSION_1", true },
		{ VNET_BIT(VNET_ACCESS_PLATFORM), "ACCESS_PLATFORM", true },
	};
	const struct vnet_config plain = plain_config(0);
	struct harness harness;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_device(&harness, FRESH, cases[i].is_plain ? &plain : NULL);
		assert_false(
			negotiate(&harness, plain_features ^ cases[i].taken));
		check_stopped(&harness, cases[i].words);
	}
}

DEVICE_TEST(ON_SPLIT, queues_have_their_time)
{
	const struct vnet_config config = plain_config(0);
	struct harness harness;

	make_device(&harness, ENABLED, &config);
	set_queue(&harness, TX);
	put(&harness, 0x14, 1, 15);
	model_write(harness.m, NOTIFY_BAR, NOTIFY + 8, 2, RX);
	assert_recorded(&harness, "before bus mastering");
	set_command(&harness, 6);
	put(&harness, 0x16, 2, TX);
	put(&harness, 0x1c, 2, 1);
	check_stopped(&harness, "after DRIVER_OK");
}

/* ---- what a driver writes into memory ---- */

/* Descriptors, or the available ring of a split one. */
static uint8_t *ring_of(struct harness *harness, uint32_t queue, bool is_avail)
{
	struct vnet_queue *q = &harness->v->queues[queue];
	uint8_t *memory;

	model_lock(harness->m);
	memory = model_dma(harness->m, is_avail ? q->driver : q->desc, 16);
	model_unlock(harness->m);
	assert_non_null(memory);
	return memory;
}

static uint64_t send_frame(struct harness *harness, const uint8_t *bytes,
			   uint32_t n)
{
	struct mr_frame frame;

	harness_frame(harness, bytes, n, &frame);
	assert_int_equal(mr_tx_burst(harness->txq, harness->cache, &frame, 1),
			 1);
	return frame.addr;
}

enum {
	ON_BOTH_SPLIT = ON_SPLIT | ON_SPLIT_IN_ORDER,
	ON_BOTH_PACKED = ON_PACKED | ON_PACKED_IN_ORDER,
	NEXT = VNET_DESC_NEXT,
	WRITABLE = VNET_DESC_WRITE,
	INDIRECT = VNET_DESC_INDIRECT,
};

/*
 * Bytes of a ring that the driver has just filled: of descriptor 0, and 1 at
 * 16; their fields: address 0, length 8; then, split: flags 12, next 14;
 * packed: id 12, flags 14. Of the available ring: index 2, the first entries 4
 * and 6.
 */
static const struct {
	const char *words;
	uint32_t on, queue;
	bool is_avail;
	uint32_t at, n_bytes;
	uint32_t clear, set;
} scribbles[] = {
	{ "posted twice", ON_VIRTIO, RX, false, 16, 8, 0, 0 },
	{ "not mapped", ON_VIRTIO, TX, false, 0, 4, ~0u, 0x10 },
	{ "no bytes", ON_VIRTIO, TX, false, 8, 4, ~0u, 0 },
	{ "too small", ON_VIRTIO, RX, false, 8, 4, ~0u, 1525 },
	{ "too short", ON_VIRTIO, TX, false, 8, 4, ~0u, 25 },
	{ "MTU", ON_VIRTIO, TX, false, 8, 4, ~0u, 12 + 1519 },
	{ "a readable", ON_BOTH_SPLIT, RX, false, 12, 2, WRITABLE, 0 },
	{ "a readable", ON_BOTH_PACKED, RX, false, 14, 2, WRITABLE, 0 },
	{ "to be written", ON_BOTH_SPLIT, TX, false, 12, 2, 0, WRITABLE },
	{ "to be written", ON_BOTH_PACKED, TX, false, 14, 2, 0, WRITABLE },
	{ "INDIRECT was not", ON_BOTH_SPLIT, TX, false, 12, 2, 0, INDIRECT },
	{ "INDIRECT was not", ON_BOTH_PACKED, TX, false, 14, 2, 0, INDIRECT },
	{ "the ring ahead", ON_BOTH_SPLIT, TX, true, 2, 2, ~0u, 65 },
	{ "names no descriptor", ON_BOTH_SPLIT, TX, true, 4, 2, ~0u, 64 },
	{ "not used yet", ON_BOTH_SPLIT, RX, true, 6, 2, ~0u, 0 },
	/* A chain that goes on at itself, and one outside. */
	{ "not used yet", ON_BOTH_SPLIT, TX, false, 12, 4, ~0u, NEXT },
	{ "no such", ON_BOTH_SPLIT, TX, false, 12, 4, ~0u, NEXT | 1000 << 16 },
	{ "before the others", ON_BOTH_PACKED, TX, false, 14, 2, 0, NEXT },
	{ "not used yet", ON_BOTH_PACKED, RX, false, 28, 2, ~0u, 0 },
	{ "beyond the ring", ON_BOTH_PACKED, RX, false, 12, 2, ~0u, 64 },
};

DEVICE_TEST(ON_VIRTIO, mistakes_in_rings_are_recorded)
{
	struct vnet_config config = plain_config(0);
	const uint8_t bytes[60] = { 2 };
	struct harness harness;

	config.is_held = true;
	for (size_t i = 0; i < sizeof(scribbles) / sizeof(scribbles[0]); i++) {
		uint8_t *at;
		uint64_t value = 0;

		if (!(scribbles[i].on & device->bit))
			continue;
		make_device(&harness, RUNNING, &config);
		send_frame(&harness, bytes, sizeof(bytes));
		at = ring_of(&harness, scribbles[i].queue,
			     scribbles[i].is_avail) +
		     scribbles[i].at;
		memcpy(&value, at, scribbles[i].n_bytes);
		if (scribbles[i].n_bytes == 8) /* its neighbour's */
			value = vnet_get64(at - 16) + 100;
		value = (value & ~(uint64_t)scribbles[i].clear) |
			scribbles[i].set;
		memcpy(at, &value, scribbles[i].n_bytes);
		/* Now the device looks. */
		harness.v->config.is_held = false;
		model_step(harness.m);
		check_mistake(&harness, scribbles[i].words);
	}
}

DEVICE_TEST(ON_VIRTIO, wrong_notification_data_is_recorded)
{
	const struct vnet_config config =
		plain_config(VNET_BIT(VNET_NOTIFICATION_DATA));
	const uint8_t bytes[60] = { 2 };
	struct harness harness;
	uint64_t bell;

	make_device(&harness, RUNNING, &config);
	bell = NOTIFY + 4 * vnet_notify_off(harness.v, TX);
	send_frame(&harness, bytes, sizeof(bytes));
	assert_string_equal(model_violations(harness.m), "");
	model_write(harness.m, NOTIFY_BAR, bell, 4, 7 << 16 | TX);
	assert_recorded(&harness, "NOTIFICATION_DATA");
	model_write(harness.m, NOTIFY_BAR, bell, 2, TX);
	check_mistake(&harness, "doorbell of 2 bytes");
}

/* Two bytes of a header that asks for segments of a TCP packet over IPv4. */
DEVICE_TEST(ON_SPLIT, wrong_headers_are_recorded)
{
	static const struct {
		uint64_t features;
		uint32_t at;
		uint16_t value;
		const char *words;
	} cases[] = {
		{ 0, 0, 0x0101, "NEEDS_CSUM without" },
		{ 1, 0, 0x0102, "only a device" },
		{ 1, 0, 0x0101, "without its feature" },
		{ 1, 0, 0x8001, "GSO_ECN" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0100, "without NEEDS" },
		{ 1 | VNET_BIT(VNET_HOST_TSO6), 0, 0x0401, "not that of" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0201, "unknown" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 2, 53, "hdr_len" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 4, 0, "gso_size" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 6, 36, "not where" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 8, 4000, "beyond" },
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 10, 1, "num_buffers" },
		/* Right, of a sum that is not the pseudo-header's. */
		{ 1 | VNET_BIT(VNET_HOST_TSO4), 0, 0x0101, "pseudo-header" },
	};
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	const struct packet_kind kind = { .n_payload = 1000 };
	uint8_t bytes[2048];
	struct harness harness;

	for (size_t i = 0; i < N; i++) {
		const struct vnet_config config =
			plain_config(cases[i].features);
		const uint8_t good[12] = {
			1, VNET_GSO_TCPV4, 54, 0, 0xf4, 1, 34, 0, 16
		};
		const uint32_t n = packet_of(bytes, &kind, true);
		uint8_t *header;

		bytes[34 + 16] ^= i == N - 1;
		make_device(&harness, RUNNING, &config);
		harness.m->is_lazy = true;
		header = harness.base + send_frame(&harness, bytes, n) - 12;
		memcpy(header, good, sizeof(good));
		vnet_put16(header + cases[i].at, cases[i].value);
		model_step(harness.m);
		assert_int_equal(model_wire_n(harness.wire, 1), 0);
		check_mistake(&harness, cases[i].words);
	}
}

/* What becomes of the driver's next command. */
static const struct command {
	uint8_t class, number;
	uint32_t n_bytes;
	bool is_disordered;
} * command;
static const struct model_ops *honest;

static void write_register(struct model *m, uint32_t bar, uint64_t offset,
			   uint32_t n_bytes, uint64_t value)
{
	struct vnet *v = vnet_of(m);
	struct vnet_queue *q = vnet_ctrl_queue(v);

	if (bar == NOTIFY_BAR && command != NULL &&
	    offset == NOTIFY + 4u * vnet_notify_off(v, q->idx)) {
		uint8_t *descs = model_dma(m, q->desc, 16 * q->size);
		uint8_t *first = descs + 16 * (q->avail_pos % q->size);
		uint8_t *second = descs + 16 * ((q->avail_pos + 1) % q->size);
		uint8_t *header = model_dma(m, vnet_get64(first), 2);
		uint8_t *data = model_dma(m, vnet_get64(second), 64);

		header[0] = command->class;
		header[1] = command->number;
		memset(data, 0, 64);
		data[4] = 1;
		vnet_put32(second + 8, command->n_bytes);
		first[14] |= command->is_disordered ? WRITABLE : 0;
		command = NULL;
	}
	honest->write(m, bar, offset, n_bytes, value);
}

DEVICE_TEST(ON_PACKED, commands_that_no_device_takes_are_recorded)
{
	static const struct command cases[] = {
		{ 0, 0, 2, false },  { 0, 6, 1, false },  { 1, 0, 3, false },
		{ 1, 1, 5, false },  { 1, 2, 6, false },  { 2, 0, 1, false },
		{ 2, 2, 2, false },  { 3, 0, 1, false },  { 4, 0, 2, false },
		{ 4, 1, 10, false }, { 4, 1, 12, false }, { 4, 2, 12, false },
		{ 4, 3, 1, false },  { 5, 0, 7, false },  { 5, 1, 8, false },
		{ 6, 0, 7, false },  { 6, 2, 11, false }, { 6, 4, 8, false },
		{ 9, 0, 1, false },  { 0, 0, 1, true },
	};
	static struct model_ops ops;
	struct harness harness;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_device(&harness, RUNNING, NULL);
		honest = harness.m->ops;
		ops = *honest;
		ops.write = write_register;
		harness.m->ops = &ops;
		command = &cases[i];
		assert_int_equal(mr_port_set_promisc(harness.port, 1, NULL),
				 -EIO);
		check_mistake(&harness, cases[i].is_disordered ?
						"readable behind writable" :
						"control");
	}
}

int main(void)
{
	return devices_run(ON_VIRTIO);
}
