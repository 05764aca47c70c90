/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of what apps/bench/stream says of texts: grammar.c, values.c,
 * capture.c, and the errors of compile.c.
 */
#include "support/unit.h"

#include <pcap/pcap.h>
#include <unistd.h>

#include <millrace/millrace.h>

#include "stream/compiled.h"

static int parse(const char *text, bool is_stamped, struct streams **ret,
		 struct mr_reason *why)
{
	const struct stream_defaults defaults = { .is_stamped = is_stamped,
						  .has_unstamped = true };

	*ret = NULL;
	return streams_parse(&text, 1, &defaults, ret, why);
}

/* What is wrong, and what is said of it. */
static const struct {
	const char *text, *line;
} mistakes[] = {
	{ "sice=60", "no field 'sice'; docs/streams.md and mr-bench(1) "
		     "have a list" },
	{ "sctp", "'sctp' is no word of a stream; there are udp, tcp, "
		  "icmp, ip6 and KEY=VALUE" },
	{ "udp.dst=1 udp.dst=2",
	  "udp.dst is there twice; commas make a set: udp.dst=A,B-C" },
	{ "udp.dst=65536", "udp.dst=65536 is more than 65535" },
	{ "udp.dst=53,", "udp.dst= is not a number, as 53" },
	{ "udp.dst=010x", "udp.dst=010x is not a number, as 53" },
	{ "udp.dst=-1", "udp.dst= is not a number, as 53" },
	{ "udp.dst=9-3", "udp.dst=9-3 ends before it begins; did you "
			 "mean 3-9?" },
	{ "udp.dst=0/8", "udp.dst=0/8: addresses have prefixes; a "
			 "range is FROM-TO" },
	{ "udp.dst=1-9:rnd", "udp.dst: no option 'rnd' of values; "
			     "there are seq, random, zipf, "
			     "zipf=EXPONENT, step=N" },
	{ "udp.dst=1-9:step=0", "udp.dst: no option 'step=0' of values; "
				"there are seq, random, zipf, "
				"zipf=EXPONENT, step=N" },
	{ "udp.dst=1-9:zipf=0", "udp.dst: zipf=0: the exponent is a "
				"number above 0, up to 10" },
	{ "ip.src=10.0.0.0/8:zipf",
	  "ip.src: zipf is for at most 65536 values" },
	{ "ip.src=10.0.0.1/24", "ip.src=10.0.0.1/24: bits behind the "
				"prefix are set; a range is FROM-TO" },
	{ "ip.src=10.0.0.0/33",
	  "ip.src=10.0.0.0/33: the prefix has 0 to 32 bits" },
	{ "ip.src=2001:db8::/64", "ip.src=2001:db8::/64 has more than "
				  "2^32 values; /96 is the shortest "
				  "prefix" },
	{ "ip.src=1.2.3", "ip.src=1.2.3 is not an IP address, as "
			  "198.18.0.1 or 2001:2::1" },
	{ "ip.src=2001::-2002::", "ip.src=2001::-2002::: only the last "
				  "32 bits of an address can vary" },
	{ "ip.src=2001::1,2002::1",
	  "ip.src: only the last 32 bits of an address can vary; use "
	  "several streams" },
	{ "ip.src=10.0.0.0/12,11.0.0.1",
	  "ip.src: a set has at most 1048576 values; one range alone "
	  "may have 2^32" },
	{ "ip.src=2001::1 ip.dst=10.0.0.1",
	  "ip.dst is an IPv4 address in a stream of IPv6; use two "
	  "streams" },
	{ "ip6 ip.id=1", "IPv6 has no ip.id" },
	{ "ip6 ip.options=4", "IPv6 has no ip.options" },
	{ "ip6 udp.csum=off", "udp.csum=off is for IPv4 (RFC 8200 8.1)" },
	{ "eth.src=02:00:00:00:00",
	  "eth.src=02:00:00:00:00 is not a MAC address, as "
	  "02:00:00:00:00:01" },
	{ "eth.type=0x88b5 ip.src=10.0.0.1",
	  "ip.src: with eth.type a frame has no IP; leave one of them "
	  "out" },
	{ "tcp udp.dst=5", "udp.dst: a stream has one of udp, tcp, "
			   "icmp and ip.proto; use several streams" },
	{ "tcp.flags=syn+fyn",
	  "tcp.flags=syn+fyn is not TCP flags, as syn or fin+ack" },
	{ "ip.proto=6", "ip.proto=6 is a word of its own: udp, tcp or "
			"icmp" },
	{ "ip.proto=50-51", "ip.proto cannot vary; use several streams" },
	{ "qinq.id=5", "qinq is the outer tag; give vlan.id, too" },
	{ "vlan.id=1-9 vlan.pcp=0-7",
	  "vlan.id and vlan.pcp share a word; only one of them can "
	  "vary" },
	{ "size=59", "size=59 is not a size of 60 to 65535 bytes "
		     "without FCS, as 60, 60x7,1514 or imix" },
	{ "size=60x0", "size=60x0 is not a size of 60 to 65535 bytes "
		       "without FCS, as 60, 60x7,1514 or imix" },
	{ "size=60 size=70", "size is there twice; a mix is "
			     "size=60x7,1514" },
	{ "weight=0", "weight=0 is not a number of 1 to 1000" },
	{ "ip.options=3", "ip.options=3 is not 0, 4, 8, ... 40 bytes" },
	{ "udp.csum=no", "udp.csum=no is not on or off" },
	{ "pcap=", "pcap= needs a file" },
	{ "pcap=/no/such", "pcap=/no/such: No such file or directory" },
	{ "pcap=/no/such size=60",
	  "pcap and size: frames of a capture have their sizes; leave "
	  "size out" },
	{ "tcp size=71", "size=71: headers and the stamp need 72 bytes: "
			 "give such sizes (size=, --size; --sizes from "
			 "76 on), or --unstamped" },
};

