/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "rings.h"

struct fake fake;
static const struct model_ops *honest;

static void write_register(struct model *m, uint32_t bar, uint64_t offset,
			   uint32_t n_bytes, uint64_t value)
{
	const uint64_t n_before = vnet_of(m)->stats.n_doorbells;

	honest->write(m, bar, offset, n_bytes, value);
	if (!fake.polls_at_bells || vnet_of(m)->stats.n_doorbells == n_before)
		return;
	model_unlock(m);
	assert_int_equal(mr_port_poll(fake.harness.port), 0);
	model_lock(m);
}

/* What has to be offered, and asked for, to have such a port. */
static uint64_t features_of(struct fake_config config, char *options, size_t n)
{
	uint64_t features = config.features | VNET_BIT(VNET_VERSION_1) |
			    VNET_BIT(VNET_ACCESS_PLATFORM) |
			    VNET_BIT(VNET_STATUS);
	const bool has_hash = features >> VNET_HASH_REPORT & 1;

	if (has_hash)
		features |= VNET_BIT(VNET_CTRL_VQ) | VNET_BIT(VNET_RSS);
	snprintf(options, n, "rx-ring=%u,tx-ring=%u%s%s%s", FAKE_RING,
		 FAKE_RING, has_hash ? ",hash=on" : "",
		 features >> VNET_MRG_RXBUF & 1 ? ",mtu=9000" : "",
		 features >> VNET_GUEST_CSUM & 1 ? ",csum=on" : "");
	return features;
}

void fake_open(struct fake_config config)
{
	static struct model_ops ops;
	struct vnet_config device = { .is_held = true };
	char options[128];

	memset(&fake, 0, sizeof(fake));
	config.features |= ring_features();
	device.features = features_of(config, options, sizeof(options));
	fake.v = vnet_create(&device);
	assert_true(fake.v != NULL);
	honest = fake.v->model.ops;
	ops = *honest;
	ops.write = write_register;
	fake.v->model.ops = &ops;
	harness_begin(&fake.harness, &fake.v->model,
		      (struct mr_pool_config){
			      .n_pages = config.n_pages != 0 ? config.n_pages :
							       FAKE_PAGES,
			      .page_bytes = config.page_bytes,
			      .tailroom_bytes = config.tailroom_bytes },
		      NULL);
	harness_open(&fake.harness, options);
	/* Not more than was asked for. */
	assert_int_equal(fake.v->features & config.features, config.features);
	fake.cache = fake.harness.cache;
	fake.port = (struct virtio_port *)fake.harness.port;
	fake.rxq = &fake.port->rxqs[0];
	fake.txq = &fake.port->txqs[0];
}

void fake_close(void)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(fake_tx_stats().pending, fake.txq->n_frames);
	mr_port_close(fake.harness.port);
	fake.harness.port = NULL;
	mr_cache_flush(fake.cache);
	assert_int_equal(mr_pool_stats(fake.harness.pool, &stats), 0);
	assert_int_equal(stats.free_invalid + stats.free_double +
				 stats.free_over,
			 fake.n_invalid);
	/* What a device said wrong in a ring, it may have said of anything. */
	model_forgive(fake.harness.m);
	harness_close(&fake.harness);
	vnet_destroy(fake.v);
	model_wire_destroy(fake.harness.wire);
}

/* ---- rings ---- */

static bool is_packed(void)
{
	return vnet_has(fake.v, VNET_RING_PACKED);
}

static struct vnet_queue *mapped(uint32_t queue)
{
	struct vnet_queue *q = fake_queue(queue);

	assert_true(vnet_queue_map(fake.v, q));
	return q;
}

struct fake_chain fake_take(uint32_t queue)
{
	struct vnet_queue *q = mapped(queue);
	struct vnet_element e = { .n_segs = 0 };
	struct fake_chain chain = { 0 };
	int n;

