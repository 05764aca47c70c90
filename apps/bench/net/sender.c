/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends on one tx queue. */
#include <string.h>

#include "net/mac.h"
#include "net/sender.h"
#include "stream/stream.h"
#include "support/counter.h"

/* Rounds without frames, after which it looks for completions. */
enum { IDLE_ROUNDS = 64 };

void sender_begin(struct sender *sender, const struct send_orders *orders,
		  struct builder *builder, struct hist *lateness)
{
	sender->clock = orders->clock;
	sender->builder = builder;
	sender->lateness = lateness;
	sender->max_lag_ns = orders->max_lag_ns;
	sender->n_sent = sender->n_unsent = sender->last_ns = 0;
	sender->n_due = sender->n_held = 0;
	sender->is_done = false;
	pacer_begin(&sender->pacer, orders);
}

/* Free frames that were built and not sent, and reuse their numbers. */
static void unbuild_frames(struct sender *sender)
{
	builder_take_back(sender->builder, sender->n_held);
	mr_frame_free_bulk(sender->config.cache, sender->frames,
			   sender->n_held);
	sender->n_held = 0;
}

void sender_end(struct sender *sender, uint64_t now_ns)
{
	unbuild_frames(sender);
	/* At full speed, frames that were not accepted were never due. */
	if (sender->pacer.is_paced)
		counter_add(&sender->n_unsent,
			    sender->n_due + pacer_skip(&sender->pacer, now_ns));
	sender->n_due = 0;
	__atomic_store_n(&sender->is_done, true, __ATOMIC_RELEASE);
}

/* Give up frames that were due too long ago. */
static void give_up_late(struct sender *sender, uint64_t before_ns)
{
	uint32_t n = 0;

	while (n < sender->n_due && sender->due_ns[n] < before_ns)
		n++;
	if (n > 0) {
		unbuild_frames(sender);
		sender->n_due -= n;
		memmove(sender->due_ns, sender->due_ns + n,
			sender->n_due * sizeof(sender->due_ns[0]));
	}
	counter_add(&sender->n_unsent,
		    n + pacer_skip(&sender->pacer, before_ns));
}

static void follow_macs(struct sender *sender)
{
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t now = sender->macs[i] != NULL ?
					     mac_get(sender->macs[i]) :
					     sender->had_macs[i];

		if (now == sender->had_macs[i])
			continue;
		builder_set_mac(sender->builder, 6 * i, &sender->had_macs[i],
				&now);
		sender->had_macs[i] = now;
	}
}

/* Build the frames that are due, as far as there are buffers. */
static void build_due(struct sender *sender)
{
	const struct sender_config *config = &sender->config;
	struct mr_frame *frames = sender->frames + sender->n_held;
	uint64_t addrs[MR_BURST_MAX];
	const uint32_t n = mr_frag_alloc_bulk(config->cache, addrs,
					      sender->n_due - sender->n_held,
					      config->buffer_bytes);

	follow_macs(sender);
	for (uint32_t i = 0; i < n; i++)
		frames[i].addr = addrs[i] + config->headroom_bytes;
	builder_fill(sender->builder, config->base, frames,
		     sender->due_ns + sender->n_held, n);
	sender->n_held += n;
}

/* Offer the built frames. Returns how many the queue accepted. */
static uint32_t offer_built(struct sender *sender, uint64_t now)
{
	const uint32_t n = mr_tx_burst(sender->config.txq, sender->config.cache,
				       sender->frames, sender->n_held);

	if (n == 0)
		return 0;
	if (sender->pacer.is_paced) {
		now = clock_now(sender->clock);
		for (uint32_t i = 0; i < n; i++)
			hist_add(sender->lateness, now - sender->due_ns[i]);
	}
	sender->n_held -= n;
	sender->n_due -= n;
	if (sender->n_due > 0) {
		memmove(sender->frames, sender->frames + n,
			sender->n_held * sizeof(sender->frames[0]));
		memmove(sender->due_ns, sender->due_ns + n,
			sender->n_due * sizeof(sender->due_ns[0]));
	}
	sender->last_ns = now;
	counter_add(&sender->n_sent, n);
	return n;
}

static uint32_t idle_round(struct sender *sender, uint64_t now_ns)
{
	if (!sender->is_done && pacer_is_done(&sender->pacer, now_ns))
		__atomic_store_n(&sender->is_done, true, __ATOMIC_RELEASE);
	if (++sender->n_idle % IDLE_ROUNDS == 0)
		mr_tx_burst(sender->config.txq, sender->config.cache, NULL, 0);
	return 0;
}

uint32_t sender_step(struct sender *sender, uint64_t now_ns)
{
	const bool is_paced = sender->pacer.is_paced;

	if (sender->is_done)
		return idle_round(sender, now_ns);
	/* The time that others took in this round must not age the frames. */
	if (!is_paced)
		now_ns = clock_now(sender->clock);
	if (is_paced && now_ns > sender->max_lag_ns)
		give_up_late(sender, now_ns - sender->max_lag_ns);
	sender->n_due += pacer_take(&sender->pacer, now_ns,
				    sender->due_ns + sender->n_due,
				    sender->config.burst - sender->n_due);
	if (!is_paced && now_ns >= sender->pacer.end_ns)
		sender_end(sender, now_ns);
	if (sender->n_due == 0)
		return idle_round(sender, now_ns);
	if (sender->n_held < sender->n_due)
		build_due(sender);
	return sender->n_held > 0 ? offer_built(sender, now_ns) : 0;
}

uint64_t sender_next_ns(const struct sender *sender)
{
	if (sender->n_due > 0)
		return sender->due_ns[0] + sender->max_lag_ns + 1;
	return sender->pacer.next_ns;
}