TEST(each_mistake_has_its_line)
{
	struct mr_reason why;
	struct streams *streams;
	char line[sizeof(why.text)];

	for (uint32_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		assert_true(parse(mistakes[i].text, true, &streams, &why) < 0);
		assert_null(streams);
		snprintf(line, sizeof(line), "stream: %s", mistakes[i].line);
		assert_string_equal(why.text, line);
	}
}

TEST(the_wrong_stream_of_several_is_named)
{
	static const char *const texts[] = { "tcp", "size=imix", "size=x" };
	const struct stream_defaults defaults = { .is_stamped = true };
	struct streams *streams = NULL;
	struct mr_reason why;

	assert_int_equal(streams_parse(texts, 3, &defaults, &streams, &why),
			 -EINVAL);
	assert_memory_equal(why.text, "stream 3: size=x ", 17);
	assert_int_equal(streams_parse(texts, STREAMS_MAX + 1, &defaults,
				       &streams, &why),
			 -EINVAL);
	assert_string_equal(why.text, "1025 streams; there are at most 1024");
}

/* It says the sizes that it has; one that fits stays as it was written. */
TEST(an_imix_is_as_short_as_headers_let_it_be)
{
	static const struct {
		const char *text, *said;
		uint32_t raised;
	} cases[] = {
		{ "size=imix udp", "size=imix udp", 0 },
		{ "tcp size=imix tcp.dst=1-9",
		  "tcp size=72x7,566x4,1514x1 tcp.dst=1-9", 72 },
		{ "ip6 size=imix", "ip6 size=80x7,566x4,1514x1", 80 },
	};

	for (uint32_t i = 0; i < 3; i++) {
		struct streams *streams = NULL;
		struct mr_reason why;

		if (parse(cases[i].text, true, &streams, &why) != 0)
			fail_msg("%s", why.text);
		assert_string_equal(streams_text(streams, 0), cases[i].said);
		assert_int_equal(streams_raised_bytes(streams),
				 cases[i].raised);
		streams_free(streams);
	}
}

