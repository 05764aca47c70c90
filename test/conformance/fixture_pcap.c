/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap: the peer is two files in a separate directory. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture_pcap.h"
#include "harness.h"

struct far {
	char dir[64];
	char in[96], out[96];
	pcap_t *reader; /* of out; NULL: not opened yet */
};

static void write_input(const struct harness *harness, const char *path)
{
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(
		DLT_EN10MB, 262144, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *dumper = pcap_dump_open(pcap, path);
	uint8_t bytes[HARNESS_MAX_BYTES];

	assert_non_null(dumper);
	for (uint32_t id = 0; id < harness->wish.n_in; id++) {
		struct pcap_pkthdr record = { .ts = { .tv_sec = id } };

		record.len = harness->wish.len_of != NULL ?
				     harness->wish.len_of(id) :
				     60;
		record.caplen = record.len;
		traffic_make(bytes, record.len, id);
		pcap_dump((u_char *)dumper, &record, bytes);
	}
	pcap_dump_close(dumper);
	pcap_close(pcap);
}

/* Create two files in a new directory. */
static struct far *make_files(struct harness *harness)
{
	struct far *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	snprintf(far->dir, sizeof(far->dir), "/tmp/mr-conformance-XXXXXX");
	assert_non_null(mkdtemp(far->dir));
	snprintf(far->in, sizeof(far->in), "%s/in.pcap", far->dir);
	snprintf(far->out, sizeof(far->out), "%s/out.pcap", far->dir);
	write_input(harness, far->in);
	harness->far = far;
	return far;
}

static void setup(struct harness *harness)
{
	const struct far *far = make_files(harness);

	snprintf(harness->spec, sizeof(harness->spec), "pcap:rx=%s,tx=%s,sg=%s",
		 far->in, far->out, harness->wish.is_sg ? "on" : "off");
}

void fixture_pcap_setup_dpdk(struct harness *harness)
{
	const struct far *far = make_files(harness);

	snprintf(harness->spec, sizeof(harness->spec),
		 "dpdk:net_pcap0\\,rx_pcap=%s\\,tx_pcap=%s,ring=%u,%s", far->in,
		 far->out, harness->wish.ring_entries,
		 harness->wish.is_sg ? "mtu=9000,sg=on" : "sg=off");
}

static void stop_reading(struct far *far)
{
	if (far->reader != NULL)
		pcap_close(far->reader);
	far->reader = NULL;
}

void fixture_pcap_teardown(struct harness *harness)
{
	struct far *far = harness->far;

	if (far == NULL)
		return;
	stop_reading(far);
	unlink(far->in);
	unlink(far->out);
	rmdir(far->dir);
	free(far);
	harness->far = NULL;
}

/* The port has recreated the file. */
void fixture_pcap_opened(struct harness *harness)
{
	stop_reading(harness->far);
}

uint32_t fixture_pcap_collect(struct harness *harness, uint8_t *bytes,
			      uint32_t room)
{
	struct far *far = harness->far;
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *record;
	const u_char *from;

	if (far->reader == NULL)
		far->reader = pcap_open_offline(far->out, error);
	assert_non_null(far->reader);
	if (pcap_next_ex(far->reader, &record, &from) != 1) {
		/* It may not be the end for good: the port may write more. */
		clearerr(pcap_file(far->reader));
		return 0;
	}
	assert_true(record->caplen == record->len && record->len <= room);
	memcpy(bytes, from, record->len);
	return record->len;
}

static const struct bad_spec bad_specs[] = {
	{ "pcap:", -EINVAL, "rx=" },
	{ "pcap:in.pcap", -EINVAL, "rx=" },
	{ "pcap:rx=/nowhere/in.pcap", -ENODEV, "/nowhere/in.pcap" },
	{ "pcap:rx=/dev", -EINVAL, "/dev" },
	{ "pcap:rx=/proc/self/maps", -EINVAL, "not a capture" },
	{ "pcap:tx=/nowhere/out.pcap", -ENODEV, "/nowhere/out.pcap" },
	{ "pcap:tx=/dev/full", -EIO, "/dev/full" },
	{ "pcap:tx=/dev/null,loop=x", -EINVAL, "loop" },
	{ "pcap:tx=/dev/null,sg=auto", -EINVAL, "auto" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_pcap = {
	.driver = "pcap",
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_SG | FIXTURE_CHECKS |
		  FIXTURE_EXCLUSIVE | FIXTURE_OVERLONG,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 100,
	.bad_specs = bad_specs,
	.setup = setup,
	.teardown = fixture_pcap_teardown,
	.opened = fixture_pcap_opened,
	.collect = fixture_pcap_collect,
};
