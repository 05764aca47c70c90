/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings and counters of a port's device. Arguments are converted before the
 * port is used, because converting may run any code, which may close the port.
 */
#include <millrace/experimental/port_queues.h>

#include "binding.h"

enum { MAX_TABLE = 1024 }; /* entries; no device has more */

struct number {
	bool is_set;
	uint32_t value;
};

static int to_number(PyObject *object, void *ret)
{
	struct number *number = ret;

	number->is_set = true;
	return mri_u32(object, &number->value);
}

/* Return None, or raise. */
static PyObject *result(int rc, const struct mr_reason *why)
{
	if (rc < 0)
		return mri_raise(rc, why->text);
	Py_RETURN_NONE;
}

PyObject *mri_port_set(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "filter",  "mac",      "mac_filter",
				 "promisc", "allmulti", "mtu_bytes",
				 NULL };
	struct number promisc = { 0 }, allmulti = { 0 }, mtu = { 0 };
	struct py_port *self = (struct py_port *)object;
	const char *filter = NULL, *mac = NULL, *macs = NULL;
	Py_ssize_t n_mac = 6, n_macs = 0;
	struct mr_reason why;
	int rc = 0;

	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "|$sy#y#O&O&O&:set", names, &filter, &mac,
		    &n_mac, &macs, &n_macs, to_number, &promisc, to_number,
		    &allmulti, to_number, &mtu) ||
	    !mri_port_is_usable(self))
		return NULL;
	if (n_mac != 6 || n_macs % 6 != 0)
		return PyErr_Format(PyExc_ValueError, "an address has 6 bytes");
	if (filter != NULL)
		rc = mr_port_set_filter(self->port, filter, &why);
	if (rc == 0 && mac != NULL)
		rc = mr_port_set_mac(self->port, (const uint8_t *)mac, &why);
	if (rc == 0 && macs != NULL)
		rc = mr_port_set_mac_filter(self->port, (const void *)macs,
					    (uint32_t)(n_macs / 6), &why);
	if (rc == 0 && promisc.is_set)
		rc = mr_port_set_promisc(self->port, promisc.value, &why);
	if (rc == 0 && allmulti.is_set)
		rc = mr_port_set_allmulti(self->port, allmulti.value, &why);
	if (rc == 0 && mtu.is_set)
		rc = mr_port_set_mtu(self->port, mtu.value, &why);
	return result(rc, &why);
}

PyObject *mri_port_set_rss(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "key", "table", "fields", "keep", NULL };
	struct mr_rss_config config = { .size = sizeof(config) };
	struct py_port *self = (struct py_port *)object;
	const char *key = NULL, *table = NULL;
	Py_ssize_t n_key = 0, n_table = 0;
	uint32_t queues[MAX_TABLE];
	struct mr_reason why;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$z#z#O&O&:set_rss",
					 names, &key, &n_key, &table, &n_table,
					 mri_u32, &config.fields, mri_u32,
					 &config.keep) ||
	    !mri_port_is_usable(self))
		return NULL;
	if (n_table > MAX_TABLE)
		return PyErr_Format(PyExc_ValueError,
				    "a table has up to %d entries", MAX_TABLE);
	for (Py_ssize_t i = 0; i < n_table; i++)
		queues[i] = (uint8_t)table[i];
	config.key = n_key > 0 ? (const uint8_t *)key : NULL;
	config.n_key_bytes = (uint32_t)n_key;
	config.table = n_table > 0 ? queues : NULL;
	config.n_entries = (uint32_t)n_table;
	return result(mr_port_set_rss(self->port, &config, &why), &why);
}

#define RULE(member, kind) FIELD(mr_steer_rule, member, kind, 0)
static const struct field rule_fields[] = {
	RULE(queue, FIELD_NUMBER),         RULE(ethertype, FIELD_NUMBER),
	RULE(protocol, FIELD_NUMBER),      RULE(is_ipv6, FIELD_NUMBER),
	RULE(dst_mac, FIELD_BYTES),        RULE(src_port, FIELD_NUMBER),
	RULE(src_port_mask, FIELD_NUMBER), RULE(dst_port, FIELD_NUMBER),
	RULE(dst_port_mask, FIELD_NUMBER), RULE(src, FIELD_ADDRESS),
	RULE(src_mask, FIELD_ADDRESS),     RULE(dst, FIELD_ADDRESS),
	RULE(dst_mask, FIELD_ADDRESS),     { 0 },
};

