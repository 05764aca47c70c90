/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extension module millrace._millrace, in the limited C API of Python 3.11
 * (abi3): one binary for all later versions.
 *
 *     Pool <-- Port <-- RxQueue, TxQueue        (<--: has a reference to)
 *       ^
 *     Frames <-- Burst --> memoryviews --> Frames
 *     Dataplane --> its Pool and Ports;  Worker --> Dataplane
 *
 * A pool has its own context, region and cache. It cannot be closed while a
 * port is open or a burst has frames, so nothing here points into a freed pool.
 * Each call that uses the pool's cache holds the GIL from beginning to end, so
 * only one thread at a time does; mr_cache_adopt() hands it over. A worker of a
 * data plane has a cache of its own, and needs no GIL to receive and send.
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
	uint32_t page_bytes;
	uint32_t headroom_bytes;
	uint32_t n_users;       /**< ports, and bursts with frames */
	uint32_t n_forks;       /**< mri_n_forks, when it was created */
	struct mr_dataplane *dp; /**< whose pool and context it is; or NULL */
	bool is_ending;         /**< to be closed when n_users is 0 */
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
	uint32_t idx;           /**< in the data plane */
	bool is_of_dataplane;   /**< whose workers use the queues, and which
				 *   closes the port */
};

/** A data plane. */
struct py_dataplane {
	PyObject_HEAD
	struct mr_dataplane *dp; /**< NULL: closed; the pool owns it */
	struct py_pool *pool;
	PyObject *ports;         /**< a tuple */
	bool takes_meta;
	bool is_running;
	bool is_stopping;        /**< asked to, even before it runs */
	PyObject *queues;        /**< of fileno()'s thread; NULL: none has one */
	unsigned long thread;    /**< that one */
};

/**
 * The entries of a burst with their metadata, and the exporter of their bytes. A separate type,
 * because the burst refers to the views, which must not refer to the burst.
 */
