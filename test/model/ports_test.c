/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What our Intel driver does to a NIC, seen from the NIC and from the wire: two
 * different NICs on one cable, checksums, segments, tags, hashes, filters,
 * counters, without any violation.
 */
#include "model/port_harness.h"
#include "support/unit.h"

enum { ROOM = 16384 };

static const struct intel_chip *chip;
static const uint8_t nic0_mac[6] = { 2, 0x4d, 0x52, 0, 0, 0 };
static const uint8_t everyone[6] = { 255, 255, 255, 255, 255, 255 };

static void open_port(struct port_harness *harness, uint32_t i,
		      const char *options)
{
	struct mr_reason why;

	if (port_harness_open(harness, i, options, &why) < 0)
		fail_msg("%s", why.text);
}

static void make_port(struct port_harness *harness, const char *options)
{
	port_harness_make(harness, chip, NULL, NULL);
	open_port(harness, 0, options);
	assert_true(port_harness_wait_link(harness, 0, true));
}

static void end(struct port_harness *harness)
{
	for (uint32_t i = 0; i < PORT_BED_NICS; i++) {
		port_harness_close(harness, i);
		if (harness->nics[i] != NULL)
			assert_string_equal(
				model_violations(&harness->nics[i]->m), "");
	}
	assert_true(port_harness_end(harness));
}

/* Frame i of its direction: its length and bytes depend on i. */
static uint32_t make(uint8_t *bytes, uint32_t i)
{
	const uint32_t n_bytes = 60 + i * 97 % 8940;

	memcpy(bytes, everyone, 6);
	for (uint32_t k = 6; k < n_bytes; k++)
		bytes[k] = (uint8_t)(i + k * 3);
	packet_put16(bytes + 12, 0x88b5);
	packet_put32(bytes + 14, i);
	return n_bytes;
}

/* A step of one direction: send a few, receive what came, in order. */
static void move(struct port_harness *harness, uint32_t from, uint32_t *n_sent,
		 uint32_t *n_received, uint32_t n_all)
{
	static uint8_t bytes[ROOM], want[ROOM];
	struct mr_frame frames[PORT_BED_BURST];
	uint32_t n;

	for (int k = 0; k < 4 && *n_sent < n_all; k++) {
		const uint32_t n_entries = port_harness_frame(
			harness, frames, bytes, make(bytes, *n_sent));

		if (mr_tx_burst(mr_port_txq(harness->ports[from], 0),
				harness->cache, frames, n_entries) == n_entries)
			++*n_sent;
		else
			mr_frame_free_bulk(harness->cache, frames, n_entries);
	}
	n = mr_rx_burst(mr_port_rxq(harness->ports[1 - from], 0),
			harness->cache, frames, PORT_BED_BURST);
	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&frames[i])) {
		const uint32_t n_want = make(want, *n_received);

		assert_int_equal(
			port_harness_bytes(harness, &frames[i], bytes, ROOM),
			n_want);
		assert_memory_equal(bytes, want, n_want);
		++*n_received;
	}
	mr_frame_free_bulk(harness->cache, frames, n);
}

TEST(unlike_nics_exchange_frames_on_one_wire)
{
	enum { N = 10000 };
	uint32_t n_sent[2] = { 0, 0 }, n_received[2] = { 0, 0 };
	struct port_harness harness;

	port_harness_make(&harness, &chip_82576, &chip_82574l, NULL);
	open_port(&harness, 0, ",sg=on,mtu=9000");
	open_port(&harness, 1, ",sg=on,mtu=9000");
	assert_true(port_harness_wait_link(&harness, 0, true));
	assert_true(port_harness_wait_link(&harness, 1, true));
	for (uint32_t i = 0;
	     i < 100 * N && n_received[0] + n_received[1] < 2 * N; i++) {
		move(&harness, i % 2, &n_sent[i % 2], &n_received[i % 2], N);
		mr_port_poll(harness.ports[i % 2]);
	}
	assert_int_equal(n_received[0], N);
	assert_int_equal(n_received[1], N);
	assert_true(port_harness_invariants_hold(&harness, 0));
	assert_true(port_harness_invariants_hold(&harness, 1));
	end(&harness);
	assert_int_equal(harness.n_drops, 0);
}

