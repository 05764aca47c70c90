/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/pcap: what is particular to files. What it has in common
 * with other ports is in test/conformance.
 */
#include <pcap/pcap.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <millrace/millrace.h>

#include "support/unit.h"

enum { BURST = 64 };

static struct {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_cache *cache;
	char dir[64], in[96], out[96];
} bench;

static uint32_t n_warnings;

static void count_warnings(void *opaque, enum mr_log_level level,
			   const char *line)
{
	(void)opaque;
	(void)line;
	n_warnings += level == MR_LOG_WARNING;
}

static int set_up(void **state)
{
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .log = count_warnings };

	(void)state;
	snprintf(bench.dir, sizeof(bench.dir), "/tmp/mr-pcap-XXXXXX");
	assert_non_null(mkdtemp(bench.dir));
	snprintf(bench.in, sizeof(bench.in), "%s/in", bench.dir);
	snprintf(bench.out, sizeof(bench.out), "%s/out", bench.dir);
	assert_int_equal(mr_ctx_create(&config, &bench.ctx, NULL), 0);
	assert_int_equal(mr_pool_create(bench.ctx, NULL, &bench.pool, NULL), 0);
	return mr_cache_create(bench.pool, &bench.cache, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	mr_cache_destroy(bench.cache);
	assert_int_equal(mr_pool_destroy(bench.pool, NULL), 0);
	mr_ctx_destroy(bench.ctx);
	unlink(bench.in);
	unlink(bench.out);
	return rmdir(bench.dir);
}

#define TEST_PCAP(name) TEST_WITH(set_up, tear_down, name)

/* One record: n_captured of n_bytes, all 'x', at sec and nsec. */
struct record {
	uint32_t n_captured, n_bytes;
	uint32_t sec, nsec;
};

static void write_input(int link_type, const struct record *records, uint32_t n)
{
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(
		link_type, 65535, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *dumper = pcap_dump_open(pcap, bench.in);
	uint8_t bytes[2048];

	memset(bytes, 'x', sizeof(bytes));
	for (uint32_t i = 0; i < n; i++) {
		const struct pcap_pkthdr header = {
			.ts = { records[i].sec, records[i].nsec },
			.caplen = records[i].n_captured,
			.len = records[i].n_bytes,
		};

		pcap_dump((u_char *)dumper, &header, bytes);
	}
	pcap_dump_close(dumper);
	pcap_close(pcap);
}

static int try_open(const char *options, struct mr_port **ret_port,
		    struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = bench.pool };
	char spec[300];

	snprintf(spec, sizeof(spec), "pcap:%s", options);
	return mr_port_open(bench.ctx, spec, &config, ret_port, why);
}

/* It is refused with this error, and with words that the reason has. */
static void check_refused_key(const char *key, int err, const char *words)
{
	struct mr_reason why;
	struct mr_port *port;
	char options[128];

	snprintf(options, sizeof(options), "%s=%s", key, bench.in);
	assert_int_equal(try_open(options, &port, &why), err);
	assert_reason_has(&why, words);
}

static struct mr_port *open_port(const char *key, const char *path,
				 const char *options)
{
	struct mr_port *port;
	struct mr_reason why;
	char spec[200];

	snprintf(spec, sizeof(spec), "%s=%s%s", key, path, options);
	if (try_open(spec, &port, &why) < 0)
		fail_msg("%s", why.text);
	return port;
}

static struct mr_rx_stats rx_stats(struct mr_port *port)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	mr_rxq_stats(mr_port_rxq(port, 0), &stats);
	return stats;
}

static struct mr_tx_stats tx_stats(struct mr_port *port)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	mr_txq_stats(mr_port_txq(port, 0), &stats);
	return stats;
}

/* Receive and free until there is no more work. Returns frames. */
static uint32_t receive_all(struct mr_port *port)
{
	struct mr_rxq *rxq = mr_port_rxq(port, 0);
	struct mr_frame frames[BURST];
	uint32_t n = 0;

	for (int i = 0; i < 1000 && mr_queue_arm(&rxq->queue) == 1; i++) {
		const uint32_t n_rx =
			mr_rx_burst(rxq, bench.cache, frames, BURST);

		n += n_rx;
		mr_frame_free_bulk(bench.cache, frames, n_rx);
	}
	return n;
}

