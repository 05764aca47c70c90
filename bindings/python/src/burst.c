/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts, and views of their bytes that end with them.
 *
 * A memoryview that was handed out cannot be revoked. It can only be released,
 * by its release(), which fails while somebody (such as numpy) holds its bytes;
 * and a slice of a view is a view of its own. So a burst lists the views that
 * it made, releases them before it gives its frames away, and counts those
 * left. Unless that is 0, the frames stay where they are, and the call raises
 * BufferError, like mmap.close(). A burst that is merely dropped keeps its
 * frames for as long as there are views.
 */
#include <errno.h>
#include <string.h>

#include "binding.h"

enum { NOTHING = MR_BURST_MAX }; /* no entry's index */

/* -- the frames ----------------------------------------------------------- */

static int frames_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct py_frames *self = (struct py_frames *)object;
	const struct mr_frame *frame;

	if (self->shown >= self->n) {
		PyErr_SetString(PyExc_BufferError, "a view is burst[i]");
		view->obj = NULL;
		return -1;
	}
	frame = &self->entries[self->shown];
	if (PyBuffer_FillInfo(view, object,
			      mr_frame_data(self->pool->base, frame),
			      frame->len, 0, flags) < 0)
		return -1;
	self->n_exports++;
	return 0;
}

static void frames_releasebuffer(PyObject *object, Py_buffer *view)
{
	(void)view;
	((struct py_frames *)object)->n_exports--;
}

/* Free n entries, in the process that they belong to. With none, the pool may
 * be closed. */
static void free_entries(struct py_pool *pool, const struct mr_frame *entries,
			 uint32_t n)
{
	if (n > 0 && !mri_pool_is_foreign(pool))
		mr_frame_free_bulk(mri_pool_cache(pool), entries, n);
}

void mri_frames_set_n(struct py_frames *self, uint32_t n)
{
	self->pool->n_users += (n > 0) - (self->n > 0);
	self->n = n;
	if (self->pool->is_ending)
		mri_pool_end(self->pool);
}

void mri_frames_drop_first(struct py_frames *self, uint32_t n)
{
	const uint32_t n_left = self->n - n;

	memmove(self->entries, &self->entries[n],
		n_left * sizeof(self->entries[0]));
	if (self->metas != NULL)
		memmove(self->metas, &self->metas[n],
			n_left * sizeof(self->metas[0]));
	mri_frames_set_n(self, n_left);
}

static void free_frames(struct py_frames *self)
{
	free_entries(self->pool, self->entries, self->n);
	mri_frames_set_n(self, 0);
}

static void frames_dealloc(PyObject *object)
{
	struct py_frames *self = (struct py_frames *)object;

	free_frames(self);
	PyMem_Free(self->metas);
	Py_DECREF((PyObject *)self->pool);
	mri_free_object(self);
}

static PyType_Slot frames_slots[] = {
	{ Py_tp_doc, "The frames that the views of a burst refer to." },
	{ Py_tp_dealloc, frames_dealloc },
	{ Py_bf_getbuffer, frames_getbuffer },
	{ Py_bf_releasebuffer, frames_releasebuffer },
	{ 0, NULL },
};

PyType_Spec mri_frames_spec = {
	.name = "millrace.Frames",
	.basicsize = sizeof(struct py_frames),
	.itemsize = sizeof(struct mr_frame),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = frames_slots,
};

/* -- the burst ------------------------------------------------------------ */

struct py_burst *mri_burst_new(struct py_pool *pool, uint32_t n)
{
	struct py_burst *self = PyObject_New(struct py_burst, mri_burst_type);

	if (self == NULL)
		return NULL;
	self->views = NULL;
	self->frames = PyObject_NewVar(struct py_frames, mri_frames_type, n);
	if (self->frames == NULL) {
		Py_DECREF((PyObject *)self);
		return NULL;
	}
	self->frames->pool = (struct py_pool *)Py_NewRef((PyObject *)pool);
	self->frames->n = 0;
	self->frames->n_exports = 0;
	self->frames->shown = NOTHING;
	self->frames->metas = NULL;
	return self;
}

