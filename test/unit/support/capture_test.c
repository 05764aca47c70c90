/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support: capture.c, recorder.c, capture_filter.c,
 * capture_no_filter.c (which has nothing to do), and control_capture.c. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "support/unit.h"

#include "support/capture.h"
#include "support/control.h"

enum { N_FRAMES = 8, N_ROUNDS = 2000, N_DROPS = 64 };

struct bed {
	struct dataplane plane;
	struct capture *capture;
	struct recorder *slots[2];
	struct mr_worker *workers[2];
	struct mr_frame frames[N_FRAMES]; /* of 60 + their index bytes */
	uint64_t n_offloaded;
};

static void explain(void *worker, uint32_t port, bool is_tx,
		    const uint8_t *bytes, uint32_t n, char *ret)
{
	snprintf(ret, CAPTURE_MAX_TEXT,
		 "worker %d, port %u, %s, %u bytes of %u", *(int *)worker, port,
		 is_tx ? "tx" : "rx", n, bytes[12]);
}

static uint64_t offloaded(void *opaque)
{
	const struct bed *bed = opaque;

	return bed->n_offloaded;
}

static void open_bed(struct bed *bed)
{
	static const char *const specs[] = { "null:", "null:b" };
	static int numbers[] = { 7, 8 };
	const struct dataplane_config config = { .program = "test",
						 .log_level = MR_LOG_ERROR,
						 .specs = specs,
						 .n_ports = 2,
						 .n_workers = 2,
						 .burst = MR_BURST_MAX,
						 .page_bytes = 4096 };
	struct mr_reason why;

	*bed = (struct bed){ .n_offloaded = 5 };
	assert_int_equal(dataplane_open(&bed->plane, &config, &why), 0);
	bed->capture =
		capture_create(&(struct capture_config){ .plane = &bed->plane,
							 .explain = explain,
							 .offloaded = offloaded,
							 .app = bed });
	assert_non_null(bed->capture);
	for (uint32_t i = 0; i < 2; i++) {
		bed->workers[i] = mr_workers_get(bed->plane.workers, i);
		capture_attach(bed->capture, i, &bed->slots[i], &numbers[i]);
	}
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		struct mr_frame *frame = &bed->frames[i];
		uint8_t *bytes;

		frame->addr = mr_frag_alloc(bed->workers[0]->cache, 2048);
		assert_int_not_equal(frame->addr, MR_ADDR_NONE);
		frame->len = 60 + i;
		frame->flags = 0;
		bytes = mr_frame_data(
			mr_region_base(mr_pool_region(bed->plane.pool)), frame);
		memset(bytes, (int)i, 60 + i);
		bytes[12] = 0x88; /* the type */
		bytes[13] = 0xb5;
	}
}

static void close_bed(struct bed *bed)
{
	for (uint32_t i = 0; i < N_FRAMES; i++)
		mr_frame_free_bulk(bed->workers[0]->cache, &bed->frames[i], 1);
	capture_destroy(bed->capture);
	assert_int_equal(dataplane_close(&bed->plane, NULL), 0);
}

/* A filter takes a second call, after which nothing is left to be heard. */
static int try_to_start(struct bed *bed, const struct capture_request *request,
			struct mr_reason *ret_why)
{
	struct pollfd at = { .fd = capture_fd(bed->capture), .events = POLLIN };
	int err = capture_start(bed->capture, request, ret_why);

	assert_int_equal(err == -EAGAIN, request->filter != NULL);
	if (request->filter != NULL) {
		assert_int_equal(poll(&at, 1, -1), 1);
		capture_heard(bed->capture);
		err = capture_start(bed->capture, request, ret_why);
	}
	return err;
}

static void start_capture(struct bed *bed, struct capture_request request)
{
	struct mr_reason why;

	if (request.n_bytes == 0)
		request.n_bytes = CAPTURE_MAX_BYTES;
	if (try_to_start(bed, &request, &why) != 0)
		fail_msg("%s", why.text);
}

static struct capture_record next(struct bed *bed)
{
	struct capture_record record;

