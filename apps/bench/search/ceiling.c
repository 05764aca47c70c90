/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tester itself can do, and what it makes of a result. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "search/session.h"

/* Results from here on may be the tester's own. */
static const double near_ceiling = 0.95;

/* A mix is another one if its frames are longer or shorter on average. */
static bool is_of(const json_t *entry, uint32_t frame_bytes, double mean_bytes)
{
	const json_t *bytes = json_object_get(entry, "frame_bytes");
	const json_t *mean = json_object_get(entry, "mean_bytes");

	return json_integer_value(bytes) == (json_int_t)frame_bytes &&
	       (frame_bytes != 0 ||
		fabs(json_number_value(mean) - mean_bytes) < 0.01);
}

static const char *text_at(const json_t *object, const char *a, const char *b)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(object, a), b));

	return text != NULL ? text : "";
}

static const char *string_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* Ports that can do the same: by the way to the NIC, its driver, queues. */
static bool is_alike(const json_t *a, const json_t *b)
{
	return strcmp(string_of(a, "mode"), string_of(b, "mode")) == 0 &&
	       strcmp(text_at(a, "nic", "driver"),
		      text_at(b, "nic", "driver")) == 0 &&
	       json_equal(json_object_get(a, "rx_queues"),
			  json_object_get(b, "rx_queues")) &&
	       json_equal(json_object_get(a, "tx_queues"),
			  json_object_get(b, "tx_queues"));
}

/* The port among ports that can do the same; NULL: none. */
static const json_t *find_alike(const json_t *ports, const json_t *port)
{
	const json_t *other;
	size_t i;

	json_array_foreach(ports, i,
			   other) if (is_alike(other, port)) return other;
	return NULL;
}

/* Of another machine, port or number of threads it is no ceiling of ours. */
static int check_ceiling(const char *path, const json_t *theirs,
			 const json_t *ours, struct mr_reason *why)
{
	static const char cure[] =
		"mr-bench selftest with these ports and options measures ours";
	const json_t *ports = json_object_get(theirs, "ports"), *port;
	const char *cpu = text_at(theirs, "machine", "cpu");
	const json_t *workers =
		json_object_get(json_object_get(theirs, "config"), "workers");
	size_t i;

	if (strcmp(cpu, text_at(ours, "machine", "cpu")) != 0)
		return fail_with(why, -EINVAL,
				 "--ceiling %.60s is of another machine, with "
				 "a '%.40s'; %s",
				 path, cpu, cure);
	if (!json_equal(workers,
			json_object_get(json_object_get(ours, "config"),
					"workers")))
		return fail_with(why, -EINVAL,
				 "--ceiling %.60s is of other --workers (%lld; "
				 "0: the default); %s",
				 path, (long long)json_integer_value(workers),
				 cure);
	json_array_foreach(json_object_get(ours, "ports"), i, port)
	{
		if (find_alike(ports, port) != NULL)
			continue;
		return fail_with(
			why, -EINVAL,
			"--ceiling %.60s has no port of the mode '%s', "
			"driver and queues of %.40s; %s",
			path, string_of(port, "mode"), string_of(port, "name"),
			cure);
	}
	return 0;
}

int ceiling_read(const char *text, const json_t *ours, uint32_t frame_bytes,
		 double mean_bytes, double *ret, struct mr_reason *why)
{
	struct rate rate;
	struct mr_reason no_rate;
	json_error_t error;
	json_t *root, *entry;
	size_t i;
	int err;

	*ret = 0;
	if (rate_parse("ceiling", text, &rate, &no_rate) == PARSE_RUN) {
		*ret = rate_pps(&rate, mean_bytes, 0);
		if (*ret > 0)
			return 0;
		return fail_with(why, -EINVAL,
				 "--ceiling %s: give frames or bits per "
				 "second, or a document of selftest",
				 text);
	}
	root = json_load_file(text, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		return fail_with(why, -EINVAL,
				 "--ceiling %s: no rate, and no document: %s",
				 text, error.text);
	json_array_foreach(json_object_get(root, "selftest"), i, entry)
	{
		if (is_of(entry, frame_bytes, mean_bytes))
			*ret = json_number_value(
				json_object_get(entry, "ceiling_pps"));
	}
	/* What has no ceiling at all is no document of selftest. */
	err = *ret > 0 ? check_ceiling(text, root, ours, why) : 0;
	json_decref(root);
	if (err != 0)
		return err;
	if (*ret <= 0)
		return fail_with(why, -ENOENT,
				 "--ceiling %s: it has no ceiling for frames "
				 "of %g bytes%s without FCS; mr-bench selftest "
				 "measures them",
				 text, mean_bytes,
				 frame_bytes == 0 ? " on average" : "");
	return 0;
}

bool session_is_near_ceiling(const struct session *session, double pps,
			     char *note, size_t n_bytes)
{
	const double ceiling = session->ceiling_pps;

	if (ceiling <= 0 || pps < near_ceiling * ceiling)
		return false;
	snprintf(note, n_bytes, "%s the tester's ceiling of %.0f",
		 pps > ceiling ? "above" : "near", ceiling);
	return true;
}

bool session_judge(const struct session *session, double pps, enum limit limit,
		   bool *ret_is_limited, char *note, size_t n_bytes)
{
	const double ceiling = session->ceiling_pps;
	const double highest = session->search.max_pps;

	*ret_is_limited = true;
	/* Each of the two searches ends within its resolution of a limit. */
	if (ceiling > 0 &&
	    pps > ceiling * (1 + 2 * session->options.resolution)) {
		snprintf(note, n_bytes,
			 "refused: %.0f frames/s are more than the tester's "
			 "own ceiling of %.0f",
			 pps, ceiling);
		return false;
	}
	if (limit == LIMIT_SENDER)
		snprintf(note, n_bytes, "above, the sender does not keep up");
	else if (limit == LIMIT_RECEIVER)
		snprintf(note, n_bytes, "above, the receiver loses frames");
	else if (session_is_near_ceiling(session, pps, note, n_bytes))
		*ret_is_limited = true;
	else if (session->is_own_ceiling && pps >= near_ceiling * highest)
		snprintf(note, n_bytes, "near what the sender can do, %.0f",
			 highest);
	else
		*ret_is_limited = false;
	if (!*ret_is_limited && limit == LIMIT_HIGHEST)
		snprintf(note, n_bytes, "no loss at the highest rate");
	return true;
}

void session_row(struct session *session, const struct document_row *row)
{
	const char *const own = row->note != NULL ? row->note : "";
	struct document_row with_trials = *row;
	char note[448];

	with_trials.frame_bytes = session->frame_bytes;
	snprintf(note, sizeof(note), "%.320s%s%s", own,
		 own[0] != '\0' && session->raised[0] != '\0' ? "; " : "",
		 session->raised);
	with_trials.note = note;
	if (row->n_trials == 0) {
		with_trials.trials = session->search.trials;
		with_trials.n_trials = session->search.n_trials;
	}
	document_row(session->document, &with_trials);
	session->n_rows++;
}