/* Send one frame with its metadata; get what leaves, and its bytes. */
static uint32_t send_one(struct port_harness *harness, const uint8_t *bytes,
			 uint32_t n_bytes, uint32_t flags,
			 const struct mr_meta *meta, uint8_t *got)
{
	struct mr_frame frames[MR_MAX_SEGS];
	struct mr_meta metas[MR_MAX_SEGS] = { *meta };
	const uint32_t n = port_harness_frame(harness, frames, bytes, n_bytes);

	frames[0].flags |= flags;
	assert_int_equal(mr_tx_burst_meta(mr_port_txq(harness->ports[0], 0),
					  harness->cache, frames, metas, n),
			 n);
	return model_wire_receive(harness->wire, 1, got, ROOM);
}

TEST(partial_sums_are_whole_on_the_wire)
{
	uint8_t bytes[400], want[400], got[ROOM];
	struct port_harness harness;

	make_port(&harness, "");
	for (uint32_t i = 0; i < 40; i++) {
		const uint32_t version = i % 2 ? 6 : 4;
		const uint32_t protocol = i / 2 % 2 ? 6 : 17;
		const uint32_t n =
			packet_make(want, everyone, version, protocol, 100 + i);
		const struct packet p = packet_parse(want, n);
		const struct mr_meta meta = {
			.valid = MR_META_CSUM,
			.csum_start_bytes = (uint16_t)p.l4,
			.csum_offset_bytes = protocol == 6 ? 16 : 6,
		};

		memcpy(bytes, want, n);
		packet_leave_partial(bytes, n, true);
		assert_int_equal(send_one(&harness, bytes, n,
					  MR_FRAME_CSUM_PARTIAL, &meta, got),
				 n);
		assert_memory_equal(got, want, n);
	}
	assert_int_equal(harness.nics[0]->n_bad_sums, 0);
	/* Done by the NIC, not the driver. */
	assert_true(harness.nics[0]->n_sums > 0);
	end(&harness);
}

TEST(long_packets_leave_in_segments)
{
	static uint8_t bytes[32000], got[ROOM];
	struct port_harness harness;

	make_port(&harness, ",sg=on");
	for (uint32_t i = 0; i < 20; i++) {
		const uint32_t version = i % 2 ? 6 : 4;
		const uint32_t n_payload = 1500 + 1333 * i;
		const uint32_t n =
			packet_make(bytes, everyone, version, 6, n_payload);
		const struct packet whole = packet_parse(bytes, n);
		const uint32_t n_header = whole.l4 + 20;
		const struct mr_meta meta = {
			.valid = MR_META_CSUM | MR_META_GSO,
			.csum_start_bytes = (uint16_t)whole.l4,
			.csum_offset_bytes = 16,
			.gso_bytes = 1400,
			.gso_type = version == 4 ? MR_GSO_TCPV4 : MR_GSO_TCPV6,
		};
		uint32_t n_done = 0, n_got;

		packet_leave_partial(bytes, n, true);
		n_got = send_one(&harness, bytes, n, MR_FRAME_CSUM_PARTIAL,
				 &meta, got);
		while (n_got > 0) {
			const struct packet p = packet_parse(got, n_got);

			assert_int_equal(p.protocol, 6);
			assert_true(packet_ip_sum_is_right(got, &p));
			assert_true(packet_l4_sum_is_right(got, &p));
			assert_int_equal(packet_be32(got + p.l4 + 4),
					 0xfffffff0 + n_done);
			assert_memory_equal(got + n_header,
					    bytes + n_header + n_done,
					    p.end - n_header);
			n_done += p.end - n_header;
			n_got = model_wire_receive(harness.wire, 1, got, ROOM);
		}
		assert_int_equal(n_done, n_payload);
	}
	assert_int_equal(harness.nics[0]->n_segmented, 20);
	assert_int_equal(harness.nics[0]->n_bad_sums, 0);
	end(&harness);
}

/* The next frame of a queue, within a few tries. */
static bool receive_one(struct port_harness *harness, uint32_t q,
			struct mr_frame *frame, struct mr_meta *meta)
{
	for (int i = 0; i < 1000; i++)
		if (mr_rx_burst_meta(mr_port_rxq(harness->ports[0], q),
				     harness->cache, frame, meta, 1) == 1)
			return true;
	return false;
}

