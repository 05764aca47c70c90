/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/tcp.c: RFC 7857 figure 1, arrow by arrow. */
#include "fixture.h"

/* Once open, nothing but the wheel ends a session. */
TEST(no_segment_closes_an_open_session)
{
	for (uint32_t tcp = NAT_TCP_OPENING; tcp < NAT_TCP_STATES; tcp++)
		for (uint32_t flags = 0; flags < 256; flags++)
			for (uint32_t d = 0; d < 2; d++)
				assert_in_range(
					nat_tcp_next(tcp, d, (uint8_t)flags),
					NAT_TCP_OPENING, NAT_TCP_ANSWERED);
}

TEST(segments_refresh_by_state_and_flags)
{
	assert_false(nat_tcp_refreshes(NAT_TCP_CLOSED, ACK));
	assert_true(nat_tcp_refreshes(NAT_TCP_OPENING, SYN));
	assert_false(nat_tcp_refreshes(NAT_TCP_OPENING, ACK));
	assert_false(nat_tcp_refreshes(NAT_TCP_OPENING, SYN | RST));
	assert_true(nat_tcp_refreshes(NAT_TCP_ANSWERED, SYN | ACK));
	assert_false(nat_tcp_refreshes(NAT_TCP_ANSWERED, ACK));
	for (uint32_t tcp = NAT_TCP_OPEN; tcp <= NAT_TCP_HALF_IN; tcp++) {
		assert_true(nat_tcp_refreshes(tcp, ACK));
		assert_true(nat_tcp_refreshes(tcp, 0));
		assert_false(nat_tcp_refreshes(tcp, RST | ACK));
	}
	assert_false(nat_tcp_refreshes(NAT_TCP_CLOSING, ACK));
	assert_false(nat_tcp_refreshes(NAT_TCP_RESET, ACK));
}

TEST(each_state_has_its_timer_and_name)
{
	const struct nat_timeouts t = { .tcp_opening_s = 1,
					.tcp_open_s = 2,
					.tcp_closing_s = 3,
					.tcp_reset_s = 4 };
	static const struct {
		uint32_t lasts_s;
		const char *name;
	} want[] = { { 1, "closed" },   { 1, "opening" }, { 2, "open" },
		     { 2, "half-out" }, { 2, "half-in" }, { 3, "closing" },
		     { 4, "reset" },    { 1, "answered" } };

	for (uint32_t i = 0; i < NAT_TCP_STATES; i++) {
		assert_int_equal(nat_tcp_timeout(&t, i), want[i].lasts_s);
		assert_string_equal(nat_tcp_name(i), want[i].name);
	}
	assert_null(nat_tcp_name(NAT_TCP_STATES));
	assert_null(nat_tcp_name(UINT32_MAX));
}

enum { N_SEEN = 8, MAX_WINDOW = 65535 << 14 };

