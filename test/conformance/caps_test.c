/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities: what a port says that its device does must work, and what it
 * does not say must be done by the library, or not at all. A test for each
 * cell of docs/capabilities.md, which capabilities.py writes from the lines
 * that these tests append to the file MR_CAPABILITIES:
 *
 *     FIXTURE|CAPABILITY|device, software, none or not tested
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <millrace/wire.h>

#include "suite.h"
#include "support/packets.h"

enum { MSS = 1000, TCI = 0x6005 };

struct capability {
	const char *name;
	uint32_t offload; /* of enum mr_offload */
	/* Of a frame to send; all zero: one that is received. */
	uint16_t valid;
	uint16_t gso_type; /* or 0 */
	enum mr_tx_event software;
	const char *(*send)(struct harness *harness, bool is_claimed);
	void (*receive)(struct harness *harness, bool is_claimed);
};

/* Check a piece after `done` bytes of payload; returns its own. */
static uint32_t check_piece(uint8_t *bytes, uint32_t n_bytes, bool has_tag,
			    const struct packet_kind *kind,
			    const uint8_t *whole, uint32_t done, bool is_summed)
{
	const uint32_t l4 = packet_l4(kind), n_header = packet_headers(kind);
	struct mr_net_view view;

	if (has_tag) {
		assert_int_equal(packet_be16(bytes + 12), MR_ETHER_VLAN);
		assert_int_equal(packet_be16(bytes + 14), TCI);
		n_bytes -= MR_VLAN_BYTES;
		memmove(bytes + 12, bytes + 16, n_bytes - 12);
	}
	if (!is_summed) {
		assert_int_equal(mr_net_parse(bytes, n_bytes, n_bytes, &view),
				 0);
		assert_memory_equal(bytes + view.csum_bytes,
				    &(uint16_t){ mr_csum_pseudo(bytes, &view) },
				    2);
		packet_put16(
			bytes + view.csum_bytes,
			(uint16_t)~packet_sum(bytes + l4, n_bytes - l4, 0));
	}
	assert_true(packet_is_right(bytes, n_bytes));
	if (!kind->is_udp)
		assert_int_equal(packet_be32(bytes + l4 + 4),
				 packet_be32(whole + l4 + 4) + done);
	assert_memory_equal(bytes + n_header, whole + n_header + done,
			    n_bytes - n_header);
	return n_bytes - n_header;
}

/* Send a packet with this request. */
static void check_packet(struct harness *harness, const struct capability *c,
			 const struct packet_kind *kind, bool is_claimed)
{
	enum { N_SEGS = 3 };
	static uint8_t whole[HARNESS_MAX_BYTES], bytes[HARNESS_MAX_BYTES];
	const bool is_long = c->gso_type != 0;
	const bool is_wire = harness->fixture->traits & FIXTURE_WIRE;
	const uint32_t n_segs = is_long ? N_SEGS : 1;
	const uint32_t n_bytes = packet_of(whole, kind, true);
	struct mr_meta metas[N_SEGS] = {
		{ .valid = c->valid,
		  .vlan_tci = TCI,
		  .gso_bytes = MSS,
		  .gso_type = c->gso_type,
		  .csum_start_bytes = (uint16_t)packet_l4(kind),
		  .csum_offset_bytes = kind->is_udp ? 6 : 16 }
	};
	struct mr_frame frames[N_SEGS];
	uint32_t at = 0, done = 0;
	struct mr_tx_stats stats;
	bool is_summed;

	harness_make_frame(harness, frames, n_segs, 128, n_bytes, 0);
	for (uint32_t i = 0; i < n_segs; at += frames[i++].len)
		memcpy(harness->base + frames[i].addr, whole + at,
		       frames[i].len);
	frames[0].flags |= MR_FRAME_CSUM_PARTIAL;
	harness_tx_meta(harness, frames, metas, n_segs);
	stats = harness_tx_stats(harness);
	/* A port in memory leaves checksums to the receiver. */
	is_summed = stats.events[MR_TX_EVENT_CSUM_DEVICE] +
			    stats.events[MR_TX_EVENT_CSUM_SOFTWARE] >
		    0;
	while (done < kind->n_payload) {
		const uint32_t n = check_piece(
			bytes, harness_collect_bytes(harness, bytes),
			c->valid & MR_META_VLAN, kind, whole, done, is_summed);

		assert_true(n <= MSS || !is_long || !is_wire);
		done += n;
	}
	if (is_claimed)
		assert_int_equal(stats.events[c->software], 0);
	else if (c->valid != MR_META_CSUM || is_summed)
		assert_true(stats.events[c->software] > 0);
}

