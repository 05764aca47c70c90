/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues. Each belongs to the first thread that uses it, until it is released:
 * the GIL makes two users safe, but not correct. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "binding.h"

struct py_queue {
	PyObject_HEAD
	struct py_port *port;
	uint32_t i;
};

static bool is_tx(struct py_queue *self)
{
	return Py_TYPE((PyObject *)self) == mri_txq_type;
}

PyObject *mri_queue_new(PyTypeObject *type, PyObject *port, PyObject *args)
{
	const struct mr_port_info *info = &((struct py_port *)port)->info;
	const uint32_t n = type == mri_txq_type ? info->n_txqs : info->n_rxqs;
	struct py_queue *self;
	uint32_t i = 0;

	if (!PyArg_ParseTuple(args, "|O&", mri_u32, &i))
		return NULL;
	if (i >= n)
		return PyErr_Format(PyExc_IndexError,
				    "%s has %u such queues, not %u",
				    info->name, n, i);
	self = PyObject_New(struct py_queue, type);
	if (self == NULL)
		return NULL;
	self->port = (struct py_port *)Py_NewRef(port);
	self->i = i;
	return (PyObject *)self;
}

static void queue_dealloc(PyObject *object)
{
	Py_DECREF(((struct py_queue *)object)->port);
	mri_free_object(object);
}

static unsigned long *owner_of(struct py_queue *self)
{
	const uint32_t n_before = is_tx(self) ? self->port->info.n_rxqs : 0;

	return &self->port->owners[n_before + self->i];
}

static bool is_open(struct py_queue *self)
{
	return mri_port_is_usable(self->port);
}

/* Whether the calling thread may use the queue; raises if not. */
static bool use(struct py_queue *self)
{
	const unsigned long me = PyThread_get_thread_ident();
	unsigned long *owner = owner_of(self);
	char why[160];

	if (!is_open(self))
		return false;
	if (*owner == 0)
		*owner = me;
	if (*owner == me)
		return true;
	snprintf(why, sizeof(why),
		 "%s: another thread uses %s queue %u; it has to call "
		 "release(), or to leave its with block",
		 self->port->info.name, is_tx(self) ? "tx" : "rx", self->i);
	mri_raise(-EBUSY, why);
	return false;
}

static struct mr_rxq *rxq_of(struct py_queue *self)
{
	return mr_port_rxq(self->port->port, self->i);
}

static struct mr_txq *txq_of(struct py_queue *self)
{
	return mr_port_txq(self->port->port, self->i);
}

static struct mr_queue *queue_of(struct py_queue *self)
{
	return is_tx(self) ? &txq_of(self)->queue : &rxq_of(self)->queue;
}

static PyObject *queue_enter(PyObject *object, PyObject *nothing)
{
	(void)nothing;
	return use((struct py_queue *)object) ? Py_NewRef(object) : NULL;
}

static PyObject *queue_release(PyObject *object, PyObject *nothing)
{
	(void)nothing;
	*owner_of((struct py_queue *)object) = 0;
	Py_RETURN_NONE;
}

static PyObject *queue_arm(PyObject *object, PyObject *nothing)
{
	struct py_queue *self = (struct py_queue *)object;

	(void)nothing;
	if (!use(self))
		return NULL;
	mr_cache_flush(mri_pool_cache(self->port->pool));
	return PyBool_FromLong(mr_queue_arm(queue_of(self)) == 0);
}

static PyObject *queue_fileno(PyObject *object, PyObject *nothing)
{
	struct py_queue *self = (struct py_queue *)object;

	(void)nothing;
	return is_open(self) ? PyLong_FromLong(mr_queue_fd(queue_of(self))) :
			       NULL;
}

static PyObject *rxq_receive(PyObject *object, PyObject *args)
{
	struct py_queue *self = (struct py_queue *)object;
	struct py_port *port = self->port;
	const uint32_t n_min = port->info.has_sg ? MR_MAX_SEGS : 1;
	uint32_t n = MR_BURST_MAX;
	struct py_burst *burst;

	if (!PyArg_ParseTuple(args, "|O&:receive", mri_u32, &n) || !use(self))
		return NULL;
	if (n < n_min || n > MR_BURST_MAX)
		return PyErr_Format(PyExc_ValueError,
				    "%s: %u entries; a burst has %u to %d",
				    port->info.name, n, n_min, MR_BURST_MAX);
	burst = mri_burst_new(port->pool, n);
	if (burst == NULL)
		return NULL;
	n = mr_rx_burst(rxq_of(self), mri_pool_cache(port->pool),
			burst->frames->entries, n);
	mri_frames_set_n(burst->frames, n);
	return (PyObject *)burst;
}

static PyObject *txq_send(PyObject *object, PyObject *burst)
{
	struct py_queue *self = (struct py_queue *)object;
	struct py_frames *frames;
	uint32_t n;

	if (!PyObject_TypeCheck(burst, mri_burst_type))
		return PyErr_Format(PyExc_TypeError, "send() takes a Burst");
	frames = mri_burst_take(burst);
	if (frames == NULL || !use(self))
		return NULL;
	if (frames->pool != self->port->pool)
		return PyErr_Format(PyExc_ValueError,
				    "the burst is of another pool");
	n = mr_tx_burst(txq_of(self), mri_pool_cache(frames->pool),
			frames->entries, frames->n);
	memmove(frames->entries, &frames->entries[n],
		(frames->n - n) * sizeof(frames->entries[0]));
	mri_frames_set_n(frames, frames->n - n);
	return PyLong_FromUnsignedLong(n);
}