TEST(sizes_that_are_not_said_fit_the_headers)
{
	const char *texts[] = { "tcp" };
	struct stream_defaults defaults = { .is_stamped = true };
	struct streams *streams;
	struct mr_reason why;

	assert_int_equal(streams_parse(texts, 1, &defaults, &streams, &why), 0);
	assert_int_equal(streams_max_bytes(streams), 72);
	streams_free(streams);
	defaults.frame_bytes = 100;
	assert_int_equal(streams_parse(texts, 1, &defaults, &streams, &why), 0);
	assert_int_equal(streams_max_bytes(streams), 100);
	streams_free(streams);
	defaults.frame_bytes = 60;
	assert_int_equal(streams_parse(texts, 1, &defaults, &streams, &why),
			 -EINVAL);
	defaults.is_stamped = false;
	assert_int_equal(streams_parse(texts, 1, &defaults, &streams, &why), 0);
	assert_int_equal(streams_max_bytes(streams), 60);
	streams_free(streams);
}

TEST(values_are_read)
{
	static const struct {
		const char *text;
		uint64_t n;
		uint32_t values[4]; /* the first ones */
	} cases[] = {
		{ "udp.src=5-9:step=2", 3, { 5, 7, 9 } },
		{ "udp.src=0x10,5-6", 3, { 16, 5, 6 } },
		{ "udp.src=010-12", 3, { 10, 11, 12 } },
		{ "ip.src=10.0.0.0/30",
		  4,
		  { 167772160, 167772161, 167772162, 167772163 } },
		{ "ip.src=0.0.0.0/0", UINT64_C(1) << 32, { 0, 1, 2, 3 } },
		{ "ip.src=2001:db8::f/128,2001:db8::1", 2, { 15, 1 } },
		{ "eth.dst=02:00:00:00:01:00/46", 4, { 256, 257, 258, 259 } },
		{ "eth.src=02:00:00:00:00:09-02:00:00:00:00:0b:random",
		  3,
		  { 9, 10, 11 } },
		{ "tcp.flags=syn,fin+ack,0x12", 3, { 2, 17, 18 } },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct streams *streams;
		struct mr_reason why;
		const struct values *values;

		assert_int_equal(parse(cases[i].text, false, &streams, &why),
				 0);
		values = &streams->of[0].fields[0].values;
		assert_int_equal(values->n, cases[i].n);
		for (uint32_t j = 0; j < 4 && j < cases[i].n; j++)
			assert_int_equal(values->table != NULL ?
						 values->table[j] :
						 values->first +
							 j * values->step,
					 cases[i].values[j]);
		streams_free(streams);
	}
}

/* A capture of the frames given, and its path in the test's folder. */
static const char *captured(const uint8_t *const *frames, const uint32_t *n,
			    uint32_t n_frames, uint32_t n_cut, int link_type)
{
	static char path[] = "/tmp/mr-grammar-XXXXXX";
	pcap_t *pcap = pcap_open_dead(link_type, 65535);
	pcap_dumper_t *dumper;
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	dumper = pcap_dump_fopen(pcap, fdopen(fd, "w"));
	assert_non_null(dumper);
	for (uint32_t i = 0; i < n_frames; i++) {
		const struct pcap_pkthdr head = { .caplen = n[i] - n_cut,
						  .len = n[i] };

		pcap_dump((uint8_t *)dumper, &head, frames[i]);
	}
	pcap_dump_close(dumper);
	pcap_close(pcap);
	return path;
}

/* UDP with a payload of four bytes, and a sum that is wrong. */
static const uint8_t udp_frame[46] = {
	2, 0,  0, 0, 0, 1, 2,  0,  0,    0,    0,   2,   8,   0,  0x45, 0,
	0, 32, 0, 0, 0, 0, 64, 17, 0xbe, 0xef, 10,  0,   0,   1,  10,   0,
	0, 2,  0, 1, 0, 2, 0,  12, 0xde, 0xad, 'a', 'b', 'c', 'd'
};
static const uint8_t arp_frame[42] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,
				       0,    0,    0,    0,    1,    8,    6 };

