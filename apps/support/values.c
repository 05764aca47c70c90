/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as people write them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

enum {
	MAX_WORD = 32,    /* for the nearest one */
	MAX_S = 31536000, /* a year */
};

bool value_place(const char *text, struct mr_reason *ret_why)
{
	return (strncmp(text, "unix:", 5) == 0 && text[5] != '\0') ||
	       strncmp(text, "tcp:", 4) == 0 ||
	       value_wrong(ret_why,
			   "'%.80s' is neither unix:PATH nor tcp:ADDRESS:PORT",
			   text);
}

/* Parse leading digits; returns their end. NULL: none, or more than max. */
static const char *parse_digits(const char *text, uint32_t max, uint32_t *ret)
{
	uint64_t n = 0;
	const char *at = text;

	while (*at >= '0' && *at <= '9' && n <= max)
		n = 10 * n + (uint64_t)(*at++ - '0');
	if (at == text || n > max)
		return NULL;
	*ret = (uint32_t)n;
	return at;
}

bool value_number(const char *text, uint32_t min, uint32_t max, uint32_t *ret,
		  struct mr_reason *ret_why)
{
	uint32_t n;
	const char *end = parse_digits(text, max, &n);

	if (end == NULL || *end != '\0' || n < min)
		return value_wrong(ret_why,
				   "'%s' is not a whole number from %u to %u",
				   text, min, max);
	*ret = n;
	return true;
}

/* Of times, in descending order. */
static const char units[] = "dhms";
static const uint32_t seconds[] = { 86400, 3600, 60, 1 };

bool value_duration(const char *text, uint32_t *ret_s,
		    struct mr_reason *ret_why)
{
	uint32_t n, next_unit = 0;
	uint64_t sum = 0;
	const char *at = text;

	do {
		const char *found;

		at = parse_digits(at, MAX_S, &n);
		if (at == NULL)
			break;
		found = *at != '\0' ? strchr(units, *at) : &units[3];
		/* In descending order; a number alone is in seconds. */
		if (found == NULL || found < units + next_unit ||
		    (*at == '\0' && next_unit > 0)) {
			at = NULL;
			break;
		}
		sum += (uint64_t)n * seconds[found - units];
		next_unit = (uint32_t)(found - units) + 1;
		at += *at != '\0';
	} while (*at != '\0');
	if (at == NULL || sum == 0 || sum > MAX_S)
		return value_wrong(ret_why,
				   "'%s' is not a time from 1s to 365d, such "
				   "as 90s, 5m or 2h4m",
				   text);
	*ret_s = (uint32_t)sum;
	return true;
}

bool value_seconds(const char *text, uint64_t *ret_ms,
		   struct mr_reason *ret_why)
{
	char *end;
	const double s = strtod(text, &end);

	/* Written so that a NaN is wrong, too. */
	if (end == text || *end != '\0' || !(s >= 0.001 && s <= 1e9))
		return value_wrong(ret_why,
				   "'%s' is not a number of seconds, 0.001 to "
				   "1e9",
				   text);
	*ret_ms = (uint64_t)(s * 1000 + 0.5);
	return true;
}

void value_write_duration(uint32_t s, char *ret_text, size_t n_bytes)
{
	size_t n = 0;

	ret_text[0] = '\0';
	for (uint32_t i = 0; units[i] != '\0'; i++) {
		if (s >= seconds[i] && n < n_bytes)
			n += (size_t)snprintf(ret_text + n, n_bytes - n, "%u%c",
					      s / seconds[i], units[i]);
		s %= seconds[i];
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool value_cores(const char *text, uint32_t *ret_cores, uint32_t *ret_n,
		 struct mr_reason *ret_why)
{
	uint32_t cores[MR_WORKERS_MAX], n = 0;
	const char *at = text;

	if (strcmp(text, "auto") == 0) {
		*ret_n = 0;
		return true;
	}
	while (is_digit(*at)) {
		unsigned long first, last;
		char *end;

		first = last = strtoul(at, &end, 10);
		if (*end == '-' && is_digit(end[1]))
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= 1024)
			break;
		for (unsigned long core = first; core <= last; core++) {
			if (n == MR_WORKERS_MAX)
				return value_wrong(ret_why,
						   "more than %d cores",
						   MR_WORKERS_MAX);
			cores[n++] = (uint32_t)core;
		}
		if (*end == '\0') {
			memcpy(ret_cores, cores, n * sizeof(cores[0]));
			*ret_n = n;
			return true;
		}
		if (*end != ',')
			break;
		at = end + 1;
	}
	return value_wrong(ret_why,
			   "'%s' is not a list of cores such as 1,3-5, or auto",
			   text);
}

bool value_word(const char *text, const char *const *words, uint32_t *ret,
		struct mr_reason *ret_why)
{
	char known[sizeof(ret_why->text)] = "";

	for (uint32_t i = 0; words[i] != NULL; i++) {
		const size_t n = strlen(known);

		if (strcmp(text, words[i]) == 0) {
			*ret = i;
			return true;
		}
		snprintf(known + n, sizeof(known) - n, "%s%s",
			 i > 0 ? ", " : "", words[i]);
	}
	return value_wrong(ret_why, "'%s' is not one of: %s", text, known);
}

/* Edit distance (Levenshtein), row by row. */
static uint32_t edit_distance(const char *a, size_t n_a, const char *b,
			      size_t n_b)
{
	uint32_t row[MAX_WORD + 1];

	for (uint32_t j = 0; j <= n_b; j++)
		row[j] = j;
	for (uint32_t i = 1; i <= n_a; i++) {
		uint32_t corner = row[0];

		row[0] = i;
		for (uint32_t j = 1; j <= n_b; j++) {
			const uint32_t above = row[j];
			uint32_t least = corner + (a[i - 1] != b[j - 1]);

			if (above + 1 < least)
				least = above + 1;
			if (row[j - 1] + 1 < least)
				least = row[j - 1] + 1;
			corner = above;
			row[j] = least;
		}
	}
	return row[n_b];
}

const char *value_nearest(const char *text, const char *const *words)
{
	const size_t n = strlen(text);
	const char *nearest = NULL;
	uint32_t least = UINT32_MAX;

	if (n > MAX_WORD)
		return NULL;
	for (uint32_t i = 0; words[i] != NULL; i++) {
		const size_t n_word = strlen(words[i]);
		uint32_t d;

		if (n_word > MAX_WORD)
			continue;
		d = edit_distance(text, n, words[i], n_word);
		/* More than half of it would be another word. */
		if (d < least && 2 * d <= (n > n_word ? n : n_word) + 1) {
			least = d;
			nearest = words[i];
		}
	}
	return nearest;
}
