/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/search: nat_wire.c and nat_search.c, on a toy NAT that
 * translates real frames, and of which everything is known.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "support/unit.h"

#include "search/nat_search.h"
#include "search/nat_wire.h"

enum { TABLE = 1 << 16, EXTERNAL = 0xc0000201 };

static const struct nat_macs macs = { { 2, 0, 0, 0, 0, 1 },
				      { 2, 0, 0, 0, 0, 2 } };

/* An entry is found by its external port; hosts and ports of the inside. */
struct entry {
	uint32_t addr;
	uint16_t port;
};

struct toy {
	struct nat_plan plan;
	struct entry entries[TABLE];
	uint32_t n_entries, capacity;
	bool evicts;       /* the oldest, when it is full; else it refuses */
	double max_pps;    /* new ones above are not made; 0: all are */
	double sender_pps; /* of the tester */
	uint32_t lose_in, lose_out; /* each Nth frame of the path; 0: none */
	double reset_s, start_s;    /* of a full table, and of any */
	uint32_t n_here; /* that its own port drops, of those lost outwards in
			  * a phase */
	uint32_t dead_every; /* each Nth number never gets through */
	bool keeps_on_reset;
	bool holds_down; /* no slot is used again, whatever is emptied */
	/* What the tester knows. */
	struct nat_tuple tuples[TABLE];
	bool is_seen[TABLE];
	uint32_t n_known, first, n_last;
	bool is_answered[TABLE], is_answer; /* the last phase */
	uint32_t n_frames;                  /* of the path, for its losses */
	uint32_t n_here_left;
};

static struct mr_ipv4 *ip_of(uint8_t *frame)
{
	return (struct mr_ipv4 *)(frame + MR_ETH_BYTES);
}

static struct mr_udp *l4_of(uint8_t *frame)
{
	return (struct mr_udp *)(frame + MR_ETH_BYTES + sizeof(struct mr_ipv4));
}

/* Sums as the frame has them are good: headers and layer 4. */
static bool sums_are_good(uint8_t *frame)
{
	struct mr_net_view view;
	uint64_t sum;

	if (mr_net_parse(frame, NAT_FRAME_BYTES, NAT_FRAME_BYTES, &view) != 0)
		return false;
	sum = mr_csum_add(frame + view.l4_bytes, view.l4_len_bytes,
			  mr_csum_pseudo(frame, &view));
	return mr_csum_fold(sum) == 0xffff &&
	       mr_csum_fold(mr_csum_add((uint8_t *)ip_of(frame),
					sizeof(struct mr_ipv4), 0)) == 0xffff;
}

/* Outwards: false: dropped. */
static bool translate(struct toy *toy, uint8_t *frame)
{
	uint32_t slot;

	if (toy->n_entries >= toy->capacity && !toy->evicts)
		return false;
	slot = toy->n_entries % toy->capacity;
	toy->entries[slot] =
		(struct entry){ ip_of(frame)->src, l4_of(frame)->src };
	toy->n_entries++;
	ip_of(frame)->src = htonl(EXTERNAL);
	l4_of(frame)->src = htons((uint16_t)(slot + 1));
	return true;
}

/* Inwards: the entry is who made it, not who asks. */
static bool translate_back(struct toy *toy, uint8_t *frame)
{
	const uint32_t slot = ntohs(l4_of(frame)->dst) - 1u;

	if (ip_of(frame)->dst != htonl(EXTERNAL) || slot >= toy->n_entries)
		return false;
	ip_of(frame)->dst = toy->entries[slot].addr;
	l4_of(frame)->dst = toy->entries[slot].port;
	return true;
}

static bool is_nth(uint32_t i, uint32_t n)
{
	return n != 0 && i % n == n - 1;
}