/*
 * End the views that can be ended. Dropping the last reference to one may run
 * code (of weak references), even this function for the same burst.
 */
static void end_views(struct py_burst *self)
{
	const uint32_t n = self->frames->n;
	PyObject **views = self->views;
	bool is_any_left = false;

	self->views = NULL;
	for (uint32_t i = 0; views != NULL && i < n; i++) {
		/* If this is the last reference, dropping it ends the view. */
		if (views[i] != NULL && Py_REFCNT(views[i]) > 1) {
			PyObject *done =
				PyObject_CallMethod(views[i], "release", NULL);

			if (done == NULL) { /* somebody has its bytes */
				PyErr_Clear();
				is_any_left = true;
				continue;
			}
			Py_DECREF(done);
		}
		Py_CLEAR(views[i]);
	}
	if (is_any_left && self->views == NULL && self->frames->n == n) {
		self->views = views; /* for the next attempt */
		return;
	}
	for (uint32_t i = 0; is_any_left && i < n; i++)
		Py_XDECREF(views[i]);
	PyMem_Free(views);
}

/* End the views of a burst, and return its frames. NULL: raised. */
static struct py_frames *take(PyObject *burst)
{
	struct py_burst *self = (struct py_burst *)burst;

	end_views(self);
	if (self->frames->n_exports == 0)
		return self->frames;
	PyErr_Format(PyExc_BufferError,
		     "%u views of the burst are in use: release them first",
		     self->frames->n_exports);
	return NULL;
}

struct py_frames *mri_burst_take(PyObject *burst, const struct py_pool *pool)
{
	if (!PyObject_TypeCheck(burst, mri_burst_type))
		PyErr_SetString(PyExc_TypeError,
				"the argument must be a Burst");
	else if (((struct py_burst *)burst)->frames->pool != pool)
		PyErr_SetString(PyExc_ValueError,
				"the burst is of another pool");
	else
		return take(burst);
	return NULL;
}

static void burst_dealloc(PyObject *object)
{
	struct py_burst *self = (struct py_burst *)object;

	for (uint32_t i = 0; self->views != NULL && i < self->frames->n; i++)
		Py_XDECREF(self->views[i]);
	PyMem_Free(self->views);
	Py_XDECREF((PyObject *)self->frames);
	mri_free_object(self);
}

static PyObject *burst_release(PyObject *object, PyObject *nothing)
{
	struct py_frames *frames = take(object);

	(void)nothing;
	if (frames == NULL)
		return NULL;
	free_frames(frames);
	Py_RETURN_NONE;
}

static Py_ssize_t burst_length(PyObject *object)
{
	return ((struct py_burst *)object)->frames->n;
}

static PyObject *burst_item(PyObject *object, Py_ssize_t i)
{
	struct py_burst *self = (struct py_burst *)object;
	struct py_frames *frames = self->frames;
	PyObject *view;
	uint32_t shown;

	if (i < 0 || i >= frames->n) {
		PyErr_SetString(PyExc_IndexError, "no such entry");
		return NULL;
	}
	if (self->views != NULL && self->views[i] != NULL)
		return Py_NewRef(self->views[i]);
	shown = frames->shown;
	frames->shown = (uint32_t)i;
	view = PyMemoryView_FromObject((PyObject *)frames);
	frames->shown = shown;
	/* That may have run the garbage collector, and thus any code. */
	if (view == NULL || i >= frames->n)
		return view;
	if (self->views == NULL)
		self->views = PyMem_Calloc(frames->n, sizeof(PyObject *));
	if (self->views != NULL && self->views[i] == NULL)
		self->views[i] = Py_NewRef(view);
	return view;
}

int mri_get_room(PyObject *array, Py_buffer *room, size_t n, size_t item_bytes)
{
	if (PyObject_GetBuffer(array, room, PyBUF_WRITABLE) < 0)
		return -1;
	if ((size_t)room->len / item_bytes >= n)
		return 0;
	PyErr_Format(PyExc_ValueError,
		     "%zu items of %zu bytes do not fit in %zd bytes", n,
		     item_bytes, room->len);
	PyBuffer_Release(room);
	return -1;
}

