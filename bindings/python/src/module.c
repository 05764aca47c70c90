/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its types, its exception, and what the types share. */
#include <string.h>

#include "binding.h"

PyObject *mri_error;
PyTypeObject *mri_pool_type, *mri_port_type, *mri_queue_type, *mri_rxq_type,
	*mri_txq_type, *mri_burst_type, *mri_frames_type, *mri_dataplane_type,
	*mri_worker_type;

PyObject *mri_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *mri_raise(int negative_errno, const char *text)
{
	PyObject *args = Py_BuildValue("(iN)", -negative_errno, mri_text(text));

	if (args != NULL)
		PyErr_SetObject(mri_error, args);
	Py_XDECREF(args);
	return NULL;
}

void mri_free_object(void *object)
{
	PyTypeObject *type = Py_TYPE((PyObject *)object);
	freefunc free_it = (freefunc)PyType_GetSlot(type, Py_tp_free);

	free_it(object);
	Py_DECREF(type);
}

PyObject *mri_self(PyObject *self, PyObject *nothing)
{
	(void)nothing;
	return Py_NewRef(self);
}

PyObject *mri_print(size_t (*print)(const void *of, char *ret_text,
				    size_t n_bytes),
		    const void *of)
{
	size_t n_bytes = 0, n;
	char *bytes = NULL, *more;
	PyObject *text;

	/* The counters may become longer in between. */
	while ((n = print(of, bytes, n_bytes)) >= n_bytes) {
		n_bytes = n + 64;
		more = PyMem_Realloc(bytes, n_bytes);
		if (more == NULL) {
			PyMem_Free(bytes);
			return PyErr_NoMemory();
		}
		bytes = more;
	}
	text = PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)n, "replace");
	PyMem_Free(bytes);
	return text;
}

#define FLAG(name)                                                             \
	{                                                                      \
		"Flag", #name, MR_FRAME_##name                                 \
	}
#define META(name)                                                             \
	{                                                                      \
		"Meta", #name, MR_META_##name                                  \
	}
#define HASH(name)                                                             \
	{                                                                      \
		"Hash", #name, MR_HASH_##name                                  \
	}
#define OFFLOAD(name)                                                          \
	{                                                                      \
		"Offload", #name, MR_OFFLOAD_##name                            \
	}
/* Flags, grouped by class. */
static const struct {
	const char *class, *name;
	unsigned int value;
} flags[] = {
	FLAG(MORE),         FLAG(CSUM_VALID),
	FLAG(CSUM_PARTIAL), META(RSS_HASH),
	META(RX_TIME),      META(VLAN),
	META(CSUM),         META(GSO),
	META(LAUNCH_TIME),  META(TX_TIME),
	META(MARK),         HASH(IPV4),
	HASH(IPV6),         HASH(L4),
	HASH(TCP),          HASH(UDP),
	OFFLOAD(CSUM_TX),   OFFLOAD(CSUM_RX),
	OFFLOAD(TSO4),      OFFLOAD(TSO6),
	OFFLOAD(USO),       OFFLOAD(RSS_HASH),
	OFFLOAD(VLAN_TX),   OFFLOAD(VLAN_RX),
	OFFLOAD(TIME_RX),   OFFLOAD(LAUNCH_TIME),
	OFFLOAD(LRO),       OFFLOAD(TIME_TX),
};

/* Add an enum.IntFlag for each class. */
static int add_flags(PyObject *module)
{
	const size_t n = sizeof(flags) / sizeof(flags[0]);
	PyObject *enums = PyImport_ImportModule("enum");
	PyObject *package = PyUnicode_FromString("millrace");
	int rc = enums == NULL || package == NULL ? -1 : 0;

	for (size_t i = 0; rc == 0 && i < n;) {
		const char *class = flags[i].class;
		PyObject *members = PyDict_New();
		PyObject *type;

		for (; i < n && strcmp(flags[i].class, class) == 0; i++)
			rc |= mri_set_item(members, flags[i].name,
					   PyLong_FromLong(flags[i].value));
		type = PyObject_CallMethod(enums, "IntFlag", "sN", class,
					   members);
		/* Where pickle looks for it. */
		if (type != NULL)
			rc |= PyObject_SetAttrString(type, "__module__",
						     package);
		rc |= mri_set_item(PyModule_GetDict(module), class, type);
	}
	Py_XDECREF(package);
	Py_XDECREF(enums);
	return rc;
}

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, .m_name = "millrace._millrace",
	.m_doc = "The part of the package millrace that is written in C.",
	.m_size = -1, /* static types: only for the main interpreter */
};

/* Bases come first. */
static const struct {
	PyTypeObject **type, **base;
	PyType_Spec *spec;
} types[] = {
	{ &mri_pool_type, NULL, &mri_pool_spec },
	{ &mri_port_type, NULL, &mri_port_spec },
	{ &mri_queue_type, NULL, &mri_queue_spec },
	{ &mri_rxq_type, &mri_queue_type, &mri_rxq_spec },
	{ &mri_txq_type, &mri_queue_type, &mri_txq_spec },
	{ &mri_burst_type, NULL, &mri_burst_spec },
	{ &mri_frames_type, NULL, &mri_frames_spec },
	{ &mri_dataplane_type, NULL, &mri_dataplane_spec },
	{ &mri_worker_type, NULL, &mri_worker_spec },
};

static int add_types(PyObject *module)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		PyTypeObject **base = types[i].base;
		PyObject *type = PyType_FromSpecWithBases(
			types[i].spec, base ? (PyObject *)*base : NULL);

		*types[i].type = (PyTypeObject *)type;
		if (type == NULL ||
		    PyModule_AddType(module, *types[i].type) < 0)
			return -1;
	}
	return 0;
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
	    mri_set_item(PyModule_GetDict(module), "meta_layout",
			 mri_meta_layout()) < 0 ||
	    add_flags(module) < 0 || add_types(module) < 0) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
