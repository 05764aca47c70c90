/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run a data plane: a thread per worker, and the caller's, which waits for them
 * and for signals.
 *
 *     receive --> any frames? --> take the GIL, call the function --> ...
 *
 * A worker has the GIL only while Python code runs: it receives and sends
 * without it, with a cache of its own, which mri_pool_cache() finds.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "binding.h"

enum { LOOK_NS = 20000000 }; /* between two looks at signals and workers */

/** A worker of a data plane. */
struct py_worker {
	PyObject_HEAD
	struct py_dataplane *dataplane;
	uint32_t idx;
};

/* A call of run() or step(). The GIL protects it. */
struct run {
	struct py_dataplane *dataplane;
	PyObject *function;
	PyObject *worker; /* of step(); else NULL */
	PyObject *type, *error, *traceback; /* the first exception; or NULL */
};

_Thread_local struct mr_worker *mri_worker;
_Thread_local struct py_pool *mri_worker_pool;

PyObject *mri_worker_new(struct py_dataplane *dataplane, uint32_t i)
{
	struct py_worker *self = PyObject_New(struct py_worker, mri_worker_type);

	if (self == NULL)
		return NULL;
	self->dataplane =
		(struct py_dataplane *)Py_NewRef((PyObject *)dataplane);
	self->idx = i;
	return (PyObject *)self;
}

static void worker_dealloc(PyObject *object)
{
	Py_DECREF((PyObject *)((struct py_worker *)object)->dataplane);
	mri_free_object(object);
}

/* NULL: raised. */
static struct mr_worker *worker_of(PyObject *object)
{
	struct py_worker *self = (struct py_worker *)object;

	return mri_dataplane_is_usable(self->dataplane) ?
		       mr_workers_get(self->dataplane->dp->workers, self->idx) :
		       NULL;
}

/* Keep the exception that was raised, if it is the first, and end the run. */
static void fail_run(struct run *run)
{
	PyObject *type, *error, *traceback;

	PyErr_Fetch(&type, &error, &traceback);
	if (run->type == NULL) {
		run->type = type;
		run->error = error;
		run->traceback = traceback;
	} else {
		Py_XDECREF(type);
		Py_XDECREF(error);
		Py_XDECREF(traceback);
	}
	if (run->worker == NULL) /* step() may be called again */
		mr_workers_stop(run->dataplane->dp->workers);
}

/* Give a burst of received frames to the program's function, unless a call has
 * failed. */
static void call_function(struct run *run, PyObject *worker, PyObject *rx,
			  const struct mr_frame *frames,
			  const struct mr_meta *metas, uint32_t n)
{
	struct py_pool *pool = run->dataplane->pool;
	struct py_burst *burst =
		run->type == NULL ? mri_burst_new(pool, n) : NULL;
	PyObject *result = NULL;

	if (burst != NULL && metas != NULL &&
	    mri_frames_add_metas(burst->frames) < 0)
		Py_CLEAR(burst);
	if (burst == NULL) {
		mr_frame_free_bulk(mri_pool_cache(pool), frames, n);
	} else {
		memcpy(burst->frames->entries, frames, n * sizeof(frames[0]));
		if (metas != NULL)
			memcpy(burst->frames->metas, metas,
			       n * sizeof(metas[0]));
		mri_frames_set_n(burst->frames, n);
		result = PyObject_CallFunctionObjArgs(run->function, worker, rx,
						      burst, NULL);
	}
	if (result == NULL)
		fail_run(run);
	Py_XDECREF(result);
	Py_XDECREF((PyObject *)burst);
}

/* A tuple of a worker's rx queues. NULL: raised. */
static PyObject *queues_of(const struct py_dataplane *dataplane,
			   const struct mr_worker *worker)
{
	PyObject *queues = PyTuple_New(worker->n_rxqs);

	for (uint32_t i = 0; queues != NULL && i < worker->n_rxqs; i++) {
		const struct mr_worker_rxq *rx = &worker->rxqs[i];
		PyObject *port =
			PyTuple_GetItem(dataplane->ports, rx->port_idx);
		PyObject *queue = mri_queue_of(mri_rxq_type, port,
					       rx->queue_idx);

		if (queue == NULL || PyTuple_SetItem(queues, i, queue) < 0)
			Py_CLEAR(queues);
	}
	return queues;
}

/* The rounds of a worker, without the GIL except in the function. */
static void run_rounds(struct run *run, struct mr_worker *worker,
		       PyObject *object, PyObject *queues)
{
	const bool takes_meta = run->dataplane->takes_meta;
	struct mr_meta metas[MR_BURST_MAX];
	struct mr_frame frames[MR_BURST_MAX];
	PyThreadState *state = PyEval_SaveThread();
	uint32_t n_moved;

	do {
		n_moved = mr_worker_serve(worker);
		for (uint32_t i = 0; i < worker->n_rxqs; i++) {
			const uint32_t n = mr_rx_burst_meta(
				worker->rxqs[i].rxq, worker->cache, frames,
				takes_meta ? metas : NULL, MR_BURST_MAX);

			n_moved += n;
			if (n == 0)
				continue;
			PyEval_RestoreThread(state);
			call_function(run, object, PyTuple_GetItem(queues, i),
				      frames, takes_meta ? metas : NULL, n);
			state = PyEval_SaveThread();
		}
	} while (mr_worker_wait(worker, n_moved));
	PyEval_RestoreThread(state);
}