PyObject *mri_port_steer(PyObject *object, PyObject *args, PyObject *kwargs)
{
	struct mr_steer_rule rule = { .size = sizeof(rule) };
	struct py_port *self = (struct py_port *)object;
	uint32_t id, valid = 0;
	struct mr_reason why;
	int rc;

	if (!PyArg_ParseTuple(args, ":steer") ||
	    mri_set_fields(rule_fields, &rule, &valid, kwargs) < 0 ||
	    !mri_port_is_usable(self))
		return NULL;
	rc = mr_port_steer(self->port, &rule, &id, &why);
	return rc < 0 ? mri_raise(rc, why.text) : PyLong_FromUnsignedLong(id);
}

PyObject *mri_port_unsteer(PyObject *object, PyObject *number)
{
	struct py_port *self = (struct py_port *)object;
	struct mr_reason why;
	uint32_t id;

	if (!mri_u32(number, &id) || !mri_port_is_usable(self))
		return NULL;
	return result(mr_port_unsteer(self->port, id, &why), &why);
}

/* Pairs, because a name may occur twice. */
static PyObject *pairs_of(const struct mr_named_count *counts, uint32_t n)
{
	PyObject *list = PyList_New(n);

	for (uint32_t i = 0; list != NULL && i < n; i++) {
		PyObject *pair = Py_BuildValue("(NK)", mri_text(counts[i].name),
					       counts[i].value);

		if (pair == NULL || PyList_SetItem(list, i, pair) < 0)
			Py_CLEAR(list);
	}
	return list;
}

typedef uint32_t counts_fn(const struct mr_port *port,
			   struct mr_named_count *ret_counts, uint32_t n);

static PyObject *counts_of(PyObject *object, counts_fn *get)
{
	struct py_port *self = (struct py_port *)object;
	struct mr_named_count *counts = NULL;
	uint32_t n, n_room = 0;
	PyObject *list;
	int has_gc;

	if (!mri_port_is_usable(self))
		return NULL;
	while ((n = get(self->port, counts, n_room)) > n_room) {
		PyMem_Free(counts);
		n_room = n;
		counts = PyMem_Calloc(n, sizeof(counts[0]));
		if (counts == NULL)
			return PyErr_NoMemory();
	}
	has_gc = PyGC_Disable(); /* might close the port, which has the names */
	list = pairs_of(counts, n);
	if (has_gc)
		PyGC_Enable();
	PyMem_Free(counts);
	return list;
}

PyObject *mri_port_device_drops(PyObject *port, PyObject *nothing)
{
	(void)nothing;
	return counts_of(port, mr_port_device_drops);
}

PyObject *mri_port_device_stats(PyObject *port, PyObject *nothing)
{
	(void)nothing;
	return counts_of(port, mr_port_device_stats);
}

PyObject *mri_port_open_kernel(PyObject *object, PyObject *nothing)
{
	struct py_port *self = (struct py_port *)object;
	struct mr_reason why;

	(void)nothing;
	if (!mri_port_is_usable(self))
		return NULL;
	return result(mr_port_open_kernel(self->port, &why), &why);
}

PyObject *mri_port_to_kernel(PyObject *object, PyObject *burst)
{
	struct py_port *self = (struct py_port *)object;
	struct py_frames *frames = mri_burst_take(burst, self->pool);
	uint32_t n;

	if (frames == NULL || !mri_port_is_usable(self))
		return NULL;
	n = mr_port_to_kernel(self->port, mri_pool_cache(frames->pool),
			      frames->entries, frames->n);
	mri_frames_set_n(frames, 0);
	return PyLong_FromUnsignedLong(n);
}
