/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap: frames out of a capture. */
#include <string.h>
#include <time.h>

#include "pcap_port.h"

/* Most records that one burst skips, however many are bad. */
enum { MAX_BAD_RECORDS = 256 };

static void drop(struct pcap_rxq *rxq, enum mr_rx_drop why)
{
	mr_counter_add(&rxq->base.stats.received, 1);
	mr_counter_add(&rxq->base.stats.drops[why], 1);
}

static void end(struct pcap_rxq *rxq)
{
	__atomic_store_n(&rxq->is_at_end, 1, __ATOMIC_RELEASE);
}

/* Start the next pass over the file, if any. After a pass without a frame there
 * is none: the next would be the same. */
static void begin_again(struct pcap_rxq *rxq)
{
	struct mr_port *port = rxq->base.queue.port;
	char error[PCAP_ERRBUF_SIZE];

	if (rxq->n_passes == 1 || !rxq->has_begun) {
		end(rxq);
		return;
	}
	if (rxq->n_passes > 1)
		rxq->n_passes--;
	rxq->has_begun = false;
	pcap_close(rxq->pcap);
	rxq->pcap = mri_pcap_read_from_start(rxq->fd, error);
	if (rxq->pcap != NULL)
		return;
	mr_log(port->ctx, MR_LOG_ERROR, "%s: cannot read it again: %s",
	       port->info->name, error);
	end(rxq);
}

/* Read on to the next record that is a frame. False: none now, or at all. */
static bool read_record(struct pcap_rxq *rxq)
{
	struct mr_port *port = rxq->base.queue.port;
	struct pcap_pkthdr *record;

	for (uint32_t n_bad = 0; n_bad < MAX_BAD_RECORDS; n_bad++) {
		switch (pcap_next_ex(rxq->pcap, &record, &rxq->bytes)) {
		case 1:
			break;
		case PCAP_ERROR_BREAK: /* the end of the file */
			begin_again(rxq);
			return false;
		default: /* the file ends within a record, or is damaged */
			if (!rxq->is_damaged)
				mr_log(port->ctx, MR_LOG_WARNING,
				       "%s: the capture is damaged; the rest "
				       "cannot be read: %s",
				       port->info->name,
				       pcap_geterr(rxq->pcap));
			rxq->is_damaged = true;
			drop(rxq, MR_RX_DROP_INVALID);
			begin_again(rxq);
			return false;
		}
		/* Truncated by the capture, or not a frame. */
		if (record->caplen != record->len || record->len < 14) {
			drop(rxq, MR_RX_DROP_INVALID);
			continue;
		}
		if (record->len > rxq->max_segs * rxq->room_bytes) {
			drop(rxq, MR_RX_DROP_TOO_LONG);
			continue;
		}
		rxq->record = record;
		if (!rxq->has_begun)
			mr_counter_add(&rxq->n_begun, 1);
		rxq->has_begun = true;
		return true;
	}
	return false;
}

/* Copy the record into n buffers, leaving headroom and tailroom. */
static void fill(const struct pcap_rxq *rxq, const uint64_t *addrs,
		 struct mr_frame *frames, uint32_t n)
{
	const struct mr_port *port = rxq->base.queue.port;
	const uint8_t *from = rxq->bytes;
	uint32_t n_left = rxq->record->len;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len =
			n_left < rxq->room_bytes ? n_left : rxq->room_bytes;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + port->headroom_bytes,
			.len = len,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(mr_frame_data(port->base, &frames[i]), from, len);
		from += len;
		n_left -= len;
	}
}

static void fill_meta(const struct pcap_rxq *rxq, struct mr_meta *meta)
{
	const struct timeval *t = &rxq->record->ts; /* tv_usec is nanoseconds */

	*meta = (struct mr_meta){
		.valid = MR_META_RX_TIME,
		.rx_ns = (uint64_t)t->tv_sec * 1000000000u +
			   (uint64_t)t->tv_usec,
		.rx_clock = CLOCK_REALTIME,
	};
}

uint32_t mri_pcap_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			   struct mr_frame *frames, struct mr_meta *meta,
			   uint32_t n)
{
	struct pcap_rxq *rxq = (struct pcap_rxq *)base;
	const uint32_t buffer_bytes = base->queue.port->chunk_bytes;
	uint64_t addrs[MR_MAX_SEGS];
	uint64_t n_frames = 0, n_bytes = 0;
	uint32_t n_done = 0;

	while (n_done < n && !rxq->is_at_end) {
		uint32_t n_segs, n_got;

		if (rxq->record == NULL && !read_record(rxq))
			break;
		n_segs = (rxq->record->len + rxq->room_bytes - 1) /
			 rxq->room_bytes;
		if (n_segs > n - n_done)
			break; /* left to the next burst */
		n_got = mr_frag_alloc_bulk(cache, addrs, n_segs, buffer_bytes);
		if (n_got < n_segs) {
			mr_frag_free_bulk(cache, addrs, n_got);
			mr_counter_add(
				&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
			break;
		}
		fill(rxq, addrs, frames + n_done, n_segs);
		if (meta != NULL)
			fill_meta(rxq, meta + n_done);
		n_done += n_segs;
		n_frames++;
		n_bytes += rxq->record->len;
		rxq->record = NULL;
	}
	mr_counter_add(&base->stats.received, n_frames);
	mr_counter_add(&base->stats.delivered, n_frames);
	mr_counter_add(&base->stats.bytes, n_bytes);
	return n_done;
}

/* There is always work, until there is none for good. */
int mri_pcap_rx_arm(struct mr_queue *queue)
{
	return !((struct pcap_rxq *)queue)->is_at_end;
}