	assert_true(capture_next(bed->capture, &record));
	return record;
}

static void assert_no_more(struct bed *bed)
{
	struct capture_record record;

	assert_false(capture_next(bed->capture, &record));
}

static void receive_frames(struct bed *bed, uint32_t port)
{
	assert_true(capture_is_on(&bed->slots[0]));
	recorder_rx(bed->slots[0], port, 3, bed->frames, NULL, N_FRAMES);
}

TEST(a_port_lists_frames_received_and_sent)
{
	struct capture_record record;
	struct bed bed;

	open_bed(&bed);
	assert_false(capture_is_on(&bed.slots[0]));
	start_capture(&bed, (struct capture_request){ .what = CAPTURE_PORT,
						      .port = "b",
						      .n_bytes = 62 });
	receive_frames(&bed, 0);
	assert_no_more(&bed); /* the other port */
	receive_frames(&bed, 1);
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		record = next(&bed);
		assert_int_equal(record.event, CAPTURE_RX);
		assert_int_equal(record.port_idx, 1);
		assert_int_equal(record.queue_idx, 3);
		assert_int_equal(record.burst, 2);
		assert_int_equal(record.n_frame, 60 + i);
		assert_int_equal(record.n_data, i < 2 ? 60 + i : 62);
		assert_int_equal(record.data[20], i);
		assert_int_equal(
			strncmp(record.text, "worker 7, port 1, rx", 20), 0);
	}
	assert_no_more(&bed);
	capture_stop(bed.capture);
	assert_false(capture_is_on(&bed.slots[0]));
	assert_no_more(&bed);
	close_bed(&bed);
}

static uint32_t take_three(struct mr_txq *txq, struct mr_cache *cache,
			   const struct mr_frame *frames,
			   const struct mr_meta *meta, uint32_t n)
{
	(void)txq;
	(void)cache;
	(void)frames;
	(void)meta;
	return n < 3 ? n : 3;
}

TEST(a_tag_beside_a_frame_is_named)
{
	struct mr_meta metas[N_FRAMES] = {
		[1] = { .valid = MR_META_VLAN, .vlan_tci = 0x6007 },
	};
	struct bed bed;

	open_bed(&bed);
	start_capture(&bed, (struct capture_request){ .what = CAPTURE_PORT,
						      .port = "null:" });
	recorder_rx(bed.slots[0], 0, 0, bed.frames, metas, 2);
	assert_null(strstr(next(&bed).text, "VLAN"));
	assert_non_null(strstr(next(&bed).text, "of 136; VLAN 7, in metadata"));
	close_bed(&bed);
}

TEST(refused_frames_are_not_captured_as_sent)
{
	struct bed bed;

	open_bed(&bed);
	mr_port_txq(bed.plane.ports[0], 0)->burst = take_three;
	start_capture(&bed, (struct capture_request){ .what = CAPTURE_PORT,
						      .port = "null:" });
	for (uint32_t round = 0; round < 3; round++) {
		assert_int_equal(recorder_send(bed.slots[0], bed.workers[0], 0,
					       bed.frames, NULL, N_FRAMES),
				 3);
		for (uint32_t i = 0; i < 3; i++) {
			const struct capture_record record = next(&bed);

			assert_int_equal(record.event, CAPTURE_TX);
			assert_int_equal(record.n_frame, 60 + i);
		}
		assert_no_more(&bed);
	}
	/* Nothing is recorded for another port. */
	assert_int_equal(recorder_send(bed.slots[0], bed.workers[0], 1,
				       bed.frames, NULL, 0),
			 0);
	assert_no_more(&bed);
	close_bed(&bed);
}

