/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates: "1.2M", "10Gbit", "10Gbit-l2", "25%", "max". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/rate.h"

enum { MOST_PPS = 1000000000 };

struct rate_word {
	const char *word;
	enum rate_unit unit;
};

static const struct rate_word words[] = {
	{ "", RATE_PPS },          { "pps", RATE_PPS },
	{ "bit", RATE_L1_BPS },    { "bit-l1", RATE_L1_BPS },
	{ "bit-l2", RATE_L2_BPS }, { "%", RATE_PERCENT },
};

/* 1 where no prefix stands there. */
static double take_prefix(const char **at)
{
	static const char prefixes[] = "kMGT";
	const char *found = **at != '\0' ? strchr(prefixes, **at) : NULL;
	double factor = 1;

	if (found == NULL)
		return 1;
	for (const char *p = prefixes; p <= found; p++)
		factor *= 1000;
	(*at)++;
	return factor;
}

enum parse_result rate_parse(const char *name, const char *text,
			     struct rate *ret, struct mr_reason *ret_error)
{
	char *end;
	const char *at;
	double value;

	if (strcmp(text, "max") == 0) {
		*ret = (struct rate){ .unit = RATE_FULL };
		return PARSE_RUN;
	}
	value = strtod(text, &end);
	at = end;
	if (end != text && *end != '%')
		value *= take_prefix(&at);
	/* Not by its negation: a NaN is wrong, too. */
	if (end == text || !(value > 0 && value <= 1e15))
		return parse_wrong(ret_error,
				   "--%s: '%s' is no rate, as 1.2M (frames per "
				   "second), 10Gbit, 10Gbit-l2, 25%% or max",
				   name, text);
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(at, words[i].word) != 0)
			continue;
		if (words[i].unit == RATE_PPS && value > MOST_PPS)
			return parse_wrong(
				ret_error,
				"--%s: '%s' is more than 1G frames "
				"per second; bits are meant by %sbit",
				name, text, text);
		if (words[i].unit == RATE_PERCENT && value > 100)
			return parse_wrong(ret_error,
					   "--%s: '%s' is more than the link "
					   "takes",
					   name, text);
		*ret = (struct rate){ words[i].unit, value };
		return PARSE_RUN;
	}
	return parse_wrong(ret_error,
			   "--%s: '%s' ends in no unit; there are pps, bit, "
			   "bit-l2 and %%, with k, M or G in front",
			   name, text);
}

void rate_print(const struct rate *rate, char *ret, size_t n_bytes)
{
	static const char *const units[] = { "", "pps", "bit", "bit-l2", "%" };
	static const char *const prefixes[] = { "", "k", "M", "G", "T" };
	double value = rate->value;
	uint32_t p = 0;

	if (rate->unit == RATE_FULL) {
		snprintf(ret, n_bytes, "max");
		return;
	}
	/* Only where that loses nothing. */
	while (rate->unit != RATE_PERCENT && p < 4 && value >= 1000 &&
	       fmod(value, 10) == 0) {
		value /= 1000;
		p++;
	}
	snprintf(ret, n_bytes, "%.12g%s%s", value, prefixes[p],
		 units[rate->unit]);
}

double rate_pps(const struct rate *rate, double mean_bytes, double line_pps)
{
	switch (rate->unit) {
	case RATE_FULL:
		return 0;
	case RATE_PPS:
		return rate->value;
	case RATE_L1_BPS:
		return rate->value / (8 * (mean_bytes + WIRE_BYTES));
	case RATE_L2_BPS:
		return rate->value / (8 * (mean_bytes + FCS_BYTES));
	case RATE_PERCENT:
		break;
	}
	return line_pps > 0 ? rate->value / 100 * line_pps : -1;
}

double rate_l1_bps(double pps, double mean_bytes)
{
	return pps * 8 * (mean_bytes + WIRE_BYTES);
}