static int run_worker(struct mr_worker *worker, void *opaque)
{
	struct run *run = opaque;
	const PyGILState_STATE gil = PyGILState_Ensure();
	PyObject *object = mri_worker_new(run->dataplane, worker->idx);
	PyObject *queues = queues_of(run->dataplane, worker);

	mri_worker = worker;
	mri_worker_pool = run->dataplane->pool;
	if (object != NULL && queues != NULL)
		run_rounds(run, worker, object, queues);
	else
		fail_run(run);
	Py_XDECREF(queues);
	Py_XDECREF(object);
	PyGILState_Release(gil);
	return 0;
}

/* Wait for all workers. What comes meanwhile is the main thread's work: signal
 * handlers, and events of ports. */
static int wait_for_workers(struct run *run, struct mr_reason *why)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct mr_dataplane *dp = run->dataplane->dp;
	int rc;

	do {
		if (PyErr_CheckSignals() < 0)
			fail_run(run);
		for (uint32_t p = 0; p < dp->n_ports; p++)
			mr_port_poll(dp->ports[p]);
		Py_BEGIN_ALLOW_THREADS
		nanosleep(&pause, NULL); /* a signal ends it */
		rc = mr_workers_join(dp->workers, 0, why);
		Py_END_ALLOW_THREADS
	} while (rc == -ETIMEDOUT);
	return rc;
}

PyObject *mri_dataplane_run(PyObject *object, PyObject *function)
{
	struct py_dataplane *self = (struct py_dataplane *)object;
	struct run run = { .dataplane = self, .function = function };
	struct mr_reason why;
	int rc;

	if (!mri_dataplane_is_usable(self))
		return NULL;
	if (!PyCallable_Check(function))
		return PyErr_Format(PyExc_TypeError, "%R is not a function",
				    function);
	if (self->is_running)
		return mri_raise(-EBUSY, "the data plane runs already");
	if (self->queues != NULL)
		return mri_raise(-EBUSY, "the thread that called fileno() is "
					 "the worker: call step()");
	self->is_running = true;
	rc = mr_workers_start(self->dp->workers, run_worker, &run, &why);
	/* Starting cancels a stop, and one may have come before. */
	if (self->is_stopping)
		mr_workers_stop(self->dp->workers);
	if (rc == 0)
		rc = wait_for_workers(&run, &why);
	self->is_running = self->is_stopping = false;
	if (run.type != NULL) {
		PyErr_Restore(run.type, run.error, run.traceback);
		return NULL;
	}
	if (rc < 0)
		return mri_raise(rc, why.text);
	Py_RETURN_NONE;
}

PyObject *mri_dataplane_fileno(PyObject *object, PyObject *nothing)
{
	struct py_dataplane *self = (struct py_dataplane *)object;
	const unsigned long thread = PyThread_get_thread_ident();
	struct mr_reason why;
	int fd;

	(void)nothing;
	if (!mri_dataplane_is_usable(self))
		return NULL;
	if (self->queues != NULL ? self->thread != thread : self->is_running)
		return mri_raise(-EBUSY, "another thread runs the data plane");
	/* Others would call the function without the GIL. */
	if (self->dp->n_workers > 1)
		return mri_raise(-EINVAL, "an event loop runs one worker: open "
					  "with n_workers=1");
	fd = mr_dataplane_fd(self->dp, &why);
	if (fd < 0)
		return mri_raise(fd, why.text);
	self->thread = thread;
	if (self->queues == NULL)
		self->queues = queues_of(self,
					 mr_workers_get(self->dp->workers, 0));
	return self->queues == NULL ? NULL : PyLong_FromLong(fd);
}

static uint32_t step_queue(struct mr_worker *worker,
			   const struct mr_worker_rxq *rx, void *opaque)
{
	struct run *run = opaque;
	const bool takes_meta = run->dataplane->takes_meta;
	struct mr_meta metas[MR_BURST_MAX];
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n =
		mr_rx_burst_meta(rx->rxq, worker->cache, frames,
				 takes_meta ? metas : NULL, MR_BURST_MAX);

	if (n > 0)
		call_function(run, run->worker,
			      PyTuple_GetItem(run->dataplane->queues,
					      rx - worker->rxqs),
			      frames, takes_meta ? metas : NULL, n);
	return n;
}

