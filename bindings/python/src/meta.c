/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata of a burst: of one frame as a dict, of all as an array. */
#include <string.h>

#include "binding.h"

#define META(member, valid) FIELD(mr_meta, member, FIELD_NUMBER, valid)
const struct field mri_meta_fields[] = {
	META(valid, 0),
	META(rss_hash, MR_META_RSS_HASH),
	META(hash_type, MR_META_RSS_HASH),
	META(mark, MR_META_MARK),
	META(rx_ns, MR_META_RX_TIME),
	META(rx_clock, MR_META_RX_TIME),
	META(launch_ns, MR_META_LAUNCH_TIME),
	META(launch_clock, MR_META_LAUNCH_TIME),
	META(tx_ns, MR_META_TX_TIME),
	META(tx_clock, MR_META_TX_TIME),
	META(vlan_proto, MR_META_VLAN),
	META(vlan_tci, MR_META_VLAN),
	META(csum_start_bytes, MR_META_CSUM),
	META(csum_offset_bytes, MR_META_CSUM),
	META(gso_bytes, MR_META_GSO),
	META(gso_type, MR_META_GSO),
	{ 0 },
};

PyObject *mri_meta_layout(void)
{
	PyObject *layout = PyDict_New();

	for (const struct field *f = mri_meta_fields;
	     layout != NULL && f->name != NULL; f++) {
		PyObject *type = PyUnicode_FromFormat("u%d", (int)f->n_bytes);

		if (mri_set_item(layout, f->name,
				 Py_BuildValue("(Ni)", type, (int)f->offset)) <
		    0)
			Py_CLEAR(layout);
	}
	return layout;
}

int mri_frames_add_metas(struct py_frames *self)
{
	const size_t n = (size_t)Py_SIZE((PyObject *)self);

	if (self->metas == NULL)
		self->metas = PyMem_Calloc(n, sizeof(self->metas[0]));
	if (self->metas != NULL)
		return 0;
	PyErr_NoMemory();
	return -1;
}

/* Whether there is an entry i; raises if not. */
static bool has(const struct py_frames *self, uint32_t i)
{
	if (i < self->n)
		return true;
	PyErr_SetString(PyExc_IndexError, "no such entry");
	return false;
}

PyObject *mri_burst_meta(PyObject *burst, PyObject *number)
{
	struct py_frames *frames = ((struct py_burst *)burst)->frames;
	struct mr_meta meta = { 0 };
	uint32_t i;

	if (!mri_u32(number, &i) || !has(frames, i))
		return NULL;
	if (frames->metas != NULL)
		meta = frames->metas[i];
	return mri_dict_of(mri_meta_fields, &meta, meta.valid);
}

PyObject *mri_burst_set_meta(PyObject *burst, PyObject *args, PyObject *kwargs)
{
	struct py_frames *frames = ((struct py_burst *)burst)->frames;
	struct mr_meta meta = { 0 };
	uint32_t i, valid = 0;

	if (!PyArg_ParseTuple(args, "O&:set_meta", mri_u32, &i) ||
	    mri_set_fields(mri_meta_fields, &meta, &valid, kwargs) < 0 ||
	    !has(frames, i) || mri_frames_add_metas(frames) < 0)
		return NULL;
	meta.valid |= valid;
	frames->metas[i] = meta;
	if (meta.valid & MR_META_CSUM)
		frames->entries[i].flags |= MR_FRAME_CSUM_PARTIAL;
	Py_RETURN_NONE;
}

PyObject *mri_burst_copy_metas(PyObject *burst, PyObject *array)
{
	struct py_frames *frames = ((struct py_burst *)burst)->frames;
	const size_t n_bytes = frames->n * sizeof(struct mr_meta);
	Py_buffer room;

	if (mri_get_room(array, &room, frames->n, sizeof(struct mr_meta)) < 0)
		return NULL;
	if (frames->metas != NULL)
		memcpy(room.buf, frames->metas, n_bytes);
	else
		memset(room.buf, 0, n_bytes);
	PyBuffer_Release(&room);
	return PyLong_FromUnsignedLong(frames->n);
}
