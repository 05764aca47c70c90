/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where rings resume after this process has died. The VMM keeps the records and
 * hands them to the next process, as its own idea of the positions is old then.
 *
 * Our bursts finish all that they take, so they record positions only. Other
 * back ends may have had buffers in flight. What these held is lost: the driver
 * gets them back with no bytes in them.
 *
 * The peer can write into records at any time: a value is loaded once.
 *
 * Source: QEMU, docs/interop/vhost-user.rst, on I/O that is in flight.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vhost_chain.h"

enum { RECORD_ALIGN = 64, VERSION = 1, MAX_QUEUES = 2 * VIRTIO_MAX_PAIRS + 1 };

/* Of the descriptor that begins a chain. */
struct state {
	uint8_t is_in_flight;
	uint8_t padding;
	uint16_t next; /* packed: free one */
	uint16_t last; /* packed: of the chain */
	union {
		uint16_t n_places; /* packed: of the chain */
		uint16_t batch;    /* split: next of the last batch */
	};
	uint64_t counter; /* chains were taken in this order */
	uint16_t id;      /* packed, which has these 16 bytes more */
	uint16_t others[7];
};

enum { SPLIT_BYTES = offsetof(struct state, id) };

static struct state *state_of(const struct virtio_vq *vq,
			      struct vhost_record *record, uint32_t i)
{
	return vq->is_packed ?
		       (struct state *)(record + 1) + i :
		       (void *)((uint8_t *)&record->places + i * SPLIT_BYTES);
}

