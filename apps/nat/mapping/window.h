/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which segments belong to a TCP connection, judging by what both ends expect:
 * the last acknowledgement of each, and its window.
 *
 *     receiver:       ack                       ack + window
 *     sequence  ------|=============================|------>
 *     an RST:         |-- belongs ------------------|
 *     others:   |--------- belong, repeated ones too --|
 *
 * Sources: RFC 9293 3.10.7.4, RFC 5961 3.2 and 4.2, RFC 7323 2.2
 * and 2.3.
 */
#ifndef NAT_WINDOW_H
#define NAT_WINDOW_H

#include <millrace/experimental/flow_way.h>

#include "map.h"
#include "tcp.h"

/* All zero: nothing seen yet. */
struct nat_window_end {
	uint32_t ack;      /* newest that fits the other end's segments */
	uint32_t end;      /* after the last sequence number it sent */
	uint16_t window;   /* the largest, unscaled: its right edge never moves
			    * back, and a forged 0 must not shut it */
	uint8_t shift : 4; /* of window, plus 1; 0: unknown, the largest */
	uint8_t stray_shift : 4; /* of stray, if that is a SYN */
	uint8_t seen;
	uint32_t stray; /* end of the last segment that did not belong */
};

enum {
	NAT_END_SEEN = 1,      /* ack and window are valid... */
	NAT_END_CONFIRMED = 2, /* ...and not forged: nat_window_knows() held, or
				* the other end has respected them */
	NAT_END_SENT = 4,      /* end is valid */
	NAT_END_STRAY = 8,     /* stray is valid, and nothing came after it */
};

struct nat_window {
	struct nat_window_end ends[2]; /* by the direction they send in */
};

enum { NAT_SCALE_MAX = 14 };

/* nat_segment.shift for a window scale option: RFC 7323 2.3. */
static inline uint8_t nat_window_shift(uint8_t scale)
{
	return 1 + (scale < NAT_SCALE_MAX ? scale : NAT_SCALE_MAX);
}

/* Whether a segment is where its receiver expects it. */
static inline bool nat_window_fits(const struct nat_window_end *receiver,
				   const struct nat_segment *segment)
{
	const uint32_t window =
		mr_flow_window(receiver->window, receiver->shift);

	if (segment->flags & MR_TCP_RST)
		return segment->seq - receiver->ack <= window;
	return mr_flow_fits(receiver->ack, window, segment->seq,
			    segment->n_bytes);
}

/* Scaling applies if both SYNs have the option. */
static inline void nat_window_scale(struct nat_window *window,
				    enum nat_direction direction,
				    const struct nat_segment *segment)
{
	window->ends[direction].shift = segment->shift;
	if (segment->shift == 0)
		window->ends[NAT_OUT].shift = window->ends[NAT_IN].shift = 1;
}

/*
 * Whether the sender of a segment has seen what the other end sent: it
 * acknowledges all of it, or it is an inside host that answers a SYN. An
 * attacker would have to guess the number.
 */
static inline bool nat_window_knows(const struct nat_window_end *to,
				    enum nat_direction direction,
				    const struct nat_segment *segment,
				    bool is_opening)
{
	return (to->seen & NAT_END_SENT && segment->ack == to->end) ||
	       (direction == NAT_OUT && is_opening &&
		segment->flags & MR_TCP_SYN);
}

/* Update what the sender of this expects. An acknowledgement of what the other
 * end never sent is forged, or we missed a part: learn nothing from it. */
static inline void nat_window_learn(struct nat_window_end *from,
				    const struct nat_window_end *to,
				    const struct nat_segment *segment,
				    bool is_known)
{
	uint32_t window = segment->window;

	if ((from->seen & NAT_END_SEEN &&
	     (int32_t)(segment->ack - from->ack) < 0) ||
	    (to->seen & NAT_END_SENT && (int32_t)(segment->ack - to->end) > 0))
		return;
	/* The window of a SYN itself is not scaled. */
	if (segment->flags & MR_TCP_SYN && from->shift > 1)
		window = (window + (1u << (from->shift - 1)) - 1) >>
			 (from->shift - 1);
	from->ack = segment->ack;
	if (from->window < window)
		from->window = (uint16_t)window;
	from->seen |= NAT_END_SEEN | (is_known ? NAT_END_CONFIRMED : 0);
}

/*
 * An end acknowledges exactly what did not belong: both are somewhere unknown,
 * in another connection or after a part of this one that took another path.
 * Then forget what we knew.
 */
static inline bool nat_window_moves(struct nat_window *window,
				    enum nat_direction direction,
				    const struct nat_segment *segment)
{
	const struct nat_window_end to = window->ends[!direction];

	if (!(to.seen & NAT_END_STRAY) || segment->ack != to.stray ||
	    (segment->flags & (MR_TCP_ACK | MR_TCP_RST)) != MR_TCP_ACK)
		return false;
	*window = (struct nat_window){ 0 };
	window->ends[!direction].shift = to.stray_shift;
	return true;
}

/* After the handshake, a SYN with a new number is another connection's. */
static inline bool nat_window_is_new(const struct nat_window_end *from,
				     const struct nat_segment *segment)
{
	return segment->flags & MR_TCP_SYN && from->seen & NAT_END_SENT &&
	       (int32_t)(segment->seq + segment->n_bytes - from->end) > 0;
}

/* Remember a segment that did not belong. Always false. */
static inline bool nat_window_stray(struct nat_window_end *from,
				    const struct nat_segment *segment)
{
	if (segment->flags & MR_TCP_RST)
		return false;
	from->stray = segment->seq + segment->n_bytes;
	from->stray_shift = segment->shift & 15;
	from->seen |= NAT_END_STRAY;
	return false;
}

/*
 * Check a segment and learn from it; is_opening: it is in a handshake. False:
 * it does not belong to the connection. What an end's first segment implied is
 * forgotten if the other end does not respect it, because an attacker may have
 * sent it. What a handshake implied is kept, if we saw the handshake.
 */
static inline bool nat_window_see(struct nat_window *window,
				  enum nat_direction direction,
				  const struct nat_segment *segment,
				  bool is_opening)
{
	struct nat_window_end *from = &window->ends[direction];
	struct nat_window_end *to = &window->ends[!direction];
	const uint32_t end = segment->seq + segment->n_bytes;
	bool knows;

	if (to->seen & NAT_END_SEEN) {
		if (nat_window_fits(to, segment) &&
		    (is_opening || !nat_window_is_new(from, segment)))
			to->seen |= NAT_END_CONFIRMED;
		else if (to->seen & NAT_END_CONFIRMED ||
			 segment->flags & MR_TCP_RST)
			return nat_window_stray(from, segment);
		else
			*to = (struct nat_window_end){ .shift = to->shift };
	}
	if (segment->flags & MR_TCP_RST)
		return true;
	knows = segment->flags & MR_TCP_ACK &&
		nat_window_knows(to, direction, segment, is_opening);
	/* An answer to a SYN overrides what was not confirmed. */
	if (!(from->seen & NAT_END_SENT) || (int32_t)(end - from->end) > 0 ||
	    (knows && segment->flags & MR_TCP_SYN &&
	     !(from->seen & NAT_END_CONFIRMED)))
		from->end = end;
	from->seen = (from->seen & ~NAT_END_STRAY) | NAT_END_SENT;
	if (segment->flags & MR_TCP_SYN && is_opening)
		nat_window_scale(window, direction, segment);
	if (segment->flags & MR_TCP_ACK)
		nat_window_learn(from, to, segment, knows);
	return true;
}

#endif
