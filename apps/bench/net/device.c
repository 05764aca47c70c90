/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated device.
 *
 *     rx --> loss --> corruption --> rate and its queue --> reordering -->
 *         doubling --> delay --> tx
 *
 * Every Nth frame is the Nth of those that get as far as that step.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/device.h"

enum {
	DEFAULT_QUEUE = 64,
	DELAY_ROOM = 16384, /* frames on the way, where there is a delay */
	SPARE_ROOM = 4 * MR_BURST_MAX + 4,
	STAMP_AT = 18, /* before the end of a frame: the stamp's first byte */
	/* A frame that is to be overtaken continues if no other arrives. */
	MAX_ASIDE_NS = 10000000,
};

struct held {
	struct mr_frame frame;
	uint64_t out_ns;
};

struct device {
	struct device_config config;
	uint8_t *base;
	struct device_counts counts;
	/* Frames that got as far as corruption, reordering, doubling. */
	uint64_t n_passed, n_queued, n_put;
	double free_ns; /* when the server is free */
	double period_ns;
	/* The frame that is held back until so many more have overtaken it. */
	struct held aside;
	uint32_t n_to_wait; /* 0: there is none */
	/* Frames on their way, in order of out_ns. */
	struct held *ring;
	uint32_t room, first, n;
};

uint32_t device_max_held(const struct device_config *config)
{
	const uint32_t n_queue =
		config->queue_frames > 0 ? config->queue_frames : DEFAULT_QUEUE;

	return SPARE_ROOM + (config->rate_pps > 0 ? n_queue : 0) +
	       (config->delay_ns > 0 ? DELAY_ROOM : 0);
}

int device_open(const struct device_config *config, void *base,
		struct device **ret, struct mr_reason *why)
{
	struct device *device = calloc(1, sizeof(*device));

	if (device != NULL) {
		device->room = device_max_held(config);
		device->ring = calloc(device->room, sizeof(device->ring[0]));
	}
	if (device == NULL || device->ring == NULL) {
		free(device);
		snprintf(why->text, sizeof(why->text),
			 "no memory for the simulated DUT");
		return -ENOMEM;
	}
	device->config = *config;
	device->base = base;
	if (config->queue_frames == 0)
		device->config.queue_frames = DEFAULT_QUEUE;
	if (config->rate_pps > 0)
		device->period_ns = 1e9 / config->rate_pps;
	*ret = device;
	return 0;
}

static void drop_frame(const struct mr_frame *frame, struct mr_cache *cache,
		       uint64_t *counter)
{
	(*counter)++;
	mr_frame_free_bulk(cache, frame, 1);
}

static void append_held(struct device *device, const struct held *held)
{
	struct held *last =
		&device->ring[(device->first + device->n) % device->room];

	*last = *held;
	/* A frame that was overtaken leaves after those that overtook it. */
	if (device->n > 0) {
		const struct held *before =
			&device->ring[(device->first + device->n - 1) %
				      device->room];

		if (last->out_ns < before->out_ns)
			last->out_ns = before->out_ns;
	}
	device->n++;
}

static void put_held(struct device *device, const struct held *held,
		     struct mr_cache *cache)
{
	const uint32_t every = device->config.dup_every;

	append_held(device, held);
	device->n_put++;
	if (every > 0 && device->n_put % every == 0 &&
	    mr_frame_ref(cache, &held->frame, 1) == 0) {
		device->counts.duplicated++;
		append_held(device, held);
	}
}

static void put_aside(struct device *device, struct mr_cache *cache)
{
	put_held(device, &device->aside, cache);
	device->n_to_wait = 0;
}

/* Put a frame in the order of departure; there is room. */
static void order_held(struct device *device, const struct held *held,
		       struct mr_cache *cache)
{
	const struct device_config *config = &device->config;

	device->n_queued++;
	if (config->reorder_every > 0 &&
	    device->n_queued % config->reorder_every == 0) {
		device->counts.reordered++;
		device->aside = *held;
		device->n_to_wait = config->reorder_by;
		return;
	}
	put_held(device, held, cache);
	if (device->n_to_wait > 0 && --device->n_to_wait == 0)
		put_aside(device, cache);
}

/* When the server has finished a frame that arrives now. False: its queue is
 * full. */
