/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums, hashes, tags and segments of the Intel models, and packet.c against
 * vectors that others published.
 */
#include "model/mini.h"

static const struct intel_chip *chip;

/* "Verifying the RSS Hash Calculation", Microsoft: its first two examples. */
TEST(hash_is_that_of_the_published_vectors)
{
	static const uint8_t key[40] = {
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
		0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
		0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
		0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
	};
	uint8_t bytes[200];
	struct packet p;

	p = packet_parse(bytes, mini_packet(bytes, 4, 6, 10));
	assert_int_equal(packet_hash(key, bytes, &p, true), 0x51ccc178);
	assert_int_equal(packet_hash(key, bytes, &p, false), 0x323e8fc2);
	packet_put32(bytes + 26, 0xc75c6f02); /* 199.92.111.2 */
	packet_put32(bytes + 30, 0x41458c53); /* 65.69.140.83 */
	packet_put16(bytes + 34, 14230);
	packet_put16(bytes + 36, 4739);
	assert_int_equal(packet_hash(key, bytes, &p, true), 0xc626b0ea);
	assert_int_equal(packet_hash(key, bytes, &p, false), 0xd718262a);
}

/* RFC 1071 section 3, and the check value of CRC-32. */
TEST(sums_are_those_of_the_published_vectors)
{
	static const uint8_t words[] = { 0x00, 0x01, 0xf2, 0x03,
					 0xf4, 0xf5, 0xf6, 0xf7 };

	assert_int_equal(packet_sum(words, 8, 0), 0xddf2);
	assert_int_equal(packet_sum(words, 7, 0), 0xddf2 - 0xf7);
	assert_int_equal(packet_fcs((const uint8_t *)"123456789", 9),
			 0xcbf43926);
}

TEST(odd_packets_are_no_packets)
{
	uint8_t bytes[200];
	const uint32_t n = mini_packet(bytes, 4, 6, 100);

	assert_int_equal(packet_parse(bytes, n).protocol, 6);
	assert_int_equal(packet_parse(bytes, n - 1).version, 0);
	bytes[20] = 0x20; /* more fragments */
	assert_int_equal(packet_parse(bytes, n).version, 4);
	assert_int_equal(packet_parse(bytes, n).l4, 0);
	assert_int_equal(packet_parse(bytes, n).protocol, 0);
	bytes[14] = 0x44;
	assert_int_equal(packet_parse(bytes, n).version, 0);
	assert_int_equal(packet_parse(bytes, 17).version, 0);
}

TEST(queue_and_hash_follow_the_table)
{
	uint32_t n_of[2] = { 0, 0 };
	uint8_t bytes[200];
	struct mini_rx rx;
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, MINI_RSS);
	/* 0x51ccc178 & 127 is 120: an even entry, queue 0. */
	model_wire_send(d.wire, 1, bytes, mini_packet(bytes, 4, 6, 10));
	assert_true(mini_receive(&d, 0, &rx));
	assert_int_equal(rx.hash, 0x51ccc178);
	assert_int_equal(rx.type, 1);
	if (!chip->is_82574)
		assert_int_equal(rx.packet_type, 0x110);
	for (uint32_t port = 0; port < 30; port++) {
		const uint32_t n = mini_packet(bytes, port % 2 ? 6 : 4, 17, 20);

		packet_put16(bytes + (port % 2 ? 54 : 34), 1000 + port);
		model_wire_send(d.wire, 1, bytes, n);
	}
	n_of[0] = (uint32_t)d.nic->n_rx_of[0];
	n_of[1] = (uint32_t)d.nic->n_rx_of[1];
	assert_int_equal(n_of[0] + n_of[1], 31);
	assert_in_range(n_of[1], 5, 25);
	/* Not IP: queue 0, no hash. */
	packet_put16(bytes + 12, 0x88b5);
	model_wire_send(d.wire, 1, bytes, 60);
	assert_int_equal(d.nic->n_rx_of[0], n_of[0] + 1);
	mini_close(&d);

	if (chip->n_queues >= 16)
		return;
	mini_open(&d, chip);
	mini_start(&d, MINI_RSS | MINI_BAD_RETA);
	if (!chip->is_82574) {
		model_wire_send(d.wire, 1, bytes, mini_packet(bytes, 4, 6, 9));
		assert_violation(&d, "RETA sends to queue 15");
	}
	mini_close(&d);
}

