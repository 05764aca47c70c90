/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs capture and trace: records as lines, until the client is gone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "control.h"
#include "json_text.h"

enum {
	ENOUGH_BYTES = 1 << 15, /* of answers per call */
	TRACE_BYTES = 128,      /* of a frame: its headers */
};

/* While it runs. */
struct stream {
	bool has_begun;
	uint64_t n, n_max; /* records; capture: as many as asked for */
	struct capture_missed missed; /* as last reported */
};

_Static_assert(sizeof(struct stream) <= CONTROL_CAPTURE_STATE, "too small");

static json_t *hex_text(const uint8_t *bytes, uint32_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * (size_t)n + 1);
	json_t *object;

	if (text == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	object = json_stringn_nocheck(text, 2 * (size_t)n);
	free(text);
	return object;
}

static json_t *line_of(const struct dataplane *plane,
		       const struct capture_record *record)
{
	static const char *const events[] = {
		[CAPTURE_RX] = "rx",
		[CAPTURE_TX] = "tx",
		[CAPTURE_DROP] = "drop",
		[CAPTURE_NOTE] = "note",
	};
	struct mr_port_info info = { .size = sizeof(info) };
	json_t *line;

	mr_port_info(plane->ports[record->port_idx], &info);
	line = json_pack(
		"{s:s, s:I, s:i, s:o, s:i, s:I, s:I, s:i, s:o}", "event",
		events[record->event], "ns", (json_int_t)record->ns, "worker",
		(int)record->worker_idx, "port", json_text(info.name), "queue",
		(int)record->queue_idx, "burst", (json_int_t)record->burst,
		"frame", (json_int_t)record->id, "bytes", (int)record->n_frame,
		"data", hex_text(record->data, record->n_data));
	if (line != NULL && record->why != NULL)
		json_object_set_new(line, "reason", json_string(record->why));
	if (line != NULL && record->text[0] != '\0')
		json_object_set_new(line, "note", json_text(record->text));
	return line;
}

static json_t *missed_line(const struct capture_missed *missed)
{
	return json_pack("{s:{s:I, s:I}}", "missed", "ring_full",
			 (json_int_t)missed->ring_full, "offloaded",
			 (json_int_t)missed->offloaded);
}

/* As much of the answer as there is. True: it is complete. */
static bool go_on(struct control_request *r, struct stream *stream,
		  struct capture *capture, const struct dataplane *plane)
{
	struct capture_record record;
	struct capture_missed missed;

	while (r->n < ENOUGH_BYTES &&
	       (stream->n_max == 0 || stream->n < stream->n_max) &&
	       capture_next(capture, &record)) {
		control_add(r, line_of(plane, &record));
		stream->n++;
	}
	missed = capture_missed(capture);
	if (memcmp(&missed, &stream->missed, sizeof(missed)) != 0)
		control_add(r, missed_line(&missed));
	stream->missed = missed;
	if (r->is_broken || (stream->n_max > 0 && stream->n == stream->n_max)) {
		capture_stop(capture);
		return control_end(
			r, json_pack("{s:I}", "listed", (json_int_t)stream->n));
	}
	return false;
}

static bool answer_request(struct control_request *r, struct control *control,
			   const struct capture_request *request)
{
	const struct control_view *view = control_view_of(control);
	struct stream *stream = r->state;
	struct mr_reason why;
	int err;

	if (view->capture == NULL)
		return control_fail(r, "this program cannot capture");
	if (!stream->has_begun) {
		err = capture_start(view->capture, request, &why);
		if (err == -EAGAIN)
			return false;
		if (err < 0)
			return control_fail(r, "%s", why.text);
		stream->has_begun = true;
		if (request->what != CAPTURE_TRACE)
			stream->n_max = request->n_frames;
		control_add(r, missed_line(&stream->missed));
	}
	return go_on(r, stream, view->capture, view->plane);
}

/* True: the client is gone, and so is its capture. */
static bool is_over(struct control_request *r, void *control)
{
	const struct stream *stream = r->state;

	if (r->is_gone && stream->has_begun)
		capture_stop(control_view_of(control)->capture);
	return r->is_gone;
}

bool control_take_capture(struct control_request *r,
			  struct capture_request *ret)
{
	json_int_t n_frames = 0, n_bytes = CAPTURE_MAX_BYTES;
	int drops = 0;

	*ret = (struct capture_request){ .what = CAPTURE_PORT };
	if (!control_args(r, "{s?s, s?b, s?s, s?I, s?I}", "port", &ret->port,
			  "drops", &drops, "filter", &ret->filter, "count",
			  &n_frames, "snap", &n_bytes))
		return false;
	if ((ret->port != NULL) == (drops != 0))
		return !control_fail(r, "capture: give either port or drops");
	if (n_frames < 0 || n_bytes < 1 || n_bytes > CAPTURE_MAX_BYTES)
		return !control_fail(r, "capture: count is at least 0, snap "
					"from 1 to 65535");
	if (drops != 0)
		ret->what = CAPTURE_DROPS;
	ret->n_frames = (uint64_t)n_frames;
	ret->n_bytes = (uint32_t)n_bytes;
	return true;
}

bool control_take_trace(struct control_request *r, struct capture_request *ret)
{
	json_int_t n_frames = 0;

	*ret = (struct capture_request){ .what = CAPTURE_TRACE,
					 .n_bytes = TRACE_BYTES };
	if (!control_args(r, "{s?s, s?s, s?I}", "port", &ret->port, "filter",
			  &ret->filter, "count", &n_frames))
		return false;
	if (n_frames < 0)
		return !control_fail(r, "trace: count is at least 0");
	ret->n_frames = (uint64_t)n_frames;
	return true;
}

bool control_answer_capture(struct control_request *r, void *control)
{
	struct capture_request request;

	return is_over(r, control) || !control_take_capture(r, &request) ||
	       answer_request(r, control, &request);
}

bool control_answer_trace(struct control_request *r, void *control)
{
	struct capture_request request;

	return is_over(r, control) || !control_take_trace(r, &request) ||
	       answer_request(r, control, &request);
}