/* Segments that come one after the other, and which of them belong. */
static const struct {
	const char *what;
	struct {
		enum nat_direction direction;
		struct nat_segment segment;
		bool belongs;
	} seen[N_SEEN]; /* up to one with flags 0 */
} windows[] = {
	{ "what is seen first belongs",
	  { { NAT_IN, { 70000, 0, 0, 0, RST, 0 }, true },
	    { NAT_OUT, { 9, 0, 0, 0, RST, 0 }, true } } },
	{ "an end whose scale nobody saw may have the largest window",
	  { { NAT_OUT, { 100, 500, 0, 10, ACK, 0 }, true },
	    { NAT_IN, { 500 + MAX_WINDOW, 0, 0, 0, RST, 0 }, true },
	    { NAT_IN, { 501 + MAX_WINDOW, 0, 0, 0, RST, 0 }, false },
	    { NAT_IN, { 499, 0, 0, 0, RST, 0 }, false } } },
	{ "one SYN without the option is for both",
	  { { NAT_OUT, { 100, 0, 1, 1000, SYN, 8 }, true },
	    { NAT_IN, { 500, 101, 1, 1000, SYN | ACK, 0 }, true },
	    { NAT_OUT, { 101, 501, 0, 10, ACK, 0 }, true },
	    { NAT_IN, { 511, 0, 0, 0, RST, 0 }, true },
	    { NAT_IN, { 512, 0, 0, 0, RST, 0 }, false } } },
	{ "windows are scaled, those of SYNs are not",
	  { { NAT_OUT, { 100, 0, 1, 65535, SYN, 8 }, true },
	    { NAT_IN, { 500, 101, 1, 128, SYN | ACK, 8 }, true },
	    { NAT_OUT, { 102 + 256, 0, 0, 0, RST, 0 }, false },
	    { NAT_OUT, { 101, 501, 0, 10, ACK, 0 }, true },
	    { NAT_IN, { 501 + 1280, 0, 0, 0, RST, 0 }, true },
	    { NAT_IN, { 502 + 1280, 0, 0, 0, RST, 0 }, false } } },
	{ "numbers wrap",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 0 }, true },
	    { NAT_IN, { UINT32_MAX, 101, 1, 100, SYN | ACK, 0 }, true },
	    { NAT_OUT, { 101, 0, 0, 100, ACK, 0 }, true },
	    { NAT_IN, { 100, 101, 50, 100, ACK, 0 }, true },
	    { NAT_IN, { UINT32_MAX - 5, 101, 5, 100, ACK, 0 }, true },
	    { NAT_IN, { 101, 101, 5, 100, ACK, 0 }, false } } },
	{ "an old acknowledgement does not take back a newer one",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 0 }, true },
	    { NAT_IN, { 500, 101, 1, 100, SYN | ACK, 0 }, true },
	    { NAT_IN, { 501, 101, 50, 100, ACK, 0 }, true },
	    { NAT_OUT, { 101, 551, 0, 100, ACK, 0 }, true },
	    { NAT_OUT, { 101, 501, 0, 100, ACK, 0 }, true },
	    { NAT_IN, { 550, 0, 0, 0, RST, 0 }, false },
	    { NAT_IN, { 551, 0, 0, 0, RST, 0 }, true } } },
	{ "an acknowledgement of what was not sent is not learned",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 0 }, true },
	    { NAT_IN, { 500, 101, 1, 100, SYN | ACK, 0 }, true },
	    { NAT_OUT, { 101, 501, 50, 100, ACK, 0 }, true },
	    { NAT_IN, { 501, 152, 0, 100, ACK, 0 }, true },
	    { NAT_IN, { 501, 100000, 1, 100, ACK, 0 }, true },
	    { NAT_OUT, { 101, 501, 50, 100, ACK, 0 }, true },
	    { NAT_OUT, { 101, 0, 0, 0, RST, 0 }, true } } },
	{ "a window of 0 does not shut one that was open",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 0 }, true },
	    { NAT_IN, { 500, 101, 1, 100, SYN | ACK, 0 }, true },
	    { NAT_IN, { 501, 101, 0, 0, ACK, 0 }, true },
	    { NAT_OUT, { 151, 501, 50, 100, ACK, 0 }, true } } },
	{ "a SYN behind the handshake changes no scale",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 8 }, true },
	    { NAT_IN, { 500, 101, 1, 100, SYN | ACK, 8 }, true },
	    { NAT_OUT, { 101, 501, 0, 10, ACK, 0 }, true },
	    { NAT_IN, { 500, 101, 1, 10, SYN | ACK, 0 }, true },
	    { NAT_IN, { 501 + 1280, 0, 1, 0, ACK, 0 }, true } } },
	{ "a segment that acknowledges everything is not forgotten",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 1 }, true },
	    { NAT_IN, { 500, 101, 1, 100, SYN | ACK, 1 }, true },
	    { NAT_OUT, { 101, 501, 0, 100, ACK, 0 }, true },
	    { NAT_IN, { 70000, 101, 9, 100, ACK, 0 }, false },
	    { NAT_IN, { 70009, 0, 0, 0, RST, 0 }, false },
	    { NAT_IN, { 501, 101, 9, 100, ACK, 0 }, true } } },
	{ "a forged segment before the answer to a SYN does not count",
	  { { NAT_OUT, { 100, 0, 1, 100, SYN, 1 }, true },
	    { NAT_IN, { 70000, 9, 1, 100, SYN | ACK, 1 }, true },
	    { NAT_IN, { 500, 101, 1, 100, SYN | ACK, 1 }, true },
	    { NAT_OUT, { 101, 501, 0, 100, ACK, 0 }, true },
	    { NAT_IN, { 70001, 101, 9, 100, ACK, 0 }, false },
	    { NAT_IN, { 70010, 0, 0, 0, RST, 0 }, false },
	    { NAT_IN, { 501, 101, 9, 100, ACK, 0 }, true } } },
	{ "a first segment that the other end contradicts is forgotten",
	  { { NAT_IN, { 7000, 99999, 0, 100, ACK, 1 }, true },
	    { NAT_OUT, { 99999u + MAX_WINDOW * 2u, 0, 0, 0, RST, 0 }, false },
	    { NAT_OUT, { 99999u + MAX_WINDOW * 2u, 6, 9, 9, ACK, 0 }, true },
	    { NAT_IN, { 6, 99999u + MAX_WINDOW * 2u, 0, 9, ACK, 0 }, true },
	    { NAT_IN, { 7u + MAX_WINDOW, 0, 0, 0, ACK, 0 }, false } } },
};

TEST(segments_within_the_window_belong_to_the_connection)
{
	for (uint32_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
		struct nat_window window = { 0 };

		for (uint32_t k = 0; windows[i].seen[k].segment.flags; k++)
			if (nat_window_see(&window,
					   windows[i].seen[k].direction,
					   &windows[i].seen[k].segment,
					   k < 2) != windows[i].seen[k].belongs)
				fail_msg("%s: segment %u", windows[i].what, k);
	}
}