TEST(wrong_sums_are_told)
{
	static const struct {
		uint32_t version, protocol, at, status;
	} table[] = {
		{ 4, 6, 0, RXD_IPCS | RXD_TCPCS },
		{ 4, 17, 0, RXD_IPCS | RXD_UDPCS },
		{ 6, 6, 0, RXD_TCPCS },
		{ 6, 17, 0, RXD_UDPCS },
		{ 4, 6, 22, RXD_IPCS | RXD_IPE | RXD_TCPCS }, /* TTL */
		{ 4, 6, 60, RXD_IPCS | RXD_TCPCS | RXD_TCPE },
		{ 6, 17, 80, RXD_UDPCS | RXD_TCPE },
	};
	uint8_t bytes[200];
	struct mini_rx rx;
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const uint32_t n = mini_packet(bytes, table[i].version,
					       table[i].protocol, 51);

		if (table[i].at > 0)
			bytes[table[i].at] ^= 1;
		model_wire_send(d.wire, 1, bytes, n);
		assert_true(mini_receive(&d, 0, &rx));
		assert_int_equal(rx.status & ~(RXD_DD | RXD_EOP),
				 table[i].status);
	}
	/* UDP over IPv4 without a sum: nothing is said. */
	mini_packet(bytes, 4, 17, 51);
	packet_put16(bytes + 40, 0);
	model_wire_send(d.wire, 1, bytes, 93);
	assert_true(mini_receive(&d, 0, &rx));
	assert_int_equal(rx.status & (RXD_UDPCS | RXD_TCPE), 0);
	mini_close(&d);
}

/* A context for the packets of mini_packet(), of whatever kind of chip. */
static void put_context(struct mini *d, uint32_t version, bool is_tcp,
			uint32_t mss, uint32_t vlan, uint32_t n_payload)
{
	const uint32_t l4 = 14 + (version == 4 ? 20 : 40);
	const uint64_t n_header = l4 + (is_tcp ? 20 : 8);
	uint64_t low, high = TXD_DEXT;

	if (is_82574(d)) {
		low = 14 | 24 << 8 |
		      (uint64_t)(version == 4 ? l4 - 1 : 0) << 16 |
		      (uint64_t)l4 << 32 |
		      (uint64_t)(l4 + (is_tcp ? 16 : 6)) << 40;
		high |= (is_tcp ? TXD_82574_TCP : 0) |
			(version == 4 ? TXD_82574_IP : 0);
		if (mss > 0)
			high |= TXD_82574_TSE | n_payload | n_header << 40 |
				(uint64_t)mss << 48;
	} else {
		low = (l4 - 14) | 14 << 9 | (uint64_t)vlan << 16;
		high |= TXD_82576_CONTEXT | (is_tcp ? TUCMD_TCP : 0) |
			(version == 4 ? TUCMD_IPV4 : 0) |
			(n_header - l4) << 40 | (uint64_t)mss << 48;
	}
	mini_put(d, low, high);
}

TEST(sums_are_put_in)
{
	uint8_t bytes[200], want[200], got[200];
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t version = i % 2 ? 6 : 4;
		const bool is_tcp = i < 2;
		const uint32_t n =
			mini_packet(want, version, is_tcp ? 6 : 17, 77);

		memcpy(bytes, want, n);
		packet_leave_partial(bytes, n, true);
		packet_put16(bytes + 24,
			     version == 4 ? 0 : packet_be16(want + 24));
		assert_memory_not_equal(bytes, want, n);
		memcpy(d.arena + MINI_OUT, bytes, n);
		put_context(&d, version, is_tcp, 0, 0, 0);
		mini_put_data(&d, 0, n, n, TXD_EOP | TXD_RS,
			      TXD_TXSM | (version == 4 ? TXD_IXSM : 0));
		mini_kick(&d);
		assert_int_equal(model_wire_receive(d.wire, 1, got, 200), n);
		assert_memory_equal(got, want, n);
	}
	assert_int_equal(d.nic->n_sums, 4);
	assert_int_equal(d.nic->n_bad_sums, 0);
	/* Without what the driver has to leave, it is wrong on the wire. */
	packet_put16(d.arena + MINI_OUT + 60, 0x1234);
	mini_put_data(&d, 0, 139, 139, TXD_EOP | TXD_RS, TXD_TXSM);
	mini_kick(&d);
	assert_int_equal(d.nic->n_bad_sums, 1);
	mini_close(&d);
}

TEST(offload_needs_its_context)
{
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	mini_put_data(&d, 0, 100, 100, TXD_EOP | TXD_RS, TXD_TXSM);
	mini_kick(&d);
	assert_violation(&d, "context");
	mini_put_data(&d, 0, 100, 90, TXD_EOP | TXD_RS, 0);
	mini_kick(&d);
	if (!chip->is_82574)
		assert_violation(&d, "PAYLEN 90 of 100");
	mini_put_data(&d, 0, 100, 100, TXD_EOP | TXD_RS | TXD_VLE, 0);
	if (!chip->is_82574)
		put_context(&d, 4, true, 0, 5, 0);
	mini_kick(&d);
	assert_violation(&d, chip->is_82574 ? "CTRL.VME" : "context");
	mini_close(&d);
}

