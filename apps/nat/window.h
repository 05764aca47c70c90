/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which segments belong to a TCP connection, by what both of its ends have said
 * they expect: the last acknowledgement of each, and its window.
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

#include "map.h"
#include "tcp.h"

/* All zero: nothing has been seen. */
struct nat_window_end {
	uint32_t ack;
	uint16_t window; /* as in the header */
	uint8_t shift;   /* of it, plus 1; 0: not known, so as much as can be */
	uint8_t seen;
};

enum {
	NAT_END_SEEN = 1,      /* ack and window are there... */
	NAT_END_CONFIRMED = 2, /* ...and the other end has kept to them */
};

struct nat_window {
	struct nat_window_end ends[2]; /* by the direction that they send in */
};

enum { NAT_SCALE_MAX = 14 };

/* nat_segment.shift of a window scale option: RFC 7323 2.3. */
static inline uint8_t nat_window_shift(uint8_t scale)
{
	return 1 + (scale < NAT_SCALE_MAX ? scale : NAT_SCALE_MAX);
}

static inline uint32_t nat_window_bytes(const struct nat_window_end *end)
{
	if (end->shift == 0)
		return (uint32_t)UINT16_MAX << NAT_SCALE_MAX;
	return (uint32_t)end->window << (end->shift - 1);
}

/* Whether a segment is where its receiver expects one. */
static inline bool nat_window_fits(const struct nat_window_end *receiver,
				   const struct nat_segment *segment)
{
	const uint32_t window = nat_window_bytes(receiver);
	const uint32_t past = window > UINT16_MAX ? window : UINT16_MAX;
	const uint32_t ahead = segment->seq - receiver->ack;

	return ahead <= window ||
	       ((segment->flags & NAT_TCP_RST) == 0 &&
		ahead + segment->n_bytes + past <= past + window);
}

/* Scaling is in use if both SYNs have the option. */
static inline void nat_window_scale(struct nat_window *window,
				    enum nat_direction direction,
				    const struct nat_segment *segment)
{
	struct nat_window_end *from = &window->ends[direction];

	from->shift = segment->shift;
	if (segment->shift != 0)
		/* A SYN's own window is not scaled. */
		from->window = (uint16_t)((from->window >>
					   (segment->shift - 1)) + 1);
	else
		from->shift = window->ends[!direction].shift = 1;
}

/*
 * Look at a segment and learn from it. false: it does not belong to the
 * connection. What the first segment of an end has said is forgotten when the
 * other end does not keep to it: it may have been anybody's.
 */
static inline bool nat_window_see(struct nat_window *window,
				  enum nat_direction direction,
				  const struct nat_segment *segment)
{
	struct nat_window_end *from = &window->ends[direction];
	struct nat_window_end *to = &window->ends[!direction];

	if (to->seen & NAT_END_SEEN) {
		if (nat_window_fits(to, segment))
			to->seen |= NAT_END_CONFIRMED;
		else if (to->seen & NAT_END_CONFIRMED ||
			 segment->flags & NAT_TCP_RST)
			return false;
		else
			to->seen = 0;
	}
	if (segment->flags & NAT_TCP_RST)
		return true;
	if (segment->flags & NAT_TCP_ACK &&
	    (from->seen == 0 || (int32_t)(segment->ack - from->ack) >= 0)) {
		from->ack = segment->ack;
		from->window = segment->window;
		from->seen |= NAT_END_SEEN;
	}
	if (segment->flags & NAT_TCP_SYN)
		nat_window_scale(window, direction, segment);
	return true;
}

#endif