struct py_frames {
	PyObject_VAR_HEAD
	struct py_pool *pool;
	uint32_t n;
	uint32_t n_exports;     /**< buffers that others hold */
	uint32_t shown;         /**< index of the entry to export next */
	struct mr_meta *metas;  /**< for as many entries; NULL: none */
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
	*mri_rxq_type, *mri_txq_type, *mri_burst_type, *mri_frames_type,
	*mri_dataplane_type, *mri_worker_type;
extern PyType_Spec mri_pool_spec, mri_port_spec, mri_queue_spec, mri_rxq_spec,
	mri_txq_spec, mri_burst_spec, mri_frames_spec, mri_dataplane_spec,
	mri_worker_spec;

/** The Python type of a struct member. */
enum field_kind {
	FIELD_NUMBER,  /**< int: 1, 2, 4 or 8 bytes, unsigned */
	FIELD_INT32,
	FIELD_BOOL,
	FIELD_TEXT,    /**< str */
	FIELD_BYTES,   /**< bytes */
	FIELD_ADDRESS, /**< bytes: 4 or all of them */
};

/** A struct member of the library, with the same name in Python. A table ends
 * with one without a name. */
struct field {
	const char *name;
	uint16_t offset;
	uint16_t n_bytes;
	uint16_t kind;  /**< enum field_kind */
	uint16_t valid; /**< in struct mr_meta: MR_META_* */
};

#define FIELD(type, member, kind, valid)                               \
	{ #member, offsetof(struct type, member),                      \
	  sizeof(((struct type *)NULL)->member), kind, valid }

/** A method with keyword arguments, in a table. */
#define KEYWORDS(name, function, doc)                    \
	{ name, (PyCFunction)(void (*)(void))(function), \
	  METH_VARARGS | METH_KEYWORDS, doc }

/** A str from text that may have been cut in the middle of a character. */
PyObject *mri_text(const char *text);
/** Raise millrace.Error. @return NULL */
PyObject *mri_raise(int negative_errno, const char *text);
/** Free an object of one of the types above. */
void mri_free_object(void *object);
/** For method tables: return the object itself. */
PyObject *mri_self(PyObject *self, PyObject *nothing);

/** A new dict of the struct's members whose bits are set in @p valid.
 * @return NULL: raised */
PyObject *mri_dict_of(const struct field *fields, const void *from,
		      uint32_t valid);
/** Set members from keyword arguments, and their bits in @p valid. May run any
 * code. @return 0, or -1: raised */
int mri_set_fields(const struct field *fields, void *to, uint32_t *valid,
		   PyObject *kwargs);
/** Set an item, and drop the reference to @p value. A NULL argument has raised.
 * @return 0, or -1: raised */
int mri_set_item(PyObject *dict, const char *key, PyObject *value);
/** Convert to an integer of at most @p most. @return 0, or -1: raised */
int mri_number(PyObject *object, uint64_t most, uint64_t *ret);
/** Converter of PyArg_Parse...() for "O&" to uint32_t. */
int mri_u32(PyObject *number, void *ret);
/** Copy a bytes-like object of @p least or @p most bytes.
 * @return 0, or -1: raised */
int mri_bytes(PyObject *object, void *to, size_t least, size_t most);

/** A str of what a function of the library prints. NULL: raised */
PyObject *mri_print(size_t (*print)(const void *of, char *ret_text,
				    size_t n_bytes),
		    const void *of);

enum { MRI_MAX_SPECS = 64 };

/** The texts of a tuple, which keeps them. @return how many; -1: raised */
int mri_read_specs(PyObject *tuple, const char **specs);
/** Whether @p pool is open in this process; raises if not. */
bool mri_pool_is_usable(const struct py_pool *pool);
/** Whether this process is not the one that created @p pool. */
bool mri_pool_is_foreign(const struct py_pool *pool);
/** The cache of @p pool, for the calling thread. */
struct mr_cache *mri_pool_cache(struct py_pool *pool);
/** An object for the pool of @p dp, which it closes. @return NULL: raised, or
 * @p ret_err and @p why say why */
struct py_pool *mri_pool_wrap(struct mr_dataplane *dp, int *ret_err,
			      struct mr_reason *why);
/** Close a pool now or, if it has users, after the last one. */
void mri_pool_end(struct py_pool *pool);

/** Whether a port is open in this process; raises if not. */
bool mri_port_is_usable(const struct py_port *port);
/** An object for port @p idx of a data plane. @return NULL: raised */
PyObject *mri_port_wrap(PyTypeObject *type, struct py_pool *pool,
			struct mr_port *port, uint32_t idx);
/** The data plane has closed the port. */
void mri_port_end(struct py_port *port);
/** Queue rx(i) or tx(i) of a port. @return NULL: raised */
PyObject *mri_queue_new(PyTypeObject *type, PyObject *port, PyObject *args);
/** Queue @p i of a port, which exists. @return NULL: raised */
PyObject *mri_queue_of(PyTypeObject *type, PyObject *port, uint32_t i);

/** An empty burst with room for @p n entries. @return NULL: raised */
struct py_burst *mri_burst_new(struct py_pool *pool, uint32_t n);
/** Copy frames from an iterable of bytes-like objects into a new burst. */
PyObject *mri_burst_from(PyObject *pool, PyObject *iterable);
/** End the views of a burst of @p pool; return its frames. May run any code.
 * @return NULL: raised */
struct py_frames *mri_burst_take(PyObject *burst, const struct py_pool *pool);
/** Set how many entries there are now; the caller frees none of them. */
void mri_frames_set_n(struct py_frames *frames, uint32_t n);
/** Remove the first @p n entries, which are no longer the burst's. */
void mri_frames_drop_first(struct py_frames *frames, uint32_t n);
/** Give the entries metas, all zero. @return 0, or -1: raised */
int mri_frames_add_metas(struct py_frames *frames);

/** Functions of Burst for metadata: meta(i), set_meta(i, ...), copy_metas(). */
PyObject *mri_burst_meta(PyObject *burst, PyObject *i);
PyObject *mri_burst_set_meta(PyObject *burst, PyObject *args, PyObject *kwargs);
PyObject *mri_burst_copy_metas(PyObject *burst, PyObject *array);
/** Members of struct mr_meta. */
extern const struct field mri_meta_fields[];
/** A dict of name: (numpy's format, offset), for all members of mr_meta. */
PyObject *mri_meta_layout(void);
/** Get the buffer of a caller's array, with room for @p n items.
 * @return 0, or -1: raised */
int mri_get_room(PyObject *array, Py_buffer *room, size_t n, size_t item_bytes);

/** The worker that the calling thread is, and its pool; NULL: none. */
extern _Thread_local struct mr_worker *mri_worker;
extern _Thread_local struct py_pool *mri_worker_pool;
/** Whether a data plane is open in this process; raises if not. */
bool mri_dataplane_is_usable(const struct py_dataplane *dataplane);
/** Functions of Dataplane: run(function), fileno(), step(function). */
PyObject *mri_dataplane_run(PyObject *dataplane, PyObject *function);
PyObject *mri_dataplane_fileno(PyObject *dataplane, PyObject *nothing);
PyObject *mri_dataplane_step(PyObject *dataplane, PyObject *function);
/** An object for a worker, which exists. @return NULL: raised */
PyObject *mri_worker_new(struct py_dataplane *dataplane, uint32_t i);

/** Functions of Port for its device. */
PyObject *mri_port_set(PyObject *port, PyObject *args, PyObject *settings);
PyObject *mri_port_set_rss(PyObject *port, PyObject *args, PyObject *kwargs);
PyObject *mri_port_steer(PyObject *port, PyObject *args, PyObject *kwargs);
PyObject *mri_port_unsteer(PyObject *port, PyObject *id);
PyObject *mri_port_device_drops(PyObject *port, PyObject *nothing);
PyObject *mri_port_device_stats(PyObject *port, PyObject *nothing);
PyObject *mri_port_open_kernel(PyObject *port, PyObject *nothing);
PyObject *mri_port_to_kernel(PyObject *port, PyObject *burst);

#endif
