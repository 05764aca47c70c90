/* SPDX-License-Identifier: BSD-3-Clause */
/* A request of a client as JSON, and the lines of its answer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "json_text.h"
#include "text.h"

enum { LISTED = 256 }; /* objects per call */

static int add_bytes(const char *bytes, size_t n, void *opaque)
{
	struct control_request *r = opaque;

	if (r->n + n > r->n_max) {
		const size_t n_max = 2 * (r->n + n);
		char *longer = realloc(r->bytes, n_max);

		if (longer == NULL) {
			r->is_broken = true;
			return -1;
		}
		r->bytes = longer;
		r->n_max = n_max;
	}
	memcpy(r->bytes + r->n, bytes, n);
	r->n += n;
	return 0;
}

void control_add(struct control_request *r, json_t *line)
{
	if (!r->is_gone && !r->is_broken &&
	    (line == NULL ||
	     json_dump_callback(line, add_bytes, r,
				JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0 ||
	     add_bytes("\n", 1, r) < 0))
		r->is_broken = true;
	json_decref(line);
}

bool control_end(struct control_request *r, json_t *more)
{
	json_t *end = json_pack("{s:b}", "end", 1);

	if (more != NULL)
		json_object_update_new(end, more);
	control_add(r, end);
	return true;
}

bool control_fail(struct control_request *r, const char *format, ...)
{
	struct mr_reason why;
	va_list args;

	va_start(args, format);
	text_format(why.text, sizeof(why.text), format, args);
	va_end(args);
	control_add(r, json_pack("{s:o}", "error", json_text(why.text)));
	return true;
}

bool control_args(struct control_request *r, const char *format, ...)
{
	json_error_t error;
	va_list args;
	int err;

	va_start(args, format);
	err = json_vunpack_ex(r->args, &error, JSON_STRICT, format, args);
	va_end(args);
	if (err == 0)
		return true;
	/* The names of the arguments that are left follow a colon. */
	if (json_error_code(&error) == json_error_end_of_input_expected)
		return !control_fail(r, "unknown argument: %s",
				     strchr(error.text, ':') != NULL ?
					     strchr(error.text, ':') + 2 :
					     "there are too many");
	return !control_fail(r, "missing argument, or wrong type: %s",
			     error.text);
}

struct listing {
	uint32_t slot; /* next */
	uint32_t n;
};

_Static_assert(sizeof(struct listing) == CONTROL_LISTING_BYTES, "");

bool control_list(struct control_request *r, const void *app, uint32_t n_slots,
		  control_describe_fn *describe)
{
	struct listing *at = r->state;
	const uint32_t end = at->n + LISTED;

	if (r->is_gone || (at->slot == 0 && !control_args(r, "{}")))
		return true;
	for (; at->slot < n_slots && at->n < end; at->slot++) {
		json_t *object = describe(app, at->slot);

		if (object == NULL)
			continue;
		control_add(r, object);
		at->n++;
	}
	return at->slot == n_slots &&
	       control_end(r, json_pack("{s:i}", "listed", (int)at->n));
}

const struct control_verb *control_parse(const char *line, size_t n,
					 const struct control_verb *verbs,
					 uint32_t n_verbs, json_t **ret_args,
					 struct mr_reason *ret_why)
{
	json_error_t error;
	json_t *args = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
	const char *verb = NULL;
	int v = CONTROL_PROTOCOL;

	*ret_args = NULL;
	if (args == NULL || json_unpack_ex(args, &error, 0, "{s:s, s?i}",
					   "verb", &verb, "v", &v) < 0)
		fail_with(ret_why, 0,
			  "a request is a JSON object with a verb: %s",
			  error.text);
	else if (v != CONTROL_PROTOCOL)
		fail_with(ret_why, 0,
			  "protocol version %d is not supported; use %d", v,
			  CONTROL_PROTOCOL);
	else
		for (uint32_t i = 0; i < n_verbs; i++) {
			if (strcmp(verb, verbs[i].name) != 0)
				continue;
			json_object_del(args, "v");
			json_object_del(args, "verb");
			*ret_args = args;
			return &verbs[i];
		}
	if (verb != NULL && v == CONTROL_PROTOCOL)
		fail_with(ret_why, 0, "unknown verb '%.100s'; hello lists them",
			  verb);
	json_decref(args);
	return NULL;
}
