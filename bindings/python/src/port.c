/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports. */
#include "binding.h"

static PyObject *port_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "pool", "spec", NULL };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why;
	struct py_pool *pool;
	struct py_port *self;
	const char *spec;
	int rc;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!s:Port", names,
					 mri_pool_type, &pool, &spec) ||
	    !mri_pool_is_usable(pool))
		return NULL;
	/* That may run any code, and so comes before anything is open. */
	self = (struct py_port *)PyType_GenericAlloc(type, 0);
	if (self == NULL || !mri_pool_is_usable(pool)) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	self->pool = (struct py_pool *)Py_NewRef((PyObject *)pool);
	config.pool = pool->pool;
	rc = mr_port_open(pool->ctx, spec, &config, &self->port, &why);
	if (rc < 0) {
		Py_DECREF((PyObject *)self);
		return mri_raise(rc, why.text);
	}
	pool->n_users++;
	self->info.size = sizeof(self->info);
	mr_port_info(self->port, &self->info);
	self->owners = PyMem_Calloc(self->info.n_rxqs + self->info.n_txqs,
				    sizeof(self->owners[0]));
	if (self->owners == NULL) {
		Py_DECREF((PyObject *)self);
		return PyErr_NoMemory();
	}
	return (PyObject *)self;
}

static PyObject *port_close(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	if (self->port != NULL) {
		if (!mri_pool_is_foreign(self->pool))
			mr_port_close(self->port);
		self->port = NULL;
		self->pool->n_users--;
	}
	Py_RETURN_NONE;
}

static void port_dealloc(PyObject *object)
{
	struct py_port *self = (struct py_port *)object;

	Py_DECREF(port_close(object, NULL));
	PyMem_Free(self->owners);
	Py_XDECREF((PyObject *)self->pool);
	mri_free_object(self);
}

bool mri_port_is_usable(const struct py_port *self)
{
	if (self->port != NULL)
		return mri_pool_is_usable(self->pool);
	PyErr_SetString(PyExc_ValueError, "the port is closed");
	return false;
}

static PyObject *port_rx(PyObject *object, PyObject *args)
{
	return mri_queue_new(mri_rxq_type, object, args);
}

static PyObject *port_tx(PyObject *object, PyObject *args)
{
	return mri_queue_new(mri_txq_type, object, args);
}

static PyObject *port_poll(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	return mri_port_is_usable(self) ?
		PyLong_FromLong(mr_port_poll(self->port)) : NULL;
}

static PyObject *port_fileno(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	return mri_port_is_usable(self) ?
		PyLong_FromLong(mr_port_fd(self->port)) : NULL;
}

static PyObject *port_link(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;
	struct mr_link link = { 0 };

	(void)nothing;
	if (!mri_port_is_usable(self))
		return NULL;
	if (mr_port_link(self->port, &link) < 0)
		link.is_up = 1; /* it has no link that could be down */
	return Py_BuildValue("{sNsIsNsN}", "is_up",
			     PyBool_FromLong(link.is_up), "speed_mbps",
			     link.speed_mbps, "is_gone",
			     PyBool_FromLong(link.is_gone), "is_ended",
			     PyBool_FromLong(link.is_ended));
}

static PyObject *port_info(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;
	struct mr_port_info *info = &self->info;

	(void)nothing;
	if (!mri_port_is_usable(self))
		return NULL;
	mr_port_info(self->port, info);
	return Py_BuildValue(
		"{sNsNsNsIsIsIsNsisKsKsy#}", "name", mri_text(info->name),
		"mode", mri_text(info->mode), "why", mri_text(info->why),
		"n_rxqs", info->n_rxqs, "n_txqs", info->n_txqs, "mtu_bytes",
		info->mtu_bytes, "has_sg", PyBool_FromLong(info->has_sg),
		"numa_node", info->numa_node, "locked_bytes",
		info->locked_bytes, "kernel_bytes", info->kernel_bytes, "mac",
		info->mac,
		(Py_ssize_t)(info->has_mac ? sizeof(info->mac) : 0));
}

static PyMethodDef methods[] = {
	{ "__enter__", mri_self, METH_NOARGS, NULL },
	{ "__exit__", port_close, METH_VARARGS, NULL },
	{ "close", port_close, METH_NOARGS,
	  "Close the port. Frames received stay valid in their bursts." },
	{ "rx", port_rx, METH_VARARGS, "rx(i=0): rx queue i." },
	{ "tx", port_tx, METH_VARARGS, "tx(i=0): tx queue i." },
	{ "poll", port_poll, METH_NOARGS,
	  "Handle timers, link changes and removal. Returns how many events "
	  "there were.\nCall when fileno() is readable, or periodically." },
	{ "fileno", port_fileno, METH_NOARGS, "The fd for poll(); -1: none." },
	{ "link", port_link, METH_NOARGS,
	  "State of the link, as of the last poll()." },
	{ "info", port_info, METH_NOARGS, "Properties of the port." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "An open port: Port(pool, spec)." },
	{ Py_tp_new, port_new },
	{ Py_tp_dealloc, port_dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

PyType_Spec mri_port_spec = {
	.name = "millrace._millrace.Port",
	.basicsize = sizeof(struct py_port),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_BASETYPE,
	.slots = slots,
};