TEST(a_filter_chooses)
{
	static const char *const wrong[] = { "tcp and", "port no_such_port",
					     "(" };
	struct pollfd at = { .events = POLLIN };
	struct mr_reason why;
	struct bed bed;

	open_bed(&bed);
	at.fd = capture_fd(bed.capture);
	/* Who asked for this does not wait for it. */
	assert_int_equal(
		capture_start(bed.capture,
			      &(struct capture_request){ .what = CAPTURE_DROPS,
							 .filter = "icmp" },
			      &why),
		-EAGAIN);
	assert_int_equal(poll(&at, 1, -1), 1);
	capture_heard(bed.capture);
	for (uint32_t i = 0; i < 3; i++) {
		const struct capture_request request = { .what = CAPTURE_DROPS,
							 .filter = wrong[i] };

		assert_int_equal(try_to_start(&bed, &request, &why), -EINVAL);
		assert_non_null(strstr(why.text, "see pcap-filter(7)"));
		assert_false(capture_is_on(&bed.slots[0]));
	}
	start_capture(&bed,
		      (struct capture_request){ .what = CAPTURE_DROPS,
						.filter = "ether[20] = 5" });
	receive_frames(&bed, 1);
	recorder_drop(bed.slots[0], CAPTURE_LAST_PORT, bed.frames, N_FRAMES,
		      "tired");
	assert_int_equal(next(&bed).n_frame, 65);
	assert_no_more(&bed);
	recorder_drop(bed.slots[0], 0, &bed.frames[5], 1, "tired");
	assert_int_equal(next(&bed).port_idx, 0);
	close_bed(&bed);
}

TEST(a_trace_follows_marked_frames_and_no_others)
{
	struct capture_record record;
	struct bed bed;

	open_bed(&bed);
	start_capture(&bed, (struct capture_request){ .what = CAPTURE_TRACE,
						      .n_frames = 2 });
	receive_frames(&bed, 0); /* frames 0 and 1 */
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		assert_int_equal(bed.frames[i].flags,
				 i < 2 ? CAPTURE_TRACED : 0);
		recorder_note(bed.slots[0], &bed.frames[i], "decided");
	}
	/* Another worker drops them; time puts all in order. */
	recorder_drop(bed.slots[1], 1, bed.frames, N_FRAMES, "tired");
	for (uint32_t i = 0; i < 6; i++) {
		static const enum capture_event events[] = { CAPTURE_RX,
							     CAPTURE_NOTE,
							     CAPTURE_DROP };

		record = next(&bed);
		assert_int_equal(record.event, events[i / 2]);
		assert_int_equal(record.n_frame, 60 + i % 2);
		assert_int_equal(record.worker_idx, i / 4);
		if (record.event == CAPTURE_NOTE)
			assert_string_equal(record.text, "decided");
		if (record.event == CAPTURE_DROP)
			assert_string_equal(record.why, "tired");
	}
	assert_no_more(&bed);
	receive_frames(&bed,
		       0); /* again, as through pair: ports; two were enough */
	recorder_drop(bed.slots[0], 0, bed.frames, N_FRAMES, "tired");
	assert_no_more(&bed);
	close_bed(&bed);
}

TEST(frames_beyond_the_ring_only_count_as_missed)
{
	struct capture_record record;
	uint64_t n_read = 0, n_received = 0, n_missed;
	struct bed bed;

	open_bed(&bed);
	start_capture(&bed, (struct capture_request){ .what = CAPTURE_PORT,
						      .port = "null:" });
	assert_int_equal(capture_missed(bed.capture).offloaded, 0);
	bed.n_offloaded += 9;
	assert_int_equal(capture_missed(bed.capture).offloaded, 9);
	for (uint32_t round = 0; round < 3; round++) {
		n_missed = capture_missed(bed.capture).ring_full;
		while (capture_missed(bed.capture).ring_full == n_missed) {
			receive_frames(&bed, 0);
			n_received += N_FRAMES;
		}
		assert_true(n_received > 10000);
		while (capture_next(bed.capture, &record)) {
			assert_int_equal(record.n_data, record.n_frame);
			assert_int_equal(record.data[20], record.n_frame - 60);
			n_read++;
		}
	}
	assert_int_equal(n_read + capture_missed(bed.capture).ring_full,
			 n_received);
	close_bed(&bed);
}