/* What is wrong with a stream of a capture, behind its name. */
static const char *capture_error(const char *path, const char *words,
				 bool is_stamped)
{
	static struct mr_reason why;
	struct streams *streams;
	char text[256];

	snprintf(text, sizeof(text), "pcap=%s %s", path, words);
	if (parse(text, is_stamped, &streams, &why) == 0) {
		streams_free(streams);
		return "";
	}
	return why.text + strlen("stream: pcap=") + strlen(path);
}

TEST(captures_are_read)
{
	const uint8_t *const frames[] = { udp_frame, arp_frame };
	const uint32_t n_bytes[] = { sizeof(udp_frame), sizeof(arp_frame) };
	const char *path = captured(frames, n_bytes, 2, 0, DLT_EN10MB);
	struct streams *streams;
	struct mr_reason why;
	char text[256];

	snprintf(text, sizeof(text), "pcap=%s", path);
	assert_int_equal(parse(text, false, &streams, &why), 0);
	assert_int_equal(streams->of[0].n_shapes, 2);
	/* Nothing was asked to be changed: the wrong sums are still there. */
	assert_memory_equal(streams->of[0].shapes[0].bytes, udp_frame,
			    sizeof(udp_frame));
	assert_int_equal(streams->of[0].shapes[0].n_bytes, 60);
	streams_free(streams);
	assert_string_equal(capture_error(path, "", true),
			    ": frame 1: the frame is longer than its packet, "
			    "so a stamp would be in the padding; do without "
			    "stamps" +
				    0);
	assert_string_equal(capture_error(path, "ip.src=10.0.0.9", false),
			    ": frame 2: ip.src: the frame has no such field");
	assert_string_equal(
		capture_error(path, "eth.src=02:00:00:00:00:00/40", false),
		": frame 2: its headers are not those of frame 1, so no field "
		"can vary; use a capture of one kind of frame");
	unlink(path);
}

/* VLAN tags with other priorities, and a field that shares their word. */
TEST(what_is_beside_a_field_is_the_same_in_all)
{
	uint8_t first[60] = { 2, 0, 0, 0,    0, 1,    2, 0,    0,
			      0, 0, 2, 0x81, 0, 0x20, 5, 0x88, 0xb5 };
	uint8_t other[60];
	const uint8_t *const frames[] = { first, other };
	const uint32_t n_bytes[] = { sizeof(first), sizeof(other) };
	const char *path;

	memcpy(other, first, sizeof(other));
	other[15] = 6; /* another id: it varies */
	path = captured(frames, n_bytes, 2, 0, DLT_EN10MB);
	assert_string_equal(capture_error(path, "vlan.id=1-9", false), "");
	unlink(path);
	other[14] = 0x40;
	path = captured(frames, n_bytes, 2, 0, DLT_EN10MB);
	assert_string_equal(
		capture_error(path, "vlan.id=1-9", false),
		": frame 2: its headers are not those of frame 1, so no field "
		"can vary; use a capture of one kind of frame");
	unlink(path);
}

TEST(what_is_no_capture_is_refused)
{
	const uint8_t *const frames[] = { udp_frame };
	const uint32_t n_bytes[] = { sizeof(udp_frame) };
	const uint32_t n_short[] = { 13 };
	const char *path;

	path = captured(frames, n_bytes, 0, 0, DLT_EN10MB);
	assert_string_equal(capture_error(path, "", false), " has no frame");
	unlink(path);
	path = captured(frames, n_bytes, 1, 1, DLT_EN10MB);
	assert_string_equal(capture_error(path, "", false),
			    ": frame 1 was cut off when it was captured; "
			    "capture with -s 0");
	unlink(path);
	path = captured(frames, n_short, 1, 0, DLT_EN10MB);
	assert_string_equal(capture_error(path, "", false),
			    ": frame 1 has 13 bytes; there are frames of 14 to "
			    "65535");
	unlink(path);
	path = captured(frames, n_bytes, 1, 0, DLT_LINUX_SLL);
	assert_string_equal(capture_error(path, "", false),
			    " has no Ethernet frames; capture on an interface, "
			    "not on 'any'");
	unlink(path);
}
