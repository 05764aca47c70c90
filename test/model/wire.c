/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "wire.h"

struct wire_frame {
	uint8_t *bytes;
	uint32_t n_bytes;
};

/* Frames to one end: the n slots from first on. */
struct direction {
	struct wire_frame *slots;
	uint32_t first, n;
	struct model *model; /* at that end; NULL: the test */
};

struct model_wire {
	pthread_mutex_t lock; /* taken inside a model's lock, never around it */
	struct direction to[2];
	uint32_t n_slots;
};

struct model_wire *model_wire_create(uint32_t n_frames)
{
	struct model_wire *wire = calloc(1, sizeof(*wire));

	if (wire == NULL)
		return NULL;
	pthread_mutex_init(&wire->lock, NULL);
	wire->n_slots = n_frames;
	for (int i = 0; i < 2; i++) {
		wire->to[i].slots =
			calloc(n_frames, sizeof(wire->to[i].slots[0]));
		if (wire->to[i].slots == NULL) {
			model_wire_destroy(wire);
			return NULL;
		}
	}
	return wire;
}

static struct wire_frame *slot(struct model_wire *wire, uint32_t to, uint32_t i)
{
	const struct direction *d = &wire->to[to];

	return &d->slots[(d->first + i) % wire->n_slots];
}

void model_wire_destroy(struct model_wire *wire)
{
	if (wire == NULL)
		return;
	for (uint32_t to = 0; to < 2; to++) {
		for (uint32_t i = 0; i < wire->to[to].n; i++)
			free(slot(wire, to, i)->bytes);
		free(wire->to[to].slots);
	}
	pthread_mutex_destroy(&wire->lock);
	free(wire);
}

void model_wire_attach(struct model_wire *wire, uint32_t end, struct model *m)
{
	pthread_mutex_lock(&wire->lock);
	wire->to[end].model = m;
	pthread_mutex_unlock(&wire->lock);
	if (m == NULL)
		return;
	model_lock(m);
	m->wire = wire;
	m->end = end;
	model_unlock(m);
}

bool wire_push(struct model_wire *wire, uint32_t to, const uint8_t *bytes,
	       uint32_t n_bytes)
{
	struct direction *d = &wire->to[to];
	bool is_taken = true;

	assert(n_bytes > 0 && n_bytes <= WIRE_MAX_BYTES);
	pthread_mutex_lock(&wire->lock);
	if (d->n < wire->n_slots) {
		struct wire_frame *frame = slot(wire, to, d->n);

		/* Of its very size: ASan sees what is read behind it. */
		frame->bytes = malloc(n_bytes);
		if (frame->bytes == NULL)
			abort();
		memcpy(frame->bytes, bytes, n_bytes);
		frame->n_bytes = n_bytes;
		d->n++;
	} else {
		is_taken = false;
	}
	pthread_mutex_unlock(&wire->lock);
	return is_taken;
}

const uint8_t *wire_peek(struct model_wire *wire, uint32_t to,
			 uint32_t *ret_n_bytes)
{
	const uint8_t *bytes = NULL;

	pthread_mutex_lock(&wire->lock);
	if (wire->to[to].n > 0) {
		bytes = slot(wire, to, 0)->bytes;
		*ret_n_bytes = slot(wire, to, 0)->n_bytes;
	}
	pthread_mutex_unlock(&wire->lock);
	return bytes;
}

void wire_pop(struct model_wire *wire, uint32_t to)
{
	struct direction *d = &wire->to[to];

	pthread_mutex_lock(&wire->lock);
	assert(d->n > 0);
	free(slot(wire, to, 0)->bytes);
	d->first = (d->first + 1) % wire->n_slots;
	d->n--;
	pthread_mutex_unlock(&wire->lock);
}

uint32_t model_wire_n(struct model_wire *wire, uint32_t end)
{
	uint32_t n;

	pthread_mutex_lock(&wire->lock);
	n = wire->to[end].n;
	pthread_mutex_unlock(&wire->lock);
	return n;
}

/* Frames moved at the other end: its model has something to do. */
static void step_other(struct model_wire *wire, uint32_t end)
{
	struct model *m;

	pthread_mutex_lock(&wire->lock);
	m = wire->to[1 - end].model;
	pthread_mutex_unlock(&wire->lock);
	if (m != NULL)
		model_poke(m);
}

bool model_wire_send(struct model_wire *wire, uint32_t end,
		     const uint8_t *bytes, uint32_t n_bytes)
{
	const bool is_taken = wire_push(wire, 1 - end, bytes, n_bytes);

	step_other(wire, end);
	return is_taken;
}

uint32_t model_wire_receive(struct model_wire *wire, uint32_t end,
			    uint8_t *bytes, uint32_t room)
{
	uint32_t n_bytes;
	const uint8_t *from = wire_peek(wire, end, &n_bytes);

	if (from == NULL)
		return 0;
	assert(n_bytes <= room);
	memcpy(bytes, from, n_bytes);
	wire_pop(wire, end);
	step_other(wire, end);
	return n_bytes;
}