static PyObject *burst_copy_entries(PyObject *object, PyObject *array)
{
	struct py_frames *frames = ((struct py_burst *)object)->frames;
	Py_buffer room;

	if (mri_get_room(array, &room, frames->n, sizeof(struct mr_frame)) < 0)
		return NULL;
	memcpy(room.buf, frames->entries, frames->n * sizeof(struct mr_frame));
	PyBuffer_Release(&room);
	return PyLong_FromUnsignedLong(frames->n);
}

static PyObject *burst_copy_headers(PyObject *object, PyObject *args)
{
	struct py_frames *frames = ((struct py_burst *)object)->frames;
	uint32_t n_bytes;
	PyObject *array;
	Py_buffer room;

	if (!PyArg_ParseTuple(args, "OO&:copy_headers", &array, mri_u32,
			      &n_bytes))
		return NULL;
	if (n_bytes == 0) {
		PyErr_SetString(PyExc_ValueError, "headers of 0 bytes");
		return NULL;
	}
	if (mri_get_room(array, &room, frames->n, n_bytes) < 0)
		return NULL;
	for (uint32_t i = 0; i < frames->n; i++) {
		const struct mr_frame *frame = &frames->entries[i];
		uint8_t *to = (uint8_t *)room.buf + (size_t)i * n_bytes;
		const uint32_t n = frame->len < n_bytes ? frame->len : n_bytes;

		/* The array may be a view of the burst. */
		memmove(to, mr_frame_data(frames->pool->base, frame), n);
		memset(to + n, 0, n_bytes - n);
	}
	PyBuffer_Release(&room);
	return PyLong_FromUnsignedLong(frames->n);
}

/* Move the entries to keep to the front, in order, and free the others. The
 * first entry of a frame decides. */
static void keep(struct py_frames *frames, const uint8_t *mask)
{
	struct mr_frame freed[MR_BURST_MAX];
	uint32_t n_kept = 0, n_freed = 0;
	bool is_first = true, is_kept = false;

	for (uint32_t i = 0; i < frames->n; i++) {
		const struct mr_frame frame = frames->entries[i];

		if (is_first)
			is_kept = mask[i] != 0;
		if (!is_kept) {
			freed[n_freed++] = frame;
		} else {
			if (frames->metas != NULL)
				frames->metas[n_kept] = frames->metas[i];
			frames->entries[n_kept++] = frame;
		}
		is_first = !(frame.flags & MR_FRAME_MORE);
	}
	free_entries(frames->pool, freed, n_freed);
	mri_frames_set_n(frames, n_kept);
}

static PyObject *burst_keep(PyObject *object, PyObject *array)
{
	struct py_frames *frames;
	uint8_t mask[MR_BURST_MAX];
	Py_ssize_t n;
	Py_buffer from;

	if (PyObject_GetBuffer(array, &from, PyBUF_SIMPLE) < 0)
		return NULL;
	n = from.len;
	if (n <= MR_BURST_MAX)
		memcpy(mask, from.buf, (size_t)n);
	PyBuffer_Release(&from);
	frames = take(object);
	if (frames == NULL)
		return NULL;
	if (n != frames->n)
		return PyErr_Format(PyExc_ValueError,
				    "a mask of %zd bytes for %u entries", n,
				    frames->n);
	keep(frames, mask);
	Py_RETURN_NONE;
}