/* Send frames with this request; returns who did it. */
static const char *check_sent(struct harness *harness,
			      const struct capability *c, bool is_claimed)
{
	/* No frame is so short that a device would pad it. Of those that may be
	 * cut, one is not long enough. */
	static const uint32_t lens[] = { 19, 100, 999, 1400 };
	static const uint32_t long_lens[] = { 5057, 999, 3000, 9000 };
	struct mr_tx_stats stats;

	for (uint32_t i = 0; i < 16; i++) {
		const struct packet_kind kind = {
			.is_v6 = c->gso_type == MR_GSO_TCPV6 ||
				 (c->gso_type != MR_GSO_TCPV4 && i & 1),
			.is_udp = c->gso_type == MR_GSO_UDP ||
				  (c->gso_type == 0 && i & 2),
			.n_payload = c->gso_type != 0 ? long_lens[i / 4] :
							lens[i / 4],
			.from_port = 1,
			.to_port = 2,
		};

		check_packet(harness, c, &kind, is_claimed);
	}
	stats = harness_tx_stats(harness);
	assert_int_equal(invariants_sum(stats.drops), 0);
	return is_claimed                    ? "device" :
	       stats.events[c->software] > 0 ? "software" :
					       "none";
}

static uint64_t now_of(uint32_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime((clockid_t)clock, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A device takes a frame with a time; other ports drop it. */
static const char *check_launched(struct harness *harness, bool is_claimed)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_meta meta = { .valid = MR_META_LAUNCH_TIME };
	uint8_t bytes[HARNESS_MAX_BYTES];
	struct mr_frame frame;

	assert_int_equal(mr_port_info(harness->port, &info), 0);
	meta.launch_clock =
		is_claimed ? (uint16_t)info.launch_clock : CLOCK_MONOTONIC;
	meta.launch_ns = now_of(meta.launch_clock) + 2000000;
	harness_make_frame(harness, &frame, 1, 128, 100, 0);
	assert_int_equal(mr_tx_burst_meta(harness->txq, harness->cache, &frame,
					  &meta, 1),
			 1);
	if (is_claimed)
		assert_int_equal(harness_collect_bytes(harness, bytes), 100);
	assert_int_equal(harness_tx_stats(harness).drops[MR_TX_DROP_INVALID],
			 !is_claimed);
	return is_claimed ? "device" : "none";
}

/* Inject a frame and receive it, of one entry. */
static struct mr_frame pass_frame(struct harness *harness, const uint8_t *bytes,
				  uint32_t n_bytes, struct mr_meta *ret_meta)
{
	const uint64_t until_ns = harness_deadline_ns();
	struct mr_frame frames[MR_MAX_SEGS];
	struct mr_meta meta[MR_MAX_SEGS];
	uint32_t n = 0;

	memset(meta, 0xa5, sizeof(meta));
	while (!harness->fixture->inject(harness, bytes, n_bytes))
		assert_true(harness_now_ns() < until_ns);
	while (n == 0) {
		assert_true(harness_now_ns() < until_ns);
		n = mr_rx_burst_meta(harness->rxq, harness->cache, frames, meta,
				     MR_MAX_SEGS);
		harness_nap();
	}
	assert_int_equal(n, 1);
	*ret_meta = meta[0];
	harness_free(harness, frames, 1);
	return frames[0];
}

/* A right checksum is found right, and no wrong one is. */
static void receive_csum(struct harness *harness, bool is_claimed)
{
	for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
		const struct packet_kind kind = { .n_payload = 100 };
		uint8_t bytes[256];
		const uint32_t n_bytes = packet_of(bytes, &kind, false);
		struct mr_meta meta;
		uint32_t is_valid;

		bytes[n_bytes - 1] ^= (uint8_t)is_wrong;
		is_valid = pass_frame(harness, bytes, n_bytes, &meta).flags &
			   MR_FRAME_CSUM_VALID;
		assert_false(is_valid && is_wrong);
		assert_false(!is_valid && !is_wrong && is_claimed);
	}
}

static void receive_tag(struct harness *harness, bool is_claimed)
{
	for (uint32_t id = 0; id < 10; id++) {
		uint8_t bytes[100 + MR_VLAN_BYTES];
		struct mr_frame frame;
		struct mr_meta meta;

		traffic_make(bytes, 100, id);
		traffic_tag(bytes, 100, TCI);
		frame = pass_frame(harness, bytes, sizeof(bytes), &meta);
		assert_int_equal((meta.valid & MR_META_VLAN) != 0, is_claimed);
		assert_int_equal(frame.len, is_claimed ? 100 : sizeof(bytes));
		if (!is_claimed)
			continue;
		assert_int_equal(meta.vlan_proto, 0x8100);
		assert_int_equal(meta.vlan_tci, TCI);
	}
}

/* Of one flow it is always the same, of 16 flows not always. */
static void receive_hash(struct harness *harness, bool is_claimed)
{
	uint32_t first = 0, n_others = 0;

	for (uint32_t i = 0; i < 18; i++) {
		const struct packet_kind kind = {
			.n_payload = 100,
			.from_port = (uint16_t)(1000 + (i < 2 ? 0 : i)),
		};
		uint8_t bytes[256];
		const uint32_t n_bytes = packet_of(bytes, &kind, false);
		struct mr_meta meta;

		pass_frame(harness, bytes, n_bytes, &meta);
		assert_int_equal((meta.valid & MR_META_RSS_HASH) != 0,
				 is_claimed);
		if (!is_claimed)
			continue;
		first = i == 0 ? meta.rss_hash : first;
		assert_false(i == 1 && meta.rss_hash != first);
		n_others += meta.rss_hash != first;
	}
	assert_true(n_others > 0 || !is_claimed);
}

