/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of an object pool: it records which objects are allocated and what
 * they contain. Unit tests and a fuzzer choose the calls.
 */
#ifndef SUPPORT_OBJ_MODEL_H
#define SUPPORT_OBJ_MODEL_H

#include "support/objpool_unit.h"

enum {
	MODEL_CACHES = 3,
	MODEL_OBJECTS = 5000,
	MODEL_BYTES = 1 << 20, /* of all objects and the gaps between them */
	MODEL_BURST = 512
};

struct obj_model {
	struct objects f; /* has caches[0] */
	struct mr_objcache *caches[MODEL_CACHES];
	bool is_callers;
	uint32_t n_objects, stride, align_bytes;
	uint64_t n_invalid;
	char *base;
	uint64_t n_bytes;
	/* Allocated objects, in order; at first, all objects in the caller's
	 * memory. */
	uint32_t n_out;
	void *out[MODEL_OBJECTS];
	bool is_out[MODEL_BYTES / 8]; /* per 8 bytes */
};

static inline void obj_model_check(const struct obj_model *m)
{
	const struct mr_objpool_stats s = obj_stats(m->f.pool);

	assert_obj_in_flight(m->f.pool, m->n_out);
	assert_true(s.n_cached <= s.n_free);
	assert_true(s.n_cached <=
		    2 * MODEL_CACHES * m->f.pool->depot.magazine_pages);
	assert_int_equal(s.free_invalid, m->n_invalid);
	assert_int_equal(s.object_bytes, m->stride);
}

static inline uint8_t obj_mark(const struct obj_model *m, const void *object)
{
	return (uint8_t)(((const char *)object - m->base) >> 3) | 1;
}

static inline void obj_set_out(struct obj_model *m, const void *object,
			       bool is_out)
{
	const size_t at = (size_t)((const char *)object - m->base) / 8;

	assert_true(at + m->stride / 8 <= MODEL_BYTES / 8);
	for (uint32_t i = 0; i < m->stride / 8; i++) {
		assert_int_equal(m->is_out[at + i], !is_out);
		m->is_out[at + i] = is_out;
	}
}

/*
 * Record an allocated object. It must not overlap another one. Its bytes must
 * be zero the first time, and unchanged since they were freed after that.
 */
static inline void obj_note(struct obj_model *m, void *object)
{
	const uint8_t *bytes = object;

	obj_set_out(m, object, true);
	assert_true(m->n_out < m->n_objects);
	for (uint32_t i = 0; i < m->stride; i++)
		assert_true(bytes[i] == 0 || bytes[i] == obj_mark(m, object));
	memset(object, obj_mark(m, object), m->stride);
	m->out[m->n_out++] = object;
}

static inline void obj_do_alloc(struct obj_model *m, uint32_t cache_idx,
				uint32_t n)
{
	const uint32_t n_free = m->n_objects - m->n_out;
	void *objects[MODEL_BURST];
	const uint32_t n_got =
		mr_obj_alloc_bulk(m->caches[cache_idx], objects, n);

	assert_true(n_got <= n && n_got <= n_free);
	for (uint32_t i = 0; i < n_got; i++)
		obj_note(m, objects[i]);
}

/* An invalid address: inside an object, next to the objects, or far away. */
static inline void *obj_bad(struct obj_model *m, char *object, uint32_t by)
{
	const uint32_t within = 1 + by % (m->stride - 1);
	const uint32_t unit = m->is_callers ? m->align_bytes : m->stride;

	m->n_invalid++;
	switch (by % 5) {
	case 0:
		return object + (within % unit == 0 ? 4 : within);
	case 1:
		return m->base - unit;
	case 2: /* caller's memory: inside, but an object would not fit */
		return m->base + m->n_bytes -
		       (m->is_callers && m->stride > unit ? unit : 0);
	case 3:
		return NULL;
	default:
		return (void *)((uintptr_t)m->base ^ UINT64_C(1)
							     << (24 + by % 40));
	}
}

