/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data planes: open, close, and what they show. worker.c runs them.
 *
 * The pool and the ports are ordinary objects that the data plane closes. The
 * pool is freed when the program has no frames left, which may be later: an
 * exception keeps the frames that a function had.
 */
#include <errno.h>

#include "binding.h"

#define CONFIG(member) FIELD(mr_dataplane_config, member, FIELD_NUMBER, 0)
static const struct field config_fields[] = {
	CONFIG(n_pages),        CONFIG(kept_pages),
	CONFIG(page_bytes),     CONFIG(headroom_bytes),
	CONFIG(tailroom_bytes), CONFIG(safety),
	CONFIG(n_workers),      CONFIG(max_workers),
	CONFIG(may_idle),       CONFIG(handoff_entries),
	CONFIG(idle),           CONFIG(may_be_fewer),
	CONFIG(takes_meta),     { 0 },
};

/* What mr_dataplane_config points to. */
struct arrays {
	const char *specs[MRI_MAX_SPECS];
	uint32_t cores[MR_WORKERS_MAX];
	uint32_t sends_to[MRI_MAX_SPECS];
};

/* Take a list of numbers out of the keyword arguments. How many; 0: none;
 * -1: raised. */
static int take_numbers(PyObject *kwargs, const char *name, uint32_t *numbers,
			Py_ssize_t most)
{
	PyObject *list =
		kwargs == NULL ? NULL : PyDict_GetItemString(kwargs, name);
	PyObject *tuple;
	Py_ssize_t n;

	if (list == NULL)
		return 0;
	tuple = PySequence_Tuple(list);
	if (tuple == NULL)
		return -1;
	n = PyTuple_Size(tuple);
	if (n > most) {
		PyErr_Format(PyExc_ValueError, "%s: %zd are more than %zd",
			     name, n, most);
		n = -1;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		if (!mri_u32(PyTuple_GetItem(tuple, i), &numbers[i]))
			n = -1;
	Py_DECREF(tuple);
	return n < 0 || PyDict_DelItemString(kwargs, name) < 0 ? -1 : (int)n;
}

/* Read the arguments; the specs stay those of args. -1: raised. */
static int read_config(PyObject *args, PyObject *given,
		       struct mr_dataplane_config *config,
		       struct arrays *arrays)
{
	PyObject *kwargs = given == NULL ? NULL : PyDict_Copy(given);
	const int n_specs = mri_read_specs(args, arrays->specs);
	int n_cores = 0, n_to = 0, rc = n_specs < 0 ? -1 : 0;
	uint32_t valid = 0;

	if (rc == 0 && n_specs == 0) {
		PyErr_SetString(PyExc_TypeError,
				"no ports: Dataplane(\"xdp:eth0\", ...)");
		rc = -1;
	}
	if (rc == 0)
		rc = n_cores = take_numbers(kwargs, "cores", arrays->cores,
					    MR_WORKERS_MAX);
	if (rc >= 0)
		rc = n_to = take_numbers(kwargs, "sends_to", arrays->sends_to,
					 MRI_MAX_SPECS);
	if (rc >= 0)
		rc = mri_set_fields(config_fields, config, &valid, kwargs);
	if (rc == 0 && n_to > 0 && n_to != n_specs) {
		PyErr_Format(PyExc_ValueError,
			     "sends_to has %d ports for %d specs", n_to,
			     n_specs);
		rc = -1;
	}
	Py_XDECREF(kwargs);
	config->n_specs = (uint32_t)(n_specs < 0 ? 0 : n_specs);
	config->specs = arrays->specs;
	config->n_cores = (uint32_t)(n_cores < 0 ? 0 : n_cores);
	config->cores = n_cores > 0 ? arrays->cores : NULL;
	config->sends_to = n_to > 0 ? arrays->sends_to : NULL;
	/* The pool has one cache more, of threads that are no worker. */
	config->kept_pages += mr_cache_max_pages(
		config->n_pages > 0 ? MR_MAGAZINE_PAGES :
				      MR_MAGAZINE_MAX_PAGES);
	return rc;
}

/* A tuple of the ports, of the class millrace.Port. NULL: raised. */
static PyObject *wrap_ports(const struct mr_dataplane *dp, struct py_pool *pool)
{
	PyObject *module = PyImport_ImportModule("millrace");
	PyObject *type = module == NULL ?
				 NULL :
				 PyObject_GetAttrString(module, "Port");
	PyObject *ports = type == NULL ? NULL : PyTuple_New(dp->n_ports);

	for (uint32_t p = 0; ports != NULL && p < dp->n_ports; p++) {
		PyObject *port = mri_port_wrap((PyTypeObject *)type, pool,
					       dp->ports[p], p);

		if (port == NULL || PyTuple_SetItem(ports, p, port) < 0)
			Py_CLEAR(ports);
	}
	Py_XDECREF(type);
	Py_XDECREF(module);
	return ports;
}

/* Wrap what was opened, which belongs to the pool from then on. */
static int wrap(struct py_dataplane *self, struct mr_dataplane *dp)
{
	struct mr_reason why;
	int rc;

	self->pool = mri_pool_wrap(dp, &rc, &why);
	if (self->pool == NULL) {
		(void)mr_dataplane_close(dp, NULL);
		if (PyErr_Occurred() == NULL)
			mri_raise(rc, why.text);
		return -1;
	}
	self->dp = dp;
	self->ports = wrap_ports(dp, self->pool);
	return self->ports == NULL ? -1 : 0;
}

static PyObject *dataplane_new(PyTypeObject *type, PyObject *args,
			       PyObject *kwargs)
{
	struct mr_dataplane_config config = { .size = sizeof(config) };
	struct mr_dataplane *dp = NULL;
	struct py_dataplane *self;
	struct arrays arrays;
	struct mr_reason why;
	int rc;

	if (read_config(args, kwargs, &config, &arrays) < 0)
		return NULL;
	self = (struct py_dataplane *)PyType_GenericAlloc(type, 0);
	if (self == NULL)
		return NULL;
	self->takes_meta = config.takes_meta;
	Py_BEGIN_ALLOW_THREADS
	rc = mr_dataplane_open(&config, &dp, &why);
	Py_END_ALLOW_THREADS
	if (rc < 0)
		mri_raise(rc, why.text);
	else
		rc = wrap(self, dp);
	if (rc == 0)
		return (PyObject *)self;
	Py_DECREF((PyObject *)self);
	return NULL;
}

bool mri_dataplane_is_usable(const struct py_dataplane *self)
{
	if (self->dp != NULL)
		return mri_pool_is_usable(self->pool);
	PyErr_SetString(PyExc_ValueError, "the data plane is closed");
	return false;
}

/* Close ports and workers; the pool, once no burst has frames. */
static void close_dataplane(struct py_dataplane *self)
{
	struct mr_dataplane *dp = self->dp;

	if (dp == NULL)
		return;
	self->dp = NULL; /* from here on, others see it closed */
	for (uint32_t p = 0; self->ports != NULL && p < dp->n_ports; p++)
		mri_port_end((struct py_port *)PyTuple_GetItem(self->ports, p));
	if (!mri_pool_is_foreign(self->pool)) {
		Py_BEGIN_ALLOW_THREADS
		mr_dataplane_drain(dp, 1000, NULL, NULL);
		mr_dataplane_close_ports(dp);
		Py_END_ALLOW_THREADS
	}
	mri_pool_end(self->pool);
}

static PyObject *dataplane_close(PyObject *object, PyObject *nothing)
{
	struct py_dataplane *self = (struct py_dataplane *)object;

	(void)nothing;
	if (self->is_running && !mri_pool_is_foreign(self->pool))
		return mri_raise(-EBUSY, "the data plane runs: call stop(), "
					 "and close it when run() or step() "
					 "has returned");
	close_dataplane(self);
	Py_RETURN_NONE;
}

static void dataplane_dealloc(PyObject *object)
{
	struct py_dataplane *self = (struct py_dataplane *)object;

	close_dataplane(self); /* run() has a reference */
	Py_XDECREF(self->queues);
	Py_XDECREF(self->ports);
	Py_XDECREF((PyObject *)self->pool);
	mri_free_object(self);
}

static PyObject *dataplane_stop(PyObject *object, PyObject *nothing)
{
	struct py_dataplane *self = (struct py_dataplane *)object;

	(void)nothing;
	self->is_stopping = true;
	if (self->dp != NULL && !mri_pool_is_foreign(self->pool))
		mr_workers_stop(self->dp->workers);
	Py_RETURN_NONE;
}

static size_t print_text(const void *dp, char *ret_text, size_t n_bytes)
{
	return mr_dataplane_text(dp, ret_text, n_bytes);
}

static size_t print_json(const void *dp, char *ret_text, size_t n_bytes)
{
	return mr_dataplane_json(dp, ret_text, n_bytes);
}

static PyObject *dataplane_text(PyObject *object, PyObject *nothing)
{
	struct py_dataplane *self = (struct py_dataplane *)object;

	(void)nothing;
	return mri_dataplane_is_usable(self) ? mri_print(print_text, self->dp) :
					       NULL;
}

static PyObject *dataplane_json(PyObject *object, PyObject *nothing)
{
	struct py_dataplane *self = (struct py_dataplane *)object;

	(void)nothing;
	return mri_dataplane_is_usable(self) ? mri_print(print_json, self->dp) :
					       NULL;
}

static PyObject *get_pool(PyObject *object, void *nothing)
{
	(void)nothing;
	return Py_NewRef((PyObject *)((struct py_dataplane *)object)->pool);
}

static PyObject *get_ports(PyObject *object, void *nothing)
{
	(void)nothing;
	return Py_NewRef(((struct py_dataplane *)object)->ports);
}

/* New ones each time, because each refers to the data plane. */
static PyObject *get_workers(PyObject *object, void *nothing)
{
	struct py_dataplane *self = (struct py_dataplane *)object;
	PyObject *workers = NULL;

	(void)nothing;
	if (mri_dataplane_is_usable(self))
		workers = PyTuple_New(self->dp->n_workers);
	for (uint32_t i = 0; workers != NULL && i < self->dp->n_workers; i++) {
		PyObject *worker = mri_worker_new(self, i);

		if (worker == NULL || PyTuple_SetItem(workers, i, worker) < 0)
			Py_CLEAR(workers);
	}
	return workers;
}

static PyMethodDef methods[] = {
	{ "__enter__", mri_self, METH_NOARGS, NULL },
	{ "__exit__", dataplane_close, METH_VARARGS, NULL },
	{ "run", mri_dataplane_run, METH_O,
	  "Call function(worker, rx, burst) for each burst, on a thread per "
	  "worker, until\nstop(). An exception in it ends all workers and is "
	  "raised here, as is that of a\nsignal handler: KeyboardInterrupt. "
	  "Returns when no call of the function is left." },
	{ "fileno", mri_dataplane_fileno, METH_NOARGS,
	  "Make the calling thread the only worker, instead of run(). Returns "
	  "an fd that is\nreadable when step() has work." },
	{ "step", mri_dataplane_step, METH_O,
	  "One round: call function(worker, rx, burst) for each burst that is "
	  "there. Returns\nhow many ms to wait for the fd, at most, or None "
	  "after stop()." },
	{ "stop", dataplane_stop, METH_NOARGS,
	  "End run(), or the next call of it; step() returns None. For any "
	  "thread and signal\nhandler." },
	{ "close", dataplane_close, METH_NOARGS,
	  "Wait up to a second until the devices have sent their frames, and "
	  "close all.\nThe pool is freed when no burst has frames. Raises "
	  "Error (EBUSY) during run()." },
	{ "text", dataplane_text, METH_NOARGS,
	  "All counters of ports, workers and pool by name, one per line. For "
	  "any thread." },
	{ "json", dataplane_json, METH_NOARGS, "The same as a JSON object." },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
	{ "pool", get_pool, NULL, "The pool, which the data plane closes.",
	  NULL },
	{ "ports", get_ports, NULL,
	  "The ports in the order of the specs, which the data plane closes. "
	  "Their queues\nare its workers'.",
	  NULL },
	{ "workers", get_workers, NULL, "The workers, for their counters.",
	  NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Ports, a pool that is large enough for them, and "
		     "workers: Dataplane(spec, ...)." },
	{ Py_tp_new, dataplane_new },
	{ Py_tp_dealloc, dataplane_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, members },
	{ 0, NULL },
};

PyType_Spec mri_dataplane_spec = {
	.name = "millrace._millrace.Dataplane",
	.basicsize = sizeof(struct py_dataplane),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_BASETYPE,
	.slots = slots,
};
