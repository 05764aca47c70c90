/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qmempool and alf_queue, modelled after their description: each thread has a
 * FIFO of 32 objects; behind it is a queue that all share, with 16 objects per
 * exchange; behind that is malloc, where the kernel has slab. Faults that the
 * description lists are not repeated. That a thread waits for another one's
 * tail belongs to the algorithm, and stays.
 */
#ifndef MODEL_QMEMPOOL_H
#define MODEL_QMEMPOOL_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hop.h"

enum {
	QM_LOCAL = 32,
	QM_SHARED = 1024,
	QM_BULK = 16,
	QM_REFILL = 2 * QM_BULK,
};

struct qm_local {
	alignas(64) uint32_t head, tail;
	void *objects[QM_LOCAL];
};

struct qmempool {
	uint32_t object_bytes, n_threads;
	alignas(64) uint32_t producer_head;
	uint32_t producer_tail;
	alignas(64) uint32_t consumer_head;
	uint32_t consumer_tail;
	alignas(64) void *shared[QM_SHARED];
	struct qm_local locals[];
};

static inline struct qmempool *qm_make(uint32_t n_threads,
				       uint32_t object_bytes)
{
	const size_t n_bytes =
		sizeof(struct qmempool) + n_threads * sizeof(struct qm_local);
	struct qmempool *pool = aligned_alloc(64, (n_bytes + 63) / 64 * 64);

	if (pool == NULL)
		return NULL;
	memset(pool, 0, n_bytes);
	pool->object_bytes = object_bytes;
	pool->n_threads = n_threads;
	return pool;
}

static inline void qm_wait(const uint32_t *tail, uint32_t value)
{
	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) != value)
		relax();
}

/* All n or none. */
static inline bool qm_enqueue(struct qmempool *pool, void *const *objects,
			      uint32_t n)
{
	uint32_t head = __atomic_load_n(&pool->producer_head, __ATOMIC_RELAXED);

	do {
		const uint32_t tail =
			__atomic_load_n(&pool->consumer_tail, __ATOMIC_ACQUIRE);

		if (QM_SHARED - (head - tail) < n)
			return false;
	} while (!__atomic_compare_exchange_n(&pool->producer_head, &head,
					      head + n, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < n; i++)
		pool->shared[(head + i) % QM_SHARED] = objects[i];
	qm_wait(&pool->producer_tail, head);
	__atomic_store_n(&pool->producer_tail, head + n, __ATOMIC_RELEASE);
	return true;
}

static inline uint32_t qm_dequeue(struct qmempool *pool, void **objects,
				  uint32_t n)
{
	uint32_t head = __atomic_load_n(&pool->consumer_head, __ATOMIC_RELAXED);
	uint32_t got;

	do {
		const uint32_t tail =
			__atomic_load_n(&pool->producer_tail, __ATOMIC_ACQUIRE);

		got = tail - head < n ? tail - head : n;
		/* The head is older than the tail: read it again. */
		if (tail - head > QM_SHARED)
			got = 1;
		else if (got == 0)
			return 0;
	} while (!__atomic_compare_exchange_n(
		&pool->consumer_head, &head, head + got, false,
		__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < got; i++)
		objects[i] = pool->shared[(head + i) % QM_SHARED];
	qm_wait(&pool->consumer_tail, head);
	__atomic_store_n(&pool->consumer_tail, head + got, __ATOMIC_RELEASE);
	return got;
}

static inline void *qm_alloc(struct qmempool *pool, uint32_t thread)
{
	struct qm_local *local = &pool->locals[thread];
	void *objects[QM_REFILL];
	uint32_t n;

	if (local->head != local->tail)
		return local->objects[local->tail++ % QM_LOCAL];
	n = qm_dequeue(pool, objects, QM_BULK);
	if (n > 0) {
		for (uint32_t i = 1; i < n; i++)
			local->objects[local->head++ % QM_LOCAL] = objects[i];
		return objects[0];
	}
	for (n = 0; n < QM_REFILL; n++) {
		objects[n] = malloc(pool->object_bytes);
		if (objects[n] == NULL)
			break;
	}
	if (n == QM_REFILL && qm_enqueue(pool, objects, n))
		return malloc(pool->object_bytes);
	while (n > 0)
		free(objects[--n]);
	return malloc(pool->object_bytes);
}

static inline void qm_free(struct qmempool *pool, uint32_t thread, void *object)
{
	struct qm_local *local = &pool->locals[thread];
	void *objects[QM_BULK];
	uint32_t n;

	if (local->head - local->tail < QM_LOCAL) {
		local->objects[local->head++ % QM_LOCAL] = object;
		return;
	}
	for (uint32_t i = 0; i < QM_BULK - 1; i++)
		objects[i] = local->objects[local->tail++ % QM_LOCAL];
	objects[QM_BULK - 1] = object;
	if (qm_enqueue(pool, objects, QM_BULK))
		return;
	for (uint32_t i = 0; i < QM_BULK; i++)
		free(objects[i]);
	for (uint32_t round = 0; round < QM_REFILL / QM_BULK; round++) {
		n = qm_dequeue(pool, objects, QM_BULK);
		while (n > 0)
			free(objects[--n]);
	}
}

/* Objects in the queues are freed, too. */
static inline void qm_destroy(void *state)
{
	struct qmempool *pool = state;
	void *object;

	for (uint32_t i = 0; i < pool->n_threads; i++) {
		struct qm_local *local = &pool->locals[i];

		while (local->head != local->tail)
			free(local->objects[local->tail++ % QM_LOCAL]);
	}
	while (qm_dequeue(pool, &object, 1) == 1)
		free(object);
	free(pool);
}

#endif
