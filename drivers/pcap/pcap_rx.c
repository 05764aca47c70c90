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
	rxq->n_records = 0;
	pcap_close(rxq->pcap);
	rxq->pcap = mri_pcap_read_from_start(rxq->fd, error);
	if (rxq->pcap != NULL)
		return;
	mr_log(port->ctx, MR_LOG_ERROR, "%s: cannot read it again: %s",
	       port->info->name, error);
	end(rxq);
}

/* libpcap reads no further: the file ends within a record, is damaged, or has
 * records after an interface of another link type. */
static void end_early(struct pcap_rxq *rxq)
{
	struct mr_port *port = rxq->base.queue.port;
	struct pcapng_facts facts;

	if (mri_pcapng_read(rxq->fd, true, &facts) && facts.has_other &&
	    facts.n_records > rxq->n_records) {
		mr_counter_add(&rxq->n_other_link,
			       facts.n_records - rxq->n_records);
		if (!rxq->is_damaged)
			mr_log(port->ctx, MR_LOG_ERROR,
			       "%s: %llu records cannot be read: they are "
			       "after an interface of link type %s (%u), and "
			       "only Ethernet is supported; capture one "
			       "interface at a time",
			       port->info->name,
			       (unsigned long long)(facts.n_records -
						    rxq->n_records),
			       pcap_datalink_val_to_name(
				       facts.other_link_type) != NULL ?
				       pcap_datalink_val_to_name(
					       facts.other_link_type) :
				       "?",
			       facts.other_link_type);
	} else {
		if (!rxq->is_damaged)
			mr_log(port->ctx, MR_LOG_WARNING,
			       "%s: the capture is damaged; the rest cannot "
			       "be read: %s",
			       port->info->name, pcap_geterr(rxq->pcap));
		drop(rxq, MR_RX_DROP_INVALID);
	}
	rxq->is_damaged = true;
	begin_again(rxq);
}

/* Read on to the next record that is a frame. False: none now, or at all. */
static bool read_record(struct pcap_rxq *rxq)
{
	struct pcap_pkthdr *record;

	for (uint32_t n_bad = 0; n_bad < MAX_BAD_RECORDS; n_bad++) {
		switch (pcap_next_ex(rxq->pcap, &record, &rxq->bytes)) {
		case 1:
			break;
		case PCAP_ERROR_BREAK: /* the end of the file */
			begin_again(rxq);
			return false;
		default:
			end_early(rxq);
			return false;
		}
		rxq->n_records++;
		/* Truncated by the capture, or not a frame. */
		if (record->caplen != record->len ||
		    record->len < 14 + rxq->fcs_bytes) {
			drop(rxq, MR_RX_DROP_INVALID);
			continue;
		}
		rxq->n_bytes = record->len - rxq->fcs_bytes;
		if (rxq->n_bytes > rxq->max_segs * rxq->room_bytes) {
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

/* Copy the record into the n entries of a frame. */
static void copy_record(const struct pcap_rxq *rxq,
			const struct mr_frame *frames, uint32_t n)
{
	const uint8_t *from = rxq->bytes;

	for (uint32_t i = 0; i < n; from += frames[i++].len)
		memcpy(mr_frame_data(rxq->base.queue.port->base, &frames[i]),
		       from, frames[i].len);
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
	uint64_t n_frames = 0, n_bytes = 0;
	uint32_t n_done = 0;

	while (n_done < n && !rxq->is_at_end) {
		uint32_t n_segs;

		if (rxq->record == NULL && !read_record(rxq))
			break;
		n_segs = (rxq->n_bytes + rxq->room_bytes - 1) / rxq->room_bytes;
		if (n_segs > n - n_done)
			break; /* left to the next burst */
		if (mr_port_alloc_frame(base->queue.port, cache, rxq->n_bytes,
					UINT64_MAX, frames + n_done) == 0) {
			mr_counter_add(
				&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
			break;
		}
		copy_record(rxq, frames + n_done, n_segs);
		if (meta != NULL)
			fill_meta(rxq, meta + n_done);
		n_done += n_segs;
		n_frames++;
		n_bytes += rxq->n_bytes;
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
