/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues. Each belongs to the first thread that uses it, until it is released:
 * the GIL makes two users safe, but not correct. */
#include <errno.h>
#include <stdio.h>

#include "binding.h"

struct py_queue {
	PyObject_HEAD struct py_port *port;
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
	uint32_t i = 0;

	if (!PyArg_ParseTuple(args, "|O&", mri_u32, &i))
		return NULL;
	if (i >= n)
		return PyErr_Format(PyExc_IndexError,
				    "%s has %u such queues, not %u", info->name,
				    n, i);
	return mri_queue_of(type, port, i);
}

PyObject *mri_queue_of(PyTypeObject *type, PyObject *port, uint32_t i)
{
	struct py_queue *self;

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
	if (self->port->is_of_dataplane) {
		mri_raise(-EBUSY, "the data plane's workers use its queues");
		return false;
	}
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

static PyObject *rxq_receive(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "", "meta", NULL };
	struct py_queue *self = (struct py_queue *)object;
	struct py_port *port = self->port;
	const uint32_t n_min = port->info.has_sg ? MR_MAX_SEGS : 1;
	uint32_t n = MR_BURST_MAX;
	struct py_burst *burst;
	int has_meta = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&$p:receive", names,
					 mri_u32, &n, &has_meta) ||
	    !use(self))
		return NULL;
	if (n < n_min || n > MR_BURST_MAX)
		return PyErr_Format(PyExc_ValueError,
				    "%s: %u entries; a burst has %u to %d",
				    port->info.name, n, n_min, MR_BURST_MAX);
	burst = mri_burst_new(port->pool, n);
	if (burst != NULL && has_meta &&
	    mri_frames_add_metas(burst->frames) < 0)
		Py_CLEAR(burst);
	if (burst == NULL)
		return NULL;
	n = mr_rx_burst_meta(rxq_of(self), mri_pool_cache(port->pool),
			     burst->frames->entries, burst->frames->metas, n);
	mri_frames_set_n(burst->frames, n);
	return (PyObject *)burst;
}

static PyObject *txq_send(PyObject *object, PyObject *burst)
{
	struct py_queue *self = (struct py_queue *)object;
	struct py_frames *frames = mri_burst_take(burst, self->port->pool);
	uint32_t n;

	if (frames == NULL || !use(self))
		return NULL;
	n = mr_tx_burst_meta(txq_of(self), mri_pool_cache(frames->pool),
			     frames->entries, frames->metas, frames->n);
	mri_frames_drop_first(frames, n);
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

static PyObject *txq_times(PyObject *object, PyObject *nothing)
{
	struct py_queue *self = (struct py_queue *)object;
	struct mr_meta metas[MR_BURST_MAX];
	PyObject *list;
	uint32_t n;

	(void)nothing;
	if (!use(self))
		return NULL;
	n = mr_txq_times(txq_of(self), metas, MR_BURST_MAX);
	list = PyList_New(n);
	for (uint32_t i = 0; list != NULL && i < n; i++) {
		PyObject *dict =
			mri_dict_of(mri_meta_fields, &metas[i], metas[i].valid);

		if (dict == NULL || PyList_SetItem(list, i, dict) < 0)
			Py_CLEAR(list);
	}
	return list;
}

#define RX(name) FIELD(mr_rx_stats, name, FIELD_NUMBER, 0)
#define TX(name) FIELD(mr_tx_stats, name, FIELD_NUMBER, 0)
static const struct field rx_fields[] = {
	RX(received),         RX(delivered), RX(offloaded),
	RX(passed_to_kernel), RX(bytes),     { 0 },
};
static const struct field tx_fields[] = {
	TX(accepted), TX(completed), TX(pending), TX(bytes), { 0 },
};

/* A dict of values by name. */
static PyObject *named(const char *(*name_of)(uint32_t), const uint64_t *values)
{
	struct field fields[MR_STATS_SLOTS + 1] = { { 0 } };

	for (uint32_t i = 0; i < MR_STATS_SLOTS && name_of(i) != NULL; i++)
		fields[i] =
			(struct field){ name_of(i),
					(uint16_t)(i * sizeof(values[0])),
					sizeof(values[0]), FIELD_NUMBER, 0 };
	return mri_dict_of(fields, values, 0);
}

static PyObject *queue_stats(PyObject *object, PyObject *nothing)
{
	struct py_queue *self = (struct py_queue *)object;
	struct mr_rx_stats rx = { .size = sizeof(rx) };
	struct mr_tx_stats tx = { .size = sizeof(tx) };
	PyObject *dict, *drops, *events;

	(void)nothing;
	if (!is_open(self))
		return NULL;
	if (is_tx(self)) {
		mr_txq_stats(txq_of(self), &tx);
		dict = mri_dict_of(tx_fields, &tx, 0);
		drops = named(mr_tx_drop_name, tx.drops);
		events = named(mr_tx_event_name, tx.events);
	} else {
		mr_rxq_stats(rxq_of(self), &rx);
		dict = mri_dict_of(rx_fields, &rx, 0);
		drops = named(mr_rx_drop_name, rx.drops);
		events = named(mr_rx_event_name, rx.events);
	}
	if ((mri_set_item(dict, "drops", drops) |
	     mri_set_item(dict, "events", events)) < 0)
		Py_CLEAR(dict);
	return dict;
}

static PyObject *get_port_idx(PyObject *object, void *nothing)
{
	(void)nothing;
	return PyLong_FromUnsignedLong(((struct py_queue *)object)->port->idx);
}

static PyObject *get_queue_idx(PyObject *object, void *nothing)
{
	(void)nothing;
	return PyLong_FromUnsignedLong(((struct py_queue *)object)->i);
}

static PyGetSetDef members[] = {
	{ "port_idx", get_port_idx, NULL,
	  "The place of its port in the data plane; otherwise 0.", NULL },
	{ "queue_idx", get_queue_idx, NULL, "Its number.", NULL },
	{ 0 },
};

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
	KEYWORDS("receive", rxq_receive,
		 "receive(n=256, *, meta=False): return a burst of up to n "
		 "entries, with metadata\nif asked. Never waits."),
	{ NULL, NULL, 0, NULL },
};

static PyMethodDef tx_methods[] = {
	{ "send", txq_send, METH_O,
	  "Offer a burst, with its metadata. Returns how many entries were "
	  "taken; the burst\nkeeps the rest. Ends its views. Never waits." },
	{ "collect", txq_collect, METH_NOARGS,
	  "Collect completions from the device, and wake it." },
	{ "times", txq_times, METH_NOARGS,
	  "Take the transmit timestamps of frames that had tx_ns set, each "
	  "with its mark." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A queue of a port. Only one thread may use it at a "
		     "time." },
	{ Py_tp_dealloc, queue_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, members },
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
