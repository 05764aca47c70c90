/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same random packets through two translators, one of which has the XDP
 * program before it: there must be no difference in what leaves, from where,
 * what is dropped and why, sessions and their times, and what is logged.
 *
 * Only ids of packets without DF and of fragments may differ: rx queues and
 * workers have numbers of their own. Time goes in steps that the driver's clock
 * does not round.
 *
 * usage: nat-differential [PACKETS [SEED]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <millrace/net.h>

#include "harness.h"
#include "packets.h"

enum {
	PLAIN, /* the harnesses */
	OFFLOADED,
	ROUND = 2000, /* packets under one configuration */
	STEP_MS = 20,
	MAX_FRAME = 65536,
	MAX_ROWS = 1024,
	MAX_EVENTS = 8192,
	MAX_ANSWERS = 64,
	SKIPPED = 77,
};

struct differential {
	uint64_t seed;
	uint64_t n; /* of the packet */
	struct packets packets;
	struct harness *harnesses[2];
	uint32_t generation;     /* of MAC addresses */
	uint32_t n_silent;       /* percent of requests that nobody answers */
	uint64_t n_offloaded[2]; /* UDP, TCP */
	/* How often that was to another peer than the last one of its socket,
	 * 1 + whose index that is. */
	uint64_t n_changes;
	uint32_t last_peers[PACKETS_PROTOS][PACKETS_HOSTS][PACKETS_PORTS];
	uint32_t n_first; /* bytes of its first piece; 0: it is in one */
	uint32_t n_sent;  /* bytes of the frame below */
	uint8_t sent[PACKETS_MAX];
	/* Requests to be answered. */
	struct {
		uint32_t side, addr;
	} asked[MAX_ANSWERS];
	uint32_t n_asked;
};

typedef uint32_t list_fn(struct harness *harness, uint32_t *numbers,
			 uint32_t n_max);
typedef int sort_fn(const void *a, const void *b);

static void dump(const char *what, const uint8_t *bytes, uint32_t n)
{
	fprintf(stderr, "%s, %u bytes:", what, n);
	for (uint32_t i = 0; i < n && i < 128; i++)
		fprintf(stderr, "%s%02x", i % 16 == 0 ? "\n  " : " ", bytes[i]);
	fprintf(stderr, "\n");
}

/* Packets are counted from 1. */
static void fail(const struct differential *d, const char *what)
{
	fprintf(stderr,
		"seed %" PRIu64 ", packet %" PRIu64
		": %s differ with offload\n",
		d->seed, d->n, what);
	dump("the packet", d->sent, d->n_sent);
}

static const char *word(struct differential *d, const char *const *words,
			uint32_t n)
{
	return words[packets_below(&d->packets, n)];
}

/* vlans: as the harness has them already. */
static void configure(struct differential *d, char *text, size_t n)
{
	static const char *const filters[] = { "none", "address",
					       "address-port" };
	static const char *const bools[] = { "false", "true" };
	static const char *const pools[] = { "", ", \"192.0.2.2\"" };
	static const char *const one_to_ones[] = {
		"", ", \"one_to_one\": [{\"outside\": \"192.0.2.9\", "
		    "\"inside\": \"10.0.7.8\"}]"
	};
	static const char *const excludes[] = { "192.0.99.0/24",
						"203.0.113.0/24" };
	char vlans[2][20] = { "", "" };

	for (uint32_t s = 0; s < 2; s++)
		if (d->packets.vlans[s] != 0)
			snprintf(vlans[s], sizeof(vlans[s]), ", \"vlan\": %u",
				 d->packets.vlans[s]);
	snprintf(text, n,
		 "{\"inside\": {\"port\": \"p0\", \"addresses\": "
		 "[\"10.0.0.1/24\"], \"gateway\": \"10.0.0.254\", "
		 "\"mtu\": 1500%s},"
		 "\"outside\": {\"port\": \"p1\", \"addresses\": "
		 "[\"192.0.2.1/24\"], \"gateway\": \"192.0.2.254\", "
		 "\"mtu\": 1400%s},"
		 "\"pool\": [\"192.0.2.1\"%s], \"subscribers\": "
		 "[\"10.0.0.0/16\"], \"limits\": {\"mappings\": 64, "
		 "\"sessions\": 256}, \"log\": {\"sessions\": true},"
		 "\"filtering\": {\"udp\": \"%s\", \"tcp\": \"%s\"},"
		 "\"timeouts\": {\"udp\": %u, \"tcp_open\": %u, "
		 "\"tcp_opening\": 20, \"tcp_closing\": 3, \"tcp_reset\": 2, "
		 "\"quarantine\": 1}, \"inbound_refresh\": %s, "
		 "\"hairpin\": %s, \"exclude\": [{\"to\": \"%s\"}],"
		 "\"forwards\": [{\"protocols\": [\"udp\", \"tcp\"], "
		 "\"outside\": \"192.0.2.1:7000-7000\", "
		 "\"inside\": \"10.0.0.2:5001\"}]%s}",
		 vlans[0], vlans[1], word(d, pools, 2), word(d, filters, 3),
		 word(d, filters, 3), 3 + packets_below(&d->packets, 10),
		 20 + packets_below(&d->packets, 40), word(d, bools, 2),
		 word(d, bools, 2), word(d, excludes, 2),
		 word(d, one_to_ones, 2));
}

static void send(struct differential *d, uint32_t side, const uint8_t *bytes,
		 uint32_t n)
{
	if (n == 0)
		return;
	for (uint32_t h = 0; h < 2; h++)
		if (harness_send(d->harnesses[h], side, bytes, n, 0, d->n_first,
				 0) < 0)
			abort();
}

/* Ids of packets without DF and of fragments, and what depends on them. */
static void hide_id(const struct differential *d, uint32_t side, uint8_t *bytes,
		    uint32_t n)
{
	const uint32_t at = packets_ip_at(&d->packets, side, bytes, n);
	uint8_t *ip = bytes + at;
	bool is_right;

	if (at == 0 || ((ip[6] & 0x7f) == 0x40 && ip[7] == 0) ||
	    (ip[0] & 15u) * 4 > n - at)
		return;
	is_right = mr_csum_fold(mr_csum_add(ip, (ip[0] & 15u) * 4, 0)) ==
		   UINT16_MAX;
	memset(ip + 4, 0, 2);
	memset(ip + 10, is_right, 2);
}

static int compare_frames(struct differential *d, uint32_t side, uint8_t *a,
			  uint32_t n_a, uint8_t *b, uint32_t n_b)
{
	uint32_t addr;

	packets_see(&d->packets, side, a, n_a);
	hide_id(d, side, a, n_a);
	hide_id(d, side, b, n_b);
	if (n_a != n_b || memcmp(a, b, n_a) != 0) {
		fail(d, side == 0 ? "frames inside" : "frames outside");
		dump("plain", a, n_a);
		dump("offloaded", b, n_b);
		return -1;
	}
	if (packets_is_asked(&d->packets, side, a, n_a, &addr) &&
	    d->n_asked < MAX_ANSWERS &&
	    !packets_percent(&d->packets, d->n_silent)) {
		d->asked[d->n_asked].side = side;
		d->asked[d->n_asked++].addr = addr;
	}
	return 0;
}

/* All that came out, by side and in order. */
static int collect(struct differential *d)
{
	static uint8_t frames[2][MAX_FRAME];
	int status = 0;

	for (uint32_t side = 0; side < HARNESS_OUTS; side++) {
		int n[2];

		do {
			for (uint32_t h = 0; h < 2; h++) {
				uint32_t flags;

				n[h] = harness_recv(d->harnesses[h], side,
						    frames[h], MAX_FRAME,
						    &flags);
			}
			if (status == 0 && n[0] + n[1] > 0)
				status = compare_frames(
					d, side, frames[0], (uint32_t)n[0],
					frames[1], (uint32_t)n[1]);
		} while (n[0] + n[1] > 0);
	}
	return status;
}

/* Until nothing more comes out. */
static int settle(struct differential *d)
{
	int status = collect(d);

	while (status == 0 && d->n_asked > 0) {
		uint8_t arp[64];

		d->n_asked--;
		send(d, d->asked[d->n_asked].side, arp,
		     packets_arp(&d->packets, d->asked[d->n_asked].side,
				 d->asked[d->n_asked].addr, d->generation,
				 arp));
		status = collect(d);
	}
	return status;
}

static int compare_counters(const struct differential *d)
{
	static const char *const names[] = {
		"received",           "sent",       "made",     "held",
		"translated_inside",  "mappings",   "sessions", "created",
		"translated_outside", "hairpinned", "excluded", "expired",
		"subscribers",        "quarantined"
	};
	const uint32_t n_names = sizeof(names) / sizeof(*names);

	for (uint32_t i = 0;; i++) {
		const char *name = i < n_names ?
					   names[i] :
					   harness_reason_name(i - n_names + 1);
		int64_t plain, offloaded;

		if (name == NULL)
			return 0;
		plain = harness_counter(d->harnesses[PLAIN], name);
		offloaded = harness_counter(d->harnesses[OFFLOADED], name);
		if (plain == offloaded)
			continue;
		fail(d, name);
		fprintf(stderr, "%" PRId64 " and %" PRId64 "\n", plain,
			offloaded);
		return -1;
	}
}

static int by_event(const void *a, const void *b)
{
	return memcmp(a, b, HARNESS_EVENT_NUMBERS * sizeof(uint32_t));
}

static int by_session(const void *a, const void *b)
{
	return memcmp(a, b, HARNESS_SESSION_NUMBERS * sizeof(uint32_t));
}

static int by_window(const void *a, const void *b)
{
	return memcmp(a, b, HARNESS_WINDOW_NUMBERS * sizeof(uint32_t));
}

/* Mappings that end in the same call may end in another order. */
static int compare_events(const struct differential *d)
{
	static uint32_t rows[2][MAX_EVENTS][HARNESS_EVENT_NUMBERS];

	for (uint32_t h = 0; h < 2; h++) {
		uint32_t n = 0;

		memset(rows[h], 0, sizeof(rows[h]));
		while (n < MAX_EVENTS &&
		       harness_event(d->harnesses[h], n, rows[h][n]) == 0)
			n++;
		qsort(rows[h], n, sizeof(rows[h][0]), by_event);
	}
	if (memcmp(rows[0], rows[1], sizeof(rows[0])) == 0)
		return 0;
	fail(d, "logs");
	return -1;
}

static void print_row(const char *what, const uint32_t *row, uint32_t n)
{
	fprintf(stderr, "%-9s", what);
	for (uint32_t i = 0; i < n; i++)
		fprintf(stderr, " %x", row[i]);
	fprintf(stderr, "\n");
}

static int compare_rows(const struct differential *d, const char *what,
			list_fn *list, uint32_t n_numbers, sort_fn *sort)
{
	static uint32_t rows[2][MAX_ROWS * HARNESS_WINDOW_NUMBERS];
	const size_t n_bytes = n_numbers * sizeof(rows[0][0]);
	uint32_t n[2];

	for (uint32_t h = 0; h < 2; h++) {
		memset(rows[h], 0, sizeof(rows[h]));
		n[h] = list(d->harnesses[h], rows[h], MAX_ROWS);
		qsort(rows[h], n[h], n_bytes, sort);
	}
	for (uint32_t i = 0; i < n[0] || i < n[1]; i++) {
		if (memcmp(rows[0] + i * n_numbers, rows[1] + i * n_numbers,
			   n_bytes) == 0)
			continue;
		fail(d, what);
		print_row("plain", rows[0] + i * n_numbers, n_numbers);
		print_row("offloaded", rows[1] + i * n_numbers, n_numbers);
		return -1;
	}
	return 0;
}

static int compare_sessions(const struct differential *d)
{
	const int status = compare_rows(d, "sessions", harness_sessions,
					HARNESS_SESSION_NUMBERS, by_session);

	return status < 0 ? status :
			    compare_rows(d, "TCP windows", harness_windows,
					 HARNESS_WINDOW_NUMBERS, by_window);
}

/* External ends, for packets from outside. */
static void learn(struct differential *d)
{
	static uint32_t rows[MAX_ROWS][HARNESS_SESSION_NUMBERS];
	const uint32_t n =
		harness_sessions(d->harnesses[PLAIN], rows[0], MAX_ROWS);

	for (uint32_t i = 0; i < n; i++)
		packets_map(&d->packets, rows[i][0], rows[i][1], rows[i][2],
			    rows[i][3], rows[i][4]);
}

/* Mostly milliseconds; sometimes longer than timeouts. */
static void wait(struct differential *d)
{
	const uint32_t way = packets_below(&d->packets, 1000);
	uint32_t ms = 0;

	if (way < 2)
		ms = packets_below(&d->packets, 50000);
	else if (way < 8)
		ms = packets_below(&d->packets, 4000);
	else if (way < 500)
		ms = packets_below(&d->packets, 100);
	for (uint32_t h = 0; h < 2; h++)
		harness_advance_ms(d->harnesses[h], ms / STEP_MS * STEP_MS);
}

static int reload(struct differential *d)
{
	char text[2000], why[400];
	int status[2];

	configure(d, text, sizeof(text));
	for (uint32_t h = 0; h < 2; h++)
		status[h] = harness_reload(d->harnesses[h], text, false, why,
					   sizeof(why));
	if (status[0] == status[1])
		return 0;
	fail(d, "reloads");
	return -1;
}

/* What happens now and then, besides packets. */
static int happen(struct differential *d)
{
	static const uint32_t neighbours[] = { 0xc00002fe, 0xc000024d,
					       0x0a000002, 0x0a0000fe };
	const uint32_t which = packets_below(&d->packets, 4);
	uint8_t arp[64];

	switch (packets_below(&d->packets, 800)) {
	case 0:
		return reload(d);
	case 1:
		for (uint32_t h = 0; h < 2; h++)
			harness_clear(d->harnesses[h]);
		return 0;
	case 2: /* a neighbour has another MAC address, and says so */
		d->generation++;
		send(d, which < 2, arp,
		     packets_arp(&d->packets, which < 2, neighbours[which],
				 d->generation, arp));
		return 0;
	case 3:
		d->n_silent = packets_percent(&d->packets, 20) ? 90 : 0;
		return 0;
	default:
		return 0;
	}
}

static uint64_t n_offloaded(const struct differential *d)
{
	return (uint64_t)harness_counter(d->harnesses[OFFLOADED], "offloaded");
}

/* The program forwarded the packet. */
static void count(struct differential *d, bool is_tcp)
{
	const struct packets_flow *flow = &d->packets.flow;
	uint32_t *last = &d->last_peers[is_tcp][flow->host][flow->port];

	d->n_offloaded[is_tcp]++;
	d->n_changes += *last != flow->peer + 1;
	*last = flow->peer + 1;
}

static int one(struct differential *d)
{
	uint32_t side;
	int status = happen(d);
	uint64_t n_before;

	d->n++;
	wait(d);
	d->n_sent = packets_next(&d->packets, &side, d->sent);
	/* Frames in pieces pass by the program, without a ticket. */
	d->n_first = packets_percent(&d->packets, 3) ? 60 : 0;
	n_before = n_offloaded(d);
	send(d, side, d->sent, d->n_sent);
	if (n_offloaded(d) != n_before)
		count(d, packets_is_tcp(&d->packets, side, d->sent, d->n_sent));
	d->n_first = 0;
	if (status == 0)
		status = settle(d);
	if (d->n % 4 == 0)
		learn(d);
	if (status == 0 && packets_below(&d->packets, 20) == 0)
		status = compare_sessions(d);
	if (status == 0 && d->n % 100 == 0)
		status = compare_counters(d);
	return status;
}

/* Two translators; false: without the XDP program there is no test. */
static bool start(struct differential *d)
{
	static const uint32_t lags[] = { 1, 1, 3, 10 };
	static const uint32_t rules[] = { 8192, 8192, 5 };
	char text[2000], why[400];

	d->packets = (struct packets){ .state = d->seed + d->n };
	for (uint32_t i = 0; i < 4; i++)
		(void)packets_below(&d->packets, 2);
	for (uint32_t s = 0; s < 2; s++)
		d->packets.vlans[s] = packets_percent(&d->packets, 30) ?
					      (uint16_t)(5 + s) :
					      0;
	configure(d, text, sizeof(text));
	for (uint32_t h = 0; h < 2; h++) {
		d->harnesses[h] = harness_new(0, 1);
		if (h == OFFLOADED)
			harness_offload(d->harnesses[h],
					lags[packets_below(&d->packets, 4)],
					rules[packets_below(&d->packets, 3)]);
		if (harness_start(d->harnesses[h], text, false, why,
				  sizeof(why)) == 0)
			continue;
		printf("%s\n", why);
		return false;
	}
	d->n_silent = 0;
	return true;
}

static int end(struct differential *d, int status)
{
	if (status == 0)
		status = compare_sessions(d);
	if (status == 0)
		status = compare_counters(d);
	if (status == 0)
		status = compare_events(d);
	for (uint32_t h = 0; h < 2; h++) {
		if (status == 0 && harness_invariant(d->harnesses[h]) != 0) {
			fail(d, "ends of frames");
			status = -1;
		}
		if (harness_free(d->harnesses[h]) != 0)
			status = -1;
	}
	return status;
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
	struct differential d = { .seed = argc > 2 ?
						  strtoull(argv[2], NULL, 0) :
						  (uint64_t)time(NULL) };
	int status = 0;

	printf("seed %" PRIu64 "\n", d.seed);
	while (d.n < n && status == 0) {
		if (!start(&d))
			return SKIPPED;
		for (uint32_t i = 0; i < ROUND && d.n < n && status == 0; i++)
			status = one(&d);
		status = end(&d, status);
	}
	printf("%" PRIu64 " packets; the program forwarded %" PRIu64
	       " of UDP, %" PRIu64 " of TCP, %" PRIu64
	       " times to another peer\n",
	       d.n, d.n_offloaded[0], d.n_offloaded[1], d.n_changes);
	if (status == 0 &&
	    (d.n_offloaded[0] < d.n / 20 || d.n_offloaded[1] < d.n / 50 ||
	     d.n_changes < d.n / 100)) {
		fprintf(stderr, "too few of them to say anything\n");
		status = -1;
	}
	return status < 0;
}
