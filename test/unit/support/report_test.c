/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/support: report.c, json_text.c, report_csv.c, report_json.c,
 * report_live.c and report_text.c, with counters of an application that there
 * is not.
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

static int make(void **state)
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

TEST_WITH(make, NULL, groups_are_lines_for_people)
{
	char text[200];

	assert_true(report_group(&now, NULL, 0, false, text, sizeof(text)));
	assert_string_equal(text, "sessions: 500 open, 7000 created, 0 bytes "
				  "of memory");
	assert_true(report_group(&now, &before, 0, true, text, sizeof(text)));
	assert_string_equal(text, "sessions: 500 open, 2.000 k created/s");
	assert_true(report_group(&now, &before, 1, false, text, sizeof(text)));
	assert_string_equal(text, "subscribers: 3 blocks");
	assert_false(report_group(&now, &before, 1, true, text, sizeof(text)));
}

TEST_WITH(make, NULL, json_has_the_application_s_own)
{
	struct device_stat stats[2] = { { "gprc", 7 }, { "Tx Bytes", 8 } };

	capture_begin(&capture);
	assert_true(report_json.show(&now, &before));
	capture_end(&capture);
	assert_has(capture.text, "\"port\":\"x:\\\"y\"");
	assert_has(capture.text, "\"bursts\":10,\"entries\":100,"
				 "\"icmp_made\":0,\"for_us\":0,\"hits\":99,"
				 "\"handed_off\":0,\"drops\":{\"no_port\":12,"
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
	assert_has(capture.text, "\"final\":true,\"laws_hold\":false,"
				 "\"conserved\":true}\n");
}

TEST_WITH(make, NULL, a_name_that_is_no_utf_8_is_escaped)
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

TEST_WITH(make, NULL, csv_has_a_line_per_queue)
{
	capture_begin(&capture);
	assert_true(report_csv.begin());
	assert_true(report_csv.show(&now, &before));
	capture_end(&capture);
	assert_has(capture.text, "t,port,queue,rx_received,rx_delivered,"
				 "rx_offloaded,rx_passed_to_kernel,rx_bytes,"
				 "rx_drop_");
	assert_has(capture.text, "\r\n3.000000,\"x:\"\"y\",0,4001,4000,0,"
				 "0,400000,1,");
}

TEST_WITH(make, NULL, text_sums_up)
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

TEST_WITH(make, NULL, frames_of_rules_are_in_the_sums_and_apart)
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

TEST_WITH(make, NULL, the_live_display_has_rates)
{
	offload_frames();

	setenv("TERM", "xterm", 1);
	setenv("LINES", "24", 1);
	setenv("COLUMNS", "100", 1);
	capture_begin(&capture);
	assert_true(report_live.begin());
	assert_true(report_live.show(&now, &before));
	assert_true(report_live.end(&now));
	capture_end(&capture);
	assert_has(capture.text, "mr-test, 3 s; q ends");
	assert_has(capture.text, "sessions: 500 open, 2.000 k created/s");
	assert_has(capture.text, "dropped since the start, now 1/s:");
	assert_has(capture.text, "by rules, in addition: rx 5.000 k frames/s, "
				 "tx 5.000 k frames/s");
	assert_has(capture.text, "accounting invariants hold\n");
}

TEST_WITH(make, NULL, drops_of_workers_are_in_the_rate)
{
	now.workers[0].drops[1] = 30;
	assert_true(report_drop_rate(&now, &before) == 31);
	now.t_s = 4;
	assert_true(report_drop_rate(&now, &before) == 15.5);
	assert_true(report_drop_rate(&now, &now) == 0);
}

TEST(rows_fit_the_smallest_terminal)
{
	const struct rates most = { .rx_pps = 999.94e6,
				    .rx_bps = 999.94e9,
				    .tx_pps = 999.94e6,
				    .tx_bps = 999.94e9,
				    .drops = 999.94e6 };
	const struct rates none = { 0 };
	static const struct {
		int n;
		size_t n_used;
	} columns[] = { { 20, 69 }, { 79, 79 }, { 200, 88 } };
	char row[100];

	report_rates_row("vfio:0000:03:00.0-and-more", &most, 69, row,
			 sizeof(row));
	assert_string_equal(row, "vfio:0000:03:00.0-     999.9 M  999.9 G"
				 "     999.9 M  999.9 G  999.9 M");
	report_rates_row("port", NULL, 69, row, sizeof(row));
	assert_string_equal(row, "port               rx frames/s rx bit/s"
				 " tx frames/s tx bit/s  drops/s");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		report_rates_row("  queue 1", &none, columns[i].n, row,
				 sizeof(row));
		assert_int_equal(strlen(row), columns[i].n_used);
	}
}

TEST(lines_end_at_a_blank)
{
	assert_int_equal(report_fitting("one two", 7), 7);
	assert_int_equal(report_fitting("one two", 6), 3);
	assert_int_equal(report_fitting("one two", 3), 3);
	assert_int_equal(report_fitting("one two", 2), 2);
	assert_int_equal(report_fitting("  three", 4), 4);
	assert_int_equal(report_fitting("", 4), 0);
}

TEST(numbers_are_scaled_for_people)
{
	char text[16];

	assert_string_equal(report_scaled(0, text, sizeof(text)), "0");
	assert_string_equal(report_scaled(999, text, sizeof(text)), "999");
	assert_string_equal(report_scaled(1000, text, sizeof(text)), "1.000 k");
	assert_string_equal(report_scaled(12345678, text, sizeof(text)),
			    "12.35 M");
	assert_string_equal(report_scaled(123456789e3, text, sizeof(text)),
			    "123.5 G");
}

TEST(the_form_is_chosen)
{
	assert_ptr_equal(report_choose(OUTPUT_JSON, false), &report_json);
	assert_ptr_equal(report_choose(OUTPUT_CSV, true), &report_csv);
	assert_ptr_equal(report_choose(OUTPUT_AUTO, true), &report_text);
}