static uint32_t make_frames(struct mr_frame *frames, uint32_t n, uint32_t len)
{
	uint64_t addrs[BURST];

	assert_int_equal(mr_frag_alloc_bulk(bench.cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ addrs[i] + 128, len, 0 };
	return n;
}

static void send_ten(struct mr_port *port)
{
	struct mr_frame frames[10];

	assert_int_equal(mr_tx_burst(mr_port_txq(port, 0), bench.cache, frames,
				     make_frames(frames, 10, 100)),
			 10);
}

/* The bytes of the first record that was written. */
static void read_frame(uint8_t *bytes, size_t n)
{
	FILE *file = fopen(bench.out, "re");

	assert_non_null(file);
	assert_int_equal(fseek(file, 24 + 16, SEEK_SET), 0);
	assert_int_equal(fread(bytes, 1, n, file), n);
	fclose(file);
}

TEST_PCAP(cut_off_records_are_named_drops)
{
	const struct record records[] = {
		{ 60, 60, 0, 0 },
		{ 60, 1500, 0, 0 }, /* cut off when it was captured */
		{ 13, 13, 0, 0 },   /* not even an Ethernet header */
		{ 14, 14, 0, 0 },
		{ 1500, 1500, 0, 0 },
	};
	struct mr_link link;
	struct mr_port *port;

	write_input(DLT_EN10MB, records, 5);
	/* The last record loses its last byte. */
	assert_int_equal(
		truncate(bench.in, 24 + 5 * 16 + 60 + 60 + 13 + 14 + 1499), 0);
	port = open_port("rx", bench.in, "");
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_true(link.is_up);
	assert_int_equal(receive_all(port), 2);
	assert_int_equal(rx_stats(port).received, 5);
	assert_int_equal(rx_stats(port).delivered, 2);
	assert_int_equal(rx_stats(port).drops[MR_RX_DROP_INVALID], 3);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_false(link.is_up);
	mr_port_close(port);
}

TEST_PCAP(other_link_types_are_refused_by_name)
{
	const struct record record = { 60, 60, 0, 0 };

	write_input(DLT_LINUX_SLL, &record, 1);
	check_refused_key("rx", -ENOTSUP, "LINUX_SLL");
	check_refused_key("rx", -ENOTSUP, bench.in);
}

/* 60 bytes, and an FCS. */
static void check_fcs_is_cut_off(void)
{
	struct mr_frame frame;
	struct mr_port *port = open_port("rx", bench.in, "");

	assert_int_equal(mr_rx_burst(mr_port_rxq(port, 0), bench.cache, &frame,
				     1 + MR_MAX_SEGS),
			 1);
	assert_int_equal(frame.len, 60);
	assert_int_equal(rx_stats(port).bytes, 60);
	mr_frame_free_bulk(bench.cache, &frame, 1);
	mr_port_close(port);
}

TEST_PCAP(fcs_of_pcap_is_cut_off)
{
	const struct record record = { 64, 64, 0, 0 };
	const uint32_t link_type = 0x24000001; /* Ethernet, 2 words of FCS */
	FILE *file;

	write_input(DLT_EN10MB, &record, 1);
	file = fopen(bench.in, "r+e");
	assert_non_null(file);
	assert_int_equal(fseek(file, 20, SEEK_SET), 0);
	assert_int_equal(fwrite(&link_type, 4, 1, file), 1);
	assert_int_equal(fclose(file), 0);
	check_fcs_is_cut_off();
}

/* Blocks of a pcapng file, in either byte order. */
static FILE *ng;
static bool is_swapped;

static void put32(uint32_t value)
{
	value = is_swapped ? __builtin_bswap32(value) : value;
	assert_int_equal(fwrite(&value, 4, 1, ng), 1);
}

static void begin_ng(bool swapped)
{
	is_swapped = swapped;
	ng = fopen(bench.in, "we");
	assert_non_null(ng);
	put32(0x0a0d0d0a);
	put32(28);
	put32(0x1a2b3c4d);
	put32(swapped ? 1 << 16 : 1);
	put32(UINT32_MAX);
	put32(UINT32_MAX);
	put32(28);
}

/* fcs_bytes: 0: not said. */
static void add_interface(uint16_t link_type, uint8_t fcs_bytes)
{
	const uint32_t n = fcs_bytes > 0 ? 32 : 20;

	put32(1);
	put32(n);
	put32(is_swapped ? (uint32_t)link_type << 16 : link_type);
	put32(65535);
	if (fcs_bytes > 0) {
		put32(is_swapped ? 13 << 16 | 1 : 13 | 1 << 16);
		put32(is_swapped ? (uint32_t)fcs_bytes << 24 : fcs_bytes);
		put32(0);
	}
	put32(n);
}

static void add_packets(uint32_t interface, uint32_t n, uint32_t n_bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		put32(6);
		put32(32 + n_bytes);
		put32(interface);
		put32(0);
		put32(1000000 + i);
		put32(n_bytes);
		put32(n_bytes);
		for (uint32_t b = 0; b < n_bytes; b += 4)
			put32(0x78787878);
		put32(32 + n_bytes);
	}
}