static uint64_t record_bytes(bool is_packed, uint64_t queue_size)
{
	const uint64_t n_bytes =
		is_packed ? sizeof(struct vhost_record) +
				    queue_size * sizeof(struct state) :
			    offsetof(struct vhost_record, places) +
				    queue_size * SPLIT_BYTES;

	return (n_bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

/* ---- all records ---- */

static int say_invalid(const struct vhost_port *port, struct mr_reason *reason)
{
	return mr_fail(reason, -EINVAL,
		       "%s: the peer's record of buffers in flight is invalid",
		       port->base.info->name);
}

void mri_vhost_records_clear(struct vhost_port *port)
{
	struct vhost_records *records = &port->peer.records;

	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++) {
		vhost_ring_of(port, i)->record = NULL;
		vhost_ring_of(port, i)->must_resume = true;
	}
	mri_vhost_unmap(&records->mapping);
	*records = (struct vhost_records){ 0 };
}

int mri_vhost_records_set(struct vhost_port *port, int fd,
			  const struct vhost_in_flight *sent,
			  struct mr_reason *reason)
{
	struct vhost_records *records = &port->peer.records;
	const uint64_t offset = sent->offset;
	int err;

	mri_vhost_records_clear(port);
	if (sent->n_queues == 0 || sent->n_queues > MAX_QUEUES ||
	    sent->queue_size == 0 || sent->queue_size > VIRTIO_MAX_QUEUE_SIZE ||
	    offset % RECORD_ALIGN != 0 || offset + sent->n_bytes <= offset)
		return say_invalid(port, reason);
	records->bytes = mri_vhost_map(port, fd, offset, sent->n_bytes,
				       &records->mapping, &err, reason);
	if (err < 0)
		return err;
	records->n_bytes = sent->n_bytes;
	records->n_queues = sent->n_queues;
	records->queue_size = sent->queue_size;
	return 0;
}

int mri_vhost_records_make(struct vhost_port *port,
			   struct vhost_in_flight *asked,
			   struct mr_reason *reason)
{
	struct vhost_peer *peer = &port->peer;
	const bool is_packed = vhost_has(peer->features, VIRTIO_F_RING_PACKED);
	const int fd = mr_memfd_create("vhost-in-flight", 0);

	asked->offset = 0;
	asked->n_bytes =
		asked->n_queues * record_bytes(is_packed, asked->queue_size);
	if (fd < 0 || ftruncate(fd, (off_t)asked->n_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
		    0) {
		mr_fd_close(fd);
		return mr_fail(reason, -ENOMEM, "%s: no memfd: %s",
			       port->base.info->name, mr_strerror(errno));
	}
	peer->fds[0] = fd;
	peer->n_fds = 1;
	return mri_vhost_records_set(port, fd, asked, reason);
}

/* NULL: there is none for this ring, or its format is unknown. */
static struct vhost_record *find_record(const struct vhost_ring *ring)
{
	const struct vhost_records *records = &ring->port->peer.records;
	const uint64_t n_bytes =
		record_bytes(ring->vq.is_packed, records->queue_size);
	struct vhost_record *record;

	if (ring->number >= records->n_queues ||
	    ring->vq.n_entries > records->queue_size ||
	    (ring->number + 1) * n_bytes > records->n_bytes)
		return NULL;
	record = (void *)(records->bytes + ring->number * n_bytes);
	return __atomic_load_n(&record->version, __ATOMIC_RELAXED) > VERSION ?
		       NULL :
		       record;
}

/* ---- buffers in flight ---- */

struct pending {
	uint64_t counter;
	uint16_t id, n_places;
};

static uint16_t load(const uint16_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

/* The first n of a list are not in flight. */
static void clear_list(const struct virtio_vq *vq, struct vhost_record *record,
		       uint32_t at, uint32_t n)
{
	for (; n > 0 && at < vq->n_entries; n--) {
		struct state *state = state_of(vq, record, at);

		state->is_in_flight = 0;
		at = load(vq->is_packed ? &state->next : &state->batch);
	}
}

/* Load the chain that begins at i. n_places is 0 if that is invalid. */
static struct pending load_chain(const struct virtio_vq *vq,
				 struct vhost_record *record, uint32_t i)
{
	const struct state *state = state_of(vq, record, i);
	uint32_t last;

	if (!vq->is_packed)
		return (struct pending){ state->counter, (uint16_t)i, 1 };
	last = load(&state->last);
	if (last >= vq->n_entries)
		return (struct pending){ 0 };
	return (struct pending){ state->counter,
				 load(&state_of(vq, record, last)->id),
				 load(&state->n_places) };
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = ((const struct pending *)a)->counter;
	const uint64_t y = ((const struct pending *)b)->counter;

	return (x > y) - (x < y);
}

/* Find what was in flight. Returns how many; -1: the record is invalid. */
static int find_pending(const struct virtio_vq *vq, struct vhost_record *record,
			struct pending *pending)
{
	uint32_t n = 0, n_places = 0;

	for (uint32_t i = 0; i < vq->n_entries; i++) {
		if (state_of(vq, record, i)->is_in_flight == 0)
			continue;
		pending[n] = load_chain(vq, record, i);
		n_places += pending[n].n_places;
		if (pending[n++].n_places == 0 || n_places > vq->n_entries)
			return -1;
	}
	qsort(pending, n, sizeof(pending[0]), compare);
	return (int)n;
}

/* Give chains back to the driver. Should this process die now, these may be
 * lost to it. */
static void finish(struct vhost_ring *ring, const struct pending *pending,
		   uint32_t n)
{
	struct vhost_reader reader;

	reader.ring = ring;
	while (n > 0) {
		const uint32_t k = n < VHOST_PIECES ? n : VHOST_PIECES;

		reader.n_chains = k;
		reader.number = ring->vq.n_avail;
		for (uint32_t i = 0; i < k; i++, pending++) {
			reader.chains[i].id = pending->id;
			reader.chains[i].n_places = pending->n_places;
			reader.number =
				(uint16_t)(reader.number + pending->n_places);
		}
		(void)vhost_use_all(&reader, NULL, ring->vq.is_packed);
		n -= k;
	}
}

/* ---- a ring resumes ---- */

/*
 * A process died while it showed the driver [n_used, end) of a packed ring, of
 * which the first comes last. The others may be overwritten, so their data is
 * lost. From the end on: the last descriptor of a chain has the id. Whatever is
 * written behind the first one of a chain, the driver skips.
 */
static void finish_batch(struct virtio_vq *vq, uint32_t end)
{
	uint32_t id = 0;

	for (uint32_t i = end; i-- != vq->n_used;) {
		const uint64_t word = virtio_packed_load(vq, i);

		if (!(word >> 48 & VIRTIO_DESC_NEXT))
			id = virtio_packed_id(word);
		vhost_write_used(vq, i, id, 0, true);
	}
	vq->n_used = (uint16_t)end;
}

/*
 * Go to the places of a packed record, and clear its free list. Returns the end
 * of the batch that was being shown, which begins at n_used; -1: the record is
 * invalid.
 */
static int go_to_places(struct virtio_vq *vq, struct vhost_record *record)
{
	const uint32_t both = VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;
	const uint64_t places =
		__atomic_load_n(&record->places, __ATOMIC_RELAXED);
	const uint32_t n = vq->n_entries;
	const uint32_t place = places & 0xffff;
	const uint32_t old_place = places >> 16 & 0xffff;
	const uint32_t now = place | (places >> 32 & 1 ? 0 : n);
	const uint32_t old = old_place | (places >> 40 & 1 ? 0 : n);
	const uint32_t n_shown = (now - old) & (2 * n - 1);
	bool is_shown;

	if (place >= n || old_place >= n || n_shown > n)
		return -1;
	is_shown = n_shown == 0 || (virtio_packed_load(vq, old) >> 48 & both) !=
					   virtio_avail_flags(vq, old);
	vq->n_used = (uint16_t)(is_shown ? now : old);
	clear_list(vq, record,
		   load(is_shown ? &record->first : &record->old_first), n);
	return (int)(is_shown ? now : old + n_shown);
}

/* Resume where the record says. Returns the number of *ret_pending. */
static uint32_t resume(struct vhost_ring *ring, struct vhost_record *record,
		       struct pending **ret_pending)
{
	struct virtio_vq *vq = &ring->vq;
	const uint16_t n_used = vq->n_used;
	struct mr_reason why;
	int n = -1, end = n_used;

	*ret_pending = mr_alloc(ring->port->base.ctx, 0,
				vq->n_entries * sizeof(struct pending));
	if (vq->is_packed)
		end = go_to_places(vq, record);
	else
		clear_list(vq, record, load(&record->first),
			   (uint16_t)(n_used - load(&record->n_used)));
	if (*ret_pending != NULL && end >= 0)
		n = find_pending(vq, record, *ret_pending);
	if (n < 0) {
		vq->n_used = n_used;
		(void)say_invalid(ring->port, &why);
		mri_vhost_complain(ring->port, why.text);
		return 0;
	}
	if (n == 0 && end != vq->n_used)
		finish_batch(vq, (uint32_t)end);
	vq->n_avail = vq->n_used;
	return (uint32_t)n;
}

/* Nothing is in flight. */
static void clear_states(const struct virtio_vq *vq,
			 struct vhost_record *record)
{
	for (uint32_t i = 0; i < vq->n_entries; i++) {
		struct state *state = state_of(vq, record, i);

		memset(state, 0, vq->is_packed ? sizeof(*state) : SPLIT_BYTES);
		if (vq->is_packed)
			state->next = (uint16_t)(i + 1);
	}
	record->n_entries = (uint16_t)vq->n_entries;
	record->first = record->old_first = 0;
}

void mri_vhost_record_start(struct vhost_ring *ring)
{
	struct virtio_vq *vq = &ring->vq;
	struct vhost_record *record = find_record(ring);
	struct pending *pending = NULL;
	uint32_t n = 0;
	bool is_new, is_resumed;

	ring->record = record;
	if (record == NULL)
		return;
	is_new = load(&record->version) != VERSION;
	is_resumed = !is_new && ring->must_resume;
	ring->must_resume = false;
	if (is_resumed)
		n = resume(ring, record, &pending);
	if (is_new || is_resumed)
		clear_states(vq, record);
	vhost_record_used(vq, record, vq->n_used, vq->n_used, vq->is_packed);
	__atomic_store_n(&record->version, VERSION, __ATOMIC_RELEASE);
	if (!is_resumed)
		return;
	finish(ring, pending, n);
	mr_free(ring->port->base.ctx, pending);
	if (ring->log != NULL)
		mri_vhost_log_ring(ring);
	/* The process may have died before it called the driver. */
	mri_vhost_signal(ring->signal, vq->kick_fd);
}

void mri_vhost_record_take(struct vhost_ring *ring)
{
	ring->record = find_record(ring);
}

void mri_vhost_record_end(struct vhost_ring *ring)
{
	if (ring->record != NULL)
		__atomic_store_n(&ring->record->version, 0, __ATOMIC_RELEASE);
}
