/* SPDX-License-Identifier: BSD-3-Clause */
/* What the simulated DUT is to do: "loss=1000,delay=50us". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/device.h"
#include "net/rate.h"

enum { MAX_TEXT = 256, MAX_BY = 64, MAX_QUEUE = 65536 };

static int wrong(struct mr_reason *why, const char *word, const char *what)
{
	snprintf(why->text, sizeof(why->text), "--device: '%s' %s", word, what);
	return -EINVAL;
}

static int take_count(const char *word, const char *value, uint32_t max,
		      uint32_t *ret, struct mr_reason *why)
{
	char *end;
	const unsigned long n = strtoul(value, &end, 10);
	char what[64];

	if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && n > 0 &&
	    n <= max) {
		*ret = (uint32_t)n;
		return 0;
	}
	snprintf(what, sizeof(what), "is not a number from 1 to %u", max);
	return wrong(why, word, what);
}

/* "N/BY": every Nth is overtaken by the next BY. */
static int take_reorder(const char *word, char *value,
			struct device_config *ret, struct mr_reason *why)
{
	char *slash = strchr(value, '/');
	int err;

	ret->reorder_by = 1;
	if (slash != NULL) {
		*slash = '\0';
		err = take_count(word, slash + 1, MAX_BY, &ret->reorder_by,
				 why);
		if (err < 0)
			return err;
	}
	err = take_count(word, value, UINT32_MAX, &ret->reorder_every, why);
	if (err == 0 && ret->reorder_every <= ret->reorder_by)
		return wrong(why, word,
			     "holds one frame at a time: N must be above BY");
	return err;
}

static int take_time(const char *word, const char *value, uint64_t *ret_ns,
		     struct mr_reason *why)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	const double n = strtod(value, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != value && n > 0 && n * units[i].ns <= 1e9 &&
		    strcmp(end, units[i].name) == 0) {
			*ret_ns = (uint64_t)(n * units[i].ns + 0.5);
			return 0;
		}
	return wrong(why, word, "is no time up to 1s, as 500ns, 50us or 2ms");
}

static int take_rate(const char *value, double *ret_pps, struct mr_reason *why)
{
	struct rate rate;

	if (rate_parse("device rate", value, &rate, why) != PARSE_RUN)
		return -EINVAL;
	if (rate.unit != RATE_PPS)
		return wrong(why, value, "is not in frames per second");
	*ret_pps = rate.value;
	return 0;
}

static int take(char *word, struct device_config *ret, struct mr_reason *why)
{
	char whole[MAX_TEXT];
	char *value = strchr(word, '=');

	snprintf(whole, sizeof(whole), "%s", word);
	if (value == NULL)
		return wrong(why, whole, "has no value, as loss=1000");
	*value++ = '\0';
	if (strcmp(word, "loss") == 0)
		return take_count(whole, value, UINT32_MAX, &ret->loss_every,
				  why);
	if (strcmp(word, "dup") == 0)
		return take_count(whole, value, UINT32_MAX, &ret->dup_every,
				  why);
	if (strcmp(word, "corrupt") == 0)
		return take_count(whole, value, UINT32_MAX, &ret->corrupt_every,
				  why);
	if (strcmp(word, "reorder") == 0)
		return take_reorder(whole, value, ret, why);
	if (strcmp(word, "delay") == 0)
		return take_time(whole, value, &ret->delay_ns, why);
	if (strcmp(word, "rate") == 0)
		return take_rate(value, &ret->rate_pps, why);
	if (strcmp(word, "queue") == 0)
		return take_count(whole, value, MAX_QUEUE, &ret->queue_frames,
				  why);
	return wrong(why, whole,
		     "is unknown; there are loss, dup, corrupt, reorder, "
		     "delay, rate and queue");
}

int device_parse(const char *text, struct device_config *ret,
		 struct mr_reason *why)
{
	char copy[MAX_TEXT], *save, *word;

	*ret = (struct device_config){ 0 };
	if (strlen(text) >= sizeof(copy))
		return wrong(why, text, "is too long");
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word != NULL;
	     word = strtok_r(NULL, ",", &save)) {
		const int err = take(word, ret, why);

		if (err < 0)
			return err;
	}
	if (ret->queue_frames > 0 && ret->rate_pps == 0)
		return wrong(why, text, "has a queue, but no rate to wait for");
	return 0;
}