TEST_PCAP(fcs_of_pcapng_is_cut_off)
{
	for (uint32_t i = 0; i < 2; i++) {
		begin_ng(i == 1);
		add_interface(1, 4);
		add_interface(1, 4);
		add_packets(0, 1, 64);
		assert_int_equal(fclose(ng), 0);
		check_fcs_is_cut_off();
	}
	begin_ng(false);
	add_interface(1, 4);
	add_interface(1, 0);
	add_packets(0, 1, 64);
	assert_int_equal(fclose(ng), 0);
	check_refused_key("rx", -ENOTSUP, "differ in the length of the FCS");
}

TEST_PCAP(records_of_another_link_type_are_counted)
{
	for (uint32_t n_before = 0; n_before < 8; n_before += 3) {
		struct mr_named_count lost;
		struct mr_port *port;

		begin_ng(n_before == 3);
		add_interface(1, 0);
		add_packets(0, n_before, 60);
		add_interface(113, 0);
		add_packets(1, 2, 60);
		add_packets(0, 5, 60);
		assert_int_equal(fclose(ng), 0);
		port = open_port("rx", bench.in, "");
		assert_int_equal(receive_all(port), n_before);
		assert_int_equal(mr_port_device_drops(port, &lost, 1), 1);
		assert_string_equal(lost.name, "rx_other_link_type");
		assert_int_equal(lost.value, 7);
		assert_int_equal(rx_stats(port).received, n_before);
		mr_port_close(port);
	}
}

TEST_PCAP(pipes_are_refused_without_waiting)
{
	assert_int_equal(mkfifo(bench.in, 0600), 0);
	check_refused_key("rx", -EINVAL, "regular file");
	check_refused_key("tx", -EINVAL, "regular file");
}

static uint64_t n_passes(const struct mr_port *port)
{
	struct mr_named_count passes;

	assert_int_equal(mr_port_device_stats(port, &passes, 1), 1);
	assert_string_equal(passes.name, "passes");
	return passes.value;
}

TEST_PCAP(file_is_read_the_requested_number_of_times)
{
	const struct record records[] = { { 60, 60, 0, 0 }, { 61, 61, 0, 0 } };
	struct mr_frame frames[BURST];
	struct mr_port *port;

	write_input(DLT_EN10MB, records, 2);
	port = open_port("rx", bench.in, ",loop=3");
	assert_int_equal(n_passes(port), 0);
	assert_int_equal(
		mr_rx_burst(mr_port_rxq(port, 0), bench.cache, frames, BURST),
		2);
	mr_frame_free_bulk(bench.cache, frames, 2);
	/* The next one has been begun, but no frame of it. */
	assert_int_equal(n_passes(port), 1);
	assert_int_equal(receive_all(port), 4);
	assert_int_equal(n_passes(port), 3);
	mr_port_close(port);
	/* For ever: as long as this test asks. */
	port = open_port("rx", bench.in, ",loop=0");
	assert_true(receive_all(port) > 900);
	mr_port_close(port);
}

TEST_PCAP(damaged_capture_is_one_warning)
{
	const struct record record = { 60, 60, 0, 0 };
	struct mr_port *port;

	write_input(DLT_EN10MB, &record, 1);
	assert_int_equal(truncate(bench.in, 24 + 16 + 59), 0);
	n_warnings = 0;
	port = open_port("rx", bench.in, ",loop=0");
	assert_int_equal(receive_all(port), 0);
	assert_int_equal(mr_queue_arm(&mr_port_rxq(port, 0)->queue), 0);
	mr_port_close(port);
	assert_int_equal(n_warnings, 1);
}

TEST_PCAP(capture_of_nothing_ends)
{
	struct mr_port *port;

	write_input(DLT_EN10MB, NULL, 0);
	port = open_port("rx", bench.in, "");
	assert_int_equal(receive_all(port), 0);
	assert_int_equal(rx_stats(port).received, 0);
	mr_port_close(port);
	/* Another pass would have no frame, either. */
	port = open_port("rx", bench.in, ",loop=0");
	assert_int_equal(receive_all(port), 0);
	assert_int_equal(mr_queue_arm(&mr_port_rxq(port, 0)->queue), 0);
	assert_int_equal(n_passes(port), 0);
	mr_port_close(port);
	port = open_port("tx", bench.out, "");
	assert_int_equal(mr_port_device_stats(port, NULL, 0), 0);
	mr_port_close(port);
}