TEST(hash_and_queue_are_what_the_nic_said)
{
	const uint32_t n_queues = chip->n_queues;
	uint32_t n_of[16] = { 0 };
	char options[64];
	struct port_harness harness;

	snprintf(options, sizeof(options), ",queues=%u,ring=64,promisc",
		 n_queues);
	make_port(&harness, options);
	for (uint32_t i = 0; i < 50 * n_queues; i++) {
		uint8_t bytes[200], got[ROOM], key[PACKET_KEY_BYTES];
		const uint32_t n =
			packet_make(bytes, everyone, i % 2 ? 6 : 4, 6, 50);
		const struct packet p = packet_parse(bytes, n);
		struct mr_frame frame;
		struct mr_meta meta;
		uint32_t q = 0;

		packet_put16(bytes + p.l4, (uint16_t)(1000 + i * 7));
		packet_put16(bytes + p.l4 + 16, 0);
		packet_put16(
			bytes + p.l4 + 16,
			(uint16_t)~packet_sum(
				bytes + p.l4, p.end - p.l4,
				packet_pseudo_sum(bytes, &p, 6, p.end - p.l4)));
		/* The driver wrote the key to RSSRK. */
		for (uint32_t k = 0; k < PACKET_KEY_BYTES; k++)
			key[k] = (uint8_t)(harness.nics[0]
						   ->regs[(0x5c80 + k) / 4] >>
					   8 * (k % 4));
		assert_true(model_wire_send(harness.wire, 1, bytes, n));
		while (q + 1 < n_queues &&
		       harness.nics[0]->n_rx_of[q] == n_of[q])
			q++;
		assert_true(receive_one(&harness, q, &frame, &meta));
		assert_true(meta.valid & MR_META_RSS_HASH);
		assert_int_equal(meta.rss_hash,
				 packet_hash(key, bytes, &p, true));
		assert_int_equal(meta.rss_hash % n_queues, q);
		assert_true(frame.flags & MR_FRAME_CSUM_VALID);
		/* And leaves through the same one. */
		assert_int_equal(mr_tx_burst(mr_port_txq(harness.ports[0], q),
					     harness.cache, &frame, 1),
				 1);
		assert_int_equal(model_wire_receive(harness.wire, 1, got, ROOM),
				 n);
		assert_memory_equal(got, bytes, n);
		n_of[q]++;
	}
	for (uint32_t q = 0; q < n_queues; q++)
		assert_in_range(n_of[q], 20, 90);
	end(&harness);
}

TEST(wrong_sums_are_not_said_to_be_valid)
{
	static const uint32_t places[] = { 22, 60 }; /* of IP, of TCP */
	uint8_t bytes[200];
	struct mr_frame frame;
	struct mr_meta meta;
	struct port_harness harness;

	make_port(&harness, "");
	for (int i = 0; i < 2; i++) {
		const uint32_t n = packet_make(bytes, everyone, 4, 6, 60);

		bytes[places[i]] ^= 1;
		assert_true(model_wire_send(harness.wire, 1, bytes, n));
		assert_true(receive_one(&harness, 0, &frame, &meta));
		assert_false(frame.flags & MR_FRAME_CSUM_VALID);
		mr_frame_free_bulk(harness.cache, &frame, 1);
	}
	end(&harness);
}

TEST(tags_are_beside_the_frame)
{
	uint8_t bytes[200], got[ROOM];
	struct mr_meta meta = { .valid = MR_META_VLAN, .vlan_tci = 0x2005 };
	struct mr_frame frame;
	struct port_harness harness;
	uint32_t n;

	make_port(&harness, ",vlan=on");
	n = packet_make(bytes, everyone, 4, 17, 60);
	assert_int_equal(send_one(&harness, bytes, n, 0, &meta, got), n + 4);
	assert_int_equal(packet_be32(got + 12), 0x81002005);
	assert_memory_equal(got + 16, bytes + 12, n - 12);
	assert_true(model_wire_send(harness.wire, 1, got, n + 4));
	memset(&meta, 0, sizeof(meta));
	assert_true(receive_one(&harness, 0, &frame, &meta));
	assert_true(meta.valid & MR_META_VLAN);
	assert_int_equal(meta.vlan_tci, 0x2005);
	assert_int_equal(frame.len, n);
	assert_memory_equal(harness.base + frame.addr, bytes, n);
	mr_frame_free_bulk(harness.cache, &frame, 1);
	end(&harness);
}

