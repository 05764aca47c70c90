/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs of the library as dicts and keyword arguments, by a table for each.
 */
#include <string.h>

#include "binding.h"

static uint64_t load(const void *at, uint32_t n_bytes)
{
	switch (n_bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void store(void *at, uint32_t n_bytes, uint64_t value)
{
	switch (n_bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(uint64_t *)at = value;
	}
}

static PyObject *value_of(const struct field *field, const void *from)
{
	const char *at = (const char *)from + field->offset;

	switch (field->kind) {
	case FIELD_TEXT:
		return mri_text(at);
	case FIELD_BYTES:
		return PyBytes_FromStringAndSize(at, field->n_bytes);
	case FIELD_BOOL:
		return PyBool_FromLong(load(at, field->n_bytes) != 0);
	case FIELD_INT32:
		return PyLong_FromLong(*(const int32_t *)(const void *)at);
	default:
		return PyLong_FromUnsignedLongLong(load(at, field->n_bytes));
	}
}

int mri_set_item(PyObject *dict, const char *key, PyObject *value)
{
	const int rc = dict == NULL || value == NULL ?
			       -1 :
			       PyDict_SetItemString(dict, key, value);

	Py_XDECREF(value);
	return rc;
}

PyObject *mri_dict_of(const struct field *fields, const void *from,
		      uint32_t valid)
{
	PyObject *dict = PyDict_New();

	for (; dict != NULL && fields->name != NULL; fields++) {
		if ((fields->valid & valid) == fields->valid &&
		    mri_set_item(dict, fields->name, value_of(fields, from)) <
			    0)
			Py_CLEAR(dict);
	}
	return dict;
}

int mri_number(PyObject *object, uint64_t most, uint64_t *ret)
{
	PyObject *number = PyNumber_Index(object);
	uint64_t value;

	if (number == NULL)
		return -1;
	value = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (value == UINT64_MAX && PyErr_Occurred() != NULL)
		return -1;
	if (value > most) {
		PyErr_Format(PyExc_OverflowError, "%llu is above %llu",
			     (unsigned long long)value,
			     (unsigned long long)most);
		return -1;
	}
	*ret = value;
	return 0;
}

int mri_u32(PyObject *number, void *ret)
{
	uint64_t value;

	if (mri_number(number, UINT32_MAX, &value) < 0)
		return 0;
	*(uint32_t *)ret = (uint32_t)value;
	return 1;
}

int mri_bytes(PyObject *object, void *to, size_t least, size_t most)
{
	Py_buffer from;
	int rc = -1;

	if (PyObject_GetBuffer(object, &from, PyBUF_SIMPLE) < 0)
		return -1;
	if ((size_t)from.len == least || (size_t)from.len == most) {
		memcpy(to, from.buf, (size_t)from.len);
		rc = 0;
	} else {
		PyErr_Format(PyExc_ValueError, "%zd bytes instead of %zu",
			     from.len, most);
	}
	PyBuffer_Release(&from);
	return rc;
}

static int set(void *at, const struct field *field, PyObject *value)
{
	const uint32_t n_bits = 8u * field->n_bytes;
	uint64_t number;

	if (field->kind == FIELD_BYTES)
		return mri_bytes(value, at, field->n_bytes, field->n_bytes);
	if (field->kind == FIELD_ADDRESS) /* of IPv4 or IPv6 */
		return mri_bytes(value, at, 4, field->n_bytes);
	if (mri_number(value, UINT64_MAX >> (64 - n_bits), &number) < 0)
		return -1;
	store(at, field->n_bytes, number);
	return 0;
}

int mri_set_fields(const struct field *fields, void *to, uint32_t *valid,
		   PyObject *kwargs)
{
	PyObject *name, *value;
	Py_ssize_t i = 0;

	while (kwargs != NULL && PyDict_Next(kwargs, &i, &name, &value)) {
		const struct field *field = fields;

		while (field->name != NULL &&
		       PyUnicode_CompareWithASCIIString(name, field->name) != 0)
			field++;
		if (field->name == NULL) {
			PyErr_Format(PyExc_TypeError, "there is no %R", name);
			return -1;
		}
		if (set((char *)to + field->offset, field, value) < 0)
			return -1;
		*valid |= field->valid;
	}
	return 0;
}
