/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/support: json_text.c, report_json.c and report_text.c, with
 * counters of an imaginary application.
 */
#include "capture.h"

#include "support/report.h"

#include "nat.h"

static const struct app_counters nat = {
	.program = "mr-test",
	.drop_names = nat_drops,
	.n_drops = 2,
	.worker_rows = nat_worker,
	.n_worker_rows = N_NAT_WORKER,
	.groups = nat_groups,
	.n_groups = 2,
};

static struct queue_snapshot queues[2];
static struct snapshot now, before;
static struct capture capture;

static int make_report(void **state)
{
	(void)state;
	memset(queues, 0, sizeof(queues));
	now = (struct snapshot){ .app = &nat,
				 .t_s = 3,
				 .n_ports = 1,
				 .n_workers = 1,
				 .invariants_hold = true,
				 .is_conserved = true };
	strcpy(now.ports[0].info.name, "x:\"y");
	strcpy(now.ports[0].info.mode, "copy");
	now.ports[0].n_queues = 1;
	now.ports[0].queues = &queues[0];
	queues[0].has_rx = queues[0].has_tx = true;
	queues[0].rx.received = 4001;
	queues[0].rx.delivered = 4000;
	queues[0].rx.bytes = 400000;
	queues[0].rx.drops[0] = 1;
	queues[0].tx.accepted = 3000;
	now.workers[0].bursts = 10;
	now.workers[0].entries = 100;
	now.workers[0].counts[NAT_HITS] = 99;
	now.workers[0].drops[0] = 12;
	now.groups[0][NAT_OPEN] = 500;
	now.groups[0][NAT_CREATED] = 7000;
	now.groups[1][0] = 3;
	before = now;
	before.t_s = 2;
	before.ports[0].queues = &queues[1];
	before.groups[0][NAT_CREATED] = 5000;
	return 0;
}

TEST_WITH(make_report, NULL, json_has_the_applications_members)
{
	struct device_stat stats[2] = { { "gprc", 7 }, { "Tx Bytes", 8 } };

	capture_begin(&capture);
	assert_true(report_json.show(&now, &before));
	capture_end(&capture);
	assert_has(capture.text, "\"port\":\"x:\\\"y\"");
	assert_has(capture.text, "\"bursts\":10,\"entries\":100,"
				 "\"handed_off\":0,\"icmp_made\":0,\"for_us\":0,"
				 "\"hits\":99,\"drops\":{\"no_port\":12,"
				 "\"martian\":0}");
	assert_has(capture.text, "\"sessions\":{\"open\":500,\"created\":7000,"
				 "\"bytes\":0},\"subscribers\":{\"blocks\":3}");
	assert_null(strstr(capture.text, "final"));
	assert_null(strstr(capture.text, "device_stats"));
	now.is_final = true;
	now.ports[0].n_device_stats = 2;
	now.ports[0].device_stats = stats;
	now.invariants_hold = false;
	capture_begin(&capture);
	assert_true(report_json.end(&now));
	capture_end(&capture);
	assert_has(capture.text, "\"device_stats\":{\"gprc\":7,"
				 "\"Tx Bytes\":8}");
	assert_has(capture.text, "\"final\":true,\"invariants_hold\":false,"
				 "\"conserved\":true}\n");
}

TEST_WITH(make_report, NULL, a_name_that_is_not_utf_8_is_escaped)
{
	static const struct {
		const char *name, *json;
	} cases[] = {
		{ "pcap:\xc3\xa4", "\"port\":\"pcap:\xc3\xa4\"," },
		{ "pcap:\xff\xc3\xa4\xc3", "\"port\":\"pcap:\\\\xff\xc3\xa4"
					   "\\\\xc3\"," },
		{ "\xf0\x9f\x8c\x8a\x80", "\"port\":\"\xf0\x9f\x8c\x8a"
					  "\\\\x80\"," },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(now.ports[0].info.name, cases[i].name);
		capture_begin(&capture);
		assert_true(report_json.show(&now, &before));
		capture_end(&capture);
		assert_has(capture.text, cases[i].json);
	}
}

TEST_WITH(make_report, NULL, text_has_sums)
{
	capture_begin(&capture);
	assert_true(report_text.show(&now, &before));
	assert_true(report_text.end(&now));
	capture_end(&capture);
	/* The workers' drops are as many in both. */
	assert_has(capture.text,
		   "   3.0 s  rx 4.000 kframes/s 3.200 "
		   "Mbit/s  tx 3.000 kframes/s 0 bit/s  drops 1/s");
	assert_has(capture.text, "  dropped workers: no_port 12\n");
	assert_has(capture.text, "mean burst 10.0\n"
				 "sessions: 500 open, 7000 created, 0 bytes of "
				 "memory\n"
				 "subscribers: 3 blocks\n"
				 "forwarded 3000 frames in 3.0 s");
	assert_has(capture.text, "accounting invariants hold\n");
}

/* In the first port's rx queue, and sent from the same port. */
static void offload_frames(void)
{
	now.ports[0].has_rules = before.ports[0].has_rules = true;
	queues[0].rx.offloaded = now.ports[0].tx_offloaded = 5000;
	queues[0].rx.received += 5000;
	now.ports[0].offloaded_bytes = 500000;
}

TEST_WITH(make_report, NULL, frames_of_rules_are_in_the_sums_and_apart)
{
	offload_frames();
	capture_begin(&capture);
	assert_true(report_text.show(&now, &before));
	assert_true(report_text.end(&now));
	assert_true(report_json.show(&now, &before));
	capture_end(&capture);
	assert_has(capture.text,
		   "rx 9.000 kframes/s 7.200 Mbit/s  tx 8.000 kframes/s 4.000 "
		   "Mbit/s  offloaded rx 5.000 kframes/s tx 5.000 kframes/s");
	assert_has(capture.text, ", and by rules: rx 5000, tx 5000\n");
	assert_has(capture.text, "forwarded 8000 frames in 3.0 s: 2.667 "
				 "kframes/s, 1.333 Mbit/s; 5000 of them by "
				 "rules\n");
	assert_has(capture.text, "\"tx_offloaded\":5000");
}

/* What the line for people has. */
static void assert_shown(const struct snapshot *from, const char *words)
{
	capture_begin(&capture);
	assert_true(report_text.show(&now, from));
	capture_end(&capture);
	assert_has(capture.text, words);
}

TEST_WITH(make_report, NULL, drops_of_workers_are_part_of_the_rate)
{
	now.workers[0].drops[1] = 30;
	assert_shown(&before, "drops 31/s");
	now.t_s = 4;
	assert_shown(&before, "drops 16/s");
	assert_shown(&now, "drops 0/s");
}

TEST_WITH(make_report, NULL, numbers_are_scaled_for_people)
{
	static const struct {
		uint64_t n;
		const char *text;
	} cases[] = {
		{ 0, "rx 0 frames/s" },
		{ 999, "rx 999 frames/s" },
		{ 1000, "rx 1.000 kframes/s" },
		{ 12345678, "rx 12.35 Mframes/s" },
		{ 123456789000, "rx 123.5 Gframes/s" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		queues[0].rx.delivered = cases[i].n;
		assert_shown(&before, cases[i].text);
	}
}