/* The segments of a frame, put together again and looked at. */
static void check_segments(struct mini *d, const uint8_t *bytes, uint32_t n,
			   uint32_t mss)
{
	static uint8_t got[2048];
	const struct packet whole = packet_parse(bytes, n);
	const uint32_t n_header = whole.l4 + 20;
	uint32_t n_done = 0, i = 0;

	while (n_done < n - n_header) {
		const uint32_t n_got =
			model_wire_receive(d->wire, 1, got, sizeof(got));
		const struct packet p = packet_parse(got, n_got);
		const bool is_last = n_done + mss >= n - n_header;
		const uint32_t want = is_last ? n - n_header - n_done : mss;

		assert_int_equal(p.end, n_header + want);
		assert_int_equal(p.protocol, 6);
		assert_true(packet_ip_sum_is_right(got, &p));
		assert_true(packet_l4_sum_is_right(got, &p));
		if (p.version == 4)
			assert_int_equal(packet_be16(got + 18), 0x1234 + i);
		assert_int_equal(packet_be32(got + p.l4 + 4),
				 0xfffffff0 + n_done);
		assert_int_equal(got[p.l4 + 13], is_last ? 0x19 : 0x10);
		assert_memory_equal(got + n_header, bytes + n_header + n_done,
				    want);
		n_done += want;
		i++;
	}
	assert_int_equal(model_wire_n(d->wire, 1), 0);
}

TEST(long_packet_leaves_in_segments)
{
	static uint8_t bytes[40000];
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	for (uint32_t version = 4; version <= 6; version += 2) {
		const uint32_t n = mini_packet(bytes, version, 6, 30000);
		const uint32_t n_header = n - 30000;
		const uint32_t tse =
			chip->is_82574 ? TXD_82574_TSE : TXD_82576_TSE;

		packet_leave_partial(bytes, n, false);
		if (version == 4)
			packet_put16(bytes + 24, 0);
		memcpy(d.arena + MINI_OUT, bytes, n);
		put_context(&d, version, true, 1000, 0, 30000);
		mini_put_data(&d, 0, n_header, 30000, tse,
			      TXD_TXSM | (version == 4 ? TXD_IXSM : 0));
		mini_put_data(&d, n_header, 15000, 30000, tse, 0);
		mini_put_data(&d, n_header + 15000, 15000, 30000,
			      tse | TXD_EOP | TXD_RS, 0);
		mini_kick(&d);
		check_segments(&d, bytes, n, 1000);
	}
	assert_int_equal(d.nic->n_segmented, 2);
	assert_int_equal(d.nic->n_bad_sums, 0);
	mini_close(&d);
}

/* More segments than the wire takes: the rest follows, none twice. */
TEST(segments_wait_for_the_wire)
{
	static uint8_t bytes[40000];
	uint32_t n;
	struct mini d;

	mini_open(&d, chip);
	mini_start(&d, 0);
	n = mini_packet(bytes, 4, 6, 30000);
	packet_leave_partial(bytes, n, false);
	packet_put16(bytes + 24, 0);
	memcpy(d.arena + MINI_OUT, bytes, n);
	put_context(&d, 4, true, 200, 0, 30000);
	mini_put_data(&d, 0, n, 30000,
		      (chip->is_82574 ? TXD_82574_TSE : TXD_82576_TSE) |
			      TXD_EOP | TXD_RS,
		      TXD_TXSM | TXD_IXSM);
	mini_kick(&d);
	assert_int_equal(model_wire_n(d.wire, 1), 64);
	check_segments(&d, bytes, n, 200);
	mini_close(&d);
}

TEST(tags_go_out_and_come_in_beside_the_frame)
{
	uint8_t bytes[200], got[200];
	struct mini_rx rx;
	struct mini d;
	uint32_t n;

	mini_open(&d, chip);
	mini_start(&d, 0);
	mini_write(&d, REG_CTRL, CTRL_SLU | CTRL_VME);
	mini_write(&d, REG_VET, 0x8100);
	n = mini_packet(bytes, 4, 17, 40);
	memcpy(d.arena + MINI_OUT, bytes, n);
	if (chip->is_82574) {
		mini_put(&d, MINI_IOVA + MINI_OUT,
			 n | TXD_DEXT | TXD_82574_DATA | TXD_IFCS | TXD_EOP |
				 TXD_VLE | 0x6123ull << 48);
	} else {
		put_context(&d, 4, false, 0, 0x6123, 0);
		mini_put_data(&d, 0, n, n, TXD_EOP | TXD_VLE, 0);
	}
	mini_kick(&d);
	assert_int_equal(model_wire_receive(d.wire, 1, got, 200), n + 4);
	assert_memory_equal(got, bytes, 12);
	assert_int_equal(packet_be32(got + 12), 0x81006123);
	assert_memory_equal(got + 16, bytes + 12, n - 12);
	assert_int_equal(packet_parse(got, n + 4).vlan_tci, 0x6123);
	/* And back: the tag is beside the frame, its sum is still checked. */
	model_wire_send(d.wire, 1, got, n + 4);
	assert_true(mini_receive(&d, 0, &rx));
	assert_int_equal(rx.n_bytes, n);
	assert_memory_equal(rx.bytes, bytes, n);
	assert_int_equal(rx.vlan_tci, 0x6123);
	assert_int_equal(rx.status & ~(RXD_DD | RXD_EOP),
			 RXD_VP | RXD_IPCS | RXD_UDPCS);
	/* Not stripped, if nobody wants it. */
	mini_write(&d, REG_CTRL, CTRL_SLU);
	model_wire_send(d.wire, 1, got, n + 4);
	assert_true(mini_receive(&d, 0, &rx));
	assert_int_equal(rx.n_bytes, n + 4);
	assert_int_equal(rx.status & RXD_VP, 0);
	mini_close(&d);
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