TEST(one_capture_runs_at_a_time_and_its_fd_signals_records)
{
	struct capture_request request = { .what = CAPTURE_TRACE };
	struct pollfd at;
	struct mr_reason why;
	struct bed bed;

	open_bed(&bed);
	at = (struct pollfd){ .fd = capture_fd(bed.capture), .events = POLLIN };
	start_capture(&bed, request);
	assert_int_equal(capture_start(bed.capture, &request, &why), -EBUSY);
	assert_int_equal(poll(&at, 1, 0), 0);
	for (uint32_t i = 0; i < 3; i++) {
		receive_frames(&bed, 0);
		assert_int_equal(poll(&at, 1, 0), 1);
		capture_heard(bed.capture);
		assert_int_equal(poll(&at, 1, 0), 0);
	}
	capture_stop(bed.capture);
	request.port = "nobody";
	assert_int_equal(capture_start(bed.capture, &request, &why), -EINVAL);
	assert_non_null(strstr(why.text, "no port 'nobody'"));
	for (uint32_t i = 0; i < N_FRAMES; i++)
		bed.frames[i].flags = 0;
	close_bed(&bed);
}

struct busy {
	struct bed *bed;
	bool is_over; /* atomic */
};

static void *run_worker(void *opaque)
{
	struct busy *busy = opaque;
	struct bed *bed = busy->bed;

	while (!__atomic_load_n(&busy->is_over, __ATOMIC_RELAXED)) {
		/* As the loops do: the slot may change in between. */
		struct recorder *recorder = capture_recorder(&bed->slots[0]);

		if (recorder != NULL)
			recorder_rx(recorder, 0, 0, bed->frames, NULL,
				    N_FRAMES);
		for (uint32_t i = 0; i < N_DROPS; i++)
			capture_drop(&bed->slots[0], 0, bed->frames, 1,
				     "tired");
		sched_yield();
	}
	return NULL;
}

TEST_AS(NULL, NULL, captures_begin_and_end_while_a_worker_runs, true)
{
	const struct capture_request request = { .what = CAPTURE_PORT,
						 .port = "null:",
						 .filter = "ether[20] < 4",
						 .n_bytes = 64 };
	struct capture_record record;
	uint32_t n_seen = 0;
	struct mr_reason why;
	pthread_t thread;
	struct bed bed;
	struct busy busy = { .bed = &bed };

	open_bed(&bed);
	assert_int_equal(pthread_create(&thread, NULL, run_worker, &busy), 0);
	for (uint32_t round = 0; round < N_ROUNDS || n_seen == 0; round++) {
		int err;

		while ((err = capture_start(bed.capture, &request, &why)) ==
		       -EAGAIN)
			sched_yield();
		assert_int_equal(err, 0);
		if (round % 16 == 0)
			sched_yield();
		for (uint32_t i = 0;
		     i < 16 && capture_next(bed.capture, &record); i++) {
			assert_true(record.data[20] < 4);
			n_seen++;
		}
		capture_stop(bed.capture);
	}
	__atomic_store_n(&busy.is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close_bed(&bed);
}

/* The verbs' members, from JSON. */
TEST(members_of_requests_are_checked)
{
	static const struct {
		const char *line, *words;
		bool is_trace;
	} cases[] = {
		{ "{}", "give either port or drops", false },
		{ "{\"port\":\"a\",\"drops\":true}", "give either", false },
		{ "{\"drops\":true,\"snap\":0}", "snap", false },
		{ "{\"drops\":true,\"snap\":65536}", "snap", false },
		{ "{\"drops\":true,\"count\":-1}", "count", false },
		{ "{\"drops\":1}", "Expected", false },
		{ "{\"drops\":true,\"x\":1}", "x", false },
		{ "{\"count\":-1}", "count", true },
		{ "{\"snap\":1}", "snap", true },
	};
	struct capture_request request;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct control_request r = { .args = json_loads(cases[i].line,
								0, NULL) };

		assert_false((cases[i].is_trace ?
				      control_take_trace :
				      control_take_capture)(&r, &request));
		r.bytes[r.n - 1] = '\0';
		if (strstr(r.bytes, cases[i].words) == NULL)
			fail_msg("%s: %s", cases[i].line, r.bytes);
		json_decref(r.args);
		free(r.bytes);
	}
}