static bool comes_in(struct port_harness *harness, const uint8_t *mac)
{
	uint8_t bytes[60] = { 0 };
	struct mr_frame frame;
	struct mr_meta meta;
	bool has_come;

	memcpy(bytes, mac, 6);
	packet_put16(bytes + 12, 0x88b5);
	assert_true(model_wire_send(harness->wire, 1, bytes, 60));
	has_come = receive_one(harness, 0, &frame, &meta);
	if (has_come)
		mr_frame_free_bulk(harness->cache, &frame, 1);
	return has_come;
}

TEST(addresses_are_filtered_as_told)
{
	static const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };
	static const uint8_t macs[2][6] = { { 2, 1, 1, 1, 1, 1 },
					    { 1, 0, 0x5e, 0, 0, 5 } };
	static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };
	struct port_harness harness;
	struct mr_port *port;

	make_port(&harness, "");
	port = harness.ports[0];
	assert_true(comes_in(&harness, nic0_mac));
	assert_true(comes_in(&harness, everyone));
	assert_false(comes_in(&harness, stranger));
	assert_false(comes_in(&harness, group));
	assert_int_equal(mr_port_set_promisc(port, 1, NULL), 0);
	assert_true(comes_in(&harness, stranger));
	assert_int_equal(mr_port_set_promisc(port, 0, NULL), 0);
	assert_false(comes_in(&harness, stranger));
	assert_int_equal(mr_port_set_allmulti(port, 1, NULL), 0);
	assert_true(comes_in(&harness, group));
	assert_int_equal(mr_port_set_allmulti(port, 0, NULL), 0);
	assert_false(comes_in(&harness, group));
	assert_int_equal(mr_port_set_mac_filter(port, macs, 2, NULL), 0);
	assert_true(comes_in(&harness, macs[0]));
	assert_true(comes_in(&harness, macs[1]));
	assert_false(comes_in(&harness, stranger));
	assert_int_equal(mr_port_set_mac_filter(port, NULL, 0, NULL), 0);
	assert_false(comes_in(&harness, macs[0]));
	assert_false(comes_in(&harness, macs[1]));
	assert_int_equal(mr_port_set_mac(port, stranger, NULL), 0);
	assert_true(comes_in(&harness, stranger));
	assert_false(comes_in(&harness, nic0_mac));
	end(&harness);
}

/* The NIC's counters, over many readings that each clear them. */
TEST_AS(NULL, NULL, device_counters_add_up, true)
{
	struct mr_named_count counts[64];
	uint64_t n_in = 0, n_out = 0;
	uint8_t bytes[60] = { 0 }, got[ROOM];
	const struct mr_meta none = { .valid = 0 };
	struct port_harness harness;
	uint32_t n;

	make_port(&harness, "");
	packet_put16(bytes + 12, 0x88b5);
	for (int i = 0; i < 50; i++) {
		assert_true(comes_in(&harness, everyone));
		assert_int_equal(send_one(&harness, bytes, 60, 0, &none, got),
				 60);
		if (i % 7 == 0)
			mr_port_device_stats(harness.ports[0], counts, 64);
	}
	n = mr_port_device_stats(harness.ports[0], counts, 64);
	assert_true(n > 0 && n <= 64);
	for (uint32_t i = 0; i < n; i++) {
		/* GPRC and GPTC of the datasheet, in either case. */
		if (strcasecmp(counts[i].name, "gprc") == 0)
			n_in = counts[i].value;
		if (strcasecmp(counts[i].name, "gptc") == 0)
			n_out = counts[i].value;
	}
	assert_int_equal(n_in, 50);
	assert_int_equal(n_out, 50);
	end(&harness);
}

int main(void)
{
	static const struct intel_chip *const chips[] = {
		&chip_82574l, &chip_82576, &chip_i210, &chip_i350
	};
	int n_failed = 0;

	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		chip = chips[i];
		n_failed += test_run(chip->name, NULL, NULL);
	}
	return n_failed;
}