	/* Which are out, the test knows. */
	memset(q->is_out, 0, VNET_MAX_RING * sizeof(*q->is_out));
	n = vnet_layout(fake.v)->take(fake.v, q, &e);
	if (n < 0)
		fail_msg("%s", model_violations(fake.harness.m));
	if (n == 0)
		return chain;
	assert_true(e.n_segs <= 20);
	chain.id = e.id;
	chain.n = e.n_segs;
	for (uint32_t i = 0; i < e.n_segs; i++) {
		chain.parts[i].bytes = e.segs[i].bytes;
		chain.parts[i].len = e.segs[i].n_bytes;
		chain.parts[i].is_written = e.segs[i].is_written;
	}
	return chain;
}

void fake_use_batch(uint32_t queue, uint32_t id, uint32_t n_bytes,
		    uint32_t n_chains, uint32_t n_descs)
{
	struct vnet_queue *q = mapped(queue);
	const struct vnet_used used = {
		.id = (uint16_t)id,
		.n_steps = (uint16_t)(is_packed() ? n_descs : n_chains),
		.n_written = n_bytes,
	};

	vnet_layout(fake.v)->put_used(fake.v, q, &used, 1);
}

void fake_use(uint32_t queue, uint32_t id, uint32_t n_bytes, uint32_t n_descs)
{
	fake_use_batch(queue, id, n_bytes, 1, n_descs);
}

void fake_suppress(uint32_t queue, bool is_suppressed)
{
	vnet_put16(mapped(queue)->device_area + (is_packed() ? 2 : 0),
		   is_suppressed);
}

void fake_want_event(uint32_t queue, uint16_t number)
{
	const struct vnet_queue *q = mapped(queue);
	const bool wrap = number / q->size % 2 == 0;

	if (!is_packed()) {
		vnet_put16(q->device_area + 4 + 8 * q->size, number);
		return;
	}
	vnet_put16(q->device_area, (uint16_t)(number % q->size | wrap << 15));
	vnet_put16(q->device_area + 2, 2);
}

bool fake_wants_interrupt(uint32_t queue)
{
	const struct vnet_queue *q = mapped(queue);

	if (is_packed())
		return vnet_get16(q->driver_area + 2) == 0;
	if (vnet_has(fake.v, VNET_EVENT_IDX))
		return vnet_get16(q->driver_area + 4 + 2 * q->size) ==
		       (uint16_t)q->used_pos;
	return vnet_get16(q->driver_area) == 0;
}

void fake_set_gone(void)
{
	fake.harness.m->faults.all_ones = 1;
}

void fake_set_link(bool is_up)
{
	const struct model_faults faults = { .link_down = !is_up };

	model_set_faults(fake.harness.m, &faults);
	assert_int_equal(mr_port_poll(fake.harness.port), 1);
}

/* ---- frames ---- */

struct fake_chain fake_receive(uint32_t n_bytes, uint8_t seed,
			       const struct virtio_header *header)
{
	const uint32_t n_header = fake.port->header_bytes;
	const struct virtio_header plain = { .n_buffers = 1 };
	const struct fake_chain chain = fake_take(0);
	uint8_t *bytes = chain.parts[0].bytes;

	assert_int_equal(chain.n, 1);
	assert_true(chain.parts[0].is_written);
	assert_true(chain.parts[0].len >= n_header + n_bytes);
	memcpy(bytes, header != NULL ? header : &plain, n_header);
	for (uint32_t i = 0; i < n_bytes; i++)
		bytes[n_header + i] = (uint8_t)(seed + i);
	return chain;
}

struct mr_frame fake_frame(uint32_t offset, uint32_t n_bytes, uint8_t seed)
{
	struct mr_frame frame = { .len = n_bytes };
	uint8_t *bytes;

	assert_int_equal(mr_frag_alloc_bulk(fake.cache, &frame.addr, 1,
					    fake.port->base.page_bytes),
			 1);
	bytes = mr_frame_data(fake.harness.base, &frame);
	memset(bytes, 0xee, fake.port->base.page_bytes);
	frame.addr += offset;
	for (uint32_t i = 0; i < n_bytes; i++)
		bytes[offset + i] = (uint8_t)(seed + i);
	return frame;
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
