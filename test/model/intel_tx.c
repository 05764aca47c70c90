/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit: frames from descriptors, and reporting of completion. */
#include <string.h>

#include "intel.h"
#include "intel_regs.h"

enum { MIN_BYTES = 17 }; /* for padding (TCTL.PSP) */

static uint32_t command_of(const struct intel_desc *desc)
{
	return (uint32_t)desc->high;
}

static uint64_t writeback_iova(struct intel *nic, const struct intel_ring *ring)
{
	return (uint64_t)nic->regs[(ring->base + RING_WBAH) / 4] << 32 |
	       (nic->regs[(ring->base + RING_WBAL) / 4] & ~3u);
}

static bool has_head_writeback(struct intel *nic, const struct intel_ring *ring)
{
	return nic->chip->has_head_writeback &&
	       (nic->regs[(ring->base + RING_WBAL) / 4] & 1);
}

static void write_head(struct intel *nic, struct intel_ring *ring,
		       uint32_t head)
{
	uint32_t *at = model_dma(&nic->m, writeback_iova(nic, ring), 4);

	if (at != NULL)
		__atomic_store_n(at, head, __ATOMIC_RELEASE);
}

/* DD is bit 0 of the last dword, in each kind of transmit descriptor. */
static void write_done(struct intel *nic, struct intel_ring *ring, uint32_t i)
{
	struct intel_desc *at = intel_desc_at(nic, ring, i);

	if (at != NULL)
		__atomic_fetch_or(&at->high, UINT64_C(1) << 32,
				  __ATOMIC_RELEASE);
}

/* A descriptor is done; reported to the driver only on request (RS). */
static bool finish_descriptor(struct intel *nic, struct intel_ring *ring)
{
	const uint32_t i = ring->head;
	const bool is_asked = command_of(&ring->given[i]) & TXD_RS;

	ring->head = (i + 1) % ring->n;
	if (!is_asked)
		return false;
	if (has_head_writeback(nic, ring))
		write_head(nic, ring, ring->head);
	else
		write_done(nic, ring, i);
	return true;
}

/* Descriptors up to the end of the frame at the head; 0: incomplete. */
static uint32_t count_frame(struct intel *nic, const struct intel_ring *ring)
{
	uint32_t n = 0;

	for (uint32_t i = ring->head; i != ring->tail; i = (i + 1) % ring->n) {
		const struct intel_desc *desc = &ring->given[i];

		n++;
		if (intel_is_context(nic, desc))
			continue;
		/* Anything but data is examined by itself. */
		if (!intel_is_data(nic, desc) || (command_of(desc) & TXD_EOP))
			return n;
	}
	return 0;
}

static void check_desc(struct intel *nic, const struct intel_ring *ring,
		       const struct intel_desc *desc)
{
	const uint32_t command = command_of(desc);
	const bool is_data = intel_is_data(nic, desc);

	if (!is_data && !intel_is_context(nic, desc))
		model_violation(&nic->m,
				"tx ring %u: descriptor of unknown "
				"type 0x%x",
				ring->q, command);
	if (is_data && intel_data_bytes(nic, desc) == 0)
		model_violation(&nic->m, "tx ring %u: a descriptor of 0 bytes",
				ring->q);
	if (is_data && !(command & TXD_IFCS))
		model_violation(&nic->m, "tx ring %u: no FCS is asked for",
				ring->q);
	if (!nic->chip->is_82574 && (command & TXD_RS) &&
	    !(is_data && (command & TXD_EOP)))
		model_violation(&nic->m,
				"tx ring %u: RS before the end of a "
				"frame",
				ring->q);
}

/* Append what a data descriptor points to. */
static bool append(struct intel *nic, const struct intel_desc *desc,
		   uint32_t *n_bytes)
{
	const uint32_t n = intel_data_bytes(nic, desc);
	const uint8_t *from;

	if (n == 0)
		return true;
	from = model_dma(&nic->m, desc->low, n);
	if (from == NULL || n > INTEL_FRAME_BYTES - *n_bytes)
		return false;
	memcpy(nic->frame + *n_bytes, from, n);
	*n_bytes += n;
	return true;
}

/* Assemble the frame of n descriptors. False: it cannot be sent. */
static bool gather(struct intel *nic, struct intel_ring *ring, uint32_t n,
		   struct intel_job *job)
{
	bool is_first = true, is_good = true;
	uint32_t i = ring->head;

	memset(job, 0, sizeof(*job));
	for (uint32_t k = 0; k < n; k++, i = (i + 1) % ring->n) {
		const struct intel_desc *desc = &ring->given[i];
		const struct intel_desc *now = intel_desc_at(nic, ring, i);

		if (now != NULL)
			intel_desc_is_kept(nic, ring, i, now);
		if (ring->n_segments == 0)
			check_desc(nic, ring, desc);
		if (intel_is_context(nic, desc)) {
			intel_context(nic, ring, desc);
			continue;
		}
		if (!intel_is_data(nic, desc))
			return false;
		if (is_first)
			intel_job(nic, ring, desc, job);
		is_first = false;
		is_good &= append(nic, desc, &job->n_bytes);
	}
	return is_good;
}

static bool length_is_right(struct intel *nic, struct intel_ring *ring,
			    const struct intel_job *job)
{
	const uint32_t n_expected =
		job->is_tso ? job->n_bytes - job->header_bytes : job->n_bytes;

	if (job->has_paylen && job->paylen != n_expected)
		model_violation(&nic->m, "tx ring %u: PAYLEN %u of %u bytes",
				ring->q, job->paylen, n_expected);
	if (job->n_bytes >= MIN_BYTES &&
	    (job->is_tso || job->n_bytes <= nic->chip->max_frame_bytes))
		return true;
	model_violation(&nic->m, "tx ring %u: a frame of %u bytes", ring->q,
			job->n_bytes);
	return false;
}

/* False: the wire is full, or there is nothing to send. */
static bool send_frame(struct intel *nic, struct intel_ring *ring,
		       bool *is_reported)
{
	const uint32_t n = count_frame(nic, ring);
	struct intel_job job;

	if (n == 0 || intel_desc_at(nic, ring, ring->head) == NULL)
		return false;
	if (gather(nic, ring, n, &job) && length_is_right(nic, ring, &job) &&
	    !intel_send(nic, ring, &job))
		return false;
	ring->n_segments = 0;
	for (uint32_t k = 0; k < n; k++)
		*is_reported |= finish_descriptor(nic, ring);
	return true;
}

/* Report what was not sent, or not even posted. */
static void report_at_random(struct intel *nic, struct intel_ring *ring)
{
	const uint32_t value = model_random(&nic->m);

	if (has_head_writeback(nic, ring))
		write_head(nic, ring,
			   value % 2 == 0 ? value : value / 2 % ring->n);
	else
		write_done(nic, ring, value % ring->n);
}

void intel_tx_step(struct intel *nic)
{
	for (uint32_t q = 0; q < nic->chip->n_queues; q++) {
		struct intel_ring *ring = &nic->tx[q];
		bool is_reported = false;

		if (!intel_ring_is_on(nic, ring))
			continue;
		if (nic->is_link_up && !intel_is_late(nic, ring))
			while (send_frame(nic, ring, &is_reported))
				;
		if (model_fault(&nic->m, nic->m.faults.wrong_completion))
			report_at_random(nic, ring);
		if (is_reported)
			intel_irq_queue(nic, ring);
	}
}
