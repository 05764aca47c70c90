/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports. */
#include <errno.h>

#include "binding.h"

/* Fill in what is known of an open port. -1: raised. */
static int init_port(struct py_port *self)
{
	self->pool->n_users++;
	self->info.size = sizeof(self->info);
	mr_port_info(self->port, &self->info);
	self->owners = PyMem_Calloc(self->info.n_rxqs + self->info.n_txqs,
				    sizeof(self->owners[0]));
	if (self->owners != NULL)
		return 0;
	PyErr_NoMemory();
	return -1;
}

PyObject *mri_port_wrap(PyTypeObject *type, struct py_pool *pool,
			struct mr_port *port, uint32_t idx)
{
	struct py_port *self = (struct py_port *)PyType_GenericAlloc(type, 0);

	if (self == NULL)
		return NULL;
	self->pool = (struct py_pool *)Py_NewRef((PyObject *)pool);
	self->port = port;
	self->idx = idx;
	self->is_of_dataplane = true;
	if (init_port(self) == 0)
		return (PyObject *)self;
	Py_DECREF((PyObject *)self);
	return NULL;
}

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
	if (init_port(self) == 0)
		return (PyObject *)self;
	Py_DECREF((PyObject *)self);
	return NULL;
}

void mri_port_end(struct py_port *self)
{
	if (self->port == NULL)
		return;
	if (!self->is_of_dataplane && !mri_pool_is_foreign(self->pool))
		mr_port_close(self->port);
	self->port = NULL;
	self->pool->n_users--;
}

static PyObject *port_close(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	if (self->is_of_dataplane && self->port != NULL)
		return mri_raise(-EBUSY, "the data plane closes its ports");
	mri_port_end(self);
	Py_RETURN_NONE;
}

static void port_dealloc(PyObject *object)
{
	struct py_port *self = (struct py_port *)object;

	mri_port_end(self);
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
		       PyLong_FromUnsignedLong(mr_port_poll(self->port)) :
		       NULL;
}

static PyObject *port_fileno(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	return mri_port_is_usable(self) ?
		       PyLong_FromLong(mr_port_fd(self->port)) :
		       NULL;
}

#define LINK(member, kind) FIELD(mr_link, member, kind, 0)
static const struct field link_fields[] = {
	LINK(is_up, FIELD_BOOL),
	LINK(speed_mbps, FIELD_NUMBER),
	LINK(is_gone, FIELD_BOOL),
	LINK(is_ended, FIELD_BOOL),
	LINK(is_detached, FIELD_BOOL),
	LINK(is_returned, FIELD_BOOL),
	{ 0 },
};

static PyObject *port_link(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;
	struct mr_link link = { 0 };

	(void)nothing;
	if (!mri_port_is_usable(self))
		return NULL;
	if (mr_port_link(self->port, &link) < 0)
		link.is_up = 1; /* it has no link that could be down */
	return mri_dict_of(link_fields, &link, 0);
}

#define INFO(member, kind) FIELD(mr_port_info, member, kind, 0)
static const struct field info_fields[] = {
	INFO(name, FIELD_TEXT),
	INFO(mode, FIELD_TEXT),
	INFO(why, FIELD_TEXT),
	INFO(n_rxqs, FIELD_NUMBER),
	INFO(n_txqs, FIELD_NUMBER),
	INFO(mtu_bytes, FIELD_NUMBER),
	INFO(has_sg, FIELD_BOOL),
	INFO(numa_node, FIELD_INT32),
	INFO(offloads, FIELD_NUMBER),
	INFO(launch_clock, FIELD_NUMBER),
	INFO(locked_bytes, FIELD_NUMBER),
	INFO(kernel_bytes, FIELD_NUMBER),
	INFO(has_mac, FIELD_BOOL),
	INFO(mac, FIELD_BYTES),
	INFO(netdev, FIELD_TEXT),
	INFO(n_channels, FIELD_NUMBER),
	{ 0 },
};

static PyObject *port_info(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	if (!mri_port_is_usable(self))
		return NULL;
	mr_port_info(self->port, &self->info);
	return mri_dict_of(info_fields, &self->info, 0);
}

static size_t print_text(const void *port, char *ret_text, size_t n_bytes)
{
	return mr_port_stats_text(port, ret_text, n_bytes);
}

static size_t print_json(const void *port, char *ret_text, size_t n_bytes)
{
	return mr_port_stats_json(port, ret_text, n_bytes);
}

static PyObject *port_stats_text(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	return mri_port_is_usable(self) ? mri_print(print_text, self->port) :
					  NULL;
}

static PyObject *port_stats_json(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;

	(void)nothing;
	return mri_port_is_usable(self) ? mri_print(print_json, self->port) :
					  NULL;
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
	{ "device_drops", mri_port_device_drops, METH_NOARGS,
	  "Pairs of name and frames lost before they reached a queue." },
	{ "stats_text", port_stats_text, METH_NOARGS,
	  "All counters of the port and its queues by name, one per line." },
	{ "stats_json", port_stats_json, METH_NOARGS,
	  "The same as a JSON object." },
	{ "device_stats", mri_port_device_stats, METH_NOARGS,
	  "Pairs of name and value: the device's own counters. A name may "
	  "occur twice." },
	KEYWORDS("set", mri_port_set,
		 "Change settings of the device until the port is closed, in "
		 "the order of the\nparameters: filter, mac, mac_filter (6 "
		 "bytes each), promisc, allmulti, mtu_bytes.\nIf one is "
		 "refused, the earlier ones stay."),
	KEYWORDS("set_rss", mri_port_set_rss,
		 "Distribute frames over the rx queues by hash. key: as long "
		 "as the device's;\ntable: the queue of each entry, one byte "
		 "each."),
	KEYWORDS("steer", mri_port_steer,
		 "Add a rule that steers frames to a queue: members of struct "
		 "mr_steer_rule.\nReturns its number."),
	{ "open_kernel", mri_port_open_kernel, METH_NOARGS,
	  "Prepare the port for to_kernel()." },
	{ "to_kernel", mri_port_to_kernel, METH_O,
	  "Hand frames received from this port to the kernel's network stack. "
	  "Returns how\nmany it took; the others are lost, and the burst is "
	  "empty." },
	{ "unsteer", mri_port_unsteer, METH_O, "Remove a rule of steer()." },
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