/* One frame outwards and, if it is new, its entry. */
static void query(struct toy *toy, uint32_t number, struct nat_counts *ret)
{
	uint8_t frame[NAT_FRAME_BYTES];
	struct nat_seen seen;

	ret->sent++;
	nat_wire_query(&toy->plan, number, &macs, frame);
	assert_true(sums_are_good(frame));
	if (is_nth(toy->n_frames++, toy->lose_out) ||
	    is_nth(number, toy->dead_every)) {
		ret->n_dropped_here += toy->n_here_left > 0;
		toy->n_here_left -= toy->n_here_left > 0;
		return;
	}
	if (!translate(toy, frame))
		return;
	assert_int_equal(
		nat_wire_read(&toy->plan, true, frame, NAT_FRAME_BYTES, &seen),
		NAT_QUERY);
	assert_int_equal(seen.number, number);
	toy->tuples[number] = seen.tuple;
	toy->is_seen[number] = true;
	ret->arrived++;
}

static int establish(void *opaque, double pps, uint32_t n,
		     struct nat_counts *ret, struct mr_reason *why)
{
	struct toy *toy = opaque;
	const double share =
		toy->max_pps > 0 && pps > toy->max_pps ? toy->max_pps / pps : 1;

	(void)why;
	*ret = (struct nat_counts){ .is_unsent = toy->sender_pps > 0 &&
						 pps > toy->sender_pps };
	toy->first = toy->n_known;
	toy->n_known += n;
	toy->n_last = n;
	toy->n_here_left = toy->n_here;
	toy->is_answer = false;
	for (uint32_t i = 0; i < n; i++) {
		toy->is_seen[toy->first + i] = false;
		if (i < share * n)
			query(toy, toy->first + i, ret);
	}
	ret->sent = n;
	return 0;
}

/* From outside: an entry that was made again leads to somebody else. */
static void ask(struct toy *toy, uint32_t number, struct nat_counts *ret)
{
	uint8_t frame[NAT_FRAME_BYTES];
	struct nat_seen seen;

	ret->sent++;
	nat_wire_answer(&toy->plan, number, &toy->tuples[number], &macs, frame);
	assert_true(sums_are_good(frame));
	if (is_nth(toy->n_frames++, toy->lose_in) ||
	    !translate_back(toy, frame) ||
	    nat_wire_read(&toy->plan, false, frame, NAT_FRAME_BYTES, &seen) !=
		    NAT_ANSWER)
		return;
	assert_int_equal(seen.number, number);
	toy->is_answered[number] = true;
	ret->arrived++;
}

static int validate(void *opaque, double pps, uint32_t n_skipped,
		    struct nat_counts *ret, struct mr_reason *why)
{
	struct toy *toy = opaque;

	(void)why;
	assert_true(pps > 0);
	*ret = (struct nat_counts){ 0 };
	memset(toy->is_answered, 0, sizeof(toy->is_answered));
	toy->is_answer = true;
	for (uint32_t i = n_skipped; i < toy->n_known; i++)
		if (toy->is_seen[i])
			ask(toy, i, ret);
	return 0;
}

static int again(void *opaque, double pps, struct nat_counts *ret,
		 struct mr_reason *why)
{
	struct toy *toy = opaque;

	(void)why;
	assert_true(pps > 0);
	*ret = (struct nat_counts){ 0 };
	toy->n_here_left = toy->n_here;
	for (uint32_t i = 0; toy->is_answer && i < toy->n_known; i++)
		if (toy->is_seen[i] && !toy->is_answered[i])
			ask(toy, i, ret);
	for (uint32_t i = 0; !toy->is_answer && i < toy->n_last; i++)
		if (!toy->is_seen[toy->first + i])
			query(toy, toy->first + i, ret);
	return 0;
}

static int reset(void *opaque, double *ret_seconds, struct mr_reason *why)
{
	struct toy *toy = opaque;

	(void)why;
	*ret_seconds = toy->start_s + (toy->n_entries > 0 ? toy->reset_s : 0);
	if (toy->holds_down)
		toy->capacity -= toy->n_entries;
	if (!toy->keeps_on_reset)
		toy->n_entries = 0;
	return 0;
}

/* The tester's numbers begin again with the first connection after a reset. */
static int establish_anew(void *opaque, double pps, uint32_t n,
			  struct nat_counts *ret, struct mr_reason *why)
{
	struct toy *toy = opaque;

	if (toy->n_entries == 0)
		toy->n_known = 0;
	return establish(opaque, pps, n, ret, why);
}

static const struct nat_ops with_reset = { establish_anew, validate, again,
					   reset };
