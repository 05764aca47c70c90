/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its types, its exception, and what the types share. */
#include <string.h>

#include "binding.h"

PyObject *mri_error;
PyTypeObject *mri_pool_type, *mri_port_type, *mri_queue_type, *mri_rxq_type,
	*mri_txq_type, *mri_burst_type, *mri_frames_type;

PyObject *mri_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *mri_raise(int negative_errno, const char *text)
{
	PyObject *args =
		Py_BuildValue("(iN)", -negative_errno, mri_text(text));

	if (args != NULL)
		PyErr_SetObject(mri_error, args);
	Py_XDECREF(args);
	return NULL;
}

int mri_u32(PyObject *number, void *ret)
{
	const unsigned long value = PyLong_AsUnsignedLong(number);

	if (value == (unsigned long)-1 && PyErr_Occurred() != NULL)
		return 0;
	if (value > UINT32_MAX) {
		PyErr_SetString(PyExc_OverflowError, "above 4294967295");
		return 0;
	}
	*(uint32_t *)ret = (uint32_t)value;
	return 1;
}

void mri_free_object(void *object)
{
	PyTypeObject *type = Py_TYPE((PyObject *)object);
	freefunc free_it = (freefunc)PyType_GetSlot(type, Py_tp_free);

	free_it(object);
	Py_DECREF(type);
}

int mri_add_counters(PyObject *dict, const struct counter *counters,
		     const void *stats)
{
	for (; counters->name != NULL; counters++) {
		const void *at = (const char *)stats + counters->offset;
		PyObject *value =
			PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
		const int rc = value == NULL ?
			-1 : PyDict_SetItemString(dict, counters->name, value);

		Py_XDECREF(value);
		if (rc < 0)
			return rc;
	}
	return 0;
}

PyObject *mri_self(PyObject *self, PyObject *nothing)
{
	(void)nothing;
	return Py_NewRef(self);
}

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "millrace._millrace",
	.m_doc = "The part of the package millrace that is written in C.",
	.m_size = -1, /* static types: only for the main interpreter */
};

static int add_type(PyObject *module, PyTypeObject **type, PyType_Spec *spec,
		    PyTypeObject *base)
{
	*type = (PyTypeObject *)PyType_FromSpecWithBases(spec,
							 (PyObject *)base);
	return *type == NULL ? -1 : PyModule_AddType(module, *type);
}

PyMODINIT_FUNC PyInit__millrace(void)
{
	PyObject *module = PyModule_Create(&definition);

	if (module == NULL)
		return NULL;
	mri_error = PyErr_NewExceptionWithDoc(
		"millrace.Error",
		"A call of the library failed: errno, and in strerror one line "
		"that\nstates cause and remedy.",
		PyExc_OSError, NULL);
	if (mri_error == NULL ||
	    PyModule_AddObjectRef(module, "Error", mri_error) < 0 ||
	    PyModule_AddStringConstant(module, "version", mr_version()) < 0 ||
	    PyModule_AddIntConstant(module, "BURST_MAX", MR_BURST_MAX) < 0 ||
	    PyModule_AddIntConstant(module, "MORE", MR_FRAME_MORE) < 0 ||
	    add_type(module, &mri_pool_type, &mri_pool_spec, NULL) < 0 ||
	    add_type(module, &mri_port_type, &mri_port_spec, NULL) < 0 ||
	    add_type(module, &mri_queue_type, &mri_queue_spec, NULL) < 0 ||
	    add_type(module, &mri_rxq_type, &mri_rxq_spec, mri_queue_type) < 0 ||
	    add_type(module, &mri_txq_type, &mri_txq_spec, mri_queue_type) < 0 ||
	    add_type(module, &mri_burst_type, &mri_burst_spec, NULL) < 0 ||
	    add_type(module, &mri_frames_type, &mri_frames_spec, NULL) < 0) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
