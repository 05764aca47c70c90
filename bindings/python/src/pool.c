/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools. Each has its own context and cache; see binding.h. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "binding.h"

uint32_t mri_n_forks;
static struct py_pool *pools; /* open ones */

/*
 * A region is not mapped in a child, but views of its frames may be: they show
 * zeros.
 */
static void after_fork_in_child(void)
{
	mri_n_forks++;
	for (struct py_pool *pool = pools; pool != NULL; pool = pool->next)
		(void)mmap(pool->base, pool->n_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
				   MAP_NORESERVE,
			   -1, 0);
	pools = NULL;
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

bool mri_pool_is_foreign(const struct py_pool *pool)
{
	return pool->n_forks != mri_n_forks;
}

bool mri_pool_is_usable(const struct py_pool *pool)
{
	if (pool->pool == NULL)
		PyErr_SetString(PyExc_ValueError, "the pool is closed");
	else if (mri_pool_is_foreign(pool))
		mri_raise(-ECHILD, "the pool belongs to the parent process; "
				   "create one after fork()");
	else
		return true;
	return false;
}

struct mr_cache *mri_pool_cache(struct py_pool *pool)
{
	const unsigned long me = PyThread_get_thread_ident();

	if (mri_worker_pool == pool)
		return mri_worker->cache;
	if (pool->thread != me)
		pool->cache = mr_cache_adopt(pool->cache);
	pool->thread = me;
	return pool->cache;
}

/* Release everything that it has; members may be NULL. */
static void close_pool(struct py_pool *self)
{
	for (struct py_pool **at = &pools; *at != NULL; at = &(*at)->next) {
		if (*at == self) {
			*at = self->next;
			break;
		}
	}
	if (!mri_pool_is_foreign(self)) {
		mr_cache_destroy(self->cache);
		/* n_users is 0 */
		if (self->dp != NULL) {
			(void)mr_dataplane_close(self->dp, NULL);
		} else {
			(void)mr_pool_destroy(self->pool, NULL);
			mr_ctx_destroy(self->ctx);
		}
	}
	self->cache = NULL;
	self->pool = NULL;
	self->ctx = NULL;
	self->dp = NULL;
}

/* Give an open pool its cache, and list it. */
static int add_cache(struct py_pool *self, struct mr_reason *why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_region_stats region = { .size = sizeof(region) };
	const int rc = mr_cache_create(self->pool, &self->cache, why);

	if (rc < 0)
		return rc;
	pthread_once(&once, watch_forks);
	mr_pool_stats(self->pool, &stats);
	mr_region_stats(mr_pool_region(self->pool), &region);
	self->base = mr_region_base(mr_pool_region(self->pool));
	self->n_bytes = region.n_bytes;
	self->page_bytes = stats.page_bytes;
	self->headroom_bytes = stats.headroom_bytes;
	self->thread = PyThread_get_thread_ident();
	self->next = pools;
	pools = self;
	return 0;
}

static int open_pool(struct py_pool *self, const struct mr_pool_config *config,
		     struct mr_reason *why)
{
	int rc = mr_ctx_create(NULL, &self->ctx, why);

	if (rc == 0)
		rc = mr_pool_create(self->ctx, config, &self->pool, why);
	return rc == 0 ? add_cache(self, why) : rc;
}

struct py_pool *mri_pool_wrap(struct mr_dataplane *dp, int *ret_err,
			      struct mr_reason *why)
{
	struct py_pool *self =
		(struct py_pool *)PyType_GenericAlloc(mri_pool_type, 0);

	if (self == NULL)
		return NULL;
	self->n_forks = mri_n_forks;
	self->pool = dp->pool;
	*ret_err = add_cache(self, why);
	if (*ret_err == 0) {
		self->ctx = dp->ctx;
		self->dp = dp;
		return self;
	}
	self->pool = NULL; /* the caller closes it */
	Py_DECREF((PyObject *)self);
	return NULL;
}

void mri_pool_end(struct py_pool *pool)
{
	pool->is_ending = true;
	if (pool->n_users == 0)
		close_pool(pool);
}

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "n_pages", "page_bytes", "safety", NULL };
	struct mr_pool_config config = { .size = sizeof(config) };
	struct py_pool *self;
	struct mr_reason why;
	uint32_t safety = 0;
	int rc;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&$O&O&:Pool", names,
					 mri_u32, &config.n_pages, mri_u32,
					 &config.page_bytes, mri_u32, &safety))
		return NULL;
	config.safety = (enum mr_safety)safety;
	self = (struct py_pool *)PyType_GenericAlloc(type, 0);
	if (self == NULL)
		return NULL;
	self->n_forks = mri_n_forks;
	rc = open_pool(self, &config, &why);
	if (rc == 0)
		return (PyObject *)self;
	Py_DECREF((PyObject *)self);
	return mri_raise(rc, why.text);
}