/* The same bytes, if the time of arrival is told to be that of sending. */
TEST_PCAP(forwarded_with_its_time_the_capture_is_the_same)
{
	const struct record records[] = {
		{ 60, 60, 1700000000, 123456789 },
		{ 1500, 1500, 1700000001, 1 },
		{ 64, 64, 0, 999999999 },
	};
	struct mr_port *from, *to;
	struct mr_frame frames[BURST];
	struct mr_meta meta[BURST];
	char command[256];
	uint32_t n;

	write_input(DLT_EN10MB, records, 3);
	from = open_port("rx", bench.in, "");
	to = open_port("tx", bench.out, "");
	n = mr_rx_burst_meta(mr_port_rxq(from, 0), bench.cache, frames, meta,
			     BURST);
	assert_int_equal(n, 3);
	assert_int_equal(meta[0].valid, MR_META_RX_TIME);
	assert_true(meta[0].rx_ns == UINT64_C(1700000000123456789));
	for (uint32_t i = 0; i < n; i++) {
		meta[i].valid = MR_META_LAUNCH_TIME;
		meta[i].launch_ns = meta[i].rx_ns;
		meta[i].launch_clock = meta[i].rx_clock;
	}
	assert_int_equal(mr_tx_burst_meta(mr_port_txq(to, 0), bench.cache,
					  frames, meta, n),
			 n);
	/* It is in the file now, before the port is closed. Behind the file's
	 * header: the longest frame that it promises is another. */
	snprintf(command, sizeof(command), "cmp -i 24 %s %s", bench.in,
		 bench.out);
	assert_int_equal(system(command), 0);
	mr_port_close(from);
	mr_port_close(to);
}

/* Where the metadata says, whatever the headers are. */
TEST_PCAP(sum_of_the_metadata_is_finished)
{
	const struct mr_meta meta = { .valid = MR_META_CSUM,
				      .csum_start_bytes = 14,
				      .csum_offset_bytes = 2 };
	uint8_t record[60], *bytes;
	struct mr_frame f;
	struct mr_port *port;

	port = open_port("tx", bench.out, "");
	make_frames(&f, 1, sizeof(record));
	f.flags = MR_FRAME_CSUM_PARTIAL;
	bytes = mr_frame_data(mr_region_base(mr_pool_region(bench.pool)), &f);
	memset(bytes, 0, sizeof(record));
	memcpy(bytes + 12, "\x88\xb5\x12\x34", 4);
	assert_int_equal(mr_tx_burst_meta(mr_port_txq(port, 0), bench.cache, &f,
					  &meta, 1),
			 1);
	assert_int_equal(tx_stats(port).events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
	mr_port_close(port);
	read_frame(record, sizeof(record));
	assert_memory_equal(record + 14, "\x12\x34\xed\xcb\0", 5);
}

/* The file may grow no more, for a while. */
TEST_PCAP(full_disk_is_a_named_drop_and_the_capture_stays_whole)
{
	const struct rlimit little = { 5000, RLIM_INFINITY };
	const struct rlimit enough = { RLIM_INFINITY, RLIM_INFINITY };
	struct mr_tx_stats stats;
	struct mr_port *port;
	struct stat st;
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	port = open_port("tx", bench.out, "");
	setrlimit(RLIMIT_FSIZE, &little);
	for (int i = 0; i < 10; i++)
		send_ten(port);
	setrlimit(RLIMIT_FSIZE, &enough);
	stats = tx_stats(port);
	/* 24 bytes, and 116 for each frame: four bursts of ten fit. */
	assert_int_equal(stats.completed, 40);
	assert_int_equal(stats.drops[MR_TX_DROP_DEVICE], 60);
	assert_int_equal(stats.accepted, 100);
	assert_int_equal(stat(bench.out, &st), 0);
	assert_int_equal(st.st_size, 24 + 40 * 116);
	/* There is room again. */
	send_ten(port);
	assert_int_equal(tx_stats(port).completed, 50);
	mr_port_close(port);
	signal(SIGXFSZ, old);

	port = open_port("rx", bench.out, "");
	assert_int_equal(receive_all(port), 50);
	assert_int_equal(rx_stats(port).received, 50);
	mr_port_close(port);
}

/* Half a port: the other half is there, and says what it does not do. */
TEST_PCAP(a_side_without_a_file_counts_what_it_drops)
{
	const struct record record = { 60, 60, 0, 0 };
	struct mr_port *port;

	write_input(DLT_EN10MB, &record, 1);
	port = open_port("rx", bench.in, "");
	send_ten(port);
	assert_int_equal(tx_stats(port).accepted, 10);
	assert_int_equal(tx_stats(port).drops[MR_TX_DROP_DEVICE], 10);
	mr_port_close(port);

	port = open_port("tx", bench.out, "");
	assert_int_equal(receive_all(port), 0);
	assert_int_equal(mr_queue_arm(&mr_port_rxq(port, 0)->queue), 0);
	mr_port_close(port);
}