static const struct nat_ops without_reset = { establish, validate, again,
					      NULL };

static struct toy *make_toy(bool is_tcp)
{
	static struct toy toy;

	memset(&toy, 0, sizeof(toy));
	toy.plan = (struct nat_plan){ .client = 0x0a000002,
				      .n_clients = 3,
				      .server = 0xc0000202,
				      .is_tcp = is_tcp,
				      .magic = 0xfffffff0 };
	toy.capacity = TABLE - 1;
	return &toy;
}

static struct nat_search search_of(struct toy *toy, const struct nat_ops *ops)
{
	return (struct nat_search){ .ops = ops,
				    .opaque = toy,
				    .max_pps = 1e6,
				    .resolution = 0.01,
				    .n = 1000,
				    .n_max = TABLE };
}

TEST(the_set_up_rate_is_found)
{
	struct mr_reason why;
	struct nat_rate rate;

	for (int is_tcp = 0; is_tcp < 2; is_tcp++) {
		for (int has_reset = 0; has_reset < 2; has_reset++) {
			struct toy *toy = make_toy(is_tcp);
			struct nat_search s = search_of(
				toy, has_reset ? &with_reset : &without_reset);

			toy->max_pps = 123456;
			assert_int_equal(search_nat_rate(&s, &rate, &why), 0);
			assert_true(rate.pps <= 123456 &&
				    rate.pps >= 123456 * 0.99);
			assert_true(rate.n_lost_above > 0);
			assert_int_equal(rate.n_stale_above, 0);
			assert_false(rate.is_by_sender);
		}
	}
}

TEST(a_sender_that_is_too_slow_is_told_from_the_nat)
{
	struct toy *toy = make_toy(false);
	struct nat_search s = search_of(toy, &with_reset);
	struct mr_reason why;
	struct nat_rate rate;

	toy->sender_pps = 50000;
	assert_int_equal(search_nat_rate(&s, &rate, &why), 0);
	assert_true(rate.is_by_sender);
	assert_true(rate.pps >= 49500 && rate.pps <= 50000);
}

/* A frame that the tester's own port dropped is no loss of the NAT. */
TEST(a_receiver_that_drops_is_told_from_the_nat)
{
	struct mr_reason why;
	struct nat_rate rate;

	for (uint32_t is_most = 0; is_most < 2; is_most++) {
		struct toy *toy = make_toy(false);
		struct nat_search s = search_of(toy, &with_reset);

		toy->lose_out = 100; /* 10 of 1000 */
		toy->n_here = is_most ? 5 : 4;
		assert_int_equal(search_nat_rate(&s, &rate, &why), 0);
		assert_int_equal(rate.n_lost_above, 10);
		assert_int_equal(rate.is_by_receiver, is_most);
		assert_false(rate.is_by_sender);
	}
}

/* It makes room for new ones: all are seen outside, and some are gone. */
TEST(what_was_dropped_again_does_not_answer)
{
	struct toy *toy = make_toy(false);
	struct nat_search s = search_of(toy, &with_reset);
	struct mr_reason why;
	struct nat_rate rate;

	toy->capacity = 700;
	toy->evicts = true;
	assert_int_equal(search_nat_rate(&s, &rate, &why), 0);
	assert_true(rate.pps <= 0);
	assert_int_equal(rate.n_lost_above, 0);
	assert_int_equal(rate.n_stale_above, 300);
}

/* Ports in hold-down: trials soon find none free, whatever the rate. */
TEST(a_trial_that_was_refused_is_an_error)
{
	struct mr_reason why;

	for (uint32_t i = 0; i < 3; i++) {
		struct toy *toy = make_toy(false);
		struct nat_search s = search_of(toy, &with_reset);
		struct nat_rate rate;
		struct nat_tear_down t;
		struct nat_capacity c;

		toy->max_pps = 123456;
		toy->capacity = i == 0 ? 2500 : 0;
		toy->holds_down = true;
		assert_true((i == 0 ? search_nat_rate(&s, &rate, &why) :
			     i == 1 ? search_nat_tear_down(&s, 1e3, &t, &why) :
				      search_nat_capacity(&s, 1e3, &c, &why)) <
			    0);
		assert_non_null(strstr(why.text, "refused all 1000"));
		assert_non_null(strstr(why.text, "clear all --now"));
	}
}