/* Copy bytes into n new entries. */
static void fill(struct py_frames *self, const uint64_t *addrs, uint32_t n,
		 const uint8_t *bytes, uint32_t n_bytes)
{
	struct mr_frame *entry = &self->entries[self->n];
	const uint32_t most =
		self->pool->page_bytes - self->pool->headroom_bytes;

	for (uint32_t i = 0; i < n; i++, entry++) {
		*entry = (struct mr_frame){
			.addr = addrs[i] + self->pool->headroom_bytes,
			.len = n_bytes < most ? n_bytes : most,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(mr_frame_data(self->pool->base, entry), bytes,
		       entry->len);
		bytes += entry->len;
		n_bytes -= entry->len;
	}
	mri_frames_set_n(self, self->n + n);
}

/* Append a copy of a frame. */
static int append(struct py_frames *self, PyObject *bytes)
{
	struct py_pool *pool = self->pool;
	const uint32_t most = pool->page_bytes - pool->headroom_bytes;
	uint64_t addrs[MR_MAX_SEGS];
	uint32_t n, n_got;
	Py_buffer from;

	if (PyObject_GetBuffer(bytes, &from, PyBUF_SIMPLE) < 0)
		return -1;
	if (from.len == 0 || from.len > (Py_ssize_t)most * MR_MAX_SEGS ||
	    (n = (uint32_t)(from.len + most - 1) / most) >
		    MR_BURST_MAX - self->n) {
		PyErr_Format(PyExc_ValueError,
			     "after %u entries, a frame of %zd bytes; a burst "
			     "has %d entries of %u bytes, and a frame up to %d",
			     self->n, from.len, MR_BURST_MAX, most,
			     MR_MAX_SEGS);
	} else if (mri_pool_is_usable(pool)) { /* the iterable may close it */
		n_got = mr_frag_alloc_bulk(mri_pool_cache(pool), addrs, n,
					   pool->page_bytes);
		if (n_got == n) {
			fill(self, addrs, n, from.buf, (uint32_t)from.len);
		} else {
			mr_frag_free_bulk(mri_pool_cache(pool), addrs, n_got);
			mri_raise(-ENOBUFS, "the pool has no free page: "
					    "release bursts, or create it with "
					    "more pages");
		}
	}
	PyBuffer_Release(&from);
	return PyErr_Occurred() == NULL ? 0 : -1;
}

PyObject *mri_burst_from(PyObject *pool, PyObject *iterable)
{
	PyObject *iterator = PyObject_GetIter(iterable);
	struct py_burst *burst;
	PyObject *item;
	int rc = 0;

	if (iterator == NULL)
		return NULL;
	burst = mri_burst_new((struct py_pool *)pool, MR_BURST_MAX);
	while (burst != NULL && rc == 0 &&
	       (item = PyIter_Next(iterator)) != NULL) {
		rc = append(burst->frames, item);
		Py_DECREF(item);
	}
	Py_DECREF(iterator);
	if (burst != NULL && PyErr_Occurred() != NULL)
		Py_CLEAR(burst);
	return (PyObject *)burst;
}

static PyMethodDef methods[] = {
	{ "__enter__", mri_self, METH_NOARGS, NULL },
	{ "__exit__", burst_release, METH_VARARGS, NULL },
	{ "release", burst_release, METH_NOARGS,
	  "Free the frames, and end their views. Raises BufferError while a "
	  "slice or an\narray of a view is in use." },
	{ "keep", burst_keep, METH_O,
	  "Free the frames whose byte in the mask is 0. The mask has a byte "
	  "per entry;\nonly that of a frame's first entry counts. Ends all "
	  "views." },
	{ "copy_entries", burst_copy_entries, METH_O,
	  "Fill a writable buffer with the struct mr_frame of each entry (16 "
	  "bytes).\nReturns how many." },
	{ "copy_metas", mri_burst_copy_metas, METH_O,
	  "Fill a writable buffer with the struct mr_meta of each entry (64 "
	  "bytes), zeros\nif it has none. Returns how many." },
	{ "meta", mri_burst_meta, METH_O,
	  "meta(i): the members of struct mr_meta that are set for the frame "
	  "that begins\nwith entry i." },
	KEYWORDS("set_meta", mri_burst_set_meta,
		 "set_meta(i, **members): replace the metadata of a frame, "
		 "for send()."),
	{ "copy_headers", burst_copy_headers, METH_VARARGS,
	  "copy_headers(buffer, n_bytes): copy the first n_bytes of each "
	  "entry, one\nafter the other, padded with zeros. Returns how many." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Frames of a pool: a sequence of memoryviews, one per "
		     "entry." },
	{ Py_tp_dealloc, burst_dealloc },
	{ Py_tp_iter, PySeqIter_New },
	{ Py_tp_methods, methods },
	{ Py_sq_length, burst_length },
	{ Py_sq_item, burst_item },
	{ 0, NULL },
};

PyType_Spec mri_burst_spec = {
	.name = "millrace.Burst",
	.basicsize = sizeof(struct py_burst),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};