static PyObject *txq_collect(PyObject *object, PyObject *nothing)
{
	struct py_queue *self = (struct py_queue *)object;

	(void)nothing;
	if (!use(self))
		return NULL;
	mr_tx_burst(txq_of(self), mri_pool_cache(self->port->pool), NULL, 0);
	Py_RETURN_NONE;
}

#define RX(name) { #name, offsetof(struct mr_rx_stats, name) }
#define TX(name) { #name, offsetof(struct mr_tx_stats, name) }
static const struct counter rx_counters[] = {
	RX(received), RX(delivered), RX(offloaded), RX(passed_to_kernel),
	RX(bytes), { NULL, 0 },
};
static const struct counter tx_counters[] = {
	TX(accepted), TX(completed), TX(pending), TX(bytes), { NULL, 0 },
};

/* Add to a dict, under a key, a dict of the values that have a name. */
static int add_named(PyObject *dict, const char *key,
		     const char *(*name_of)(uint32_t), const uint64_t *values)
{
	struct counter counters[MR_STATS_SLOTS + 1] = { { NULL, 0 } };
	PyObject *named = PyDict_New();
	int rc = -1;

	for (uint32_t i = 0; i < MR_STATS_SLOTS && name_of(i) != NULL; i++)
		counters[i] = (struct counter){ name_of(i),
						i * sizeof(values[0]) };
	if (named != NULL && mri_add_counters(named, counters, values) == 0)
		rc = PyDict_SetItemString(dict, key, named);
	Py_XDECREF(named);
	return rc;
}

static int add_rx(PyObject *dict, const struct mr_rxq *rxq)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	mr_rxq_stats(rxq, &stats);
	return mri_add_counters(dict, rx_counters, &stats) |
	       add_named(dict, "drops", mr_rx_drop_name, stats.drops) |
	       add_named(dict, "events", mr_rx_event_name, stats.events);
}

static int add_tx(PyObject *dict, const struct mr_txq *txq)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	mr_txq_stats(txq, &stats);
	return mri_add_counters(dict, tx_counters, &stats) |
	       add_named(dict, "drops", mr_tx_drop_name, stats.drops) |
	       add_named(dict, "events", mr_tx_event_name, stats.events);
}

static PyObject *queue_stats(PyObject *object, PyObject *nothing)
{
	struct py_queue *self = (struct py_queue *)object;
	PyObject *dict = PyDict_New();

	(void)nothing;
	/* Creating it may have run any code. */
	if (dict == NULL || !is_open(self) ||
	    (is_tx(self) ? add_tx(dict, txq_of(self)) :
			   add_rx(dict, rxq_of(self))) != 0)
		Py_CLEAR(dict);
	return dict;
}

static PyMethodDef methods[] = {
	{ "__enter__", queue_enter, METH_NOARGS, NULL },
	{ "__exit__", queue_release, METH_VARARGS, NULL },
	{ "release", queue_release, METH_NOARGS,
	  "Let another thread use the queue." },
	{ "arm", queue_arm, METH_NOARGS,
	  "Request a wake-up. True: fileno() becomes readable when there is "
	  "work.\nFalse: there is work now." },
	{ "fileno", queue_fileno, METH_NOARGS, "The fd for arm(); -1: none." },
	{ "stats", queue_stats, METH_NOARGS, "Counters of the queue." },
	{ NULL, NULL, 0, NULL },
};

static PyMethodDef rx_methods[] = {
	{ "receive", rxq_receive, METH_VARARGS,
	  "receive(n=256): return a burst of up to n entries. Never waits." },
	{ NULL, NULL, 0, NULL },
};

static PyMethodDef tx_methods[] = {
	{ "send", txq_send, METH_O,
	  "Offer a burst. Returns how many entries were taken; the burst keeps "
	  "the rest.\nEnds its views. Never waits." },
	{ "collect", txq_collect, METH_NOARGS,
	  "Collect completions from the device, and wake it." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A queue of a port. Only one thread may use it at a "
		     "time." },
	{ Py_tp_dealloc, queue_dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Slot rx_slots[] = {
	{ Py_tp_doc, "An rx queue: Port.rx()." },
	{ Py_tp_dealloc, queue_dealloc },
	{ Py_tp_methods, rx_methods },
	{ 0, NULL },
};

static PyType_Slot tx_slots[] = {
	{ Py_tp_doc, "A tx queue: Port.tx()." },
	{ Py_tp_dealloc, queue_dealloc },
	{ Py_tp_methods, tx_methods },
	{ 0, NULL },
};

PyType_Spec mri_queue_spec = {
	.name = "millrace.Queue",
	.basicsize = sizeof(struct py_queue),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};

PyType_Spec mri_rxq_spec = {
	.name = "millrace.RxQueue",
	.basicsize = sizeof(struct py_queue),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = rx_slots,
};

PyType_Spec mri_txq_spec = {
	.name = "millrace.TxQueue",
	.basicsize = sizeof(struct py_queue),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = tx_slots,
};