/* Free the n objects allocated last, or every other one of twice as many. */
static inline void obj_do_free(struct obj_model *m, uint32_t cache_idx,
			       uint32_t n, bool is_every_second, bool has_bad)
{
	void *objects[2 * MODEL_BURST];
	uint32_t n_taken = 0, n_kept, first;

	n = mri_min_u32(is_every_second ? 2 * n : n, m->n_out);
	first = n_kept = m->n_out - n;
	for (uint32_t i = first; i < m->n_out; i++) {
		const uint8_t *bytes = m->out[i];

		if (is_every_second && i % 2 != 0) {
			m->out[n_kept++] = m->out[i];
			continue;
		}
		for (uint32_t b = 0; b < m->stride; b++)
			assert_int_equal(bytes[b], obj_mark(m, m->out[i]));
		obj_set_out(m, m->out[i], false);
		if (has_bad && i % 7 == n % 7)
			objects[n_taken++] = obj_bad(m, m->out[i], n + i);
		objects[n_taken++] = m->out[i];
	}
	m->n_out = n_kept;
	mr_obj_free_bulk(m->caches[cache_idx], objects, n_taken);
}

static inline void obj_do_cache(struct obj_model *m, uint32_t cache_idx)
{
	mr_objcache_destroy(m->caches[cache_idx]);
	assert_int_equal(mr_objcache_create(m->f.pool, &m->caches[cache_idx],
					    NULL),
			 0);
}

static inline void obj_model_step(struct obj_model *m, uint8_t what,
				  uint8_t with)
{
	const uint32_t cache_idx = (with >> 6) % MODEL_CACHES;
	const uint32_t n = (with & 63u) << (what >> 6) | 1;

	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		obj_do_alloc(m, cache_idx, n);
		break;
	case 3:
		obj_do_cache(m, cache_idx);
		break;
	default:
		obj_do_free(m, cache_idx, n, what & 16, what & 8);
		break;
	}
	obj_model_check(m);
}

/* is_callers: the caller provides the memory, and has all objects first. */
static inline void obj_model_open(struct obj_model *m,
				  struct mr_objpool_config config,
				  bool is_callers)
{
	static _Alignas(4096) char memory[MODEL_BYTES];

	memset(m, 0, sizeof(*m));
	config.max_caches = MODEL_CACHES;
	m->is_callers = is_callers;
	m->n_objects = (uint32_t)config.n_objects;
	m->align_bytes = config.align_bytes;
	m->stride = (uint32_t)mri_round_up(config.object_bytes,
					   config.align_bytes);
	m->n_bytes = (uint64_t)m->n_objects * m->stride;
	if (is_callers) {
		m->n_bytes = sizeof(memory);
		memset(memory, 0, sizeof(memory));
		config.memory = memory;
		config.memory_bytes = sizeof(memory);
	}
	objects_open(&m->f, &config);
	m->base = m->f.pool->layout.memory;
	m->caches[0] = m->f.cache;
	for (uint32_t c = 1; c < MODEL_CACHES; c++)
		assert_int_equal(mr_objcache_create(m->f.pool, &m->caches[c],
						    NULL),
				 0);
	for (uint32_t i = 0; is_callers && i < m->n_objects; i++)
		obj_note(m, memory + i * (m->stride + config.align_bytes));
}

/* A single cache must be able to allocate all objects. */
static inline void obj_model_close(struct obj_model *m)
{
	for (uint32_t i = 0; m->n_out > 0; i++)
		obj_do_free(m, i % MODEL_CACHES, 64, false, false);
	for (uint32_t c = 1; c < MODEL_CACHES; c++)
		mr_objcache_destroy(m->caches[c]);
	obj_do_cache(m, 0);
	m->f.cache = m->caches[0];
	while (m->n_out < m->n_objects) {
		const uint32_t n_before = m->n_out;

		obj_do_alloc(m, 0, 64);
		assert_true(m->n_out == m->n_objects ||
			    m->n_out == n_before + 64);
	}
	obj_model_check(m);
	while (m->n_out > 0 && !m->is_callers)
		obj_do_free(m, 0, 64, false, false);
	objects_close(&m->f);
}

#endif