static bool serve_frame(struct device *device, uint64_t now_ns,
			uint64_t *ret_ns)
{
	const double now = (double)now_ns;

	*ret_ns = now_ns;
	if (device->period_ns == 0)
		return true;
	if (device->free_ns < now)
		device->free_ns = now;
	/* One in service, and as many as the queue holds. */
	if (device->free_ns - now >
	    device->period_ns * device->config.queue_frames)
		return false;
	device->free_ns += device->period_ns;
	*ret_ns = (uint64_t)device->free_ns;
	return true;
}

static void take_arrival(struct device *device, const struct mr_frame *frame,
			 struct mr_cache *cache, uint64_t now_ns)
{
	const struct device_config *config = &device->config;
	struct device_counts *counts = &device->counts;
	struct held held = { .frame = *frame };

	counts->received++;
	if (config->loss_every > 0 &&
	    counts->received % config->loss_every == 0) {
		drop_frame(frame, cache, &counts->lost);
		return;
	}
	device->n_passed++;
	if (config->corrupt_every > 0 && frame->len >= STAMP_AT &&
	    device->n_passed % config->corrupt_every == 0) {
		device->base[frame->addr + frame->len - STAMP_AT] ^= 1;
		counts->corrupted++;
	}
	if (!serve_frame(device, now_ns, &held.out_ns)) {
		drop_frame(frame, cache, &counts->overrun);
		return;
	}
	held.out_ns += config->delay_ns;
	order_held(device, &held, cache);
}

/* Send what is due. Returns how many frames. */
static uint32_t send_due(struct device *device, struct mr_txq *to,
			 struct mr_cache *cache, uint64_t now_ns)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n = 0;

	if (device->n_to_wait > 0 &&
	    device->aside.out_ns + MAX_ASIDE_NS <= now_ns)
		put_aside(device, cache);
	while (n < device->n && n < MR_BURST_MAX) {
		const struct held *held =
			&device->ring[(device->first + n) % device->room];

		if (held->out_ns > now_ns)
			break;
		frames[n++] = held->frame;
	}
	if (n == 0)
		return 0;
	n = mr_tx_burst(to, cache, frames, n);
	device->first = (device->first + n) % device->room;
	device->n -= n;
	device->counts.forwarded += n;
	return n;
}

/* How many frames may arrive: each may double, and release one that was held
 * back. Others wait where they are and are not lost. */
static uint32_t count_room(const struct device *device)
{
	const uint32_t n_free = device->room - device->n;
	const uint32_t n = n_free > 4 ? (n_free - 4) / 4 : 0;

	return n < MR_BURST_MAX ? n : MR_BURST_MAX;
}

uint32_t device_step(struct device *device, struct mr_rxq *from,
		     struct mr_txq *to, struct mr_cache *cache, uint64_t now_ns)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_moved = send_due(device, to, cache, now_ns);
	const uint32_t n = mr_rx_burst(from, cache, frames, count_room(device));

	for (uint32_t i = 0; i < n; i++)
		take_arrival(device, &frames[i], cache, now_ns);
	n_moved += n;
	return n > 0 ? n_moved + send_due(device, to, cache, now_ns) : n_moved;
}

uint64_t device_next_ns(const struct device *device)
{
	if (device->n > 0)
		return device->ring[device->first].out_ns;
	if (device->n_to_wait > 0)
		return device->aside.out_ns + MAX_ASIDE_NS;
	return UINT64_MAX;
}

void device_counts(const struct device *device, struct device_counts *ret)
{
	*ret = device->counts;
	ret->held = device->n + (device->n_to_wait > 0);
}

void device_reset(struct device *device, struct mr_cache *cache)
{
	if (device->n_to_wait > 0)
		put_aside(device, cache);
	for (uint32_t i = 0; i < device->n; i++)
		drop_frame(
			&device->ring[(device->first + i) % device->room].frame,
			cache, &device->counts.lost);
	device->n = device->first = 0;
	device->free_ns = 0;
	device->counts = (struct device_counts){ 0 };
	device->n_passed = device->n_queued = device->n_put = 0;
}

void device_close(struct device *device, struct mr_cache *cache)
{
	if (device == NULL)
		return;
	device_reset(device, cache);
	free(device->ring);
	free(device);
}