/* It keeps the GIL: nothing in it waits, and events of ports need it. */
PyObject *mri_dataplane_step(PyObject *object, PyObject *function)
{
	struct py_dataplane *self = (struct py_dataplane *)object;
	struct run run = { .dataplane = self, .function = function };
	int wait_ms;

	if (!mri_dataplane_is_usable(self))
		return NULL;
	if (!PyCallable_Check(function))
		return PyErr_Format(PyExc_TypeError, "%R is not a function",
				    function);
	if (self->queues == NULL || self->is_running ||
	    self->thread != PyThread_get_thread_ident() || mri_worker != NULL)
		return mri_raise(-EBUSY, "step() is for the thread that called "
					 "fileno(), and not within its "
					 "function");
	run.worker = mri_worker_new(self, 0);
	if (run.worker == NULL)
		return NULL;
	mri_worker = mr_workers_get(self->dp->workers, 0);
	mri_worker_pool = self->pool;
	self->is_running = true;
	wait_ms = mr_dataplane_step(self->dp, step_queue, &run);
	self->is_running = false;
	mri_worker = NULL;
	mri_worker_pool = NULL;
	Py_DECREF(run.worker);
	if (run.type != NULL) {
		PyErr_Restore(run.type, run.error, run.traceback);
		return NULL;
	}
	if (wait_ms < 0)
		Py_RETURN_NONE;
	return PyLong_FromLong(wait_ms);
}

/* Send by the worker's route, without the GIL. Meanwhile the burst is empty, so
 * others cannot get at the entries. */
static uint32_t send_entries(struct mr_worker *worker, uint32_t port,
			     struct py_frames *frames, uint32_t n, bool has_meta)
{
	const struct mr_meta *metas =
		has_meta || worker->routes[port].txq != NULL ? frames->metas :
							       NULL;
	uint32_t n_sent;

	frames->n = 0;
	Py_BEGIN_ALLOW_THREADS
	n_sent = mr_worker_send_meta(worker, port, frames->entries, metas, n);
	Py_END_ALLOW_THREADS
	frames->n = n; /* the pool's number of users stayed */
	return n_sent;
}

static PyObject *worker_send(PyObject *object, PyObject *args)
{
	struct mr_worker *worker = worker_of(object);
	struct py_dataplane *dataplane =
		((struct py_worker *)object)->dataplane;
	struct py_frames *frames;
	PyObject *burst;
	uint32_t port, n;

	if (worker == NULL ||
	    !PyArg_ParseTuple(args, "O&O:send", mri_u32, &port, &burst))
		return NULL;
	if (worker != mri_worker)
		return mri_raise(-EBUSY, "only the function that run() calls "
					 "sends through a worker, the one it "
					 "is given");
	if (port >= worker->n_ports)
		return PyErr_Format(PyExc_IndexError,
				    "the data plane has %u ports, not %u",
				    worker->n_ports, port);
	frames = mri_burst_take(burst, dataplane->pool);
	if (frames == NULL)
		return NULL;
	n = send_entries(worker, port, frames, frames->n,
			 dataplane->dp->has_meta);
	mri_frames_drop_first(frames, n);
	return PyLong_FromUnsignedLong(n);
}

#define STAT(name) FIELD(mr_worker_stats, name, FIELD_NUMBER, 0)
static const struct field stats_fields[] = {
	STAT(busy_ns),      STAT(idle_ns), STAT(asleep_ns),  STAT(rounds),
	STAT(empty_rounds), STAT(sleeps),  STAT(handed_off), STAT(handoff_full),
	{ 0 },
};

static PyObject *worker_stats(PyObject *object, PyObject *nothing)
{
	struct mr_worker_stats stats = { .size = sizeof(stats) };
	const struct mr_worker *worker = worker_of(object);

	(void)nothing;
	if (worker == NULL)
		return NULL;
	mr_worker_stats(worker, &stats);
	return mri_dict_of(stats_fields, &stats, 0);
}

static PyObject *get_idx(PyObject *object, void *nothing)
{
	(void)nothing;
	return PyLong_FromUnsignedLong(((struct py_worker *)object)->idx);
}

static PyObject *get_core(PyObject *object, void *nothing)
{
	const struct mr_worker *worker = worker_of(object);

	(void)nothing;
	return worker == NULL ? NULL : PyLong_FromUnsignedLong(worker->core);
}

static PyMethodDef methods[] = {
	{ "send", worker_send, METH_VARARGS,
	  "send(port_idx, burst): offer a burst, with its metadata, by this "
	  "worker's route to\na port. Returns how many entries were taken; the "
	  "burst keeps the rest. Ends its\nviews. Never waits. Only on the "
	  "worker's thread." },
	{ "stats", worker_stats, METH_NOARGS,
	  "Counters of struct mr_worker_stats by name. For any thread." },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
	{ "idx", get_idx, NULL, "Its number.", NULL },
	{ "core", get_core, NULL, "The core that its thread is bound to.",
	  NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A worker of a data plane." },
	{ Py_tp_dealloc, worker_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, members },
	{ 0, NULL },
};

PyType_Spec mri_worker_spec = {
	.name = "millrace.Worker",
	.basicsize = sizeof(struct py_worker),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};