TEST(the_capacity_is_what_answers)
{
	struct mr_reason why;
	struct nat_capacity c;

	for (int evicts = 0; evicts < 2; evicts++) {
		struct toy *toy = make_toy(evicts);
		struct nat_search s = search_of(toy, &without_reset);

		toy->capacity = 12345;
		toy->evicts = evicts;
		assert_int_equal(search_nat_capacity(&s, 1000, &c, &why), 0);
		assert_int_equal(c.n, 12345);
		assert_int_equal(c.n_made, 16000);
		assert_true(c.is_full);
	}
}

/* Those that were lost at too high a rate never were in the table. */
TEST(what_trials_of_the_rate_lost_is_not_missing)
{
	struct toy *toy = make_toy(false);
	struct nat_search s = search_of(toy, &without_reset);
	struct mr_reason why;
	struct nat_rate rate;
	struct nat_capacity c;

	toy->max_pps = 123456;
	toy->capacity = 34567;
	assert_int_equal(search_nat_rate(&s, &rate, &why), 0);
	assert_true(toy->n_entries < s.n_made);
	assert_int_equal(search_nat_capacity(&s, rate.pps / 2, &c, &why), 0);
	assert_true(c.is_full);
	assert_int_equal(c.n, 34567);
}

/* Each third frame is lost, there or back; each connection is tried again. */
TEST(frames_lost_on_the_way_do_not_fill_the_table)
{
	struct mr_reason why;
	struct nat_capacity c;

	for (uint32_t i = 0; i < 4; i++) {
		struct toy *toy = make_toy(false);
		struct nat_search s = search_of(toy, &without_reset);

		toy->capacity = 5000;
		*(i % 2 ? &toy->lose_out : &toy->lose_in) = i < 2 ? 3 : 997;
		toy->n_here = UINT32_MAX;
		assert_int_equal(search_nat_capacity(&s, 1000, &c, &why), 0);
		assert_true(c.is_full);
		assert_int_equal(c.n, 5000);
		/* What is missing at the end, the NAT refused. */
		assert_int_equal(c.is_by_receiver, false);
		assert_int_equal(c.n_made, 8000);
	}
}

/* Half a per cent never gets through: that does not mean a full table. */
TEST(a_few_that_are_missing_do_not_fill_the_table)
{
	struct toy *toy = make_toy(false);
	struct nat_search s = search_of(toy, &without_reset);
	struct mr_reason why;
	struct nat_capacity c;

	toy->capacity = 5000;
	toy->dead_every = 200;
	assert_int_equal(search_nat_capacity(&s, 1000, &c, &why), 0);
	assert_true(c.is_full);
	assert_int_equal(c.n, 5000);
}

TEST(a_table_that_is_never_full_says_so)
{
	struct toy *toy = make_toy(false);
	struct nat_search s = search_of(toy, &without_reset);
	struct mr_reason why;
	struct nat_capacity c;

	s.n_max = 5000;
	assert_int_equal(search_nat_capacity(&s, 1000, &c, &why), 0);
	assert_false(c.is_full);
	assert_int_equal(c.n, 5000);
	assert_int_equal(c.n_made, 5000);
	/* And there is no room for more, without a reset. */
	assert_int_equal(search_nat_capacity(&s, 1000, &c, &why), -ENOSPC);
	assert_non_null(strstr(why.text, "--reset"));
}

