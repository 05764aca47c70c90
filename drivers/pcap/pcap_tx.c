/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap: frames into a capture.
 *
 * A burst is written to the file before it returns: what is completed can be
 * read. If writing fails, the burst's frames count as device drops, and what
 * was written of them is truncated, so that the capture stays valid.
 */
#include <stdio_ext.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pcap_port.h"

/* No device will do it later. txq->frame has the frame in one piece. */
static void finish_csum(struct pcap_txq *txq, const struct mr_frame *frame,
			const struct mr_meta *meta, uint32_t n_bytes)
{
	const struct mr_frame whole = { .len = n_bytes };
	struct mr_partial partial;

	if (!(frame->flags & MR_FRAME_CSUM_PARTIAL) ||
	    mr_partial_find(txq->frame, &whole, meta, &partial) < 0)
		return;
	mr_partial_finish(txq->frame, &whole, &partial);
	mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
}

static struct timeval time_of(const struct mr_meta *meta,
			      const struct timespec *now)
{
	if (meta != NULL && (meta->valid & MR_META_LAUNCH_TIME) &&
	    meta->launch_clock == CLOCK_REALTIME)
		return (struct timeval){
			.tv_sec = (time_t)(meta->launch_ns / 1000000000u),
			.tv_usec = (suseconds_t)(meta->launch_ns % 1000000000u),
		};
	return (struct timeval){ .tv_sec = now->tv_sec,
				 .tv_usec = now->tv_nsec };
}

/* Write one good frame of n entries to the file's buffer. */
static void dump(struct pcap_txq *txq, const struct mr_frame *frames,
		 uint32_t n, uint32_t n_bytes, const struct mr_meta *meta,
		 const struct timespec *now)
{
	const struct pcap_pkthdr record = { .ts = time_of(meta, now),
					    .caplen = n_bytes,
					    .len = n_bytes };
	void *base = txq->base.queue.port->base;
	const uint8_t *bytes = mr_frame_data(base, frames);

	if (n > 1 || (frames[0].flags & MR_FRAME_CSUM_PARTIAL)) {
		mr_frame_copy_bytes(base, frames, 0, txq->frame, n_bytes);
		bytes = txq->frame;
	}
	finish_csum(txq, frames, meta, n_bytes);
	pcap_dump((u_char *)txq->dumper, &record, bytes);
}

/* Write the burst to the file. False: it failed. */
static bool flush(struct pcap_txq *txq, uint64_t n_bytes)
{
	if (fflush(txq->file) == 0 && !ferror(txq->file)) {
		if (txq->n_file_bytes >= 0)
			txq->n_file_bytes += (int64_t)n_bytes;
		return true;
	}
	__fpurge(txq->file);
	clearerr(txq->file);
	if (txq->n_file_bytes >= 0 &&
	    (ftruncate(fileno(txq->file), txq->n_file_bytes) < 0 ||
	     fseek(txq->file, (long)txq->n_file_bytes, SEEK_SET) < 0))
		txq->n_file_bytes = -1; /* the rest may be unreadable */
	return false;
}

uint32_t mri_pcap_tx_burst(struct mr_txq *base, struct mr_cache *cache,
			   const struct mr_frame *frames,
			   const struct mr_meta *meta, uint32_t n)
{
	enum { RECORD_BYTES = 16 }; /* struct pcap_sf_pkthdr, as in the file */
	struct pcap_txq *txq = (struct pcap_txq *)base;
	uint64_t n_good = 0, n_frames = 0, n_bytes = 0, n_file_bytes = 0;
	struct timespec now;

	n = mr_frame_n_whole(frames, n);
	if (n == 0)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	for (uint32_t i = 0; i < n;) {
		const uint32_t n_segs = mr_frame_n_entries(frames + i);
		const uint64_t len = mr_frame_n_bytes(frames + i, n_segs);
		int why = mr_tx_find_fault(base->queue.port->region, frames + i,
					   n_segs, 1, PCAP_MAX_FRAME_BYTES);

		if (why < 0 && txq->dumper == NULL)
			why = MR_TX_DROP_DEVICE;
		if (why < 0) {
			dump(txq, frames + i, n_segs, (uint32_t)len,
			     meta == NULL ? NULL : meta + i, &now);
			n_file_bytes += RECORD_BYTES + len;
			n_good++;
		} else {
			mr_counter_add(&base->stats.drops[why], 1);
		}
		n_frames++;
		n_bytes += len;
		i += n_segs;
	}
	mr_frame_free_bulk(cache, frames, n);
	if (n_good > 0 && !flush(txq, n_file_bytes)) {
		mr_counter_add(&base->stats.drops[MR_TX_DROP_DEVICE], n_good);
		n_good = 0;
	}
	mr_counter_add(&base->stats.accepted, n_frames);
	mr_counter_add(&base->stats.completed, n_good);
	mr_counter_add(&base->stats.bytes, n_bytes);
	return n;
}

/* There is always room, and nothing is pending. */
int mri_pcap_tx_arm(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}