/* It does not go back. */
static void receive_time(struct harness *harness, bool is_claimed)
{
	uint64_t last_ns = 0;

	for (uint32_t id = 0; id < 10; id++) {
		uint8_t bytes[100];
		struct mr_meta meta;

		traffic_make(bytes, sizeof(bytes), id);
		pass_frame(harness, bytes, sizeof(bytes), &meta);
		assert_int_equal((meta.valid & MR_META_RX_TIME) != 0,
				 is_claimed);
		if (!is_claimed)
			continue;
		assert_true(meta.rx_ns > 0 && meta.rx_ns >= last_ns);
		last_ns = meta.rx_ns;
	}
}

static const struct capability capabilities[] = {
	{ .name = "checksum tx",
	  .offload = MR_OFFLOAD_CSUM_TX,
	  .valid = MR_META_CSUM,
	  .software = MR_TX_EVENT_CSUM_SOFTWARE },
	{ .name = "TSO, IPv4",
	  .offload = MR_OFFLOAD_TSO4,
	  .valid = MR_META_CSUM | MR_META_GSO,
	  .gso_type = MR_GSO_TCPV4,
	  .software = MR_TX_EVENT_GSO_SOFTWARE },
	{ .name = "TSO, IPv6",
	  .offload = MR_OFFLOAD_TSO6,
	  .valid = MR_META_CSUM | MR_META_GSO,
	  .gso_type = MR_GSO_TCPV6,
	  .software = MR_TX_EVENT_GSO_SOFTWARE },
	{ .name = "USO",
	  .offload = MR_OFFLOAD_USO,
	  .valid = MR_META_CSUM | MR_META_GSO,
	  .gso_type = MR_GSO_UDP,
	  .software = MR_TX_EVENT_GSO_SOFTWARE },
	{ .name = "VLAN insert",
	  .offload = MR_OFFLOAD_VLAN_TX,
	  .valid = MR_META_CSUM | MR_META_VLAN,
	  .software = MR_TX_EVENT_VLAN_SOFTWARE },
	{ .name = "launch time",
	  .offload = MR_OFFLOAD_LAUNCH_TIME,
	  .valid = MR_META_LAUNCH_TIME,
	  .send = check_launched },
	{ .name = "checksum rx",
	  .offload = MR_OFFLOAD_CSUM_RX,
	  .receive = receive_csum },
	{ .name = "VLAN strip",
	  .offload = MR_OFFLOAD_VLAN_RX,
	  .receive = receive_tag },
	{ .name = "hash",
	  .offload = MR_OFFLOAD_RSS_HASH,
	  .receive = receive_hash },
	{ .name = "timestamp",
	  .offload = MR_OFFLOAD_TIME_RX,
	  .receive = receive_time },
};

/* Check one capability of a fresh port; who does it. */
static const char *check_capability(const struct capability *c)
{
	const uint32_t traits = harness_fixture()->traits;
	const struct wish wish = { .is_sg = (traits & FIXTURE_SG) != 0 };
	const uint32_t needs =
		c->valid != 0 ? FIXTURE_OUT : FIXTURE_IN | FIXTURE_LIVE;
	struct mr_port_info info = { .size = sizeof(info) };
	struct harness *harness = harness_make(&wish);
	const char *who = "not tested";
	bool is_claimed;

	assert_int_equal(mr_port_info(harness->port, &info), 0);
	is_claimed = info.offloads & c->offload;
	if (c->valid != 0 && traits & FIXTURE_OUT)
		who = c->send != NULL ? c->send(harness, is_claimed) :
					check_sent(harness, c, is_claimed);
	else if (c->receive != NULL && (traits & needs) == needs) {
		c->receive(harness, is_claimed);
		who = is_claimed ? "device" : "none";
	} else if (!is_claimed && c->valid == 0)
		who = "none";
	harness_end(harness);
	return who;
}

static void report(const char *name, const char *who)
{
	const char *path = getenv("MR_CAPABILITIES");
	const struct fixture *fixture = harness_fixture();
	FILE *file = path != NULL ? fopen(path, "a") : NULL;

	print_message("%s: %s\n", name, who);
	if (file == NULL)
		return;
	fprintf(file, "%s|%s|%s\n",
		fixture->name != NULL ? fixture->name : fixture->driver, name,
		who);
	assert_int_equal(fclose(file), 0);
}

static void check_all(bool is_sent)
{
	const size_t n = sizeof(capabilities) / sizeof(capabilities[0]);

	for (size_t i = 0; i < n; i++)
		if ((capabilities[i].valid != 0) == is_sent)
			report(capabilities[i].name,
			       check_capability(&capabilities[i]));
}

HARNESS_TEST(a_port_sends_as_its_capabilities_state)
{
	check_all(true);
}

HARNESS_TEST(a_port_receives_as_its_capabilities_state)
{
	check_all(false);
}