TEST(tear_down_is_seen_from_outside)
{
	struct toy *toy = make_toy(false);
	struct nat_search s = search_of(toy, &with_reset);
	struct mr_reason why;
	struct nat_tear_down t;

	toy->reset_s = 0.2;
	toy->start_s = 0.05;
	/* What trials of the rate left is not an empty table. */
	toy->n_entries = 77;
	assert_int_equal(search_nat_tear_down(&s, 1000, &t, &why), 0);
	assert_int_equal(t.n, 1000);
	assert_int_equal(t.n_after, 0);
	assert_true(t.pps > 3999 && t.pps < 4001);
	assert_true(t.empty_seconds > 0.049 && t.empty_seconds < 0.051);
	assert_true(t.high_pps > 4999 && t.high_pps < 5001);
	/* A command that takes as long for nothing tells no highest rate. */
	toy->reset_s = 0;
	assert_int_equal(search_nat_tear_down(&s, 1000, &t, &why), 0);
	assert_true(t.pps > 19999 && t.pps < 20001);
	assert_true(t.high_pps <= 0);
	/* A command that empties nothing is found out. */
	toy->keeps_on_reset = true;
	assert_int_equal(search_nat_tear_down(&s, 1000, &t, &why), 0);
	assert_true(t.n_after > 0);
	s.ops = &without_reset;
	assert_int_equal(search_nat_tear_down(&s, 1000, &t, &why), -ENOTSUP);
}

TEST(connections_differ_and_frames_of_others_are_none)
{
	struct toy *toy = make_toy(false);
	uint8_t a[NAT_FRAME_BYTES], b[NAT_FRAME_BYTES];
	struct nat_seen seen;

	/* The client first, then its ports, then the server's. */
	nat_wire_query(&toy->plan, 1, &macs, a);
	assert_int_equal(ntohl(ip_of(a)->src), 0x0a000003);
	assert_int_equal(ntohs(l4_of(a)->src), NAT_FIRST_PORT);
	nat_wire_query(&toy->plan, 4, &macs, b);
	assert_int_equal(ip_of(a)->src, ip_of(b)->src);
	assert_int_equal(ntohs(l4_of(b)->src), NAT_FIRST_PORT + 1);
	nat_wire_query(&toy->plan, 3 * NAT_CLIENT_PORTS, &macs, b);
	assert_int_equal(ntohs(l4_of(b)->dst), NAT_SERVER_PORT + 1);
	/* Of another run, to another server, too short, of another protocol. */
	toy->plan.magic++;
	assert_int_equal(nat_wire_read(&toy->plan, true, a, sizeof(a), &seen),
			 NAT_OTHER);
	toy->plan.magic--;
	assert_int_equal(nat_wire_read(&toy->plan, true, a, 49, &seen),
			 NAT_OTHER);
	assert_int_equal(nat_wire_read(&toy->plan, true, a, 50, &seen),
			 NAT_QUERY);
	toy->plan.server++;
	assert_int_equal(nat_wire_read(&toy->plan, true, a, sizeof(a), &seen),
			 NAT_OTHER);
	toy->plan.server--;
	toy->plan.is_tcp = true;
	assert_int_equal(nat_wire_read(&toy->plan, true, a, sizeof(a), &seen),
			 NAT_OTHER);
}

TEST(arp_is_answered_for_our_addresses_alone)
{
	struct toy *toy = make_toy(false);
	uint8_t frame[NAT_FRAME_BYTES];
	struct nat_seen seen;

	for (uint32_t i = 0; i < 5; i++) {
		const uint32_t asked = toy->plan.client - 1 + i;

		nat_wire_arp(MR_ARP_REQUEST, 0x0a000001, asked, &macs, frame);
		assert_int_equal(nat_wire_read(&toy->plan, false, frame,
					       sizeof(frame), &seen),
				 i >= 1 && i <= 3 ? NAT_ARP_REQUEST :
						    NAT_OTHER);
		assert_int_equal(seen.asked, asked);
		assert_int_equal(seen.asker, 0x0a000001);
		assert_memory_equal(seen.src_mac, macs.src, 6);
	}
	nat_wire_arp(MR_ARP_REQUEST, EXTERNAL, toy->plan.server, &macs, frame);
	assert_int_equal(
		nat_wire_read(&toy->plan, true, frame, sizeof(frame), &seen),
		NAT_ARP_REQUEST);
	assert_int_equal(frame[0], 0xff);
	nat_wire_arp(MR_ARP_REPLY, EXTERNAL, toy->plan.server, &macs, frame);
	assert_int_equal(
		nat_wire_read(&toy->plan, true, frame, sizeof(frame), &seen),
		NAT_ARP_REPLY);
	assert_memory_equal(frame, macs.dst, 6);
}
