/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "result/units.h"

static const char *const counts[] = { "", "k", "M", "G", "T", NULL };
static const char *const times[] = { "ns", "us", "ms", "s", NULL };

/* What stands behind the number; NULL: it stands as it is. */
static const char *const *prefixes_of(const char *unit)
{
	if (strcmp(unit, "ns") == 0 || strcmp(unit, "s") == 0)
		return times;
	return strcmp(unit, "ns/frame") == 0 ||
			       strcmp(unit, "cycles/frame") == 0 ?
		       NULL :
		       counts;
}

/* By how much the value is to be divided, and the prefix that says so. */
static double scale_of(double value, const char *unit, const char **ret)
{
	const char *const *prefixes = prefixes_of(unit);
	double scale = strcmp(unit, "s") == 0 ? 1e-9 : 1;
	uint32_t i = 0;

	*ret = "";
	if (strcmp(unit, "ratio") == 0)
		return 0.01; /* percent */
	if (prefixes == NULL)
		return 1;
	while (prefixes[i + 1] != NULL && fabs(value) >= scale * 999.95) {
		scale *= 1000;
		i++;
	}
	*ret = prefixes[i];
	return scale;
}

static int digits_behind(double value)
{
	const double size = fabs(value);

	return size == 0 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

void unit_print_number(double value, const char *unit, char *ret, size_t n)
{
	const char *prefix;

	value /= scale_of(value, unit, &prefix);
	if (strcmp(unit, "ratio") == 0)
		snprintf(ret, n, "%.3g", value);
	else
		snprintf(ret, n, "%.*f%s%s", digits_behind(value), value,
			 prefix[0] != '\0' ? " " : "", prefix);
}

void unit_print_short(double value, const char *unit, char *ret, size_t n)
{
	const char *prefix;

	value /= scale_of(value, unit, &prefix);
	snprintf(ret, n, "%.4g%s%s", value, prefix[0] != '\0' ? " " : "",
		 prefix);
}

const char *unit_name(const char *unit)
{
	if (strcmp(unit, "ratio") == 0)
		return "%";
	return strcmp(unit, "ns") == 0 || strcmp(unit, "s") == 0 ? "" : unit;
}

void unit_print(double value, const char *unit, char *ret, size_t n)
{
	char number[40];
	const char *name = unit_name(unit);

	unit_print_number(value, unit, number, sizeof(number));
	snprintf(ret, n, "%s%s%s", number,
		 name[0] == '\0' || strchr(number, ' ') != NULL ? "" : " ",
		 name);
}