int mri_read_specs(PyObject *tuple, const char **specs)
{
	const Py_ssize_t n = PyTuple_Size(tuple);

	if (n > MRI_MAX_SPECS) {
		PyErr_Format(PyExc_ValueError, "%zd ports are more than %d", n,
			     MRI_MAX_SPECS);
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		specs[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i),
						   NULL);
		if (specs[i] == NULL)
			return -1;
	}
	return (int)n;
}

/* In a context of its own: there is no pool yet. */
static PyObject *size_pool(const char **specs, int n,
			   struct mr_pool_config *config)
{
	struct mr_reason why;
	struct mr_ctx *ctx;
	int rc = mr_ctx_create(NULL, &ctx, &why);

	if (rc < 0)
		return mri_raise(rc, why.text);
	rc = mr_pool_size_for(ctx, specs, (uint32_t)n, 1, 1, config, &why);
	mr_ctx_destroy(ctx);
	return rc < 0 ? mri_raise(rc, why.text) :
			PyLong_FromUnsignedLong(config->n_pages);
}

static PyObject *pool_size_for(PyObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "specs", "n_pages", "page_bytes", NULL };
	struct mr_pool_config config = { .size = sizeof(config) };
	const char *specs[MRI_MAX_SPECS];
	PyObject *sequence, *tuple, *size = NULL;
	int n;

	(void)type;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O&O&:size_for",
					 names, &sequence, mri_u32,
					 &config.n_pages, mri_u32,
					 &config.page_bytes))
		return NULL;
	if (PyUnicode_Check(sequence)) {
		PyErr_SetString(PyExc_TypeError,
				"specs is a list of strings, not a string");
		return NULL;
	}
	tuple = PySequence_Tuple(sequence);
	if (tuple == NULL)
		return NULL;
	n = mri_read_specs(tuple, specs);
	if (n >= 0)
		size = size_pool(specs, n, &config);
	Py_DECREF(tuple);
	return size;
}

static void pool_dealloc(PyObject *object)
{
	close_pool((struct py_pool *)object);
	mri_free_object(object);
}

static PyObject *pool_close(PyObject *object, PyObject *nothing)
{
	struct py_pool *self = (struct py_pool *)object;

	(void)nothing;
	if (self->dp != NULL && !mri_pool_is_foreign(self))
		return mri_raise(-EBUSY, "the data plane closes its pool");
	if (self->n_users > 0 && !mri_pool_is_foreign(self))
		return mri_raise(-EBUSY, "the pool is in use: close its ports "
					 "and release its bursts first");
	close_pool(self);
	Py_RETURN_NONE;
}

static PyObject *pool_burst(PyObject *object, PyObject *frames)
{
	if (!mri_pool_is_usable((struct py_pool *)object))
		return NULL;
	return mri_burst_from(object, frames);
}

#define COUNTER(name) FIELD(mr_pool_stats, name, FIELD_NUMBER, 0)
static const struct field counters[] = {
	COUNTER(n_pages),        COUNTER(n_free),
	COUNTER(n_in_flight),    COUNTER(n_committed),
	COUNTER(alloc_fast),     COUNTER(alloc_refill),
	COUNTER(alloc_slow),     COUNTER(alloc_empty),
	COUNTER(recycle_cached), COUNTER(recycle_cache_full),
	COUNTER(free_invalid),   COUNTER(free_double),
	COUNTER(poison_broken),  { 0 },
};

static PyObject *pool_stats(PyObject *object, PyObject *nothing)
{
	struct py_pool *self = (struct py_pool *)object;
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	(void)nothing;
	if (!mri_pool_is_usable(self))
		return NULL;
	mr_pool_stats(self->pool, &stats);
	return mri_dict_of(counters, &stats, 0);
}

static PyMethodDef methods[] = {
	{ "__enter__", mri_self, METH_NOARGS, NULL },
	{ "__exit__", pool_close, METH_VARARGS, NULL },
	{ "close", pool_close, METH_NOARGS,
	  "Free the pool. Raises Error (EBUSY) while a port is open or a burst "
	  "has frames." },
	{ "burst", pool_burst, METH_O,
	  "Copy bytes-like objects, a frame each, into buffers of the pool; a "
	  "long frame into\nseveral, which a port with has_sg sends." },
	{ "size_for", (PyCFunction)(void (*)(void))pool_size_for,
	  METH_VARARGS | METH_KEYWORDS | METH_STATIC,
	  "The number of pages that a pool needs for ports of these specs, "
	  "plus n_pages.\nCreate the pool with it before the first port opens. "
	  "Opens no port." },
	{ "stats", pool_stats, METH_NOARGS,
	  "Counters of struct mr_pool_stats by name." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A pool of pages, with its context, region and cache." },
	{ Py_tp_new, pool_new },
	{ Py_tp_dealloc, pool_dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

PyType_Spec mri_pool_spec = {
	.name = "millrace.Pool",
	.basicsize = sizeof(struct py_pool),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
