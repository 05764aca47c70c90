/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extension module millrace._millrace, in the limited C API of Python 3.11
 * (abi3): one binary for all later versions.
 *
 *     Pool <-- Port <-- RxQueue, TxQueue        (<--: has a reference to)
 *       ^
 *     Frames <-- Burst --> memoryviews --> Frames
 *
 * A pool has its own context, region and cache. It cannot be closed while a
 * port is open or a burst has frames, so nothing here points into a freed pool.
 * Each call holds the GIL from beginning to end, so only one thread at a time
 * uses the cache; mr_cache_adopt() hands it over.
 */
#ifndef MILLRACE_PYTHON_BINDING_H
#define MILLRACE_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include <millrace/millrace.h>

/** A pool, with its context, region and cache. */
struct py_pool {
	PyObject_HEAD
	struct mr_ctx *ctx;
	struct mr_pool *pool;   /**< NULL: closed */
	struct mr_cache *cache;
	uint8_t *base;          /**< of its region */
	uint64_t n_bytes;       /**< of its region */
	uint32_t chunk_bytes;
	uint32_t headroom_bytes;
	uint32_t n_users;       /**< ports, and bursts with frames */
	uint32_t n_forks;       /**< mri_n_forks, when it was created */
	unsigned long thread;   /**< the one that uses the cache */
	struct py_pool *next;   /**< in the list for the fork handler */
};

/** An open port. */
struct py_port {
	PyObject_HEAD
	struct py_pool *pool;
	struct mr_port *port;   /**< NULL: closed */
	struct mr_port_info info;
	unsigned long *owners;  /**< threads that use the queues, rx, then tx;
				 *   0: none */
};

/**
 * The entries of a burst, and the exporter of their bytes. A separate type,
 * because the burst refers to the views, which must not refer to the burst.
 */
struct py_frames {
	PyObject_VAR_HEAD
	struct py_pool *pool;
	uint32_t n;
	uint32_t n_exports;     /**< buffers that others hold */
	uint32_t shown;         /**< index of the entry to export next */
	struct mr_frame entries[];
};

/** A burst: some entries, and the views of them that were handed out. */
struct py_burst {
	PyObject_HEAD
	struct py_frames *frames;
	PyObject **views;       /**< one per entry, or NULL; NULL: none yet */
};

/** The number of fork()s between the first process and this one. */
extern uint32_t mri_n_forks;
/** millrace.Error */
extern PyObject *mri_error;
/** The types of the module. */
extern PyTypeObject *mri_pool_type, *mri_port_type, *mri_queue_type,
	*mri_rxq_type, *mri_txq_type, *mri_burst_type, *mri_frames_type;
extern PyType_Spec mri_pool_spec, mri_port_spec, mri_queue_spec, mri_rxq_spec,
	mri_txq_spec, mri_burst_spec, mri_frames_spec;

/** A counter in a struct of statistics. */
struct counter {
	const char *name;
	size_t offset; /**< of a uint64_t */
};

/** A str from text that may have been cut in the middle of a character. */
PyObject *mri_text(const char *text);
/** Raise millrace.Error. @return NULL */
PyObject *mri_raise(int negative_errno, const char *text);
/** A converter for PyArg_Parse...(): "O&" to uint32_t. */
int mri_u32(PyObject *number, void *ret);
/** Free an object of one of the types above. */
void mri_free_object(void *object);
/** Add counters to a dict. @return 0, or -1 with an exception. */
int mri_add_counters(PyObject *dict, const struct counter *counters,
		     const void *stats);
/** For method tables: return the object itself. */
PyObject *mri_self(PyObject *self, PyObject *nothing);

/** Whether @p pool is open in this process; raises if not. */
bool mri_pool_is_usable(const struct py_pool *pool);
/** Whether this process is not the one that created @p pool. */
bool mri_pool_is_foreign(const struct py_pool *pool);
/** The cache of @p pool, for the calling thread. */
struct mr_cache *mri_pool_cache(struct py_pool *pool);

/** Whether a port is open in this process; raises if not. */
bool mri_port_is_usable(const struct py_port *port);
/** Queue rx(i) or tx(i) of a port. @return NULL: raised */
PyObject *mri_queue_new(PyTypeObject *type, PyObject *port, PyObject *args);

/** An empty burst with room for @p n entries. @return NULL: raised */
struct py_burst *mri_burst_new(struct py_pool *pool, uint32_t n);
/** Copy frames from an iterable of bytes-like objects into a new burst. */
PyObject *mri_burst_from(PyObject *pool, PyObject *iterable);
/** The frames of a burst whose views have ended. @return NULL: raised */
struct py_frames *mri_burst_take(PyObject *burst);
/** Set how many entries there are now; the caller frees none of them. */
void mri_frames_set_n(struct py_frames *frames, uint32_t n);

#endif
